//! The three guaranteed levels of the mixed-criticality kernel, from the description's tasks to [`mc2`] and back.
//!
//! Why it exists: each level judges with its own costs and sees different tasks. What it deliberately does not know: how processors and
//! ways were chosen.

use std::collections::BTreeSet;

use bulkhead_model::tasks::{Device, Task as Described, TaskSystem};

use super::evaluate::{Known, capacity, late};
use super::prepare::{self, nanoseconds};
use super::tables::table_processor;
use super::{Constraint, PlanError};
use crate::mc2::ways::ONE;
use crate::schedulability::mc2::{LevelTask, Overheads, Processor};
use crate::schedulability::sporadic_table::Paid;
use crate::schedulability::{Task, edf, handlers, mc2};

/// Levels A, B and C together, in the form that [`mc2`] needs, with the tasks behind each entry.
struct Levels {
    system: mc2::System,
    a: Vec<Vec<usize>>,
    b: Vec<Vec<usize>>,
    c: Vec<usize>,
}

/// `None`: a task has no cost with its ways.
fn split(system: &TaskSystem) -> Option<Levels> {
    // Releases are among the handlers.
    let overheads = Overheads {
        schedule: nanoseconds(system.overheads.schedule),
        release: 0,
    };
    let level_task = |index: usize| -> Option<LevelTask> {
        let task = &system.tasks[index];
        let own = prepare::cost(system, index, task.criticality)?;
        let at = |level: char| {
            if level < task.criticality {
                // Nothing is required of a level above its own.
                Some(own)
            } else {
                prepare::cost(system, index, level)
            }
        };
        Some(LevelTask {
            period: nanoseconds(task.period),
            costs: [at('A')?, at('B')?, at('C')?.saturating_add(moves(system))],
        })
    };
    let count = system.processors as usize;
    let (mut a, mut b, mut c) = (vec![Vec::new(); count], vec![Vec::new(); count], Vec::new());
    for (index, task) in system.tasks.iter().enumerate() {
        match (task.criticality, task.core) {
            ('A', Some(core)) => a[core as usize].push(index),
            ('B', Some(core)) => b[core as usize].push(index),
            ('C', _) => c.push(index),
            _ => {}
        }
    }
    let list = |indices: &[usize]| {
        indices
            .iter()
            .map(|&i| level_task(i))
            .collect::<Option<_>>()
    };
    let mut processors = Vec::with_capacity(count);
    for core in 0..count {
        processors.push(Processor {
            a: list(&a[core])?,
            b: list(&b[core])?,
            interrupts: handlers(system, core as u32),
            lives: None,
        });
    }
    Some(Levels {
        system: mc2::System {
            processors,
            c: list(&c)?,
            overheads,
        },
        a,
        b,
        c,
    })
}

/// What level C loses besides the two decisions of a job, or of a slot, at any level: a displaced job may displace another on another
/// processor, and so on, with one decision each.
fn moves(system: &TaskSystem) -> u64 {
    let others = u64::from(system.processors.saturating_sub(1));
    nanoseconds(system.overheads.schedule).saturating_mul(others)
}

/// What precedes all levels of a processor, with minimum inter-arrival time and cost: interrupts, and releases of tasks of every level that
/// are or may be there.
fn handlers(system: &TaskSystem, core: u32) -> Vec<(u64, u64)> {
    let here = |&index: &usize| system.tasks[index].core.is_none_or(|there| there == core);
    let releases = prepare::releases(system, (0..system.tasks.len()).filter(here));
    let mut all = prepare::interrupts(system, core);
    all.extend(releases.iter().map(|h| (h.period, h.cost)));
    all
}

/// The same in the form that the tests need.
fn as_tasks(handlers: &[(u64, u64)]) -> Vec<Task> {
    let task = |&(distance, cost): &(u64, u64)| handlers::handler(cost, distance);
    handlers.iter().map(task).collect()
}

/// The tasks of level A of a processor with everything that lengthens them, as served by the table.
pub fn table_tasks(system: &TaskSystem, core: u32) -> Option<(Vec<usize>, Vec<Task>)> {
    let levels = split(system)?;
    let here = levels.system.processors.get(core as usize)?;
    let tasks = in_table(system, here).into_iter().map(|one| one.0);
    Some((levels.a[core as usize].clone(), tasks.collect()))
}

