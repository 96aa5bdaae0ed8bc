//! A replenished budget of execution time: how much was used, and when it may be used again.
//!
//! Why it exists: a share of a processor must hold in every window of time, not only on average. What it deliberately does
//! not know: who else runs. Times are in the caller's unit.
//!
//! Method: the sporadic server of B. Sprunt, L. Sha, J. Lehoczky, *Aperiodic task scheduling for hard real-time systems*, Real-Time
//! Systems 1(1), 1989, as a queue of refills, which avoids the defects that M. Stanovich, T. Baker, A. Wang, M. Harbour, *Defects
//! of the POSIX sporadic server and how to correct them*, RTAS 2010, describe. The time used comes back one period after its
//! *origin*. If the origin is the start of the execution, no window of a period's length contains more than the budget. If it is
//! the release of the work, the work interferes with others no more than a sporadic task with that cost and period does.

/// Execution time in each period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Most execution time in a period.
    pub amount: u64,
    /// Length of a period.
    pub period: u64,
}

impl Budget {
    /// Whether the numbers make sense: neither is 0, and the amount fits the period.
    pub const fn is_valid(&self) -> bool {
        self.amount > 0 && self.amount <= self.period
    }
}

/// Most outstanding refills. A budget that is used in more pieces than this in a period gets some of them back later.
pub const REFILLS: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Refill {
    /// The time from which it may be used.
    time: u64,
    amount: u64,
}

/// The account of one budget.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    budget: Budget,
    /// Sorted by time; the amounts add up to the budget's at any time.
    refills: [Refill; REFILLS],
    length: u8,
    least: u64,
}

impl Account {
    /// A full account from `now` on. A piece shorter than `least` comes back together with the next one, so that a budget that is
    /// used in tiny pieces does not come back in tiny pieces, each with its own switch.
    pub fn new(budget: Budget, least: u64, now: u64) -> Self {
        let mut refills = [Refill::default(); REFILLS];
        refills[0] = Refill {
            time: now,
            amount: budget.amount,
        };
        Self {
            budget,
            refills,
            length: 1,
            least,
        }
    }

    /// The budget with which the account was opened.
    pub const fn budget(&self) -> Budget {
        self.budget
    }

    fn refills(&self) -> &[Refill] {
        &self.refills[..self.length as usize]
    }

    /// When a run that begins now has used up the account, including refills that arrive meanwhile; `None` if it cannot begin.
    pub fn end_of_run(&self, now: u64) -> Option<u64> {
        let mut end = now;
        for refill in self.refills() {
            if refill.time > end {
                break;
            }
            end = end.saturating_add(refill.amount);
        }
        (end > now).then_some(end)
    }

    /// When a run may begin, if none may now.
    pub fn next_start(&self) -> u64 {
        self.refills[0].time
    }

    /// Takes `duration` away; it comes back one period after `origin`, or after it was last refilled, whichever is later. An
    /// overrun is taken from the next refills.
    pub fn charge(&mut self, duration: u64, origin: u64) {
        self.settle(origin);
        let mut left = duration;
        // More than a whole budget cannot be owed: an overrun of that size would be a fault of the caller's timer.
        for _ in 0..REFILLS {
            let head = self.refills[0];
            let used = head.amount.min(left);
            if used == 0 {
                return;
            }
            left -= used;
            let in_use = used < head.amount;
            if !in_use {
                let length = self.length as usize;
                self.refills.copy_within(1..length, 0);
                self.length -= 1;
            } else {
                self.refills[0].amount -= used;
            }
            let time = head.time.max(origin).saturating_add(self.budget.period);
            let amount = used;
            self.push(Refill { time, amount }, in_use);
        }
    }

    fn push(&mut self, refill: Refill, in_use: bool) {
        let length = self.length as usize;
        if length > 0 {
            let last = &mut self.refills[length - 1];
            // The rest of the refill in use is not a crumb.
            let crumb = !(in_use && length == 1) && last.amount < self.least;
            if length == REFILLS || last.time == refill.time || crumb {
                last.time = last.time.max(refill.time);
                last.amount += refill.amount;
                return;
            }
        }
        let earliest = match length {
            0 => 0,
            _ => self.refills[length - 1].time,
        };
        self.refills[length] = Refill {
            time: refill.time.max(earliest),
            amount: refill.amount,
        };
        self.length += 1;
    }

