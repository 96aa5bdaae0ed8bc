//! Local memories, and DMA engines.

use super::Kind::{Boolean, Integer, Name, Size};
use super::platform::{CLOCK, LATENCY, SOURCE, TILE};
use super::{ElementRule, any, default, optional, required};

/// See [`super::PLATFORM`].
pub const LOCAL_MEMORY: ElementRule = ElementRule {
    name: "local-memory",
    about: "A local memory of a tile, for its hart and, over the network, for all others: in place of caches on a mesh, beside caches on a bare platform.",
    attributes: &[
        required("name", Name, "Name of the memory."),
        CLOCK,
        required(
            "size",
            Size {
                min: 4096,
                max: 0xF_0000,
            },
            "Size in bytes, in whole pages of 4 KiB.",
        ),
        required(
            "banks",
            Integer { min: 1, max: 64 },
            "Banks of consecutive bytes, each a power of two from 128 B on; each serves one access a turn at a port.",
        ),
        required(
            "ports",
            Integer { min: 1, max: 2 },
            "Ports of a bank: 1, which hart and network share, or 2, one for each.",
        ),
        required(
            "width",
            Size { min: 8, max: 64 },
            "Bytes that a port moves in a cycle, a power of two.",
        ),
        required(
            "latency",
            LATENCY,
            "Cycles from the turn of a network request to its answer. The hart's own access time is the pipeline's load-to-use.",
        ),
        default(
            "fetch",
            Size { min: 16, max: 128 },
            "16B",
            "Bytes of an instruction fetch, a power of two.",
        ),
        default(
            "guard",
            Integer { min: 0, max: 1024 },
            "0",
            "Rules of the guard, which checks requests of other tiles before they take a turn at a port. A rule says which tile may read or write a range. 0: no guard; every tile may read and write everything.",
        ),
        SOURCE,
    ],
    children: &[any("origin")],
};

/// See [`super::PLATFORM`].
pub const DMA: ElementRule = ElementRule {
    name: "dma",
    about: "A kind of DMA engine. It moves data between memories while harts compute: for tiles of a mesh, or for an <engine> beside the tiles.",
    attributes: &[
        required("name", Name, "Name of the engine."),
        CLOCK,
        required(
            "channels",
            Integer { min: 1, max: 8 },
            "Channels, which take turns.",
        ),
        required(
            "outstanding",
            Integer { min: 1, max: 64 },
            "Most accesses of a channel under way, from the beginning of the read to the acknowledgement of the write.",
        ),
        required(
            "startup",
            LATENCY,
            "Cycles from a start, or from the last word of a descriptor, to the first access.",
        ),
        default(
            "burst",
            Size { min: 0, max: 512 },
            "0B",
            "Bytes of a burst, a power of two: adjacent elements travel in one burst, which crosses no multiple of its size. 0B: each element is a separate access (meshes).",
        ),
        default(
            "width",
            Size { min: 1, max: 64 },
            "8B",
            "Most bytes that the engine reads in a cycle; it can write as many in the same cycle.",
        ),
        SOURCE,
    ],
    children: &[any("origin")],
};

/// See [`super::PLATFORM`].
pub const ENGINE: ElementRule = ElementRule {
    name: "engine",
    about: "A DMA engine beside the tiles of a bare platform, at the network: all harts reach its registers, and it reaches all memories.",
    attributes: &[
        required("id", TILE, "Number on the network."),
        required("dma", Name, "Its kind."),
        required(
            "registers",
            LATENCY,
            "Cycles of the engine from the arrival of an access to a register to its answer.",
        ),
        optional(
            "interrupts",
            TILE,
            "The tile that it interrupts, which then has an interrupt controller. Without it, software polls the engine's registers.",
        ),
        default(
            "coherent",
            Boolean,
            "false",
            "Its accesses are coherent with the caches of the coherent clusters: the home agent in front of each memory asks these for every line. Its bursts are at most a line.",
        ),
        default(
            "router",
            TILE,
            "0",
            "The router that it is attached to (meshes).",
        ),
        SOURCE,
    ],
    children: &[any("origin")],
};
