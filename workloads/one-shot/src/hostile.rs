//! Tasks that do what this hardware lets every core do to the others.
//!
//! Why it exists: bounds of a core must hold whoever rings its doorbell. What it deliberately does not know: who suffers.

use bulkhead_oneshot::described::Described;
use bulkhead_oneshot::port::ring_doorbell;
use bulkhead_oneshot::{Done, Job, Task, core_number};

/// Rings the doorbell of its neighbour in the row, for ever: its first job has no end.
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