/// The tasks of level A of a processor as served by the table, and the part of their costs that they pay for others.
fn in_table(system: &TaskSystem, here: &Processor) -> Vec<(Task, Paid)> {
    let (kernel, handlers) = (prepare::decisions(system), as_tasks(&here.interrupts));
    let one = |task: &LevelTask| {
        let alone = Task::new(task.costs[0].saturating_add(kernel), task.period);
        let whole = handlers::pays(&alone, &handlers, task.period);
        let paid = Paid {
            cost: whole.cost - alone.cost,
            life: task.period,
        };
        (whole, paid)
    };
    here.a.iter().map(one).collect()
}

pub fn constraints(
    system: &TaskSystem,
    all: &mut Vec<Constraint>,
    responses: &mut [Option<u64>],
) -> Result<Vec<(usize, Known)>, PlanError> {
    let mut judged: Vec<(usize, Known)> = Vec::new();
    let Some(mut levels) = split(system) else {
        for (index, task) in system.tasks.iter().enumerate() {
            match task.criticality {
                'A' | 'B' => judged.push((index, Known::default())),
                'C' => late(system, index, None, all, responses),
                _ => {}
            }
        }
        return Ok(judged);
    };
    // What the tables say about level A, on which the levels below depend if level A's jobs do not follow the tables.
    let mut tables: Vec<Vec<Known>> = Vec::new();
    for core in 0..levels.system.processors.len() {
        let members = &levels.a[core];
        let here = &mut levels.system.processors[core];
        tables.push(with_table(system, core as u32, members, here)?);
    }
    let guarantees =
        mc2::analyse(&levels.system).map_err(|error| PlanError::of(&error, system, &[]))?;
    for (core, known) in tables.into_iter().enumerate() {
        judged.extend(levels.a[core].iter().copied().zip(known));
        for (&index, &response) in levels.b[core].iter().zip(&guarantees.b[core]) {
            let known = Known {
                response,
                met: false,
            };
            judged.push((index, known));
        }
    }
    for (position, &index) in levels.c.iter().enumerate() {
        let bound = guarantees.c.as_ref().map(|c| c[position]);
        late(system, index, bound, all, responses);
    }
    let placed: BTreeSet<usize> = judged.iter().map(|entry| entry.0).collect();
    for (index, task) in system.tasks.iter().enumerate() {
        if task.criticality < 'C' && !placed.contains(&index) {
            judged.push((index, Known::default()));
        }
    }
    Ok(judged)
}

/// The results of a processor's table for its level-A tasks, `members`. The levels below receive what they lose to its slots.
fn with_table(
    system: &TaskSystem,
    core: u32,
    members: &[usize],
    here: &mut Processor,
) -> Result<Vec<Known>, PlanError> {
    let (tasks, paid): (Vec<Task>, Vec<Paid>) = in_table(system, here).into_iter().unzip();
    let fits = edf::schedulable(&tasks).map_err(|error| PlanError::of(&error, system, members))?;
    let table = match fits && !members.is_empty() {
        true => table_processor(system, core, members, &tasks, &paid)?,
        false => vec![Known::default(); members.len()],
    };
    let decisions = prepare::decisions(system);
    for ((task, &index), known) in here.a.iter_mut().zip(members).zip(&table) {
        let late = known.response.filter(|_| !system.periodic);
        let life = task.period.max(late.unwrap_or(0));
        let more = pieces(system, core, index, life).saturating_sub(1);
        let [_, b, c] = &mut task.costs;
        *b = b.saturating_add(more.saturating_mul(decisions));
        *c = c.saturating_add(more.saturating_mul(decisions.saturating_add(moves(system))));
    }
    // A job that its table serves too late is still there in later slots, for an unknown time.
    let responses = table.iter().map(|known| known.response);
    let timely = system.periodic && table.iter().all(|known| known.met);
    here.lives = (!timely).then(|| responses.collect());
    Ok(table)
}

/// Maximum slots of a written table that a job of this life can use: each begins and ends with a decision, which the levels below lose. (If
/// there is no table yet, one is built whose slots are cut only by other jobs, and those pay for their two decisions.)
fn pieces(system: &TaskSystem, core: u32, task: usize, life: u64) -> u64 {
    let Some(table) = system.tables.iter().find(|table| table.core == core) else {
        return 1;
    };
    let length = nanoseconds(table.length).max(1);
    let slots = table.slots.iter().filter(|slot| slot.task == task);
    let slots: Vec<(u64, u64)> = slots
        .map(|slot| (nanoseconds(slot.start), nanoseconds(slot.length)))
        .collect();
    // Slots that begin before a moment.
    let before = |moment: u64| {
        let rest = slots.partition_point(|slot| slot.0 < moment % length) as u64;
        (moment / length).saturating_mul(slots.len() as u64) + rest
    };
    let from = |(number, slot): (usize, &(u64, u64))| {
        before(slot.0.saturating_add(slot.1).saturating_add(life)) - number as u64
    };
    slots.iter().enumerate().map(from).max().unwrap_or(1)
}

