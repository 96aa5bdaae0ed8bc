//! Set-associative caches: tags, states and the bytes of each line.
//!
//! Why it exists: it answers two questions: is the line here, and if not, which owner evicted it? What it deliberately does not know:
//! latencies, miss registers and what lies below it ([`hierarchy`] joins caches), virtual addresses, coherence.

mod data_array;
mod foresight;
pub mod hierarchy;
mod prefetcher;
mod write_back_buffer;

pub use data_array::HeldLine;
pub(crate) use foresight::Foresight;
pub use hierarchy::{Done, Harts, Hierarchy, Lower, Waiter};
pub(crate) use prefetcher::Request as PrefetcherRequest;

use crate::config::{CacheConfig, Replacement};
use crate::types::Owner;

/// Counts of a cache for one owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Accesses that found their line. A first-level cache does not count the hart's repeated accesses to the line that it used
    /// last in a set, because the hart does not ask for those. The hart's counts of loads and stores include them.
    pub hits: u64,
    /// Accesses that did not.
    pub misses: u64,
    /// Misses among them whose line another owner had evicted or taken.
    pub misses_by_others: u64,
    /// Lines that this owner's fills evicted.
    pub evictions: u64,
    /// Dirty lines among them.
    pub write_backs: u64,
}

/// A line that was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evicted {
    /// First address of the line.
    pub address: u64,
    /// It was written since it was filled.
    pub dirty: bool,
    /// The owner that had filled it.
    pub owner: Owner,
}

/// Maximum number of harts that share a cache.
pub const HARTS: usize = 2;

/// No address: addresses of lines are multiples of their length.
const NO_SLOT: usize = usize::MAX;

/// What a cache knows of the line in a slot, beside its tag; and one of the last lines that left the set. Owners are indices into the
/// table of counts.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The tag of a line that left the set.
    departed: u32,
    /// Who evicted that one.
    departed_by: u16,
    /// Who filled the line.
    owner: u16,
    /// The line was written.
    dirty: bool,
}

/// A cache. Addresses must be below 2^32 lines; a tile's windows end at 4 GiB.
#[derive(Clone, Debug)]
pub struct Cache {
    line_shift: u32,
    set_mask: u64,
    ways: usize,
    /// The logarithm of the number of ways, if it is a power of two.
    ways_shift: Option<u32>,
    way_mask: u64,
    replacement: Replacement,
    /// For each set its tags (line number + 1; 0: empty), then for LRU the order of last use of its ways: one host cache
    /// line for eight ways. Repeated hits in the most recent way change no order and do not touch the stamps.
    sets: Vec<u32>,
    /// The way that was used last, for each set: nearly every hit is there.
    recent: Vec<u8>,
    /// What is known of each line, by slot; the slots of a set's ways are adjacent.
    slots: Vec<Slot>,
    /// The bytes of the lines, in the order of sets and of ways in a set.
    bytes: Vec<u8>,
    /// The bytes of the dirty line that was evicted last.
    evicted: Vec<u8>,
    /// Slots of the lines that a load-reserved of each hart has read, until the line leaves the cache or another hart writes it.
    reserved: [usize; HARTS],
    clock: u32,
    /// Tree-PLRU: node bits of each set; bit set: the victim is in the upper half.
    trees: Vec<u64>,
    random: u64,
    /// For each set, the slot of the next line that leaves it ([`Slot::departed`]).
    departed_next: Vec<u8>,
    /// The owner whose accesses are counted now, and its counts.
    counted: (Owner, CacheStatistics),
    /// Its index in `statistics`, where its counts are out of date.
    current: usize,
    statistics: Vec<(Owner, CacheStatistics)>,
    /// Lines that came in.
    fills: u64,
}

/// Where `tag` is. The usual four or eight ways are compared at once, because the way of a line cannot be predicted.
#[inline]
fn find(tags: &[u32], tag: u32) -> Option<usize> {
    fn among<const WAYS: usize>(tags: &[u32; WAYS], tag: u32) -> Option<usize> {
        let mut found = 0u32;
        for (way, t) in tags.iter().enumerate() {
            found |= ((*t == tag) as u32) << way;
        }
        (found != 0).then(|| found.trailing_zeros() as usize)
    }
    if let Ok(tags) = <&[u32; 8]>::try_from(tags) {
        among(tags, tag)
    } else if let Ok(tags) = <&[u32; 4]>::try_from(tags) {
        among(tags, tag)
    } else {
        tags.iter().position(|t| *t == tag)
    }
}

