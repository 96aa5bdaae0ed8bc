//! What the guards of a described system's cores admit, and what a refusal means.
//!
//! Why it exists: the description says which core writes to which, and hence which core may access what; everything else is refused. What
//! it deliberately does not know: how a guard works.
//!
//! Each writer of a channel's port may read and write the lock, the news or positions, and the holder in the port's record, read the record's state
//! and address, and write the data. It may not change state and address, which say where the data is: a compromised writer cannot redirect
//! the owner's port before the owner has initialised it. The writer of a channel with notification may ring. Where clocks differ, the
//! master may read a core's request and write the answers; no other core may, and no core may write the master's record. No other core may
//! ring, start the hart, or read.

use super::layout;
use bulkhead_abi::memory_map::{TILE_DOORBELL, TILE_REGISTERS, TILE_START};
use bulkhead_abi::one_shot::clock::{READY, RECORD, SENT, SERVED};
use bulkhead_abi::one_shot::port::{HOLDER, LOCK, STATE};
use bulkhead_abi::one_shot::table::POINTER;
use bulkhead_abi::one_shot::{IMAGE_SIZE, PORT_SIZE, PORTS_OFFSET};
use bulkhead_machine::local_tile::{GuardRule, Refusals};
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_report::result::{Incident, IncidentKind};

/// The rules of each tile that has a guard. A tile without tasks admits no other tile.
pub fn rules(system: &System, one_shot: &OneShot) -> Vec<(u16, Vec<GuardRule>)> {
    let guarded = system.platform.tiles.iter().filter(|tile| {
        let memory = tile.local_memory.as_ref();
        memory.is_some_and(|memory| memory.guard > 0)
    });
    guarded
        .map(|tile| (tile.id, of_core(system, one_shot, tile.id)))
        .collect()
}

fn of_core(system: &System, one_shot: &OneShot, core: u16) -> Vec<GuardRule> {
    let mut rules = Vec::new();
    let master = one_shot.master(&system.platform);
    if let Some(master) = master.filter(|_| one_shot.follows(&system.platform, core)) {
        let mut rule = |from: u64, to: u64, read: bool, write: bool| {
            rules.push(GuardRule {
                tile: master,
                from: RECORD + from,
                to: RECORD + to,
                read,
                write,
            });
        };
        rule(READY, SENT, true, false);
        rule(SENT, SERVED, false, true);
    }
    // A port may have several writers. Each core gets its own rules, and one where the only writers are the reader's neighbours gets none.
    let ports = layout::data(system, one_shot, core).into_iter();
    let writers = ports.flat_map(|(port, begin, end)| {
        let sharing = one_shot.tasks.sharing(port).into_iter();
        sharing.map(move |channel| (channel, begin, end))
    });
    for (channel, begin, end) in writers.filter(|one| one_shot.needs_rules(one.0)) {
        let writer = one_shot.core(one_shot.tasks.channels[channel].from);
        let record = PORTS_OFFSET + one_shot.port(channel) as u64 * PORT_SIZE;
        let mut rule = |from: u64, to: u64, read: bool, write: bool| {
            rules.push(GuardRule {
                tile: writer,
                from,
                to,
                read,
                write,
            });
        };
        rule(record + LOCK, record + STATE, true, true);
        rule(record + STATE, record + STATE + 8, true, false);
        rule(record + HOLDER, record + HOLDER + 4, true, true);
        rule(begin, end, false, true);
        if one_shot.tasks.channels[channel].notify {
            let doorbell = TILE_REGISTERS + TILE_DOORBELL;
            rule(doorbell, doorbell + 8, false, true);
        }
    }
    rules
}

