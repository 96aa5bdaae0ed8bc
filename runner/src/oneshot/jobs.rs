//! What the kernels of a described system reported by markers: jobs, operations on ports, flows.
//!
//! Why it exists: results and promises read the same events. What it deliberately does not know: bounds.

use super::clocks::Clocks;
use super::handled::Handled;
use super::layout;
use crate::measure::{MarkerEvent, pair};
use bulkhead_abi::marker::MarkerKind;
use bulkhead_abi::one_shot::marker;
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::tasks::ChannelKind;
use bulkhead_report::result::Sample;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The jobs of a task.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    /// Machine ticks from the tick at which a job was released, or from the message or event that released it, to its end. The first job has no
    /// release: it begins with its core. If its own previous job made a job ready, because its tick had passed or what it waits for had happened, its
    /// release is a period after the previous release, if that is earlier. No marker tells when something happened for which nobody waited yet. If it
    /// happened after that moment, the response is counted longer than it was, but never shorter.
    pub responses: Vec<u64>,
    /// The fewest machine ticks between two releases that are closer than the described period, if there are any. The kernel itself keeps
    /// the distance between jobs that messages release.
    pub hasty: Option<u64>,
    /// When the last job began that has not ended, and when the one was released that has not begun.
    pub open: Option<u64>,
    /// When the job began that had not ended at the end of the run.
    pub running: Option<u64>,
    /// Jobs in which the task stopped: they never end.
    pub cut_off: u64,
    /// Jobs that exceeded their budget.
    pub overruns: u64,
    /// Jobs that have ended.
    pub ended: u64,
    /// Periods between two releases in which no job was released, although time alone releases the task.
    pub skipped: u64,
    /// From when on further jobs are due, a period apart: the last release; or, without one, the end of the first job, or the beginning of the core's jobs if it
    /// has none. Nothing if no number of jobs is due: messages or events release the task, or it has ended for good.
    pub since: Option<u64>,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    /// For each task.
    pub jobs: Vec<Jobs>,
    /// For each channel: how long each write took.
    pub writes: Vec<Vec<u64>>,
    /// For each channel: how long each read of something new took.
    pub reads: Vec<Vec<u64>>,
    /// For each channel with notification: from the release of the job that wrote a message to the end of the job that read it.
    pub notices: Vec<Vec<u64>>,
    /// For each channel of a parallel section: from the release of the job that wrote an item until it had arrived.
    pub handed: Vec<Vec<u64>>,
    /// For each channel of a parallel section: how many jobs gave up waiting for it.
    pub vain: Vec<u64>,
    /// For each channel: the items of a queue.
    pub queues: Vec<Queue>,
    /// For each channel: the maximum number of writes by one job, and of reads by one job.
    pub in_a_job: Vec<[u64; 2]>,
    /// For each core: the ticks at which it called handlers of timing events.
    pub handled: BTreeMap<u16, Vec<Handled>>,
    /// For each flow: its markers.
    begins: Vec<Vec<MarkerEvent>>,
    ends: Vec<Vec<MarkerEvent>>,
    /// For each task: begins and ends of its spans.
    spans: Vec<[Vec<MarkerEvent>; 2]>,
}

/// Items of a queue: from the moment at which a task begins to put one until one is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Queue {
    waiting: u64,
    /// Maximum at a time, of all writers, including those that find no place. 0 for a channel that joins another one's queue.
    pub most: u64,
    /// Items of this channel's writer that found no place.
    pub lost: u64,
}

/// The channels by the names that markers give their ports.
struct Ports {
    by_name: BTreeMap<u64, usize>,
    /// For each channel with a port: the channels that write into it, each with the core and the task that write.
    writers: BTreeMap<usize, Vec<(usize, u16, usize)>>,
}

impl Ports {
    fn of(system: &System, one_shot: &OneShot) -> Self {
        let tasks = &one_shot.tasks;
        let (mut by_name, mut writers) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for (index, channel) in tasks.channels.iter().enumerate() {
            let port = tasks.port_of(index);
            let writer = (index, one_shot.core(channel.from), channel.from);
            writers.entry(port).or_default().push(writer);
            if port == index {
                by_name.insert(layout::marked(system, one_shot, index), index);
            }
        }
        Self { by_name, writers }
    }

