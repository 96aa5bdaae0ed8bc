//! Bounds beside the measurements of an experiment.
//!
//! Why it exists: a figure says what happened, and the bound beside it says what can happen. What it deliberately does not know:
//! how a bound is computed (`bulkhead_analysis`). A bound begins with what was measured alone, because the WCET of the measured
//! code is unknown; what others can add follows from the description only.

use bulkhead_abi::dtu::CHUNK_MAX;
use bulkhead_analysis::communication::{Profile, SystemBounds};
use bulkhead_model::System;
use bulkhead_report::result::{RunResult, Sample, SpanResult};
use bulkhead_runner::error::Error;
use bulkhead_runner::run::Seen;
use bulkhead_runner::tiled::alone::{self, Job};
use bulkhead_runner::tiled::bounds;
use serde::Serialize;

/// A bound, or why there is none, in the unit of the measurement beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// At most this much.
    AtMost(f64),
    /// There is no bound, because...
    None(String),
}

impl Beside {
    /// For a table.
    pub fn text(&self, digits: usize) -> String {
        match self {
            Beside::AtMost(most) => format!("{most:.digits$}"),
            Beside::None(_) => "none".to_owned(),
        }
    }

    /// The bound, if there is one.
    pub fn most(&self) -> Option<f64> {
        match self {
            Beside::AtMost(most) => Some(*most),
            Beside::None(_) => None,
        }
    }

    /// Why there is none.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Beside::AtMost(_) => None,
            Beside::None(why) => Some(why),
        }
    }

    /// Whether a measurement keeps to it.
    pub fn holds(&self, measured: f64) -> bool {
        self.most().is_none_or(|most| measured <= most)
    }
}

/// Reasons for `none`, each once, to go below a table.
pub fn reasons<'a>(all: impl IntoIterator<Item = &'a Beside>) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for why in all.into_iter().filter_map(Beside::reason) {
        if !reasons.iter().any(|known| known == why) {
            reasons.push(why.to_owned());
        }
    }
    reasons
}

/// The work of applications alone while one of them was measured: the maximum of each kind in any of its spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Worst span in ticks.
    pub worst: u64,
    /// The first application is the measured one.
    pub jobs: Vec<(String, Job)>,
}

fn find<'a>(result: &'a RunResult, variant: &str, app: &str) -> Result<&'a SpanResult, Error> {
    let variants = result.variants.iter();
    let mut found = variants.filter(|one| one.name == variant);
    let spans = found.next().map(|one| one.spans.as_slice());
    let mut spans = spans.unwrap_or_default().iter();
    spans.find(|span| span.application == app).ok_or_else(|| {
        Error::Machine(format!(
            "{}: variant {variant} measured nothing of {app}",
            result.system
        ))
    })
}

/// Extracts what `apps` did in the spans of the first of them in a variant where they are alone. Transactions are counted where
/// they end; a slice that a span touches counts for it.
pub fn work(
    result: &RunResult,
    seen: &[Seen],
    variant: &str,
    apps: &[&str],
) -> Result<Work, Error> {
    let span = find(result, variant, apps.first().copied().unwrap_or_default())?;
    let place = result.variants.iter().position(|one| one.name == variant);
    let seen = place.and_then(|place| seen.get(place));
    let seen = seen.ok_or_else(|| Error::Machine(format!("{variant} was not examined")))?;
    Ok(work_in(seen, &span.samples, apps))
}

/// The same for any spans of time; the longest counts.
pub fn work_in(seen: &Seen, samples: &[Sample], apps: &[&str]) -> Work {
    let (system, names) = (&seen.system, &seen.names);
    let jobs = apps.iter().map(|app| {
        let index = system.apps.iter().position(|one| one.name == *app);
        let job = index.map_or_else(Job::default, |index| {
            alone::in_samples(system, names, index, &seen.slices, samples)
        });
        (app.to_string(), job)
    });
    Work {
        worst: samples.iter().map(|s| s.latency).max().unwrap_or(0),
        jobs: jobs.collect(),
    }
}

/// The start of every bound here, to go below a table.
pub const ASSUMPTION: &str = "Bounds begin with the worst run alone on the same deterministic chip, because no execution times are known, \
     and add all that its requests can wait for others.";

/// Maximum ticks of a span beside others: the worst one alone, plus what its transactions may wait for in `system`.
pub fn disturbed(system: &System, work: &Work) -> Result<u64, String> {
    if bounds::shares_a_tile(system, &members(system, work)) {
        return Err("the bounds of communication do not cover time on a shared tile".to_owned());
    }
    on_the_network(system, work, &[])
}

fn members(system: &System, work: &Work) -> Vec<usize> {
    let names = work.jobs.iter();
    names
        .filter_map(|(name, _)| system.apps.iter().position(|app| app.name == *name))
        .collect()
}

