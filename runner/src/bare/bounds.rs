//! Bounds of flows of programs on the harts of a cluster: the measured time alone, plus the analysed delay by others.
//!
//! Why it exists: a program with ways and memory of its own meets others only where the analysis can count them. Everything else is not
//! judged, with the reason and what would change it. What it deliberately does not know: how much others add (`bulkhead_analysis`).
//!
//! The measurement is a run of the same variant without the other programs: the same addresses, the same ways. A flow begins and ends with
//! markers of one hart, so samples do not pile up: before a sample begins, the hart has executed everything that the one before
//! caused. Only accesses that are still under way can delay the next sample ([`ClusterBounds::left_over`]).

use super::beside::{beside, counted, past_caches};
use super::described;
use super::replaced::{Replaced, came_in_order, replaced};
use crate::collect;
use crate::measure::jobs::{self, Span, Stretch, Work};
use crate::paradigm::{BesideRun, Paradigm, Ran};
use bulkhead_analysis::communication::{ClusterBounds, ClusterJob};
use bulkhead_machine::ledger::{Asked, Ended};
use bulkhead_machine::machine::Outcome;
use bulkhead_machine::noc::Transaction;
use bulkhead_machine::types::Owner;
use bulkhead_model::System;
use bulkhead_model::platform::{Cache, Cluster, PipelineModel, PrefetcherKind, Replacement, Tile};
use bulkhead_model::system::Flow;
use bulkhead_model::system::bare::Placed;
use bulkhead_report::format::span;
use bulkhead_report::result::{AddedRun, Bound, FlowResult, VariantResult};

/// A flow that may have a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Judged<'s> {
    app: usize,
    tile: &'s Tile,
    hart: u16,
}

impl Judged<'_> {
    fn owner(self) -> Owner {
        Owner::new(self.tile.id, self.hart)
    }

    /// What would make the flow judged, if which of its accesses hit depends on their times.
    fn hits(self) -> &'static str {
        let mut cores = self.tile.cluster.iter().flat_map(|cluster| &cluster.cores);
        let own = cores.find(|core| core.hart == u32::from(self.hart));
        let first = own.map(|core| &core.l1d).or(self.tile.l1d.as_ref());
        match first.is_some_and(|first| first.replacement == Replacement::Lru) {
            true => {
                "with sets that its lines fit into, or one miss under way at a time, it would be judged"
            }
            false => {
                "with sets that its lines fit into, or a first level with `lru`, it would be judged"
            }
        }
    }
}

