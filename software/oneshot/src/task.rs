//! A task as its author sees it.
//!
//! Why it exists: the rules of one-shot tasks as types. What it deliberately does not know: how jobs are started, and what they may wait for.

use bulkhead_abi::one_shot::marker;
use bulkhead_hal::marker::custom;
use core::marker::PhantomData;

/// A task: its fields survive from job to job.
pub trait Task {
    /// One job, from its release to its end. It is never preempted by other tasks.
    fn run(&mut self, job: Job) -> Done;
}

/// The running job: its owner may end it, once.
#[derive(Debug)]
#[must_use = "a job must end"]
pub struct Job(PhantomData<*const ()>);

/// A job has ended: it is known what its task waits for.
#[derive(Debug)]
#[must_use = "give it back from the task's function"]
pub struct Done(PhantomData<*const ()>);

/// The start of a job: only the kernel makes one, for each job.
#[derive(Debug)]
pub struct Start(PhantomData<*const ()>);

impl Start {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }

    /// The job that starts.
    pub(crate) fn job(self) -> Job {
        Job(PhantomData)
    }
}

impl Job {
    /// The task never runs again. The host expects no further job of it.
    pub fn end(self) -> Done {
        custom::<{ marker::RETIRED }>(0);
        self.done()
    }

    /// The task waits for what the caller has recorded.
    #[inline]
    pub(crate) fn done(self) -> Done {
        Done(PhantomData)
    }
}
