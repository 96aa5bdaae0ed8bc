//! A chip, typed and with every reference resolved.
//!
//! Why it exists: the runner builds the machine's configuration from it, and the analysis its bounds, both without
//! reading XML. What it deliberately does not know: how the machine behaves.
//!
//! Cycles are those of the part's `clock`; a cache counts cycles of the pipeline of its tile.

mod check;
mod cluster;
mod doorbells;
mod engines;
mod limits;
mod mesh;
mod peripherals;
mod pipeline;
mod read;
mod sharing;
mod tcm;
mod translator;
mod write;

use serde::Serialize;

pub use doorbells::Doorbells;
pub use engines::{Dma, Engine};
pub use limits::{Capacity, Partition, Share};
pub use mesh::LocalMemory;
pub use peripherals::{Peripheral, PeripheralKind};
pub(crate) use read::{read, share};
pub use sharing::{MissRegisters, Turns};
pub(crate) use write::write;

use crate::units::{Frequency, Rate, Size, Time};
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE};

/// Granularity in which memory is allocated.
pub const PAGE: u64 = 4096;

/// Greatest tick frequency in hertz: at this frequency, 64 bits hold 21 days.
pub const TICK_LIMIT: u64 = 10_000_000_000_000;

/// A chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// Name.
    pub name: String,
    /// A sentence about it.
    pub about: Option<String>,
    /// Tiled or bare.
    pub kind: PlatformKind,
    /// All clocks.
    pub clocks: Vec<Clock>,
    /// How fast software's time counts.
    pub timebase: Frequency,
    /// All pipelines.
    pub pipelines: Vec<Pipeline>,
    /// All caches.
    pub caches: Vec<Cache>,
    /// All clusters named by tiles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
    /// All local memories named by tiles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub local_memories: Vec<LocalMemory>,
    /// All DMA engines named by tiles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dma_engines: Vec<Dma>,
    /// All data transfer units.
    pub dtus: Vec<Dtu>,
    /// All streaming units.
    pub accelerators: Vec<Accelerator>,
    /// Network cards named by tiles.
    pub network_cards: Vec<NetworkCard>,
    /// All memory controllers.
    pub drams: Vec<Dram>,
    /// The network.
    pub network: Network,
    /// Processing tiles, by number.
    pub tiles: Vec<Tile>,
    /// Memory tiles, by number.
    pub memories: Vec<Memory>,
    /// DMA engines beside the tiles, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<Engine>,
    /// Peripherals beside the tiles, by number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peripherals: Vec<Peripheral>,
    /// By which harts of different tiles interrupt each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doorbells: Option<Doorbells>,
    /// Where the values come from.
    pub origins: Vec<Origin>,
}

/// Whether there are DTUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlatformKind {
    /// Every processing tile has a DTU; the tiled OS runs.
    Tiled,
    /// No DTUs; runs single programs.
    Bare,
    /// Tiles with local memories that read and write each other's.
    Mesh,
}

/// A clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// Name.
    pub name: String,
    /// Frequency.
    pub frequency: Frequency,
}

/// How a hart spends time. All latencies in cycles of `clock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pipeline {
    /// Name.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// The timing model.
    pub model: PipelineModel,
    /// Issue of a load that hits the first level until its result can be used.
    pub load_to_use: u32,
    /// Integer multiplication.
    pub multiply: u32,
    /// Integer division.
    pub divide: u32,
    /// Floating-point addition and its like.
    pub fp_add: u32,
    /// Floating-point multiplication.
    pub fp_multiply: u32,
    /// Fused multiply-add.
    pub fp_fma: u32,
    /// Floating-point division.
    pub fp_divide: u32,
    /// Square root.
    pub fp_sqrt: u32,
    /// Extra cycles of a misprediction.
    pub branch_penalty: u32,
    /// Extra cycles of a taken branch that was predicted.
    pub jump_penalty: u32,
    /// Two-bit counters; a power of two or 0.
    pub predictor_entries: u32,
    /// Entries of the return-address stack.
    pub return_stack: u32,
    /// Maximum outstanding stores.
    pub store_buffer: u32,
    /// Maximum outstanding loads. Out of order: loads that were dispatched and have not retired.
    pub load_buffer: u32,
    /// Extra cycles to enter or leave a trap handler.
    pub trap_entry: u32,
    /// Extra cycles of a device access.
    pub mmio: u32,
    /// Entries of each first-level TLB.
    pub tlb_entries: u32,
    /// Entries of the second-level TLB; a power of two or 0.
    pub l2_tlb_entries: u32,
    /// Cycles of a second-level TLB hit.
    pub l2_tlb_latency: u32,
    /// The walker sets accessed and dirty bits itself.
    pub hardware_ad: bool,
    /// The limits of a pipeline of the model [`PipelineModel::Interval`]; others have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
}

