//! System rules that involve several values, and the placement of memory.
//!
//! Why it exists: everything that can be known before a run is reported before it. What it deliberately does not know:
//! files and XML.

use super::resolve::senders;
use super::time::{Holder, LEAST};
use super::{
    APP_ENDPOINTS, App, Cpu, Limit, System, TILE_ENDPOINTS, TILE_MEMORY, TilePolicy, tree,
};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::tasks;
use crate::units::{Size, Time};
use bulkhead_abi::time::WHOLE;

/// Where things are in the files: one element for each entry of the system's lists.
#[derive(Default)]
pub struct Places<'a> {
    /// For each manager.
    pub managers: Vec<&'a Node>,
    /// For each domain.
    pub domains: Vec<&'a Node>,
    /// For each application.
    pub apps: Vec<&'a Node>,
}

/// Largest and smallest message slot, and its granularity, in bytes.
const SLOT: (u64, u64, u64) = (64, 2048, 64);

/// Chooses memory tiles for everything without one: the first one with room.
pub fn place_memory(system: &mut System, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let kept = system.kernel_keeps();
    let System {
        platform,
        managers,
        apps,
        ..
    } = system;
    // The kernel lives in the first memory tile and gives TileMux and the managers memory there.
    let mut tiles: Vec<u16> = apps.iter().map(|app| app.tile).collect();
    tiles.extend(managers.iter().map(|manager| manager.tile));
    tiles.sort_unstable();
    tiles.dedup();
    let system = managers
        .iter()
        .map(|manager| manager.memory.0)
        .fold(kept, u64::saturating_add)
        .saturating_add(TILE_MEMORY * tiles.len() as u64);
    let mut pool: Vec<Room> = platform
        .memories
        .iter()
        .enumerate()
        .map(|(index, memory)| Room {
            id: memory.id,
            available: memory
                .size
                .0
                .saturating_sub(if index == 0 { system } else { 0 }),
            needed: 0,
        })
        .collect();
    for (app, node) in apps.iter().zip(&places.apps) {
        if let Some(stack) = app.stack.filter(|stack| *stack >= app.memory) {
            errors.push(Diagnostic::new(
                Problem::OutOfRange {
                    element: "app".into(),
                    attribute: "stack".into(),
                    value: node.maybe_size("stack").unwrap_or(stack).to_string(),
                },
                node.place("stack"),
                format!("it is a part of the application's memory, {}, besides program, heap and receive buffers", app.memory),
            ));
        }
    }
    // Fixed places first, so that a free choice never takes their room.
    for fixed in [true, false] {
        for (app, node) in apps.iter_mut().zip(&places.apps) {
            let mut wishes = vec![(&mut app.memory_tile, app.memory.0, *node, "memory")];
            let gates = app.mgates.iter_mut().zip(node.all("mgate"));
            // An application that shares a region or a module needs none.
            let gates = gates.filter(|(gate, _)| gate.of.is_none() && gate.module.is_none());
            wishes.extend(
                gates.map(|(gate, node)| (&mut gate.memory_tile, gate.size.0, node, "size")),
            );
            for (tile, bytes, node, attribute) in wishes {
                if node.maybe_integer("memory-tile").is_some() == fixed {
                    place(tile, bytes, node, attribute, fixed, &mut pool, errors);
                }
            }
        }
    }
    let modules = platform.memories.first().map_or(0, |memory| memory.id);
    for index in 0..apps.len() {
        for gate in 0..apps[index].mgates.len() {
            if let Some((owner, region)) = apps[index].mgates[gate].of {
                apps[index].mgates[gate].memory_tile = apps[owner].mgates[region].memory_tile;
            } else if apps[index].mgates[gate].module.is_some() {
                apps[index].mgates[gate].memory_tile = modules;
            }
        }
    }
}

struct Room {
    id: u16,
    available: u64,
    needed: u64,
}

