//! A described system of the one-shot RTOS as tasks: what the kernel and the other cores add to each job.
//!
//! Why it exists: the analysis of [`crate::schedulability::one_shot`] needs costs, but a description has only the cost of a job alone. What
//! it deliberately does not know: responses and flows; those follow from the task system that this module returns.
//!
//! What is added to a job:
//! - the switch to it ([`SWITCH`]);
//! - the tick interrupts in it and before it, one for each tick that it touches ([`INTERRUPT`], and for each task of the core
//!   [`INTERRUPT_TASK`]). Jobs of a busy period touch each of its ticks at least once, so no interrupt is forgotten between them;
//! - for each channel that it writes or reads, the waits for the port's lock and on the network ([`locks`]);
//! - accesses of others to its own memory, which take turns of its hart;
//! - handlers of timing events that the description states, in the ticks that call them ([`interrupts`]);
//! - on a core with tasks that messages release, the interrupts of its doorbell: in each tick that the job touches, as many as the kernel
//!   accepts per tick ([`OneShot::rings`]), however often others ring. So no ringing core can break these bounds.
//!
//! Where cores have timers of their own, a period of a core that is fast takes less time than the description says, and one of a core that is slow takes
//! more; both are known exactly, because the platform states drifts ([`Drift`]).
//!
//! Where messages release a reader, or tasks share a section, ticks of two cores are compared, so the error of their clocks is a part of the transfer
//! ([`crate::one_shot_clocks`]), until the system's duration is over. A notified item takes twice the error of both clocks more: the writer
//! may be late by its own after it was measured as early by it, and so may the reader's distance. A slice or result takes it once.
//!
//! A host core looks at one other core's console in each tick: its loads count like packets of others.
//!
//! A task that messages release is sporadic: the kernel releases its jobs in ticks at least a period apart, so a release comes less than a
//! tick earlier than a period after the previous one. A message has arrived when its store and its ring have passed the network and the
//! interrupts of the reader's core.
//!
//! Kernel costs are cycles of a core in order with its code in a local memory. They are measured on `epiphany3` (docs/reference/one-shot.md) and
//! rounded up; tests compare every bound with runs. A core on which they may be more has no bound ([`kernel`]).

use crate::one_shot_clocks::{Errors, beside};
use crate::one_shot_mesh::{BEHIND, Load, Mesh};
use crate::one_shot_rivals::{Rivals, patience};
use bulkhead_model::platform::Platform;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::tasks::{Channel, ChannelKind, TaskSystem, UNBOUNDED, Unbounded};
use bulkhead_model::units::Time;
use std::collections::{BTreeMap, BTreeSet};

pub use self::interrupts::Interrupts;

use self::drift::Drift;
use self::locks::{Ports, longest};

mod attempts;
mod drift;
mod interrupts;
mod locks;
mod lost;

/// Cycles from the end of a job to the first instruction of the next one, including the end's own operation.
pub const SWITCH: u64 = 250;
/// Cycles of an interrupt of the tick.
pub const INTERRUPT: u64 = 350;
/// Additional cycles for each task of the core.
pub const INTERRUPT_TASK: u64 = 40;
/// Cycles of an interrupt of the doorbell.
pub const RING: u64 = 350;
/// Additional cycles for each task of the core that messages release.
pub const RING_TASK: u64 = 150;
/// Additional cycles of a tick interrupt if the doorbell was masked until then.
pub const UNMASK: u64 = 150;
/// Additional cycles of a write that rings, without the answer that it waits for.
const RINGS_OTHERS: u64 = 40;
/// Cycles for which the kernel or a job of the reader's core masks interrupts.
const MASKED: u64 = 350;
/// Cycles of an operation on a port on its own core, without copying.
const OPERATION: u64 = 140;
/// Cycles to copy a byte, or a word of a slice or result, which are moved word by word.
const COPY: u64 = 6;
/// Bytes of a word.
const WORD: u64 = 8;
/// Loads of a host core when it looks at a console: the words of its header, twice that of its state, and 1 KiB.
const LOOK: u64 = 3 + 128;
/// Looks of a host core that fall within one operation of another core: one in each tick.
const LOOKS: u64 = 2;
/// Writes of one task that fall within one operation of another: its job may end and the next one begin.
const WRITES: u64 = 2;
/// Words of a write besides the item: the owner of the lock, news, and the lock.
pub(crate) const WORDS: u64 = 3;
/// Requests of a write that need an answer, besides those for the lock: state and address of a port that was not open, and the positions of
/// a queue.
pub(crate) const QUESTIONS: u64 = 3;
/// Additional cycles of an operation on a queue compared with a sampling port: its positions.
const POSITIONS: u64 = 40;

