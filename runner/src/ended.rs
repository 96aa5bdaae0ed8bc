//! How a run ended, and which program's unhandled trap ended it.
//!
//! Why it exists: such a trap is reported with its place in the sources, and with its backtrace if it was an application's. What it
//! deliberately does not know: why a program trapped, and what follows for promises.

use crate::collect;
use crate::crash;
use crate::names::Names;
use crate::observed::Observed;
use crate::paradigm::Paradigm;
use crate::places::{place_of, program_of};
use crate::programs::Program;
use bulkhead_machine::machine::Outcome;
use bulkhead_model::System;
use bulkhead_report::result::{End, Incident, IncidentKind};

/// The program on the hart that ended a run, if no activity did.
pub(crate) struct Outside<'p> {
    program: &'p Program,
    /// The application, if it is one.
    pub(crate) application: Option<String>,
    /// How far it was moved from where it is linked.
    by: u64,
}

impl<'p> Outside<'p> {
    pub(crate) fn of(
        paradigm: &dyn Paradigm,
        system: &System,
        programs: &'p [Program],
        seen: &Observed,
    ) -> Option<Self> {
        let owner = seen.ended_by;
        if let Some(name) = owner.and_then(|owner| paradigm.outside(system, owner)) {
            let program = program_of(paradigm, system, programs, &name)?;
            let by = paradigm.moved(system, &name, program);
            return Some(Self {
                program,
                application: Some(name),
                by,
            });
        }
        let kernel = paradigm.programs(system).first().copied()?;
        let program = programs.iter().find(|program| program.name == kernel)?;
        Some(Self {
            program,
            application: None,
            by: 0,
        })
    }
}

/// The trap that ended a run, if one did, with its backtrace if an application caused it.
pub(crate) fn trapped(
    names: &Names,
    seen: &Observed,
    outcome: Outcome,
    end: &End,
    outside: Option<&Outside<'_>>,
) -> Option<Incident> {
    let (Outcome::Unhandled { tile, at, .. }, End::Trap { what }) = (outcome, end) else {
        return None;
    };
    let by = outside.filter(|one| one.application.is_some());
    let who = match by.and_then(|one| one.application.clone()) {
        Some(application) => application,
        None => match names.on_tile(tile).join(", ") {
            none if none.is_empty() => "nobody's tile".to_owned(),
            who => who,
        },
    };
    let crash = by.zip(seen.trapped.as_ref()).map(|(one, kept)| {
        let read = |address| kept.word(address);
        let program = (&*one.program.elf, one.by);
        crash::of_moved(program, &kept.trap, &kept.registers, &read)
    });
    Some(Incident {
        crash,
        kind: IncidentKind::KernelStopped,
        at: Some(at),
        tile,
        application: who,
        what: format!("an unhandled trap: {what}"),
    })
}

/// How a run ended. `outside`: where the trap that ended it happened.
pub(crate) fn end(outside: Option<&Outside<'_>>, outcome: Outcome) -> End {
    match outcome {
        Outcome::Exit { code, .. } => End::Exit { code },
        Outcome::Limit => End::Duration,
        Outcome::Idle { .. } => End::Idle,
        Outcome::Unhandled { tile, trap, .. } => {
            let place = outside.map(|one| place_of(one.program, trap.pc.wrapping_sub(one.by)));
            let place = place
                .map(|place| format!(" in {place}"))
                .unwrap_or_default();
            End::Trap {
                what: format!("tile {tile}: {}{place}", crate::trap::describe(&trap)),
            }
        }
    }
}

/// The moment until which it is known what happened. If nothing more could ever happen, nothing does until the described duration is over.
pub(crate) fn until(system: &System, end: &End, ticks: u64) -> u64 {
    let duration = collect::ticks(system.duration, system.platform.ticks_per_second());
    match end {
        End::Idle => ticks.max(duration),
        End::Duration | End::Exit { .. } | End::Limit | End::Trap { .. } => ticks,
    }
}

/// A run that ended with an error without a known reason: an exit code without an incident would explain nothing.
pub fn unexplained(system: &System, end: &End, incidents: &[Incident]) -> Option<Incident> {
    let End::Exit { code: code @ 1.. } = end else {
        return None;
    };
    incidents.is_empty().then(|| Incident {
        crash: None,
        kind: IncidentKind::KernelStopped,
        at: None,
        tile: system.kernel_tile,
        application: "kernel".to_owned(),
        what: format!("ended the system with code {code} and gave no reason"),
    })
}
