//! Configuration of a machine in plain structures.
//!
//! Why it exists: the machine must not know the description language, and tests want to build a chip in a few lines. The builder of a
//! configuration chooses a tick that divides every clock. `cycle` fields are ticks per cycle of the component's clock, and latencies
//! are in cycles of that clock. `PlatformConfig::validate` checks what the machine relies on.

pub mod cluster;
pub mod dma;
pub mod doorbells;
pub mod dram;
pub mod links;
mod memory_map;
pub mod peripheral;
pub mod prefetcher;
pub mod tcm;
mod translator;

use crate::accelerator::AcceleratorConfig;
use crate::cable::CableConfig;
use crate::config::dram::{BandwidthConfig, ControllerConfig, InitialShare};
use crate::device::clock::{ClockConfig, DRIFT_MAX};
use crate::device::network::NetworkCardConfig;
use crate::hart::HartConfig;
use crate::types::{LINE_MAX, Tick, TileId};
use bulkhead_abi::memory_map::{
    MESH_SIDE, PMP_WINDOW_SIZE, PMP_WINDOWS, TILE_REGISTERS as REGISTERS,
};
use thiserror::Error;

pub use cluster::{CapacityConfig, ClusterConfig, CoreConfig};
pub use dma::{DmaConfig, EngineConfig};
pub use doorbells::DoorbellsConfig;
pub use memory_map::MemoryMap;
pub use peripheral::{PeripheralConfig, PeripheralKind};
pub use prefetcher::{PrefetcherConfig, PrefetcherKind};

/// Memories begin at multiples of this for the caches, and protection windows at multiples of it within their memories. So the low bits
/// of both kinds of address are equal, and a hart uses these bits to choose which lines it remembers.
pub const HOME_ALIGNMENT: u64 = 0x1000;

/// A chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformConfig {
    /// Name, for reports.
    pub name: String,
    /// How memory is reached.
    pub kind: PlatformKind,
    /// Ticks per second: the least common multiple of all clocks.
    pub ticks_per_second: u64,
    /// Frequency of the `time` CSR and of `mtime` in hertz; divides `ticks_per_second`.
    pub timebase_hz: u64,
    /// Processing tiles.
    pub tiles: Vec<TileConfig>,
    /// DMA engines that are parts of their own (bare chips).
    pub engines: Vec<EngineConfig>,
    /// Storage devices, cameras and streaming accelerators beside the tiles (bare chips).
    pub peripherals: Vec<PeripheralConfig>,
    /// By which harts of different tiles interrupt each other (bare chips).
    pub doorbells: Option<DoorbellsConfig>,
    /// Memory tiles. Their numbers follow no order but differ from those of the processing tiles.
    pub memories: Vec<MemoryConfig>,
    /// The network that connects all tiles.
    pub network: NetworkConfig,
    /// Cables between network cards of this chip, or from this chip to another.
    pub cables: Vec<CableConfig>,
    /// Seed of the pseudo-random replacement.
    pub seed: u64,
}

/// How harts reach memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformKind {
    /// No DTUs: every tile has all memory tiles at the same addresses ([`MemoryMap`]), the first one at `abi::memory_map::MEMORY_BASE`.
    Bare,
    /// The memory endpoints of each tile's DTU back the tile's memory windows.
    Tiled,
    /// Each tile has a local memory and no caches; the tiles read and write each other's memories.
    Mesh,
}

/// A processing tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileConfig {
    /// Number on the network.
    pub id: TileId,
    /// The hart.
    pub hart: HartConfig,
    /// First-level instruction cache.
    pub l1i: Option<CacheConfig>,
    /// First-level data cache.
    pub l1d: Option<CacheConfig>,
    /// Second-level cache, shared by instructions and data, and by the harts of a cluster.
    pub l2: Option<CacheConfig>,
    /// Several harts with coherent first levels instead of one hart.
    pub cluster: Option<ClusterConfig>,
    /// Local memory instead of caches, on meshes.
    pub local_memory: Option<LocalMemoryConfig>,
    /// Tightly coupled memories beside the caches, at consecutive addresses (bare chips).
    pub tcm: Vec<LocalMemoryConfig>,
    /// A DMA engine next to the local memory.
    pub dma: Option<DmaConfig>,
    /// How its timer differs from the timebase; only next to a local memory.
    pub clock: ClockConfig,
    /// Data transfer unit; needed on tiled platforms.
    pub dtu: Option<DtuConfig>,
    /// Router that the tile is attached to (ignored by a crossbar).
    pub router: u16,
    /// The DTU starts with the privileged feature (the kernel's tile).
    pub privileged: bool,
    /// A second hart shares caches and unit with the first: the interrupt hart of m3-rtas24, section III-B2.
    pub second_hart: bool,
    /// The tile's logic is this unit instead of a hart (tiled platforms).
    pub accelerator: Option<AcceleratorConfig>,
    /// The tile has a network card.
    pub network_card: Option<NetworkCardConfig>,
    /// The tile has an exit device.
    pub exit: bool,
    /// The tile has a console.
    pub uart: bool,
}

