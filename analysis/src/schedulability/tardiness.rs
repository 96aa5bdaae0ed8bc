//! Global earliest deadline first on identical processors: how late a job can be when deadlines may be missed.
//!
//! Method: U. Devi, J. Anderson, *Tardiness bounds under global EDF scheduling on a multiprocessor*, Real-Time Systems
//! 38(2), 2008, theorem for preemptive scheduling, with the refinement that sums over one task less than processors, and
//! over as many as the utilisation needs.
//!
//! Where higher levels take part of the processors: [`with_supply`], with a proof in its comment. It follows the form of H. Leontyev, J.
//! Anderson, *A hierarchical multiprocessor bandwidth reservation scheme with timing guarantees*, Real-Time Systems 43(1), 2009.
//!
//! Assumptions: sporadic tasks with implicit deadlines, no jitter, no blocking; a task's jobs run in sequence.

use super::task::{self, Task, TaskError, Time, validate};
use super::utilisation::{compare_with, enclosure, is_at_most, utilisation};
use crate::exact::{Exact, ceiling, integer, ratio};
use num_traits::{Signed, Zero};

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
    let (low, high) = enclosure(tasks.iter().map(share));
    let total = if ceiling(&low) == ceiling(&high) {
        high
    } else {
        utilisation(tasks)
    };
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

/// The time that a processor leaves to the tasks: at least `rate * t - shortage` in any window of length `t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Share over long windows: 0 to 1.
    pub rate: Exact,
    /// Time that a window may fall short of it; not negative.
    pub shortage: Exact,
}

impl Supply {
    /// A processor that serves nobody else.
    pub fn full() -> Self {
        Self {
            rate: integer(1),
            shortage: Exact::zero(),
        }
    }
}

/// Bounds on tardiness, rounded up, where each processor only gives what `supplies` say; `None` if this analysis finds none.
///
/// Let `m` processors give rates that sum to `R` and fall short by `S` in all; `E` and `U` be the sums of the `m - 1` largest
/// costs and utilisations, `u` the largest utilisation. Tardiness of task k is at most `x + C_k` with
/// `x = (E + 2 S + max (m - 1 - R, 0) C_max) / (R - U - (m - 1) u)`, if the denominator is positive.
///
/// Proof by induction over deadlines. Look at a job of task k with deadline d, and only at jobs with deadlines up to d.
/// 1. A task whose jobs are at most `x + C` late lags behind a fluid schedule by at most `x U_i + C_i` (Devi and Anderson).
/// 2. At an instant at which an available processor does none of this work, at most m - 1 tasks have any left, so the lags
///    sum to at most `E + x U`. From the last such instant to d all that is supplied is used, so lags grow by at most S:
///    the work W that is left at d is at most `E + x U + S`.
/// 3. After d, whenever task k does not run, all that is supplied works on W; while it runs, for at most
///    `c <= x U_k + C_k`, at most m - 1 processors are wasted. With t until the job ends, `W >= R t - S - (m - 1) c`,
///    hence `t <= (E + x U + 2 S + (m - 1)(x U_k + C_k)) / R`, which is at most `x + C_k` by the choice of x.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn with_supply(tasks: &[Task], supplies: &[Supply]) -> Result<Option<Vec<Time>>, TaskError> {
    with_handlers(tasks, supplies, &[])
}

