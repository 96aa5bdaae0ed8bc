//! Data lines known to be in the first-level cache, and their places. The hart uses their bytes without asking again.
//!
//! It exists only to make the simulator fast. It must not change which line the cache replaces: entries are chosen by low bits of
//! the cache's set number, so an entry is always the most recently used line of its set, and using it again does not change the
//! order of use.
//!
//! Beside each entry is the one that was there before, because a copy uses two lines in turn, often of one set. Using that line changes the
//! order, so the cache is told ([`super::bus::Bus::again`]). A miss may evict it, so a miss forgets it.

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
        }
    }

    /// Forgets all lines.
    pub fn forget(&mut self) {
        self.entries = [NONE; ENTRIES];
        self.before = [NONE; ENTRIES];
    }

    /// Forgets the lines whose low four number bits, as a value from 0 to 15, select a set bit of `ends`.
    pub fn forget_some(&mut self, ends: u16) {
        for end in (0..ENTRIES).filter(|end| ends >> end & 1 != 0) {
            self.entries[end & self.index_mask] = NONE;
            self.before[end & self.index_mask] = NONE;
        }
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

    /// The timing of an access, and the place of its bytes, if they are known without asking.
    #[inline]
    pub fn timing(&mut self, now: Tick, physical: u64, store: bool) -> Option<(Timing, Place)> {
        let index = self.index(physical);
        self.entries[index].timing(now, physical, physical & self.line_mask, store)
    }

    /// The same for the line that was known before, which is the known one from now on. The cache must be told of its use.
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
        std::mem::swap(&mut self.entries[index], &mut self.before[index]);
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

    /// The line that was known before becomes the known one. Returns the place of the byte at an address in it. The cache must be told of
    /// its use.
    #[inline(always)]
    pub fn swap(&mut self, physical: u64) -> Place {
        let index = self.index(physical);
        std::mem::swap(&mut self.entries[index], &mut self.before[index]);
        physical.wrapping_add(self.entries[index].delta)
    }

    /// Notes the answer to an access, and the place of its bytes.
    #[inline]
    pub fn note(&mut self, physical: u64, timing: Timing, place: Place, store: bool) {
        let index = self.index(physical);
        let line = physical & self.line_mask;
        let known = &mut self.entries[index];
        let (tag, ready) = match timing {
            Timing::Hit => {
                if known.load & !COMING != line {
                    self.before[index] = *known;
                }
                (line, 0)
            }
            Timing::Ready(at) => {
                self.before[index] = NONE;
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
            delta: place.wrapping_sub(physical),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_used_last_in_its_set_is_known() {
        // Two sets of 64-byte lines: 0x000 and 0x080 share a set, 0x040 is in the other.
        let mut lines = KnownLines::new(64, 2);
        let loads = |lines: &KnownLines, at| lines.load_place(at).is_some();
        let stores = |lines: &KnownLines, at| lines.store_place(at).is_some();
        lines.note(0x000, Timing::Hit, 0x500, true);
        lines.note(0x048, Timing::Ready(50), 0x648, false);
        assert_eq!(lines.load_place(0x030), Some(0x530));
        assert!(stores(&lines, 0x008) && !loads(&lines, 0x080) && !loads(&lines, 0x040));
        assert_eq!(
            lines.timing(49, 0x040, false),
            Some((Timing::Ready(50), 0x640))
        );
        assert_eq!(lines.timing(49, 0x040, true), None);
        assert_eq!(lines.timing(50, 0x040, false), Some((Timing::Hit, 0x640)));
        assert!(loads(&lines, 0x040) && !stores(&lines, 0x040));
        lines.note(0x080, Timing::Hit, 0, false);
        assert!(!loads(&lines, 0x000) && loads(&lines, 0x080) && !stores(&lines, 0x080));
        lines.note(0x080, Timing::Pending(1), 0, false);
        assert!(!loads(&lines, 0x080) && loads(&lines, 0x040));
        lines.forget();
        assert!(!loads(&lines, 0x040));
    }

    #[test]
    fn the_line_before_is_known_until_a_miss_may_evict_it() {
        // One entry; both lines are in the cache, the earlier one is dirty.
        let two = || {
            let mut lines = KnownLines::new(64, 1);
            lines.note(0x000, Timing::Hit, 0x500, true);
            lines.note(0x040, Timing::Hit, 0x640, false);
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
        lines.note(0x040, Timing::Hit, 0x640, true);
        let known = lines.timing_before(0, 0x000, true);
        assert_eq!(known, Some((Timing::Hit, 0x500)));
        for miss in [Timing::Ready(50), Timing::ReadyOnce(50), Timing::Pending(1)] {
            for line in [0x040, 0x080] {
                let mut lines = two();
                lines.note(line, miss, 0x700, false);
                assert_eq!(lines.timing_before(90, 0x000, false), None, "{miss:?}");
            }
        }
        // A line that was on its way when another one came is known as such, and as a hit once it has arrived.
        let mut lines = KnownLines::new(64, 1);
        lines.note(0x000, Timing::Ready(50), 0x500, false);
        lines.note(0x040, Timing::Hit, 0x640, false);
        assert!(!lines.loads_before(0x000), "it has not come");
        let known = lines.timing_before(49, 0x000, false);
        assert_eq!(known, Some((Timing::Ready(50), 0x500)));
        let known = lines.timing(50, 0x000, false);
        assert_eq!(known, Some((Timing::Hit, 0x500)));
        assert_eq!(
            lines.timing_before(50, 0x040, false),
            Some((Timing::Hit, 0x640))
        );
        lines.forget();
        assert_eq!(lines.timing_before(50, 0x000, false), None);
    }

    #[test]
    fn lines_are_forgotten_by_the_end_of_their_number() {
        for (sets, kept) in [(64, [true, false]), (1, [false, false])] {
            let mut lines = KnownLines::new(64, sets);
            lines.note(0x1040, Timing::Hit, 0, true);
            lines.note(0x1080, Timing::Hit, 0, true);
            lines.forget_some(1 << 2);
            let known = [0x1040, 0x1080].map(|at| lines.store_place(at).is_some());
            assert_eq!(known, kept, "{sets} sets");
        }
    }

    #[test]
    fn never_more_entries_than_sets() {
        let mut lines = KnownLines::new(64, 1);
        lines.note(0x000, Timing::Hit, 0, false);
        lines.note(0x040, Timing::Hit, 0x40, false);
        assert_eq!(
            (lines.load_place(0x000), lines.load_place(0x040)),
            (None, Some(0x40))
        );
    }
}
