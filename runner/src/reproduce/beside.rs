//! Bounds beside the measurements of an experiment.
//!
//! Why it exists: a figure says what happened, the bound beside it what can happen. What it deliberately does not know: how a
//! bound is computed (`bulkhead_analysis`). A bound begins with what was measured alone, because nobody knows the worst-case
//! execution time of the measured code; what others can add to it comes from the description only.

use crate::bounds::{self, Job};
use crate::error::Error;
use crate::result::{RunResult, SpanResult};
use crate::run::Seen;
use crate::session::Counts;
use bulkhead_abi::dtu::CHUNK_MAX;
use bulkhead_analysis::communication::{Profile, SystemBounds};
use bulkhead_machine::noc::Transaction;
use bulkhead_model::System;
use serde::Serialize;

/// A bound, or why there is none. In the unit of the measurement that it stands beside.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// At most so much.
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

/// Reasons for `none` below a table, each once.
pub fn reasons<'a>(all: impl IntoIterator<Item = &'a Beside>) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for why in all.into_iter().filter_map(Beside::reason) {
        if !reasons.iter().any(|known| known == why) {
            reasons.push(why.to_owned());
        }
    }
    reasons
}

/// What applications did alone while one of them measured: the most of each kind in any of its spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Worst span in ticks.
    pub worst: u64,
    /// The first application is the measured one.
    jobs: Vec<(String, Job)>,
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

/// Reads off what `apps` did in the spans of the first of them in a variant where they are alone. Transactions are counted where
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
    let seen = seen.ok_or_else(|| Error::Machine(format!("{variant} was not looked at")))?;
    let jobs = apps.iter().map(|app| {
        let index = seen.system.apps.iter().position(|one| one.name == *app);
        (
            app.to_string(),
            index.map_or_else(Job::default, |index| job(seen, index, span)),
        )
    });
    Ok(Work {
        worst: span.latency.max,
        jobs: jobs.collect(),
    })
}

/// The most of each kind that an application did in any span.
fn job(seen: &Seen, app: usize, span: &SpanResult) -> Job {
    let mut most = Job {
        app,
        ..Job::default()
    };
    let of =
        |counts: &Counts, wanted| bounds::of_app(&seen.system, &seen.names, app, counts, wanted);
    let ends = seen.slices.iter().skip(1).map(|(begin, _)| *begin);
    let slices: Vec<(u64, u64, Job)> = seen
        .slices
        .iter()
        .zip(ends.chain([u64::MAX]))
        .map(|((begin, counts), end)| {
            let job = Job {
                app,
                line_reads: of(counts, Transaction::CacheRead),
                line_writes: of(counts, Transaction::CacheWrite),
                chunks_read: of(counts, Transaction::DmaRead),
                chunks_written: of(counts, Transaction::DmaWrite),
                messages: of(counts, Transaction::Message),
            };
            (*begin, end, job)
        })
        .collect();
    for sample in &span.samples {
        let last = sample.begin + sample.latency;
        let first = slices.partition_point(|(_, end, _)| *end <= sample.begin);
        let mut sum = Job::default();
        for (_, _, job) in slices[first..]
            .iter()
            .take_while(|(begin, ..)| *begin <= last)
        {
            sum.add(job);
        }
        most.raise(&sum);
    }
    most
}

/// Ticks of a span beside others at most: the worst one alone, and what its transactions can wait for in `system`.
pub fn disturbed(system: &System, work: &Work) -> Result<u64, String> {
    let members: Vec<usize> = work
        .jobs
        .iter()
        .filter_map(|(name, _)| system.apps.iter().position(|app| app.name == *name))
        .collect();
    if bounds::shares_a_tile(system, &members) {
        return Err("the bounds of communication do not cover time on a shared tile".to_owned());
    }
    if let Some(app) = members
        .iter()
        .map(|&app| &system.apps[app])
        .find(|app| app.limit.is_some())
    {
        return Err(format!("`{}` waits for its own token bucket", app.name));
    }
    let profiles = profiles(system, &members, work);
    let bounds = SystemBounds::new(system, &profiles).map_err(|error| error.to_string())?;
    let bound = bounds
        .flow(&members, 0)
        .map_err(|error| error.to_string())?;
    Ok(bound.bound.path)
}

fn profiles(system: &System, members: &[usize], work: &Work) -> Vec<Profile> {
    let mut all = Vec::new();
    for (position, (&app, (_, job))) in members.iter().zip(&work.jobs).enumerate() {
        // Messages go to the others that are measured, there and back.
        let reached = |other: &usize| {
            let mut gates = system.apps[app].sgates.iter();
            let back = system.apps[*other].sgates.iter().any(|gate| gate.to == app);
            gates.any(|gate| gate.to == *other) || back
        };
        let to = members
            .iter()
            .copied()
            .find(|other| *other != app && reached(other));
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
    use crate::measure::distribution;
    use crate::names::Names;
    use crate::result::Sample;
    use bulkhead_machine::types::Owner;
    use bulkhead_model::{LoadOptions, load_system};

    fn seen(variant: &str) -> Seen {
        let system = load_system("m3/interference", &LoadOptions::default()).expect("valid");
        let mut variants = system.variants.into_iter();
        let system = variants.find(|one| one.variant.as_deref() == Some(variant));
        let system = system.expect("there");
        let count = |lines| Counts::from([((Owner::new(2, 2), Transaction::CacheRead), lines)]);
        Seen {
            names: Names::new(&system, ""),
            system,
            log: None,
            slices: vec![
                (0, count(100)),
                (100, count(3)),
                (200, count(7)),
                (300, count(50)),
            ],
        }
    }

    fn span(begin: u64, latency: u64) -> SpanResult {
        SpanResult {
            application: "foreground".to_owned(),
            latency: distribution([latency]),
            samples: vec![Sample {
                number: 0,
                begin,
                latency,
            }],
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
        assert_eq!(job(&seen, app, &span(150, 60)).line_reads, 10);
        assert_eq!(job(&seen, app, &span(100, 50)).line_reads, 3);
        assert_eq!(job(&seen, app, &span(310, 1000)).line_reads, 50);
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
