//! The task that all tests share.
//!
//! It knows the parameters and what makes them sensible; the tests know what a scheduler does with them.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A moment or span; nanoseconds by convention.
pub type Time = u64;

/// The greatest parameter: sums of products of two of them and a hundred thousand tasks stay below 128 bits, and response
/// times that a test follows stay far below 64 bits.
pub const LIMIT: Time = 1 << 52;

/// A sporadic task.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Task {
    /// Longest execution of a job, alone. Positive.
    pub cost: Time,
    /// Minimum inter-arrival time. Positive.
    pub period: Time,
    /// Longest time from arrival to completion. Positive; may exceed the period.
    pub deadline: Time,
    /// Release jitter: longest time from arrival to release.
    pub jitter: Time,
    /// Longest blocking by lower-priority tasks (critical sections, non-preemptive parts).
    pub blocking: Time,
}

impl Task {
    /// A task whose deadline is its period.
    pub const fn new(cost: Time, period: Time) -> Self {
        Self::constrained(cost, period, period)
    }

    /// A task with a deadline.
    pub const fn constrained(cost: Time, period: Time, deadline: Time) -> Self {
        Self {
            cost,
            period,
            deadline,
            jitter: 0,
            blocking: 0,
        }
    }

    /// The same with release jitter.
    pub const fn with_jitter(mut self, jitter: Time) -> Self {
        self.jitter = jitter;
        self
    }

    /// The same with blocking.
    pub const fn with_blocking(mut self, blocking: Time) -> Self {
        self.blocking = blocking;
        self
    }
}

/// A mistake in a task system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TaskError {
    /// A parameter is 0.
    #[error("task {task}: {what} must be positive")]
    NotPositive {
        /// Index.
        task: usize,
        /// Parameter.
        what: &'static str,
    },
    /// A parameter is above [`LIMIT`].
    #[error("task {task}: {what} is above {LIMIT}")]
    TooLarge {
        /// Index.
        task: usize,
        /// Parameter.
        what: &'static str,
    },
    /// The test needs deadlines within periods.
    #[error("task {task}: the deadline exceeds the period, which this test does not cover")]
    ArbitraryDeadline {
        /// Index.
        task: usize,
    },
    /// The test does not know a parameter.
    #[error("task {task}: this test does not cover {what}")]
    NotCovered {
        /// Index.
        task: usize,
        /// Parameter.
        what: &'static str,
    },
    /// A number of processors, levels, frames that must be positive.
    #[error("{0} must be positive")]
    Zero(&'static str),
}

/// Checks what every test relies on.
///
/// # Errors
/// The first parameter out of range.
pub fn validate(tasks: &[Task]) -> Result<(), TaskError> {
    for (index, task) in tasks.iter().enumerate() {
        for (value, what) in [
            (task.cost, "cost"),
            (task.period, "period"),
            (task.deadline, "deadline"),
        ] {
            if value == 0 {
                return Err(TaskError::NotPositive { task: index, what });
            }
        }
        for (value, what) in [
            (task.cost, "cost"),
            (task.period, "period"),
            (task.deadline, "deadline"),
            (task.jitter, "jitter"),
            (task.blocking, "blocking"),
        ] {
            if value > LIMIT {
                return Err(TaskError::TooLarge { task: index, what });
            }
        }
    }
    Ok(())
}

/// As [`validate`], and no deadline exceeds its period.
///
/// # Errors
/// The first parameter out of range.
pub fn validate_constrained(tasks: &[Task]) -> Result<(), TaskError> {
    validate(tasks)?;
    match tasks.iter().position(|t| t.deadline > t.period) {
        Some(task) => Err(TaskError::ArbitraryDeadline { task }),
        None => Ok(()),
    }
}

/// A property that a test may not cover: how to see it, and its name.
pub type Uncovered = (fn(&Task) -> bool, &'static str);
/// Release jitter.
pub const JITTER: Uncovered = (|task| task.jitter > 0, "jitter");
/// Blocking.
pub const BLOCKING: Uncovered = (|task| task.blocking > 0, "blocking");
/// A deadline that is not implicit.
pub const DEADLINE: Uncovered = (
    |task| task.deadline != task.period,
    "a deadline that is not the period",
);

/// Refuses what a test does not cover instead of ignoring it.
///
/// # Errors
/// [`TaskError::NotCovered`] with the first task and the first thing of it.
pub fn refuse(tasks: &[Task], uncovered: &[Uncovered]) -> Result<(), TaskError> {
    for (task, one) in tasks.iter().enumerate() {
        if let Some(&(_, what)) = uncovered.iter().find(|(there, _)| there(one)) {
            return Err(TaskError::NotCovered { task, what });
        }
    }
    Ok(())
}

/// Greatest common divisor; of 0 and a number, the number.
pub fn common_divisor(a: Time, b: Time) -> Time {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Least common multiple of positive numbers. `None` if it does not fit into 64 bits.
pub fn common_multiple(numbers: impl Iterator<Item = Time>) -> Option<Time> {
    let mut numbers = numbers;
    numbers.try_fold(1u64, |all, one| {
        (all / common_divisor(all, one).max(1)).checked_mul(one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_and_multiples() {
        assert_eq!((common_divisor(12, 18), common_divisor(0, 7)), (6, 7));
        assert_eq!(common_multiple([4, 6, 10].into_iter()), Some(60));
        assert_eq!(common_multiple([].into_iter()), Some(1));
        assert_eq!(common_multiple([LIMIT, LIMIT - 1].into_iter()), None);
    }

    #[test]
    fn what_is_not_covered_is_refused() {
        let tasks = [Task::new(1, 4), Task::constrained(1, 4, 3).with_blocking(1)];
        assert_eq!(refuse(&tasks, &[JITTER]), Ok(()));
        let wrong = refuse(&tasks, &[JITTER, BLOCKING, DEADLINE]).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "task 1: this test does not cover blocking"
        );
    }

    #[test]
    fn refuses_nonsense() {
        assert_eq!(
            validate(&[Task::new(1, 2), Task::new(0, 2)]),
            Err(TaskError::NotPositive {
                task: 1,
                what: "cost"
            })
        );
        assert_eq!(
            validate(&[Task::new(1, u64::MAX)]).unwrap_err().to_string(),
            "task 0: period is above 4503599627370496"
        );
        assert_eq!(
            validate_constrained(&[Task::constrained(1, 2, 3)]),
            Err(TaskError::ArbitraryDeadline { task: 0 })
        );
    }
}
