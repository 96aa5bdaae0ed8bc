//! The contents of an image.
//!
//! Why it exists: the kernel finds its tasks and handlers in one constant, which the build makes. What it deliberately does not know: what
//! they do.

use crate::task::{Done, Start};
use bulkhead_abi::one_shot::system;
use bulkhead_exec_one_shot::TASKS;
use core::mem::offset_of;
use core::sync::atomic::AtomicU64;

/// A task as the kernel sees it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Descriptor {
    pub(crate) run: fn(Start) -> Done,
    pub(crate) budget: u32,
    pub(crate) priority: u8,
}

// The build finds jobs and handlers in an image by these.
const _: () = {
    assert!(size_of::<Descriptor>() as u64 == system::DESCRIPTOR);
    assert!(offset_of!(Descriptor, run) == 0);
    assert!(offset_of!(Descriptor, budget) as u64 == system::BUDGET);
    assert!(size_of::<Configuration>() as u64 == system::SIZE);
    assert!(offset_of!(Configuration, timer) as u64 == system::TIMER);
    assert!(offset_of!(Configuration, tasks) as u64 == system::TASKS);
    assert!(offset_of!(Configuration, software) as u64 == system::HANDLERS[0]);
    assert!(offset_of!(Configuration, external) as u64 == system::HANDLERS[1]);
    assert!(offset_of!(Configuration, idle) as u64 == system::HANDLERS[2]);
    assert!(offset_of!(Configuration, first) as u64 == system::HANDLERS[3]);
    assert!(offset_of!(Configuration, gone) as u64 == system::HANDLERS[4]);
};

impl Descriptor {
    /// A function that runs one job; a greater priority is more urgent; budget in cycles, 0 is none.
    pub const fn new(run: fn(Start) -> Done, priority: u8, budget: u32) -> Self {
        Self {
            run,
            budget,
            priority,
        }
    }
}

/// Sorts tasks by decreasing priority; equals keep their order. The build does it.
pub const fn ordered<const N: usize>(mut tasks: [Descriptor; N]) -> [Descriptor; N] {
    assert!(N <= TASKS, "a core has at most 64 tasks");
    let mut sorted = 1;
    while sorted < N {
        let mut at = sorted;
        while at > 0 && tasks[at - 1].priority < tasks[at].priority {
            tasks.swap(at - 1, at);
            at -= 1;
        }
        sorted += 1;
    }
    tasks
}

/// Everything that the kernel is told.
#[derive(Debug)]
#[repr(C)]
pub struct Configuration {
    /// Counts of the timer in a tick.
    pub(crate) timer: u64,
    pub(crate) tasks: &'static [Descriptor],
    pub(crate) table: &'static [AtomicU64],
    pub(crate) software: Option<fn()>,
    pub(crate) external: Option<fn()>,
    pub(crate) idle: Option<fn()>,
    pub(crate) first: Option<fn()>,
    pub(crate) gone: Option<fn()>,
}

impl Configuration {
    /// No handlers. `timer`: counts of the platform's timer in a tick, at least 1; 1 ms is usual.
    pub const fn new(timer: u64) -> Self {
        assert!(timer > 0, "a tick has at least one count of the timer");
        Self {
            timer,
            tasks: &[],
            table: &[],
            software: None,
            external: None,
            idle: None,
            first: None,
            gone: None,
        }
    }

    /// A handler of the software interrupt (the doorbell that other cores ring). It runs with interrupts masked, between any two
    /// instructions of a job, without floating point, and must take the cause away ([`crate::arch::clear_software_interrupt`]).
    pub const fn on_software_interrupt(mut self, handler: fn()) -> Self {
        self.software = Some(handler);
        self
    }

    /// A handler of the external interrupt, under the same rules.
    pub const fn on_external_interrupt(mut self, handler: fn()) -> Self {
        self.external = Some(handler);
        self
    }

    /// Called whenever no task is ready, before the core waits. A task that becomes ready meanwhile waits for its end.
    pub const fn when_idle(mut self, idle: fn()) -> Self {
        self.idle = Some(idle);
        self
    }

    /// Called once, with interrupts masked, before the first job.
    pub const fn at_first(mut self, first: fn()) -> Self {
        self.first = Some(first);
        self
    }

    /// Called, with interrupts masked, when the task whose job runs has stopped for good.
    pub const fn when_gone(mut self, gone: fn()) -> Self {
        self.gone = Some(gone);
        self
    }

    /// With these tasks, and a table with a word for each.
    #[doc(hidden)]
    pub const fn with(mut self, tasks: &'static [Descriptor], table: &'static [AtomicU64]) -> Self {
        self.tasks = tasks;
        self.table = table;
        self
    }
}
