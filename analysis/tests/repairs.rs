//! Repairs against brute force: on small systems every value of every number is tried, one after the other.
//!
//! Why it exists: a search by bisection sees few values. It must find a change wherever there is one, and none that is nearer may do.
//! What it deliberately does not know: how the search goes, and whether a verdict is right; it asks the same plans.

use bulkhead_analysis::plan::plan;
use bulkhead_analysis::plan::repair::{Number, Repair, repaired, repairs};
use bulkhead_model::tasks::TaskSystem;
use bulkhead_model::{LoadOptions, load_tasks_text};
use bulkhead_random::Random;

/// Systems of each kind, unless `BULKHEAD_SYSTEMS` says otherwise.
const SYSTEMS: u64 = 20;

/// A system of two or three tasks with times of a few nanoseconds that asks for about as much as there is.
fn small(policy: &str, processors: u64, random: &mut Random) -> TaskSystem {
    let mut text =
        format!("<task-system name=\"s\"><processors count=\"{processors}\" policy=\"{policy}\"/>");
    let mut between = |least: u64, most: u64| least + random.below(most + 1 - least);
    for task in 0..between(2, 2 + processors) {
        let period = between(4, 14);
        let cost = between(1, 2 + period / 2);
        let mut more = String::new();
        if between(0, 1) == 0 {
            let deadline = between(cost.min(period), period);
            more += &format!(" deadline=\"{deadline}ns\"");
        }
        if policy == "fixed-priority" && between(0, 2) == 0 {
            more += &format!(" jitter=\"{}ns\"", between(1, 4));
        }
        text += &format!("<task name=\"t{task}\" period=\"{period}ns\" cost=\"{cost}ns\"{more}/>");
    }
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

/// Numbers of one task with their values and the last one that is tried.
fn numbers(system: &TaskSystem, task: usize) -> Vec<(Number, u64, u64)> {
    let it = &system.tasks[task];
    let cost = it.cost.map_or(0, ns);
    let mut all = vec![
        (Number::Cost, cost, 1),
        (Number::Period, ns(it.period), 64 * ns(it.period)),
    ];
    if it.jitter.0 > 0 {
        all.push((Number::Jitter, ns(it.jitter), 0));
    }
    all
}

/// The nearest value that makes the system pass, tried one by one.
fn by_brute_force(system: &TaskSystem, like: &Repair, last: u64) -> Option<u64> {
    let mut value = like.from;
    while value != last {
        value = if last > value { value + 1 } else { value - 1 };
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
    for task in 0..system.tasks.len() {
        for (number, from, last) in numbers(&system, task) {
            let known = found
                .iter()
                .find(|one| one.number == number && one.subject == system.tasks[task].name);
            let like = Repair {
                number,
                subject: system.tasks[task].name.clone(),
                from,
                to: last,
                unit: bulkhead_analysis::plan::Unit::Nanoseconds,
                relative: 0,
                with_deadline: false,
                anew: false,
            };
            let nearest = by_brute_force(&system, &like, last);
            there += u64::from(nearest.is_some());
            if known.map(|one| one.to) != nearest {
                wrong.push(format!(
                    "{policy} {number:?} of {}: {:?}, brute force {nearest:?}\n{}",
                    like.subject,
                    known.map(|one| one.to),
                    bulkhead_model::tasks::write(&system)
                ));
            }
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
    ] {
        let systems = 0..systems.unwrap_or(SYSTEMS);
        let all = systems.map(|number| compare(policy, processors, number));
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
