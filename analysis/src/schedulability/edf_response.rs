//! Preemptive earliest deadline first on one processor: exact response times.
//!
//! Method: M. Spuri, *Analysis of deadline scheduled real-time systems*, INRIA RR-2772, 1996, section 4 (deadline busy
//! periods, with release jitter).
//!
//! Assumptions: independent tasks with arbitrary deadlines, handlers before all of them. Exact without jitter. A task's longest response
//! need not follow a synchronous release, so every arrival at which a deadline of the task coincides with one of another task is tried.

use super::edf::busy_period;
use super::task::{self, LIMIT, Task, TaskError, Time, validate};
use super::utilisation::compare_with;
use std::collections::BTreeSet;

/// Arrivals tried for a task before the search is given up as hopeless.
pub const ARRIVALS_MAX: usize = 100_000;

/// Longest response times from arrival; `None` if the tasks need more than the processor, or so nearly all of it that a busy period is
/// too long to examine.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or a task has blocking.
pub fn response_times(tasks: &[Task]) -> Result<Vec<Option<Time>>, TaskError> {
    response_times_with(tasks, &[])
}

/// The same beside handlers ([`super::handlers`]); their deadlines do not count.
///
/// # Errors
/// As [`response_times`].
pub fn response_times_with(
    tasks: &[Task],
    handlers: &[Task],
) -> Result<Vec<Option<Time>>, TaskError> {
    let all = [tasks, handlers].concat();
    validate(&all)?;
    task::refuse(&all, &[task::BLOCKING])?;
    let order = compare_with(&all, 1);
    let jitter = all.iter().any(|t| t.jitter > 0);
    let busy = if order.is_gt() {
        None
    } else if order.is_eq() && jitter {
        // A full processor may never idle again. Once the deadlines of all tasks can lie before its own, an arrival a hyperperiod later
        // answers no later.
        let latest = tasks.iter().map(|t| t.deadline).max().unwrap_or(0);
        task::common_multiple(all.iter().map(|t| t.period))
            .and_then(|all| all.checked_add(latest))
            .filter(|&all| all <= LIMIT << 8)
    } else {
        busy_period(&all, LIMIT << 8)
    };
    Ok(match busy {
        None => vec![None; tasks.len()],
        Some(busy) => (0..tasks.len())
            .map(|i| response(tasks, handlers, i, busy))
            .collect(),
    })
}

fn response(tasks: &[Task], handlers: &[Task], index: usize, busy: Time) -> Option<Time> {
    let task = &tasks[index];
    let (period, deadline, jitter) = (wide(task.period), wide(task.deadline), wide(task.jitter));
    // Arrivals `a` of the task, relative to the start of a busy period, released `jitter` late if that is needed to lie in it.
    let mut candidates = BTreeSet::new();
    for other in tasks {
        let mut arrival = wide(other.deadline) - wide(other.jitter) - deadline;
        let step = wide(other.period);
        if arrival < -jitter {
            arrival += (-jitter - arrival + step - 1) / step * step;
        }
        while arrival < wide(busy) {
            candidates.insert(arrival);
            if candidates.len() > ARRIVALS_MAX {
                return None;
            }
            arrival += step;
        }
    }
    let mut worst = task.cost.checked_add(task.jitter)?;
    for arrival in candidates {
        let own = ((arrival + jitter).div_euclid(period) + 1) * wide(task.cost);
        let demand = |length: i128| {
            let before = handlers.iter().fold(own, |sum, h| {
                let asked =
                    (length + wide(h.jitter) + wide(h.period) - 1).div_euclid(wide(h.period));
                sum + asked * wide(h.cost)
            });
            tasks
                .iter()
                .enumerate()
                .filter(|(j, _)| *j != index)
                .fold(before, |sum, (_, other)| {
                    let due = arrival + deadline - wide(other.deadline) + wide(other.jitter);
                    if due < 0 {
                        return sum;
                    }
                    let started = (length + wide(other.jitter) + wide(other.period) - 1)
                        .div_euclid(wide(other.period));
                    sum + started.min(due.div_euclid(wide(other.period)) + 1) * wide(other.cost)
                })
        };
        let mut length = 1;
        loop {
            let next = demand(length);
            if next <= length {
                break;
            }
            length = next;
        }
        worst = worst.max(Time::try_from(length - arrival).unwrap_or(0));
    }
    Some(worst)
}

fn wide(time: Time) -> i128 {
    i128::from(time)
}

