//! Additional runs in which only a flow's applications do something.
//!
//! Why it exists: a flow's bound starts from the time that the flow took and what it did alone, and a description need not have a variant
//! for that. What it deliberately does not know: how a bound follows from it (`bounds`).

use super::alone::{self, Alone};
use super::bounds;
use super::{Tiled, quiet};
use crate::chips::images;
use crate::collect;
use crate::error::Error;
use crate::observed::Observed;
use crate::paradigm::{BesideRun, Paradigm, Ran};
use crate::parallel::in_parallel;
use crate::programs::Program;
use crate::progress::Progress;
use crate::session;
use bulkhead_model::System;
use bulkhead_model::platform::Platform;
use bulkhead_model::system::Flow;
use bulkhead_report::result::AddedRun;

/// The results of flows from runs in which they were alone.
#[derive(Clone, Debug, Default)]
pub struct Added {
    /// For the result.
    pub runs: Vec<AddedRun>,
    /// For the bounds.
    pub alone: Vec<Alone>,
    /// Flows whose measurement failed.
    pub missing: Vec<Missing>,
}

/// A flow without a sample alone on a chip, and why.
#[derive(Clone, Debug)]
pub struct Missing {
    /// Name of the flow.
    pub flow: String,
    /// The chip.
    pub platform: Platform,
    /// Why there is nothing.
    pub why: String,
}

/// Plans a run for each flow of the chosen variants that may have a bound and that no chosen variant runs alone on the same chip. A variant of the
/// description that was not chosen serves, too. Unless the chosen runs are `watched` (those of a second chip are not), none of them serves.
pub fn plan(
    chosen: &[(String, System)],
    all: &[(String, System)],
    watched: bool,
) -> Vec<BesideRun> {
    let mut runs: Vec<BesideRun> = Vec::new();
    for (name, system) in chosen {
        for flow in &system.flows {
            let known =
                |run: &BesideRun| run.flow == flow.name && run.system.platform == system.platform;
            let serves =
                |other: &System| other.platform == system.platform && has_alone(other, flow);
            let seen = watched && chosen.iter().any(|(_, other)| serves(other));
            if runs.iter().any(known) || seen {
                continue;
            }
            let members = bounds::members_of(system, flow);
            if bounds::obstacle(system, &members).is_some() {
                continue;
            }
            let described = all.iter().find(|(_, other)| serves(other));
            let (about, system) = match described {
                Some((name, system)) => {
                    let about = match watched {
                        true => format!("variant {name}, which the options leave out"),
                        false => format!("variant {name}, without the other chip"),
                    };
                    (about, system.clone())
                }
                None => {
                    let mut system = system.clone();
                    quiet::others(&mut system, |app| members.contains(&app));
                    system.flows.retain(|one| one.name == flow.name);
                    let about = format!("variant {name}, with all other applications asleep");
                    (about, system)
                }
            };
            runs.push(BesideRun {
                flow: flow.name.clone(),
                about,
                system,
            });
        }
    }
    runs
}

/// Whether a system runs the applications of a flow of this name alone, and counts what they do.
fn has_alone(system: &System, flow: &Flow) -> bool {
    let mut flows = system.flows.iter();
    flows
        .find(|own| own.name == flow.name)
        .is_some_and(|own| bounds::is_alone(system, &bounds::members_of(system, own)))
}

