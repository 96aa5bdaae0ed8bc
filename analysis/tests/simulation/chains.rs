//! Data in transit: sampling ports, queues, chains of them, and device buffers, with tasks under fixed priorities.
//!
//! Jobs run as in [`crate::processor`]. A job reads somewhere between its first unit and its end, and also writes in between, mostly
//! at the ends; a message arrives within at most its transfer time. Readers arrive strictly periodically, at any phase.

use std::collections::{BTreeMap, VecDeque};

use bulkhead_analysis::plan::Kind;
use bulkhead_model::tasks::{
    Channel, ChannelKind, Device, Direction, Policy, TaskFlow, TaskSystem,
};
use bulkhead_model::units::{Rate, Size, Time};

use crate::arrivals::{Arrival, Lengths, Span, ns};
use crate::measure::Seen;
use crate::processor::{self, Ended};
use crate::random::Random;

/// A chain of three to five tasks on up to two processors, with a device at its begin.
pub fn generate(random: &mut Random) -> TaskSystem {
    let load = random.between(40, 95);
    let mut system = crate::generate::on_processors(random, Policy::FixedPriority, 2, load);
    let count = system.tasks.len();
    for index in 1..count {
        let (from, to) = (index - 1, index);
        let queue = random.one_in(2);
        // A reader slower than its writer has no bound; that should be rare.
        if queue && !random.one_in(8) {
            let period = system.tasks[from].period;
            if system.tasks[to].period > period {
                system.tasks[to].period = period;
                system.tasks[to].deadline = system.tasks[to].deadline.min(period);
            }
        }
        system.channels.push(Channel {
            name: format!("c{index}"),
            from,
            to,
            size: Size(64),
            kind: if queue {
                ChannelKind::Queue
            } else {
                ChannelKind::Sampling
            },
            slots: random.between(1, 6) as u32,
            notify: false,
            parallel: None,
            joins: None,
            transfer: Time(random.below(20) * 1000),
            unbounded: None,
            deadline: random.one_in(2).then_some(Time(400_000)),
        });
    }
    system.flows.push(TaskFlow {
        name: "chain".to_owned(),
        from: 0,
        to: count - 1,
        deadline: Some(Time(1_000_000)),
    });
    system.devices.push(Device {
        name: "camera".to_owned(),
        rate: Some(Rate(random.between(1, 3) * 1_000_000_000)),
        direction: random.of_list(&[Direction::In, Direction::Both]),
        copied: false,
        interrupts: None,
        core: 0,
        task: Some(0),
        buffer: Some(Size(random.between(20, 200))),
    });
    system
}

/// Strictly periodic arrivals at any phase; releases as late as permitted, on time, or anything between.
fn periodic(system: &TaskSystem, end: u64, random: &mut Random) -> Vec<Arrival> {
    let mut all = Vec::new();
    let lengths = Lengths::of(random);
    for (task, described) in system.tasks.iter().enumerate() {
        let (period, jitter) = (ns(described.period), ns(described.jitter));
        let mut arrival = random.below(period);
        let style = random.below(3);
        let mut last = 0;
        while arrival < end {
            let late = match style {
                0 => 0,
                1 => jitter * random.below(2),
                _ => random.below(jitter + 1),
            };
            last = (arrival + late).max(last);
            all.push(Arrival {
                task,
                arrival,
                release: last,
                part: lengths.part(random),
            });
            arrival += period;
        }
    }
    all.sort_by_key(|job| (job.release, job.task));
    all
}

/// A moment of a job: at its first unit, at its end, or between.
fn moment(job: &Ended, random: &mut Random) -> u64 {
    match random.below(3) {
        0 => job.began,
        1 => job.end,
        _ => random.between(job.began, job.end),
    }
}

/// What each job of a reader took: the job of the writer whose message it was, and when.
struct Hop {
    /// By job of the writer: the job of the reader that used its message or a newer one.
    used_by: Vec<Option<usize>>,
    /// Messages that waited at most.
    waiting: u64,
}

