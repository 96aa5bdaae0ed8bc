//! What a hart counts while it runs. Counting never changes a tick.

use crate::types::Tick;

/// Counters since the hart was created. Times are ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HartStatistics {
    /// Retired instructions.
    pub instructions: u64,
    /// Conditional branches.
    pub branches: u64,
    /// Mispredicted branches, returns and indirect jumps.
    pub mispredictions: u64,
    /// Loads (also load-reserved and atomic operations).
    pub loads: u64,
    /// Stores (also successful store-conditionals and atomic operations).
    pub stores: u64,
    /// Accesses to device registers.
    pub device_accesses: u64,
    /// Instruction fetches that missed the first level.
    pub fetch_misses: u64,
    /// Data accesses that missed the first level.
    pub data_misses: u64,
    /// Misses of the first-level instruction TLB.
    pub fetch_tlb_misses: u64,
    /// Misses of the first-level data TLB.
    pub data_tlb_misses: u64,
    /// Page-table walks.
    pub walks: u64,
    /// Traps taken, interrupts included.
    pub traps: u64,
    /// Interrupts taken.
    pub interrupts: u64,
    /// Ticks for which the hart waited for instructions.
    pub stall_fetch: Tick,
    /// Ticks for which an instruction waited for the result of a miss.
    pub stall_load: Tick,
    /// Ticks for which a store waited for a place in the store buffer, or a fence for the buffer to
    /// drain.
    pub stall_store: Tick,
    /// Ticks spent in TLB misses.
    pub stall_translation: Tick,
    /// Ticks lost by mispredictions and jumps.
    pub stall_branch: Tick,
    /// Ticks of device accesses beyond one cycle.
    pub stall_device: Tick,
    /// Ticks of trap entries and returns.
    pub stall_trap: Tick,
    /// Ticks in WFI or asleep.
    pub slept: Tick,
}
