//! Boots one variant on the machine and brings back what happened.
//!
//! Why it exists: everything that touches a running machine stands here. What it deliberately does not know: reports and
//! bounds.

use crate::boot_image::BootImage;
use crate::chips::{Chips, OtherSeen};
use crate::error::Error;
use crate::measure::MarkerEvent;
use crate::names::{Names, described};
use crate::progress::{Progress, Stage};
use crate::watch::Watcher;
use bulkhead_abi::dtu::{Endpoint, MemoryEndpoint, TLB_READ, TLB_WRITE};
use bulkhead_abi::memory_map::PMP_WINDOW_SIZE;
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_machine::device::network::CardCounters;
use bulkhead_machine::ledger::Ledger;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::statistics::Statistics;
use bulkhead_machine::trace::{Chip, TraceOptions, Tracer};
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use std::collections::BTreeMap;

/// Transactions of each owner in one slice of time.
pub type Counts = BTreeMap<(Owner, Transaction), u64>;

/// What happened.
pub struct Observed {
    /// Why the run ended.
    pub outcome: Outcome,
    /// When it ended, in ticks.
    pub ticks: u64,
    /// Every marker.
    pub markers: Vec<MarkerEvent>,
    /// Who waited for whom.
    pub ledger: Ledger,
    /// Counters.
    pub statistics: Statistics,
    /// SHA-256 over all of it.
    pub digest: String,
    /// What the kernel's tile printed.
    pub console: String,
    /// The trace, if one was asked for.
    pub trace: Option<Vec<u8>>,
    /// What the second chip has done, if there is one.
    pub other: Option<OtherSeen>,
    /// What network cards counted, by tile: of this chip.
    pub network_cards: Vec<(u16, CardCounters)>,
    /// Transactions in each slice, if slices were asked for: begin of the slice in ticks, and counts.
    pub slices: Vec<(u64, Counts)>,
}

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

/// A chip with `system` in its memory, as a boot ROM would leave it.
pub fn boot(system: &System, image: &BootImage) -> Result<Machine, Error> {
    boot_as(system, image, None)
}

/// As [`boot`]; with `first`, the chip is the peer of that system's.
pub fn boot_as(
    system: &System,
    image: &BootImage,
    first: Option<&System>,
) -> Result<Machine, Error> {
    let machine_error = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let config = crate::convert::convert_system(system, first);
    let mut machine = Machine::new(&config).map_err(|error| machine_error(&error))?;
    let memory = system
        .platform
        .memories
        .first()
        .ok_or_else(|| Error::Machine("the platform has no memory tile".to_owned()))?;
    for (offset, bytes) in &image.pieces {
        machine
            .load_memory(memory.id, *offset, bytes)
            .map_err(|error| machine_error(&error))?;
    }
    // As a boot ROM would: the kernel's tile sees the start of the first memory tile. All else is the kernel's work.
    let window = Endpoint::Memory(MemoryEndpoint {
        activity: KERNEL_ACTIVITY,
        target_tile: memory.id,
        rights: (TLB_READ | TLB_WRITE) as u8,
        base: 0,
        size: memory.size.0.min(PMP_WINDOW_SIZE),
    });
    machine
        .unit_mut(system.kernel_tile)
        .map_err(|error| machine_error(&error))?
        .set_endpoint(0, window);
    machine
        .start_hart(
            system.kernel_tile,
            image.entry,
            system.kernel_tile.into(),
            image.table,
        )
        .map_err(|error| machine_error(&error))?;
    Ok(machine)
}

/// Every marker of a run.
pub fn markers(machine: &Machine) -> Vec<MarkerEvent> {
    machine
        .markers()
        .into_iter()
        .map(|marker| MarkerEvent {
            at: marker.tick,
            tile: marker.tile,
            activity: marker.activity,
            kind: marker.kind,
            value: marker.value,
        })
        .collect()
}

/// Boots `system` from `image`.
pub fn execute(
    system: &System,
    image: &BootImage,
    plan: Plan,
    name: &str,
    progress: &dyn Progress,
) -> Result<Observed, Error> {
    execute_watched(system, (image, None), plan, name, progress, None)
}

/// As [`execute`], with a watcher in place of a trace, and with an image for the peer's chip.
pub fn execute_watched(
    system: &System,
    (image, peer_image): (&BootImage, Option<&BootImage>),
    plan: Plan,
    name: &str,
    progress: &dyn Progress,
    watcher: Option<Watcher>,
) -> Result<Observed, Error> {
    let machine_error = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let mut chips = Chips::boot(system, image, peer_image)?;
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
        machine.set_observer(Some(Box::new(tracer(system, machine, here))));
        if let Some(peer) = &system.peer {
            let machine = chips.machine_mut(1);
            let there = Chip {
                number: 1,
                heading: peer.name.clone(),
                peer: system.name.clone(),
            };
            let tracer = tracer(&peer.system, machine, there);
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
        .console(system.kernel_tile)
        .map_err(|error| machine_error(&error))?;
    let console = described(system, &String::from_utf8_lossy(console));
    // The digest is that of the machine alone, so that it does not depend on whether somebody watched.
    let here = chips.first.take_observer();
    // Of one chip there is nothing left to take.
    let there = chips.machine_mut(1).take_observer();
    // Two traces one behind the other are one.
    let traces = here.into_iter().chain(there);
    let trace = traces.flat_map(|observer| observer.bytes());
    let trace = Some(trace.collect::<Vec<u8>>()).filter(|bytes| !bytes.is_empty());
    let digest = hexadecimal(&chips.digest());
    let other = chips.other();
    let machine = &chips.first;
    Ok(Observed {
        other,
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
fn tracer(system: &System, machine: &Machine, chip: Chip) -> Tracer {
    let options = TraceOptions {
        chip,
        ..TraceOptions::default()
    };
    let mut tracer = Tracer::new(machine.config(), options);
    for (owner, name) in Names::new(system, "").all() {
        tracer.name_activity(owner, &name);
    }
    tracer
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn counts(ledger: &Ledger) -> Counts {
    ledger
        .latencies()
        .into_iter()
        .map(|latency| ((latency.owner, latency.transaction), latency.total.count()))
        .collect()
}

pub(crate) fn difference(before: &Counts, now: &Counts) -> Counts {
    now.iter()
        .map(|(key, count)| (*key, count - before.get(key).copied().unwrap_or(0)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_count_what_is_new() {
        let key = (Owner::new(1, 1), Transaction::CacheRead);
        let before = Counts::from([(key, 3)]);
        let now = Counts::from([(key, 5), ((Owner::new(2, 1), Transaction::Message), 1)]);
        let new = difference(&before, &now);
        assert_eq!(new.get(&key), Some(&2));
        assert_eq!(new.len(), 2);
    }
}
