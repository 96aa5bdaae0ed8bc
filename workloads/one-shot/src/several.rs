//! Tasks of several cores that make entries for one log, and the task that keeps it.
//!
//! Why it exists: systems with a queue of several writers consist of these. What it deliberately does not know: how long the queue is, and how many writers it has.

use bulkhead_oneshot::described::{Described, Input, Output, Releases};
use bulkhead_oneshot::marker::{flow_begin, flow_end};
use bulkhead_oneshot::port::Failure;
use bulkhead_oneshot::{Done, Job, Task, console};

/// An entry: its writer's first number and the entry's own, then the same again.
type Entry = [u64; 3];

/// Numbers between two writers' first ones.
const APART: u64 = 1_000_000;

/// Makes an entry in each period.
struct Writer {
    entries: Output<Entry>,
    releases: Releases,
    number: u64,
}

impl Writer {
    /// The writer with this place among the others.
    const fn new(place: u64) -> Self {
        Self {
            entries: Output::new(0),
            releases: Releases::new(),
            number: place * APART,
        }
    }

    fn write(&mut self, job: Job) -> Done {
        if self.entries.is_ready() == Ok(true) {
            self.number += 1;
            flow_begin(self.number);
            match self.entries.put(&[self.number, !self.number, self.number]) {
                Ok(_) => {}
                Err(Failure::Full) => console::number("no place for entry ", self.number),
                Err(_) => console::line("the queue failed"),
            }
        }
        self.releases.next(job)
    }
}

macro_rules! writers {
    ($($name:ident: $place:literal, $about:literal;)*) => {$(
        #[doc = $about]
        pub struct $name(Writer);

        impl Described for $name {
            const FIRST: Self = Self(Writer::new($place));
        }

        impl Task for $name {
            fn run(&mut self, job: Job) -> Done {
                self.0.write(job)
            }
        }
    )*};
}

writers! {
    First: 1, "Its entries are 1 000 001 and so on.";
    Second: 2, "Its entries are 2 000 001 and so on.";
    Third: 3, "Its entries are 3 000 001 and so on.";
}

/// Takes one entry in each job.
pub struct Keeper {
    entries: Input<Entry>,
    releases: Releases,
}

impl Described for Keeper {
    const FIRST: Self = Self {
        entries: Input::new(0),
        releases: Releases::new(),
    };
}

impl Task for Keeper {
    fn run(&mut self, job: Job) -> Done {
        match self.entries.take() {
            Ok(Some([number, not, again])) if number == again && number == !not => {
                flow_end(number);
                console::number("entry ", number);
            }
            Ok(Some(_)) => console::line("parts of two entries"),
            Ok(None) => {}
            Err(_) => console::line("the queue failed"),
        }
        self.releases.next(job)
    }
}