/// The limits of an out-of-order pipeline besides latencies and buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Instructions dispatched, and retired, per cycle.
    pub width: u32,
    /// Instructions between dispatch and retirement.
    pub window: u32,
    /// Stores among them.
    pub store_queue: u32,
    /// Integer operations and branches issued per cycle.
    pub alus: u32,
    /// Loads and stores issued per cycle.
    pub memory_ports: u32,
    /// Floating-point operations issued per cycle.
    pub float_units: u32,
}

/// The timing model of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PipelineModel {
    /// Stall on use.
    Inorder,
    /// Out of order.
    Interval,
}

/// A cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// Name.
    pub name: String,
    /// Bytes in all.
    pub size: Size,
    /// Ways.
    pub ways: u32,
    /// Bytes of a line.
    pub line: u32,
    /// Cycles of the tile's pipeline from the miss above to the data here.
    pub latency: u32,
    /// Maximum outstanding misses.
    pub mshrs: u32,
    /// Which line is given up.
    pub replacement: Replacement,
    /// Its prefetcher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefetcher: Option<Prefetcher>,
}

/// A prefetcher of a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Prefetcher {
    /// How it finds what comes next.
    pub kind: PrefetcherKind,
    /// Lines that one request may fetch.
    pub degree: u32,
    /// Bytes of the block that it stays in.
    pub page: u32,
    /// Streams at once.
    pub streams: u32,
    /// Maximum lines from one request of a stream to the next.
    pub stride: u32,
    /// Requests that begin a stream.
    pub training: u32,
    /// Strides ahead.
    pub distance: u32,
    /// Instructions that it knows.
    pub entries: u32,
    /// Ways of a set of its table.
    pub ways: u32,
    /// Bits of a confidence.
    pub confidence_bits: u32,
    /// Confidence of a new instruction.
    pub confidence: u32,
    /// Percent of the greatest confidence.
    pub threshold: u32,
}

/// How a prefetcher finds what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefetcherKind {
    /// It is switched off.
    Off,
    /// Equal distances.
    Stream,
    /// Equal distances of one instruction.
    Stride,
}

impl Cache {
    /// Number of sets, a power of two.
    pub fn sets(&self) -> u64 {
        self.size.0 / (u64::from(self.ways) * u64::from(self.line))
    }
}

/// Which line a cache replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least recently used.
    Lru,
    /// Tree of direction bits.
    TreePlru,
    /// Pseudo-random, seeded; invalid ways first.
    Random,
    /// Pseudo-random, seeded, among all ways.
    RandomAny,
}

/// Harts that share a second level. All latencies in cycles of the tile's pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Name.
    pub name: String,
    /// Harts, numbered from 0.
    pub harts: u32,
    /// From a first level to the second level.
    pub up: u32,
    /// From the second level to a first level.
    pub down: u32,
    /// Banks of the second level; a power of two.
    pub banks: u32,
    /// How long a request occupies its bank.
    pub occupancy: u32,
    /// How long a reservation holds its line.
    pub hold: u32,
    /// Which harts may use which miss registers of the second level.
    #[serde(skip_serializing_if = "MissRegisters::is_default")]
    pub miss_registers: MissRegisters,
    /// Its caches are coherent with those of all other clusters that set this.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coherent: bool,
    /// Harts of another kind than the tile says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<ClusterCore>,
    /// Harts whose fills may use only some ways of the second level when the machine starts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<Partition>,
    /// The capacity controller of the second level, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
}

/// A hart of a cluster that is of another kind than the tile says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterCore {
    /// The hart.
    pub hart: u32,
    /// Its pipeline.
    pub pipeline: Pipeline,
    /// First-level instruction cache.
    pub l1i: Cache,
    /// First-level data cache.
    pub l1d: Cache,
}

