//! Tasks of the one-shot RTOS in C: the functions behind `include/bulkhead_oneshot.h`.
//!
//! Why it exists: in C, too, the end of a job is a value that says what the task waits for. So nothing in C ever waits, no stack outlives a job, and
//! the kernel does not know the language. What it deliberately does not know: scheduling, ports (both are the kernel's), and what tasks do.
//! Everything that touches pointers of C is in `arch`.
#![no_std]
#![warn(missing_docs)]

pub mod arch;

use bulkhead_oneshot::{Done, Job, Task};

/// A task whose job is a function in C.
#[derive(Debug)]
pub struct CTask {
    definition: &'static arch::Definition,
    copy: usize,
}

impl CTask {
    /// The task that a file defines. `copy` selects its fields, if several tasks of the image are the same.
    pub const fn new(definition: &'static arch::Definition, copy: usize) -> Self {
        Self { definition, copy }
    }
}

impl Task for CTask {
    fn run(&mut self, job: Job) -> Done {
        arch::run(self.definition, self.copy, job)
    }
}
