//! The kernel's books: what existed at boot, and whether all of it is back when every activity has ended.
//!
//! Why it exists: an activity can die at any moment, so the check that everything comes back must also run on the chip, with real
//! servers and units. With the boot module [`MODULE`], the kernel closes its books when the root manager has ended: it prints what
//! every remaining activity holds, ends them all, takes back what it gave away itself, and compares. What it deliberately does not
//! know: which activities died, and when.

use crate::system::System;
use bulkhead_capabilities::{NodeId, Object};
use bulkhead_common::payer::Fixed;

/// Name of the boot module whose presence asks for this; no program has such a name.
pub const MODULE: &str = "kernel:books";

/// The resources at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    /// All capabilities, activities among them.
    capabilities: Fixed<(NodeId, Object)>,
    /// Free endpoints of each tile.
    endpoints: Fixed<usize>,
    /// Number of activities that wait, of pending replies and of undelivered words.
    waiting: usize,
}

impl System {
    /// The books of this moment.
    pub fn books(&mut self) -> Books {
        Books {
            capabilities: self.space().alive().collect(),
            endpoints: self.free_endpoints().collect(),
            waiting: self.unfinished(),
        }
    }
}
