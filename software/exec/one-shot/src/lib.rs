//! One-shot, non-preemptive tasks: which one is next, what a task waits for, and the ports that join cores.
//!
//! Why it exists: all decisions of the one-shot RTOS are here, as plain data in memory that the caller gives, so they run under the
//! host's tests, against a plain model, and under Miri. What it deliberately does not know: stacks, interrupts, clocks, memory of
//! other cores (ports reach it by a trait). Times are numbers of ticks.
//!
//! Model: m2os-mc-ngres21, sections 4 and 5. A task's job runs to its end and says what the task waits for next; nothing of the job
//! is kept. Tasks are numbered by urgency: 0 is the most urgent one. Among ready tasks, the most urgent runs.
//!
//! Nothing here allocates: a set of waiting tasks is one word, an alarm is one word for each task in a table of the caller's, and
//! at most one task waits for each object (as in the Ravenscar profile), so no task can fill another's queue.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod alarms;
pub mod arrivals;
pub mod clock;
pub mod events;
pub mod notice;
pub mod port;
pub mod protected;
pub mod queue;
pub mod ring;
pub mod suspension;
pub mod tagged;
pub mod tasks;
pub mod watch;

/// Number of a task: its rank by urgency, 0 first.
pub type Task = u8;

/// Most tasks of a core: a set of them is one word.
pub const TASKS: usize = 64;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod orders;