impl TileConfig {
    /// A tile at router 0 with this hart and nothing else: no caches, no unit, no devices, not privileged.
    pub fn new(id: TileId, hart: HartConfig) -> Self {
        Self {
            id,
            hart,
            l1i: None,
            l1d: None,
            l2: None,
            cluster: None,
            local_memory: None,
            tcm: Vec::new(),
            dma: None,
            clock: ClockConfig::default(),
            dtu: None,
            router: 0,
            privileged: false,
            second_hart: false,
            accelerator: None,
            network_card: None,
            exit: false,
            uart: false,
        }
    }
}

/// A local memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalMemoryConfig {
    /// Bytes: a multiple of 4 KiB, at most what the tile's window has below its registers.
    pub size: u64,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Banks, each of consecutive bytes; a power of two.
    pub banks: u32,
    /// Ports per bank: 1 for both the hart and the network, or 2, one for each.
    pub ports: u32,
    /// Bytes that a port moves per cycle: a power of two from 8 to 64.
    pub width: u32,
    /// Cycles from a network request at a port to its answer. The time of a load by the tile's own hart is part of the hart's pipeline.
    pub latency: u64,
    /// Rules of the guard that checks requests of other tiles; 0: no guard.
    pub guard: u32,
}

/// 32 KiB in four banks with one port of eight bytes, with one tick per cycle.
impl Default for LocalMemoryConfig {
    fn default() -> Self {
        Self {
            size: 32 << 10,
            cycle: 1,
            banks: 4,
            ports: 1,
            width: 8,
            latency: 1,
            guard: 0,
        }
    }
}

/// A memory tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Number on the network.
    pub id: TileId,
    /// The controller and its chips.
    pub dram: DramConfig,
    /// Bytes of memory.
    pub size: u64,
    /// Router that the tile is attached to (ignored by a crossbar).
    pub router: u16,
    /// If not empty: it has no bytes of its own, but is the second port of these memories, in this order.
    pub second_port_of: Vec<TileId>,
    /// Bits of an address in its window that the translator in front of it drops; 0: there is no translator.
    pub dropped: u64,
}

/// Which line a cache replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The least recently used.
    Lru,
    /// Tree of direction bits; ways must be a power of two.
    TreePlru,
    /// Pseudo-random, seeded. Ways without a line come first, so a program that invalidates lines chooses what its next fills replace.
    Random,
    /// Pseudo-random, seeded, among all ways, with or without a line.
    RandomAny,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Total bytes; `size / (ways * line)` sets, a power of two.
    pub size: u64,
    /// Ways: 1 to 64.
    pub ways: u32,
    /// Bytes per line, a power of two from 16 to 128.
    pub line: u32,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Cycles of a hit. For a first-level cache this is already in the hart's load-to-use latency.
    pub latency: u64,
    /// Maximum number of outstanding misses: 1 to 64.
    pub mshrs: u32,
    /// Replacement.
    pub replacement: Replacement,
    /// Bit i: way i may be filled. 0 means all.
    pub way_mask: u64,
    /// Its prefetcher.
    pub prefetcher: Option<PrefetcherConfig>,
}

/// 16 KiB in four ways of 64-byte lines, with one tick per cycle.
impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            size: 16 << 10,
            ways: 4,
            line: 64,
            cycle: 1,
            latency: 2,
            mshrs: 4,
            replacement: Replacement::Lru,
            way_mask: 0,
            prefetcher: None,
        }
    }
}

