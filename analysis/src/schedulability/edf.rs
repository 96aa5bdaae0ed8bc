//! Preemptive earliest deadline first on one processor: exact schedulability by processor demand (QPA).
//!
//! Method: F. Zhang, A. Burns, *Schedulability analysis for real-time systems with EDF scheduling*, IEEE Transactions on
//! Computers 58(9), 2009; the demand criterion: S. Baruah, A. Mok, L. Rosier, *Preemptively scheduling hard-real-time
//! sporadic tasks on one processor*, RTSS 1990; release jitter shortens a deadline (Spuri, INRIA RR-2772, 1996).
//!
//! Assumptions: independent tasks, arbitrary deadlines, no overhead except handlers, which run before all tasks and add their requests to
//! the demand of an interval. Exact for sporadic tasks and synchronous periodic ones. `blocking` is not covered.

use super::handlers::requested;
use super::task::{self, Task, TaskError, Time, validate};
use super::utilisation::{compare_with, sum};
use crate::exact::{ceiling, integer};
use num_traits::Signed;

/// Whether every job meets its deadline.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range, or a task has blocking.
pub fn schedulable(tasks: &[Task]) -> Result<bool, TaskError> {
    schedulable_with(tasks, &[])
}

/// The same beside handlers ([`super::handlers`]); their deadlines do not count.
///
/// # Errors
/// As [`schedulable`].
pub fn schedulable_with(tasks: &[Task], handlers: &[Task]) -> Result<bool, TaskError> {
    let all = [tasks, handlers].concat();
    validate(&all)?;
    task::refuse(&all, &[task::BLOCKING])?;
    let order = compare_with(&all, 1);
    if order.is_gt() {
        return Ok(false);
    }
    let mut deadlines = Vec::with_capacity(tasks.len());
    for task in tasks {
        match task.deadline.checked_sub(task.jitter) {
            Some(d) if d >= task.cost => deadlines.push(d),
            _ => return Ok(false),
        }
    }
    if handlers.is_empty() && tasks.iter().zip(&deadlines).all(|(t, &d)| d >= t.period) {
        return Ok(true);
    }
    let Some(least) = deadlines.iter().copied().min() else {
        return Ok(true);
    };
    let Some(bound) = interval(tasks, &deadlines, handlers, order.is_eq()) else {
        return Ok(false);
    };
    let Some(mut t) = last_deadline(tasks, &deadlines, bound) else {
        return Ok(true);
    };
    // From the longest interval down: the demand of an interval is a safe next one to check.
    loop {
        let Some(demand) = demand(tasks, &deadlines, handlers, t) else {
            return Ok(false);
        };
        if demand > t {
            return Ok(false);
        }
        if demand <= least {
            return Ok(true);
        }
        t = if demand < t {
            demand
        } else {
            match last_deadline(tasks, &deadlines, t) {
                Some(earlier) => earlier,
                None => return Ok(true),
            }
        };
    }
}

/// Execution that arrives and is due within an interval of length `t`, and what handlers are asked for in it.
fn demand(tasks: &[Task], deadlines: &[Time], handlers: &[Task], t: Time) -> Option<Time> {
    tasks
        .iter()
        .zip(deadlines)
        .try_fold(requested(handlers, t)?, |sum, (task, &d)| {
            let jobs = if t >= d { (t - d) / task.period + 1 } else { 0 };
            sum.checked_add(jobs.checked_mul(task.cost)?)
        })
}

/// The last absolute deadline before `t`.
fn last_deadline(tasks: &[Task], deadlines: &[Time], t: Time) -> Option<Time> {
    let before =
        |(task, &d): (&Task, &Time)| (d < t).then(|| d + (t - 1 - d) / task.period * task.period);
    tasks.iter().zip(deadlines).filter_map(before).max()
}

