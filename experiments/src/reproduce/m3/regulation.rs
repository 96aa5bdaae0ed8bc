//! Per-activity bandwidth regulation with several activities on a tile, which the paper builds but does not measure.
//!
//! What it deliberately does not know: how a bucket works.

use super::attacks::latencies;
use super::beside::{self, Beside};
use super::{Claim, counted};
use bulkhead_analysis::admission;
use bulkhead_model::System;
use bulkhead_report::result::{RunResult, VariantResult};
use bulkhead_report::verdict::relation;
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run::Seen;
use serde::Serialize;

/// The measured applications: one on the hogs' tile, and one on its own tile.
const TASK: &str = "task";
const VICTIM: &str = "victim";
/// Bytes of a cache line. Every request of a hog moves one line.
const LINE: u64 = 64;
/// Maximum slowdown of the victim beside limited hogs (the paper's Figure 5a, 1 percent).
const VICTIM_KEPT: f64 = 1.01;
/// The same for the task beside limited hogs on its own tile: they evict its lines, which a bucket does not prevent.
const TASK_KEPT: f64 = 1.1;
/// Minimum slowdown of the victim by hogs without a limit.
const VICTIM_HARMED: f64 = 1.5;

/// A hog in a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hog {
    /// Name.
    pub name: String,
    /// Tile.
    pub tile: u16,
    /// Its limit in bytes per second.
    pub limit: Option<u64>,
    /// Bytes that it moved in the run.
    pub bytes: u64,
    /// Maximum bytes that its bucket admits in that time: rate times time, plus what the bucket holds, plus one
    /// request.
    pub bound: Beside,
}

/// A variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Regulation {
    /// Variant.
    pub variant: String,
    /// What it shows.
    pub about: String,
    /// Worst response of the task, from its release, in microseconds.
    pub task: f64,
    /// Its bound.
    pub task_bound: Beside,
    /// Worst run of the victim in microseconds.
    pub victim: f64,
    /// Its bound.
    pub victim_bound: Beside,
    /// The hogs.
    pub hogs: Vec<Hog>,
}

/// Runs the experiment.
pub fn run(progress: &dyn Progress) -> Result<Vec<Regulation>, Error> {
    let (result, seen) = counted("m3/regulation", &[], &["alone"], progress)?;
    let alone = beside::work(&result, &seen, "alone", &[VICTIM])?;
    let ticks = result.ticks_per_second as f64 / 1e6;
    let mut all = Vec::new();
    for (variant, seen) in result.variants.iter().zip(&seen) {
        let worst = |app: &str| {
            let mut spans = variant.spans.iter();
            let span = spans.find(|span| span.application == app).ok_or_else(|| {
                Error::Machine(format!(
                    "m3/regulation: variant {} measured nothing of {app}",
                    variant.name
                ))
            })?;
            Ok::<_, Error>(latencies(&seen.system, app, &result, span).1)
        };
        all.push(Regulation {
            variant: variant.name.clone(),
            about: seen.system.variant_about.clone().unwrap_or_default(),
            task: worst(TASK)?,
            task_bound: response(&seen.system),
            victim: worst(VICTIM)?,
            victim_bound: beside::scaled(beside::disturbed(&seen.system, &alone), ticks),
            hogs: hogs(seen, variant, &result),
        });
    }
    Ok(all)
}

/// The response time of the task by the admission test.
fn response(system: &System) -> Beside {
    let tiles = admission::tiles(system).unwrap_or_default();
    let mut all = tiles.iter().flat_map(|tile| &tile.reservations);
    match all.find(|one| one.app == TASK).and_then(|one| one.response) {
        Some(response) => Beside::AtMost(response as f64 / 1000.0),
        None => Beside::None("the admission test finds no response time".to_owned()),
    }
}

