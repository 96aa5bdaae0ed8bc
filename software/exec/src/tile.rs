//! Who runs on a tile that several share: the two policies of TileMux.
//!
//! Why it exists: a tile for best effort wants its time shared alike, a tile for control loops wants the most urgent work
//! first; both want that nobody takes more than was given to him. What it deliberately does not know: why somebody is
//! ready. Ids are the caller's, times in nanoseconds.
//!
//! - *Throughput*: round robin with time slices. Priorities mean nothing. What a budget pays comes back one period after it
//!   was used, so no window of a period contains more than the budget.
//! - *Realtime*: fixed priorities, preemptive; equals share like above. What a budget pays comes back one period after the
//!   work that used it was released, so each member interferes with those below no more than a sporadic task with its
//!   budget as cost (`analysis::schedulability::fixed_priority`).

use crate::account::{Account, Budget};

/// What the order is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Time slices for everybody.
    Throughput,
    /// Fixed priorities.
    Realtime,
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

/// A run that pays less than this many nanoseconds is not worth its two switches.
pub const LEAST_RUN: u64 = 5_000;

#[derive(Clone, Copy, Debug)]
struct Member {
    id: u16,
    ready: bool,
    /// Greater is more urgent.
    priority: u8,
    slice_left: u64,
    /// When its present work became ready.
    release: u64,
    account: Option<Account>,
}

impl Member {
    /// Until when it may run if it begins now.
    fn end_of_run(&self, now: u64) -> Option<u64> {
        match &self.account {
            _ if !self.ready => None,
            None => Some(u64::MAX),
            Some(account) => account.end_of_run(now),
        }
    }
}

/// When work that is ready since `ready` counts as released: if the account does not allow a run now, when it will.
fn release(ready: u64, account: &Account, now: u64) -> u64 {
    match account.end_of_run(now) {
        Some(_) => ready,
        None => ready.max(account.next_start()),
    }
}

/// The members of a tile, at most `N` (and 255), and their order.
#[derive(Clone, Debug)]
pub struct Scheduler<const N: usize> {
    policy: Policy,
    slice: u64,
    members: [Option<Member>; N],
    /// Places of `members`; of those who are equally urgent, the first comes first.
    queue: [u8; N],
    length: usize,
}

impl<const N: usize> Scheduler<N> {
    /// Nobody, with slices of this length (not 0).
    pub const fn new(policy: Policy, slice: u64) -> Self {
        Self {
            policy,
            slice,
            members: [None; N],
            queue: [0; N],
            length: 0,
        }
    }

