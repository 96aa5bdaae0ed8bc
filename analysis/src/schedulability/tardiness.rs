//! Global earliest deadline first on identical processors: how late a job can be when deadlines may be missed.
//!
//! Method: U. Devi, J. Anderson, *Tardiness bounds under global EDF scheduling on a multiprocessor*, Real-Time Systems
//! 38(2), 2008, theorem for preemptive scheduling, with the refinement that sums over one task less than processors, and
//! over as many as the utilisation needs.
//!
//! Assumptions: sporadic tasks with implicit deadlines, no jitter, no blocking; a task's jobs run one after the other.

use super::task::{Task, TaskError, Time, validate};
use super::utilisation::{compare_with, utilisation};
use crate::exact::{Exact, ceiling, integer, ratio};
use num_traits::Zero;

/// Bounds on tardiness (time from deadline to completion), rounded up; `None` if the tasks need more than the processors,
/// or one needs more than one.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn bounds(tasks: &[Task], processors: u64) -> Result<Option<Vec<Time>>, TaskError> {
    check(tasks)?;
    if processors == 0 {
        return Err(TaskError::Zero("the number of processors"));
    }
    let overload =
        compare_with(tasks, processors).is_gt() || tasks.iter().any(|t| t.cost > t.period);
    if overload {
        return Ok(None);
    }
    if processors == 1 {
        // Earliest deadline first is optimal on one processor.
        return Ok(Some(vec![0; tasks.len()]));
    }
    // As many tasks as can be active when a processor idles: one less than the utilisation rounded up.
    let total = utilisation(tasks);
    let active = ceiling(&total).unwrap_or(processors).saturating_sub(1);
    let active = usize::try_from(active).unwrap_or(usize::MAX);
    let largest_costs = largest(tasks.iter().map(|t| integer(t.cost)).collect(), active);
    let largest_shares = largest(tasks.iter().map(share).collect(), active.saturating_sub(1));
    let least = tasks.iter().map(|t| t.cost).min().unwrap_or(0);
    let room = integer(processors) - largest_shares;
    let extra = ((largest_costs - integer(least)) / room).max(Exact::zero());
    Ok(tasks
        .iter()
        .map(|t| ceiling(&(&extra + integer(t.cost))))
        .collect())
}

fn share(task: &Task) -> Exact {
    ratio(task.cost, task.period).unwrap_or_else(Exact::zero)
}

/// Sum of the `count` largest values.
fn largest(mut values: Vec<Exact>, count: usize) -> Exact {
    values.sort_unstable_by(|a, b| b.cmp(a));
    values
        .into_iter()
        .take(count)
        .fold(Exact::zero(), |sum, v| sum + v)
}

fn check(tasks: &[Task]) -> Result<(), TaskError> {
    validate(tasks)?;
    for (task, t) in tasks.iter().enumerate() {
        let what = match t {
            _ if t.deadline != t.period => "a deadline that is not the period",
            _ if t.jitter > 0 => "jitter",
            _ if t.blocking > 0 => "blocking",
            _ => continue,
        };
        return Err(TaskError::NotCovered { task, what });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::simulation::{Policy, Simulation};
    use super::*;
    use proptest::prelude::*;

    /// Worked example of Devi and Anderson 2008: bounded on two processors, not on one.
    #[test]
    fn worked_example() {
        let tasks = [Task::new(80, 100), Task::new(33, 66), Task::new(7, 10)];
        assert_eq!(bounds(&tasks, 1).unwrap(), None);
        // Utilisation 2: one task is active: x = (80 - 7) / (2 - 0) = 36.5.
        assert_eq!(bounds(&tasks, 2).unwrap(), Some(vec![117, 70, 44]));
    }

    #[test]
    fn corner_cases() {
        assert_eq!(bounds(&[], 3).unwrap(), Some(vec![]));
        assert!(bounds(&[Task::new(1, 2)], 0).is_err());
        assert!(bounds(&[Task::constrained(1, 2, 1)], 2).is_err());
        assert_eq!(bounds(&[Task::new(3, 2)], 4).unwrap(), None);
        assert_eq!(
            bounds(&[Task::new(1, 2), Task::new(1, 2)], 1).unwrap(),
            Some(vec![0, 0])
        );
    }

    proptest! {
        #[test]
        fn no_simulation_is_later(
            parts in prop::collection::vec((1u64..12, prop::sample::select(vec![4u64, 5, 6, 8, 10, 12])), 1..7),
            processors in 1u64..4,
            seed: u64,
        ) {
            let tasks: Vec<_> = parts.iter().map(|&(c, t)| Task::new(c.min(t), t)).collect();
            if let Some(bounds) = bounds(&tasks, processors).unwrap() {
                let simulation = Simulation::new(Policy::EarliestDeadline, processors as usize);
                for outcome in [simulation.synchronous(&tasks, 600), simulation.random(&tasks, 1000, seed)] {
                    for ((bound, seen), task) in bounds.iter().zip(&outcome.responses).zip(&tasks) {
                        prop_assert!(seen.saturating_sub(task.deadline) <= *bound);
                    }
                }
            }
        }
    }
}
