//! Lines that a first level fetches ahead.
//!
//! Why it exists: a prefetcher of the hart names lines, and here they are asked for with [`Request::ReadAhead`]. Such a request takes a
//! miss register only if one is free, and the directory drops it where it would wait. An access that comes while the line is on its way
//! joins the request, as it joins any other; if that is dropped, the line is asked for again. What it deliberately does not know: patterns
//! ([`Foresight`]), and when a line comes.
//!
//! All lines are in the block of the request that named them (at most 4 KiB), so there is memory wherever the request found some: memories
//! begin and end at multiples of that.

use super::{FirstLevel, Kind, Miss};
use crate::cache::{Foresight, PrefetcherRequest};
use crate::cluster_tile::messages::{Ask, Request};
use crate::config::CacheConfig;
use crate::noc::Account;
use crate::types::Tick;

/// The prefetcher of a data cache, and what it has done.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    foresight: Foresight,
    /// Ticks from one request of the prefetcher to the next.
    cycle: Tick,
    /// Lines that have come because of it.
    fetched: u64,
}

impl Ahead {
    /// The prefetcher of a cache, if the cache has one.
    pub fn of(cache: &CacheConfig) -> Option<Box<Self>> {
        let config = cache.prefetcher.as_ref()?;
        Some(Box::new(Self {
            foresight: Foresight::new(config, cache.line),
            cycle: cache.cycle,
            fetched: 0,
        }))
    }
}

/// The state of a line that is fetched ahead.
#[cfg(test)]
pub(super) fn state(kind: Kind) -> &'static str {
    match kind {
        Kind::Ahead => "I, asked ahead",
        Kind::Data { write: false } => "I, asked ahead, wants to read",
        _ => "I, asked ahead, wants to write",
    }
}

impl FirstLevel {
    /// The instruction that makes the next accesses.
    #[inline]
    pub fn set_pc(&mut self, pc: u64) {
        self.pc = pc;
    }

    /// Lines that were fetched ahead.
    pub fn fetched_ahead(&self) -> u64 {
        self.ahead.as_ref().map_or(0, |ahead| ahead.fetched)
    }

    /// Whether requests wait to be sent although an access has hit.
    #[inline]
    pub fn has_asked(&self) -> bool {
        !self.out.asks.is_empty()
    }

    /// An access has hit. The first use of a line that was fetched ahead trains.
    #[cold]
    pub(super) fn used(&mut self, now: Tick, address: u64) {
        let line = self.data.line_of(address);
        let ahead = self.ahead.as_mut();
        if ahead.is_some_and(|ahead| ahead.foresight.uses(line)) {
            self.foresee(now, address);
        }
    }

    /// An access has asked for its line. It trains, unless the line was here and the hart only wants it alone.
    #[cold]
    pub(super) fn missed(&mut self, now: Tick, address: u64) {
        let line = self.data.line_of(address);
        if self.data.slot_of(line).is_some() {
            return self.used(now, address);
        }
        if let Some(ahead) = &mut self.ahead {
            // If it was fetched ahead, it has left before its first use.
            ahead.foresight.uses(line);
        }
        self.foresee(now, address);
    }

    /// An access trains, and the lines that are expected next are asked for, one in each cycle from the next one on.
    #[cold]
    pub(super) fn foresee(&mut self, now: Tick, address: u64) {
        let Some(mut ahead) = self.ahead.take() else {
            return;
        };
        let pc = self.pc;
        let wanted = ahead.foresight.observe(PrefetcherRequest { address, pc });
        let mut at = now;
        for (index, &line) in wanted.iter().enumerate() {
            at += ahead.cycle;
            if self.has(line) {
                continue;
            }
            if !self.fetch_ahead(at, line) {
                ahead.foresight.not_fetched(wanted.len() - index);
                break;
            }
        }
        self.ahead = Some(ahead);
    }

    /// Whether a line is here or on its way, or an operation on it is.
    pub fn has(&self, line: u64) -> bool {
        self.data.slot_of(line).is_some() || self.is_busy(line)
    }

    /// Asks for a line at this moment, if a miss register is free. The line is neither here nor on its way.
    pub fn fetch_ahead(&mut self, at: Tick, line: u64) -> bool {
        debug_assert!(!self.has(line), "{line:#x} is here or on its way");
        let data = self.misses.iter().filter(|m| m.kind != Kind::Fetch);
        if data.count() >= self.limit {
            return false;
        }
        let token = self.token();
        self.misses.push(Miss {
            line,
            kind: Kind::Ahead,
            token,
            since: at,
            ids: self.ids,
            asked: Some(Request::ReadAhead),
            culprit: None,
        });
        self.out.asks.push(Ask {
            port: self.port,
            line,
            request: Request::ReadAhead,
            ids: self.ids,
            account: Account::new(at),
        });
        true
    }

    /// A line that was fetched ahead has come. Returns whether no access has wanted it yet; its request has then ended.
    pub(super) fn came_ahead(&mut self, at: usize) -> bool {
        let Miss { line, kind, .. } = self.misses[at];
        let unused = kind == Kind::Ahead;
        if let Some(ahead) = &mut self.ahead {
            ahead.fetched += 1;
            if unused {
                ahead.foresight.fetches(line);
            }
        }
        if unused {
            self.misses.remove(at);
        }
        unused
    }

    /// A request of the prefetcher was dropped. If an access has joined it, the line is asked for again.
    pub fn dropped(&mut self, now: Tick, line: u64) {
        #[cfg(test)]
        self.note(line, "dropped");
        let asked = |m: &Miss| m.line == line && m.asked == Some(Request::ReadAhead);
        let at = self.misses.iter().position(asked);
        let at = at.unwrap_or_else(|| panic!("nobody fetched {line:#x} ahead"));
        let miss = &mut self.misses[at];
        if miss.kind == Kind::Ahead {
            self.misses.remove(at);
        } else {
            miss.asked = None;
            miss.since = now;
        }
        self.ask(now);
    }
}

#[cfg(test)]
#[path = "ahead_tests.rs"]
mod tests;
