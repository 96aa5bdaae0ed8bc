//! Denial of service, which the paper names but does not measure: each kind without attackers, with our defence off, and with it on.
//!
//! What it deliberately does not know: how an attack or a defence works; the catalog and the programs define that. "Off" is always a
//! configuration that a description can ask for.

use super::beside::{self, Beside};
use super::{Claim, SHORT_SLICE, SLICE, counted_in};
use bulkhead_analysis::communication::SystemBounds;
use bulkhead_analysis::{kernel, server};
use bulkhead_model::System;
use bulkhead_report::result::{RunResult, Sample, SpanResult};
use bulkhead_report::verdict::relation;
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run::Seen;
use bulkhead_runner::tiled::admission;
use serde::Serialize;

/// The result that a variant must show.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// Nothing: the others are compared with it.
    Baseline,
    /// The attack succeeds: the worst latency is at least this many times the latency alone, or requests are refused.
    Harm(f64),
    /// The attack succeeds: at least half of the requests are refused or not answered.
    Lost,
    /// As many requests are served as alone, and the worst takes at most this many times the latency alone.
    Kept(f64),
}

/// A kind of attack: a system of the catalog, its victim, and what its variants must show. The first variant is without attackers.
struct Kind {
    name: &'static str,
    title: &'static str,
    system: &'static str,
    victim: &'static str,
    served_by: ServedBy,
    variants: &'static [(&'static str, Expected)],
}

/// The part that serves the work by which a victim is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServedBy {
    /// A server.
    Server(&'static str),
    /// The kernel.
    Kernel,
    /// Its own tile.
    Tile,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "buffers",
        title: "exhaustion of a receive buffer",
        system: "m3/attack-buffers",
        victim: "client",
        served_by: ServedBy::Server("server"),
        variants: &[
            ("alone", Expected::Baseline),
            // A call waits until there is room, so requests are late instead of refused.
            ("off", Expected::Harm(10.0)),
            ("credits", Expected::Kept(4.5)),
            ("priorities", Expected::Kept(2.25)),
        ],
    },
    Kind {
        name: "endpoints",
        title: "exhaustion of endpoints",
        system: "m3/attack-endpoints",
        victim: "tenant",
        served_by: ServedBy::Kernel,
        variants: &[
            ("alone", Expected::Baseline),
            ("off", Expected::Lost),
            ("quotas", Expected::Kept(3.0)),
        ],
    },
    Kind {
        name: "kernel-memory",
        title: "exhaustion of kernel memory",
        system: "m3/attack-kernel-memory",
        victim: "tenant",
        served_by: ServedBy::Kernel,
        variants: &[
            ("alone", Expected::Baseline),
            ("off", Expected::Lost),
            ("purses", Expected::Kept(2.0)),
        ],
    },
    Kind {
        name: "storm",
        title: "interrupt storms",
        system: "m3/attack-storm",
        victim: "task",
        served_by: ServedBy::Tile,
        variants: &[
            ("alone", Expected::Baseline),
            // Whether or not messages are counted, the unit lets no message for the less urgent activity interrupt.
            ("off", Expected::Kept(1.02)),
            ("credits", Expected::Kept(1.02)),
            ("interrupt-hart", Expected::Kept(1.001)),
        ],
    },
    Kind {
        name: "slow",
        title: "slow requests to a shared server",
        system: "m3/attack-slow",
        victim: "client",
        served_by: ServedBy::Server("server"),
        variants: &[
            ("alone", Expected::Baseline),
            ("off", Expected::Harm(10.0)),
            ("gates", Expected::Kept(30.0)),
            ("limit", Expected::Kept(2.25)),
            ("budgets", Expected::Kept(4.5)),
        ],
    },
];

/// The results of a victim in a variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attack {
    /// Kind of attack.
    pub kind: String,
    /// The same in words.
    pub title: String,
    /// Variant.
    pub variant: String,
    /// What it shows.
    pub about: String,
    /// Requests or jobs that were done.
    pub served: u64,
    /// Requests that were refused. If the run ended before the victim could report them: the unserved requests before the last served
    /// one.
    pub refused: u64,
    /// Requests that were not answered in time.
    pub unanswered: u64,
    /// The victim ended before the run did, so it made all its requests.
    pub finished: bool,
    /// Median latency in microseconds; `None` if nothing was served.
    pub median: Option<f64>,
    /// Worst latency in microseconds; `None` if nothing was served.
    pub worst: Option<f64>,
    /// Bound of the worst latency in microseconds.
    pub bound: Beside,
    /// The result that it must show; factors relate to the worst latency alone.
    pub expected: Expected,
}

