//! The element of a cluster of harts.

use super::Kind::{Boolean, Choice, Integer, Name};
use super::platform::{CYCLES, LATENCY, SOURCE};
use super::{ElementRule, any, default, maybe, optional, required};

/// See [`super::PLATFORM`].
pub const CLUSTER: ElementRule = ElementRule {
    name: "cluster",
    about: "Harts of a tile whose first levels are kept coherent by a directory at the second level, which they share. Cycles are those of the tile's pipeline.",
    attributes: &[
        required("name", Name, "Name of the cluster."),
        required(
            "harts",
            Integer { min: 1, max: 8 },
            "Number of harts; they are numbered from 0.",
        ),
        required(
            "up",
            LATENCY,
            "Cycles from a first level to the second level; the cache's `latency` is the cost of the look-up itself.",
        ),
        required("down", LATENCY, "From the second level to a first level."),
        required(
            "banks",
            Integer { min: 1, max: 64 },
            "Banks of the second level, a power of two; lines that follow each other are in different ones.",
        ),
        required(
            "occupancy",
            CYCLES,
            "Cycles for which a request occupies its bank.",
        ),
        required(
            "hold",
            LATENCY,
            "Cycles after a load-reserved for which it holds its line against other harts.",
        ),
        default(
            "miss-registers",
            Choice(&["shared", "hart"]),
            "shared",
            "Which harts may use the miss registers of the second level. `shared`: any hart takes any free one; `hart`: each hart has an equal part of its own.",
        ),
        default(
            "coherent",
            Boolean,
            "false",
            "Its caches are coherent with those of all other clusters that say so: in front of each memory, a home agent asks the others before it answers. Such clusters have lines of one length and fetch no lines ahead, and no memory of the chip has a second port or drops address bits.",
        ),
        SOURCE,
    ],
    children: &[
        any("core"),
        any("partition"),
        maybe("capacity"),
        any("origin"),
    ],
};

/// See [`super::PLATFORM`].
pub const CORE: ElementRule = ElementRule {
    name: "core",
    about: "A hart of a cluster whose kind differs from the tile's. Its lines are as long as those of the second level; the latencies of the cluster and the second level stay in cycles of the tile's pipeline.",
    attributes: &[
        required("hart", Integer { min: 0, max: 7 }, "The hart."),
        required("pipeline", Name, "Its pipeline."),
        required("l1i", Name, "Its first-level instruction cache."),
        required("l1d", Name, "Its first-level data cache."),
    ],
    children: &[],
};

/// See [`super::PLATFORM`].
pub const PARTITION: ElementRule = ElementRule {
    name: "partition",
    about: "The ways of the second level that fills of a hart may take when the machine starts; its accesses hit in all ways. Fills of a hart without a partition take any way.",
    attributes: &[
        required("hart", Integer { min: 0, max: 7 }, "The hart."),
        required("first", Integer { min: 0, max: 63 }, "The first way."),
        required(
            "ways",
            Integer { min: 1, max: 64 },
            "Number of consecutive ways.",
        ),
        optional(
            "reserved",
            Integer { min: 1, max: 65535 },
            "Slots of each window that the hart has before others when the machine starts, in each memory with `bandwidth-blocks`; without it, none.",
        ),
        optional(
            "weight",
            Integer { min: 0, max: 255 },
            "Its weight for the other slots there when the machine starts; 0: it has no other slots. Without it, 1.",
        ),
    ],
    children: &[],
};

const IDENTIFIERS: super::Kind = Integer { min: 1, max: 256 };

/// See [`super::PLATFORM`].
pub const CAPACITY: ElementRule = ElementRule {
    name: "capacity",
    about: "The second level has a capacity controller (CBQRI) instead of lockdown registers, and the harts have the register `srmcfg` (Ssqosid). A hart with a <partition> has its number plus 1 as its only RCID.",
    attributes: &[
        required(
            "rcids",
            IDENTIFIERS,
            "Resource-control identifiers, numbered from 0; a power of two.",
        ),
        required(
            "mcids",
            IDENTIFIERS,
            "Monitoring-counter identifiers, numbered from 0; a power of two.",
        ),
        optional(
            "programmer",
            Integer { min: 0, max: 7 },
            "The only hart that reaches the controller's registers; without it, all do.",
        ),
        SOURCE,
    ],
    children: &[any("origin")],
};
