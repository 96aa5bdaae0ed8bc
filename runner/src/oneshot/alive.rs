//! Cores whose kernels count no ticks at the end of a run, and harts that a core of the chip started again.
//!
//! Why it exists: such a core releases no job any more, or lost those that it had begun, and its own kernel cannot tell. The machine knows when the timer of
//! each core interrupts next, where each hart is, and which tile started which hart. What it deliberately does not know: which jobs are missing, and what follows
//! for promises.
//!
//! A kernel sets its timer for the next tick in each tick, whatever its tasks do. So a timer that is set for later, or a tick that has not been taken for longer
//! than the kernel and protected objects mask interrupts, shows a core that is dead: its timer or interrupts were changed, its memory was written over, or a
//! handler does not end.

use crate::collect::ticks;
use crate::measure::MarkerEvent;
use crate::paradigm::Said;
use bulkhead_abi::one_shot::marker;
use bulkhead_machine::local_tile::{Prospect, Started};
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_report::result::{Incident, IncidentKind};
use std::collections::BTreeMap;

/// Ticks that a core may be late with its tick, or early.
const PATIENCE: u64 = 2;

/// Cores that are dead at the end, and cores that were started again. `known`: what kernels told.
pub fn incidents(
    system: &System,
    one_shot: &OneShot,
    seen: &Said<'_>,
    locate: &dyn Fn(&str, u64) -> Option<String>,
    known: &[Incident],
) -> Vec<Incident> {
    let mut all = restarted(one_shot, seen);
    all.extend(dead(system, one_shot, seen, locate));
    // Its kernel has stopped the core and told why.
    let told = |one: &Incident| {
        let mut known = known.iter();
        known.any(|other| other.kind == IncidentKind::Crash && other.application == one.application)
    };
    all.retain(|one| !told(one));
    all
}

/// The tasks of a core, for a text.
pub(super) fn tasks(one_shot: &OneShot, core: u16) -> String {
    let tasks = one_shot.on_core(core).into_iter();
    let tasks: Vec<String> = tasks
        .map(|task| format!("`{}`", one_shot.tasks.tasks[task].name))
        .collect();
    match tasks.is_empty() {
        true => "no tasks".to_owned(),
        false => format!("tasks: {}", tasks.join(", ")),
    }
}

/// Harts that were started by a write. Only a host core starts others, each of them once.
fn restarted(one_shot: &OneShot, seen: &Said<'_>) -> Vec<Incident> {
    let cores = one_shot.cores();
    let of_host = |one: &Started| {
        Some(one.by) == one_shot.host && one.count == 1 && cores.contains(&one.tile)
    };
    let each = seen.starts.iter().filter(|one| !of_host(one));
    // Each hart is told once, with the tile that was the first to start it.
    let mut first: BTreeMap<u16, Started> = BTreeMap::new();
    for one in each {
        let known = first.entry(one.tile).or_insert(*one);
        if one.at < known.at {
            *known = *one;
        }
    }
    first
        .into_values()
        .map(|one| {
            let by = match one.by == one.tile {
                true => "it started itself again".to_owned(),
                false => format!(
                    "core {} ({}) started its hart",
                    one.by,
                    tasks(one_shot, one.by)
                ),
            };
            let times = match one.count {
                1 => String::new(),
                count => format!(", and {} times more", count - 1),
            };
            let then = match cores.contains(&one.tile) || one_shot.host == Some(one.tile) {
                true => "what ran there was cut off, and its tasks began anew",
                false => "what it runs is in no description",
            };
            Incident {
                crash: None,
                kind: IncidentKind::Unfinished,
                at: Some(one.at),
                tile: one.tile,
                application: format!("core {}", one.tile),
                what: format!("{by}{times}: {then} ({})", tasks(one_shot, one.tile)),
            }
        })
        .collect()
}

/// Cores whose kernels count no ticks any more.
fn dead(
    system: &System,
    one_shot: &OneShot,
    seen: &Said<'_>,
    locate: &dyn Fn(&str, u64) -> Option<String>,
) -> Vec<Incident> {
    let patience = PATIENCE * ticks(TICK, system.platform.ticks_per_second());
    let mut cores = one_shot.cores();
    cores.extend(one_shot.host);
    let own = |one: &&Prospect| cores.contains(&one.tile);
    let mut all = Vec::new();
    for one in seen.prospects.iter().filter(own) {
        let core = one.tile;
        let since = one.timer;
        let (at, why) = if since > seen.until.saturating_add(patience) {
            let why = "its timer is not set for the next one, because something wrote to it";
            (None, why.to_owned())
        } else if since.saturating_add(patience) < seen.until {
            let place = || {
                let place = locate(&format!("core {core}"), one.pc);
                place.map_or(String::new(), |place| format!(", at the end in {place}"))
            };
            let why = match (one.rests, one.listens) {
                (true, _) => "it waits with the interrupts of its timer off".to_owned(),
                (false, true) => format!("its kernel does not take them{}", place()),
                (false, false) => format!(
                    "a handler does not end, or something keeps interrupts off{}",
                    place()
                ),
            };
            // The timer of a kernel whose memory was written over may be set for a tick long ago.
            let mut marks = seen.markers.iter().rev();
            let last = marks.find(|one| one.tile == core).map_or(0, |one| one.at);
            (Some(since.max(last)), why)
        } else {
            continue;
        };
        let during = match under_way(one_shot, seen.markers, core) {
            Some(task) => format!("a job of `{task}` was under way"),
            None => "no job was under way".to_owned(),
        };
        all.push(Incident {
            crash: None,
            kind: IncidentKind::Unfinished,
            at,
            tile: core,
            application: format!("core {core}"),
            what: format!(
                "it counts no ticks any more: {why}; {during} ({})",
                tasks(one_shot, core)
            ),
        });
    }
    all
}

/// The task whose job has begun on a core, and has not ended.
fn under_way<'s>(one_shot: &'s OneShot, markers: &[MarkerEvent], core: u16) -> Option<&'s str> {
    let ends = [marker::END, marker::STOPPED];
    let of_core = markers.iter().rev().filter(|one| one.tile == core);
    let mut jobs = of_core.filter(|one| one.kind == marker::BEGIN || ends.contains(&one.kind));
    let begun = jobs.next().filter(|one| one.kind == marker::BEGIN)?;
    let task = one_shot
        .on_core(core)
        .get(usize::try_from(begun.value).ok()?)
        .copied()?;
    Some(&one_shot.tasks.tasks[task].name)
}
