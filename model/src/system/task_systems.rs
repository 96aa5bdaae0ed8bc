//! The task systems formed by the applications of a chip.
//!
//! Why it exists: tasks of a `<system>` are analysed like all others. What it deliberately does not know: how they are analysed.

use super::{System, TilePolicy};
use crate::tasks::{self, Policy, Task, TaskSystem};
use crate::units::Time;
use std::collections::BTreeMap;

/// Priorities of applications, of which greater ones are more urgent; those of tasks are the other way round.
const LEVELS: u32 = 256;
/// Applications of one priority, in the order of the description.
const EQUALS: u32 = 1000;

/// The priority that the description gives an application, from that of its task in [`task_systems`].
pub fn priority_of_tile(priority: u32) -> u32 {
    LEVELS - priority / EQUALS
}

/// The tasks of a system's applications. Each tile is a processor that TileMux shares out; tiles with the same policy and slice
/// form one task system. Tasks have the names of their applications. Empty if no application has a task with a cost.
///
/// With time slices, an application without a `<task>` or without a cost takes part as a task of unknown cost without a
/// deadline. With fixed priorities, an application without a `<task>` takes what its quota allows. Each application is also held
/// up by its own quota: executing a quota takes a period, so a job waits at most `period - quota` for each quota that it uses.
pub fn task_systems(system: &System) -> Vec<TaskSystem> {
    let known = |task: &Task| task.cost_at(task.criticality, 0).is_some();
    let mut groups: BTreeMap<(bool, Time), Vec<Task>> = BTreeMap::new();
    for (order, app) in system.apps.iter().enumerate() {
        let mux = system.tilemux.iter().find(|mux| mux.tile == app.tile);
        let realtime = mux.is_some_and(|mux| mux.policy == TilePolicy::Realtime);
        let slice = mux.map_or(tasks::SLICE, |mux| mux.slice);
        let mut task = app.task.clone().filter(known).unwrap_or_else(|| Task {
            cost: None,
            criticality: 'E',
            ..Task::new("", Time(0), system.duration)
        });
        task.name.clone_from(&app.name);
        task.core = Some(u32::from(app.tile));
        if realtime {
            let Some(cpu) = app.cpu else {
                // Without a quota it comes last and disturbs no other; nothing is promised to it.
                continue;
            };
            let levels = (LEVELS - u32::from(cpu.priority)) * EQUALS;
            task.priority = Some(levels + order as u32 % EQUALS);
            match task.cost {
                Some(cost) => {
                    let distance = Time(task.period.0.saturating_sub(task.jitter.0));
                    // A job that no quota pays for has no bound: it may wait for the longest possible time.
                    let waits = cpu.waits(cost, distance).unwrap_or(tasks::TIME_MAX);
                    task.blocking =
                        Time(task.blocking.0.saturating_add(waits.0)).min(tasks::TIME_MAX);
                }
                None => {
                    task.cost = Some(cpu.budget);
                    (task.period, task.deadline) = (cpu.period, cpu.period);
                }
            }
        } else {
            task.quota = app.cpu;
        }
        groups.entry((realtime, slice)).or_default().push(task);
    }
    for manager in &system.managers {
        let on_tile = |task: &Task| task.core == Some(u32::from(manager.tile));
        for ((realtime, _), tasks) in &mut groups {
            if !realtime && tasks.iter().any(on_tile) {
                tasks.push(Task {
                    cost: None,
                    criticality: 'E',
                    core: Some(u32::from(manager.tile)),
                    ..Task::new(&manager.name, Time(0), system.duration)
                });
            }
        }
    }
    let asked = |task: &Task| {
        let app = system.apps.iter().find(|app| app.name == task.name);
        app.and_then(|app| app.task.as_ref()).is_some_and(known)
    };
    groups
        .into_iter()
        .filter(|(_, tasks)| tasks.iter().any(asked))
        .map(|((realtime, slice), tasks)| {
            let last = tasks.iter().filter_map(|task| task.core).max();
            let policy = if realtime {
                Policy::FixedPriority
            } else {
                Policy::TimeSlice
            };
            TaskSystem {
                slice,
                ..TaskSystem::new(
                    system.name.clone(),
                    last.map_or(1, |last| last + 1),
                    policy,
                    tasks,
                )
            }
        })
        .collect()
}
