//! The result of a run as data: the schema of `result.json`.
//!
//! Why it exists: the table on the screen, the report page and every user's tools read the same structure, so they cannot disagree. What
//! it deliberately does not know: where the numbers come from, and anything about the host; the file is identical, byte for byte,
//! whenever and wherever the run is repeated. Spans of time are integers in ticks (`ticks_per_second`), the exact unit of the machine;
//! `cycle_ticks` converts to cycles of the reference clock.

use crate::crash::Crash;
use crate::format::span;
use crate::placement::Placement;
use crate::verdict::{Promise, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Version of the schema; grows when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 2;

/// Result of a run of a system, all variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the system.
    pub system: String,
    /// Name of the platform.
    pub platform: String,
    /// Ticks a second.
    pub ticks_per_second: u64,
    /// Ticks per cycle of the reference clock: the harts' clock of the user tiles.
    pub cycle_ticks: u64,
    /// The inputs.
    pub provenance: Provenance,
    /// The placement, before the changes made by variants.
    #[serde(default)]
    pub placement: Placement,
    /// Variants in the order of the description.
    pub variants: Vec<VariantResult>,
    /// Additional runs, made because no variant ran a flow's applications alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<AddedRun>,
    /// The promises, and whether they held.
    pub verdict: Verdict,
    /// The same for the chip at the other end of the cable, in its own units. Its name replaces the system's, and its variants are those
    /// with which it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Box<RunResult>>,
}

/// Inputs that completely determine the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of Bulkhead.
    pub version: String,
    /// Every input file: descriptions and programs.
    pub inputs: Vec<Input>,
    /// `--set` overrides, as given.
    pub overrides: Vec<String>,
}

/// One input file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The name of a program or description, never a path of the host.
    pub name: String,
    /// SHA-256 of its contents, in hexadecimal.
    pub sha256: String,
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum End {
    /// The description's simulated time was over.
    Duration,
    /// Software wrote to the exit device.
    Exit {
        /// Its exit code.
        code: u32,
    },
    /// Nothing more could ever happen.
    Idle,
    /// A limit of cycles was reached.
    Limit,
    /// An unhandled trap.
    Trap {
        /// The place and the cause.
        what: String,
    },
}

/// A run in which only a flow's applications are active, on which the flow's bounds are based.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedRun {
    /// The flow.
    pub flow: String,
    /// Describes the run.
    pub about: String,
    /// Its worst latency there, in ticks; `None` without a sample.
    pub worst: Option<u64>,
    /// SHA-256 over the machine's statistics and observations.
    pub digest: String,
}

/// One variant of the system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantResult {
    /// Name.
    pub name: String,
    /// Simulated time at the end, in ticks.
    pub ticks: u64,
    /// Why it ended.
    pub end: End,
    /// Instructions of all harts.
    pub instructions: u64,
    /// SHA-256 over the machine's statistics and observations: equal for equal runs.
    pub digest: String,
    /// End-to-end flows.
    pub flows: Vec<FlowResult>,
    /// Measured spans of applications.
    pub spans: Vec<SpanResult>,
    /// Jobs of the applications with a `<task>`.
    pub tasks: Vec<TaskResult>,
    /// Worst latencies of requests, with their bounds.
    pub requests: Vec<RequestResult>,
    /// Which owner delayed which other owner.
    pub interference: Vec<Interference>,
    /// Activity of each tile.
    pub tiles: Vec<TileResult>,
    /// Faults, stops and other events that an engineer must know about.
    pub incidents: Vec<Incident>,
    /// Check values that applications reported (marker `Check`), in time order.
    pub checks: Vec<Check>,
    /// The traffic of the network's links, without idle links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkResult>,
    /// The use of the quotas in the description, as reported by the managers at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<QuotaUse>,
    /// The clocks of cores with timers of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockResult>,
}

/// How far a core's clock is from that of another core, which it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockResult {
    /// The core.
    pub core: u16,
    /// The core that it follows.
    pub master: u16,
    /// Counts that its kernel adds to its timer.
    pub correction: i64,
    /// When it was synchronised.
    pub synchronised: ClockError,
    /// At the end of the run.
    pub end: ClockError,
}

/// How wrong a clock is, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockError {
    /// Its actual error.
    pub error: u64,
    /// Its maximum error.
    pub bound: u64,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkEnd {
    /// The tile with this number.
    Tile(u16),
    /// The router with this number.
    Router(u16),
}

