//! Where an analysis claims to be exact, its bound is the longest response over all offsets of a small system.
//!
//! The schedules here have no overhead: a few periodic tasks, unit by unit, each first released at every offset within its
//! period, the first job as late as its jitter allows and the others on time.

use bulkhead_analysis::plan::{Kind, plan};
use bulkhead_model::tasks::{self, Policy, Task, TaskSystem};
use bulkhead_model::units::Time;
use rayon::prelude::*;

use crate::arrivals::ns;
use crate::random::Random;

/// Longest response of `observed` with these first releases. A task's first job is as late as permitted. Among jobs with the
/// same deadline, one of `observed` goes last.
fn follow(system: &TaskSystem, first: &[u64], observed: usize, horizon: u64) -> u64 {
    let mut worst = 0;
    // Task, arrival, what is left, whether it has started.
    let mut jobs: Vec<(usize, i64, u64, bool)> = Vec::new();
    for now in 0..horizon {
        for (i, t) in system.tasks.iter().enumerate() {
            let (period, jitter) = (ns(t.period), ns(t.jitter));
            if now < first[i] {
                continue;
            }
            let comes = now - first[i];
            // Arrivals are `jitter` before the first release and every period from there; later jobs are released on arrival.
            if comes == 0 {
                for k in 0..=jitter / period {
                    jobs.push((
                        i,
                        (first[i] + k * period) as i64 - jitter as i64,
                        ns(t.cost.unwrap()),
                        false,
                    ));
                }
            } else if (comes + jitter).is_multiple_of(period) {
                jobs.push((i, now as i64, ns(t.cost.unwrap()), false));
            }
        }
        let key = |(i, arrival, _, started): &(usize, i64, u64, bool)| {
            let t = &system.tasks[*i];
            let priority = u64::from(t.priority.unwrap_or(0));
            let level = match system.policy {
                Policy::Edf => {
                    let last = u64::from(*i == observed);
                    return (*arrival + ns(t.deadline) as i64, last, *arrival);
                }
                Policy::NonPreemptive if *started => 0,
                Policy::Threshold if *started && t.threshold < t.priority => {
                    2 * u64::from(t.threshold.unwrap()) - 1
                }
                _ => 2 * priority,
            };
            (0, level, *arrival)
        };
        if let Some(job) = jobs.iter_mut().min_by_key(|job| key(job)) {
            job.2 -= 1;
            job.3 = true;
            if job.2 == 0 && job.0 == observed {
                worst = worst.max((now as i64 + 1 - job.1) as u64);
            }
        }
        jobs.retain(|job| job.2 > 0);
    }
    worst
}

fn random_system(policy: Policy, random: &mut Random) -> TaskSystem {
    let count = random.between(2, 3);
    let tasks = (0..count)
        .map(|i| {
            let period = random.of_list(&[2, 3, 4, 6, 8]);
            let cost = random.between(1, (period / 2).max(1));
            let mut task = Task::new(format!("t{i}"), Time(cost * 1000), Time(period * 1000));
            task.core = Some(0);
            if policy.has_priorities() {
                task.priority = Some(i as u32 + 1);
            }
            if policy == Policy::Threshold {
                task.threshold = Some(random.between(1, i + 1) as u32);
            }
            if policy == Policy::FixedPriority && random.one_in(3) {
                task.jitter = Time(random.below(period + 2) * 1000);
            }
            if random.one_in(2) {
                task.deadline = Time(random.between(cost, 2 * period) * 1000);
            }
            task
        })
        .collect();
    TaskSystem::new("exact", 1, policy, tasks)
}

/// Every combination of first releases.
fn everywhere(system: &TaskSystem) -> Vec<u64> {
    let periods: Vec<u64> = system.tasks.iter().map(|t| ns(t.period)).collect();
    let combinations: u64 = periods.iter().product();
    let mut worst = vec![0; periods.len()];
    for mut number in 0..combinations {
        let first: Vec<u64> = periods
            .iter()
            .map(|period| {
                let offset = number % period;
                number /= period;
                offset
            })
            .collect();
        for (observed, worst) in worst.iter_mut().enumerate() {
            *worst = (*worst).max(follow(system, &first, observed, 8 + 6 * 24));
        }
    }
    worst
}

fn check(policy: Policy) {
    let systems = std::env::var("BULKHEAD_SYSTEMS").ok();
    let systems: u64 = systems.and_then(|text| text.parse().ok()).unwrap_or(300);
    let name = policy.word();
    let bounded: u64 = (0..systems)
        .into_par_iter()
        .map(|number| {
            let system = random_system(policy, &mut Random::of(name, number));
            let plan = plan(&system).unwrap();
            let seen = everywhere(&system);
            let mut bounded = 0;
            for constraint in plan.constraints.iter().filter(|c| c.kind == Kind::Response) {
                let task = system.task(&constraint.subject).unwrap();
                if let Some(bound) = constraint.bound {
                    bounded += 1;
                    assert_eq!(
                        bound,
                        seen[task],
                        "{}: {}",
                        constraint.subject,
                        tasks::write(&system)
                    );
                }
            }
            bounded
        })
        .sum();
    println!("{name:26} {systems:6} small systems, {bounded} bounds are reached exactly");
    assert!(bounded > systems);
}

#[test]
fn fixed_priority_is_exact() {
    check(Policy::FixedPriority);
}

#[test]
fn thresholds_are_exact() {
    check(Policy::Threshold);
}

#[test]
fn non_preemptive_is_exact() {
    check(Policy::NonPreemptive);
}

#[test]
fn edf_is_exact() {
    check(Policy::Edf);
}
