//! Figure 3: a server with a receive gate for each priority.
//!
//! What it deliberately does not know: how the server chooses; it looks at what clients saw.

use super::{Claim, Wanted, run_system, span};
use crate::error::Error;
use crate::progress::Progress;
use serde::Serialize;

/// Clients at most: all tiles are taken then.
pub const CLIENTS: u64 = 6;

/// Worst request latencies with so many clients, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Priorities {
    /// Clients.
    pub clients: u64,
    /// Of all, without priorities.
    pub plain: f64,
    /// Of the client with high priority.
    pub high: f64,
    /// Of the clients with low priority; none with a single client.
    pub low: Option<f64>,
}

/// Runs the experiment.
pub fn run(wanted: Wanted, progress: &dyn Progress) -> Result<Vec<Priorities>, Error> {
    let mut overrides = Vec::new();
    if wanted.quick {
        for client in 1..=CLIENTS {
            overrides.push(format!("client-{client}/argument[runs]@value=200"));
        }
    }
    let result = run_system("m3/priorities", overrides, Vec::new(), progress)?;
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
            Ok(Priorities {
                clients,
                plain: worst(&format!("plain-{clients}"), 1..=clients)?.unwrap_or_default(),
                high: worst(&prioritised, 1..=1)?.unwrap_or_default(),
                low: worst(&prioritised, 2..=clients)?,
            })
        })
        .collect()
}

/// What the paper's text says of the figure, with its service time and what it allows the high-priority client. The server
/// here needs the service time from fetch to reply, so the way of request and reply comes on top, as for a client alone: 1 ms
/// stands for the latency of a client alone, 2 ms for twice that.
pub fn claims(all: &[Priorities], service: f64, high: f64) -> Vec<Claim> {
    let mut claims = Vec::new();
    let alone = all.first().map_or(service, |one| one.plain);
    for one in all {
        let expected = one.clients as f64 * service;
        let off = one.plain / expected - 1.0;
        claims.push(Claim {
            what: format!(
                "{} clients without priorities: {:.3} ms at worst, {} ms in the paper (1 % allowed)",
                one.clients,
                one.plain / 1000.0,
                expected / 1000.0
            ),
            held: off.abs() <= 0.01,
        });
        claims.push(Claim {
            what: format!(
                "high priority beside {} others: {:.3} ms at worst, at most {} ms in the paper; a client alone sees {:.3} ms, and twice that is allowed",
                one.clients - 1,
                one.high / 1000.0,
                high / 1000.0,
                alone / 1000.0
            ),
            held: one.high <= high / service * alone,
        });
    }
    let lows: Vec<f64> = all.iter().filter_map(|one| one.low).collect();
    if lows.len() > 1 {
        claims.push(Claim {
            what: "low priority: every other client makes the worst latency longer".to_owned(),
            held: lows.is_sorted_by(|a, b| a < b),
        });
    }
    claims
}