#[cfg(test)]
mod tests {
    use super::super::edf;
    use super::super::simulation::{Policy, Simulation};
    use super::*;
    use proptest::prelude::*;

    /// (1, 4, 4), (2, 6, 6) and (4, 12, 12), exactly by hand for the first: its deadline meets the third's when it arrives at
    /// 8; before that 4 + 2 * 2 + 2 * 1 are due by 12, so its third job ends at 11 at the latest: response 3.
    #[test]
    fn by_hand() {
        let tasks = [Task::new(1, 4), Task::new(2, 6), Task::new(4, 12)];
        let responses = response_times(&tasks).unwrap();
        assert_eq!(responses[0], Some(3));
    }

    fn systems(jitter: u64) -> impl Strategy<Value = Vec<Task>> {
        let period = prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20]);
        let task = (1u64..5, period, 1u64..30, 0..=jitter)
            .prop_map(|(c, t, d, j)| Task::constrained(c, t, d).with_jitter(j));
        prop::collection::vec(task, 1..5)
    }

    proptest! {
        #[test]
        fn no_simulation_is_worse(tasks in systems(5), seed: u64) {
            let bounds = response_times(&tasks).unwrap();
            let simulation = Simulation::new(Policy::EarliestDeadline, 1);
            for outcome in [simulation.random(&tasks, 2000, seed), simulation.synchronous(&tasks, 1000)] {
                for (bound, seen) in bounds.iter().zip(&outcome.responses) {
                    if let Some(bound) = bound { prop_assert!(seen <= bound, "{} > {}", seen, bound); }
                }
            }
        }

        /// Both analyses are exact without jitter, so their verdicts are the same.
        #[test]
        fn agrees_with_processor_demand(tasks in systems(0)) {
            let all = response_times(&tasks).unwrap().iter().zip(&tasks).all(|(r, t)| r.is_some_and(|r| r <= t.deadline));
            prop_assert_eq!(edf::schedulable(&tasks).unwrap(), all);
        }

        /// Every offset of two tasks is tried: the longest response seen is the bound.
        #[test]
        fn exact_for_two_tasks(c in (1u64..4, 1u64..4), t in (4u64..9, 4u64..9), d in (1u64..12, 1u64..12)) {
            let tasks = [Task::constrained(c.0, t.0, d.0), Task::constrained(c.1, t.1, d.1)];
            let bounds = response_times(&tasks).unwrap();
            let mut seen = [0; 2];
            for first in 0..t.0 {
                // An offset is jitter of the first release only; shift by hand: the second task starts `first` later.
                let releases: Vec<_> = (0..80).map(|k| (k * t.0 + first, 0)).chain((0..80).map(|k| (k * t.1, 1))).collect();
                let responses = edf_by_unit(&tasks, &releases);
                for i in 0..2 { seen[i] = seen[i].max(responses[i]); }
            }
            for first in 0..t.1 {
                let releases: Vec<_> = (0..80).map(|k| (k * t.0, 0)).chain((0..80).map(|k| (k * t.1 + first, 1))).collect();
                let responses = edf_by_unit(&tasks, &releases);
                for i in 0..2 { seen[i] = seen[i].max(responses[i]); }
            }
            for i in 0..2 {
                if let Some(bound) = bounds[i] { prop_assert!(seen[i] <= bound); }
            }
            if let [Some(a), Some(b)] = bounds[..] {
                prop_assert_eq!([a, b], seen);
            }
        }
    }

    /// Earliest deadline first, unit by unit; the task under observation wins no ties.
    fn edf_by_unit(tasks: &[Task], releases: &[(u64, usize)]) -> [u64; 2] {
        let mut worst = [0; 2];
        for (observed, worst) in worst.iter_mut().enumerate() {
            let mut jobs: Vec<(u64, usize, u64)> = Vec::new();
            for now in 0..400 {
                jobs.extend(
                    releases
                        .iter()
                        .filter(|r| r.0 == now)
                        .map(|r| (r.0, r.1, tasks[r.1].cost)),
                );
                jobs.sort_by_key(|j| (j.0 + tasks[j.1].deadline, j.1 == observed, j.0));
                if let Some(job) = jobs.first_mut() {
                    job.2 -= 1;
                    if job.2 == 0 {
                        if job.1 == observed {
                            *worst = (*worst).max(now + 1 - job.0);
                        }
                        jobs.remove(0);
                    }
                }
            }
        }
        worst
    }
}
