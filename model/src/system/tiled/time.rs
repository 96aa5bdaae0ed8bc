//! How the processor time of a tile is divided among applications and managers.
//!
//! Why it exists: the kernel divides time by one rule (`abi::time`); what a manager is given, what fits below it, and what admission
//! must count are the same sums, defined once. What it deliberately does not know: response times.

use crate::system::{Cpu, System};
use crate::units::Time;
use bulkhead_abi::time::{LEAST_BUDGET, charge, enclose};

/// An owner of processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// An application: its index.
    App(usize),
    /// Everything below a manager: its index.
    Manager(usize),
}

/// Minimum budget.
pub const LEAST: Time = Time(LEAST_BUDGET * 1000);

impl System {
    /// The owners that receive processor time of a tile directly from a manager, and how much.
    pub fn times_of(&self, manager: usize, tile: u16) -> Vec<(Holder, Cpu)> {
        let apps = self.apps.iter().enumerate();
        let apps =
            apps.filter(|(index, app)| app.tile == tile && self.manager_of(*index) == manager);
        let apps = apps.filter_map(|(index, app)| Some((Holder::App(index), app.cpu?)));
        let below = self.managers_below(manager);
        let below = below.filter_map(|m| Some((Holder::Manager(m), self.time_below(m, tile)?)));
        apps.chain(below).collect()
    }

    /// The processor time of a tile given to a manager for everything below it: its own `<cpu>`, or one from which those below it can be
    /// derived. `None` if nothing below it has any.
    pub fn time_below(&self, manager: usize, tile: u16) -> Option<Cpu> {
        if !self.tiles_below(manager).contains(&tile) {
            return None;
        }
        let parts = self.times_of(manager, tile);
        let highest = parts.iter().map(|(_, cpu)| cpu.priority).max().unwrap_or(0);
        if let Some(own) = self.managers[manager].cpu {
            let priority = match own.priority {
                0 => highest,
                given => given,
            };
            return Some(Cpu { priority, ..own });
        }
        let times = parts
            .iter()
            .map(|(_, cpu)| (cpu.budget.nanoseconds(), cpu.period.nanoseconds()));
        let (budget, period) = enclose(times)?;
        Some(Cpu {
            budget: Time(budget.saturating_mul(1000)),
            period: Time(period.saturating_mul(1000)),
            priority: highest,
        })
    }

    /// Nanoseconds that everything directly below a manager takes out of each period of this many nanoseconds, or out of a second of the
    /// whole tile.
    pub fn time_taken(&self, manager: usize, tile: u16, period: u64) -> u64 {
        let parts = self.times_of(manager, tile);
        let charges = parts.iter().map(|(_, cpu)| cpu.charge(period));
        charges.fold(0, u64::saturating_add)
    }
}

impl Cpu {
    /// Nanoseconds that it takes out of each period of this many nanoseconds; nothing if the values make no sense.
    pub fn charge(&self, of: u64) -> u64 {
        let (budget, period) = (self.budget.nanoseconds(), self.period.nanoseconds());
        match charge(budget, period, of) {
            Some(charge) => charge,
            // That is a separate error.
            None if period == 0 || budget > period => 0,
            None => u64::MAX,
        }
    }
}