/// The program of a flow, if others can delay it only where the analysis counts them.
///
/// # Errors
/// Why the flow is not judged, and what would change that.
fn judged<'s>(system: &'s System, flow: &Flow) -> Result<Judged<'s>, String> {
    let bare = described(system).map_err(|error| error.to_string())?;
    let name = |app: usize| &*system.apps[app].name;
    if flow.from != flow.to {
        return Err(format!(
            "`{}` and `{}` work on it, and nothing bounds their effect on each other's lines; a flow from a program to itself would be judged",
            name(flow.from),
            name(flow.to)
        ));
    }
    let (own, placed) = (&system.apps[flow.from], &bare.programs[flow.from]);
    let tile = system.platform.tile(own.tile);
    let tile = tile.ok_or_else(|| format!("there is no tile {}", own.tile))?;
    let Some(cluster) = &tile.cluster else {
        return Err(format!(
            "tile {} has no cluster, and bounds exist only for harts that share a second level; on a hart of a cluster it would be judged",
            tile.id
        ));
    };
    if cluster.coherent {
        return Err(format!(
            "cluster `{}` is coherent with other clusters or devices, and waits for their answers, for their requests for the same line and for \
             lines that they take are not counted; on a cluster that is not `coherent` it would be judged",
            cluster.name
        ));
    }
    let [hart] = placed.harts[..] else {
        return Err(format!(
            "`{}` runs on {} harts, and nothing bounds their effect on each other's lines; on one hart it would be judged",
            own.name,
            placed.harts.len()
        ));
    };
    let core = cluster.core(hart.into());
    let pipeline = core.map_or(&tile.pipeline, |core| &core.pipeline);
    if pipeline.model == PipelineModel::Interval {
        return Err(format!(
            "hart {hart} works out of order, so a longer wait may cost more than its length; with a pipeline of the model `inorder` it would \
             be judged"
        ));
    }
    let firsts = cluster.cores.iter().map(|core| &core.l1d);
    let mut caches = tile.l2.iter().chain(&tile.l1d).chain(firsts);
    let ahead = |cache: &&Cache| {
        let prefetcher = cache.prefetcher.as_ref();
        prefetcher.is_some_and(|prefetcher| prefetcher.kind != PrefetcherKind::Off)
    };
    if let Some(cache) = caches.find(ahead) {
        return Err(format!(
            "cache `{}` of tile {} fetches lines ahead, so each request may bring more of them, and these are not counted; with \
             <prefetcher kind=\"off\"> it would be judged",
            cache.name, tile.id
        ));
    }
    let ways = fills(cluster, tile, hart);
    for (other, (app, at)) in system.apps.iter().zip(&bare.programs).enumerate() {
        if other == flow.from {
            continue;
        }
        if app.tile != own.tile {
            return Err(format!(
                "`{}` on tile {} shares links and memory with it, and only programs of one cluster are counted; without that program it \
                 would be judged",
                app.name, app.tile
            ));
        }
        if app.memory_tile != own.memory_tile {
            return Err(format!(
                "`{}` is in memory {}, and write-backs to two memories are not counted; with all programs of the cluster in one \
                 memory it would be judged",
                app.name, app.memory_tile
            ));
        }
        let mut shared = at.harts.iter();
        if let Some(rival) = shared.find(|&&rival| fills(cluster, tile, rival) & ways != 0) {
            return Err(format!(
                "hart {rival} with `{}` fills ways of the second level that `{}` fills, too, and may evict its lines; with ways of its own \
                 (`ways`) it would be judged",
                app.name, own.name
            ));
        }
    }
    let mut rivals = system.apps.iter().zip(&bare.programs).enumerate();
    let programs = |at: &Placed| {
        let capacity = cluster.capacity.as_ref();
        // Without a programmer, all harts reach the controller.
        capacity.is_some_and(|one| {
            one.programmer
                .is_none_or(|hart| at.harts.iter().any(|own| u32::from(*own) == hart))
        })
    };
    if let Some((_, (app, _))) = rivals.find(|(other, (_, at))| *other != flow.from && programs(at))
    {
        return Err(format!(
            "`{}` reaches the capacity controller, and may change the limits of others and flush their lines; with a `programmer` that has no \
             program, or `{}`, it would be judged",
            app.name, own.name
        ));
    }
    counted(system, flow.from)?;
    Ok(Judged {
        app: flow.from,
        tile,
        hart,
    })
}

/// Why `run` will give flows of this system no bound, as far as the description says it; nothing for a system with a kernel.
pub fn unbounded_flows(system: &System) -> Vec<String> {
    if system.bare.is_none() {
        return Vec::new();
    }
    // What a program does is not known, but every one makes requests.
    let some = ClusterJob {
        requests: 1,
        ..ClusterJob::default()
    };
    let why = |flow: &Flow| {
        let own = judged(system, flow)?;
        let memory = system.apps[own.app].memory_tile;
        let cluster = ClusterBounds::new(&system.platform, own.tile.id, memory);
        let found = cluster.and_then(|one| one.job(own.hart, &beside(system, own.app), &some));
        found.map(|_| ()).map_err(|error| error.to_string())
    };
    let named = |flow: &Flow| {
        let why = why(flow).err()?;
        Some(format!("flow `{}` gets no bound: {why}", flow.name))
    };
    system.flows.iter().filter_map(named).collect()
}

/// The ways that a hart fills.
fn fills(cluster: &Cluster, tile: &Tile, hart: u16) -> u64 {
    let all = tile.l2.as_ref().map_or(0, |l2| match l2.ways {
        64.. => u64::MAX,
        ways => (1 << ways) - 1,
    });
    match cluster.fills(hart.into()) & all {
        0 => all,
        some => some,
    }
}

/// A program's work alone.
#[derive(Clone, Debug)]
struct Alone {
    flow: String,
    /// The run.
    system: System,
    job: ClusterJob,
    count: usize,
    time: u64,
    /// All its requests and write-backs, if it ended the run itself.
    all: Option<[u64; 2]>,
    /// The lines that it asked memory for.
    asked: Asked,
    /// Accesses that it can have under way.
    left: u64,
}

