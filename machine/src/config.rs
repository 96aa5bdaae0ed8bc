//! Configuration of a machine in plain structures.
//!
//! Why it exists: the machine must not know the description language, and tests want to build a chip in a few lines.
//! Whoever builds a configuration has chosen a tick that divides every clock; `cycle` fields are ticks a cycle of the
//! component's clock, and latencies are in cycles of that clock. `PlatformConfig::validate` checks what the machine
//! relies on.

use crate::hart::HartConfig;
use crate::types::{Tick, TileId};
use thiserror::Error;

/// A chip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformConfig {
    /// Name, for reports.
    pub name: String,
    /// How memory is reached.
    pub kind: PlatformKind,
    /// Ticks a second: the least common multiple of all clocks.
    pub ticks_per_second: u64,
    /// Frequency of the `time` CSR and of `mtime` in hertz; divides `ticks_per_second`.
    pub timebase_hz: u64,
    /// Processing tiles.
    pub tiles: Vec<TileConfig>,
    /// Memory tiles; their numbers follow no order but differ from those of the processing tiles.
    pub memories: Vec<MemoryConfig>,
    /// The network that joins all tiles.
    pub network: NetworkConfig,
    /// Seed of the pseudo-random replacement.
    pub seed: u64,
}

/// How harts reach memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformKind {
    /// No DTUs: the first memory tile is every tile's memory, at `abi::memory_map::MEMORY_BASE`.
    Bare,
    /// Each tile's memory windows are backed by memory endpoints of its DTU.
    Tiled,
}

/// A processing tile with one hart.
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
    /// Private second-level cache, shared by instructions and data.
    pub l2: Option<CacheConfig>,
    /// Data transfer unit; needed on tiled platforms.
    pub dtu: Option<DtuConfig>,
    /// Router that the tile is attached to (ignored by a crossbar).
    pub router: u16,
    /// The DTU starts with the privileged feature (the kernel's tile).
    pub privileged: bool,
    /// The tile has an exit device.
    pub exit: bool,
    /// The tile has a console.
    pub uart: bool,
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
}

/// Which line a cache gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The least recently used.
    Lru,
    /// Tree of direction bits; ways must be a power of two.
    TreePlru,
    /// Pseudo-random, seeded.
    Random,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheConfig {
    /// Bytes in all; `size / (ways * line)` sets, a power of two.
    pub size: u64,
    /// Ways: 1 to 64.
    pub ways: u32,
    /// Bytes of a line, a power of two from 16 to 512.
    pub line: u32,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Cycles of a hit. For a first-level cache this is already in the hart's load-to-use latency.
    pub latency: u64,
    /// Misses that may be under way at once: 1 to 64.
    pub mshrs: u32,
    /// Replacement.
    pub replacement: Replacement,
    /// Bit i: way i may be filled. 0 means all.
    pub way_mask: u64,
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
    /// Local accesses under way at once.
    pub parallel: u32,
    /// Cycles between two refills of the token buckets.
    pub refill: u64,
    /// Greatest limit that a token bucket can be given, in bytes.
    pub bucket_limit: u64,
    /// Start-up cycles of a read.
    pub read: u64,
    /// Start-up cycles of a write.
    pub write: u64,
    /// Start-up cycles of a send.
    pub send: u64,
    /// Start-up cycles of a reply.
    pub reply: u64,
    /// Cycles to accept a message that arrives.
    pub receive: u64,
    /// Cycles of a fetch.
    pub fetch: u64,
    /// Cycles of an acknowledgement.
    pub acknowledge: u64,
    /// Chunks of a transfer under way at once.
    pub outstanding: u32,
}

/// A DRAM channel. Latencies in cycles of its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DramConfig {
    /// Ticks a cycle of the command clock; data moves twice a cycle.
    pub cycle: Tick,
    /// Banks.
    pub banks: u32,
    /// Bytes of a row, a power of two.
    pub row: u64,
    /// Bytes of the data bus.
    pub bus: u32,
    /// Bytes of a burst, a power of two.
    pub burst: u32,
    /// Column access to first data (tCL).
    pub cas: u64,
    /// Activate to column access (tRCD).
    pub activate: u64,
    /// Precharge to activate (tRP).
    pub precharge: u64,
    /// End of write data to precharge (tWR).
    pub write_recovery: u64,
    /// Distance between two refreshes (tREFI); 0: no refresh.
    pub refresh_interval: u64,
    /// Length of a refresh (tRFC).
    pub refresh: u64,
    /// Fixed latency of the controller before the banks.
    pub frontend: u64,
}

/// Shape of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One router for all tiles.
    Crossbar,
    /// `columns` x `rows` routers in a mesh, several tiles at each.
    StarMesh {
        /// Routers in a row.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// `columns` x `rows` routers in a mesh, one tile at each.
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
}

/// The network. Latencies in cycles of its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Shape.
    pub topology: Topology,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Bytes that a link moves in a cycle.
    pub width: u32,
    /// Cycles of a link, at least 1.
    pub link: u64,
    /// Cycles from the head of a packet in a router to the output link.
    pub router: u64,
    /// Cycles of a tile's network interface, for each direction.
    pub interface: u64,
    /// Bytes of a packet's header.
    pub header: u32,
    /// Bytes of payload of a packet at most.
    pub chunk: u32,
    /// Sharing of links.
    pub channels: Channels,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("platform {platform}: {what}")]
pub struct ConfigError {
    /// Name of the platform.
    pub platform: String,
    /// The part, the value, and what would be right.
    pub what: String,
}
