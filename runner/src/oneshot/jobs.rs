//! What the kernels of a described system reported by markers: jobs, operations on ports, flows.
//!
//! Why it exists: results and promises read the same events. What it deliberately does not know: bounds.

use super::clocks::Clocks;
use super::layout;
use crate::measure::{MarkerEvent, pair};
use bulkhead_abi::marker::MarkerKind;
use bulkhead_abi::one_shot::marker;
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_model::tasks::ChannelKind;
use bulkhead_report::result::Sample;
use std::collections::{BTreeMap, VecDeque};

/// The jobs of a task.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    /// Machine ticks from the tick at which a job was released, or from the message that released it, to its end. The first job has no
    /// release: it begins with its core.
    pub responses: Vec<u64>,
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
    /// Maximum at a time, including one that finds no place.
    pub most: u64,
    /// Items that found no place.
    pub lost: u64,
}

/// What is in progress on a core.
#[derive(Default)]
struct Core {
    tasks: Vec<usize>,
    released: BTreeMap<usize, u64>,
    /// The task whose job runs, and when it was released.
    running: Option<(usize, Option<u64>)>,
    /// When the last job began.
    begun: u64,
    operation: Option<u64>,
    /// What the running job has read: the channel, and when the job that wrote it was released.
    read: Vec<(usize, u64)>,
    /// How often the running job has begun to write or read each channel.
    accesses: BTreeMap<usize, u64>,
}

/// Messages in transit in a channel: when the job that wrote each was released.
#[derive(Clone, Debug, Default)]
struct Sent(VecDeque<Option<u64>>);

/// Reads the markers of a run. `tick`: machine ticks per tick of the kernel.
pub fn read(system: &System, one_shot: &OneShot, markers: &[MarkerEvent], tick: u64) -> Seen {
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
        begins: vec![Vec::new(); tasks.flows.len()],
        ends: vec![Vec::new(); tasks.flows.len()],
        spans: vec![<[Vec<MarkerEvent>; 2]>::default(); tasks.tasks.len()],
    };
    let channels: BTreeMap<u64, usize> = (0..tasks.channels.len())
        .map(|channel| {
            let owner = layout::number(system, one_shot.core(tasks.channels[channel].to));
            let name = u64::from(owner) | ((one_shot.port(channel) as u64) << 16);
            (name, channel)
        })
        .collect();
    let mut sent = vec![Sent::default(); tasks.channels.len()];
    let clocks = Clocks::read(system, one_shot, markers);
    let mut cores: BTreeMap<u16, Core> = BTreeMap::new();
    for event in markers {
        let core = cores.entry(event.tile).or_insert_with(|| Core {
            tasks: one_shot.on_core(event.tile),
            ..Core::default()
        });
        let task = |number: u64| core.tasks.get(usize::try_from(number).ok()?).copied();
        match event.kind {
            marker::RELEASE => {
                let released: Vec<usize> = (0..64)
                    .filter(|number| (event.value >> number) & 1 == 1)
                    .filter_map(task)
                    .collect();
                // Where cores have clocks of their own, so are their ticks.
                let own = clocks
                    .as_ref()
                    .and_then(|all| all.tick(event.tile, event.at));
                let begin = own.unwrap_or(event.at - event.at % tick.max(1));
                for task in released {
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
                    let response = released.map(|released| event.at - released);
                    seen.jobs[task].responses.extend(response);
                }
            }
            marker::STOPPED => {
                let stopped = task(event.value);
                if let Some((task, _)) = core.running.take_if(|(task, _)| stopped == Some(*task)) {
                    seen.jobs[task].cut_off += 1;
                }
            }
            marker::OVERRUN => {
                if let Some(task) = task(event.value & 0xFF) {
                    seen.jobs[task].overruns += 1;
                }
            }
            marker::PUT | marker::TAKE => {
                core.operation = Some(event.at);
                let channel = channels.get(&event.value);
                if let Some(&channel) = channel {
                    let count = core.accesses.entry(channel).or_default();
                    *count += 1;
                    let is_read = event.kind == marker::TAKE;
                    // A slice or result may turn out to be old, in which case it is dropped.
                    let counts = !is_read || tasks.channels[channel].parallel.is_none();
                    let most = &mut seen.in_a_job[channel][usize::from(is_read)];
                    *most = (*most).max(if counts { *count } else { 0 });
                }
                if let Some(&channel) = channel.filter(|_| event.kind == marker::PUT) {
                    seen.queues[channel].put();
                    let released = core.running.and_then(|(_, released)| released);
                    sent[channel].put(tasks.channels[channel].kind, released);
                }
            }
            // It took part of the wait, and no more.
            marker::DROPPED => {
                core.operation = None;
                if let Some(&channel) = channels.get(&event.value) {
                    let count = core.accesses.entry(channel).or_default();
                    *count = count.saturating_sub(1);
                }
            }
            marker::VAIN => {
                if let Some(&channel) = channels.get(&event.value) {
                    seen.vain[channel] += 1;
                }
            }
            marker::FULL => {
                if let Some(&channel) = channels.get(&event.value) {
                    seen.queues[channel].lose();
                    sent[channel].0.pop_back();
                }
            }
            marker::PUT_DONE | marker::TAKEN => {
                let lists = match event.kind {
                    marker::TAKEN => &mut seen.reads,
                    _ => &mut seen.writes,
                };
                if let (Some(begin), Some(&channel)) =
                    (core.operation.take(), channels.get(&event.value))
                {
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
                // A job is not preempted, so everything marked while it runs belongs to it.
                let Some((task, _)) = core.running else {
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
    for core in cores.into_values() {
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

    /// The item put last found no place.
    fn lose(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
        self.lost += 1;
    }

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
