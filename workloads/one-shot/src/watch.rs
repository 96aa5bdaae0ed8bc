//! A task that measures how long its core is interrupted.
//!
//! Why it exists: bounds count interrupts with fixed costs, and a measurement must check them. What it deliberately does not know: the
//! source of interrupts.

use bulkhead_oneshot::described::{Described, Releases, period};
use bulkhead_oneshot::{Done, Job, Task, console, time};

/// Cycles of a job for each tick of its period: a tenth of 1 ms at 600 MHz.
const SHARE: u64 = 60_000;

/// Reads the clock again and again, and prints the longest time between two readings in all its jobs so far.
pub struct Watcher {
    releases: Releases,
    longest: u64,
}

impl Described for Watcher {
    const FIRST: Self = Self {
        releases: Releases::new(),
        longest: 0,
    };
}

impl Task for Watcher {
    fn run(&mut self, job: Job) -> Done {
        let start = time::cycles();
        let (mut last, cycles) = (start, period() * SHARE);
        while last - start < cycles {
            let now = time::cycles();
            self.longest = self.longest.max(now - last);
            last = now;
        }
        console::number("longest ", self.longest);
        self.releases.next(job)
    }
}
