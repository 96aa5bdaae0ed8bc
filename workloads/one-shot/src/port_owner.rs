//! A core that has two ports, of 8 and of 40 bytes, and does nothing with them.
//!
//! Why it exists: others measure the cost of accesses to them from some hops away. What it deliberately does
//! not know: those others.
#![no_std]
#![no_main]

use bulkhead_oneshot::port::{Data, SamplingPort};
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, system};

static SHORT: Data<u64> = Data::new();
static LONG: Data<[u64; 5]> = Data::new();

/// Initialises both, once.
struct Owner;

impl Task for Owner {
    fn run(&mut self, job: Job) -> Done {
        let short = SamplingPort::initialise(0, &SHORT);
        let long = SamplingPort::initialise(1, &LONG);
        match (short, long) {
            (Ok(Some(_)), Ok(Some(_))) => console::line("two ports"),
            _ => console::line("no ports"),
        }
        job.end()
    }
}

system! {
    Configuration::new(600_000);
    stack 1024; ring 64;
    tasks { Owner: Owner, priority 1; }
}
