//! A chip with clusters, DMA engines or tightly coupled memories: the order of its parts, which are clusters, tiles with one hart and
//! engines, and of the fabric.
//!
//! Why it exists: a part acts up to the earliest moment at which memory may answer it; memory, up to the earliest moment at which a part
//! may ask. The caches of the parts know nothing of each other. An engine may interrupt a part that has not asked it for anything, so such a
//! part also stops at the earliest moment at which that could arrive. And one of them may end the run for all, so none goes further than a
//! little ahead of the others. An engine, a tile with tightly coupled memories and a coherent cluster get requests, too: they act up to the earliest
//! moment at which a packet of another part, or of a memory's home agent, may come. What it deliberately does not know: harts and caches.

use super::{Machine, MachineError, Outcome};
use crate::beside::BesidePart;
use crate::cluster_tile::ClusterTile;
use crate::config::PlatformConfig;
use crate::dma::DmaStatistics;
use crate::fabric::Fabric;
use crate::hart::Hart;
use crate::statistics::{CacheReport, HartReport};
use crate::tile::{End, Tile};
use crate::types::Owner;
use crate::types::{Tick, TileId, later};

/// How far a part may be ahead of all others, in cycles of the slowest hart. No message needs that limit, but work that a part does after
/// another one has ended the run is wasted.
const AHEAD: u64 = 256;

/// The part at a position of the fabric.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A cluster, by its place among them.
    Cluster(usize),
    /// A tile with one hart, by its place among them.
    Tile(usize),
    /// A DMA engine or a peripheral, by its place among them.
    Engine(usize),
}

/// See the module's documentation.
pub(super) struct Parts {
    pub clusters: Vec<ClusterTile>,
    pub engines: Vec<BesidePart>,
    /// By position in the fabric; none without a cluster, an engine or tightly coupled memories.
    places: Vec<Place>,
    /// The times of each part in this window ([`Parts::times`]).
    times: Vec<(Tick, Tick)>,
    /// Least time from a packet of one part to its arrival at another.
    across: Tick,
    ahead: Tick,
    /// For each position, the tile there, and the engines that interrupt it, by their places among the engines. Empty if none does.
    interrupted_by: Vec<(TileId, Vec<usize>)>,
    /// The host visits the parts in reverse order, which must change nothing.
    #[cfg(test)]
    backwards: bool,
}

impl Parts {
    /// The parts of a chip; a packet needs at least `across` from one to another. The configuration is valid.
    pub fn new(platform: &PlatformConfig, across: Tick) -> Self {
        let clusters = platform.clusters();
        let clusters: Vec<ClusterTile> = clusters
            .filter_map(|(tile, cluster)| ClusterTile::new(tile, cluster, platform))
            .collect();
        let (mut next, mut single) = (0, 0);
        let places = platform.tiles.iter().map(|tile| {
            let (counter, place): (_, fn(usize) -> Place) = match &tile.cluster {
                Some(_) => (&mut next, Place::Cluster),
                None => (&mut single, Place::Tile),
            };
            *counter += 1;
            place(*counter - 1)
        });
        let places: Vec<Place> = places
            .chain((0..platform.beside().count()).map(Place::Engine))
            .collect();
        let engines = 0..platform.beside().count() as u32;
        let engines: Vec<BesidePart> = engines
            .map(|engine| BesidePart::new(engine, platform, across))
            .collect();
        let tiles = platform.tiles.iter();
        let by = tiles.map(|tile| (tile.id, platform.interrupted_by(tile.id).collect()));
        let by: Vec<(TileId, Vec<usize>)> = by.collect();
        let interrupted = by.iter().any(|(_, engines)| !engines.is_empty());
        let cycles = platform.tiles.iter().map(|tile| {
            let cores = tile.cluster.iter().flat_map(|cluster| &cluster.cores);
            let others = cores.flatten().map(|core| core.hart.ticks_per_cycle);
            others.fold(tile.hart.ticks_per_cycle, Tick::max)
        });
        let coupled = platform.tiles.iter().any(|tile| !tile.tcm.is_empty());
        Self {
            places: match clusters.is_empty() && engines.is_empty() && !coupled {
                true => Vec::new(),
                false => places,
            },
            times: Vec::new(),
            across,
            ahead: AHEAD * cycles.max().unwrap_or(1),
            clusters,
            engines,
            interrupted_by: match interrupted {
                true => by,
                false => Vec::new(),
            },
            #[cfg(test)]
            backwards: false,
        }
    }

