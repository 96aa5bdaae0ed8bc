//! The caches of one tile, their miss registers, and who waits for which line.
//!
//! Why it exists: everything up to a second-level hit is private to the tile and is answered at once with a known moment;
//! a second-level miss becomes a request to what lies below ([`Lower`]: protection, token bucket, network). What it
//! deliberately does not know: networks, DTU commands, the hart's pipeline.
//!
//! Rules. First-level hits cost what the hart's schedule assumed. A first-level miss asks the second level at once, which
//! answers after its latency. Second-level misses for a line that is already on its way join it; otherwise they take a miss
//! register, or wait for one in order. Lines are put into the caches when they arrive. The levels are neither inclusive nor
//! exclusive: dirty lines that leave the first level go to the second, those that leave the second go below, where a buffer holds
//! them until they are written ([`WRITE_BACKS`]). A miss begins only while the buffer has room for all that the misses under way can
//! push out, so that a line which arrives never waits. The DTU reads
//! and writes through the second level, and its writes take the line out of the first; or, as the platform says or without a
//! second level, through the first-level data cache, whose miss registers it shares with the hart then. Either way its writes
//! take the line out of the instruction cache, and a write of a whole line needs no read.

use super::{Cache, CacheStatistics, Evicted};
use crate::config::{CacheConfig, UnitPort};
use crate::ledger::{Ledger, Level, Resource};
use crate::noc::Account;
use crate::types::{Owner, Tick};
use bulkhead_abi::dtu::WRITE_BACKS;
use std::collections::VecDeque;

/// What lies below the caches of a tile.
pub trait Lower {
    /// Starts to read the line at `address`, not before `at`; [`Hierarchy::complete`] gets the `tag` with it. The account is
    /// up to date until `at`. False: the tile may not read there, and nothing was started.
    fn read(&mut self, at: Tick, address: u64, owner: Owner, tag: u32, account: Account) -> bool;
    /// Writes the line at `address` back, not before `at`. Nobody waits for it. True: it is under way, and
    /// [`Hierarchy::written`] will tell its end.
    fn write_back(&mut self, at: Tick, address: u64, owner: Owner) -> bool;
    /// Where waits are booked.
    fn ledger(&mut self) -> &mut Ledger;
}

/// Who waits for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// An instruction fetch of the hart.
    Fetch {
        /// The hart's token.
        token: u32,
    },
    /// A data access of the hart.
    Data {
        /// The hart's token.
        token: u32,
        /// The line becomes dirty.
        write: bool,
    },
    /// The DTU.
    Unit {
        /// The unit's token.
        token: u32,
        /// The line becomes dirty.
        write: bool,
    },
}

/// Somebody who waited for a line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Who.
    pub waiter: Waiter,
    /// First address of the line.
    pub line: u64,
    /// When.
    pub at: Tick,
}

/// When an access of the hart is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// First-level hit.
    Hit,
    /// At this moment.
    Ready(Tick),
    /// When a line arrives; with this token.
    Pending(u32),
}

/// Where an access finds its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In the first level, or on its way there.
    First,
    /// In the second level.
    Second,
    /// Below the caches.
    Below,
}

/// A miss register.
#[derive(Clone, Debug)]
struct Miss {
    busy: bool,
    line: u64,
    owner: Owner,
    culprit: Option<Owner>,
    waiters: Vec<Waiter>,
}

#[derive(Clone, Copy, Debug)]
struct Blocked {
    since: Tick,
    line: u64,
    owner: Owner,
    waiter: Waiter,
    /// The unit writes the whole line.
    whole: bool,
}

/// Lines that a line which arrives can push out to memory.
const PUSHED_OUT: usize = 2;

/// A line read from below has arrived: for whom, and who had pushed it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Whose miss it was.
    pub owner: Owner,
    /// Who had evicted the line, if it was somebody else.
    pub culprit: Option<Owner>,
    /// The cache from which it had been evicted.
    pub level: Level,
}

