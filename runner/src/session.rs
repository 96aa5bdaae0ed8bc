//! Boots one variant on the machine and brings back what happened.
//!
//! Why it exists: everything that touches a running machine stands here. What it deliberately does not know: reports and
//! bounds.

use crate::chips::Chips;
use crate::error::Error;
use crate::image::BootImage;
use crate::named_tracer::NamedTracer;
use crate::names::Naming;
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

/// Something that an experiment does to the machine in the middle of a run, which no description can say: a fault.
#[derive(Clone, Copy)]
pub struct Strike<'a> {
    /// When, in nanoseconds since reset.
    pub at: u64,
    /// What.
    pub deed: &'a (dyn Fn(&mut Machine) + Sync),
}

/// What goes beside a run.
#[derive(Default)]
pub struct Beside<'a> {
    /// Who watches in place of a trace.
    pub watcher: Option<Watcher>,
    /// What happens to the machine.
    pub strike: Option<Strike<'a>>,
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

/// As [`execute`], with what goes beside the run, and with an image for the peer's chip.
pub fn execute_beside(
    paradigm: &dyn Paradigm,
    system: &System,
    (image, peer_image): (&BootImage, Option<&BootImage>),
    plan: Plan,
    name: &str,
    progress: &dyn Progress,
    Beside { watcher, strike }: Beside<'_>,
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
        let named = traced(paradigm.naming(system), machine, here);
        machine.set_observer(Some(Box::new(named)));
        if let Some(peer) = &system.peer {
            let machine = chips.machine_mut(1);
            let there = Chip {
                number: 1,
                heading: peer.name.clone(),
                peer: system.name.clone(),
            };
            let named = traced(paradigm.naming(&peer.system), machine, there);
            machine.set_observer(Some(Box::new(named)));
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
    let mut strike = strike.map(|strike| {
        let ticks = u128::from(strike.at) * u128::from(config.ticks_per_second) / 1_000_000_000;
        (u64::try_from(ticks).unwrap_or(u64::MAX), strike.deed)
    });
    let outcome = loop {
        if let Some((_, deed)) = strike.take_if(|(at, _)| *at <= chips.first.now()) {
            deed(&mut chips.first);
        }
        let until = match plan.slice {
            Some((length, early)) => {
                let next = ((chips.first.now() + early) / length + 1) * length - early;
                next.min(plan.ticks)
            }
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

/// A tracer for a chip that calls activities by their names.
fn traced(naming: Box<dyn Naming>, machine: &Machine, chip: Chip) -> NamedTracer {
    let options = TraceOptions {
        chip,
        ..TraceOptions::default()
    };
    NamedTracer {
        naming,
        tracer: Tracer::new(machine.config(), options),
    }
}
