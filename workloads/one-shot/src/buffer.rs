//! A protected buffer of two places with three entries: one with a parameter, and one that opens when the buffer is empty.
//!
//! Why it exists: the same tasks are in `buffer.c` and `buffer.adb`, and a test compares what they say. What it deliberately does not know: cores.

use bulkhead_oneshot::described::{Described, Releases};
use bulkhead_oneshot::sync::{Entry, Protected};
use bulkhead_oneshot::{Done, Job, Task, console};

/// What the tasks share.
struct Buffer {
    places: [u64; 2],
    count: usize,
    /// What was taken last.
    taken: u64,
}

const PUT: usize = 0;
const GET: usize = 1;
const CLEARED: usize = 2;

static BUFFER: Protected<Buffer, u64, 3> = Protected::new(
    Buffer {
        places: [0; 2],
        count: 0,
        taken: 0,
    },
    [
        Entry::new(
            |buffer| buffer.count < 2,
            |buffer, item| {
                buffer.places[buffer.count & 1] = item;
                buffer.count += 1;
            },
        ),
        Entry::new(
            |buffer| buffer.count > 0,
            |buffer, _| {
                buffer.taken = buffer.places[0];
                buffer.places[0] = buffer.places[1];
                buffer.count -= 1;
            },
        ),
        Entry::new(|buffer| buffer.count == 0, |_, _| {}),
    ],
);

/// Calls an entry; who cannot says so and ends.
fn call(entry: usize, parameter: u64, job: Job) -> Done {
    match BUFFER.call(entry, parameter, job) {
        Ok(done) => done,
        Err(job) => {
            console::line("a call was refused");
            job.end()
        }
    }
}

/// Takes an item, says so, and waits for its next release.
pub struct Getter {
    has_called: bool,
    releases: Releases,
}

impl Described for Getter {
    const FIRST: Self = Self {
        has_called: false,
        releases: Releases::new(),
    };
}

impl Task for Getter {
    fn run(&mut self, job: Job) -> Done {
        self.has_called = !self.has_called;
        if self.has_called {
            return call(GET, 0, job);
        }
        console::number("got ", BUFFER.update(|buffer| buffer.taken).unwrap_or(0));
        self.releases.next(job)
    }
}

/// Puts three items at each of its releases.
pub struct Putter {
    items: u64,
    releases: Releases,
}

impl Described for Putter {
    const FIRST: Self = Self {
        items: 0,
        releases: Releases::new(),
    };
}

impl Task for Putter {
    fn run(&mut self, job: Job) -> Done {
        self.items += 1;
        match self.items % 4 {
            0 => {
                console::line("all are in");
                self.releases.next(job)
            }
            _ => {
                console::number("puts ", self.items);
                call(PUT, self.items, job)
            }
        }
    }
}

/// Says that the buffer was empty.
pub struct Watcher {
    has_called: bool,
    releases: Releases,
}

impl Described for Watcher {
    const FIRST: Self = Self {
        has_called: false,
        releases: Releases::new(),
    };
}

impl Task for Watcher {
    fn run(&mut self, job: Job) -> Done {
        self.has_called = !self.has_called;
        if self.has_called {
            return call(CLEARED, 0, job);
        }
        console::line("is empty");
        self.releases.next(job)
    }
}