/// A first-level cache with the lines that are on their way to it from the second level.
#[derive(Debug)]
struct First {
    cache: Cache,
    latency: Tick,
    mshrs: usize,
    /// (line, moment of arrival) of second-level hits.
    fills: Vec<(u64, Tick)>,
    /// The last of these moments: after it a hit is a hit.
    fills_until: Tick,
}

impl First {
    fn new(config: &CacheConfig, seed: u64) -> Self {
        Self {
            cache: Cache::new(config, seed),
            latency: config.latency * config.cycle,
            mshrs: config.mshrs as usize,
            fills: Vec::new(),
            fills_until: 0,
        }
    }

    #[inline]
    fn hit(&mut self, now: Tick, address: u64, write: bool) -> Option<Outcome> {
        if !self.cache.access(address, write) {
            return None;
        }
        if now >= self.fills_until {
            return Some(Outcome::Hit);
        }
        Some(self.hit_among_fills(now, address))
    }

    #[inline(never)]
    fn hit_among_fills(&self, now: Tick, address: u64) -> Outcome {
        let line = self.cache.line_of(address);
        let ready = self.fills.iter().find(|f| f.0 == line && f.1 > now);
        ready.map_or(Outcome::Hit, |f| Outcome::Ready(f.1))
    }

    fn forget_fills(&mut self, now: Tick) {
        if now >= self.fills_until {
            self.fills.clear();
        } else {
            self.fills.retain(|f| f.1 > now);
        }
    }
}

/// The caches of a tile.
#[derive(Debug)]
pub struct Hierarchy {
    instructions: First,
    data: First,
    second: Option<(Cache, Tick)>,
    /// The DTU uses the first-level data cache.
    unit_first: bool,
    misses: Vec<Miss>,
    /// Busy ones among them.
    busy: usize,
    /// Lines on their way back to memory.
    posted: usize,
    blocked: VecDeque<Blocked>,
    next_token: u32,
    line: u32,
    write_backs: u64,
    first_level_changed: bool,
}

impl Hierarchy {
    /// Empty caches; all configurations valid and with the same size of a line. Without a second level, the DTU uses the first,
    /// whatever `unit` says.
    pub fn new(
        l1i: &CacheConfig,
        l1d: &CacheConfig,
        l2: Option<&CacheConfig>,
        unit: UnitPort,
        seed: u64,
    ) -> Self {
        let outer_mshrs = l2.map_or(l1i.mshrs + l1d.mshrs, |c| c.mshrs) as usize;
        Self {
            instructions: First::new(l1i, seed.wrapping_mul(3).wrapping_add(1)),
            data: First::new(l1d, seed.wrapping_mul(5).wrapping_add(2)),
            second: l2.map(|c| {
                (
                    Cache::new(c, seed.wrapping_mul(7).wrapping_add(3)),
                    c.latency * c.cycle,
                )
            }),
            unit_first: unit == UnitPort::First || l2.is_none(),
            misses: vec![
                Miss {
                    busy: false,
                    line: 0,
                    owner: Owner::new(0, 0),
                    culprit: None,
                    waiters: Vec::new(),
                };
                outer_mshrs
            ],
            busy: 0,
            posted: 0,
            blocked: VecDeque::new(),
            next_token: 0,
            line: l1d.line,
            write_backs: 0,
            first_level_changed: false,
        }
    }

    /// Bytes of a line.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Hits of the hart are counted for this owner from now on.
    pub fn set_owner(&mut self, owner: Owner) {
        self.instructions.cache.set_owner(owner);
        self.data.cache.set_owner(owner);
    }

    /// Whether a line may have left a first-level cache since the last call by anything but a hart's access.
    pub fn take_first_level_changed(&mut self) -> bool {
        std::mem::take(&mut self.first_level_changed)
    }

