//! Misses under way: which accesses wait for which line, and what happens when it arrives.
//!
//! Why it exists: everything that takes time below the first level passes here. It does not know how lines move between the levels
//! ([`super::lines`]).

use super::{Arrived, Blocked, Done, Harts, Hierarchy, Lower, Waiter};
use crate::ledger::{Level, Resource};
use crate::noc::Account;
use crate::types::{Owner, Tick};

impl Hierarchy {
    /// The line of `owner` with this tag has been written to memory, or was lost on the way. Adds to `done` every waiter that the
    /// acknowledgement or the free place completes.
    #[allow(clippy::too_many_arguments)]
    pub fn written<L: Lower>(
        &mut self,
        now: Tick,
        tag: u32,
        owner: Owner,
        lower: &mut L,
        harts: &mut impl Harts,
        done: &mut Vec<Done>,
    ) {
        let (line, waiters) = self.buffer.written(tag);
        done.extend(waiters.into_iter().map(|waiter| Done {
            waiter,
            line,
            at: now,
        }));
        if !self.blocked.is_empty() {
            self.first_level_changed = true;
            self.retry(now, owner, lower, harts, done);
        }
    }

    /// Joins a line that is already on its way. Returns false if it is not.
    pub(super) fn join(&mut self, line: u64, waiter: Waiter) -> bool {
        if self.busy == 0 {
            return false;
        }
        let mut misses = self.misses.iter_mut();
        match misses.find(|m| m.busy && m.line == line && !m.stale) {
            Some(miss) => {
                miss.waiters.push(waiter);
                true
            }
            None => false,
        }
    }

    /// Miss registers of the waiter's first-level cache that wait for memory.
    pub(super) fn under_way(&self, waiter: Waiter) -> usize {
        if self.busy == 0 {
            return 0;
        }
        let fetch = matches!(waiter, Waiter::Fetch { .. });
        self.misses
            .iter()
            .filter(|m| {
                m.busy
                    && m.waiters.iter().any(|w| match w {
                        Waiter::Fetch { .. } => fetch,
                        Waiter::Data { .. } => !fetch,
                        Waiter::Unit { .. } => !fetch && self.unit_first,
                    })
            })
            .count()
    }

    /// Asks the second level at `now`, for an access that has waited since `since`. `Some`: the time at which it is done.
    pub(super) fn second_level<L: Lower>(
        &mut self,
        since: Tick,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) -> Option<Tick> {
        let mut request_at = now;
        let mut request_since = since;
        if let Waiter::Fetch { .. } = waiter
            && self.data.cache.contains(line)
        {
            return Some(self.fetch_from_data(now, line, owner));
        }
        let (first, level, _) = self.first(waiter);
        let mut culprit = first.cache.culprit(line, owner);
        if let Some((cache, latency)) = &mut self.second {
            let latency = *latency;
            cache.set_owner(owner);
            if cache.access(line, false) {
                let ready = now + latency;
                if let Some(culprit) = culprit {
                    lower
                        .ledger()
                        .book(owner, culprit, Resource::CacheSet(level), latency);
                }
                // The first level has been looked up: the line is not there.
                self.second_to_first(now, line, owner, waiter, lower);
                self.first(waiter).0.comes(line, ready);
                return Some(ready);
            }
            culprit = cache.culprit(line, owner);
            request_at += latency;
            request_since += latency;
        }
        if let Some(&bytes) = self.buffer.line(line) {
            // The line is on its way to memory: a read would overtake it.
            let bytes = &bytes[..self.line as usize];
            self.fill_second(request_at, line, false, owner, bytes, lower);
            self.fill_first(request_at, line, owner, waiter, bytes, lower);
            self.first(waiter).0.comes(line, request_at);
            return Some(request_at);
        }
        self.request(
            request_since,
            request_at,
            line,
            owner,
            waiter,
            culprit,
            lower,
        )
    }