/// Work of each level as estimated by that level: A by itself, B with A, C with everything on all processors.
pub fn capacities(system: &TaskSystem, all: &mut Vec<Constraint>) {
    let Some(levels) = split(system) else { return };
    let kernel = prepare::decisions(system);
    let at = |task: &LevelTask, level: usize| {
        Task::new(task.costs[level].saturating_add(kernel), task.period)
    };
    let mut whole: Vec<Task> = Vec::new();
    let mut handlers: Vec<(u64, u64)> = Vec::new();
    for (core, processor) in levels.system.processors.iter().enumerate() {
        handlers.extend(&processor.interrupts);
        let a: Vec<Task> = processor.a.iter().map(|t| at(t, 0)).collect();
        let both = || processor.a.iter().chain(&processor.b);
        let b: Vec<Task> = both().map(|t| at(t, 1)).collect();
        for (level, tasks, any) in [("A", &a, !a.is_empty()), ("B", &b, !processor.b.is_empty())] {
            if any {
                let subject = format!("processor {core}, level {level}");
                all.push(capacity(&subject, tasks, &processor.interrupts, 1));
            }
        }
        whole.extend(both().map(|t| at(t, 2)));
    }
    if !levels.system.c.is_empty() {
        whole.extend(levels.system.c.iter().map(|t| at(t, 2)));
        all.push(capacity(
            "all processors, level C",
            &whole,
            &handlers,
            system.processors,
        ));
    }
}

/// Whether levels A and B of the tasks `members` are guaranteed, alone on processor `core`.
pub fn meets(system: &TaskSystem, core: u32, members: &[usize]) -> Result<bool, PlanError> {
    let tasks = members.iter().map(|&i| system.tasks[i].clone()).collect();
    let part = TaskSystem {
        tasks,
        channels: Vec::new(),
        flows: Vec::new(),
        tables: Vec::new(),
        devices: system
            .devices
            .iter()
            .map(|device| Device {
                task: None,
                ..device.clone()
            })
            .collect(),
        ..system.clone()
    };
    let Some(mut levels) = split(&part) else {
        return Ok(false);
    };
    let mut here = levels.system.processors.swap_remove(core as usize);
    // If jobs follow the table and nothing is lost to its slots, a table exists exactly if earliest deadline first meets all deadlines.
    if !system.periodic || system.overheads.schedule.0 > 0 {
        let known = with_table(&part, core, &levels.a[core as usize], &mut here)?;
        let periods = here.a.iter().map(|task| task.period);
        let late = |(known, period): (Known, u64)| {
            !known.met && known.response.is_none_or(|response| response > period)
        };
        if known.into_iter().zip(periods).any(late) {
            return Ok(false);
        }
    }
    let only = mc2::System {
        processors: vec![here],
        c: Vec::new(),
        overheads: levels.system.overheads,
    };
    let guarantees = mc2::analyse(&only).map_err(|error| PlanError::of(&error, &part, &[]))?;
    Ok(guarantees.schedulable(&only))
}

/// Shares of a processor taken by its tasks of levels A and B as estimated by level C, in parts of [`ONE`], rounded up. `None`: a task has
/// no cost with its ways.
pub fn level_c_shares(system: &TaskSystem, core: u32) -> Option<Vec<u64>> {
    let handlers = handlers(system, core);
    parts(system, &handlers, |task| {
        task.criticality < 'C' && task.core == Some(core)
    })
}

/// The same of the tasks of level C.
pub fn shares_of_level_c(system: &TaskSystem) -> Option<Vec<u64>> {
    parts(system, &[], |task| task.criticality == 'C')
}

fn parts(
    system: &TaskSystem,
    handlers: &[(u64, u64)],
    wanted: impl Fn(&Described) -> bool,
) -> Option<Vec<u64>> {
    let (kernel, handlers) = (prepare::decisions(system), as_tasks(handlers));
    let list = system.tasks.iter().enumerate();
    list.filter(|(_, task)| wanted(task))
        .map(|(index, task)| {
            let period = nanoseconds(task.period).max(1);
            let cost = prepare::cost(system, index, 'C')?
                .saturating_add(kernel)
                .saturating_add(moves(system))
                .saturating_add(handlers::taken(&handlers, period));
            let share = (u128::from(cost) * u128::from(ONE)).div_ceil(u128::from(period));
            // Far above any processor's capacity, and far from overflow.
            Some(u64::try_from(share.min(1 << 48)).unwrap_or(1 << 48))
        })
        .collect()
}
