//! The machine: tiles, fabric, and the loop that drives them.
//!
//! Why it exists: it decides which part acts next. What it deliberately does not know: what the parts do.
//!
//! **Conservative windows.** A tile acts on the fabric only through the network: a packet that it hands over at `t` is first seen
//! by the fabric at `t + entry` (interface), and an event of the fabric at `t` is first seen by a tile at `t + exit`
//! (serialisation, link, interface). So if no tile can hand over a packet before `t`, the fabric may process every event before
//! `t + entry`. A tile with something in transit to it may run up to `n + exit`, where `n` is the fabric's next event. Every tile
//! may run up to the next possible command of another tile's unit + `across` (entry, injection link, router, exit), and further if no endpoint of that
//! unit leads to it ([`reach`]). Within its
//! window, a tile processes its own events and its hart's blocks in time order. Hence the order in which a tile sees events
//! depends only on their times, never on the boundaries of windows: a tile that shares nothing has the same timeline whatever
//! others do. This is the conservative scheme of Chandy and Misra (IEEE Transactions on Software Engineering 5, 1979) with the
//! network's latency as lookahead.

mod cables;
mod consoles;
mod counters;
mod ended;
mod ledger;
mod mesh;
mod parts;
mod reach;
mod times;

pub use cables::Outgoing;

use crate::cluster_tile::ClusterTile;
use crate::config::{ConfigError, MemoryMap, PlatformConfig, PlatformKind};
use crate::crash::Crashed;
use crate::dtu::{self, Dtu, TileKind};
use crate::fabric::Fabric;
use crate::hart::{Hart, UnhandledTrap};
use crate::ledger::{ProcessorTime, RequestsTime, Resource};
use crate::observe::{Marker, Observer};
use crate::tcm::TcmMap;
use crate::tile::{End, Tile};
use crate::timeline::Timeline;
use crate::types::{Owner, Tick, TileId, later};
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};
use cables::Cables;
use mesh::Mesh;
use parts::Parts;
use reach::Reach;
use std::sync::Arc;
use thiserror::Error;
use times::Times;

/// A mistake in the use of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MachineError {
    /// There is no such processing tile.
    #[error("there is no processing tile {0}")]
    NoTile(TileId),
    /// There is no such memory tile.
    #[error("there is no memory tile {0}")]
    NoMemory(TileId),
    /// The range is not in memory.
    #[error("{bytes} bytes at {address:#x} are not in memory")]
    OutsideMemory {
        /// First address.
        address: u64,
        /// Length.
        bytes: u64,
    },
    /// A tile has no guard, or its guard has room for fewer than this many rules.
    #[error("the guard of tile {0} has no room for {1} rules")]
    NoRules(TileId, usize),
}

/// How far to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimit {
    /// Stop at this moment at the latest (counted from the machine's creation).
    pub ticks: Tick,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A program ended the run.
    Exit {
        /// When.
        at: Tick,
        /// Where.
        tile: TileId,
        /// Its exit code.
        code: u32,
    },
    /// A hart cannot continue.
    Unhandled {
        /// When.
        at: Tick,
        /// Where.
        tile: TileId,
        /// Why.
        trap: UnhandledTrap,
    },
    /// Nothing will ever happen again: every hart waits and no event is left.
    Idle {
        /// Since when.
        at: Tick,
    },
    /// The limit is reached.
    Limit,
}

/// Windows between two calls of the progress function.
const PROGRESS_WINDOWS: u32 = 1 << 14;

/// A chip that can run.
pub struct Machine {
    config: PlatformConfig,
    /// Tiles with caches; none on a mesh.
    tiles: Vec<Tile>,
    mesh: Mesh,
    /// Clusters, and the order of the clusters and the tiles beside them.
    parts: Parts,
    fabric: Fabric,
    /// Per tile. Kept together because every window examines all of them.
    times: Vec<Times>,
    reach: Reach,
    now: Tick,
    entry: Tick,
    exit: Tick,
    /// Minimum time from the hand-over of a packet to its arrival at another tile.
    across: Tick,
    cables: Cables,
    tcms: TcmMap,
}

