//! From checked elements to the typed task system: references are resolved here; rules are in `check`.
//!
//! Why it exists and what it does not know: see the parent module.

use super::check;
use super::{
    Channel, ChannelKind, CostPoint, Device, Direction, Llc, Memguard, MutexOrder, Overheads,
    Policy, Ram, Section, Share, Slot, Table, Task, TaskFlow, TaskSystem,
};
use crate::cpu::{Cpu, share_of};
use crate::error::{Diagnostic, Problem};
use crate::node::{self, Cost, Node, Quota};
use crate::text::suggestion;
use crate::tree::Element;
use crate::units::{Frequency, Size, Time};

/// Reads and checks a `<task-system>`. `None` if something is wrong; `errors` then says what.
pub fn read(element: &Element, errors: &mut Vec<Diagnostic>) -> Option<TaskSystem> {
    let before = errors.len();
    let node = node::read_root(element, "task-system", errors)?;
    let processors = node.child("processors")?;
    let policy = Policy::of_word(&processors.text("policy"))?;
    let frequency = processors.maybe_frequency("frequency");
    let places = check::Places::new(&node);
    check::names(&places, errors);
    let tasks: Vec<Task> = places
        .tasks
        .iter()
        .map(|node| {
            cycles(node, frequency, errors);
            task(node, frequency, "", 'C')
        })
        .collect();
    if errors.len() > before {
        return None;
    }
    let names: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
    let mut channels: Vec<Channel> = places
        .channels
        .iter()
        .filter_map(|node| channel(node, &names, errors))
        .collect();
    let devices = places
        .devices
        .iter()
        .filter_map(|node| device(node, &names, errors))
        .collect();
    let flows = places
        .flows
        .iter()
        .filter_map(|node| flow(node, &names, errors))
        .collect();
    let tables = places
        .tables
        .iter()
        .map(|node| table(node, &names, errors))
        .collect();
    if errors.len() > before {
        return None;
    }
    super::parallel::mark(&mut channels, &places.channels, errors);
    super::joins::mark(&mut channels, &places.channels, (policy, &names), errors);
    let system = TaskSystem {
        name: node.text("name"),
        about: node.maybe_text("about"),
        processors: small(processors.integer("count")),
        policy,
        periodic: processors.text("arrivals") == "periodic",
        frequency,
        slice: processors.time("slice"),
        overheads: node
            .child("overheads")
            .map_or_else(Overheads::default, |node| Overheads {
                schedule: node.time("schedule"),
                release: node.time("release"),
                interrupt: node.time("interrupt"),
            }),
        llc: node.child("llc").map(|node| Llc {
            ways: small(node.integer("ways")),
            colours: small(node.integer("colours")),
            colour_size: node.maybe_size("colour-size").unwrap_or(Size(0)),
        }),
        ram: node.child("ram").map(|node| Ram {
            banks: small(node.integer("banks")),
            bandwidth: node.maybe_rate("bandwidth").flatten(),
        }),
        memguard: node.child("memguard").map(|node| Memguard {
            period: node.time("period"),
            access: node.time("access"),
            accesses: node.maybe_integer("accesses"),
        }),
        mutex: node.child("memory-mutex").map(|node| {
            if node.text("order") == "core" {
                MutexOrder::Core
            } else {
                MutexOrder::Fifo
            }
        }),
        tdma: node.child("tdma").map(|node| node.time("overhead")),
        shares: places.shares.iter().map(|node| share(node)).collect(),
        tasks,
        channels,
        devices,
        flows,
        tables,
    };
    check::check(&system, &places, errors);
    (errors.len() == before).then_some(system)
}

/// A number that the tables keep small.
fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Costs in cycles need a clock.
fn cycles(node: &Node, frequency: Option<Frequency>, errors: &mut Vec<Diagnostic>) {
    let own = [(node, "cost")];
    let points = node.all("cost").map(|point| (point, "time"));
    for (node, attribute) in own.into_iter().chain(points) {
        if frequency.is_none() && matches!(node.maybe_cost(attribute), Some(Cost::Cycles(_))) {
            errors.push(Diagnostic::new(
                Problem::Inconsistent(
                    "the cost is in cycles, but the processors have no clock".into(),
                ),
                node.place(attribute),
                "write frequency=\"...\" at <processors>, or the cost as time",
            ));
        }
    }
}

