//! A local memory: bytes, banks with [`Ports`], reservations.
//!
//! Why it exists: here the accesses of a tile's own hart meet those of all others. What it deliberately does not know: the hart, the network,
//! addresses of the chip.
//!
//! With one port, accesses take effect in the order at the port. With two, the hart's port never waits for the network's, and a network
//! request takes effect at its turn.

use crate::config::LocalMemoryConfig;
use crate::hart::{LineBytes, RemoteOperation};
use crate::ledger::Ledger;
use crate::ports::{LocalMemoryStatistics, Ports};
use crate::reservations::Reservations;
use crate::types::{Owner, Tick, TileId};

/// A local memory.
#[derive(Clone, Debug)]
pub struct LocalMemory {
    bytes: Vec<u8>,
    ports: Ports,
    reservations: Reservations,
}

impl LocalMemory {
    /// A memory of zeros, for a valid configuration.
    pub fn new(config: &LocalMemoryConfig, tile: TileId) -> Self {
        Self {
            bytes: vec![0; config.size as usize],
            ports: Ports::new(config, tile, 0),
            reservations: Reservations::default(),
        }
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the memory contains all bytes of an access.
    pub fn has(&self, offset: u64, bytes: u64) -> bool {
        let end = offset.checked_add(bytes);
        end.is_some_and(|end| end <= self.bytes.len() as u64)
    }

    /// All bytes, for tools.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Its statistics.
    pub fn statistics(&self) -> &LocalMemoryStatistics {
        self.ports.statistics()
    }

    /// Ticks of a cycle.
    pub fn cycle(&self) -> Tick {
        self.ports.cycle()
    }

    /// Ticks from a turn at the port to the answer.
    pub fn latency(&self) -> Tick {
        self.ports.latency()
    }

    /// The hart and the network share the ports.
    pub fn is_shared(&self) -> bool {
        self.ports.is_shared()
    }

    /// The tile's own hart asks for a port ([`Ports::own`]).
    pub fn own(
        &mut self,
        now: Tick,
        offset: u64,
        bytes: u64,
        owner: Owner,
        ledger: &mut Ledger,
    ) -> Tick {
        self.ports.own(now, offset, bytes, owner, ledger)
    }

    /// A request of the network or of the tile's DMA engine asks for a port ([`Ports::remote`]).
    pub fn remote(
        &mut self,
        now: Tick,
        offset: u64,
        operation: RemoteOperation,
        owner: Owner,
        wait: impl FnMut(u16, Owner, Tick),
    ) -> Tick {
        let bytes = operation.turns() * self.ports.width();
        self.ports.remote(now, offset, bytes, owner, wait)
    }

    /// Reads 1 to 8 bytes.
    pub fn read(&mut self, offset: u64, bytes: u8) -> u64 {
        LineBytes::read(&mut self.bytes[..], offset, bytes)
    }

    /// Writes the low bytes of a value. Ends reservations there.
    #[inline]
    pub fn write(&mut self, offset: u64, bytes: u8, value: u64) {
        self.reservations
            .write(&mut self.bytes, offset, bytes, value);
    }

    /// An owner reserves the eight bytes around an offset.
    pub fn reserve(&mut self, owner: Owner, offset: u64) {
        self.reservations.reserve(owner, offset);
    }

    /// Ends an owner's reservation. Returns whether it was still valid for this offset.
    pub fn take_reservation(&mut self, owner: Owner, offset: u64) -> bool {
        self.reservations.take(owner, offset)
    }

    /// Performs a request. Returns the value for the answer.
    pub fn perform(
        &mut self,
        owner: Owner,
        offset: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> u64 {
        let (memory, all) = (&mut self.bytes, &mut self.reservations);
        all.perform(memory, owner, offset, bytes, operation)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
