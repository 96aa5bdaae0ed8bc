//! Tasks of the one-shot RTOS in C: the functions behind `include/bulkhead_oneshot.h`.
//!
//! Why it exists: in C, too, the end of a job is a value that says what the task waits for. So nothing in C ever waits, no stack outlives a job, and
//! the kernel does not know the language. What it deliberately does not know: scheduling, ports (both are the kernel's), and what tasks do.
//! Everything that touches pointers of C is in `arch`.
#![no_std]
#![warn(missing_docs)]

pub mod arch;

use arch::Ending;
use bulkhead_oneshot::{Done, Job, Task, stop};

/// A task whose job is a function in C.
#[derive(Debug)]
pub struct CTask {
    definition: &'static arch::Definition,
    copy: usize,
}

impl CTask {
    /// The task that a file defines. `copy`: which of its fields, if several tasks of the image are the same.
    pub const fn new(definition: &'static arch::Definition, copy: usize) -> Self {
        Self { definition, copy }
    }
}

impl Task for CTask {
    fn run(&mut self, job: Job) -> Done {
        match arch::run(self.definition, self.copy) {
            Ending::Delay(tick) => job.delay_until(tick),
            Ending::End => job.end(),
            #[cfg(feature = "notify")]
            Ending::Next(releases) => releases.next(job),
            Ending::Wait(object) => match object.wait(job) {
                Ok(done) => done,
                Err(_) => stop("another task waits for its suspension object"),
            },
            Ending::Await(events) => match events.wait(job) {
                Ok(done) => done,
                Err(_) => stop("another task waits for its events"),
            },
            Ending::Call(object) => match object.call(job) {
                Some(done) => done,
                None => stop(
                    "another task waits at its entry, there is no such entry, or its object is in use",
                ),
            },
            Ending::Unknown => stop("its job returned what no operation made"),
        }
    }
}
