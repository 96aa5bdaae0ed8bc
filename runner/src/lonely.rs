//! Runs that are made besides, in which only a flow's applications do something.
//!
//! Why it exists: a flow's bound begins with what the flow took and did alone, and a description need not have a variant for that. What
//! it deliberately does not know: how a bound follows from it (`bounds`).

use crate::bounds::{self, Alone};
use crate::names::Names;
use crate::programs::Program;
use crate::quiet;
use crate::result::AddedRun;
use crate::run::{self, Job};
use crate::session::Observed;
use bulkhead_model::System;
use bulkhead_model::system::Flow;

/// A run to be made.
#[derive(Clone, Debug)]
pub struct Run {
    /// The flow that it is for.
    pub flow: String,
    /// What it is, for readers.
    pub about: String,
    /// What is run.
    pub system: System,
}

/// What is to be run, and why some flows have no run.
#[derive(Clone, Debug, Default)]
pub struct Lonely {
    /// Runs.
    pub runs: Vec<Run>,
}

/// What came of the runs.
#[derive(Clone, Debug, Default)]
pub struct Added {
    /// For the result.
    pub runs: Vec<AddedRun>,
    /// For the bounds.
    pub alone: Vec<Alone>,
    /// Flows that were measured in vain, and why.
    pub missing: Vec<(String, String)>,
}

/// Plans a run for each flow of the chosen variants that may have a bound and that no chosen variant runs alone. A variant of the
/// description that was not chosen serves, too.
pub fn plan(chosen: &[(String, System)], all: &[(String, System)]) -> Lonely {
    let mut lonely = Lonely::default();
    for (name, system) in chosen {
        for flow in &system.flows {
            let known = lonely.runs.iter().any(|run| run.flow == flow.name);
            if known || chosen.iter().any(|(_, other)| has_alone(other, flow)) {
                continue;
            }
            let members = bounds::members_of(system, flow);
            if bounds::obstacle(system, &members).is_some() {
                continue;
            }
            let described = all.iter().find(|(_, other)| has_alone(other, flow));
            let (about, system) = match described {
                Some((name, system)) => (
                    format!("variant {name}, which was not asked for"),
                    system.clone(),
                ),
                None => {
                    let mut system = system.clone();
                    quiet::others(&mut system, |app| members.contains(&app));
                    system.flows.retain(|one| one.name == flow.name);
                    let about = format!("variant {name}, with all other applications asleep");
                    (about, system)
                }
            };
            lonely.runs.push(Run {
                flow: flow.name.clone(),
                about,
                system,
            });
        }
    }
    lonely
}

/// Whether a system runs the applications of a flow of this name alone, and counts what they do.
fn has_alone(system: &System, flow: &Flow) -> bool {
    let mut flows = system.flows.iter();
    flows
        .find(|own| own.name == flow.name)
        .is_some_and(|own| bounds::is_alone(system, &bounds::members_of(system, own)))
}

impl Lonely {
    /// Reads the runs off.
    pub(crate) fn read(
        &self,
        jobs: &[Job],
        observed: Vec<Observed>,
        programs: &[Program],
    ) -> Added {
        let mut added = Added::default();
        for ((wanted, job), seen) in self.runs.iter().zip(jobs).zip(observed) {
            let names = Names::new(&job.system, &seen.console);
            let variant = run::variant(job, &names, programs, &seen);
            let flow = variant.flows.iter().find(|flow| flow.name == wanted.flow);
            let worst = flow
                .filter(|flow| flow.latency.count > 0)
                .map(|flow| flow.latency.max);
            added.runs.push(AddedRun {
                flow: wanted.flow.clone(),
                about: wanted.about.clone(),
                worst,
                digest: variant.digest.clone(),
            });
            let length = job.plan.slice.map_or(0, |slice| slice.0);
            let known = flow
                .and_then(|flow| bounds::alone(&job.system, &names, flow, &seen.slices, length));
            match known {
                Some(known) => added.alone.push(known),
                None => added.missing.push((
                    wanted.flow.clone(),
                    format!(
                        "alone ({}) it had not one sample: its applications need others",
                        wanted.about
                    ),
                )),
            }
        }
        added
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    fn planned(overrides: &[&str], wanted: &[&str]) -> Lonely {
        let options = LoadOptions {
            overrides: overrides.iter().map(|one| (*one).to_owned()).collect(),
            ..LoadOptions::default()
        };
        let system = load_system("quickstart", &options).expect("valid");
        let wanted: Vec<String> = wanted.iter().map(|one| (*one).to_owned()).collect();
        let chosen = run::variants(&system, &wanted).expect("known");
        plan(&chosen, &run::variants(&system, &[]).expect("all"))
    }

    #[test]
    fn who_is_measured_alone_is_not_measured_again() {
        assert!(planned(&[], &[]).runs.is_empty());
        assert!(planned(&[], &["alone", "regulated"]).runs.is_empty());
    }

    #[test]
    fn a_variant_that_was_not_chosen_serves() {
        let lonely = planned(&[], &["regulated", "unregulated"]);
        assert_eq!(lonely.runs.len(), 1);
        assert_eq!(
            lonely.runs[0].about,
            "variant alone, which was not asked for"
        );
        assert_eq!(lonely.runs[0].system.apps.len(), 3);
    }

    #[test]
    fn without_such_a_variant_the_others_sleep() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let chosen: Vec<_> = run::variants(&system, &["regulated".to_owned()]).expect("known");
        let lonely = plan(&chosen, &chosen);
        assert_eq!(lonely.runs.len(), 1);
        let quiet = &lonely.runs[0].system;
        let programs: Vec<&str> = quiet.apps.iter().map(|app| app.program.as_str()).collect();
        assert_eq!(quiet.apps.len(), chosen[0].1.apps.len());
        assert_eq!(
            programs.iter().filter(|p| **p == quiet::ADVERSARY).count(),
            quiet.apps.len() - 3
        );
        // Who sleeps keeps his limit.
        assert!(
            quiet
                .apps
                .iter()
                .all(|app| app.program != quiet::ADVERSARY || app.limit.is_some())
        );
    }
}
