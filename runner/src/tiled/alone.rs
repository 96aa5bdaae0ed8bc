//! What the applications of a flow did alone: the measured part of its bound.
//!
//! Why it exists: `run` and `audit` bound the same flow, so they count its jobs by one rule. A job is everything that can delay a sample:
//! what the flow's applications do from the end of the previous sample (including what it left for later) to the sample's own end. Nothing
//! that begins later can delay the sample, so the end of the programs counts no more than the rest of a last job does. What the
//! applications do before the first sample is their start. Every transaction counts for each job during which it was in progress.
//!
//! # Several samples at a time
//! That holds while each sample meets applications at rest. Alone, they are at rest from the end of everything that a sample caused until
//! the next one wakes the first application ([`Rest`]). Beside others, an event is delayed by at most the total delay of the transactions
//! before it, back to the last such moment. So if the total delay of all transactions between two of these moments cannot exceed the
//! shortest rest, each sample finds all applications at rest, as it does alone. Otherwise the work of several samples may pile up, and
//! there is no bound.
//!
//! What it deliberately does not know: how a bound follows from this (`bounds`).

use crate::measure;
use crate::measure::jobs::{Span, Stretch, Work, jobs};
use crate::names::Names;
use crate::observed::Counts;
use crate::tiled::bounds::members;
use crate::watch::Log;
use bulkhead_machine::ledger::Ended;
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::platform::Platform;
use bulkhead_model::system::App;
use bulkhead_report::format::span;
use bulkhead_report::result::{FlowResult, Sample};
use std::collections::BTreeSet;

/// The work of a flow's applications alone, which decides the flow's bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alone {
    /// Name of the flow.
    pub flow: String,
    /// The chip that it ran on. What a flow did on another chip says nothing.
    pub platform: Platform,
    /// Worst end-to-end latency in ticks.
    pub worst: u64,
    /// For each application: the maximum that it did in one job.
    pub jobs: Vec<Job>,
    /// Jobs that were counted.
    pub count: usize,
    /// Ticks from the beginning of the first sample to the end of the last.
    pub time: u64,
    /// The work that samples cause in total, and the rest until the next one; `None` if no moment of rest is known.
    pub rest: Option<Rest>,
}

/// From the moment at which a sample wakes its first application to the next such moment: see above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Maximum ticks until all applications are at rest. 0 for a single sample, with which nothing piles up.
    pub busy: u64,
    /// For each application: the maximum that it did in that time.
    pub jobs: Vec<Job>,
    /// The shortest rest, in ticks.
    pub shortest: u64,
}

impl Alone {
    /// Whether this is what a flow of a system did alone on the system's chip.
    pub fn is_of(&self, system: &System, flow: &str) -> bool {
        self.flow == flow && self.platform == system.platform
    }

    /// The assumptions of a bound that starts from this.
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

/// Transactions of one application in one job, each number the maximum over all jobs.
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
    /// This many transactions of a kind.
    fn of(app: usize, transaction: Transaction, count: u64) -> Self {
        let mut job = Self {
            app,
            ..Self::default()
        };
        *match transaction {
            Transaction::CacheRead => &mut job.line_reads,
            Transaction::CacheWrite => &mut job.line_writes,
            Transaction::DmaRead => &mut job.chunks_read,
            Transaction::DmaWrite => &mut job.chunks_written,
            Transaction::Message => &mut job.messages,
            // These bounds do not cover registers and local memories of other tiles.
            Transaction::Register
            | Transaction::RemoteLoad
            | Transaction::RemoteStore
            | Transaction::RemoteAtomic
            | Transaction::Interrupt
            | Transaction::Probe => return job,
        } = count;
        job
    }

    fn each(&mut self, other: &Job, join: impl Fn(u64, u64) -> u64) {
        self.line_reads = join(self.line_reads, other.line_reads);
        self.line_writes = join(self.line_writes, other.line_writes);
        self.chunks_read = join(self.chunks_read, other.chunks_read);
        self.chunks_written = join(self.chunks_written, other.chunks_written);
        self.messages = join(self.messages, other.messages);
    }
}

impl Work for Job {
    fn add(&mut self, other: &Job) {
        self.each(other, |own, others| own + others);
    }

    fn raise(&mut self, other: &Job) {
        self.each(other, u64::max);
    }
}

