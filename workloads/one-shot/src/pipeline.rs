//! A flow over the cores of a mesh of 4 by 4, along its rows and back: what its stages share.
//!
//! Why it exists: each core polls its own port and writes the next core's. What it deliberately does not know: how many cores there are.

use bulkhead_oneshot::port::{Data, SamplingPort};
use bulkhead_oneshot::{Done, Job, Task, time};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Counts of the timer in a tick: 1 ms at 600 MHz.
pub const TIMER: u64 = 600_000;

/// What travels.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct Item {
    /// Number of the event.
    pub number: u64,
    /// Stages so far.
    pub stages: u64,
}

/// The core behind one on its way: along even rows to the right, along odd ones to the left.
pub fn next(core: u16) -> u16 {
    let (row, column) = (core >> 6, core & 63);
    match (row % 2, column) {
        (0, 3) | (1, 0) => (row + 1) << 6 | column,
        (0, _) => core + 1,
        _ => core - 1,
    }
}

/// The own port, once it is initialised.
pub struct Input(Option<SamplingPort<Item>>);

impl Input {
    /// Not yet.
    pub const fn new() -> Self {
        Self(None)
    }

    /// A new item, if there is one.
    pub fn take(&mut self, data: &'static Data<Item>) -> Option<Item> {
        if self.0.is_none() {
            self.0 = SamplingPort::initialise(0, data).unwrap_or(None);
        }
        let mut item = Item::default();
        let is_new = self.0?.read(&mut item);
        (is_new == Ok(true)).then_some(item)
    }
}

/// The next core's port, once that has initialised it.
pub struct Output(Option<SamplingPort<Item>>);

impl Output {
    /// Not yet.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Writes an item. False: the port is not there, or locked for too long.
    pub fn put(&mut self, core: u16, item: &Item) -> bool {
        if self.0.is_none() {
            self.0 = SamplingPort::get(core, 0).unwrap_or(None);
        }
        self.0.is_some_and(|port| port.write(item).is_ok())
    }
}

/// Other work of each core: of low priority, so that it blocks the stage.
pub struct Other {
    /// Cycles of a job.
    pub cycles: u64,
    /// Ticks between two.
    pub period: u64,
}

impl Task for Other {
    fn run(&mut self, job: Job) -> Done {
        let start = time::cycles();
        while time::cycles() - start < self.cycles {}
        let tick = time::now();
        job.delay_until(tick - tick % self.period + self.period)
    }
}