    /// Joins refills that were available before the origin: time used from them comes back at the same moment.
    fn settle(&mut self, origin: u64) {
        while self.length > 1 && self.refills[1].time <= origin {
            let joined = self.refills[0].amount + self.refills[1].amount;
            self.refills[1].amount = joined;
            let length = self.length as usize;
            self.refills.copy_within(1..length, 0);
            self.length -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BUDGET: Budget = Budget {
        amount: 10,
        period: 100,
    };

    #[test]
    fn nonsense_is_known() {
        let valid = |amount, period| Budget { amount, period }.is_valid();
        assert!(valid(1, 1) && valid(5, 9));
        assert!(!valid(0, 1) && !valid(2, 1) && !valid(0, 0));
    }

    #[test]
    fn pieces_come_back_one_by_one() {
        let mut account = Account::new(BUDGET, 1, 0);
        assert_eq!(account.end_of_run(0), Some(10));
        account.charge(4, 0);
        account.charge(6, 50);
        assert_eq!(account.end_of_run(99), None);
        assert_eq!(account.next_start(), 100);
        assert_eq!(account.end_of_run(100), Some(104));
        assert_eq!(account.end_of_run(147), Some(157));
        // A refill that comes while the first piece is used joins in.
        assert_eq!(account.end_of_run(148), Some(158));
        account.charge(4, 100);
        assert_eq!(account.next_start(), 150);
    }

    #[test]
    fn crumbs_come_back_with_the_next_piece() {
        let mut account = Account::new(BUDGET, 5, 0);
        account.charge(8, 0);
        account.charge(2, 40);
        assert_eq!(account.next_start(), 100);
        account.charge(8, 100);
        assert_eq!(account.end_of_run(150), None);
        assert_eq!(account.next_start(), 200);
        // The rest of a piece may be used, however little it is.
        account.charge(9, 200);
        assert_eq!(account.end_of_run(209), Some(210));
    }

    #[test]
    fn an_overrun_is_paid_back() {
        let mut account = Account::new(BUDGET, 1, 0);
        account.charge(13, 0);
        assert_eq!(account.end_of_run(100), Some(107));
        account.charge(7, 100);
        assert_eq!(account.end_of_run(200), Some(210));
    }

    proptest! {
        /// However a budget is used, no window of a period's length contains more of it than the budget.
        #[test]
        fn no_window_contains_more_than_the_budget(
            amount in 1u64..40, spare in 0u64..100, least in 1u64..8, steps in proptest::collection::vec((0u64..60, 1u64..60), 1..80)
        ) {
            let budget = Budget { amount, period: amount + spare };
            let mut account = Account::new(budget, least, 0);
            let mut now = 0;
            let mut used: Vec<u64> = Vec::new();
            for (pause, wish) in steps {
                now += pause;
                let Some(end) = account.end_of_run(now) else {
                    prop_assert!(account.next_start() > now);
                    continue;
                };
                let run = wish.min(end - now);
                account.charge(run, now);
                used.extend(now..now + run);
                now += run;
                prop_assert_eq!(account.refills().iter().map(|r| r.amount).sum::<u64>(), amount);
                prop_assert!(account.refills().is_sorted_by_key(|r| r.time));
            }
            for (index, start) in used.iter().enumerate() {
                let window = used[index..].iter().take_while(|unit| **unit < start + budget.period).count() as u64;
                prop_assert!(window <= amount, "{window} from {start} on");
            }
        }

        /// A task that works for its whole budget once a period never waits for it.
        #[test]
        fn a_task_within_its_budget_never_waits_for_it(
            amount in 1u64..40, spare in 0u64..100, delays in proptest::collection::vec((0u64..50, 0u64..50), 1..40)
        ) {
            let budget = Budget { amount, period: amount + spare };
            let mut account = Account::new(budget, 1, 0);
            let mut release = 0;
            for (late, preempted) in delays {
                // Half the work, an interruption by others, the other half; released at `release` all the same.
                let now = release + late.min(spare);
                let end = account.end_of_run(now);
                prop_assert!(end.is_some_and(|end| end >= now + amount), "at {}", now);
                account.charge(amount / 2, release);
                let resumed = now + amount / 2 + preempted;
                let rest = amount - amount / 2;
                prop_assert!(account.end_of_run(resumed).is_some_and(|end| end >= resumed + rest));
                account.charge(rest, release);
                release = (release + budget.period).max(resumed + rest);
            }
        }
    }
}