fn place(
    tile: &mut u16,
    bytes: u64,
    node: &Node,
    attribute: &str,
    fixed: bool,
    pool: &mut [Room],
    errors: &mut Vec<Diagnostic>,
) {
    let found = if fixed {
        let Some(index) = pool.iter().position(|room| room.id == *tile) else {
            let known: Vec<String> = pool.iter().map(|room| room.id.to_string()).collect();
            errors.push(Diagnostic::new(
                Problem::Unknown {
                    kind: "memory tile",
                    name: tile.to_string(),
                },
                node.place("memory-tile"),
                format!("memory tiles are {}", known.join(", ")),
            ));
            return;
        };
        index
    } else {
        // If there is no room anywhere, the message is about the last memory tile that was tried.
        let fits = |room: &Room| room.needed.saturating_add(bytes) <= room.available;
        pool.iter()
            .position(fits)
            .unwrap_or(pool.len().saturating_sub(1))
    };
    let Some(room) = pool.get_mut(found) else {
        return;
    };
    *tile = room.id;
    let needed = room.needed.saturating_add(bytes);
    if needed > room.available {
        errors.push(Diagnostic::new(
            Problem::Memory {
                memory: u64::from(room.id),
                available: Size(room.available).to_string(),
                needed: Size(needed).to_string(),
            },
            node.place(attribute),
            format!(
                "write at most {} here, or less elsewhere",
                Size(room.available.saturating_sub(room.needed))
            ),
        ));
        return;
    }
    room.needed = needed;
}

/// Reports every rule that `system` breaks.
pub fn check(system: &System, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    for (app, node) in system.apps.iter().zip(&places.apps) {
        slots(node, errors);
        limit(system, app, node, errors);
        let policy = system.tilemux(app.tile).policy;
        task(app, policy, node, errors);
    }
    credits(system, places, errors);
    for tile in &system.platform.tiles {
        endpoints(system, tile.id, places, errors);
        buckets(system, tile.id, places, errors);
        quotas(system, tile.id, places, errors);
    }
    tree::check(system, places, errors);
}

fn slots(node: &Node, errors: &mut Vec<Diagnostic>) {
    let (least, most, step) = SLOT;
    for gate in node.all("rgate") {
        let size = gate.size("slot-size");
        if !(least..=most).contains(&size.0) || !size.0.is_multiple_of(step) {
            let near = size.0.clamp(least, most).next_multiple_of(step);
            errors.push(Diagnostic::new(
                Problem::SlotSize { size: size.to_string() },
                gate.place("slot-size"),
                format!(
                    "a slot is a multiple of {step} bytes, at most {}, header of 32 bytes included; the nearest is {}",
                    Size(most),
                    Size(near)
                ),
            ));
        }
    }
}

fn limit(system: &System, app: &App, node: &Node, errors: &mut Vec<Diagnostic>) {
    if let (Some(limit), Some(element)) = (app.limit, node.child("limit")) {
        limit_in_range(system, app.tile, limit, element, errors);
    }
}

/// A traffic limit on a tile must be one that link and unit can enforce.
pub fn limit_in_range(
    system: &System,
    tile: u16,
    limit: Limit,
    element: &Node,
    errors: &mut Vec<Diagnostic>,
) {
    let network = &system.platform.network;
    let capacity = network.link_capacity();
    if limit.noc > capacity {
        errors.push(Diagnostic::new(
            Problem::LimitAboveLink {
                limit: limit.noc.to_string(),
                capacity: capacity.to_string(),
            },
            element.place("noc"),
            format!("write at most {capacity}, or `none` for no limit"),
        ));
    }
    let dtu = system
        .platform
        .tile(tile)
        .and_then(|tile| tile.dtu.as_ref());
    let most = dtu.map_or(u64::MAX, |dtu| dtu.bucket_limit.0);
    let least = u64::from(network.chunk);
    if !(least..=most).contains(&limit.burst.0) {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(format!(
                "a burst of {} is {} of {}",
                limit.burst,
                if limit.burst.0 < least {
                    "less than one chunk"
                } else {
                    "more than a token bucket"
                },
                Size(if limit.burst.0 < least { least } else { most })
            )),
            element.place("burst"),
            format!("write {} to {}", Size(least), Size(most)),
        ));
    }
}

