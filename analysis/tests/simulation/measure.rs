//! Random systems of a policy against their bounds, and what is reported of them.

use bulkhead_analysis::plan::{Kind, plan};
use bulkhead_model::tasks::{self, TaskSystem};
use rayon::prelude::*;

use crate::arrivals::ns;
use crate::random::Random;

/// A policy under test.
pub struct Case {
    /// Its name, also the seed.
    pub name: &'static str,
    /// A random system.
    pub generate: fn(&mut Random) -> TaskSystem,
    /// Longest responses of all tasks in one run.
    pub simulate: fn(&TaskSystem, &mut Random) -> Vec<u64>,
}

/// What is known of the tasks of one system.
#[derive(Default)]
struct Known {
    judged: u64,
    tasks: u64,
    whole: bool,
    /// Bound by longest response seen.
    ratios: Vec<f64>,
}

/// Runs of each system.
const RUNS: u64 = 12;
/// Systems unless `BULKHEAD_SYSTEMS` says otherwise.
const SYSTEMS: u64 = 300;

impl Case {
    /// Compares and prints.
    pub fn check(&self) {
        let systems = std::env::var("BULKHEAD_SYSTEMS").ok();
        let systems = systems
            .and_then(|text| text.parse().ok())
            .unwrap_or(SYSTEMS);
        let found: Vec<Result<Known, String>> = (0..systems)
            .into_par_iter()
            .map(|number| self.one(number))
            .collect();
        let wrong: Vec<&String> = found.iter().filter_map(|one| one.as_ref().err()).collect();
        assert!(
            wrong.is_empty(),
            "{}: {} of {systems} systems exceed a bound; the shortest:\n{}",
            self.name,
            wrong.len(),
            wrong.iter().min_by_key(|text| text.len()).unwrap(),
        );
        let known: Vec<Known> = found.into_iter().filter_map(Result::ok).collect();
        let mut ratios: Vec<f64> = known
            .iter()
            .flat_map(|k| k.ratios.iter().copied())
            .collect();
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN);
        let tasks: u64 = known.iter().map(|k| k.tasks).sum();
        let judged: u64 = known.iter().map(|k| k.judged).sum();
        let whole = known.iter().filter(|k| k.whole).count();
        let share = |part: f64, of: f64| 100.0 * part / of.max(1.0);
        println!(
            "{:26} {systems:6} systems, {:5.1} % with all bounds, {:5.1} % of tasks with a bound, median bound / seen {median:.2}",
            self.name,
            share(whole as f64, systems as f64),
            share(judged as f64, tasks as f64),
        );
        // Silence is no soundness.
        assert!(
            judged * 4 >= tasks,
            "{}: hardly anything has a bound",
            self.name
        );
    }

    fn one(&self, number: u64) -> Result<Known, String> {
        let mut random = Random::of(self.name, number);
        let written = (self.generate)(&mut random);
        let Ok(plan) = plan(&written) else {
            return Ok(Known {
                tasks: written.tasks.len() as u64,
                ..Known::default()
            });
        };
        let system = &plan.system;
        let mut seen = vec![0; system.tasks.len()];
        for _ in 0..RUNS {
            for (worst, one) in seen.iter_mut().zip((self.simulate)(system, &mut random)) {
                *worst = one.max(*worst);
            }
        }
        let mut known = Known {
            whole: true,
            ..Known::default()
        };
        for constraint in &plan.constraints {
            let task = match constraint.kind {
                Kind::Response | Kind::Tardiness => system.task(&constraint.subject).unwrap(),
                _ => continue,
            };
            known.tasks += 1;
            let deadline = ns(system.tasks[task].deadline);
            let bound = match constraint.kind {
                Kind::Tardiness => constraint.bound.map(|late| late + deadline),
                // A verdict without a number is about the deadline.
                _ => constraint.bound.or(constraint.holds.then_some(deadline)),
            };
            let Some(bound) = bound else {
                known.whole = false;
                continue;
            };
            known.judged += 1;
            if seen[task] > 0 {
                known.ratios.push(bound as f64 / seen[task] as f64);
            }
            if seen[task] > bound {
                return Err(format!(
                    "system {number}: `{}` responds within {} ns, its bound is {bound} ns\n{}",
                    constraint.subject,
                    seen[task],
                    tasks::write(system)
                ));
            }
        }
        Ok(known)
    }
}
