//! Quotas of computing time.
//!
//! Why it exists: applications, managers and tasks have them, and all are bounded alike. What it deliberately does not know: who has one,
//! and how TileMux enforces it.

use crate::units::Time;
use serde::Serialize;

/// Bound of an application's computing time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// Time in each period.
    pub budget: Time,
    /// The period.
    pub period: Time,
    /// Greater is more urgent; 0 on tiles with the policy `throughput`, where it means nothing.
    pub priority: u8,
}

impl Cpu {
    /// How long a job may wait for budgets in all, beside the response time of its last one, if jobs of this cost come at least
    /// `distance` apart. `None`: the quota does not pay for them.
    ///
    /// A budget comes back one period after the work that used it was released. If a job's budgets are all back before the next job comes,
    /// it waits only between them. Otherwise whatever was used before is back within a period, so k consecutive jobs have what they need
    /// after as many periods as budgets.
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

/// A share in millionths of a period, in whole nanoseconds, at least one.
pub(crate) fn share_of(period: Time, millionths: u32) -> Time {
    let nanoseconds = u128::from(period.0 / 1000) * u128::from(millionths) / 1_000_000;
    Time(u64::try_from(nanoseconds.max(1) * 1000).unwrap_or(u64::MAX))
}
