//! Descriptions of chips and of the software on them: XML in, a validated and typed model out.
//!
//! Why it exists: one file says everything about a system, every mistake in it is explained with file, line, column, cause
//! and remedy, and nothing runs before the description is right. What it deliberately does not know: the machine built
//! from a platform, and the binaries named by a system.
//!
//! [`load_system`] and [`load_platform`] are the entry points. A loaded [`System`] has all references resolved, all
//! defaults filled in and everything placed; [`canonical::for_chip`] writes it for the resource manager on the chip.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod canonical;
pub mod catalog;
mod cpu;
pub mod error;
pub mod grammar;
#[cfg(test)]
mod guided_tests;
pub mod input;
mod load;
mod node;
pub mod overrides;
pub mod platform;
mod programs;
pub mod source;
pub mod system;
pub mod tasks;
mod text;
pub mod tree;
pub mod units;
mod writer;

pub use error::{Diagnostic, Errors, Problem};
pub use load::{
    LoadOptions, Root, description, load_platform, load_platform_text, load_system,
    load_system_text, load_tasks, load_tasks_text, platform_names, root, system_names,
    task_system_names,
};
pub use platform::Platform;
pub use programs::{HostKind, Programs};
pub use system::System;
pub use tasks::TaskSystem;
pub use text::closest;