impl Platform {
    /// The first address of a memory as harts of a bare platform see it: each memory but the first one begins at the next window.
    pub fn memory_base(&self, id: u16) -> Option<u64> {
        let mut base = MEMORY_BASE;
        for memory in &self.memories {
            if memory.id == id {
                return Some(base);
            }
            base += memory.window().next_multiple_of(PMP_WINDOW_SIZE);
        }
        None
    }
}

impl Cluster {
    /// The hart of another kind at a place, if there is one.
    pub fn core(&self, hart: u32) -> Option<&ClusterCore> {
        self.cores.iter().find(|core| core.hart == hart)
    }

    /// Bit i: the hart's fills may use way i; 0: all ways.
    pub fn fills(&self, hart: u32) -> u64 {
        let mut all = self.partitions.iter();
        let ways = all.find(|partition| partition.hart == hart);
        ways.map_or(0, |p| u64::MAX >> (64 - p.ways) << p.first)
    }
}

/// A data transfer unit. All latencies in cycles of `clock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dtu {
    /// Name.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// Endpoints.
    pub endpoints: u32,
    /// Token buckets.
    pub buckets: u32,
    /// Entries of its TLB.
    pub tlb_entries: u32,
    /// A lookup in its TLB.
    pub tlb_latency: u32,
    /// Bytes of a local access.
    pub block: u32,
    /// Maximum outstanding local accesses.
    pub parallel: u32,
    /// Time between two refills of the token buckets.
    pub refill: u32,
    /// Maximum bytes in a token bucket.
    pub bucket_limit: Size,
    /// Start-up of a read.
    pub read: u32,
    /// Start-up of a write.
    pub write: u32,
    /// Start-up of a send.
    pub send: u32,
    /// Start-up of a reply.
    pub reply: u32,
    /// Acceptance of a message.
    pub receive: u32,
    /// A fetch.
    pub fetch: u32,
    /// An acknowledgement.
    pub acknowledge: u32,
    /// Maximum outstanding chunks of a transfer.
    pub outstanding: u32,
    /// Local data moves through the first-level data cache; otherwise through the second level.
    pub first_level: bool,
}

/// A memory's chips, and their controller. All latencies in cycles of `clock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dram {
    /// Name.
    pub name: String,
    /// Its command clock; data moves twice per cycle.
    pub clock: Clock,
    /// Banks.
    pub banks: u32,
    /// Bytes of a row across all chips.
    pub row: Size,
    /// Bytes on the data bus per edge.
    pub bus: u32,
    /// Bytes of a burst.
    pub burst: u32,
    /// tCL.
    pub cas: u32,
    /// tRCD.
    pub activate: u32,
    /// tRP.
    pub precharge: u32,
    /// tWR.
    pub write_recovery: u32,
    /// tREFI; 0: no refresh.
    pub refresh_interval: u32,
    /// tRFC.
    pub refresh: u32,
    /// Fixed latency of the controller.
    pub frontend: u32,
    /// How it chooses commands.
    pub controller: Controller,
}

impl Dram {
    /// Channels.
    pub fn channels(&self) -> u32 {
        self.controller.channels
    }

    /// Bytes of a bank in a memory of `size` bytes, if each bank is one range of addresses.
    pub fn bank_bytes(&self, size: u64) -> Option<u64> {
        let controller = &self.controller;
        let is_range =
            controller.channels == 1 && controller.bank_map == Spread::Block && !controller.xor;
        is_range.then(|| size / u64::from(self.banks.max(1)))
    }
}