    /// Statistics of each cache for each owner.
    pub fn statistics(&self) -> Vec<(Level, Owner, CacheStatistics)> {
        let mut all = Vec::new();
        let mut add = |level, cache: &Cache| {
            all.extend(cache.statistics().into_iter().map(|(o, s)| (level, o, s)));
        };
        add(Level::L1i, &self.instructions.cache);
        add(Level::L1d, &self.data.cache);
        if let Some((cache, _)) = &self.second {
            add(Level::L2, cache);
        }
        all
    }

    /// Lines written to memory.
    pub fn write_backs(&self) -> u64 {
        self.write_backs
    }

    /// Takes every line out of every cache: the addresses mean other memory now.
    pub fn invalidate_all(&mut self) {
        self.instructions.cache.invalidate_all();
        self.data.cache.invalidate_all();
        if let Some((cache, _)) = &mut self.second {
            cache.invalidate_all();
        }
        self.first_level_changed = true;
    }

    /// Restricts the ways of a cache that may be filled (see [`Cache::set_way_mask`]).
    pub fn set_way_mask(&mut self, level: Level, mask: u64) {
        match level {
            Level::L1i => self.instructions.cache.set_way_mask(mask),
            Level::L1d => self.data.cache.set_way_mask(mask),
            Level::L2 => {
                if let Some((cache, _)) = &mut self.second {
                    cache.set_way_mask(mask);
                }
            }
        }
    }

    /// Where an access of the hart to the line that contains `address` would find it. Changes nothing.
    pub fn reach(&self, address: u64, fetch: bool) -> Reach {
        let first = match fetch {
            true => &self.instructions,
            false => &self.data,
        };
        let line = self.data.cache.line_of(address);
        let under_way = || self.busy > 0 && self.misses.iter().any(|m| m.busy && m.line == line);
        if first.cache.contains(line) || under_way() {
            Reach::First
        } else if self.second.as_ref().is_some_and(|(c, _)| c.contains(line)) {
            Reach::Second
        } else {
            Reach::Below
        }
    }

    /// Fetch of the instruction line that contains `address`: `Some` for what the first level answers.
    #[inline]
    pub fn fetch_hit(&mut self, now: Tick, address: u64) -> Option<Outcome> {
        self.instructions.hit(now, address, false)
    }

    /// Data access within a line: `Some` for what the first level answers.
    #[inline]
    pub fn data_hit(&mut self, now: Tick, address: u64, write: bool) -> Option<Outcome> {
        self.data.hit(now, address, write)
    }

