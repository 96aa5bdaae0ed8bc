//! Fixed priorities with preemption thresholds on one processor, and with them non-preemptive scheduling.
//!
//! Method: Y. Wang, M. Saksena, *Scheduling fixed-priority tasks with preemption threshold*, RTCSA 1999, with the busy
//! period of U. Keskin, R. Bril, J. Lukkien, *Exact response-time analysis for fixed-priority preemption-threshold
//! scheduling*, ETFA 2010; non-preemptive: L. George, N. Rivierre, M. Spuri, *Preemptive and non-preemptive real-time
//! uniprocessor scheduling*, INRIA RR-2966, 1996, with all jobs of the busy period (R. Davis, A. Burns, R. Bril,
//! J. Lukkien, *Controller Area Network schedulability analysis: refuted, revisited and revised*, Real-Time Systems
//! 35(3), 2007).
//!
//! Assumptions: as [`super::fixed_priority`]. Time is discrete: a job of lower priority that blocks another started at least one unit
//! before it. `blocking` of a task is taken if it is longer than that.

use super::fixed_priority::{JOBS_MAX, jobs_until_repetition};
use super::task::{Task, TaskError, Time, validate};
use super::utilisation::compare;

/// Longest response times if no job is ever preempted. `None`: no bound, or a busy period of
/// more than [`JOBS_MAX`] jobs of the task.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn non_preemptive(tasks: &[Task]) -> Result<Vec<Option<Time>>, TaskError> {
    response_times(tasks, &vec![0; tasks.len()])
}

/// Longest response times by decreasing priority, from arrival. A job that has started is preempted only by tasks with an
/// index below its threshold; `thresholds[i]` is at most `i`, and `i` itself means fully preemptive.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range; a threshold above the task's index, or a missing one, is not covered.
pub fn response_times(
    tasks: &[Task],
    thresholds: &[usize],
) -> Result<Vec<Option<Time>>, TaskError> {
    validate(tasks)?;
    for index in 0..tasks.len() {
        if thresholds.get(index).is_none_or(|&t| t > index) {
            return Err(TaskError::NotCovered {
                task: index,
                what: "a threshold below its own priority",
            });
        }
    }
    Ok((0..tasks.len())
        .map(|i| response(tasks, thresholds, i, From::Arrival))
        .collect())
}

/// Longest response of one task if no job is ever preempted, from its release instead of its arrival. Its jobs arrive at least a period apart and are
/// released at most their jitter later, so two releases may be closer than a period by the jitter.
///
/// # Errors
/// As [`response_times`].
pub fn from_release(tasks: &[Task], index: usize) -> Result<Option<Time>, TaskError> {
    validate(tasks)?;
    Ok(response(tasks, &vec![0; tasks.len()], index, From::Release))
}

/// Where a response begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    Arrival,
    Release,
}

/// Whether every job meets its deadline under these thresholds.
///
/// # Errors
/// As [`response_times`].
pub fn schedulable(tasks: &[Task], thresholds: &[usize]) -> Result<bool, TaskError> {
    let responses = response_times(tasks, thresholds)?;
    Ok(responses
        .iter()
        .zip(tasks)
        .all(|(r, t)| r.is_some_and(|r| r <= t.deadline)))
}

fn response(tasks: &[Task], thresholds: &[usize], index: usize, from: From) -> Option<Time> {
    let task = &tasks[index];
    let higher = &tasks[..index];
    let lower = tasks.iter().zip(thresholds).skip(index + 1);
    let blocked = lower
        .filter(|(_, t)| **t <= index)
        .map(|(l, _)| l.cost - 1)
        .max()
        .unwrap_or(0);
    let blocking = blocked.max(task.blocking);
    let load = || tasks[..=index].iter();
    let order = compare(load().map(|t| (t.cost, t.period)), 1);
    if order.is_gt() {
        return None;
    }
    let preempting = &tasks[..thresholds[index]];
    let mut worst: Time = 0;
    let mut start: Time = 0;
    let mut finish: Time = 0;
    // The level's busy period decides how many jobs are examined; if it need not end, a hyperperiod does.
    let busy = || {
        let length = fixpoint(blocking.max(1), |w| {
            load().try_fold(blocking, |sum, t| {
                let arrivals = w.checked_add(t.jitter)?.div_ceil(t.period);
                sum.checked_add(arrivals.checked_mul(t.cost)?)
            })
        })?;
        Some(length.checked_add(task.jitter)?.div_ceil(task.period))
    };
    let endless = order.is_eq() && (blocking > 0 || load().any(|t| t.jitter > 0));
    let jobs = if endless {
        jobs_until_repetition(load(), task.period)
    } else {
        busy()
    };
    let jobs = jobs.filter(|&jobs| jobs <= JOBS_MAX)?;
    for job in 0..jobs {
        let own = task.cost.checked_mul(job)?.checked_add(blocking)?;
        // Tasks of higher priority that arrive at the start itself still go first.
        start = fixpoint(start.max(own), |s| {
            higher.iter().try_fold(own, |sum, h| {
                let arrivals = s.checked_add(h.jitter)? / h.period + 1;
                sum.checked_add(arrivals.checked_mul(h.cost)?)
            })
        })?;
        let least = start.checked_add(task.cost)?;
        finish = fixpoint(finish.max(least), |f| {
            preempting.iter().try_fold(least, |sum, h| {
                let all = f.checked_add(h.jitter)?.div_ceil(h.period);
                let before = start.checked_add(h.jitter)? / h.period + 1;
                sum.checked_add(all.saturating_sub(before).checked_mul(h.cost)?)
            })
        })?;
        let arrival = job.checked_mul(task.period)?;
        worst = worst.max(match from {
            From::Arrival => finish.checked_add(task.jitter)?.saturating_sub(arrival),
            // The first job of the busy period is released as late as can be, and begins it.
            From::Release => finish.saturating_sub(arrival.saturating_sub(task.jitter)),
        });
    }
    Some(worst)
}