impl fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tile(number) => write!(f, "tile {number}"),
            Self::Router(number) => write!(f, "router {number}"),
        }
    }
}

/// A link of the network, in one direction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Where it begins.
    pub from: LinkEnd,
    /// Where it ends.
    pub to: LinkEnd,
    /// With split channels: 0 for reads, 1 for writes and messages.
    pub channel: u8,
    /// Ticks for which it was sending.
    pub busy: u64,
    /// Bytes that it carried, headers included, by application; the largest sender first.
    pub traffic: Vec<Traffic>,
}

/// Bytes of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Its name, or the name of another sender or requester.
    pub application: String,
    /// How many.
    pub bytes: u64,
}

/// How much of a quota was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaUse {
    /// The application, or the manager for everything below it.
    pub of: String,
    /// `endpoints`, `page-tables` (pages), `kernel-memory` (bytes).
    pub quota: String,
    /// The tile, if it is a quota on a manager's tile.
    pub tile: Option<u16>,
    /// The maximum at a time.
    pub used: u64,
    /// The bound.
    pub limit: u64,
}

/// Distribution of a latency, in ticks. Percentiles are nearest-rank: a value that was observed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of samples.
    pub count: u64,
    /// Least.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 99th percentile; shown only with enough samples ([`crate::distribution::is_known`]).
    pub p99: u64,
    /// Greatest.
    pub max: u64,
    /// Mean, rounded down.
    pub mean: u64,
    /// Standard deviation of the samples, rounded down.
    pub deviation: u64,
}

/// One sample of a flow or span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Number assigned by the software.
    pub number: u64,
    /// Begin in ticks.
    pub begin: u64,
    /// Latency in ticks.
    pub latency: u64,
}

/// A flow: from `FlowBegin` in one application to `FlowEnd` in another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// Name.
    pub name: String,
    /// Application where it begins.
    pub from: String,
    /// Application where it ends.
    pub to: String,
    /// Applications that its messages pass in between.
    pub through: Vec<String>,
    /// Deadline in ticks, if any.
    pub deadline: Option<u64>,
    /// Samples later than the deadline.
    pub misses: u64,
    /// Begun and never ended, although there was time or the application where the flow ends was gone.
    pub lost: u64,
    /// Begun and not ended, with a deadline (or a millisecond, without one) after the end of the run: neither late nor in time.
    #[serde(default)]
    pub open: u64,
    /// Begun with a number that ended more often than it began. It is unknown which end belongs to which begin, so their latencies say
    /// nothing.
    #[serde(default)]
    pub doubled: u64,
    /// Summary.
    pub latency: Distribution,
    /// Every sample.
    pub samples: Vec<Sample>,
    /// Bound: its measured worst latency alone, plus the analysed interference of all others.
    pub bound: Option<Bound>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbounded: Option<String>,
}

/// A span on one tile: from `SpanBegin` to `SpanEnd`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanResult {
    /// Application.
    pub application: String,
    /// Summary.
    pub latency: Distribution,
    /// Every sample.
    pub samples: Vec<Sample>,
}

/// Jobs of an application with a `<task>`, from its markers. A program that marks a release late hides the delay; programs using
/// `lib::task` count such jobs as late themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Application.
    pub application: String,
    /// Relative deadline in ticks.
    pub deadline: u64,
    /// Jobs that may miss it.
    pub allowed: u64,
    /// Jobs that were released.
    pub jobs: u64,
    /// Jobs that missed their deadline: late by their own account, completed later than the deadline after their release, or never
    /// completed although there was time, or because their program was gone.
    pub misses: u64,
    /// Jobs not complete at the end of the run whose deadlines come after it: neither late nor in time.
    #[serde(default)]
    pub open: u64,
    /// Periods from the first job to the end in which no job was released, if the application runs in the background and so should exist
    /// until the end. In one-shot systems: the same of a task that time releases, and that has not ended for good; a job whose deadline lies
    /// after the end is not among them.
    #[serde(default)]
    pub missing: u64,
    /// Longest time from a release to its completion in ticks; `None` if no job was completed.
    pub worst: Option<u64>,
    /// Longest time in ticks from a release to the start of its job: until the program had the hart, or until the end of the run if it never
    /// got the hart. `None` if the program marked no releases but only the starts of its jobs, and for one-shot systems (not measured there).
    #[serde(default)]
    pub begin: Option<u64>,
}

