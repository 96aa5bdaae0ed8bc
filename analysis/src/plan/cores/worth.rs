//! The worth of a placement of one-shot RTOS tasks, complete or partial.
//!
//! Why it exists: see the parent module. What it deliberately does not know: which placements exist.
//!
//! For tasks without a core, only the minimum that they take counts: a job alone in a flow, and its polling period. Everything else is
//! computed for the system without them.

use super::Aim;
use crate::one_shot::SWITCH;
use crate::plan::evaluate;
use crate::plan::one_shot::bounds;
use crate::plan::prepare::nanoseconds;
use crate::plan::{Constraint, Judgement, Kind};
use bulkhead_abi::one_shot::{IMAGE_SIZE, PORT_SIZE};
use bulkhead_model::platform::Platform;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::{CLOCK_RULES, PORTS, RULES, TASKS};
use bulkhead_model::tasks::{ChannelKind, TaskFlow};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the kernel, the port functions and the console of a described core: images of one small task with ports have 5.9 KB without
/// their stack.
const KERNEL: u64 = 6 << 10;
/// Bytes of a task that does not specify its size.
const TASK: u64 = 1 << 10;
/// Bytes of the table for a task and for an end of a channel, and the pointer to it.
const TABLE: [u64; 3] = [32, 16, 8];
/// Bytes of the record of a core's clock, where clocks differ, and of a core in the master's list of whole words.
const CLOCK: [u64; 2] = [32, 2];

/// The worth of a placement; the smallest is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worth {
    /// Limits of cores, deadlines and queues that do not hold.
    broken: usize,
    /// Deadlines and queues that nothing is known of.
    unjudged: usize,
    /// The requested criterion: cores or nanoseconds.
    first: u64,
    /// The other one.
    second: u64,
}

impl Worth {
    /// Everything that is known holds.
    pub fn is_good(self) -> bool {
        self.broken == 0
    }

    /// Nothing is unknown.
    pub fn is_judged(self) -> bool {
        self.unjudged == 0
    }

    /// The value of the requested criterion.
    #[cfg(test)]
    pub fn asked(self) -> u64 {
        self.first
    }

    /// For two variants of a system that share a placement.
    pub fn both(self, other: Self) -> Self {
        Self {
            broken: self.broken + other.broken,
            unjudged: self.unjudged + other.unjudged,
            first: self.first.saturating_add(other.first),
            second: self.second.saturating_add(other.second),
        }
    }
}

/// A system, or a variant of one, whose tasks are placed.
pub struct Case<'a> {
    tasks: OneShot,
    platform: &'a Platform,
    /// For each flow: its channels; `None` if there is no path, or more than one.
    ways: Vec<Option<Vec<usize>>>,
}

impl<'a> Case<'a> {
    pub fn new(tasks: &OneShot, platform: &'a Platform, priorities: Option<&[u32]>) -> Self {
        let mut tasks = tasks.clone();
        if let Some(priorities) = priorities {
            for (task, priority) in tasks.tasks.tasks.iter_mut().zip(priorities) {
                task.priority = Some(*priority);
            }
        }
        let all = tasks.tasks.flows.iter();
        let ways = all.map(|flow| tasks.tasks.route(flow.from, flow.to).ok());
        Self {
            ways: ways.collect(),
            tasks,
            platform,
        }
    }

    /// Whether one more core for a domain is one less rival.
    pub fn has_guards(&self) -> bool {
        let memories = self.platform.tiles.iter();
        let mut memories = memories.filter_map(|tile| tile.local_memory.as_ref());
        memories.any(|memory| memory.guard > 0)
    }

    /// With these cores; tasks without one are not present yet.
    pub fn worth(&self, cores: &[Option<u16>], aim: Aim) -> Worth {
        let part = self.part(cores);
        let mut broken = self.overfull(&part).len();
        let judged = bounds(&part, self.platform).tasks;
        let constraints = evaluate::constraints(&judged);
        let constraints = constraints.unwrap_or_default();
        let count = |judgement| {
            let all = constraints.iter();
            all.filter(|one| one.judgement == judgement).count()
        };
        broken += count(Judgement::Failed);
        let unjudged = count(Judgement::NotJudged);
        // A task that no test covers has no bound, and so has no constraint.
        let answered = constraints.iter().filter(|c| c.kind == Kind::Response);
        broken += part.programs.len().saturating_sub(answered.count());
        let latency = self.latency(&constraints);
        let used = part.cores().len() as u64;
        let (first, second) = match aim {
            Aim::Cores => (used, latency),
            Aim::Latency => (latency, used),
        };
        Worth {
            broken,
            unjudged,
            first,
            second,
        }
    }

