//! How long an item takes to another core and back, by hops: the paper's Table 6.
//!
//! Why it exists: each span has the number `10 * operation + place of the other core in the list`, after those of `times`. Both sides spin, as the paper's do, so there is no
//! switch and no delay in it. Two spinning loops fall into step: then each run would meet the other core at the same place of its loop, and one more
//! instruction there could make a longer way shorter. So each run begins after another delay, and a minimum is that of the best meeting.
//! What it deliberately does not know: what is fast.

use crate::hops::RUNS;
use bulkhead_hal::marker::{span_begin, span_end};
use bulkhead_oneshot::port::{Data, Failure, SamplingPort};
use bulkhead_oneshot::{Done, Job, Task, console, exit, time};
use core::hint::black_box;
use zerocopy::{FromBytes, Immutable, IntoBytes};

const ROUND_TRIP_8: u64 = 8;
const ROUND_TRIP_40: u64 = 9;

static SHORT: Data<u64> = Data::new();
static LONG: Data<[u64; 5]> = Data::new();

/// Delays a run. Rounds of two loops of different length add up to every number of cycles from some number on, so a thousand runs meet the
/// other core's loop, which is shorter than both together, at each of its places.
fn delay(run: u64) {
    for _ in 0..black_box(run % 31) {
        black_box(run);
    }
    for _ in 0..black_box(run / 31) {
        black_box((run, run));
    }
}

/// Measures one distance in each job.
pub struct Trips {
    targets: &'static [u16],
    hops: usize,
    own: Option<(SamplingPort<u64>, SamplingPort<[u64; 5]>)>,
}

impl Trips {
    /// To these cores, but for the first one, which is this core.
    pub const fn new(targets: &'static [u16]) -> Self {
        Self {
            targets,
            hops: 1,
            own: None,
        }
    }
}

fn trips<T: FromBytes + IntoBytes + Immutable + PartialEq>(
    number: u64,
    there: SamplingPort<T>,
    here: SamplingPort<T>,
    item: impl Fn(u64) -> T,
) -> Result<bool, Failure> {
    let mut right = true;
    for run in 0..RUNS {
        let (sent, mut back) = (item(run), item(0));
        delay(run);
        span_begin(number);
        there.write(&sent)?;
        while !here.has_news()? {}
        here.read(&mut back)?;
        span_end(number);
        right &= back == sent;
    }
    Ok(right)
}

impl Trips {
    /// False: the other core is not ready.
    fn distance(&mut self, target: u16) -> Result<bool, Failure> {
        let own = match self.own {
            Some(own) => own,
            None => {
                let short = SamplingPort::initialise(0, &SHORT)?;
                let long = SamplingPort::initialise(1, &LONG)?;
                *self.own.insert(short.zip(long).ok_or(Failure::Size)?)
            }
        };
        let (Some(short), Some(long)) = (
            SamplingPort::<u64>::get(target, 0)?,
            SamplingPort::<[u64; 5]>::get(target, 1)?,
        ) else {
            return Ok(false);
        };
        let hops = self.hops as u64;
        let right = trips(10 * ROUND_TRIP_8 + hops, short, own.0, |run| run)?
            & trips(10 * ROUND_TRIP_40 + hops, long, own.1, |run| [run; 5])?;
        if !right {
            exit(2);
        }
        console::number("right at hops ", hops);
        Ok(true)
    }
}

impl Task for Trips {
    fn run(&mut self, job: Job) -> Done {
        let Some(target) = self.targets.get(self.hops) else {
            exit(0)
        };
        match self.distance(*target) {
            Ok(true) => self.hops += 1,
            Ok(false) => {}
            Err(_) => exit(3),
        }
        job.delay_until(time::now() + 1)
    }
}