/// The same where handlers take some of the processors' time. A handler holds a job up without letting it go: the job does not move to
/// another processor until the handler ends. `handlers` are those of all processors together, and meet implicit deadlines; `supplies` are
/// without them already.
///
/// With handlers of utilisation `h` in all, that exceed `h t` by at most `B` in any window of length t, the proof above changes in one
/// step. Step 2 stays: where an available processor does none of the work under analysis, the others have a job each at most, running or
/// held up. In step 3 nothing is wasted except while task k runs or is held up: `c <= x U_k + C_k + h t + B`, so that `R` becomes `R - (m -
/// 1) h`, and `(m - 1) B` joins the numerator.
///
/// # Errors
/// As [`with_supply`].
pub fn with_handlers(
    tasks: &[Task],
    supplies: &[Supply],
    handlers: &[Task],
) -> Result<Option<Vec<Time>>, TaskError> {
    check(tasks)?;
    validate(handlers)?;
    if supplies.is_empty() {
        return Err(TaskError::Zero("the number of processors"));
    }
    let one = integer(1);
    if supplies.iter().all(|s| *s == Supply::full()) {
        return bounds(tasks, supplies.len() as u64);
    }
    let rate = supplies.iter().fold(Exact::zero(), |sum, s| {
        sum + s.rate.clone().min(one.clone())
    });
    let shortage = supplies
        .iter()
        .fold(Exact::zero(), |sum, s| sum + &s.shortage);
    if !is_at_most(tasks.iter().map(share), &rate) || tasks.iter().any(|t| t.cost > t.period) {
        return Ok(None);
    }
    let others = supplies.len() - 1;
    let costs = largest(tasks.iter().map(|t| integer(t.cost)).collect(), others);
    let shares = largest(tasks.iter().map(share).collect(), others);
    let highest = tasks.iter().map(share).max().unwrap_or_else(Exact::zero);
    let longest = tasks.iter().map(|t| t.cost).max().unwrap_or(0);
    let others = integer(others as u64);
    let rate = rate - &others * enclosure(handlers.iter().map(share)).1;
    let beyond = |t: &Task| integer(2 * t.cost) * (integer(1) - share(t)).max(Exact::zero());
    let held_up = &others * enclosure(handlers.iter().map(beyond)).1;
    let room = &rate - shares - &others * highest;
    if !room.is_positive() {
        return Ok(None);
    }
    let wasted = (others - rate).max(Exact::zero()) * integer(longest);
    let extra = (costs + shortage * integer(2) + held_up + wasted) / room;
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
    task::refuse(tasks, &[task::DEADLINE, task::JITTER, task::BLOCKING])
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

    /// Two processors that are there for 2 of 4, by hand: rates 1/2, shortages 1. Two tasks (1, 10):
    /// x = (1 + 2 * 2) / (1 - 1/10 - 1/10) = 6.25.
    #[test]
    fn partial_processors_by_hand() {
        let half = Supply {
            rate: ratio(1, 2).unwrap(),
            shortage: integer(1),
        };
        let tasks = [Task::new(1, 10), Task::new(1, 10)];
        assert_eq!(
            with_supply(&tasks, &[half.clone(), half.clone()]).unwrap(),
            Some(vec![8, 8])
        );
        assert_eq!(
            with_supply(&[Task::new(9, 10), Task::new(9, 10)], &[half.clone(), half]).unwrap(),
            None
        );
        assert_eq!(
            with_supply(&tasks, &[Supply::full()]).unwrap(),
            Some(vec![0, 0])
        );
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

    /// Earliest deadline first, unit by unit, on processors that are there for the first `on` of each `period` units from an
    /// offset on. Jobs arrive as often as they may. Longest tardiness of each task.
    fn simulate(tasks: &[Task], servers: &[(u64, u64, u64)], offsets: &[u64]) -> Vec<u64> {
        let mut jobs: Vec<(u64, usize, u64)> = Vec::new();
        let mut late = vec![0; tasks.len()];
        for now in 0..600u64 {
            for (i, t) in tasks.iter().enumerate() {
                let first = offsets[i % offsets.len()];
                if now >= first && (now - first).is_multiple_of(t.period) {
                    jobs.push((now + t.period, i, t.cost));
                }
            }
            let available = servers
                .iter()
                .filter(|(on, period, offset)| (now + offset) % period < *on)
                .count();
            jobs.sort_unstable();
            let mut chosen: Vec<usize> = Vec::new();
            for j in 0..jobs.len() {
                let first = jobs[..j].iter().all(|other| other.1 != jobs[j].1);
                if first && chosen.len() < available {
                    chosen.push(j);
                }
            }
            for &j in chosen.iter().rev() {
                jobs[j].2 -= 1;
                if jobs[j].2 == 0 {
                    let (deadline, task, _) = jobs.remove(j);
                    late[task] = late[task].max((now + 1).saturating_sub(deadline));
                }
            }
        }
        late
    }

    proptest! {
        #[test]
        fn no_simulation_on_partial_processors_is_later(
            parts in prop::collection::vec((1u64..4, prop::sample::select(vec![8u64, 10, 12, 16, 20])), 1..7),
            servers in prop::collection::vec((1u64..9, 1u64..9, 0u64..16), 1..4),
            offsets in prop::collection::vec(0u64..12, 4),
        ) {
            let tasks: Vec<_> = parts.iter().map(|&(c, t)| Task::new(c, t)).collect();
            let servers: Vec<_> = servers.iter().map(|&(on, off, o)| (on + off / 3, on + off / 3 + off / 2, o)).collect();
            // The block comes once a period: a window may miss one gap.
            let supplies: Vec<_> = servers.iter().map(|&(on, period, _)| {
                let rate = ratio(on, period).unwrap();
                Supply { shortage: &rate * integer(period - on), rate }
            }).collect();
            if let Some(bounds) = with_supply(&tasks, &supplies).unwrap() {
                for (bound, seen) in bounds.iter().zip(simulate(&tasks, &servers, &offsets)) {
                    prop_assert!(seen <= *bound, "{} > {}", seen, bound);
                }
            }
        }
    }
}
