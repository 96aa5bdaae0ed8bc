//! Cores for one-shot RTOS tasks without one: the fewest cores, or those with the shortest flows.
//!
//! Why it exists: on a mesh, the place of a task decides which tasks share its core, how far its messages go and which traffic they meet,
//! so a task's cost is known only when all tasks have a place. What it deliberately does not know: how bounds are computed
//! ([`crate::one_shot`], `evaluate`), and how descriptions are written.
//!
//! Method: one task at a time gets the core with which the whole is best. Then tasks are moved, and pairs exchanged, as long as that helps.
//! Then a branch-and-bound search goes through all placements and skips those whose first tasks alone break something or are no better than
//! the best one so far. Adding to a part of a system never shortens a bound of that part or frees a core, so nothing that is skipped could
//! be better. If the search completes, the result is the best placement; if it stops because enough was tried, the result says so.
//!
//! If guards make bounds hold beside rivals, this argument fails: a core that gets a task of a domain is no longer its rival, and the
//! domain's bounds get shorter. There the search may skip something better, and never claims that nothing is better.
//!
//! If the search does not complete, the result is the best of what was tried. Tests compare it with exhaustive search on small random
//! systems: where the first two steps find a placement that holds, its number of cores, or its latency, is at most twice the best.

mod described;
mod worth;

#[cfg(test)]
mod tests;

pub use described::{Placed, completed, planned};

use super::{Choice, InputError};
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use worth::{Case, Worth};

/// The criterion that is optimised first; the other one decides between placements that are equal in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aim {
    /// The fewest cores.
    #[default]
    Cores,
    /// The smallest sum of the flows' latencies; without flows, of the responses.
    Latency,
}

/// A request for a placement.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The criterion.
    pub aim: Aim,
    /// First and last number of the cores allowed for tasks without one; `None`: any.
    pub cores: Option<(u16, u16)>,
}

/// Placements, complete or partial, that are judged while tasks are placed one by one, moved and exchanged.
const STEPS: u32 = 4_000;
/// The same for the search through all placements.
const SEARCH: u32 = 20_000;

/// Cores and priorities for a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// For each task: its core.
    pub cores: Vec<u16>,
    /// For each task: its priority, if none had one.
    pub priorities: Option<Vec<u32>>,
    /// No other placement is better, or none holds at all.
    pub is_best: bool,
    /// Everything that does not hold with it, in words: in which variant, and what.
    pub broken: Vec<String>,
    /// The open choices, in words.
    pub choices: Vec<Choice>,
}

/// Places tasks without a core. The system was loaded with [`bulkhead_model::LoadOptions::open`].
///
/// # Errors
/// [`InputError::Input`] if there is no core to put a task on.
pub fn place(system: &System, wish: &Wish) -> Result<Placement, InputError> {
    place_within(system, wish, STEPS, SEARCH)
}

