//! Six periodic tasks whose jobs take from a tenth of a tick to several ticks, so that they wait for each other.
//!
//! Why it exists: a whole-system test compares releases and order with the stated policy. A tick is a tenth of the usual one, because the order is the same, and
//! the simulator takes a tenth of the time. What it deliberately does not know: the order.
#![no_std]
#![no_main]

use bulkhead_oneshot::{Configuration, Done, Job, Task, system, time};

/// Works for `cycles` in each period, and for one tick more in every fourth period.
struct Works {
    cycles: u64,
    period: u64,
    jobs: u64,
}

impl Works {
    const fn new(cycles: u64, period: u64) -> Self {
        Self {
            cycles,
            period,
            jobs: 0,
        }
    }
}

impl Task for Works {
    fn run(&mut self, job: Job) -> Done {
        let start = time::cycles();
        self.jobs += 1;
        let more = if self.jobs.is_multiple_of(4) {
            100_000
        } else {
            0
        };
        while time::cycles() - start < self.cycles + more {}
        job.delay_until(self.jobs * self.period)
    }
}

system! {
    Configuration::new(1_000);
    stack 1024; ring 64;
    tasks {
        Works: Works::new(230_000, 35), priority 1;
        Works: Works::new(10_000, 5), priority 6;
        Works: Works::new(70_000, 14), priority 3;
        Works: Works::new(30_000, 7), priority 5;
        Works: Works::new(150_000, 20), priority 2;
        Works: Works::new(50_000, 10), priority 4;
    }
}
