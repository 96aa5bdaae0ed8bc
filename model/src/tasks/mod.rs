//! Task systems: tasks, processors and what they share, typed and checked.
//!
//! Why it exists: response times, plans and verdicts need tasks, not programs; a user without a chip writes a `<task-system>`, and the
//! `<task>`s of a `<system>` are the same type. What it deliberately does not know: schedulability, and how open values are planned.
//!
//! Lists are in file order; items refer to each other by index.

mod check;
mod flows;
mod joins;
mod notify;
mod parallel;
mod read;
mod write;

use serde::Serialize;

pub(crate) use check::one_shot_only;
pub(crate) use read::{read, task};
pub use write::write;
pub(crate) use write::write_details;

use crate::cpu::Cpu;
use crate::units::{Frequency, Rate, Size, Time};

/// The longest time that a task system may specify, in picoseconds: 2^52 nanoseconds, 52 days, the range of the analyses.
pub const TIME_MAX: Time = Time(1000 << 52);

/// TileMux's slice.
pub const SLICE: Time = Time(1_000_000_000);

/// How processors choose what runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Preemptive fixed priorities on each processor.
    FixedPriority,
    /// The same with preemption thresholds.
    Threshold,
    /// Fixed priorities on each processor; a job that has started runs to its end.
    NonPreemptive,
    /// Earliest deadline first on each processor.
    Edf,
    /// Fixed priorities in order of periods on each processor.
    RateMonotonic,
    /// A repeating table on each processor.
    Table,
    /// Fixed priorities over all processors together.
    GlobalFixedPriority,
    /// Earliest deadline first over all processors together, no deadline missed.
    GlobalEdf,
    /// Earliest deadline first over all processors together, lateness bounded.
    GlobalEdfSoft,
    /// Levels A (tables), B (rate monotonic), C (global EDF), D and E (best effort).
    Mc2,
    /// Copy in, execute, copy out; non-preemptive, one DMA engine by TDMA.
    ThreePhase,
    /// Like non-preemptive, on one stack, with tasks connected by sampling ports.
    OneShot,
    /// Round robin in slices on each processor, each task within its quota in each period (TileMux).
    TimeSlice,
}

impl Policy {
    /// Every policy with its word in descriptions.
    pub const ALL: [(&'static str, Self); 13] = [
        ("fixed-priority", Self::FixedPriority),
        ("threshold", Self::Threshold),
        ("non-preemptive", Self::NonPreemptive),
        ("edf", Self::Edf),
        ("rate-monotonic", Self::RateMonotonic),
        ("table", Self::Table),
        ("global-fixed-priority", Self::GlobalFixedPriority),
        ("global-edf", Self::GlobalEdf),
        ("global-edf-soft", Self::GlobalEdfSoft),
        ("mc2", Self::Mc2),
        ("three-phase", Self::ThreePhase),
        ("one-shot", Self::OneShot),
        ("time-slice", Self::TimeSlice),
    ];

    /// Its word in descriptions.
    pub fn word(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|entry| entry.1 == self)
            .map_or("", |entry| entry.0)
    }

    /// The policy with this word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|entry| entry.0 == word)
            .map(|entry| entry.1)
    }

    /// All processors together run all tasks; no task has its own.
    pub const fn is_global(self) -> bool {
        matches!(
            self,
            Self::GlobalFixedPriority | Self::GlobalEdf | Self::GlobalEdfSoft
        )
    }

    /// Tasks have priorities that can be chosen.
    pub const fn has_priorities(self) -> bool {
        matches!(
            self,
            Self::FixedPriority
                | Self::Threshold
                | Self::NonPreemptive
                | Self::GlobalFixedPriority
                | Self::ThreePhase
                | Self::OneShot
        )
    }
}

