//! Rules of channels whose messages release their readers.
//!
//! Why it exists and what it does not know: see the parent module.

use super::check::wrong;
use super::{Channel, Policy, TaskSystem};
use crate::error::Diagnostic;
use crate::node::Node;

/// Rules of a channel whose messages release its reader.
pub(super) fn check(
    system: &TaskSystem,
    channel: &Channel,
    node: &Node,
    errors: &mut Vec<Diagnostic>,
) {
    let (writer, reader) = (&system.tasks[channel.from], &system.tasks[channel.to]);
    if system.policy != Policy::OneShot {
        errors.push(wrong(
            node,
            "notify",
            "a channel can release its reader only with the policy `one-shot`",
            "remove `notify`: only the one-shot RTOS has it",
        ));
        return;
    }
    let first = system.told_by(channel.to).map(|one| &system.channels[one]);
    if let Some(first) = first.filter(|first| first.name != channel.name) {
        errors.push(wrong(
            node,
            "notify",
            format!("`{}` is released by two channels", reader.name),
            format!(
                "remove `notify` here or at `{}`: its jobs follow the period of one writer",
                first.name
            ),
        ));
    }
    if reader.period > writer.period {
        errors.push(wrong(
            node,
            "to",
            format!(
                "`{}` is released at most once in {}, but `{}` writes once in {}",
                reader.name, reader.period, writer.name, writer.period
            ),
            "give the reader the writer's period, or a shorter one; otherwise messages pile up",
        ));
    }
}
