//! The caches of one tile, their miss registers, and the accesses that wait for lines.
//!
//! Why it exists: everything up to a second-level hit is private to the tile and is answered at once with a known moment;
//! a second-level miss becomes a request to what lies below ([`Lower`]: protection, token bucket, network). What it
//! deliberately does not know: networks, DTU commands, the hart's pipeline.
//!
//! Rules. First-level hits cost what the hart's schedule assumed. A first-level miss asks the second level at once, and the answer
//! comes after that level's latency. Second-level misses for a line that is already on its way join it; otherwise they take a miss
//! register, or wait for one in order. Lines are put into the caches when they arrive. The levels are neither inclusive nor
//! exclusive: dirty lines that leave the first level go to the second; those that leave the second go to a buffer, which holds them
//! until memory has them ([`WRITE_BACKS`]). A miss begins only while the buffer has room for all lines that the misses under way
//! can evict, so an arriving line never waits. The platform says which cache the DTU uses. At the second level, its writes take the
//! line out of the first level. At the first-level data cache (always, if there is no second level), it shares the miss registers
//! with the hart. In both cases its writes take the line out of the instruction cache, and a write of a whole line needs no read.
//!
//! A line's newest bytes are in the highest place that has the line: the data cache, the second level, the
//! write-back buffer, memory. A fill takes them from there and never overwrites a line that is already present. A fetch looks into
//! the data cache, too, and finds the hart's stores there; the instruction cache itself does not see stores (`fence.i` empties it).

use super::write_back_buffer::WriteBackBuffer;
use super::{Cache, CacheStatistics, HeldLine};
use crate::config::{CacheConfig, UnitPort};
use crate::hart::CacheEvents;
use crate::ledger::{Ledger, Level};
use crate::local_token::LocalToken;
use crate::noc::Account;
use crate::types::{Line, Owner, Tick};
use bulkhead_abi::dtu::WRITE_BACKS;
use std::collections::VecDeque;

/// The level below the caches of a tile.
pub trait Lower {
    /// Starts to read the line at `address`, not before `at`; [`Hierarchy::complete`] gets the line with the `tag`. The account is
    /// up to date until `at`. If the tile may not read there, no bytes come.
    fn read(&mut self, at: Tick, address: u64, owner: Owner, tag: u32, account: Account);
    /// Writes the line at `address` back, not before `at`. [`Hierarchy::written`] reports the end with the `tag`.
    fn write_back(&mut self, at: Tick, address: u64, owner: Owner, tag: u32, bytes: &[u8]);
    /// The ledger in which waits are booked.
    fn ledger(&mut self) -> &mut Ledger;
    /// Whether caches may fetch ahead. They do not while tokens regulate what the tile asks for.
    fn fetches_ahead(&self) -> bool {
        true
    }
}

/// The harts, as their caches see them.
pub trait Harts {
    /// The line for which the access with this token waits is in the data cache: the hart now performs everything that waits for
    /// the line.
    fn take_line(&mut self, token: u32, line: &mut HeldLine<'_>);
}

/// An access of the unit or the card, with its bytes.
#[derive(Clone, Debug)]
pub struct Carried {
    token: LocalToken,
    /// First address.
    pub address: u64,
    /// How many of the bytes belong to the access.
    length: usize,
    /// The access writes.
    pub write: bool,
    /// The bytes have moved.
    moved: bool,
    bytes: Line,
}

impl Carried {
    /// The bytes to write; or the bytes read, once they have moved.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The same, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

/// An access that waits for a line.
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
    /// The DTU, a network card or a streaming unit.
    Unit {
        /// Whose access it is, and which one.
        token: LocalToken,
        /// The line becomes dirty.
        write: bool,
    },
}

impl Waiter {
    /// The hart's token; of another part, the number of its access.
    pub fn token(self) -> u32 {
        match self {
            Waiter::Fetch { token } | Waiter::Data { token, .. } => token,
            Waiter::Unit { token, .. } => token.number(),
        }
    }
}

/// A waiter has got its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The waiter.
    pub waiter: Waiter,
    /// First address of the line.
    pub line: u64,
    /// The time at which it has the line.
    pub at: Tick,
}

/// When an access of the hart is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// First-level hit.
    Hit,
    /// At this moment.
    Ready(Tick),
    /// When the line arrives; reported with this token.
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
    /// The tile may no longer read the line.
    stale: bool,
    waiters: Vec<Waiter>,
}

