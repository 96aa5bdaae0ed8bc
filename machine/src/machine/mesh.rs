//! Tiles with local memories: which of them acts next.
//!
//! Why it exists: a mesh may have a thousand tiles, few of them active, so no window of time visits all of them. A set holds the tiles
//! that will do something soon; each window goes through it once. A heap holds those that will do something later, such as sleepers
//! with a timer, ordered by their next moments. The windows are those of [`super`]: a tile runs up to the earliest moment at
//! which it can be reached by something that already exists or that another tile may send. What it deliberately does not know: what tiles
//! do.

use super::{Machine, MachineError, Outcome};
use crate::config::PlatformConfig;
use crate::fabric::Fabric;
use crate::hart::SharedBlocks;
use crate::local_tile::{
    AddressMap, DmaStatistics, Guard, GuardRule, LocalMemoryStatistics, LocalTile, Prospect,
    Refusals, Started, Target,
};
use crate::statistics::HartReport;
use crate::types::{Tick, TileId, later};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// The tiles, in the order of the configuration.
pub(super) struct Mesh {
    pub(super) tiles: Vec<LocalTile>,
    map: Arc<AddressMap>,
    /// Position of each tile, by number.
    positions: Vec<Option<u32>>,
    /// When each tile acts next.
    next: Vec<Tick>,
    /// The tiles that act before `soon_until`, and some that no longer do: a bit for each position.
    soon: Vec<u64>,
    soon_until: Tick,
    /// How far ahead a tile counts as soon. Changes only the time of the host.
    span: Tick,
    /// All other tiles that will act. An entry with a different time, or of a tile that acts soon, is stale.
    heap: BinaryHeap<Reverse<(Tick, u32)>>,
    /// Decoded code.
    blocks: SharedBlocks,
}

/// Approximate number of windows after which the set of tiles that act soon is rebuilt: entering and leaving it costs a place in the heap.
const WINDOWS_OF_A_SET: Tick = 64;

/// The two earliest moments at which tiles act, and which tile is first.
#[derive(Clone, Copy, Debug)]
struct Earliest {
    first: Tick,
    leader: usize,
    second: Tick,
}

impl Mesh {
    /// The tiles of a chip that have local memories, possibly none.
    pub(super) fn new(config: &PlatformConfig, across: Tick) -> Self {
        let map = Arc::new(AddressMap::new(config));
        let tiles: Vec<LocalTile> = config
            .tiles
            .iter()
            .filter_map(|t| LocalTile::new(t, config, map.clone(), across))
            .collect();
        let highest = tiles.iter().map(|t| usize::from(t.id()) + 1).max();
        let mut positions = vec![None; highest.unwrap_or(0)];
        for (position, tile) in tiles.iter().enumerate() {
            positions[usize::from(tile.id())] = Some(position as u32);
        }
        Self {
            next: vec![Tick::MAX; tiles.len()],
            soon: vec![0; tiles.len().div_ceil(64)],
            soon_until: 0,
            span: WINDOWS_OF_A_SET * across,
            tiles,
            map,
            positions,
            heap: BinaryHeap::new(),
            blocks: SharedBlocks::default(),
        }
    }

    /// Position of a tile.
    pub(super) fn position(&self, id: TileId) -> Option<usize> {
        let position = self.positions.get(usize::from(id))?;
        position.map(|p| p as usize)
    }

    /// A tile.
    pub(super) fn tile(&self, id: TileId) -> Option<&LocalTile> {
        Some(&self.tiles[self.position(id)?])
    }

    /// A tile, to change it.
    pub(super) fn tile_mut(&mut self, id: TileId) -> Option<&mut LocalTile> {
        let position = self.position(id)?;
        Some(&mut self.tiles[position])
    }

    /// A run begins.
    pub(super) fn begin(&mut self) {
        self.heap.clear();
        self.soon.fill(0);
        self.soon_until = 0;
        for (position, tile) in self.tiles.iter_mut().enumerate() {
            tile.clear_end();
            let next = tile.next_time();
            self.next[position] = next;
            if next != Tick::MAX {
                self.heap.push(Reverse((next, position as u32)));
            }
        }
    }

