//! Assignment of tasks to processors by bin-packing heuristics.
//!
//! Methods: first, best and worst fit, by decreasing utilisation or in the given order (D. Johnson, *Near-optimal bin
//! packing algorithms*, MIT, 1973; for tasks: J. López, J. Díaz, D. García, *Utilization bounds for EDF scheduling on
//! real-time multiprocessor systems*, Real-Time Systems 28, 2004). What fits on a processor is decided by a test of the
//! caller's choice, so the result is as good as that test.
//!
//! Assumptions: a task fits on a processor only if the test accepts it there together with what is there already.

use super::task::{Task, TaskError, validate};
use super::utilisation::utilisation;
use crate::exact::Exact;
use serde::Serialize;

/// The processor that a task gets, of those that it fits on. Ties: the lowest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// The first.
    First,
    /// The fullest.
    Best,
    /// The emptiest.
    Worst,
}

/// In which order tasks are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As given.
    Given,
    /// By decreasing utilisation; ties as given.
    DecreasingUtilisation,
}

/// Processor of each task, or the first task that fits nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    /// Processor of each task.
    Complete(Vec<usize>),
    /// This task fits on no processor; the others' processors so far.
    Failed {
        /// The task.
        task: usize,
        /// The tasks that were placed before.
        placed: Vec<Option<usize>>,
    },
}

/// Places `tasks` on `processors`. `accepts` gets the tasks of one processor in the order of the list (so a list by
/// decreasing priority stays one).
///
/// # Errors
/// [`TaskError`] if a parameter is out of range, and those of the test.
pub fn partition(
    tasks: &[Task],
    processors: usize,
    fit: Fit,
    order: Order,
    mut accepts: impl FnMut(&[Task]) -> Result<bool, TaskError>,
) -> Result<Partition, TaskError> {
    validate(tasks)?;
    if processors == 0 {
        return Err(TaskError::Zero("the number of processors"));
    }
    let shares: Vec<Exact> = tasks
        .iter()
        .map(|t| utilisation(std::slice::from_ref(t)))
        .collect();
    let mut sequence: Vec<usize> = (0..tasks.len()).collect();
    if order == Order::DecreasingUtilisation {
        sequence.sort_by(|&a, &b| shares[b].cmp(&shares[a]));
    }
    let mut placed: Vec<Option<usize>> = vec![None; tasks.len()];
    let mut loads: Vec<Exact> = vec![Exact::default(); processors];
    for index in sequence {
        let mut candidates: Vec<usize> = (0..processors).collect();
        match fit {
            Fit::First => {}
            Fit::Best => candidates.sort_by(|&a, &b| loads[b].cmp(&loads[a])),
            Fit::Worst => candidates.sort_by(|&a, &b| loads[a].cmp(&loads[b])),
        }
        let mut found = None;
        for processor in candidates {
            let here = |i: usize| i == index || placed[i] == Some(processor);
            let together: Vec<Task> = (0..tasks.len())
                .filter(|&i| here(i))
                .map(|i| tasks[i])
                .collect();
            if accepts(&together)? {
                found = Some(processor);
                break;
            }
        }
        let Some(processor) = found else {
            return Ok(Partition::Failed {
                task: index,
                placed,
            });
        };
        placed[index] = Some(processor);
        loads[processor] += &shares[index];
    }
    Ok(Partition::Complete(placed.into_iter().flatten().collect()))
}

#[cfg(test)]
mod tests {
    use super::super::{edf, fixed_priority};
    use super::*;
    use proptest::prelude::*;

    /// Utilisations 1/2, 1/3, 1/4, 1/2 and 1/3 of a processor, worked by hand.
    #[test]
    fn by_hand() {
        let tasks = [
            Task::new(6, 12),
            Task::new(4, 12),
            Task::new(3, 12),
            Task::new(6, 12),
            Task::new(4, 12),
        ];
        let run = |fit, order| partition(&tasks, 2, fit, order, edf::schedulable).unwrap();
        // First fit: 6, 4 to the first; 3 makes 13: second; 6: second (9); 4: 14 and 13: fails.
        let Partition::Failed { task, .. } = run(Fit::First, Order::Given) else {
            panic!("it fits")
        };
        assert_eq!(task, 4);
        // Decreasing: 6 and 6 to the first; 4, 4 and 3 to the second.
        let full = run(Fit::First, Order::DecreasingUtilisation);
        assert_eq!(full, Partition::Complete(vec![0, 1, 1, 0, 1]));
        // Worst fit, decreasing: 6 | 6, then 4 | 4, then 3 fits nowhere (13).
        assert!(matches!(
            run(Fit::Worst, Order::DecreasingUtilisation),
            Partition::Failed { task: 2, .. }
        ));
        assert!(partition(&tasks, 0, Fit::Best, Order::Given, edf::schedulable).is_err());
    }

    proptest! {
        #[test]
        fn every_processor_is_accepted(
            parts in prop::collection::vec((1u64..12, 4u64..24), 1..9),
            processors in 1usize..4,
            fit in prop::sample::select(vec![Fit::First, Fit::Best, Fit::Worst]),
            order in prop::sample::select(vec![Order::Given, Order::DecreasingUtilisation]),
        ) {
            let mut tasks: Vec<_> = parts.iter().map(|&(c, t)| Task::new(c.min(t), t)).collect();
            tasks.sort_by_key(|t| t.period);
            match partition(&tasks, processors, fit, order, fixed_priority::schedulable).unwrap() {
                Partition::Complete(places) => for p in 0..processors {
                    let here: Vec<_> = tasks.iter().zip(&places).filter(|(_, q)| **q == p).map(|(t, _)| *t).collect();
                    prop_assert!(fixed_priority::schedulable(&here).unwrap());
                },
                Partition::Failed { task, placed } => {
                    prop_assert!(placed[task].is_none());
                    for p in 0..processors {
                        let here: Vec<_> = (0..tasks.len()).filter(|&i| i == task || placed[i] == Some(p)).map(|i| tasks[i]).collect();
                        prop_assert!(!fixed_priority::schedulable(&here).unwrap());
                    }
                }
            }
        }
    }
}