    /// The policy.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    fn position(&self, id: u16) -> Option<usize> {
        self.members().position(|member| member.id == id)
    }

    /// In the order of the queue.
    fn members(&self) -> impl Iterator<Item = &Member> {
        let queue = self.queue[..self.length].iter();
        queue.filter_map(|place| self.members[usize::from(*place)].as_ref())
    }

    fn member(&mut self, id: u16) -> Option<&mut Member> {
        self.members.iter_mut().flatten().find(|m| m.id == id)
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a member that is not ready, without budget and with the lowest priority. False if there is no place or it is
    /// there.
    pub fn add(&mut self, id: u16) -> bool {
        if self.position(id).is_some() {
            return false;
        }
        let Some(place) = self.members.iter().position(Option::is_none) else {
            return false;
        };
        self.members[place] = Some(Member {
            id,
            ready: false,
            priority: 0,
            slice_left: self.slice,
            release: 0,
            account: None,
        });
        self.queue[self.length] = place as u8;
        self.length += 1;
        true
    }

    /// Removes a member, if it is there.
    pub fn remove(&mut self, id: u16) {
        if let Some(position) = self.position(id) {
            self.members[usize::from(self.queue[position])] = None;
            self.queue[position..self.length].rotate_left(1);
            self.length -= 1;
        }
    }

    /// Limits a member from now on and gives it a priority. False if it is not there or the budget makes no sense.
    pub fn set_budget(&mut self, id: u16, budget: Budget, priority: u8, now: u64) -> bool {
        if !budget.is_valid() {
            return false;
        }
        let Some(member) = self.member(id) else {
            return false;
        };
        member.account = Some(Account::new(budget, LEAST_RUN, now));
        member.priority = priority;
        true
    }

    /// Makes a member ready, or not. Who becomes ready queues behind its equals, with a new slice.
    pub fn set_ready(&mut self, id: u16, ready: bool, now: u64) {
        let Some(member) = self.member(id) else {
            return;
        };
        let queue_again = ready && !member.ready;
        member.ready = ready;
        if queue_again {
            member.release = match &member.account {
                Some(account) => release(now, account, now),
                None => now,
            };
            self.to_end(id);
        }
    }

    /// Whether a member is ready.
    pub fn is_ready(&self, id: u16) -> bool {
        self.members().any(|member| member.id == id && member.ready)
    }

    /// The member gives the rest of its slice to its equals.
    pub fn to_end(&mut self, id: u16) {
        let slice = self.slice;
        if let Some(position) = self.position(id) {
            if let Some(member) = &mut self.members[usize::from(self.queue[position])] {
                member.slice_left = slice;
            }
            self.queue[position..self.length].rotate_left(1);
        }
    }

    /// The member ran from `start` to `end`. A used-up slice sends it to the end of the queue.
    pub fn charge(&mut self, id: u16, start: u64, end: u64) {
        let policy = self.policy;
        let Some(member) = self.member(id) else {
            return;
        };
        let duration = end.saturating_sub(start);
        if let Some(account) = &mut member.account {
            let origin = match policy {
                Policy::Throughput => start,
                Policy::Realtime => member.release,
            };
            account.charge(duration, origin);
            member.release = release(member.release, account, end);
        }
        member.slice_left = member.slice_left.saturating_sub(duration);
        if member.slice_left == 0 {
            self.to_end(id);
        }
    }

    /// Whether `second` comes before `first`, who is before it in the queue.
    fn overtakes(&self, second: &Member, first: &Member) -> bool {
        self.policy == Policy::Realtime && second.priority > first.priority
    }

    /// Whether an event that makes `id` ready cannot change who runs, as long as `running` runs on: `running` is not less
    /// urgent, and its slice does not depend on anybody else.
    pub fn is_indifferent(&self, running: u16, id: u16) -> bool {
        if self.policy == Policy::Throughput {
            return false;
        }
        let priority = |id| self.members().find(|m| m.id == id).map(|m| m.priority);
        matches!((priority(running), priority(id)), (Some(running), Some(other)) if running > other)
    }

    /// Who runs now.
    pub fn decide(&self, now: u64) -> Decision {
        let mut chosen: Option<(&Member, u64)> = None;
        // Of those that are as urgent as the chosen one.
        let mut equals = false;
        for member in self.members() {
            let Some(end) = member.end_of_run(now) else {
                continue;
            };
            match chosen {
                None => chosen = Some((member, end)),
                Some((first, _)) if self.overtakes(member, first) => {
                    chosen = Some((member, end));
                    equals = false;
                }
                Some((first, _)) => equals |= !self.overtakes(first, member),
            }
        }
        // Who is ready without budget comes back; whoever runs by then must not be more urgent.
        let mut next_start: Option<u64> = None;
        for member in self.members() {
            if let Some(account) = &member.account
                && member.ready
                && account.end_of_run(now).is_none()
                && chosen.is_none_or(|(first, _)| !self.overtakes(first, member))
            {
                let start = account.next_start();
                next_start = Some(next_start.map_or(start, |next| next.min(start)));
            }
        }
        let Some((first, budget_end)) = chosen else {
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
            id: first.id,
            until: (until != u64::MAX).then_some(until),
        }
    }
}

#[cfg(test)]
mod tests;
