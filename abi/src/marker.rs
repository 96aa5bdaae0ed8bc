//! Markers: observations that software makes for free.
//!
//! A marker is the HINT `slti x0, rs1, kind`: a no-op on any RISC-V chip, and recorded at no cost in ticks by the
//! machine, which reads the value of `rs1`, the time, the tile and the current activity.

use crate::dtu::codes;

/// Value of [`MarkerKind::ActivityFault`] after a panic.
pub const PANIC: u64 = 0x100;
/// Value of [`MarkerKind::ActivityFault`] after the heap was exhausted.
pub const HEAP_EXHAUSTED: u64 = 0x101;

codes! {
    /// What a marker says; the 12-bit immediate of the hint. Kinds from 0x100 are free for applications and are only
    /// recorded.
    MarkerKind: u16 {
        /// A flow of work (value: its number) begins here, for example when a sensor value is taken.
        FlowBegin = 1,
        /// The flow with this number ends here, on whatever tile.
        FlowEnd = 2,
        /// A measured span (value: its number) begins on this tile.
        SpanBegin = 3,
        /// The span ends on this tile.
        SpanEnd = 4,
        /// A job of a periodic task is released (value: job number).
        JobRelease = 5,
        /// The job is complete.
        JobComplete = 6,
        /// The activity missed a deadline by its own account (value: job number).
        DeadlineMiss = 7,
        /// Warm-up is over: from here on measurements count.
        MeasureBegin = 8,
        /// Measurements are over.
        MeasureEnd = 9,
        /// The activity stopped by a mistake of its own; emitted by TileMux while it is still the current activity. Value: the
        /// RISC-V cause of a fault, [`PANIC`] or [`HEAP_EXHAUSTED`].
        ActivityFault = 10,
        /// A 64-bit check value of the application (value: it), to be compared between runs.
        Check = 11,
    }
}
