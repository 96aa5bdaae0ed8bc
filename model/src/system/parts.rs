//! Parts of applications that systems with and without a kernel share, as XML.
//!
//! Why it exists: both write them in the same way. What it deliberately does not know: everything else about an
//! application.

use super::{App, System};
use crate::tasks;
use crate::writer::Writer;

/// The arguments of an application.
pub(super) fn write_arguments(writer: &mut Writer, app: &App) {
    for argument in &app.arguments {
        writer
            .start("argument")
            .attribute("name", &argument.name)
            .attribute("value", &argument.value)
            .end();
    }
}

/// Its task; the resource manager on the chip needs less than a complete description has.
pub(super) fn write_task(writer: &mut Writer, system: &System, app: &App, complete: bool) {
    let Some(task) = &app.task else {
        return;
    };
    writer
        .start("task")
        .time("period", task.period)
        .time("deadline", task.deadline);
    if let Some(cost) = task.cost {
        writer.time("cost", cost);
    }
    writer.attribute("misses", task.misses);
    if complete {
        if task.name != app.name {
            writer.attribute("name", &task.name);
        }
        if task.criticality != system.domains[app.domain].criticality {
            writer.attribute("criticality", task.criticality);
        }
        tasks::write_details(writer, task);
    }
    writer.end();
}

/// The flows of a system.
pub(super) fn write_flows(writer: &mut Writer, system: &System) {
    for flow in &system.flows {
        writer
            .start("flow")
            .attribute("name", &flow.name)
            .attribute("from", &system.apps[flow.from].name)
            .attribute("to", &system.apps[flow.to].name);
        if let Some(deadline) = flow.deadline {
            writer.time("deadline", deadline);
        }
        writer.end();
    }
}
