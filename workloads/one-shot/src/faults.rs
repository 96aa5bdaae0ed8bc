//! Tasks that fail, next to one that does not.
//!
//! Why it exists: each fault is reported with its task and its place, and stops only that task. What it deliberately does not know: how
//! faults are reported.
#![no_std]
#![no_main]

use bulkhead_oneshot::sync::Protected;
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, exit, system, time};
use bulkhead_user::probe;

static SHARED: Protected<u64, (), 0> = Protected::new(0, []);

/// Prints every 2 ms that it is there and that nobody damaged its data.
struct Honest(u64);

impl Task for Honest {
    fn run(&mut self, job: Job) -> Done {
        self.0 += 1;
        console::number("honest ", self.0);
        if self.0 == 10 {
            // A task that stopped in the middle of its change keeps the object.
            exit(u16::from(SHARED.update(|value| *value += 1).is_some()));
        }
        job.delay_until(self.0 * 2)
    }
}

/// Needs more stack than there is.
struct Deep;

#[inline(never)]
#[allow(unconditional_recursion)]
fn descend(depth: u64) -> u64 {
    let block = core::hint::black_box([depth; 16]);
    1 + descend(block[0] + 1) + core::hint::black_box(block)[15]
}

impl Task for Deep {
    fn run(&mut self, job: Job) -> Done {
        console::number("depth ", descend(0));
        job.end()
    }
}

/// Panics while it changes shared data.
struct Panics;

impl Task for Panics {
    fn run(&mut self, job: Job) -> Done {
        SHARED.update(|value| {
            let zero = core::hint::black_box(0);
            *value = 10 / zero;
        });
        job.end()
    }
}

/// Writes over its own code.
struct Writes;

impl Task for Writes {
    fn run(&mut self, job: Job) -> Done {
        probe::store(0x8000_0000, 0);
        job.end()
    }
}

/// Reads where nothing is.
struct Reads;

impl Task for Reads {
    fn run(&mut self, job: Job) -> Done {
        probe::load(0x4000_0000);
        job.end()
    }
}

/// Leaves too little of the stack for the next interrupt, but overflows nothing.
struct Greedy;

/// Recurses until this many bytes of the stack are used, and stays there for longer than a tick.
#[inline(never)]
fn occupy(top: usize, bytes: usize) {
    let here = core::hint::black_box(0u64);
    if top - (&raw const here).addr() < bytes {
        occupy(top, bytes);
    } else {
        let start = time::cycles();
        while time::cycles() - start < 1_500_000 {}
    }
    core::hint::black_box(&here);
}

impl Task for Greedy {
    fn run(&mut self, job: Job) -> Done {
        let here = core::hint::black_box(0u64);
        occupy((&raw const here).addr(), 1600);
        core::hint::black_box(&here);
        job.end()
    }
}

/// Works for longer than its budget every other time, and once for longer than a tick.
struct Slow(u64);

impl Task for Slow {
    fn run(&mut self, job: Job) -> Done {
        self.0 += 1;
        let cycles = match self.0 {
            2 => 30_000,
            4 => 2_500_000,
            _ => 5_000,
        };
        let start = time::cycles();
        while time::cycles() - start < cycles {}
        match self.0 {
            5 => job.end(),
            _ => job.delay_until(time::now() + 1),
        }
    }
}

system! {
    Configuration::new(10_000).when_idle(console::drain);
    stack 2048; ring 2048;
    tasks {
        Honest: Honest(0), priority 9;
        Deep: Deep, priority 8;
        Panics: Panics, priority 7;
        Writes: Writes, priority 6;
        Reads: Reads, priority 5;
        Slow: Slow(0), priority 4, budget 20_000;
        Greedy: Greedy, priority 3;
    }
}
