//! Zicntr and Zihpm: cycle, instret and 29 event counters, as views of what the hart and its caches count. Also Sscofpmf: filters by
//! mode, overflow bits and the overflow interrupt.
//!
//! A counter is the difference between a count and an offset, so counting costs nothing while the hart runs. While it does not count
//! (`mcountinhibit`, or a filter of the current mode), its value is kept. An overflow is detected after the instruction that caused the
//! event: while a counter that requests an interrupt is near its end ([`NEAR`]), the hart checks after every instruction.
//! `bulkhead_abi::hpm` lists the events.

use super::bus::{Bus, CacheEvents};
use super::core::{Core, Privilege};
use super::statistics::HartStatistics;
use crate::types::Tick;
use bulkhead_abi::hpm::{
    EVENT_MASK, Event, NOT_MACHINE, NOT_SUPERVISOR, NOT_USER, OVERFLOW, OVERFLOW_INTERRUPT,
};

/// A counter this close to its end may overflow within one call of [`super::Hart::run`]. The distance is more events than a host can
/// simulate in hours.
const NEAR: u64 = 1 << 40;

/// Bits of `mhpmevent` that exist.
const WRITABLE: u64 = OVERFLOW | NOT_MACHINE | NOT_SUPERVISOR | NOT_USER | EVENT_MASK;

/// Registers of the counters.
#[derive(Clone, Default)]
#[repr(C)] // What the hart looks at before it runs comes first.
pub struct Counters {
    /// Bit i: counter i has a filter.
    filtered: u32,
    /// Bit i: counter i counts something and requests an interrupt when it overflows.
    asks: u32,
    /// Bit i: counter i is one of these and is near its end.
    watched: u32,
    /// `mcountinhibit`.
    pub inhibit: u32,
    /// `mhpmevent`.
    events: [u64; 32],
    /// While counting, the value is source - offset; otherwise it is in `frozen`.
    offset: [u64; 32],
    frozen: [u64; 32],
    /// The value when the hart last checked for an overflow.
    last: [u64; 32],
    /// Event counts of the caches when the hart last asked them.
    caches: CacheEvents,
}

/// Numbers of the bits of a mask.
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |index| mask >> index & 1 != 0)
}

impl Counters {
    /// `mhpmevent` of a counter.
    pub fn event(&self, index: usize) -> u64 {
        self.events[index]
    }

    /// `scountovf` for a reader that may see these counters.
    pub fn overflows(&self, visible: u32) -> u64 {
        let set = |index: &usize| self.events[*index] & OVERFLOW != 0;
        bits(visible)
            .filter(set)
            .fold(0, |all, index| all | 1 << index)
    }

    /// Whether the hart must check for overflows after every instruction.
    #[inline(always)]
    pub fn is_watched(&self) -> bool {
        self.watched != 0
    }

    /// Whether the counter counts in this mode.
    fn counts(&self, index: usize, mode: Privilege) -> bool {
        let filter = match mode {
            Privilege::Machine => NOT_MACHINE,
            Privilege::Supervisor => NOT_SUPERVISOR,
            Privilege::User => NOT_USER,
        };
        self.inhibit >> index & 1 == 0 && self.events[index] & filter == 0
    }

    /// 1 if the counter would count the instruction being executed, which it must not.
    fn retiring(&self, index: usize) -> u64 {
        let instructions =
            index == 2 || self.events[index] & EVENT_MASK == Event::Instruction as u64;
        instructions.into()
    }
}

