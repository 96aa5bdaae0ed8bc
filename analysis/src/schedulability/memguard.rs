//! Bandwidth regulation by counting (MemGuard): how much longer a task takes on a regulated core.
//!
//! Model: H. Yun, G. Yao, R. Pellizzoni, M. Caccamo, L. Sha, *MemGuard: memory bandwidth reservation system for efficient
//! performance isolation in multi-core platforms*, RTAS 2013, without reclaiming, as hercules-18 uses it: a core may make
//! `budget` memory accesses in each period; the next one stalls it until the period ends.
//!
//! Method: a task with `accesses` of its own uses the budget up at most once for each full budget that it needs; the stall
//! is what is left of the period after the accesses that used it up, and the first may take a whole period, because others
//! may have used the budget before.
//!
//! Assumptions: the cost contains the accesses at `access` ticks each at least; preemption is the response-time analysis's
//! business, each job's accesses being its own.

use super::task::{TaskError, Time};

/// Regulation of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regulation {
    /// Accesses in a period; positive.
    pub budget: u64,
    /// The period; positive.
    pub period: Time,
    /// Least time of an access.
    pub access: Time,
}

/// The longest time in which a job with this cost (its accesses included) is stalled. `None`: beyond 64 bits.
///
/// # Errors
/// [`TaskError::Zero`] if budget or period is 0.
pub fn stall(accesses: u64, regulation: &Regulation) -> Result<Option<Time>, TaskError> {
    let Regulation {
        budget,
        period,
        access,
    } = *regulation;
    if budget == 0 {
        return Err(TaskError::Zero("the budget"));
    }
    if period == 0 {
        return Err(TaskError::Zero("the period"));
    }
    if accesses == 0 {
        return Ok(Some(0));
    }
    // Stalls of the first kind: once, with the budget spent by others; of the second: after each full own budget.
    let own = (accesses - 1) / budget;
    let each = budget
        .checked_mul(access)
        .map_or(0, |busy| period.saturating_sub(busy));
    Ok(own.checked_mul(each).and_then(|s| s.checked_add(period)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 10 accesses of 2 with 4 in a period of 20: one stall of 20 at first, two of 20 - 8.
    #[test]
    fn by_hand() {
        let regulation = Regulation {
            budget: 4,
            period: 20,
            access: 2,
        };
        assert_eq!(stall(10, &regulation), Ok(Some(44)));
        assert_eq!(stall(0, &regulation), Ok(Some(0)));
        assert!(
            stall(
                1,
                &Regulation {
                    budget: 0,
                    ..regulation
                }
            )
            .is_err()
        );
        assert_eq!(
            stall(
                u64::MAX,
                &Regulation {
                    budget: 1,
                    period: 1 << 40,
                    access: 0
                }
            ),
            Ok(None)
        );
    }

    proptest! {
        /// A job of alternating computation and accesses, unit by unit, from any moment of a period with any budget left.
        #[test]
        fn no_simulated_stall_is_longer(
            gaps in prop::collection::vec(0u64..12, 0..40),
            budget in 1u64..6,
            access in 1u64..4,
            extra in 0u64..30,
            phase in 0u64..60,
            spent in 0u64..6,
        ) {
            let regulation = Regulation { budget, period: budget * access + extra + 1, access };
            let bound = stall(gaps.len() as u64, &regulation).unwrap().unwrap();
            let mut now = phase % regulation.period;
            let mut used = spent.min(budget);
            let mut stalled = 0;
            let mut boundary = regulation.period;
            for gap in gaps {
                now += gap;
                while now >= boundary { boundary += regulation.period; used = 0; }
                if used == budget {
                    stalled += boundary - now;
                    now = boundary;
                    boundary += regulation.period;
                    used = 0;
                }
                used += 1;
                now += access;
            }
            prop_assert!(stalled <= bound, "{} > {}", stalled, bound);
        }
    }
}
