//! Tasks that attack other cores as this hardware allows every core to do.
//!
//! Why it exists: the bounds of a core must hold whichever core rings its doorbell. What it deliberately does not know:
//! the victims.

use bulkhead_oneshot::described::Described;
use bulkhead_oneshot::port::ring_doorbell;
use bulkhead_oneshot::{Done, Job, Task, core_number};

/// Rings the doorbell of its neighbour in the row for ever: its first job never ends.
pub struct Ringer;

impl Described for Ringer {
    const FIRST: Self = Self;
}

impl Task for Ringer {
    fn run(&mut self, _: Job) -> Done {
        let neighbour = core_number() ^ 1;
        loop {
            ring_doorbell(neighbour);
        }
    }
}
