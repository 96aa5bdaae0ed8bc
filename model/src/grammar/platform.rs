//! Elements of platform descriptions.
//!
//! Why it exists: see the parent module. Latencies are integers in cycles of the element's clock (for caches: of the
//! clock of the tile's pipeline).

use super::Kind::{
    Boolean, Choice, Credits, Drift, Frequency, Integer, Name, Rate, Size, Span, Text,
};
use super::cluster::{CAPACITY, CLUSTER, CORE, PARTITION};
use super::mesh::{DMA, ENGINE, LOCAL_MEMORY};
use super::peripheral::{DOORBELLS, PERIPHERAL};
use super::pipeline::PIPELINE;
use super::prefetcher::PREFETCHER;
use super::{AttributeRule, ElementRule, any, default, maybe, once, optional, required, some};

/// A latency or count in cycles, small enough that sums never overflow.
pub(super) const CYCLES: super::Kind = Integer {
    min: 0,
    max: 1_000_000,
};
const SPREAD: super::Kind = Choice(&["row", "burst", "block"]);
pub(super) const LATENCY: super::Kind = Integer {
    min: 1,
    max: 1_000_000,
};
const COUNT: super::Kind = Integer {
    min: 1,
    max: 65_536,
};
pub(super) const ENTRIES: super::Kind = Integer {
    min: 0,
    max: 65_536,
};
/// A sentence or a list of attributes.
const NOTE: super::Kind = super::Kind::Text { max: 1000 };
pub(super) const TILE: super::Kind = Integer { min: 0, max: 4095 };
const HARTS: super::Kind = Integer { min: 1, max: 2 };

pub(super) const SOURCE: AttributeRule = optional(
    "source",
    NOTE,
    "Source of the values; or `assumption: ...` with the reason.",
);
pub(super) const CLOCK: AttributeRule =
    required("clock", Name, "The clock that its cycles are counted in.");

