//! What the applications of a flow did alone: the measured part of its bound.
//!
//! Why it exists: `run` and `audit` bound the same flow, so they count its jobs by one rule. A job is what the flow's applications do from
//! the beginning of one sample to the beginning of the next, or to its own end if that is later. Everything before the first sample is
//! their start. No other sample follows the last one: while it is under way, applications that have done their part already end, and nobody
//! waits for that. So it is counted only if it is the only one, or if it took longer than all others: a bound that begins with its latency
//! counts its requests, too, and those of the end with them. What it deliberately does not know: how a bound follows from this
//! (`bounds`).

use crate::collect::ticks;
use crate::names::Names;
use crate::observed::Counts;
use crate::tiled::bounds::{members, members_of};
use bulkhead_machine::noc::Transaction;
use bulkhead_model::System;
use bulkhead_model::platform::Platform;
use bulkhead_model::system::{App, Flow};
use bulkhead_report::format::span;
use bulkhead_report::result::{FlowResult, Sample};

/// What the applications of a flow did alone, which decides the flow's bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    /// Name of the flow.
    pub flow: String,
    /// The chip that it ran on: what a flow did on another one says nothing.
    pub platform: Platform,
    /// Worst end-to-end latency in ticks.
    pub worst: u64,
    /// For each application: the most that it did in a job.
    pub jobs: Vec<Job>,
    /// Jobs that were counted.
    pub count: usize,
    /// From the begin of the first of them to the end of the last, in ticks.
    pub time: u64,
}

impl Alone {
    /// Whether this is what a flow of a system did alone on the system's chip.
    pub fn is_of(&self, system: &System, flow: &str) -> bool {
        self.flow == flow && self.platform == system.platform
    }

    /// What a bound that begins with this takes for granted.
    pub fn assumed(&self, ticks_per_second: u64) -> String {
        let jobs = match self.count {
            1 => "1 job".to_owned(),
            count => format!("{count} jobs"),
        };
        let time = span(self.time as f64 * 1e6 / ticks_per_second.max(1) as f64);
        format!(
            "{jobs} in {time} alone were counted; the bound assumes that no job takes longer, or makes more requests of a kind, than the \
             worst of them"
        )
    }
}

/// Transactions of one application in one job, each the most of all jobs.
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

/// Microseconds of a slice: short against what takes long enough to be worth a bound.
const SHORT: u64 = 10;

/// Shortest period of the flow's applications in ticks.
fn period(system: &System, members: &[usize]) -> Option<u64> {
    let per_second = system.platform.ticks_per_second();
    members
        .iter()
        .filter_map(|&index| system.apps.get(index)?.task.as_ref())
        .map(|task| ticks(task.period, per_second))
        .min()
}

/// Slices in which transactions are counted for the bounds of a system's flows: length in ticks, and how much before its multiples
/// they begin. If all flows have the same period, a slice begins a microsecond before each release, and no job shares a slice with
/// the next one.
pub fn slicing(system: &System) -> Option<(u64, u64)> {
    let per_second = system.platform.ticks_per_second();
    // A microsecond early, as releases come just after a multiple.
    let early = per_second / 1_000_000;
    let short = (early * SHORT).max(1);
    let mut flows = system.flows.iter();
    let period_of = |flow: Option<&Flow>| period(system, &members_of(system, flow?));
    let first = period_of(Some(flows.next()?));
    let same = flows.all(|flow| period_of(Some(flow)) == first);
    Some(match first.filter(|period| same && *period >= short) {
        Some(period) => {
            // The most slices of at least that length which fill a period.
            let pieces = (1..=period / short).rev();
            let pieces = pieces
                .into_iter()
                .find(|pieces| period.is_multiple_of(*pieces));
            (period / pieces.unwrap_or(1), early)
        }
        None => (short, 0),
    })
}

/// Reads off what the applications of a flow did at most in a job; nothing if not one sample was seen. `length`: that of the slices.
pub fn alone(
    system: &System,
    names: &Names,
    flow: &FlowResult,
    slices: &[(u64, Counts)],
    length: u64,
) -> Option<Alone> {
    let jobs = jobs(&flow.samples);
    let (first, last) = (jobs.first()?, jobs.last()?);
    if slices.is_empty() {
        return None;
    }
    let members = members(system, flow);
    let apart = slicing(system).is_some_and(|(own, early)| own == length && early > 0);
    Some(Alone {
        flow: flow.name.clone(),
        platform: system.platform.clone(),
        worst: flow.latency.max,
        jobs: members
            .iter()
            .map(|&app| most(system, names, app, slices, &jobs, apart))
            .collect(),
        count: jobs.len(),
        time: last.end - first.begin,
    })
}

/// From the begin of a job to its end, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    begin: u64,
    end: u64,
    /// The next job begins where this one ends.
    next: bool,
}

/// The jobs behind samples: see above.
fn jobs(samples: &[Sample]) -> Vec<Span> {
    let mut samples: Vec<(u64, u64)> = samples
        .iter()
        .map(|sample| (sample.begin, sample.begin + sample.latency))
        .collect();
    samples.sort_unstable();
    let follows = samples.windows(2).map(|pair| {
        let (begin, end) = pair[0];
        let next = pair[1].0;
        Span {
            begin,
            end: end.max(next),
            next: next >= end,
        }
    });
    let mut jobs: Vec<Span> = follows.collect();
    let latency = |&(begin, end): &(u64, u64)| end - begin;
    if let Some((last, others)) = samples.split_last()
        && others.iter().all(|one| latency(one) < latency(last))
    {
        let (begin, end) = *last;
        let next = false;
        jobs.push(Span { begin, end, next });
    }
    jobs
}

