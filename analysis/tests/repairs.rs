//! Repairs against brute force: on small systems every value of every number is tried in turn.
//!
//! Why it exists: a search by bisection sees few values. It must find a change wherever there is one, and no nearer one may suffice.
//! What it deliberately does not know: how the search works, and whether a verdict is right; it uses the same plans.

use bulkhead_analysis::plan::plan;
use bulkhead_analysis::plan::repair::{Number, Repair, repaired, repairs};
use bulkhead_model::tasks::{Policy, TaskSystem};
use bulkhead_model::{LoadOptions, load_tasks_text};
use bulkhead_random::Random;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Systems of each kind, unless `BULKHEAD_SYSTEMS` says otherwise.
const SYSTEMS: u64 = 20;

/// A system of two or three tasks with times of a few nanoseconds that demands about as much as the capacity.
fn small(policy: &str, processors: u64, random: &mut Random) -> TaskSystem {
    let mut between = |least: u64, most: u64| least + random.below(most + 1 - least);
    let slice = match policy {
        "time-slice" => format!(" slice=\"{}ns\"", between(1, 4)),
        _ => String::new(),
    };
    let mut text = format!(
        "<task-system name=\"s\"><processors count=\"{processors}\" policy=\"{policy}\"{slice}/>"
    );
    if policy == "three-phase" {
        text += "<tdma overhead=\"1ns\"/>";
        for core in 0..processors {
            let slot = between(2, 4);
            text += &format!("<share core=\"{core}\" slot=\"{slot}ns\"/>");
        }
    }
    let mut tasks = String::new();
    for task in 0..between(2, 2 + processors) {
        let period = match policy {
            // Tables repeat after the least common multiple.
            "mc2" => 6 << between(0, 2),
            "three-phase" => between(16, 40),
            _ => between(4, 14),
        };
        let cost = match policy {
            "three-phase" => between(1, period / 4),
            _ => between(1, 2 + period / 2),
        };
        let mut more = String::new();
        let mut inside = String::new();
        if policy == "mc2" {
            let level = ["A", "B", "C"][between(0, 2) as usize];
            more += &format!(" criticality=\"{level}\"");
            if level != "C" {
                // Each level below is less careful.
                let own = cost + cost / 2;
                inside = format!("<cost level=\"{level}\" time=\"{own}ns\"/>");
                for below in ["B", "C"].into_iter().filter(|below| *below > level) {
                    inside += &format!("<cost level=\"{below}\" time=\"{cost}ns\"/>");
                }
            } else {
                more += &format!(" cost=\"{cost}ns\"");
            }
        } else {
            more += &format!(" cost=\"{cost}ns\"");
            if between(0, 1) == 0 {
                let deadline = between(cost.min(period), period);
                more += &format!(" deadline=\"{deadline}ns\"");
            }
        }
        if policy == "fixed-priority" && between(0, 2) == 0 {
            more += &format!(" jitter=\"{}ns\"", between(1, 4));
        }
        if policy == "three-phase" {
            let (load, unload) = (between(0, 3), between(0, 3));
            more += &format!(" load=\"{load}ns\" unload=\"{unload}ns\"");
        }
        if policy == "time-slice" && between(0, 2) == 0 {
            let period = between(4, 10);
            let budget = between(period / 2, period);
            inside = format!("<cpu quota=\"{budget}ns\" period=\"{period}ns\"/>");
        }
        tasks += &format!("<task name=\"t{task}\" period=\"{period}ns\"{more}>{inside}</task>");
    }
    text += &tasks;
    text += "</task-system>";
    let loaded = load_tasks_text("s", &text, &LoadOptions::default());
    loaded.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn holds(system: &TaskSystem) -> bool {
    plan(system).is_ok_and(|plan| plan.schedulable)
}

fn ns(time: bulkhead_model::units::Time) -> u64 {
    time.nanoseconds()
}

/// Numbers that may be changed with their values, as repairs up to the last value that is tried.
fn numbers(system: &TaskSystem) -> Vec<Repair> {
    let mut all = Vec::new();
    let mut add = |number, subject: String, from, to| {
        all.push(Repair {
            number,
            subject,
            from,
            to,
            unit: bulkhead_analysis::plan::Unit::Nanoseconds,
            relative: 0,
            with_deadline: false,
            anew: false,
        });
    };
    for it in &system.tasks {
        let name = || it.name.clone();
        let at = |level| {
            let mut points = it.costs.iter();
            let point = points.find(|point| point.level == Some(level));
            point.map(|point| point.time).or(it.cost).map_or(0, ns)
        };
        add(Number::Cost, name(), at(it.criticality), 1);
        // Another period of level A has another table.
        if system.policy != Policy::Mc2 || it.criticality > 'A' {
            // A plan of three phases takes long.
            let most = if system.policy == Policy::ThreePhase {
                8
            } else {
                64
            };
            add(Number::Period, name(), ns(it.period), most * ns(it.period));
        }
        for level in ('B'..='C').filter(|&level| level > it.criticality) {
            if system.policy == Policy::Mc2 {
                let subject = format!("{} at level {level}", it.name);
                add(Number::Estimate, subject, at(level), 1);
            }
        }
        for (number, value) in [
            (Number::Jitter, it.jitter),
            (Number::Load, it.load),
            (Number::Unload, it.unload),
        ] {
            if value.0 > 0 {
                add(number, name(), ns(value), 0);
            }
        }
    }
    if let Some(overhead) = system.tdma.map(ns) {
        let transfers = system
            .tasks
            .iter()
            .flat_map(|task| [task.load, task.unload]);
        let longest = transfers.map(ns).max().unwrap_or(0);
        for share in &system.shares {
            let (Some(core), Some(slot)) = (share.core, share.slot) else {
                continue;
            };
            for end in [overhead + 1, overhead + longest] {
                add(Number::Slot, format!("processor {core}"), ns(slot), end);
            }
        }
    }
    all.retain(|one| one.from != one.to);
    all
}

/// The nearest value that makes the system pass, tried one by one.
fn by_brute_force(system: &TaskSystem, like: &Repair) -> Option<u64> {
    let mut value = like.from;
    while value != like.to {
        value = if like.to > value {
            value + 1
        } else {
            value - 1
        };
        let changed = repaired(system, like, value).expect("a number that there is");
        if holds(&changed) {
            return Some(value);
        }
    }
    None
}

/// How many changes there are, and which of them the search misses or finds too far away.
fn compare(policy: &str, processors: u64, number: u64) -> (u64, Vec<String>) {
    let mut random = Random::new(number * 16 + processors + 1000 * policy.len() as u64);
    let system = small(policy, processors, &mut random);
    let Ok(failing) = plan(&system) else {
        return (0, Vec::new());
    };
    if failing.schedulable {
        return (0, Vec::new());
    }
    let found = repairs(&system, &failing);
    assert!(
        found.is_sorted_by_key(|one| one.relative),
        "the least comes first: {found:?}"
    );
    let (mut there, mut wrong) = (0, Vec::new());
    for like in numbers(&system) {
        let mut known = found.iter();
        let known = known.find(|one| {
            let same = (one.number, &one.subject) == (like.number, &like.subject);
            let towards = like.to.min(like.from)..=like.to.max(like.from);
            same && towards.contains(&one.to)
        });
        let nearest = by_brute_force(&system, &like);
        there += u64::from(nearest.is_some());
        if known.map(|one| one.to) != nearest {
            wrong.push(format!(
                "{policy} {:?} of {}: {:?}, brute force {nearest:?}\n{}",
                like.number,
                like.subject,
                known.map(|one| one.to),
                bulkhead_model::tasks::write(&system)
            ));
        }
    }
    (there, wrong)
}

#[test]
fn every_least_change_is_found() {
    let systems = std::env::var("BULKHEAD_SYSTEMS").ok();
    let systems = systems.and_then(|text| text.parse().ok());
    for (policy, processors) in [
        ("fixed-priority", 1),
        ("rate-monotonic", 1),
        ("edf", 1),
        ("non-preemptive", 1),
        ("threshold", 1),
        ("fixed-priority", 2),
        ("edf", 2),
        ("global-fixed-priority", 2),
        ("global-edf", 2),
        ("time-slice", 1),
        ("three-phase", 1),
        ("three-phase", 2),
        ("mc2", 1),
        ("mc2", 2),
    ] {
        // Of these a single change repairs few.
        let more = if policy == "time-slice" || policy == "three-phase" {
            3
        } else {
            1
        };
        let systems = 0..systems.unwrap_or(SYSTEMS * more);
        let all = systems.into_par_iter();
        let all = all.map(|number| compare(policy, processors, number));
        let all: Vec<_> = all.collect();
        let there: u64 = all.iter().map(|one| one.0).sum();
        let wrong: Vec<&String> = all.iter().flat_map(|one| &one.1).collect();
        println!(
            "{policy} on {processors}: {there} changes, {} of them missed or too far",
            wrong.len()
        );
        assert!(there > 0, "{policy}: nothing was compared");
        assert_eq!(wrong, Vec::<&String>::new());
    }
}
