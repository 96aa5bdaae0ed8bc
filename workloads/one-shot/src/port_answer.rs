//! A core that sends every item back as soon as it can.
//!
//! Why it exists: `round_trip` measures the way to it and back. What it deliberately does not know: its place in
//! the mesh.
#![no_std]
#![no_main]

use bulkhead_oneshot::port::{Data, Failure, SamplingPort};
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, system};
use zerocopy::{FromBytes, Immutable, IntoBytes};

static SHORT: Data<u64> = Data::new();
static LONG: Data<[u64; 5]> = Data::new();

/// Never ends its first job.
struct Answer;

/// Sends an item back, if there is one. The asker has initialised its ports before it sends.
fn answer<T: FromBytes + IntoBytes + Immutable>(
    own: SamplingPort<T>,
    back: &mut Option<SamplingPort<T>>,
    index: usize,
) -> Result<(), Failure> {
    if !own.has_news()? {
        return Ok(());
    }
    let mut item = T::new_zeroed();
    own.read(&mut item)?;
    if back.is_none() {
        *back = SamplingPort::get(0, index)?;
    }
    back.ok_or(Failure::NoData)?.write(&item)
}

fn answers() -> Result<(), Failure> {
    let short = SamplingPort::initialise(0, &SHORT)?.ok_or(Failure::Size)?;
    let long = SamplingPort::initialise(1, &LONG)?.ok_or(Failure::Size)?;
    let (mut short_back, mut long_back) = (None, None);
    loop {
        answer(short, &mut short_back, 0)?;
        answer(long, &mut long_back, 1)?;
    }
}

impl Task for Answer {
    fn run(&mut self, job: Job) -> Done {
        if answers().is_err() {
            console::line("no answer");
        }
        job.end()
    }
}

system! {
    Configuration::new(600_000);
    stack 1024; ring 64;
    tasks { Answer: Answer, priority 1; }
}
