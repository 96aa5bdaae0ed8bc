//! Drives the window from edge to edge.

use super::super::bus::Bus;
use super::super::core::{Core, Mode, NO_LINE};
use super::super::{Hart, Stop};
use super::{Cause, Class, Exclusive, Stopped, Used, Window, withdraws};
use crate::types::Tick;
use std::cmp::Reverse;

impl Hart {
    /// [`Hart::run`] for an out-of-order pipeline whose hart is running.
    pub(in super::super) fn run_window<B: Bus>(
        &mut self,
        window: &mut Window,
        bus: &mut B,
    ) -> Stop {
        if let Some(stop) = self.end_tokens(window, bus) {
            return stop;
        }
        loop {
            // An operation that is alone continues when it can, not at an edge: its time advances as in order.
            let now = match window.exclusive {
                Exclusive::No => window.align(self.core.base),
                _ => self.core.base,
            };
            self.core.base = now;
            if now >= self.core.horizon {
                return Stop::Horizon;
            }
            window.idle = false;
            if window.exclusive == Exclusive::No {
                window.begin(&mut self.core, now);
            }
            let outcome = self.edge(window, bus, now);
            if self.core.base > window.edge {
                window.frozen = window.align(self.core.base);
            }
            match self.core.mode {
                Mode::Running => {}
                Mode::Waiting => return Stop::WaitForInterrupt,
                Mode::Sleeping if self.core.interrupt_wakes() => self.core.mode = Mode::Running,
                Mode::Sleeping => return Stop::Sleep,
                Mode::Dead(trap) => return Stop::Unhandled(trap),
                Mode::Halted => return Stop::Halted,
            }
            if let Err(stop) = outcome {
                window.idle = matches!(stop, Stop::Pending(_));
                return stop;
            }
            if self.core.base > window.edge || window.exclusive != Exclusive::No {
                continue;
            }
            match window.next(&self.core, now) {
                Some(next) => self.core.base = next,
                None => {
                    window.idle = true;
                    return Stop::Pending(window.token(&self.core));
                }
            }
        }
    }

    /// Processes one edge, or the rest of it.
    fn edge<B: Bus>(&mut self, window: &mut Window, bus: &mut B, now: Tick) -> Result<(), Stop> {
        match window.exclusive {
            Exclusive::No => {
                if let Some(stop) = self.interrupt(window, bus, now) {
                    return stop.map_or(Ok(()), Err);
                }
                window.retire(self, bus, now)?;
            }
            Exclusive::Head => window.retire(self, bus, now)?,
            Exclusive::Fetch => window.fetch_alone(self, bus, now)?,
        }
        // A trap of what was alone puts the hart's time back to its last edge; fetching continues at a later one.
        let trapped = self.core.base < now;
        if self.core.base > window.edge || trapped || self.core.mode != Mode::Running {
            return Ok(());
        }
        window.issue(self, bus, now)?;
        window.dispatch(self, bus, now)
    }

    /// Takes an interrupt, if there is one and the oldest instruction has not begun something that cannot be undone.
    fn interrupt<B: Bus>(
        &mut self,
        window: &mut Window,
        bus: &mut B,
        now: Tick,
    ) -> Option<Option<Stop>> {
        window.take_early(&mut self.core);
        window.settle(&mut self.core);
        let core = &mut self.core;
        if core.counters.is_watched() {
            // Several instructions may have retired at the last edge, so a counter's interrupt comes up to one width late.
            core.ask_caches(bus);
            core.note_overflows(now);
        }
        let begun = window.head < window.tail && window.entry(window.head).started;
        if !begun
            && core.interrupt_wakes()
            && core.interrupt_arrival <= now
            && let Some(number) = core.interrupt()
        {
            core.pc = window.pc(core, &self.blocks);
            self.resume = None;
            window.abandon(core, now);
            let stop = core.take_interrupt(bus, number);
            window.go_on(core);
            return Some(stop);
        }
        None
    }

    /// Continues after a wait for tokens, or withdraws the waiting access because of an interrupt.
    fn end_tokens<B: Bus>(&mut self, window: &mut Window, bus: &mut B) -> Option<Stop> {
        let wait = self.core.tokens?;
        if wait.until >= self.core.horizon {
            return Some(Stop::Tokens);
        }
        self.core.tokens = None;
        if withdraws(&self.core, &wait) {
            self.core.admitted = NO_LINE;
            bus.withdraw(wait.until);
            self.core.pc = window.pc(&self.core, &self.blocks);
            self.core.walk = None;
            self.resume = None;
            window.abandon(&mut self.core, wait.until);
        }
        self.core.spend_tokens(wait, wait.until);
        None
    }
}

impl Window {
    /// Begins or continues an edge.
    fn begin(&mut self, core: &mut Core, now: Tick) {
        if now == self.edge {
            return;
        }
        // Edges are whole cycles apart.
        let lost = now - self.edge - self.cycle;
        let statistics = &mut core.statistics;
        match self.cause {
            Cause::None => {}
            Cause::Load => statistics.stall_load += lost,
            Cause::Store => statistics.stall_store += lost,
            Cause::Fetch => statistics.stall_fetch += lost,
            Cause::Branch => statistics.stall_branch += lost,
        }
        self.cause = Cause::None;
        self.edge = now;
        self.used = Used::default();
    }

    /// The next edge with work to do, if it is known, and what the time until then is charged to.
    fn next(&mut self, core: &Core, now: Tick) -> Option<Tick> {
        let soon = now + self.cycle;
        let head = self.head_time(core);
        let issue = match self.ready.is_empty() {
            true => self.timed.peek().map(|Reverse((at, _))| *at),
            false => Some(soon),
        };
        let front = !self.full && self.stopped == Stopped::No && core.fetches == [None; 2];
        let drains = self.head == self.tail && !core.pending.is_empty();
        let fetch = match front {
            true if drains => core.pending.all().ok(),
            true => Some(self.fetch_at),
            false => None,
        };
        let interrupt =
            (core.interrupt_wakes() && core.interrupt_arrival > now && core.interrupt().is_some())
                .then_some(core.interrupt_arrival);
        self.cause = match self.head < self.tail {
            true => match self.entry(self.head).class {
                Class::Load => Cause::Load,
                Class::Store => Cause::Store,
                _ => Cause::None,
            },
            false => self.fetch_cause,
        };
        let next = [head, issue, fetch, interrupt].into_iter().flatten().min();
        next.map(|at| self.align(at).max(soon))
    }

    /// A token whose completion the hart waits for.
    fn token(&self, core: &Core) -> u32 {
        let load = self.waiting.first().map(|(token, _)| *token);
        let fetch = core.fetches.iter().flatten().next().copied();
        let dropped = self.dropped.first().copied();
        let others = || core.pending.all().err().or(core.stores.drained().err());
        let token = load.or(fetch).or(dropped).or_else(others);
        token.unwrap_or_else(|| panic!("the hart waits for nothing: {self:#?}"))
    }
}
