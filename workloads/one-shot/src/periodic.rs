//! A periodic task that prints that it is there.
//!
//! Why it exists: images of several sizes consist of it. What it deliberately does not know: the others.

use bulkhead_oneshot::{Done, Job, Task, console, time};

/// The state that survives between its jobs.
pub struct Periodic {
    line: &'static str,
    period: u64,
    /// 0 before its first job.
    next: u64,
    has_run: bool,
}

impl Periodic {
    /// With a line for the console, and a period in ticks.
    pub const fn new(line: &'static str, period: u64) -> Self {
        Self {
            line,
            period,
            next: 0,
            has_run: false,
        }
    }
}

impl Task for Periodic {
    fn run(&mut self, job: Job) -> Done {
        console::line(self.line);
        if !self.has_run {
            self.has_run = true;
            self.next = time::now();
        }
        self.next += self.period;
        job.delay_until(self.next)
    }
}