/// Maximum time of a channel's operations, in cycles of a core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Routers between writer and reader.
    pub hops: u64,
    /// Writing, alone.
    pub write: u64,
    /// Reading, alone.
    pub read: u64,
    /// How long writing waits for others.
    pub write_wait: u64,
    /// How long reading waits for others.
    pub read_wait: u64,
}

/// The bounds of a system's parts.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Its tasks, with everything added to their costs.
    pub tasks: TaskSystem,
    /// Its channels' ports.
    pub ports: Vec<Port>,
    /// For each task: cycles from the beginning of a job to its end.
    pub jobs: Vec<u64>,
    /// Domains whose bounds hold only if all other cores of the chip behave, and why. The bounds of all other domains hold whatever cores
    /// without tasks, and cores of other domains, do.
    pub assumes: Vec<(Option<String>, String)>,
    /// Why no bound of the chip holds, if so. Then no task of `tasks` has a response: those without time fail, and the others are not judged.
    pub unbounded: Option<String>,
    /// For each channel: why an operation on its port may fail, if so. Then nothing bounds when an item arrives, or how many wait; responses and operations
    /// keep their bounds, because whoever asks for a lock in vain takes less time than whoever gets it at last.
    pub fails: Vec<Option<String>>,
    /// For each task: why it has no bound, nor its operations and items, if so. The others keep theirs.
    pub lost: Vec<Option<Unbounded>>,
    /// For each task: how many of its jobs may fall within one operation of another task.
    turns: Vec<u64>,
}

impl Bounds {
    /// The same without a response of any task, for this reason. Tasks that are known to have no time keep their costs.
    fn without(mut self, why: String, has_no_time: impl Fn(usize) -> bool) -> Self {
        for (index, task) in self.tasks.tasks.iter_mut().enumerate() {
            if task.unbounded.is_none() && !has_no_time(index) {
                task.lose(Unbounded::Unknown(why.clone()));
            }
        }
        self.unbounded = Some(why);
        self
    }

    /// The allowed behaviour of other cores while these bounds hold, in words.
    pub fn beside(&self) -> String {
        if let Some(why) = &self.unbounded {
            return format!("no bound holds: {why}");
        }
        let mut text = self.of_others();
        let ends = self.tasks.channels.iter().zip(&self.fails);
        let fails = ends.filter(|(channel, _)| self.lost[channel.from].is_none());
        let fails: Vec<&str> = fails.filter_map(|(_, fails)| fails.as_deref()).collect();
        if !fails.is_empty() {
            text += &format!("; some items have none: {}", fails.join("; "));
        }
        let lost: BTreeSet<&str> = self.lost.iter().flatten().map(Unbounded::why).collect();
        let lost: Vec<&str> = lost.into_iter().collect();
        if !lost.is_empty() {
            text += &format!("; some cores have none: {}", lost.join("; "));
        }
        text
    }

    /// Why nothing bounds the time of a flow over these channels, if an operation on one of them may fail.
    pub fn fails_on(&self, route: &[usize]) -> Option<&String> {
        route.iter().find_map(|&one| self.fails[one].as_ref())
    }

    /// What other cores may do, in words.
    fn of_others(&self) -> String {
        if self.assumes.is_empty() {
            return "bounds hold whatever cores without tasks, and those of other domains, do"
                .to_owned();
        }
        let each = self.assumes.iter().map(|(domain, why)| match domain {
            Some(domain) => format!("{why} (domain {domain})"),
            None => why.clone(),
        });
        let each: Vec<String> = each.collect();
        format!(
            "bounds hold if every core does only what the description says: {}",
            each.join("; ")
        )
    }
}

/// How much longer a poll takes than a period of whole nanoseconds: one was cut off, and an interrupt comes with the first machine tick
/// after its count.
const CUT: Time = Time(2000);

/// The longest response of each task in nanoseconds, from its arrival, if it has one; `None` if the tasks cannot be judged.
pub type Responses<'a> = &'a dyn Fn(&TaskSystem) -> Option<Vec<Option<u64>>>;