/// Transactions of one hart.
#[derive(Clone, Debug, Default)]
struct Done {
    requests: u64,
    reads: u64,
    writes: u64,
}

impl Done {
    fn each(&mut self, other: &Self, join: impl Fn(u64, u64) -> u64) {
        self.requests = join(self.requests, other.requests);
        self.reads = join(self.reads, other.reads);
        self.writes = join(self.writes, other.writes);
    }
}

impl Work for Done {
    fn add(&mut self, other: &Self) {
        self.each(other, |own, others| own + others);
    }

    fn raise(&mut self, other: &Self) {
        self.each(other, u64::max);
    }
}

/// Whether only the program of some flow runs, so that the run can serve the flow's bound.
pub(super) fn serves(system: &System) -> bool {
    let mut flows = system.flows.iter();
    system.apps.len() == 1 && flows.any(|flow| judged(system, flow).is_ok())
}

/// The harts of programs whose flows may have bounds.
pub(super) fn compared(system: &System) -> Vec<Owner> {
    let flows = system.flows.iter();
    let owners = flows.filter_map(|flow| Some(judged(system, flow).ok()?.owner()));
    owners.collect()
}

/// The system without the other programs. Everything else is as it was, so that addresses and ways are the same.
fn without_others(system: &System, flow: &Flow) -> Option<System> {
    let mut alone = system.clone();
    alone.variants.clear();
    alone.apps = vec![system.apps.get(flow.from)?.clone()];
    let bare = alone.bare.as_mut()?;
    bare.programs = vec![bare.programs.get(flow.from)?.clone()];
    alone.flows = vec![Flow {
        from: 0,
        to: 0,
        ..flow.clone()
    }];
    Some(alone)
}

/// Whether two runs without others are the same.
fn same(a: &System, b: &System) -> bool {
    (&a.platform, &a.apps, &a.bare, a.duration) == (&b.platform, &b.apps, &b.bare, b.duration)
}

/// A run alone for each flow of the chosen variants that may have a bound, unless a chosen variant is that run.
pub(super) fn plan(chosen: &[(String, System)], watched: bool) -> Vec<BesideRun> {
    let mut runs: Vec<BesideRun> = Vec::new();
    for (name, system) in chosen {
        for flow in system
            .flows
            .iter()
            .filter(|flow| judged(system, flow).is_ok())
        {
            let Some(alone) = without_others(system, flow) else {
                continue;
            };
            let seen = |other: &System| other.apps.len() == 1 && same(other, &alone);
            let known = runs.iter();
            let mut known = known.filter(|run| run.flow == flow.name);
            if known.any(|run| same(&run.system, &alone))
                || watched && chosen.iter().any(|(_, other)| seen(other))
            {
                continue;
            }
            runs.push(BesideRun {
                flow: flow.name.clone(),
                about: format!("variant {name}, without the other programs"),
                system: alone,
            });
        }
    }
    runs
}