    /// The system with only those tasks that have a core.
    fn part(&self, cores: &[Option<u16>]) -> OneShot {
        let all = &self.tasks;
        let kept: Vec<usize> = (0..cores.len()).filter(|&t| cores[t].is_some()).collect();
        let mut number = vec![None; cores.len()];
        for (place, &task) in kept.iter().enumerate() {
            number[task] = Some(place);
        }
        let mut part = OneShot {
            programs: kept.iter().map(|&t| all.programs[t].clone()).collect(),
            host: all.host,
            duration: all.duration,
            unstated: all.unstated.clone(),
            tasks: bulkhead_model::TaskSystem::new(
                all.tasks.name.clone(),
                all.tasks.processors,
                all.tasks.policy,
                kept.iter().map(|&t| all.tasks.tasks[t].clone()).collect(),
            ),
        };
        for (task, &old) in part.tasks.tasks.iter_mut().zip(&kept) {
            // A variant may have its own core.
            task.core = task.core.or(cores[old].map(u32::from));
        }
        let channels = 0..all.tasks.channels.len();
        let has_ends = |channel: &usize| {
            let channel = &all.tasks.channels[*channel];
            number[channel.from].is_some() && number[channel.to].is_some()
        };
        let kept: Vec<usize> = channels.filter(has_ends).collect();
        // The queue that the description names may have a writer without a core: the first other one stands for it then.
        let owner = |port: usize| {
            let place = |wanted: usize| kept.iter().position(|one| *one == wanted);
            let first = kept.iter().position(|&one| all.tasks.port_of(one) == port);
            place(port).or(first)
        };
        let channels = kept.iter().enumerate().filter_map(|(place, &index)| {
            let channel = &all.tasks.channels[index];
            Some(bulkhead_model::tasks::Channel {
                from: number[channel.from]?,
                to: number[channel.to]?,
                joins: owner(all.tasks.port_of(index)).filter(|one| *one != place),
                ..channel.clone()
            })
        });
        part.tasks.channels = channels.collect();
        let there = |flow: usize| {
            let channels = self.ways[flow].iter().flatten();
            let mut ends = channels.map(|&channel| &all.tasks.channels[channel]);
            ends.all(|channel| number[channel.from].is_some() && number[channel.to].is_some())
        };
        let flows = all.tasks.flows.iter().enumerate();
        let flows = flows.filter_map(|(index, flow)| {
            let (from, to) = (number[flow.from]?, number[flow.to]?);
            there(index).then(|| TaskFlow {
                from,
                to,
                ..flow.clone()
            })
        });
        part.tasks.flows = flows.collect();
        part
    }

    /// The sum of the flows' latencies; for tasks without a core, and between them, the minimum. Without flows, the sum of responses.
    fn latency(&self, constraints: &[Constraint]) -> u64 {
        let of = |kind: Kind, name: &str| {
            let mut all = constraints.iter();
            all.find(|one| one.kind == kind && one.subject == name)
        };
        let tasks = &self.tasks.tasks;
        let response = |task: usize| match of(Kind::Response, &tasks.tasks[task].name) {
            Some(known) => known.bound.unwrap_or(u64::MAX),
            None => self.alone(task),
        };
        if tasks.flows.is_empty() {
            return (0..tasks.tasks.len())
                .fold(0, |sum: u64, task| sum.saturating_add(response(task)));
        }
        let mut sum: u64 = 0;
        for (flow, way) in tasks.flows.iter().zip(&self.ways) {
            let least = match (of(Kind::Flow, &flow.name), way) {
                (Some(known), _) => known.bound.unwrap_or(u64::MAX),
                (None, None) => 0,
                (None, Some(way)) => way.iter().fold(response(flow.from), |sum, &channel| {
                    let channel = &tasks.channels[channel];
                    let polled = !channel.notify;
                    let period = nanoseconds(tasks.tasks[channel.to].period);
                    let wait = if polled { period } else { 0 };
                    sum.saturating_add(wait)
                        .saturating_add(response(channel.to))
                }),
            };
            sum = sum.saturating_add(least);
        }
        sum
    }

    /// Minimum nanoseconds of a job.
    fn alone(&self, task: usize) -> u64 {
        let cost = self.tasks.tasks.tasks[task].cost.map_or(0, nanoseconds);
        let clocks = self.platform.tiles.iter();
        let clock = clocks.map(|tile| tile.pipeline.clock.frequency.0).max();
        cost.saturating_add(SWITCH * 1_000_000_000 / clock.unwrap_or(1).max(1))
    }