/// A periodic or sporadic task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Task {
    /// Name.
    pub name: String,
    /// Minimum inter-arrival time.
    pub period: Time,
    /// Longest time from arrival to completion, release jitter included.
    pub deadline: Time,
    /// Computing time of a job alone, for levels without an entry in `costs`.
    pub cost: Option<Time>,
    /// Costs by level and ways, in file order.
    pub costs: Vec<CostPoint>,
    /// Deadlines that may be missed in a run.
    pub misses: u64,
    /// Release jitter: longest time from arrival to release.
    pub jitter: Time,
    /// First arrival.
    pub offset: Time,
    /// Longest time that lower-priority tasks may hold it up, besides sections.
    pub blocking: Time,
    /// `A` (most critical) to `E`.
    pub criticality: char,
    /// Its processor; `None`: open, or any.
    pub core: Option<u32>,
    /// 1 is the highest; `None`: open.
    pub priority: Option<u32>,
    /// Once started, only jobs with priorities before this preempt it; `None`: open.
    pub threshold: Option<u32>,
    /// How late it may be if lateness is bounded; 0: any bound will do.
    pub tardiness: Time,
    /// Bytes of the cache that it uses repeatedly.
    pub working_set: Size,
    /// Time of the copy-in phase, alone.
    pub load: Time,
    /// Time of the copy-out phase, alone.
    pub unload: Time,
    /// Maximum memory accesses of a job.
    pub accesses: u64,
    /// The part of the cost during which it holds the memory mutex.
    pub memory_phase: Time,
    /// Critical sections.
    pub sections: Vec<Section>,
    /// The maximum that it gets.
    pub quota: Option<Cpu>,
    /// Maximum time that a job waits in a parallel section, besides its cost; 0: it is not in one.
    pub wait: Time,
    /// Why nothing bounds its cost, if so. Then it has none.
    #[serde(skip)]
    pub unbounded: Option<Unbounded>,
}

impl Task {
    /// A task of level C whose deadline is its period.
    pub fn new(name: impl Into<String>, cost: Time, period: Time) -> Self {
        Self {
            name: name.into(),
            period,
            deadline: period,
            cost: Some(cost),
            costs: Vec::new(),
            misses: 0,
            jitter: Time(0),
            offset: Time(0),
            blocking: Time(0),
            criticality: 'C',
            core: None,
            priority: None,
            threshold: None,
            tardiness: Time(0),
            working_set: Size(0),
            load: Time(0),
            unload: Time(0),
            accesses: 0,
            memory_phase: Time(0),
            sections: Vec::new(),
            quota: None,
            wait: Time(0),
            unbounded: None,
        }
    }

    /// The same without a cost, for this reason.
    pub fn lose(&mut self, why: Unbounded) {
        self.cost = None;
        self.unbounded = Some(why);
    }

    /// The cost as estimated by `level`, with `ways` of the cache: the point with the most available ways; a point for the level takes
    /// precedence over one for all levels. `None`: no estimate for so few ways.
    pub fn cost_at(&self, level: char, ways: u32) -> Option<Time> {
        let best = |wanted: Option<char>| {
            self.costs
                .iter()
                .filter(|point| point.level == wanted && point.ways.is_none_or(|w| w <= ways))
                .max_by_key(|point| point.ways)
                .map(|point| point.time)
        };
        // If a level has points that name ways, they are complete for that level: a wider estimate does not cover fewer ways.
        let named = |wanted: Option<char>| self.costs.iter().any(|point| point.level == wanted);
        if named(Some(level)) {
            return best(Some(level));
        }
        if named(None) {
            return best(None);
        }
        self.cost
    }

    /// The smallest number of ways for which `level` has an estimate.
    pub fn least_ways(&self, level: char) -> u32 {
        (0..=1024)
            .find(|&ways| self.cost_at(level, ways).is_some())
            .unwrap_or(0)
    }

    /// Whether its cost depends on ways.
    pub fn uses_ways(&self) -> bool {
        self.costs.iter().any(|point| point.ways.is_some())
    }
}

/// An estimate of a task's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CostPoint {
    /// The level that makes this estimate; `None`: every level.
    pub level: Option<char>,
    /// With at least this many ways; `None`: any number.
    pub ways: Option<u32>,
    /// The computing time.
    pub time: Time,
}

/// A critical section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The resource that is held.
    pub resource: String,
    /// Maximum length.
    pub length: Time,
}

/// A task system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskSystem {
    /// Name.
    pub name: String,
    /// What it shows.
    pub about: Option<String>,
    /// Number of processors.
    pub processors: u32,
    /// The scheduling policy.
    pub policy: Policy,
    /// Jobs arrive exactly at the offset and whole periods after it, rather than at least one period apart.
    pub periodic: bool,
    /// Clock of the processors, if it is given.
    pub frequency: Option<Frequency>,
    /// Longest time that a task runs while others wait, with time slices.
    pub slice: Time,
    /// Costs of the kernel.
    pub overheads: Overheads,
    /// The last-level cache.
    pub llc: Option<Llc>,
    /// The main memory.
    pub ram: Option<Ram>,
    /// Regulation by counting.
    pub memguard: Option<Memguard>,
    /// The lock of memory phases.
    pub mutex: Option<MutexOrder>,
    /// Overhead of each slot of the DMA engine, if there is one.
    pub tdma: Option<Time>,
    /// Resources reserved for single processors.
    pub shares: Vec<Share>,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// Channels.
    pub channels: Vec<Channel>,
    /// Devices.
    pub devices: Vec<Device>,
    /// Chains with a deadline.
    pub flows: Vec<TaskFlow>,
    /// Tables of processors.
    pub tables: Vec<Table>,
}