/// A data transfer unit. Latencies in cycles of its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DtuConfig {
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Endpoints.
    pub endpoints: u16,
    /// Token buckets (`abi::dtu::BUCKET_COUNT` at most).
    pub buckets: u8,
    /// Entries of the TLB.
    pub tlb_entries: u16,
    /// Cycles of a TLB lookup.
    pub tlb_latency: u64,
    /// Bytes of a local access.
    pub block: u32,
    /// Maximum number of outstanding local accesses.
    pub parallel: u32,
    /// Cycles between two refills of the token buckets.
    pub refill: u64,
    /// Maximum limit that a token bucket can be given, in bytes.
    pub bucket_limit: u64,
    /// Start-up cycles of a read.
    pub read: u64,
    /// Start-up cycles of a write.
    pub write: u64,
    /// Start-up cycles of a send.
    pub send: u64,
    /// Start-up cycles of a reply.
    pub reply: u64,
    /// Cycles to accept an arriving message.
    pub receive: u64,
    /// Cycles of a fetch.
    pub fetch: u64,
    /// Cycles of an acknowledgement.
    pub acknowledge: u64,
    /// Maximum number of outstanding chunks of a transfer.
    pub outstanding: u32,
    /// The cache of the tile through which local data moves.
    pub port: UnitPort,
}

/// The cache that a unit is attached to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitPort {
    /// The first-level data cache, like the hart.
    First,
    /// The second level, or the first-level data cache if there is none.
    #[default]
    Second,
}

/// The unit of the tiled OS as its authors model it in gem5 (`catalog/platforms/tiled-2ghz.xml` names the sources), with one tick per
/// cycle; but with eight outstanding chunks, so that tests of the unit also cover their overlap.
impl Default for DtuConfig {
    fn default() -> Self {
        Self {
            cycle: 1,
            endpoints: 192,
            buckets: 4,
            tlb_entries: 32,
            tlb_latency: 3,
            block: 64,
            parallel: 4,
            refill: 1000,
            bucket_limit: 16 << 10,
            read: 20,
            write: 14,
            send: 21,
            reply: 25,
            receive: 20,
            fetch: 8,
            acknowledge: 10,
            outstanding: 8,
            port: UnitPort::Second,
        }
    }
}

/// A memory's chips and their controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DramConfig {
    /// Timing, addresses and policy.
    pub controller: ControllerConfig,
    /// The bandwidth controller, which needs a controller with slots.
    pub bandwidth: Option<BandwidthConfig>,
    /// The shares that RCIDs other than 0 have there when the machine starts; the others have no reserved slot and a weight of 1, and RCID 0 has all
    /// slots that can be reserved and are not.
    pub shares: Vec<InitialShare>,
}

impl From<ControllerConfig> for DramConfig {
    /// Without shares.
    fn from(controller: ControllerConfig) -> Self {
        Self {
            controller,
            bandwidth: None,
            shares: Vec::new(),
        }
    }
}

/// Shape of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One router for all tiles.
    Crossbar,
    /// A mesh of `columns` x `rows` routers, each with several tiles.
    StarMesh {
        /// Routers in a row.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// A mesh of `columns` x `rows` routers, each with one tile.
    Mesh {
        /// Routers in a row.
        columns: u16,
        /// Rows.
        rows: u16,
    },
}

/// Whether reads and writes share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// One network for everything.
    Shared,
    /// One network for reads, one for writes and messages.
    Split,
    /// One network for read requests, one for everything that carries data (writes, and read data), and one for acknowledgements of
    /// writes.
    Acknowledged {
        /// Minimum cycles between two packets on a link of the first network.
        read_interval: u64,
    },
}

/// The network. Latencies in cycles of its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Shape.
    pub topology: Topology,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Bytes that a link moves per cycle.
    pub width: u32,
    /// Cycles of a link, at least 1.
    pub link: u64,
    /// Cycles from the head of a packet in a router to the output link.
    pub router: u64,
    /// Cycles of a tile's network interface, in each direction.
    pub interface: u64,
    /// Bytes of a packet's header.
    pub header: u32,
    /// Maximum payload bytes of a packet.
    pub chunk: u32,
    /// Sharing of links.
    pub channels: Channels,
    /// Packets that a router's input buffer holds, for each incoming link and each network; `None`: no limit.
    pub credits: Option<u32>,
}

