//! A local memory: bytes, banks with ports, reservations.
//!
//! Why it exists: here the accesses of a tile's own hart meet those of all others. A port serves accesses one at a time, in the order of
//! the requests. A wait is charged to the preceding owners, each for the time during which it had the port. What it deliberately does not
//! know: the hart, the network, addresses of the chip.
//!
//! With one port, accesses take effect in the order at the port. With two, the hart's port never waits for the network's, and a network
//! request takes effect at its turn.

use crate::config::LocalMemoryConfig;
use crate::hart::{LineBytes, RemoteOperation};
use crate::ledger::{Ledger, Resource};
use crate::reservations::Reservations;
use crate::types::{Owner, Tick, TileId, align};
use std::collections::VecDeque;

/// Statistics of a local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalMemoryStatistics {
    /// Accesses of the tile's own hart: loads, stores, and fetches of lines.
    pub own: u64,
    /// Ticks for which the tile's own hart waited for a port.
    pub own_waited: Tick,
    /// Requests of the network and of the tile's DMA engine.
    pub remote: u64,
    /// Ticks for which those requests waited for a port.
    pub remote_waited: Tick,
}

/// A port: the owners that have it in turn, each with the end of its turn.
#[derive(Clone, Debug)]
struct Port {
    /// The last turn.
    last: (Tick, Owner),
    /// The turns before it that are not known to be over. Mostly there are none, and the host need not look for them elsewhere.
    earlier: VecDeque<(Tick, Owner)>,
    /// Where the ledger has booked the last wait of the tile's own hart here.
    booked: u32,
}

/// A local memory.
#[derive(Clone, Debug)]
pub struct LocalMemory {
    tile: TileId,
    bytes: Vec<u8>,
    /// The ports of the first bank, then those of the second, and so on.
    ports: Vec<Port>,
    /// Ports of a bank.
    each: usize,
    /// Bits of an offset within a bank.
    bank_shift: u32,
    cycle: Tick,
    width: u64,
    latency: Tick,
    reservations: Reservations,
    statistics: LocalMemoryStatistics,
}

impl LocalMemory {
    /// A memory of zeros, for a valid configuration.
    pub fn new(config: &LocalMemoryConfig, tile: TileId) -> Self {
        let each = config.ports as usize;
        Self {
            tile,
            bytes: vec![0; config.size as usize],
            ports: vec![
                Port {
                    last: (0, Owner::new(tile, 0)),
                    earlier: VecDeque::new(),
                    booked: 0,
                };
                config.banks as usize * each
            ],
            each,
            bank_shift: (config.size / u64::from(config.banks)).ilog2(),
            cycle: config.cycle,
            width: config.width.into(),
            latency: config.latency * config.cycle,
            reservations: Reservations::default(),
            statistics: LocalMemoryStatistics::default(),
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
        &self.statistics
    }

    /// Ticks of a cycle.
    pub fn cycle(&self) -> Tick {
        self.cycle
    }

    /// Ticks from a turn at the port to the answer.
    pub fn latency(&self) -> Tick {
        self.latency
    }

    /// The hart and the network share the ports.
    pub fn is_shared(&self) -> bool {
        self.each == 1
    }

    /// Waits for a turn at a port for `bytes` bytes. Returns the start of the turn.
    fn turn(
        &mut self,
        port: usize,
        (now, offset, bytes): (Tick, u64, u64),
        mut wait: impl FnMut(&mut u32, u16, Owner, Tick),
        owner: Owner,
    ) -> Tick {
        let bank = (offset >> self.bank_shift) as usize;
        let port = &mut self.ports[bank * self.each + port];
        let mut start = align(now, self.cycle);
        if port.last.0 <= start {
            // Turns end in their order.
            port.earlier.clear();
        } else {
            while port.earlier.front().is_some_and(|(end, _)| *end <= start) {
                port.earlier.pop_front();
            }
            port.earlier.push_back(port.last);
            for &(end, holder) in &port.earlier {
                wait(&mut port.booked, bank as u16, holder, end - start);
                start = end;
            }
        }
        port.last = (start + bytes.div_ceil(self.width) * self.cycle, owner);
        start
    }

    /// The tile's own hart asks for a port. Returns when it gets the port.
    pub fn own(
        &mut self,
        now: Tick,
        offset: u64,
        bytes: u64,
        owner: Owner,
        ledger: &mut Ledger,
    ) -> Tick {
        let tile = self.tile;
        let mut waited = 0;
        let wait = |booked: &mut u32, bank, holder, ticks| {
            waited += ticks;
            let resource = Resource::LocalMemory { tile, bank };
            ledger.book_again(booked, (owner, holder, resource), ticks);
        };
        let start = self.turn(0, (now, offset, bytes), wait, owner);
        self.statistics.own += 1;
        self.statistics.own_waited += waited;
        start
    }

    /// A request of the network or of the tile's DMA engine asks for a port. Returns when it gets the port. `wait` is called for each part
    /// of the wait, with the bank and the holder.
    pub fn remote(
        &mut self,
        now: Tick,
        offset: u64,
        operation: RemoteOperation,
        owner: Owner,
        mut wait: impl FnMut(u16, Owner, Tick),
    ) -> Tick {
        let mut waited = 0;
        let each = |_: &mut u32, bank, holder, ticks| {
            waited += ticks;
            wait(bank, holder, ticks);
        };
        // A read and a write in one step occupy the port twice.
        let beats = match operation {
            RemoteOperation::Conditional(_) | RemoteOperation::Modify(..) => 2,
            _ => 1,
        };
        let port = self.each - 1;
        let bytes = beats * self.width;
        let start = self.turn(port, (now, offset, bytes), each, owner);
        self.statistics.remote += 1;
        self.statistics.remote_waited += waited;
        start
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

    /// A tile reserves the eight bytes around an offset.
    pub fn reserve(&mut self, tile: TileId, offset: u64) {
        self.reservations.reserve(tile, offset);
    }

    /// Ends a tile's reservation. Returns whether it was still valid for this offset.
    pub fn take_reservation(&mut self, tile: TileId, offset: u64) -> bool {
        self.reservations.take(tile, offset)
    }

    /// Performs a request. Returns the value for the answer.
    pub fn perform(
        &mut self,
        tile: TileId,
        offset: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> u64 {
        let (memory, all) = (&mut self.bytes, &mut self.reservations);
        all.perform(memory, tile, offset, bytes, operation)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
