//! Which activity runs on a shared tile: the two policies of TileMux.
//!
//! Why it exists: a best-effort tile shares its time equally, a tile for control loops runs the most urgent work first; on both, no
//! member may take more than its budget. What it deliberately does not know: why a member is ready. Members are numbered by the
//! caller, below `N`; times are in nanoseconds.
//!
//! - *Throughput*: round robin with time slices. Priorities mean nothing. Time taken from a budget comes back one period after it
//!   was used, so no window of a period contains more than the budget.
//! - *Realtime*: fixed priorities, preemptive; members of equal priority share as above; members without a budget come last. Time
//!   taken from a budget comes back one period after the release of the work that used it, so each member interferes with less
//!   urgent ones no more than a sporadic task with its budget as cost (`analysis::schedulability::fixed_priority`).
//!
//! A member that causes a switch pays for it: a member that begins pays for the switch to it and for the one back
//! ([`Scheduler::gives_back`]). The receiver of a message that interrupts another member pays for the interrupt
//! ([`Cost::Interrupt`]). So budgets contain the switches: however often a member sleeps and wakes up, others lose no more to it
//! than its budget.

use crate::account::{Account, Budget};

/// The order of the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Time slices for all.
    Throughput,
    /// Fixed priorities.
    Realtime,
}

/// The reason for a charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// The member ran.
    Run,
    /// The switch from it to the next one: part of the work that ends, and of no slice.
    Back,
    /// Messages for the member interrupted another one.
    Interrupt,
}

/// The member that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// This member, until the time (if there is one) or until an event.
    Run {
        /// The member.
        member: usize,
        /// When to ask again.
        until: Option<u64>,
    },
    /// No member, until the time (if there is one) or until an event.
    Idle {
        /// When to ask again.
        until: Option<u64>,
    },
}

/// Pieces of a budget that are shorter than this many nanoseconds are not worth two switches each.
pub const LEAST_RUN: u64 = 5_000;

#[derive(Clone, Copy, Debug)]
struct Member {
    ready: bool,
    /// Greater is more urgent.
    priority: u8,
    slice_left: u64,
    /// When its current work became ready.
    release: u64,
    account: Option<Account>,
}

impl Member {
    /// Until when the member may run if it begins now; `None` if it may not begin.
    fn end_of_run(&self, now: u64) -> Option<u64> {
        match &self.account {
            _ if !self.ready => None,
            None => Some(u64::MAX),
            Some(account) => account.end_of_run(now),
        }
    }

    /// When it may begin if it becomes ready at a moment.
    fn start(&self, at: u64) -> u64 {
        let account = self.account.as_ref();
        let empty = account.filter(|account| account.end_of_run(at).is_none());
        empty.map_or(at, |account| at.max(account.next_start()))
    }

    /// Pays for `start` to `end` if the member has a budget. If that is used up, returns the time from which the member may run
    /// again.
    fn pay(&mut self, origin: u64, start: u64, end: u64) -> Option<u64> {
        let account = self.account.as_mut()?;
        account.charge(end.saturating_sub(start), origin);
        if account.end_of_run(end).is_some() {
            return None;
        }
        let again = account.next_start();
        self.release = self.release.max(again);
        Some(again)
    }
}

/// The members of a tile (at most `N`, and at most 255) and their order.
#[derive(Clone, Debug)]
pub struct Scheduler<const N: usize> {
    policy: Policy,
    slice: u64,
    members: [Option<Member>; N],
    /// Numbers of members; among equally urgent members, the first comes first.
    queue: [u8; N],
    length: usize,
}

impl<const N: usize> Scheduler<N> {
    /// No members; slices of this length (not 0).
    pub const fn new(policy: Policy, slice: u64) -> Self {
        Self {
            policy,
            slice,
            members: [None; N],
            queue: [0; N],
            length: 0,
        }
    }

    fn position(&self, member: usize) -> Option<usize> {
        let mut queue = self.queue[..self.length].iter();
        queue.position(|other| usize::from(*other) == member)
    }

    /// The members with their numbers, in the order of the queue.
    fn members(&self) -> impl Iterator<Item = (usize, &Member)> {
        let queue = self.queue[..self.length].iter();
        queue.filter_map(|number| {
            let number = usize::from(*number);
            Some((number, self.members[number].as_ref()?))
        })
    }

    fn find(&self, member: usize) -> Option<&Member> {
        self.members.get(member)?.as_ref()
    }

    fn member(&mut self, member: usize) -> Option<&mut Member> {
        self.members.get_mut(member)?.as_mut()
    }

    /// Adds a member that is not ready, without budget and with the lowest priority. Returns false if the number does not exist or
    /// is taken.
    pub fn add(&mut self, member: usize) -> bool {
        let slice_left = self.slice;
        let Some(place @ None) = self.members.get_mut(member) else {
            return false;
        };
        *place = Some(Member {
            ready: false,
            priority: 0,
            slice_left,
            release: 0,
            account: None,
        });
        self.queue[self.length] = member as u8;
        self.length += 1;
        true
    }

    /// Removes a member, if it is there.
    pub fn remove(&mut self, member: usize) {
        if let Some(position) = self.position(member) {
            self.members[member] = None;
            self.queue[position..self.length].rotate_left(1);
            self.length -= 1;
        }
    }