/// The file must not contain what the bounds of tasks on a tile ignore, or the bounds would be silently wrong.
fn uncovered(policy: TilePolicy, element: &Node, errors: &mut Vec<Diagnostic>) {
    let none = "remove it: `cost` already contains everything that a job does itself";
    let slices = "remove it, or give the tile <tilemux policy=\"realtime\"/>: time slices know no priorities";
    let only_priorities = match policy {
        TilePolicy::Throughput => Some(slices),
        TilePolicy::Realtime => None,
    };
    let rules = [
        ("load", Some(none)),
        ("unload", Some(none)),
        ("memory-phase", Some(none)),
        ("tardiness", Some(none)),
        ("blocking", only_priorities),
    ];
    for (attribute, help) in rules {
        if let Some(help) = help
            && element.time(attribute) > Time(0)
        {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "the bounds for this application's task do not cover `{attribute}`"
                )),
                element.place(attribute),
                help,
            ));
        }
    }
    if let (Some(section), Some(help)) = (element.child("section"), only_priorities) {
        errors.push(Diagnostic::new(
            Problem::Inconsistent(
                "the bounds for this application's task do not cover critical sections".into(),
            ),
            &section.span,
            help,
        ));
    }
}

fn task(app: &App, policy: TilePolicy, node: &Node, errors: &mut Vec<Diagnostic>) {
    if let (Some(task), Some(element)) = (&app.task, node.child("task")) {
        uncovered(policy, element, errors);
        for attribute in ["core", "priority", "threshold"] {
            if element.maybe_integer(attribute).is_some() {
                errors.push(Diagnostic::new(
                    Problem::Inconsistent(format!(
                        "the task of an application cannot have `{attribute}`"
                    )),
                    element.place(attribute),
                    "remove it: an application is one task on its tile; <cpu priority=\"...\"/> beside it orders applications that share a tile",
                ));
            }
        }
        tasks::one_shot_only(element, errors);
        if let Some(inside) = element.child("cpu") {
            errors.push(Diagnostic::new(
                Problem::Inconsistent("the task of an application cannot contain <cpu>".into()),
                &inside.span,
                "put it into the <app>: it bounds the whole application",
            ));
        }
        if task.deadline > task.period {
            errors.push(Diagnostic::new(
                Problem::DeadlineAfterPeriod {
                    deadline: task.deadline.to_string(),
                    period: task.period.to_string(),
                },
                element.place("deadline"),
                format!(
                    "write at most {}: a job must be complete before the next one is released; a <flow> may take longer",
                    task.period
                ),
            ));
        }
        if let Some(cost) = task.cost.filter(|cost| *cost > task.deadline) {
            errors.push(Diagnostic::new(
                Problem::CostAboveBound {
                    cost: cost.to_string(),
                    bound_name: "deadline",
                    bound: task.deadline.to_string(),
                },
                element.place("cost"),
                "even alone, the job cannot be done in time: lower the cost or raise the deadline",
            ));
        }
    }
    if let (Some(cpu), Some(element)) = (app.cpu, node.child("cpu")) {
        budget_in_range(cpu, element, errors);
    }
}

fn credits(system: &System, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    for (index, app) in system.apps.iter().enumerate() {
        for (number, gate) in app.rgates.iter().enumerate() {
            let mut sum = 0;
            for (sender, node) in system.apps.iter().zip(&places.apps) {
                for (sgate, element) in sender.sgates.iter().zip(senders(node)) {
                    if (sgate.to, sgate.gate) != (index, number) {
                        continue;
                    }
                    let before = sum;
                    sum += u64::from(sgate.credits);
                    let slots = u64::from(gate.slots);
                    if before <= slots && sum > slots {
                        errors.push(Diagnostic::new(
                            Problem::Credits {
                                gate: format!("{}/{}", app.name, gate.name),
                                credits: total_credits(system, index, number),
                                slots,
                            },
                            element.place("credits"),
                            format!(
                                "give the senders at most {slots} credits together, or write slots=\"{}\" at the <rgate>",
                                total_credits(system, index, number)
                            ),
                        ));
                    }
                }
            }
        }
    }
}

fn total_credits(system: &System, app: usize, gate: usize) -> u64 {
    let gates = system.apps.iter().flat_map(|sender| &sender.sgates);
    gates
        .filter(|sgate| (sgate.to, sgate.gate) == (app, gate))
        .map(|sgate| u64::from(sgate.credits))
        .sum()
}

