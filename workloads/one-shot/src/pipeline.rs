//! A flow over cores: a source, stages that pass on what they get, a sink, and other work next to them.
//!
//! Why it exists: each core polls its own port and writes the next core's. What it deliberately does not know: how many cores there are, and
//! which one is next.

use bulkhead_hal::marker::{flow_begin, flow_end};
use bulkhead_oneshot::described::{Described, Input, Output, Releases, period};
use bulkhead_oneshot::port::Failure;
use bulkhead_oneshot::{Done, Job, Task, console, time};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// What travels.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Item {
    /// Number of the event.
    pub number: u64,
    /// Stages so far.
    pub stages: u64,
}

/// An event in each period: begins a flow as soon as a stage takes it.
pub struct Source {
    output: Output<Item>,
    releases: Releases,
    number: u64,
}

impl Described for Source {
    const FIRST: Self = Self {
        output: Output::new(0),
        releases: Releases::new(),
        number: 0,
    };
}

impl Task for Source {
    fn run(&mut self, job: Job) -> Done {
        let number = self.number + 1;
        let sent = self.output.is_ready().and_then(|is_ready| {
            if !is_ready {
                return Ok(false);
            }
            self.number = number;
            flow_begin(number);
            self.output.put(&Item { number, stages: 0 })
        });
        tell("no item went out", &sent);
        self.releases.next(job)
    }
}

/// Prints on the console what went wrong.
fn tell<T>(what: &str, result: &Result<T, Failure>) {
    match result {
        Ok(_) => {}
        Err(Failure::Locked { holder }) => {
            console::line(what);
            console::number("its lock was taken by core ", (*holder).into());
        }
        Err(_) => console::line(what),
    }
}

/// Passes on what it gets.
pub struct Stage {
    input: Input<Item>,
    output: Output<Item>,
    releases: Releases,
}

impl Described for Stage {
    const FIRST: Self = Self {
        input: Input::new(0),
        output: Output::new(0),
        releases: Releases::new(),
    };
}

impl Task for Stage {
    fn run(&mut self, job: Job) -> Done {
        let item = self.input.take();
        tell("no item came in", &item);
        if let Ok(Some(mut item)) = item {
            item.stages += 1;
            let sent = self.output.put(&item);
            tell("no item went out", &sent);
            if sent == Ok(false) {
                console::number("nobody took event ", item.number);
            }
        }
        self.releases.next(job)
    }
}

/// Ends the flow.
pub struct Sink {
    input: Input<Item>,
    releases: Releases,
}

impl Described for Sink {
    const FIRST: Self = Self {
        input: Input::new(0),
        releases: Releases::new(),
    };
}

impl Task for Sink {
    fn run(&mut self, job: Job) -> Done {
        let item = self.input.take();
        tell("no item came in", &item);
        if let Ok(Some(item)) = item {
            flow_end(item.number);
            console::number("stages ", item.stages);
        }
        self.releases.next(job)
    }
}

/// Other work of a core, a twenty-fifth of its period: if it is less urgent, it blocks the others.
pub struct Other(Releases);

impl Described for Other {
    const FIRST: Self = Self(Releases::new());
}

/// Cycles of work for each tick of the period: a twenty-fifth of 1 ms at 600 MHz.
const SHARE: u64 = 24_000;

fn work() {
    let start = time::cycles();
    let cycles = period() * SHARE;
    while time::cycles() - start < cycles {}
}

impl Task for Other {
    fn run(&mut self, job: Job) -> Done {
        work();
        self.0.next(job)
    }
}

/// The same, but prints its period first: so the console shows the order of jobs.
pub struct Teller(Releases);

impl Described for Teller {
    const FIRST: Self = Self(Releases::new());
}

impl Task for Teller {
    fn run(&mut self, job: Job) -> Done {
        console::number("period ", period());
        work();
        self.0.next(job)
    }
}