/// Computes them from a description: they hold whatever other cores do, where guards and lengths allow that. [`crate::plan`] has the responses.
pub fn bounds(system: &OneShot, platform: &Platform, responses: Responses<'_>) -> Bounds {
    let none = vec![Rival::default(); system.tasks.channels.len()];
    let open = open(system, platform);
    let alone = with(system, platform, &none, responses);
    // No core is kept from anything, so computing routes would be pointless.
    if open.len() == system.domains("").len() {
        return Bounds {
            assumes: open,
            ..alone
        };
    }
    let (rivals, floods) = beside_rivals(system, platform, &alone);
    let mut assumes = open;
    assumes.extend(floods);
    let beside = with(system, platform, &rivals, responses);
    // Beside rivals, a writer may be so late that more of its jobs fall within one operation.
    let mesh = Mesh::new(platform);
    let channels = system.tasks.channels.iter().enumerate();
    let waiting = channels.filter(|(index, _)| rivals[*index].read > 0);
    let later = waiting.filter_map(|(index, channel)| {
        let why = flooded(system, &mesh, channel, &beside.ports[index])?;
        Some((system.programs[channel.from].domain.clone(), why))
    });
    assumes.extend(later);
    Bounds { assumes, ..beside }
}

/// Why rivals may keep an operation of a channel from its end, if the port's times contain their waits.
fn flooded(system: &OneShot, mesh: &Mesh<'_>, channel: &Channel, port: &Port) -> Option<String> {
    let tile = mesh.platform.tile(system.core(channel.to));
    let patience = tile.map_or(0, |tile| patience(&tile.pipeline));
    let (name, held) = (&channel.name, port.read_wait);
    if held > patience {
        return Some(format!(
            "floods of the mesh may keep the writer of {name} from giving its lock back for {held} cycles, and its reader asks for it for {patience}"
        ));
    }
    (port.write + port.write_wait > mesh.cycles(TICK))
        .then(|| format!("floods of the mesh may make a write of {name} longer than a tick"))
}

/// The cycles that rivals add to the operations of a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Rival {
    /// To a write.
    write: u64,
    /// To a read, which may wait for a write.
    read: u64,
    /// The amount by which the clocks of both ends may differ then, if they compare them.
    apart: Option<Time>,
}

/// The domain of tasks; `None`: the system's.
type Domain = Option<String>;

/// The domains that are open to other cores by right or for lack of a guard: at most one reason per domain.
fn open(system: &OneShot, platform: &Platform) -> Vec<(Domain, String)> {
    let mut all: Vec<(Domain, String)> = Vec::new();
    let mut put = |domain: &Domain, why: String| {
        if !all.iter().any(|(known, _)| known == domain) {
            all.push((domain.clone(), why));
        }
    };
    for (task, program) in system.programs.iter().enumerate() {
        let core = system.core(task);
        let tile = platform.tile(core);
        let memory = tile.and_then(|tile| tile.local_memory.as_ref());
        if memory.is_none_or(|memory| memory.guard == 0) {
            let why = format!("no guard keeps other cores from the memory of core {core}");
            put(&program.domain, why);
        }
    }
    let domain = |core: u16| {
        let task = system.on_core(core).into_iter().next();
        task.map(|task| &system.programs[task].domain)
    };
    if let Some(master) = system.master(platform) {
        for core in system.cores() {
            if let Some(own) = domain(core).filter(|own| Some(*own) != domain(master)) {
                put(
                    own,
                    format!("core {master} of another domain tells core {core} the time"),
                );
            }
        }
    }
    for channel in &system.tasks.channels {
        let [from, to] = [channel.from, channel.to].map(|task| &system.programs[task].domain);
        if from != to {
            let name = &channel.name;
            put(
                from,
                format!("the reader of {name} is of another domain, and may keep the port's lock"),
            );
            put(
                to,
                format!(
                    "the writer of {name} is of another domain: it may keep the port's lock, and write as often as it likes"
                ),
            );
        }
    }
    all
}

/// The rivals of a domain, and the errors of clocks beside them, or why they may keep a core from its time.
type Beside = (Rivals, Result<Errors, String>);

