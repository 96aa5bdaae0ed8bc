//! Boots one variant on the machine and brings back what happened.
//!
//! Why it exists: everything that touches a running machine is here. What it deliberately does not know: reports and
//! bounds.

use crate::chips::Chips;
use crate::collect;
use crate::error::Error;
use crate::image::BootImage;
use crate::named_tracer::NamedTracer;
use crate::names::Naming;
use crate::observed::{Counts, Observed, counts, difference, hexadecimal, markers};
use crate::paradigm::Paradigm;
use crate::progress::{Progress, Stage};
use crate::watch::{Both, Watcher};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::observe::Missing;
use bulkhead_machine::trace::{Chip, TraceOptions, Tracer};
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::units::Time;
use bulkhead_report::placement::Placement;
use std::collections::BTreeMap;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Maximum simulated time, in ticks.
    pub ticks: u64,
    /// Write a trace.
    pub trace: bool,
    /// Count transactions in slices of this length, in ticks, starting at multiples of it.
    pub slice: Option<u64>,
    /// The ledger of the first chip keeps every transaction.
    pub transactions: bool,
    /// How often two chips synchronise within the time for which they need not, at least 1. Affects only the speed of the run.
    pub looks: u64,
}

/// An intervention of an experiment on the machine in the middle of a run, which no description can express: a fault.
#[derive(Clone, Copy)]
pub struct Strike<'a> {
    /// When, in nanoseconds since reset.
    pub at: u64,
    /// The intervention.
    pub deed: &'a (dyn Fn(&mut Machine) + Sync),
}

/// The window of a trace: all tiles at all times, or less. Times are in picoseconds since reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Nothing before.
    pub from: Option<Time>,
    /// Nothing from here on.
    pub until: Option<Time>,
    /// Only what happens on these tiles or is sent from there; empty: all.
    pub tiles: Vec<u16>,
}

/// For a run shown as a whole, individual packets, banks and buckets are recorded at the beginning of each of this many parts, so that
/// a file of bounded size shows every part.
const PARTS: u64 = 20;
/// The share of each part.
const SHARE: u64 = 60;

impl Window {
    /// Whether anything of a system can be seen through it. Checked early, so that a mistake is not found only after the run.
    ///
    /// # Errors
    /// If a tile does not exist, or the time is empty or comes after the end.
    pub fn check(&self, system: &System) -> Result<(), Error> {
        let platform = &system.platform;
        let tiles = platform.tiles.iter().map(|tile| tile.id);
        let known: Vec<u16> = tiles
            .chain(platform.memories.iter().map(|memory| memory.id))
            .collect();
        if let Some(tile) = self.tiles.iter().find(|id| !known.contains(id)) {
            let known: Vec<String> = known.iter().map(u16::to_string).collect();
            return Err(Error::input(
                format!("--trace-tiles: {} has no tile {tile}", platform.name),
                format!("its tiles are {}", known.join(", ")),
            ));
        }
        let (from, end) = (self.from.unwrap_or_default(), system.duration);
        let until = self.until.unwrap_or(end).min(end);
        if from >= until {
            return Err(Error::input(
                format!("the traces would be empty: they begin at {from} and end at {until}"),
                format!(
                    "the run lasts {end}; --trace-from must be before --trace-until and before the end"
                ),
            ));
        }
        Ok(())
    }

    fn options(&self, config: &PlatformConfig, ticks: u64) -> TraceOptions {
        let tick = |time: Time| collect::ticks(time, config.ticks_per_second);
        let default = TraceOptions::default();
        let part = (ticks / PARTS).max(1);
        let is_whole = self.from.is_none() && self.until.is_none();
        TraceOptions {
            from: self.from.map_or(default.from, tick),
            until: self.until.map_or(default.until, tick),
            tiles: (!self.tiles.is_empty()).then(|| self.tiles.iter().copied().collect()),
            sample: is_whole.then_some((part, (part / SHARE).max(1))),
            ..default
        }
    }
}