/// One more than the longest interval that must be checked. `None` if it does not fit into 64 bits.
fn interval(tasks: &[Task], deadlines: &[Time], handlers: &[Task], full: bool) -> Option<Time> {
    let all = [tasks, handlers].concat();
    if full {
        // Anything late is late within the first busy period. If jitter makes that endless: from the latest deadline on, a hyperperiod adds
        // its own length to the demand, so a longer interval shows nothing new. Before it, handlers already have demands and tasks do not
        // yet.
        let endless = || {
            let latest = deadlines.iter().copied().max().unwrap_or(0);
            task::common_multiple(all.iter().map(|t| t.period))?.checked_add(latest)
        };
        let busy = busy_period(&all, u64::MAX >> 1);
        return busy.or_else(endless).and_then(|b| b.checked_add(1));
    }
    // sum (T - D) U / (1 - U), and the largest D - T; an interval that is longer than needed does no harm.
    // Parts of 2^-64 and 2^-20, rounded to the safe side; fractions only where hardly anything is spare.
    let used = all.iter().fold(0u128, |sum, t| {
        sum + (u128::from(t.cost) << 64).div_ceil(u128::from(t.period))
    });
    let spare = match (1u128 << 64).checked_sub(used) {
        Some(spare) if spare > 0 => integer(spare) / integer(1u128 << 64),
        _ => integer(1) - sum(all.iter().map(|t| (t.cost, t.period))),
    };
    let due = deadlines.iter().map(|&d| i128::from(d));
    let due = due.chain(handlers.iter().map(|h| -i128::from(h.jitter)));
    let parts = all.iter().zip(due).map(|(t, d)| {
        let weighed = (i128::from(t.period) - d) * i128::from(t.cost);
        // Rounded up.
        -(-(weighed << 20)).div_euclid(i128::from(t.period))
    });
    let excess = integer(parts.sum::<i128>()) / integer(1u64 << 20);
    let beyond = tasks
        .iter()
        .zip(deadlines)
        .map(|(t, &d)| d.saturating_sub(t.period))
        .max()
        .unwrap_or(0);
    let linear = if excess.is_positive() {
        ceiling(&(excess / spare))
    } else {
        Some(0)
    };
    let linear = linear.map(|l| l.max(beyond));
    busy_period(&all, linear.unwrap_or(u64::MAX >> 1))
        .or(linear)?
        .checked_add(1)
}

