//! Schedulability tests: does every job of a task system meet its deadline, and if so, how late can it be?
//!
//! Why it exists: a plan needs a verdict and a bound for every task. One file holds one test; each names its source and its
//! assumptions. Nothing here knows descriptions, chips or measurements, and nothing is decided in floating point: times
//! are integers (nanoseconds by convention; any unit will do), utilisations are compared as fractions.
//!
//! Unless a test says otherwise: tasks are sporadic with a minimum inter-arrival time (the period), do not suspend themselves, and
//! share nothing but processors; tasks are listed by decreasing priority where priorities matter.

pub mod batch;
pub mod edf;
pub mod edf_response;
pub mod fixed_priority;
pub mod global_edf;
pub mod global_fixed_priority;
pub mod handlers;
pub mod harmonic;
pub mod mc2;
pub mod memguard;
pub mod memory_banks;
pub mod memory_mutex;
pub mod one_shot;
pub mod partitioning;
pub mod periodic;
pub mod preemption_delay;
pub mod schedcat;
pub mod simulation;
pub mod sporadic_table;
pub mod table;
pub mod tardiness;
pub mod task;
pub mod three_phase;
pub mod threshold;
pub mod utilisation;

pub use task::{Task, TaskError, Time, validate};
