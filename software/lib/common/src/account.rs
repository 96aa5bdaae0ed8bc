//! Processor time of a server's clients: the limit of a request, and the budget of a client in a period.
//!
//! Why it exists: m3-rtas24, section III-C2, leaves this open: a server should refuse requests that cannot be finished within the
//! limit, and delay clients that have spent their budgets. What it deliberately does not know: messages and how time is measured.
//!
//! The budget is that of a deferrable server: full at the beginning of each period, usable at any time in it, and not saved. A
//! client that takes more than the estimate owes the difference. The debt is paid from the budgets of the next periods, so over
//! many periods no client gets more than its share, whatever the estimates were.

/// The limits of a client. `u64::MAX` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Maximum nanoseconds of one request.
    pub limit: u64,
    /// Maximum nanoseconds in each period.
    pub budget: u64,
    /// Nanoseconds of a period, not 0.
    pub period: u64,
}

impl Terms {
    /// No limit of any kind.
    pub const NONE: Terms = Terms {
        limit: u64::MAX,
        budget: u64::MAX,
        period: u64::MAX,
    };
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Serve it now.
    Serve,
    /// Serve it, but not before this time (nanoseconds).
    Delay(u64),
    /// Never serve it: it cannot be finished within the limit or the budget.
    Refuse,
}

/// The processor time of one client.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    terms: Terms,
    /// The rest of the budget in this period; negative: debt.
    left: i64,
    /// The smaller of that and the limit of a request: one comparison decides the usual case.
    clear: i64,
    /// End of this period.
    refill: u64,
    spent: u64,
    served: u64,
    overruns: u64,
}

impl Account {
    /// An account whose first period begins now.
    pub fn new(terms: Terms, now: u64) -> Self {
        let left = Self::full(&terms);
        Self {
            terms,
            left,
            clear: Self::clear(&terms, left),
            refill: now.saturating_add(terms.period),
            spent: 0,
            served: 0,
            overruns: 0,
        }
    }

    fn full(terms: &Terms) -> i64 {
        i64::try_from(terms.budget).unwrap_or(i64::MAX)
    }

    fn clear(terms: &Terms, left: i64) -> i64 {
        left.min(i64::try_from(terms.limit).unwrap_or(i64::MAX))
    }

    /// Whether a request with this estimate can be served without reading the clock.
    #[inline(always)]
    pub fn is_clear(&self, estimate: u64) -> bool {
        // An estimate beyond i64 is above every limit that is not `u64::MAX`, and there the budget is what `left` says.
        (estimate <= i64::MAX as u64) & (estimate as i64 <= self.clear)
    }

    /// The largest estimate for which [`is_clear`](Self::is_clear) is true; only [`charge`](Self::charge) lowers it.
    #[inline(always)]
    pub fn clear_for(&self) -> i64 {
        self.clear
    }

    /// Decides about a request that takes at most `estimate` nanoseconds.
    pub fn judge(&mut self, now: u64, estimate: u64) -> Verdict {
        if estimate > self.terms.limit || estimate > self.terms.budget {
            return Verdict::Refuse;
        }
        self.refill(now);
        let missing = i128::from(estimate) - i128::from(self.left);
        if missing <= 0 || self.terms.budget >= i64::MAX as u64 {
            return Verdict::Serve;
        }
        // As long as there is debt, each of the next periods pays its whole budget.
        let budget = i128::from(self.terms.budget);
        let periods = if budget == 0 {
            // Only an estimate of 0 gets here, with debt that is never paid.
            i128::MAX
        } else {
            (missing + budget - 1) / budget
        };
        let wait = u64::try_from(periods - 1)
            .unwrap_or(u64::MAX)
            .saturating_mul(self.terms.period);
        Verdict::Delay(self.refill.saturating_add(wait))
    }

    /// Records a request that ended at `now` and took `taken` nanoseconds, whether more or less than its `estimate`.
    #[inline(always)]
    pub fn charge(&mut self, now: u64, taken: u64, estimate: u64) {
        if now >= self.refill {
            self.refill(now);
        }
        self.left = self
            .left
            .saturating_sub(i64::try_from(taken).unwrap_or(i64::MAX));
        self.clear = Self::clear(&self.terms, self.left);
        self.spent += taken;
        self.served += 1;
        self.overruns += u64::from(taken > estimate);
    }

    #[cold]
    fn refill(&mut self, now: u64) {
        if now < self.refill {
            return;
        }
        let periods = (now - self.refill) / self.terms.period + 1;
        let full = Self::full(&self.terms);
        let more = full.saturating_mul(i64::try_from(periods).unwrap_or(i64::MAX));
        self.left = self.left.saturating_add(more).min(full);
        self.clear = Self::clear(&self.terms, self.left);
        self.refill = self
            .refill
            .saturating_add(periods.saturating_mul(self.terms.period));
    }