/// A bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The bound in ticks.
    pub ticks: u64,
    /// Method.
    pub method: String,
    /// Its scope and its assumptions.
    pub covers: String,
}

/// Worst observed latency of a kind of request of an application, with its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestResult {
    /// Application.
    pub application: String,
    /// Kind: cache miss, transfer, message.
    pub kind: String,
    /// The target: the memory tile, or the receiving application.
    pub to: String,
    /// Number of requests.
    pub count: u64,
    /// Worst latency in ticks.
    pub worst: u64,
    /// Bound of the path's network calculus, if the competing traffic is regulated.
    pub bound: Option<Bound>,
    /// Bound of the lumped link, for comparison.
    pub lumped: Option<Bound>,
    /// Longest wait for tokens of its own limit before such a request, in ticks, which is not part of `worst` or `bound`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unbounded: Option<String>,
}

/// Time for which one application's requests waited for another's at one kind of resource, or during which it was ready while another had
/// the processor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interference {
    /// The owner that waited.
    pub victim: String,
    /// The owner that it waited for; `refresh` and `own limit` are the hardware and its own budgets.
    pub culprit: String,
    /// The resource.
    pub resource: String,
    /// Ticks in all.
    pub ticks: u64,
}

/// Counters of a tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileResult {
    /// Number.
    pub tile: u16,
    /// Applications on it.
    pub applications: Vec<String>,
    /// Instructions retired.
    pub instructions: u64,
    /// Named counters of the tile's parts, in a fixed order.
    pub counters: Vec<Counter>,
}

/// A counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Part and event, such as `l1d.misses`.
    pub name: String,
    /// Value.
    pub value: u64,
}

/// The kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IncidentKind {
    /// An application stopped because of its own error: a fault, a panic, an exhausted heap.
    Crash,
    /// An application or the root manager ended with an error, or was stopped.
    Stopped,
    /// A foreground application had not finished at the end of the run.
    Unfinished,
    /// The kernel panicked, or an unhandled trap ended the run.
    KernelStopped,
    /// A tile made more markers than are kept, so what its applications did later was not seen. The application is the one that made the
    /// most.
    Unseen,
}

/// Something that went wrong on the chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Its kind.
    pub kind: IncidentKind,
    /// Time in ticks, if a marker gave it.
    pub at: Option<u64>,
    /// Tile.
    pub tile: u16,
    /// Application.
    pub application: String,
    /// The event.
    pub what: String,
    /// Backtrace and registers, if a program of the description crashed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash: Option<Crash>,
}

/// A check value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Application.
    pub application: String,
    /// Value.
    pub value: u64,
}

/// Maximum incidents shown of activities that one activity created; its path precedes their names.
const MADE_SHOWN: usize = 3;
/// Maximum incidents shown of all such activities in a variant.
const MADE_LINES: usize = 30;

impl RunResult {
    /// A time in cycles, with microseconds in brackets.
    pub fn both(&self, ticks: u64) -> String {
        format!(
            "{} ({:.2})",
            crate::format::grouped(self.cycles(ticks)),
            self.microseconds(ticks)
        )
    }

    /// Ticks converted to cycles of the reference clock, rounded up.
    pub fn cycles(&self, ticks: u64) -> u64 {
        ticks.div_ceil(self.cycle_ticks.max(1))
    }

    /// Ticks in microseconds.
    pub fn microseconds(&self, ticks: u64) -> f64 {
        ticks as f64 * 1e6 / self.ticks_per_second.max(1) as f64
    }

    /// The verdict on this chip and on the one at the other end of its cable, whose variants are preceded by its name.
    pub fn whole_verdict(&self) -> Verdict {
        let far = self.peer.iter().flat_map(|peer| {
            let own = peer.verdict.promises().iter();
            own.map(|promise| Promise {
                variant: format!("{}/{}", peer.system, promise.variant),
                ..promise.clone()
            })
        });
        let own = self.verdict.promises().iter().cloned();
        own.chain(far).collect()
    }

