//! Rate-monotonic priorities with harmonic periods: full utilisation is reached.
//!
//! Method: C.-C. Han, H.-Y. Tyan, *A better polynomial-time schedulability test for real-time fixed-priority scheduling
//! algorithms*, RTSS 1997: where every period divides every longer one, a system with implicit deadlines is schedulable
//! exactly if its utilisation is at most 1; any other system is, if shortening its periods to harmonic ones leaves the
//! utilisation at most 1 (their transformation Sr).
//!
//! Assumptions: preemptive, independent, implicit deadlines, no jitter, no blocking.

use super::task::{self, Task, TaskError, Time, validate};
use super::utilisation::compare;

/// Whether every period divides every longer one.
pub fn is_harmonic(tasks: &[Task]) -> bool {
    let mut periods: Vec<Time> = tasks.iter().map(|t| t.period).collect();
    periods.sort_unstable();
    periods
        .windows(2)
        .all(|w| w[0] != 0 && w[1].is_multiple_of(w[0]))
}

/// Whether the test shows that every job meets its deadline. Exact for harmonic periods, else sufficient.
///
/// # Errors
/// [`TaskError`] if a parameter is out of range or not covered.
pub fn schedulable(tasks: &[Task]) -> Result<bool, TaskError> {
    validate(tasks)?;
    task::refuse(tasks, &[task::DEADLINE, task::JITTER, task::BLOCKING])?;
    if is_harmonic(tasks) {
        return Ok(compare(tasks.iter().map(|t| (t.cost, t.period)), 1).is_le());
    }
    // Each period is tried as the base: others become the base times a power of two, rounded down. A base is halved until
    // it is at most the least period.
    let Some(least) = tasks.iter().map(|t| t.period).min() else {
        return Ok(true);
    };
    Ok(tasks.iter().any(|base| {
        // In fractions, the base may be halved as often as needed: compare with period * 2^halvings instead.
        let mut halvings = 0;
        while base.period >> halvings > least
            || (base.period >> halvings == least && base.period & ((1 << halvings) - 1) != 0)
        {
            halvings += 1;
        }
        let scaled = tasks.iter().map(|t| {
            let doublings = ((t.period << halvings) / base.period).max(1).ilog2();
            (t.cost << halvings, base.period << doublings)
        });
        halvings <= 10 && compare(scaled, 1).is_le()
    }))
}

#[cfg(test)]
mod tests {
    use super::super::fixed_priority;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn full_harmonic_system() {
        // 1/2 + 1/4 + 2/8 = 1.
        let tasks = [Task::new(1, 2), Task::new(1, 4), Task::new(2, 8)];
        assert!(is_harmonic(&tasks) && schedulable(&tasks).unwrap());
        let more = [Task::new(1, 2), Task::new(1, 4), Task::new(3, 8)];
        assert!(!schedulable(&more).unwrap());
        assert!(schedulable(&[Task::constrained(1, 4, 3)]).is_err());
    }

    fn rate_monotonic(mut tasks: Vec<Task>) -> Vec<Task> {
        tasks.sort_by_key(|t| t.period);
        tasks
    }

    proptest! {
        #[test]
        fn equals_response_times_where_harmonic(parts in prop::collection::vec((1u64..9, 0u32..5), 1..6)) {
            let tasks = rate_monotonic(parts.iter().map(|&(c, e)| Task::new(c, 3 << e)).collect());
            prop_assert_eq!(schedulable(&tasks).unwrap(), fixed_priority::schedulable(&tasks).unwrap());
        }

        #[test]
        fn sufficient_elsewhere(parts in prop::collection::vec((1u64..9, 3u64..60), 1..6)) {
            let tasks = rate_monotonic(parts.iter().map(|&(c, t)| Task::new(c, t)).collect());
            if schedulable(&tasks).unwrap() {
                prop_assert!(fixed_priority::schedulable(&tasks).unwrap());
            }
        }
    }
}
