//! Items of a queue that are announced by doorbells: core 0 sends as many as there are places, core 1 takes them all and answers with their sum.
//!
//! Why it exists: several rings may be one interrupt, and none of the items may be missed. What it deliberately does not know: expected
//! times.
#![no_std]
#![no_main]

use bulkhead_oneshot::port::{Failure, Places, QueuingPort};
use bulkhead_oneshot::sync::SuspensionObject;
use bulkhead_oneshot::{Configuration, Done, Job, Task, console, core_number, exit, system, time};

const ITEMS: u64 = 100;

static PLACES: Places<u64, 3> = Places::new();
static NEWS: SuspensionObject = SuspensionObject::new();

/// The doorbell: the task continues only if its queue has an item.
fn rung() {
    if let Ok(Some(queue)) = QueuingPort::<u64>::get(core_number(), 0)
        && queue.hear() == Ok(true)
    {
        NEWS.set_true();
    }
}

struct Trip {
    own: Option<QueuingPort<u64>>,
    other: Option<QueuingPort<u64>>,
    /// Items that this core has sent.
    sent: u64,
    /// On core 0: items that the other core has acknowledged; on core 1: the next item due.
    next: u64,
}

impl Trip {
    /// Returns whether the other core is ready.
    fn step(&mut self) -> Result<bool, Failure> {
        let own = match self.own {
            Some(own) => own,
            None => *self
                .own
                .insert(QueuingPort::initialise(0, &PLACES)?.ok_or(Failure::Size)?),
        };
        if self.other.is_none() {
            self.other = QueuingPort::get(1 - core_number(), 0)?;
        }
        let Some(other) = self.other else {
            return Ok(false);
        };
        let mut item = 0;
        while own.take(&mut item)? {
            // Each item must be the next one, and none may come twice.
            if item != self.next {
                exit(2);
            }
            self.next += 1;
            if core_number() == 1 {
                other.put_and_ring(&item)?;
            }
        }
        if core_number() == 0 {
            if self.next == ITEMS {
                console::line("right");
                exit(0);
            }
            while self.sent < ITEMS && self.sent < self.next + 3 {
                other.put_and_ring(&self.sent)?;
                self.sent += 1;
            }
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
    tasks { Trip: Trip { own: None, other: None, sent: 0, next: 0 }, priority 1; }
}