/// What rivals add to each channel: all cores outside its domain. Where nothing bounds that, the reason: those channels get nothing.
fn beside_rivals(
    system: &OneShot,
    platform: &Platform,
    alone: &Bounds,
) -> (Vec<Rival>, Vec<(Domain, String)>) {
    let mesh = Mesh::new(platform);
    let mut all = Load::default();
    for (channel, port) in alone.ports.iter().enumerate() {
        all.add(&locks::load(system, &mesh, (channel, port), &alone.turns));
    }
    let mut rivals: BTreeMap<&Domain, Beside> = BTreeMap::new();
    let (mut waits, mut floods) = (Vec::new(), Vec::new());
    for (index, channel) in system.tasks.channels.iter().enumerate() {
        let domain = &system.programs[channel.from].domain;
        let (rivals, errors) = rivals.entry(domain).or_insert_with(|| {
            let own: Vec<u16> = (0..system.programs.len())
                .filter(|&task| system.programs[task].domain == *domain)
                .map(|task| system.core(task))
                .collect();
            let tiles = platform.tiles.iter().map(|tile| tile.id);
            let others: Vec<u16> = tiles.filter(|tile| !own.contains(tile)).collect();
            let rivals = Rivals::new(&mesh, &others);
            // Only sections compare clocks and have a bound.
            let errors = match system
                .tasks
                .channels
                .iter()
                .any(|one| one.parallel.is_some())
            {
                true => beside(system, &mesh, (&rivals, &own), &all),
                false => Ok(Errors::default()),
            };
            (rivals, errors)
        });
        let (from, to) = (system.core(channel.from), system.core(channel.to));
        let port = &alone.ports[index];
        if port.hops == 0 {
            waits.push(Rival::default());
            continue;
        }
        if system.tasks.sharing(index).len() > 1 {
            let queue = &system.tasks.channels[system.tasks.port_of(index)].name;
            waits.push(Rival::default());
            floods.push((
                domain.clone(),
                format!("nothing bounds for how long floods of the mesh keep the writers of the queue {queue} from giving its lock back to each other"),
            ));
            continue;
        }
        let wait = rivals.waits(&mesh, (from, to), &all);
        let buffer = platform
            .tile(from)
            .map_or(1, |tile| tile.pipeline.store_buffer);
        let words = WORDS + channel.size.0;
        // State, address and positions; an attempt in progress when the lock is given back, and the one that takes it.
        let write = wait.write(QUESTIONS + 2, words, buffer.into());
        let longer = wait.held(words, buffer.into());
        // The reader waits for a write.
        let beside = Port {
            write_wait: port.write_wait + write,
            read_wait: port.read_wait + alone.turns[channel.from] * longer,
            ..*port
        };
        let name = &channel.name;
        let why = if channel.notify {
            Some(format!(
                "nothing bounds for how long floods of the mesh keep a ring of {name} on its way"
            ))
        } else if let (Some(_), Err(why)) = (channel.parallel, &*errors) {
            Some(format!(
                "{why}, and both ends of {name} compare their clocks"
            ))
        } else {
            flooded(system, &mesh, channel, &beside)
        };
        waits.push(match &why {
            Some(_) => Rival::default(),
            None => Rival {
                write,
                read: longer,
                apart: match (channel.parallel, &*errors) {
                    (Some(_), Ok(errors)) => Some(errors.apart(from, to)),
                    _ => None,
                },
            },
        });
        floods.extend(why.map(|why| (domain.clone(), why)));
    }
    (waits, floods)
}

/// With what rivals add. How often each task may disturb an operation follows from its response, and that from the waits.
fn with(
    system: &OneShot,
    platform: &Platform,
    rivals: &[Rival],
    responses: Responses<'_>,
) -> Bounds {
    let tasks = &system.tasks;
    let in_a_queue = |task: usize| {
        let mut channels = tasks.channels.iter().enumerate();
        channels.any(|(index, one)| {
            (one.from == task || one.to == task) && tasks.sharing(index).len() > 1
        })
    };
    let mesh = Mesh::new(platform);
    let lost = lost::lost(system, platform);
    // If it holds with these numbers, it holds: the first response that is longer than its bound would need more of them before it.
    let mut turns = vec![1; tasks.tasks.len()];
    loop {
        let (bounds, longest) = once(system, platform, (rivals, &lost), &turns);
        // On one core, no operation waits for another one.
        if bounds.unbounded.is_some() || bounds.ports.iter().all(|port| port.hops == 0) {
            return bounds;
        }
        let Some(responses) = responses(&bounds.tasks) else {
            // Whoever judges these tasks finds the same error.
            return bounds;
        };
        let before = turns.clone();
        for (index, task) in bounds.tasks.tasks.iter().enumerate() {
            let needed = match responses[index] {
                Some(response) => {
                    let length = mesh.time(longest[index]).nanoseconds();
                    let apart = (task.period.nanoseconds(), task.jitter.nanoseconds());
                    locks::turns(length, response, apart)
                }
                None if in_a_queue(index) && lost[index].is_none() => {
                    let why = format!(
                        "`{}` shares a queue of several writers, and its response has no bound: its core is overloaded",
                        task.name
                    );
                    let has_no_time = |task: usize| responses[task].is_none();
                    return bounds.without(why, has_no_time);
                }
                // It is overloaded, so its own promises fail; the others count as many of its jobs as of one that is late by a period.
                None => usual_turns(tasks, index),
            };
            turns[index] = turns[index].max(needed);
        }
        if turns == before {
            return bounds;
        }
    }
}

