//! The mixed-criticality kernel: tables, below them rate-monotonic priorities, below them global earliest deadline first.
//!
//! Each level is run with the costs that it estimates for all, and only its own tasks are looked at. Levels A and B arrive strictly
//! periodically from 0 if the system says so, else at random like level C; interrupts and releases go before everything on their processor, and a job of level C
//! that one of them interrupts stays where it is.

use std::collections::VecDeque;

use bulkhead_model::tasks::TaskSystem;

use crate::arrivals::{self, Arrival, ns};
use crate::random::Random;

struct Job {
    task: usize,
    arrival: u64,
    number: usize,
    left: u64,
    started: bool,
}

pub fn run(system: &TaskSystem, random: &mut Random) -> Vec<u64> {
    let mut worst = vec![0; system.tasks.len()];
    for level in ['A', 'B', 'C'] {
        let seen = follow(system, level, random);
        for (index, seen) in seen.into_iter().enumerate() {
            if system.tasks[index].criticality == level {
                worst[index] = seen;
            }
        }
    }
    worst
}

fn follow(system: &TaskSystem, level: char, random: &mut Random) -> Vec<u64> {
    let span = arrivals::span(system, random);
    let cost = |task: usize| {
        let task = &system.tasks[task];
        task.cost_at(level.max(task.criticality), 0).map_or(1, ns)
    };
    let (decision, release) = (ns(system.overheads.schedule), ns(system.overheads.release));
    let count = system.processors as usize;
    let mut coming: Vec<Arrival> = arrivals::jobs(system, span, random)
        .into_iter()
        .filter(|job| system.tasks[job.task].criticality >= 'C')
        .collect();
    let lengths = arrivals::Lengths::of(random);
    for (task, described) in system.tasks.iter().enumerate() {
        if described.criticality < 'C' {
            for arrival in arrivals::beside_a_table(system, task, 0, span.end, random) {
                coming.push(Arrival {
                    task,
                    arrival,
                    release: arrival,
                    part: lengths.part(random),
                });
            }
        }
    }
    coming.sort_by_key(|job| (job.release, job.task));
    let mut coming: VecDeque<Arrival> = coming.into();
    // What the kernel does before anything else: length, and the job that it releases.
    let mut kernel: Vec<VecDeque<(u64, Option<Arrival>)>> = vec![VecDeque::new(); count];
    let mut interrupts: Vec<(u64, usize, u64)> = Vec::new();
    for device in &system.devices {
        if let Some((distance, cost)) = device.interrupts {
            let cost = ns(cost) + ns(system.overheads.interrupt);
            for at in arrivals::interrupts(ns(distance), span, random) {
                interrupts.push((at, device.core as usize, cost));
            }
        }
    }
    let mut worst = vec![0; system.tasks.len()];
    let mut jobs: Vec<Job> = Vec::new();
    let mut running: Vec<Option<usize>> = vec![None; count];
    let mut number = 0;
    for now in 0..span.end {
        for &(_, core, cost) in interrupts.iter().filter(|i| i.0 == now) {
            kernel[core].push_back((cost, None));
        }
        while coming.front().is_some_and(|job| job.release <= now) {
            let job = coming.pop_front().unwrap();
            let core = system.tasks[job.task]
                .core
                .map_or_else(|| random.below(count as u64) as usize, |c| c as usize);
            kernel[core].push_back((release, Some(job)));
        }
        let mut start = |job: Arrival, jobs: &mut Vec<Job>| {
            number += 1;
            jobs.push(Job {
                task: job.task,
                arrival: job.arrival,
                number,
                left: job.needs(cost(job.task)).max(1),
                started: false,
            });
        };
        for queue in &mut kernel {
            while queue.front().is_some_and(|entry| entry.0 == 0) {
                if let Some((_, Some(job))) = queue.pop_front() {
                    start(job, &mut jobs);
                }
            }
        }
        let first = |job: &&Job, jobs: &[Job]| {
            !jobs
                .iter()
                .any(|o| o.task == job.task && o.number < job.number)
        };
        // Levels A and B choose where the kernel does nothing.
        for core in (0..count).filter(|&core| kernel[core].is_empty()) {
            let here = |job: &&Job, level: char| {
                let task = &system.tasks[job.task];
                task.criticality == level && task.core == Some(core as u32)
            };
            let slot = system
                .tables
                .iter()
                .find(|t| t.core == core as u32)
                .and_then(|table| {
                    let place = now % ns(table.length);
                    let slot = table
                        .slots
                        .iter()
                        .find(|s| ns(s.start) <= place && place < ns(s.start) + ns(s.length))?;
                    jobs.iter()
                        .filter(|j| j.task == slot.task)
                        .min_by_key(|j| j.number)
                });
            let b = jobs
                .iter()
                .filter(|j| here(j, 'B') && first(j, &jobs))
                .min_by_key(|j| (system.tasks[j.task].period, j.task, j.number));
            running[core] = match slot.or(b) {
                Some(job) => Some(job.number),
                // What ran of level C may go on.
                None => running[core].filter(|n| {
                    jobs.iter()
                        .any(|j| j.number == *n && system.tasks[j.task].criticality >= 'C')
                }),
            };
        }
        let below = |number: Option<usize>| {
            number.is_none_or(|n| {
                jobs.iter()
                    .all(|j| j.number != n || system.tasks[j.task].criticality >= 'C')
            })
        };
        let free: Vec<usize> = (0..count)
            .filter(|&c| kernel[c].is_empty() && below(running[c]))
            .collect();
        let stuck: Vec<usize> = (0..count)
            .filter(|c| !free.contains(c))
            .filter_map(|c| running[c])
            .collect();
        let mut able: Vec<&Job> = jobs
            .iter()
            .filter(|j| system.tasks[j.task].criticality >= 'C')
            .filter(|j| !stuck.contains(&j.number) && first(j, &jobs))
            .collect();
        // Best effort comes last.
        able.sort_by_key(|j| {
            let task = &system.tasks[j.task];
            (task.criticality, j.arrival + ns(task.period), j.number)
        });
        able.truncate(free.len());
        let mut chosen: Vec<usize> = able.iter().map(|j| j.number).collect();
        for &core in &free {
            match running[core].filter(|n| chosen.contains(n)) {
                Some(n) => chosen.retain(|other| *other != n),
                None => running[core] = None,
            }
        }
        for &core in &free {
            if running[core].is_none() {
                running[core] = chosen.pop();
            }
        }
        for core in 0..count {
            if let Some((left, job)) = kernel[core].front_mut() {
                *left -= 1;
                if *left == 0 {
                    if let Some(job) = *job {
                        start(job, &mut jobs);
                    }
                    kernel[core].pop_front();
                }
                continue;
            }
            let Some(job) = running[core].and_then(|n| jobs.iter_mut().find(|j| j.number == n))
            else {
                continue;
            };
            if !job.started {
                job.started = true;
                // The decision that starts it takes this unit and those that follow; the one that ends it comes after it.
                job.left += decision;
            }
            job.left -= 1;
            if job.left == 0 {
                let (task, arrival, number) = (job.task, job.arrival, job.number);
                worst[task] = worst[task].max(now + 1 - arrival);
                jobs.retain(|j| j.number != number);
                running[core] = None;
                if decision > 0 {
                    kernel[core].push_front((decision, None));
                }
            }
        }
    }
    for job in &jobs {
        worst[job.task] = worst[job.task].max(span.end - job.arrival);
    }
    worst
}
