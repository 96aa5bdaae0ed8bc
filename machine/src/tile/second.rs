//! The second hart of a tile: the interrupt hart of m3-rtas24, section III-B2.
//!
//! Why it exists: a message for an activity that is not running interrupts a hart. With one hart, that is the hart on which a
//! high-priority application runs. With two, it is the other hart, which shares caches and unit and runs nothing else. What it
//! deliberately does not know: what the harts do. Both act in time order; within one tick, the first hart goes first.
//!
//! Its traffic below the caches counts as that of the current activity, because the unit has only one register for that.

use super::bus::{TileBus, UNNAMED};
use super::{End, Local, Tile};
use crate::fabric::Fabric;
use crate::hart::{Hart, HartConfig, Stop};
use crate::types::Tick;

/// The second hart.
pub(super) struct Second {
    pub hart: Hart,
    pub runnable: bool,
}

impl Second {
    /// A halted hart with number 1.
    pub fn new(config: &HartConfig, data_sets: u32) -> Self {
        let mut hart = Hart::new(config, 1);
        hart.set_data_sets(data_sets);
        Self {
            hart,
            runnable: false,
        }
    }

    /// When it acts next.
    #[inline]
    pub fn next_time(&self) -> Tick {
        if self.runnable {
            self.hart.time()
        } else {
            Tick::MAX
        }
    }
}

/// Lines that a hart has asked for since the other one ran. The other hart must not rely on what it knows of them: a line may have
/// left the cache, lost its dirty state or been reserved, or another line of its set may have become the most recently used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// Data lines whose low four number bits select a set bit.
    pub data: u16,
    /// Lines of instructions.
    pub instructions: bool,
}

impl Used {
    /// Tells the other hart.
    pub fn tell(&mut self, other: &mut Hart) {
        let Self { data, instructions } = std::mem::take(self);
        other.forget_some_lines(data, instructions);
    }
}

impl Local {
    /// A miss is over. Returns whether it was one of the second hart's own.
    pub(super) fn take_second(&mut self, token: u32) -> bool {
        let position = self.second_tokens.iter().position(|t| *t == token);
        position
            .map(|at| self.second_tokens.swap_remove(at))
            .is_some()
    }
}

impl Tile {
    /// The second hart, if there is one.
    pub fn second_hart(&self) -> Option<&Hart> {
        self.second.as_ref().map(|second| &second.hart)
    }

    pub(super) fn run_second(&mut self, horizon: Tick, fabric: &mut Fabric) {
        let first = if self.runnable {
            self.hart.time()
        } else {
            Tick::MAX
        };
        let Some(second) = &mut self.second else {
            return;
        };
        let mut bus = TileBus::<false> {
            unit: self.unit.as_mut(),
            caches: &mut self.caches,
            local: &mut self.local,
            fabric,
            second: true,
            other: first,
            named: UNNAMED,
        };
        match second.hart.run(&mut bus, horizon.min(first)) {
            Stop::Horizon | Stop::Device | Stop::Tokens => {}
            Stop::Pending(_) | Stop::WaitForInterrupt | Stop::Sleep | Stop::Halted => {
                second.runnable = false;
            }
            Stop::Unhandled(trap) => {
                second.runnable = false;
                self.local.finish(second.hart.time(), End::Unhandled(trap));
            }
        }
        self.local.recall = false;
        self.local.used.tell(&mut self.hart);
        self.after_caches();
        self.settle(self.local.now, fabric);
    }

    pub(super) fn signal_second(&mut self, signal: impl FnOnce(&mut Hart)) {
        if let Some(second) = &mut self.second {
            signal(&mut second.hart);
            second.runnable = true;
        }
    }

    pub(super) fn stop_second(&mut self) {
        if let Some(second) = &mut self.second {
            second.hart.stop();
            second.runnable = false;
        }
    }
}