/// Extracts the maximum that the applications of a flow did in a job; `None` if no sample was seen, or if no transactions were kept.
/// `ended`: every transaction of the run; `log`: when harts were awake.
pub fn alone(
    system: &System,
    names: &Names,
    flow: &FlowResult,
    ended: &[Ended],
    log: Option<&Log>,
) -> Option<Alone> {
    let jobs = jobs(&flow.samples);
    let (first, last) = (jobs.first()?, jobs.last()?);
    if ended.is_empty() {
        return None;
    }
    let owners: BTreeSet<Owner> = ended.iter().map(|one| one.owner).collect();
    let did = |app: usize| {
        let is_own = own(system, names, app);
        let own: BTreeSet<&Owner> = owners.iter().filter(|owner| is_own(**owner)).collect();
        let all = ended.iter().filter(|one| own.contains(&one.owner));
        let all = all.map(|one| Stretch {
            begin: one.begin,
            end: one.end,
            done: Job::of(app, one.transaction, 1),
        });
        (app, all.collect())
    };
    let members = members(system, flow).into_iter();
    let did: Vec<(usize, Vec<Stretch<Job>>)> = members.map(did).collect();
    let most = |spans: &[Span]| {
        let each = did.iter();
        each.map(|(app, all)| most(*app, all.clone(), spans))
            .collect::<Vec<Job>>()
    };
    let awake = |log: &Log| {
        let tiles = did.iter().map(|(app, _)| system.apps[*app].tile);
        tiles.map(|tile| log.awake(tile)).collect::<Vec<_>>()
    };
    let busy = did.iter().flat_map(|(_, all)| all);
    let busy: Vec<(u64, u64)> = busy.map(|one| (one.begin, one.end)).collect();
    let rest = log.map(|log| {
        let (rounds, busy, shortest) = rounds(&flow.samples, &awake(log), busy);
        Rest {
            busy,
            jobs: most(&rounds),
            shortest,
        }
    });
    Some(Alone {
        flow: flow.name.clone(),
        platform: system.platform.clone(),
        worst: flow.latency.max,
        jobs: most(&jobs),
        count: jobs.len(),
        time: last.end - first.begin,
        rest,
    })
}

/// For all samples but the last: from the moment at which a sample wakes the first application to the next such moment, with the longest
/// time until all applications are at rest, and the shortest rest. `awake`: when the hart of each application was awake, the first
/// application's first; `under_way`: transactions.
fn rounds(
    samples: &[Sample],
    awake: &[Vec<(u64, u64)>],
    under_way: Vec<(u64, u64)>,
) -> (Vec<Span>, u64, u64) {
    let mut begins: Vec<u64> = samples.iter().map(|sample| sample.begin).collect();
    begins.sort_unstable();
    let own = awake.first().map_or(&[][..], Vec::as_slice);
    let wakes = begins.into_iter().map(|begin| {
        let last = own.partition_point(|one| one.0 <= begin).checked_sub(1);
        let last = last.map(|at| own[at]).filter(|one| begin <= one.1);
        last.map_or(begin, |one| one.0)
    });
    let wakes: Vec<u64> = wakes.collect();
    let mut all: Vec<(u64, u64)> = awake.iter().flatten().copied().chain(under_way).collect();
    all.sort_unstable();
    let (mut busy, mut shortest) = (0, u64::MAX);
    let mut spans = Vec::new();
    let (mut next, mut reach) = (0, 0);
    for pair in wakes.windows(2) {
        let (begin, end) = (pair[0], pair[1]);
        while let Some(one) = all.get(next).filter(|one| one.0 < end) {
            reach = reach.max(one.1);
            next += 1;
        }
        let over = reach.clamp(begin, end.max(begin));
        busy = busy.max(over - begin);
        shortest = shortest.min(end - over);
        spans.push(Span { begin, end });
    }
    (spans, busy, shortest)
}

/// The maximum that an application did while any of these samples lasted. A slice counts for each sample that it touches.
pub fn in_samples(
    system: &System,
    names: &Names,
    app: usize,
    slices: &[(u64, Counts)],
    samples: &[Sample],
) -> Job {
    let is_own = own(system, names, app);
    let ends = slices.iter().skip(1).map(|(begin, _)| *begin);
    let stretches = slices.iter().zip(ends.chain([u64::MAX]));
    let stretches = stretches.map(|((begin, counts), end)| {
        let mut done = Job {
            app,
            ..Job::default()
        };
        let own = counts.iter().filter(|((owner, _), _)| is_own(*owner));
        for ((_, transaction), count) in own {
            done.add(&Job::of(app, *transaction, *count));
        }
        Stretch {
            begin: *begin,
            end,
            done,
        }
    });
    let spans = samples.iter().map(|sample| Span {
        begin: sample.begin,
        // A sample that ends where a slice begins touches it.
        end: sample.begin + sample.latency + 1,
    });
    most(app, stretches.collect(), &spans.collect::<Vec<_>>())
}