    /// Something arrives at a tile.
    fn note_arrival(&mut self, position: usize, at: Tick) {
        if at >= self.next[position] {
            return;
        }
        self.next[position] = at;
        match at < self.soon_until {
            true => self.soon[position / 64] |= 1 << (position % 64),
            false => self.heap.push(Reverse((at, position as u32))),
        }
    }

    fn is_soon(&self, position: usize) -> bool {
        self.soon[position / 64] >> (position % 64) & 1 != 0
    }

    /// The tiles that act soon, by position. The set may change meanwhile.
    fn soon(&self, word: usize) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.soon[word];
        std::iter::from_fn(move || {
            let bit = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(64 * word + bit as usize)
        })
    }

    /// The earliest tiles. Those that no longer act soon leave the set for the heap; if no tile is left, the set is rebuilt.
    fn earliest(&mut self) -> Earliest {
        let mut earliest = Earliest {
            first: Tick::MAX,
            leader: usize::MAX,
            second: Tick::MAX,
        };
        for word in 0..self.soon.len() {
            for position in self.soon(word) {
                let at = self.next[position];
                if at >= self.soon_until {
                    self.soon[word] &= !(1 << (position % 64));
                    if at != Tick::MAX {
                        self.heap.push(Reverse((at, position as u32)));
                    }
                } else if at < earliest.first {
                    earliest.second = earliest.first;
                    (earliest.first, earliest.leader) = (at, position);
                } else {
                    earliest.second = earliest.second.min(at);
                }
            }
        }
        if earliest.second != Tick::MAX {
            return earliest;
        }
        let later = self.first_in_heap();
        if earliest.first != Tick::MAX || later == Tick::MAX {
            earliest.second = later;
            return earliest;
        }
        self.soon_until = later.saturating_add(self.span);
        while self.first_in_heap() < self.soon_until {
            if let Some(Reverse((_, position))) = self.heap.pop() {
                self.soon[position as usize / 64] |= 1 << (position % 64);
            }
        }
        self.earliest()
    }

    /// The earliest moment in the heap, without stale entries.
    fn first_in_heap(&mut self) -> Tick {
        while let Some(&Reverse((at, position))) = self.heap.peek() {
            let position = position as usize;
            if self.next[position] == at && !self.is_soon(position) {
                return at;
            }
            self.heap.pop();
        }
        Tick::MAX
    }

    /// Where a range lies for a tile: the position of the tile with the memory, or external memory; and the offset.
    fn place(&self, tile: &LocalTile, physical: u64, bytes: u64) -> Option<(Option<usize>, u64)> {
        if let Some(offset) = tile.own(physical) {
            let size = tile.memory().bytes().len() as u64;
            let fits = offset.checked_add(bytes).is_some_and(|end| end <= size);
            return fits
                .then(|| self.position(tile.id()).map(|at| (Some(at), offset)))
                .flatten();
        }
        match self.map.find(physical, bytes)? {
            Target::Memory(id, offset) => Some((Some(self.position(id)?), offset)),
            Target::External(_, offset) => Some((None, offset)),
            Target::Register(..) => None,
        }
    }

    /// Reads memory as addressed by a tile's hart, without any effect. False: there is none.
    pub(super) fn peek(
        &self,
        tile: &LocalTile,
        physical: u64,
        buffer: &mut [u8],
        fabric: &Fabric,
    ) -> bool {
        let bytes = buffer.len();
        let Some((owner, offset)) = self.place(tile, physical, bytes as u64) else {
            return false;
        };
        let memory = match owner {
            Some(position) => self.tiles[position].memory().bytes(),
            None => &fabric.ram[0],
        };
        buffer.copy_from_slice(&memory[offset as usize..offset as usize + bytes]);
        true
    }

    /// Writes memory as addressed by a tile's hart, as a tool that loads a program does. False: there is none.
    pub(super) fn poke(
        &mut self,
        tile: usize,
        physical: u64,
        bytes: &[u8],
        fabric: &mut Fabric,
    ) -> bool {
        let place = self.place(&self.tiles[tile], physical, bytes.len() as u64);
        let Some((owner, offset)) = place else {
            return false;
        };
        let memory = match owner {
            Some(position) => self.tiles[position].memory_mut().bytes_mut(),
            None => &mut fabric.ram[0],
        };
        memory[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        true
    }

    /// Events on the tiles. For a digest. Omits a guard that refused nothing and a DMA engine that did nothing.
    pub(super) fn observations(&self) -> impl Iterator<Item = String> + '_ {
        self.tiles.iter().flat_map(|tile| {
            let refused = tile.guard().map(Guard::refused);
            let refused = refused.filter(|all| !all.is_empty());
            let dma = tile.dma().filter(|did| **did != DmaStatistics::default());
            let always = [
                format!("{:?}", tile.uart().map(|uart| uart.output())),
                format!("{:?}", tile.memory().statistics()),
            ];
            always
                .into_iter()
                .chain(refused.map(|all| format!("{all:?}")))
                .chain(dma.map(|did| format!("{did:?}")))
        })
    }

    /// Statistics of the harts.
    pub(super) fn harts<'a>(
        &'a self,
        config: &'a PlatformConfig,
    ) -> impl Iterator<Item = HartReport> + 'a {
        let tiles = self.tiles.iter().zip(&config.tiles);
        tiles.map(|(tile, config)| HartReport {
            tile: tile.id(),
            cycle: config.hart.ticks_per_cycle,
            counters: *tile.hart().statistics(),
        })
    }
}

