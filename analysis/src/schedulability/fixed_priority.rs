//! Preemptive fixed priorities on one processor: exact response times.
//!
//! Method: M. Joseph, P. Pandya, *Finding response times in a real-time system*, The Computer Journal 29(5), 1986;
//! blocking and release jitter: N. Audsley, A. Burns, M. Richardson, K. Tindell, A. Wellings, *Applying new scheduling
//! theory to static priority pre-emptive scheduling*, Software Engineering Journal 8(5), 1993; deadlines beyond periods:
//! K. Tindell, A. Burns, A. Wellings, *An extendible approach for analyzing fixed priority hard real-time tasks*,
//! Real-Time Systems 6(2), 1994.
//!
//! Assumptions: independent except for `blocking`, which each busy period suffers once; no scheduling overhead; a job arrives at least
//! a period after the previous one and is released up to `jitter` later. Exact without blocking.
//!
//! At a utilisation of exactly 1 a busy period that began with jitter or blocking need not end. Moving a window and its job by
//! a hyperperiod adds the same to both sides of the recurrence, so no job answers later than the one a hyperperiod before it,
//! and the jobs of one hyperperiod are enough.

use super::task::{Task, TaskError, Time, common_multiple, validate};

/// Jobs of a busy period examined before the search is given up as hopeless.
pub const JOBS_MAX: u64 = 100_000;

/// Steps of a fixed-point search before it is given up: each adds at least one job, so only utilisations extremely close to 1 and
/// periods a million times apart come near.
pub const STEPS_MAX: u64 = 100 * JOBS_MAX;
/// Longest deadline by shortest period up to which [`Scan`] passes arrivals one by one; beyond, a division is faster.
const SCAN_RATIO: Time = 1 << 16;

/// Longest response times, from arrival to completion (release jitter included), by decreasing priority. `None`: the task
/// (or the tasks together with those above it) needs more than the processor, so that there is no bound; or so nearly all
/// of it that the busy period (or, at a utilisation of exactly 1, the hyperperiod) has more than [`JOBS_MAX`] of its jobs or
/// takes more than [`STEPS_MAX`] steps.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn response_times(tasks: &[Task]) -> Result<Vec<Option<Time>>, TaskError> {
    validate(tasks)?;
    Ok((0..tasks.len())
        .map(|i| response(&tasks[..i], &tasks[i], None))
        .collect())
}

/// Whether every job meets its deadline. Stops at the first that may not; much faster than [`response_times`].
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn schedulable(tasks: &[Task]) -> Result<bool, TaskError> {
    validate(tasks)?;
    let shortest = tasks.iter().map(|t| t.period).min().unwrap_or(1);
    let plain = tasks
        .iter()
        .all(|t| t.blocking == 0 && t.deadline <= t.period && t.deadline / SCAN_RATIO <= shortest);
    Ok(if plain {
        Scan::default().schedulable(tasks)
    } else {
        one_by_one(tasks)
    })
}

fn one_by_one(tasks: &[Task]) -> bool {
    (0..tasks.len()).all(|i| {
        let task = &tasks[i];
        response(&tasks[..i], task, Some(task.deadline)).is_some_and(|r| r <= task.deadline)
    })
}

/// Response time of `task` below `higher`. With `limit`, `None` also as soon as it is known to exceed it.
fn response(higher: &[Task], task: &Task, limit: Option<Time>) -> Option<Time> {
    let load = || higher.iter().chain([task]);
    let order = super::utilisation::compare(load().map(|t| (t.cost, t.period)), 1);
    if order.is_gt() {
        return None;
    }
    let repeats = order
        .is_eq()
        .then(|| jobs_until_repetition(load(), task.period));
    let mut worst = 0;
    let mut steps = 0;
    let mut window = task.blocking;
    for job in 0..JOBS_MAX {
        let own = task.cost.checked_mul(job + 1)?.checked_add(task.blocking)?;
        window = window.max(own);
        loop {
            let mut needed = own;
            for h in higher {
                let arrivals = window.checked_add(h.jitter)?.div_ceil(h.period);
                needed = needed.checked_add(arrivals.checked_mul(h.cost)?)?;
            }
            if needed <= window {
                break;
            }
            steps += 1;
            if steps > STEPS_MAX {
                return None;
            }
            window = needed;
            let late = window.checked_add(task.jitter)?;
            let late = late.saturating_sub(job.checked_mul(task.period)?);
            if limit.is_some_and(|l| late > l) {
                return None;
            }
        }
        let end = window.checked_add(task.jitter)?;
        worst = worst.max(end.saturating_sub(job.checked_mul(task.period)?));
        // The next job arrives at (job + 1) periods, seen from the release of the first, which was `jitter` late.
        let over = end <= (job + 1).checked_mul(task.period)?;
        if over || repeats.flatten().is_some_and(|jobs| job + 1 >= jobs) {
            return Some(worst);
        }
    }
    None
}

