//! Tasks of the one-shot RTOS in Ada: the kernel's side of the run time in `rts`.
//!
//! Why it exists: a task in Ada is a procedure that never returns; its jobs end in the middle of the procedure, at `delay until` and the
//! like. The next job continues after that statement, on a stack whose contents have changed; the build makes sure that nothing needs them.
//! So two words of a task are kept, the address where it continues and the size of its frame, and no register. What it deliberately does
//! not know: scheduling (the kernel's), and what the compiler's calls mean for the language (the units in `rts` know). What the language
//! shares with C, time, console and channels, is in the functions of C.
#![no_std]
#![warn(missing_docs)]

pub mod arch;

use bulkhead_oneshot::{Done, Job, Task};
// Its functions of C are called by units in `rts`.
use bulkhead_oneshot_c as _;

/// A task that a file in Ada declares.
#[derive(Debug)]
pub struct AdaTask {
    record: &'static arch::Record,
}

impl AdaTask {
    /// With the record of its body.
    pub const fn new(record: &'static arch::Record) -> Self {
        Self { record }
    }
}

impl Task for AdaTask {
    fn run(&mut self, _: Job) -> Done {
        arch::resume(self.record)
    }
}
