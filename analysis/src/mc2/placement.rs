//! Phase two of the optimiser: which bank holds each buffer under a scheme, and which tasks that disturbs.
//!
//! Source: mc2-rts20, section 6.1 for the schemes, Table 1 for causes and victims:
//! * devices that write into a processor's own bank disturb the tasks of levels A and B there, those in banks of level C only
//!   level C (spread evenly over its banks);
//! * processors that copy from banks of level C disturb level C; a task of levels A and B is disturbed in its own bank only by
//!   other processors that have buffers there, which happens only with random banks;
//! * a task's own access to a buffer in a different bank costs more, and only that access;
//! * buffers between kernel and device of tasks that copy (cameras) stay in banks of level C, except with random banks.

use super::inflation::{AVERAGE, FIXED, SystemCosts};
use super::parameters::{LevelCConflicts, PeriodHalf, RandomRelief, Readings};
use super::schemes::{Devices, Messages, Scheme};
use super::task_system::{Level, TaskSystem};

/// Banks of level C and the operating system, which are not distinguished.
pub const LEVEL_C: u8 = u8::MAX;

/// Where buffers are, and the consequences for banks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Bank of each task's I/O buffer: a processor's, or [`LEVEL_C`]. Meaningless for tasks without I/O.
    pub io: Vec<u8>,
    /// Bytes per second that devices move in each processor's bank.
    pub bank_devices: Vec<u64>,
    /// Bytes per second that they move in all banks of level C.
    pub level_c_devices: u64,
    /// How many other processors access each processor's bank.
    pub foreign: Vec<u64>,
    /// The average share of a processor's time that others spend there, in parts of [`FIXED`].
    pub foreign_share: Vec<u64>,
    /// The average time that processors spend copying for levels A and B in banks of level C, in parts of [`FIXED`].
    pub level_c_share: u64,
    seen: Vec<bool>,
    /// Level C is disturbed as if everything were in its banks.
    everything: bool,
}

impl Placement {
    /// Places all buffers under a scheme. `processor` names the processor of each task of levels A and B, which come first.
    #[expect(
        clippy::too_many_arguments,
        reason = "one for each thing that a place depends on"
    )]
    pub fn place(
        &mut self,
        scheme: Scheme,
        readings: &Readings,
        processors: usize,
        system: &TaskSystem,
        costs: &SystemCosts,
        processor: &[u8],
        long: &[bool],
    ) {
        for list in [
            &mut self.bank_devices,
            &mut self.foreign,
            &mut self.foreign_share,
        ] {
            list.clear();
            list.resize(processors, 0);
        }
        self.seen.clear();
        self.seen.resize(processors * (processors + 1), false);
        self.io.clear();
        (self.level_c_devices, self.level_c_share) = (0, 0);
        let random = scheme.devices() == Devices::Random;
        self.everything = random && readings.random_relief == RandomRelief::Ignored;
        let mut any_in_level_c = false;
        for (index, task) in system.tasks.iter().enumerate() {
            let Some(io) = task.io else {
                self.io.push(LEVEL_C);
                continue;
            };
            let own = processor.get(index).copied();
            let bank = match (scheme.devices(), own) {
                (Devices::Random, _) => bank_of(io.random_bank, processors),
                (Devices::LevelC, _) | (_, None) => LEVEL_C,
                (Devices::Own, Some(own)) => own,
                (Devices::OwnLongPeriods, Some(own)) => either(long[index], own),
                (Devices::OwnShortPeriods, Some(own)) => either(!long[index], own),
            };
            self.io.push(bank);
            any_in_level_c |= own.is_some() && (bank == LEVEL_C || self.everything);
            let cost = &costs.tasks[index];
            // The device writes into the buffer, or into the kernel's own ones.
            let written = if io.direct || random { bank } else { LEVEL_C };
            match self.bank_devices.get_mut(usize::from(written)) {
                Some(rate) => {
                    *rate += cost.rate;
                    if self.everything {
                        self.level_c_devices += cost.rate;
                    }
                }
                None => self.level_c_devices += cost.rate,
            }
            let copy = share(cost.copy[AVERAGE], cost.period);
            self.copies(bank, own, task.level, copy);
            if !io.direct {
                self.copies(if random { bank } else { LEVEL_C }, own, task.level, copy);
            }
        }
        for (buffer, ends) in system.buffers.iter().zip(&costs.accesses) {
            let level = system.tasks[buffer.sender as usize].level;
            let of = |task: u32| processor.get(task as usize).copied();
            let bank = match scheme.messages() {
                Messages::Random => bank_of(buffer.random_bank, processors),
                Messages::LevelC => LEVEL_C,
                // Eliminated ones are in the own bank and disturb nothing. Locked ones disturb nothing either; the effect of
                // those that stay bypassed is counted.
                Messages::Optimised
                    if level != Level::C && of(buffer.sender) == of(buffer.receiver) =>
                {
                    continue;
                }
                Messages::Optimised => LEVEL_C,
            };
            for end in ends {
                let time = share(end.bypassed[AVERAGE], costs.tasks[end.task as usize].period);
                self.copies(bank, of(end.task), level, time);
            }
        }
        for share in &mut self.foreign_share {
            *share = (*share).min((processors as u64 - 1) * FIXED);
        }
        self.level_c_share = self.level_c_share.min((processors as u64 - 1) * FIXED);
        if readings.level_c_conflicts == LevelCConflicts::Always {
            self.level_c_share = if any_in_level_c { FIXED } else { 0 };
        }
    }

    /// A processor spends this share of its time in a bank. Tasks of level C (without a processor) run on all.
    fn copies(&mut self, bank: u8, own: Option<u8>, level: Level, share: u64) {
        let processors = self.foreign.len();
        let target = usize::from(bank);
        if level != Level::C && (target >= processors || self.everything) {
            self.level_c_share += share;
        }
        if target >= processors {
            return;
        }
        if own == Some(bank) {
            return;
        }
        self.foreign_share[target] += share;
        let from = own.map_or(processors, usize::from);
        let seen = &mut self.seen[target * (processors + 1) + from];
        if !*seen {
            *seen = true;
            // At any instant, at most all other processors are there.
            self.foreign[target] = (self.foreign[target] + 1).min(processors as u64 - 1);
        }
    }
}

fn either(own_bank: bool, own: u8) -> u8 {
    if own_bank { own } else { LEVEL_C }
}

/// Bank of a random choice: the banks of processors come first.
pub fn bank_of(random: u8, processors: usize) -> u8 {
    if usize::from(random) < processors {
        random
    } else {
        LEVEL_C
    }
}

/// Share of time in parts of [`FIXED`], rounded up.
pub(super) fn share(time: u64, period: u64) -> u64 {
    (time * FIXED).div_ceil(period)
}

/// Which tasks are in the half of their level with the longest periods; with an odd number, the middle one is included. Of
/// equal periods, the later task counts as longer.
pub fn long_periods(
    system: &TaskSystem,
    half: PeriodHalf,
    long: &mut Vec<bool>,
    order: &mut Vec<u32>,
) {
    long.clear();
    long.resize(system.tasks.len(), false);
    for level in [Level::A, Level::B] {
        order.clear();
        order.extend((0..system.tasks.len() as u32).filter(|&i| {
            let task = &system.tasks[i as usize];
            task.level == level && (half == PeriodHalf::Tasks || task.io.is_some())
        }));
        order.sort_unstable_by_key(|&i| (system.tasks[i as usize].period, i));
        for &i in &order[order.len() / 2..] {
            long[i as usize] = true;
        }
    }
}
