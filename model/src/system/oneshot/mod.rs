//! Systems of the one-shot RTOS: tasks on the cores of a mesh, joined by sampling ports and queues.
//!
//! Why it exists: such a system has no kernel tile, managers or applications; it has tasks, channels and flows, like a `<task-system>`, and
//! each task has a program. What it deliberately does not know: how images are built, and what the kernel costs.
//!
//! Tasks, channels and flows are those of a task system with the policy `one-shot` whose processors are the tiles, so one reader and one
//! set of rules serve both.

mod check;
mod read;
mod write;

pub(crate) use check::tiled;
pub(crate) use read::read;
pub(crate) use write::write;

use crate::platform::Platform;
use crate::tasks::{ChannelKind, TaskSystem};
use crate::units::{Size, Time};
use serde::Serialize;
use std::collections::BTreeSet;

/// A tick of the kernel: jobs are released at its multiples (m2os-mc-ngres21, section 4.2).
pub const TICK: Time = Time(1_000_000_000);
/// Maximum tasks of a core.
pub const TASKS: usize = 64;
/// Maximum ports of a core (`bulkhead_abi::one_shot::PORTS`).
pub const PORTS: usize = 16;
/// Rules that the guard of a reader's core needs for a channel from another core: three for the parts of the record, one for the data. One with
/// notification needs one more, for the doorbell.
pub const RULES: usize = 4;
/// Rules that the guard of a core needs if the core follows the clock of another one: what it asks for, and the answers.
pub const CLOCK_RULES: usize = 2;
/// Maximum cores that a host core starts (`bulkhead_abi::one_shot::host::CORES_MAX`).
pub const HOSTED: usize = 1024;
/// Maximum places of a queue (`bulkhead_abi::one_shot::port::SLOTS_MAX`).
pub const SLOTS: u32 = 32_767;

/// Bytes before each slice and result of a parallel section: when the slice was handed out (`bulkhead_abi::one_shot::TAG`).
pub const TAG: u64 = 8;

/// Maximum rings of a channel per tick: its writer's jobs are released in different ticks, and each ends within its period, so one may be
/// late and the next one early.
const RINGS: u64 = 2;
/// Additional rings if the writer is itself released by messages: one job may be released late in its tick, and the following job early in
/// the next one.
const RINGS_TOLD: u64 = 1;
/// Additional rings if writer and reader have clocks of their own: a tick of the reader does not begin with one of the writer, so the last ring of one period,
/// that of the next one, and the first of the third may fall within it.
const RINGS_CLOCKS: u64 = 1;

/// Attributes that only a system's task has, and not one of a task system.
pub(crate) const OWN: [&str; 7] = [
    "program",
    "stack",
    "image",
    "domain",
    "handlers",
    "handlers-apart",
    "arrivals",
];

/// A system on a mesh.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OneShot {
    /// Tasks with their costs alone, channels and flows. Every task has a core, which is a tile, and a priority. Transfers are 0.
    pub tasks: TaskSystem,
    /// For each task: what it runs.
    pub programs: Vec<Program>,
    /// The tile whose core loads and starts the others, and shows their consoles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<u16>,
    /// How long the system runs: bounds that contain what clocks drift apart hold until then.
    #[serde(skip)]
    pub duration: Time,
    /// Cores whose image sets timing events, but none of whose tasks states what their handlers take: nothing bounds what such a core does. Nobody knows before images are
    /// built, so it is empty until then.
    #[serde(skip)]
    pub unstated: BTreeSet<u16>,
}

/// The program of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// A folder with a Cargo package, and the type of the task in its library: `FOLDER::module::Type`.
    pub name: String,
    /// Stack that its jobs and an interrupt need, if the description says so; otherwise the build computes it. The core's stack is the largest of its tasks'.
    pub stack: Option<Size>,
    /// Code, constants and data that it adds to its core's image, if the description says so.
    pub image: Option<Size>,
    /// The domain that it belongs to, if the description says so.
    pub domain: Option<String>,
    /// Its jobs ask for later releases themselves, so no number of jobs is due.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_sporadic: bool,
    /// Handlers of the timing events that it sets, if the description states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handlers: Option<Handlers>,
}

/// Handlers of timing events, as the description states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Handlers {
    /// The longest time of all handlers that are called at one tick, together.
    pub cost: Time,
    /// The least time between two ticks at which handlers are called: a whole number of ticks.
    pub apart: Time,
}

/// The stack of a core whose description says nothing, unless its tasks need more: enough for jobs with a few calls, and for an interrupt.
pub const STACK: Size = Size(1024);

impl Program {
    /// The stack that is assumed of it before it is built.
    pub fn stack(&self) -> Size {
        self.stack.unwrap_or(STACK)
    }
}

impl OneShot {
    /// Cores with tasks, in order.
    pub fn cores(&self) -> Vec<u16> {
        let mut cores: Vec<u16> = (0..self.tasks.tasks.len()).map(|t| self.core(t)).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }

    /// The core whose clock all others follow: the first one with tasks. `None`: all have the same timer, or there are no others.
    pub fn master(&self, platform: &Platform) -> Option<u16> {
        let cores = self.cores();
        let own = |core: &u16| {
            let tile = platform.tile(*core);
            tile.is_some_and(crate::platform::Tile::has_own_clock)
        };
        let first = cores.first().copied();
        first.filter(|_| cores.len() > 1 && cores.iter().any(own))
    }

