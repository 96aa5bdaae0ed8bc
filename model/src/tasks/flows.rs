//! Rules of flows.
//!
//! Why it exists: a flow has a bound only if its description says along which channels it goes. What it deliberately does not know: how
//! long a flow takes.

use super::check::{Places, wrong};
use super::{Channel, TaskSystem};
use crate::error::Diagnostic;

/// Adds what is wrong with the flows of a task system.
pub(super) fn check(system: &TaskSystem, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    for (flow, node) in system.flows.iter().zip(&places.flows) {
        // A flow from a task to itself is one of its jobs, unless its messages come back.
        let mut away = system.channels.iter().filter(|one| one.from == flow.from);
        let comes_back = |channel: &Channel| {
            channel.parallel.is_none() && system.route(channel.to, flow.from) != Err(0)
        };
        if flow.from == flow.to && away.any(comes_back) {
            let name = &system.tasks[flow.from].name;
            errors.push(wrong(
                node,
                "to",
                format!("`{name}` may end this flow in the job that begins it, or when a message comes back to it"),
                "write one flow for the way there, and one for the way back",
            ));
        }
        if let Err(ways) = system.route(flow.from, flow.to) {
            let (from, to) = (&system.tasks[flow.from].name, &system.tasks[flow.to].name);
            let (what, help) = if ways == 0 {
                (
                    "no channels lead",
                    "add the <channel> elements of the chain",
                )
            } else {
                (
                    "more than one chain of channels leads",
                    "write one flow for each part that has one chain",
                )
            };
            errors.push(wrong(
                node,
                "to",
                format!("{what} from `{from}` to `{to}`"),
                help,
            ));
        }
    }
}
