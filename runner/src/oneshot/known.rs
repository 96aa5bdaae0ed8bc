//! What is known of a described system without running it.
//!
//! Why it exists: `check` and a run must say the same of what has no bound. What it deliberately does not know: how anything is bounded, and
//! what a run has seen.

use bulkhead_analysis::one_shot::Bounds;
use bulkhead_analysis::plan::one_shot::bounds;
use bulkhead_analysis::plan::{Constraint, plan};
use bulkhead_model::System;
use bulkhead_report::verdict::Promise;

/// What the analysis says of a system.
pub(super) fn constraints(bounds: &Bounds) -> Vec<Constraint> {
    plan(&bounds.tasks)
        .map(|plan| plan.constraints)
        .unwrap_or_default()
}

/// Reasons for which something fails whatever the programs do, as `check` says, too.
pub(super) fn hopeless(system: &System) -> Vec<String> {
    let Some(one_shot) = &system.one_shot else {
        return Vec::new();
    };
    let mut described = one_shot.clone();
    described.unstated.clear();
    let all = constraints(&bounds(&described, &system.platform)).into_iter();
    let failing = all.filter(|one| one.fails() && one.bound.is_none());
    failing.filter_map(|one| one.note).collect()
}

/// What is known of something that has no bound, as `check` says, too, unless a program did something that no bound covers.
pub(super) fn endless(
    (name, expected): (&str, bool),
    what: &str,
    limit: impl std::fmt::Display,
    found: Option<&Constraint>,
    unlike: Option<&String>,
) -> Promise {
    let note = found.and_then(|one| one.note.clone());
    match (unlike, found) {
        (None, Some(one)) if one.fails() => {
            let why = note.unwrap_or_else(|| "a response has no bound".to_owned());
            let text = format!("{what}: no bound within {limit}: {why}");
            Promise::judged(name, text, false).if_expected(expected)
        }
        (unlike, _) => {
            let why = unlike.cloned().or(note);
            let why = why.unwrap_or_else(|| "nothing is known of it".to_owned());
            Promise::not_judged(name, format!("{what}: a bound within {limit}"), why)
        }
    }
}