/// Length of the longest interval in which the processor is never idle, all tasks released together (release jitter
/// brings more of them together). `None` above `limit`, or if it is too long to be followed.
pub fn busy_period(tasks: &[Task], limit: Time) -> Option<Time> {
    /// Maximum steps; each adds at least one job. The callers have other bounds.
    const STEPS: u32 = 20_000;
    let mut length = tasks
        .iter()
        .try_fold(0u64, |sum, t| sum.checked_add(t.cost))?;
    for _ in 0..STEPS {
        if length > limit {
            return None;
        }
        let next = tasks.iter().try_fold(0u64, |sum, t| {
            let arrivals = length.checked_add(t.jitter)?.div_ceil(t.period);
            sum.checked_add(arrivals.checked_mul(t.cost)?)
        })?;
        if next == length {
            return Some(length);
        }
        length = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Policy, Simulation};
    use super::*;
    use proptest::prelude::*;

    fn example() -> Vec<Task> {
        [
            (6000, 31000, 18000),
            (2000, 9800, 9000),
            (1000, 17000, 12000),
            (90, 4200, 3000),
            (8, 96, 78),
            (2, 12, 16),
            (10, 280, 120),
            (26, 660, 160),
        ]
        .map(|(c, t, d)| Task::constrained(c, t, d))
        .to_vec()
    }

    /// Worked example of Zhang and Burns 2009; with (10, 100, 15) it is no longer schedulable.
    #[test]
    fn worked_example() {
        let mut tasks = example();
        assert!(schedulable(&tasks).unwrap());
        tasks.push(Task::constrained(10, 100, 15));
        assert!(!schedulable(&tasks).unwrap());
    }

    #[test]
    fn corner_cases() {
        assert!(schedulable(&[]).unwrap());
        // Exactly full with implicit deadlines is fine, a tick more is not.
        assert!(schedulable(&[Task::new(1, 2), Task::new(2, 4)]).unwrap());
        assert!(!schedulable(&[Task::new(1, 2), Task::new(3, 4)]).unwrap());
        // Exactly full with one short deadline.
        assert!(!schedulable(&[Task::constrained(2, 4, 2), Task::constrained(2, 4, 3)]).unwrap());
        assert!(schedulable(&[Task::new(1, 4).with_blocking(1)]).is_err());
    }

    /// The demand criterion by definition, over more than two hyperperiods or until nothing is left to do: anything late is late by then.
    /// In a longer interval, handlers may demand more time than there is, though everything before it is done.
    fn by_definition(tasks: &[Task], handlers: &[Task]) -> bool {
        let all = [tasks, handlers].concat();
        let end = (1..300).find(|&t| requested(&all, t).unwrap() <= t);
        let end = end.unwrap_or(300);
        let deadlines: Vec<_> = tasks.iter().map(|t| t.deadline - t.jitter).collect();
        let due = |t| {
            tasks
                .iter()
                .zip(&deadlines)
                .any(|(task, d)| t >= *d && (t - d) % task.period == 0)
        };
        let late = |t| due(t) && demand(tasks, &deadlines, handlers, t).unwrap() > t;
        compare_with(&all, 1).is_le() && !(1..=end).any(late)
    }

    /// All six are done at 7. From 0 to 9 they and their next handlers ask for 10, but the handlers begin at 8.
    #[test]
    fn handlers_after_the_first_busy_period() {
        let tasks = [
            Task::constrained(2, 8, 6),
            Task::constrained(1, 8, 4),
            Task::constrained(1, 10, 11).with_jitter(2),
        ];
        let handlers = [
            Task::new(1, 8),
            Task::new(1, 8),
            Task::new(1, 10).with_jitter(2),
        ];
        assert!(schedulable_with(&tasks, &handlers).unwrap());
        assert!(by_definition(&tasks, &handlers));
    }

    /// The processor is full, and jitter keeps it busy forever. The release of the first job of all, of 1 and of 2, is demanded
    /// immediately, when only one deadline is near; the missed one is a hyperperiod later.
    #[test]
    fn handlers_on_a_full_processor() {
        let tasks = [
            Task::constrained(1, 5, 5),
            Task::constrained(2, 5, 11).with_jitter(5),
        ];
        let handlers = [Task::new(1, 5), Task::new(1, 5).with_jitter(5)];
        assert!(!schedulable_with(&tasks, &handlers).unwrap());
        assert!(!by_definition(&tasks, &handlers));
    }

    fn systems() -> impl Strategy<Value = Vec<Task>> {
        let period = prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20, 24, 30]);
        let task = (1u64..7, period, 1u64..40).prop_map(|(c, t, d)| Task::constrained(c, t, d));
        prop::collection::vec(task, 1..6)
    }

    proptest! {
        #[test]
        fn equals_the_definition(tasks in systems()) {
            prop_assert_eq!(schedulable(&tasks).unwrap(), by_definition(&tasks, &[]));
        }

        #[test]
        fn equals_the_definition_beside_handlers(
            tasks in prop::collection::vec((1u64..4, prop::sample::select(vec![4u64, 5, 8, 10]), 1u64..20, 0u64..8), 1..4),
            cost in 0u64..2,
        ) {
            let tasks: Vec<Task> = tasks.into_iter().map(|(c, t, d, j)| Task::constrained(c, t, d + j).with_jitter(j)).collect();
            let handlers: Vec<Task> = tasks.iter().filter(|_| cost > 0).map(|t| Task::new(cost, t.period).with_jitter(t.jitter)).collect();
            // Where a deadline is shorter than the cost, both say no for the same reason.
            prop_assume!(tasks.iter().all(|t| t.deadline - t.jitter >= t.cost));
            prop_assert_eq!(schedulable_with(&tasks, &handlers).unwrap(), by_definition(&tasks, &handlers));
        }

        #[test]
        fn equals_the_synchronous_schedule(tasks in systems()) {
            // An overload may take longer to show than the simulation lasts.
            if compare_with(&tasks, 1).is_le() {
                let missed = Simulation::new(Policy::EarliestDeadline, 1).synchronous(&tasks, 500).missed;
                prop_assert_eq!(schedulable(&tasks).unwrap(), !missed.contains(&true));
            }
        }

        #[test]
        fn more_load_is_never_better(tasks in systems(), which in any::<prop::sample::Index>()) {
            if !schedulable(&tasks).unwrap() {
                let mut worse = tasks.clone();
                worse[which.index(tasks.len())].cost += 1;
                prop_assert!(!schedulable(&worse).unwrap());
                worse = tasks;
                worse.push(Task::new(1, 30));
                prop_assert!(!schedulable(&worse).unwrap());
            }
        }
    }
}