/// A memory controller. All latencies in cycles of the memory's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Controller {
    /// Which request it serves first.
    pub policy: MemoryPolicy,
    /// The requesters that take turns under [`MemoryPolicy::Slots`].
    #[serde(skip_serializing_if = "Turns::is_default")]
    pub turns: Turns,
    /// Slots of a window of the bandwidth controller; `None`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_blocks: Option<u32>,
    /// Accesses that the policy sees.
    pub queue: u32,
    /// A row is closed as soon as nothing in the queue wants it.
    pub closed_page: bool,
    /// The queue of writes, if they are acknowledged immediately.
    pub write_queue: Option<WriteQueue>,
    /// Channels.
    pub channels: u32,
    /// The unit of interleaving over the channels.
    pub channel_map: Spread,
    /// The unit of interleaving over the banks.
    pub bank_map: Spread,
    /// The bank's number is combined with the row's.
    pub xor: bool,
    /// tCWL.
    pub write_cas: u32,
    /// tRAS.
    pub row_active: u32,
    /// tRTP.
    pub read_to_precharge: u32,
    /// tCCD.
    pub column_gap: u32,
    /// tRRD.
    pub activate_gap: u32,
    /// tFAW.
    pub four_activates: u32,
    /// tWTR.
    pub write_to_read: u32,
    /// tRTW.
    pub read_to_write: u32,
}

/// Which request a memory controller serves first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryPolicy {
    /// First come, first served.
    Fcfs,
    /// Accesses to open rows first, then the oldest.
    FrFcfs {
        /// Maximum bursts that may pass the oldest access of the channel while only hits of its bank or the data bus hold
        /// it back.
        cap: u32,
    },
    /// Round robin over the requesters, one burst per slot.
    Slots,
}

/// Bounds of a write queue, in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WriteQueue {
    /// How many it holds.
    pub size: u32,
    /// A drain begins at this many.
    pub high: u32,
    /// A drain ends at this many.
    pub low: u32,
}

/// The unit of interleaving over channels or banks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// Rows.
    Row,
    /// Bursts.
    Burst,
    /// Nothing: each one is a contiguous part of the memory.
    Block,
}

/// Shape of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// One router for all tiles.
    Crossbar,
    /// A mesh with several tiles at each router.
    StarMesh {
        /// Routers in a row.
        columns: u16,
        /// Rows.
        rows: u16,
    },
    /// A mesh with one tile at each router.
    Mesh {
        /// Routers in a row.
        columns: u16,
        /// Rows.
        rows: u16,
    },
}

/// The network. All latencies in cycles of `clock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Shape.
    pub topology: Topology,
    /// Its clock.
    pub clock: Clock,
    /// Bytes that a link moves per cycle.
    pub width: u32,
    /// Cycles of a link.
    pub link: u32,
    /// Cycles in a router.
    pub router: u32,
    /// Cycles of a tile's interface, in each direction.
    pub interface: u32,
    /// Bytes of a packet's header.
    pub header: u32,
    /// Maximum payload bytes of a packet.
    pub chunk: u32,
    /// Reads and writes have separate networks.
    pub split_channels: bool,
    /// So do acknowledgements; read requests follow each other on a link after at least this many cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_interval: Option<u32>,
    /// Packets that a router's input buffer holds, by incoming link and network; `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credits: Option<u32>,
}

impl Network {
    /// Maximum rate of a link, headers included.
    pub fn link_capacity(&self) -> Rate {
        Rate(u64::from(self.width).saturating_mul(self.clock.frequency.0))
    }
}

/// The operation of a streaming unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Nothing.
    Copy,
    /// CRC-32 of IEEE 802.3.
    Checksum,
    /// Edges of an image (Sobel).
    Edge,
    /// Whatever an attacker wants.
    Rogue,
}

impl Operation {
    /// Its word in descriptions.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Checksum => "checksum",
            Self::Edge => "edge",
            Self::Rogue => "rogue",
        }
    }
}

/// A streaming unit. Latencies in cycles of `clock`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accelerator {
    /// Name.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// Its operation.
    pub operation: Operation,
    /// Bytes that stream through per cycle.
    pub bytes_per_cycle: u32,
    /// Cycles before the first byte of a piece.
    pub startup: u32,
    /// Cycles to switch from one client to another.
    pub switch: u32,
    /// Maximum bytes of a row.
    pub row: u32,
}

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkCard {
    /// Name.
    pub name: String,
    /// Rate of its link.
    pub rate: Rate,
    /// Maximum entries of a queue.
    pub queue: u32,
    /// Bytes for frames that wait for buffers.
    pub buffer: u32,
    /// Maximum outstanding memory accesses.
    pub parallel: u32,
}