/// The maximum that an application did in any of these spans.
fn most(app: usize, all: Vec<Stretch<Job>>, spans: &[Span]) -> Job {
    let most = measure::jobs::most(all, spans);
    Job { app, ..most }
}

/// Whether an owner's transactions count for an application. If the application has its tile to itself, its children and the tile's TileMux
/// count as part of it.
fn own<'a>(system: &'a System, names: &'a Names, app: usize) -> impl Fn(Owner) -> bool + 'a {
    let App { name, tile, .. } = &system.apps[app];
    let only = names.on_tile(*tile).len() == 1;
    move |owner| match only {
        true => owner.tile == *tile,
        false => names.owner(owner).trim_end_matches(" (TileMux)") == name,
    }
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};
    use bulkhead_report::distribution::distribution;

    fn system() -> System {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut all = system.variants.into_iter();
        all.find(|one| one.variant.as_deref() == Some("alone"))
            .expect("there")
    }

    /// The quickstart's flow with these samples.
    pub(super) fn result(samples: Vec<Sample>) -> FlowResult {
        FlowResult {
            name: "loop".to_owned(),
            from: "sensor".to_owned(),
            to: "actuator".to_owned(),
            through: vec!["controller".to_owned()],
            deadline: None,
            misses: 0,
            lost: 0,
            open: 0,
            doubled: 0,
            latency: distribution(samples.iter().map(|sample| sample.latency)),
            samples,
            bound: None,
            unbounded: None,
        }
    }

    fn flow(samples: &[(u64, u64)]) -> FlowResult {
        let samples = samples.iter().map(|&(begin, latency)| Sample {
            number: 1,
            begin,
            latency,
        });
        result(samples.collect())
    }

    /// The sensor reads cache lines during the interval of each pair.
    fn counted(samples: &[(u64, u64)], reads: &[(u64, u64)]) -> Alone {
        let system = system();
        let names = crate::tiled::names::of(&system, &crate::tiled::names::all_as(&system, 2));
        let ended: Vec<Ended> = reads
            .iter()
            .map(|&(begin, end)| Ended {
                owner: Owner::new(2, 2),
                transaction: Transaction::CacheRead,
                begin,
                end,
            })
            .collect();
        alone(&system, &names, &flow(samples), &ended, None).expect("a sample")
    }

    fn reads(samples: &[(u64, u64)], reads: &[(u64, u64)]) -> u64 {
        counted(samples, reads).jobs[0].line_reads
    }

    #[test]
    fn neither_start_nor_end_counts_as_a_job() {
        let samples = [(150, 40), (350, 30), (550, 10)];
        let start = [(10, 20), (30, 40), (50, 60), (70, 80), (90, 100)];
        let first = [(160, 170), (180, 185), (300, 310)];
        let end = [(560, 570), (561, 571), (562, 572), (563, 573), (600, 610)];
        let all = [&start[..], &first, &[(355, 360)], &[(551, 559)], &end].concat();
        let alone = counted(&samples, &all);
        assert_eq!(alone.jobs[0].line_reads, 2, "what an earlier one left, too");
        assert_eq!((alone.worst, alone.count, alone.time), (40, 3, 410));
    }

    /// By hand: the application that sends the last sample and ends does not change the bound, wherever the longest sample is.
    #[test]
    fn a_bound_does_not_depend_on_where_the_longest_sample_is() {
        // Each job reads two lines, and one more before the next job. The end reads ten.
        let job = |begin: u64| [(begin + 1, begin + 5), (begin + 6, begin + 9)];
        let mut all: Vec<(u64, u64)> = [100, 200, 300].map(job).concat();
        all.extend([(150, 160), (250, 260)]);
        for longest in 0..3 {
            let mut samples = [(100, 10), (200, 10), (300, 10)];
            samples[longest].1 = 12;
            let end = samples[2].0 + samples[2].1;
            let ends = (0..10).map(|one| (end + one, end + one + 10));
            let with_end: Vec<_> = all.iter().copied().chain(ends).collect();
            let alone = counted(&samples, &with_end);
            assert_eq!(
                (alone.jobs[0].line_reads, alone.worst),
                (3, 12),
                "{longest}"
            );
        }
    }

    #[test]
    fn the_last_sample_counts_with_what_it_did() {
        let some = [(110, 120), (210, 220), (211, 221), (212, 222), (213, 223)];
        assert_eq!(reads(&[(100, 30), (200, 20)], &some), 4);
    }

    #[test]
    fn what_a_late_job_does_is_its_own_and_the_next_one_s() {
        // The first job ends after the second one has begun.
        let some = [(160, 170), (360, 370), (380, 385), (390, 400)];
        assert_eq!(reads(&[(150, 240), (350, 30)], &some), 3);
        // A single sample counts until its end.
        let alone = counted(&[(150, 40)], &[(160, 170), (200, 210)]);
        assert_eq!((alone.jobs[0].line_reads, alone.count), (1, 1));
    }

    /// Everything in progress at the beginning or at the end can delay the sample.
    #[test]
    fn a_transaction_counts_for_each_job_in_which_it_is_under_way() {
        let samples = [(100, 10), (200, 10)];
        assert_eq!(reads(&samples, &[(95, 101), (195, 201), (205, 900)]), 2);
        // A transaction that ends where a job begins, or begins where it ends, is outside.
        assert_eq!(reads(&samples, &[(95, 100), (210, 220)]), 0);
        // A long one after many short ones is found.
        let mut many: Vec<(u64, u64)> = (0..20).map(|at| (110 + at, 112 + at)).collect();
        many.push((1, 205));
        assert_eq!(reads(&[(90, 1), (200, 10)], &many), 21);
        assert_eq!(reads(&[(200, 10)], &many), 1);
    }

    /// By hand: the sensor wakes at 100, 200 and 300 and is awake for 20; the others work until 160, 290, and after the last sample.
    #[test]
    fn rest_is_what_is_left_until_the_next_sample_wakes_somebody() {
        let samples = flow(&[(105, 20), (205, 30), (305, 20)]).samples;
        let sensor = vec![(0, 90), (100, 120), (200, 220), (300, 320)];
        let actuator = vec![(0, 80), (130, 160), (240, 270), (340, 900)];
        let awake = [sensor.clone(), actuator];
        let of = |awake: &[Vec<(u64, u64)>], under_way: &[(u64, u64)]| {
            let (spans, busy, shortest) = rounds(&samples, awake, under_way.to_vec());
            let spans: Vec<_> = spans.iter().map(|one| (one.begin, one.end)).collect();
            assert_eq!(spans, [(100, 200), (200, 300)]);
            (busy, shortest)
        };
        assert_eq!(of(&awake, &[]), (70, 30));
        // A write on its way.
        assert_eq!(of(&awake, &[(150, 190)]), (90, 10));
        assert_eq!(of(&awake, &[(299, 310)]), (100, 0));
        // Some application is always awake.
        assert_eq!(of(&[sensor, vec![(0, u64::MAX)]], &[]), (100, 0));
        let (spans, busy, shortest) = rounds(&samples[..1], &awake, Vec::new());
        assert_eq!((spans.len(), busy, shortest), (0, 0, u64::MAX));
        // A first application that never sleeps has a single moment of waking.
        let (_, busy, shortest) = rounds(&samples, &[vec![(0, u64::MAX)]], Vec::new());
        assert_eq!((busy, shortest), (0, 0));
    }

    #[test]
    fn a_slice_counts_for_each_sample_that_it_touches() {
        let system = system();
        let names = crate::tiled::names::of(&system, &crate::tiled::names::all_as(&system, 2));
        let count = |reads| Counts::from([((Owner::new(2, 2), Transaction::CacheRead), reads)]);
        let slices = [
            (0, count(100)),
            (100, count(3)),
            (200, count(7)),
            (300, count(50)),
        ];
        let app = crate::tiled::bounds::members(&system, &flow(&[(0, 0)]))[0];
        let reads = |begin, latency| {
            let sample = Sample {
                number: 0,
                begin,
                latency,
            };
            in_samples(&system, &names, app, &slices, &[sample]).line_reads
        };
        assert_eq!(reads(150, 60), 10);
        assert_eq!(reads(100, 50), 3);
        assert_eq!(reads(150, 50), 10, "it ends where the next slice begins");
        assert_eq!(reads(310, 1000), 50);
    }

    #[test]
    fn a_reader_learns_what_was_counted() {
        let alone = counted(&[(150, 40)], &[(160, 170)]);
        let text = alone.assumed(1_000_000);
        assert!(text.starts_with("1 job in 40.00 us alone"), "{text}");
    }
}