    /// Everything that does not hold with these cores, in words.
    pub fn broken(&self, cores: &[Option<u16>]) -> Vec<String> {
        let part = self.part(cores);
        let mut all: Vec<String> = self
            .overfull(&part)
            .iter()
            .map(ToString::to_string)
            .collect();
        let judged = bounds(&part, self.platform).tasks;
        match evaluate::constraints(&judged) {
            Ok(constraints) => {
                let failed = constraints.iter().filter(|one| one.fails());
                all.extend(failed.map(|one| format!("{:?} of {}", one.kind, one.subject)));
            }
            Err(error) => all.push(error.to_string()),
        }
        all
    }

    /// Limits of cores that do not hold.
    fn overfull(&self, part: &OneShot) -> Vec<Limit> {
        #[derive(Default)]
        struct Core {
            tasks: usize,
            ports: usize,
            rules: usize,
            bytes: u64,
            stack: u64,
        }
        let mut cores: BTreeMap<u16, Core> = BTreeMap::new();
        let mut broken = Vec::new();
        let mut domains: BTreeMap<u16, BTreeSet<&Option<String>>> = BTreeMap::new();
        for (task, program) in part.programs.iter().enumerate() {
            let number = part.core(task);
            let core = cores.entry(number).or_default();
            core.tasks += 1;
            core.bytes += program.image.map_or(TASK, |size| size.0) + TABLE[0];
            core.stack = core.stack.max(program.stack().0);
            domains.entry(number).or_default().insert(&program.domain);
        }
        // Once per core, whichever of its tasks is the first one: a part of a placement must not break more limits than the whole.
        let mixed = domains.iter().filter(|(_, domains)| domains.len() > 1);
        broken.extend(mixed.map(|(core, _)| Limit::Domains(*core)));
        for (index, channel) in part.tasks.channels.iter().enumerate() {
            let (from, to) = (part.core(channel.from), part.core(channel.to));
            cores.entry(from).or_default().bytes += TABLE[1];
            let owner = cores.entry(to).or_default();
            if part.needs_rules(index) {
                owner.rules += RULES + usize::from(channel.notify);
            }
            if channel.joins.is_some() {
                continue;
            }
            let places = match channel.kind {
                ChannelKind::Sampling => 1,
                ChannelKind::Queue => u64::from(channel.slots),
            };
            let data = part.bytes(index).next_multiple_of(8).saturating_mul(places);
            owner.bytes = owner.bytes.saturating_add(TABLE[1] + data);
            owner.ports += 1;
        }
        let master = part.master(self.platform);
        for (&number, core) in &cores {
            let tile = self.platform.tile(number);
            let (rules, clock) = match master {
                None => (0, 0),
                Some(master) if master == number => {
                    let list = CLOCK[1] * cores.len() as u64;
                    (0, CLOCK[0] + list.next_multiple_of(8))
                }
                Some(_) => (CLOCK_RULES, CLOCK[0]),
            };
            let rules = core.rules + rules;
            let guard = tile
                .and_then(|tile| tile.local_memory.as_ref())
                .map_or(0, |memory| memory.guard as usize);
            if core.tasks > TASKS {
                broken.push(Limit::Tasks(number, core.tasks));
            }
            if core.ports > PORTS {
                broken.push(Limit::Ports(number, core.ports));
            }
            if guard > 0 && rules > guard {
                broken.push(Limit::Rules(number, rules, guard));
            }
            let bytes = core
                .bytes
                .saturating_add(clock + core.stack + KERNEL + TABLE[2] + PORTS as u64 * PORT_SIZE);
            if bytes > IMAGE_SIZE {
                broken.push(Limit::Bytes(number, bytes));
            }
        }
        broken
    }
}

/// A limit of a core, by its number, that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Limit {
    #[error("core {0} has {1} tasks of at most {TASKS}")]
    Tasks(u16, usize),
    #[error("core {0} owns {1} ports of at most {PORTS}")]
    Ports(u16, usize),
    #[error("the guard of core {0} needs {1} rules of {2}")]
    Rules(u16, usize, usize),
    #[error(
        "core {0} needs {1} bytes of {IMAGE_SIZE}: kernel, console, stack, ports, and `image` of its tasks"
    )]
    Bytes(u16, u64),
    #[error("core {0} has tasks of two domains")]
    Domains(u16),
}
