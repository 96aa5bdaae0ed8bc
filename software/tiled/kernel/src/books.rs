//! The kernel's books: what there was at boot, and whether all of it is there again when nobody is left.
//!
//! Why it exists: an activity can die at any moment, and whether everything came back is to be seen on the chip, too, where real servers
//! and units are. With the boot module [`MODULE`] the kernel closes its books when the root manager has ended: it prints what every
//! activity that is left has, ends all, takes back what it gave away itself, and compares. What it deliberately does not know: who died and
//! when.

use crate::system::System;
use bulkhead_capabilities::{NodeId, Object};
use bulkhead_common::payer::Fixed;

/// Name of the boot module whose presence asks for this; no program has such a name.
pub const MODULE: &str = "kernel:books";

/// What there is at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    /// All capabilities, activities among them.
    capabilities: Fixed<(NodeId, Object)>,
    /// Free endpoints of each tile.
    endpoints: Fixed<usize>,
    /// Those who wait for something, and what somebody is to be told.
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