/// Performs the runs that [`plan`] planned, several at a time, and reads their results.
///
/// # Errors
/// If the machine refuses one.
pub fn measure(
    runs: &[BesideRun],
    programs: &[Program],
    progress: &dyn Progress,
) -> Result<Added, Error> {
    let observed = in_parallel(runs, |run| {
        let (image, peer_image) = images(&Tiled, &run.system, programs)?;
        let per_second = run.system.platform.ticks_per_second();
        let plan = session::Plan {
            ticks: collect::ticks(run.system.duration, per_second),
            trace: false,
            slice: None,
            transactions: true,
            looks: 1,
        };
        let images = (&image, peer_image.as_ref());
        let name = format!("{} alone", run.flow);
        let beside = session::Beside::default();
        session::execute_beside(&Tiled, &run.system, images, plan, &name, progress, beside)
    });
    let observed: Vec<Observed> = observed.into_iter().collect::<Result<_, _>>()?;
    let names = runs.iter().zip(&observed);
    let names: Vec<_> = names
        .map(|(run, seen)| super::names::of(&run.system, &seen.markers))
        .collect();
    let ran = |((run, seen), names)| {
        let run: &BesideRun = run;
        let ran = Ran {
            system: &run.system,
            names,
            seen,
        };
        (run.clone(), ran)
    };
    let besides: Vec<(BesideRun, Ran<'_>)> =
        runs.iter().zip(&observed).zip(&names).map(ran).collect();
    Ok(read(&besides))
}

/// Reads the results of the additional runs.
pub fn read(besides: &[(BesideRun, Ran<'_>)]) -> Added {
    let mut added = Added::default();
    for (wanted, ran) in besides {
        let lives = Tiled.lives(ran.system, ran.seen);
        let flows = collect::flows(ran.system, ran.names, &ran.seen.markers, &lives);
        let flow = flows.iter().find(|flow| flow.name == wanted.flow);
        let worst = flow
            .filter(|flow| flow.latency.count > 0)
            .map(|flow| flow.latency.max);
        added.runs.push(AddedRun {
            flow: wanted.flow.clone(),
            about: wanted.about.clone(),
            worst,
            digest: ran.seen.digest.clone(),
        });
        let known = flow.and_then(|flow| {
            let (ended, log) = (ran.seen.ledger.transactions(), ran.seen.log.as_ref());
            alone::alone(ran.system, ran.names, flow, ended, log)
        });
        match known {
            Some(known) => added.alone.push(known),
            None => added.missing.push(Missing {
                flow: wanted.flow.clone(),
                platform: wanted.system.platform.clone(),
                why: format!(
                    "alone ({}) it had no sample, because its applications need others",
                    wanted.about
                ),
            }),
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use bulkhead_model::{LoadOptions, load_system};

    fn planned(overrides: &[&str], wanted: &[&str]) -> Vec<BesideRun> {
        let options = LoadOptions {
            overrides: overrides.iter().map(|one| (*one).to_owned()).collect(),
            ..LoadOptions::default()
        };
        let system = load_system("quickstart", &options).expect("valid");
        let wanted: Vec<String> = wanted.iter().map(|one| (*one).to_owned()).collect();
        let chosen = run::variants(&system, &wanted).expect("known");
        plan(&chosen, &run::variants(&system, &[]).expect("all"), true)
    }

    #[test]
    fn who_is_measured_alone_is_not_measured_again() {
        assert!(planned(&[], &[]).is_empty());
        assert!(planned(&[], &["alone", "regulated"]).is_empty());
    }

    /// The latency of a flow on one chip says nothing about another chip.
    #[test]
    fn each_chip_is_measured_by_itself() {
        let options = LoadOptions::default();
        let system = load_system("memory-policies", &options).expect("valid");
        let chosen = run::variants(&system, &[]).expect("all");
        let lonely = plan(&chosen, &chosen, true);
        // The two variants of one policy share a run.
        assert_eq!((chosen.len(), lonely.len()), (4, 3));
        let policies: Vec<_> = lonely
            .iter()
            .map(|run| run.system.platform.drams[0].controller.policy)
            .collect();
        assert!(
            policies[0] != policies[1] && policies[1] != policies[2] && policies[0] != policies[2]
        );
    }

    #[test]
    fn a_variant_that_was_not_chosen_serves() {
        let lonely = planned(&[], &["regulated", "unregulated"]);
        assert_eq!(lonely.len(), 1);
        assert_eq!(
            lonely[0].about,
            "variant alone, which the options leave out"
        );
        assert_eq!(lonely[0].system.apps.len(), 3);
    }

    #[test]
    fn without_such_a_variant_the_others_sleep() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let chosen: Vec<_> = run::variants(&system, &["regulated".to_owned()]).expect("known");
        let lonely = plan(&chosen, &chosen, true);
        assert_eq!(lonely.len(), 1);
        let quiet = &lonely[0].system;
        let programs: Vec<&str> = quiet.apps.iter().map(|app| app.program.as_str()).collect();
        assert_eq!(quiet.apps.len(), chosen[0].1.apps.len());
        assert_eq!(
            programs.iter().filter(|p| **p == quiet::ADVERSARY).count(),
            quiet.apps.len() - 3
        );
        // A sleeping application keeps its limit.
        assert!(
            quiet
                .apps
                .iter()
                .all(|app| app.program != quiet::ADVERSARY || app.limit.is_some())
        );
    }
}