/// The same regardless of which applications share tiles; `asleep` do not run meanwhile.
pub fn on_the_network(system: &System, work: &Work, asleep: &[usize]) -> Result<u64, String> {
    let members = members(system, work);
    let profiles = profiles(system, &members, work);
    let bounds = SystemBounds::new(system, &profiles).map_err(|error| error.to_string())?;
    let bound = bounds
        .without(asleep)
        .flow(&members, 0)
        .map_err(|error| error.to_string())?;
    Ok(bound.bound.whole())
}

fn profiles(system: &System, members: &[usize], work: &Work) -> Vec<Profile> {
    let mut all = Vec::new();
    for (position, (&app, (_, job))) in members.iter().zip(&work.jobs).enumerate() {
        // Messages go to the other measured applications and back.
        let reached = |other: &usize| {
            let mut gates = system.apps[app].sgates.iter();
            let back = system.apps[*other].sgates.iter().any(|gate| gate.to == app);
            gates.any(|gate| gate.to == *other) || back
        };
        let to = members
            .iter()
            .copied()
            .find(|other| *other != app && reached(other));
        // Without such a partner they are kernel calls.
        let calls = if to.is_none() { job.messages } else { 0 };
        let messages = to.map_or(Vec::new(), |to| {
            let bytes =
                bounds::message_bytes(system, app, to).max(bounds::message_bytes(system, to, app));
            vec![(to, bytes); job.messages as usize]
        });
        all.push(Profile {
            app,
            // All were measured at once.
            compute: if position == 0 { work.worst } else { 0 },
            compute_includes_network: true,
            line_reads: job.line_reads,
            line_writes: job.line_writes,
            dma_read: job.chunks_read * CHUNK_MAX as u64,
            dma_written: job.chunks_written * CHUNK_MAX as u64,
            messages,
            calls,
        });
    }
    all
}

/// As a [`Beside`] in units of `ticks`.
pub fn scaled(bound: Result<u64, String>, ticks: f64) -> Beside {
    match bound {
        Ok(bound) => Beside::AtMost(bound as f64 / ticks),
        Err(why) => Beside::None(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};
    use bulkhead_runner::observed::Counts;
    use bulkhead_runner::seen::Owner;
    use bulkhead_runner::seen::Transaction;
    use bulkhead_runner::tiled::names;

    fn seen(variant: &str) -> Seen {
        let system = load_system("m3/interference", &LoadOptions::default()).expect("valid");
        let mut variants = system.variants.into_iter();
        let system = variants.find(|one| one.variant.as_deref() == Some(variant));
        let system = system.expect("there");
        let count = |lines| Counts::from([((Owner::new(2, 2), Transaction::CacheRead), lines)]);
        Seen {
            names: names::of(&system, &names::all_as(&system, 2)),
            system,
            markers: Vec::new(),
            log: None,
            work: Vec::new(),
            slices: vec![
                (0, count(100)),
                (100, count(3)),
                (200, count(7)),
                (300, count(50)),
            ],
        }
    }

    fn sample(begin: u64, latency: u64) -> Sample {
        Sample {
            number: 0,
            begin,
            latency,
        }
    }

    #[test]
    fn a_span_has_the_slices_that_it_touches() {
        let seen = seen("accesses");
        let app = seen
            .system
            .apps
            .iter()
            .position(|app| app.name == "foreground");
        let app = app.expect("there");
        assert_eq!(seen.system.apps[app].name, "foreground");
        let reads = |begin, latency| {
            let work = work_in(&seen, &[sample(begin, latency)], &["foreground"]);
            assert_eq!(work.worst, latency);
            work.jobs[0].1.line_reads
        };
        assert_eq!(reads(150, 60), 10);
        assert_eq!(reads(100, 50), 3);
        assert_eq!(reads(310, 1000), 50);
    }

    #[test]
    fn the_bound_holds_what_was_alone_and_grows_with_the_others() {
        let work = |seen: &Seen| Work {
            worst: 5000,
            jobs: vec![(
                "foreground".to_owned(),
                Job {
                    app: seen
                        .system
                        .apps
                        .iter()
                        .position(|a| a.name == "foreground")
                        .expect("there"),
                    line_reads: 4,
                    ..Job::default()
                },
            )],
        };
        let bound = |variant: &str| {
            let seen = seen(variant);
            disturbed(&seen.system, &work(&seen)).expect("alone on its tile")
        };
        let (alone, regulated, free) = (
            bound("accesses"),
            bound("accesses-accesses-regulated"),
            bound("accesses-accesses"),
        );
        assert!(
            5000 <= alone && alone < regulated && regulated <= free,
            "{alone} {regulated} {free}"
        );
    }

    #[test]
    fn reasons_stand_once() {
        let none = |why: &str| Beside::None(why.to_owned());
        let all = [none("a"), Beside::AtMost(1.0), none("b"), none("a")];
        assert_eq!(reasons(&all), ["a", "b"]);
        assert!(all[0].holds(1e9) && !all[1].holds(1.1));
    }
}