fn hop(channel: &Channel, writes: &[u64], reads: &[u64], random: &mut Random) -> Hop {
    let transfer = ns(channel.transfer);
    let slow = random.one_in(2);
    // Messages do not overtake each other.
    let mut there = Vec::with_capacity(writes.len());
    for &write in writes {
        let late = if slow {
            transfer
        } else {
            random.below(transfer + 1)
        };
        there.push((write + late).max(there.last().copied().unwrap_or(0)));
    }
    let mut used_by = vec![None; writes.len()];
    let mut waiting = 0;
    match channel.kind {
        ChannelKind::Sampling => {
            for (message, &there) in there.iter().enumerate() {
                used_by[message] = reads.iter().position(|&read| read >= there);
            }
        }
        ChannelKind::Queue => {
            let mut queue: VecDeque<usize> = VecDeque::new();
            let mut next = 0;
            for (job, &read) in reads.iter().enumerate() {
                while next < there.len() && there[next] <= read {
                    queue.push_back(next);
                    next += 1;
                }
                waiting = waiting.max(queue.len() as u64);
                if let Some(message) = queue.pop_front() {
                    used_by[message] = Some(job);
                }
            }
        }
    }
    Hop { used_by, waiting }
}

pub fn run(system: &TaskSystem, random: &mut Random) -> Seen {
    let longest = system.tasks.iter().map(|t| ns(t.period)).max().unwrap_or(1);
    let span = Span {
        together: 0,
        end: 20 * longest,
    };
    let arrivals = periodic(system, span.end, random);
    let mut jobs: Vec<Vec<Ended>> = vec![Vec::new(); system.tasks.len()];
    for job in processor::ended(system, span, arrivals, random) {
        jobs[job.task].push(job);
    }
    let mut others = BTreeMap::new();
    let mut note = |kind: Kind, name: &str, seen: u64| {
        let worst: &mut u64 = others.entry((kind, name.to_owned())).or_default();
        *worst = seen.max(*worst);
    };
    // Jobs of a task read and write in their order.
    let moments: Vec<[Vec<u64>; 2]> = jobs
        .iter()
        .map(|jobs| {
            let pair: Vec<(u64, u64)> = jobs
                .iter()
                .map(|job| {
                    let (a, b) = (moment(job, random), moment(job, random));
                    (a.min(b), a.max(b))
                })
                .collect();
            [
                pair.iter().map(|p| p.0).collect(),
                pair.iter().map(|p| p.1).collect(),
            ]
        })
        .collect();
    let mut hops = Vec::new();
    for channel in &system.channels {
        let hop = hop(
            channel,
            &moments[channel.from][1],
            &moments[channel.to][0],
            random,
        );
        note(Kind::Channel, &channel.name, 0);
        for (message, job) in hop.used_by.iter().enumerate() {
            if let Some(job) = job {
                let latency = jobs[channel.to][*job].end - jobs[channel.from][message].arrival;
                note(Kind::Channel, &channel.name, latency);
            }
        }
        if channel.kind == ChannelKind::Queue {
            note(Kind::Queue, &channel.name, hop.waiting);
        }
        hops.push(hop);
    }
    // Each token from the first task of the chain to its end.
    for (first, job) in jobs[0].iter().enumerate() {
        let mut at = Some(first);
        for hop in &hops {
            at = at.and_then(|job| hop.used_by.get(job).copied().flatten());
        }
        if let Some(last) = at {
            let end = jobs[system.channels.last().unwrap().to][last].end;
            note(Kind::Flow, "chain", end - job.arrival);
        }
    }
    for device in &system.devices {
        let (Some(rate), Some(task)) = (device.rate, device.task) else {
            continue;
        };
        let both = if device.direction == Direction::Both {
            2
        } else {
            1
        };
        // Each job empties the buffer when it reads.
        for pair in moments[task][0].windows(2) {
            let bytes = (pair[1] - pair[0]) * rate.0 * both / 1_000_000_000;
            note(Kind::Buffer, &device.name, bytes);
        }
    }
    let worst = |jobs: &Vec<Ended>| jobs.iter().map(|j| j.end - j.arrival).max().unwrap_or(0);
    Seen {
        tasks: jobs.iter().map(worst).collect(),
        others,
    }
}
