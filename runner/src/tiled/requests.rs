//! Bounds of single requests of an application, by the names that users read.
//!
//! Why it exists: `run`, `check` and `audit` say the same about the same request. What it deliberately does not know: how a bound
//! is computed (`bulkhead_analysis`), and what was observed.

use crate::collect::kind;
use crate::tiled::bounds::message_bytes;
use bulkhead_analysis::communication as analysis;
use bulkhead_analysis::communication::{Kind, SystemBounds, SystemError};
use bulkhead_machine::noc::Transaction;
use bulkhead_model::System;
use bulkhead_report::result::{Bound, RequestResult};

/// Transactions with known bounds, by the machine's and the analysis' names.
const ANALYSED: [(Transaction, Kind); 4] = [
    (Transaction::CacheRead, Kind::LineRead),
    (Transaction::CacheWrite, Kind::LineWrite),
    (Transaction::DmaRead, Kind::DmaRead),
    (Transaction::DmaWrite, Kind::DmaWrite),
];

/// A bound over the path and, for comparison, over the lumped link.
pub type Pair = (Bound, Option<Bound>);

/// Bounds of a kind of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The bound of the request, from when its tokens are available.
    pub bound: Bound,
    /// The same over the lumped link.
    pub lumped: Option<Bound>,
    /// The longest preceding wait for tokens of the application's own limit, in ticks; `None` without a limit.
    pub tokens: Option<u64>,
}

/// In the form of a result, with the path's `ticks`.
pub fn converted(bound: &analysis::Bound, ticks: u64, covers: &str) -> Pair {
    let path = Bound {
        ticks,
        method: bound.method.source().to_owned(),
        covers: covers.to_owned(),
    };
    let lumped = bound.lumped.map(|ticks| Bound {
        ticks,
        method: analysis::Method::LumpedLink.source().to_owned(),
        covers: format!("{covers}, with network and memory taken as one link"),
    });
    (path, lumped)
}

/// The bound of a kind of request of an application.
///
/// # Errors
/// Why there is none.
pub fn of_request(
    system: &System,
    bounds: &SystemBounds<'_>,
    app: usize,
    wanted: &str,
) -> Result<Found, String> {
    let limited = system.apps.get(app).is_some_and(|app| app.limit.is_some());
    let budget = match limited {
        true => ", from the moment at which its own limit admits it",
        false => "",
    };
    let shown = |bound: &analysis::Bound, covers: &str| {
        let (path, lumped) = converted(bound, bound.path, covers);
        Found {
            bound: path,
            lumped,
            tokens: limited.then_some(bound.own_bucket),
        }
    };
    let found = ANALYSED
        .into_iter()
        .find(|(transaction, _)| kind(*transaction) == Some(wanted));
    if let Some((_, analysed)) = found {
        let bound = bounds.transaction(app, analysed);
        let bound = bound.map_err(|error| match error {
            SystemError::NoRight { .. } => {
                "the application obtained the right at run time; with a gate in the description, it would be judged"
                    .to_owned()
            }
            other => other.to_string(),
        })?;
        let covers = format!("one request, from the cache or unit to its answer{budget}");
        return Ok(shown(&bound, &covers));
    }
    if kind(Transaction::Message) != Some(wanted) {
        return Err("there is no analysis for this kind of request".to_owned());
    }
    let covers = format!(
        "one packet of a message or reply, from the sender's memory to the acknowledgement: the longest of those to applications that it \
         has a gate to or gets messages from, and to the kernel{budget}"
    );
    let text = |error: SystemError| error.to_string();
    let mut worst = bounds.call(app).map_err(text)?;
    for to in partners(system, app) {
        let payload = message_bytes(system, app, to).max(message_bytes(system, to, app));
        let bound = bounds.message(app, to, payload).map_err(text)?;
        if bound.path > worst.path {
            worst = bound;
        }
    }
    Ok(shown(&worst, &covers))
}

/// Applications that an application exchanges messages with.
fn partners(system: &System, app: usize) -> Vec<usize> {
    let apps = system.apps.iter().enumerate();
    let mut all: Vec<usize> = apps
        .flat_map(|(from, sender)| sender.sgates.iter().map(move |gate| (from, gate.to)))
        .filter_map(|(from, to)| match app {
            _ if from == app => Some(to),
            _ if to == app => Some(from),
            _ => None,
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Adds the bounds of a system to its requests.
pub fn add(system: &System, requests: &mut [RequestResult]) {
    let bounds = SystemBounds::new(system, &[]).map_err(|error| error.to_string());
    for request in requests {
        let mut apps = system.apps.iter();
        let Some(app) = apps.position(|app| app.name == request.application) else {
            continue;
        };
        let found = bounds.as_ref().map_err(String::clone);
        match found.and_then(|bounds| of_request(system, bounds, app, &request.kind)) {
            Ok(found) => {
                request.bound = Some(found.bound);
                request.lumped = found.lumped;
                request.tokens = found.tokens;
            }
            Err(why) => request.unbounded = Some(why),
        }
    }
}

/// Bounds of every request that an application may make, without observations: what `check` prints.
pub fn of_system(system: &System) -> Vec<RequestResult> {
    let mut all = Vec::new();
    for app in &system.apps {
        let kinds = ANALYSED.iter().map(|(transaction, _)| *transaction);
        for transaction in kinds.chain([Transaction::Message]) {
            all.push(RequestResult {
                application: app.name.clone(),
                kind: kind(transaction).unwrap_or_default().to_owned(),
                to: crate::collect::target(app, transaction),
                count: 0,
                worst: 0,
                bound: None,
                lumped: None,
                tokens: None,
                unbounded: None,
            });
        }
    }
    add(system, &mut all);
    all.retain(|request| request.bound.is_some());
    all
}