/// The applications of a tile with their places.
fn on_tile<'s>(
    system: &'s System,
    tile: u16,
    places: &'s Places<'_>,
) -> impl Iterator<Item = (&'s App, &'s Node)> {
    system
        .apps
        .iter()
        .zip(places.apps.iter().copied())
        .filter(move |(app, _)| app.tile == tile)
}

fn endpoints(system: &System, tile: u16, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let Some(dtu) = system
        .platform
        .tile(tile)
        .and_then(|tile| tile.dtu.as_ref())
    else {
        return;
    };
    let managers = system
        .managers
        .iter()
        .filter(|manager| manager.tile == tile)
        .count() as u64;
    let mut needed = TILE_ENDPOINTS + managers * APP_ENDPOINTS;
    for (app, node) in on_tile(system, tile, places) {
        let before = needed;
        needed += app.endpoints();
        let endpoints = u64::from(dtu.endpoints);
        if before <= endpoints && needed > endpoints {
            errors.push(Diagnostic::new(
                Problem::Endpoints { tile: u64::from(tile), needed, endpoints },
                &node.span,
                "use fewer gates or slots: an rgate takes one endpoint and one for each slot, an sgate or mgate takes one",
            ));
        }
    }
}

fn buckets(system: &System, tile: u16, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let Some(dtu) = system
        .platform
        .tile(tile)
        .and_then(|tile| tile.dtu.as_ref())
    else {
        return;
    };
    // An application without a limit needs no bucket of its own; the first bucket admits everything.
    let buckets = u64::from(dtu.buckets).saturating_sub(1);
    let mut limits = 0;
    for (app, node) in on_tile(system, tile, places) {
        if app.limit.is_none() {
            continue;
        }
        limits += 1;
        if limits == buckets + 1 {
            errors.push(Diagnostic::new(
                Problem::Buckets {
                    tile: u64::from(tile),
                    limits,
                    buckets,
                },
                node.child("limit")
                    .map_or(&node.span, |limit| limit.place("noc")),
                "leave out a limit, or move an application to another tile",
            ));
        }
    }
}

/// The processor time given away on a tile does not exceed what exists: what the root manager distributes, by the kernel's
/// own rule.
fn quotas(system: &System, tile: u16, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    const SECOND: u64 = 1_000_000_000;
    let mut sum = 0u64;
    let times = system.times_of(0, tile).into_iter();
    // A budget longer than its period is a separate mistake.
    for (holder, cpu) in times.filter(|(_, cpu)| cpu.budget <= cpu.period) {
        let (node, name) = match holder {
            Holder::App(app) => (places.apps[app], "application"),
            Holder::Manager(manager) => (places.managers[manager], "manager"),
        };
        let place = node
            .child("cpu")
            .map_or(&node.span, |cpu| cpu.place("quota"));
        let before = sum;
        sum = sum.saturating_add(cpu.charge(WHOLE));
        if before <= SECOND && sum > SECOND {
            let left = u128::from(SECOND - before) * u128::from(cpu.period.0) / u128::from(SECOND);
            errors.push(Diagnostic::new(
                Problem::Inconsistent(format!(
                    "the CPU quotas on tile {tile} add up to more than 100 %"
                )),
                place,
                format!(
                    "at most {} are left for this {name} in a period of {}",
                    Time(u64::try_from(left).unwrap_or(u64::MAX)),
                    cpu.period
                ),
            ));
        }
    }
}

/// A budget must not be longer than its period, and must be worth the switches that it causes.
pub fn budget_in_range(own: Cpu, element: &Node, errors: &mut Vec<Diagnostic>) {
    let (what, help) = if own.budget > own.period {
        (
            format!(
                "a quota of {} is more than its period of {}",
                own.budget, own.period
            ),
            format!("write at most {}, or 100%", own.period),
        )
    } else if own.budget < LEAST {
        (
            format!(
                "a quota of {} is less than {LEAST}, which switches alone may take",
                own.budget
            ),
            format!("write at least {LEAST}, or a longer period"),
        )
    } else {
        return;
    };
    let place = element.place("quota");
    errors.push(Diagnostic::new(Problem::Inconsistent(what), place, help));
}
