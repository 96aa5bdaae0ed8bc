//! Zicntr and Zihpm: cycle, instret and 29 event counters, as views of the hart's statistics.
//!
//! A counter is the difference between a statistic and an offset, so counting costs nothing while the hart runs.

use super::core::Core;
use super::statistics::HartStatistics;
use crate::types::Tick;

/// What an event selector in `mhpmevent` counts; 0 counts nothing.
#[allow(missing_docs)] // The statistic of the same name.
pub mod event {
    pub const FETCH_MISS: u64 = 1;
    pub const DATA_MISS: u64 = 2;
    pub const MISPREDICTION: u64 = 3;
    pub const FETCH_TLB_MISS: u64 = 4;
    pub const DATA_TLB_MISS: u64 = 5;
    pub const BRANCH: u64 = 6;
    pub const LOAD: u64 = 7;
    pub const STORE: u64 = 8;
    pub const TRAP: u64 = 9;
    pub const WALK: u64 = 10;
    pub const DEVICE_ACCESS: u64 = 11;
}

/// Registers of the counters.
#[derive(Clone, Default)]
pub struct Counters {
    /// `mcountinhibit`.
    pub inhibit: u32,
    events: [u64; 32],
    /// While it counts, the value is source - offset; while inhibited, it is in `frozen`.
    offset: [u64; 32],
    frozen: [u64; 32],
}

impl Counters {
    /// `mhpmevent` of a counter.
    pub fn event(&self, index: usize) -> u64 {
        self.events[index]
    }
}

fn selected(statistics: &HartStatistics, selector: u64) -> u64 {
    match selector {
        event::FETCH_MISS => statistics.fetch_misses,
        event::DATA_MISS => statistics.data_misses,
        event::MISPREDICTION => statistics.mispredictions,
        event::FETCH_TLB_MISS => statistics.fetch_tlb_misses,
        event::DATA_TLB_MISS => statistics.data_tlb_misses,
        event::BRANCH => statistics.branches,
        event::LOAD => statistics.loads,
        event::STORE => statistics.stores,
        event::TRAP => statistics.traps,
        event::WALK => statistics.walks,
        event::DEVICE_ACCESS => statistics.device_accesses,
        _ => 0,
    }
}

impl Core {
    fn counter_source(&self, index: usize, now: Tick) -> u64 {
        match index {
            0 => (now - self.reset_time) / self.costs.cycle,
            2 => self.statistics.instructions,
            _ => selected(&self.statistics, self.counters.events[index]),
        }
    }

    /// All counters start from 0 (the statistics continue over a reset).
    pub fn restart_counters(&mut self) {
        self.counters = Counters::default();
        self.counters.offset[2] = self.statistics.instructions;
    }

    /// The value of counter `index` (0 cycle, 2 instret, 3 to 31 events).
    pub fn counter(&self, index: usize, now: Tick) -> u64 {
        if self.counters.inhibit & (1 << index) != 0 {
            self.counters.frozen[index]
        } else {
            self.counter_source(index, now)
                .wrapping_sub(self.counters.offset[index])
        }
    }

    /// Writes a counter. The next instruction sees exactly this value of instret.
    pub fn set_counter(&mut self, index: usize, value: u64, now: Tick) {
        self.counters.frozen[index] = value;
        let retired = (index == 2) as u64;
        self.counters.offset[index] = self
            .counter_source(index, now)
            .wrapping_add(retired)
            .wrapping_sub(value);
    }

    /// Writes `mcountinhibit`: stops counters at their value and starts others from theirs.
    pub fn set_counter_inhibit(&mut self, value: u32, now: Tick) {
        let value = value & !2;
        for index in (0..32).filter(|index| *index != 1) {
            let (old, new) = (self.counters.inhibit >> index & 1, value >> index & 1);
            let current = self.counter(index, now);
            if new > old {
                self.counters.frozen[index] = current;
            } else if new < old {
                // The writing instruction itself is not counted.
                let retired = (index == 2) as u64;
                self.counters.offset[index] = self
                    .counter_source(index, now)
                    .wrapping_add(retired)
                    .wrapping_sub(current);
            }
        }
        self.counters.inhibit = value;
    }

    /// Selects the event of a counter, which keeps its value.
    pub fn set_counter_event(&mut self, index: usize, selector: u64, now: Tick) {
        let current = self.counter(index, now);
        self.counters.events[index] = selector & 0xff;
        self.counters.frozen[index] = current;
        self.counters.offset[index] = self.counter_source(index, now).wrapping_sub(current);
    }
}