/// The work of a flow's program in this run, in which it was alone.
///
/// # Errors
/// Why it says nothing.
fn measured(ran: &Ran<'_>, flow: &FlowResult) -> Result<Alone, String> {
    let mut flows = ran.system.flows.iter();
    let own = flows.find(|own| own.name == flow.name);
    let own = judged(ran.system, own.ok_or("the run alone has no such flow")?)?;
    // The first sample may meet the program's start, such as code that is not in the caches yet.
    let worst = jobs::worst_started(&flow.samples).unwrap_or(flow.latency.max);
    let mut spans = jobs::jobs(&flow.samples);
    if let Some(started) = jobs::started(&flow.samples)
        && spans.iter().any(|one| one.begin >= started)
    {
        spans.retain(|one| one.begin >= started);
    }
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Err("alone it had no sample".to_owned());
    };
    let memory = ran.system.apps[own.app].memory_tile;
    let cluster = ClusterBounds::new(&ran.system.platform, own.tile.id, memory);
    let cluster = cluster.map_err(|error| error.to_string())?;
    let least = cluster
        .least_from_memory()
        .map_err(|error| error.to_string())?;
    past_caches(ran, own.owner())?;
    let ended = ran.seen.ledger.transactions();
    // Every program fetches.
    if ended.is_empty() {
        return Err("the requests of the run alone were not kept".to_owned());
    }
    let ended = ended.iter().filter(|one| one.owner == own.owner());
    let ended: Vec<&Ended> = ended.collect();
    let answered = ended.iter();
    let answered = answered.filter(|one| one.transaction != Transaction::CacheWrite);
    let mut answered: Vec<u64> = answered.map(|one| one.end).collect();
    answered.sort_unstable();
    let asked = asked(ran, own.owner());
    let apart = apart(&asked.came, &answered, &spans);
    let done = ended.into_iter().map(|one: &Ended| Stretch {
        begin: one.begin,
        end: one.end,
        done: match one.transaction {
            Transaction::CacheWrite => Done {
                writes: 1,
                ..Done::default()
            },
            // A request of a first level. Only its length shows that it went to memory, so one that waited long counts, too.
            _ => Done {
                requests: 1,
                reads: u64::from(one.end - one.begin >= least),
                writes: 0,
            },
        },
    });
    let mut most = jobs::most(done.collect(), &spans);
    let left = cluster.left_over(own.hart);
    let left = left.map_err(|error| error.to_string())?;
    let more = |count: u64| if count > 0 { count + left } else { 0 };
    most = Done {
        requests: most.requests + left,
        reads: more(most.reads),
        writes: more(most.writes),
    };
    let apart = apart.map_or(most.requests, |apart| most.requests.min(apart + left));
    let mut reservations = ran.seen.reservations.iter();
    let reservations = reservations.find(|(owner, _)| *owner == own.owner());
    Ok(Alone {
        flow: flow.name.clone(),
        system: ran.system.clone(),
        job: ClusterJob {
            time: worst,
            requests: most.requests,
            reads: most.reads,
            // That many may be under way at the start, and at the end, and that many were added above.
            outside: 3 * left,
            writes: most.writes,
            reservations: reservations.map_or(0, |(_, count)| *count),
            apart,
            managed: asked.managed,
            // Their order is known when it has run beside others.
            ..ClusterJob::default()
        },
        count: spans.len(),
        time: last.end - first.begin,
        all: all(ran, own.owner()),
        asked,
        left,
    })
}

/// The most requests of a job of which each came to its bank after some request had been answered since the one before it. `None`: the run had more
/// requests than were kept.
fn apart(came: &[u64], answered: &[u64], spans: &[Span]) -> Option<u64> {
    if came.len() >= Asked::MOST {
        return None;
    }
    let count = |span: &Span| {
        let (mut count, mut from) = (0, span.begin);
        // The earliest one leaves most room for the others.
        while let Some(at) = came[came.partition_point(|at| *at < from)..].first()
            && *at < span.end
        {
            count += 1;
            let next = answered.partition_point(|end| end <= at);
            from = answered.get(next).copied().unwrap_or(u64::MAX);
        }
        count
    };
    spans.iter().map(count).max()
}

/// The lines that a hart asked memory for; none if it never asked.
fn asked(ran: &Ran<'_>, owner: Owner) -> Asked {
    ran.seen.ledger.asked(owner).cloned().unwrap_or_default()
}

/// All requests and write-backs of a hart that ended the run with success, so that it did everything.
fn all(ran: &Ran<'_>, owner: Owner) -> Option<[u64; 2]> {
    let done = matches!(ran.seen.outcome, Outcome::Exit { code: 0, .. });
    let count = |transaction| {
        let all = ran.seen.ledger.latency(owner, transaction);
        all.map_or(0, |all| all.total.count())
    };
    (done && ran.seen.ended_by == Some(owner)).then(|| {
        [
            count(Transaction::CacheRead),
            count(Transaction::CacheWrite),
        ]
    })
}