/// The lowest of four ways from `first` on that was used least recently. The comparisons need no branches, because their outcomes are random.
#[inline(always)]
fn oldest_of_four<const WAYS: usize>(stamps: &[u32; WAYS], first: usize) -> usize {
    let low = first + usize::from(stamps[first + 1] < stamps[first]);
    let high = first + 2 + usize::from(stamps[first + 3] < stamps[first + 2]);
    if stamps[high] < stamps[low] {
        high
    } else {
        low
    }
}

const NOBODY: Owner = Owner::new(u16::MAX, u16::MAX);

impl Cache {
    /// An empty cache of a valid configuration (see `PlatformConfig::validate`). `seed` is for random replacement.
    pub fn new(config: &CacheConfig, seed: u64) -> Self {
        let ways = config.ways as usize;
        let sets = (config.size / (config.ways as u64 * config.line as u64)) as usize;
        let all = if ways == 64 {
            u64::MAX
        } else {
            (1 << ways) - 1
        };
        Self {
            line_shift: config.line.trailing_zeros(),
            set_mask: sets as u64 - 1,
            ways,
            ways_shift: ways.is_power_of_two().then(|| ways.ilog2()),
            way_mask: if config.way_mask & all == 0 {
                all
            } else {
                config.way_mask & all
            },
            replacement: config.replacement,
            sets: vec![0; sets * ways * 2],
            recent: vec![0; sets],
            slots: vec![Slot::default(); sets * ways],
            bytes: vec![0; (sets * ways) << config.line.trailing_zeros()],
            evicted: vec![0; config.line as usize],
            reserved: [NO_SLOT; HARTS],
            clock: 0,
            trees: vec![0; sets],
            random: seed | 1,
            departed_next: vec![0; sets],
            counted: (NOBODY, CacheStatistics::default()),
            current: 0,
            statistics: vec![(NOBODY, CacheStatistics::default())],
            fills: 0,
        }
    }

    /// Bit i: way i exists.
    fn all_ways(&self) -> u64 {
        u64::MAX >> (64 - self.ways)
    }

    /// Those of these ways that exist. If none does, all.
    pub fn existing(&self, ways: u64) -> u64 {
        match ways & self.all_ways() {
            0 => self.all_ways(),
            existing => existing,
        }
    }

    /// Bit i: way i may be filled from now on. Lines in other ways stay and still hit. A mask without any existing way
    /// changes nothing.
    pub fn set_way_mask(&mut self, mask: u64) {
        if mask & self.all_ways() != 0 {
            self.way_mask = mask & self.all_ways();
        }
    }

    /// What is in these ways of `address`'s set.
    pub fn lines_in(&self, ways: u64, address: u64) -> impl Iterator<Item = Option<u64>> {
        let all = self.tags(self.set_of(address)).iter().enumerate();
        let those = all.filter(move |(way, _)| ways >> way & 1 != 0);
        those.map(|(_, tag)| (*tag != 0).then(|| (u64::from(*tag) - 1) << self.line_shift))
    }

    /// Whether a place ([`Cache::slot_of`]) is in one of these ways of `address`'s set.
    pub fn is_in(&self, slot: usize, ways: u64, address: u64) -> bool {
        let (set, way) = self.set_and_way(slot);
        set == self.set_of(address) && ways >> way & 1 != 0
    }

    /// Whether the lines of two addresses share a set.
    pub fn share_set(&self, one: u64, other: u64) -> bool {
        self.set_of(one) == self.set_of(other)
    }

    /// First address of the line that contains `address`.
    pub fn line_of(&self, address: u64) -> u64 {
        address >> self.line_shift << self.line_shift
    }

    fn set_of(&self, address: u64) -> usize {
        (address >> self.line_shift & self.set_mask) as usize
    }

    /// Counts accesses for this owner from now on.
    #[inline]
    pub fn set_owner(&mut self, owner: Owner) {
        if self.counted.0 != owner {
            self.change_owner(owner);
        }
    }