    /// Nanoseconds spent on this client since the start.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Requests served.
    pub fn served(&self) -> u64 {
        self.served
    }

    /// Requests that took longer than estimated.
    pub fn overruns(&self) -> u64 {
        self.overruns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const TERMS: Terms = Terms {
        limit: 100,
        budget: 250,
        period: 1000,
    };

    #[test]
    fn refused_is_only_what_can_never_be_done() {
        let mut account = Account::new(TERMS, 0);
        assert_eq!(account.judge(0, 101), Verdict::Refuse);
        assert_eq!(account.judge(0, 100), Verdict::Serve);
        let mut small = Account::new(
            Terms {
                limit: 100,
                budget: 50,
                period: 10,
            },
            0,
        );
        assert_eq!(small.judge(0, 51), Verdict::Refuse);
    }

    #[test]
    fn a_spent_budget_comes_back_with_the_period() {
        let mut account = Account::new(TERMS, 500);
        account.charge(600, 100, 100);
        account.charge(700, 100, 100);
        assert!(account.is_clear(50));
        assert_eq!(account.judge(800, 60), Verdict::Delay(1500));
        assert_eq!(account.judge(1500, 60), Verdict::Serve);
        // Nothing is saved: the period starting at 2500 begins with 250, not more.
        account.charge(3000, 100, 100);
        account.charge(3000, 100, 100);
        assert_eq!(account.judge(3001, 51), Verdict::Delay(3500));
    }

    #[test]
    fn who_took_too_much_pays_from_later_periods() {
        let mut account = Account::new(TERMS, 0);
        account.charge(0, 700, 100);
        assert_eq!(account.overruns(), 1);
        // 450 too much: the period starting at 1000 has none, the one starting at 2000 has 50.
        assert_eq!(account.judge(1, 50), Verdict::Delay(2000));
        assert_eq!(account.judge(1, 51), Verdict::Delay(3000));
        assert_eq!(account.judge(2000, 50), Verdict::Serve);
        assert_eq!(account.judge(2000, 51), Verdict::Delay(3000));
    }

    #[test]
    fn no_terms_never_stop_anybody() {
        let mut account = Account::new(Terms::NONE, 0);
        for now in 0..100 {
            assert!(account.is_clear(1 << 40));
            account.charge(now << 50, 1 << 40, 0);
            assert_eq!(account.judge(now << 50, 1 << 40), Verdict::Serve);
        }
    }

    proptest! {
        /// No period begins more work than the budget allows; each delay is kept and is as short as possible.
        #[test]
        fn the_budget_bounds_every_period(
            requests in proptest::collection::vec((0u64..400, 1u64..=100), 1..200),
            budget in 100u64..500,
            period in 1u64..2000,
        ) {
            let terms = Terms { limit: 100, budget, period };
            let mut account = Account::new(terms, 0);
            let mut now = 0;
            let mut served: Vec<(u64, u64)> = Vec::new();
            for (gap, cost) in requests {
                now += gap;
                // The slow path admits every request that the fast path admits.
                if account.is_clear(cost) {
                    prop_assert_eq!(account.judge(now, cost), Verdict::Serve);
                }
                match account.judge(now, cost) {
                    Verdict::Serve => {}
                    Verdict::Delay(until) => {
                        prop_assert!(until > now && until <= now + period);
                        prop_assert_eq!(account.judge(until - 1, cost), Verdict::Delay(until));
                        prop_assert_eq!(account.judge(until, cost), Verdict::Serve);
                        now = until;
                    }
                    Verdict::Refuse => prop_assert!(false, "the request fits"),
                }
                account.charge(now, cost, cost);
                served.push((now / period, cost));
            }
            for window in served.chunk_by(|a, b| a.0 == b.0) {
                prop_assert!(window.iter().map(|s| s.1).sum::<u64>() <= budget);
            }
        }

        /// Whatever the estimates say: over n periods at most n + 1 budgets and one request.
        #[test]
        fn debt_bounds_the_long_run(
            costs in proptest::collection::vec(1u64..5000, 1..100),
            budget in 1u64..500,
        ) {
            let terms = Terms { limit: 100, budget, period: 10 };
            let mut account = Account::new(terms, 0);
            let (mut now, mut before, mut total) = (0, 0, 0);
            for cost in costs {
                match account.judge(now, 1) {
                    Verdict::Delay(until) => now = until,
                    verdict => prop_assert_eq!(verdict, Verdict::Serve),
                }
                prop_assert!(before <= (now / 10 + 1) * budget);
                account.charge(now, cost, 1);
                total += cost;
                before = total;
            }
        }
    }
}
