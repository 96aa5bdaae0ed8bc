//! Fixed priorities on one processor with a cache: a continuing job reloads what others evicted since it last ran.

use std::collections::BTreeSet;

use bulkhead_analysis::schedulability::Task;
use bulkhead_analysis::schedulability::preemption_delay::{
    Approach, CacheSets, CacheTask, response_times, with_approach,
};

use crate::measure::Known;
use crate::random::Random;

/// A task with what it puts into the cache and what of that it uses again.
struct Cached {
    task: Task,
    evicting: BTreeSet<usize>,
    useful: BTreeSet<usize>,
}

struct Job {
    task: usize,
    arrived: u64,
    left: u64,
    started: bool,
    /// Useful blocks that others evicted since it last ran.
    lost: BTreeSet<usize>,
}

/// Longest response of each task, by decreasing priority; jobs not done at the end count the time until then.
fn run(tasks: &[Cached], reload: u64, random: &mut Random) -> Vec<u64> {
    let longest = tasks.iter().map(|t| t.task.period).max().unwrap_or(1);
    let together = longest + random.below(longest);
    let sparse = random.one_in(4);
    // Backwards from the moment at which most meet, and onwards.
    let mut arrivals: Vec<(u64, usize)> = Vec::new();
    let end = together + 8 * longest;
    for (index, task) in tasks.iter().enumerate() {
        let period = task.task.period;
        let apart = random.below(period);
        let mut at = together - random.of_list(&[0, 0, apart]);
        at %= period;
        while at < end {
            arrivals.push((at, index));
            at += period + if sparse { random.below(period) } else { 0 };
        }
    }
    arrivals.sort_unstable();
    let mut arrivals = arrivals.into_iter().peekable();
    let mut worst = vec![0; tasks.len()];
    let mut jobs: Vec<Job> = Vec::new();
    for now in 0..end {
        while let Some((arrived, task)) = arrivals.next_if(|(at, _)| *at <= now) {
            jobs.push(Job {
                task,
                arrived,
                left: tasks[task].task.cost,
                started: false,
                lost: BTreeSet::new(),
            });
        }
        jobs.sort_by_key(|j| (j.task, j.arrived));
        let Some(job) = jobs.first_mut() else {
            continue;
        };
        job.left += job.lost.len() as u64 * reload;
        job.lost.clear();
        job.started = true;
        job.left -= 1;
        let running = job.task;
        if job.left == 0 {
            worst[running] = worst[running].max(now + 1 - job.arrived);
            jobs.remove(0);
        }
        for other in jobs.iter_mut().filter(|j| j.started && j.task != running) {
            let lost = tasks[running]
                .evicting
                .intersection(&tasks[other.task].useful);
            other.lost.extend(lost);
        }
    }
    for job in &jobs {
        worst[job.task] = worst[job.task].max(end - job.arrived);
    }
    worst
}

fn subset(of: impl Iterator<Item = usize>, random: &mut Random) -> BTreeSet<usize> {
    of.filter(|_| random.one_in(2)).collect()
}

/// One random set of tasks: each approach by itself, and the smaller of both.
pub fn one(random: &mut Random) -> Result<Known, String> {
    let reload = random.below(3);
    let mut tasks: Vec<Cached> = (0..random.between(2, 5))
        .map(|_| {
            let evicting = subset(0..8, random);
            let useful = subset(evicting.iter().copied(), random);
            let task = Task::new(random.between(1, 8), random.between(12, 90));
            Cached {
                task,
                evicting,
                useful,
            }
        })
        .collect();
    tasks.sort_by_key(|t| t.task.period);
    let described: Vec<CacheTask> = tasks
        .iter()
        .map(|t| CacheTask {
            task: t.task,
            evicting: CacheSets::of(t.evicting.iter().copied()),
            useful: CacheSets::of(t.useful.iter().copied()),
        })
        .collect();
    let mut seen = vec![0; tasks.len()];
    for _ in 0..12 {
        for (worst, one) in seen.iter_mut().zip(run(&tasks, reload, random)) {
            *worst = one.max(*worst);
        }
    }
    let wrong = |error| format!("{error}");
    let lesser = response_times(&described, reload).map_err(wrong)?;
    let mut all = vec![lesser];
    for approach in [Approach::EcbUnion, Approach::UcbUnion] {
        all.push(with_approach(&described, reload, approach).map_err(wrong)?);
    }
    let mut known = Known::default();
    for bounds in all {
        // After a task without a bound, nothing is promised.
        let mut promised = true;
        for (index, bound) in bounds.iter().enumerate() {
            promised &= bound.is_some();
            known
                .compare(
                    &format!("task {index}"),
                    bound.filter(|_| promised),
                    seen[index],
                )
                .map_err(|why| format!("{why}: {described:?}, reload {reload}"))?;
        }
    }
    Ok(known)
}
