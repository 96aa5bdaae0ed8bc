//! Bounds beside what was observed, and verdicts.
//!
//! Why it exists: a bound that nobody compares is decoration. What it deliberately does not know: how a bound is computed
//! (`bulkhead_analysis`), and how an observation was made.

use crate::collect::{self, ticks};
use crate::names::Names;
use crate::observed::Counts;
use crate::tiled::requests::{self, converted};
use bulkhead_abi::dtu::CHUNK_MAX;
use bulkhead_analysis::communication::{Profile, SystemBounds};
use bulkhead_machine::noc::Transaction;
use bulkhead_model::System;
use bulkhead_model::system::{App, Flow};
use bulkhead_report::format::grouped;
use bulkhead_report::result::{Bound, End, FlowResult, Sample, VariantResult, Verdict};

/// What the applications of a flow did alone, which decides the flow's bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    /// Name of the flow.
    pub flow: String,
    /// Worst end-to-end latency in ticks.
    pub worst: u64,
    /// For each application: the most that it did in a period.
    pub jobs: Vec<Job>,
}

/// Transactions of one application in one period, each the most of all periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The application.
    pub app: usize,
    /// Cache lines read.
    pub line_reads: u64,
    /// Cache lines written back.
    pub line_writes: u64,
    /// Chunks read by DMA.
    pub chunks_read: u64,
    /// Chunks written by DMA.
    pub chunks_written: u64,
    /// Messages and replies sent.
    pub messages: u64,
}

impl Job {
    /// Adds the transactions of another one.
    pub fn add(&mut self, other: &Job) {
        self.each(other, |own, others| own + others);
    }

    /// Raises each number to that of another one.
    pub fn raise(&mut self, other: &Job) {
        self.each(other, u64::max);
    }

    fn each(&mut self, other: &Job, join: impl Fn(u64, u64) -> u64) {
        self.line_reads = join(self.line_reads, other.line_reads);
        self.line_writes = join(self.line_writes, other.line_writes);
        self.chunks_read = join(self.chunks_read, other.chunks_read);
        self.chunks_written = join(self.chunks_written, other.chunks_written);
        self.messages = join(self.messages, other.messages);
    }
}

/// Everybody who could disturb `flow` is limited or absent: only then a deadline is promised.
pub fn promised(system: &System, members: &[usize]) -> bool {
    system
        .apps
        .iter()
        .enumerate()
        .all(|(index, app)| members.contains(&index) || app.limit.is_some())
}

/// Indices of the applications of a flow, in its order.
pub fn members(system: &System, flow: &FlowResult) -> Vec<usize> {
    indices(system, &flow.from, &flow.through, &flow.to)
}

/// The same of a flow that was not measured yet.
pub fn members_of(system: &System, flow: &Flow) -> Vec<usize> {
    let name = |app: usize| system.apps.get(app).map_or("", |app| app.name.as_str());
    let through = collect::through(system, flow.from, flow.to);
    indices(system, name(flow.from), &through, name(flow.to))
}

fn indices(system: &System, from: &str, through: &[String], to: &str) -> Vec<usize> {
    std::iter::once(from)
        .chain(through.iter().map(String::as_str))
        .chain([to])
        .filter_map(|name| system.apps.iter().position(|app| app.name == name))
        .collect()
}

/// Only the applications of the flow are there: what is measured is undisturbed.
pub fn is_alone(system: &System, members: &[usize]) -> bool {
    (0..system.apps.len()).all(|index| members.contains(&index))
}

/// Whether some application shares its tile with another: then a flow through it also waits for the processor, which these
/// bounds do not cover.
pub fn shares_a_tile(system: &System, members: &[usize]) -> bool {
    let tiles = system.apps.iter().enumerate();
    members.iter().any(|&member| {
        let own = system.apps.get(member).map(|app| app.tile);
        let mut others = tiles.clone().filter(|(index, _)| *index != member);
        others.any(|(_, app)| Some(app.tile) == own)
    })
}

