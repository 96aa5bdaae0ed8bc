//! All processors together: the most urgent jobs run, by fixed priority or earliest deadline.
//!
//! A job pays one decision when it starts and one when it ends, on its processor; a release interrupts any processor, mostly the
//! one with the most urgent job, which stays with it until the release is done.

use std::collections::VecDeque;

use bulkhead_model::tasks::{Policy, TaskSystem};

use crate::arrivals::{self, Arrival, ns};
use crate::random::Random;

struct Job {
    task: usize,
    arrival: u64,
    number: usize,
    left: u64,
    started: bool,
}

#[derive(Default)]
struct Core {
    job: Option<usize>,
    /// What the kernel does here before anything else runs.
    decision: u64,
    releases: VecDeque<(u64, Arrival)>,
}

pub fn run(system: &TaskSystem, random: &mut Random) -> Vec<u64> {
    let span = arrivals::span(system, random);
    let mut worst = vec![0; system.tasks.len()];
    let mut releases: VecDeque<Arrival> = arrivals::jobs(system, span, random).into();
    let decision = ns(system.overheads.schedule);
    let release = ns(system.overheads.release);
    let key = |job: &Job| match system.policy {
        Policy::GlobalFixedPriority => (
            u64::from(system.tasks[job.task].priority.unwrap()),
            job.number,
        ),
        _ => (
            job.arrival + ns(system.tasks[job.task].deadline),
            job.number,
        ),
    };
    let mut cores: Vec<Core> = (0..system.processors).map(|_| Core::default()).collect();
    let mut jobs: Vec<Job> = Vec::new();
    let mut count = 0;
    let spiteful = random.one_in(2);
    for now in 0..span.end {
        while releases.front().is_some_and(|r| r.release <= now) {
            let job = releases.pop_front().unwrap();
            let busiest = (0..cores.len())
                .filter_map(|c| {
                    Some((
                        key(jobs.iter().find(|j| Some(j.number) == cores[c].job)?),
                        c,
                    ))
                })
                .min();
            let core = match busiest {
                Some((_, core)) if spiteful => core,
                _ => random.below(cores.len() as u64) as usize,
            };
            cores[core].releases.push_back((release, job));
        }
        let mut start = |job: Arrival, jobs: &mut Vec<Job>| {
            count += 1;
            jobs.push(Job {
                task: job.task,
                arrival: job.arrival,
                number: count,
                left: job.needs(ns(system.tasks[job.task].cost.unwrap())).max(1),
                started: false,
            });
        };
        // Releases that take no time, wherever no decision is in progress.
        for core in cores.iter_mut().filter(|core| core.decision == 0) {
            while core.releases.front().is_some_and(|r| r.0 == 0) {
                let (_, job) = core.releases.pop_front().unwrap();
                start(job, &mut jobs);
            }
        }
        let held = |core: &Core| core.decision > 0 || !core.releases.is_empty();
        // The most urgent jobs, one of each task, for the processors that are free to choose.
        let stuck: Vec<usize> = cores
            .iter()
            .filter(|c| held(c))
            .filter_map(|c| c.job)
            .collect();
        let free = cores.iter().filter(|c| !held(c)).count();
        let mut able: Vec<&Job> = jobs
            .iter()
            .filter(|j| !stuck.contains(&j.number))
            .filter(|j| !jobs.iter().any(|o| o.task == j.task && o.number < j.number))
            .collect();
        able.sort_by_key(|job| key(job));
        able.truncate(free);
        let mut chosen: Vec<usize> = able.iter().map(|job| job.number).collect();
        for core in cores
            .iter_mut()
            .filter(|core| core.decision == 0 && core.releases.is_empty())
        {
            match core.job.filter(|job| chosen.contains(job)) {
                Some(job) => chosen.retain(|other| *other != job),
                None => core.job = None,
            }
        }
        for core in cores
            .iter_mut()
            .filter(|core| core.decision == 0 && core.releases.is_empty())
        {
            if core.job.is_none() && !chosen.is_empty() {
                let number = chosen.remove(0);
                let job = jobs.iter_mut().find(|job| job.number == number).unwrap();
                if !job.started {
                    job.started = true;
                    core.decision = decision;
                }
                core.job = Some(number);
            }
        }
        for core in &mut cores {
            if core.decision > 0 {
                core.decision -= 1;
                continue;
            }
            if let Some((left, job)) = core.releases.front_mut() {
                *left -= 1;
                if *left == 0 {
                    start(*job, &mut jobs);
                    core.releases.pop_front();
                }
                continue;
            }
            let Some(number) = core.job else { continue };
            let job = jobs.iter_mut().find(|job| job.number == number).unwrap();
            job.left -= 1;
            if job.left == 0 {
                worst[job.task] = worst[job.task].max(now + 1 - job.arrival);
                jobs.retain(|job| job.number != number);
                core.job = None;
                core.decision = decision;
            }
        }
    }
    for job in &jobs {
        worst[job.task] = worst[job.task].max(span.end - job.arrival);
    }
    worst
}
