//! Channels for which a task asks, and which the description does not give it, or gives it with another size.
//!
//! Why it exists: the kernel refuses such an operation with an error that a program may ignore, and then nothing moves. What it deliberately does not know: operations
//! that are right, and what a program does about the error.

use super::layout;
use crate::measure::MarkerEvent;
use bulkhead_abi::one_shot::marker;
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_report::result::{Incident, IncidentKind};
use std::collections::{BTreeMap, BTreeSet};

/// Each of them once, with the task.
pub fn incidents(system: &System, one_shot: &OneShot, markers: &[MarkerEvent]) -> Vec<Incident> {
    let mut running: BTreeMap<u16, usize> = BTreeMap::new();
    let mut told = BTreeSet::new();
    let mut all = Vec::new();
    for event in markers {
        let what = match event.kind {
            marker::BEGIN => {
                let number = usize::try_from(event.value).unwrap_or(usize::MAX);
                match one_shot.on_core(event.tile).get(number) {
                    Some(task) => running.insert(event.tile, *task),
                    None => running.remove(&event.tile),
                };
                continue;
            }
            marker::NO_CHANNEL => no_channel,
            marker::WRONG_SIZE => wrong_size,
            _ => continue,
        };
        let Some(&task) = running.get(&event.tile) else {
            continue;
        };
        if told.insert((task, event.kind, event.value)) {
            all.push(Incident {
                crash: None,
                kind: IncidentKind::Stopped,
                at: Some(event.at),
                tile: event.tile,
                application: one_shot.tasks.tasks[task].name.clone(),
                what: what(system, one_shot, task, event.value),
            });
        }
    }
    all
}

fn no_channel(_: &System, one_shot: &OneShot, task: usize, value: u64) -> String {
    let (what, channels) = match value & marker::OUTPUT {
        0 => ("input", one_shot.inputs(task)),
        _ => ("output", one_shot.outputs(task)),
    };
    let name = |(number, channel): (usize, usize)| {
        format!("{number} (`{}`)", one_shot.tasks.channels[channel].name)
    };
    let names: Vec<String> = channels.into_iter().enumerate().map(name).collect();
    let there = match names.len() {
        0 => format!("no {what}"),
        1 => format!("one {what}, {}", names[0]),
        count => format!("{count} {what}s: {}", names.join(", ")),
    };
    let number = value & !marker::OUTPUT;
    format!(
        "it asks for {what} {number}, but the description gives it {there}; the operation fails"
    )
}

fn wrong_size(system: &System, one_shot: &OneShot, task: usize, value: u64) -> String {
    let (name, size) = (
        value & ((1 << marker::SIZE_SHIFT) - 1),
        value >> marker::SIZE_SHIFT,
    );
    let ends = [one_shot.inputs(task), one_shot.outputs(task)].concat();
    let mut ends = ends.into_iter();
    let channel = ends.find(|one| layout::marked(system, one_shot, *one) == name);
    let size = match u32::try_from(size) {
        Ok(u32::MAX) => "4 GiB or more".to_owned(),
        _ => format!("{size} bytes"),
    };
    let Some(channel) = channel else {
        return format!(
            "it moves an item of {size} through a port that is not one of its channels; the operation fails"
        );
    };
    let channel = one_shot.tasks.port_of(channel);
    let channel = &one_shot.tasks.channels[channel];
    let name = &channel.name;
    match size == format!("{} bytes", channel.size.0) {
        true => format!(
            "an item for `{name}` is not at a multiple of 8 bytes, or is moved outside of the parallel section to which the channel belongs; the operation fails"
        ),
        false => format!(
            "it moves an item of {size} through `{name}`, but the description says {} bytes; the operation fails",
            channel.size.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::load_system_text;

    /// By hand: a task with two inputs and no output, and its writers.
    #[test]
    fn each_wrong_channel_is_told_once() {
        let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="a" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>
            <task name="b" program="p::B" core="1" priority="1" period="1ms" cost="1us"/>
            <channel name="one" from="a" to="b" size="8B"/>
            <channel name="two" from="a" to="b" size="16B"/></system>"#;
        let system = load_system_text("s", text, &Default::default()).expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let event = |at: u64, tile: u16, kind: u16, value: u64| MarkerEvent {
            at,
            tile,
            activity: 0,
            kind,
            value,
            pc: 0,
        };
        let two = layout::marked(&system, one_shot, 1);
        let markers = [
            event(0, 0, marker::BEGIN, 0),
            event(1, 1, marker::BEGIN, 0),
            event(2, 1, marker::NO_CHANNEL, 2),
            event(3, 1, marker::NO_CHANNEL, 2),
            event(4, 1, marker::NO_CHANNEL, marker::OUTPUT),
            event(5, 1, marker::WRONG_SIZE, two | 12 << marker::SIZE_SHIFT),
            event(6, 0, marker::WRONG_SIZE, two | 16 << marker::SIZE_SHIFT),
            event(7, 0, marker::NO_CHANNEL, marker::OUTPUT | 7),
            event(8, 0, marker::WRONG_SIZE, 77),
        ];
        let all = incidents(&system, one_shot, &markers);
        let told: Vec<String> = all
            .iter()
            .map(|one| format!("{} at {:?}: {}", one.application, one.at, one.what))
            .collect();
        assert_eq!(
            told,
            [
                "b at Some(2): it asks for input 2, but the description gives it 2 inputs: 0 (`one`), 1 (`two`); the operation fails",
                "b at Some(4): it asks for output 0, but the description gives it no output; the operation fails",
                "b at Some(5): it moves an item of 12 bytes through `two`, but the description says 16 bytes; the operation fails",
                "a at Some(6): an item for `two` is not at a multiple of 8 bytes, or is moved outside of the parallel section to which the channel belongs; the operation fails",
                "a at Some(7): it asks for output 7, but the description gives it 2 outputs: 0 (`one`), 1 (`two`); the operation fails",
                "a at Some(8): it moves an item of 0 bytes through a port that is not one of its channels; the operation fails",
            ]
        );
    }
}