impl Machine {
    /// For each doorbell rung by another tile: the tile rung, the tile that rang, and how often. Not part of any statistics or digest.
    pub fn rings(&self) -> Vec<(TileId, TileId, u64)> {
        let of = |tile: &LocalTile| {
            let id = tile.id();
            tile.rings()
                .map(move |(by, count)| (id, by, count))
                .collect::<Vec<_>>()
        };
        self.mesh.tiles.iter().flat_map(of).collect()
    }

    /// For each hart of a mesh that a tile started by a write: which tile, when, and how often. Not part of any statistics or digest.
    pub fn starts(&self) -> Vec<Started> {
        let tiles = self.mesh.tiles.iter();
        tiles.flat_map(LocalTile::starts).collect()
    }

    /// What may still happen on each hart of a mesh that was started. Not part of any statistics or digest.
    pub fn prospects(&self) -> Vec<Prospect> {
        let tiles = self.mesh.tiles.iter();
        tiles.filter_map(LocalTile::prospect).collect()
    }

    /// Statistics of the local memories, and of the tightly coupled ones of each tile together, by tile.
    pub fn local_memories(&self) -> Vec<(TileId, LocalMemoryStatistics)> {
        let tiles = self.mesh.tiles.iter();
        let meshed = tiles.map(|t| (t.id(), *t.memory().statistics()));
        let tiles = self.tiles.iter();
        let coupled = tiles.filter_map(|t| Some((t.id(), t.coupled_statistics()?)));
        let mut all: Vec<_> = meshed.chain(coupled).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// Statistics of a tile's DMA engine; `None`: it has none.
    pub fn dma(&self, tile: TileId) -> Option<DmaStatistics> {
        self.mesh.tile(tile)?.dma().copied()
    }

    /// A register of a tile's DMA engine, by its offset in the tile's page, without any effect; `None`: there is none.
    pub fn dma_register(&self, tile: TileId, offset: u64) -> Option<u64> {
        self.mesh.tile(tile)?.dma_register(offset)
    }

    /// Sets what other tiles may do in a tile's window, and nothing else from now on. The loader of the chip calls this before the harts
    /// start; no program on the chip can.
    ///
    /// # Errors
    /// If there is no such tile, or its guard has no room for this many rules; a tile without a guard has room for none.
    pub fn set_guard(&mut self, tile: TileId, rules: &[GuardRule]) -> Result<(), MachineError> {
        let found = self.mesh.tile_mut(tile);
        let found = found.ok_or(MachineError::NoTile(tile))?;
        let is_set = found.guard_mut().is_some_and(|guard| guard.set(rules));
        let rules = rules.len();
        is_set
            .then_some(())
            .ok_or(MachineError::NoRules(tile, rules))
    }

    /// The requests that guards refused: the tile with the guard, and what it refused to another tile. Sorted by tile, then in the order of
    /// the first refusals.
    pub fn refused(&self) -> Vec<(TileId, Refusals)> {
        let guarded = |tile: &LocalTile| Some((tile.id(), tile.guard()?.refused().to_vec()));
        let mut all: Vec<_> = self.mesh.tiles.iter().filter_map(guarded).collect();
        all.sort_by_key(|(id, _)| *id);
        let each =
            |(id, refused): (TileId, Vec<Refusals>)| refused.into_iter().map(move |one| (id, one));
        all.into_iter().flat_map(each).collect()
    }

    /// The number of a tile's core: row and column of its router, as in chip addresses. `None`: the tile has no local memory.
    pub fn core(&self, tile: TileId) -> Option<u64> {
        crate::local_tile::core_of(&self.config, tile)
    }

    /// A window of time on a mesh.
    pub(super) fn mesh_window(&mut self, limit: Tick) -> Option<Outcome> {
        let mesh = &mut self.mesh;
        let mut earliest = mesh.earliest();
        let mut first = earliest.first;
        // The fabric goes first; it may be ahead of the tiles by the entry lookahead.
        let mut delivers = false;
        loop {
            let next = self.fabric.next_time();
            if next >= later(first, self.entry) || next >= limit {
                break;
            }
            let Some(delivery) = self.fabric.step() else {
                continue;
            };
            let (at, position) = (delivery.at, delivery.position);
            mesh.tiles[position].deliver(delivery);
            mesh.note_arrival(position, at);
            first = first.min(at);
            delivers = true;
        }
        if delivers {
            earliest = mesh.earliest();
        }
        let fabric_next = self.fabric.next_time();
        if first >= limit && fabric_next >= limit {
            if first == Tick::MAX && fabric_next == Tick::MAX {
                return Some(Outcome::Idle { at: self.now });
            }
            self.now = self.now.max(limit);
            return Some(Outcome::Limit);
        }
        let arrival = later(fabric_next, self.exit);
        let across = self.across;
        let horizon = |others: Tick, fabric: &Fabric, position: usize| {
            // Nothing for this tile is in transit: another tile would have to be reached first and send it something.
            let reach = if fabric.may_arrive(position) {
                arrival.min(later(others, across))
            } else {
                later(arrival.min(others), across)
            };
            reach.min(limit)
        };
        // The first tile considers the second one. All others consider the first, which may be the earliest to send something.
        let Earliest { leader, second, .. } = earliest;
        let latest = arrival.min(first).saturating_add(across).min(limit);
        let mut ended = false;
        for word in 0..mesh.soon.len() {
            for position in mesh.soon(word) {
                let at = mesh.next[position];
                if at >= latest && position != leader {
                    continue;
                }
                let others = if position == leader { second } else { first };
                let horizon = horizon(others, &self.fabric, position);
                if at < horizon {
                    let tile = &mut mesh.tiles[position];
                    tile.run(horizon, &mut self.fabric, &mut mesh.blocks);
                    ended |= tile.end().is_some();
                    mesh.next[position] = match tile.end() {
                        None => tile.next_time(),
                        // It does nothing more.
                        Some(_) => Tick::MAX,
                    };
                }
            }
        }
        if first != Tick::MAX {
            self.now = self.now.max(first);
        }
        if ended { self.ended() } else { None }
    }
}
