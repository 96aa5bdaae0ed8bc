//! The elements of peripherals beside the tiles, and of programs that use them.

use super::Kind::{Boolean, Choice, Integer, Name, Rate, Size, Span, Text, Time};
use super::mesh::ENGINE;
use super::platform::{CLOCK, LATENCY, SOURCE, TILE};
use super::{ElementRule, default, optional, required};

/// See [`super::PLATFORM`].
pub const PERIPHERAL: ElementRule = ElementRule {
    name: "peripheral",
    about: "A device beside the tiles of a bare platform that creates traffic: storage, camera, or streaming accelerator. A program uses it with <attach>.",
    attributes: &[
        required("id", TILE, "Number on the network."),
        required("name", Name, "Its name."),
        required(
            "kind",
            Choice(&["storage", "camera", "accelerator"]),
            "`storage`: blocks, which it copies into memory and out of it. `camera`: frames, in packets. `accelerator`: reads a buffer, computes, and writes another one.",
        ),
        CLOCK,
        required(
            "rate",
            Rate,
            "The highest rate at which it reads from memory, and at which it writes to it.",
        ),
        required(
            "bucket",
            Size {
                min: 8,
                max: 1 << 20,
            },
            "Bytes that it may move at once after a rest; at least a burst.",
        ),
        required(
            "burst",
            Size { min: 8, max: 512 },
            "Bytes of its longest access, a power of two.",
        ),
        required(
            "outstanding",
            Integer { min: 1, max: 64 },
            "Most accesses under way.",
        ),
        required(
            "startup",
            LATENCY,
            "Cycles from the beginning of a command to its first access.",
        ),
        required(
            "queue",
            Integer { min: 1, max: 256 },
            "Most commands that are not finished; of a camera, packets.",
        ),
        required(
            "registers",
            LATENCY,
            "Cycles from the arrival of an access to a register to its answer.",
        ),
        optional(
            "interrupts",
            TILE,
            "The tile that it interrupts, which then has an interrupt controller. Without it, software polls the registers.",
        ),
        default(
            "coherent",
            Boolean,
            "false",
            "Its accesses are coherent with the caches of the coherent clusters: the home agent in front of each memory asks these for every line. Its bursts are at most a line.",
        ),
        optional(
            "block",
            Size { min: 8, max: 65536 },
            "Of storage: bytes of a block, a power of two.",
        ),
        optional(
            "size",
            Size {
                min: 8,
                max: 64 << 20,
            },
            "Of storage: bytes of its content, whole blocks.",
        ),
        optional(
            "period",
            Time,
            "Of a camera: from the beginning of a frame to the beginning of the next one.",
        ),
        optional(
            "lines",
            Integer { min: 1, max: 65536 },
            "Of a camera: packets of a frame.",
        ),
        optional(
            "packet",
            Size {
                min: 16,
                max: 65536,
            },
            "Of a camera: bytes of a packet, a multiple of eight.",
        ),
        optional(
            "gap",
            Span,
            "Of a camera: from the beginning of a packet to the beginning of the next one of its frame.",
        ),
        optional(
            "compute",
            Rate,
            "Of an accelerator: the rate at which it processes data.",
        ),
        default(
            "seed",
            Integer {
                min: 0,
                max: u64::MAX,
            },
            "1",
            "Of storage and camera: the seed from which the content is generated.",
        ),
        default(
            "router",
            TILE,
            "0",
            "The router that it is attached to (meshes).",
        ),
        SOURCE,
    ],
    children: ENGINE.children,
};

/// See [`super::PLATFORM`].
pub const DOORBELLS: ElementRule = ElementRule {
    name: "doorbells",
    about: "By which harts of different tiles of a bare platform interrupt each other. A program rings those of others with `rings`. Every tile then has an interrupt controller.",
    attributes: &[
        required("id", TILE, "Number on the network."),
        CLOCK,
        required(
            "registers",
            LATENCY,
            "Cycles from the arrival of an access to its effect and its answer.",
        ),
        default(
            "router",
            TILE,
            "0",
            "The router that they are attached to (meshes).",
        ),
        SOURCE,
    ],
    children: ENGINE.children,
};

/// See [`super::SYSTEM`]: in an `<app>`.
pub const ATTACH: ElementRule = ElementRule {
    name: "attach",
    about: "Gives a peripheral to a program without a kernel: only its harts reach the registers, and the device reaches only its memory.",
    attributes: &[
        required("peripheral", Name, "Name of the peripheral."),
        optional(
            "file",
            Text { max: 255 },
            "Of storage: a file with its content, relative to the description. The rest is 0. Without a file, the content is generated from the seed.",
        ),
    ],
    children: &[],
};
