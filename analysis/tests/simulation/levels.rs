//! The mixed-criticality kernel: tables, below them rate-monotonic priorities, below them global earliest deadline first.
//!
//! Each level is run with the costs that it estimates for all, and only its own tasks are checked. Levels A and B arrive strictly
//! periodically from 0 if the system says so, else at random like level C; interrupts and releases precede everything on their processor,
//! and a job of level C that one of them interrupts stays where it is.
//!
//! A decision begins each job, each slot that a job uses, and each job that continues on a different processor. One more follows the end of
//! a job, and the end of a slot whose job is not done; after it, what ran before continues immediately. Nothing interrupts a decision.

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

#[derive(Default)]
struct Core {
    /// What the kernel does before anything else: length, and the job that it releases.
    kernel: VecDeque<(u64, Option<Arrival>)>,
    job: Option<usize>,
    /// The kernel has just decided what continues.
    decided: bool,
}

impl Core {
    /// A decision whose end leaves open what runs.
    fn leaves(&mut self, decision: u64) {
        self.job = None;
        self.decided = true;
        self.decides(decision);
    }

    /// This job runs next; `turn`: it pays for a decision even if the kernel has just made one.
    fn takes(&mut self, job: &mut Job, turn: bool, decision: u64) {
        if turn || !job.started || !self.decided {
            self.decides(decision);
        }
        job.started = true;
        self.job = Some(job.number);
        self.decided = false;
    }

    fn decides(&mut self, decision: u64) {
        if decision > 0 {
            self.kernel.push_front((decision, None));
        }
    }
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
    let mut cores: Vec<Core> = (0..count).map(|_| Core::default()).collect();
    // A job that arrives within a slot of its task gets the rest of it, or waits for the next one.
    let waits = !system.periodic && random.one_in(2);
    let mut number = 0;
    for now in 0..span.end {
        for &(_, core, cost) in interrupts.iter().filter(|i| i.0 == now) {
            cores[core].kernel.push_back((cost, None));
        }
        while coming.front().is_some_and(|job| job.release <= now) {
            let job = coming.pop_front().unwrap();
            let core = system.tasks[job.task]
                .core
                .map_or_else(|| random.below(count as u64) as usize, |c| c as usize);
            cores[core].kernel.push_back((release, Some(job)));
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
        for core in &mut cores {
            while core.kernel.front().is_some_and(|entry| entry.0 == 0) {
                if let Some((_, Some(job))) = core.kernel.pop_front() {
                    start(job, &mut jobs);
                }
            }
        }
        let level = |job: &Job| system.tasks[job.task].criticality;
        let is_first = |job: &Job, jobs: &[Job]| {
            !jobs
                .iter()
                .any(|o| o.task == job.task && o.number < job.number)
        };
        // Levels A and B choose where the kernel does nothing.
        for (index, core) in cores.iter_mut().enumerate() {
            if !core.kernel.is_empty() {
                continue;
            }
            let slot = in_slot(system, index, now, &jobs, waits);
            let runs = jobs.iter().position(|j| Some(j.number) == core.job);
            // The slot ended before its job, and no other slot begins here with a decision.
            let cut = runs.is_some_and(|runs| level(&jobs[runs]) == 'A') && slot != runs;
            if cut && slot.is_none() {
                core.leaves(decision);
                if !core.kernel.is_empty() {
                    continue;
                }
            }
            let b = (0..jobs.len())
                .filter(|&j| level(&jobs[j]) == 'B' && is_first(&jobs[j], &jobs))
                .filter(|&j| system.tasks[jobs[j].task].core == Some(index as u32))
                .min_by_key(|&j| {
                    let job = &jobs[j];
                    (system.tasks[job.task].period, job.task, job.number)
                });
            if let Some(next) = slot.or(b).filter(|&next| Some(next) != runs) {
                core.takes(&mut jobs[next], slot.is_some(), decision);
            }
        }
        let runs = |core: &Core| jobs.iter().find(|j| Some(j.number) == core.job);
        let is_free =
            |core: &Core| core.kernel.is_empty() && runs(core).is_none_or(|job| level(job) >= 'C');
        let free: Vec<usize> = (0..count).filter(|&c| is_free(&cores[c])).collect();
        let stuck: Vec<usize> = cores
            .iter()
            .filter(|core| !is_free(core))
            .filter_map(|core| core.job)
            .collect();
        let mut able: Vec<&Job> = jobs
            .iter()
            .filter(|j| level(j) >= 'C')
            .filter(|j| !stuck.contains(&j.number) && is_first(j, &jobs))
            .collect();
        // Best effort comes last.
        able.sort_by_key(|j| {
            let task = &system.tasks[j.task];
            (task.criticality, j.arrival + ns(task.period), j.number)
        });
        able.truncate(free.len());
        let mut chosen: Vec<usize> = able.iter().map(|j| j.number).collect();
        for &core in &free {
            match cores[core].job.filter(|n| chosen.contains(n)) {
                Some(n) => chosen.retain(|other| *other != n),
                None => cores[core].job = None,
            }
        }
        for &core in &free {
            if cores[core].job.is_none()
                && let Some(number) = chosen.pop()
            {
                let job = jobs.iter_mut().find(|j| j.number == number).unwrap();
                cores[core].takes(job, false, decision);
            }
        }
        for core in &mut cores {
            if let Some((left, job)) = core.kernel.front_mut() {
                *left -= 1;
                if *left == 0 {
                    if let Some(job) = *job {
                        start(job, &mut jobs);
                    }
                    core.kernel.pop_front();
                }
                continue;
            }
            core.decided = false;
            let Some(job) = jobs.iter_mut().find(|j| Some(j.number) == core.job) else {
                continue;
            };
            job.left -= 1;
            if job.left == 0 {
                let (task, arrival, number) = (job.task, job.arrival, job.number);
                worst[task] = worst[task].max(now + 1 - arrival);
                jobs.retain(|j| j.number != number);
                core.leaves(decision);
            }
        }
    }
    for job in &jobs {
        worst[job.task] = worst[job.task].max(span.end - job.arrival);
    }
    worst
}

/// The job that the table of a processor serves now: the oldest one of the slot's task.
fn in_slot(system: &TaskSystem, core: usize, now: u64, jobs: &[Job], waits: bool) -> Option<usize> {
    let table = system.tables.iter().find(|t| t.core == core as u32)?;
    let place = now % ns(table.length);
    let mut slots = table.slots.iter();
    let slot = slots.find(|s| ns(s.start) <= place && place < ns(s.start) + ns(s.length))?;
    let begin = now - (place - ns(slot.start));
    let oldest = (0..jobs.len())
        .filter(|&j| jobs[j].task == slot.task)
        .min_by_key(|&j| jobs[j].number)?;
    (!waits || jobs[oldest].arrival <= begin).then_some(oldest)
}