/// Jobs of a task with this period in a hyperperiod of `load`: with a utilisation of exactly 1 no later job of a busy period
/// answers later. `None` beyond 64 bits.
pub(super) fn jobs_until_repetition<'a>(
    load: impl Iterator<Item = &'a Task>,
    period: Time,
) -> Option<u64> {
    common_multiple(load.map(|t| t.period)).map(|length| length / period)
}

/// The schedulability test for constrained deadlines without blocking, as one scan.
///
/// Response times grow with falling priority, so the number of arrivals that the last window contained is a valid start
/// for the next task: nothing is divided, each arrival of a task of higher priority is passed once in the whole scan.
/// (The start value is that of M. Sjödin, H. Hansson, *Improved response-time analysis calculations*, RTSS 1998.)
#[derive(Debug, Default)]
pub struct Scan {
    /// Window length up to which the counted arrivals suffice, for each task passed so far.
    next: Vec<Time>,
    costs: Vec<Time>,
    periods: Vec<Time>,
}

impl Scan {
    /// Whether all of `tasks` (valid, deadlines within periods, no blocking) meet their deadlines. Reuses its memory.
    pub fn schedulable(&mut self, tasks: &[Task]) -> bool {
        // Passing arrivals one by one is quick only if there are not too many of them.
        let shortest = tasks.iter().map(|t| t.period).min().unwrap_or(1);
        let longest = tasks.iter().map(|t| t.deadline).max().unwrap_or(0);
        if longest / (1 << 20) > shortest {
            return one_by_one(tasks);
        }
        self.next.clear();
        self.costs.clear();
        self.periods.clear();
        // The window of the last task, without its own jitter.
        let mut window: Time = 0;
        for task in tasks {
            let Some(limit) = task.deadline.checked_sub(task.jitter) else {
                return false;
            };
            window += task.cost;
            if window > limit {
                return false;
            }
            loop {
                let mut more = 0;
                for ((next, &cost), &period) in
                    self.next.iter_mut().zip(&self.costs).zip(&self.periods)
                {
                    while *next < window {
                        *next += period;
                        more += cost;
                    }
                }
                if more == 0 {
                    break;
                }
                window += more;
                if window > limit {
                    return false;
                }
            }
            // One arrival of its own is in the window. The jitter is below the deadline here, hence below the period.
            self.next.push(task.period - task.jitter);
            self.costs.push(task.cost);
            self.periods.push(task.period);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Policy, Simulation};
    use super::*;
    use proptest::prelude::*;

    /// Worked example of the literature: (1,4), (1,5), (3,9), (3,18) respond within 1, 2, 7 and 18.
    #[test]
    fn worked_example() {
        let tasks = [(1, 4), (1, 5), (3, 9), (3, 18)].map(|(c, t)| Task::new(c, t));
        let expected = [1, 2, 7, 18].map(Some);
        assert_eq!(response_times(&tasks).unwrap(), expected);
        assert!(schedulable(&tasks).unwrap());
        // Not if every task exists twice.
        let twice: Vec<_> = tasks.iter().flat_map(|t| [*t, *t]).collect();
        assert!(!schedulable(&twice).unwrap());
    }

    /// SchedCAT's own example, without and with blocking of the first two.
    #[test]
    fn second_worked_example() {
        let mut tasks = [(1, 2), (5, 20), (1, 20)].map(|(c, t)| Task::new(c, t));
        assert_eq!(response_times(&tasks).unwrap(), [1, 10, 12].map(Some));
        (tasks[0].blocking, tasks[1].blocking) = (1, 5);
        assert_eq!(response_times(&tasks).unwrap(), [2, 20, 12].map(Some));
    }

    /// The case study of Audsley et al. 1993: cost, period, deadline, blocking, jitter, response without own jitter.
    #[test]
    fn audsley_case_study() {
        let rows: [[u64; 6]; 18] = [
            [51, 1000, 1000, 0, 0, 51],
            [3000, 2000000, 5000, 300, 0, 3504],
            [2000, 25000, 25000, 600, 0, 5906],
            [5000, 25000, 25000, 900, 0, 11512],
            [1000, 40000, 40000, 1350, 0, 13064],
            [3000, 50000, 50000, 1350, 0, 16217],
            [5000, 50000, 50000, 750, 0, 20821],
            [8000, 59000, 59000, 750, 0, 36637],
            [9000, 80000, 80000, 1350, 0, 47798],
            [2000, 80000, 80000, 450, 0, 48949],
            [5000, 100000, 100000, 1050, 0, 99150],
            [1000, 200000, 200000, 450, 1000, 99550],
            [3000, 200000, 200000, 450, 0, 140641],
            [1000, 200000, 200000, 450, 0, 141692],
            [1000, 200000, 200000, 1350, 0, 143694],
            [3000, 1000000, 1000000, 0, 0, 145446],
            [1000, 1000000, 1000000, 0, 0, 146497],
            [1000, 1000000, 1000000, 0, 0, 147548],
        ];
        let tasks = rows
            .map(|[c, t, d, b, j, _]| Task::constrained(c, t, d).with_blocking(b).with_jitter(j));
        let expected = rows.map(|r| Some(r[5] + r[4]));
        assert_eq!(response_times(&tasks).unwrap(), expected);
        assert!(schedulable(&tasks).unwrap());
    }

    /// Deadlines beyond periods: the example of J. Lehoczky, RTSS 1990. The jobs of the second task's busy period respond
    /// within 114, 102, 116, 104, 118, 106 and 94: the first is not the worst.
    #[test]
    fn arbitrary_deadline() {
        let tasks = [Task::new(26, 70), Task::constrained(62, 100, 118)];
        assert_eq!(response_times(&tasks).unwrap(), [Some(26), Some(118)]);
        assert!(schedulable(&tasks).unwrap());
    }

    #[test]
    fn overload_has_no_bound() {
        assert_eq!(
            response_times(&[Task::new(2, 3), Task::new(2, 4)]).unwrap(),
            [Some(2), None]
        );
        // Exactly full is bounded: (1,2) and (1,2).
        assert_eq!(
            response_times(&[Task::new(1, 2), Task::new(1, 2)]).unwrap(),
            [Some(1), Some(2)]
        );
    }

    /// A full processor with jitter, by hand: (1, 2) released 1 late at 0 and again at 1 and 3 delays (1, 2) to 0 2 4 + 1, 3 each time.
    #[test]
    fn a_full_processor_with_jitter_or_blocking_is_bounded() {
        let tasks = [Task::new(1, 2).with_jitter(1), Task::constrained(1, 2, 3)];
        assert_eq!(response_times(&tasks).unwrap(), [2, 3].map(Some));
        assert!(!schedulable(&[tasks[0], Task::new(1, 2)]).unwrap());
        assert!(schedulable(&tasks).unwrap());
        let blocked = [Task::new(1, 2), Task::new(2, 4).with_blocking(3)];
        assert_eq!(response_times(&blocked).unwrap(), [1, 10].map(Some));
    }

    pub(crate) fn systems(jitter: u64) -> impl Strategy<Value = Vec<Task>> {
        let period = prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20, 24, 30]);
        let task = (1u64..7, period, 1u64..40, 0..=jitter)
            .prop_map(|(c, t, d, j)| Task::constrained(c, t, d).with_jitter(j));
        prop::collection::vec(task, 1..5)
    }

    proptest! {
        /// Without jitter and blocking the test is exact: the synchronous release shows each response time.
        #[test]
        fn equals_the_simulated_critical_instant(tasks in systems(0)) {
            let bounds = response_times(&tasks).unwrap();
            let seen = Simulation::new(Policy::FixedPriority, 1).synchronous(&tasks, 2400).responses;
            for (bound, seen) in bounds.iter().zip(&seen) {
                if let Some(bound) = bound { prop_assert_eq!(bound, seen); }
            }
        }

        #[test]
        fn no_random_release_is_worse(tasks in systems(6), seed: u64) {
            let bounds = response_times(&tasks).unwrap();
            let seen = Simulation::new(Policy::FixedPriority, 1).random(&tasks, 2000, seed).responses;
            for (bound, seen) in bounds.iter().zip(&seen) {
                if let Some(bound) = bound { prop_assert!(seen <= bound, "{} > {}", seen, bound); }
            }
        }

        #[test]
        fn the_fast_test_agrees(mut tasks in systems(6)) {
            for t in &mut tasks { t.deadline = t.deadline.min(t.period); }
            let slow = response_times(&tasks).unwrap().iter().zip(&tasks).all(|(r, t)| r.is_some_and(|r| r <= t.deadline));
            prop_assert_eq!(schedulable(&tasks).unwrap(), slow);
            prop_assert_eq!(one_by_one(&tasks), slow);
        }

        #[test]
        fn more_load_is_never_better(tasks in systems(3), which in any::<prop::sample::Index>(), more in systems(0)) {
            let before = response_times(&tasks).unwrap();
            let index = which.index(tasks.len());
            let mut heavier = tasks.clone();
            heavier[index].cost += 1;
            let mut faster = tasks.clone();
            faster[index].period = (faster[index].period - 1).max(1);
            let mut longer = vec![more[0]];
            longer.extend(&tasks);
            let compare = |after: &[Option<u64>]| {
                before.iter().zip(after).all(|(b, a)| a.is_none() || b.is_some_and(|b| b <= a.unwrap()))
            };
            prop_assert!(compare(&response_times(&heavier).unwrap()));
            prop_assert!(compare(&response_times(&faster).unwrap()));
            prop_assert!(compare(&response_times(&longer).unwrap()[1..]));
        }
    }
}
