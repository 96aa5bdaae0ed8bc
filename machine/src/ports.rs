//! The ports of a memory whose banks serve one access at a time.
//!
//! Why it exists: at a local memory, the accesses of a tile's own hart meet those of all others. A port serves accesses in the order of the
//! requests, each for as long as its bytes need. A wait is charged to the preceding owners, each for the time during which it had the port.
//! What it deliberately does not know: bytes, the hart, the network.

use crate::config::LocalMemoryConfig;
use crate::ledger::{Ledger, Resource};
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

/// The ports of all banks of a memory.
#[derive(Clone, Debug)]
pub struct Ports {
    tile: TileId,
    /// Number of the first bank in the ledger.
    first: u16,
    /// The ports of the first bank, then those of the second, and so on.
    ports: Vec<Port>,
    /// Ports of a bank.
    each: usize,
    /// Bits of an offset within a bank.
    bank_shift: u32,
    cycle: Tick,
    width: u64,
    latency: Tick,
    statistics: LocalMemoryStatistics,
}

impl Ports {
    /// Free ports, for a valid configuration. In the ledger, the banks are numbered from `first` on.
    pub fn new(config: &LocalMemoryConfig, tile: TileId, first: u16) -> Self {
        let each = config.ports as usize;
        Self {
            tile,
            first,
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
            statistics: LocalMemoryStatistics::default(),
        }
    }

    /// Their statistics.
    pub fn statistics(&self) -> &LocalMemoryStatistics {
        &self.statistics
    }

    /// Ticks of a cycle.
    pub fn cycle(&self) -> Tick {
        self.cycle
    }

    /// Bytes that a port moves per cycle.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// Ticks from the turn of a request of the network to its answer.
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
                wait(
                    &mut port.booked,
                    self.first + bank as u16,
                    holder,
                    end - start,
                );
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

    /// A request of the network or of the tile's DMA engine asks for a port for `bytes` bytes. Returns when it gets the port. `wait` is
    /// called for each part of the wait, with the bank and the holder.
    pub fn remote(
        &mut self,
        now: Tick,
        offset: u64,
        bytes: u64,
        owner: Owner,
        mut wait: impl FnMut(u16, Owner, Tick),
    ) -> Tick {
        let mut waited = 0;
        let each = |_: &mut u32, bank, holder, ticks| {
            waited += ticks;
            wait(bank, holder, ticks);
        };
        let start = self.turn(self.each - 1, (now, offset, bytes), each, owner);
        self.statistics.remote += 1;
        self.statistics.remote_waited += waited;
        start
    }
}
