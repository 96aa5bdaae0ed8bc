//! Elements of system descriptions.
//!
//! Why it exists: see the parent module.

use super::Kind::{
    Boolean, Choice, Cost, Credits, Integer, Name, Quota, RateOrNone, Size, Span, Time,
};
use super::bare::{AT, BANK, COLOUR, FILLS, HARTS, RESERVED, RINGS, TCM, WEIGHT};
use super::cable::{CABLE, PEER};
use super::one_shot::{
    ARRIVALS, CHANNEL, DOMAIN, HANDLERS, HANDLERS_APART, IMAGE, PARADIGM, PROGRAM, STACK, WAIT,
};
use super::peripheral::ATTACH;
use super::tasks::{CORE, PRIORITY, WAYS};
use super::{ChildRule, ElementRule, any, default, maybe, optional, required};

/// A sentence, a path or a file.
const TEXT: super::Kind = super::Kind::Text { max: 1000 };
/// Text that fits in a zero-terminated field of 64 bytes on the chip (`abi::boot::MODULE_NAME`,
/// `abi::environment::VALUE`).
const FIELD: super::Kind = super::Kind::Text { max: 63 };
const TILE: super::Kind = Integer { min: 0, max: 4095 };
/// A name, or a manager and a name below it.
const PLACE: super::Kind = super::Kind::Text { max: 63 };

