//! Round robin in slices, quotas in fixed windows, as TileMux shares a tile out.
//!
//! A decision goes before every turn; a task that wakes up queues behind all others; releases interrupt whatever runs, and the slice of the
//! interrupted task continues. A turn ends with its slice if others wait, with the job, and with the quota.

use std::collections::VecDeque;

use bulkhead_model::tasks::TaskSystem;

use crate::arrivals::{self, Arrival, ns};
use crate::random::Random;

struct Activity {
    jobs: VecDeque<(u64, u64)>,
    used: u64,
    /// Budget, window, and where windows begin.
    quota: Option<(u64, u64, u64)>,
}

impl Activity {
    fn able(&self) -> bool {
        !self.jobs.is_empty() && self.quota.is_none_or(|(budget, ..)| self.used < budget)
    }
}

pub fn run(system: &TaskSystem, random: &mut Random) -> Vec<u64> {
    let span = arrivals::span(system, random);
    let mut releases: VecDeque<Arrival> = arrivals::jobs(system, span, random).into();
    let mut worst = vec![0; system.tasks.len()];
    let mut all: Vec<Activity> = system
        .tasks
        .iter()
        .map(|task| Activity {
            jobs: VecDeque::new(),
            used: 0,
            quota: task
                .quota
                .map(|q| (ns(q.budget), ns(q.period), random.below(ns(q.period)))),
        })
        .collect();
    let (slice, decision, release) = (
        ns(system.slice),
        ns(system.overheads.schedule),
        ns(system.overheads.release),
    );
    let mut line: VecDeque<usize> = VecDeque::new();
    let mut turn: Option<(usize, u64)> = None;
    let mut deciding = 0;
    let mut releasing: VecDeque<(u64, Arrival)> = VecDeque::new();
    for now in 0..span.end {
        for activity in &mut all {
            if let Some((_, window, phase)) = activity.quota
                && (now + phase).is_multiple_of(window)
            {
                activity.used = 0;
            }
        }
        while releases.front().is_some_and(|r| r.release <= now) {
            releasing.push_back((release, releases.pop_front().unwrap()));
        }
        // A decision is not interrupted.
        if deciding > 0 {
            deciding -= 1;
            continue;
        }
        while releasing.front().is_some_and(|r| r.0 == 0) {
            let (_, job) = releasing.pop_front().unwrap();
            let cost = job.needs(ns(system.tasks[job.task].cost.unwrap())).max(1);
            all[job.task].jobs.push_back((job.arrival, cost));
        }
        wake(&all, &mut line, turn.map(|t| t.0), random);
        if let Some((left, _)) = releasing.front_mut() {
            *left -= 1;
            // It uses up the slice of whom it interrupts, and what that pays for.
            if let Some((who, left)) = &mut turn {
                *left = left.saturating_sub(1);
                all[*who].used += 1;
            }
            if releasing[0].0 == 0 {
                let (_, job) = releasing.pop_front().unwrap();
                let cost = job.needs(ns(system.tasks[job.task].cost.unwrap())).max(1);
                all[job.task].jobs.push_back((job.arrival, cost));
            }
            continue;
        }
        if let Some((who, left)) = turn {
            let others = line.iter().any(|&other| all[other].able());
            if !all[who].able() {
                turn = None;
            } else if left == 0 && !others {
                // Nobody ends its turn.
                turn = Some((who, slice));
            } else if left == 0 {
                turn = None;
                line.push_back(who);
            }
        }
        if turn.is_none() {
            wake(&all, &mut line, None, random);
            line.retain(|&who| all[who].able());
            if let Some(who) = line.pop_front() {
                turn = Some((who, slice));
                if decision > 0 {
                    deciding = decision - 1;
                    continue;
                }
            }
        }
        let Some((who, left)) = &mut turn else {
            continue;
        };
        *left -= 1;
        let activity = &mut all[*who];
        activity.used += 1;
        let job = activity.jobs.front_mut().unwrap();
        job.1 -= 1;
        if job.1 == 0 {
            worst[*who] = worst[*who].max(now + 1 - job.0);
            activity.jobs.pop_front();
            turn = None;
        }
    }
    for (who, activity) in all.iter().enumerate() {
        for job in &activity.jobs {
            worst[who] = worst[who].max(span.end - job.0);
        }
    }
    worst
}

/// Every job that is able to run and neither waits nor runs is at the end of the queue.
fn wake(all: &[Activity], line: &mut VecDeque<usize>, running: Option<usize>, random: &mut Random) {
    let awake = (0..all.len())
        .filter(|who| all[*who].able() && !line.contains(who) && running != Some(*who))
        .collect();
    line.extend(random.shuffled(awake));
}
