//! What operations on ports cost, by hops: the paper's Tables 1, 4 and 5.
//!
//! Why it exists: each span has the number `10 * operation + place of the other core in the list`, with place 0 for the own core. What it deliberately does not know: what is
//! fast.

use crate::hops::RUNS;
use bulkhead_hal::marker::{span_begin, span_end};
use bulkhead_oneshot::port::{Data, Failure, SamplingPort, Spinlock};
use bulkhead_oneshot::{Done, Job, Task, console, exit, time};
use core::sync::atomic::{Ordering, fence};

const INITIALISE: u64 = 0;
const GET: u64 = 1;
const WRITE_8: u64 = 2;
const READ_8: u64 = 3;
const WRITE_40: u64 = 4;
const READ_40: u64 = 5;
const LOCK: u64 = 6;
const UNLOCK: u64 = 7;

static SHORT: Data<u64> = Data::new();
static LONG: Data<[u64; 5]> = Data::new();
static SPARE: Data<u64> = Data::new();

/// Measures one distance in each job.
pub struct Times {
    targets: &'static [u16],
    hops: usize,
}

impl Times {
    /// To these cores, of which the first one is this core.
    pub const fn new(targets: &'static [u16]) -> Self {
        Self { targets, hops: 0 }
    }
}

/// Waits until nothing of an operation before is under way: an unlock ends before others see it.
fn settle() {
    fence(Ordering::SeqCst);
}

fn measure(number: u64, mut operation: impl FnMut()) {
    for _ in 0..RUNS {
        settle();
        span_begin(number);
        operation();
        span_end(number);
    }
}

fn distance(hops: u64, target: u16) -> Result<bool, Failure> {
    let (Some(short), Some(long)) = (
        SamplingPort::<u64>::get(target, 0)?,
        SamplingPort::<[u64; 5]>::get(target, 1)?,
    ) else {
        return Ok(false);
    };
    let Some(lock) = Spinlock::at(target, 15) else {
        return Ok(false);
    };
    let mut failed = 0u64;
    measure(10 * GET + hops, || {
        failed += u64::from(SamplingPort::<u64>::get(target, 0).is_err())
    });
    measure(10 * WRITE_8 + hops, || {
        failed += u64::from(short.write(&7).is_err())
    });
    let mut item = 0;
    measure(10 * READ_8 + hops, || {
        failed += u64::from(short.read(&mut item).is_err())
    });
    measure(10 * WRITE_40 + hops, || {
        failed += u64::from(long.write(&[1, 2, 3, 4, 5]).is_err())
    });
    let mut items = [0; 5];
    measure(10 * READ_40 + hops, || {
        failed += u64::from(long.read(&mut items).is_err())
    });
    for _ in 0..RUNS {
        settle();
        span_begin(10 * LOCK + hops);
        failed += u64::from(lock.lock().is_err());
        span_end(10 * LOCK + hops);
        settle();
        span_begin(10 * UNLOCK + hops);
        failed += u64::from(lock.unlock().is_err());
        span_end(10 * UNLOCK + hops);
    }
    let right = failed == 0 && item == 7 && items == [1, 2, 3, 4, 5];
    console::number(
        if right {
            "right at hops "
        } else {
            "WRONG at hops "
        },
        hops,
    );
    Ok(true)
}

impl Task for Times {
    fn run(&mut self, job: Job) -> Done {
        if self.hops == 0 {
            let _ = SamplingPort::initialise(0, &SHORT);
            let _ = SamplingPort::initialise(1, &LONG);
            for index in 2..15 {
                settle();
                span_begin(10 * INITIALISE);
                let port = SamplingPort::initialise(index, &SPARE);
                span_end(10 * INITIALISE);
                // An initialised port, and an index that does not exist.
                let again = SamplingPort::initialise(index, &SPARE);
                let beyond = SamplingPort::initialise(index + 14, &SPARE);
                if !matches!((port, again, beyond), (Ok(Some(_)), Ok(None), Ok(None))) {
                    exit(2);
                }
            }
        }
        let Some(target) = self.targets.get(self.hops) else {
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