    #[inline(never)]
    fn change_owner(&mut self, owner: Owner) {
        self.statistics[self.current] = self.counted;
        self.current = match self.statistics.iter().position(|s| s.0 == owner) {
            Some(at) => at,
            None => {
                self.statistics.push((owner, CacheStatistics::default()));
                self.statistics.len() - 1
            }
        };
        self.counted = self.statistics[self.current];
    }

    /// The counts of each owner.
    fn counts(&self) -> impl Iterator<Item = (Owner, CacheStatistics)> {
        let others = self.statistics.iter().enumerate();
        let others = others.filter(|(index, _)| *index != self.current);
        others
            .map(|(_, counts)| *counts)
            .chain(std::iter::once(self.counted))
    }

    /// Statistics of each owner, sorted by owner.
    pub fn statistics(&self) -> Vec<(Owner, CacheStatistics)> {
        let mut all: Vec<_> = self
            .counts()
            .filter(|s| s.1 != CacheStatistics::default())
            .collect();
        all.sort_by_key(|s| s.0);
        all
    }

    /// The counts of all owners together.
    pub fn total(&self) -> CacheStatistics {
        let mut total = CacheStatistics::default();
        for (_, counts) in self.counts() {
            total.hits += counts.hits;
            total.misses += counts.misses;
            total.misses_by_others += counts.misses_by_others;
            total.evictions += counts.evictions;
            total.write_backs += counts.write_backs;
        }
        total
    }

    /// Lines that came in. (Not part of the statistics: reports have misses.)
    pub fn fills(&self) -> u64 {
        self.fills
    }

    /// Whether the line is here; counts, and updates the order of use and the dirty state.
    #[inline]
    pub fn access(&mut self, address: u64, write: bool) -> bool {
        self.access_recent(address, write) || self.access_any(address, write)
    }

    /// [`Cache::access`] of the line that was used last in its set. False: it is another line, and nothing has happened.
    #[inline(always)]
    fn access_recent(&mut self, address: u64, write: bool) -> bool {
        let number = address >> self.line_shift;
        let set = (number & self.set_mask) as usize;
        let way = self.recent[set] as usize;
        let hit = self.sets[set * 2 * self.ways + way] == number as u32 + 1;
        if hit {
            self.counted.1.hits += 1;
            if write {
                self.slots[set * self.ways + way].dirty = true;
            }
        }
        hit
    }

    /// Whether the line of an address is the one that was used last in its set.
    fn is_recent(&self, address: u64) -> bool {
        let number = address >> self.line_shift;
        let set = (number & self.set_mask) as usize;
        let way = self.recent[set] as usize;
        self.sets[set * 2 * self.ways + way] == number as u32 + 1
    }

    /// Counts a hit of the line used last in its set.
    #[inline(always)]
    fn count_hit(&mut self) {
        self.counted.1.hits += 1;
    }

    fn tags(&self, set: usize) -> &[u32] {
        let base = set * 2 * self.ways;
        &self.sets[base..base + self.ways]
    }

    /// The same as [`Cache::access`], for a line that was hardly the last one in its set: below the first level, say.
    #[inline(never)]
    pub fn access_any(&mut self, address: u64, write: bool) -> bool {
        self.look_up(address, write)
    }

    /// [`Cache::access_any`], as a part of the function that calls it.
    #[inline(always)]
    fn look_up(&mut self, address: u64, write: bool) -> bool {
        let number = address >> self.line_shift;
        let set = (number & self.set_mask) as usize;
        match find(self.tags(set), number as u32 + 1) {
            Some(way) => {
                self.touch(set, way);
                self.counted.1.hits += 1;
                if write {
                    self.slots[set * self.ways + way].dirty = true;
                }
                true
            }
            None => {
                self.counted.1.misses += 1;
                false
            }
        }
    }

    /// [`Cache::access`] for reading by `owner`, if the line is here: the place of its bytes. `None`: nothing is counted.
    #[inline(always)]
    fn find_for(&mut self, address: u64, owner: Owner) -> Option<usize> {
        let number = address >> self.line_shift;
        let set = (number & self.set_mask) as usize;
        let way = find(self.tags(set), number as u32 + 1)?;
        self.set_owner(owner);
        self.touch(set, way);
        self.count_hit();
        Some((set * self.ways + way) << self.line_shift)
    }