/// A processing tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tile {
    /// Number on the network.
    pub id: u16,
    /// Its hart.
    pub pipeline: Pipeline,
    /// First-level instruction cache; every tile without a local memory has one.
    pub l1i: Option<Cache>,
    /// First-level data cache; every tile without a local memory has one.
    pub l1d: Option<Cache>,
    /// Second-level cache.
    pub l2: Option<Cache>,
    /// Several harts that share the second level, instead of one hart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// Local memory; always present on meshes, never on other platforms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_memory: Option<LocalMemory>,
    /// Tightly coupled memories beside its caches, at consecutive addresses; only on bare platforms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcm: Vec<LocalMemory>,
    /// Its own DMA engine; only on meshes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dma: Option<Dma>,
    /// By how much its timer is ahead when the chip starts; 0 except on meshes.
    #[serde(skip_serializing_if = "is_nothing")]
    pub clock_offset: Time,
    /// Parts per million by which its timer is fast; 0 except on meshes.
    #[serde(skip_serializing_if = "is_nothing")]
    pub clock_drift: i32,
    /// Data transfer unit; always present on tiled platforms, never on others.
    pub dtu: Option<Dtu>,
    /// This unit replaces the hart.
    pub accelerator: Option<Accelerator>,
    /// Its network card.
    pub network_card: Option<NetworkCard>,
    /// Router that it is attached to.
    pub router: u16,
    /// The kernel's tile.
    pub privileged: bool,
    /// 1 or 2.
    pub harts: u32,
    /// Several applications may be placed on it.
    pub shared: bool,
    /// It has an exit device.
    pub exit: bool,
    /// It has a console.
    pub uart: bool,
}

fn is_nothing<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Tile {
    /// Whether its timer is its own, rather than that of the chip.
    pub fn has_own_clock(&self) -> bool {
        !is_nothing(&self.clock_offset) || !is_nothing(&self.clock_drift)
    }
}

/// A memory tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Number on the network.
    pub id: u16,
    /// Its controller.
    pub dram: Dram,
    /// Bytes.
    pub size: Size,
    /// Router that it is attached to.
    pub router: u16,
    /// It has no bytes of its own, but is another way to those of these memories, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub second_port_of: Vec<u16>,
    /// Bits of an address in its window that the address translator in front of it drops; 0: there is no translator.
    #[serde(skip_serializing_if = "is_nothing")]
    pub dropped: u64,
}

/// Where values come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The element, such as `dtu[dtu]`.
    pub element: String,
    /// Attributes; empty: all that no other origin of the element names.
    pub attributes: Vec<String>,
    /// The source, or `assumption: ...`.
    pub source: String,
}

impl Platform {
    /// Ticks per second: the least common multiple of all clocks and the timebase. At most [`TICK_LIMIT`], which loading a
    /// platform checks.
    pub fn ticks_per_second(&self) -> u64 {
        self.clocks
            .iter()
            .map(|clock| clock.frequency)
            .chain([self.timebase])
            .try_fold(1, |ticks, frequency| common_tick(ticks, frequency.0))
            .unwrap_or(TICK_LIMIT)
    }

    /// The processing tile with this number.
    pub fn tile(&self, id: u16) -> Option<&Tile> {
        self.tiles.iter().find(|tile| tile.id == id)
    }

    /// The memory tile with this number.
    pub fn memory(&self, id: u16) -> Option<&Memory> {
        self.memories.iter().find(|memory| memory.id == id)
    }

    /// The kernel's tile: the first privileged one.
    pub fn kernel_tile(&self) -> Option<u16> {
        self.tiles
            .iter()
            .find(|tile| tile.privileged)
            .map(|tile| tile.id)
    }
}

/// Least common multiple, `None` above [`TICK_LIMIT`].
fn common_tick(a: u64, b: u64) -> Option<u64> {
    fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a.max(1)
    }
    (a / greatest_common_divisor(a, b))
        .checked_mul(b)
        .filter(|ticks| *ticks <= TICK_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tick_divides_every_clock() {
        assert_eq!(common_tick(100, 80), Some(400));
        assert_eq!(common_tick(2_000_000_000, 800_000_000), Some(4_000_000_000));
        // 9 999 999 967 is prime, so the full product is needed, and it exceeds the limit.
        assert_eq!(common_tick(9_999_999_967, 2_000_000_000), None);
        assert_eq!(common_tick(u64::MAX, u64::MAX - 1), None);
    }
}
