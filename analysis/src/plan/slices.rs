//! Round robin in slices with quotas: response times on a processor shared by TileMux.
//!
//! Why it exists: time slices have no priorities, so no test of [`crate::schedulability`] fits them. What it deliberately does not know:
//! what the other tasks do; each may take whatever its slice allows.
//!
//! Method. Of `n` tasks, one gets a turn of at most a slice, then each of the others gets at most one turn before its next one; a task that
//! wakes up queues behind all others. A scheduler decision precedes every turn and is not part of it; releases interrupt whatever runs and
//! use up its slice. So with `k` turns a task waits `k (n - 1)` slices with their decisions, and `k` decisions of its own. Work of W needs
//! `W / slice` turns, rounded up; the end of a job ends a turn, and so does a quota that is used up, which makes the task wait for the rest
//! of its period: possibly immediately the first time, then after each full quota. The decision is not part of the quota.
//!
//! Jobs of a task that wait for each other are analysed together until one of them is done before the next can be released.

use bulkhead_model::tasks::TaskSystem;

use super::evaluate::{Known, OwnCost};
use super::prepare::{self, nanoseconds};
use crate::schedulability::handlers;
use crate::schedulability::task::LIMIT;
use crate::schedulability::{Task, TaskError};

/// Jobs of a task waiting for each other after which the search is given up.
const JOBS_MAX: u64 = 1_000;
/// Maximum steps of one search for a window; each adds at least one release.
const STEPS_MAX: usize = 10_000;

/// The cost and yield of a turn. Times in nanoseconds.
struct Turns {
    others: u64,
    slice: u64,
    decision: u64,
    releases: Vec<Task>,
    quota: Option<(u64, u64)>,
}

/// Response times of the tasks `members` of a processor; `None` for a task without a cost.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn processor(system: &TaskSystem, members: &[usize]) -> Result<Vec<Known>, TaskError> {
    let bound = |&index: &usize| Known {
        response: response(system, members, index),
        met: false,
    };
    Ok(members.iter().map(bound).collect())
}

fn response(system: &TaskSystem, members: &[usize], index: usize) -> Option<u64> {
    let task = &system.tasks[index];
    let cost = nanoseconds(task.criticality_cost()?);
    let (period, jitter) = (nanoseconds(task.period), nanoseconds(task.jitter));
    let turns = Turns {
        others: members.len() as u64 - 1,
        slice: nanoseconds(system.slice).max(1),
        decision: nanoseconds(system.overheads.schedule),
        releases: prepare::releases(system, members.iter().copied()),
        quota: task
            .quota
            .filter(|quota| quota.budget < quota.period)
            .map(|quota| {
                let budget = nanoseconds(quota.budget).max(1);
                (budget, nanoseconds(quota.period).saturating_sub(budget))
            }),
    };
    let mut worst = 0;
    for job in 1..=JOBS_MAX {
        let window = turns.window(cost, job)?;
        let end = window.checked_add(jitter)?;
        worst = worst.max(end.saturating_sub((job - 1).checked_mul(period)?));
        if end <= job.checked_mul(period)? {
            return Some(worst);
        }
    }
    None
}

impl Turns {
    /// The longest time from the release of the first of `jobs` to the end of the last of them.
    fn window(&self, cost: u64, jobs: u64) -> Option<u64> {
        let work = cost.checked_mul(jobs)?;
        let mut window = work;
        for _ in 0..STEPS_MAX {
            let inside = work.checked_add(handlers::taken(&self.releases, window))?;
            let (stops, waits) = match self.quota {
                Some((budget, rest)) => {
                    let stops = inside.div_ceil(budget);
                    (stops, stops.checked_mul(rest)?)
                }
                None => (0, 0),
            };
            // Alone, only the task itself ends a turn.
            let slices = if self.others == 0 {
                1
            } else {
                inside.div_ceil(self.slice)
            };
            let turns = slices.checked_add(stops)?.checked_add(jobs - 1)?;
            let another = self.slice.checked_add(self.decision)?;
            let each = self
                .others
                .checked_mul(another)?
                .checked_add(self.decision)?;
            // Alone, the decision after an earlier job may be in progress.
            let before = if self.others == 0 { self.decision } else { 0 };
            let needed = inside
                .checked_add(turns.checked_mul(each)?)?
                .checked_add(waits)?
                .checked_add(before)?;
            if needed <= window {
                return Some(window);
            }
            if needed > LIMIT {
                return None;
            }
            window = needed;
        }
        None
    }
}
