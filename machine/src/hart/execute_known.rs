//! Loads and stores to lines that the hart knows ([`super::lines`]).
//!
//! Why it exists: these are most accesses, and each takes little of the host's time. It also tells the caches what the hart has used without
//! asking. It deliberately does not know how a line is asked for ([`super::execute_memory`]).

use super::bus::{Bus, Place, Timing};
use super::core::Core;
use super::isa::Op;
use super::pending::Completion;
use crate::types::Tick;

impl Core {
    /// The timing of an access and the place of its bytes, if the hart may remember lines and knows this one.
    #[inline(always)]
    pub(super) fn known_line<B: Bus>(
        &mut self,
        bus: &mut B,
        now: Tick,
        physical: u64,
        store: bool,
    ) -> Option<(Timing, Place)> {
        if B::EVERY_ACCESS {
            return None;
        }
        let known = self.lines.timing(now, physical, store);
        if known.is_some() {
            return known;
        }
        let known = self.lines.timing_before(now, physical, store)?;
        debug_assert!(bus.is_at(physical, known.1), "{physical:#x}: {known:?}");
        Some(known)
    }

    /// A load from a known line that arrives at `at`.
    #[inline(never)]
    pub(super) fn load_coming<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        op: &Op,
        at: Tick,
        place: Place,
    ) -> u64 {
        self.statistics.loads += 1;
        self.statistics.data_misses += 1;
        self.push_pending(op.load_destination(), Completion::At(at));
        bus.read_place(place, BYTES as u8)
    }

    /// A store to a known dirty line that arrives at `at`.
    #[inline(never)]
    pub(super) fn store_coming<B: Bus, const BYTES: u64>(
        &mut self,
        bus: &mut B,
        at: Tick,
        place: Place,
        value: u64,
    ) {
        self.statistics.stores += 1;
        self.statistics.data_misses += 1;
        bus.write_place(place, BYTES as u8, value);
        self.stores.push(Completion::At(at));
    }

    /// Tells the cache which of the lines that were used in turn was the last. Must come before anyone else can see their order of use, and
    /// before lines are forgotten.
    #[inline(always)]
    pub fn settle<B: Bus>(&mut self, bus: &mut B) {
        if self.lines.are_turned() {
            self.settle_turned(bus);
        }
    }

    #[inline(never)]
    fn settle_turned<B: Bus>(&mut self, bus: &mut B) {
        while let Some((line, place, times)) = self.lines.take_turned() {
            debug_assert!(bus.is_at(line, place), "{line:#x}: {place:#x}");
            bus.again(line, place, times);
        }
    }
}
