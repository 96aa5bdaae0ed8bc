//! What interrupts take of a core: those of its tick, of its doorbell, and the handlers of timing events that its tick calls.
//!
//! Why it exists: each of them lengthens the job that it interrupts, and an operation of another core that waits for this one's lock. What it deliberately does not
//! know: jobs and locks.
//!
//! Handlers run in the interrupt of a tick. The description states how long all of a task's handlers that one tick calls take together, and how far such ticks are apart;
//! those of several tasks may fall into one tick.

use super::{INTERRUPT, INTERRUPT_TASK, RING, RING_TASK, UNMASK};
use crate::one_shot_mesh::Mesh;
use bulkhead_model::platform::Platform;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;

/// The interrupts of a core, in the core's cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// Interrupts of its tick, one per tick, without handlers of timing events.
    pub tick: u64,
    /// Interrupts of its doorbell per tick, in total.
    pub rings: u64,
    /// For each task that states handlers: their cycles in one tick, and how many ticks such ticks are apart.
    pub handlers: Vec<(u64, u64)>,
}

/// How long a job takes with interrupts, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengthened {
    /// With everything; the maximum number if it never ends.
    pub whole: u64,
    /// The part of handlers of timing events.
    pub handlers: u64,
}

impl Interrupts {
    /// The interrupts of a core.
    pub fn of(system: &OneShot, platform: &Platform, core: u16) -> Self {
        let told = system.told(core).len() as u64;
        let unmask = if told > 0 { UNMASK } else { 0 };
        let handlers = match system.handlers(core) {
            none if none.is_empty() => Vec::new(),
            stated => {
                let mesh = Mesh::new(platform);
                let each = stated.iter();
                each.map(|one| (mesh.cycles(one.cost), (one.apart.0 / TICK.0).max(1)))
                    .collect()
            }
        };
        Self {
            tick: INTERRUPT + INTERRUPT_TASK * system.on_core(core).len() as u64 + unmask,
            rings: system.rings(platform, core) * (RING + RING_TASK * told),
            handlers,
        }
    }

    /// Handlers of one tick, at most.
    pub fn handled(&self) -> u64 {
        self.handlers
            .iter()
            .fold(0, |sum, one| one.0.saturating_add(sum))
    }

    /// After how many ticks the statements of handlers repeat; `None` if that is more than a number can hold.
    pub fn repeats(&self) -> Option<u64> {
        let mut apart = self.handlers.iter().map(|one| one.1.max(1));
        apart.try_fold(1u64, |all, one| {
            let (mut a, mut b) = (all, one);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            all.checked_mul(one / a)
        })
    }

    /// Handlers of this many ticks in a row, in cycles.
    pub fn handled_in(&self, ticks: u64) -> u64 {
        let each = self.handlers.iter();
        each.map(|(cycles, apart)| cycles.saturating_mul(ticks.div_ceil(*apart)))
            .fold(0, u64::saturating_add)
    }

    /// For an operation much shorter than a tick: it may touch two ticks, with one tick interrupt between them.
    pub fn operation(&self) -> u64 {
        (self.tick + 2 * self.rings).saturating_add(self.handled())
    }

    /// Whether interrupts may leave no time in a tick: then ticks are late, and nothing bounds what the core does.
    pub(super) fn fill(&self, tick: u64) -> bool {
        (self.tick + self.rings).saturating_add(self.handled()) >= tick
    }

    /// A job of this many cycles with the interrupts of all ticks that it touches, including those touched because of its own lengthening.
    pub(super) fn job(&self, job: u64, tick: u64) -> Lengthened {
        if self.fill(tick) {
            return Lengthened {
                whole: u64::MAX,
                handlers: 0,
            };
        }
        let mut length = job;
        loop {
            let ticks = length / tick + 1;
            let rings = (ticks + 1).saturating_mul(self.rings);
            let handlers = self.handled_in(ticks);
            let longer = job
                .saturating_add(ticks.saturating_mul(self.tick))
                .saturating_add(rings)
                .saturating_add(handlers);
            if longer == length {
                return Lengthened {
                    whole: length,
                    handlers,
                };
            }
            length = longer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_are_counted_in_the_ticks_that_call_them() {
        let mut all = Interrupts {
            tick: 10,
            rings: 0,
            handlers: vec![(100, 1), (50, 3)],
        };
        // One tick; two; three; four.
        for (job, whole, handlers) in [
            (800, 960, 150),
            (900, 1170, 250),
            (2500, 2880, 350),
            (2900, 3440, 500),
        ] {
            assert_eq!(all.job(job, 1000), Lengthened { whole, handlers }, "{job}");
        }
        assert_eq!(all.operation(), 160);
        all.handlers.push((840, 9));
        assert!(all.fill(1000) && all.job(1, 1000).whole == u64::MAX);
    }
}