    /// Limits a member and gives it a priority; it may use the budget from `start` on. Returns false if the member does not exist
    /// or the budget is invalid.
    pub fn set_budget(&mut self, member: usize, budget: Budget, priority: u8, start: u64) -> bool {
        if !budget.is_valid() {
            return false;
        }
        let Some(found) = self.member(member) else {
            return false;
        };
        found.account = Some(Account::new(budget, LEAST_RUN, start));
        found.priority = priority;
        true
    }

    /// Makes a member ready, or not. A member that becomes ready queues behind its equals, with a new slice.
    pub fn set_ready(&mut self, member: usize, ready: bool, now: u64) {
        let Some(found) = self.member(member) else {
            return;
        };
        let queue_again = ready && !found.ready;
        found.ready = ready;
        if queue_again {
            // If the account does not allow a run now, its work counts as released when it does.
            found.release = found.start(now);
            self.to_end(member);
        }
    }

    /// Whether a member is ready.
    pub fn is_ready(&self, member: usize) -> bool {
        self.find(member).is_some_and(|member| member.ready)
    }

    /// When a member may begin if it becomes ready at a moment.
    pub fn start(&self, member: usize, at: u64) -> u64 {
        self.find(member).map_or(at, |member| member.start(at))
    }

    /// The member gives the rest of its slice to its equals.
    pub fn to_end(&mut self, member: usize) {
        let slice = self.slice;
        if let Some(position) = self.position(member) {
            if let Some(found) = &mut self.members[member] {
                found.slice_left = slice;
            }
            // Few members: shorter than a general rotation.
            for index in position + 1..self.length {
                self.queue.swap(index - 1, index);
            }
        }
    }

    /// Charges the member for the time from `start` to `end`. A member whose run has used up its slice goes to the end of the
    /// queue. If its budget is used up, returns the time from which it may run again.
    pub fn charge(&mut self, member: usize, cost: Cost, start: u64, end: u64) -> Option<u64> {
        let policy = self.policy;
        let found = self.member(member)?;
        // Interrupts for a member that waits belong to none of its work.
        let waits = cost == Cost::Interrupt && !found.ready;
        let origin = match policy {
            Policy::Realtime if !waits => found.release,
            _ => start,
        };
        let again = found.pay(origin, start, end);
        if cost == Cost::Run {
            found.slice_left = found.slice_left.saturating_sub(end.saturating_sub(start));
            if found.slice_left == 0 {
                self.to_end(member);
            }
        }
        again
    }

    /// Whether `previous` pays for the switch to `next` (`None`: to no member). It does not if it has no account, or if a more
    /// urgent `next` displaced it.
    pub fn gives_back(&self, previous: usize, next: Option<usize>) -> bool {
        let Some(previous) = self
            .find(previous)
            .filter(|member| member.account.is_some())
        else {
            return false;
        };
        let next = next.and_then(|next| self.find(next));
        next.is_none_or(|next| !self.overtakes(next, previous))
    }

    /// Whether `second` comes before `first`, which precedes it in the queue.
    fn overtakes(&self, second: &Member, first: &Member) -> bool {
        // Members without a budget come after all members with one, whatever their priorities are.
        let urgency = |member: &Member| (member.account.is_some(), member.priority);
        self.policy == Policy::Realtime && urgency(second) > urgency(first)
    }

    /// How urgent a member is: one that is less urgent than the running one changes nothing by becoming ready. If priorities mean
    /// nothing, all members are equally urgent.
    pub fn urgency(&self, member: usize) -> u8 {
        match self.policy {
            Policy::Throughput => 0,
            Policy::Realtime => self.find(member).map_or(0, |member| member.priority),
        }
    }

    /// The member that runs now.
    pub fn decide(&self, now: u64) -> Decision {
        let mut chosen: Option<(usize, &Member, u64)> = None;
        // Whether other ready members are as urgent as the chosen one.
        let mut equals = false;
        let mut without_budget = false;
        for (number, member) in self.members().filter(|(_, member)| member.ready) {
            let Some(end) = member.end_of_run(now) else {
                without_budget = true;
                continue;
            };
            match chosen {
                None => chosen = Some((number, member, end)),
                Some((_, first, _)) if self.overtakes(member, first) => {
                    chosen = Some((number, member, end));
                    equals = false;
                }
                Some((_, first, _)) => equals |= !self.overtakes(first, member),
            }
        }
        let next_start = match without_budget {
            true => self.next_start(now, chosen.map(|(_, first, _)| first)),
            false => None,
        };
        let Some((member, first, budget_end)) = chosen else {
            return Decision::Idle { until: next_start };
        };
        let slice_end = match equals {
            true => now.saturating_add(first.slice_left),
            false => u64::MAX,
        };
        let until = slice_end
            .min(budget_end)
            .min(next_start.unwrap_or(u64::MAX));
        Decision::Run {
            member,
            until: (until != u64::MAX).then_some(until),
        }
    }

    /// When the first ready member without budget gets its budget back; the member that runs by then must not be more urgent.
    fn next_start(&self, now: u64, first: Option<&Member>) -> Option<u64> {
        let ready = self.members().filter(|(_, member)| member.ready);
        let starts = ready.filter_map(|(_, member)| {
            let account = member.account.as_ref()?;
            let comes_back = account.end_of_run(now).is_none()
                && first.is_none_or(|first| !self.overtakes(first, member));
            comes_back.then(|| account.next_start())
        });
        starts.min()
    }
}

#[cfg(test)]
mod tests;
