//! Handlers of timing events beside what the description states of them.
//!
//! Why it exists: bounds count what a core's tasks state, and no kernel stops a handler. So a run adds up the time of handlers in any ticks in a row, as the
//! analysis does, and compares. What it deliberately does not know: which task set which event, because statements of a core count together.

use bulkhead_analysis::one_shot::Interrupts;
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_report::format::grouped;
use bulkhead_report::result::{Incident, IncidentKind};
use std::collections::BTreeMap;

/// The handlers that one tick called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handled {
    /// The core's number of the tick.
    pub tick: u64,
    /// Just before the first one, in machine ticks.
    pub begin: u64,
    /// Just after the last one.
    pub end: u64,
}

/// More than is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// The first and the last tick.
    pub ticks: [u64; 2],
    /// When the first handler began.
    pub at: u64,
    /// Cycles of handlers in these ticks, with what the kernel does between two of them.
    pub taken: u64,
    /// Cycles that the tasks of the core state for as many ticks.
    pub stated: u64,
}

/// The cores whose handlers took longer than their tasks state. Where none states anything, nothing has a bound.
pub fn all(
    system: &System,
    one_shot: &OneShot,
    handled: &BTreeMap<u16, Vec<Handled>>,
) -> Vec<(u16, Beyond)> {
    let per_second = u128::from(system.platform.ticks_per_second().max(1));
    // The analysis counts in cycles of the fastest core.
    let tiles = system.platform.tiles.iter();
    let hertz = tiles.map(|tile| tile.pipeline.clock.frequency.0).max();
    let hertz = u128::from(hertz.unwrap_or(1));
    let cycles = |ticks: u64| {
        let cycles = (u128::from(ticks) * hertz).div_ceil(per_second);
        u64::try_from(cycles).expect("no core has more cycles than the machine has ticks")
    };
    let of_core = |(core, handled): (&u16, &Vec<Handled>)| {
        let stated = Interrupts::of(one_shot, &system.platform, *core);
        let is_stated = !stated.handlers.is_empty();
        let found = is_stated.then(|| beyond(handled, &stated, cycles));
        Some((*core, found.flatten()?))
    };
    handled.iter().filter_map(of_core).collect()
}

/// The first ticks in a row in which handlers took longer than is stated. `cycles`: of a time in machine ticks.
///
/// Statements repeat when all their distances have passed, so longer rows of ticks cannot be beyond them if these are not.
pub fn beyond(
    handled: &[Handled],
    stated: &Interrupts,
    cycles: impl Fn(u64) -> u64,
) -> Option<Beyond> {
    let longest = stated.repeats();
    handled.iter().enumerate().find_map(|(first, begin)| {
        let mut taken = 0;
        // Only a kernel whose memory was written over counts backwards.
        let row = |one: &Handled| one.tick.checked_sub(begin.tick)?.checked_add(1);
        let rows = handled[first..].iter();
        let mut rows = rows
            .map_while(|one| Some((one, row(one)?)))
            .take_while(|(_, row)| longest.is_none_or(|longest| *row <= longest));
        rows.find_map(|(one, row)| {
            taken += cycles(one.end - one.begin);
            let allowed = stated.handled_in(row);
            (taken > allowed).then_some(Beyond {
                ticks: [begin.tick, one.tick],
                at: begin.begin,
                taken,
                stated: allowed,
            })
        })
    })
}

impl Beyond {
    /// For the result.
    pub fn incident(self, core: u16) -> Incident {
        Incident {
            crash: None,
            kind: IncidentKind::Stopped,
            at: Some(self.at),
            tile: core,
            application: format!("core {core}"),
            what: self.what(core),
        }
    }

    /// In words.
    pub fn what(&self, core: u16) -> String {
        let when = match self.ticks {
            [first, last] if first == last => format!("tick {first}"),
            [first, last] => format!("ticks {first} to {last}"),
        };
        format!(
            "handlers of timing events on core {core} took {} cycles in {when}, where its tasks state {} (handlers and handlers-apart)",
            grouped(self.taken),
            grouped(self.stated)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, with a cycle of two machine ticks; statements of 100 cycles in each tick, and of 50 in each third one.
    #[test]
    fn handlers_are_added_up_over_ticks_in_a_row() {
        let stated = Interrupts {
            handlers: vec![(100, 1), (50, 3)],
            ..Interrupts::default()
        };
        let found = |all: &[(u64, u64)]| {
            let of = |(tick, cycles): &(u64, u64)| Handled {
                tick: *tick,
                begin: tick * 1000,
                end: tick * 1000 + 2 * cycles,
            };
            let handled: Vec<Handled> = all.iter().map(of).collect();
            let found = beyond(&handled, &stated, |ticks| ticks / 2);
            found.map(|one| (one.ticks, one.taken, one.stated))
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[(5, 150), (6, 100), (7, 100), (8, 150)]), None);
        assert_eq!(found(&[(5, 151)]), Some(([5, 5], 151, 150)));
        // The second of three ticks is not one of those that are three apart.
        assert_eq!(found(&[(5, 150), (6, 101)]), Some(([5, 6], 251, 250)));
        assert_eq!(found(&[(5, 100), (6, 150), (8, 150)]), None);
        assert_eq!(
            found(&[(5, 150), (6, 100), (7, 150)]),
            Some(([5, 7], 400, 350))
        );
    }
}