fn place_within(
    system: &System,
    wish: &Wish,
    steps: u32,
    search: u32,
) -> Result<Placement, InputError> {
    let runs: Vec<(&OneShot, &System)> = system
        .runs()
        .into_iter()
        .filter_map(|run| Some((run.one_shot.as_ref()?, run)))
        .collect();
    let Some(one_shot) = &system.one_shot else {
        return Err(InputError::new(
            format!("{} has no tasks of the one-shot RTOS", system.name),
            "write paradigm=\"one-shot\" at the <system>",
        ));
    };
    if let Some(other) = runs.iter().find(|run| !same_tasks(run.0, one_shot)) {
        return Err(InputError::new(
            format!(
                "the variant {} has other tasks than the system",
                other.1.variant.as_deref().unwrap_or_default()
            ),
            "give each task a core: variants with tasks of their own are not placed together",
        ));
    }
    let priorities = by_deadline(one_shot);
    let cases = runs
        .iter()
        .map(|(tasks, run)| Case::new(tasks, &run.platform, priorities.as_deref()));
    let cases: Vec<Case<'_>> = cases.collect();
    let given: Vec<Option<u16>> = one_shot
        .tasks
        .tasks
        .iter()
        .map(|task| task.core.and_then(|core| u16::try_from(core).ok()))
        .collect();
    let tiles = system.platform.tiles.iter().map(|tile| tile.id);
    let (first, last) = wish.cores.unwrap_or((0, u16::MAX));
    let allowed: Vec<u16> = tiles.filter(|tile| (first..=last).contains(tile)).collect();
    if allowed.is_empty() {
        return Err(InputError::new(
            format!("the platform has no core from {first} to {last}"),
            format!(
                "name some of the {} cores of {}: --cores 0-3",
                system.platform.tiles.len(),
                system.platform.name
            ),
        ));
    }
    let mut search_all = Search {
        cases: &cases,
        aim: wish.aim,
        allowed: &allowed,
        judged: 0,
        most: steps,
    };
    let order = order(one_shot, &given, wish.aim);
    let mut found = search_all.one_by_one(&given, &order);
    search_all.improve(&mut found, &order);
    search_all.most = search_all.judged.saturating_add(search);
    let mut best = (found.1.is_good()).then(|| found.clone());
    let is_through = search_all.exhaust(&mut given.clone(), &order, 0, &mut best)
        && !cases.iter().any(Case::has_guards);
    let (cores, worth) = best.unwrap_or(found);
    let holds = worth.is_good();
    let is_through = is_through && worth.is_judged();
    let named = |(case, run): (&Case<'_>, &(&OneShot, &System))| {
        let variant = run.1.variant.clone();
        let broken = case.broken(&cores).into_iter();
        let named = broken.map(move |what| match &variant {
            Some(variant) => format!("{variant}: {what}"),
            None => what,
        });
        named.collect::<Vec<String>>()
    };
    let broken = match holds {
        true => Vec::new(),
        false => cases.iter().zip(&runs).flat_map(named).collect(),
    };
    let mut choices = Vec::new();
    if !order.is_empty() {
        let aim = match wish.aim {
            Aim::Cores => "the fewest cores, and of those the shortest flows",
            Aim::Latency => "the shortest flows, and of those the fewest cores",
        };
        let judged = search_all.judged;
        let how = match (holds, is_through) {
            (true, _) if !worth.is_judged() => {
                format!("{aim}: the best of {judged} as far as they could be judged")
            }
            (true, true) => format!("{aim}: no placement is better ({judged} judged)"),
            (true, false) => {
                format!("{aim}: the best of {judged} that were judged, and not all were")
            }
            (false, true) => format!("no placement holds ({judged} judged)"),
            (false, false) => {
                format!("none of the {judged} that were judged holds, and not all were")
            }
        };
        choices.push(Choice { what: "cores", how });
    }
    if priorities.is_some() {
        choices.push(Choice {
            what: "priorities",
            how: "the shortest deadline first".to_owned(),
        });
    }
    Ok(Placement {
        cores: cores.into_iter().map(Option::unwrap_or_default).collect(),
        priorities,
        is_best: is_through,
        broken,
        choices,
    })
}

/// Whether two variants have the same tasks in the same order.
fn same_tasks(one: &OneShot, other: &OneShot) -> bool {
    let names = |system: &OneShot| -> Vec<String> {
        let tasks = system.tasks.tasks.iter();
        tasks.map(|task| task.name.clone()).collect()
    };
    names(one) == names(other)
}

/// Priorities for tasks without any: the shortest deadline first, then file order.
fn by_deadline(system: &OneShot) -> Option<Vec<u32>> {
    let tasks = &system.tasks.tasks;
    if tasks.iter().any(|task| task.priority.is_some()) {
        return None;
    }
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| tasks[task].deadline);
    let mut priorities = vec![0; tasks.len()];
    for (priority, task) in (1..).zip(order) {
        priorities[task] = priority;
    }
    Some(priorities)
}

/// Tasks without a core, in the order in which they get one: for few cores, the greatest load first; for short flows, in the order of the
/// messages.
fn order(system: &OneShot, given: &[Option<u16>], aim: Aim) -> Vec<usize> {
    let tasks = &system.tasks;
    let mut open: Vec<usize> = (0..given.len()).filter(|&t| given[t].is_none()).collect();
    let load = |task: usize| {
        let one = &tasks.tasks[task];
        let cost = one.cost.map_or(0, |cost| u128::from(cost.0));
        cost * 1_000_000 / u128::from(one.period.0.max(1))
    };
    match aim {
        Aim::Cores => open.sort_by_key(|&task| std::cmp::Reverse(load(task))),
        Aim::Latency => {
            let mut along: Vec<usize> = Vec::new();
            for flow in &tasks.flows {
                along.push(flow.from);
                let way = tasks.route(flow.from, flow.to).unwrap_or_default();
                along.extend(way.into_iter().map(|channel| tasks.channels[channel].to));
            }
            let place = |task: usize| along.iter().position(|&one| one == task);
            open.sort_by_key(|&task| (place(task).unwrap_or(usize::MAX), task));
        }
    }
    open
}

