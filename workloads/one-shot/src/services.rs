//! One task for each kind of activation, and an interrupt handler and a timing event that activate tasks.
//!
//! Why it exists: a whole-system test compares the releases with the stated policy: sporadic jobs keep their distance however fast events
//! come, aperiodic ones come at once, a timing event is handled at its tick. What it deliberately does not know: the rest of a chip.
#![no_std]
#![no_main]

use bulkhead_oneshot::arch::{clear_software_interrupt, raise_software_interrupt};
use bulkhead_oneshot::sync::{Entry, Events, Protected, TimingEvent};
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, exit, system, time};

/// The fewest ticks between jobs of the sporadic task.
const DISTANCE: u64 = 5;

static BURST: Events = Events::sporadic(DISTANCE);
static DOORBELL: Events = Events::aperiodic();
static ALARM: TimingEvent = TimingEvent::new(on_alarm);
static FORGOTTEN: TimingEvent = TimingEvent::new(|| exit(2));
/// Items on their way from the timing event's handler to the task that waits for two of them.
static ITEMS: Protected<u64, u64, 1> = Protected::new(
    0,
    [Entry::new(
        |items| *items >= 2,
        |items, taken| *items -= taken,
    )],
);

fn on_alarm() {
    ITEMS.update(|items| *items += 1);
    console::number("alarm at ", time::now());
    ALARM.set(time::now() + 3);
}

fn on_doorbell() {
    clear_software_interrupt();
    DOORBELL.arrive();
}

/// Sends events, and rings the bell.
struct Source(u64);

impl Task for Source {
    fn run(&mut self, job: Job) -> Done {
        self.0 += 1;
        console::number("source at ", time::now());
        BURST.arrive();
        raise_software_interrupt();
        match self.0 {
            1 => {
                ALARM.set(time::now() + 3);
                FORGOTTEN.set(time::now() + 9);
            }
            4 => {
                FORGOTTEN.cancel();
            }
            30 => exit(0),
            _ => {}
        }
        job.delay_until(self.0 * 2)
    }
}

/// Waits for the events of [`Source`].
struct Sporadic;

impl Task for Sporadic {
    fn run(&mut self, job: Job) -> Done {
        console::number("sporadic at ", time::now());
        BURST.wait(job).unwrap_or_else(Job::end)
    }
}

/// Waits for the bell.
struct Aperiodic;

impl Task for Aperiodic {
    fn run(&mut self, job: Job) -> Done {
        console::number("doorbell at ", time::now());
        DOORBELL.wait(job).unwrap_or_else(Job::end)
    }
}

/// Waits for two alarms.
struct Pair;

impl Task for Pair {
    fn run(&mut self, job: Job) -> Done {
        console::number("pair at ", time::now());
        ITEMS.call(0, 2, job).unwrap_or_else(Job::end)
    }
}

system! {
    Configuration::new(10_000).on_software_interrupt(on_doorbell).when_idle(console::drain);
    stack 2048; ring 1024;
    tasks {
        Source: Source(0), priority 3;
        Sporadic: Sporadic, priority 2;
        Aperiodic: Aperiodic, priority 4;
        Pair: Pair, priority 1;
    }
}
