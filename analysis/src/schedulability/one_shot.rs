//! One-shot, non-preemptive tasks on many cores, joined by polled sampling ports: end-to-end bounds.
//!
//! Model: m2os-mc-ngres21, sections 4 and 5. Tasks run to completion by fixed priority, all on one stack; a flow is a chain of tasks
//! in which each writes a sampling port of the next, and every task but the first polls its port periodically. A port
//! holds one message; a new one overwrites the old.
//!
//! Method: response times by [`super::threshold::non_preemptive`] on each core, and for each polling task one period of
//! polling in front of its response, because the message may arrive just after the port was read (A. Davare, Q. Zhu,
//! M. Di Natale, C. Pinello, S. Kanajan, A. Sangiovanni-Vincentelli, *Period optimization for hard real-time distributed
//! automotive systems*, DAC 2007).
//!
//! Assumptions: cores share nothing but ports; a message written at the end of a job is in the port at most `transfer`
//! later; a job reads its port at its start.

use super::task::{Task, TaskError, Time};
use super::threshold;
use thiserror::Error;

/// A task on a core. Its period is that of its events (first of a flow) or of its polling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedTask {
    /// The task.
    pub task: Task,
    /// Its core.
    pub core: usize,
}

/// A flow over tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Indices of tasks, from the one that the event releases.
    pub tasks: Vec<usize>,
    /// For each task but the last: longest time from the end of its job to its message in the next one's port.
    pub transfers: Vec<Time>,
}

/// The bound of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowBound {
    /// From the event to the end of the last task's job.
    pub latency: Time,
    /// No message can be overwritten before it is read: at each port messages come further apart than they wait.
    pub lossless: bool,
}

/// Why there is no analysis.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OneShotError {
    /// A task is wrong.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A flow names a task that does not exist, or has not one transfer less than tasks.
    #[error("flow {0} names a task that does not exist, or has not one transfer for each port")]
    BadFlow(usize),
}

/// Longest responses of all tasks, each core by itself; tasks are listed by decreasing priority.
///
/// # Errors
/// [`OneShotError::Task`].
pub fn response_times(tasks: &[PlacedTask]) -> Result<Vec<Option<Time>>, OneShotError> {
    let mut all = vec![None; tasks.len()];
    let mut cores: Vec<usize> = tasks.iter().map(|t| t.core).collect();
    cores.sort_unstable();
    cores.dedup();
    for core in cores {
        let here: Vec<usize> = (0..tasks.len())
            .filter(|&i| tasks[i].core == core)
            .collect();
        let plain: Vec<Task> = here.iter().map(|&i| tasks[i].task).collect();
        for (index, response) in here.into_iter().zip(threshold::non_preemptive(&plain)?) {
            all[index] = response;
        }
    }
    Ok(all)
}

/// Bounds of flows; `None` where a task on the way has no bounded response.
///
/// # Errors
/// [`OneShotError`].
pub fn flow_bounds(
    tasks: &[PlacedTask],
    flows: &[Flow],
) -> Result<Vec<Option<FlowBound>>, OneShotError> {
    let responses = response_times(tasks)?;
    flows
        .iter()
        .enumerate()
        .map(|(number, flow)| {
            let known = flow.tasks.iter().all(|&t| t < tasks.len());
            if !known || flow.tasks.is_empty() || flow.transfers.len() + 1 != flow.tasks.len() {
                return Err(OneShotError::BadFlow(number));
            }
            Ok(bound(tasks, &responses, flow))
        })
        .collect()
}