    /// The channel of which a marker tells. Any core may mark anything, so markers count only for those ends of channels that are on their core. If several tasks
    /// of the core write into a queue, it is the running one.
    fn channel(
        &self,
        one_shot: &OneShot,
        event: &MarkerEvent,
        running: Option<(usize, Option<u64>)>,
    ) -> Option<usize> {
        let port = *self.by_name.get(&event.value)?;
        let is_writer = matches!(event.kind, marker::PUT | marker::PUT_DONE | marker::FULL);
        if !is_writer {
            let reader = one_shot.tasks.channels[port].to;
            return Some(port).filter(|_| one_shot.core(reader) == event.tile);
        }
        let writers = self.writers.get(&port)?.iter();
        let here: Vec<_> = writers.filter(|one| one.1 == event.tile).collect();
        let writer = match here[..] {
            [only] => Some(only),
            _ => here
                .into_iter()
                .find(|one| Some(one.2) == running.map(|one| one.0)),
        };
        writer.map(|one| one.0)
    }
}

/// What is in progress on a core.
#[derive(Default)]
struct Core {
    tasks: Vec<usize>,
    released: BTreeMap<usize, u64>,
    /// The tick whose handlers run, and since when.
    handling: Option<(u64, u64)>,
    /// The task whose job runs, and when it was released.
    running: Option<(usize, Option<u64>)>,
    /// When the last job of each task was released.
    last: BTreeMap<usize, u64>,
    /// When the last job began, and when the first one did.
    begun: u64,
    first: Option<u64>,
    /// Tasks that events release, or that ended for good: no number of their jobs is due.
    free: BTreeSet<usize>,
    /// When the first job of each task ended.
    ended: BTreeMap<usize, u64>,
    operation: Option<u64>,
    /// What the running job has read: the channel, and when the job that wrote it was released.
    read: Vec<(usize, u64)>,
    /// How often the running job has begun to write or read each channel.
    accesses: BTreeMap<usize, u64>,
}

/// Messages in transit in a channel: when the job that wrote each was released.
#[derive(Clone, Debug, Default)]
struct Sent(VecDeque<Option<u64>>);

