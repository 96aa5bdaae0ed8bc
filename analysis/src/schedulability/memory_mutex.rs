//! Memory phases under a lock (PREM): how long a core waits for the memory.
//!
//! Model: hercules-18, section on PREM: code is divided into memory phases, which load all that the following computation
//! needs, and a lock (the memory mutex) lets one core at a time run one. Method: R. Pellizzoni et al., *A predictable
//! execution model for COTS-based embedded systems*, RTAS 2011; with requests served in order, each other core goes first
//! once; with requests by core priority, the wait is that of a non-preemptive task ([`super::threshold`]).
//!
//! Assumptions: a phase is not preempted; a core asks for its next phase only after the end of the last; phase lengths
//! are those of exclusive access.

use super::task::{Task, TaskError, Time};
use super::threshold;

/// Memory phases of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phases {
    /// Longest phase.
    pub longest: Time,
    /// Minimum inter-arrival time of requests; positive.
    pub distance: Time,
}

/// Longest wait of a request of `core`, requests served in order of arrival: one phase of every other core.
///
/// # Errors
/// [`TaskError::NotCovered`] if the core does not exist.
pub fn fifo(cores: &[Phases], core: usize) -> Result<Time, TaskError> {
    check(cores, core)?;
    let others = cores.iter().enumerate().filter(|(i, _)| *i != core);
    Ok(others.fold(0, |sum, (_, p)| sum.saturating_add(p.longest)))
}

/// Longest wait of a request of `core`, the core with the lowest index first. `None`: cores before it may take all the time.
///
/// # Errors
/// [`TaskError`] if the core does not exist or a parameter is out of range.
pub fn by_priority(cores: &[Phases], core: usize) -> Result<Option<Time>, TaskError> {
    check(cores, core)?;
    let tasks: Vec<Task> = cores
        .iter()
        .map(|p| Task::new(p.longest.max(1), p.distance))
        .collect();
    let response = threshold::non_preemptive(&tasks)?[core];
    Ok(response.map(|r| r.saturating_sub(tasks[core].cost)))
}

fn check(cores: &[Phases], core: usize) -> Result<(), TaskError> {
    if core >= cores.len() {
        return Err(TaskError::NotCovered {
            task: core,
            what: "a core that does not exist",
        });
    }
    match cores.iter().position(|p| p.distance == 0) {
        Some(task) => Err(TaskError::NotPositive {
            task,
            what: "distance",
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let cores =
            [(3, 10), (4, 50), (6, 60)].map(|(longest, distance)| Phases { longest, distance });
        assert_eq!(fifo(&cores, 1), Ok(9));
        // 5 of the phase behind that has just begun, 3 of the first core at 5: 8; its next request comes at 10.
        assert_eq!(by_priority(&cores, 1), Ok(Some(8)));
        assert_eq!(by_priority(&cores, 0), Ok(Some(5)));
        assert!(fifo(&cores, 3).is_err());
        let full = [
            Phases {
                longest: 5,
                distance: 5,
            },
            cores[0],
        ];
        assert_eq!(by_priority(&full, 1), Ok(None));
    }

    proptest! {
        /// Unit by unit: every core asks as often as it may, from any offset.
        #[test]
        fn no_simulated_wait_is_longer(
            parts in prop::collection::vec((1u64..8, 0u64..40, 0u64..40), 1..5),
            fifo_order: bool,
        ) {
            let cores: Vec<_> = parts.iter().map(|&(l, gap, _)| Phases { longest: l, distance: l + gap }).collect();
            let bounds: Vec<_> = (0..cores.len()).map(|c| {
                if fifo_order { fifo(&cores, c).ok() } else { by_priority(&cores, c).unwrap() }
            }).collect();
            let mut next: Vec<u64> = parts.iter().map(|p| p.2).collect();
            let mut waiting: Vec<(u64, usize)> = Vec::new();
            let mut holder: Option<(usize, u64)> = None;
            for now in 0..1000u64 {
                if holder.is_some_and(|(_, end)| end == now) { holder = None; }
                for (c, p) in cores.iter().enumerate() {
                    let idle = holder.is_none_or(|h| h.0 != c) && !waiting.iter().any(|w| w.1 == c);
                    if now >= next[c] && idle {
                        waiting.push((now, c));
                        next[c] = now + p.distance;
                    }
                }
                if holder.is_none() && !waiting.is_empty() {
                    if fifo_order { waiting.sort_unstable(); } else { waiting.sort_unstable_by_key(|w| w.1); }
                    let (since, c) = waiting.remove(0);
                    if let Some(bound) = bounds[c] { prop_assert!(now - since <= bound); }
                    holder = Some((c, now + cores[c].longest));
                }
            }
        }
    }
}
