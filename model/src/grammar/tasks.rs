//! Elements of task systems: tasks, the processors that they share, and the other resources that they compete for.
//!
//! Why it exists: see the parent module. `<task>`, `<cost>` and `<section>` also occur in systems, so that there is one task model; the
//! table of systems has them.

use super::Kind::{Boolean, Choice, Frequency, Integer, Name, Rate, Size, Span, Time};
use super::{ElementRule, any, default, maybe, once, optional, required, some};

/// A sentence.
const TEXT: super::Kind = super::Kind::Text { max: 1000 };
/// Number of a processor.
pub const CORE: super::Kind = Integer { min: 0, max: 1023 };
/// A priority: 1 goes first.
pub const PRIORITY: super::Kind = Integer {
    min: 1,
    max: 1_000_000,
};
/// Number of cache ways.
pub const WAYS: super::Kind = Integer { min: 0, max: 1024 };

/// How processors choose what runs.
pub const POLICIES: &[&str] = &[
    "fixed-priority",
    "threshold",
    "non-preemptive",
    "edf",
    "rate-monotonic",
    "table",
    "global-fixed-priority",
    "global-edf",
    "global-edf-soft",
    "mc2",
    "three-phase",
    "one-shot",
    "time-slice",
];

/// See [`super::TASKS`].
pub const ELEMENTS: &[ElementRule] = &[
    ElementRule {
        name: "task-system",
        about: "Tasks and the processors that they share, without a chip and without programs: for `bulkhead check` and `bulkhead plan`.",
        attributes: &[
            required("name", Name, "Name of the task system."),
            optional("about", TEXT, "What it shows, in one sentence."),
        ],
        children: &[
            once("processors"),
            maybe("overheads"),
            maybe("llc"),
            maybe("ram"),
            maybe("memguard"),
            maybe("memory-mutex"),
            maybe("tdma"),
            any("share"),
            some("task"),
            any("channel"),
            any("device"),
            any("flow"),
            any("table"),
        ],
    },
    ElementRule {
        name: "processors",
        about: "Identical processors, and how they choose the task that runs.",
        attributes: &[
            default(
                "count",
                Integer { min: 1, max: 1024 },
                "1",
                "Number of processors.",
            ),
            required(
                "policy",
                Choice(POLICIES),
                "Which task runs when; see the policies in the tutorial on task systems.",
            ),
            default(
                "arrivals",
                Choice(&["sporadic", "periodic"]),
                "sporadic",
                "`sporadic`: periods are minimum inter-arrival times, and bounds hold for any offsets. `periodic`: the k-th job of a task arrives exactly k periods after its offset, and bounds use that where they can.",
            ),
            optional(
                "frequency",
                Frequency,
                "Their clock; needed if costs are given in cycles.",
            ),
            default(
                "slice",
                Time,
                "1ms",
                "Longest time that a task runs while others wait, with policy `time-slice`.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "overheads",
        about: "Overheads of the kernel. A job pays for two scheduling decisions, and with time slices and tables for one in each turn; at level C of `mc2` also for one on each further processor. A release interrupts the job that runs on its processor, even a more urgent one. Each interrupt of a device pays for its entry.",
        attributes: &[
            default(
                "schedule",
                Span,
                "0ns",
                "A scheduling decision with its context switch.",
            ),
            default(
                "release",
                Span,
                "0ns",
                "The release of a job, including a scheduling decision that changes nothing.",
            ),
            default("interrupt", Span, "0ns", "Entry and exit of an interrupt."),
        ],
        children: &[],
    },
    ElementRule {
        name: "llc",
        about: "The last-level cache, divided among processors by ways, by page colours or by both.",
        attributes: &[
            default("ways", WAYS, "0", "Ways that may be assigned."),
            default(
                "colours",
                Integer { min: 0, max: 4096 },
                "0",
                "Page colours that may be assigned.",
            ),
            optional(
                "colour-size",
                Size {
                    min: 1,
                    max: 1 << 40,
                },
                "Bytes of cache behind one colour; needed with colours.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "ram",
        about: "The main memory.",
        attributes: &[
            default(
                "banks",
                Integer { min: 0, max: 1024 },
                "0",
                "Banks that may be assigned, each to one processor alone.",
            ),
            optional(
                "bandwidth",
                Rate,
                "Bytes a second that it carries in the worst case, for all devices together.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "memguard",
        about: "Bandwidth regulation by counting accesses: a processor that has used up its budget stalls until the period ends.",
        attributes: &[
            required("period", Time, "Period of regulation."),
            required("access", Span, "Shortest time of one memory access."),
            optional(
                "accesses",
                Integer {
                    min: 1,
                    max: 1 << 40,
                },
                "Accesses that the memory guarantees in a period to all processors together.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "memory-mutex",
        about: "A lock that lets one processor at a time run a memory phase (PREM).",
        attributes: &[default(
            "order",
            Choice(&["fifo", "core"]),
            "fifo",
            "`fifo`: in the order of requests; `core`: the lowest processor number first.",
        )],
        children: &[],
    },
    ElementRule {
        name: "tdma",
        about: "One DMA engine for all processors, in slots that repeat in rounds (three-phase tasks).",
        attributes: &[default(
            "overhead",
            Span,
            "0ns",
            "Part of each slot in which nothing is transferred, for programming the engine.",
        )],
        children: &[],
    },
    ElementRule {
        name: "share",
        about: "The private resources of a processor; without `core`, those of level C together. `plan` chooses whatever is left out.",
        attributes: &[
            optional("core", CORE, "The processor."),
            optional("ways", WAYS, "Ways of the last-level cache."),
            optional(
                "colours",
                Integer { min: 0, max: 4096 },
                "Page colours of the last-level cache.",
            ),
            optional("banks", Integer { min: 0, max: 1024 }, "Memory banks."),
            optional(
                "budget",
                Integer {
                    min: 1,
                    max: 1 << 40,
                },
                "Memory accesses in a period of <memguard>.",
            ),
            optional(
                "slot",
                Time,
                "Slot of the DMA engine, its overhead included.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "device",
        about: "A device that moves data or interrupts a processor.",
        attributes: &[
            required("name", Name, "Name of the device."),
            optional("rate", Rate, "Most bytes a second that it moves."),
            default(
                "direction",
                Choice(&["in", "out", "both"]),
                "both",
                "`in`: to memory; `out`: from memory; `both`: each at its rate.",
            ),
            default(
                "copied",
                Boolean,
                "false",
                "Its data is also copied between a buffer of the kernel and the task. The copy reads and writes everything, so the rate counts three times.",
            ),
            optional(
                "interrupt-period",
                Time,
                "Minimum time between its interrupts.",
            ),
            optional("interrupt-cost", Time, "Longest run time of the handler."),
            optional("core", CORE, "The processor that handles its interrupts."),
            optional("task", Name, "The task that it serves."),
            optional(
                "buffer",
                Size {
                    min: 1,
                    max: 1 << 40,
                },
                "Bytes that it can hold until the task takes them.",
            ),
        ],
        children: &[],
    },
    ElementRule {
        name: "table",
        about: "The time-triggered table of a processor. It repeats for ever.",
        attributes: &[
            required("core", CORE, "The processor."),
            required("length", Time, "Its length, a multiple of all periods."),
        ],
        children: &[any("slot")],
    },
    ElementRule {
        name: "slot",
        about: "A part of a table in which a task runs.",
        attributes: &[
            required("task", Name, "The task."),
            required(
                "start",
                Span,
                "When it begins, counted from the start of the table.",
            ),
            required("length", Time, "How long it runs."),
        ],
        children: &[],
    },
];