    /// The chip has a cluster, an engine or tightly coupled memories.
    pub fn exist(&self) -> bool {
        !self.places.is_empty()
    }

    fn end(&self, tiles: &[Tile], place: Place) -> Option<(Tick, End)> {
        match place {
            Place::Cluster(index) => self.clusters[index].end(),
            Place::Tile(index) => tiles[index].end(),
            Place::Engine(_) => None,
        }
    }

    /// For each tile, the earliest moment at which an interrupt that is not in the network yet may arrive there. Empty if no part
    /// interrupts another one. `arrival` is the earliest moment at which anything in the network may arrive at a position, `network` that
    /// at any position.
    ///
    /// An engine acts at its next event, or when something reaches it: a packet on its way there, a packet that another part hands over, or
    /// a packet that another part hands over after something has reached that part. What the interrupted part itself sends does not count:
    /// the part stops by itself before that could come back.
    fn interrupts(
        &self,
        times: &[(Tick, Tick)],
        arrival: &dyn Fn(usize) -> Tick,
        network: Tick,
    ) -> Vec<Tick> {
        if self.interrupted_by.is_empty() {
            return Vec::new();
        }
        let interrupt = |tile: usize, engine: usize| {
            let place = self.interrupted_by.len() + engine;
            let others = times.iter().enumerate();
            let others = others.filter(|(i, _)| *i != tile && *i != place);
            let others = others.map(|(_, times)| times.1).min();
            let others = others.unwrap_or(Tick::MAX);
            let others = later(others, self.across);
            let reached = match arrival(place) {
                Tick::MAX => others.min(later(network, self.across)),
                arrival => arrival.min(others),
            };
            later(times[place].0.min(reached), self.across)
        };
        let tiles = self.interrupted_by.iter().enumerate();
        let earliest = tiles.map(|(tile, (id, by))| {
            let by = by.iter();
            let by = by.filter(|engine| self.engines[**engine].may_interrupt(*id));
            let all = by.map(|engine| interrupt(tile, *engine));
            all.min().unwrap_or(Tick::MAX)
        });
        earliest.collect()
    }

    /// The next moment at which a part does something, and the earliest one at which it may hand a packet to the network. A tile that has
    /// ended the run does nothing more; in a cluster, this holds for the hart.
    fn times(&self, tiles: &[Tile], place: Place) -> (Tick, Tick) {
        match place {
            Place::Cluster(index) => {
                let cluster = &self.clusters[index];
                (cluster.next_time(), cluster.next_packet())
            }
            Place::Tile(index) if tiles[index].end().is_some() => (Tick::MAX, Tick::MAX),
            Place::Tile(index) => {
                let moments = tiles[index].moments();
                (moments.next, moments.announced.packet)
            }
            Place::Engine(index) => {
                let next = self.engines[index].next_time();
                (next, next)
            }
        }
    }
}

/// The two earliest of several moments.
#[derive(Clone, Copy, Debug)]
struct Earliest {
    first: Tick,
    /// The index of the part with the first moment.
    who: usize,
    second: Tick,
}

impl Earliest {
    fn of(moments: impl Iterator<Item = Tick>) -> Self {
        let mut earliest = Self {
            first: Tick::MAX,
            who: usize::MAX,
            second: Tick::MAX,
        };
        for (who, at) in moments.enumerate() {
            if at < earliest.first {
                earliest.second = earliest.first;
                (earliest.first, earliest.who) = (at, who);
            } else {
                earliest.second = earliest.second.min(at);
            }
        }
        earliest
    }

    /// The earliest of the others.
    fn of_others(&self, who: usize) -> Tick {
        match who == self.who {
            true => self.second,
            false => self.first,
        }
    }
}

impl Machine {
    /// The cluster that is this tile.
    pub(super) fn cluster(&self, id: TileId) -> Option<&ClusterTile> {
        self.parts
            .clusters
            .iter()
            .find(|cluster| cluster.id() == id)
    }

    /// The same, to change it.
    pub(super) fn cluster_mut(&mut self, id: TileId) -> Option<&mut ClusterTile> {
        let mut clusters = self.parts.clusters.iter_mut();
        clusters.find(|cluster| cluster.id() == id)
    }