/// The elements that a resource manager manages.
const SUBSYSTEM: &[ChildRule] = &[
    any("domain"),
    any("manager"),
    any("include"),
    any("limit"),
    maybe("cpu"),
];

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
            PARADIGM,
            default(
                "duration",
                Time,
                "100ms",
                "Longest simulated time of a run.",
            ),
            optional(
                "manager-tile",
                TILE,
                "Tile of the root resource manager; without it, the first free tile.",
            ),
            optional(
                "manager-memory",
                Size {
                    min: 1 << 16,
                    max: 1 << 29,
                },
                "Memory of the root resource manager; without it, 2 MiB, or more if the manager needs that to read the description.",
            ),
            optional(
                "host",
                TILE,
                "A tile without tasks, whose core loads and starts the others and shows their consoles (one-shot RTOS); without it, the loader of the run does.",
            ),
            optional("about", TEXT, "What the system shows, in one sentence."),
        ],
        children: &[
            maybe("platform"),
            any("domain"),
            any("manager"),
            any("include"),
            any("tilemux"),
            any("module"),
            any("cable"),
            maybe("peer"),
            any("task"),
            any("channel"),
            any("flow"),
            any("variant"),
        ],
    },
    ElementRule {
        name: "module",
        about: "Data of the host that applications read: a file, or a folder as an image for the file service.",
        attributes: &[
            required("name", Name, "Name of the module."),
            optional("file", TEXT, "A file, relative to the description."),
            optional(
                "folder",
                TEXT,
                "A folder, relative to the description: becomes an image of the file service's format.",
            ),
            optional(
                "size",
                Size {
                    min: 1 << 16,
                    max: 1 << 29,
                },
                "Bytes of a folder's image.",
            ),
            optional(
                "for",
                TEXT,
                "Who may use it: names of applications, domains or managers; without it, everybody.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "tilemux",
        about: "The multiplexer of a tile: lets applications share the tile, by a policy.",
        attributes: &[
            required("tile", TILE, "The tile."),
            default(
                "policy",
                Choice(&["throughput", "realtime"]),
                "throughput",
                "`throughput`: time slices for all applications in turn. `realtime`: fixed priorities; applications without <cpu> come last.",
            ),
            default(
                "slice",
                Time,
                "1ms",
                "Time slice of applications with equal rank: 10us to 1s.",
            ),
            optional(
                "for",
                TEXT,
                "Who may be on the tile: names of applications, domains or managers; without it, everybody.",
            ),
        ],
        children: &[],
    },
    CABLE,
    PEER,
    ElementRule {
        name: "include",
        about: "Puts the <domain> or <manager> of another file here.",
        attributes: &[
            required("file", TEXT, "The file, relative to this one."),
            optional(
                "as",
                Name,
                "Another name for the included domain or manager, so that one file can be included twice.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "manager",
        about: "A resource manager for a subsystem, below the manager around it.",
        attributes: &[
            required("name", Name, "Name of the manager."),
            optional("tile", TILE, "Its tile; without it, the first free tile."),
            default("program", FIELD, "tiled/resmgr", "Its program."),
            optional(
                "memory",
                Size {
                    min: 1 << 16,
                    max: 1 << 29,
                },
                "Its memory; without it, 2 MiB, or more if the manager needs that to read its part of the description.",
            ),
        ],
        children: SUBSYSTEM,
    },
    ElementRule {
        name: "domain",
        about: "A group of related applications with the same criticality.",
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
            optional(
                "tile",
                TILE,
                "Its tile; without it, the first free tile, or, if none is free, the shared tile with the fewest applications.",
            ),
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
                "stack",
                Size {
                    min: 1 << 12,
                    max: 1 << 28,
                },
                "The part of that memory for its stack; without it, 16 KiB, or a quarter of the memory if that is less.",
            ),
            optional(
                "memory-tile",
                TILE,
                "Memory tile that its memory comes from; without it, the first one with room.",
            ),
            default(
                "background",
                Boolean,
                "false",
                "The run does not wait for it: a run ends when every other application has ended. If all are in the background, the run lasts for its whole duration.",
            ),
            optional(
                "device",
                Choice(&["network-card"]),
                "The device of its tile that it drives; nobody else gets the device. Interrupts arrive as messages at the receive gate `interrupt`.",
            ),
            default(
                "heap",
                Choice(&["eager", "lazy"]),
                "eager",
                "When the pages of its heap are mapped: all when it starts, or each at its first use, which then takes a page fault.",
            ),
            optional(
                "pager",
                PLACE,
                "The application of the same manager that provides the pages of its heap on first use, such as `tiled/pager`. The pager has the receive gate `faults`.",
            ),
            HARTS,
            AT,
            BANK,
            FILLS,
            RESERVED,
            WEIGHT,
            TCM,
            RINGS,
            COLOUR,
        ],
        children: &[
            any("argument"),
            any("attach"),
            maybe("limit"),
            maybe("cpu"),
            maybe("task"),
            any("service"),
            any("rgate"),
            any("sgate"),
            any("session"),
            any("mgate"),
        ],
    },
    ElementRule {
        name: "service",
        about: "The application serves others: they may open sessions at its gates `priority-0`, `priority-1`, .... If an application has several services, all but one need a name.",
        attributes: &[
            optional(
                "name",
                Name,
                "Name of the service. Its gates are then `NAME-priority-0`, ....",
            ),
            default(
                "sessions",
                Integer { min: 1, max: 64 },
                "16",
                "Most sessions at each of its gates.",
            ),
            default(
                "scope",
                Choice(&["manager", "system"]),
                "manager",
                "Who may open sessions: applications of its manager and of managers below, or everybody.",
            ),
            default(
                "restart",
                Choice(&["never", "on-failure"]),
                "never",
                "Whether its manager restarts the application when it stops with an exit code other than 0; its sessions end, and clients open new ones.",
            ),
            default(
                "restarts",
                Integer { min: 1, max: 1000 },
                "3",
                "Most restarts.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "session",
        about: "A session with a service: a send gate to its gate of a priority, and the right to open a session. The service starts first.",
        attributes: &[
            required("name", Name, "Name of the session."),
            required(
                "to",
                PLACE,
                "The application with the <service>; MANAGER.APP if several have this name.",
            ),
            optional(
                "service",
                Name,
                "Which of its services; without it, the one without a name, or the only one.",
            ),
            default(
                "priority",
                Integer { min: 0, max: 7 },
                "0",
                "Number of the gate: 0 is served first.",
            ),
            default(
                "credits",
                Integer { min: 1, max: 32 },
                "1",
                "Most requests under way.",
            ),
            optional(
                "label",
                Integer {
                    min: 0,
                    max: u64::MAX,
                },
                "Number that the service sees in each request; without it, the senders of a gate are numbered from 0.",
            ),
            default(
                "patience",
                Time,
                "50ms",
                "How long the application waits, before its start, for the service to be offered. The time begins when the service's application runs; below another manager, with the last message about it. When the time is over, the application is not started.",
            ),
        ],
        children: &[],
    },
    ATTACH,
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
        about: "Bounds what an application may use, or what everything below a manager may use together.",
        attributes: &[
            default(
                "noc",
                RateOrNone,
                "none",
                "Traffic: messages, transfers and cache lines, in whole blocks of 64 bytes. The rate of the token bucket, or `none`. Below a manager: on each of its tiles.",
            ),
            default(
                "burst",
                Size {
                    min: 64,
                    max: 1 << 32,
                },
                "4KiB",
                "Bytes that the token bucket can hold; at least one chunk of the network.",
            ),
            optional(
                "endpoints",
                Integer { min: 1, max: 4096 },
                "Endpoints of the tile's unit; below a manager: on each of its tiles.",
            ),
            optional(
                "page-tables",
                Integer {
                    min: 1,
                    max: 65_535,
                },
                "Pages for page tables; below a manager: on each of its tiles.",
            ),
            optional(
                "activities",
                Integer { min: 1, max: 16 },
                "Places for activities on the tile: its own and those that it creates itself; below a manager: on each of its tiles. Without it, unclaimed places are divided equally.",
            ),
            optional(
                "kernel-memory",
                Size {
                    min: 0,
                    max: 1 << 29,
                },
                "Kernel memory for the objects that it causes. `0B` for an application: it has no kernel memory of its own and takes from its manager's.",
            ),
            optional(
                "memory",
                Size {
                    min: 1,
                    max: 1 << 40,
                },
                "Only for a manager: memory of all applications and memory gates below it.",
            ),
            optional(
                "tile",
                TILE,
                "Only for a manager: the limits on traffic, endpoints and page tables apply to this tile only.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "cpu",
        about: "Bounds the computing time of the application, of everything below the manager on each of its tiles, or of the task in a task system.",
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
                "On a tile with fixed priorities: greater is more urgent. If no application of the tile has one, a shorter deadline of the <task> (without one: a shorter period) is more urgent. For a manager: the highest priority below it; without it, the highest of the applications there.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "task",
        about: "Periodic work: of an application, or by itself in a task system.",
        attributes: &[
            optional(
                "name",
                Name,
                "Its name: needed in a task system; inside <app>, the application's.",
            ),
            PROGRAM,
            STACK,
            IMAGE,
            HANDLERS,
            HANDLERS_APART,
            ARRIVALS,
            DOMAIN,
            WAIT,
            required("period", Time, "Minimum inter-arrival time."),
            optional(
                "deadline",
                Time,
                "Longest time from arrival to completion, release jitter included; without it, the period.",
            ),
            optional(
                "cost",
                Cost,
                "WCET: longest computing time of a job, alone. <cost> elements replace it for the levels that they name, with any number of ways, and for every level if one of them names none.",
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
            default(
                "jitter",
                Span,
                "0ns",
                "Release jitter: longest time from arrival to release.",
            ),
            default(
                "offset",
                Span,
                "0ns",
                "First arrival. Counts only if arrivals are periodic (see <processors>); other bounds hold for any offset.",
            ),
            default(
                "blocking",
                Span,
                "0ns",
                "Blocking: longest time that tasks of lower priority may delay it, besides <section> elements.",
            ),
            optional(
                "criticality",
                Choice(&["A", "B", "C", "D", "E"]),
                "A is the most critical. Without it: C in a task system; inside <app>, the domain's.",
            ),
            optional(
                "core",
                CORE,
                "Its processor; without it, `plan` chooses. Inside <app>, the tile decides.",
            ),
            optional(
                "priority",
                PRIORITY,
                "1 goes first. Either all tasks have one or none; without them, `plan` chooses.",
            ),
            optional(
                "threshold",
                PRIORITY,
                "Preemption threshold: once started, only priorities before this number preempt it; at most its own priority.",
            ),
            default(
                "tardiness",
                Span,
                "0ns",
                "How late a job may complete under policies that bound tardiness; 0 accepts any bound.",
            ),
            default(
                "working-set",
                Size {
                    min: 0,
                    max: 1 << 40,
                },
                "0B",
                "Bytes of the cache that it uses repeatedly.",
            ),
            default(
                "load",
                Span,
                "0ns",
                "DMA time to copy in the data of an execution phase, alone.",
            ),
            default(
                "unload",
                Span,
                "0ns",
                "DMA time to copy out its results, alone.",
            ),
            default(
                "accesses",
                Integer {
                    min: 0,
                    max: 1 << 40,
                },
                "0",
                "Most memory accesses of a job.",
            ),
            default(
                "memory-phase",
                Span,
                "0ns",
                "The part of its cost during which it holds the <memory-mutex>.",
            ),
        ],
        children: &[any("cost"), any("section"), maybe("cpu")],
    },
    CHANNEL,
    ElementRule {
        name: "cost",
        about: "Computing time of a job as one level estimates it, or with a given number of ways of the last-level cache.",
        attributes: &[
            optional(
                "level",
                Choice(&["A", "B", "C"]),
                "The level of this estimate; without it, every level.",
            ),
            optional(
                "ways",
                WAYS,
                "The least number of ways for which the estimate is valid; without it, any number.",
            ),
            required("time", Cost, "The computing time."),
        ],
        children: &[],
    },
    ElementRule {
        name: "section",
        about: "A critical section: while the task holds the resource, no other task does (priority ceiling protocol).",
        attributes: &[
            required(
                "resource",
                Name,
                "The resource; the same name is the same resource.",
            ),
            required("length", Time, "Longest time that the task holds it."),
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
            optional(
                "global",
                Name,
                "A global name: others can send to the gate without knowing the application. If several gates have the name, a sender gets the nearest one in the managers around it.",
            ),
            default(
                "scope",
                Choice(&["manager", "system"]),
                "system",
                "Who may send to it: applications of its manager and of managers below, or everybody.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "sgate",
        about: "Sends messages to a receive gate of another application.",
        attributes: &[
            required("name", Name, "Name of the gate."),
            optional(
                "to",
                PLACE,
                "The application that receives; MANAGER.APP if several have this name.",
            ),
            optional(
                "global",
                Name,
                "Instead of `to` and `gate`: the global name of a receive gate.",
            ),
            optional(
                "gate",
                Name,
                "The receiver's gate; may be left out if it has only one.",
            ),
            default(
                "credits",
                Credits { max: 32 },
                "1",
                "Most messages under way; a reply returns the credit. `unlimited`: not counted, so this sender alone can fill the receiver's buffer.",
            ),
            optional(
                "label",
                Integer {
                    min: 0,
                    max: u64::MAX,
                },
                "Number that the receiver sees in each message; without it, the senders of a gate are numbered from 0.",
            ),
            default(
                "patience",
                Time,
                "50ms",
                "How long the application waits, before its start, for the gate if another manager makes it. The time begins when its own manager has started everything else, and again with each message about the receiver. When the time is over, the application is not started.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "mgate",
        about: "A region of memory for transfers.",
        attributes: &[
            required("name", Name, "Name of the gate."),
            optional(
                "size",
                Size {
                    min: 64,
                    max: 1 << 29,
                },
                "Bytes of the region, rounded up to pages of 4KiB. May be left out with `module`; the region then holds the whole module.",
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
                "Memory tile that holds it; without it, the first one with room.",
            ),
            optional(
                "of",
                super::Kind::Text { max: 130 },
                "APP/GATE: the gate has no region of its own, but covers the start of that memory gate's region.",
            ),
            default(
                "scope",
                Choice(&["manager", "system"]),
                "manager",
                "Who may share its region with `of`: applications of its manager and of managers below, or everybody.",
            ),
            optional(
                "module",
                Name,
                "The gate has no region of its own, but covers this <module>, shared by all gates that name it; rights=\"r\".",
            ),
            optional(
                "fill",
                Name,
                "The region begins with the contents of this <module>.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "flow",
        about: "A chain of work over several applications whose latency is measured (markers FlowBegin and FlowEnd); in a task system, over tasks along channels.",
        attributes: &[
            required("name", Name, "Name of the flow."),
            required("from", PLACE, "The application or task where it begins."),
            required("to", PLACE, "The application or task where it ends."),
            optional("deadline", Time, "Longest time from begin to end."),
        ],
        children: &[],
    },
    ElementRule {
        name: "variant",
        about: "A run of the system with changes. A system without variants runs once, as it is.",
        attributes: &[
            required("name", Name, "Name of the variant."),
            optional("about", TEXT, "What it shows, in one sentence."),
            optional(
                "misses",
                Choice(&["any"]),
                "`any`: the variant shows how deadlines are missed. Its misses, and its bounds above deadlines, are reported and do not fail the run.",
            ),
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
