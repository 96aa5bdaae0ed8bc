//! Periodic tasks: releases at exact multiples of the period, jobs, deadlines.
//!
//! Why it exists: control programs are periodic. What it deliberately does not know: what a job does.

use crate::time;
use bulkhead_hal::marker;
use bulkhead_user::user;

/// A periodic task of the calling activity.
#[derive(Debug)]
pub struct PeriodicTask {
    period: u64,
    deadline: u64,
    release: u64,
    job: u64,
    misses: u64,
}

impl PeriodicTask {
    /// The task of the description. Its first release is at the next multiple of the period, so that tasks of the same period on
    /// different tiles are released together.
    ///
    /// # Panics
    /// If the description gives no period.
    pub fn from_environment() -> Self {
        Self::find().expect("the description gives no <task>")
    }

    /// The same; `None` if the description gives no period.
    pub fn find() -> Option<Self> {
        let environment = user::environment();
        let (period, deadline) = (environment.period, environment.deadline);
        (period > 0).then(|| Self::new(period, deadline, time::now()))
    }

    /// A task with a period and a relative deadline (0: none) in nanoseconds.
    pub fn new(period: u64, deadline: u64, now: u64) -> Self {
        Self {
            period,
            deadline,
            release: (now / period + 1) * period,
            job: 0,
            misses: 0,
        }
    }

    /// Sleeps until the next release and begins a job. Returns its number, from 1 on.
    pub fn next_job(&mut self) -> u64 {
        // Before the sleep: if others keep the job from the hart, the next marker comes late, or never.
        marker::job_due(self.release);
        time::sleep_until(self.release);
        self.job += 1;
        marker::job_release(self.job);
        self.job
    }

    /// When the current job was released, in nanoseconds since reset.
    pub fn release(&self) -> u64 {
        self.release
    }

    /// Ends the job. Returns whether its deadline was met. A release that has passed already is not skipped.
    pub fn complete(&mut self) -> bool {
        marker::job_complete(self.job);
        let met = self.deadline == 0 || time::now() <= self.release + self.deadline;
        if !met {
            self.misses += 1;
            marker::deadline_miss(self.job);
        }
        self.release += self.period;
        met
    }

    /// Deadlines missed so far.
    pub fn misses(&self) -> u64 {
        self.misses
    }
}