/// Shortest period of the flow's applications in ticks.
pub fn period(system: &System, members: &[usize]) -> Option<u64> {
    let per_second = system.platform.ticks_per_second();
    members
        .iter()
        .filter_map(|&index| system.apps.get(index)?.task.as_ref())
        .map(|task| ticks(task.period, per_second))
        .min()
}

/// Slices in which transactions are counted for the bounds of a system's flows: length in ticks, and how much before its multiples
/// they begin. They are a period long if all flows have the same, else short.
pub fn slicing(system: &System) -> Option<(u64, u64)> {
    let per_second = system.platform.ticks_per_second();
    // A microsecond early, as releases come just after a multiple.
    let early = per_second / 1_000_000;
    let mut flows = system.flows.iter();
    let period_of = |flow: Option<&Flow>| period(system, &members_of(system, flow?));
    let first = period_of(Some(flows.next()?));
    let same = flows.all(|flow| period_of(Some(flow)) == first);
    Some(match first.filter(|period| same && *period > early) {
        Some(period) => (period, early),
        None => ((early * SHORT).max(1), 0),
    })
}

/// Microseconds of a short slice: short against what takes long enough to be worth a bound.
const SHORT: u64 = 10;

/// Reads off what the applications of a flow did at most in a job. `length`: that of the slices. If it is the flow's period, each
/// holds one job, and those before the flow's first sample are start-up; else those count that a sample touches.
pub fn alone(
    system: &System,
    names: &Names,
    flow: &FlowResult,
    slices: &[(u64, Counts)],
    length: u64,
) -> Option<Alone> {
    let first = flow.samples.iter().map(|sample| sample.begin).min()?;
    if slices.is_empty() {
        return None;
    }
    let members = members(system, flow);
    let periodic = period(system, &members) == Some(length);
    let jobs = members
        .iter()
        .map(|&app| {
            if periodic {
                in_periods(system, names, app, slices, first)
            } else {
                in_samples(system, names, app, slices, &flow.samples)
            }
        })
        .collect();
    Some(Alone {
        flow: flow.name.clone(),
        worst: flow.latency.max,
        jobs,
    })
}

fn job(system: &System, names: &Names, app: usize, counts: &Counts) -> Job {
    let of = |wanted| of_app(system, names, app, counts, wanted);
    Job {
        app,
        line_reads: of(Transaction::CacheRead),
        line_writes: of(Transaction::CacheWrite),
        chunks_read: of(Transaction::DmaRead),
        chunks_written: of(Transaction::DmaWrite),
        messages: of(Transaction::Message),
    }
}

fn in_periods(
    system: &System,
    names: &Names,
    app: usize,
    slices: &[(u64, Counts)],
    first: u64,
) -> Job {
    let mut most = Job {
        app,
        ..Job::default()
    };
    // The last slice that begins before the first sample holds it.
    let begun = slices.windows(2).filter(|pair| pair[1].0 > first);
    for (_, counts) in begun.map(|pair| &pair[0]).chain(slices.last()) {
        most.raise(&job(system, names, app, counts));
    }
    most
}

/// What an application did while any of these samples lasted, at most. Transactions are counted where they end; a slice that a
/// sample touches counts for it.
pub fn in_samples(
    system: &System,
    names: &Names,
    app: usize,
    slices: &[(u64, Counts)],
    samples: &[Sample],
) -> Job {
    let mut most = Job {
        app,
        ..Job::default()
    };
    let ends = slices.iter().skip(1).map(|(begin, _)| *begin);
    let slices: Vec<(u64, u64, Job)> = slices
        .iter()
        .zip(ends.chain([u64::MAX]))
        .map(|((begin, counts), end)| (*begin, end, job(system, names, app, counts)))
        .collect();
    for sample in samples {
        let last = sample.begin + sample.latency;
        let first = slices.partition_point(|(_, end, _)| *end <= sample.begin);
        let touched = slices[first..].iter();
        let mut sum = Job::default();
        for (_, _, job) in touched.take_while(|(begin, ..)| *begin <= last) {
            sum.add(job);
        }
        most.raise(&sum);
    }
    most
}

