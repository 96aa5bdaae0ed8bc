//! Data lines known to be in the first-level cache, and their places. The hart uses their bytes without asking again.
//!
//! It exists only to make the simulator fast. It must not change which line the cache replaces: entries are chosen by low bits of
//! the cache's set number, so an entry is always the most recently used line of its set, and using it again does not change the
//! order of use.
//!
//! Beside each entry is the one that was there before, because a copy uses two lines in turn, often of one set. Using that line changes the
//! order. The cache is told which of the two was used last ([`super::bus::Bus::again`]), not at once, but before anyone can see the order:
//! before the hart asks for a line or stops ([`Core::settle`](super::core::Core::settle)). That is enough, because both were used after all
//! others of their sets. A miss evicts the line of the place that it fills, so it forgets that one.

use super::bus::{Place, Timing};
use crate::types::Tick;

const ENTRIES: usize = 16;
/// In a tag: the line is on its way. Lines have at least 16 bytes.
const COMING: u64 = 1;
/// A tag that matches no address.
const NOTHING: u64 = u64::MAX;
const NONE: Known = Known {
    load: NOTHING,
    store: NOTHING,
    ready: 0,
    delta: 0,
};

#[derive(Clone, Copy)]
struct Known {
    /// Address of the line: loads hit.
    load: u64,
    /// Address of the line if it is dirty in the cache: stores hit.
    store: u64,
    /// When the line arrives; valid while the tags say that it is on its way.
    ready: Tick,
    /// Place of the line's bytes minus the physical address.
    delta: u64,
}

impl Known {
    /// The place of the line's first byte.
    #[inline(always)]
    fn place(&self) -> Place {
        (self.load & !COMING).wrapping_add(self.delta)
    }

    #[inline(always)]
    fn timing(
        &mut self,
        now: Tick,
        physical: u64,
        line: u64,
        store: bool,
    ) -> Option<(Timing, Place)> {
        let tag = if store { self.store } else { self.load };
        if tag & !COMING != line {
            return None;
        }
        let place = physical.wrapping_add(self.delta);
        if tag & COMING != 0 {
            if now < self.ready {
                return Some((Timing::Ready(self.ready), place));
            }
            self.load = line;
            if self.store != NOTHING {
                self.store = line;
            }
        }
        Some((Timing::Hit, place))
    }
}

/// See the module's documentation.
#[derive(Clone)]
pub struct KnownLines {
    entries: [Known; ENTRIES],
    before: [Known; ENTRIES],
    shift: u32,
    line_mask: u64,
    index_mask: usize,
    /// Bit i: the cache has not been told that the entry i was used after the one before it.
    turned: u16,
    /// How often the hart used a line that was known before, as far as the cache has not been told.
    turns: u64,
}

impl KnownLines {
    /// For lines of `line` bytes (a power of two) in a cache of at least `sets` sets.
    pub fn new(line: u64, sets: u64) -> Self {
        // The greatest power of two that is not above the number of sets.
        let entries = 1usize << sets.clamp(1, ENTRIES as u64).ilog2();
        Self {
            entries: [NONE; ENTRIES],
            before: [NONE; ENTRIES],
            shift: line.trailing_zeros(),
            line_mask: !(line - 1),
            index_mask: entries - 1,
            turned: 0,
            turns: 0,
        }
    }

    /// Forgets all lines.
    pub fn forget(&mut self) {
        self.assert_told();
        self.entries = [NONE; ENTRIES];
        self.before = [NONE; ENTRIES];
    }

    /// Forgets the lines whose low four number bits, as a value from 0 to 15, select a set bit of `ends`.
    pub fn forget_some(&mut self, ends: u16) {
        self.assert_told();
        for end in (0..ENTRIES).filter(|end| ends >> end & 1 != 0) {
            self.entries[end & self.index_mask] = NONE;
            self.before[end & self.index_mask] = NONE;
        }
    }

    /// What the cache must still be told may not be forgotten.
    #[inline(always)]
    fn assert_told(&self) {
        assert!(
            self.turned == 0,
            "lines are forgotten whose order the cache does not know: entries {:#06x}",
            self.turned
        );
    }

    /// Whether the cache has to be told what was used last ([`Self::take_turned`]).
    #[inline(always)]
    pub fn are_turned(&self) -> bool {
        self.turned != 0
    }

    /// A line that was used after the one before it, and its place; and how often lines were used in turn since the cache was told.
    #[inline(always)]
    pub fn take_turned(&mut self) -> Option<(u64, Place, u64)> {
        if self.turned == 0 {
            return None;
        }
        let index = self.turned.trailing_zeros() as usize;
        self.turned &= self.turned - 1;
        let last = &self.entries[index & (ENTRIES - 1)];
        let turns = std::mem::take(&mut self.turns);
        Some((last.load & !COMING, last.place(), turns))
    }

