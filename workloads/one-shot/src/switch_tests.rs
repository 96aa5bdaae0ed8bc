//! The cost of switches: the paper's tests of Table 2, each a thousand times.
//!
//! Why it exists: a suspension test measures from the operation that suspends a task to the first instruction of the next one; an
//! activation test from the operation that opens the way for a task, whose caller then suspends itself, to that task's first instruction.
//! Two tasks take turns; each span has the number of its test, and markers cost nothing. What it deliberately does not know: expected
//! times.

use bulkhead_hal::marker::{span_begin, span_end};
use bulkhead_oneshot::sync::{Entry, Protected, SuspensionObject};
use bulkhead_oneshot::{Done, Job, Task, exit, time};

/// Spans of each test.
const RUNS: u32 = 1000;
/// Number of the span for reading the clock.
const CLOCK: u64 = 0;
/// What [`High`] waits for; its suspension spans have these numbers.
const DELAY: u64 = 1;
const OBJECT: u64 = 2;
const ENTRY: u64 = 3;
const ENTRY_WITH_PARAMETER: u64 = 4;
/// Added to these numbers for an activation span.
const ACTIVATE: u64 = 10;

static LOW: SuspensionObject = SuspensionObject::new();
static HIGH: SuspensionObject = SuspensionObject::new();
static GATE: Protected<bool, (), 1> =
    Protected::new(false, [Entry::new(|open| *open, |open, ()| *open = false)]);
static BOX: Protected<(bool, u64), u64, 1> = Protected::new(
    (false, 0),
    [Entry::new(
        |state| state.0,
        |state, value| *state = (false, value),
    )],
);

/// Which test is next.
pub struct Turn {
    test: u64,
    runs: u32,
}

impl Turn {
    /// The first one.
    pub const fn first() -> Self {
        Self {
            test: DELAY,
            runs: 0,
        }
    }

    /// The test of this turn.
    fn next(&mut self) -> u64 {
        let test = self.test;
        self.runs += 1;
        if self.runs == RUNS {
            *self = Self {
                test: test + 1,
                runs: 0,
            };
        }
        test
    }
}

/// The more urgent task: it suspends itself.
pub struct High {
    /// Its test.
    pub turn: Turn,
    /// The span that its start ends; 0 in its first job.
    pub activated: u64,
}

impl Task for High {
    fn run(&mut self, job: Job) -> Done {
        span_end(self.activated);
        if self.activated == 0 {
            self.activated = ACTIVATE + DELAY;
            for _ in 0..RUNS {
                span_begin(CLOCK);
                core::hint::black_box(time::cycles());
                span_end(CLOCK);
            }
            return job.delay_until(time::now() + 1);
        }
        let test = self.turn.next();
        self.activated = ACTIVATE + test;
        LOW.set_true();
        let tick = time::now() + 1;
        span_begin(test);
        let waits = match test {
            DELAY => Ok(job.delay_until(tick)),
            OBJECT => HIGH.wait(job),
            ENTRY => GATE.call(0, (), job),
            ENTRY_WITH_PARAMETER => BOX.call(0, 7, job),
            _ => exit(0),
        };
        waits.unwrap_or_else(Job::end)
    }
}

/// The other task: it runs while the first one waits, and opens the way for it.
pub struct Low {
    /// Its test.
    pub turn: Turn,
    /// The span that its start ends; 0 in its first job.
    pub suspended: u64,
}

impl Task for Low {
    fn run(&mut self, job: Job) -> Done {
        span_end(self.suspended);
        if self.suspended == 0 {
            self.suspended = DELAY;
        } else {
            let test = self.turn.next();
            self.suspended = self.turn.test;
            span_begin(ACTIVATE + test);
            match test {
                OBJECT => HIGH.set_true(),
                ENTRY => {
                    GATE.update(|open| *open = true);
                }
                ENTRY_WITH_PARAMETER => {
                    BOX.update(|state| state.0 = true);
                }
                _ => {}
            }
        }
        LOW.wait(job).unwrap_or_else(Job::end)
    }
}