    /// The hart at a port of a tile's cluster.
    ///
    /// # Errors
    /// If there is no such hart.
    pub fn cluster_hart(&self, tile: TileId, port: usize) -> Result<&Hart, MachineError> {
        let hart = self.cluster(tile).and_then(|cluster| cluster.hart(port));
        hart.ok_or(MachineError::NoTile(tile))
    }

    /// Starts the hart at a port of a tile's cluster at `pc` in machine mode, with these values in `a0` and `a1`.
    ///
    /// # Errors
    /// If there is no such hart.
    pub fn start_cluster_hart(
        &mut self,
        (tile, port): (TileId, usize),
        pc: u64,
        a0: u64,
        a1: u64,
    ) -> Result<(), MachineError> {
        let now = self.now;
        let cluster = self.cluster_mut(tile);
        match cluster.is_some_and(|cluster| cluster.start(port, now, pc, a0, a1)) {
            true => Ok(()),
            false => Err(MachineError::NoTile(tile)),
        }
    }

    /// The host visits the harts of clusters, and clusters and tiles, in reverse order.
    #[cfg(test)]
    pub(crate) fn visit_harts_backwards(&mut self, backwards: bool) {
        self.parts.backwards = backwards;
        for cluster in &mut self.parts.clusters {
            cluster.backwards = backwards;
        }
    }

    /// Statistics of a DMA engine or a peripheral beside the tiles; `None`: there is no such part.
    pub fn engine(&self, id: TileId) -> Option<DmaStatistics> {
        let mut engines = self.parts.engines.iter();
        let engine = engines.find(|engine| engine.id() == id)?;
        engine.statistics().copied()
    }

    /// The content of a storage device; `None`: there is no such device.
    pub fn storage(&self, id: TileId) -> Option<&[u8]> {
        let mut engines = self.parts.engines.iter();
        let content = engines.find(|engine| engine.id() == id)?.content()?;
        (!content.is_empty()).then_some(content)
    }

    /// Writes the first bytes of a storage device's content.
    ///
    /// # Errors
    /// If there is no such device, or it has fewer bytes.
    pub fn load_storage(&mut self, id: TileId, bytes: &[u8]) -> Result<(), MachineError> {
        let mut engines = self.parts.engines.iter_mut();
        let device = engines.find(|engine| engine.id() == id);
        match device.is_some_and(|device| device.load(bytes)) {
            true => Ok(()),
            false => Err(MachineError::OutsideMemory {
                address: 0,
                bytes: bytes.len() as u64,
            }),
        }
    }

    /// A register of such an engine or a peripheral, as a tool sees it.
    pub fn engine_register(&self, id: TileId, offset: u64) -> Option<u64> {
        let mut engines = self.parts.engines.iter();
        engines.find(|engine| engine.id() == id)?.register(offset)
    }

    /// Statistics of the caches of the clusters.
    pub(super) fn cluster_caches(&self) -> impl Iterator<Item = CacheReport> {
        let all = self.parts.clusters.iter().flat_map(ClusterTile::statistics);
        all.map(|(level, owner, counters)| CacheReport {
            level,
            owner,
            counters,
        })
    }

    /// How often each hart of a cluster has reserved a line with a load-reserved.
    pub fn reservations(&self) -> Vec<(Owner, u64)> {
        let clusters = self.parts.clusters.iter();
        clusters
            .flat_map(|cluster| cluster.reservations())
            .collect()
    }

    /// Statistics of the harts of the clusters, by cluster and port.
    pub(super) fn cluster_harts(&self) -> impl Iterator<Item = HartReport> {
        self.parts.clusters.iter().flat_map(|cluster| {
            let report = |(hart, cycle): (&Hart, Tick)| HartReport {
                tile: cluster.id(),
                cycle,
                counters: *hart.statistics(),
            };
            cluster.clocked().map(report)
        })
    }