fn selected(event: Event, hart: &HartStatistics, caches: &CacheEvents, cycle: Tick) -> u64 {
    match event {
        Event::FetchMiss => hart.fetch_misses,
        Event::DataMiss => hart.data_misses,
        Event::Misprediction => hart.mispredictions,
        Event::FetchTlbMiss => hart.fetch_tlb_misses,
        Event::DataTlbMiss => hart.data_tlb_misses,
        Event::Branch => hart.branches,
        Event::Load => hart.loads,
        Event::Store => hart.stores,
        Event::Trap => hart.traps,
        Event::Walk => hart.walks,
        Event::DeviceAccess => hart.device_accesses,
        Event::Cycle => unreachable!("cycles need the time"),
        Event::Instruction => hart.instructions,
        Event::Interrupt => hart.interrupts,
        Event::FetchRefill => caches.fetch_refills,
        Event::DataRefill => caches.data_refills,
        Event::DataWriteBack => caches.data_write_backs,
        Event::SecondAccess => caches.second_accesses,
        Event::SecondMiss => caches.second_misses,
        Event::SecondRefill => caches.second_refills,
        Event::SecondWriteBack => caches.second_write_backs,
        Event::StallFetch => hart.stall_fetch / cycle,
        Event::StallLoad => hart.stall_load / cycle,
        Event::StallStore => hart.stall_store / cycle,
        Event::StallTranslation => hart.stall_translation / cycle,
        Event::StallBranch => hart.stall_branch / cycle,
        Event::StallDevice => hart.stall_device / cycle,
        Event::StallTrap => hart.stall_trap / cycle,
        Event::Sleep => hart.slept / cycle,
        Event::DataPrefetch => caches.data_prefetches,
        Event::SecondPrefetch => caches.second_prefetches,
        Event::SecondPrefetchUsed => caches.second_prefetches_used,
        Event::SecondPrefetchLate => caches.second_prefetches_late,
    }
}

impl Core {
    /// Asks the caches what they have counted for this hart.
    #[inline]
    pub fn ask_caches<B: Bus>(&mut self, bus: &B) {
        self.counters.caches = bus.cache_events();
    }

    /// Asks the caches before the mode changes, if a counter stops or may overflow then.
    #[inline]
    pub fn ask_caches_before_a_mode<B: Bus>(&mut self, bus: &B) {
        if self.counters.filtered | self.counters.watched != 0 {
            self.ask_caches(bus);
        }
    }

    fn counter_source(&self, index: usize, now: Tick) -> u64 {
        let cycles = || (now - self.reset_time) / self.costs.cycle;
        match index {
            0 => cycles(),
            2 => self.statistics.instructions,
            _ => match Event::of(self.counters.events[index] & EVENT_MASK) {
                None => 0,
                Some(Event::Cycle) => cycles(),
                Some(event) => {
                    let (hart, caches) = (&self.statistics, &self.counters.caches);
                    selected(event, hart, caches, self.costs.cycle)
                }
            },
        }
    }

    /// All counters restart from 0 (the statistics continue across a reset).
    pub fn restart_counters(&mut self) {
        self.counters = Counters::default();
        self.counters.offset[2] = self.statistics.instructions;
    }

    /// The value of counter `index` (0 cycle, 2 instret, 3 to 31 events).
    pub fn counter(&self, index: usize, now: Tick) -> u64 {
        if self.counters.counts(index, self.privilege) {
            self.counter_source(index, now)
                .wrapping_sub(self.counters.offset[index])
        } else {
            self.counters.frozen[index]
        }
    }

    /// Gives a counter a new value to continue from. The instruction being executed is not counted.
    fn put_counter(&mut self, index: usize, value: u64, now: Tick) {
        let source = self.counter_source(index, now);
        let counters = &mut self.counters;
        counters.frozen[index] = value;
        counters.last[index] = value;
        let source = source.wrapping_add(counters.retiring(index));
        counters.offset[index] = source.wrapping_sub(value);
    }

    /// Writes a counter. The next instruction sees exactly this value of instret.
    pub fn set_counter(&mut self, index: usize, value: u64, now: Tick) {
        self.put_counter(index, value, now);
        self.choose_watched(now);
    }

