//! Round robin with time slices and budgets: the policy of TileMux.
//!
//! Why it exists: activities that share a tile get equal slices in turn, and none gets more than its budget in a period.
//! What it deliberately does not know: why somebody is ready. Ids are the caller's, times in nanoseconds.

/// Execution time in each period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Execution time at most.
    pub amount: u64,
    /// Length of a period, not 0; the first begins when the budget is set.
    pub period: u64,
}

/// Who runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// This one, until the time (if there is one) or until something happens.
    Run {
        /// Who.
        id: u16,
        /// When to ask again.
        until: Option<u64>,
    },
    /// Nobody, until the time (if there is one) or until something happens.
    Idle {
        /// When to ask again.
        until: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u16,
    ready: bool,
    slice_left: u64,
    budget: Option<Budget>,
    budget_left: u64,
    refill: u64,
}

impl Entry {
    fn eligible(&self) -> bool {
        self.ready && (self.budget.is_none() || self.budget_left > 0)
    }

    fn refill(&mut self, now: u64) {
        if let Some(budget) = self.budget
            && now >= self.refill
        {
            self.budget_left = budget.amount;
            self.refill += ((now - self.refill) / budget.period + 1) * budget.period;
        }
    }
}

/// The policy for at most `N` members. The first eligible member of the queue runs.
#[derive(Clone, Debug)]
pub struct RoundRobin<const N: usize> {
    queue: [Option<Entry>; N],
    length: usize,
    slice: u64,
}

impl<const N: usize> RoundRobin<N> {
    /// Nobody, with slices of this length (not 0).
    pub const fn new(slice: u64) -> Self {
        Self {
            queue: [None; N],
            length: 0,
            slice,
        }
    }

    fn position(&self, id: u16) -> Option<usize> {
        self.members().position(|entry| entry.id == id)
    }

    fn members(&self) -> impl Iterator<Item = &Entry> {
        self.queue[..self.length].iter().flatten()
    }