/// The extras of a run.
#[derive(Default)]
pub struct Beside<'a> {
    /// An observer instead of a trace.
    pub watcher: Option<Watcher>,
    /// The intervention on the machine.
    pub strike: Option<Strike<'a>>,
    /// The window of a trace.
    pub window: Window,
}

/// Boots `system` from `image`.
pub fn execute(
    paradigm: &dyn Paradigm,
    system: &System,
    image: &BootImage,
    plan: Plan,
    name: &str,
    progress: &dyn Progress,
) -> Result<Observed, Error> {
    let beside = Beside::default();
    execute_beside(
        paradigm,
        system,
        (image, None),
        plan,
        name,
        progress,
        beside,
    )
}

/// Like [`execute`], with extras for the run and an image for the peer's chip.
pub fn execute_beside(
    paradigm: &dyn Paradigm,
    system: &System,
    (image, peer_image): (&BootImage, Option<&BootImage>),
    plan: Plan,
    name: &str,
    progress: &dyn Progress,
    Beside {
        watcher,
        strike,
        window,
    }: Beside<'_>,
) -> Result<Observed, Error> {
    let mut chips = Chips::boot(paradigm, system, image, peer_image)?;
    chips.divide_windows(plan.looks);
    let machine = &mut chips.first;
    if plan.transactions {
        machine.keep_transactions();
    }
    for owner in paradigm.compared(system) {
        machine.keep_asked(owner);
    }
    let config = machine.config().clone();
    // A bound needs to know when the applications of a flow are at rest.
    let rests = plan.transactions.then(Watcher::default);
    if let Some(watcher) = watcher {
        machine.set_observer(Some(Box::new(watcher)));
    } else if plan.trace {
        let mut here = Chip::default();
        if let Some(peer) = &system.peer {
            here.peer = peer.name.clone();
        }
        let options = |chip, system: &System, config: &PlatformConfig| TraceOptions {
            chip,
            residents: residents(system),
            ..window.options(config, plan.ticks)
        };
        let wanted = options(here, system, machine.config());
        let named = traced(paradigm.naming(system), machine, wanted);
        machine.set_observer(Some(Box::new(named)));
        if let Some(peer) = &system.peer {
            let machine = chips.machine_mut(1);
            let there = Chip {
                number: 1,
                heading: peer.name.clone(),
                peer: system.name.clone(),
            };
            let wanted = options(there, &peer.system, machine.config());
            let named = traced(paradigm.naming(&peer.system), machine, wanted);
            machine.set_observer(Some(Box::new(named)));
        }
    }

    if let Some(watcher) = &rests {
        let machine = chips.machine_mut(0);
        let before = machine.take_observer();
        let both = Both(before, watcher.clone());
        machine.set_observer(Some(Box::new(both)));
    }
    let per_microsecond = (config.ticks_per_second / 1_000_000).max(1);
    let mut report = |now: u64| {
        progress.stage(Stage::Simulation {
            name,
            microseconds: now / per_microsecond,
            of: plan.ticks / per_microsecond,
        });
    };
    report(0);
    let mut slices = Vec::new();
    let mut before = Counts::new();
    let mut strike = strike.map(|strike| {
        let ticks = u128::from(strike.at) * u128::from(config.ticks_per_second) / 1_000_000_000;
        (u64::try_from(ticks).unwrap_or(u64::MAX), strike.deed)
    });
    let outcome = loop {
        if let Some((_, deed)) = strike.take_if(|(at, _)| *at <= chips.first.now()) {
            deed(&mut chips.first);
        }
        let until = match plan.slice {
            Some(length) => ((chips.first.now() / length + 1) * length).min(plan.ticks),
            None => plan.ticks,
        };
        let until = strike.map_or(until, |(at, _)| until.min(at));
        let begin = chips.first.now();
        let outcome = chips.run(RunLimit { ticks: until }, &mut report);
        if plan.slice.is_some() {
            let now = counts(chips.first.ledger());
            slices.push((begin, difference(&before, &now)));
            before = now;
        }
        if outcome != Outcome::Limit || until >= plan.ticks {
            break outcome;
        }
    };
    progress.stage(Stage::Done { name });
    let console = paradigm.console(system, image, &chips.first)?;
    let console = paradigm.described(system, &console);
    let unread = paradigm.unread(system, &chips.first);
    // The digest covers only the machine, so it does not depend on whether something watched.
    let here = chips.first.take_observer();
    // With one chip there is nothing left to take.
    let there = chips.machine_mut(1).take_observer();
    // Two concatenated traces form one.
    let traces: Vec<_> = here.into_iter().chain(there).collect();
    let missing = traces.iter().map(|observer| observer.missing());
    let missing = missing.fold(Missing::default(), |all, one| Missing {
        events: all.events + one.events,
        from: all.from.into_iter().chain(one.from).min(),
    });
    let trace = traces.iter().flat_map(|observer| observer.bytes());
    let trace = Some(trace.collect::<Vec<u8>>()).filter(|bytes| !bytes.is_empty());
    let digest = hexadecimal(&chips.digest());
    let mut other = chips.other();
    if let (Some(other), Some(peer)) = (&mut other, &system.peer) {
        let told = &mut other.observed.console;
        *told = paradigm.described(&peer.system, told);
        other.observed.unread = paradigm.unread(&peer.system, chips.machine(1));
    }
    let machine = &chips.first;
    Ok(Observed {
        other,
        missing,
        network_cards: machine.network_cards(),
        refused: machine.refused(),
        outcome,
        ended_by: machine.ended_by(outcome),
        trapped: machine.trapped(outcome),
        ticks: machine.now(),
        markers: markers(machine),
        forged: Vec::new(),
        unkept: machine.unkept_markers(),
        crashes: machine.crashes(),
        running: machine.running(),
        ledger: machine.ledger().clone(),
        statistics: machine.statistics(),
        reservations: machine.reservations(),
        carried: machine.carried(),
        rings: machine.rings(),
        starts: machine.starts(),
        prospects: machine.prospects(),
        digest,
        console,
        unread,
        trace,
        slices,
        log: rests.map(|watcher| watcher.take()),
    })
}

