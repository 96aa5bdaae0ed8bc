//! Figures 4 and 5: one workload beside others, without and with regulation.
//!
//! What it deliberately does not know: what a workload does, and which slowdown is good.

use super::beside::{self, Work};
use super::figures::Figures;
use super::pipelines::chip;
use super::{SWEPT, Slowdown, WORKLOADS, Wanted, counted_of, shortened, span};
use bulkhead_report::result::RunResult;
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run::Seen;

/// Limits of the sweep in MiB/s. (The paper does not name its values; these are powers of two up to one that no longer limits.)
const LIMITS: [u64; 8] = [4, 8, 16, 32, 64, 128, 256, 512];
/// Limits on the slower platform. Its memory cannot give five tiles more, and a description that asks for more is refused.
const LIMITS_FPGA: [u64; 4] = [4, 16, 64, 256];

/// A run of an interference system, with what its measured applications did alone.
pub struct Interference {
    result: RunResult,
    seen: Vec<Seen>,
    /// By the name of the workload.
    alone: Vec<(String, Work)>,
}

/// Runs both systems of the interference experiment on a platform.
pub fn interference(
    platform: &str,
    wanted: Wanted,
    progress: &dyn Progress,
) -> Result<Vec<Interference>, Error> {
    let mut results = Vec::new();
    for (system, foregrounds, applications) in [
        (
            "m3/interference",
            &["compute", "accesses", "transfers"][..],
            &["foreground"][..],
        ),
        (
            "m3/interference-messages",
            &["messages"][..],
            &["foreground", "foreground-sink"][..],
        ),
    ] {
        let mut overrides = vec![format!("@platform={platform}")];
        for application in applications {
            overrides.extend(shortened(wanted, 100, application));
        }
        let mut variants = Vec::new();
        for foreground in foregrounds {
            variants.push((*foreground).to_owned());
            for background in WORKLOADS {
                if wanted.figure4 {
                    variants.push(format!("{foreground}-{background}"));
                }
                if wanted.figure5 {
                    variants.push(format!("{foreground}-{background}-regulated"));
                }
            }
        }
        let (result, seen) = counted_of(system, &overrides, &variants, foregrounds, progress)?;
        let mut alone = Vec::new();
        for foreground in foregrounds {
            let work = beside::work(&result, &seen, foreground, applications)?;
            alone.push(((*foreground).to_owned(), work));
        }
        results.push(Interference {
            result,
            seen,
            alone,
        });
    }
    Ok(results)
}

/// The run that measured a workload alone.
fn measured<'a>(results: &'a [Interference], foreground: &str) -> Result<&'a Interference, Error> {
    let mut all = results.iter();
    let found = all.find(|one| one.alone.iter().any(|(name, _)| name == foreground));
    found.ok_or_else(|| Error::Machine(format!("{foreground} was not run")))
}

/// The slowdowns of all pairs without a limit, or with the one of the description.
pub fn slowdowns(
    results: &[Interference],
    limit: Option<u64>,
    figures: &Figures,
) -> Result<Vec<Slowdown>, Error> {
    let mut all = Vec::new();
    for foreground in WORKLOADS {
        let alone = measured(results, foreground)?;
        for background in WORKLOADS {
            let ending = if limit.is_some() { "-regulated" } else { "" };
            let variant = format!("{foreground}-{background}{ending}");
            let beside = (&alone.result, alone.seen.as_slice());
            let mut one = slowdown(alone, beside, foreground, background, &variant)?;
            one.limit = limit;
            if limit.is_none() {
                one.published = figures.slowdown(chip(&one.platform), foreground, background);
            }
            all.push(one);
        }
    }
    Ok(all)
}

fn slowdown(
    alone: &Interference,
    (beside, seen): (&RunResult, &[Seen]),
    foreground: &str,
    background: &str,
    variant: &str,
) -> Result<Slowdown, Error> {
    let quiet = span(&alone.result, foreground, "foreground")?.latency.max;
    let disturbed = span(beside, variant, "foreground")?;
    let loud = disturbed.latency.max;
    let longer = disturbed.samples.iter().filter(|one| one.latency > quiet);
    let place = beside.variants.iter().position(|one| one.name == variant);
    let system = place.and_then(|place| Some(&seen.get(place)?.system));
    let work = alone.alone.iter().find(|(name, _)| name == foreground);
    let bound = match (system, work) {
        (Some(system), Some((_, work))) => beside::disturbed(system, work),
        _ => Err("nothing was measured alone".to_owned()),
    };
    Ok(Slowdown {
        bound: beside::scaled(bound, quiet.max(1) as f64),
        platform: beside.platform.clone(),
        foreground: foreground.to_owned(),
        background: background.to_owned(),
        limit: None,
        slowdown: loud as f64 / quiet.max(1) as f64,
        worst: beside.cycles(loud),
        alone: alone.result.cycles(quiet),
        longer: longer.count(),
        published: None,
    })
}

/// The slowdowns of memory accesses over the limit of the background.
pub fn sweep(
    platform: &str,
    base: &[Interference],
    wanted: Wanted,
    progress: &dyn Progress,
) -> Result<Vec<Slowdown>, Error> {
    let alone = measured(base, "accesses")?;
    let mut all = Vec::new();
    let limits = match chip(platform) {
        "tiled-star" => LIMITS_FPGA.as_slice(),
        _ => LIMITS.as_slice(),
    };
    for &limit in limits {
        let mut overrides = vec![
            format!("@platform={platform}"),
            format!("background/*/limit@noc={limit}MiB/s"),
        ];
        overrides.extend(shortened(wanted, 100, "foreground"));
        let variants = SWEPT
            .iter()
            .map(|background| format!("accesses-{background}-regulated"))
            .collect::<Vec<String>>();
        let (result, seen) = counted_of("m3/interference", &overrides, &variants, &[], progress)?;
        for background in SWEPT {
            let variant = format!("accesses-{background}-regulated");
            let mut one = slowdown(alone, (&result, &seen), "accesses", background, &variant)?;
            one.limit = Some(limit);
            all.push(one);
        }
    }
    Ok(all)
}