/// With this many jobs of each task whose operations may fall within one operation of another; and the longest operation of each task then, in cycles.
fn once(
    system: &OneShot,
    platform: &Platform,
    (rivals, lost): (&[Rival], &[Option<Unbounded>]),
    turns: &[u64],
) -> (Bounds, Vec<u64>) {
    let mesh = Mesh::new(platform);
    let tasks = &system.tasks;
    let of_task = |task: usize| Interrupts::of(system, platform, system.core(task));
    let per_task: Vec<Interrupts> = (0..tasks.tasks.len()).map(of_task).collect();
    let interrupt = |task: usize| per_task[task].operation();
    let mut ports = alone(system, &mesh);
    let looks = mesh.looks(system);
    let tick = mesh.cycles(TICK).max(1);
    let drift = |task: usize| Drift::of(platform, system.core(task));
    let ticks = (0..tasks.tasks.len()).map(|task| drift(task).shorten(tick, 1));
    let waits = Ports {
        mesh: &mesh,
        system,
        ports: &ports,
        turns,
        looks: &looks,
        tick: ticks.min().unwrap_or(tick),
        is_aligned: system.master(platform).is_none(),
        lost,
    };
    let mut waits = waits.waits();
    // Both ends of a channel are on such cores, or none.
    for (channel, fails) in tasks.channels.iter().zip(&mut waits.fails) {
        if let Some(why) = &lost[channel.from] {
            *fails = Some(why.why().to_owned());
        }
    }
    let mut arrivals = vec![0; ports.len()];
    for (index, channel) in tasks.channels.iter().enumerate() {
        let port = &mut ports[index];
        if channel.notify {
            // The ring may be in transit when the writer's job ends.
            let network = waits.network[index] + mesh.round(port.hops);
            arrivals[index] = network + MASKED + interrupt(channel.to);
        }
        port.write_wait = waits.write[index];
        port.read_wait = waits.read[index];
        if port.hops > 0 {
            port.write_wait += rivals[index].write;
            port.read_wait += turns[channel.from] * rivals[index].read;
        }
    }
    let longest = longest(system, &mesh, &ports);
    let mut inflated = tasks.clone();
    // The kernel releases each job a period after the previous one, unless a message does.
    inflated.periodic = true;
    for (index, task) in inflated.tasks.iter_mut().enumerate() {
        // Whole nanoseconds, as the tests count them.
        task.period.0 = drift(index).shorten(task.period.0, 1000);
        task.wait.0 = drift(index).shorten(task.wait.0, 1000);
    }
    let errors = Errors::of(system, platform);
    for ((channel, arrival), rival) in inflated.channels.iter_mut().zip(arrivals).zip(rivals) {
        channel.transfer = mesh.time(arrival);
        if drift(channel.to) != Drift::default() {
            channel.transfer.0 += CUT.0;
        }
        let apart = errors.apart(system.core(channel.from), system.core(channel.to));
        let apart = rival.apart.unwrap_or(apart).0;
        let reader = &mut inflated.tasks[channel.to];
        if channel.notify {
            channel.transfer.0 += 2 * apart;
            // A tick of a slow clock takes longer.
            let tick = drift(channel.to).shorten(TICK.0, 1);
            reader.jitter = Time(tick.max(TICK.0).next_multiple_of(1000));
        }
        if channel.parallel.is_some() {
            channel.transfer.0 += apart;
            // Otherwise an item of the next section may come before this one is read, and nothing that is shorter than the period bounds it. A job that has
            // not begun has its wait before it until its period is over, and one that waits has its item within the wait.
            if apart > reader.wait.0 || apart + reader.wait.0 > reader.period.0 {
                channel.transfer.0 += reader.period.0;
            }
        }
    }
    for (channel, fails) in inflated.channels.iter_mut().zip(&waits.fails) {
        if let Some(why) = fails {
            channel.transfer = UNBOUNDED;
            let of_writer = lost[channel.from].clone();
            channel.unbounded = of_writer.or_else(|| Some(Unbounded::Unknown(why.clone())));
        }
    }
    let periods: Vec<Time> = inflated.tasks.iter().map(|task| task.period).collect();
    let mut jobs = Vec::new();
    for (index, task) in inflated.tasks.iter_mut().enumerate() {
        // Whatever its helpers do, a job gives up on what has not arrived after its wait.
        let cut = if drift(index) == Drift::default() || task.wait == Time(0) {
            0
        } else {
            1000
        };
        let wait = mesh.cycles(Time(task.wait.0 + cut));
        let cost = mesh.cycles(task.cost.unwrap_or(Time(0))) + wait;
        let outputs = system.outputs(index).into_iter();
        let writes_wait: u64 = outputs.map(|channel| ports[channel].write_wait).sum();
        let reads = system.inputs(index).into_iter();
        let reads_wait: u64 = reads.map(|channel| ports[channel].read_wait).sum();
        let wait_of_ports = writes_wait + reads_wait;
        let visits = |channel: usize| {
            let period = mesh.cycles(periods[tasks.channels[channel].from]);
            let times = (cost + wait_of_ports) / period.max(1) + writes(tasks, channel, turns);
            times * waits.requests[channel] * mesh.access
        };
        let core = system.core(index);
        let arrive = (0..ports.len())
            .filter(|&one| ports[one].hops > 0 && system.core(tasks.channels[one].to) == core);
        // The host looks at a core at most once in each of its own ticks.
        let looks = ((cost + wait_of_ports) / tick + 1) * looks.requests * mesh.access;
        let job = cost + wait_of_ports + arrive.map(visits).sum::<u64>() + looks;
        let inside = per_task[index].job(job, drift(index).shorten(tick, 1));
        // The kernel's watch leaves handlers out.
        jobs.push(inside.whole - inside.handlers);
        let whole = inside.whole.saturating_add(interrupt(index) + SWITCH);
        match &lost[index] {
            Some(why) => task.lose(why.clone()),
            None => task.cost = Some(mesh.time(whole)),
        }
    }
    let unbounded = waits.unbounded;
    let bounds = Bounds {
        tasks: inflated,
        ports,
        jobs,
        assumes: Vec::new(),
        unbounded: None,
        fails: waits.fails,
        lost: lost.to_vec(),
        turns: turns.to_vec(),
    };
    let bounds = match unbounded {
        Some(why) => bounds.without(why, |_| false),
        None => bounds,
    };
    (bounds, longest)
}