    /// Incidents in words, one line each. Of activities that are not in the description, the first few that each creator made, and no more than [`MADE_LINES`] in all.
    pub fn happened(&self) -> Vec<String> {
        let of = |variant: &VariantResult, incident: &Incident| {
            let at = incident.at.map(|at| span(self.microseconds(at)));
            format!(
                "{}{}: tile {}, {}: {}",
                variant.name,
                at.map_or(String::new(), |at| format!(" at {at}")),
                incident.tile,
                incident.application,
                incident.what
            )
        };
        let mut all = Vec::new();
        for variant in &self.variants {
            // A program may make any number of activities that fail, and these may make others; they must not bury what happened to others.
            let (mut made, mut shown) = (BTreeMap::<&str, usize>::new(), 0);
            for one in &variant.incidents {
                let Some((creator, _)) = one.application.rsplit_once('/') else {
                    all.push(of(variant, one));
                    continue;
                };
                let count = made.entry(creator).or_default();
                *count += 1;
                if *count <= MADE_SHOWN && shown < MADE_LINES {
                    shown += 1;
                    all.push(of(variant, one));
                }
            }
            let hidden = made.values().sum::<usize>() - shown;
            let mut most = made.into_iter();
            let name = &variant.name;
            let said = match most.find(|(_, count)| *count == MADE_SHOWN + hidden) {
                Some((creator, _)) => format!("activities that {creator} created"),
                None => "activities that programs created".to_owned(),
            };
            if hidden > 0 {
                all.push(format!(
                    "{name}: {hidden} more incidents of {said}; all are in result.json"
                ));
            }
        }
        all
    }

    /// Crashes with their backtraces, each once, with where it happened.
    pub fn crashes(&self) -> Vec<(String, &Crash)> {
        let mut all: Vec<(Vec<&str>, &str, &Crash)> = Vec::new();
        for variant in &self.variants {
            for incident in &variant.incidents {
                let Some(crash) = &incident.crash else {
                    continue;
                };
                let who = incident.application.as_str();
                let same = |known: &&mut (_, &str, &Crash)| {
                    (known.1, &known.2.backtrace) == (who, &crash.backtrace)
                };
                match all.iter_mut().find(same) {
                    Some(known) => {
                        if !known.0.contains(&&*variant.name) {
                            known.0.push(&variant.name);
                        }
                    }
                    None => all.push((vec![&variant.name], who, crash)),
                }
            }
        }
        let titled = all.into_iter().map(|(variants, who, crash)| {
            (format!("Crash of {who} ({})", variants.join(", ")), crash)
        });
        titled.collect()
    }

    /// Whether something ended that must not: every incident is such an end. A run in which nothing more can happen is an accident only
    /// if an application still had to finish, and then there is an incident.
    pub fn has_accident(&self) -> bool {
        let ended = |end: &End| matches!(end, End::Duration | End::Idle | End::Exit { code: 0 });
        let bad = |variant: &VariantResult| !variant.incidents.is_empty() || !ended(&variant.end);
        self.variants.iter().any(bad)
    }

    /// Exit code of the command.
    pub fn code(&self) -> u8 {
        self.whole_verdict().code(self.has_accident())
    }

    /// No promise failed unexpectedly.
    pub fn is_kept(&self) -> bool {
        self.whole_verdict().is_kept()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::sample;

    /// A program that made children which fail filled the report with 8183 lines.
    #[test]
    fn children_do_not_bury_what_happened_to_others() {
        let mut result = sample();
        let incident = |application: &str| Incident {
            crash: None,
            kind: IncidentKind::Crash,
            at: None,
            tile: 7,
            application: application.to_owned(),
            what: "stopped: panic".to_owned(),
        };
        let children = (0..5000).map(|n| incident(&format!("root/hog/child:{n}")));
        // Each child makes others.
        let theirs = (0..600).map(|n| incident(&format!("root/hog/child:{}/a:{n}", n / 3)));
        let all_made: Vec<Incident> = theirs.collect();
        let mut all: Vec<Incident> = children.collect();
        all.push(incident("root/other/child"));
        all.extend(["controller"; 5].map(incident));
        result.variants.truncate(1);
        result.variants[0].incidents = all;
        let name = result.variants[0].name.clone();
        let happened = result.happened();
        assert_eq!(happened.len(), 3 + 1 + 5 + 1);
        assert_eq!(
            happened[4],
            format!("{name}: tile 7, controller: stopped: panic")
        );
        let last =
            "4997 more incidents of activities that root/hog created; all are in result.json";
        assert_eq!(happened.last(), Some(&format!("{name}: {last}")));
        result.variants[0].incidents.extend(all_made);
        let happened = result.happened();
        assert_eq!(happened.len(), MADE_LINES + 5 + 1);
        let last =
            "5571 more incidents of activities that programs created; all are in result.json";
        assert_eq!(happened.last(), Some(&format!("{name}: {last}")));
    }
}
