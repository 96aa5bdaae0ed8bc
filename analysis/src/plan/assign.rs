//! Priorities, thresholds and processors for tasks without them.
//!
//! Why it exists: each is a search with a test inside. What it deliberately does not know: how caches and memory are divided; task
//! costs are fixed here.
//!
//! Methods. Priorities: by deadline less jitter (J. Leung, J. Whitehead, 1982), which is optimal for preemptive tasks with
//! deadlines within periods; where that fails, Audsley's assignment from the lowest priority up (N. Audsley, 1991), optimal
//! wherever a response depends only on the set of higher tasks, which critical sections violate. Thresholds: R. Wang, M. Saksena
//! 1999: from the lowest priority up, the smallest threshold that meets the deadline, which finds an assignment whenever one
//! exists for these priorities; then as few preemptions as the deadlines allow. Processors: first, best and worst fit, then, for
//! few tasks, every assignment.

use bulkhead_model::tasks::{Policy, Task, TaskSystem};

use super::evaluate::{meets, processor};
use super::prepare;
use super::{Nanoseconds, PlanError};
use crate::schedulability::partitioning::{Fit, Order};

/// Maximum tasks of a processor for which Audsley's assignment is tried.
const AUDSLEY_TASKS: usize = 32;
/// Maximum tasks of a processor for which thresholds are searched; each step of the search analyses them all.
const THRESHOLD_TASKS: usize = 64;
/// Maximum tasks for which every order of priorities is tried if no method is optimal.
const ORDERS_TASKS: usize = 7;
/// Partial assignments that the exact search for processors examines.
const NODES: u32 = 3_000;

/// Gives `members` the priorities 1, 2 ... in this order.
fn number(system: &mut TaskSystem, order: &[usize]) {
    for (rank, &index) in order.iter().enumerate() {
        system.tasks[index].priority = Some(rank as u32 + 1);
    }
}

/// By deadline minus jitter; ties in file order.
fn monotonic(system: &TaskSystem, members: &[usize]) -> Vec<usize> {
    let mut order = members.to_vec();
    order.sort_by_key(|&index| {
        let task = &system.tasks[index];
        let span = if system.policy == Policy::RateMonotonic {
            task.period
        } else {
            task.deadline
        };
        (span.0.saturating_sub(task.jitter.0), index)
    });
    order
}

/// Priorities for the tasks `members` of processor `core`; thresholds, too, with that policy. Says how they were found.
pub fn priorities(
    system: &mut TaskSystem,
    core: u32,
    members: &[usize],
) -> Result<&'static str, PlanError> {
    let order = monotonic(system, members);
    number(system, &order);
    if meets(system, core, members)? {
        return Ok("by deadline");
    }
    if system.policy == Policy::Threshold && thresholds(system, core, members)? {
        return Ok("by deadline, with thresholds");
    }
    clear_thresholds(system, members);
    let simple = system.policy == Policy::FixedPriority
        && !system.periodic
        && members.iter().all(|&index| {
            let task = &system.tasks[index];
            task.deadline <= task.period
                && task.jitter.0 == 0
                && task.blocking.0 == 0
                && task.sections.is_empty()
        })
        && prepare::interrupts(system, core).is_empty()
        && system.mutex.is_none();
    if !simple && members.len() <= AUDSLEY_TASKS {
        if audsley(system, core, members)? {
            return Ok("by Audsley's optimal assignment");
        }
        number(system, &order);
    }
    Ok("by deadline")
}

fn clear_thresholds(system: &mut TaskSystem, members: &[usize]) {
    for &index in members {
        system.tasks[index].threshold = None;
    }
}

/// Whether a task of a processor meets its deadline when all others are present.
fn one_meets(
    system: &TaskSystem,
    core: u32,
    members: &[usize],
    index: usize,
) -> Result<bool, PlanError> {
    let deadline = prepare::nanoseconds(system.tasks[index].deadline);
    let known = processor(system, core, members)?;
    let position = members.iter().position(|&other| other == index);
    Ok(position
        .and_then(|position| known[position].response)
        .is_some_and(|response| response <= deadline))
}

/// From the lowest priority up: any task that meets its deadline there may stay there.
fn audsley(system: &mut TaskSystem, core: u32, members: &[usize]) -> Result<bool, PlanError> {
    let mut open = monotonic(system, members);
    let mut below: Vec<usize> = Vec::new();
    while !open.is_empty() {
        let mut found = None;
        for candidate in (0..open.len()).rev() {
            let mut order = open.clone();
            let index = order.remove(candidate);
            order.push(index);
            order.extend(below.iter().rev());
            number(system, &order);
            if one_meets(system, core, members, index)? {
                found = Some(candidate);
                break;
            }
        }
        let Some(candidate) = found else {
            return Ok(false);
        };
        below.push(open.remove(candidate));
    }
    below.reverse();
    number(system, &below);
    meets(system, core, members)
}