/// Transactions of an application's tile, TileMux included.
pub fn of_app(
    system: &System,
    names: &Names,
    app: usize,
    counts: &Counts,
    wanted: Transaction,
) -> u64 {
    let App { name, tile, .. } = &system.apps[app];
    // Children of the only one on a tile are part of it.
    let only = names.on_tile(*tile).len() == 1;
    counts
        .iter()
        .filter(|((owner, transaction), _)| {
            let is_own = match only {
                true => owner.tile == *tile,
                false => names.owner(*owner).trim_end_matches(" (TileMux)") == name,
            };
            *transaction == wanted && is_own
        })
        .map(|(_, count)| *count)
        .sum()
}

/// Adds bounds to a variant. `missing`: flows that could not be measured alone, and why.
pub fn add(
    system: &System,
    variant: &mut VariantResult,
    alone: &[Alone],
    missing: &[(String, String)],
) {
    requests::add(system, &mut variant.requests);
    for flow in &mut variant.flows {
        let apps = members(system, flow);
        let known = alone.iter().find(|known| known.flow == flow.name);
        let bound = match (obstacle(system, &apps), known) {
            (Some(why), _) => Err(why),
            (None, Some(known)) => flow_bound(system, &apps, known),
            (None, None) => {
                let why = missing.iter().find(|(name, _)| *name == flow.name);
                Err(why.map_or_else(
                    || "its applications were not measured alone".to_owned(),
                    |(_, why)| why.clone(),
                ))
            }
        };
        match bound {
            Ok(bound) => flow.bound = Some(bound),
            Err(why) => flow.unbounded = Some(why),
        }
    }
}

/// What keeps a flow of these applications from having a bound.
pub fn obstacle(system: &System, members: &[usize]) -> Option<String> {
    if shares_a_tile(system, members) {
        return Some(
            "its applications share tiles with others, and waits for a processor are not in these bounds"
                .to_owned(),
        );
    }
    let name = |app: usize| system.apps.get(app).map_or("", |app| app.name.as_str());
    for (from, app) in system.apps.iter().enumerate() {
        let inside = members.contains(&from);
        let mut gates = app.sgates.iter();
        if let Some(gate) = gates.find(|gate| members.contains(&gate.to) != inside) {
            return Some(if inside {
                format!(
                    "`{}` asks `{}`, whose work for others is not bounded here",
                    app.name,
                    name(gate.to)
                )
            } else {
                format!(
                    "`{}` may send to `{}`, whose work on its messages is not bounded here",
                    app.name,
                    name(gate.to)
                )
            });
        }
        if let (true, Some(pager)) = (inside, app.pager.filter(|pager| !members.contains(pager))) {
            return Some(format!(
                "`{}` gets its pages from `{}`, whose work for others is not bounded here",
                app.name,
                name(pager)
            ));
        }
    }
    None
}

