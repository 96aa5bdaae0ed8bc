//! A sensor whose readings must all arrive, and a task that records them.
//!
//! Why it exists: systems with queues consist of these. What it deliberately does not know: the length of the queue, and the speed of
//! either side.

use bulkhead_oneshot::described::{Described, Input, Output, Releases};
use bulkhead_oneshot::marker::{flow_begin, flow_end};
use bulkhead_oneshot::port::Failure;
use bulkhead_oneshot::{Done, Job, Task, console, time};

/// A reading: its number, and twice the time in cycles when it was made.
type Reading = [u64; 3];

/// Makes a reading in each period.
pub struct Sensor {
    readings: Output<Reading>,
    releases: Releases,
    number: u64,
}

impl Described for Sensor {
    const FIRST: Self = Self {
        readings: Output::new(0),
        releases: Releases::new(),
        number: 0,
    };
}

impl Task for Sensor {
    fn run(&mut self, job: Job) -> Done {
        if self.readings.is_ready() == Ok(true) {
            let (number, now) = (self.number + 1, time::cycles());
            self.number = number;
            flow_begin(number);
            match self.readings.put(&[number, now, now]) {
                Ok(_) => {}
                Err(Failure::Full) => console::number("no place for item ", number),
                Err(_) => console::line("the queue failed"),
            }
        }
        self.releases.next(job)
    }
}

/// Takes one reading in each job.
pub struct Keeper {
    readings: Input<Reading>,
    releases: Releases,
}

impl Described for Keeper {
    const FIRST: Self = Self {
        readings: Input::new(0),
        releases: Releases::new(),
    };
}

impl Task for Keeper {
    fn run(&mut self, job: Job) -> Done {
        match self.readings.take() {
            Ok(Some([number, made, again])) if made == again => {
                flow_end(number);
                console::number("item ", number);
            }
            Ok(Some(_)) => console::line("half a reading"),
            Ok(None) => {}
            Err(_) => console::line("the queue failed"),
        }
        self.releases.next(job)
    }
}
