//! Random systems against their bounds, and the report on them.

use std::collections::BTreeMap;

use bulkhead_analysis::plan::{Kind, plan};
use bulkhead_model::tasks::{self, TaskSystem};
use rayon::prelude::*;

use crate::arrivals::ns;
use crate::random::Random;

/// Something under test.
pub struct Case {
    /// Its name, also the seed.
    pub name: &'static str,
    /// A random system, its bounds, and what simulations show of it.
    pub one: fn(&mut Random) -> Result<Known, String>,
}

/// What is known of one system.
#[derive(Default)]
pub struct Known {
    judged: u64,
    all: u64,
    /// Bound by what was seen at most.
    ratios: Vec<f64>,
}

impl Known {
    /// Compares what was seen with its bound. Without a bound nothing is promised.
    pub fn compare(&mut self, what: &str, bound: Option<u64>, seen: u64) -> Result<(), String> {
        self.all += 1;
        let Some(bound) = bound else { return Ok(()) };
        self.judged += 1;
        if seen > 0 {
            self.ratios.push(bound as f64 / seen as f64);
        }
        match seen > bound {
            true => Err(format!("{what}: {seen} was seen, the bound is {bound}")),
            false => Ok(()),
        }
    }

    /// So many things that nothing is said of.
    pub fn unjudged(things: usize) -> Self {
        Self {
            all: things as u64,
            ..Self::default()
        }
    }

    fn is_whole(&self) -> bool {
        self.judged == self.all
    }
}

/// What simulations of a task system show.
#[derive(Default)]
pub struct Seen {
    /// The longest response of each task.
    pub tasks: Vec<u64>,
    /// The greatest of anything else, by kind and name.
    pub others: BTreeMap<(Kind, String), u64>,
}

impl From<Vec<u64>> for Seen {
    fn from(tasks: Vec<u64>) -> Self {
        Self {
            tasks,
            ..Self::default()
        }
    }
}

impl Seen {
    /// Takes the greater ones.
    fn merge(&mut self, other: Self) {
        for (worst, one) in self.tasks.iter_mut().zip(other.tasks) {
            *worst = one.max(*worst);
        }
        for (key, one) in other.others {
            let worst = self.others.entry(key).or_default();
            *worst = one.max(*worst);
        }
    }
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
            .map(|number| {
                let mut random = Random::of(self.name, number);
                (self.one)(&mut random).map_err(|why| format!("system {number}: {why}"))
            })
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
        let all: u64 = known.iter().map(|k| k.all).sum();
        let judged: u64 = known.iter().map(|k| k.judged).sum();
        let whole = known.iter().filter(|k| k.is_whole()).count();
        let share = |part: f64, of: f64| 100.0 * part / of.max(1.0);
        println!(
            "{:26} {systems:6} systems, {:5.1} % with all bounds, {:5.1} % of promises with a bound, median bound / seen {median:.2}",
            self.name,
            share(whole as f64, systems as f64),
            share(judged as f64, all as f64),
        );
        // Silence is no soundness.
        assert!(
            judged * 4 >= all,
            "{}: hardly anything has a bound",
            self.name
        );
    }
}

/// A system of tasks against its bounds. `simulate`: what one run of it shows.
///
/// # Errors
/// What exceeded its bound, with the system.
pub fn tasks<S: Into<Seen>>(
    random: &mut Random,
    generate: fn(&mut Random) -> TaskSystem,
    simulate: fn(&TaskSystem, &mut Random) -> S,
) -> Result<Known, String> {
    let written = generate(random);
    let Ok(plan) = plan(&written) else {
        return Ok(Known::unjudged(written.tasks.len()));
    };
    let system = &plan.system;
    let mut seen = Seen::from(vec![0; system.tasks.len()]);
    for _ in 0..RUNS {
        seen.merge(simulate(system, random).into());
    }
    let mut known = Known::default();
    for constraint in &plan.constraints {
        let task = || {
            let task = system.task(&constraint.subject).unwrap();
            (seen.tasks[task], ns(system.tasks[task].deadline))
        };
        let (seen, bound) = match constraint.kind {
            Kind::Response => {
                let (seen, deadline) = task();
                // A verdict without a number is about the deadline.
                let bound = constraint.bound.or(constraint.holds().then_some(deadline));
                (seen, bound)
            }
            Kind::Tardiness => {
                let (seen, deadline) = task();
                (seen, constraint.bound.map(|late| late + deadline))
            }
            kind => match seen.others.get(&(kind, constraint.subject.clone())) {
                Some(&seen) => (seen, constraint.bound),
                None => continue,
            },
        };
        let what = format!("{:?} of `{}`", constraint.kind, constraint.subject);
        let compared = known.compare(&what, bound, seen);
        compared.map_err(|why| format!("{why}\n{}", tasks::write(system)))?;
    }
    Ok(known)
}