/// Reads the markers of a run that ended at this moment. `tick`: machine ticks per tick of the kernel.
pub fn read(
    system: &System,
    one_shot: &OneShot,
    markers: &[MarkerEvent],
    tick: u64,
    end: u64,
) -> Seen {
    let tasks = &one_shot.tasks;
    let mut seen = Seen {
        jobs: vec![Jobs::default(); tasks.tasks.len()],
        writes: vec![Vec::new(); tasks.channels.len()],
        reads: vec![Vec::new(); tasks.channels.len()],
        notices: vec![Vec::new(); tasks.channels.len()],
        handed: vec![Vec::new(); tasks.channels.len()],
        vain: vec![0; tasks.channels.len()],
        queues: vec![Queue::default(); tasks.channels.len()],
        in_a_job: vec![[0; 2]; tasks.channels.len()],
        handled: BTreeMap::new(),
        begins: vec![Vec::new(); tasks.flows.len()],
        ends: vec![Vec::new(); tasks.flows.len()],
        spans: vec![<[Vec<MarkerEvent>; 2]>::default(); tasks.tasks.len()],
    };
    let ports = Ports::of(system, one_shot);
    let mut sent = vec![Sent::default(); tasks.channels.len()];
    let periods: Vec<u64> = (0..tasks.tasks.len())
        .map(|task| period(system, one_shot, task, tick))
        .collect();
    let clocks = Clocks::read(system, one_shot, markers);
    let mut cores: BTreeMap<u16, Core> = BTreeMap::new();
    for event in markers {
        let core = cores.entry(event.tile).or_insert_with(|| Core {
            tasks: one_shot.on_core(event.tile),
            ..Core::default()
        });
        let task = |number: u64| core.tasks.get(usize::try_from(number).ok()?).copied();
        let channel = ports.channel(one_shot, event, core.running);
        match event.kind {
            marker::RELEASE | marker::EVENT => {
                let released: Vec<usize> = (0..64)
                    .filter(|number| (event.value >> number) & 1 == 1)
                    .filter_map(task)
                    .collect();
                // Where cores have clocks of their own, so are their ticks.
                let own = clocks
                    .as_ref()
                    .and_then(|all| all.tick(event.tile, event.at));
                let at_tick = own.unwrap_or(event.at - event.at % tick.max(1));
                for task in released {
                    // A task for which an event is kept does not wait: its own job makes it ready.
                    let runs = core.running.is_some_and(|(running, _)| running == task);
                    let is_event = event.kind == marker::EVENT && !runs;
                    if event.kind == marker::EVENT {
                        core.free.insert(task);
                    }
                    let due = core.due(task, &periods).map(|due| match &clocks {
                        // The nearest tick of the core itself.
                        Some(all) => all.tick(event.tile, due + tick / 2).unwrap_or(due),
                        None => due,
                    });
                    let begin = due.map_or(at_tick, |due| due.min(at_tick));
                    if tasks.told_by(task).is_none() {
                        let hasty = &mut seen.jobs[task].hasty;
                        let last = core.last.insert(task, begin);
                        let distance = last.map(|last| begin.saturating_sub(last));
                        // If clocks differ, a tick may begin one machine tick early.
                        let closer = distance.filter(|one| one + tick / 2 < periods[task]);
                        *hasty = closer.into_iter().chain(*hasty).min();
                        // To the nearest period, because clocks differ.
                        let period = periods[task].max(1);
                        let apart = distance.map_or(0, |one| (one + period / 2) / period);
                        seen.jobs[task].skipped += apart.saturating_sub(1);
                    }
                    // Distances are those of ticks; a response is to the event itself.
                    let begin = if is_event { event.at } else { begin };
                    core.released.insert(task, begin);
                }
            }
            marker::TOLD => {
                if let Some(task) = task(event.value) {
                    core.released.insert(task, event.at);
                }
            }
            marker::BEGIN => {
                let begun = task(event.value);
                core.running = begun.map(|task| (task, core.released.remove(&task)));
                core.begun = event.at;
                core.handling = None;
                core.first.get_or_insert(event.at);
                core.operation = None;
                core.read.clear();
                core.accesses.clear();
            }
            marker::END => {
                for (channel, released) in core.read.drain(..) {
                    seen.notices[channel].push(event.at - released);
                }
                if let Some((task, released)) = core.running.take() {
                    seen.jobs[task].ended += 1;
                    core.ended.entry(task).or_insert(event.at);
                    let response = released.map(|released| event.at - released);
                    seen.jobs[task].responses.extend(response);
                }
            }
            marker::STOPPED => {
                // A handler that stops the core is told as that.
                core.handling = None;
                let stopped = task(event.value);
                if let Some((task, _)) = core.running.take_if(|(task, _)| stopped == Some(*task)) {
                    seen.jobs[task].cut_off += 1;
                }
            }
            marker::HANDLES => core.handling = Some((event.value, event.at)),
            marker::HANDLED => {
                if let Some((tick, begin)) = core.handling.take() {
                    let all = seen.handled.entry(event.tile).or_default();
                    let end = event.at;
                    all.push(Handled { tick, begin, end });
                }
            }
            marker::RETIRED => {
                core.free.extend(core.running.map(|(task, _)| task));
            }
            marker::OVERRUN => {
                if let Some(task) = task(event.value & 0xFF) {
                    seen.jobs[task].overruns += 1;
                }
            }
            marker::PUT | marker::TAKE => {
                core.operation = Some(event.at);
                if let Some(channel) = channel {
                    let count = core.accesses.entry(channel).or_default();
                    *count += 1;
                    let is_read = event.kind == marker::TAKE;
                    // A slice or result may turn out to be old, in which case it is dropped.
                    let counts = !is_read || tasks.channels[channel].parallel.is_none();
                    let most = &mut seen.in_a_job[channel][usize::from(is_read)];
                    *most = (*most).max(if counts { *count } else { 0 });
                }
                if let Some(channel) = channel.filter(|_| event.kind == marker::PUT) {
                    seen.queues[tasks.port_of(channel)].put();
                    let released = core.running.and_then(|(_, released)| released);
                    if tasks.channels[channel].notify {
                        sent[channel].put(tasks.channels[channel].kind, released);
                    }
                }
            }
            // It took part of the wait, and no more.
            marker::DROPPED => {
                core.operation = None;
                if let Some(channel) = channel {
                    let count = core.accesses.entry(channel).or_default();
                    *count = count.saturating_sub(1);
                }
            }
            marker::VAIN => {
                if let Some(channel) = channel {
                    seen.vain[channel] += 1;
                }
            }
            marker::FULL => {
                if let Some(channel) = channel {
                    // It is the writer's loss; the item waits in the queue no more.
                    seen.queues[tasks.port_of(channel)].take();
                    seen.queues[channel].lost += 1;
                    sent[channel].0.pop_back();
                }
            }
            marker::PUT_DONE | marker::TAKEN => {
                let lists = match event.kind {
                    marker::TAKEN => &mut seen.reads,
                    _ => &mut seen.writes,
                };
                if let (Some(begin), Some(channel)) = (core.operation.take(), channel) {
                    lists[channel].push(event.at - begin);
                    if event.kind == marker::PUT_DONE && tasks.channels[channel].parallel.is_some()
                    {
                        let released = core.running.and_then(|(_, released)| released);
                        seen.handed[channel].extend(released.map(|at| event.at - at));
                    }
                    if event.kind == marker::TAKEN {
                        let count = core.accesses.get(&channel).copied().unwrap_or(0);
                        let most = &mut seen.in_a_job[channel][1];
                        *most = (*most).max(count);
                        seen.queues[channel].take();
                        let released = sent[channel].0.pop_front().flatten();
                        let notified = tasks.channels[channel].notify;
                        let read = released.filter(|_| notified);
                        core.read.extend(read.map(|released| (channel, released)));
                    }
                }
            }
            kind => {
                // A job is not preempted, so everything marked while it runs belongs to it, except for what handlers mark.
                let task = core.running.filter(|_| core.handling.is_none());
                let Some((task, _)) = task else {
                    continue;
                };
                if kind == MarkerKind::SpanBegin as u16 {
                    seen.spans[task][0].push(*event);
                } else if kind == MarkerKind::SpanEnd as u16 {
                    seen.spans[task][1].push(*event);
                }
                for (index, flow) in tasks.flows.iter().enumerate() {
                    if kind == MarkerKind::FlowBegin as u16 && flow.from == task {
                        seen.begins[index].push(*event);
                    } else if kind == MarkerKind::FlowEnd as u16 && flow.to == task {
                        seen.ends[index].push(*event);
                    }
                }
            }
        }
    }
    for (task, jobs) in seen.jobs.iter_mut().enumerate() {
        let core = cores.get(&one_shot.core(task));
        let is_free = core.is_some_and(|core| core.free.contains(&task));
        if is_free || tasks.told_by(task).is_some() || one_shot.programs[task].is_sporadic {
            jobs.skipped = 0;
            continue;
        }
        let since = core.and_then(|core| {
            let last = core.last.get(&task).or(core.ended.get(&task));
            last.copied().or(core.first)
        });
        jobs.since = Some(since.unwrap_or(0));
    }
    for (number, core) in cores {
        if let Some((tick, begin)) = core.handling {
            let all = seen.handled.entry(number).or_default();
            all.push(Handled { tick, begin, end });
        }
        if let Some((task, _)) = core.running {
            seen.jobs[task].running = Some(core.begun);
        }
        let running = core.running.and_then(|(task, at)| Some((task, at?)));
        for (task, at) in core.released.into_iter().chain(running) {
            let open = &mut seen.jobs[task].open;
            *open = Some(open.map_or(at, |other| at.min(other)));
        }
    }
    seen
}

