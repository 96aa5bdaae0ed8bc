//! A system of the one-shot RTOS as canonical XML.
//!
//! Why it exists: a result records exactly what was run. What it deliberately does not know: see the parent module.

use super::OneShot;
use crate::platform;
use crate::system::System;
use crate::tasks::ChannelKind;
use crate::writer::Writer;

/// Writes the whole description; it needs no other file.
pub(crate) fn write(writer: &mut Writer, system: &System, one_shot: &OneShot) {
    writer
        .start("system")
        .attribute("name", &system.name)
        .attribute("paradigm", "one-shot")
        .time("duration", system.duration)
        .optional("host", one_shot.host)
        .optional("about", system.about.as_ref());
    platform::write(writer, &system.platform);
    let tasks = &one_shot.tasks;
    for (task, program) in tasks.tasks.iter().zip(&one_shot.programs) {
        writer
            .start("task")
            .attribute("name", &task.name)
            .attribute("program", &program.name)
            .optional_size("stack", program.stack)
            .optional("image", program.image)
            .optional("domain", program.domain.as_ref())
            .optional("arrivals", program.is_sporadic.then_some("sporadic"))
            .optional("handlers", program.handlers.map(|one| one.cost))
            .optional("handlers-apart", program.handlers.map(|one| one.apart))
            .optional("core", task.core)
            .optional("priority", task.priority)
            .time("period", task.period)
            .time("deadline", task.deadline);
        if let Some(cost) = task.cost {
            // Exact: cycles of some clocks are not whole nanoseconds.
            writer.attribute("cost", cost);
        }
        writer
            .optional("wait", (task.wait.0 > 0).then_some(task.wait))
            .optional("misses", (task.misses > 0).then_some(task.misses))
            .end();
    }
    for (index, channel) in tasks.channels.iter().enumerate() {
        writer
            .start("channel")
            .attribute("name", &channel.name)
            .attribute("from", &tasks.tasks[channel.from].name)
            .attribute("to", &tasks.tasks[channel.to].name);
        if let Some(queue) = channel.joins {
            writer.attribute("joins", &tasks.channels[queue].name).end();
            continue;
        }
        writer.size("size", channel.size);
        if channel.kind == ChannelKind::Queue {
            writer
                .attribute("kind", "queue")
                .attribute("slots", channel.slots);
        }
        if channel.notify {
            writer.attribute("notify", "true");
        }
        writer.optional("answers", tasks.answers(index)).end();
    }
    for flow in &tasks.flows {
        writer
            .start("flow")
            .attribute("name", &flow.name)
            .attribute("from", &tasks.tasks[flow.from].name)
            .attribute("to", &tasks.tasks[flow.to].name);
        if let Some(deadline) = flow.deadline {
            writer.time("deadline", deadline);
        }
        writer.end();
    }
    writer.end();
}