    #[inline(always)]
    fn index(&self, physical: u64) -> usize {
        (physical >> self.shift) as usize & self.index_mask & (ENTRIES - 1)
    }

    /// The place of a load's bytes, if the load is known to hit.
    #[inline(always)]
    pub fn load_place(&self, physical: u64) -> Option<Place> {
        let known = &self.entries[self.index(physical)];
        (known.load == physical & self.line_mask).then(|| physical.wrapping_add(known.delta))
    }

    /// The place of a store's bytes, if the store is known to hit a line that is already dirty.
    #[inline(always)]
    pub fn store_place(&self, physical: u64) -> Option<Place> {
        let known = &self.entries[self.index(physical)];
        (known.store == physical & self.line_mask).then(|| physical.wrapping_add(known.delta))
    }

    /// When the line of an access arrives, and the place of its bytes, if it is known to be on its way `now`.
    #[inline(always)]
    pub fn coming(&self, now: Tick, physical: u64, store: bool) -> Option<(Tick, Place)> {
        let known = &self.entries[self.index(physical)];
        let tag = if store { known.store } else { known.load };
        let coming = tag == physical & self.line_mask | COMING && now < known.ready;
        coming.then(|| (known.ready, physical.wrapping_add(known.delta)))
    }

    /// The timing of an access, and the place of its bytes, if they are known without asking.
    #[inline]
    pub fn timing(&mut self, now: Tick, physical: u64, store: bool) -> Option<(Timing, Place)> {
        let index = self.index(physical);
        self.entries[index].timing(now, physical, physical & self.line_mask, store)
    }

    /// The same for the line that was known before, which is the known one from now on.
    #[inline]
    pub fn timing_before(
        &mut self,
        now: Tick,
        physical: u64,
        store: bool,
    ) -> Option<(Timing, Place)> {
        let index = self.index(physical);
        let line = physical & self.line_mask;
        let known = self.before[index].timing(now, physical, line, store)?;
        self.turn(index);
        Some(known)
    }

    /// Whether a load is known to hit the line that was known before ([`Self::swap`]).
    #[inline(always)]
    pub fn loads_before(&self, physical: u64) -> bool {
        self.before[self.index(physical)].load == physical & self.line_mask
    }

    /// Whether a store is known to hit the line that was known before, which is dirty ([`Self::swap`]).
    #[inline(always)]
    pub fn stores_before(&self, physical: u64) -> bool {
        self.before[self.index(physical)].store == physical & self.line_mask
    }

    #[inline(always)]
    fn turn(&mut self, index: usize) {
        std::mem::swap(&mut self.entries[index], &mut self.before[index]);
        self.turned |= 1 << index;
        self.turns += 1;
    }

    /// The line that was known before becomes the known one. Returns the place of the byte at an address in it.
    #[inline(always)]
    pub fn swap(&mut self, physical: u64) -> Place {
        let index = self.index(physical);
        self.turn(index);
        physical.wrapping_add(self.entries[index].delta)
    }