impl Machine {
    /// A machine after reset: all harts are halted and memory is zero.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn new(config: &PlatformConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let highest = config
            .tiles
            .iter()
            .map(|t| t.id)
            .chain(config.memories.iter().map(|m| m.id))
            .chain(config.beside().map(|(id, _)| id))
            .max()
            .unwrap_or(0);
        let mut kinds = vec![TileKind::Absent; highest as usize + 1];
        for tile in &config.tiles {
            kinds[tile.id as usize] = TileKind::Processing;
        }
        for memory in &config.memories {
            kinds[memory.id as usize] = TileKind::Memory;
        }
        let kinds: Arc<[TileKind]> = kinds.into();
        let fabric = Fabric::new(config);
        let (entry, exit) = (
            fabric.network.entry_lookahead(),
            fabric.network.exit_lookahead(),
        );
        let across = entry + fabric.network.turn_lookahead() + exit;
        let places = (0..).map(|position| fabric.network.place(position));
        let tiles = config
            .tiles
            .iter()
            .zip(places)
            .filter_map(|(tile, place)| Tile::new(tile, place, config, kinds.clone()))
            .collect();
        let mut machine = Self {
            config: config.clone(),
            tiles,
            mesh: Mesh::new(config, across),
            parts: Parts::new(config, across),
            times: Vec::new(),
            reach: Reach::default(),
            fabric,
            now: 0,
            entry,
            exit,
            across,
            cables: Cables::new(config),
            tcms: TcmMap::new(config),
        };
        machine.divide_consoles();
        Ok(machine)
    }

    /// The configuration.
    pub fn config(&self) -> &PlatformConfig {
        &self.config
    }

    /// The moment up to which the machine has run.
    pub fn now(&self) -> Tick {
        self.now
    }

    fn tile(&self, id: TileId) -> Result<&Tile, MachineError> {
        self.tiles
            .iter()
            .find(|t| t.id() == id)
            .ok_or(MachineError::NoTile(id))
    }

    fn tile_mut(&mut self, id: TileId) -> Result<&mut Tile, MachineError> {
        self.tiles
            .iter_mut()
            .find(|t| t.id() == id)
            .ok_or(MachineError::NoTile(id))
    }

    /// Bytes of a memory tile, for tools; none of a second port. Newer bytes may be in caches ([`Machine::peek`]).
    ///
    /// # Errors
    /// If there is no such memory tile.
    pub fn memory(&self, id: TileId) -> Result<&[u8], MachineError> {
        let memory = self.fabric.memories.iter().position(|m| m.id == id);
        Ok(&self.fabric.ram[memory.ok_or(MachineError::NoMemory(id))?])
    }

    /// Reads memory as a tile's hart sees it, through its caches, without any effect.
    ///
    /// # Errors
    /// If there is no such tile, or the range is not in its memory.
    pub fn peek(&self, tile: TileId, physical: u64, buffer: &mut [u8]) -> Result<(), MachineError> {
        let bytes = buffer.len() as u64;
        // All harts find the tightly coupled memories of a tile at the same address.
        let tile = self.coupled(physical).unwrap_or(tile);
        let found = match self.mesh.tile(tile) {
            Some(local) => self.mesh.peek(local, physical, buffer, &self.fabric),
            None => match self.cluster(tile) {
                Some(cluster) => {
                    cluster.peek(physical, buffer, (&self.parts.clusters, &self.fabric))
                }
                None => self.tile(tile)?.peek(physical, buffer, &self.fabric),
            },
        };
        match found {
            true => Ok(()),
            false => Err(MachineError::OutsideMemory {
                address: physical,
                bytes,
            }),
        }
    }

    /// The tile that has a tightly coupled memory at this address.
    fn coupled(&self, physical: u64) -> Option<TileId> {
        self.tcms.find(physical, 1).map(|(tile, _)| tile)
    }

    /// Writes bytes to a memory tile and to every cache that has them, without timing.
    ///
    /// # Errors
    /// If there is no such memory tile, or the range is not in it.
    pub fn load_memory(
        &mut self,
        id: TileId,
        address: u64,
        bytes: &[u8],
    ) -> Result<(), MachineError> {
        let index = self.fabric.memories.iter().position(|m| m.id == id);
        let index = index.ok_or(MachineError::NoMemory(id))?;
        let size = self.config.memories[index].window();
        let outside = MachineError::OutsideMemory {
            address,
            bytes: bytes.len() as u64,
        };
        let end = address
            .checked_add(bytes.len() as u64)
            .filter(|end| *end <= size)
            .ok_or(outside)?;
        let (mut address, mut bytes) = (address, bytes);
        while address < end {
            // Up to the end of a memory, because the next one behind a second port is elsewhere, and up to bits that a translator drops.
            let (place, offset) = self.fabric.bytes_at(index, address);
            let follow = self.fabric.contiguous(place, offset);
            let there = &mut self.fabric.ram[place][offset as usize..];
            let count = (bytes.len() as u64).min(there.len() as u64).min(follow);
            let (part, rest) = bytes.split_at(count as usize);
            there[..part.len()].copy_from_slice(part);
            for name in self.fabric.names(place, offset) {
                for tile in &mut self.tiles {
                    tile.reload(name, part);
                }
                for cluster in &mut self.parts.clusters {
                    cluster.reload(name, part);
                }
            }
            (address, bytes) = (address + part.len() as u64, rest);
        }
        Ok(())
    }

    /// Translates a physical address of a tile to a memory tile and the address there. On a tiled platform the unit's windows must
    /// have been configured.
    fn place(&self, tile: TileId, physical: u64) -> Option<(TileId, u64)> {
        match self.config.kind {
            PlatformKind::Bare => {
                let offset = physical.checked_sub(MEMORY_BASE)?;
                let reach = PMP_WINDOWS * PMP_WINDOW_SIZE;
                let map = MemoryMap::new(&self.config);
                let place = map.find(physical).filter(|_| offset < reach);
                place.map(|(memory, offset)| (map.id(memory), offset))
            }
            PlatformKind::Mesh => None,
            PlatformKind::Tiled => {
                let unit = self.tile(tile).ok()?.unit()?;
                unit.translate_window(physical, false).ok()
            }
        }
    }

    /// Writes bytes at a physical address of a tile, without timing.
    ///
    /// # Errors
    /// If there is no such tile, or the range is not in its memory.
    pub fn load_tile(
        &mut self,
        tile: TileId,
        physical: u64,
        bytes: &[u8],
    ) -> Result<(), MachineError> {
        let outside = MachineError::OutsideMemory {
            address: physical,
            bytes: bytes.len() as u64,
        };
        if let Some(local) = self.mesh.position(tile) {
            let loaded = self.mesh.poke(local, physical, bytes, &mut self.fabric);
            return if loaded { Ok(()) } else { Err(outside) };
        }
        if self.cluster(tile).is_none() {
            self.tile(tile)?;
        }
        if let Some(owner) = self.coupled(physical) {
            let Self { tiles, fabric, .. } = self;
            let owner = tiles.iter_mut().find(|tile| tile.id() == owner);
            let poked = owner.is_some_and(|tile| tile.poke(physical, bytes, fabric));
            return if poked { Ok(()) } else { Err(outside) };
        }
        let (memory, address) = self.place(tile, physical).ok_or(outside.clone())?;
        self.load_memory(memory, address, bytes)
            .map_err(|_| outside)
    }

    /// A processing tile's data transfer unit, to configure it as a boot ROM would.
    ///
    /// # Errors
    /// If there is no such tile, or it has no unit.
    pub fn unit_mut(&mut self, tile: TileId) -> Result<&mut Dtu, MachineError> {
        self.tile_mut(tile)?
            .unit_mut()
            .ok_or(MachineError::NoTile(tile))
    }

    /// A processing tile's data transfer unit.
    ///
    /// # Errors
    /// If there is no such tile, or it has no unit.
    pub fn unit(&self, tile: TileId) -> Result<&Dtu, MachineError> {
        self.tile(tile)?.unit().ok_or(MachineError::NoTile(tile))
    }

    /// A tile's hart. For a cluster, the hart at the first port ([`Machine::cluster_hart`]).
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn hart(&self, tile: TileId) -> Result<&Hart, MachineError> {
        if self.cluster(tile).is_some() {
            return self.cluster_hart(tile, 0);
        }
        match self.mesh.tile(tile) {
            Some(local) => Ok(local.hart()),
            None => Ok(self.tile(tile)?.hart()),
        }
    }

    /// Makes a tile's hart continue at `pc` from now on, as a hardware fault or an attacker would. The hart abandons its current
    /// work and waits. A hart that was not started stays halted, and a sleeping one continues there when it is woken.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn divert_hart(&mut self, tile: TileId, pc: u64) -> Result<(), MachineError> {
        let now = self.now;
        if let Some(cluster) = self.cluster_mut(tile) {
            cluster.divert(0, now, pc);
            return Ok(());
        }
        match self.mesh.tile_mut(tile) {
            Some(local) => local.divert(now, pc),
            None => self.tile_mut(tile)?.divert(now, pc),
        }
        Ok(())
    }

    /// Starts a tile's hart (for a cluster, the hart at the first port) at `pc` in machine mode, with these values in `a0` and
    /// `a1`.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn start_hart(
        &mut self,
        tile: TileId,
        pc: u64,
        a0: u64,
        a1: u64,
    ) -> Result<(), MachineError> {
        if self.cluster(tile).is_some() {
            return self.start_cluster_hart((tile, 0), pc, a0, a1);
        }
        let now = self.now;
        match self.mesh.tile_mut(tile) {
            Some(local) => local.start(now, pc, a0, a1),
            None => self.tile_mut(tile)?.start(now, pc, a0, a1),
        }
        Ok(())
    }

    /// Gives a tile's streaming unit a client as a boot ROM would: an activity, its token bucket and its mappings (virtual
    /// address, tile-physical address, pages). Returns whether there is such a unit and the client has the gates that it needs.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn adopt(
        &mut self,
        tile: TileId,
        activity: u16,
        bucket: u8,
        mappings: &[(u64, u64, u64)],
    ) -> Result<bool, MachineError> {
        let found = self.tiles.iter_mut().find(|t| t.id() == tile);
        let found = found.ok_or(MachineError::NoTile(tile))?;
        Ok(found.adopt(&mut self.fabric, activity, bucket, mappings))
    }

    /// Statistics of the streaming units: tile, ticks during which data streamed through, bytes.
    pub fn accelerators(&self) -> Vec<(TileId, Tick, u64)> {
        let mut all: Vec<(TileId, Tick, u64)> = self
            .tiles
            .iter()
            .filter_map(|tile| {
                tile.accelerator()
                    .map(|unit| (tile.id(), unit.streaming, unit.bytes))
            })
            .collect();
        all.sort_unstable();
        all
    }

    /// Sets the address of the `tohost` word of a tile's program.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn set_tohost(&mut self, tile: TileId, physical: u64) -> Result<(), MachineError> {
        if let Some(cluster) = self.cluster_mut(tile) {
            cluster.set_tohost(physical);
            return Ok(());
        }
        match self.mesh.tile_mut(tile) {
            Some(local) => local.set_tohost(physical),
            None => self.tile_mut(tile)?.set_tohost(physical),
        }
        Ok(())
    }

    /// Restricts the ways that a cache may fill: bit i for way i.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn set_way_mask(
        &mut self,
        tile: TileId,
        level: crate::ledger::Level,
        mask: u64,
    ) -> Result<(), MachineError> {
        self.tile_mut(tile)?.caches_mut().set_way_mask(level, mask);
        Ok(())
    }

    /// Tiles with more markers than are kept, and how many of each were dropped.
    pub fn unkept_markers(&self) -> Vec<(u16, u64)> {
        let tiles = self.tiles.iter().map(|t| (t.id(), t.markers_lost()));
        let mesh = self.mesh.tiles.iter().map(|t| (t.id(), t.markers_lost()));
        let clusters = self.parts.clusters.iter();
        let clusters = clusters.map(|c| (c.id(), c.markers_lost()));
        let all = tiles.chain(mesh).chain(clusters);
        all.filter(|(_, lost)| *lost > 0).collect()
    }

    /// All markers, sorted by time, then tile, then order of execution. Per tile, the first four million are kept, at most three
    /// million of them of kinds that only applications know ([`Statistics::markers_lost`] counts the others).
    pub fn markers(&self) -> Vec<Marker> {
        let mut all: Vec<Marker> = Vec::new();
        for tile in &self.tiles {
            all.extend_from_slice(tile.markers());
        }
        for tile in &self.mesh.tiles {
            all.extend_from_slice(tile.markers());
        }
        let clusters = self.parts.clusters.iter();
        all.extend(clusters.flat_map(ClusterTile::markers));
        all.sort_by_key(|m| (m.tick, m.tile));
        all
    }

    /// Starts a new timeline of a tile. Records every event of one stride, if wanted.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn watch(&mut self, tile: TileId, record: Option<u64>) -> Result<(), MachineError> {
        self.tile_mut(tile)?.watch(record);
        Ok(())
    }

    /// A tile's timeline since [`Machine::watch`]; `None` if it is not watched.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn timeline(&self, tile: TileId) -> Result<Option<&Timeline>, MachineError> {
        Ok(self.tile(tile)?.timeline())
    }

    /// The kept state of crashed programs, sorted by time, then tile. Not part of the digest, because it follows from the run.
    pub fn crashes(&self) -> Vec<Crashed> {
        let all = self.tiles.iter().flat_map(|tile| tile.crashes());
        let mut all: Vec<Crashed> = all.cloned().collect();
        all.sort_by_key(|crash| (crash.at, crash.owner));
        all
    }

    /// For each activity of a tile with a multiplexer, how long it had the hart and how long it wanted the hart.
    pub fn processor_times(&self) -> Vec<ProcessorTime> {
        self.tiles
            .iter()
            .flat_map(|t| t.processor().times())
            .collect()
    }

    /// How long requests waited to be fetched on each tile with a unit, up to the end of the last run.
    pub fn requests_times(&self) -> Vec<RequestsTime> {
        let tiles = self.tiles.iter();
        let units = tiles.filter_map(|tile| Some((tile.id(), tile.unit()?)));
        let times = units.map(|(tile, unit)| RequestsTime {
            tile,
            waited: unit.requests_waited(self.now),
        });
        times.collect()
    }

    /// Records all waits for a hart or a service up to now, on every tile.
    fn settle_waits(&mut self) {
        for tile in &mut self.tiles {
            tile.settle_waits(self.now, &mut self.fabric.ledger);
        }
        debug_assert!(self.all_waits_are_booked(), "{:?}", self.processor_times());
        debug_assert!(
            self.all_requests_are_booked(),
            "{:?}, booked: {:?}",
            self.requests_times(),
            self.fabric.ledger.bookings()
        );
    }

    /// For every activity, the time during which it was ready without having the hart equals what is booked.
    fn all_waits_are_booked(&self) -> bool {
        let bookings = self.fabric.ledger.bookings();
        let booked = |owner| {
            let own = bookings.iter().filter(|b| b.victim == owner);
            let hart = own
                .filter(|b| matches!(b.resource, Resource::Processor | Resource::ProcessorBudget));
            hart.map(|b| b.ticks).sum::<Tick>()
        };
        let times = self.processor_times();
        times.iter().all(|time| booked(time.owner) == time.waited)
    }

    /// The time for which requests waited to be fetched equals what is booked for the services of their tile.
    fn all_requests_are_booked(&self) -> bool {
        let times = self.requests_times();
        let mut times = times.iter();
        times.all(|one| self.fabric.ledger.requests_of(one.tile) == one.waited)
    }

    /// Sets the observer that receives reports from now on.
    pub fn set_observer(&mut self, observer: Option<Box<dyn Observer>>) {
        self.fabric.observer = observer;
    }

    /// Removes the observer, to get the trace from it.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.fabric.observer.take()
    }

    /// Bytes that each link carried, by owner and number of the link. Not part of the statistics, which contain their sums.
    pub fn carried(&self) -> Vec<Vec<(Owner, u64)>> {
        let links = self.fabric.network.carried();
        links.map(<[_]>::to_vec).collect()
    }

    /// Runs until something ends the run. `progress` is called occasionally with the current moment; it cannot change anything.
    /// Another call can continue the run.
    pub fn run(&mut self, limit: RunLimit, mut progress: Option<&mut dyn FnMut(Tick)>) -> Outcome {
        for tile in &mut self.tiles {
            tile.clear_end();
            tile.synchronise(&self.fabric);
        }
        self.times.clear();
        let tiles = self.tiles.iter();
        self.times
            .extend(tiles.map(|tile| Times::of(tile, tile.moments())));
        self.mesh.begin();
        self.parts
            .clusters
            .iter_mut()
            .for_each(ClusterTile::clear_end);
        let is_mesh = self.config.kind == PlatformKind::Mesh;
        let mut windows = 0u32;
        // When the first part that is known to end the run does so. The others run up to that moment, and no further: one that is behind may end it before.
        let mut end = None;
        loop {
            let until = end.map_or(limit.ticks, |end| later(end, 1));
            windows = windows.wrapping_add(1);
            if windows.is_multiple_of(PROGRESS_WINDOWS)
                && let Some(progress) = &mut progress
            {
                progress(self.now);
            }
            let outcome = match is_mesh {
                true => self.mesh_window(until),
                false if self.parts.exist() => self.parts_window(until),
                false => self.window(until),
            };
            let outcome = match (outcome, end) {
                (Some(Outcome::Exit { at, .. } | Outcome::Unhandled { at, .. }), _) => {
                    end = Some(at);
                    None
                }
                (Some(_), Some(end)) => {
                    self.now = end;
                    self.ended()
                }
                (outcome, _) => outcome,
            };
            if let Some(outcome) = outcome {
                self.settle_waits();
                if let Some(observer) = &mut self.fabric.observer {
                    observer.stopped(self.now);
                }
                return outcome;
            }
        }
    }

    fn window(&mut self, limit: Tick) -> Option<Outcome> {
        let (tiles, fabric) = (&self.tiles, &self.fabric);
        let mut announced = self.reach.begin(&mut self.times, self.across, |i| {
            let targets = tiles[i].unit().and_then(Dtu::leads_to)?;
            let tiles = targets.filter_map(|to| Some((fabric.processing(to.tile)?, to.messages)));
            Some(tiles.collect())
        });
        // No frame that leaves from now on reaches the other end of its cable before this moment.
        let cables = later(
            announced.first.min(self.fabric.next_time()),
            self.cables.lookahead,
        );
        announced.packet = announced.packet.min(cables);
        // The fabric goes first; it may be ahead of the tiles by the entry lookahead.
        loop {
            let next = self.fabric.next_time();
            if next >= later(announced.packet, self.entry) || next >= limit {
                break;
            }
            let Some(delivery) = self.fabric.step() else {
                continue;
            };
            let (at, position) = (delivery.at, delivery.position);
            self.tiles[position].deliver(delivery);
            self.times[position].arrives(at);
            announced.arrives(position, at);
        }
        let first = announced.first;
        let fabric_next = self.fabric.next_time();
        if first >= limit && fabric_next >= limit {
            if first == Tick::MAX && fabric_next == Tick::MAX {
                return Some(Outcome::Idle { at: self.now });
            }
            self.now = self.now.max(limit);
            return Some(Outcome::Limit);
        }
        let arrival = later(fabric_next, self.exit);
        let mut ended = false;
        let latest = limit.min(cables);
        for (i, tile) in self.tiles.iter_mut().enumerate() {
            let before = self.times[i];
            if before.next >= latest {
                continue;
            }
            // Nothing that exists concerns this tile, and it waits for no answer: another one must be able to send to it, or be reached by something first.
            let others = if self.fabric.may_arrive(i) {
                arrival.min(later(announced.anybody_but(i), self.across))
            } else {
                let known = (&self.times[..], &announced);
                self.reach.uncalled(i, known, arrival)
            };
            let horizon = others.min(latest);
            if before.next < horizon {
                let moments = tile.run(horizon, before.packets, &mut self.fabric);
                ended |= tile.end().is_some();
                let times = match tile.end() {
                    None => Times::of(tile, moments),
                    Some(_) => Times::ended(tile),
                };
                // Software with a privileged unit may give up the privilege itself.
                debug_assert!(
                    [times.rights, dtu::ANY].contains(&before.rights) || before.event < horizon,
                    "the unit of tile {} can send to others than before, and nothing happened before {horizon} that could change this",
                    tile.id()
                );
                self.times[i] = times;
            }
        }
        if first != Tick::MAX {
            self.now = self.now.max(first);
        }
        if !self.cables.ends.is_empty() {
            self.carry();
        }
        if ended { self.ended() } else { None }
    }

    /// The first end, by time and place.
    fn ended(&self) -> Option<Outcome> {
        let ends = self
            .tiles
            .iter()
            .filter_map(|t| t.end().map(|(at, end)| (at, t.id(), end)));
        let locals = self.mesh.tiles.iter();
        let locals = locals.filter_map(|t| t.end().map(|(at, end)| (at, t.id(), end)));
        let clusters = self.parts.clusters.iter();
        let clusters = clusters.filter_map(|t| t.end().map(|(at, end)| (at, t.id(), end)));
        let network = &self.fabric.network;
        let place = |tile| network.position(tile).map(|at| network.place(at));
        let (at, tile, end) = ends
            .chain(locals)
            .chain(clusters)
            .min_by_key(|(at, tile, _)| (*at, place(*tile)))?;
        Some(match end {
            End::Exit(code) => Outcome::Exit { at, tile, code },
            End::Unhandled(trap) => Outcome::Unhandled { at, tile, trap },
        })
    }
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
