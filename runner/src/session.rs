//! Boots one variant on the machine and brings back what happened.
//!
//! Why it exists: everything that touches a running machine stands here. What it deliberately does not know: reports and
//! bounds.

use crate::chips::Chips;
use crate::error::Error;
use crate::image::BootImage;
use crate::names::Names;
use crate::observed::{Counts, Observed, counts, difference, hexadecimal, markers};
use crate::paradigm::Paradigm;
use crate::progress::{Progress, Stage};
use crate::watch::Watcher;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::trace::{Chip, TraceOptions, Tracer};
use bulkhead_model::System;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Simulated time at most, in ticks.
    pub ticks: u64,
    /// Write a trace.
    pub trace: bool,
    /// Count transactions in slices of this length, in ticks, that begin at multiples of it minus `before`.
    pub slice: Option<(u64, u64)>,
    /// How often two chips look at each other in the time that they need not, at least 1. Changes nothing but the run's speed.
    pub looks: u64,
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
    execute_watched(paradigm, system, (image, None), plan, name, progress, None)
}

/// As [`execute`], with a watcher in place of a trace, and with an image for the peer's chip.
pub fn execute_watched(
    paradigm: &dyn Paradigm,
    system: &System,
    (image, peer_image): (&BootImage, Option<&BootImage>),
    plan: Plan,
    name: &str,
    progress: &dyn Progress,
    watcher: Option<Watcher>,
) -> Result<Observed, Error> {
    let machine_error = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let mut chips = Chips::boot(paradigm, system, image, peer_image)?;
    chips.divide_windows(plan.looks);
    let machine = &mut chips.first;
    let config = machine.config().clone();
    if let Some(watcher) = watcher {
        machine.set_observer(Some(Box::new(watcher)));
    } else if plan.trace {
        let mut here = Chip::default();
        if let Some(peer) = &system.peer {
            here.peer = peer.name.clone();
        }
        let names = paradigm.names(system, "");
        machine.set_observer(Some(Box::new(tracer(&names, machine, here))));
        if let Some(peer) = &system.peer {
            let machine = chips.machine_mut(1);
            let there = Chip {
                number: 1,
                heading: peer.name.clone(),
                peer: system.name.clone(),
            };
            let names = paradigm.names(&peer.system, "");
            let tracer = tracer(&names, machine, there);
            machine.set_observer(Some(Box::new(tracer)));
        }
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
    let outcome = loop {
        let until = match plan.slice {
            Some((length, early)) => {
                let next = ((chips.first.now() + early) / length + 1) * length - early;
                next.min(plan.ticks)
            }
            None => plan.ticks,
        };
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
    let console = chips
        .first
        .console(paradigm.console_tile(system))
        .map_err(|error| machine_error(&error))?;
    let console = paradigm.described(system, &String::from_utf8_lossy(console));
    // The digest is that of the machine alone, so that it does not depend on whether somebody watched.
    let here = chips.first.take_observer();
    // Of one chip there is nothing left to take.
    let there = chips.machine_mut(1).take_observer();
    // Two traces one behind the other are one.
    let traces: Vec<_> = here.into_iter().chain(there).collect();
    let missing = traces.iter().map(|observer| observer.missing()).sum();
    let trace = traces.iter().flat_map(|observer| observer.bytes());
    let trace = Some(trace.collect::<Vec<u8>>()).filter(|bytes| !bytes.is_empty());
    let digest = hexadecimal(&chips.digest());
    let mut other = chips.other();
    if let (Some(other), Some(peer)) = (&mut other, &system.peer) {
        let told = &mut other.observed.console;
        *told = paradigm.described(&peer.system, told);
    }
    let machine = &chips.first;
    Ok(Observed {
        other,
        missing,
        network_cards: machine.network_cards(),
        outcome,
        ticks: machine.now(),
        markers: markers(machine),
        ledger: machine.ledger().clone(),
        statistics: machine.statistics(),
        digest,
        console,
        trace,
        slices,
    })
}

/// A tracer for a chip, with the names of its activities.
fn tracer(names: &Names, machine: &Machine, chip: Chip) -> Tracer {
    let options = TraceOptions {
        chip,
        ..TraceOptions::default()
    };
    let mut tracer = Tracer::new(machine.config(), options);
    for (owner, name) in names.all() {
        tracer.name_activity(owner, &name);
    }
    tracer
}