/// A placement, complete or partial, and its worth.
type Found = (Vec<Option<u16>>, Worth);

struct Search<'a> {
    cases: &'a [Case<'a>],
    aim: Aim,
    allowed: &'a [u16],
    judged: u32,
    most: u32,
}

impl Search<'_> {
    fn worth(&mut self, cores: &[Option<u16>]) -> Worth {
        self.judged += 1;
        let each = self.cases.iter().map(|case| case.worth(cores, self.aim));
        each.reduce(Worth::both).unwrap_or_default()
    }

    /// Puts each task on the core with which the whole is best; in a tie, the first. Once enough has been judged, on the core with the
    /// fewest tasks.
    fn one_by_one(&mut self, given: &[Option<u16>], order: &[usize]) -> Found {
        let mut cores = given.to_vec();
        let mut last = None;
        for &task in order {
            if self.judged >= self.most {
                let tasks = |core: &u16| cores.iter().filter(|one| **one == Some(*core)).count();
                cores[task] = self.allowed.iter().copied().min_by_key(tasks);
                last = None;
                continue;
            }
            let mut best: Option<(Worth, u16)> = None;
            for &core in self.allowed {
                cores[task] = Some(core);
                let worth = self.worth(&cores);
                if best.is_none_or(|best| worth < best.0) {
                    best = Some((worth, core));
                }
            }
            cores[task] = best.map(|best| best.1);
            last = best.map(|best| best.0);
        }
        let worth = match last {
            Some(worth) => worth,
            None => self.worth(&cores),
        };
        (cores, worth)
    }

    /// Moves a task, or exchanges two, as long as that improves the result and not enough has been judged.
    fn improve(&mut self, found: &mut Found, order: &[usize]) {
        loop {
            let before = found.1;
            for (place, &task) in order.iter().enumerate() {
                for &core in self.allowed {
                    let mut moved = found.0.clone();
                    moved[task] = Some(core);
                    self.take_better(found, moved);
                }
                for &other in &order[..place] {
                    let mut exchanged = found.0.clone();
                    exchanged.swap(task, other);
                    self.take_better(found, exchanged);
                }
            }
            if found.1 == before || self.judged >= self.most {
                return;
            }
        }
    }

    fn take_better(&mut self, found: &mut Found, cores: Vec<Option<u16>>) {
        if cores == found.0 || self.judged >= self.most {
            return;
        }
        let worth = self.worth(&cores);
        if worth < found.1 {
            *found = (cores, worth);
        }
    }

    /// Tries all placements of the tasks from a position of the order on. Returns whether the search completed.
    fn exhaust(
        &mut self,
        cores: &mut Vec<Option<u16>>,
        order: &[usize],
        from: usize,
        best: &mut Option<Found>,
    ) -> bool {
        let Some(&task) = order.get(from) else {
            return true;
        };
        // The most promising first, because then more is skipped.
        let mut next: Vec<(Worth, u16)> = Vec::new();
        for &core in self.allowed {
            if self.judged >= self.most {
                return false;
            }
            cores[task] = Some(core);
            let worth = self.worth(cores);
            if worth.is_good() {
                next.push((worth, core));
            }
        }
        next.sort_unstable();
        let mut is_through = true;
        for (worth, core) in next {
            if best.as_ref().is_some_and(|best| worth >= best.1) {
                break;
            }
            cores[task] = Some(core);
            if from + 1 == order.len() {
                *best = Some((cores.clone(), worth));
            } else {
                is_through &= self.exhaust(cores, order, from + 1, best);
            }
            if !is_through {
                break;
            }
        }
        cores[task] = None;
        is_through
    }
}
