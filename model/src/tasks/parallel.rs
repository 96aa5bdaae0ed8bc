//! Rules of parallel sections: a task hands slices of its work to helpers on other cores and waits for their results within its job.
//!
//! Why it exists and what it does not know: see the parent module.
//!
//! A section is found through its results: `answers` of a channel names the channel that brings the slices. All its tasks have the same
//! period, so their jobs are released in the same ticks, and a slice handed out in a period is answered in that period or never.

use super::check::{Places, wrong};
use super::{Channel, ChannelKind, Parallel, Policy, TaskSystem};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::text::suggestion;
use crate::units::Time;

/// The channel that an attribute names, if it has one.
pub(super) fn named(
    node: &Node,
    attribute: &str,
    names: &[String],
    errors: &mut Vec<Diagnostic>,
) -> Option<usize> {
    let name = node.maybe_text(attribute)?;
    let found = names.iter().position(|one| *one == name);
    if found.is_none() {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let help = suggestion(&name, &known, "channel");
        errors.push(Diagnostic::new(
            Problem::Unknown {
                kind: "channel",
                name,
            },
            node.place(attribute),
            help,
        ));
    }
    found
}

/// Notes which channels bring slices and results.
pub(super) fn mark(channels: &mut [Channel], nodes: &[&Node], errors: &mut Vec<Diagnostic>) {
    let names: Vec<String> = channels.iter().map(|one| one.name.clone()).collect();
    for (index, node) in nodes.iter().enumerate().take(channels.len()) {
        let Some(slices) = named(node, "answers", &names, errors) else {
            continue;
        };
        let name = &names[slices];
        let (from, to) = (channels[slices].from, channels[slices].to);
        if (channels[index].to, channels[index].from) != (from, to) {
            errors.push(wrong(
                node,
                "answers",
                format!("`{name}` does not lead from this channel's reader to its writer"),
                "name the channel that brings the slices of this helper",
            ));
            continue;
        }
        if channels[slices].parallel.is_some() || channels[index].parallel.is_some() {
            errors.push(wrong(
                node,
                "answers",
                format!("`{name}` is answered twice, or is an answer itself"),
                "give each helper one channel for slices and one for results",
            ));
            continue;
        }
        channels[slices].parallel = Some(Parallel::Slice);
        channels[index].parallel = Some(Parallel::Result);
    }
}

/// Rules of sections, once channels are marked.
pub(super) fn check(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    for (channel, node) in system.channels.iter().zip(&places.channels) {
        if let Some(part) = channel.parallel {
            one(system, channel, part, node, errors);
        }
    }
    for (index, node) in places.tasks.iter().enumerate() {
        task(system, index, node, errors);
    }
}

fn one(
    system: &TaskSystem,
    channel: &Channel,
    part: Parallel,
    node: &Node,
    errors: &mut Vec<Diagnostic>,
) {
    if system.policy != Policy::OneShot {
        errors.push(wrong(
            node,
            "name",
            "parallel sections need the policy `one-shot`",
            "remove `answers`: only the one-shot RTOS has it",
        ));
        return;
    }
    if channel.kind == ChannelKind::Queue || channel.notify {
        errors.push(wrong(
            node,
            if channel.notify { "notify" } else { "kind" },
            format!(
                "channel `{}` of a parallel section must be a sampling channel without `notify`",
                channel.name
            ),
            "remove this attribute: the reader waits for the message within its job",
        ));
    }
    // Each helper once, not once for each of its two channels.
    if part == Parallel::Result {
        return;
    }
    let (asker, helper) = (&system.tasks[channel.from], &system.tasks[channel.to]);
    if asker.period != helper.period {
        errors.push(wrong(
            node,
            "to",
            format!(
                "`{}` has a period of {}, and its helper `{}` one of {}",
                asker.name, asker.period, helper.name, helper.period
            ),
            "give both the same period: they are released together",
        ));
    }
    if asker.core.is_some() && asker.core == helper.core {
        errors.push(wrong(
            node,
            "to",
            format!(
                "`{}` and its helper `{}` share a core",
                asker.name, helper.name
            ),
            "move one of them: while a job waits, no other job runs on its core",
        ));
    }
    let slices = |to: bool| {
        let all = system.channels.iter();
        all.filter(|one| one.parallel == Some(Parallel::Slice))
            .filter(|one| if to { one.to } else { one.from } == channel.to)
            .count()
    };
    if slices(true) > 1 || slices(false) > 0 {
        errors.push(wrong(
            node,
            "to",
            format!(
                "`{}` helps in two sections, or has helpers itself",
                helper.name
            ),
            "give each slice a helper of its own: a job waits for one slice",
        ));
    }
}

fn task(system: &TaskSystem, index: usize, node: &Node, errors: &mut Vec<Diagnostic>) {
    let task = &system.tasks[index];
    let mut channels = system.channels.iter();
    let in_section =
        channels.any(|one| one.parallel.is_some() && (one.from == index || one.to == index));
    if in_section != (task.wait > Time(0)) {
        errors.push(wrong(
            node,
            if in_section { "name" } else { "wait" },
            match in_section {
                true => format!(
                    "`{}` is in a parallel section, but has no `wait`",
                    task.name
                ),
                false => format!(
                    "`{}` has `wait`, but is not in a parallel section",
                    task.name
                ),
            },
            match in_section {
                true => {
                    "write wait=\"...\": after this time, a job gives up missing slices or results"
                }
                false => "remove `wait`, or write answers=\"...\" at the channel of its results",
            },
        ));
    }
    if in_section && task.deadline > task.period {
        errors.push(wrong(
            node,
            "deadline",
            format!(
                "`{}` is in a parallel section, but may end after its period",
                task.name
            ),
            "write a deadline of at most the period: slices of two periods must not overlap",
        ));
    }
    if in_section && system.told_by(index).is_some() {
        errors.push(wrong(
            node,
            "name",
            format!(
                "`{}` is in a parallel section, but messages release it",
                task.name
            ),
            "remove `notify` of its channel: all tasks of a section are released in the same ticks",
        ));
    }
}