    fn member(&mut self, id: u16) -> Option<&mut Entry> {
        let position = self.position(id)?;
        self.queue[position].as_mut()
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a member that is not ready. False if there is no place or it is there.
    pub fn add(&mut self, id: u16) -> bool {
        if self.length == N || self.position(id).is_some() {
            return false;
        }
        self.queue[self.length] = Some(Entry {
            id,
            ready: false,
            slice_left: self.slice,
            budget: None,
            budget_left: 0,
            refill: 0,
        });
        self.length += 1;
        true
    }

    /// Removes a member, if it is there.
    pub fn remove(&mut self, id: u16) {
        if let Some(position) = self.position(id) {
            self.queue[position..self.length].rotate_left(1);
            self.length -= 1;
            self.queue[self.length] = None;
        }
    }

    /// Limits a member from now on. False if it is not there or the budget makes no sense.
    pub fn set_budget(&mut self, id: u16, budget: Budget, now: u64) -> bool {
        if budget.period == 0 || budget.amount == 0 || budget.amount > budget.period {
            return false;
        }
        let Some(entry) = self.member(id) else {
            return false;
        };
        entry.budget = Some(budget);
        entry.budget_left = budget.amount;
        entry.refill = now.saturating_add(budget.period);
        true
    }

    /// Makes a member ready, or not. Who becomes ready queues at the end, with a new slice.
    pub fn set_ready(&mut self, id: u16, ready: bool) {
        let Some(entry) = self.member(id) else { return };
        let queue_again = ready && !entry.ready;
        entry.ready = ready;
        if queue_again {
            self.to_end(id);
        }
    }

    /// Whether a member is ready.
    pub fn is_ready(&self, id: u16) -> bool {
        self.members().any(|entry| entry.id == id && entry.ready)
    }

    /// The member gives the rest of its slice away.
    pub fn to_end(&mut self, id: u16) {
        let slice = self.slice;
        if let Some(position) = self.position(id) {
            if let Some(entry) = &mut self.queue[position] {
                entry.slice_left = slice;
            }
            self.queue[position..self.length].rotate_left(1);
        }
    }

    /// The member ran for so long, until `now`. A used-up slice sends it to the end.
    pub fn charge(&mut self, id: u16, duration: u64, now: u64) {
        let Some(entry) = self.member(id) else { return };
        // What ran past a refill was paid from the old budget; the overrun of one decision is never more than the
        // caller's delay to ask again.
        entry.budget_left = entry.budget_left.saturating_sub(duration);
        entry.refill(now);
        entry.slice_left = entry.slice_left.saturating_sub(duration);
        if entry.slice_left == 0 {
            self.to_end(id);
        }
    }

    /// Who runs now.
    pub fn decide(&mut self, now: u64) -> Decision {
        for entry in self.queue[..self.length].iter_mut().flatten() {
            entry.refill(now);
        }
        let next_refill = self
            .members()
            .filter(|entry| entry.ready && !entry.eligible())
            .map(|entry| entry.refill)
            .min();
        let mut eligible = self.members().filter(|entry| entry.eligible());
        let Some(first) = eligible.next() else {
            return Decision::Idle { until: next_refill };
        };
        let slice_end = eligible
            .next()
            .map(|_| now.saturating_add(first.slice_left));
        let budget_end = first.budget.map(|_| now.saturating_add(first.budget_left));
        let until = [slice_end, budget_end, next_refill]
            .into_iter()
            .flatten()
            .min();
        Decision::Run {
            id: first.id,
            until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Runs the policy for members that are always ready; returns who ran when.
    fn simulate(policy: &mut RoundRobin<8>, end: u64) -> Vec<(u16, u64, u64)> {
        let mut now = 0;
        let mut log = Vec::new();
        while now < end {
            match policy.decide(now) {
                Decision::Run { id, until } => {
                    let until = until.unwrap_or(end).min(end);
                    assert!(until > now, "the policy must let time pass");
                    log.push((id, now, until));
                    policy.charge(id, until - now, until);
                    now = until;
                }
                Decision::Idle { until } => now = until.unwrap_or(end).max(now + 1),
            }
        }
        log
    }

    #[test]
    fn one_member_is_never_interrupted() {
        let mut policy = RoundRobin::<8>::new(10);
        assert_eq!(policy.decide(5), Decision::Idle { until: None });
        assert!(policy.add(7));
        assert!(!policy.add(7));
        assert_eq!(policy.decide(5), Decision::Idle { until: None });
        policy.set_ready(7, true);
        assert_eq!(policy.decide(5), Decision::Run { id: 7, until: None });
    }

    #[test]
    fn slices_alternate() {
        let mut policy = RoundRobin::<8>::new(10);
        for id in [1, 2, 3] {
            policy.add(id);
            policy.set_ready(id, true);
        }
        let log = simulate(&mut policy, 50);
        assert_eq!(
            log,
            [
                (1, 0, 10),
                (2, 10, 20),
                (3, 20, 30),
                (1, 30, 40),
                (2, 40, 50)
            ]
        );
        policy.remove(3);
        policy.set_ready(2, false);
        assert_eq!(policy.decide(50), Decision::Run { id: 1, until: None });
    }

    #[test]
    fn a_budget_ends_a_run_and_comes_back() {
        let mut policy = RoundRobin::<8>::new(100);
        policy.add(1);
        policy.set_ready(1, true);
        assert!(!policy.set_budget(
            1,
            Budget {
                amount: 5,
                period: 4
            },
            0
        ));
        assert!(policy.set_budget(
            1,
            Budget {
                amount: 4,
                period: 20
            },
            0
        ));
        assert_eq!(
            simulate(&mut policy, 60),
            [(1, 0, 4), (1, 20, 24), (1, 40, 44)]
        );
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut policy = RoundRobin::<2>::new(1);
        assert!(policy.add(1) && policy.add(2) && !policy.add(3));
        policy.remove(1);
        assert!(policy.add(3));
        assert_eq!(policy.len(), 2);
    }

    proptest! {
        #[test]
        fn nobody_exceeds_its_budget_and_all_others_share_alike(
            budgets in proptest::collection::vec(proptest::option::of((1u64..50, 50u64..200)), 1..8), slice in 1u64..40
        ) {
            let mut policy = RoundRobin::<8>::new(slice);
            for (id, budget) in budgets.iter().enumerate() {
                policy.add(id as u16);
                policy.set_ready(id as u16, true);
                if let Some((amount, period)) = *budget {
                    policy.set_budget(id as u16, Budget { amount, period }, 0);
                }
            }
            const END: u64 = 5000;
            let log = simulate(&mut policy, END);
            let mut free = BTreeMap::new();
            for (id, budget) in budgets.iter().enumerate() {
                let runs: Vec<_> = log.iter().filter(|(who, ..)| usize::from(*who) == id).collect();
                match budget {
                    Some((amount, period)) => for window in 0..END / period {
                        let (from, to) = (window * period, (window + 1) * period);
                        let used: u64 = runs.iter().map(|(_, a, b)| (*b).min(to).saturating_sub((*a).max(from))).sum();
                        // A run may straddle a refill and is then paid from the old period.
                        prop_assert!(used <= 2 * amount);
                        let until_now: u64 = runs.iter().map(|(_, a, b)| (*b).min(to).saturating_sub(*a)).sum();
                        prop_assert!(until_now <= (window + 1) * amount);
                    },
                    None => {
                        free.insert(id, runs.iter().map(|(_, a, b)| b - a).sum::<u64>());
                        // At most one slice of everybody else lies between two runs.
                        for pair in runs.windows(2) {
                            prop_assert!(pair[1].1 - pair[0].2 <= slice * (budgets.len() as u64 - 1));
                        }
                    }
                }
            }
            if let (Some(least), Some(most)) = (free.values().min(), free.values().max()) {
                prop_assert!(most - least <= slice, "{free:?}");
            }
        }
    }
}
