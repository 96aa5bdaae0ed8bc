//! Rules of channels that write into the queue of another channel.
//!
//! Why it exists: a queue may have several writers, and each of them has a channel of its own, so paths, outputs and names are those of any channel; what the queue
//! is (its reader, the size of an item, its places) is said once. What it deliberately does not know: see the parent module.

use super::check::wrong;
use super::parallel::named;
use super::{Channel, ChannelKind, Policy};
use crate::error::Diagnostic;
use crate::node::Node;

/// Attributes that say what the queue is, or that only a channel with a port of its own can have.
const OF_THE_QUEUE: [&str; 5] = ["size", "kind", "slots", "notify", "answers"];

/// Notes which channels join a queue, and gives them its size and places. `tasks`: the names of all tasks.
pub(super) fn mark(
    channels: &mut [Channel],
    nodes: &[&Node],
    (policy, tasks): (Policy, &[&str]),
    errors: &mut Vec<Diagnostic>,
) {
    let names: Vec<String> = channels.iter().map(|one| one.name.clone()).collect();
    for (index, node) in nodes.iter().enumerate().take(channels.len()) {
        let Some(queue) = named(node, "joins", &names, errors) else {
            continue;
        };
        let name = &names[queue];
        let before = errors.len();
        if policy != Policy::OneShot {
            errors.push(wrong(
                node,
                "joins",
                "a channel can join a queue only with the policy `one-shot`",
                "remove `joins`: only the one-shot RTOS has it",
            ));
            continue;
        }
        for attribute in OF_THE_QUEUE.into_iter().filter(|one| node.gives(one)) {
            errors.push(wrong(
                node,
                attribute,
                format!("a channel that joins the queue `{name}` cannot have `{attribute}`"),
                format!("remove it: `{name}` says what the queue is"),
            ));
        }
        if errors.len() > before {
            continue;
        }
        if let Some((attribute, what, help)) = refusal(channels, nodes, (index, queue), tasks) {
            errors.push(wrong(node, attribute, what, help));
            continue;
        }
        let Channel {
            size, kind, slots, ..
        } = channels[queue];
        let joined = &mut channels[index];
        (joined.size, joined.kind, joined.slots) = (size, kind, slots);
        joined.joins = Some(queue);
    }
}

/// Why a channel cannot join a queue: the attribute, what is wrong, and what would be right.
fn refusal(
    channels: &[Channel],
    nodes: &[&Node],
    (index, queue): (usize, usize),
    tasks: &[&str],
) -> Option<(&'static str, String, String)> {
    let (one, of) = (&channels[index], &channels[queue]);
    let name = &of.name;
    if nodes[queue].gives("joins") {
        return Some((
            "joins",
            format!("`{name}` joins a queue itself"),
            "name the channel whose queue it is".to_owned(),
        ));
    }
    if of.kind == ChannelKind::Sampling {
        return Some((
            "joins",
            format!("`{name}` is not a queue"),
            format!(
                "write kind=\"queue\" at `{name}`: a sampling port has only the last message, so a writer would write over those of others"
            ),
        ));
    }
    if of.notify {
        return Some((
            "joins",
            format!("messages of `{name}` release its reader"),
            format!(
                "remove `notify` of `{name}`: the jobs of a reader follow the period of one writer"
            ),
        ));
    }
    if of.parallel.is_some() || one.parallel.is_some() {
        return Some((
            "joins",
            format!("`{name}`, or the channel that joins it, is part of a parallel section"),
            "give each slice and each result a channel of its own".to_owned(),
        ));
    }
    if one.to != of.to {
        return Some((
            "to",
            format!(
                "`{}` does not read `{name}`, but `{}` does",
                tasks[one.to], tasks[of.to]
            ),
            format!("write to=\"{}\": a queue has one reader", tasks[of.to]),
        ));
    }
    let twice = channels.iter().enumerate().find(|(other, channel)| {
        let shares = *other == queue || channel.joins == Some(queue);
        shares && *other != index && channel.from == one.from
    })?;
    Some((
        "from",
        format!(
            "`{}` writes into the queue `{name}` already, by the channel `{}`",
            tasks[one.from], twice.1.name
        ),
        "remove one of the two: a job writes once into a queue".to_owned(),
    ))
}