impl TaskSystem {
    /// A task system with only processors and tasks.
    pub fn new(name: impl Into<String>, processors: u32, policy: Policy, tasks: Vec<Task>) -> Self {
        Self {
            name: name.into(),
            about: None,
            processors,
            policy,
            periodic: false,
            frequency: None,
            slice: SLICE,
            overheads: Overheads::default(),
            llc: None,
            ram: None,
            memguard: None,
            mutex: None,
            tdma: None,
            shares: Vec::new(),
            tasks,
            channels: Vec::new(),
            devices: Vec::new(),
            flows: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// A processor's resources; `None`: what level C shares.
    pub fn share(&self, core: Option<u32>) -> Option<&Share> {
        self.shares.iter().find(|share| share.core == core)
    }

    /// Index of the task with this name.
    pub fn task(&self, name: &str) -> Option<usize> {
        self.tasks.iter().position(|task| task.name == name)
    }

    /// The channel whose messages release a task. `None`: time releases it.
    pub fn told_by(&self, task: usize) -> Option<usize> {
        let mut channels = self.channels.iter();
        channels.position(|channel| channel.notify && channel.to == task)
    }

    /// The channel that says what a channel's port is: the one that it joins, or itself.
    pub fn port_of(&self, channel: usize) -> usize {
        self.channels[channel].joins.unwrap_or(channel)
    }

    /// All channels that write into a channel's port, in file order: itself, and those that join the same queue.
    pub fn sharing(&self, channel: usize) -> Vec<usize> {
        let port = self.port_of(channel);
        let all = 0..self.channels.len();
        all.filter(|&other| self.port_of(other) == port).collect()
    }

    /// The channel of a parallel section in the opposite direction between the same two tasks.
    pub fn partner(&self, channel: usize) -> Option<usize> {
        let one = &self.channels[channel];
        let other = match one.parallel? {
            Parallel::Slice => Parallel::Result,
            Parallel::Result => Parallel::Slice,
        };
        let back = |c: &Channel| c.parallel == Some(other) && (c.from, c.to) == (one.to, one.from);
        self.channels.iter().position(back)
    }

    /// The name of the channel whose slices a channel answers.
    pub fn answers(&self, channel: usize) -> Option<&str> {
        let is_result = self.channels[channel].parallel == Some(Parallel::Result);
        let slices = self.partner(channel).filter(|_| is_result)?;
        Some(&self.channels[slices].name)
    }

    /// Channels along which a flow passes, if there is exactly one simple path from `from` to `to`. `Err` says how many there are: 0, or 2
    /// for several.
    pub fn route(&self, from: usize, to: usize) -> Result<Vec<usize>, usize> {
        // Slices and results of a section are not part of a data path: they belong to the job that hands out slices.
        let channels = self.channels.iter().enumerate();
        let (numbers, edges): (Vec<usize>, Vec<(usize, usize)>) = channels
            .filter(|(_, channel)| channel.parallel.is_none())
            .map(|(index, channel)| (index, (channel.from, channel.to)))
            .unzip();
        let way = route(&edges, self.tasks.len(), from, to)?;
        Ok(way.into_iter().map(|edge| numbers[edge]).collect())
    }
}

/// Indices of the edges (from, to) along the only simple path among `nodes` from `from` to `to`; `Err` says how many there are: 0, or 2 for
/// several. Counts paths with saturation, node by node; cycles cannot be part of an only simple path, so each node is entered at most once.
pub fn route(
    edges: &[(usize, usize)],
    nodes: usize,
    from: usize,
    to: usize,
) -> Result<Vec<usize>, usize> {
    // Only nodes from which `to` can be reached matter.
    let mut reaches = vec![false; nodes];
    reaches[to] = true;
    loop {
        let before = reaches.iter().filter(|r| **r).count();
        for &(from, to) in edges {
            reaches[from] |= reaches[to];
        }
        if reaches.iter().filter(|r| **r).count() == before {
            break;
        }
    }
    let (mut here, mut path) = (from, Vec::new());
    let mut seen = vec![false; nodes];
    while here != to {
        seen[here] = true;
        let mut next = edges
            .iter()
            .enumerate()
            .filter(|(_, edge)| edge.0 == here && reaches[edge.1] && !seen[edge.1]);
        let Some((index, edge)) = next.next() else {
            return Err(0);
        };
        if next.next().is_some() {
            return Err(2);
        }
        path.push(index);
        here = edge.1;
    }
    Ok(path)
}

/// Costs of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Overheads {
    /// A scheduling decision.
    pub schedule: Time,
    /// A release.
    pub release: Time,
    /// Entry and exit of an interrupt.
    pub interrupt: Time,
}

/// The last-level cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Llc {
    /// Ways that may be given away.
    pub ways: u32,
    /// Page colours that may be given away.
    pub colours: u32,
    /// Bytes behind one colour; 0 without colours.
    pub colour_size: Size,
}