/// Thresholds for given priorities: feasible ones if any exist, then as high as deadlines allow.
pub fn thresholds(
    system: &mut TaskSystem,
    core: u32,
    members: &[usize],
) -> Result<bool, PlanError> {
    if members.len() > THRESHOLD_TASKS {
        return Ok(false);
    }
    let mut order = members.to_vec();
    order.sort_by_key(|&index| system.tasks[index].priority);
    for &index in &order {
        system.tasks[index].threshold = system.tasks[index].priority;
    }
    // A threshold that matters is the priority of a task of the processor.
    for rank in (0..order.len()).rev() {
        let index = order[rank];
        let mut level = rank;
        while !one_meets(system, core, members, index)? {
            let Some(higher) = level.checked_sub(1) else {
                return Ok(false);
            };
            level = higher;
            system.tasks[index].threshold = system.tasks[order[level]].priority;
        }
    }
    if !meets(system, core, members)? {
        return Ok(false);
    }
    for rank in 0..order.len() {
        let index = order[rank];
        let start = order
            .iter()
            .position(|&other| system.tasks[other].priority == system.tasks[index].threshold)
            .unwrap_or(rank);
        for level in (0..start).rev() {
            let before = system.tasks[index].threshold;
            system.tasks[index].threshold = system.tasks[order[level]].priority;
            if !meets(system, core, members)? {
                system.tasks[index].threshold = before;
                break;
            }
        }
    }
    Ok(true)
}

/// Priorities for all processors together. `holds` judges a system.
pub fn global_priorities(
    system: &mut TaskSystem,
    holds: impl Fn(&TaskSystem) -> Result<bool, PlanError>,
) -> Result<&'static str, PlanError> {
    let all: Vec<usize> = (0..system.tasks.len()).collect();
    let order = monotonic(system, &all);
    number(system, &order);
    if holds(system)? {
        return Ok("by deadline");
    }
    let mut slack = all.clone();
    slack.sort_by_key(|&index| {
        let cost = prepare::cost(system, index, system.tasks[index].criticality).unwrap_or(0);
        let deadline: Nanoseconds = prepare::nanoseconds(system.tasks[index].deadline);
        (deadline.saturating_sub(cost), index)
    });
    number(system, &slack);
    if holds(system)? {
        return Ok("by deadline less cost");
    }
    if all.len() <= ORDERS_TASKS {
        let mut orders = vec![Vec::new()];
        for _ in &all {
            let longer = |order: &Vec<usize>| {
                let order = order.clone();
                all.clone()
                    .into_iter()
                    .filter(|index| !order.contains(index))
                    .map(|index| [order.as_slice(), &[index]].concat())
                    .collect::<Vec<_>>()
            };
            orders = orders.iter().flat_map(longer).collect();
        }
        for order in orders {
            number(system, &order);
            if holds(system)? {
                return Ok("by trying every order");
            }
        }
    }
    number(system, &order);
    Ok("by deadline")
}

/// Tasks that already have a processor and hold a resource that this task also holds: a resource belongs to a single processor.
fn companions(system: &TaskSystem, index: usize) -> impl Iterator<Item = u32> {
    let sections = &system.tasks[index].sections;
    let shares = |task: &Task| {
        let mut theirs = task.sections.iter();
        theirs.any(|s| {
            sections
                .iter()
                .any(|section| section.resource == s.resource)
        })
    };
    let others = system.tasks.iter().enumerate();
    others.filter_map(move |(other, task)| (other != index && shares(task)).then_some(task.core)?)
}

/// Where a task must go because of what it shares, if that decides it.
fn together(system: &TaskSystem, index: usize) -> Option<u32> {
    companions(system, index).next()
}

/// Whether a processor has room for `index` besides the tasks already there.
fn fits(
    system: &mut TaskSystem,
    core: u32,
    index: usize,
    there: &[usize],
    choose: bool,
) -> Result<bool, PlanError> {
    let mut members = there.to_vec();
    members.push(index);
    members.sort_unstable();
    if companions(system, index).any(|there| there != core) {
        return Ok(false);
    }
    system.tasks[index].core = Some(core);
    let mut good = meets(system, core, &members)?;
    if !good && choose {
        let before: Vec<_> = members
            .iter()
            .map(|&i| (system.tasks[i].priority, system.tasks[i].threshold))
            .collect();
        priorities(system, core, &members)?;
        good = meets(system, core, &members)?;
        for (&i, (priority, threshold)) in members.iter().zip(before) {
            system.tasks[i].priority = priority;
            system.tasks[i].threshold = threshold;
        }
    }
    system.tasks[index].core = None;
    Ok(good)
}

