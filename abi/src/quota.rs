//! What tile capabilities have quotas of.
//!
//! Why it exists: kernel and programs number quotas alike. What it deliberately does not know: how much there is of each.

use crate::dtu::codes;
use crate::syscall::arguments::DeriveTile;

codes! {
    /// The quotas of a tile.
    Quota: usize {
        /// Endpoints of its unit.
        Endpoints = 0,
        /// Execution time of its hart in nanoseconds of each period.
        Cpu = 1,
        /// Traffic in bytes a second.
        NocRate = 2,
        /// Traffic in bytes at once.
        NocBurst = 3,
        /// Pages for page tables.
        PageTables = 4,
        /// Places for activities in its TileMux.
        Activities = 5,
        /// Windows through which it sees memory.
        Windows = 6,
    }
}

/// Number of quotas.
pub const QUOTAS: usize = Quota::ALL.len();

impl DeriveTile {
    /// What is asked for of each quota, or [`SHARE`](crate::syscall::SHARE).
    pub const fn quotas(&self) -> [u64; QUOTAS] {
        [
            self.endpoints,
            self.budget,
            self.rate,
            self.burst,
            self.tables,
            self.activities,
            self.windows,
        ]
    }
}