/// An access that needs a miss register, or room for what it may push out.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    /// It has been looked up at its level, and does not continue before this moment.
    ready: Tick,
    /// The moment up to which its wait is booked.
    booked: Tick,
    /// Ticks that are booked.
    waited: Tick,
    line: u64,
    owner: Owner,
    waiter: Waiter,
    /// The unit writes the whole line.
    whole: bool,
    /// It lacks a register of the second level, and not one of its first level.
    second: bool,
}

impl Blocked {
    /// An access that continues at `ready`, or waits from then on.
    fn new(ready: Tick, line: u64, owner: Owner, waiter: Waiter, whole: bool) -> Self {
        Self {
            ready,
            booked: ready,
            waited: 0,
            line,
            owner,
            waiter,
            whole,
            second: false,
        }
    }
}

/// Maximum number of lines that an arriving line pushes out to memory.
const PUSHED_OUT: usize = 2;

/// A line read from below has arrived: whose miss it was, and which owner had evicted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The owner of the miss.
    pub owner: Owner,
    /// The owner that had evicted the line, if it was another one.
    pub culprit: Option<Owner>,
    /// The cache from which it had been evicted.
    pub level: Level,
}

/// A line on its way from the second level. It holds a miss register until it arrives.
#[derive(Clone, Copy, Debug)]
struct Coming {
    line: u64,
    at: Tick,
    owner: Owner,
}

/// A first-level cache with the lines that are on their way to it from the second level.
#[derive(Debug)]
struct First {
    cache: Cache,
    latency: Tick,
    mshrs: usize,
    /// Second-level hits.
    fills: Vec<Coming>,
    /// The last of these moments: after it every hit is immediate. [`Tick::MAX`] while the first use of a line is awaited.
    fills_until: Tick,
    /// Fetches lines ahead.
    ahead: Option<Box<Ahead>>,
}

impl First {
    fn new(config: &CacheConfig, seed: u64) -> Self {
        Self {
            cache: Cache::new(config, seed),
            latency: config.latency * config.cycle,
            mshrs: config.mshrs as usize,
            fills: Vec::new(),
            fills_until: 0,
            ahead: None,
        }
    }

    #[inline(always)]
    fn hit(&mut self, now: Tick, address: u64, write: bool) -> Option<Outcome> {
        match self.cache.access(address, write) {
            true => self.outcome(now, address),
            false => None,
        }
    }

    /// When a line that is here can be used. `None`: it takes the path of misses.
    #[inline(always)]
    fn outcome(&self, now: Tick, address: u64) -> Option<Outcome> {
        if now >= self.fills_until {
            return Some(Outcome::Hit);
        }
        self.hit_among_fills(now, address)
    }

    #[inline(never)]
    fn hit_among_fills(&self, now: Tick, address: u64) -> Option<Outcome> {
        let line = self.cache.line_of(address);
        // The first use of a line that was fetched ahead takes the path of misses, which trains the prefetcher.
        if self.awaits(line) {
            return None;
        }
        let arrives = self.arrives(now, line);
        Some(arrives.map_or(Outcome::Hit, Outcome::Ready))
    }

    /// When a line that is already here arrives, if it is still on its way. (A line that was pushed out and came again is listed twice.)
    fn arrives(&self, now: Tick, line: u64) -> Option<Tick> {
        let coming = self.fills.iter().filter(|f| f.line == line && f.at > now);
        coming.map(|f| f.at).max()
    }

    /// Forgets the lines that have arrived. `now` must be the present: until then, an access may hit a line that is on its way.
    #[inline]
    fn forget_fills(&mut self, now: Tick) {
        if now >= self.fills_until {
            self.fills.clear();
        } else {
            self.fills.retain(|f| f.at > now);
        }
    }

    /// When a register is free for an access that is ready at `ready`, if `under_way` of them wait for memory. The lines that give
    /// theirs back until then are the first ones. `None`: none becomes free before a line comes from memory.
    #[inline]
    fn register(&mut self, ready: Tick, under_way: usize) -> Option<Tick> {
        let others = (self.mshrs - 1).checked_sub(under_way)?;
        if self.fills.len() <= others {
            return Some(ready);
        }
        Some(self.register_after(ready, others))
    }

    /// When all but `others` of the lines on their way have arrived, or the access is ready.
    #[inline(never)]
    fn register_after(&mut self, ready: Tick, others: usize) -> Tick {
        self.fills.sort_by_key(|f| f.at);
        let last = self.fills[self.fills.len() - 1 - others];
        last.at.max(ready)
    }
}