/// The bound of a flow whose applications did this alone.
///
/// # Errors
/// Why there is none.
pub fn flow_bound(system: &System, apps: &[usize], alone: &Alone) -> Result<Bound, String> {
    let profiles: Vec<Profile> = apps
        .iter()
        .enumerate()
        .map(|(position, &app)| {
            let job = alone
                .jobs
                .iter()
                .find(|job| job.app == app)
                .copied()
                .unwrap_or_default();
            Profile {
                app,
                // The whole flow was measured at once; it is put into the first stage.
                compute: if position == 0 { alone.worst } else { 0 },
                compute_includes_network: true,
                line_reads: job.line_reads,
                line_writes: job.line_writes,
                dma_read: job.chunks_read * CHUNK_MAX as u64,
                dma_written: job.chunks_written * CHUNK_MAX as u64,
                // Replies against the way of the flow give credits back, and nobody in it waits for them.
                messages: apps
                    .get(position + 1)
                    .map(|&to| vec![(to, message_bytes(system, app, to))])
                    .unwrap_or_default(),
                calls: 0,
            }
        })
        .collect();
    let bounds = SystemBounds::new(system, &profiles).map_err(|error| error.to_string())?;
    let bound = bounds.flow(apps, 0).map_err(|error| error.to_string())?;
    Ok(converted(
        &bound.bound,
        bound.bound.whole(),
        "the whole flow: its worst latency alone, as measured, and what all its requests may wait for others; \
         the requests of a job are the most that were counted in a period alone",
    )
    .0)
}

/// Payload at most: a slot of the receiver without the header.
pub fn message_bytes(system: &System, from: usize, to: usize) -> u64 {
    system.apps[from]
        .sgates
        .iter()
        .filter(|gate| gate.to == to)
        .filter_map(|gate| system.apps[to].rgates.get(gate.gate))
        .map(|gate| {
            u64::from(gate.slot_size).saturating_sub(bulkhead_abi::message::HEADER_SIZE as u64)
        })
        .max()
        .unwrap_or(0)
}

