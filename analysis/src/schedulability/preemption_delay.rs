//! Cache-related preemption delay on one processor with fixed priorities.
//!
//! Method: S. Altmeyer, R. Davis, C. Maiza, *Improved cache related pre-emption delay aware response time analysis for fixed
//! priority pre-emptive systems*, Real-Time Systems 48(5), 2012: each preemption by a task may evict cache blocks that a
//! preempted task would have used again. [`Approach::EcbUnion`] and [`Approach::UcbUnion`] bound the cost of one preemption
//! from the two sides; neither covers the other, so [`response_times`] takes the smaller response of both.
//!
//! Assumptions: those of [`super::fixed_priority`] with deadlines within periods; a direct-mapped cache, or one where a set
//! is reloaded as a whole; evicting and useful blocks are sets of cache sets, and useful ones are used by the task itself.

use super::fixed_priority::STEPS_MAX;
use super::task::{Task, TaskError, Time, validate_constrained};
use serde::Serialize;

/// Cache sets, as a bit field of any length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheSets(Vec<u64>);

impl CacheSets {
    /// The sets with these numbers.
    pub fn of(sets: impl IntoIterator<Item = usize>) -> Self {
        let mut words = Vec::new();
        for set in sets {
            if words.len() <= set / 64 {
                words.resize(set / 64 + 1, 0u64);
            }
            words[set / 64] |= 1 << (set % 64);
        }
        Self(words)
    }

    /// The sets in either.
    pub fn union(&self, other: &Self) -> Self {
        let (long, short) = if self.0.len() >= other.0.len() {
            (self, other)
        } else {
            (other, self)
        };
        let mut words = long.0.clone();
        for (word, more) in words.iter_mut().zip(&short.0) {
            *word |= more;
        }
        Self(words)
    }

    /// Number of sets in both.
    pub fn common(&self, other: &Self) -> u64 {
        self.0
            .iter()
            .zip(&other.0)
            .map(|(a, b)| u64::from((a & b).count_ones()))
            .sum()
    }
}

/// A task with its use of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheTask {
    /// The task; its cost contains its own misses when it is not preempted.
    pub task: Task,
    /// Sets that it may evict from: all that it uses.
    pub evicting: CacheSets,
    /// Sets whose content it uses again at some point; part of `evicting`.
    pub useful: CacheSets,
}

/// How the delay of one preemption is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Approach {
    /// The most useful blocks of one affected task that the preempting task and all above it may evict.
    EcbUnion,
    /// The blocks of all affected tasks that the preempting task itself may evict.
    UcbUnion,
}

/// Response times with the lesser of both approaches, by decreasing priority; `reload` is the time to load one block.
/// `None`: beyond the deadline, or unbounded.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn response_times(tasks: &[CacheTask], reload: Time) -> Result<Vec<Option<Time>>, TaskError> {
    let ecb = with_approach(tasks, reload, Approach::EcbUnion)?;
    let ucb = with_approach(tasks, reload, Approach::UcbUnion)?;
    let lesser = |(a, b): (Option<Time>, Option<Time>)| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    Ok(ecb.into_iter().zip(ucb).map(lesser).collect())
}

/// Response times with one approach.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range.
pub fn with_approach(
    tasks: &[CacheTask],
    reload: Time,
    approach: Approach,
) -> Result<Vec<Option<Time>>, TaskError> {
    let plain: Vec<Task> = tasks.iter().map(|t| t.task).collect();
    validate_constrained(&plain)?;
    Ok((0..tasks.len())
        .map(|index| response(tasks, reload, approach, index))
        .collect())
}

/// Delay of one preemption by task `by` while task `index` responds.
fn delay(
    tasks: &[CacheTask],
    reload: Time,
    approach: Approach,
    by: usize,
    index: usize,
) -> Option<Time> {
    let affected = || tasks[by + 1..=index].iter();
    let blocks = match approach {
        Approach::EcbUnion => {
            let evicting = tasks[..=by]
                .iter()
                .fold(CacheSets::default(), |all, t| all.union(&t.evicting));
            affected()
                .map(|t| t.useful.common(&evicting))
                .max()
                .unwrap_or(0)
        }
        Approach::UcbUnion => {
            let useful = affected().fold(CacheSets::default(), |all, t| all.union(&t.useful));
            useful.common(&tasks[by].evicting)
        }
    };
    blocks.checked_mul(reload)
}

