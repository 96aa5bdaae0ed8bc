//! Items sent back and forth between core 0 and core 1, each announced by the doorbell: no task polls.
//!
//! Why it exists: it measures the way to a task that waits for a port and back, and sends a hundred items, none of which may be missed.
//! What it deliberately does not know: expected times. Core 1 has the same image and answers.
#![no_std]
#![no_main]

use bulkhead_hal::marker::{span_begin, span_end};
use bulkhead_oneshot::port::{Data, Failure, SamplingPort};
use bulkhead_oneshot::sync::SuspensionObject;
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, core_number, exit, system, time};

const ITEMS: u64 = 100;

static DATA: Data<u64> = Data::new();
static NEWS: SuspensionObject = SuspensionObject::new();

/// The doorbell: the task continues only if its port has an item.
fn rung() {
    bulkhead_oneshot::arch::clear_software_interrupt();
    if let Ok(Some(port)) = SamplingPort::<u64>::get(core_number(), 0)
        && port.hear() == Ok(true)
    {
        NEWS.set_true();
    }
}

struct Trip {
    own: Option<SamplingPort<u64>>,
    other: Option<SamplingPort<u64>>,
    sent: u64,
}

impl Trip {
    /// Returns whether the other core is ready.
    fn step(&mut self) -> Result<bool, Failure> {
        let own = match self.own {
            Some(own) => own,
            None => *self
                .own
                .insert(SamplingPort::initialise(0, &DATA)?.ok_or(Failure::Size)?),
        };
        if self.other.is_none() {
            self.other = SamplingPort::get(1 - core_number(), 0)?;
        }
        let Some(other) = self.other else {
            return Ok(false);
        };
        let mut item = 0;
        let is_new = own.has_news()? && own.read(&mut item)?;
        if core_number() == 1 {
            if is_new {
                other.write_and_ring(&item)?;
            }
            return Ok(true);
        }
        if is_new {
            span_end(1);
            if item != self.sent {
                exit(2);
            }
        }
        if self.sent == ITEMS {
            console::line("right");
            exit(0);
        }
        if is_new || self.sent == 0 {
            self.sent += 1;
            span_begin(1);
            other.write_and_ring(&self.sent)?;
        }
        Ok(true)
    }
}

impl Task for Trip {
    fn run(&mut self, job: Job) -> Done {
        match self.step() {
            Ok(true) => NEWS.wait(job).unwrap_or_else(|job| job.end()),
            Ok(false) => job.delay_until(time::now() + 1),
            Err(_) => exit(3),
        }
    }
}

system! {
    Configuration::new(600_000).on_software_interrupt(rung).when_idle(console::drain);
    stack 1024; ring 256;
    tasks { Trip: Trip { own: None, other: None, sent: 0 }, priority 1; }
}