    /// Notes the answer to an access, and the place of its bytes. `in_turn`: the line known until now may be used again, unless the new one has
    /// its place.
    #[inline]
    pub fn note(
        &mut self,
        physical: u64,
        timing: Timing,
        place: Place,
        store: bool,
        in_turn: bool,
    ) {
        self.assert_told();
        let index = self.index(physical);
        let line = physical & self.line_mask;
        let known = &mut self.entries[index];
        let delta = place.wrapping_sub(physical);
        let other = in_turn && known.load & !COMING != line;
        let (tag, ready) = match timing {
            Timing::Hit => {
                if other {
                    self.before[index] = *known;
                }
                (line, 0)
            }
            Timing::Ready(at) => {
                let stays = other && known.place() != line.wrapping_add(delta);
                self.before[index] = if stays { *known } else { NONE };
                (line | COMING, at)
            }
            Timing::ReadyOnce(_) | Timing::Pending(_) => {
                *known = NONE;
                self.before[index] = NONE;
                return;
            }
        };
        let dirty = store || known.store & !COMING == line;
        *known = Known {
            load: tag,
            store: if dirty { tag } else { NOTHING },
            ready,
            delta,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::config::{CacheConfig, Replacement};
    use crate::types::Owner;

    fn note(lines: &mut KnownLines, physical: u64, timing: Timing, place: Place, store: bool) {
        // The cache has been told.
        while lines.take_turned().is_some() {}
        lines.note(physical, timing, place, store, true);
    }

    #[test]
    fn the_cache_is_told_once_of_lines_in_turn() {
        // Two entries; a pair of lines in each.
        let mut lines = KnownLines::new(64, 2);
        for line in [0x000, 0x080, 0x040, 0x0c0] {
            note(&mut lines, line, Timing::Hit, 0x500 + line, false);
        }
        assert_eq!(lines.take_turned(), None);
        for line in [0x000, 0x080, 0x000, 0x040] {
            assert!(lines.loads_before(line));
            assert_eq!(lines.swap(line + 8), 0x508 + line);
        }
        assert!(lines.are_turned());
        assert_eq!(lines.take_turned(), Some((0x000, 0x500, 4)));
        assert_eq!(lines.take_turned(), Some((0x040, 0x540, 0)));
        assert_eq!(lines.take_turned(), None);
        // Where the hart must ask, no line is known before.
        let mut lines = KnownLines::new(64, 1);
        for line in [0x000, 0x040] {
            lines.note(line, Timing::Hit, line, true, false);
        }
        assert!(!lines.loads_before(0x000) && !lines.stores_before(0x000));
    }

    #[test]
    fn only_the_line_used_last_in_its_set_is_known() {
        // Two sets of 64-byte lines: 0x000 and 0x080 share a set, 0x040 is in the other.
        let mut lines = KnownLines::new(64, 2);
        let loads = |lines: &KnownLines, at| lines.load_place(at).is_some();
        let stores = |lines: &KnownLines, at| lines.store_place(at).is_some();
        note(&mut lines, 0x000, Timing::Hit, 0x500, true);
        note(&mut lines, 0x048, Timing::Ready(50), 0x648, false);
        assert_eq!(lines.load_place(0x030), Some(0x530));
        assert!(stores(&lines, 0x008) && !loads(&lines, 0x080) && !loads(&lines, 0x040));
        assert_eq!(
            lines.timing(49, 0x040, false),
            Some((Timing::Ready(50), 0x640))
        );
        assert_eq!(lines.timing(49, 0x040, true), None);
        assert_eq!(lines.timing(50, 0x040, false), Some((Timing::Hit, 0x640)));
        assert!(loads(&lines, 0x040) && !stores(&lines, 0x040));
        note(&mut lines, 0x080, Timing::Hit, 0, false);
        assert!(!loads(&lines, 0x000) && loads(&lines, 0x080) && !stores(&lines, 0x080));
        note(&mut lines, 0x080, Timing::Pending(1), 0, false);
        assert!(!loads(&lines, 0x080) && loads(&lines, 0x040));
        while lines.take_turned().is_some() {}
        lines.forget();
        assert!(!loads(&lines, 0x040));
    }

    #[test]
    fn the_line_before_is_known_until_a_miss_may_evict_it() {
        // One entry; both lines are in the cache, the earlier one is dirty.
        let two = || {
            let mut lines = KnownLines::new(64, 1);
            note(&mut lines, 0x000, Timing::Hit, 0x500, true);
            note(&mut lines, 0x040, Timing::Hit, 0x640, false);
            lines
        };
        let mut lines = two();
        assert!(lines.loads_before(0x030) && lines.stores_before(0x008));
        assert_eq!(lines.swap(0x008), 0x508);
        assert!(lines.loads_before(0x048) && !lines.stores_before(0x048));
        assert_eq!(lines.swap(0x048), 0x648);
        assert_eq!(lines.timing_before(0, 0x040, false), None, "not the last");
        assert_eq!(lines.timing_before(0, 0x080, false), None, "never seen");
        // A store hits because the line was dirty, and still is after the swap.
        let known = lines.timing_before(0, 0x008, true);
        assert_eq!(known, Some((Timing::Hit, 0x508)));
        assert_eq!(lines.store_place(0x010), Some(0x510));
        assert_eq!(lines.load_place(0x040), None);
        // Now the other one is the line before; it is clean, so only loads hit, and a store changes nothing.
        assert_eq!(lines.timing_before(0, 0x040, true), None);
        assert_eq!(lines.store_place(0x000), Some(0x500));
        let known = lines.timing_before(0, 0x048, false);
        assert_eq!(known, Some((Timing::Hit, 0x648)));
        assert_eq!(lines.store_place(0x040), None);
        // Using the last line again does not push the line before out.
        note(&mut lines, 0x040, Timing::Hit, 0x640, true);
        let known = lines.timing_before(0, 0x000, true);
        assert_eq!(known, Some((Timing::Hit, 0x500)));
        for miss in [Timing::Ready(50), Timing::ReadyOnce(50), Timing::Pending(1)] {
            for line in [0x040, 0x080] {
                let mut lines = two();
                note(&mut lines, line, miss, 0x700, false);
                assert_eq!(lines.timing_before(90, 0x000, false), None, "{miss:?}");
            }
        }
        // The line before stays if a line comes to another place.
        for (place, stays) in [(0x700, true), (0x640, false)] {
            let mut lines = two();
            note(&mut lines, 0x080, Timing::Ready(50), place, false);
            let hits = stays.then_some((Timing::Hit, 0x648));
            assert_eq!(lines.timing_before(10, 0x048, false), hits, "{place:#x}");
            assert_eq!(lines.timing(10, 0x080, false).is_some(), !stays);
        }
        // A line that was on its way when another one came is known as such, and as a hit once it has arrived.
        let mut lines = KnownLines::new(64, 1);
        note(&mut lines, 0x000, Timing::Ready(50), 0x500, false);
        note(&mut lines, 0x040, Timing::Hit, 0x640, false);
        assert!(!lines.loads_before(0x000), "it has not come");
        let known = lines.timing_before(49, 0x000, false);
        assert_eq!(known, Some((Timing::Ready(50), 0x500)));
        let known = lines.timing(50, 0x000, false);
        assert_eq!(known, Some((Timing::Hit, 0x500)));
        assert_eq!(
            lines.timing_before(50, 0x040, false),
            Some((Timing::Hit, 0x640))
        );
        while lines.take_turned().is_some() {}
        lines.forget();
        assert_eq!(lines.timing_before(50, 0x000, false), None);
    }

    #[test]
    fn lines_are_forgotten_by_the_end_of_their_number() {
        for (sets, kept) in [(64, [true, false]), (1, [false, false])] {
            let mut lines = KnownLines::new(64, sets);
            note(&mut lines, 0x1040, Timing::Hit, 0, true);
            note(&mut lines, 0x1080, Timing::Hit, 0, true);
            lines.forget_some(1 << 2);
            let known = [0x1040, 0x1080].map(|at| lines.store_place(at).is_some());
            assert_eq!(known, kept, "{sets} sets");
        }
    }

    #[test]
    fn never_more_entries_than_sets() {
        let mut lines = KnownLines::new(64, 1);
        note(&mut lines, 0x000, Timing::Hit, 0, false);
        note(&mut lines, 0x040, Timing::Hit, 0x40, false);
        assert_eq!(
            (lines.load_place(0x000), lines.load_place(0x040)),
            (None, Some(0x40))
        );
    }

    /// Uses lines in an order, as a hart does that asks for each, and as one that remembers lines and tells the cache late. Both caches must hit
    /// and evict the same.
    fn use_lines(sets: u64, ways: u32, replacement: Replacement, uses: &[(u64, u8)]) {
        let config = CacheConfig {
            size: sets * u64::from(ways) * 64,
            ways,
            replacement,
            ..CacheConfig::default()
        };
        let [mut asked, mut told] = [Cache::new(&config, 1), Cache::new(&config, 1)];
        let mut lines = KnownLines::new(64, sets);
        let owner = Owner::new(0, 1);
        for (now, &(number, kind)) in (0..).zip(uses) {
            let address = number * 64;
            let hit = asked.access(address, false);
            let mut evicted = None;
            if !hit {
                evicted = asked.fill(address, false, owner, &[0; 64]);
            }
            let tell = |lines: &mut KnownLines, told: &mut Cache| {
                while let Some((_, place, times)) = lines.take_turned() {
                    told.again(place as usize, times);
                }
            };
            if kind == 0 {
                tell(&mut lines, &mut told);
            }
            let mut known = lines.load_place(address).is_some();
            if !known && lines.loads_before(address) {
                lines.swap(address);
                known = true;
            }
            known = known || lines.timing(now, address, false).is_some();
            known = known || lines.timing_before(now, address, false).is_some();
            if known {
                assert!(hit, "{address:#x} is known and was evicted: {uses:?}");
                continue;
            }
            tell(&mut lines, &mut told);
            assert_eq!(told.access(address, false), hit, "{address:#x}: {uses:?}");
            let mut timing = Timing::Hit;
            if !hit {
                let other = told.fill(address, false, owner, &[0; 64]);
                assert_eq!(other, evicted, "{address:#x}: {uses:?}");
                timing = match kind {
                    1 => Timing::Pending(1),
                    _ => Timing::Ready(now + u64::from(kind)),
                };
            }
            let place = told.recent_place(address) as Place;
            lines.note(address, timing, place, false, true);
            if timing == Timing::Pending(1) {
                lines.forget();
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn a_cache_that_is_told_late_evicts_the_same(
            sets in 0u32..7,
            ways in 0u32..4,
            tree in proptest::bool::ANY,
            uses in proptest::collection::vec((0u64..6, 0u64..3, 0u8..8), 1..200),
        ) {
            let replacement = if tree { Replacement::TreePlru } else { Replacement::Lru };
            // Mostly lines of one set, or of sets that share an entry.
            let uses: Vec<_> = uses.iter().map(|(high, low, kind)| (high * 16 + low, *kind)).collect();
            use_lines(1 << sets, 1 << ways, replacement, &uses);
        }
    }
}
