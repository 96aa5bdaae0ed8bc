//! Task systems: every valid one reads back unchanged, and damaged texts never panic.

use bulkhead_model::tasks::{
    self, Channel, ChannelKind, CostPoint, Device, Direction, Llc, Memguard, MutexOrder, Overheads,
    Policy, Ram, Section, Share, Slot, Table, Task, TaskFlow, TaskSystem,
};
use bulkhead_model::units::{Rate, Size, Time};
use bulkhead_model::{LoadOptions, catalog, load_tasks_text};
use proptest::prelude::*;

/// Whole nanoseconds, 0 included.
fn span() -> impl Strategy<Value = Time> {
    prop_oneof![Just(0), 1u64..1000, 1u64..(1 << 51)].prop_map(|ns| Time(ns * 1000))
}

fn time() -> impl Strategy<Value = Time> {
    (1u64..(1 << 52)).prop_map(|ns| Time(ns * 1000))
}

fn task() -> impl Strategy<Value = Task> {
    let times = (time(), time(), time(), span(), span(), span());
    let rest = (
        0u64..5,
        0u64..(1 << 30),
        0u64..9,
        prop::bool::ANY,
        prop::option::of(0u32..2),
    );
    (times, rest).prop_map(
        |((period, deadline, cost, jitter, offset, blocking), rest)| {
            let (misses, working_set, accesses, section, core) = rest;
            let length = Time(1000);
            Task {
                deadline,
                misses,
                jitter,
                offset,
                blocking,
                core,
                working_set: Size(working_set),
                accesses,
                memory_phase: if section { Time(1000) } else { Time(0) },
                // The same resource on two processors is a mistake; a separate one is not.
                sections: if section {
                    vec![Section {
                        resource: "own".into(),
                        length,
                    }]
                } else {
                    Vec::new()
                },
                ..Task::new("", cost, period)
            }
        },
    )
}

fn system() -> impl Strategy<Value = TaskSystem> {
    let tasks = prop::collection::vec(task(), 2..6);
    let given = prop::bool::ANY;
    (tasks, given, span(), span(), 1u32..5, time()).prop_map(
        |(mut tasks, given, schedule, release, colours, slice)| {
            for (index, task) in tasks.iter_mut().enumerate() {
                task.name = format!("t-{index}");
                task.priority = given.then_some(index as u32 + 1);
                for section in &mut task.sections {
                    section.resource = format!("r{index}");
                }
            }
            let mut system = TaskSystem::new("random", 2, Policy::FixedPriority, tasks);
            system.about = Some("a \"quoted\" & <marked> text".into());
            system.slice = slice;
            system.overheads = Overheads {
                schedule,
                release,
                interrupt: release,
            };
            system.llc = Some(Llc {
                ways: 8,
                colours,
                colour_size: Size(4096),
            });
            system.ram = Some(Ram {
                banks: 3,
                bandwidth: Some(Rate(12345)),
            });
            system.shares.push(Share {
                core: Some(1),
                ways: Some(3),
                banks: Some(0),
                ..Share::default()
            });
            system.channels.push(Channel {
                name: "c".into(),
                from: 0,
                to: 1,
                size: Size(64),
                kind: ChannelKind::Queue,
                slots: 3,
                notify: false,
                parallel: None,
                joins: None,
                transfer: schedule,
                unbounded: None,
                deadline: Some(slice),
            });
            system.flows.push(TaskFlow {
                name: "f".into(),
                from: 0,
                to: 1,
                deadline: None,
            });
            system.devices.push(Device {
                name: "d".into(),
                rate: Some(Rate(77)),
                direction: Direction::In,
                copied: true,
                interrupts: Some((slice, Time(1000))),
                core: 1,
                task: Some(0),
                buffer: Some(Size(9)),
            });
            system
        },
    )
}

/// What a queue is, only its own channel says, before or behind those that join it.
#[test]
fn channels_that_join_a_queue_are_written_as_they_were_read() {
    let text = r#"<task-system name="t"><processors count="3" policy="one-shot" arrivals="periodic"/>
        <task name="a" core="0" priority="1" period="5ms" cost="1ms"/>
        <task name="b" core="1" priority="1" period="5ms" cost="1ms"/>
        <task name="c" core="2" priority="1" period="2ms" cost="1ms"/>
        <channel name="early" from="a" to="c" joins="q" transfer="7us"/>
        <channel name="q" from="b" to="c" size="24B" kind="queue" slots="6"/></task-system>"#;
    let system = load_tasks_text("t", text, &LoadOptions::default()).unwrap();
    let [early, queue] = &system.channels[..] else {
        panic!("two channels");
    };
    assert_eq!((early.joins, queue.joins), (Some(1), None));
    assert_eq!(
        (early.size, early.kind, early.slots),
        (Size(24), ChannelKind::Queue, 6)
    );
    assert_eq!(
        (system.sharing(0), system.sharing(1)),
        (vec![0, 1], vec![0, 1])
    );
    let written = tasks::write(&system);
    assert!(
        written.contains(r#"from="a" to="c" joins="q" transfer="7us""#),
        "{written}"
    );
    same(&system).unwrap();
}

fn same(system: &TaskSystem) -> Result<(), TestCaseError> {
    let text = tasks::write(system);
    match load_tasks_text("written", &text, &LoadOptions::default()) {
        Ok(again) => prop_assert_eq!(&again, system),
        // Random deadlines, sections and regulation may be mistakes; they must be explained, with a place.
        Err(errors) => {
            for error in &errors.list {
                prop_assert!(
                    error.position().is_some() && !error.help.is_empty(),
                    "{}",
                    error
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_is_written_reads_back(system in system()) {
        // Nothing in these systems is a mistake.
        let text = tasks::write(&system);
        let again = load_tasks_text("written", &text, &LoadOptions::default());
        let again = again.map_err(|errors| TestCaseError::fail(format!("{errors}\n{text}")))?;
        prop_assert_eq!(again, system);
    }

    #[test]
    fn other_parts_read_back_or_are_explained(mut system in system(), period in time(), access in span(), order in prop::bool::ANY) {
        system.memguard = Some(Memguard { period, access, accesses: Some(7) });
        same(&system)?;
        system.memguard = None;
        system.mutex = Some(if order { MutexOrder::Core } else { MutexOrder::Fifo });
        same(&system)?;
        for (index, task) in system.tasks.iter_mut().enumerate() {
            task.costs.push(CostPoint { level: Some('C'), ways: Some(index as u32), time: period });
            task.costs.push(CostPoint { level: None, ways: None, time: period });
        }
        same(&system)?;
        for (_, policy) in Policy::ALL {
            let mut other = system.clone();
            other.policy = policy;
            other.tdma = Some(access);
            other.tables.push(Table { core: 0, length: period, slots: vec![Slot { task: 0, start: access, length: Time(1000) }] });
            same(&other)?;
        }
    }

    #[test]
    fn damaged_texts_never_panic(entry in 0..catalog::TASKS.len(), at in any::<prop::sample::Index>(), put in "[ -~é]{0,6}", cut in 0usize..6) {
        let text = catalog::TASKS[entry].1;
        let places: Vec<usize> = text.char_indices().map(|c| c.0).collect();
        let start = places[at.index(places.len())];
        let end = places.iter().copied().find(|p| *p >= start + cut).unwrap_or(text.len());
        let damaged = format!("{}{put}{}", &text[..start], &text[end..]);
        if let Err(errors) = load_tasks_text("damaged", &damaged, &LoadOptions::default()) {
            prop_assert!(!errors.list.is_empty());
        }
    }
}