    /// The hart has used the line at this place in [`Cache::bytes`] last in its set; counts `times` hits.
    pub fn again(&mut self, place: usize, times: u64) {
        let (set, way) = self.set_and_way(place >> self.line_shift);
        self.touch(set, way);
        self.counted.1.hits += times;
    }

    /// The set and the way of a place ([`Cache::slot_of`]). No division in the usual case.
    #[inline(always)]
    fn set_and_way(&self, slot: usize) -> (usize, usize) {
        let set = match self.ways_shift {
            Some(shift) => slot >> shift,
            None => slot / self.ways,
        };
        (set, slot - set * self.ways)
    }

    #[inline(always)]
    fn touch(&mut self, set: usize, way: usize) {
        self.recent[set] = way as u8;
        if self.replacement == Replacement::Lru {
            if self.clock == u32::MAX {
                self.renumber();
            }
            self.clock += 1;
            self.sets[(set * 2 + 1) * self.ways + way] = self.clock;
        } else if self.replacement == Replacement::TreePlru {
            self.touch_tree(set, way);
        }
    }

    /// Each node on the way to the leaf points to the other half.
    #[inline(never)]
    fn touch_tree(&mut self, set: usize, way: usize) {
        let (mut node, mut half, mut low) = (0, self.ways / 2, 0);
        while half > 0 {
            let upper = way >= low + half;
            if upper {
                self.trees[set] &= !(1 << node);
                low += half;
            } else {
                self.trees[set] |= 1 << node;
            }
            node = 2 * node + 1 + upper as usize;
            half /= 2;
        }
    }

    /// The clock is at its end: renumbers the ways of each set, in their order.
    #[cold]
    fn renumber(&mut self) {
        for set in self.sets.chunks_exact_mut(2 * self.ways) {
            let stamps = &mut set[self.ways..];
            let mut order: Vec<usize> = (0..stamps.len()).collect();
            order.sort_by_key(|way| stamps[*way]);
            for (rank, way) in order.into_iter().enumerate() {
                // 0 is for empty ways.
                stamps[way] = rank as u32 + 1;
            }
        }
        self.clock = self.ways as u32 + 1;
    }

    #[inline(always)]
    fn victim(&mut self, set: usize) -> usize {
        if self.replacement != Replacement::Lru {
            return self.victim_other(set);
        }
        // Empty ways have the stamp 0, so they come first, the lowest first.
        let base = (set * 2 + 1) * self.ways;
        let stamps = &self.sets[base..base + self.ways];
        match (<&[u32; 8]>::try_from(stamps), <&[u32; 4]>::try_from(stamps)) {
            (Ok(stamps), _) if self.way_mask == 0xFF => {
                let (low, high) = (oldest_of_four(stamps, 0), oldest_of_four(stamps, 4));
                if stamps[high] < stamps[low] {
                    high
                } else {
                    low
                }
            }
            (_, Ok(stamps)) if self.way_mask == 0xF => oldest_of_four(stamps, 0),
            _ => {
                let allowed = |way: &usize| self.way_mask >> way & 1 != 0;
                let oldest = (0..self.ways)
                    .filter(allowed)
                    .min_by_key(|way| stamps[*way]);
                oldest.expect("some way may be filled")
            }
        }
    }

    #[inline(never)]
    fn victim_other(&mut self, set: usize) -> usize {
        let allowed = |way: usize| self.way_mask >> way & 1 != 0;
        let tags = self.tags(set);
        let mut ways = 0..self.ways;
        if self.replacement != Replacement::RandomAny
            && let Some(empty) = ways.find(|w| allowed(*w) && tags[*w] == 0)
        {
            return empty;
        }
        match self.replacement {
            Replacement::Lru => 0,
            Replacement::TreePlru => {
                let (mut node, mut half, mut low) = (0, self.ways / 2, 0);
                while half > 0 {
                    let block = |from: usize| self.way_mask >> from & ((1u64 << half) - 1) != 0;
                    // The tree's choice, unless that half may not be filled at all.
                    let upper = if self.trees[set] >> node & 1 != 0 {
                        block(low + half)
                    } else {
                        !block(low)
                    };
                    low += if upper { half } else { 0 };
                    node = 2 * node + 1 + upper as usize;
                    half /= 2;
                }
                low
            }
            Replacement::Random | Replacement::RandomAny => {
                // xorshift64 (Marsaglia, 2003).
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                let choice = (self.random >> 32) % self.way_mask.count_ones() as u64;
                (0..self.ways)
                    .filter(|w| allowed(*w))
                    .nth(choice as usize)
                    .expect("some way may be filled")
            }
        }
    }

