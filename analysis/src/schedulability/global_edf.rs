//! Preemptive global earliest deadline first on identical processors: three sufficient tests.
//!
//! Methods: [`gfb`]: J. Goossens, S. Funk, S. Baruah, *Priority-driven scheduling of periodic task systems on
//! multiprocessors*, Real-Time Systems 25, 2003 (with densities for constrained deadlines); [`bak`]: T. Baker, *Multiprocessor
//! EDF and deadline monotonic schedulability analysis*, RTSS 2003, as given in [`bcl`]: M. Bertogna, M. Cirinei, G. Lipari,
//! *Improved schedulability analysis of EDF on multiprocessor platforms*, ECRTS 2005.
//!
//! Assumptions: sporadic tasks, deadlines within periods, no overheads, neither jitter nor blocking. None of the three
//! covers the others, so a system is schedulable if any of them says so.

use super::task::{self, Task, TaskError, validate_constrained};
use super::utilisation::is_at_most;
use crate::exact::{Exact, integer, ratio};
use num_traits::Zero;

/// Whether any of the three tests shows schedulability.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn schedulable(tasks: &[Task], processors: u64) -> Result<bool, TaskError> {
    Ok(gfb(tasks, processors)? || bcl(tasks, processors)? || bak(tasks, processors)?)
}

/// Density test: the sum of densities is at most `m - (m - 1)` times the largest.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn gfb(tasks: &[Task], processors: u64) -> Result<bool, TaskError> {
    check(tasks, processors)?;
    let largest = tasks.iter().map(density).max().unwrap_or_else(Exact::zero);
    if largest > integer(1) {
        return Ok(false);
    }
    let bound = integer(processors) - integer(processors - 1) * largest;
    Ok(is_at_most(tasks.iter().map(density), &bound))
}

/// Baker's test: looks at the load of a window that ends in the deadline of each task.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn bak(tasks: &[Task], processors: u64) -> Result<bool, TaskError> {
    check(tasks, processors)?;
    Ok(tasks.iter().all(|task| {
        let own = density(task);
        if own > integer(1) {
            return false;
        }
        let allowed = integer(processors) * (integer(1) - &own) + &own;
        let loads: Vec<Exact> = tasks
            .iter()
            .map(|other| {
                let utilisation = ratio(other.cost, other.period).unwrap_or_else(Exact::zero);
                let gap =
                    ratio(other.period - other.deadline, task.deadline).unwrap_or_else(Exact::zero);
                let mut share = &utilisation * (integer(1) + gap);
                if utilisation > own {
                    let excess = integer(other.cost) - &own * integer(other.period);
                    share += excess / integer(task.deadline);
                }
                share.min(integer(1))
            })
            .collect();
        is_at_most(loads.iter().cloned(), &allowed)
    }))
}

/// Bertogna, Cirinei and Lipari's test: bounds each task's interference by its work in the window and by the slack of the
/// task that is looked at.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn bcl(tasks: &[Task], processors: u64) -> Result<bool, TaskError> {
    check(tasks, processors)?;
    Ok(tasks.iter().enumerate().all(|(index, task)| {
        let Some(slack) = task.deadline.checked_sub(task.cost) else {
            return false;
        };
        let mut work = 0u128;
        let mut small = false;
        for (_, other) in tasks.iter().enumerate().filter(|(j, _)| *j != index) {
            let jobs = task
                .deadline
                .checked_sub(other.deadline)
                .map_or(0, |d| d / other.period + 1);
            let rest = task
                .deadline
                .saturating_sub(jobs * other.period)
                .min(other.cost);
            let most = u128::from(jobs) * u128::from(other.cost) + u128::from(rest);
            small |= most > 0 && most <= u128::from(slack);
            work += most.min(slack.into());
        }
        let room = u128::from(processors) * u128::from(slack);
        work < room || (work == room && small)
    }))
}

fn density(task: &Task) -> Exact {
    ratio(task.cost, task.deadline).unwrap_or_else(Exact::zero)
}

fn check(tasks: &[Task], processors: u64) -> Result<(), TaskError> {
    if processors == 0 {
        return Err(TaskError::Zero("the number of processors"));
    }
    validate_constrained(tasks)?;
    task::refuse(tasks, &[task::JITTER, task::BLOCKING])
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Policy, Simulation};
    use super::super::utilisation::compare_with;
    use super::*;
    use proptest::prelude::*;

    /// GFB by hand: densities 1/2, 1/2, 1/2 on two processors: 3/2 <= 2 - 1/2. One more of 1/100 is too much.
    #[test]
    fn density_by_hand() {
        let mut tasks = vec![Task::new(1, 2); 3];
        assert!(gfb(&tasks, 2).unwrap());
        tasks.push(Task::new(1, 100));
        assert!(!gfb(&tasks, 2).unwrap());
    }

    /// Dhall's effect: two light tasks and one of utilisation 1 miss on two processors; no test may accept.
    #[test]
    fn nobody_accepts_the_dhall_effect() {
        let tasks = [Task::new(2, 10), Task::new(2, 10), Task::new(11, 11)];
        assert!(!schedulable(&tasks, 2).unwrap());
        let missed = Simulation::new(Policy::EarliestDeadline, 2)
            .synchronous(&tasks, 110)
            .missed;
        assert!(missed.contains(&true));
    }

    fn systems() -> impl Strategy<Value = Vec<Task>> {
        let period = prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20]);
        let task = (1u64..8, period, 1u64..25)
            .prop_map(|(c, t, d)| Task::constrained(c.min(t), t, d.min(t)));
        prop::collection::vec(task, 1..7)
    }

    proptest! {
        #[test]
        fn what_is_accepted_meets_all_deadlines(tasks in systems(), processors in 1u64..4, seed: u64) {
            if schedulable(&tasks, processors).unwrap() {
                prop_assert!(compare_with(&tasks, processors).is_le());
                let simulation = Simulation::new(Policy::EarliestDeadline, processors as usize);
                for outcome in [simulation.synchronous(&tasks, 500), simulation.random(&tasks, 1000, seed)] {
                    prop_assert!(!outcome.missed.contains(&true));
                }
            }
        }

        #[test]
        fn more_load_is_never_better(tasks in systems(), processors in 1u64..4, which in any::<prop::sample::Index>()) {
            let mut heavier = tasks.clone();
            heavier[which.index(tasks.len())].cost += 1;
            for test in [gfb, bcl] {
                prop_assert!(test(&tasks, processors).unwrap() || !test(&heavier, processors).unwrap());
            }
        }
    }
}