    /// Writes `mcountinhibit`: stops counters at their value and restarts others from theirs.
    pub fn set_counter_inhibit(&mut self, value: u32, now: Tick) {
        let value = value & !2;
        let changed =
            bits(value ^ self.counters.inhibit).map(|index| (index, self.counter(index, now)));
        let changed: Vec<_> = changed.collect();
        self.counters.inhibit = value;
        for (index, current) in changed {
            self.put_counter(index, current, now);
        }
        self.choose_asking();
        self.choose_watched(now);
    }

    /// Writes `mhpmevent` of a counter, which keeps its value.
    pub fn set_counter_event(&mut self, index: usize, value: u64, now: Tick) {
        let current = self.counter(index, now);
        self.counters.events[index] = value & WRITABLE;
        self.put_counter(index, current, now);
        self.choose_asking();
        self.choose_watched(now);
    }

    /// Changes the mode; counters with filters stop or continue. `retiring`: the change is made by an instruction that retires, which
    /// counts for the mode in which it began.
    pub fn set_mode(&mut self, mode: Privilege, retiring: bool, now: Tick) {
        if self.counters.filtered == 0 {
            self.privilege = mode;
            return;
        }
        if self.counters.is_watched() {
            self.note_overflows(now);
        }
        let mut values = [0; 32];
        for index in bits(self.counters.filtered) {
            let counts = self.counters.counts(index, self.privilege) && retiring;
            values[index] =
                self.counter(index, now) + u64::from(counts) * self.counters.retiring(index);
        }
        self.privilege = mode;
        for index in bits(self.counters.filtered) {
            self.put_counter(index, values[index], now);
            if !retiring {
                // No instruction retires with this change, so the correction in `put_counter` is undone.
                let retired = self.counters.retiring(index);
                self.counters.offset[index] = self.counters.offset[index].wrapping_sub(retired);
            }
        }
    }

    fn choose_asking(&mut self) {
        let counters = &mut self.counters;
        (counters.filtered, counters.asks) = (0, 0);
        for index in 3..32 {
            let event = counters.events[index];
            let filtered = event & (NOT_MACHINE | NOT_SUPERVISOR | NOT_USER) != 0;
            let counts = counters.inhibit >> index & 1 == 0 && event & EVENT_MASK != 0;
            counters.filtered |= u32::from(filtered) << index;
            counters.asks |= u32::from(counts && event & OVERFLOW == 0) << index;
        }
    }

    /// Which counters may overflow before this is called again.
    fn choose_watched(&mut self, now: Tick) {
        let near = |index: &usize| self.counter(*index, now) > u64::MAX - NEAR;
        let near = bits(self.counters.asks).filter(near);
        self.counters.watched = near.fold(0, |all, index| all | 1 << index);
    }

    /// Called before the hart continues: counters may have come near their ends.
    #[inline(always)]
    pub fn watch_counters(&mut self) {
        if self.counters.asks != 0 {
            self.choose_watched(self.base);
        }
    }

    /// A hart in WFI continues if what has arrived since makes a counter overflow.
    #[cold]
    pub fn overflow_wakes<B: Bus>(&mut self, bus: &B) {
        if self.counters.is_watched() {
            self.ask_caches(bus);
            if self.note_overflows(self.arrival.max(self.base)) && self.interrupt_wakes() {
                self.awake(self.arrival);
            }
        }
    }

    /// Sets the overflow bits of counters that have passed their ends, and requests the interrupt. Returns whether any has.
    pub fn note_overflows(&mut self, now: Tick) -> bool {
        let before = self.counters.asks;
        for index in bits(self.counters.watched) {
            let value = self.counter(index, now);
            let counters = &mut self.counters;
            if value < counters.last[index] {
                counters.events[index] |= OVERFLOW;
                counters.asks &= !(1 << index);
                counters.watched &= !(1 << index);
                self.csr.mip_software |= 1 << OVERFLOW_INTERRUPT;
            }
            self.counters.last[index] = value;
        }
        before != self.counters.asks
    }
}