    /// The line at a place ([`Cache::slot_of`]), if there is one.
    pub fn line_at(&self, slot: usize) -> Option<u64> {
        let tag = self.tags(slot / self.ways)[slot % self.ways];
        (tag != 0).then(|| (u64::from(tag) - 1) << self.line_shift)
    }

    /// Ways of a set.
    pub fn ways(&self) -> usize {
        self.ways
    }

    /// Whether the line is here, without any effect.
    pub fn contains(&self, address: u64) -> bool {
        self.way_of(address).is_some()
    }

    fn way_of(&self, address: u64) -> Option<(usize, usize)> {
        let set = self.set_of(address);
        let tag = (address >> self.line_shift) as u32 + 1;
        let way = find(self.tags(set), tag)?;
        Some((set, way))
    }

    /// The way that the next fill of a line would take, among those whose line is not `busy`; and the line in it, if any. `None`: all are
    /// busy. A fill of that way must follow ([`Cache::fill_way`]), because random replacement has moved on.
    pub fn next_victim(
        &mut self,
        address: u64,
        busy: impl Fn(u64) -> bool,
    ) -> Option<(usize, Option<u64>)> {
        let set = self.set_of(address);
        let line = |tag: u32| (u64::from(tag) - 1) << self.line_shift;
        let mut mask = self.way_mask;
        for (way, tag) in self.tags(set).iter().enumerate() {
            if *tag != 0 && busy(line(*tag)) {
                mask &= !(1 << way);
            }
        }
        if mask == 0 {
            return None;
        }
        let all = std::mem::replace(&mut self.way_mask, mask);
        let way = self.victim(set);
        self.way_mask = all;
        let tag = self.tags(set)[way];
        Some((
            way,
            (tag != 0).then(|| (u64::from(tag) - 1) << self.line_shift),
        ))
    }

    /// [`Cache::fill_absent`] of a clean line into this way of its set.
    pub fn fill_way(
        &mut self,
        address: u64,
        way: usize,
        owner: Owner,
        bytes: &[u8],
    ) -> Option<Evicted> {
        let all = std::mem::replace(&mut self.way_mask, 1 << way);
        let evicted = self.fill_absent(address, false, owner, bytes);
        self.way_mask = all;
        evicted
    }

    /// Fills a line for `owner` and returns the line that it evicts ([`Cache::evicted`] has its bytes, if it is dirty). A line that is
    /// already present keeps its bytes, because they are newer than those from below; it only becomes dirty if `dirty` says so. `bytes` are
    /// the line's.
    pub fn fill(
        &mut self,
        address: u64,
        dirty: bool,
        owner: Owner,
        bytes: &[u8],
    ) -> Option<Evicted> {
        if let Some((set, way)) = self.way_of(address) {
            self.slots[set * self.ways + way].dirty |= dirty;
            return None;
        }
        self.fill_absent(address, dirty, owner, bytes)
    }

    /// [`Cache::fill`] of a line that is not here.
    #[inline(never)]
    pub fn fill_absent(
        &mut self,
        address: u64,
        dirty: bool,
        owner: Owner,
        bytes: &[u8],
    ) -> Option<Evicted> {
        self.put(address, dirty, owner, bytes)
    }

