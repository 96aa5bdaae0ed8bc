//! Parts of a description that no bound uses, and assumptions of bounds that the description does not state.
//!
//! Why it exists: a reader who wrote an offset should not wonder whether it counted. What it deliberately does not know: verdicts.
//! What a bound does not use never makes it unsafe; an assumption that does not hold does.

use bulkhead_model::tasks::{Policy, TaskSystem};

use super::{evaluate, prepare};
use crate::schedulability::periodic;

/// One sentence for each unused part.
pub fn notes(system: &TaskSystem) -> Vec<String> {
    let mut all = offsets(system);
    all.extend(levels(system));
    all.extend(accesses(system));
    all.extend(readers(system));
    all
}

/// The assumptions about the levels of the mixed-criticality kernel, and the tasks to which they promise nothing.
fn levels(system: &TaskSystem) -> Vec<String> {
    if system.policy != Policy::Mc2 {
        return Vec::new();
    }
    let of = |wanted: fn(char) -> bool| -> Vec<&str> {
        let all = system.tasks.iter();
        let all = all.filter(|task| wanted(task.criticality));
        all.map(|task| task.name.as_str()).collect()
    };
    let mut all = Vec::new();
    if !system.periodic && !of(|level| level == 'A').is_empty() {
        all.push(
            "bounds of levels A and B hold for arrivals at any times at least a period apart, so a job of level A may just miss its slot: write arrivals=\"periodic\" at <processors> if every job arrives exactly a period after the one before, from the start of the tables on".to_owned(),
        );
    }
    let rest = of(|level| level > 'C');
    if !rest.is_empty() {
        all.push(format!(
            "there are no promises for {}, and no verdict counts them: levels D and E get the remaining time",
            few(&rest)
        ));
    }
    all
}

/// Data in transit without a bound, because nothing says when its readers arrive.
fn readers(system: &TaskSystem) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let polled = system.channels.iter().filter(|channel| !channel.notify);
    let buffered = system
        .devices
        .iter()
        .filter(|device| device.buffer.is_some());
    let readers = polled.map(|channel| channel.to);
    for task in readers.chain(buffered.filter_map(|device| device.task)) {
        let name = system.tasks[task].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!system.periodic && !names.is_empty()).then(|| {
        format!(
            "channels, queues, buffers and flows that {} reads have no bound, because with sporadic arrivals a reader may never come: write arrivals=\"periodic\" at <processors> if every job arrives exactly a period after the one before",
            few(&names)
        )
    })
}

/// The first names, and a count of the others.
fn few(names: &[&str]) -> String {
    match names {
        names if names.len() > 4 => {
            format!("{} and {} more", names[..4].join(", "), names.len() - 4)
        }
        names => names.join(", "),
    }
}

/// Costs that cannot contain the accesses that they are said to contain.
fn accesses(system: &TaskSystem) -> Option<String> {
    let access = system.memguard.as_ref()?.access.nanoseconds();
    let all = system.tasks.iter().enumerate();
    let beyond = all.filter(|(index, task)| {
        let cost = prepare::cost(system, *index, task.criticality);
        cost.is_some_and(|cost| task.accesses.saturating_mul(access) > cost)
    });
    let names: Vec<&str> = beyond.map(|(_, task)| task.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "the memory accesses of {} take longer than its cost, which should contain them: `cost`, `accesses` or `access` is wrong",
            names.join(", ")
        )
    })
}

fn offsets(system: &TaskSystem) -> Vec<String> {
    if system.policy == Policy::Table && !system.periodic {
        return vec![
            "bounds hold for arrivals at any times at least a period apart, so a job may just miss its slot: write arrivals=\"periodic\" at <processors> if every job arrives exactly a period after the one before, from its offset on".to_owned(),
        ];
    }
    let with: Vec<&str> = system
        .tasks
        .iter()
        .filter(|task| task.offset.0 > 0)
        .map(|task| task.name.as_str())
        .collect();
    if with.is_empty() || system.policy == Policy::Table {
        return Vec::new();
    }
    let usable = matches!(
        system.policy,
        Policy::FixedPriority | Policy::RateMonotonic | Policy::Edf
    );
    if system.policy == Policy::Mc2 {
        return vec![format!(
            "offsets of {} are not used: levels A and B begin with the tables, and bounds of level C hold for any arrivals",
            few(&with)
        )];
    }
    if !usable {
        return vec![format!(
            "offsets of {} are not used: the test of policy `{}` holds for any arrivals",
            few(&with),
            system.policy.word()
        )];
    }
    if !system.periodic {
        return vec![format!(
            "offsets of {} are not used: arrivals are sporadic, so bounds hold for any; if they are exact, write arrivals=\"periodic\" at <processors>",
            few(&with)
        )];
    }
    let mut all = Vec::new();
    for (core, members) in evaluate::members(system) {
        let names: Vec<&str> = members
            .iter()
            .map(|&index| &system.tasks[index])
            .filter(|task| task.offset.0 > 0)
            .map(|task| task.name.as_str())
            .collect();
        if names.is_empty() {
            continue;
        }
        let periods = members
            .iter()
            .map(|&index| prepare::nanoseconds(system.tasks[index].period));
        let why = if prepare::offsets(system, core, &members).is_none() {
            "jitter, blocking, sections, memory phases, interrupts, stalls or (under `edf`) releases make the schedule depend on more than costs"
        } else if periodic::hyperperiod(periods).is_none() {
            "the schedule repeats too late to be followed"
        } else {
            continue;
        };
        all.push(format!(
            "offsets of {} on processor {core} are not used: {why}; bounds hold for any",
            few(&names)
        ));
    }
    all
}