fn bound(tasks: &[PlacedTask], responses: &[Option<Time>], flow: &Flow) -> Option<FlowBound> {
    let first = flow.tasks[0];
    let mut latency = responses[first]?;
    // How much closer than a period of the first task two of the flow's messages may come.
    let period = tasks[first].task.period;
    let mut spread = latency.checked_sub(tasks[first].task.cost)?;
    let mut lossless = true;
    for (&next, &transfer) in flow.tasks[1..].iter().zip(&flow.transfers) {
        let task = &tasks[next].task;
        let response = responses[next]?;
        // From the message in the port to the start of the job that reads it.
        let wait = task
            .period
            .checked_add(task.jitter)?
            .checked_add(response)?
            .checked_sub(task.cost)?;
        spread = spread.checked_add(transfer)?;
        lossless &= period
            .checked_sub(spread)
            .is_some_and(|distance| distance >= wait);
        latency = latency
            .checked_add(transfer)?
            .checked_add(wait)?
            .checked_add(task.cost)?;
        spread = spread.checked_add(wait)?;
    }
    Some(FlowBound { latency, lossless })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By hand: a producer (3, 100) behind nothing, a consumer that polls every 10 with cost 2, alone on its core: 3, transfer
    /// 1, a period of polling 10, response 2: 16.
    #[test]
    fn by_hand() {
        let tasks = [
            PlacedTask {
                task: Task::new(3, 100),
                core: 0,
            },
            PlacedTask {
                task: Task::new(2, 10),
                core: 1,
            },
        ];
        let flow = Flow {
            tasks: vec![0, 1],
            transfers: vec![1],
        };
        let bounds = flow_bounds(&tasks, std::slice::from_ref(&flow)).unwrap();
        assert_eq!(
            bounds,
            [Some(FlowBound {
                latency: 16,
                lossless: true
            })]
        );
        // A producer that is as fast as the polling may overwrite.
        let fast = [
            PlacedTask {
                task: Task::new(3, 10),
                core: 0,
            },
            tasks[1],
        ];
        assert!(!flow_bounds(&fast, &[flow]).unwrap()[0].unwrap().lossless);
        let bad = Flow {
            tasks: vec![0, 7],
            transfers: vec![1],
        };
        assert_eq!(flow_bounds(&tasks, &[bad]), Err(OneShotError::BadFlow(0)));
    }

    /// Runs cores unit by unit and follows messages through ports. Gives the longest latency of a message that arrived and
    /// whether one was overwritten.
    fn simulate(tasks: &[PlacedTask], flow: &Flow, offsets: &[u64], horizon: u64) -> (u64, bool) {
        #[derive(Clone)]
        struct Job {
            task: usize,
            left: u64,
            started: bool,
            message: Option<u64>,
        }
        let mut jobs: Vec<Job> = Vec::new();
        let mut ports: Vec<Option<u64>> = vec![None; tasks.len()];
        let mut under_way: Vec<(u64, usize, u64)> = Vec::new();
        let (mut worst, mut lost) = (0, false);
        let place = |task: usize| flow.tasks.iter().position(|&t| t == task);
        for now in 0..horizon {
            under_way.retain(|&(at, to, message)| {
                if at == now {
                    lost |= ports[to].is_some();
                    ports[to] = Some(message);
                }
                at > now
            });
            for (i, t) in tasks.iter().enumerate() {
                if now >= offsets[i] && (now - offsets[i]).is_multiple_of(t.task.period) {
                    let message = (place(i) == Some(0)).then_some(now);
                    jobs.push(Job {
                        task: i,
                        left: t.task.cost,
                        started: false,
                        message,
                    });
                }
            }
            let cores: std::collections::BTreeSet<usize> = tasks.iter().map(|t| t.core).collect();
            for core in cores {
                let best = (0..jobs.len())
                    .filter(|&j| tasks[jobs[j].task].core == core)
                    .min_by_key(|&j| (!jobs[j].started, jobs[j].task));
                let Some(j) = best else { continue };
                let job = &mut jobs[j];
                if !job.started {
                    job.started = true;
                    if place(job.task).is_some_and(|p| p > 0) {
                        job.message = ports[job.task].take();
                    }
                }
                job.left -= 1;
                if job.left == 0 {
                    if let (Some(message), Some(p)) = (job.message, place(job.task)) {
                        match flow.tasks.get(p + 1) {
                            Some(&next) => {
                                under_way.push((now + 1 + flow.transfers[p], next, message))
                            }
                            None => worst = worst.max(now + 1 - message),
                        }
                    }
                    jobs.remove(j);
                }
            }
        }
        (worst, lost)
    }

    proptest! {
        #[test]
        fn no_simulated_message_is_later(
            parts in prop::collection::vec((1u64..5, 8u64..30, 0usize..3), 2..6),
            transfers in prop::collection::vec(0u64..5, 5),
            offsets in prop::collection::vec(0u64..30, 6),
            length in 2usize..5,
            slow in 1u64..8,
        ) {
            let mut tasks: Vec<_> = parts.iter().map(|&(c, t, core)| PlacedTask { task: Task::new(c, t), core }).collect();
            tasks[0].task.period *= slow;
            // From its first period on every task is there.
            let offsets: Vec<u64> = tasks.iter().zip(offsets).map(|(t, o)| o % t.task.period).collect();
            let chain: Vec<usize> = (0..tasks.len().min(length)).collect();
            let flow = Flow { transfers: transfers[..chain.len() - 1].to_vec(), tasks: chain };
            if let Some(bound) = flow_bounds(&tasks, std::slice::from_ref(&flow)).unwrap()[0] {
                let (seen, lost) = simulate(&tasks, &flow, &offsets, 1500);
                prop_assert!(seen <= bound.latency, "{} > {}", seen, bound.latency);
                prop_assert!(!lost || !bound.lossless);
            }
        }
    }
}
