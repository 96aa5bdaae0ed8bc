//! Data lines that are surely in the first-level cache, so that the hart need not ask for their timing again.
//!
//! Only makes the simulator fast. It must not change what the cache replaces: entries are chosen by low bits of the cache's
//! set number, so an entry is always the line used last in its set, and using that one again changes no order of use.

use super::bus::Timing;
use crate::types::Tick;

const ENTRIES: usize = 16;
/// In an entry: the line is dirty in the cache. Lines have at least 16 bytes.
const DIRTY: u64 = 1;
const NONE: Known = Known {
    line: u64::MAX,
    ready: 0,
};

#[derive(Clone, Copy)]
struct Known {
    /// Address of the line and [`DIRTY`].
    line: u64,
    /// When the line arrives; 0 once it is known to be there.
    ready: Tick,
}

/// See the module's documentation.
#[derive(Clone)]
pub struct KnownLines {
    entries: [Known; ENTRIES],
    shift: u32,
    line_mask: u64,
    index_mask: usize,
}

impl KnownLines {
    /// For lines of so many bytes (a power of two) in a cache of so many sets (at least that many).
    pub fn new(line: u64, sets: u64) -> Self {
        // The greatest power of two that is not above the number of sets.
        let entries = 1usize << sets.clamp(1, ENTRIES as u64).ilog2();
        Self {
            entries: [NONE; ENTRIES],
            shift: line.trailing_zeros(),
            line_mask: !(line - 1),
            index_mask: entries - 1,
        }
    }

    /// Forgets all.
    pub fn forget(&mut self) {
        self.entries = [NONE; ENTRIES];
    }

    #[inline(always)]
    fn index(&self, physical: u64) -> usize {
        (physical >> self.shift) as usize & self.index_mask & (ENTRIES - 1)
    }

    /// Whether a load surely hits.
    #[inline(always)]
    pub fn load_hits(&self, physical: u64) -> bool {
        let known = &self.entries[self.index(physical)];
        (known.line ^ physical) & self.line_mask == 0 && known.ready == 0
    }

    /// Whether a store surely hits a line that is dirty already.
    #[inline(always)]
    pub fn store_hits(&self, physical: u64) -> bool {
        let known = &self.entries[self.index(physical)];
        known.line == (physical & self.line_mask) | DIRTY && known.ready == 0
    }

    /// The timing of an access if it is known without asking.
    #[inline]
    pub fn timing(&mut self, now: Tick, physical: u64, store: bool) -> Option<Timing> {
        let index = self.index(physical);
        let known = &mut self.entries[index];
        let line = physical & self.line_mask;
        if known.line & self.line_mask != line || (store && known.line & DIRTY == 0) {
            return None;
        }
        if now < known.ready {
            return Some(Timing::Ready(known.ready));
        }
        known.ready = 0;
        Some(Timing::Hit)
    }

    /// Notes the answer to an access.
    #[inline]
    pub fn note(&mut self, physical: u64, timing: Timing, store: bool) {
        let index = self.index(physical);
        let line = physical & self.line_mask;
        let known = &mut self.entries[index];
        let ready = match timing {
            Timing::Hit => 0,
            Timing::Ready(at) => at,
            Timing::ReadyOnce(_) | Timing::Pending(_) => {
                *known = NONE;
                return;
            }
        };
        let dirty = store || known.line == line | DIRTY;
        *known = Known {
            line: line | dirty as u64,
            ready,
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
        lines.note(0x000, Timing::Hit, true);
        lines.note(0x048, Timing::Ready(50), false);
        assert!(lines.load_hits(0x030) && lines.store_hits(0x008) && !lines.load_hits(0x080));
        assert!(!lines.load_hits(0x040));
        assert_eq!(lines.timing(49, 0x040, false), Some(Timing::Ready(50)));
        assert_eq!(lines.timing(49, 0x040, true), None);
        assert_eq!(lines.timing(50, 0x040, false), Some(Timing::Hit));
        assert!(lines.load_hits(0x040) && !lines.store_hits(0x040));
        lines.note(0x080, Timing::Hit, false);
        assert!(!lines.load_hits(0x000) && lines.load_hits(0x080) && !lines.store_hits(0x080));
        lines.note(0x080, Timing::Pending(1), false);
        assert!(!lines.load_hits(0x080) && lines.load_hits(0x040));
        lines.forget();
        assert!(!lines.load_hits(0x040));
    }

    #[test]
    fn never_more_entries_than_sets() {
        let mut lines = KnownLines::new(64, 1);
        lines.note(0x000, Timing::Hit, false);
        lines.note(0x040, Timing::Hit, false);
        assert!(!lines.load_hits(0x000) && lines.load_hits(0x040));
    }
}
