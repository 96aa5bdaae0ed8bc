//! One system, run once: builds its images, boots them on the machine, collects what happened, and puts bounds beside it.
//!
//! Why it exists: it is the only place that joins model, machine and analysis, so that these need not know each other. What
//! it deliberately does not know: the command line, experiments over many runs, timing, and the policies of any kernel.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ada_programs;
pub mod bare;
pub mod boot;
pub mod c_programs;
mod cargo;
mod chip_flags;
pub mod chips;
pub mod collect;
pub mod convert;
pub mod counters;
pub mod crash;
mod ended;
mod environment;
pub mod error;
mod finished;
mod host_folders;
pub mod image;
pub mod loadable;
mod manifests;
pub mod measure;
pub mod modules;
mod moved;
pub(crate) mod named_tracer;
pub mod names;
pub mod new;
pub mod observed;
pub mod one_stack;
pub mod oneshot;
pub mod paradigm;
pub mod parallel;
pub mod place;
pub mod places;
pub mod programs;
pub mod progress;
pub mod run;
pub mod seen;
pub mod session;
pub mod tiled;
pub mod trap;
pub mod unseen;
pub mod warnings;
pub mod watch;

pub use error::Error;
