//! Channels whose messages release their readers, against a simulation independent of the analysis: no response, message or queue exceeds
//! its bound.
//!
//! Time advances in units of a nanosecond. A job runs to its end; it reads one message somewhere before its last unit and writes at most
//! one, mostly at its end; a message arrives, after earlier ones, within at most its transfer time. A task that messages release checks
//! its channel when a message comes and when its job ends, and is released in ticks that are at least its period apart, as
//! `bulkhead_exec_one_shot::notice::Told` does it.

use bulkhead_analysis::plan::{Kind, plan};
use bulkhead_model::tasks::{Channel, ChannelKind, Policy, Task, TaskFlow, TaskSystem};
use bulkhead_model::units::{Size, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// Units in a tick.
const TICK: u64 = 20;

/// Numbers from a seed: proptest draws the seed, so that a failing case can be reproduced.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

fn units(time: Time) -> u64 {
    time.0 / 1000
}

/// Chains over three cores, beside other tasks. Most channels release their readers.
fn generate(draw: &mut Draw) -> TaskSystem {
    let mut tasks: Vec<Task> = Vec::new();
    let mut channels = Vec::new();
    let mut flows = Vec::new();
    for chain in 0..1 + draw.below(2) {
        let first = tasks.len();
        let mut period = 1 + draw.below(4);
        for place in 0..2 + draw.below(3) {
            let cost = 1 + draw.below(TICK / 4);
            let told = place > 0 && !draw.one_in(4);
            if told {
                period = (period - draw.below(2) * draw.below(2)).max(1);
            } else if place > 0 {
                period = 1 + draw.below(period);
            }
            let index = tasks.len();
            let mut task = Task::new(
                format!("t{chain}-{place}"),
                Time(1000 * cost),
                Time(1000 * TICK * period),
            );
            if told {
                task.jitter = Time(1000 * TICK);
            }
            tasks.push(task);
            if place > 0 {
                channels.push(Channel {
                    name: format!("c{index}"),
                    from: index - 1,
                    to: index,
                    size: Size(8),
                    kind: if draw.one_in(2) {
                        ChannelKind::Queue
                    } else {
                        ChannelKind::Sampling
                    },
                    slots: 100,
                    notify: told,
                    parallel: None,
                    joins: None,
                    transfer: Time(1000 * draw.below(8)),
                    unbounded: None,
                    deadline: None,
                });
            }
        }
        flows.push(TaskFlow {
            name: format!("f{chain}"),
            from: first,
            to: tasks.len() - 1,
            deadline: None,
        });
    }
    for other in 0..draw.below(4) {
        let period = TICK * (1 + draw.below(6));
        tasks.push(Task::new(
            format!("other{other}"),
            Time(1000 * (1 + draw.below(TICK / 3))),
            Time(1000 * period),
        ));
    }
    let mut priorities = [0; 3];
    // Priorities in any order of the file.
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    for at in (1..order.len()).rev() {
        order.swap(at, draw.below(at as u64 + 1) as usize);
    }
    for index in order {
        let core = draw.below(3);
        priorities[core as usize] += 1;
        tasks[index].core = Some(core as u32);
        tasks[index].priority = Some(priorities[core as usize]);
        tasks[index].deadline = Time(1000 * TICK * 100);
    }
    let mut system = TaskSystem::new("drawn", 3, Policy::OneShot, tasks);
    system.channels = channels;
    system.flows = flows;
    system
}

#[derive(Clone, Copy)]
struct Message {
    /// Release of the job that wrote it.
    written: u64,
    /// Release of the job where the flow began.
    begun: u64,
}

struct Job {
    task: usize,
    /// For tasks that time releases, their arrival.
    released: u64,
    left: u64,
    read_at: u64,
    write_at: Option<u64>,
    read: Option<Message>,
}

/// What was longest, by kind and name.
type Seen = BTreeMap<(Kind, String), u64>;

fn note(seen: &mut Seen, kind: Kind, name: &str, value: u64) {
    let most = seen.entry((kind, name.to_owned())).or_default();
    *most = value.max(*most);
}

struct Told {
    waits: bool,
    next: u64,
    alarm: Option<u64>,
}

fn simulate(system: &TaskSystem, draw: &mut Draw, end: u64) -> Seen {
    let count = system.tasks.len();
    let mut seen = Seen::new();
    let hasty = draw.one_in(3);
    let told_by: Vec<Option<usize>> = (0..count).map(|task| system.told_by(task)).collect();
    let input = |task: usize| system.channels.iter().position(|one| one.to == task);
    let output = |task: usize| system.channels.iter().position(|one| one.from == task);
    let offsets: Vec<u64> = system
        .tasks
        .iter()
        .map(|one| draw.below(units(one.period)))
        .collect();
    let mut told: Vec<Told> = (0..count)
        .map(|_| Told {
            waits: true,
            next: 0,
            alarm: None,
        })
        .collect();
    let mut ready: Vec<Job> = Vec::new();
    let mut running: [Option<Job>; 3] = [None, None, None];
    let mut ports: Vec<VecDeque<Message>> = vec![VecDeque::new(); system.channels.len()];
    let mut under_way: Vec<(u64, usize, Message)> = Vec::new();
    let job = |draw: &mut Draw, task: usize, released: u64| {
        let cost = units(system.tasks[task].cost.expect("a cost"));
        let left = if hasty || draw.one_in(2) {
            cost
        } else {
            1 + draw.below(cost)
        };
        let write_at = match draw.below(12) {
            0 => None,
            1 => Some(draw.below(left)),
            _ => Some(0),
        };
        let read_at = if draw.one_in(4) {
            1 + draw.below(left)
        } else {
            left
        };
        Job {
            task,
            released,
            left,
            read_at,
            write_at,
            read: None,
        }
    };
    for now in 0..end {
        let mut looks: Vec<usize> = Vec::new();
        for (index, task) in system.tasks.iter().enumerate() {
            let period = units(task.period);
            if told_by[index].is_none()
                && now >= offsets[index]
                && (now - offsets[index]).is_multiple_of(period)
            {
                ready.push(job(draw, index, now));
            }
            if told[index].alarm == Some(now) {
                told[index].alarm = None;
                ready.push(job(draw, index, now));
            }
        }
        under_way.retain(|&(at, channel, message)| {
            if at == now {
                if system.channels[channel].kind == ChannelKind::Sampling {
                    ports[channel].clear();
                }
                ports[channel].push_back(message);
                let name = &system.channels[channel].name;
                if system.channels[channel].kind == ChannelKind::Queue {
                    note(&mut seen, Kind::Queue, name, ports[channel].len() as u64);
                }
                if system.channels[channel].notify {
                    looks.push(system.channels[channel].to);
                }
            }
            at > now
        });
        for task in looks {
            look(system, &ports, &mut told, task, now, &mut |at| {
                ready.push(job(draw, task, at))
            });
        }
        for core in 0..3u32 {
            let slot = &mut running[core as usize];
            if slot.is_none() {
                let here = (0..ready.len())
                    .filter(|&one| system.tasks[ready[one].task].core == Some(core));
                let best = here.min_by_key(|&one| {
                    (system.tasks[ready[one].task].priority, ready[one].released)
                });
                *slot = best.map(|one| ready.remove(one));
            }
            let Some(current) = slot else { continue };
            let task = current.task;
            if current.left == current.read_at
                && let Some(channel) = input(task)
            {
                current.read = ports[channel].pop_front();
            }
            current.left -= 1;
            if current.write_at == Some(current.left)
                && let Some(channel) = output(task)
            {
                let message = match (input(task), current.read) {
                    (None, _) => Some(Message {
                        written: current.released,
                        begun: current.released,
                    }),
                    (Some(_), Some(read)) => Some(Message {
                        written: current.released,
                        begun: read.begun,
                    }),
                    (Some(_), None) => None,
                };
                if let Some(message) = message {
                    let transfer = units(system.channels[channel].transfer);
                    let late = if hasty {
                        transfer
                    } else {
                        draw.below(transfer + 1)
                    };
                    let before = under_way
                        .iter()
                        .filter(|one| one.1 == channel)
                        .map(|one| one.0)
                        .max();
                    under_way.push((before.unwrap_or(0).max(now + 1 + late), channel, message));
                }
            }
            if current.left > 0 {
                continue;
            }
            let done = now + 1;
            let name = &system.tasks[task].name;
            note(&mut seen, Kind::Response, name, done - current.released);
            if let (Some(read), Some(channel)) = (current.read, input(task)) {
                note(
                    &mut seen,
                    Kind::Channel,
                    &system.channels[channel].name,
                    done - read.written,
                );
                if let Some(flow) = system.flows.iter().find(|flow| flow.to == task) {
                    note(&mut seen, Kind::Flow, &flow.name, done - read.begun);
                }
            }
            *slot = None;
            if told_by[task].is_some() {
                told[task].waits = true;
                look(system, &ports, &mut told, task, done, &mut |at| {
                    ready.push(job(draw, task, at))
                });
            }
        }
    }
    seen
}

/// What the kernel does when a message has arrived or a job has ended.
fn look(
    system: &TaskSystem,
    ports: &[VecDeque<Message>],
    told: &mut [Told],
    task: usize,
    now: u64,
    release: &mut dyn FnMut(u64),
) {
    let Some(channel) = system.told_by(task) else {
        return;
    };
    let state = &mut told[task];
    if !state.waits || ports[channel].is_empty() {
        return;
    }
    state.waits = false;
    let tick = now / TICK;
    let at = tick.max(state.next);
    state.next = at + units(system.tasks[task].period) / TICK;
    if at > tick {
        state.alarm = Some(at * TICK);
    } else {
        release(now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn nothing_is_beyond_its_bound(seed in any::<u64>()) {
        let mut draw = Draw(seed);
        let system = generate(&mut draw);
        let planned = plan(&system).expect("it has an analysis");
        for _ in 0..4 {
            let seen = simulate(&system, &mut draw, 3000);
            for one in &planned.constraints {
                let Some(bound) = one.bound else { continue };
                if let Some(most) = seen.get(&(one.kind, one.subject.clone())) {
                    prop_assert!(*most <= bound, "{:?} {}: {most} > {bound}\n{:#?}", one.kind, one.subject, system);
                }
            }
        }
    }
}

/// Most systems have bounds, and runs come near them: a bound that is never approached would say little.
#[test]
fn bounds_are_there_and_near() {
    let (mut with, mut without, mut nearest) = (0, 0, 0.0f64);
    for seed in 0..60 {
        let mut draw = Draw(seed);
        let system = generate(&mut draw);
        let planned = plan(&system).expect("it has an analysis");
        let seen = simulate(&system, &mut draw, 3000);
        for one in planned
            .constraints
            .iter()
            .filter(|one| one.kind == Kind::Channel)
        {
            let notified = system
                .channels
                .iter()
                .any(|channel| channel.notify && channel.name == one.subject);
            match (one.bound, notified) {
                (Some(bound), true) => {
                    with += 1;
                    let most = seen
                        .get(&(one.kind, one.subject.clone()))
                        .copied()
                        .unwrap_or(0);
                    nearest = nearest.max(most as f64 / bound as f64);
                }
                (None, true) => without += 1,
                _ => {}
            }
        }
    }
    println!(
        "{with} notified channels with a bound, {without} without; the nearest run reaches {nearest:.2} of it"
    );
    assert!(with > 3 * without && nearest > 0.8);
}