/// Runs all kinds.
pub fn run(progress: &dyn Progress) -> Result<Vec<Attack>, Error> {
    let mut all = Vec::new();
    for kind in KINDS {
        let alone = kind.variants[0].0;
        let slice = match kind.served_by {
            ServedBy::Kernel => SHORT_SLICE,
            _ => SLICE,
        };
        let (result, seen) = counted_in(slice, kind.system, (&[], &[]), &[alone], progress)?;
        all.extend(of_kind(kind, &result, &seen)?);
    }
    Ok(all)
}

fn of_kind(kind: &Kind, result: &RunResult, seen: &[Seen]) -> Result<Vec<Attack>, Error> {
    let server = match kind.served_by {
        ServedBy::Server(server) => Some(server),
        ServedBy::Kernel | ServedBy::Tile => None,
    };
    let members: Vec<&str> = std::iter::once(kind.victim).chain(server).collect();
    let alone = beside::work(result, seen, kind.variants[0].0, &members)?;
    let work = kernel_work(kind, result, seen);
    let mut all = Vec::new();
    for (name, expected) in kind.variants {
        let place = result
            .variants
            .iter()
            .position(|variant| variant.name == *name);
        let found = place.and_then(|place| Some((&result.variants[place], seen.get(place)?)));
        let (variant, seen) = found.ok_or_else(|| {
            Error::Machine(format!("{}: there is no variant {name}", kind.system))
        })?;
        let span = variant
            .spans
            .iter()
            .find(|span| span.application == kind.victim);
        let counted: Vec<u64> = variant
            .checks
            .iter()
            .filter(|check| check.application == kind.victim)
            .map(|check| check.value)
            .collect();
        let samples = span.map_or(&[][..], |span| span.samples.as_slice());
        let seen_served = samples.len() as u64;
        let (served, refused, unanswered, finished) = match (counted.as_slice(), kind.served_by) {
            ([served, refused, unanswered], _) => (*served, *refused, *unanswered, true),
            // A periodic task counts no requests: its jobs are its spans.
            (_, ServedBy::Tile) => (seen_served, 0, 0, true),
            _ => (seen_served, skipped(samples), 0, false),
        };
        let latencies = span.map(|span| latencies(&seen.system, kind.victim, result, span));
        let bound = match kind.served_by {
            ServedBy::Server(server) => {
                at_server(&seen.system, kind.victim, server, result, &alone)
            }
            ServedBy::Tile => on_tile(&seen.system, kind.victim),
            ServedBy::Kernel => match at_kernel(&seen.system, kind.victim, result, &alone, work) {
                Ok(most) => Beside::AtMost(most),
                Err(why) => Beside::None(why),
            },
        };
        all.push(Attack {
            kind: kind.name.to_owned(),
            title: kind.title.to_owned(),
            variant: (*name).to_owned(),
            about: seen.system.variant_about.clone().unwrap_or_default(),
            served,
            refused,
            unanswered,
            finished,
            median: latencies.as_ref().map(|l| l.0),
            worst: latencies.as_ref().map(|l| l.1),
            bound,
            expected: *expected,
        });
    }
    Ok(all)
}

/// Median and worst latency in microseconds. Those of a periodic task count from the release, a multiple of the period, not from the
/// first instruction after it.
pub fn latencies(system: &System, app: &str, result: &RunResult, span: &SpanResult) -> (f64, f64) {
    let task = system.app(app).and_then(|app| app.task.as_ref());
    let period = task.map_or(0, |task| {
        bulkhead_runner::collect::ticks(task.period, result.ticks_per_second)
    });
    let mut all: Vec<u64> = span
        .samples
        .iter()
        .map(|sample| sample.latency + sample.begin.checked_rem(period).unwrap_or(0))
        .collect();
    all.sort_unstable();
    let at = |index: usize| {
        all.get(index)
            .map_or(0.0, |ticks| result.microseconds(*ticks))
    };
    (
        at(all.len().saturating_sub(1) / 2),
        at(all.len().saturating_sub(1)),
    )
}