    /// A window of time on a chip with clusters.
    pub(super) fn parts_window(&mut self, limit: Tick) -> Option<Outcome> {
        let Self {
            parts,
            tiles,
            fabric,
            ..
        } = self;
        // Each part is asked once, and again after a delivery.
        let mut times = std::mem::take(&mut parts.times);
        times.clear();
        let places = parts.places.iter();
        times.extend(places.map(|place| parts.times(tiles, *place)));
        let least = |least: (Tick, Tick), times: &(Tick, Tick)| {
            (least.0.min(times.0), least.1.min(times.1))
        };
        let (mut first, mut packet) = times.iter().fold((Tick::MAX, Tick::MAX), least);
        // The fabric goes first: it may be ahead of the parts by the entry lookahead.
        loop {
            let next = fabric.next_time();
            if next >= later(packet, self.entry) || next >= limit {
                break;
            }
            let Some(delivery) = fabric.step() else {
                continue;
            };
            let (at, position) = (delivery.at, delivery.position);
            match parts.places[position] {
                Place::Cluster(index) => parts.clusters[index].deliver(at, delivery.packet),
                Place::Tile(index) => tiles[index].deliver(delivery),
                Place::Engine(index) => parts.engines[index].deliver(delivery),
            }
            times[position] = parts.times(tiles, parts.places[position]);
            (first, packet) = (first.min(at), packet.min(at));
        }
        let next = fabric.next_time();
        if first >= limit && next >= limit {
            if first == Tick::MAX && next == Tick::MAX {
                return Some(Outcome::Idle { at: self.now });
            }
            self.now = self.now.max(limit);
            return Some(Outcome::Limit);
        }
        let exit = self.exit;
        // An engine or a tile answers requests that have arrived there and have left the network. Without these parts, there is no such
        // answer.
        let engines = parts.engines.iter().map(BesidePart::next_time);
        let answers = engines.chain(tiles.iter().map(Tile::next_answer)).min();
        let answer = later(answers.unwrap_or(Tick::MAX), parts.across);
        let arrival = |fabric: &Fabric, i| match fabric.may_arrive(i) {
            true => later(next, exit).min(answer),
            false => Tick::MAX,
        };
        let interrupts = parts.interrupts(&times, &|i| arrival(fabric, i), later(next, exit));
        // None, or one for each tile.
        let interrupt = |i: usize| interrupts.get(i).copied().unwrap_or(Tick::MAX);
        // A part that waits for memory does something when it is answered.
        let places = times.iter().enumerate();
        let moments = places.map(|(i, times)| {
            let reached = arrival(fabric, i).min(interrupt(i));
            times.0.min(reached)
        });
        let earliest = Earliest::of(moments);
        // Only engines, tiles with tightly coupled memories and coherent clusters are reached by what others send.
        let coherent = parts.clusters.iter().any(ClusterTile::is_coherent);
        let reached = !parts.engines.is_empty() || tiles.iter().any(Tile::is_reached);
        let reached = reached || coherent;
        let packets = reached.then(|| Earliest::of(times.iter().map(|times| times.1)));
        parts.times = times;
        // If nothing is on its way to such a part, another part must be reached first, or act, and send something.
        let reach = |i, arrival: Tick| {
            let others = packets.map_or(Tick::MAX, |packets| packets.of_others(i));
            let others = later(others, parts.across);
            match arrival {
                Tick::MAX => others.min(later(later(next, exit), parts.across)),
                arrival => arrival.min(others),
            }
        };
        for i in 0..parts.places.len() {
            #[cfg(test)]
            let i = match parts.backwards {
                true => parts.places.len() - 1 - i,
                false => i,
            };
            // The packets in the network, and not an interrupt that may come later, decide which part reaches a part.
            let (arrival, interrupt) = (arrival(fabric, i), interrupt(i));
            let limit = limit.min(later(earliest.of_others(i), parts.ahead));
            match parts.places[i] {
                Place::Cluster(index) => {
                    let reached = match parts.clusters[index].is_coherent() {
                        // A memory's home asks for a line when a request of another cluster arrives there.
                        true => reach(i, arrival.min(later(next, exit))),
                        false => arrival,
                    };
                    parts.clusters[index].run(reached.min(interrupt), limit, fabric);
                }
                Place::Tile(index) => {
                    let reached = match tiles[index].is_reached() {
                        true => reach(i, arrival),
                        false => arrival,
                    };
                    let tile = &mut tiles[index];
                    let announced = tile.moments().announced;
                    tile.run(reached.min(interrupt).min(limit), announced, fabric);
                }
                Place::Engine(index) => {
                    let reached = reach(i, arrival);
                    parts.engines[index].run(reached.min(limit), fabric);
                }
            }
        }
        if first != Tick::MAX {
            self.now = self.now.max(first);
        }
        let mut places = parts.places.iter();
        match places.any(|place| parts.end(tiles, *place).is_some()) {
            true => self.ended(),
            false => None,
        }
    }
}