/// The least value at or above `start` that `demand` does not exceed, `demand` not decreasing.
fn fixpoint(start: Time, demand: impl Fn(Time) -> Option<Time>) -> Option<Time> {
    let mut value = start;
    // Every step adds at least one job; a busy period of more jobs is not worth following.
    for _ in 0..10 * JOBS_MAX {
        let needed = demand(value)?;
        if needed <= value {
            return Some(value);
        }
        value = needed;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::fixed_priority;
    use super::super::simulation::{Policy, Simulation};
    use super::*;
    use proptest::prelude::*;

    /// Messages on a bus after Davis et al. 2007, table 1 (A: 1, 2.5; B: 1, 3.5; C: 1, 3.5), in halves of their unit, but
    /// every blocking one whole unit as there: C's second job is the worst: 3.5 = 7 halves. (They have deadline 3.25.)
    #[test]
    fn second_job_is_the_worst() {
        // A lower message of cost 3 blocks for 2 halves of a unit, that is one unit as in the example.
        let tasks = [Task::new(2, 5), Task::new(2, 7), Task::new(2, 7)].map(|t| t.with_blocking(0));
        let all = non_preemptive(&tasks).unwrap();
        // By hand: C starts when A (0-2) and B (2-4) are done, because at 4 no other job is present: 4-6. A again at 5: 6-8, B at 7: 8-10.
        // C's second job came at 7, waits for A's third at 10 (10-12), then runs 12-14: response 7.
        assert_eq!(all[2], Some(7));
    }

    /// Thresholds equal to the own priority are plain preemptive scheduling.
    #[test]
    fn own_priority_is_preemptive() {
        let tasks = [(1, 4), (1, 5), (3, 9), (3, 18)].map(|(c, t)| Task::new(c, t));
        let plain = fixed_priority::response_times(&tasks).unwrap();
        assert_eq!(response_times(&tasks, &[0, 1, 2, 3]).unwrap(), plain);
    }

    #[test]
    fn refuses_thresholds_below_the_priority() {
        assert!(response_times(&[Task::new(1, 4)], &[1]).is_err());
        assert!(response_times(&[Task::new(1, 4)], &[]).is_err());
    }

    fn systems() -> impl Strategy<Value = (Vec<Task>, Vec<usize>)> {
        let period = prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20, 24, 30]);
        let task = (1u64..6, period, 0u64..5).prop_map(|(c, t, j)| Task::new(c, t).with_jitter(j));
        prop::collection::vec((task, any::<prop::sample::Index>()), 1..5).prop_map(|v| {
            let thresholds = v
                .iter()
                .enumerate()
                .map(|(i, (_, x))| x.index(i + 1))
                .collect();
            (v.into_iter().map(|(t, _)| t).collect(), thresholds)
        })
    }

    proptest! {
        #[test]
        fn no_simulation_is_worse((tasks, thresholds) in systems(), seed: u64) {
            let bounds = response_times(&tasks, &thresholds).unwrap();
            let seen = Simulation::new(Policy::Threshold(thresholds), 1).random(&tasks, 2000, seed).responses;
            for (bound, seen) in bounds.iter().zip(&seen) {
                if let Some(bound) = bound { prop_assert!(seen <= bound, "{} > {}", seen, bound); }
            }
            let bounds = non_preemptive(&tasks).unwrap();
            let seen = Simulation::new(Policy::NonPreemptive, 1).random(&tasks, 2000, seed).responses;
            for (bound, seen) in bounds.iter().zip(&seen) {
                if let Some(bound) = bound { prop_assert!(seen <= bound, "{} > {}", seen, bound); }
            }
        }

        /// The lowest task of a non-preemptive system has no blocking, so the synchronous release is its worst case.
        #[test]
        fn exact_for_the_lowest((mut tasks, _) in systems()) {
            for t in &mut tasks { t.jitter = 0; }
            let bound = *non_preemptive(&tasks).unwrap().last().unwrap();
            let seen = *Simulation::new(Policy::NonPreemptive, 1).synchronous(&tasks, 2400).responses.last().unwrap();
            if let Some(bound) = bound { prop_assert_eq!(bound, seen); }
        }

        #[test]
        fn more_cost_is_never_better((tasks, thresholds) in systems(), which in any::<prop::sample::Index>()) {
            let before = response_times(&tasks, &thresholds).unwrap();
            let mut heavier = tasks.clone();
            let index = which.index(tasks.len());
            heavier[index].cost += 1;
            for (b, a) in before.iter().zip(response_times(&heavier, &thresholds).unwrap()) {
                prop_assert!(a.is_none() || b.is_some_and(|b| b <= a.unwrap()));
            }
        }
    }
}
