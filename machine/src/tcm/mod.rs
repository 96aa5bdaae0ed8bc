//! Tightly coupled memories: local memories of a tile whose hart has caches, too.
//!
//! Why it exists: some cores (the Cortex-R family) keep code and data in memories beside their caches. The tile's hart accesses them
//! directly; other tiles, clusters and DMA engines access them over the network, through a port of the tile. All of them take turns at the
//! same [`Ports`]. The memories of a tile follow each other without a gap, in a window that all parts of the chip find at the same address
//! ([`TcmMap`]). What it deliberately does not know: caches and the network. The bytes are behind those of the tile's data cache, so that
//! the hart finds both in the same way.

mod map;
#[cfg(test)]
mod tests;

pub use map::TcmMap;

use crate::config::{LocalMemoryConfig, TileConfig};
use crate::hart::Access;
use crate::ledger::Ledger;
use crate::noc::PacketKind;
use crate::ports::{LocalMemoryStatistics, Ports};
use crate::reservations::Reservations;
use crate::types::{Owner, Tick};

/// One of the memories.
#[derive(Debug)]
struct Region {
    /// Where it begins behind the start of the first one.
    start: u64,
    size: u64,
    ports: Ports,
}

/// The memories of a tile, without their bytes. A tile without any has one of these with no bytes.
#[derive(Debug)]
pub struct Tcm {
    /// Physical address of the first byte.
    base: u64,
    size: u64,
    /// Where the first byte is among those of the data cache.
    place: usize,
    regions: Vec<Region>,
    /// Reservations of all harts that reach the memories.
    pub reservations: Reservations,
    /// Requests of the network that have arrived, or are about to, and have not been answered.
    held: u32,
    /// Ticks from a hart's turn to the value of its load.
    hit: Tick,
}

impl Tcm {
    /// The memories of a tile, whose bytes begin at `place`.
    pub fn new(config: &TileConfig, map: &TcmMap, place: usize) -> Self {
        let mut size = 0;
        let mut banks = 0;
        let region = |memory: &LocalMemoryConfig| {
            let region = Region {
                start: size,
                size: memory.size,
                ports: Ports::new(memory, config.id, banks),
            };
            size += memory.size;
            banks += memory.banks as u16;
            region
        };
        let regions = config.tcm.iter().map(region).collect();
        Self {
            base: map.base(config.id).unwrap_or(0),
            size,
            place,
            regions,
            reservations: Reservations::default(),
            held: 0,
            hit: Tick::from(config.hart.load_to_use) * config.hart.ticks_per_cycle,
        }
    }

    /// The tile has such memories.
    #[inline]
    pub fn exists(&self) -> bool {
        self.size != 0
    }

    /// The offset of an address in the memories, if it is there.
    #[inline]
    pub fn own(&self, physical: u64) -> Option<u64> {
        let offset = physical.wrapping_sub(self.base);
        (offset < self.size).then_some(offset)
    }

    /// Whether the memories have all bytes from an offset on.
    #[inline]
    pub fn has(&self, offset: u64, bytes: u64) -> bool {
        offset
            .checked_add(bytes)
            .is_some_and(|end| end <= self.size)
    }

    /// Where the byte at an offset is among those of the data cache.
    #[inline]
    pub fn place(&self, offset: u64) -> usize {
        self.place + offset as usize
    }

    /// The ports at an offset, and the offset in their memory.
    fn ports(&mut self, offset: u64) -> (&mut Ports, u64) {
        let region = self.regions.iter_mut().rfind(|one| one.start <= offset);
        let region = region.expect("a memory begins at offset 0");
        debug_assert!(offset < region.start + region.size, "{offset:#x}");
        (&mut region.ports, offset - region.start)
    }

    /// An access of the tile's hart asks for its turn. Returns the moment at which the value of a load is available; `None`: at once, as at
    /// a hit.
    pub fn data(
        &mut self,
        now: Tick,
        offset: u64,
        access: Access,
        owner: Owner,
        ledger: &mut Ledger,
    ) -> Option<Tick> {
        let (ports, at) = self.ports(offset);
        // A read and a write in one step occupy the port twice.
        let bytes = match access {
            Access::Atomic => 2 * ports.width(),
            Access::Load | Access::Store | Access::Walk => 1,
        };
        let start = ports.own(now, at, bytes, owner, ledger);
        (start != now).then_some(start + self.hit)
    }

    /// A fetch of `bytes` bytes by the tile's hart asks for its turn. Returns when it gets it.
    pub fn fetch(
        &mut self,
        now: Tick,
        offset: u64,
        bytes: u64,
        owner: Owner,
        ledger: &mut Ledger,
    ) -> Tick {
        let (ports, at) = self.ports(offset);
        ports.own(now, at, bytes, owner, ledger)
    }

    /// A request from outside asks for `turns` turns, or for those that `bytes` bytes need. Returns its start, and whether the hart has the
    /// same port. `wait` is called for each part of the wait, with the bank and the holder.
    pub fn remote(
        &mut self,
        now: Tick,
        offset: u64,
        (bytes, turns): (u64, u64),
        owner: Owner,
        wait: impl FnMut(u16, Owner, Tick),
    ) -> (Tick, bool) {
        let (ports, at) = self.ports(offset);
        let bytes = bytes.max(turns * ports.width());
        let start = ports.remote(now, at, bytes, owner, wait);
        (start, ports.is_shared())
    }

    /// Ticks from the turn of a request from outside at an offset to its answer.
    pub fn latency(&mut self, offset: u64) -> Tick {
        self.ports(offset).0.latency()
    }

    /// Whether a packet is a request for these memories. An interrupt asks for nothing, and is for the controller.
    pub fn takes(&self, kind: &PacketKind) -> bool {
        self.exists() && !kind.is_response() && !matches!(kind, PacketKind::Interrupt { .. })
    }

    /// A request from outside is on its way here.
    pub fn holds(&mut self) {
        self.held += 1;
    }

    /// A request from outside has been answered.
    pub fn answered(&mut self) {
        let less = self.held.checked_sub(1);
        self.held = less.expect("only what has come is answered");
    }

    /// Requests from outside are here.
    pub fn is_asked(&self) -> bool {
        self.held != 0
    }

    /// Statistics of the memories together; `None`: there are none.
    pub fn statistics(&self) -> Option<LocalMemoryStatistics> {
        let all = self.regions.iter().map(|one| *one.ports.statistics());
        all.reduce(|one, other| LocalMemoryStatistics {
            own: one.own + other.own,
            own_waited: one.own_waited + other.own_waited,
            remote: one.remote + other.remote,
            remote_waited: one.remote_waited + other.remote_waited,
        })
    }
}