    /// Whether a core with tasks follows the clock of another one.
    pub fn follows(&self, platform: &Platform, core: u16) -> bool {
        self.master(platform).is_some_and(|master| master != core) && self.cores().contains(&core)
    }

    /// The domains of the tasks, each with its cores, in file order; tasks without a domain belong to that of `system`.
    pub fn domains(&self, system: &str) -> Vec<(String, Vec<u16>)> {
        let mut all: Vec<(String, Vec<u16>)> = Vec::new();
        for task in 0..self.programs.len() {
            let name = self.programs[task].domain.as_deref().unwrap_or(system);
            let core = self.core(task);
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, cores)) if cores.contains(&core) => {}
                Some((_, cores)) => cores.push(core),
                None => all.push((name.to_owned(), vec![core])),
            }
        }
        all
    }

    /// The core of a task.
    pub fn core(&self, task: usize) -> u16 {
        let core = self.tasks.tasks[task].core.unwrap_or(0);
        u16::try_from(core).unwrap_or(u16::MAX)
    }

    /// The tasks of a core, the most urgent first: the kernel's numbers are positions in this list.
    pub fn on_core(&self, core: u16) -> Vec<usize> {
        let all = 0..self.tasks.tasks.len();
        let mut here: Vec<usize> = all.filter(|&task| self.core(task) == core).collect();
        here.sort_by_key(|&task| self.tasks.tasks[task].priority);
        here
    }

    /// The tasks of a core that are released by messages, as positions in [`OneShot::on_core`].
    pub fn told(&self, core: u16) -> Vec<usize> {
        let here = self.on_core(core).into_iter().enumerate();
        let told = here.filter(|(_, task)| self.tasks.told_by(*task).is_some());
        told.map(|(place, _)| place).collect()
    }

    /// Handlers of timing events of a core, as its tasks state them.
    pub fn handlers(&self, core: u16) -> Vec<Handlers> {
        let here = self.on_core(core).into_iter();
        here.filter_map(|task| self.programs[task].handlers)
            .collect()
    }

    /// Whether a task of a core is released by messages or releases others.
    pub fn notifies(&self, core: u16) -> bool {
        let ends = |channel: &crate::tasks::Channel| {
            channel.notify
                && [channel.from, channel.to]
                    .map(|end| self.core(end))
                    .contains(&core)
        };
        self.tasks.channels.iter().any(ends)
    }

    /// Rings of its doorbell that a core accepts per tick; after them it accepts none until the next tick.
    pub fn rings(&self, platform: &Platform, core: u16) -> u64 {
        let tasks = &self.tasks;
        let here =
            |channel: &&crate::tasks::Channel| channel.notify && self.core(channel.to) == core;
        let of_writer = |channel: &crate::tasks::Channel| {
            let apart = self.core(channel.from) != core && self.master(platform).is_some();
            let told = tasks.told_by(channel.from).is_some();
            RINGS + u64::from(told) * RINGS_TOLD + u64::from(apart) * RINGS_CLOCKS
        };
        tasks.channels.iter().filter(here).map(of_writer).sum()
    }

    /// The channels whose ports a task reads: its inputs, in the order of the file. A channel that joins a queue has no port of its own.
    pub fn inputs(&self, task: usize) -> Vec<usize> {
        self.ends(|channel| channel.to == task && channel.joins.is_none())
    }

    /// The channels that a task writes: its outputs, in the order of the file.
    pub fn outputs(&self, task: usize) -> Vec<usize> {
        self.ends(|channel| channel.from == task)
    }

    /// The places of a channel that is a queue; 0 for a sampling port.
    pub fn slots(&self, channel: usize) -> u16 {
        let channel = &self.tasks.channels[channel];
        match channel.kind {
            ChannelKind::Queue => u16::try_from(channel.slots).unwrap_or(u16::MAX),
            ChannelKind::Sampling => 0,
        }
    }

    /// Bytes that a channel's port holds: the item and, in a parallel section, its tag.
    pub fn bytes(&self, channel: usize) -> u64 {
        let channel = &self.tasks.channels[channel];
        channel.size.0 + if channel.parallel.is_some() { TAG } else { 0 }
    }

    fn ends(&self, is: impl Fn(&crate::tasks::Channel) -> bool) -> Vec<usize> {
        let channels = self.tasks.channels.iter().enumerate();
        channels.filter(|(_, c)| is(c)).map(|(i, _)| i).collect()
    }

    /// Whether the guard of the reader's core needs rules for a channel: its writer is on another core, and no channel before it leads from there to the same port.
    pub fn needs_rules(&self, channel: usize) -> bool {
        let from = |channel: usize| self.core(self.tasks.channels[channel].from);
        let own = from(channel);
        let mut sharing = self.tasks.sharing(channel).into_iter();
        let first = sharing.find(|&one| from(one) == own);
        own != self.core(self.tasks.channels[channel].to) && first == Some(channel)
    }

    /// The port of a channel on the core of its reader: inputs of the most urgent task come first.
    pub fn port(&self, channel: usize) -> usize {
        let channel = self.tasks.port_of(channel);
        let core = self.core(self.tasks.channels[channel].to);
        let here = self.on_core(core);
        let mut ports = here.into_iter().flat_map(|task| self.inputs(task));
        ports.position(|one| one == channel).unwrap_or(0)
    }
}
