//! The cost of operations on a queue, by hops, for a mesh of 4 by 4 cores: the first one measures, the others own a queue.
//!
//! Why it exists: each span has the number `10 * operation + hops`, with 0 hops for the own core. It is separate from `port_times`, whose
//! figures are compared with the paper's. What it deliberately does not know: expected times.
#![no_std]
#![no_main]

use bulkhead_hal::marker::{span_begin, span_end};
use bulkhead_oneshot::port::{Failure, Places, QueuingPort};
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, core_number, exit, system, time};
use core::sync::atomic::{Ordering, fence};
use workload_one_shot::hops::{RUNS, TARGETS};

const PUT_8: u64 = 1;
const TAKE_8: u64 = 2;

static PLACES: Places<u64, 3> = Places::new();

/// Measures one distance in each job.
struct Times {
    is_first: bool,
    hops: usize,
}

/// A queue of three, so the positions wrap around. Returns false if there is none yet.
fn distance(hops: u64, target: u16) -> Result<bool, Failure> {
    let Some(queue) = QueuingPort::<u64>::get(target, 0)? else {
        return Ok(false);
    };
    let mut failed = 0u64;
    for number in 0..RUNS {
        let mut taken = 0;
        // Nothing of an earlier operation is outstanding.
        fence(Ordering::SeqCst);
        span_begin(10 * PUT_8 + hops);
        let put = queue.put(&number);
        span_end(10 * PUT_8 + hops);
        fence(Ordering::SeqCst);
        span_begin(10 * TAKE_8 + hops);
        let result = queue.take(&mut taken);
        span_end(10 * TAKE_8 + hops);
        failed += u64::from(put.is_err() || result != Ok(true) || taken != number);
    }
    let word = if failed == 0 { "right" } else { "WRONG" };
    console::line(word);
    Ok(true)
}

impl Task for Times {
    fn run(&mut self, job: Job) -> Done {
        if self.is_first {
            self.is_first = false;
            if !matches!(QueuingPort::initialise(0, &PLACES), Ok(Some(_))) {
                console::line("no queue");
            }
        }
        if core_number() != 0 {
            return job.end();
        }
        let Some(target) = TARGETS.get(self.hops) else {
            exit(0)
        };
        match distance(self.hops as u64, *target) {
            Ok(true) => self.hops += 1,
            Ok(false) => {}
            Err(_) => exit(3),
        }
        job.delay_until(time::now() + 1)
    }
}

/// Only the first core has a console.
fn idle() {
    if core_number() == 0 {
        console::drain();
    }
}

system! {
    Configuration::new(600_000).when_idle(idle);
    stack 1024; ring 256;
    tasks { Times: Times { is_first: true, hops: 0 }, priority 1; }
}