/// What was promised for a variant, and whether it held. `cycle`: ticks of a cycle of the reference clock.
pub fn verdicts(system: &System, cycle: u64, variant: &VariantResult) -> Vec<Verdict> {
    let cycles = |ticks: u64| grouped(ticks.div_ceil(cycle.max(1)));
    let mut all = Vec::new();
    let mut add = |what: String, held: bool| {
        all.push(Verdict {
            variant: variant.name.clone(),
            what,
            held,
        });
    };
    for flow in &variant.flows {
        if flow.latency.count == 0 {
            let advice = match variant.end {
                End::Duration => "; the system must first start, so give it a longer duration",
                _ => "",
            };
            add(format!("flow {}: not one sample{advice}", flow.name), false);
            continue;
        }
        if let Some(bound) = &flow.bound {
            add(
                format!(
                    "flow {}: worst {} cycles within the bound of {}",
                    flow.name,
                    cycles(flow.latency.max),
                    cycles(bound.ticks)
                ),
                flow.latency.max <= bound.ticks,
            );
        }
        let members = members(system, flow);
        if flow.deadline.is_some() && promised(system, &members) {
            let allowed = members
                .iter()
                .filter_map(|&index| system.apps.get(index)?.task.as_ref())
                .map(|task| task.misses)
                .max()
                .unwrap_or(0);
            add(
                format!(
                    "flow {}: {} late of {}, {allowed} allowed",
                    flow.name,
                    flow.misses,
                    flow.latency.count + flow.lost
                ),
                flow.misses <= allowed,
            );
        }
    }
    for request in &variant.requests {
        if let Some(bound) = &request.bound {
            add(
                format!(
                    "{} of {}: worst {} cycles within the bound of {}",
                    request.kind,
                    request.application,
                    cycles(request.worst),
                    cycles(bound.ticks)
                ),
                request.worst <= bound.ticks,
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_machine::types::Owner;
    use bulkhead_model::{LoadOptions, load_system};
    use bulkhead_report::distribution::distribution;

    fn variant(name: &str) -> System {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut all = system.variants.into_iter();
        all.find(|one| one.variant.as_deref() == Some(name))
            .expect("there")
    }

    fn flow(latencies: &[u64]) -> FlowResult {
        FlowResult {
            name: "loop".to_owned(),
            from: "sensor".to_owned(),
            to: "actuator".to_owned(),
            through: vec!["controller".to_owned()],
            deadline: Some(1000),
            misses: latencies.iter().filter(|&&l| l > 1000).count() as u64,
            lost: 0,
            latency: distribution(latencies.iter().copied()),
            samples: vec![Sample {
                number: 1,
                begin: 150,
                latency: latencies[0],
            }],
            bound: None,
            unbounded: None,
        }
    }

    fn result(flow: FlowResult) -> VariantResult {
        VariantResult {
            name: "regulated".to_owned(),
            ticks: 0,
            end: End::Duration,
            instructions: 0,
            digest: String::new(),
            flows: vec![flow],
            spans: Vec::new(),
            requests: Vec::new(),
            interference: Vec::new(),
            tiles: Vec::new(),
            incidents: Vec::new(),
            checks: Vec::new(),
            quotas: Vec::new(),
        }
    }

    #[test]
    fn a_deadline_is_promised_only_where_the_others_are_limited() {
        for (name, alone, kept) in [
            ("alone", true, true),
            ("unregulated", false, false),
            ("regulated", false, true),
        ] {
            let system = variant(name);
            let members = members(&system, &flow(&[1]));
            assert_eq!(members.len(), 3, "{name}");
            assert_eq!(is_alone(&system, &members), alone, "{name}");
            assert_eq!(promised(&system, &members), kept, "{name}");
        }
    }

    #[test]
    fn start_up_does_not_count_as_a_job() {
        let system = variant("alone");
        let names = crate::tiled::names::of(&system, &crate::tiled::names::all_as(&system, 2));
        let count = |reads| Counts::from([((Owner::new(2, 2), Transaction::CacheRead), reads)]);
        // The first sample begins at 150, so the slice from 100 on is the first that counts.
        let length = slicing(&system).expect("a flow").0;
        let slices = [(0, count(900)), (100, count(7)), (200, count(5))];
        let alone = alone(&system, &names, &flow(&[40]), &slices, length).expect("a sample");
        assert_eq!(alone.jobs[0].line_reads, 7);
        assert_eq!(alone.worst, 40);
    }

    #[test]
    fn a_flow_without_samples_keeps_no_promise() {
        let system = variant("unregulated");
        let mut none = flow(&[900]);
        none.latency = distribution([]);
        let all = verdicts(&system, 2, &result(none));
        assert!(
            all.iter()
                .any(|one| !one.held && one.what.contains("not one sample"))
        );
    }

    #[test]
    fn a_late_sample_and_an_exceeded_bound_fail() {
        let system = variant("regulated");
        let mut good = result(flow(&[900]));
        good.flows[0].bound = Some(Bound {
            ticks: 900,
            method: String::new(),
            covers: String::new(),
        });
        assert!(
            verdicts(&system, 2, &good)
                .iter()
                .all(|verdict| verdict.held)
        );
        let mut bad = result(flow(&[1200]));
        bad.flows[0].bound = Some(Bound {
            ticks: 1199,
            method: String::new(),
            covers: String::new(),
        });
        assert!(
            verdicts(&system, 2, &bad)
                .iter()
                .all(|verdict| !verdict.held)
        );
    }

    #[test]
    fn limits_tighten_the_bound_of_a_flow() {
        let known = |app| Job {
            app,
            line_reads: 10,
            line_writes: 2,
            ..Job::default()
        };
        let bound = |name: &str| {
            let system = variant(name);
            let apps = members(&system, &flow(&[1]));
            let alone = Alone {
                flow: "loop".to_owned(),
                worst: 30_000,
                jobs: apps.iter().map(|&app| known(app)).collect(),
            };
            flow_bound(&system, &apps, &alone)
                .ok()
                .map(|bound| bound.ticks)
        };
        let (alone, regulated) = (
            bound("alone").expect("finite"),
            bound("regulated").expect("finite"),
        );
        assert!(alone >= 30_000, "the measured latency is inside: {alone}");
        assert!(
            regulated > alone,
            "others cost something: {regulated} > {alone}"
        );
        assert!(bound("unregulated").is_none_or(|loose| loose > regulated));
    }
}