/// The caches of a tile.
#[derive(Debug)]
pub struct Hierarchy {
    instructions: First,
    data: First,
    second: Option<(Cache, Tick)>,
    /// Fetches lines ahead into the second level.
    second_ahead: Option<Box<Ahead>>,
    /// The instruction that accesses.
    pc: u64,
    /// Lines were fetched ahead, and the hart was not told.
    fetched_ahead: bool,
    /// The DTU uses the first-level data cache.
    unit_first: bool,
    misses: Vec<Miss>,
    /// Number of busy miss registers.
    busy: usize,
    /// Lines on their way back to memory.
    buffer: WriteBackBuffer,
    blocked: VecDeque<Blocked>,
    /// Accesses of the unit and the card that are not done.
    carried: Vec<Carried>,
    next_token: u32,
    line: u32,
    first_level_changed: bool,
    /// Lines that came from below.
    refills: u64,
    /// The bytes of each line when it left the data cache. Valid only if no other tile writes the memory below.
    #[cfg(debug_assertions)]
    shadow: Option<rustc_hash::FxHashMap<u64, Vec<u8>>>,
}

impl Hierarchy {
    /// Empty caches. All configurations are valid and have the same line size. Without a second level, the DTU uses the first, whatever
    /// `unit` says.
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
            data: First {
                ahead: Ahead::of(l1d),
                ..First::new(l1d, seed.wrapping_mul(5).wrapping_add(2))
            },
            second: l2.map(|c| {
                (
                    Cache::new(c, seed.wrapping_mul(7).wrapping_add(3)),
                    c.latency * c.cycle,
                )
            }),
            second_ahead: l2.and_then(Ahead::of),
            pc: 0,
            fetched_ahead: false,
            unit_first: unit == UnitPort::First || l2.is_none(),
            misses: vec![
                Miss {
                    busy: false,
                    line: 0,
                    owner: Owner::new(0, 0),
                    culprit: None,
                    stale: false,
                    waiters: Vec::new(),
                };
                outer_mshrs
            ],
            busy: 0,
            buffer: WriteBackBuffer::default(),
            blocked: VecDeque::new(),
            carried: Vec::new(),
            next_token: 0,
            line: l1d.line,
            first_level_changed: false,
            refills: 0,
            #[cfg(debug_assertions)]
            shadow: None,
        }
    }

    /// No other tile writes the memory below: in debug builds, each line must come back with the bytes with which it left. Must be called
    /// while the caches are empty.
    pub fn expect_own_bytes(&mut self) {
        #[cfg(debug_assertions)]
        {
            self.shadow = Some(Default::default());
        }
    }

    /// Bytes of a line.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// From now on, counts the hart's hits for this owner.
    pub fn set_owner(&mut self, owner: Owner) {
        self.instructions.cache.set_owner(owner);
        self.data.cache.set_owner(owner);
    }

    /// Whether anything but a hart's access may have removed a line from a first-level cache since the last call.
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

    /// Event counts of the caches, for all owners together.
    pub fn events(&self) -> CacheEvents {
        let second = self.second.as_ref().map(|(cache, _)| cache.total());
        let second = second.unwrap_or_default();
        CacheEvents {
            fetch_refills: self.instructions.cache.fills(),
            data_refills: self.data.cache.fills(),
            data_write_backs: self.data.cache.total().write_backs,
            second_accesses: second.hits + second.misses,
            second_misses: second.misses,
            second_refills: self.second.as_ref().map_or(0, |_| self.refills),
            second_write_backs: second.write_backs,
            data_prefetches: self.data.ahead.as_ref().map_or(0, |a| a.fetched()),
            second_prefetches: self.second_ahead.as_ref().map_or(0, |a| a.fetched()),
            second_prefetches_used: self.second_ahead.as_ref().map_or(0, |a| a.used()),
            second_prefetches_late: self.second_ahead.as_ref().map_or(0, |a| a.late()),
        }
    }

    /// Lines written to memory.
    pub fn write_backs(&self) -> u64 {
        self.buffer.sent()
    }

    /// No access gets a line that is on its way if `refused` names the line. Lines in the caches stay.
    pub fn refuse(&mut self, refused: impl Fn(u64) -> bool) {
        for miss in self.misses.iter_mut().filter(|miss| miss.busy) {
            miss.stale |= refused(miss.line);
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

    /// Fetch of the instruction line that contains `address`: `Some` if the first level answers.
    #[inline]
    pub fn fetch_hit(&mut self, now: Tick, address: u64) -> Option<Outcome> {
        self.instructions.hit(now, address, false)
    }

    /// The same fetch, if it hits the line that was used last in its set and nothing is on its way. False: nothing has happened.
    #[inline]
    pub fn fetch_recent(&mut self, now: Tick, address: u64) -> bool {
        let first = &mut self.instructions;
        now >= first.fills_until && first.cache.access_recent(address, false)
    }

    /// Whether the line of an address is the one that was used last in its set of the instruction cache.
    pub fn is_recent_for_fetch(&self, address: u64) -> bool {
        self.instructions.cache.is_recent(address)
    }

    /// A fetch that [`Hierarchy::fetch_recent`] would answer if no one but the hart has used the caches since it was asked. It only counts.
    /// False: another one has, and nothing has happened.
    #[inline(always)]
    pub fn fetch_again(&mut self) -> bool {
        if self.first_level_changed {
            return false;
        }
        self.instructions.cache.count_hit();
        true
    }

    /// Data access within a line: `Some` if the first level answers.
    #[inline]
    pub fn data_hit(&mut self, now: Tick, address: u64, write: bool) -> Option<Outcome> {
        self.data.hit(now, address, write)
    }

    /// [`Hierarchy::data_hit`] for a line that was hardly the last one in its set; or the second level answers, and it is the usual case
    /// ([`Hierarchy::second_answers`]).
    #[inline(always)]
    pub fn data_near<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        write: bool,
        owner: Owner,
        lower: &mut L,
    ) -> Option<Outcome> {
        match self.data.cache.look_up(address, write) {
            true => self.data.outcome(now, address),
            false => self.second_answers(now, address, write, owner, lower),
        }
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
        let waiter = Waiter::Fetch { token };
        self.miss(now, now, address, owner, waiter, lower)
    }

    /// Continues an access that [`Hierarchy::data_hit`] did not answer.
    #[inline(always)]
    pub fn data_miss<L: Lower>(
        &mut self,
        now: Tick,
        address: u64,
        write: bool,
        owner: Owner,
        lower: &mut L,
    ) -> Outcome {
        let token = self.token();
        let waiter = Waiter::Data { token, write };
        let line = self.data.cache.line_of(address);
        let ahead = self.data.ahead.is_some();
        if ahead && let Some(outcome) = self.first_use(now, line) {
            self.train_first(now, address, owner, lower);
            return outcome;
        }
        let outcome = self.miss(now, now, address, owner, waiter, lower);
        if ahead {
            self.train_first(now, address, owner, lower);
        }
        outcome
    }

    /// The number of an access that is answered later.
    pub fn token(&mut self) -> u32 {
        self.next_token = self.next_token.wrapping_add(1);
        self.next_token
    }

    #[inline(always)]
    fn first(&mut self, waiter: Waiter) -> (&mut First, Level, bool) {
        match waiter {
            Waiter::Fetch { .. } => (&mut self.instructions, Level::L1i, false),
            Waiter::Data { write, .. } | Waiter::Unit { write, .. } => {
                (&mut self.data, Level::L1d, write)
            }
        }
    }

    /// An access, made at `now`, that the first level has not answered. It continues at `ready`.
    #[inline(always)]
    fn miss<L: Lower>(
        &mut self,
        now: Tick,
        ready: Tick,
        address: u64,
        owner: Owner,
        waiter: Waiter,
        lower: &mut L,
    ) -> Outcome {
        let token = waiter.token();
        let line = self.data.cache.line_of(address);
        if self.join(line, waiter) {
            self.train_second(ready, true, line, owner, lower);
            return Outcome::Pending(token);
        }
        let mut access = Blocked::new(ready, line, owner, waiter, false);
        let start = match self.may_push_out() {
            true => self.first_register(now, &access),
            false => None,
        };
        let Some(start) = start else {
            self.blocked.push_back(access);
            return Outcome::Pending(token);
        };
        if access.booked < start {
            self.book_until(start, &mut access, lower);
        }
        match self.second_level(start, &access, lower) {
            Some(at) => Outcome::Ready(at),
            None => Outcome::Pending(token),
        }
    }

    /// Whether the write-back buffer has room for the lines that one more miss can push out.
    #[inline]
    fn may_push_out(&self) -> bool {
        PUSHED_OUT * (self.busy + 1) + self.buffer.under_way() <= WRITE_BACKS as usize
    }

    /// Misses under way.
    pub fn misses_under_way(&self) -> usize {
        self.busy
    }

    /// Lines on their way back to memory.
    pub fn write_backs_under_way(&self) -> usize {
        self.buffer.under_way()
    }
}

use ahead::Ahead;
pub use management::Management;

#[path = "ahead.rs"]
mod ahead;
#[path = "lines.rs"]
mod lines;
#[path = "management.rs"]
mod management;
#[path = "miss_registers.rs"]
mod miss_registers;
#[path = "hierarchy_unit.rs"]
mod unit;

#[cfg(test)]
#[path = "hierarchy_tests.rs"]
mod tests;
