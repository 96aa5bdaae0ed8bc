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
        if density(task) > integer(1) {
            return false;
        }
        let (loads, allowed) = loads(tasks, task, processors);
        is_at_most(loads.into_iter(), &allowed)
    }))
}

/// The demand of all tasks that Baker's test assumes until the deadline of one of them, and the demand that it allows.
fn loads(tasks: &[Task], task: &Task, processors: u64) -> (Vec<Exact>, Exact) {
    let own = density(task);
    let allowed = integer(processors) * (integer(1) - &own) + &own;
    let load = |other: &Task| {
        let utilisation = ratio(other.cost, other.period).unwrap_or_else(Exact::zero);
        let gap = ratio(other.period - other.deadline, task.deadline).unwrap_or_else(Exact::zero);
        let mut share = &utilisation * (integer(1) + gap);
        if utilisation > own {
            let excess = integer(other.cost) - &own * integer(other.period);
            share += excess / integer(task.deadline);
        }
        share.min(integer(1))
    };
    (tasks.iter().map(load).collect(), allowed)
}

/// Bertogna, Cirinei and Lipari's test: bounds each task's interference by its work in the window and by the slack of the task under
/// analysis.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn bcl(tasks: &[Task], processors: u64) -> Result<bool, TaskError> {
    check(tasks, processors)?;
    Ok((0..tasks.len()).all(|index| {
        interference(tasks, index, processors).is_some_and(|(work, room, small)| {
            // If everything fits exactly, one task that does not fill the slack is needed.
            work < room || (work == room && small)
        })
    }))
}

/// The work of others that can hold up a task, each at most its slack; the room for it; and whether one task's work is less than the
/// slack. `None`: it has no slack at all.
fn interference(tasks: &[Task], index: usize, processors: u64) -> Option<(u128, u128, bool)> {
    let task = &tasks[index];
    let slack = task.deadline.checked_sub(task.cost)?;
    let (mut work, mut small) = (0u128, false);
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
    Some((work, u128::from(processors) * u128::from(slack), small))
}

/// Which of the tests comes nearest to showing schedulability, if none does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The test: `gfb`, `bak` or `bcl`.
    pub test: &'static str,
    /// The task with which it fails most; `None` if it fails for all together.
    pub task: Option<usize>,
    /// The demand of the tasks that it assumes, in processors.
    pub asked: Exact,
    /// The demand that it allows.
    pub allowed: Exact,
}

impl Nearest {
    /// How much the demand exceeds what is allowed; `None` if it does not.
    fn excess(&self) -> Option<Exact> {
        (self.allowed > Exact::zero()).then(|| &self.asked / &self.allowed)
    }
}

/// The test whose worst task exceeds the allowed demand least, for callers that know that none accepts. Baker's test, which takes
/// long, is tried for at most `few` tasks. `None`: a task asks for more than a whole processor, so no test says anything.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn nearest(tasks: &[Task], processors: u64, few: usize) -> Result<Option<Nearest>, TaskError> {
    check(tasks, processors)?;
    let largest = tasks.iter().map(density).max().unwrap_or_else(Exact::zero);
    if largest > integer(1) {
        return Ok(None);
    }
    let mut all = vec![Nearest {
        test: "gfb",
        task: None,
        asked: tasks.iter().map(density).sum(),
        allowed: integer(processors) - integer(processors - 1) * largest,
    }];
    let of = |index: usize| {
        let (loads, allowed) = loads(tasks, &tasks[index], processors);
        Some(Nearest {
            test: "bak",
            task: Some(index),
            asked: loads.into_iter().sum(),
            allowed,
        })
    };
    if tasks.len() <= few {
        all.extend(worst((0..tasks.len()).map(of)));
    }
    let of = |index: usize| {
        let (work, room, _) = interference(tasks, index, processors)?;
        let slack = room / u128::from(processors);
        Some(Nearest {
            test: "bcl",
            task: Some(index),
            asked: ratio(work, slack)?,
            allowed: integer(processors),
        })
    };
    all.extend(worst((0..tasks.len()).map(of)));
    let failed = all.into_iter().filter(|one| one.asked >= one.allowed);
    // If several are equal, the first one counts.
    let least = failed.min_by(|a, b| match (a.excess(), b.excess()) {
        (Some(a), Some(b)) => a.cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    Ok(least)
}

/// The task with which a test fails most; none if the test has no number for some task.
fn worst(all: impl Iterator<Item = Option<Nearest>>) -> Option<Nearest> {
    let all = all.collect::<Option<Vec<Nearest>>>()?;
    all.into_iter()
        .max_by(|a, b| match (a.excess(), b.excess()) {
            (Some(a), Some(b)) => a.cmp(&b),
            (a, b) => a.is_none().cmp(&b.is_none()),
        })
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

    /// Cost 7 of 10, three times, and 1 of 100, on two processors. Densities: 2.11 against 2 - 0.7. Baker's test has the same for the
    /// first three. The last gives each of them, of slack 3, work of 3 by the two others and of 1 by the small one: 7 of 6.
    #[test]
    fn the_nearest_test_by_hand() {
        let mut tasks = vec![Task::new(7, 10); 3];
        tasks.push(Task::new(1, 100));
        let found = nearest(&tasks, 2, 100).unwrap().expect("none accepts");
        assert_eq!((found.test, found.task.map(|t| t < 3)), ("bcl", Some(true)));
        assert_eq!(found.asked, ratio(7, 3).unwrap());
        assert_eq!(found.allowed, integer(2));
        // More than a processor: no number.
        assert_eq!(
            nearest(&[Task::new(11, 11), Task::constrained(3, 9, 2)], 2, 100).unwrap(),
            None
        );
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
        fn there_is_a_number_where_no_test_accepts(tasks in systems(), processors in 2u64..4) {
            let whole = tasks.iter().any(|task| density(task) > integer(1));
            if !whole && !schedulable(&tasks, processors).unwrap() {
                let nearest = nearest(&tasks, processors, 100).unwrap().expect("a number");
                prop_assert!(nearest.asked >= nearest.allowed);
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