/// What an application did while any of these samples lasted, at most.
pub fn in_samples(
    system: &System,
    names: &Names,
    app: usize,
    slices: &[(u64, Counts)],
    samples: &[Sample],
) -> Job {
    let span = |sample: &Sample| Span {
        begin: sample.begin,
        end: sample.begin + sample.latency,
        next: false,
    };
    let spans: Vec<Span> = samples.iter().map(span).collect();
    most(system, names, app, slices, &spans, false)
}

/// What an application did in any of these spans, at most. Transactions are counted where they end; a slice that a span touches
/// counts for it, but for the slice in which the next job begins if slices keep jobs `apart`.
fn most(
    system: &System,
    names: &Names,
    app: usize,
    slices: &[(u64, Counts)],
    spans: &[Span],
    apart: bool,
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
    for span in spans {
        let first = slices.partition_point(|(_, end, _)| *end <= span.begin);
        let touched = slices[first..].iter();
        let touched = touched.take_while(|(begin, ..)| *begin <= span.end);
        let mut sum = Job::default();
        for (_, _, job) in touched.filter(|(_, end, _)| !(apart && span.next && *end > span.end)) {
            sum.add(job);
        }
        most.raise(&sum);
    }
    most
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

/// Transactions of an application's tile, TileMux included.
fn of_app(system: &System, names: &Names, app: usize, counts: &Counts, wanted: Transaction) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_machine::types::Owner;
    use bulkhead_model::{LoadOptions, load_system};
    use bulkhead_report::distribution::distribution;

    fn system() -> System {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut all = system.variants.into_iter();
        all.find(|one| one.variant.as_deref() == Some("alone"))
            .expect("there")
    }

    fn flow(samples: &[(u64, u64)]) -> FlowResult {
        FlowResult {
            name: "loop".to_owned(),
            from: "sensor".to_owned(),
            to: "actuator".to_owned(),
            through: vec!["controller".to_owned()],
            deadline: None,
            misses: 0,
            lost: 0,
            latency: distribution(samples.iter().map(|sample| sample.1)),
            samples: samples
                .iter()
                .map(|&(begin, latency)| Sample {
                    number: 1,
                    begin,
                    latency,
                })
                .collect(),
            bound: None,
            unbounded: None,
        }
    }

    /// Cache lines that the sensor reads in slices that begin at these moments.
    fn counted(samples: &[(u64, u64)], reads: &[(u64, u64)]) -> Alone {
        let system = system();
        let names = crate::tiled::names::of(&system, &crate::tiled::names::all_as(&system, 2));
        let count = |reads| Counts::from([((Owner::new(2, 2), Transaction::CacheRead), reads)]);
        let slices: Vec<(u64, Counts)> = reads.iter().map(|one| (one.0, count(one.1))).collect();
        let length = slicing(&system).expect("a flow").0;
        alone(&system, &names, &flow(samples), &slices, length).expect("a sample")
    }

    #[test]
    fn neither_start_nor_end_counts_as_a_job() {
        let samples = [(150, 40), (350, 30), (550, 10)];
        let reads = [
            (0, 900),
            (100, 7),
            (200, 5),
            // The next job's, though the first one ends in it.
            (300, 9),
            (400, 1),
            // The last one's, while others end already.
            (500, 900),
            (600, 900),
        ];
        let alone = counted(&samples, &reads);
        assert_eq!(
            alone.jobs[0].line_reads, 12,
            "7 and 5; 9 and 1 in the other"
        );
        assert_eq!((alone.worst, alone.count, alone.time), (40, 2, 400));
    }

    #[test]
    fn what_a_late_job_does_is_its_own_and_the_next_one_s() {
        // The first job ends after the second one has begun.
        let alone = counted(
            &[(150, 240), (350, 30)],
            &[(100, 7), (200, 5), (300, 9), (400, 900)],
        );
        assert_eq!(alone.jobs[0].line_reads, 21);
        // A single sample counts until its end.
        let alone = counted(&[(150, 40)], &[(100, 7), (200, 5)]);
        assert_eq!((alone.jobs[0].line_reads, alone.count), (7, 1));
    }

    #[test]
    fn a_last_sample_that_took_longest_counts_with_what_it_did() {
        let reads = [(100, 7), (300, 9), (500, 20), (600, 4), (700, 900)];
        let alone = counted(&[(150, 40), (350, 30), (550, 60)], &reads);
        assert_eq!((alone.worst, alone.count), (60, 3));
        assert_eq!(alone.jobs[0].line_reads, 24, "both slices that it touches");
    }

    #[test]
    fn slices_fill_a_period() {
        let system = system();
        let (length, early) = slicing(&system).expect("a flow");
        let microsecond = system.platform.ticks_per_second() / 1_000_000;
        assert_eq!((length, early), (10 * microsecond, microsecond));
        assert!((1000 * microsecond).is_multiple_of(length));
    }

    #[test]
    fn a_reader_learns_what_was_counted() {
        let alone = counted(&[(150, 40)], &[(100, 7)]);
        let text = alone.assumed(1_000_000);
        assert!(text.starts_with("1 job in 40.00 us alone"), "{text}");
    }
}
