//! A core that has two ports, of 8 and of 40 bytes, and a queue, and does nothing with them.
//!
//! Why it exists: others measure what they cost from some hops away. What it deliberately does not know: them.
#![no_std]
#![no_main]

use bulkhead_oneshot::port::{Data, Places, QueuingPort, SamplingPort};
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, system};

static SHORT: Data<u64> = Data::new();
static LONG: Data<[u64; 5]> = Data::new();
static PLACES: Places<u64, 3> = Places::new();

/// Initialises them, once.
struct Owner;

impl Task for Owner {
    fn run(&mut self, job: Job) -> Done {
        let short = SamplingPort::initialise(0, &SHORT);
        let long = SamplingPort::initialise(1, &LONG);
        let queue = QueuingPort::initialise(14, &PLACES);
        match (short, long, queue) {
            (Ok(Some(_)), Ok(Some(_)), Ok(Some(_))) => console::line("two ports and a queue"),
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
