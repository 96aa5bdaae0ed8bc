//! What the one-shot RTOS adds to shared elements.
//!
//! Why it exists: see the parent module. Its tasks and channels are those of task systems.

use super::Kind::{Boolean, Choice, Integer, Name, Size, Span, Text, Time};
use super::{AttributeRule, ElementRule, default, optional, required};

/// An attribute of `<system>`.
pub const PARADIGM: AttributeRule = default(
    "paradigm",
    Choice(&["tiled", "one-shot", "bare"]),
    "tiled",
    "`tiled`: the tiled OS, with <domain> and <app>. `one-shot`: the one-shot RTOS, with <task> and <channel>, on a mesh. `bare`: programs without a kernel, with <domain> and <app>.",
);
/// An attribute of `<task>`.
pub const PROGRAM: AttributeRule = optional(
    "program",
    Text { max: 1000 },
    "Only in a system of the one-shot RTOS: the folder of a Cargo package and the task's type in its library, such as `one-shot::pipeline::Stage`; or a C file and its task, such as `tasks.c::sender`; or an Ada unit and its task, such as `tasks.adb::Sender`.",
);
/// An attribute of `<task>`.
pub const STACK: AttributeRule = optional(
    "stack",
    Size {
        min: 768,
        max: 1 << 14,
    },
    "Only there: the stack that its jobs and an interrupt need. Without it, the build computes the stack, at least 1 KiB. A core's stack is the largest of its tasks' stacks.",
);
/// An attribute of `<task>`.
pub const DOMAIN: AttributeRule = optional(
    "domain",
    Name,
    "Only there: the task's domain. `audit` puts adversaries on the cores of all other domains. All tasks of a core have the same domain; without it, the system's.",
);
/// An attribute of `<task>`.
pub const IMAGE: AttributeRule = optional(
    "image",
    Size {
        min: 0,
        max: 1 << 15,
    },
    "Only there: code, constants and data that the task adds to the image of its core, for `plan`, which builds nothing; without it, 1 KiB.",
);
/// An attribute of `<task>`.
pub const HANDLERS: AttributeRule = optional(
    "handlers",
    Time,
    "Only there: the longest time of all handlers of the task's timing events that are called at one tick, without interrupts. Without it on a core that sets timing events, nothing bounds what the core does.",
);
/// An attribute of `<task>`.
pub const HANDLERS_APART: AttributeRule = optional(
    "handlers-apart",
    Time,
    "Only there: the least time between two ticks at which handlers of the task's timing events are called, a multiple of 1ms; without it, they may be called at each tick.",
);
/// An attribute of `<task>`.
pub const ARRIVALS: AttributeRule = optional(
    "arrivals",
    Choice(&["periodic", "sporadic"]),
    "Only there: `sporadic`: its jobs ask for later releases themselves, so no number of jobs is due. Without it, `run` counts periods without a job.",
);
/// An attribute of `<task>`.
pub const WAIT: AttributeRule = optional(
    "wait",
    Time,
    "Only for one-shot tasks in a parallel section: the longest time that a job waits for slices or results after it has begun the section. `cost` does not include this time.",
);
/// Also of task systems.
pub const CHANNEL: ElementRule = ElementRule {
    name: "channel",
    about: "Messages from one task to another, written at the end of a job and read at the start of one.",
    attributes: &[
        required("name", Name, "Name of the channel."),
        required("from", Name, "The task that writes."),
        required("to", Name, "The task that reads."),
        default(
            "size",
            Size {
                min: 0,
                max: 1 << 32,
            },
            "0B",
            "Bytes of a message.",
        ),
        default(
            "kind",
            Choice(&["sampling", "queue"]),
            "sampling",
            "`sampling`: the reader polls, and a newer message replaces an older one. `queue`: each job of the reader takes the oldest message.",
        ),
        default(
            "slots",
            Integer {
                min: 1,
                max: 1_000_000,
            },
            "1",
            "Places of a queue.",
        ),
        default(
            "notify",
            Boolean,
            "false",
            "Only with one-shot tasks: the writer rings the reader's doorbell, which releases the reader, so that it need not poll. Its jobs are released at least its period apart.",
        ),
        optional(
            "answers",
            Name,
            "Only with one-shot tasks: its messages are results of a parallel section. The channel that it names brings the slices from the reader to the writer.",
        ),
        optional(
            "joins",
            Name,
            "Only with one-shot tasks: it writes into the queue of the channel that it names, which has the same reader and says the size of a message and the places.",
        ),
        default(
            "transfer",
            Span,
            "0ns",
            "Longest time from the end of the writing job to the arrival of the message.",
        ),
        optional(
            "deadline",
            Time,
            "Longest time from the arrival of the writing job to the end of the reading job.",
        ),
    ],
    children: &[],
};
