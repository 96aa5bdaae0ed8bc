//! The account of each transaction's time, against which the ledger is checked.
//!
//! Why it exists: requests carry it from their first wait to the end of their last answer. What it deliberately does not know: how they
//! travel.

use crate::types::Tick;

/// The account of a transaction's time: always `end - started = service + waited`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// When the transaction asked for its first resource.
    pub started: Tick,
    /// Ticks during which a resource worked for it.
    pub service: Tick,
    /// Ticks during which it waited; each of them is booked in the ledger.
    pub waited: Tick,
    /// Those of them for which it waited for a miss register of its own tile.
    pub blocked: Tick,
}

impl Account {
    /// An account that starts now.
    pub const fn new(started: Tick) -> Self {
        Self {
            started,
            service: 0,
            waited: 0,
            blocked: 0,
        }
    }
    /// The moment up to which time has been accounted for.
    pub const fn accounted(&self) -> Tick {
        self.started + self.service + self.waited
    }
}

/// The kinds of transactions that latency statistics distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transaction {
    /// A cache line read because of a miss (fetches, loads, stores, page walks): request to data.
    CacheRead,
    /// A cache line written back: until the acknowledgement.
    CacheWrite,
    /// A home agent's question to a cluster, if another cluster answered later: until its answer. The last answer is part of the request
    /// that caused the questions.
    Probe,
    /// A chunk that a DTU reads from memory, or an element that a DMA engine reads: request to data.
    DmaRead,
    /// A chunk that a DTU writes to memory, or an element that a DMA engine writes: until the acknowledgement.
    DmaWrite,
    /// A message or reply: until the receiver's acknowledgement.
    Message,
    /// An access to the registers of another tile's DTU.
    Register,
    /// A load from another tile's local memory or registers, or from external memory: request to value.
    RemoteLoad,
    /// A store to one of these: until the acknowledgement.
    RemoteStore,
    /// An atomic operation on one of these: request to the old value.
    RemoteAtomic,
    /// An interrupt of a DMA engine or a device, which nobody answers: until it arrives.
    Interrupt,
}