/// Machine ticks of a task's period, by the timer of its core.
pub fn period(system: &System, one_shot: &OneShot, task: usize, tick: u64) -> u64 {
    const MILLION: u128 = 1_000_000;
    let tile = system.platform.tile(one_shot.core(task));
    let drift = i128::from(tile.map_or(0, |tile| tile.clock_drift));
    let ticks = u128::from(one_shot.tasks.tasks[task].period.0 / TICK.0) * u128::from(tick);
    let period = MILLION
        .checked_add_signed(drift)
        .and_then(|speed| (ticks * MILLION).checked_div(speed));
    let period = period.and_then(|ticks| u64::try_from(ticks).ok());
    // The model refuses both.
    period.expect("a timer that runs, and a period that a core's table can hold")
}

impl Core {
    /// When a task whose own job makes it ready is due. Only the end of a job does that, so the tick for which it asked has passed.
    fn due(&self, task: usize, periods: &[u64]) -> Option<u64> {
        let (_, released) = self.running.filter(|(running, _)| *running == task)?;
        released?.checked_add(periods[task])
    }
}

impl Sent {
    fn put(&mut self, kind: ChannelKind, released: Option<u64>) {
        if kind == ChannelKind::Sampling {
            self.0.clear();
        }
        self.0.push_back(released);
    }
}