/// Adds bounds to the flows of the variants. Returns what the additional runs were for.
pub(super) fn add(
    runs: &[Ran<'_>],
    besides: &[(BesideRun, Ran<'_>)],
    variants: &mut [VariantResult],
) -> Vec<AddedRun> {
    let (mut known, mut missing, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for (ran, variant) in runs.iter().zip(variants.iter()) {
        for flow in variant.flows.iter().filter(|_| serves(ran.system)) {
            match measured(ran, flow) {
                Ok(alone) => known.push(alone),
                Err(why) => missing.push((flow.name.clone(), ran.system.clone(), why)),
            }
        }
    }
    for (wanted, ran) in besides {
        let lives = super::Bare.lives(ran.system, ran.seen);
        let flows = collect::flows(ran.system, ran.names, &ran.seen.markers, &lives);
        let flow = flows.iter().find(|flow| flow.name == wanted.flow);
        let samples = flow.filter(|flow| flow.latency.count > 0);
        added.push(AddedRun {
            flow: wanted.flow.clone(),
            about: wanted.about.clone(),
            worst: samples.map(|flow| flow.latency.max),
            digest: ran.seen.digest.clone(),
        });
        let found = flow.ok_or_else(|| "alone it had no sample".to_owned());
        match found.and_then(|flow| measured(ran, flow)) {
            Ok(alone) => known.push(alone),
            Err(why) => missing.push((wanted.flow.clone(), ran.system.clone(), why)),
        }
    }
    for (ran, variant) in runs.iter().zip(variants) {
        for flow in &mut variant.flows {
            let mut described = ran.system.flows.iter();
            let Some(own) = described.find(|own| own.name == flow.name) else {
                continue;
            };
            match bound(ran, own, &known, &missing) {
                Ok(bound) => flow.bound = Some(bound),
                Err(why) => flow.unbounded = Some(why),
            }
        }
        for request in &mut variant.requests {
            request.unbounded = Some(REQUESTS.to_owned());
        }
    }
    added
}

/// Why no single request has a bound.
const REQUESTS: &str = "a request of a hart includes its wait for the hart's own miss registers, which is not bounded by itself; it is part of \
     the bound of a flow from the program to itself";

fn bound(
    ran: &Ran<'_>,
    flow: &Flow,
    known: &[Alone],
    missing: &[(String, System, String)],
) -> Result<Bound, String> {
    let system = ran.system;
    let own = judged(system, flow)?;
    let wanted = without_others(system, flow).ok_or("it has no program")?;
    let mut measured = known.iter();
    let measured = measured.find(|one| one.flow == flow.name && same(&one.system, &wanted));
    let measured = measured.ok_or_else(|| {
        let mut why = missing.iter();
        let why = why.find(|(name, system, _)| *name == flow.name && same(system, &wanted));
        why.map_or_else(
            || "its program was not measured alone: this run made no additional runs".to_owned(),
            |(.., why)| why.clone(),
        )
    })?;
    past_caches(ran, own.owner())?;
    let beside = beside(system, own.app);
    let memory = system.apps[own.app].memory_tile;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let cluster = ClusterBounds::new(&system.platform, own.tile.id, memory);
    let cluster = cluster.map_err(|error| text(&error))?;
    let judge = |job: &ClusterJob| {
        let found = cluster.job(own.hart, &beside, job);
        found.map_err(|error| text(&error))
    };
    // What the platform has no bound for is said first.
    judge(&measured.job)?;
    let here = all(ran, own.owner());
    let ended = measured.all.is_some() && here.is_some();
    if let (Some(alone), Some(here)) = (measured.all, here)
        && (here[0] > alone[0] || here[1] > alone[1])
    {
        return Err(format!(
            "alone it made {} requests and {} write-backs, and here {} and {}: which of its accesses hit depends on their times, so what it did \
             alone says too little; {}",
            alone[0],
            alone[1],
            here[0],
            here[1],
            own.hits()
        ));
    }
    let here = asked(ran, own.owner());
    let same = replaced(&measured.asked, &here, ended, measured.left as usize);
    let same = same.map_err(|what| {
        format!(
            "{what}: which of its accesses hit depends on their times, so what it did alone says too little; {}",
            own.hits()
        )
    })?;
    let ordered = came_in_order(&measured.asked, &here);
    let found = judge(&same.ordered(measured.job, ordered))?;
    Ok(Bound {
        ticks: found.whole(),
        method: format!(
            "measured alone + analysed interference: {}",
            found.method.source()
        ),
        covers: measured.covers(system.platform.ticks_per_second(), same),
    })
}

impl Alone {
    fn covers(&self, per_second: u64, same: Replaced) -> String {
        let time = |ticks: u64| span(ticks as f64 * 1e6 / per_second.max(1) as f64);
        let jobs = match self.count {
            1 => "1 job".to_owned(),
            count => format!("{count} jobs"),
        };
        let seen = match same {
            Replaced::SameOrder => {
                "; in this run, it read and wrote the lines of the run alone in their order, and its writes left between the same reads"
            }
            Replaced::InOrder => {
                "; in this run, it read and wrote the lines of the run alone in their order"
            }
            Replaced::OtherOrder => {
                "; in this run, it read and wrote the lines of the run alone, in another order"
            }
            Replaced::AsFarAsKept => {
                "; this run kept not all lines that it read and wrote, and those are as alone"
            }
        };
        format!(
            "a sample of the flow that begins when a first one has gone through: the worst latency alone, {}, as measured, and what {} requests of its first level ({} of them to memory, and {} \
             write-backs) can wait for others, as analysed; {jobs} in {} alone were counted. It assumes that no job alone takes longer or \
             makes more requests; that the program does the same whatever the time is, and the same accesses hit as did alone; and that all \
             programs keep to their own memory and write no lockdown register{seen}",
            time(self.job.time),
            self.job.requests,
            self.job.reads,
            self.job.writes,
            time(self.time),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system_text};

    /// By hand: the second of the first three and the fourth come with nothing answered since the one before, and the last one is behind the job.
    #[test]
    fn requests_are_apart_if_some_answer_is_between_them() {
        let came = [5, 10, 12, 41, 42, 60, 100];
        let answered = [11, 40, 50, 60, 90, 130];
        let span = |begin, end| Span { begin, end };
        // 10, 12 (behind 11), 41, 60 (behind 50).
        let found = |spans: &[Span]| apart(&came, &answered, spans);
        assert_eq!(found(&[span(10, 100)]), Some(4));
        assert_eq!(found(&[span(10, 101), span(0, 11)]), Some(5));
        assert_eq!(found(&[span(200, 300)]), Some(0));
        assert_eq!(apart(&[], &[], &[span(0, 9)]), Some(0));
    }

    /// A system of `table` on hart 0 and `rival` on hart 1.
    fn system(platform: &str, table: &str, rival: &str, flow: &str) -> System {
        let text = format!(
            "<system name='s' paradigm='bare' platform='{platform}'><domain name='d'>\
             <app name='table' program='p' memory='1MiB' {table}/><app name='rival' program='p' memory='1MiB' {rival}/></domain>\
             <flow name='f' {flow}/></system>"
        );
        let found = load_system_text("s", &text, &LoadOptions::default());
        found.unwrap_or_else(|error| panic!("{error}"))
    }

    const TO_ITSELF: &str = "from='table' to='table'";

    #[test]
    fn a_program_with_ways_of_its_own_is_judged() {
        let system = system(
            "imx6",
            "harts='0' ways='0-3'",
            "harts='1' ways='4-15'",
            TO_ITSELF,
        );
        let own = judged(&system, &system.flows[0]).expect("judged");
        assert_eq!((own.app, own.hart, own.owner()), (0, 0, Owner::new(0, 0)));
        // The advice names nothing that is so already: the first levels of `imx6` are `random`, those of `virt` are `lru`.
        assert!(own.hits().contains("a first level with `lru`"));
        let lru = self::system(
            "virt",
            "harts='0' ways='0-3'",
            "harts='1' ways='4-7'",
            TO_ITSELF,
        );
        let lru = judged(&lru, &lru.flows[0]).expect("judged").hits();
        assert!(!lru.contains("first level") && lru.contains("one miss under way"));
        // Alone it has the same ways and addresses.
        let alone = without_others(&system, &system.flows[0]).expect("there");
        assert!(serves(&alone) && !serves(&system));
        let placed = |system: &System| system.bare.as_ref().expect("bare").programs[0].clone();
        assert_eq!(placed(&alone), placed(&system));
        let chosen = [
            ("one".to_owned(), system.clone()),
            ("two".to_owned(), system),
        ];
        assert_eq!(plan(&chosen, true).len(), 1, "two variants share the run");
        assert!(plan(&[("alone".to_owned(), alone)], true).is_empty());
    }

    /// A prefetcher that is switched off is none.
    #[test]
    fn a_cluster_whose_caches_fetch_ahead_is_not_judged() {
        let mut system = system(
            "imx6",
            "harts='0' ways='0-3'",
            "harts='1' ways='4-15'",
            TO_ITSELF,
        );
        let other = bulkhead_model::load_platform("tx2", &LoadOptions::default()).expect("there");
        let mut prefetchers = other
            .caches
            .iter()
            .filter_map(|cache| cache.prefetcher.clone());
        let mut prefetcher = prefetchers.next().expect("the core has one");
        for second in [true, false] {
            for kind in [PrefetcherKind::Stream, PrefetcherKind::Off] {
                prefetcher.kind = kind;
                let tile = &mut system.platform.tiles[0];
                let cache = if second { &mut tile.l2 } else { &mut tile.l1d };
                cache.as_mut().expect("it has one").prefetcher = Some(prefetcher.clone());
                let why = judged(&system, &system.flows[0]).err();
                assert_eq!(why.is_some(), kind != PrefetcherKind::Off, "{why:?}");
                if let Some(why) = why {
                    assert!(why.contains(" of tile 0 fetches lines ahead"), "{why}");
                    assert!(why.contains("would be judged"), "{why}");
                }
            }
        }
    }

    /// Shares that only a hart without a program can change are judged; a program on the programmer's hart, or without ways, is not.
    #[test]
    fn a_memory_with_shares_is_judged_unless_another_program_can_change_them() {
        let of = |own: &str, rival: &str| {
            unbounded_flows(&system("virt-shares", own, rival, TO_ITSELF)).join("")
        };
        let own = "harts='1' ways='0-3' reserved='8'";
        assert_eq!(of(own, "harts='2' ways='4-7' weight='3'"), "");
        let programmer = of(own, "harts='0' ways='4-7'");
        assert!(programmer.contains("`rival` reaches the capacity controller"));
        let text = "<system name='s' paradigm='bare' platform='virt-shares'><domain name='d'>\
                    <app name='own' harts='1' program='p' memory='1MiB'/></domain><flow name='f' from='own' to='own'/></system>";
        let alone = load_system_text("s", text, &LoadOptions::default()).expect("valid");
        let why = unbounded_flows(&alone).join("");
        assert!(
            why.starts_with("flow `f` gets no bound: hart 1 of tile 0 has no ways"),
            "{why}"
        );
    }

    #[test]
    fn what_is_not_judged_says_what_would_be() {
        let why = |platform: &str, table: &str, rival: &str, flow: &str| {
            let system = system(platform, table, rival, flow);
            judged(&system, &system.flows[0]).expect_err("not judged")
        };
        let ways = ("harts='0' ways='0-3'", "harts='1' ways='4-15'");
        for (platform, table, rival, flow, expected) in [
            (
                "imx6",
                "harts='0'",
                "harts='1'",
                TO_ITSELF,
                "hart 1 with `rival` fills ways",
            ),
            (
                "imx6",
                "harts='0' ways='0-4'",
                ways.1,
                TO_ITSELF,
                "hart 1 with `rival` fills ways",
            ),
            (
                "imx6",
                ways.0,
                "harts='1'",
                TO_ITSELF,
                "hart 1 with `rival` fills ways",
            ),
            (
                "imx6",
                ways.0,
                ways.1,
                "from='table' to='rival'",
                "`table` and `rival` work on it",
            ),
            (
                "imx6",
                "harts='0,2' ways='0-3'",
                ways.1,
                TO_ITSELF,
                "`table` runs on 2 harts",
            ),
            (
                "tx2",
                ways.0,
                ways.1,
                TO_ITSELF,
                "hart 0 works out of order",
            ),
            (
                "tiled-2ghz",
                "tile='0'",
                "tile='1'",
                TO_ITSELF,
                "tile 0 has no cluster",
            ),
            (
                "zcu102",
                ways.0,
                "tile='1'",
                TO_ITSELF,
                "`rival` on tile 1 shares links and memory",
            ),
            (
                "zcu102",
                ways.0,
                "harts='1' ways='4-15' memory-tile='9'",
                TO_ITSELF,
                "`rival` is in memory 9",
            ),
            (
                "virt-qos",
                "harts='1' ways='0-3'",
                "harts='0' ways='4-7'",
                TO_ITSELF,
                "`rival` reaches the capacity controller",
            ),
        ] {
            let why = why(platform, table, rival, flow);
            assert!(why.starts_with(expected), "{why}");
            assert!(why.contains("would be judged"), "{why}");
        }
    }
}