/// The operations of all channels without waits: how long a lock may be held alone.
fn alone(system: &OneShot, mesh: &Mesh<'_>) -> Vec<Port> {
    let tasks = &system.tasks;
    let mut ports: Vec<Port> = Vec::new();
    for (index, channel) in tasks.channels.iter().enumerate() {
        let hops = mesh.hops(system.core(channel.from), system.core(channel.to));
        // The lock, the positions of a queue, and the acknowledgement of what was written.
        let (questions, positions) = match channel.kind {
            ChannelKind::Sampling => (2, 0),
            ChannelKind::Queue => (3, POSITIONS),
        };
        let alone = OPERATION + positions + COPY * moves(system, index);
        // What was written must have arrived before the doorbell rings.
        let (questions, ringing) = match channel.notify {
            true => (questions + 1, RINGS_OTHERS),
            false => (questions, 0),
        };
        let answers = if hops == 0 {
            0
        } else {
            let stores = WORDS + moves(system, index);
            let from = system.core(channel.from);
            questions * mesh.round(hops) + mesh.stalls(from, hops, stores, COPY)
        };
        ports.push(Port {
            hops,
            write: alone + answers + ringing,
            read: alone,
            ..Port::default()
        });
    }
    ports
}

/// Stores that move an item: an unaligned item is stored byte by byte, an item of a parallel section word by word.
pub(crate) fn moves(system: &OneShot, channel: usize) -> u64 {
    let bytes = system.bytes(channel);
    match system.tasks.channels[channel].parallel {
        Some(_) => bytes.div_ceil(WORD),
        None => bytes,
    }
}