    /// Continues a fetch that [`Hierarchy::fetch_hit`] did not answer.
    pub fn fetch_miss<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        owner: Owner,
        lower: &mut L,
    ) -> Outcome {
        let token = self.token();
        self.miss(now, address, owner, Waiter::Fetch { token }, lower)
    }

    /// Continues an access that [`Hierarchy::data_hit`] did not answer.
    pub fn data_miss<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        write: bool,
        owner: Owner,
        lower: &mut L,
    ) -> Outcome {
        let token = self.token();
        self.miss(now, address, owner, Waiter::Data { token, write }, lower)
    }

    fn token(&mut self) -> u32 {
        self.next_token = self.next_token.wrapping_add(1);
        self.next_token
    }

    fn first(&mut self, waiter: Waiter) -> (&mut First, Level, bool) {
        match waiter {
            Waiter::Fetch { .. } => (&mut self.instructions, Level::L1i, false),
            Waiter::Data { write, .. } | Waiter::Unit { write, .. } => {
                (&mut self.data, Level::L1d, write)
            }
        }
    }

    fn miss<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) -> Outcome {
        let token = match waiter {
            Waiter::Fetch { token } | Waiter::Data { token, .. } | Waiter::Unit { token, .. } => {
                token
            }
        };
        let line = self.data.cache.line_of(address);
        if self.join(line, waiter) {
            return Outcome::Pending(token);
        }
        let mut start = now;
        loop {
            let under_way = self.under_way(waiter);
            let (first, level, _) = self.first(waiter);
            first.forget_fills(start);
            if first.fills.len() + under_way < first.mshrs {
                if !self.may_push_out() {
                    self.block(start, line, owner, waiter, false);
                    return Outcome::Pending(token);
                }
                break;
            }
            // All miss registers are taken. One that waits for the second level gets free at a known moment.
            match first.fills.iter().map(|f| f.1).min() {
                Some(free) => {
                    lower
                        .ledger()
                        .book(owner, owner, Resource::Mshr(level), free - start);
                    start = free;
                }
                None => {
                    self.block(start, line, owner, waiter, false);
                    return Outcome::Pending(token);
                }
            }
        }
        match self.second_level(start, start, line, owner, waiter, lower) {
            Some(at) => Outcome::Ready(at),
            None => Outcome::Pending(token),
        }
    }

    /// Whether the write-back buffer has room for what one more line can push out.
    #[inline]
    fn may_push_out(&self) -> bool {
        PUSHED_OUT * (self.busy + 1) + self.posted <= WRITE_BACKS as usize
    }

    fn block(&mut self, since: Tick, line: u64, owner: Owner, waiter: Waiter, whole: bool) {
        self.blocked.push_back(Blocked {
            since,
            line,
            owner,
            waiter,
            whole,
        });
    }

    /// A line is on its way back to memory.
    fn write_back<L: Lower>(&mut self, now: Tick, address: u64, owner: Owner, lower: &mut L) {
        self.write_backs += 1;
        self.posted += usize::from(lower.write_back(now, address, owner));
    }

    /// A line of `owner` has been written to memory, or was lost on the way. Adds whoever waited for its place and is done to `done`.
    pub fn written<L: Lower>(
        &mut self,
        now: Tick,
        owner: Owner,
        lower: &mut L,
        done: &mut Vec<Done>,
    ) {
        self.posted = self.posted.saturating_sub(1);
        if !self.blocked.is_empty() {
            self.first_level_changed = true;
            self.retry(now, owner, lower, done);
        }
    }

    /// Lines on their way back to memory.
    pub fn write_backs_under_way(&self) -> usize {
        self.posted
    }

    /// Joins a line that is already on its way.
    fn join(&mut self, line: u64, waiter: Waiter) -> bool {
        if self.busy == 0 {
            return false;
        }
        match self.misses.iter_mut().find(|m| m.busy && m.line == line) {
            Some(miss) => {
                miss.waiters.push(waiter);
                true
            }
            None => false,
        }
    }

    /// Miss registers of the waiter's first-level cache that wait for memory.
    fn under_way(&self, waiter: Waiter) -> usize {
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

    /// Asks the second level at `now`, on behalf of an access that waits since `since`. `Some`: done at that moment.
    fn second_level<L: Lower>(
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
        let (first, level, write) = self.first(waiter);
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
                // The first level has been asked: the line is not there.
                let (first, _, write) = self.first(waiter);
                if let Some(evicted) = first.cache.fill_absent(line, write, owner)
                    && evicted.dirty
                {
                    self.write_down(now, evicted, owner, lower);
                }
                let (first, _, _) = self.first(waiter);
                first.fills.push((line, ready));
                first.fills_until = first.fills_until.max(ready);
                return Some(ready);
            }
            culprit = cache.culprit(line, owner);
            request_at += latency;
            request_since += latency;
        } else {
            let _ = write;
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
    fn request<L: Lower>(
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
        if !lower.read(now, line, owner, slot as u32, account) {
            return Some(now);
        }
        let miss = &mut self.misses[slot];
        self.busy += 1;
        miss.busy = true;
        miss.line = line;
        miss.owner = owner;
        miss.culprit = culprit;
        miss.waiters.clear();
        miss.waiters.push(waiter);
        None
    }

    /// Puts a line into the waiter's first-level cache.
    fn fill_first<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) {
        let (first, _, write) = self.first(waiter);
        if let Some(evicted) = first.cache.fill(line, write, owner)
            && evicted.dirty
        {
            self.write_down(now, evicted, owner, lower);
        }
    }

    /// A dirty line has left the first level because of `owner`.
    fn write_down<L: Lower>(&mut self, now: Tick, evicted: Evicted, owner: Owner, lower: &mut L) {
        match &mut self.second {
            Some((cache, _)) => {
                if !cache.mark_dirty(evicted.address) {
                    let victim = cache.fill(evicted.address, true, evicted.owner);
                    if let Some(v) = victim.filter(|v| v.dirty) {
                        self.write_back(now, v.address, owner, lower);
                    }
                }
            }
            None => self.write_back(now, evicted.address, owner, lower),
        }
    }

    fn fill_second<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        dirty: bool,
        owner: Owner,
        lower: &mut L,
    ) {
        if let Some((cache, _)) = &mut self.second
            && let Some(evicted) = cache.fill(line, dirty, owner)
            && evicted.dirty
        {
            self.write_back(now, evicted.address, owner, lower);
        }
    }

    /// The line of `tag` has arrived. Adds everybody who waited for a line that is there now, and since when, to `done`.
    pub fn complete<L: Lower>(
        &mut self,
        now: Tick,
        tag: u32,
        lower: &mut L,
        done: &mut Vec<Done>,
    ) -> Option<Arrived> {
        let miss = self.misses.get_mut(tag as usize).filter(|m| m.busy)?;
        self.busy -= 1;
        miss.busy = false;
        let (line, owner, culprit) = (miss.line, miss.owner, miss.culprit);
        let waiters = std::mem::take(&mut miss.waiters);
        self.first_level_changed = true;
        self.fill_second(now, line, false, owner, lower);
        for &waiter in &waiters {
            self.deliver(now, line, owner, waiter, lower);
            done.push(Done {
                waiter,
                line,
                at: now,
            });
        }
        // The vector goes back, so that no miss allocates.
        self.misses[tag as usize].waiters = waiters;
        self.retry(now, owner, lower, done);
        Some(Arrived {
            owner,
            culprit,
            level: if self.second.is_some() {
                Level::L2
            } else {
                Level::L1d
            },
        })
    }

    fn deliver<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) {
        match (waiter, &mut self.second) {
            (Waiter::Unit { write, .. }, Some((cache, _))) if !self.unit_first => {
                if write {
                    cache.mark_dirty(line);
                }
            }
            _ => self.fill_first(now, line, owner, waiter, lower),
        }
    }

    /// A miss register of `holder` got free: those who wait for one go on, in order.
    fn retry<L: Lower>(&mut self, now: Tick, holder: Owner, lower: &mut L, done: &mut Vec<Done>) {
        while let Some(&b) = self.blocked.front() {
            if self.join(b.line, b.waiter) {
                self.blocked.pop_front();
                continue;
            }
            let unit = matches!(b.waiter, Waiter::Unit { .. }) && !self.unit_first;
            let under_way = self.under_way(b.waiter);
            let (first, level, write) = self.first(b.waiter);
            // Lines on their way from the second level hold miss registers too, and nobody comes back when they arrive: the
            // access goes on at the known moment at which one gets free. Only misses come back here.
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
                self.fill_first(start, b.line, b.owner, b.waiter, lower);
                Some(start)
            } else if self.first(b.waiter).0.cache.access(b.line, write) {
                Some(start)
            } else {
                self.second_level(since, start, b.line, b.owner, b.waiter, lower)
            };
            if let Some(at) = ready {
                done.push(Done {
                    waiter: b.waiter,
                    line: b.line,
                    at,
                });
            }
        }
    }

    /// Misses under way.
    pub fn misses_under_way(&self) -> usize {
        self.busy
    }
}

#[path = "hierarchy_unit.rs"]
mod unit;

#[cfg(test)]
#[path = "hierarchy_tests.rs"]
mod tests;