/// A crossbar of 16 bytes per cycle shared by reads and writes, with one tick per cycle.
impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            topology: Topology::Crossbar,
            cycle: 1,
            width: 16,
            link: 1,
            router: 2,
            interface: 4,
            header: 16,
            chunk: 512,
            channels: Channels::Shared,
            credits: None,
        }
    }
}

/// A mistake in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("platform {platform}: {what}")]
pub struct ConfigError {
    /// Name of the platform.
    pub platform: String,
    /// The part, the value, and what would be right.
    pub what: String,
}

impl PlatformConfig {
    /// Checks everything that the machine relies on.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let fail = |what: String| {
            Err(ConfigError {
                platform: self.name.clone(),
                what,
            })
        };
        if self.ticks_per_second == 0 || self.timebase_hz == 0 {
            return fail("ticks_per_second and timebase_hz must be at least 1".into());
        }
        if self.tiles.is_empty() || self.memories.is_empty() && self.kind != PlatformKind::Mesh {
            return fail("at least one processing tile and one memory tile are needed".into());
        }
        let mut ids: Vec<TileId> = self.tiles.iter().map(|t| t.id).collect();
        ids.extend(self.memories.iter().map(|m| m.id));
        ids.extend(self.beside().map(|(id, _)| id));
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|p| p[0] == p[1]) {
            return fail(format!("tile number {} is used twice", pair[0]));
        }
        if ids.last().is_some_and(|id| *id >= 0x4000) {
            return fail("tile numbers must be below 16384".into());
        }
        let n = &self.network;
        if n.cycle == 0 || n.width == 0 || n.link == 0 || n.chunk == 0 {
            return fail("network: cycle, width, link and chunk must be at least 1".into());
        }
        let routers = match n.topology {
            Topology::Crossbar => u32::MAX,
            Topology::StarMesh { columns, rows } | Topology::Mesh { columns, rows } => {
                columns as u32 * rows as u32
            }
        };
        if routers == 0 || routers > 4096 && routers != u32::MAX {
            return fail("network: 1 to 4096 routers are possible".into());
        }
        let places = self.tiles.iter().map(|t| (t.id, t.router));
        let places = places.chain(self.memories.iter().map(|m| (m.id, m.router)));
        let places = places.chain(self.beside());
        for (id, router) in places {
            if router as u32 >= routers {
                return fail(format!(
                    "tile {id}: router {router} does not exist, there are {routers}"
                ));
            }
        }
        let all = self.tiles.len() + self.beside().count() + self.memories.len();
        if let Err(what) = n.has_room(all) {
            return fail(format!("network: {what}"));
        }
        for tile in &self.tiles {
            if tile.dma.is_some() && self.kind != PlatformKind::Mesh {
                return fail(format!(
                    "tile {}: a tile's own dma engine needs a mesh",
                    tile.id
                ));
            }
            let valid = match self.kind {
                PlatformKind::Mesh => self.validate_local(tile),
                PlatformKind::Bare | PlatformKind::Tiled => self.validate_tile(tile),
            };
            if let Err(what) = valid {
                return fail(format!("tile {}: {what}", tile.id));
            }
        }
        self.validate_clusters()?;
        self.validate_map()?;
        self.validate_engines()?;
        self.validate_peripherals()?;
        self.validate_doorbells()?;
        self.validate_second_ports()?;
        self.validate_tcms()?;
        self.validate_translators()?;
        for (i, cable) in self.cables.iter().enumerate() {
            if let Err(what) = self.validate_cable(i, cable) {
                return fail(format!("cable of tile {}: {what}", cable.from));
            }
        }
        for memory in &self.memories {
            if let Err(what) = validate_memory(memory) {
                return fail(format!("memory tile {}: {what}", memory.id));
            }
        }
        Ok(())
    }

    fn validate_cable(&self, index: usize, cable: &CableConfig) -> Result<(), String> {
        cable.faults.validate()?;
        if cable.delay == 0 {
            return Err("the delay must be at least 1 tick".into());
        }
        for end in [Some(cable.from), cable.to].into_iter().flatten() {
            let tile = self.tiles.iter().find(|t| t.id == end);
            if tile.is_none_or(|t| t.network_card.is_none()) {
                return Err(format!("tile {end} has no network card"));
            }
            let others = self.cables[..index].iter();
            let mut others = others.flat_map(|c| [Some(c.from), c.to]).flatten();
            if others.any(|other| other == end) {
                return Err(format!("the card of tile {end} has a cable already"));
            }
        }
        match cable.to == Some(cable.from) {
            true => Err("both ends are the same card".into()),
            false => Ok(()),
        }
    }

    fn validate_tile(&self, tile: &TileConfig) -> Result<(), String> {
        let (Some(l1i), Some(l1d)) = (&tile.l1i, &tile.l1d) else {
            return Err("needs an l1i and an l1d cache".into());
        };
        if !(16..=LINE_MAX as u32).contains(&tile.hart.line) {
            return Err(format!("a line has 16 to {LINE_MAX} bytes"));
        }
        tile.hart.check()?;
        // The caches' tags must be able to name all of the memories, and addresses that belong to none.
        let sizes = self.memories.iter().map(MemoryConfig::window);
        let all: u64 = sizes
            .map(|size| size.next_multiple_of(HOME_ALIGNMENT))
            .sum();
        let least = (all + PMP_WINDOWS * PMP_WINDOW_SIZE).div_ceil(u64::from(u32::MAX));
        if u64::from(tile.hart.line) < least {
            return Err(format!(
                "memories of {} MiB need lines of at least {least} bytes, because the caches' tags name all of them; lines have at most {LINE_MAX}",
                all >> 20
            ));
        }
        for (name, cache) in [
            ("l1i", Some(l1i)),
            ("l1d", Some(l1d)),
            ("l2", tile.l2.as_ref()),
        ] {
            let Some(cache) = cache else { continue };
            validate_cache(cache).map_err(|what| format!("{name}: {what}"))?;
            if cache.line != tile.hart.line {
                return Err(format!(
                    "{name}: lines of {} bytes, but the hart's lines have {}",
                    cache.line, tile.hart.line
                ));
            }
            if cache.line > self.network.chunk {
                return Err(format!("{name}: a line is larger than a network chunk"));
            }
        }
        let fetches_ahead = |cache: &CacheConfig| cache.prefetcher.is_some();
        if fetches_ahead(l1i) {
            return Err("l1i: an instruction cache has no prefetcher".into());
        }
        if tile.cluster.is_some() {
            prefetcher::validate_cluster(tile)?;
        }
        if let Some(unit) = &tile.accelerator {
            if self.kind != PlatformKind::Tiled || tile.second_hart || tile.privileged {
                return Err(
                    "accelerator: needs a tiled platform, no second hart, no privilege".into(),
                );
            }
            if unit.cycle == 0 || unit.bytes_per_cycle == 0 || !(1..=4096).contains(&unit.row) {
                return Err(
                    "accelerator: cycle and bytes_per_cycle must be at least 1, row 1 to 4096"
                        .into(),
                );
            }
        }
        if let Some(card) = &tile.network_card {
            validate_card(card).map_err(|what| format!("network card: {what}"))?;
            if tile.accelerator.is_some() {
                return Err("network card: needs a hart that drives it".into());
            }
        }
        match (&tile.dtu, self.kind) {
            (None, PlatformKind::Tiled) => Err("a tiled platform needs a dtu in each tile".into()),
            (Some(dtu), PlatformKind::Tiled) => {
                if dtu.cycle == 0 || dtu.block == 0 || dtu.parallel == 0 || dtu.outstanding == 0 {
                    return Err(
                        "dtu: cycle, block, parallel and outstanding must be at least 1".into(),
                    );
                }
                if !dtu.block.is_power_of_two() || dtu.block > tile.hart.line {
                    return Err("dtu: block must be a power of two and at most a cache line".into());
                }
                if dtu.endpoints as u64 <= PMP_WINDOWS {
                    return Err("dtu: the first four endpoints are the protection windows".into());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl PlatformConfig {
    /// Checks a tile of a mesh.
    fn validate_local(&self, tile: &TileConfig) -> Result<(), String> {
        let Some(memory) = &tile.local_memory else {
            return Err("needs a local memory on a mesh".into());
        };
        let others =
            tile.l1i.is_some() || tile.l1d.is_some() || tile.l2.is_some() || tile.cluster.is_some();
        if others
            || tile.dtu.is_some()
            || tile.second_hart
            || tile.accelerator.is_some()
            || tile.network_card.is_some()
        {
            return Err("a tile with a local memory has one hart and nothing else".into());
        }
        tile.dma.as_ref().map_or(Ok(()), DmaConfig::validate)?;
        if tile.dma.as_ref().is_some_and(|dma| dma.burst != 0) {
            return Err("dma: a mesh moves single elements, no bursts".into());
        }
        if !(-DRIFT_MAX..=DRIFT_MAX).contains(&tile.clock.drift) {
            return Err(format!(
                "its clock drifts by at most {DRIFT_MAX} parts per million"
            ));
        }
        let Topology::Mesh { columns, rows } = self.network.topology else {
            return Err("local memories are joined by a mesh".into());
        };
        if columns > MESH_SIDE || rows > MESH_SIDE {
            return Err(format!("a mesh has at most {MESH_SIDE} rows and columns"));
        }
        let place = |t: &&TileConfig| t.router == tile.router;
        if self.tiles.iter().filter(place).count() != 1 {
            return Err(format!("router {} has another tile, too", tile.router));
        }
        if self.memories.len() > 1 {
            return Err("a mesh has at most one external memory".into());
        }
        tile.hart.check()?;
        if !(16..=LINE_MAX as u32).contains(&tile.hart.line) {
            return Err(format!("a fetch has 16 to {LINE_MAX} bytes"));
        }
        if memory.size == 0 || !memory.size.is_multiple_of(0x1000) || memory.size > REGISTERS {
            return Err(format!(
                "local memory: {} bytes are no pages of 4 KiB within {REGISTERS}",
                memory.size
            ));
        }
        let banks = memory.validate(LINE_MAX as u64);
        banks.map_err(|what| format!("local memory: {what}"))
    }
}

fn validate_card(card: &NetworkCardConfig) -> Result<(), String> {
    if card.rate == 0 {
        return Err("the rate must be at least 1 byte a second".into());
    }
    if !card.queue.is_power_of_two() || !(2..=1024).contains(&card.queue) {
        return Err("a queue must have a power of two of 2 to 1024 entries".into());
    }
    if (card.buffer as usize) < bulkhead_abi::network::FRAME_MAX {
        return Err("the buffer must hold a frame of 1514 bytes".into());
    }
    if !(1..=16).contains(&card.parallel) {
        return Err("1 to 16 accesses may be under way".into());
    }
    match card.mac[0] & 1 {
        0 => Ok(()),
        _ => Err("the hardware address is one of a group".into()),
    }
}

fn validate_cache(cache: &CacheConfig) -> Result<(), String> {
    if cache.cycle == 0 {
        return Err("cycle must be at least 1".into());
    }
    if !(1..=64).contains(&cache.ways) || !(1..=64).contains(&cache.mshrs) {
        return Err("ways and mshrs must be 1 to 64".into());
    }
    if !cache.line.is_power_of_two() {
        return Err("a line must be a power of two of bytes".into());
    }
    let set = cache.ways as u64 * cache.line as u64;
    if !cache.size.is_multiple_of(set) || !(cache.size / set).is_power_of_two() {
        return Err(format!(
            "{} bytes are no power of two of sets with {} ways of {} bytes",
            cache.size, cache.ways, cache.line
        ));
    }
    if cache.replacement == Replacement::TreePlru && !cache.ways.is_power_of_two() {
        return Err("tree-plru needs a power of two of ways".into());
    }
    match &cache.prefetcher {
        Some(prefetcher) => prefetcher.validate(cache.line),
        None => Ok(()),
    }
}

fn validate_memory(memory: &MemoryConfig) -> Result<(), String> {
    let d = &memory.dram;
    if let Some(bandwidth) = &d.bandwidth {
        if d.controller.policy != dram::Policy::Slots {
            return Err("a bandwidth controller needs a controller with slots".into());
        }
        bandwidth.check(&d.controller, &d.shares)?;
    }
    if memory.size == 0 || !memory.size.is_multiple_of(4096) {
        return Err("the size must be a positive multiple of 4096 bytes".into());
    }
    d.controller.check()
}
