//! The resources for which tile capabilities have quotas.
//!
//! Why it exists: kernel and programs number quotas alike. What it deliberately does not know: the amount of each.

use crate::dtu::codes;
use crate::syscall::arguments::DeriveTile;

codes! {
    /// The quotas of a tile.
    Quota: usize {
        /// Endpoints of its unit.
        Endpoints = 0,
        /// Execution time of its hart in nanoseconds per period.
        Cpu = 1,
        /// Traffic in bytes per second.
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
    /// The requested amount of each quota, or [`SHARE`](crate::syscall::SHARE).
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