/// Writes of a channel that fall within one operation of another: one more if the writer's releases may be closer than its period, and as many as fit (`turns`, for
/// each task) if it may be later than that.
pub(crate) fn writes(tasks: &TaskSystem, channel: usize, turns: &[u64]) -> u64 {
    let from = tasks.channels[channel].from;
    usual_turns(tasks, from).max(turns[from])
}

/// How often the reader of a channel may read while its writer asks for the port's lock once. A reader that this port's item releases finds none there after its read, until the
/// writer has written.
pub(crate) fn reads(channel: &Channel, turns: &[u64]) -> u64 {
    match channel.notify && channel.kind == ChannelKind::Sampling {
        true => 1,
        false => turns[channel.to],
    }
}

/// How many jobs of a task fall within one operation at most, unless its responses say that there are more.
fn usual_turns(tasks: &TaskSystem, task: usize) -> u64 {
    WRITES + u64::from(tasks.told_by(task).is_some())
}

impl Mesh<'_> {
    /// The load of a channel's writes on others that perform one operation meanwhile, with this many questions of a write that found the lock taken.
    pub(crate) fn load_asking(
        &self,
        system: &OneShot,
        index: usize,
        port: &Port,
        asked: u64,
        turns: &[u64],
    ) -> Load {
        let mut load = Load::default();
        if port.hops == 0 {
            return load;
        }
        let writes = writes(&system.tasks, index, turns);
        let channel = &system.tasks.channels[index];
        let (from, to) = (system.core(channel.from), system.core(channel.to));
        let questions = writes * (QUESTIONS + 1 + asked + 1);
        let stores = writes * (WORDS + moves(system, index) + u64::from(channel.notify));
        let interval = u64::from(self.platform.network.read_interval.unwrap_or(0));
        let question = interval.max(self.packet(8));
        let mut put = |plane: u8, way: Vec<(u32, u32)>, work: u64| {
            for (begin, end) in way {
                *load.links.entry((plane, begin, end)).or_default() += work;
            }
        };
        put(0, self.way(from, to), questions * question);
        put(1, self.way(from, to), stores * self.packet(8));
        put(1, self.way(to, from), questions * self.packet(8));
        put(2, self.way(to, from), stores * self.packet(0));
        load.requests = questions + stores;
        load.memories.insert(to, load.requests);
        load
    }

    /// The load of a host core's looks on others that perform one operation meanwhile: it looks at one core in each of its ticks, so at
    /// most at two of them, whichever they are.
    fn looks(&self, system: &OneShot) -> Load {
        let mut load = Load::default();
        let Some(host) = system.host else {
            return load;
        };
        let questions = LOOKS * LOOK;
        let interval = u64::from(self.platform.network.read_interval.unwrap_or(0));
        let question = interval.max(self.packet(8));
        for core in system.cores() {
            let there = self
                .way(host, core)
                .into_iter()
                .map(|way| (0, way, question));
            let back = self.way(core, host).into_iter();
            for (plane, (begin, end), work) in there.chain(back.map(|way| (1, way, self.packet(8))))
            {
                load.links.insert((plane, begin, end), questions * work);
            }
            load.memories.insert(core, questions);
        }
        load.requests = questions;
        load
    }

    /// Cycles of a core for which an operation of a channel waits for the packets of all others. Writes of one core follow each other: each
    /// has all its answers before the next one begins, except for the last stores, which precede those of the next one.
    pub(crate) fn wait(&self, all: &Load, own_core: &Load, own: &Load) -> u64 {
        let behind = BEHIND * self.packet(8);
        let links = own.links.keys();
        let links = links
            .map(|link| all.links[link] - own_core.links[link] + behind)
            .sum::<u64>();
        let memories = own.memories.keys();
        let memories = memories.map(|tile| all.memories[tile] - own_core.memories[tile] + BEHIND);
        let accesses = memories.sum::<u64>() + own.requests;
        self.core_cycles(links) + accesses * self.access
    }
}

#[cfg(test)]
mod tests;