    /// [`Cache::fill_absent`], as a part of the function that calls it.
    #[inline(always)]
    fn put(&mut self, address: u64, dirty: bool, owner: Owner, bytes: &[u8]) -> Option<Evicted> {
        self.set_owner(owner);
        self.fills += 1;
        let (ways, shift) = (self.ways, self.line_shift);
        let number = address >> shift;
        let set = (number & self.set_mask) as usize;
        let way = self.victim(set);
        let at = set * ways + way;
        let tag = number as u32 + 1;
        let old = std::mem::replace(&mut self.sets[set * 2 * ways + way], tag);
        let slot = &mut self.slots[at];
        let was_dirty = std::mem::replace(&mut slot.dirty, dirty);
        let filled_by = std::mem::replace(&mut slot.owner, self.current as u16);
        let evicted = (old != 0).then(|| Evicted {
            address: (old as u64 - 1) << shift,
            dirty: was_dirty,
            owner: self.statistics[filled_by as usize].0,
        });
        self.replace(at, evicted, bytes);
        if let Some(e) = evicted {
            let statistics = &mut self.counted.1;
            statistics.evictions += 1;
            statistics.write_backs += e.dirty as u64;
            self.departs(set, old, self.current);
        }
        self.touch(set, way);
        evicted
    }

    /// The line with this tag leaves its set because of the owner at this index.
    #[inline(always)]
    fn departs(&mut self, set: usize, tag: u32, because_of: usize) {
        let next = &mut self.departed_next[set];
        let place = *next;
        let after = place + 1;
        *next = match usize::from(after) == self.ways {
            true => 0,
            false => after,
        };
        let slot = &mut self.slots[set * self.ways + usize::from(place)];
        (slot.departed, slot.departed_by) = (tag, because_of as u16);
    }

    /// Removes a line because `by` wants it.
    pub fn give_up(&mut self, address: u64, by: Owner) {
        let (set, way) = self.way_of(address).expect("it is here");
        let tag = self.tags(set)[way];
        let own = self.counted.0;
        self.set_owner(by);
        let by = self.current;
        self.set_owner(own);
        self.departs(set, tag, by);
        self.invalidate(address);
    }

    /// The owner that evicted this line or made it go, if the line is among the last that left its set and an owner other than `owner` did
    /// that. Counts the miss as caused by that owner.
    #[inline]
    pub fn culprit(&mut self, address: u64, owner: Owner) -> Option<Owner> {
        if !self.has_owners() {
            return None;
        }
        self.culprit_among_many(address, owner)
    }

    /// Whether there is more than one owner, besides "nobody". Otherwise nobody evicts another's line.
    #[inline]
    fn has_owners(&self) -> bool {
        self.statistics.len() > 2
    }

    fn culprit_among_many(&mut self, address: u64, owner: Owner) -> Option<Owner> {
        let set = self.set_of(address);
        let tag = (address >> self.line_shift) as u32 + 1;
        let base = set * self.ways;
        // The newest departure of the line counts: from the one before the next place backwards, then from the end.
        let slots = &self.slots[base..base + self.ways];
        let (recent, ancient) = slots.split_at(self.departed_next[set] as usize);
        let mut newest_first = recent.iter().rev().chain(ancient.iter().rev());
        let departure = newest_first.find(|slot| slot.departed == tag)?;
        let culprit = self.statistics[departure.departed_by as usize].0;
        if culprit == owner {
            return None;
        }
        self.set_owner(owner);
        self.counted.1.misses_by_others += 1;
        Some(culprit)
    }

    /// Removes a line; `Some(dirty)` if it was here.
    pub fn invalidate(&mut self, address: u64) -> Option<bool> {
        let (set, way) = self.way_of(address)?;
        self.sets[set * 2 * self.ways + way] = 0;
        self.sets[(set * 2 + 1) * self.ways + way] = 0;
        let slot = set * self.ways + way;
        self.end_reservations(slot);
        Some(std::mem::take(&mut self.slots[slot].dirty))
    }

    /// Removes every line. Nothing is written back.
    pub fn invalidate_all(&mut self) {
        self.reserved = [NO_SLOT; HARTS];
        for set in self.sets.chunks_exact_mut(2 * self.ways) {
            set.fill(0);
        }
        self.slots.iter_mut().for_each(|slot| slot.dirty = false);
    }

    /// Whether the line is here and was written since it was filled.
    pub fn is_dirty(&self, address: u64) -> bool {
        self.way_of(address)
            .is_some_and(|(set, way)| self.slots[set * self.ways + way].dirty)
    }

    /// Marks a line dirty; false if it is not here.
    pub fn mark_dirty(&mut self, address: u64) -> bool {
        match self.way_of(address) {
            Some((set, way)) => {
                self.slots[set * self.ways + way].dirty = true;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests;
