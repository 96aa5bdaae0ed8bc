//! Bandwidth regulation by counting (MemGuard): how much longer a task takes on a regulated core.
//!
//! Model: H. Yun, G. Yao, R. Pellizzoni, M. Caccamo, L. Sha, *MemGuard: memory bandwidth reservation system for efficient
//! performance isolation in multi-core platforms*, RTAS 2013, without reclaiming, as hercules-18 uses it: a core may make
//! `budget` memory accesses in each period; the next one stalls it until the period ends.
//!
//! Method: a stalled core is stalled as a whole, whichever task spent its budget. In a busy period the first stall may be due to
//! others; every further one needs a full budget of accesses, plus the one that exceeds it, by the tasks that run in it. So with A
//! accesses in a busy period there are at most `1 + (A - 1) / budget` stalls (one with A = 0). Each ends with a period and begins after
//! a full budget of accesses in it: [`Regulation::longest_stall`].
//!
//! A test of many tasks counts the first stall once for each busy period, and lets each job pay `stall / budget` for each of its
//! own accesses ([`Regulation::stalls`]): that sums to no less than the number above, however accesses and jobs mix.
//!
//! Assumptions: the cost contains the accesses, at least `access` ticks each, one at a time; no other component makes accesses on the
//! core's account; a core makes no access while it waits or spins.

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

impl Regulation {
    /// Whether budget and period are sensible.
    ///
    /// # Errors
    /// [`TaskError::Zero`] if one of them is 0.
    pub fn validate(&self) -> Result<(), TaskError> {
        if self.budget == 0 {
            return Err(TaskError::Zero("the budget"));
        }
        if self.period == 0 {
            return Err(TaskError::Zero("the period"));
        }
        Ok(())
    }

    /// The longest single stall: what a period has left after a full budget of the fastest accesses.
    pub fn longest_stall(&self) -> Time {
        match self.budget.checked_mul(self.access) {
            Some(busy) => self.period.saturating_sub(busy),
            None => 0,
        }
    }

    /// The part of all stalls for which these accesses pay, besides the first stall of a busy period. `None`: beyond 64 bits.
    pub fn stalls(&self, accesses: u64) -> Option<Time> {
        let all = u128::from(accesses) * u128::from(self.longest_stall());
        u64::try_from(all.div_ceil(u128::from(self.budget.max(1)))).ok()
    }
}

/// The longest time for which a core is stalled in a busy period in which `accesses` are made: alone, that of a job. `None`:
/// beyond 64 bits.
///
/// # Errors
/// [`TaskError::Zero`] if budget or period is 0.
pub fn stall(accesses: u64, regulation: &Regulation) -> Result<Option<Time>, TaskError> {
    regulation.validate()?;
    let further = accesses.saturating_sub(1) / regulation.budget;
    let stalls = further.checked_add(1);
    Ok(stalls.and_then(|stalls| stalls.checked_mul(regulation.longest_stall())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 10 accesses of 2 with 4 in a period of 20: one stall for others' accesses and two for its own, each of 20 - 8. A task that makes
    /// none can still find the core stalled.
    #[test]
    fn by_hand() {
        let regulation = Regulation {
            budget: 4,
            period: 20,
            access: 2,
        };
        assert_eq!(stall(10, &regulation), Ok(Some(36)));
        assert_eq!(stall(0, &regulation), Ok(Some(12)));
        // The part that each access pays: 12 / 4.
        assert_eq!(regulation.stalls(10), Some(30));
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
        /// A job of alternating computation and accesses, unit by unit, from any moment of a period with any budget spent that can be
        /// spent by then.
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
            let accesses = gaps.len() as u64;
            let bound = stall(accesses, &regulation).unwrap().unwrap();
            let mut now = phase % regulation.period;
            let mut used = spent.min(budget).min(now / access);
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
            let paid = regulation.longest_stall() + regulation.stalls(accesses).unwrap();
            prop_assert!(bound <= paid, "{} > {}", bound, paid);
        }
    }
}
