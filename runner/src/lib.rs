//! Turns a description into images, boots them on the machine, collects what happened and writes reports.
//!
//! Why it exists: it is the only place that joins model, machine and analysis, so that these need not know each other.
//! What it deliberately does not know: the command line; and no timing, no policy of any kernel.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod admission;
pub mod audit;
pub mod boot;
pub mod boot_image;
pub mod bounds;
pub mod c_programs;
pub mod chips;
pub mod collect;
pub mod convert;
pub mod counters;
pub mod device_tree;
pub mod error;
pub mod lonely;
pub mod measure;
pub mod modules;
pub mod names;
pub mod new;
pub mod place;
pub mod plan;
pub mod programs;
pub mod progress;
pub mod quiet;
pub mod report;
pub mod reproduce;
pub mod requests;
pub mod result;
pub mod run;
pub mod session;
pub mod study;
pub mod system_plan;
pub mod trap;
pub mod watch;

pub use error::Error;
