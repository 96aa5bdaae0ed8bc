//! Lines that the caches fetch ahead by themselves.
//!
//! Why it exists: a prefetcher ([`super::prefetcher`]) names lines; here they are fetched or not. They take miss registers, places in the write-back buffer and the
//! way to memory as misses do, and are dropped rather than wait for any of them. Everything is booked to the owner of the request that
//! caused it. What it deliberately does not know: patterns.

use super::super::foresight::Foresight;
use super::super::prefetcher::Request;
use super::{Blocked, First, Hierarchy, Lower, Outcome, Waiter};
use crate::config::CacheConfig;
use crate::types::{Owner, Tick};

/// The prefetcher of a cache, and what it has done.
#[derive(Debug)]
pub(super) struct Ahead {
    foresight: Foresight,
    /// Ticks from one request of the prefetcher to the next.
    cycle: Tick,
    /// Lines fetched ahead.
    fetched: u64,
    /// Fetched lines that a request has used, and those that had not arrived by then. Only the second level counts these two.
    used: u64,
    late: u64,
}

impl Ahead {
    /// The prefetcher of a cache, if the cache has one.
    pub(super) fn of(cache: &CacheConfig) -> Option<Box<Self>> {
        let config = cache.prefetcher.as_ref()?;
        Some(Box::new(Self {
            foresight: Foresight::new(config, cache.line),
            cycle: cache.cycle,
            fetched: 0,
            used: 0,
            late: 0,
        }))
    }

    /// Lines fetched ahead.
    pub(super) fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Fetched lines that a request has used.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Used lines that had not arrived at their first use.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    fn fetches(&mut self, line: u64) {
        self.fetched += 1;
        self.foresight.fetches(line);
    }
}

impl First {
    /// Whether the first use of a line is awaited.
    pub(super) fn awaits(&self, line: u64) -> bool {
        let ahead = self.ahead.as_ref();
        ahead.is_some_and(|ahead| ahead.foresight.awaits(line))
    }

    /// A line is used. Returns whether this is the first use of a line that was fetched ahead.
    pub(super) fn uses(&mut self, line: u64) -> bool {
        let Some(ahead) = &mut self.ahead else {
            return false;
        };
        let used = ahead.foresight.uses(line);
        if used && !ahead.foresight.awaits_any() {
            self.fills_until = self.fills.iter().map(|f| f.at).max().unwrap_or(0);
        }
        used
    }
}

impl Hierarchy {
    /// The instruction that makes the next accesses.
    #[inline]
    pub fn set_pc(&mut self, pc: u64) {
        self.pc = pc;
    }

    /// Whether lines were fetched ahead since the last call: lines may have left the data cache, and packets may be under way.
    #[inline]
    pub fn take_fetched_ahead(&mut self) -> bool {
        std::mem::take(&mut self.fetched_ahead)
    }

    /// The same, without resetting it.
    #[inline]
    pub fn has_fetched_ahead(&self) -> bool {
        self.fetched_ahead
    }

    /// A data access is the first use of a line that was fetched ahead.
    pub(super) fn first_use(&mut self, now: Tick, line: u64) -> Option<Outcome> {
        if !self.data.uses(line) || !self.data.cache.contains(line) {
            return None;
        }
        let arrives = self.data.arrives(now, line);
        Some(arrives.map_or(Outcome::Hit, Outcome::Ready))
    }

    /// A data access to `address` trains the prefetcher of the data cache, which may fetch lines ahead.
    pub(super) fn train_first<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        owner: Owner,
        lower: &mut L,
    ) {
        let Some(mut ahead) = self.data.ahead.take() else {
            return;
        };
        let request = Request {
            address,
            pc: self.pc,
        };
        let wanted = ahead.foresight.observe(request);
        let allowed = lower.fetches_ahead();
        let mut at = now;
        for (index, &line) in wanted.iter().enumerate() {
            at += ahead.cycle;
            // The request's own line stays where it is.
            if self.data.cache.contains(line) || self.data.cache.share_set(line, address) {
                continue;
            }
            if !allowed || !self.may_fetch_ahead(now, line) {
                ahead.foresight.not_fetched(wanted.len() - index);
                break;
            }
            ahead.fetches(line);
            let token = self.token();
            let write = false;
            self.miss(now, at, line, owner, Waiter::Data { token, write }, lower);
            self.fetched_ahead = true;
        }
        self.data.ahead = Some(ahead);
        if self
            .data
            .ahead
            .as_ref()
            .is_some_and(|ahead| ahead.foresight.awaits_any())
        {
            self.data.fills_until = Tick::MAX;
        }
    }

    /// Whether a line can be fetched ahead into the data cache without making any access wait.
    fn may_fetch_ahead(&mut self, now: Tick, line: u64) -> bool {
        let waiter = Waiter::Data {
            token: 0,
            write: false,
        };
        let under_way = self.under_way(waiter);
        self.data.forget_fills(now);
        self.data.fills.len() + under_way < self.data.mshrs && self.may_read_ahead(line)
    }

    /// The same for a line that comes from memory.
    fn may_read_ahead(&self, line: u64) -> bool {
        let free = self.misses.iter().any(|miss| !miss.busy);
        let coming = self
            .misses
            .iter()
            .any(|miss| miss.busy && miss.line == line);
        free && !coming && self.may_push_out() && self.blocked.is_empty()
    }

    /// A first level's request, which the second level looks up at `now`, trains the second level's prefetcher if its line is not `there`,
    /// or if it is the first use of a line that was fetched ahead.
    pub(super) fn train_second<L: Lower>(
        &mut self,
        now: Tick,
        there: bool,
        line: u64,
        owner: Owner,
        lower: &mut L,
    ) {
        let Some(mut ahead) = self.second_ahead.take() else {
            return;
        };
        let first_use = ahead.foresight.uses(line);
        let trains = first_use || !there;
        if first_use && there {
            // A line that is not in its place yet is on its way.
            let second = self.second.as_ref();
            ahead.used += 1;
            ahead.late += u64::from(second.is_some_and(|(cache, _)| !cache.contains(line)));
        }
        let latency = self.second.as_ref().map_or(0, |(_, latency)| *latency);
        if trains {
            let request = Request {
                address: line,
                pc: self.pc,
            };
            let wanted = ahead.foresight.observe(request);
            let allowed = lower.fetches_ahead();
            let mut at = now + latency;
            for (index, &line) in wanted.iter().enumerate() {
                at += ahead.cycle;
                let second = self.second.as_ref().is_some_and(|(c, _)| c.contains(line));
                if second || self.data.cache.contains(line) || self.buffer.line(line).is_some() {
                    continue;
                }
                if !allowed || !self.may_read_ahead(line) {
                    ahead.foresight.not_fetched(wanted.len() - index);
                    break;
                }
                ahead.fetches(line);
                self.read_ahead(at, line, owner, lower);
                self.fetched_ahead = true;
            }
        }
        self.second_ahead = Some(ahead);
    }

    /// Reads a line from memory into the second level only. Requests for the line join until it arrives.
    fn read_ahead<L: Lower>(&mut self, at: Tick, line: u64, owner: Owner, lower: &mut L) {
        let waiter = Waiter::Fetch { token: 0 };
        let access = Blocked::new(at, line, owner, waiter, false);
        self.request(at, &access, None, lower);
        let misses = self.misses.iter_mut();
        let own = misses.filter(|miss| miss.busy && miss.line == line);
        own.for_each(|miss| miss.waiters.clear());
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
