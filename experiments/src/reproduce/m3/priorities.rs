//! Figure 3: a server with a receive gate for each priority.
//!
//! What it deliberately does not know: how the server chooses; it evaluates what clients saw.

use super::beside::{self, Beside};
use super::figures::PrioritiesFigure;
use super::pipelines::{ALL, on};
use super::{Claim, Wanted, counted, span};
use bulkhead_analysis::server::{self, Terms};
use bulkhead_report::result::RunResult;
use bulkhead_report::verdict::relation;
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run::Seen;
use serde::Serialize;

/// Maximum number of clients; all tiles are then in use.
pub const CLIENTS: u64 = 6;

/// Worst request latencies with this many clients, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Priorities {
    /// Platform.
    pub platform: String,
    /// Clients.
    pub clients: u64,
    /// The worst of all clients, without priorities.
    pub plain: f64,
    /// The worst of the client with high priority.
    pub high: f64,
    /// The worst of the clients with low priority; `None` with a single client.
    pub low: Option<f64>,
    /// The worst without priorities in the paper, in milliseconds.
    pub published: f64,
    /// Bound without priorities.
    pub plain_bound: Beside,
    /// Bound of the client with high priority.
    pub high_bound: Beside,
    /// Bound of the clients with low priority.
    pub low_bound: Beside,
}

/// Bounds of a client's request at the high and at the low gate. Alone, it takes what was measured. Beside others, each request
/// takes that plus the waits of all its transactions for others, and waits for other requests in the server's order.
fn bounds(
    result: &RunResult,
    seen: &[Seen],
    variant: &str,
    alone: &beside::Work,
) -> Result<[Beside; 2], Error> {
    let place = result.variants.iter().position(|one| one.name == variant);
    let system = place.and_then(|place| Some(&seen.get(place)?.system));
    let system = system.ok_or_else(|| Error::Machine(format!("{variant} was not examined")))?;
    let request = match beside::disturbed(system, alone) {
        Ok(request) => request,
        Err(why) => return Ok([Beside::None(why.clone()), Beside::None(why)]),
    };
    let gates: Vec<Terms> = ["high", "low"]
        .iter()
        .map(|name| {
            let server = system.apps.iter().position(|app| app.name == "server");
            let place = server.and_then(|server| {
                let mut gates = system.apps[server].rgates.iter();
                Some((server, gates.position(|gate| gate.name == *name)?))
            });
            let gates = system.apps.iter().flat_map(|app| &app.sgates);
            let clients = gates.filter(|gate| Some((gate.to, gate.gate)) == place);
            Terms {
                slots: place.map_or(0, |(app, gate)| system.apps[app].rgates[gate].slots.into()),
                clients: clients.count() as u64,
                limit: Some(request),
                budget: None,
            }
        })
        .collect();
    Ok([0, 1].map(|own| match server::waiting(&gates, own, request) {
        Some(waiting) => Beside::AtMost(result.microseconds(request + waiting)),
        None => Beside::None(
            "a client of high priority that sends requests without a pause can starve one of low priority".to_owned(),
        ),
    }))
}

/// The paper's chip.
const CHIP: &str = "tiled-star";

/// Runs the experiment on each platform of the paper's chip.
pub fn run(
    figure: &PrioritiesFigure,
    wanted: Wanted,
    progress: &dyn Progress,
) -> Result<Vec<Priorities>, Error> {
    let mut all = Vec::new();
    for platform in wanted.pipelines.of(CHIP) {
        all.extend(on_platform(platform, figure, wanted, progress)?);
    }
    Ok(all)
}

fn on_platform(
    platform: &str,
    figure: &PrioritiesFigure,
    wanted: Wanted,
    progress: &dyn Progress,
) -> Result<Vec<Priorities>, Error> {
    let mut overrides = vec![format!("@platform={platform}")];
    if wanted.quick {
        for client in 1..=CLIENTS {
            overrides.push(format!("client-{client}/argument[runs]@value=200"));
        }
    }
    let (result, seen) = counted("m3/priorities", &overrides, &["plain-1"], progress)?;
    let alone = beside::work(&result, &seen, "plain-1", &["client-1", "server"])?;
    let worst = |variant: &str, clients: std::ops::RangeInclusive<u64>| {
        let mut worst: Option<u64> = None;
        for client in clients {
            let span = span(&result, variant, &format!("client-{client}"))?;
            worst = worst.max(Some(span.latency.max));
        }
        Ok::<_, Error>(worst.map(|ticks| result.microseconds(ticks)))
    };
    (1..=CLIENTS)
        .map(|clients| {
            let prioritised = format!("priorities-{clients}");
            let [_, plain_bound] = bounds(&result, &seen, &format!("plain-{clients}"), &alone)?;
            let [high_bound, low_bound] = bounds(&result, &seen, &prioritised, &alone)?;
            Ok(Priorities {
                platform: platform.to_owned(),
                clients,
                published: clients as f64 * figure.service_ms,
                plain: worst(&format!("plain-{clients}"), 1..=clients)?.unwrap_or_default(),
                high: worst(&prioritised, 1..=1)?.unwrap_or_default(),
                low: worst(&prioritised, 2..=clients)?,
                plain_bound,
                high_bound,
                low_bound,
            })
        })
        .collect()
}

/// The claims of the paper's text about the figure, with its service time and its limit for the high-priority client. As in the paper, the
/// service time covers everything that the server does for a request, so a request already begun and the client's own take 2 ms.
pub fn claims(all: &[Priorities], service: f64, high: f64) -> Vec<Claim> {
    let mut claims = Vec::new();
    for one in all {
        let expected = one.clients as f64 * service;
        let off = one.plain / expected - 1.0;
        claims.push(Claim {
            of: None,
            what: format!(
                "{} clients without priorities{}: {:.3} ms at worst, {} ms in the paper (1 % allowed)",
                one.clients,
                on(&one.platform),
                one.plain / 1000.0,
                expected / 1000.0
            ),
            held: off.abs() <= 0.01,
        });
        claims.push(Claim {
            of: None,
            what: format!(
                "high priority beside {} others{}: {:.3} ms at worst, at most {} ms in the paper",
                one.clients - 1,
                on(&one.platform),
                one.high / 1000.0,
                high / 1000.0
            ),
            held: one.high <= high,
        });
    }
    for one in all {
        let low = one.low.unwrap_or_default();
        let series = [
            ("no priority", one.plain, &one.plain_bound),
            ("high priority", one.high, &one.high_bound),
            ("low priority", low, &one.low_bound),
        ];
        for (name, worst, bound) in series {
            if let Some(most) = bound.most() {
                claims.push(Claim {
                    of: None,
                    what: format!(
                        "{} clients, {name}{}: {:.3} ms at worst {} the bound of {:.3} ms",
                        one.clients,
                        on(&one.platform),
                        worst / 1000.0,
                        relation(worst, most),
                        most / 1000.0
                    ),
                    held: worst <= most,
                });
            }
        }
    }
    for platform in ALL {
        let here = all.iter().filter(|one| one.platform == platform);
        let lows: Vec<f64> = here.filter_map(|one| one.low).collect();
        if lows.len() > 1 {
            claims.push(Claim {
                of: None,
                what: format!(
                    "low priority{}: every other client makes the worst latency longer",
                    on(platform)
                ),
                held: lows.is_sorted_by(|a, b| a < b),
            });
        }
    }
    claims
}