/// The bound of a request at a server: the worst one alone, the waits of its transactions for others, and the requests of others that
/// the server takes first.
fn at_server(
    system: &System,
    client: &str,
    server: &str,
    result: &RunResult,
    alone: &beside::Work,
) -> Beside {
    let find = |name: &str| system.apps.iter().position(|app| app.name == name);
    let (Some(client), Some(server)) = (find(client), find(server)) else {
        return Beside::None("the server is not in the system".to_owned());
    };
    let gate = system.apps[client]
        .sgates
        .iter()
        .find(|gate| gate.to == server);
    let own = gate.and_then(|gate| {
        let name = &system.apps[server].rgates.get(gate.gate)?.name;
        name.strip_prefix("priority-")?.parse::<usize>().ok()
    });
    let terms = server::terms(system, server);
    let Some(own) = own.filter(|own| *own < terms.len()) else {
        return Beside::None("the server has no gate for each priority".to_owned());
    };
    let shared = system.apps.iter().flat_map(|app| &app.sgates);
    let shared = gate.is_some_and(|gate| {
        let mut others = shared.filter(|other| (other.to, other.gate) == (server, gate.gate));
        others.any(|other| other.credits == 0)
    });
    if shared {
        return Beside::None(
            "without credits, the buffer may be full whenever a request arrives".to_owned(),
        );
    }
    let request = (result.microseconds(alone.worst) * 1000.0) as u64;
    let Some(waiting) = server::waiting(&terms, own, request) else {
        return Beside::None(
            "without a limit, another request may take arbitrarily long".to_owned(),
        );
    };
    let ticks = result.ticks_per_second as f64 / 1e6;
    match beside::scaled(beside::disturbed(system, alone), ticks) {
        Beside::AtMost(most) => Beside::AtMost(most + waiting as f64 / 1000.0),
        none => none,
    }
}

/// Requests without a sample between the first and the last one with a sample. A victim numbers its requests, and only served requests have samples.
fn skipped(samples: &[Sample]) -> u64 {
    let numbers = || samples.iter().map(|sample| sample.number);
    match (numbers().min(), numbers().max()) {
        (Some(first), Some(last)) => last - first + 1 - samples.len() as u64,
        _ => 0,
    }
}

/// Maximum cycles of the kernel's work that began in one of the victim's spans alone, each piece counted with its maximum length.
fn kernel_work(kind: &Kind, result: &RunResult, seen: &[Seen]) -> u64 {
    let mut pairs = result.variants.iter().zip(seen);
    let alone = pairs.find(|(variant, _)| variant.name == kind.variants[0].0);
    let Some((variant, seen)) = alone else {
        return 0;
    };
    let mut spans = variant.spans.iter();
    let span = spans.find(|span| span.application == kind.victim);
    let samples = span.map(|span| span.samples.as_slice());
    let inside = |sample: &Sample| {
        let end = sample.begin + sample.latency;
        let begun = seen.work.iter();
        let begun = begun.filter(|(at, _)| (sample.begin..=end).contains(at));
        begun.map(|(_, what)| kernel::piece(*what)).sum::<u64>()
    };
    let samples = samples.unwrap_or_default().iter();
    samples.map(inside).max().unwrap_or(0)
}

