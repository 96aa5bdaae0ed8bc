//! Helpers that fail: no other task may wait for ever or take a wrong result.
//!
//! Why it exists: a task that hands out work must end its job whatever its helpers do. What it deliberately does not know: who notices, and
//! how.

use super::filter::{filter, result, slice};
use bulkhead_oneshot::described::Described;
use bulkhead_oneshot::parallel::Help;
use bulkhead_oneshot::{Done, Job, Task, time};

const SLICE: usize = slice(4);
const RESULT: usize = result(4);

/// Does not answer every second slice.
pub const SILENT: u8 = 0;
/// Stops for good at the third slice.
pub const STOPPING: u8 = 1;
/// Answers every second slice only after two milliseconds.
pub const TARDY: u8 = 2;

/// A helper of a filter on four cores.
pub struct Unfit<const HOW: u8> {
    help: Help<[u64; SLICE], [u64; RESULT]>,
    samples: [u64; SLICE],
    results: [u64; RESULT],
    slices: u64,
}

impl<const HOW: u8> Described for Unfit<HOW> {
    const FIRST: Self = Self {
        help: Help::new(0, 0),
        samples: [0; SLICE],
        results: [0; RESULT],
        slices: 0,
    };
}

impl<const HOW: u8> Task for Unfit<HOW> {
    fn run(&mut self, job: Job) -> Done {
        let (waited, answer) = self.help.slice(job, &mut self.samples);
        if let Ok(answer) = answer {
            self.slices += 1;
            filter(&self.samples, &mut self.results);
            let even = self.slices.is_multiple_of(2);
            match HOW {
                SILENT if even => return waited.next(),
                STOPPING if self.slices == 3 => panic!("a helper stops"),
                TARDY if even => {
                    let begin = time::cycles();
                    while time::cycles() - begin < 1_200_000 {}
                }
                _ => {}
            }
            // A failure is what these programs are for.
            let _ = answer.give(&self.results);
        }
        waited.next()
    }
}

/// See [`SILENT`].
pub type Silent = Unfit<SILENT>;
/// See [`STOPPING`].
pub type Stopping = Unfit<STOPPING>;
/// See [`TARDY`].
pub type Tardy = Unfit<TARDY>;