fn hogs(seen: &Seen, variant: &VariantResult, result: &RunResult) -> Vec<Hog> {
    let apps = seen.system.apps.iter();
    let hogs = apps.filter(|app| app.background && app.name.starts_with("hog"));
    hogs.map(|app| {
        let own = variant
            .requests
            .iter()
            .filter(|request| request.application == app.name);
        let lines =
            own.filter(|request| matches!(request.kind.as_str(), "cache miss" | "write-back"));
        let bytes = lines.map(|request| request.count * LINE).sum();
        let bound = match app.limit {
            Some(limit) => {
                let time = u128::from(variant.ticks);
                let refilled =
                    u128::from(limit.noc.0) * time / u128::from(result.ticks_per_second.max(1));
                Beside::AtMost(refilled as f64 + (limit.burst.0 + LINE) as f64)
            }
            None => Beside::None("it has no limit".to_owned()),
        };
        Hog {
            name: app.name.clone(),
            tile: app.tile,
            limit: app.limit.map(|limit| limit.noc.0),
            bytes,
            bound,
        }
    })
    .collect()
}

/// The claims.
pub fn claims(all: &[Regulation]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let Some(alone) = all.first() else {
        return claims;
    };
    let mut claim = |what: String, held: bool| claims.push(Claim::new(what, held));
    for one in all {
        let factor = one.victim / alone.victim.max(1e-9);
        let limited = one.hogs.iter().all(|hog| hog.limit.is_some());
        if one.hogs.is_empty() {
        } else if limited {
            claim(
                format!(
                    "victim on another tile, {}: {factor:.3} times the worst alone, {VICTIM_KEPT} allowed",
                    one.variant
                ),
                factor <= VICTIM_KEPT,
            );
            let factor = one.task / alone.task.max(1e-9);
            claim(
                format!(
                    "task on the hogs' tile, {}: {factor:.3} times the worst alone, {TASK_KEPT} allowed",
                    one.variant
                ),
                factor <= TASK_KEPT,
            );
        } else {
            claim(
                format!(
                    "victim on another tile, {}: {factor:.3} times the worst alone, at least {VICTIM_HARMED}",
                    one.variant
                ),
                factor >= VICTIM_HARMED,
            );
        }
        for (who, worst, bound) in [
            (TASK, one.task, &one.task_bound),
            (VICTIM, one.victim, &one.victim_bound),
        ] {
            if let Some(most) = bound.most() {
                claim(
                    format!(
                        "{who}, {}: worst {worst:.2} us {} the bound of {most:.2} us",
                        one.variant,
                        relation(worst, most)
                    ),
                    worst <= most,
                );
            }
        }
        for hog in one.hogs.iter().filter(|hog| hog.limit.is_some()) {
            claim(
                format!(
                    "{}, {}: moved {} bytes, its bucket lets {} through",
                    hog.name,
                    one.variant,
                    hog.bytes,
                    hog.bound.text(0)
                ),
                hog.bound.holds(hog.bytes as f64),
            );
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn sample() -> Vec<Regulation> {
        let hog = |limit: Option<u64>, bytes| Hog {
            name: "hog-1".to_owned(),
            tile: 2,
            limit,
            bytes,
            bound: match limit {
                Some(_) => Beside::AtMost(1000.0),
                None => Beside::None("it has no limit".to_owned()),
            },
        };
        let one = |variant: &str, task, victim, hogs| Regulation {
            variant: variant.to_owned(),
            about: String::new(),
            task,
            task_bound: Beside::AtMost(500.0),
            victim,
            victim_bound: Beside::AtMost(2000.0),
            hogs,
        };
        vec![
            one("alone", 40.0, 100.0, vec![]),
            one("off", 130.0, 400.0, vec![hog(None, 90_000)]),
            one("hogs", 41.0, 100.5, vec![hog(Some(8 << 20), 1001)]),
        ]
    }

    #[test]
    fn a_bucket_that_leaks_fails_the_claim() {
        let failed: Vec<String> = claims(&sample())
            .into_iter()
            .filter(|c| !c.held)
            .map(|c| c.what)
            .collect();
        assert_eq!(
            failed,
            ["hog-1, hogs: moved 1001 bytes, its bucket lets 1000 through"]
        );
    }
}