    /// Reads a line from below, at `now`, for an access that has needed it since `since`.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn request<L: Lower>(
        &mut self,
        since: Tick,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        culprit: Option<Owner>,
        lower: &mut L,
    ) -> Option<Tick> {
        let Some(slot) = self.misses.iter().position(|m| !m.busy) else {
            self.block(since, line, owner, waiter, false);
            return None;
        };
        let mut account = Account::new(since);
        account.waited = now - since;
        lower.read(now, line, owner, slot as u32, account);
        let miss = &mut self.misses[slot];
        self.busy += 1;
        miss.busy = true;
        miss.line = line;
        miss.owner = owner;
        miss.culprit = culprit;
        miss.stale = false;
        miss.waiters.clear();
        miss.waiters.push(waiter);
        None
    }

    /// The line of `tag` has arrived, with its bytes (none if the tile may not read it any more: then loads that wait for it read 0, and
    /// stores are lost). Adds to `done` every waiter whose line is present now, and the time at which it is.
    pub fn complete<L: Lower>(
        &mut self,
        now: Tick,
        tag: u32,
        bytes: &[u8],
        lower: &mut L,
        harts: &mut impl Harts,
        done: &mut Vec<Done>,
    ) -> Arrived {
        let miss = &mut self.misses[tag as usize];
        assert!(miss.busy, "nobody asked for what arrives: {tag} {miss:?}");
        self.busy -= 1;
        miss.busy = false;
        let (line, owner, culprit) = (miss.line, miss.owner, miss.culprit);
        let refused = bytes.is_empty() || miss.stale;
        let waiters = std::mem::take(&mut miss.waiters);
        self.first_level_changed = true;
        if !refused {
            self.refills += 1;
            self.fill_second(now, line, false, owner, bytes, lower);
        }
        for &waiter in &waiters {
            if refused {
                self.give_nothing(line, waiter, harts);
            } else {
                self.deliver(now, line, owner, waiter, bytes, lower);
                self.hand_over(line, waiter, harts);
            }
            done.push(Done {
                waiter,
                line,
                at: now,
            });
        }
        // The vector is put back, so that no miss allocates.
        self.misses[tag as usize].waiters = waiters;
        self.retry(now, owner, lower, harts, done);
        Arrived {
            owner,
            culprit,
            level: if self.second.is_some() {
                Level::L2
            } else {
                Level::L1d
            },
        }
    }

    fn deliver<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        bytes: &[u8],
        lower: &mut L,
    ) {
        match (self.unless_forgotten(waiter), &mut self.second) {
            (Waiter::Unit { write, .. }, Some(_)) if !self.unit_first => {
                self.unit_has_line(now, line, write, owner, bytes, lower);
            }
            (waiter, _) => self.fill_first(now, line, owner, waiter, bytes, lower),
        }
    }

    /// A miss register of `holder` became free: waiting accesses take it in order.
    fn retry<L: Lower>(
        &mut self,
        now: Tick,
        holder: Owner,
        lower: &mut L,
        harts: &mut impl Harts,
        done: &mut Vec<Done>,
    ) {
        while let Some(&b) = self.blocked.front() {
            let waiter = self.unless_forgotten(b.waiter);
            let whole = b.whole && matches!(waiter, Waiter::Unit { write: true, .. });
            let b = Blocked { waiter, whole, ..b };
            if self.join(b.line, b.waiter) {
                self.blocked.pop_front();
                continue;
            }
            let unit = matches!(b.waiter, Waiter::Unit { .. }) && !self.unit_first;
            let under_way = self.under_way(b.waiter);
            let (first, level, write) = self.first(b.waiter);
            // Lines on their way from the second level hold miss registers, too, and their arrival calls nothing: the access
            // continues at the known moment at which a register becomes free. Only completed misses call this function.
            let mut start = now;
            first.forget_fills(start);
            while !unit && !b.whole && first.fills.len() + under_way >= first.mshrs {
                let Some(free) = first.fills.iter().map(|f| f.1).min() else {
                    return;
                };
                start = free;
                first.forget_fills(start);
            }
            if self.misses.iter().all(|m| m.busy) || !self.may_push_out() {
                return;
            }
            self.blocked.pop_front();
            let level = if unit { Level::L2 } else { level };
            // The wait up to now is part of the account of the request that may follow.
            let since = b.since.min(start);
            lower
                .ledger()
                .book(b.owner, holder, Resource::Mshr(level), start - since);
            let ready = if unit {
                self.unit_second(since, start, &b, lower)
            } else if b.whole {
                self.fill_whole_first(start, b.line, b.owner, b.waiter, lower);
                Some(start)
            } else if self.first(b.waiter).0.cache.access(b.line, write) {
                Some(start)
            } else {
                self.second_level(since, start, b.line, b.owner, b.waiter, lower)
            };
            if let Some(at) = ready {
                self.hand_over(b.line, b.waiter, harts);
                done.push(Done {
                    waiter: b.waiter,
                    line: b.line,
                    at,
                });
            }
        }
    }
}