/// A description of an offset in a core's window, for messages.
pub fn place(offset: u64) -> String {
    let what = match offset {
        _ if offset == TILE_REGISTERS + TILE_DOORBELL => "the doorbell",
        _ if offset == TILE_REGISTERS + TILE_START => "the start of the hart",
        _ if offset >= TILE_REGISTERS => "a register",
        PORTS_OFFSET..IMAGE_SIZE => {
            let port = (offset - PORTS_OFFSET) / PORT_SIZE;
            return format!("the record of port {port} (+{offset:#x})");
        }
        RECORD..POINTER => "the clock record, if clocks differ",
        POINTER..PORTS_OFFSET => "the pointer to the table",
        _ => "the memory",
    };
    format!("{what} (+{offset:#x})")
}

/// Each core that was refused an access, once per guard. The incident is the requesting core's, because no described task has to make such
/// an access.
pub fn refusals(one_shot: &OneShot, refused: &[(u16, Refusals)]) -> Vec<Incident> {
    let each = refused.iter().map(|(tile, one)| {
        let verb = if one.write { "a write to" } else { "a read of" };
        let times = match one.count {
            1 => String::new(),
            count => format!(", and {} times more", count - 1),
        };
        let tasks = one_shot.on_core(one.from).into_iter();
        let tasks: Vec<String> = tasks
            .map(|task| format!("`{}`", one_shot.tasks.tasks[task].name))
            .collect();
        let tasks = match tasks.is_empty() {
            true => "this core".to_owned(),
            false => tasks.join(", "),
        };
        let place = place(one.offset);
        Incident {
            crash: None,
            kind: IncidentKind::Stopped,
            at: Some(one.at),
            tile: one.from,
            application: format!("core {}", one.from),
            what: format!(
                "the guard of core {tile} refused {verb} {place}{times}; no channel from {tasks} leads there"
            ),
        }
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system_text};

    /// Two tasks of one core, one of another and a neighbour of the reader write into a queue.
    #[test]
    fn each_core_that_writes_into_a_queue_is_admitted_once() {
        let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="a" program="p::A" core="4" priority="1" period="9ms" cost="1us"/>
            <task name="b" program="p::A" core="4" priority="2" period="9ms" cost="1us"/>
            <task name="c" program="p::A" core="7" priority="1" period="9ms" cost="1us"/>
            <task name="d" program="p::A" core="2" priority="2" period="9ms" cost="1us"/>
            <task name="reader" program="p::A" core="2" priority="1" period="2ms" cost="1us"/>
            <channel name="queue" from="d" to="reader" size="8B" kind="queue" slots="4"/>
            <channel name="one" from="b" to="reader" joins="queue"/>
            <channel name="two" from="a" to="reader" joins="queue"/>
            <channel name="three" from="c" to="reader" joins="queue"/></system>"#;
        let load = |rules: usize| {
            let rules = format!("platform/local-memory[sram]@guard={rules}");
            let options = LoadOptions {
                overrides: vec![rules],
                ..LoadOptions::default()
            };
            load_system_text("s", text, &options)
        };
        // Two cores with four rules each; the neighbour needs none.
        let system = load(8).expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let rules = rules(&system, one_shot);
        let of_reader = &rules.iter().find(|one| one.0 == 2).expect("a guard").1;
        assert_eq!(of_reader.len(), 8);
        for core in [4, 7] {
            let own: Vec<_> = of_reader.iter().filter(|one| one.tile == core).collect();
            let record = PORTS_OFFSET + one_shot.port(0) as u64 * PORT_SIZE;
            let may_write = |from: u64| own.iter().any(|one| one.from == from && one.write);
            assert!(may_write(record + LOCK) && may_write(record + HOLDER));
            assert!(!may_write(record + STATE));
            let [(_, begin, end)] = layout::data(&system, one_shot, 2)[..] else {
                panic!("one queue");
            };
            assert_eq!(end - begin, 4 * 8);
            assert!(own.iter().any(|one| (one.from, one.to) == (begin, end)));
        }
        assert!(
            rules
                .iter()
                .all(|(core, rules)| *core == 2 || rules.is_empty())
        );
        let errors = load(7).map(drop).expect_err("too few rules");
        assert!(
            errors
                .to_string()
                .contains("the guard of core 2 has 7 rules"),
            "{errors}"
        );
    }
}