/// See [`super::PLATFORM`].
pub const ELEMENTS: &[ElementRule] = &[
    ElementRule {
        name: "platform",
        about: "A chip: clocks, tiles, caches, memories and the network that joins them.",
        attributes: &[
            required("name", Name, "Name of the platform."),
            required(
                "kind",
                Choice(&["tiled", "bare", "mesh"]),
                "`tiled`: every processing tile has a DTU and the tiled OS runs; `bare`: no DTUs, for single programs; `mesh`: every tile has a local memory, which all others read and write.",
            ),
            optional("about", NOTE, "What the chip is, in one sentence."),
            SOURCE,
        ],
        children: &[
            some("clock"),
            once("timebase"),
            some("pipeline"),
            any("cache"),
            any("cluster"),
            any("local-memory"),
            any("dma"),
            any("dtu"),
            any("accelerator"),
            any("network-card"),
            any("dram"),
            once("network"),
            some("tile"),
            any("engine"),
            any("peripheral"),
            maybe("doorbells"),
            any("memory"),
        ],
    },
    ElementRule {
        name: "origin",
        about: "Source of the values of some of the parent's attributes.",
        attributes: &[
            required("of", NOTE, "Names of attributes, separated by spaces."),
            required(
                "source",
                NOTE,
                "Source of the values; or `assumption: ...` with the reason.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "clock",
        about: "A clock. One tick of the machine divides the cycle of every clock.",
        attributes: &[
            required("name", Name, "Name of the clock."),
            required("frequency", Frequency, "Its frequency."),
            SOURCE,
        ],
        children: &[],
    },
    ElementRule {
        name: "timebase",
        about: "The counter that software reads as time.",
        attributes: &[
            required("frequency", Frequency, "How fast it counts."),
            SOURCE,
        ],
        children: &[],
    },
    PIPELINE,
    ElementRule {
        name: "cache",
        about: "A cache, write-back and write-allocate.",
        attributes: &[
            required("name", Name, "Name of the cache."),
            required(
                "size",
                Size {
                    min: 64,
                    max: 1 << 32,
                },
                "Size in bytes.",
            ),
            required("ways", Integer { min: 1, max: 64 }, "Ways of a set."),
            required(
                "line",
                Size { min: 16, max: 128 },
                "Bytes of a line, a power of two.",
            ),
            required(
                "latency",
                CYCLES,
                "Second level: cycles from the first level's miss to the data. First level: already in the pipeline's load-to-use, added only to a miss.",
            ),
            required(
                "mshrs",
                Integer { min: 1, max: 64 },
                "Misses that may be under way.",
            ),
            default(
                "replacement",
                Choice(&["lru", "tree-plru", "random", "random-any"]),
                "lru",
                "Which line is replaced. `random` is pseudo-random, and takes ways without a line first; `random-any` takes any way.",
            ),
            SOURCE,
        ],
        children: &[maybe("prefetcher"), any("origin")],
    },
    PREFETCHER,
    LOCAL_MEMORY,
    DMA,
    ElementRule {
        name: "dtu",
        about: "A data transfer unit.",
        attributes: &[
            required("name", Name, "Name of the unit."),
            CLOCK,
            required(
                "endpoints",
                Integer { min: 16, max: 1024 },
                "Endpoints; the first four are the protection windows.",
            ),
            required("buckets", Integer { min: 1, max: 4 }, "Token buckets."),
            required("tlb-entries", COUNT, "Entries of its TLB."),
            required("tlb-latency", CYCLES, "Cycles of a lookup in its TLB."),
            required(
                "block",
                Size { min: 16, max: 512 },
                "Bytes of a local memory access, a power of two.",
            ),
            required(
                "parallel",
                Integer { min: 1, max: 64 },
                "Local memory accesses under way at once.",
            ),
            required(
                "refill",
                LATENCY,
                "Cycles between two refills of the token buckets.",
            ),
            required(
                "bucket-limit",
                Size {
                    min: 1,
                    max: 1 << 32,
                },
                "Most bytes that a token bucket can hold.",
            ),
            required(
                "read",
                CYCLES,
                "Time from the start of a read command to the first network request.",
            ),
            required(
                "write",
                CYCLES,
                "Time from the start of a write command to the first network request.",
            ),
            required(
                "send",
                CYCLES,
                "Time from the start of a send command until the message leaves.",
            ),
            required(
                "reply",
                CYCLES,
                "Time from the start of a reply command until the message leaves.",
            ),
            required(
                "receive",
                CYCLES,
                "Time from the arrival of a message until it can be fetched.",
            ),
            required("fetch", CYCLES, "Cycles of a fetch command."),
            required("acknowledge", CYCLES, "Cycles of an acknowledge command."),
            required(
                "outstanding",
                Integer { min: 1, max: 64 },
                "Chunks of a transfer under way at once.",
            ),
            default(
                "cache",
                Choice(&["l1", "l2"]),
                "l2",
                "The tile's cache that local data moves through: `l1` is the first-level data cache with its miss registers, beside the hart; `l2` is the second level, or the first if there is none.",
            ),
            SOURCE,
        ],
        children: &[any("origin")],
    },
    CLUSTER,
    CORE,
    PARTITION,
    CAPACITY,
    ElementRule {
        name: "network-card",
        about: "A network card that a tile may have: a virtio network device over virtio-mmio.",
        attributes: &[
            required("name", Name, "Name of the card."),
            required(
                "rate",
                Rate,
                "Rate of its link: a frame of n bytes occupies it for n * 8 / rate.",
            ),
            default(
                "queue",
                Integer { min: 2, max: 1024 },
                "256",
                "Most entries of a queue, a power of two.",
            ),
            default(
                "buffer",
                Size {
                    min: 1514,
                    max: 1 << 24,
                },
                "64KiB",
                "Bytes of frames that can wait in it for buffers of the driver; a frame that does not fit is lost.",
            ),
            default(
                "parallel",
                Integer { min: 1, max: 16 },
                "4",
                "Memory accesses under way at once for the data of a frame, each of at most a cache line.",
            ),
            SOURCE,
        ],
        children: &[any("origin")],
    },
    ElementRule {
        name: "accelerator",
        about: "A streaming unit that a tile has in place of a hart. Messages drive it, and it moves its data itself.",
        attributes: &[
            required("name", Name, "Name of the unit."),
            CLOCK,
            required(
                "operation",
                Choice(&["copy", "checksum", "edge", "rogue"]),
                "What it computes: nothing, the CRC-32 of IEEE 802.3, or the edges of an image of one byte a pixel (Sobel); or, for tests of the isolation, whatever an attacker wants.",
            ),
            required(
                "bytes-per-cycle",
                Integer { min: 1, max: 512 },
                "Bytes that stream through in each cycle.",
            ),
            required(
                "startup",
                CYCLES,
                "Cycles before the first byte of a piece of at most 4 KiB.",
            ),
            required(
                "switch",
                CYCLES,
                "Cycles to change from one client to another.",
            ),
            default(
                "row",
                Size { min: 1, max: 4096 },
                "4096B",
                "Most bytes of a row, for operations that keep rows.",
            ),
            SOURCE,
        ],
        children: &[any("origin")],
    },
    ElementRule {
        name: "dram",
        about: "A memory controller with its channel; data moves on both edges of the clock.",
        attributes: &[
            required("name", Name, "Name of the memory."),
            CLOCK,
            required(
                "banks",
                Integer { min: 1, max: 1024 },
                "Banks, a power of two.",
            ),
            required(
                "row",
                Size {
                    min: 64,
                    max: 1 << 20,
                },
                "Bytes of a row over all chips, a power of two.",
            ),
            required(
                "bus",
                Size { min: 1, max: 64 },
                "Bytes that the data bus moves on a clock edge, a power of two.",
            ),
            required(
                "burst",
                Size { min: 16, max: 512 },
                "Bytes of a burst, a power of two.",
            ),
            required(
                "cas",
                CYCLES,
                "Time from column access to first data (tCL).",
            ),
            required(
                "activate",
                CYCLES,
                "Time from activation of a row to column access (tRCD).",
            ),
            required(
                "precharge",
                CYCLES,
                "Time from precharge to activation (tRP).",
            ),
            required(
                "write-recovery",
                CYCLES,
                "Time from the end of write data to precharge (tWR).",
            ),
            required(
                "refresh-interval",
                CYCLES,
                "Interval between refreshes (tREFI); 0: no refresh.",
            ),
            required("refresh", CYCLES, "Length of a refresh (tRFC)."),
            required("frontend", CYCLES, "Fixed latency of the controller."),
            SOURCE,
        ],
        children: &[once("controller"), any("origin")],
    },
    ElementRule {
        name: "controller",
        about: "The memory's controller, which keeps requests in a queue and chooses each command.",
        attributes: &[
            required(
                "policy",
                Choice(&["fcfs", "fr-fcfs", "slots"]),
                "`fcfs`: columns in order of arrival, rows are opened ahead; `fr-fcfs`: accesses to open rows first, then the oldest; \
                 `slots`: round robin over the requesters, one burst a slot of fixed length, rows are closed after each.",
            ),
            default(
                "turns",
                Choice(&["tile", "hart"]),
                "tile",
                "Who is a requester of `slots`. `tile`: each tile; `hart`: each hart of a cluster, and each tile without one. A line that is \
                 written back takes a turn of the hart whose fill or cache management sends it.",
            ),
            default(
                "bandwidth-blocks",
                Integer { min: 0, max: 65535 },
                "0",
                "`slots`: the memory has a bandwidth controller (CBQRI) that serves RCIDs by their shares, in windows of this many slots; 0: it has \
                 none. Some cluster has a <capacity>, whose programmer reaches the registers.",
            ),
            default(
                "cap",
                Integer { min: 1, max: 1024 },
                "4",
                "`fr-fcfs`: most bursts that may pass the oldest access of the channel while only hits of its bank, or the data bus, delay it.",
            ),
            default(
                "queue",
                Integer { min: 1, max: 1024 },
                "32",
                "Accesses that the policy sees at once (a request counts once for each row that it touches); with `slots` each requester \
                 has a queue of its own.",
            ),
            default(
                "page",
                Choice(&["open", "closed"]),
                "open",
                "`closed`: a row is closed as soon as no access in the queue needs it.",
            ),
            default(
                "write-queue",
                Integer { min: 0, max: 1024 },
                "0",
                "Bursts of writes that are acknowledged at once and written later; 0: none. Reads go first meanwhile.",
            ),
            default(
                "write-high",
                Integer { min: 0, max: 1024 },
                "0",
                "Number of bursts from which the write queue is drained.",
            ),
            default(
                "write-low",
                Integer { min: 0, max: 1024 },
                "0",
                "A drain ends here.",
            ),
            default(
                "channels",
                Integer { min: 1, max: 16 },
                "1",
                "Channels, each with its own banks and buses; a power of two.",
            ),
            default(
                "channel-map",
                SPREAD,
                "burst",
                "How addresses are interleaved over channels: `row` or `burst`; `block`: each is one part of the memory.",
            ),
            default(
                "bank-map",
                SPREAD,
                "row",
                "How addresses are interleaved over banks: `row` or `burst`; `block`: each is one part of the memory, so nothing is interleaved.",
            ),
            default(
                "xor",
                Boolean,
                "false",
                "The bank's number is combined with the low bits of the row's by exclusive or.",
            ),
            required("write-cas", CYCLES, "Write to first data (tCWL)."),
            required("row-active", CYCLES, "Activation to precharge (tRAS)."),
            required("read-to-precharge", CYCLES, "Read to precharge (tRTP)."),
            required(
                "column-gap",
                CYCLES,
                "Column access to column access (tCCD).",
            ),
            required(
                "activate-gap",
                CYCLES,
                "Activation to activation of another bank (tRRD).",
            ),
            required(
                "four-activates",
                CYCLES,
                "Window with at most four activations (tFAW).",
            ),
            required("write-to-read", CYCLES, "End of write data to read (tWTR)."),
            required(
                "read-to-write",
                CYCLES,
                "Gap on the data bus between a read and a write (tRTW).",
            ),
            SOURCE,
        ],
        children: &[any("origin")],
    },
    ElementRule {
        name: "network",
        about: "The network that joins all tiles.",
        attributes: &[
            required(
                "topology",
                Choice(&["crossbar", "star-mesh", "mesh"]),
                "`star-mesh`: several tiles at each router of a mesh.",
            ),
            default(
                "columns",
                Integer { min: 1, max: 64 },
                "1",
                "Routers in a row (meshes).",
            ),
            default(
                "rows",
                Integer { min: 1, max: 64 },
                "1",
                "Rows of routers (meshes).",
            ),
            CLOCK,
            required(
                "width",
                Size { min: 1, max: 512 },
                "Bytes that a link moves in a cycle.",
            ),
            required("link", LATENCY, "Cycles of a link."),
            required(
                "router",
                CYCLES,
                "Time of a packet's head in a router until the output link.",
            ),
            required(
                "interface",
                CYCLES,
                "Cycles of a tile's network interface, for each direction.",
            ),
            required(
                "header",
                Size { min: 1, max: 256 },
                "Bytes of a packet's header.",
            ),
            required(
                "chunk",
                Size { min: 64, max: 512 },
                "Most bytes of payload of a packet, a power of two.",
            ),
            default(
                "channels",
                Choice(&["shared", "split", "acknowledged"]),
                "shared",
                "`split`: separate networks for reads and for writes and messages; `acknowledged`: one for requests of reads, one for data, one for acknowledgements of writes (needed on meshes with local memories).",
            ),
            default(
                "read-interval",
                LATENCY,
                "1",
                "Cycles between two requests of reads on a link, at least (channels=\"acknowledged\").",
            ),
            default(
                "credits",
                Credits { max: 64 },
                "unlimited",
                "Packets that a router's input buffer has room for, one buffer for each link that comes in and each network. `unlimited`: no packet waits for room; give the reason in an <origin>.",
            ),
            SOURCE,
        ],
        children: &[any("origin")],
    },
    ElementRule {
        name: "tile",
        about: "A processing tile with one hart, or two that share caches and unit.",
        attributes: &[
            required("id", TILE, "Number on the network."),
            required("pipeline", Name, "Its pipeline."),
            optional(
                "l1i",
                Name,
                "First-level instruction cache; needed unless the tile has a local memory.",
            ),
            optional(
                "l1d",
                Name,
                "First-level data cache; needed unless the tile has a local memory.",
            ),
            optional(
                "l2",
                Name,
                "Second-level cache, private or shared by the harts of a cluster.",
            ),
            optional(
                "cluster",
                Name,
                "Several harts that share the second level, each with first levels of its own (bare platforms).",
            ),
            optional(
                "local-memory",
                Name,
                "Its local memory, in place of caches (meshes).",
            ),
            optional(
                "tcm",
                Text { max: 129 },
                "Its tightly coupled memories beside the caches (bare platforms, one hart): one or two names of <local-memory>, separated by a space. They follow each other without a gap.",
            ),
            optional("dma", Name, "Its DMA engine (meshes)."),
            default(
                "clock-offset",
                Span,
                "0ns",
                "By how much its timer is ahead when the chip starts, in whole counts, rounded down (meshes).",
            ),
            default(
                "clock-drift",
                Drift { max: 10_000 },
                "0ppm",
                "By how much its timer is faster than the timebase (meshes). The clock of its hart does not drift.",
            ),
            default(
                "count",
                Integer { min: 1, max: 4096 },
                "1",
                "Number of equal tiles; their numbers and routers are consecutive.",
            ),
            optional("dtu", Name, "Its data transfer unit (tiled platforms)."),
            optional(
                "accelerator",
                Name,
                "It has this unit instead of a hart (tiled platforms); the pipeline then has no meaning.",
            ),
            optional(
                "network-card",
                Name,
                "Its network card; the application that drives it says device=\"network-card\".",
            ),
            default(
                "router",
                TILE,
                "0",
                "The router that it is attached to (meshes).",
            ),
            default(
                "privileged",
                Boolean,
                "false",
                "Its DTU may configure other DTUs: the kernel's tile.",
            ),
            default(
                "shared",
                Boolean,
                "false",
                "Several applications may be placed on it; TileMux then gives them time slices.",
            ),
            default(
                "harts",
                HARTS,
                "1",
                "2: a second hart takes the interrupts for messages to activities that are not running (tiled platforms).",
            ),
            default("exit", Boolean, "false", "It has an exit device."),
            default("uart", Boolean, "false", "It has a console."),
            SOURCE,
        ],
        children: &[],
    },
    ENGINE,
    PERIPHERAL,
    DOORBELLS,
    ElementRule {
        name: "memory",
        about: "A memory tile.",
        attributes: &[
            required("id", TILE, "Number on the network."),
            required("dram", Name, "Its memory controller."),
            required(
                "size",
                Size {
                    min: 1 << 20,
                    max: 1 << 40,
                },
                "Bytes of memory.",
            ),
            optional(
                "second-port-of",
                NOTE,
                "Numbers of memories, separated by spaces: this memory is a second port to their bytes, in this order, and has no bytes of its own (bare platforms).",
            ),
            optional(
                "dropped-bits",
                NOTE,
                "Numbers of bits, separated by spaces: an address translator in front of it drops these bits of an address. So its window is larger, and each byte has an address for each value of the bits, for cache colours (bare platforms).",
            ),
            default(
                "router",
                TILE,
                "0",
                "The router that it is attached to (meshes).",
            ),
            SOURCE,
        ],
        children: &[],
    },
];
