//! One-shot, non-preemptive tasks: who is next, what a task waits for, and the ports that join cores.
//!
//! Why it exists: all decisions of the one-shot RTOS are here, as plain data with room that the caller gives, so they run under the
//! host's tests, against a plain model, and under Miri. What it deliberately does not know: stacks, interrupts, clocks, memory of
//! other cores (ports reach it by a trait). Times are numbers of ticks.
//!
//! Model: m2os-mc-ngres21, sections 4 and 5. A task's job runs to its end and says what the task waits for next; nothing of it is kept.
//! Tasks are numbered by urgency: 0 is the most urgent one. Among ready tasks, the most urgent runs.
//!
//! Nothing here allocates: a waiting set is one word, what waits for time is one word a task in a table of the caller's, and each object
//! that tasks wait for holds at most one of them (as Ravenscar has it), so nobody fills a queue of somebody else's.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod alarms;
pub mod arrivals;
pub mod events;
pub mod port;
pub mod protected;
pub mod ring;
pub mod suspension;
pub mod tasks;
pub mod watch;

/// Number of a task: its rank by urgency, 0 first.
pub type Task = u8;

/// Tasks of a core at most: a set of them is one word.
pub const TASKS: usize = 64;

#[cfg(test)]
mod model_tests;