impl Queue {
    fn put(&mut self) {
        self.waiting += 1;
        self.most = self.most.max(self.waiting);
    }

    /// An item was taken, or found no place.
    fn take(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }
}

impl Seen {
    /// The spans of a task.
    pub fn spans(&self, task: usize, end: u64) -> Vec<Sample> {
        let [begins, ends] = &self.spans[task];
        pair(begins.iter().copied(), ends.iter().copied(), end).samples
    }

    /// The samples of a flow. What began before `settled` must have ended.
    pub fn flow(&self, flow: usize, settled: u64) -> crate::measure::Pairs {
        let begins = self.begins[flow].iter().copied();
        pair(begins, self.ends[flow].iter().copied(), settled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::load_system_text;

    /// Machine ticks in a tick of the kernel.
    const TICKS: u64 = 1000;

    /// The jobs of the only task of core 0, with this period; each event is a moment, a kind and a value.
    fn jobs(platform: &str, period: &str, events: &[(u64, u16, u64)]) -> Jobs {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="{platform}">
            <task name="a" program="p::A" core="0" priority="1" period="{period}" cost="1us"/></system>"#
        );
        let system = load_system_text("s", &text, &Default::default()).expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let events = events.iter().map(|&(at, kind, value)| MarkerEvent {
            at,
            tile: 0,
            activity: 0,
            kind,
            value,
            pc: 0,
        });
        let events: Vec<MarkerEvent> = events.collect();
        read(&system, one_shot, &events, TICKS, 0).jobs.remove(0)
    }

    /// Two tasks on two cores; one forges the markers of the other one's core.
    #[test]
    fn a_core_says_nothing_of_channels_that_end_elsewhere() {
        let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="a" program="p::A" core="0" priority="1" period="1ms" cost="1us"/>
            <task name="b" program="p::A" core="1" priority="1" period="1ms" cost="1us"/>
            <task name="forger" program="p::A" core="2" priority="1" period="1ms" cost="1us"/>
            <channel name="c" from="a" to="b" size="8B" kind="queue" slots="2"/></system>"#;
        let system = load_system_text("s", text, &Default::default()).expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let port = layout::marked(&system, one_shot, 0);
        let seen = |tile: u16, kinds: &[u16]| {
            let begin = [(marker::BEGIN, 0)].into_iter();
            let all = begin.chain(kinds.iter().map(|kind| (*kind, port)));
            let all = all.enumerate().map(|(at, (kind, value))| MarkerEvent {
                at: at as u64,
                tile,
                activity: 0,
                kind,
                value,
                pc: 0,
            });
            read(&system, one_shot, &all.collect::<Vec<_>>(), TICKS, 0)
        };
        let writes = [
            marker::PUT,
            marker::PUT_DONE,
            marker::PUT,
            marker::FULL,
            marker::PUT_DONE,
        ];
        let of = |seen: &Seen| {
            let (queue, writes, reads) = (seen.queues[0], &seen.writes[0], &seen.reads[0]);
            (
                queue.most,
                queue.lost,
                writes.len(),
                reads.len(),
                seen.in_a_job[0],
            )
        };
        assert_eq!(of(&seen(0, &writes)), (2, 1, 2, 0, [2, 0]));
        let reads = [marker::TAKE, marker::TAKEN, marker::VAIN];
        assert_eq!(of(&seen(1, &reads)), (0, 0, 0, 1, [0, 1]));
        for forger in [1, 2] {
            assert_eq!(of(&seen(forger, &writes)), (0, 0, 0, 0, [0, 0]));
        }
        for forger in [0, 2] {
            let seen = seen(forger, &reads);
            assert_eq!((of(&seen), seen.vain[0]), ((0, 0, 0, 0, [0, 0]), 0));
        }
    }

    /// Two tasks of one core and one of another write into a queue; a fourth one, beside the reader, has no right to.
    #[test]
    fn each_writer_of_a_queue_is_told_apart() {
        let text = r#"<system name="s" paradigm="one-shot" platform="epiphany3">
            <task name="a" program="p::A" core="0" priority="1" period="9ms" cost="1us"/>
            <task name="b" program="p::A" core="0" priority="2" period="9ms" cost="1us"/>
            <task name="c" program="p::A" core="1" priority="1" period="9ms" cost="1us"/>
            <task name="reader" program="p::A" core="2" priority="1" period="3ms" cost="1us"/>
            <channel name="first" from="a" to="reader" joins="queue"/>
            <channel name="queue" from="b" to="reader" size="8B" kind="queue" slots="2"/>
            <channel name="last" from="c" to="reader" joins="queue"/></system>"#;
        let system = load_system_text("s", text, &Default::default()).expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let port = u64::from(layout::number(&system, 2)) | ((one_shot.port(1) as u64) << 16);
        assert_eq!([0, 1, 2].map(|one| one_shot.port(one)), [0; 3]);
        assert_eq!(one_shot.inputs(3), [1]);
        // Core 0 has b's job at first, then a's; core 1 finds no place.
        let events = [
            (0, marker::BEGIN, 1),
            (0, marker::PUT, port),
            (1, marker::BEGIN, 0),
            (1, marker::PUT, port),
            (0, marker::PUT_DONE, port),
            (0, marker::END, 0),
            (0, marker::BEGIN, 0),
            (0, marker::PUT, port),
            (1, marker::FULL, port),
            (1, marker::PUT_DONE, port),
            (0, marker::PUT_DONE, port),
            // Forged: this core only reads.
            (2, marker::BEGIN, 0),
            (2, marker::PUT, port),
            (2, marker::PUT_DONE, port),
            (2, marker::TAKE, port),
            (2, marker::TAKEN, port),
        ];
        let events = events.into_iter().enumerate();
        let events = events.map(|(at, (tile, kind, value))| MarkerEvent {
            at: 10 * at as u64,
            tile,
            activity: 0,
            kind,
            value,
            pc: 0,
        });
        let seen = read(&system, one_shot, &events.collect::<Vec<_>>(), TICKS, 0);
        assert_eq!(seen.writes, [vec![30], vec![30], vec![60]]);
        assert_eq!(seen.reads, [vec![], vec![10], vec![]]);
        let queues: Vec<_> = seen.queues.iter().map(|one| (one.most, one.lost)).collect();
        assert_eq!(queues, [(0, 0), (3, 0), (0, 1)]);
        assert_eq!(seen.in_a_job, [[1, 0], [1, 1], [1, 0]]);
    }

    /// A job from `begin` to `end`; a little before its end it asks for a tick that has passed.
    fn late(begin: u64, end: u64) -> [(u64, u16, u64); 3] {
        [
            (begin, marker::BEGIN, 0),
            (end - 1, marker::RELEASE, 1),
            (end, marker::END, 0),
        ]
    }

    /// By hand: something else keeps the core until 6.5 ms. The jobs of 1, 2 and 3 ms end at once then, and each counts from its own release.
    #[test]
    fn a_job_that_is_due_before_its_predecessor_ends_counts_from_then() {
        let mut events = vec![
            (10, marker::BEGIN, 0),
            (20, marker::END, 0),
            (1001, marker::RELEASE, 1),
        ];
        events.extend([late(6500, 6510), late(6520, 6530), late(6540, 6550)].concat());
        let jobs = jobs("epiphany3", "1ms", &events);
        assert_eq!(jobs.responses, [5510, 4530, 3550]);
        assert_eq!((jobs.open, jobs.hasty), (Some(4000), None));
    }

    /// By hand. An event releases a waiting task, and its response begins there, after a job longer than the period, too. A kept event makes the task ready
    /// at the end of its own job: nobody knows when it came, so the response begins a period after the last release.
    #[test]
    fn a_response_to_an_event_begins_with_the_event() {
        let long = [
            (1001, marker::RELEASE, 1),
            (1010, marker::BEGIN, 0),
            (4700, marker::END, 0),
        ];
        let job = [(6510, marker::BEGIN, 0), (6530, marker::END, 0)];
        let waiting = [&long[..], &[(6500, marker::EVENT, 1)], &job].concat();
        let kept = [&long[..2], &[(4690, marker::EVENT, 1)], &long[2..], &job].concat();
        let responses = |events: &[_]| jobs("epiphany3", "1ms", events).responses;
        assert_eq!(responses(&waiting), [3700, 30]);
        assert_eq!(responses(&kept), [3700, 4530]);
        // Distances are those of ticks: the event came in tick 6.
        let second = |at: u64| {
            let next = [(at, marker::EVENT, 1), (at + 10, marker::BEGIN, 0)];
            let events = [&waiting[..], &next].concat();
            jobs("epiphany3", "1ms", &events).hasty
        };
        assert_eq!([second(6990), second(7010)], [Some(0), None]);
    }

    /// By hand: releases at 1, 2 and 5 ms; then nothing.
    #[test]
    fn periods_without_a_release_are_counted_if_time_releases_the_task() {
        let job = |at, kind| {
            [
                (at, kind, 1),
                (at + 10, marker::BEGIN, 0),
                (at + 30, marker::END, 0),
            ]
        };
        let first = [(10, marker::BEGIN, 0), (700, marker::END, 0)];
        let of = |events: &[(u64, u16, u64)]| {
            let jobs = jobs("epiphany3", "1ms", events);
            (jobs.ended, jobs.skipped, jobs.since)
        };
        let by_time = [1001, 2001, 5001].map(|at| job(at, marker::RELEASE));
        let by_time = [&first[..], &by_time.concat()].concat();
        assert_eq!(of(&by_time), (4, 2, Some(5000)));
        assert_eq!(of(&first), (1, 0, Some(700)));
        assert_eq!(of(&first[..1]), (0, 0, Some(10)));
        assert_eq!(of(&[]), (0, 0, Some(0)));
        // An event may come at any time, or never; a task that says that it ends has no further job.
        let by_event = [&by_time[..], &job(7001, marker::EVENT)].concat();
        assert_eq!(of(&by_event), (5, 0, None));
        let last = [
            &by_time[..10],
            &[(5020, marker::RETIRED, 0)],
            &by_time[10..],
        ]
        .concat();
        assert_eq!(of(&last), (4, 0, None));
    }

    #[test]
    fn releases_closer_than_the_period_are_seen() {
        let job = |begin| [(begin, marker::BEGIN, 0), (begin + 5, marker::END, 0)];
        let at = |second: u64| {
            let mut events = vec![(1001, marker::RELEASE, 1)];
            events.extend(job(1010));
            events.push((second, marker::RELEASE, 1));
            events.extend(job(second + 10));
            jobs("epiphany3", "10ms", &events).hasty
        };
        assert_eq!([at(11_001), at(15_001)], [None; 2]);
        assert_eq!([at(2001), at(10_999)], [Some(1000), Some(9000)]);
    }
}
