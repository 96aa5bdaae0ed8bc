//! Memory controllers with their DRAM: queues, policies, banks with open rows, buses, refresh.
//!
//! Why it exists: a good part of the interference between tiles depends on whether a neighbour's row, bank or burst is in the way.
//! What it deliberately does not know: networks, tiles, and the bytes stored.
//!
//! Parameters and their meaning follow the JEDEC standards (JESD79-3, JESD79-4): `banks` says when a command may be issued.

pub mod bandwidth;
pub mod banks;
mod channel;
pub mod controller;
pub mod map;
mod tile;

pub use tile::MemoryController;

use crate::types::{Owner, Tick};

/// Statistics of a memory tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramStatistics {
    /// Requests read.
    pub reads: u64,
    /// Requests written.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bursts that found their row open.
    pub row_hits: u64,
    /// Bursts that found their bank closed.
    pub row_misses: u64,
    /// Bursts that found another row open.
    pub row_conflicts: u64,
    /// Refreshes.
    pub refreshes: u64,
    /// Ticks in which the data bus moved data.
    pub bus_busy: Tick,
}

/// Work of a bank for a request. For tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BankActivity {
    /// The bank.
    pub bank: u16,
    /// The owner of the request.
    pub owner: Owner,
    /// First command to the bank.
    pub start: Tick,
    /// End of its data.
    pub end: Tick,
}