/// The names for the heading of each tile: kernel, managers and applications.
fn residents(system: &System) -> BTreeMap<u16, String> {
    let placement = Placement::of(system);
    let occupied = placement
        .tiles
        .into_iter()
        .filter(|place| !place.residents.is_empty());
    let named = occupied.map(|place| {
        let names: Vec<String> = place.residents.into_iter().map(|one| one.name).collect();
        (place.tile, names.join(", "))
    });
    named.collect()
}

/// A tracer for a chip that shows activities by name. Harts of clusters have the names of their programs from the start.
fn traced(naming: Box<dyn Naming>, machine: &Machine, options: TraceOptions) -> NamedTracer {
    let config = machine.config();
    let mut tracer = Tracer::new(config, options);
    for (tile, cluster) in config.clusters() {
        for port in 0..cluster.harts.len() as u16 {
            let owner = Owner::new(tile.id, port);
            tracer.name_activity(owner, &naming.owner(owner));
        }
    }
    NamedTracer { naming, tracer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    #[test]
    fn a_window_through_which_nothing_is_seen_is_refused() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let refused = |from: Option<u64>, until: Option<u64>, tiles: &[u16]| {
            let time = |milliseconds: u64| Time(milliseconds * 1_000_000_000);
            let window = Window {
                from: from.map(time),
                until: until.map(time),
                tiles: tiles.to_vec(),
            };
            window.check(&system).is_err()
        };
        assert!(!refused(None, None, &[]) && !refused(Some(4), Some(9), &[0, 8]));
        assert!(refused(None, None, &[2, 99]));
        assert!(refused(Some(9), Some(3), &[]) && refused(Some(9), Some(9), &[]));
        assert!(refused(Some(60), None, &[]) && refused(None, Some(0), &[]));
    }
}
