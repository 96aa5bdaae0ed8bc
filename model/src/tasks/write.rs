//! Task systems as XML.
//!
//! Why it exists: a plan is written back as a description. What it deliberately does not know: how the original description looked. The
//! output reads back as the same model.

use super::{ChannelKind, Direction, MutexOrder, Task, TaskSystem};
use crate::units::{Size, Time};
use crate::writer::Writer;

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
        // What a queue is, its own channel says.
        let joins = channel.joins.map(|queue| &system.channels[queue].name);
        let own = Some(channel).filter(|_| joins.is_none());
        writer
            .start("channel")
            .attribute("name", &channel.name)
            .attribute("from", &system.tasks[channel.from].name)
            .attribute("to", &system.tasks[channel.to].name)
            .optional("size", own.and_then(|one| not_zero(one.size)))
            .optional("kind", own.map(|_| kind))
            .optional("slots", own.map(|one| one.slots).filter(|slots| *slots > 1))
            .optional("joins", joins)
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

/// The resources that tasks share.
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

/// All details of a task except its name, its place, and what systems have always had; also used inside applications. Leaves the element
/// open.
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
