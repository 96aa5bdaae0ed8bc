//! Quotas of computing time.
//!
//! Why it exists: applications, managers and tasks have quotas, and all are bounded in the same way. What it deliberately does not know:
//! the owners of quotas, and how TileMux enforces them.

use crate::units::Time;
use serde::Serialize;

/// Bound of an application's computing time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Time in each period.
    pub budget: Time,
    /// The period.
    pub period: Time,
    /// A greater value is more urgent; 0 and meaningless on tiles with the policy `throughput`.
    pub priority: u8,
}

impl Cpu {
    /// The total time that a job may wait for budgets, besides the response time of its last one, if jobs of this cost arrive at least
    /// `distance` apart. `None`: the quota cannot pay for them.
    ///
    /// A budget comes back one period after the work that used it was released. If all of a job's budgets are back before the next job
    /// arrives, it waits only between them. Otherwise everything used earlier is back within a period, so k consecutive jobs have what
    /// they need after as many periods as budgets.
    pub fn waits(self, cost: Time, distance: Time) -> Option<Time> {
        const JOBS: u128 = 10_000;
        let [cost, distance, budget, period] =
            [cost, distance, self.budget, self.period].map(|time| u128::from(time.0));
        if budget == 0 || distance == 0 || cost * period > budget * distance {
            return None;
        }
        let budgets = |jobs: u128| (jobs * cost).div_ceil(budget);
        let waits = if budgets(1) * period <= distance {
            (budgets(1).max(1) - 1) * period
        } else if cost * period.div_ceil(distance) <= budget {
            0
        } else {
            let mut worst = 0;
            let mut jobs = 1;
            loop {
                let there = budgets(jobs) * period;
                worst = worst.max(there - (there.min((jobs - 1) * distance)));
                if there <= jobs * distance {
                    break worst;
                }
                jobs += 1;
                if jobs > JOBS {
                    return None;
                }
            }
        };
        u64::try_from(waits).ok().map(Time)
    }
}

/// A share of a period, given in millionths, in whole nanoseconds, at least one.
pub(crate) fn share_of(period: Time, millionths: u32) -> Time {
    let nanoseconds = u128::from(period.0 / 1000) * u128::from(millionths) / 1_000_000;
    Time(u64::try_from(nanoseconds.max(1) * 1000).unwrap_or(u64::MAX))
}