/// Millionths of a processor that a task needs, for ordering only.
fn load(system: &TaskSystem, index: usize) -> u128 {
    let cost = prepare::cost(system, index, system.tasks[index].criticality).unwrap_or(0);
    let period = prepare::nanoseconds(system.tasks[index].period).max(1);
    u128::from(cost) * 1_000_000_000 / u128::from(period)
}

/// Tasks that need a processor and have none.
pub fn homeless(system: &TaskSystem) -> Vec<usize> {
    if system.policy.is_global() {
        return Vec::new();
    }
    (0..system.tasks.len())
        .filter(|&index| {
            let task = &system.tasks[index];
            task.core.is_none() && (system.policy != Policy::Mc2 || task.criticality < 'C')
        })
        .collect()
}

/// Places every task that needs a processor. Returns the tasks that fit nowhere, which go on the emptiest one. With `choose`,
/// priorities are open and may be chosen again for each set of tasks.
pub fn place(
    system: &mut TaskSystem,
    fit: Fit,
    order: Order,
    choose: bool,
) -> Result<Vec<usize>, PlanError> {
    let mut open = homeless(system);
    if system.processors == 1 {
        for index in open {
            system.tasks[index].core = Some(0);
        }
        return Ok(Vec::new());
    }
    if order == Order::DecreasingUtilisation {
        open.sort_by_key(|&index| std::cmp::Reverse(load(system, index)));
    }
    let cores = system.processors;
    let mut there: Vec<Vec<usize>> = vec![Vec::new(); cores as usize];
    let mut loads = vec![0u128; cores as usize];
    for (index, task) in system.tasks.iter().enumerate() {
        if let Some(core) = task.core {
            there[core as usize].push(index);
            loads[core as usize] += load(system, index);
        }
    }
    let mut left = Vec::new();
    for index in open {
        let mut candidates: Vec<usize> = (0..cores as usize).collect();
        match fit {
            Fit::First => {}
            Fit::Best => candidates.sort_by_key(|&core| std::cmp::Reverse(loads[core])),
            Fit::Worst => candidates.sort_by_key(|&core| loads[core]),
        }
        let mut found = None;
        for core in candidates {
            // Cheap and certain: more than the whole processor never fits.
            let full = loads[core] + load(system, index) > 1_001_000_000;
            if !full && fits(system, core as u32, index, &there[core], choose)? {
                found = Some(core);
                break;
            }
        }
        let core = found.unwrap_or_else(|| {
            left.push(index);
            let emptiest = (0..cores as usize).min_by_key(|&core| loads[core]);
            let there = together(system, index).map(|core| core as usize);
            there.or(emptiest).unwrap_or(0)
        });
        system.tasks[index].core = Some(core as u32);
        there[core].push(index);
        there[core].sort_unstable();
        loads[core] += load(system, index);
    }
    Ok(left)
}

/// Tries every assignment to processors, equivalent ones once, up to [`NODES`]. `Ok(false)`: none was found.
pub fn place_exactly(system: &mut TaskSystem, choose: bool) -> Result<bool, PlanError> {
    let mut open = homeless(system);
    open.sort_by_key(|&index| std::cmp::Reverse(load(system, index)));
    let mut nodes = NODES;
    search(system, &open, choose, &mut nodes)
}

fn search(
    system: &mut TaskSystem,
    open: &[usize],
    choose: bool,
    nodes: &mut u32,
) -> Result<bool, PlanError> {
    let Some((&index, rest)) = open.split_first() else {
        return Ok(true);
    };
    let mut empty_seen = false;
    for core in 0..system.processors {
        let there: Vec<usize> = (0..system.tasks.len())
            .filter(|&other| system.tasks[other].core == Some(core))
            .collect();
        // Processors without anything of their own are equivalent, unless they handle interrupts or have different shares.
        let plain = there.is_empty()
            && system.shares.is_empty()
            && prepare::interrupts(system, core).is_empty();
        if plain && std::mem::replace(&mut empty_seen, true) {
            continue;
        }
        let Some(left) = nodes.checked_sub(1) else {
            return Ok(false);
        };
        *nodes = left;
        if fits(system, core, index, &there, choose)? {
            system.tasks[index].core = Some(core);
            if search(system, rest, choose, nodes)? {
                return Ok(true);
            }
            system.tasks[index].core = None;
        }
    }
    Ok(false)
}
