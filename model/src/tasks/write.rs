//! Task systems as XML, and the task system that the applications of a chip are.
//!
//! Why it exists: a plan is written back as a description, and tasks of a `<system>` are analysed like all others. What it
//! deliberately does not know: how the description looked before. What is written reads back as the same model.

use std::collections::BTreeMap;

use super::{ChannelKind, Direction, MutexOrder, Policy, Task, TaskSystem};
use crate::canonical::Writer;
use crate::system::{System, TilePolicy};
use crate::units::{Size, Time};

/// The description of a task system.
pub fn write(system: &TaskSystem) -> String {
    let mut writer = Writer::default();
    writer
        .start("task-system")
        .attribute("name", &system.name)
        .optional("about", system.about.as_ref());
    writer
        .start("processors")
        .attribute("count", system.processors)
        .attribute("policy", system.policy.word())
        .optional("arrivals", system.periodic.then_some("periodic"))
        .optional("frequency", system.frequency)
        .optional(
            "slice",
            (system.slice != super::SLICE).then_some(system.slice),
        )
        .end();
    surroundings(&mut writer, system);
    for share in &system.shares {
        writer
            .start("share")
            .optional("core", share.core)
            .optional("ways", share.ways)
            .optional("colours", share.colours)
            .optional("banks", share.banks)
            .optional("budget", share.budget)
            .optional("slot", share.slot)
            .end();
    }
    for task in &system.tasks {
        write_task(&mut writer, task);
    }
    for (index, channel) in system.channels.iter().enumerate() {
        let kind = match channel.kind {
            ChannelKind::Sampling => "sampling",
            ChannelKind::Queue => "queue",
        };
        writer
            .start("channel")
            .attribute("name", &channel.name)
            .attribute("from", &system.tasks[channel.from].name)
            .attribute("to", &system.tasks[channel.to].name)
            .optional("size", not_zero(channel.size))
            .attribute("kind", kind)
            .optional("slots", (channel.slots > 1).then_some(channel.slots))
            .optional("notify", channel.notify.then_some("true"))
            .optional("answers", system.answers(index))
            .optional("transfer", positive(channel.transfer))
            .optional("deadline", channel.deadline)
            .end();
    }
    for device in &system.devices {
        let direction = match device.direction {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::Both => "both",
        };
        writer
            .start("device")
            .attribute("name", &device.name)
            .optional("rate", device.rate)
            .attribute("direction", direction)
            .attribute("copied", device.copied)
            .optional("interrupt-period", device.interrupts.map(|i| i.0))
            .optional("interrupt-cost", device.interrupts.map(|i| i.1))
            .attribute("core", device.core)
            .optional("task", device.task.map(|task| &system.tasks[task].name))
            .optional("buffer", device.buffer)
            .end();
    }
    for flow in &system.flows {
        writer
            .start("flow")
            .attribute("name", &flow.name)
            .attribute("from", &system.tasks[flow.from].name)
            .attribute("to", &system.tasks[flow.to].name)
            .optional("deadline", flow.deadline)
            .end();
    }
    for table in &system.tables {
        writer
            .start("table")
            .attribute("core", table.core)
            .attribute("length", table.length);
        for slot in &table.slots {
            writer
                .start("slot")
                .attribute("task", &system.tasks[slot.task].name)
                .attribute("start", slot.start)
                .attribute("length", slot.length)
                .end();
        }
        writer.end();
    }
    writer.end();
    writer.finish()
}

fn positive(time: Time) -> Option<Time> {
    (time > Time(0)).then_some(time)
}

fn not_zero(size: Size) -> Option<Size> {
    (size > Size(0)).then_some(size)
}

/// What tasks share.
fn surroundings(writer: &mut Writer, system: &TaskSystem) {
    let overheads = &system.overheads;
    if *overheads != super::Overheads::default() {
        writer
            .start("overheads")
            .optional("schedule", positive(overheads.schedule))
            .optional("release", positive(overheads.release))
            .optional("interrupt", positive(overheads.interrupt))
            .end();
    }
    if let Some(llc) = system.llc {
        writer
            .start("llc")
            .optional("ways", (llc.ways > 0).then_some(llc.ways))
            .optional("colours", (llc.colours > 0).then_some(llc.colours))
            .optional("colour-size", not_zero(llc.colour_size))
            .end();
    }
    if let Some(ram) = system.ram {
        writer
            .start("ram")
            .optional("banks", (ram.banks > 0).then_some(ram.banks))
            .optional("bandwidth", ram.bandwidth)
            .end();
    }
    if let Some(guard) = system.memguard {
        writer
            .start("memguard")
            .attribute("period", guard.period)
            .attribute("access", guard.access)
            .optional("accesses", guard.accesses)
            .end();
    }
    if let Some(order) = system.mutex {
        let order = match order {
            MutexOrder::Fifo => "fifo",
            MutexOrder::Core => "core",
        };
        writer.start("memory-mutex").attribute("order", order).end();
    }
    if let Some(overhead) = system.tdma {
        writer
            .start("tdma")
            .optional("overhead", positive(overhead))
            .end();
    }
}