/// The bound of a sequence of kernel calls, in microseconds: the worst one alone; the waits of the caller's requests, its calls and
/// the answers for others; the kernel's work at its maximum length, after one piece of lower-priority work for each call; on a
/// shared tile the others' turns, after each of which the caches may be empty; and the kernel's requests to TileMux.
fn at_kernel(
    system: &System,
    caller: &str,
    result: &RunResult,
    alone: &beside::Work,
    kernel_work: u64,
) -> Result<f64, String> {
    let mut apps = system.apps.iter();
    let app = apps.position(|app| app.name == caller);
    let app = app.ok_or("the caller is not in the system")?;
    let calls = alone.jobs.first().map_or(0, |(_, job)| job.messages);
    let kernel = kernel::calls(system, app, calls, kernel_work)?;
    let turn = kernel::turn(system, app)?;
    // It is off the hart before it begins, and while it waits for each answer.
    let away = calls + 1;
    let mut work = alone.clone();
    let nanoseconds = result.ticks_per_second as f64 / 1e9;
    work.worst += (away as f64 * turn.reload as f64 * nanoseconds).ceil() as u64;
    for (_, job) in &mut work.jobs {
        job.line_reads += away * turn.lines;
        job.line_writes += away * turn.lines;
    }
    // Neighbours do not run while it does; what they leave in progress is counted among the lines.
    let neighbours: Vec<usize> = (0..system.apps.len())
        .filter(|other| *other != app && system.apps[*other].tile == system.apps[app].tile)
        .collect();
    let network = beside::on_the_network(system, &work, &neighbours)?;
    let bounds = SystemBounds::new(system, &[]).map_err(|error| error.to_string())?;
    let answer = bounds.answer(app).map_err(|error| error.to_string())?;
    let ticks = network.saturating_add(calls.saturating_mul(answer));
    let own = (result.microseconds(ticks) * 1000.0).ceil() as u64;
    let all = kernel::beside_requests(system, app, own + kernel + away * turn.wait)?;
    Ok(all as f64 / 1000.0)
}

/// The bound of a periodic task on a shared tile: its response time by the admission test.
fn on_tile(system: &System, app: &str) -> Beside {
    let tiles = match admission::judge(system) {
        Ok(tiles) => tiles,
        Err(error) => return Beside::None(error.to_string()),
    };
    let mut all = tiles.iter().flat_map(|tile| &tile.reservations);
    let response = all.find(|one| one.app == app).and_then(|one| one.response);
    match response {
        Some(response) => Beside::AtMost(response as f64 / 1000.0),
        None => Beside::None("the task has no quota, or wants more than the tile has".to_owned()),
    }
}

/// The claims about all attacks.
pub fn claims(all: &[Attack]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for one in all {
        let mut alone = all.iter();
        let alone =
            alone.find(|other| other.kind == one.kind && other.expected == Expected::Baseline);
        let Some((alone, served)) = alone.and_then(|alone| Some((alone.worst?, alone.served)))
        else {
            continue;
        };
        let lost = one.refused + one.unanswered;
        let factor = one.worst.map(|worst| worst / alone.max(1e-9));
        let times = factor.map_or("none served".to_owned(), |factor| {
            format!("{factor:.3} times the worst alone")
        });
        let end = match one.finished {
            true => "",
            false => " before the run ended",
        };
        let head = format!(
            "{}, {}: {} served, {} refused, {} not answered{end}, {times}",
            one.title, one.variant, one.served, one.refused, one.unanswered
        );
        let shown = match one.expected {
            Expected::Baseline => None,
            Expected::Harm(harm) => Some((
                format!("without the defence at least {harm} times, or requests are lost"),
                lost > 0 || factor.is_none_or(|factor| factor >= harm),
            )),
            Expected::Lost => Some((
                "without the defence at least half are lost".to_owned(),
                lost >= one.served,
            )),
            Expected::Kept(kept) => Some((
                format!("with the defence at most {kept} times, and all {served} are served"),
                lost == 0 && one.served >= served && factor.is_some_and(|factor| factor <= kept),
            )),
        };
        claims.extend(shown.map(|(what, held)| Claim {
            of: Some(format!("attack/{}/{}", one.kind, one.variant)),
            what: format!("{head}; {what}"),
            held,
        }));
        if let (Some(worst), Some(most)) = (one.worst, one.bound.most()) {
            claims.push(Claim {
                of: None,
                what: format!(
                    "{}, {}: worst {worst:.2} us {} the bound of {most:.2} us",
                    one.title,
                    one.variant,
                    relation(worst, most)
                ),
                held: worst <= most,
            });
        }
    }
    claims
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_between_those_that_were_served_are_counted() {
        let sample = |number| Sample {
            number,
            begin: 0,
            latency: 1,
        };
        assert_eq!(skipped(&[]), 0);
        assert_eq!(skipped(&[10, 11, 12].map(sample)), 0);
        assert_eq!(skipped(&[10, 13, 14, 20].map(sample)), 7);
    }
}