fn response(tasks: &[CacheTask], reload: Time, approach: Approach, index: usize) -> Option<Time> {
    let task = &tasks[index].task;
    let own = task.cost.checked_add(task.blocking)?;
    let mut higher = Vec::with_capacity(index);
    for by in 0..index {
        let cost = tasks[by]
            .task
            .cost
            .checked_add(delay(tasks, reload, approach, by, index)?)?;
        higher.push((cost, tasks[by].task));
    }
    let limit = task.deadline.checked_sub(task.jitter)?;
    let mut window = own;
    for _ in 0..STEPS_MAX {
        if window > limit {
            break;
        }
        let needed = higher.iter().try_fold(own, |sum, (cost, h)| {
            let arrivals = window.checked_add(h.jitter)?.div_ceil(h.period);
            sum.checked_add(arrivals.checked_mul(*cost)?)
        })?;
        if needed <= window {
            return Some(window + task.jitter);
        }
        window = needed;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::fixed_priority;
    use super::*;
    use proptest::prelude::*;

    fn task(cost: Time, period: Time, evicting: &[usize], useful: &[usize]) -> CacheTask {
        CacheTask {
            task: Task::new(cost, period),
            evicting: CacheSets::of(evicting.iter().copied()),
            useful: CacheSets::of(useful.iter().copied()),
        }
    }

    /// By hand: the second task has useful sets 1 and 2, the first evicts 2, 3 and 70. One block of 2 for each preemption:
    /// 4 + (1 + 2) = 7 in one period of 10; the response without is 5.
    #[test]
    fn by_hand() {
        let tasks = [
            task(1, 10, &[2, 3, 70], &[70]),
            task(4, 20, &[1, 2], &[1, 2]),
        ];
        assert_eq!(response_times(&tasks, 2).unwrap(), [Some(1), Some(7)]);
        assert_eq!(response_times(&tasks, 0).unwrap(), [Some(1), Some(5)]);
    }

    /// The approaches differ in both directions. Nested preemption: the union of evictors costs the middle task's
    /// preemption more; the union of useful blocks costs the highest one's more.
    #[test]
    fn neither_approach_covers_the_other() {
        // Only the top task evicts the low one's set: with the first approach the middle one pays for it as well.
        let a = [
            task(1, 100, &[1], &[]),
            task(1, 100, &[2], &[]),
            task(1, 100, &[1], &[1]),
        ];
        let of = |tasks: &[CacheTask], approach| with_approach(tasks, 10, approach).unwrap()[2];
        assert!(of(&a, Approach::EcbUnion) > of(&a, Approach::UcbUnion));
        // Two tasks have different useful sets, both of which the top task evicts: only one of them is preempted.
        let b = [
            task(1, 100, &[1, 2], &[]),
            task(1, 100, &[1], &[1]),
            task(1, 100, &[2], &[2]),
        ];
        assert!(of(&b, Approach::EcbUnion) <= of(&b, Approach::UcbUnion));
    }

    proptest! {
        #[test]
        fn never_below_the_plain_analysis(
            parts in prop::collection::vec((1u64..5, 5u64..60, prop::collection::vec(0usize..16, 0..6), 0usize..6), 1..5),
            reload in 0u64..4,
        ) {
            let tasks: Vec<_> = parts.iter().map(|(c, t, sets, n)| task(*c, *t, sets, &sets[..(*n).min(sets.len())])).collect();
            let plain: Vec<_> = tasks.iter().map(|t| t.task).collect();
            let base = fixed_priority::response_times(&plain).unwrap();
            let with = response_times(&tasks, reload).unwrap();
            for ((b, w), t) in base.iter().zip(&with).zip(&plain) {
                if let Some(w) = w {
                    prop_assert!(b.is_some_and(|b| b <= *w));
                    prop_assert!(*w <= t.deadline);
                } else if reload == 0 {
                    prop_assert!(b.is_none_or(|b| b > t.deadline));
                }
            }
        }
    }
}