/// A task, with what it needs from its surroundings. Costs in cycles refer to the clock `frequency`.
pub(crate) fn task(
    node: &Node,
    frequency: Option<Frequency>,
    name: &str,
    criticality: char,
) -> Task {
    let time = |cost: Cost| match cost {
        Cost::Time(time) => time,
        Cost::Cycles(cycles) => frequency
            .and_then(|clock| Time::of_cycles(cycles, clock))
            .unwrap_or(Time(u64::MAX)),
    };
    let period = node.time("period");
    Task {
        name: node.maybe_text("name").unwrap_or_else(|| name.to_owned()),
        period,
        deadline: node.maybe_time("deadline").unwrap_or(period),
        cost: node.maybe_cost("cost").map(time),
        costs: node
            .all("cost")
            .map(|point| CostPoint {
                level: point.maybe_text("level").and_then(|l| l.chars().next()),
                ways: point.maybe_integer("ways").map(small),
                time: point.maybe_cost("time").map_or(Time(u64::MAX), time),
            })
            .collect(),
        misses: node.integer("misses"),
        jitter: node.time("jitter"),
        offset: node.time("offset"),
        blocking: node.time("blocking"),
        criticality: node
            .maybe_text("criticality")
            .and_then(|level| level.chars().next())
            .unwrap_or(criticality),
        core: node.maybe_integer("core").map(small),
        priority: node.maybe_integer("priority").map(small),
        threshold: node.maybe_integer("threshold").map(small),
        tardiness: node.time("tardiness"),
        working_set: node.size("working-set"),
        load: node.time("load"),
        unload: node.time("unload"),
        accesses: node.integer("accesses"),
        memory_phase: node.time("memory-phase"),
        sections: node
            .all("section")
            .map(|section| Section {
                resource: section.text("resource"),
                length: section.time("length"),
            })
            .collect(),
        quota: node.child("cpu").map(|cpu| {
            let period = cpu.time("period");
            let budget = match cpu.quota("quota") {
                Quota::Time(time) => time,
                Quota::Share(share) => share_of(period, share.0),
            };
            Cpu {
                budget,
                period,
                priority: 0,
            }
        }),
        wait: node.maybe_time("wait").unwrap_or(Time(0)),
        unbounded: None,
    }
}

fn share(node: &Node) -> Share {
    Share {
        core: node.maybe_integer("core").map(small),
        ways: node.maybe_integer("ways").map(small),
        colours: node.maybe_integer("colours").map(small),
        banks: node.maybe_integer("banks").map(small),
        budget: node.maybe_integer("budget"),
        slot: node.maybe_time("slot"),
    }
}

/// The task that an attribute names.
fn named(
    node: &Node,
    attribute: &str,
    names: &[&str],
    errors: &mut Vec<Diagnostic>,
) -> Option<usize> {
    let name = node.text(attribute);
    let found = names.iter().position(|known| *known == name);
    if found.is_none() {
        let help = suggestion(&name, names, "task");
        errors.push(Diagnostic::new(
            Problem::Unknown { kind: "task", name },
            node.place(attribute),
            help,
        ));
    }
    found
}

fn channel(node: &Node, names: &[&str], errors: &mut Vec<Diagnostic>) -> Option<Channel> {
    let from = named(node, "from", names, errors);
    let to = named(node, "to", names, errors);
    Some(Channel {
        name: node.text("name"),
        from: from?,
        to: to?,
        size: node.size("size"),
        kind: if node.text("kind") == "queue" {
            ChannelKind::Queue
        } else {
            ChannelKind::Sampling
        },
        slots: small(node.integer("slots")),
        notify: node.boolean("notify"),
        parallel: None,
        joins: None,
        transfer: node.time("transfer"),
        unbounded: None,
        deadline: node.maybe_time("deadline"),
    })
}

fn device(node: &Node, names: &[&str], errors: &mut Vec<Diagnostic>) -> Option<Device> {
    let task = match node.maybe_text("task") {
        Some(_) => Some(named(node, "task", names, errors)?),
        None => None,
    };
    Some(Device {
        name: node.text("name"),
        rate: node.maybe_rate("rate").flatten(),
        direction: match node.text("direction").as_str() {
            "in" => Direction::In,
            "out" => Direction::Out,
            _ => Direction::Both,
        },
        copied: node.boolean("copied"),
        interrupts: node
            .maybe_time("interrupt-period")
            .zip(node.maybe_time("interrupt-cost")),
        core: node.maybe_integer("core").map_or(0, small),
        task,
        buffer: node.maybe_size("buffer"),
    })
}

fn flow(node: &Node, names: &[&str], errors: &mut Vec<Diagnostic>) -> Option<TaskFlow> {
    let from = named(node, "from", names, errors);
    let to = named(node, "to", names, errors);
    Some(TaskFlow {
        name: node.text("name"),
        from: from?,
        to: to?,
        deadline: node.maybe_time("deadline"),
    })
}

fn table(node: &Node, names: &[&str], errors: &mut Vec<Diagnostic>) -> Table {
    Table {
        core: small(node.integer("core")),
        length: node.time("length"),
        slots: node
            .all("slot")
            .filter_map(|slot| {
                Some(Slot {
                    task: named(slot, "task", names, errors)?,
                    start: slot.time("start"),
                    length: slot.time("length"),
                })
            })
            .collect(),
    }
}
