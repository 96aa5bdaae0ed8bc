//! Misses under way: which accesses wait for which line, and what happens when it arrives.
//!
//! Why it exists: everything that takes time below the first level passes here. It does not know how lines move between the levels
//! ([`super::lines`]).

use super::{Arrived, Blocked, Done, Harts, Hierarchy, Lower, Outcome, Waiter};
use crate::ledger::{Ledger, Level, Resource};
use crate::noc::Account;
use crate::types::{Owner, Tick};

impl Blocked {
    /// A decision of `holder` ends a stretch of its wait.
    fn book(&mut self, until: Tick, holder: Owner, level: Level, ledger: &mut Ledger) {
        let ticks = until - self.booked;
        ledger.book(self.owner, holder, Resource::Mshr(level), ticks);
        self.waited += ticks;
        self.booked = until;
    }
}

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
    #[inline]
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
    #[inline]
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

    /// Asks the second level at `now`. `Some`: the time at which the access is done.
    #[inline]
    pub(super) fn second_level<L: Lower>(
        &mut self,
        now: Tick,
        access: &Blocked,
        lower: &mut L,
    ) -> Option<Tick> {
        if self.second_ahead.is_none() {
            return self.ask_second_level(now, access, lower);
        }
        let (line, owner) = (access.line, access.owner);
        let there = self.second.as_ref().is_some_and(|(c, _)| c.contains(line));
        let done = self.ask_second_level(now, access, lower);
        self.train_second(now, there, line, owner, lower);
        done
    }

    fn ask_second_level<L: Lower>(
        &mut self,
        now: Tick,
        access: &Blocked,
        lower: &mut L,
    ) -> Option<Tick> {
        let &Blocked {
            line,
            owner,
            waiter,
            ..
        } = access;
        let mut request_at = now;
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
            if cache.access_any(line, false) {
                let ready = now + latency;
                if let Some(culprit) = culprit {
                    lower
                        .ledger()
                        .book(owner, culprit, Resource::CacheSet(level), latency);
                }
                // The first level has been looked up: the line is not there.
                self.second_to_first(now, line, owner, waiter, lower);
                self.first(waiter).0.comes(line, ready, owner);
                return Some(ready);
            }
            culprit = cache.culprit(line, owner);
            request_at += latency;
        }
        if let Some(&bytes) = self.buffer.line(line) {
            // The line is on its way to memory: a read would overtake it.
            let bytes = &bytes[..self.line as usize];
            self.fill_second(request_at, line, false, owner, bytes, lower);
            self.fill_first(request_at, line, owner, waiter, bytes, lower);
            self.first(waiter).0.comes(line, request_at, owner);
            return Some(request_at);
        }
        self.request(request_at, access, culprit, lower)
    }

    /// Reads the line of an access from below, at `now`.
    pub(super) fn request<L: Lower>(
        &mut self,
        now: Tick,
        access: &Blocked,
        culprit: Option<Owner>,
        lower: &mut L,
    ) -> Option<Tick> {
        let &Blocked {
            line,
            owner,
            waiter,
            waited,
            ..
        } = access;
        let Some(slot) = self.misses.iter().position(|m| !m.busy) else {
            // A hart's access looks the line up again when it continues.
            let again = match (waiter, &self.second) {
                (Waiter::Unit { .. }, _) if !self.unit_first => 0,
                (_, second) => second.as_ref().map_or(0, |(_, latency)| *latency),
            };
            self.blocked.push_back(Blocked {
                ready: now - again,
                booked: now,
                second: self.second.is_some(),
                ..*access
            });
            return None;
        };
        // The wait up to now is part of the account.
        let mut account = Account::new(now - waited);
        (account.waited, account.blocked) = (waited, waited);
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

    /// The line of `tag` has arrived, with its bytes (none if the tile may no longer read it: then loads that wait for it read 0, and
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

    /// When an access gets a register of its first-level cache, if that needs no answer of memory. Lines on their way from the second level
    /// hold registers, too. Their arrival calls nothing, but its moment is known.
    #[inline(always)]
    pub(super) fn first_register(&mut self, now: Tick, access: &Blocked) -> Option<Tick> {
        let under_way = self.under_way(access.waiter);
        let (first, ..) = self.first(access.waiter);
        first.forget_fills(now);
        first.register(now.max(access.ready), under_way)
    }

    /// Books the wait of an access that gets a register only at `start` ([`Hierarchy::first_register`]): each stretch to the owner of the line
    /// whose arrival ends it.
    pub(super) fn book_until<L: Lower>(
        &mut self,
        start: Tick,
        access: &mut Blocked,
        lower: &mut L,
    ) {
        let (first, level, _) = self.first(access.waiter);
        // They are in the order of their arrivals, because some of them are waited for.
        for coming in first.fills.iter().filter(|coming| coming.at <= start) {
            if coming.at > access.booked {
                access.book(coming.at, coming.owner, level, lower.ledger());
            }
        }
        assert_eq!(
            access.booked, start,
            "nothing on its way gives a register at {start}: {:?}",
            first.fills
        );
    }

    /// A decision of `holder` (its line has come, or has been written) lets the first of the waiting accesses continue. It ends a part of
    /// the wait of each of them.
    fn book_blocked<L: Lower>(&mut self, now: Tick, holder: Owner, lower: &mut L) {
        let Some(first) = self.blocked.front() else {
            return;
        };
        let unit = matches!(first.waiter, Waiter::Unit { .. }) && !self.unit_first;
        let level = match first.waiter {
            _ if unit || first.second => Level::L2,
            Waiter::Fetch { .. } => Level::L1i,
            _ => Level::L1d,
        };
        for waiting in self.blocked.iter_mut().filter(|b| b.booked < now) {
            waiting.book(now, holder, level, lower.ledger());
        }
    }

    /// The first of the waiting accesses goes on waiting, for a register of the second level or of its first one. If it has waited for the
    /// other one until now, `holder` has given that.
    fn lacks<L: Lower>(&mut self, now: Tick, second: bool, holder: Owner, lower: &mut L) {
        if self.blocked[0].second != second {
            self.book_blocked(now, holder, lower);
        }
        self.blocked[0].second = second;
    }

    /// A miss register of `holder` became free, or room for the lines that a miss evicts: waiting accesses continue in order.
    fn retry<L: Lower>(
        &mut self,
        now: Tick,
        holder: Owner,
        lower: &mut L,
        harts: &mut impl Harts,
        done: &mut Vec<Done>,
    ) {
        while let Some(&first) = self.blocked.front() {
            let waiter = self.unless_forgotten(first.waiter);
            let whole = first.whole && matches!(waiter, Waiter::Unit { write: true, .. });
            if self.join(first.line, waiter) {
                self.book_blocked(now, holder, lower);
                self.blocked.pop_front();
                continue;
            }
            let unit = matches!(waiter, Waiter::Unit { .. }) && !self.unit_first;
            // Its line may have come, or be on its way from the second level, for another access.
            let there = !unit && self.first(waiter).0.cache.contains(first.line);
            let taken = !there && self.misses.iter().all(|m| m.busy);
            if taken || !there && !self.may_push_out() {
                // If both levels lack one, it is the first level's.
                let free = taken && self.first_register(now, &first).is_some();
                let second = free && self.second.is_some();
                return self.lacks(now, second, holder, lower);
            }
            let start = match unit || whole || there {
                true => Some(now.max(first.ready)),
                false => self.first_register(now, &first),
            };
            let Some(start) = start else {
                return self.lacks(now, false, holder, lower);
            };
            self.book_blocked(now, holder, lower);
            let access = self.blocked.pop_front();
            let mut access = access.expect("the first one waits");
            (access.waiter, access.whole) = (waiter, whole);
            let (line, owner) = (access.line, access.owner);
            let ready = if unit {
                self.unit_second(start, &access, lower)
            } else if whole && !there {
                self.fill_whole_first(start, line, owner, waiter, lower);
                Some(start)
            } else {
                if access.booked < start {
                    self.book_until(start, &mut access, lower);
                }
                let (first, _, write) = self.first(waiter);
                first.uses(line);
                match first.hit(start, line, write) {
                    Some(Outcome::Ready(at)) => Some(at),
                    Some(_) => Some(start),
                    None => self.second_level(start, &access, lower),
                }
            };
            if let Some(at) = ready {
                self.hand_over(line, waiter, harts);
                done.push(Done { waiter, line, at });
            }
        }
    }
}
