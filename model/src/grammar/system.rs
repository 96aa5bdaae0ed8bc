//! Elements of system descriptions.
//!
//! Why it exists: see the parent module.

use super::Kind::{Boolean, Choice, Cost, Integer, Name, Quota, Rate, Size, Time};
use super::{ChildRule, ElementRule, any, default, maybe, optional, required};

/// A sentence, a path or a file.
const TEXT: super::Kind = super::Kind::Text { max: 1000 };
/// What a zero-terminated field of 64 bytes on the chip holds (`abi::boot::MODULE_NAME`, `abi::environment::VALUE`).
const FIELD: super::Kind = super::Kind::Text { max: 63 };
const TILE: super::Kind = Integer { min: 0, max: 4095 };

/// What a resource manager looks after.
const SUBSYSTEM: &[ChildRule] = &[any("domain"), any("manager"), any("include")];

/// See [`super::SYSTEM`].
pub const ELEMENTS: &[ElementRule] = &[
    ElementRule {
        name: "system",
        about: "The software of a chip: what runs where, who may talk to whom, and within which limits.",
        attributes: &[
            required("name", Name, "Name of the system."),
            optional(
                "platform",
                TEXT,
                "Name of a platform of the catalog, or a file (`./chip.xml`); or put a <platform> inside.",
            ),
            default(
                "duration",
                Time,
                "100ms",
                "Simulated time of a run at most.",
            ),
            optional(
                "manager-tile",
                TILE,
                "Tile of the root resource manager; without it, the first free tile.",
            ),
            default(
                "manager-memory",
                Size {
                    min: 1 << 16,
                    max: 1 << 29,
                },
                "2MiB",
                "Memory of the root resource manager.",
            ),
            optional("about", TEXT, "What the system shows, in one sentence."),
        ],
        children: &[
            maybe("platform"),
            any("domain"),
            any("manager"),
            any("include"),
            any("tilemux"),
            any("flow"),
            any("variant"),
        ],
    },
    ElementRule {
        name: "tilemux",
        about: "The multiplexer of a tile: lets applications share the tile, and says how.",
        attributes: &[
            required("tile", TILE, "The tile."),
            default(
                "policy",
                Choice(&["throughput", "realtime"]),
                "throughput",
                "`throughput`: time slices for everybody in turn. `realtime`: fixed priorities; applications without <cpu> come last.",
            ),
            default(
                "slice",
                Time,
                "1ms",
                "Time slice for those of equal rank: 10us to 1s.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "include",
        about: "Puts the <domain> or <manager> of another file here.",
        attributes: &[required("file", TEXT, "The file, relative to this one.")],
        children: &[],
    },
    ElementRule {
        name: "manager",
        about: "A resource manager for a subsystem, below the manager around it.",
        attributes: &[
            required("name", Name, "Name of the manager."),
            optional("tile", TILE, "Its tile; without it, the first free tile."),
            default("program", FIELD, "tiled/resmgr", "Its program."),
            default(
                "memory",
                Size {
                    min: 1 << 16,
                    max: 1 << 29,
                },
                "2MiB",
                "Its memory.",
            ),
        ],
        children: SUBSYSTEM,
    },
    ElementRule {
        name: "domain",
        about: "Applications of one criticality that belong together.",
        attributes: &[
            required("name", Name, "Name of the domain."),
            default(
                "criticality",
                Choice(&["A", "B", "C", "D", "E"]),
                "E",
                "A is the most critical.",
            ),
        ],
        children: &[any("app")],
    },
    ElementRule {
        name: "app",
        about: "An application.",
        attributes: &[
            required("name", Name, "Name of the application."),
            optional("tile", TILE, "Its tile; without it, the first free tile."),
            required("program", FIELD, "Its program, such as `control/sensor`."),
            default(
                "memory",
                Size {
                    min: 1 << 14,
                    max: 1 << 29,
                },
                "256KiB",
                "Memory for its image, stack, heap and receive buffers.",
            ),
            optional(
                "memory-tile",
                TILE,
                "Memory tile that its memory comes from; without it, the first that has room.",
            ),
            default(
                "background",
                Boolean,
                "false",
                "The run does not wait for it: a run ends when every other application has ended.",
            ),
        ],
        children: &[
            any("argument"),
            maybe("limit"),
            maybe("cpu"),
            maybe("task"),
            any("rgate"),
            any("sgate"),
            any("mgate"),
        ],
    },
    ElementRule {
        name: "argument",
        about: "A value that the application can ask for by name.",
        attributes: &[
            required("name", Name, "Its name."),
            required("value", FIELD, "Its value."),
        ],
        children: &[],
    },
    ElementRule {
        name: "limit",
        about: "Bounds the traffic of the application: messages, transfers and cache misses.",
        attributes: &[
            required("noc", Rate, "Rate of its token bucket, or `none`."),
            default(
                "burst",
                Size {
                    min: 64,
                    max: 1 << 32,
                },
                "4KiB",
                "Bytes that the token bucket can hold; at least one chunk of the network.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "cpu",
        about: "Bounds the computing time of the application.",
        attributes: &[
            required(
                "quota",
                Quota,
                "Time in each period, or a percentage of the period.",
            ),
            default("period", Time, "10ms", "The period."),
            optional(
                "priority",
                Integer { min: 1, max: 250 },
                "On a tile with fixed priorities: greater is more urgent. Without any on the tile, the shorter the deadline of the <task> (without one: the period), the more urgent.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "task",
        about: "What the application does periodically.",
        attributes: &[
            required("period", Time, "Distance of releases."),
            optional(
                "deadline",
                Time,
                "From release to completion at most; without it, the period.",
            ),
            optional(
                "cost",
                Cost,
                "Computing time of a job in the worst case, alone.",
            ),
            default(
                "misses",
                Integer {
                    min: 0,
                    max: 1_000_000,
                },
                "0",
                "Deadlines that may be missed in a run before it counts as failed.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "rgate",
        about: "Receives messages.",
        attributes: &[
            required("name", Name, "Name of the gate."),
            default(
                "slots",
                Integer { min: 1, max: 32 },
                "4",
                "Messages that it holds.",
            ),
            default(
                "slot-size",
                Size {
                    min: 0,
                    max: 1 << 32,
                },
                "256B",
                "Bytes of a message with its header of 32 bytes: a multiple of 64, at most 2KiB.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "sgate",
        about: "Sends messages to a receive gate of another application.",
        attributes: &[
            required("name", Name, "Name of the gate."),
            required("to", Name, "The application that receives."),
            optional(
                "gate",
                Name,
                "Its receive gate; may be left out if it has only one.",
            ),
            default(
                "credits",
                Integer { min: 1, max: 32 },
                "1",
                "Messages under way at most; a reply gives the credit back.",
            ),
            optional(
                "label",
                Integer {
                    min: 0,
                    max: u64::MAX,
                },
                "Number that the receiver sees in each message; without it, the senders of a gate are counted from 0.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "mgate",
        about: "A region of memory for transfers.",
        attributes: &[
            required("name", Name, "Name of the gate."),
            required(
                "size",
                Size {
                    min: 64,
                    max: 1 << 29,
                },
                "Bytes of the region; rounded up to pages of 4KiB.",
            ),
            default(
                "rights",
                Choice(&["r", "w", "rw"]),
                "rw",
                "What the application may do.",
            ),
            optional(
                "memory-tile",
                TILE,
                "Memory tile that holds it; without it, the first that has room.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "flow",
        about: "A chain of work over several applications whose latency is measured (markers FlowBegin and FlowEnd).",
        attributes: &[
            required("name", Name, "Name of the flow."),
            required("from", Name, "The application where it begins."),
            required("to", Name, "The application where it ends."),
            optional("deadline", Time, "From begin to end at most."),
        ],
        children: &[],
    },
    ElementRule {
        name: "variant",
        about: "A run of the system with changes. A system without variants runs once, as it is.",
        attributes: &[
            required("name", Name, "Name of the variant."),
            optional("about", TEXT, "What it shows, in one sentence."),
        ],
        children: &[any("without"), any("set")],
    },
    ElementRule {
        name: "without",
        about: "Leaves something out, with every gate and flow that leads to it.",
        attributes: &[
            optional("domain", Name, "A domain."),
            optional("manager", Name, "A manager with its subsystem."),
            optional("app", Name, "An application."),
        ],
        children: &[],
    },
    ElementRule {
        name: "set",
        about: "Changes values.",
        attributes: &[
            required(
                "path",
                TEXT,
                "Path of an attribute, such as `hog/limit@noc`.",
            ),
            required("value", TEXT, "The new value."),
        ],
        children: &[],
    },
];
