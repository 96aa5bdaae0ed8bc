//! Planning and the large-scale study of the mixed-criticality kernel (mc2-rts20, section 6).
//!
//! Why it exists: schedulability depends on how cache ways, memory banks and processors are allocated, and the paper asks
//! which allocation makes most systems schedulable. The guarantees of a given system are in [`crate::schedulability::mc2`];
//! this module only chooses.

pub mod best_placement;
pub mod buffers;
pub mod generate;
pub mod inflation;
pub mod judge;
pub mod open_parameters;
pub mod parameters;
pub mod partition;
pub mod placement;
pub mod schemes;
pub mod statistics;
pub mod study;
pub mod task_system;
pub mod variants;
pub mod ways;
