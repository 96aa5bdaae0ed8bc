//! What is divided: ways, colours, banks, memory accesses, bandwidth.
//!
//! Why it exists: a share that is given away twice isolates nothing. What it deliberately does not know: scheduling, with one exception: if
//! jobs are preempted, all working sets of a processor together must fit in its colours; otherwise only the largest must.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_model::tasks::{Direction, Policy, Share, TaskSystem};

use super::{Constraint, Kind, Unit};

/// Sums of shares compared with what exists, and colours compared with working sets.
pub fn constraints(system: &TaskSystem, all: &mut Vec<Constraint>) {
    let sum = |part: fn(&Share) -> Option<u64>| {
        let given: Vec<u64> = system.shares.iter().filter_map(part).collect();
        (!given.is_empty()).then(|| given.iter().fold(0u64, |sum, n| sum.saturating_add(*n)))
    };
    let mut total = |kind, subject: &str, given: Option<u64>, there: u64| {
        if let Some(given) = given {
            all.push(Constraint::new(
                kind,
                subject,
                Some(given),
                Some(there),
                Unit::Count,
                "sum of shares",
            ));
        }
    };
    if let Some(llc) = system.llc {
        let ways = sum(|share| share.ways.map(u64::from));
        total(Kind::Ways, "last-level cache", ways, llc.ways.into());
        let colours = sum(|share| share.colours.map(u64::from));
        total(
            Kind::Colours,
            "last-level cache",
            colours,
            llc.colours.into(),
        );
    }
    if let Some(ram) = system.ram {
        let banks = sum(|share| share.banks.map(u64::from));
        total(Kind::Banks, "main memory", banks, ram.banks.into());
    }
    if let Some(most) = system.memguard.and_then(|guard| guard.accesses) {
        total(Kind::Budget, "main memory", sum(|share| share.budget), most);
    }
    sections(system, all);
    // Including those of no particular processor: the tasks of level C.
    let whom = (0..system.processors).map(Some).chain([None]);
    for core in whom {
        let has = system.share(core).and_then(|share| share.colours);
        if let (Some(needed), Some(has)) = (colours_needed(system, core), has) {
            all.push(Constraint::new(
                Kind::Colours,
                core.map_or("level C".into(), |core| format!("processor {core}")),
                Some(needed),
                Some(has.into()),
                Unit::Count,
                "working sets over colours",
            ));
        }
    }
    if let Some(limit) = system.ram.and_then(|ram| ram.bandwidth) {
        let moved = system.devices.iter().fold(0u64, |sum, device| {
            let rate = device.rate.map_or(0, |rate| rate.0);
            let both = if device.direction == Direction::Both {
                2
            } else {
                1
            };
            // A copy reads and writes everything once more.
            let copies = if device.copied { 3 } else { 1 };
            sum.saturating_add(rate.saturating_mul(both * copies))
        });
        all.push(Constraint::new(
            Kind::Bandwidth,
            "main memory",
            Some(moved),
            Some(limit.0),
            Unit::BytesPerSecond,
            "sum of the devices' rates, copies included",
        ));
    }
}

/// Colours needed by the working sets of a processor or of level C; `None`: nothing is known about colours.
pub fn colours_needed(system: &TaskSystem, core: Option<u32>) -> Option<u64> {
    let size = system.llc.map(|llc| llc.colour_size.0).filter(|&s| s > 0)?;
    let each = system
        .tasks
        .iter()
        .filter(|task| task.core == core && (core.is_some() || task.criticality == 'C'))
        .map(|task| task.working_set.0.div_ceil(size));
    let whole_jobs = matches!(
        system.policy,
        Policy::NonPreemptive | Policy::OneShot | Policy::ThreePhase
    );
    Some(if whole_jobs {
        each.max().unwrap_or(0)
    } else {
        each.fold(0, u64::saturating_add)
    })
}

/// Resources that are held on more than one processor.
fn sections(system: &TaskSystem, all: &mut Vec<Constraint>) {
    let mut holders: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for task in &system.tasks {
        for section in &task.sections {
            let cores = holders.entry(&section.resource).or_default();
            cores.extend(task.core);
        }
    }
    for (resource, cores) in holders.iter().filter(|(_, cores)| cores.len() > 1) {
        let mut constraint = Constraint::new(
            Kind::Section,
            *resource,
            Some(cores.len() as u64),
            Some(1),
            Unit::Count,
            "priority ceiling protocol (Sha, Rajkumar and Lehoczky 1990)",
        );
        constraint.note = Some("its tasks do not fit on one processor together".into());
        all.push(constraint);
    }
}