/// The main memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ram {
    /// Banks that may be given away.
    pub banks: u32,
    /// Its worst-case rate.
    pub bandwidth: Option<Rate>,
}

/// Regulation by counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memguard {
    /// Its period.
    pub period: Time,
    /// Minimum time of an access.
    pub access: Time,
    /// Accesses per period for all together.
    pub accesses: Option<u64>,
}

/// Which processor gets the memory mutex next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MutexOrder {
    /// The first one that asked.
    Fifo,
    /// The lowest processor number.
    Core,
}

/// A processor's own resources. `None` for a value: open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The processor; `None`: level C as a whole.
    pub core: Option<u32>,
    /// Ways.
    pub ways: Option<u32>,
    /// Colours.
    pub colours: Option<u32>,
    /// Banks.
    pub banks: Option<u32>,
    /// Memory accesses per regulation period.
    pub budget: Option<u64>,
    /// Slot of the DMA engine.
    pub slot: Option<Time>,
}

/// How a channel is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelKind {
    /// The newest message, read by polling.
    Sampling,
    /// Each message once, in order.
    Queue,
}

/// The content of a channel in a parallel section: a task hands slices of its work to helpers and waits for their results. Slices and
/// results of a helper are two channels between the same two tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parallel {
    /// A slice of work, to a helper.
    Slice,
    /// The helper's result for it.
    Result,
}

/// A transfer that nothing bounds.
pub const UNBOUNDED: Time = Time(u64::MAX);

/// Why nothing bounds a task's cost, or when a channel's items arrive. No description has it; an analysis of cores and ports may find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unbounded {
    /// What the description states leaves no time for it, so its promises fail.
    Overloaded(String),
    /// Nobody knows how long it takes, so its promises are not judged.
    Unknown(String),
}

impl Unbounded {
    /// The reason.
    pub fn why(&self) -> &str {
        match self {
            Self::Overloaded(why) | Self::Unknown(why) => why,
        }
    }
}

/// Messages from one task to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Channel {
    /// Name.
    pub name: String,
    /// The task that writes.
    pub from: usize,
    /// The task that reads.
    pub to: usize,
    /// Bytes of a message.
    pub size: Size,
    /// How it is read.
    pub kind: ChannelKind,
    /// Messages that a queue holds.
    pub slots: u32,
    /// A message releases its reader. The reader's jobs are released at least its period apart, each at most its jitter earlier.
    pub notify: bool,
    /// Its role in a parallel section, whose reader waits for the message within its job.
    pub parallel: Option<Parallel>,
    /// The channel whose queue it writes into; `None`: it has a port of its own. Then size, kind and places are those of that queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub joins: Option<usize>,
    /// Maximum time from the end of the writing job until the message has arrived, or [`UNBOUNDED`].
    pub transfer: Time,
    /// Why the transfer is unbounded, if it is.
    #[serde(skip)]
    pub unbounded: Option<Unbounded>,
    /// Maximum time from the writer's arrival to the reader's end.
    pub deadline: Option<Time>,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Device {
    /// Name.
    pub name: String,
    /// Maximum bytes per second that it moves.
    pub rate: Option<Rate>,
    /// `in`, `out` or `both`.
    pub direction: Direction,
    /// Its data is copied once more.
    pub copied: bool,
    /// Minimum inter-arrival time of interrupts, and longest handler.
    pub interrupts: Option<(Time, Time)>,
    /// The processor of its interrupts.
    pub core: u32,
    /// The task that it serves.
    pub task: Option<usize>,
    /// Bytes that it can hold.
    pub buffer: Option<Size>,
}

/// Where a device moves data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// To memory.
    In,
    /// From memory.
    Out,
    /// Both, each at its rate.
    Both,
}

/// A chain of tasks along channels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskFlow {
    /// Name.
    pub name: String,
    /// The task where it begins.
    pub from: usize,
    /// The task where it ends.
    pub to: usize,
    /// Longest time from begin to end.
    pub deadline: Option<Time>,
}

/// The table of a processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// The processor.
    pub core: u32,
    /// Its length.
    pub length: Time,
    /// Slots in file order.
    pub slots: Vec<Slot>,
}

/// A part of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Slot {
    /// The task.
    pub task: usize,
    /// Start.
    pub start: Time,
    /// Length.
    pub length: Time,
}
