//! What must hold of the figures.
//!
//! Why it exists: figures of two pipelines lie beside the paper's, and not all that is claimed of one is claimed of the other. Of platforms
//! in order, everything is claimed that always was. Of those out of order, what the paper itself states, and nothing that is ours
//! (`docs/papers/m3.md` has the list, which was fixed before the first run). What it deliberately does not know: how a figure was measured.

use super::pipelines::{chip, is_out_of_order};
use super::{
    Claim, Figures, Reproduced, Slowdown, attacks, nearer, priorities, regulation, waiting,
};
use bulkhead_report::verdict::relation;

/// The maximum cost of a regulated background on a platform for which the paper states nothing: our value, not the paper's. Eight megabytes
/// per second from each of many tiles are a greater share of what a slow memory path provides.
const REGULATED_ELSEWHERE: f64 = 1.02;
/// How far a steady round trip may be from the paper's.
const ROUND_TRIP_TOLERANCE: f64 = 0.25;

/// Everything that is claimed of these figures.
pub fn claims(all: &Reproduced, figures: &Figures) -> Vec<Claim> {
    let mut claims = Vec::new();
    for one in &all.round_trips {
        if let Some(published) = &one.published {
            let off = one.steady.mean as f64 / published.steady as f64 - 1.0;
            let what = format!(
                "round trip on {}: {} cycles, {:+.0} % of the paper's {} (25 % allowed)",
                one.platform,
                one.steady.mean,
                off * 100.0,
                published.steady
            );
            claims.push(Claim {
                of: Some(format!("round-trip/{}/steady", one.platform)),
                ..Claim::new(what, off.abs() <= ROUND_TRIP_TOLERANCE)
            });
        }
        if let Some(most) = one.bound.most() {
            let what = format!(
                "round trip on {}: worst {} cycles {} the bound of {most:.0}",
                one.platform,
                one.all.max,
                relation(one.all.max as f64, most)
            );
            claims.push(Claim::new(what, one.all.max as f64 <= most));
        }
    }
    for one in all
        .unregulated
        .iter()
        .filter(|one| one.foreground == "compute")
    {
        let disturbed = match one.longer {
            0 => String::new(),
            runs => format!(
                " (runs that are longer: {runs}; the worst takes {} cycles, {} alone)",
                one.worst, one.alone
            ),
        };
        claims.push(Claim {
            of: Some(format!("computation/{}/{}", one.platform, one.background)),
            ..Claim::new(
                format!(
                    "computation beside {} on {} is not disturbed by a cycle{disturbed}",
                    one.background, one.platform
                ),
                one.worst == one.alone,
            )
        });
    }
    let mut claim = |what: String, held: bool| claims.push(Claim::new(what, held));
    for one in &all.unregulated {
        if one.foreground == "accesses" && one.background == "transfers" {
            claim(
                format!(
                    "memory accesses beside memory transfers on {} are clearly disturbed: {:.2} times",
                    one.platform, one.slowdown
                ),
                one.slowdown >= 1.5,
            );
        }
    }
    // One claim per figure, not one per number.
    let within = |list: &[Slowdown]| {
        let mut beyond = list.iter().filter(|one| !one.bound.holds(one.slowdown));
        let bounded = list.iter().filter(|one| one.bound.most().is_some()).count();
        (
            bounded,
            beyond
                .next()
                .map(|one| format!("{} beside {}", one.foreground, one.background)),
        )
    };
    for (name, list) in [
        ("Figure 4", &all.unregulated),
        ("Figure 5, left", &all.regulated),
        ("Figure 5, right", &all.sweep),
    ] {
        let (bounded, beyond) = within(list);
        if bounded > 0 {
            claim(
                format!(
                    "{name}: {bounded} of {} runs have a bound, and none exceeds it{}",
                    list.len(),
                    beyond
                        .as_ref()
                        .map_or(String::new(), |who| format!(" but {who}"))
                ),
                beyond.is_none(),
            );
        }
    }
    for one in &all.regulated {
        let allowed = if chip(&one.platform) == figures.regulated.platform {
            figures.regulated.slowdown_at_most
        } else if is_out_of_order(&one.platform) {
            // Ours, not the paper's.
            continue;
        } else {
            REGULATED_ELSEWHERE
        };
        claims.push(Claim {
            of: Some(format!(
                "regulated/{}/{}/{}",
                one.platform, one.foreground, one.background
            )),
            ..Claim::new(
                format!(
                    "{} beside {} limited to {} MiB/s on {}: {:.4} times, {allowed} allowed",
                    one.foreground,
                    one.background,
                    figures.regulated.limit_mib_per_second,
                    one.platform,
                    one.slowdown
                ),
                one.slowdown <= allowed,
            )
        });
    }
    // Printed for both pipelines, and claimed only of the paper's: out of order.
    for one in nearer::orderings(all) {
        if one.out_of_order {
            claims.push(Claim {
                of: Some(format!("ordering/{}", one.name)),
                ..Claim::new(
                    format!("out of order, {}: {}", one.what, one.ours),
                    one.held,
                )
            });
        }
    }
    let figure = &figures.priorities;
    claims.extend(priorities::claims(
        &all.priorities,
        figure.service_ms * 1000.0,
        figure.high_worst_ms * 1000.0,
    ));
    claims.extend(waiting::claims(&all.waiting));
    claims.extend(attacks::claims(&all.attacks));
    claims.extend(regulation::claims(&all.regulation));
    claims
}