/// A task of a task system.
fn write_task(writer: &mut Writer, task: &Task) {
    writer.start("task").attribute("name", &task.name);
    writer
        .attribute("period", task.period)
        .optional(
            "deadline",
            (task.deadline != task.period).then_some(task.deadline),
        )
        .optional("cost", task.cost)
        .optional("misses", (task.misses > 0).then_some(task.misses))
        .attribute("criticality", task.criticality)
        .optional("core", task.core);
    write_details(writer, task);
    if let Some(cpu) = task.quota {
        writer
            .start("cpu")
            .attribute("quota", cpu.budget)
            .attribute("period", cpu.period)
            .end();
    }
    writer.end();
}

/// Everything of a task beside its name, its place, and what systems have always had; also inside applications. Leaves the
/// element open.
pub(crate) fn write_details(writer: &mut Writer, task: &Task) {
    writer
        .optional("priority", task.priority)
        .optional("threshold", task.threshold)
        .optional("wait", positive(task.wait))
        .optional("jitter", positive(task.jitter))
        .optional("offset", positive(task.offset))
        .optional("blocking", positive(task.blocking))
        .optional("tardiness", positive(task.tardiness))
        .optional("working-set", not_zero(task.working_set))
        .optional("load", positive(task.load))
        .optional("unload", positive(task.unload))
        .optional("accesses", (task.accesses > 0).then_some(task.accesses))
        .optional("memory-phase", positive(task.memory_phase));
    for point in &task.costs {
        writer
            .start("cost")
            .optional("level", point.level)
            .optional("ways", point.ways)
            .attribute("time", point.time)
            .end();
    }
    for section in &task.sections {
        writer
            .start("section")
            .attribute("resource", &section.resource)
            .attribute("length", section.length)
            .end();
    }
}

/// The tasks of a system's applications: each tile is a processor that TileMux shares out, tiles of one policy and slice make
/// one task system. The names of tasks are those of the applications. Empty if no application has a task with a cost.
///
/// With time slices, an application without a `<task>` or without a cost takes part as one of which nothing is known and
/// nothing asked. With fixed priorities, one without a `<task>` takes what its quota allows, and its own quota holds each up:
/// execution of a quota needs a period, so a job waits at most `period - quota` for each quota that it uses.
pub fn from_system(system: &System) -> Vec<TaskSystem> {
    let known = |task: &Task| task.cost_at(task.criticality, 0).is_some();
    let mut groups: BTreeMap<(bool, Time), Vec<Task>> = BTreeMap::new();
    for (order, app) in system.apps.iter().enumerate() {
        let mux = system.tilemux.iter().find(|mux| mux.tile == app.tile);
        let realtime = mux.is_some_and(|mux| mux.policy == TilePolicy::Realtime);
        let slice = mux.map_or(super::SLICE, |mux| mux.slice);
        let mut task = app.task.clone().filter(known).unwrap_or_else(|| Task {
            cost: None,
            criticality: 'E',
            ..Task::new("", Time(0), system.duration)
        });
        task.name.clone_from(&app.name);
        task.core = Some(u32::from(app.tile));
        if realtime {
            let Some(cpu) = app.cpu else {
                // Without a quota it comes last and disturbs nobody; nothing is promised to it.
                continue;
            };
            task.priority = Some((256 - u32::from(cpu.priority)) * 1000 + order as u32 % 1000);
            match task.cost {
                Some(cost) => {
                    let distance = Time(task.period.0.saturating_sub(task.jitter.0));
                    // What no quota pays for has no bound: it waits as long as times go.
                    let waits = cpu.waits(cost, distance).unwrap_or(super::TIME_MAX);
                    task.blocking =
                        Time(task.blocking.0.saturating_add(waits.0)).min(super::TIME_MAX);
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
