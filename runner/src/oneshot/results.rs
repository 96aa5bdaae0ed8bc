//! Results of a described system with their bounds, and its promises.
//!
//! Why it exists: a reader wants the longest response, operation and flow, and the bound of each. What it deliberately does not know: how a
//! bound is computed, and how a run is made.

use super::clocks::Clocks;
use super::handled;
use super::jobs::{self, Seen};
use super::known::{constraints, endless, hopeless};
use crate::collect::{doubled, ticks};
use crate::ended;
use crate::measure::MarkerEvent;
use bulkhead_analysis::one_shot::{Bounds, Interrupts};
use bulkhead_analysis::plan::one_shot::bounds;
use bulkhead_analysis::plan::{Constraint, Kind, plan};
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_model::system::oneshot::TICK;
use bulkhead_model::units::Time;
use bulkhead_report::distribution::distribution;
use bulkhead_report::format::grouped;
use bulkhead_report::result::{
    Bound, ClockError, ClockResult, End, FlowResult, Incident, IncidentKind, QuotaUse,
    RequestResult, Sample, SpanResult, TaskResult, VariantResult,
};
use bulkhead_report::table::ANALYSED;
use bulkhead_report::verdict::{Promise, relation};
use std::cell::OnceCell;

/// Why there is no bound, if nothing else is the reason.
const OVERLOADED: &str = "its core, or a core on its path, is overloaded";

/// The name of a response in results.
const RESPONSE: &str = "response";

/// The name of the time from a message to its reader's end, where the message releases the reader.
const NOTICE: &str = "notice";

/// The name of the time from the release of the writer's job until a slice or result has arrived.
const HANDED: &str = "handed over";

/// The name of writing to a port.
const WRITE: &str = "write";

/// The name of the places of a queue.
const PLACES: &str = "places";

/// What the bounds of responses and flows depend on.
const COVERS: &str = "the costs that the description states, the kernel's switches and interrupts, locks and the traffic of all others on the mesh";

/// What markers say, with bounds.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Jobs of each task.
    pub tasks: Vec<TaskResult>,
    /// Responses and operations on ports.
    pub requests: Vec<RequestResult>,
    /// Flows.
    pub flows: Vec<FlowResult>,
    /// Clocks of cores with timers of their own.
    pub clocks: Vec<ClockResult>,
    /// Places of queues.
    pub queues: Vec<QuotaUse>,
    /// Spans marked by programs.
    pub spans: Vec<SpanResult>,
    /// Cores that a job never gave back.
    pub stuck: Vec<Incident>,
    /// Cores whose handlers of timing events took longer than is stated.
    pub handlers: Vec<Incident>,
}

/// Adds everything that markers say to a result.
pub fn add(system: &System, markers: &[MarkerEvent], variant: &mut VariantResult) {
    if system.one_shot.is_none() {
        return;
    }
    let until = ended::until(system, &variant.end, variant.ticks);
    let measured = measured(system, markers, until);
    variant.tasks = measured.tasks;
    variant.requests = measured.requests;
    variant.quotas = measured.queues;
    variant.clocks = measured.clocks;
    variant.flows = measured.flows;
    variant.spans = measured.spans;
    // If it keeps its core from counting ticks, that is told already.
    let is_told = |one: &Incident| {
        let mut known = variant.incidents.iter();
        known.any(|other| other.kind == IncidentKind::Unfinished && other.tile == one.tile)
    };
    let stuck = measured.stuck.into_iter();
    let stuck: Vec<Incident> = stuck.filter(|one| !is_told(one)).collect();
    variant.incidents.extend(stuck);
    variant.incidents.extend(measured.handlers);
}

/// Reads the markers of a run that ended at this moment. Nothing for a system of another paradigm.
pub fn measured(system: &System, markers: &[MarkerEvent], end: u64) -> Measured {
    let Some(one_shot) = &system.one_shot else {
        return Measured::default();
    };
    let per_second = system.platform.ticks_per_second();
    let tick = ticks(TICK, per_second);
    let seen = jobs::read(system, one_shot, markers, tick, end);
    let bounds = bounds(one_shot, &system.platform);
    let handlers = handled::all(system, one_shot, &seen.handled);
    let handled = handlers.first().map(|(core, beyond)| beyond.what(*core));
    let unlike = unlike_described(one_shot, &seen, per_second).or(handled);
    let judged = match unlike.clone() {
        Some(why) => Err(why),
        None => plan(&bounds.tasks).map_err(|error| error.to_string()),
    };
    let constraints = match &judged {
        Ok(plan) => &plan.constraints[..],
        Err(_) => &[],
    };
    let reading = Reading {
        system,
        one_shot,
        seen: &seen,
        bounds: &bounds,
        constraints,
        why: judged.as_ref().err().cloned(),
        unlike: unlike.is_some() || bounds.unbounded.is_some(),
        per_second,
        end,
    };
    Measured {
        tasks: (0..one_shot.tasks.tasks.len())
            .map(|task| reading.task(task))
            .collect(),
        requests: reading.requests(),
        queues: reading.queues(),
        clocks: Clocks::read(system, one_shot, markers).map_or(Vec::new(), |all| all.results(end)),
        flows: (0..one_shot.tasks.flows.len())
            .map(|flow| reading.flow(flow))
            .collect(),
        spans: (0..one_shot.tasks.tasks.len())
            .filter_map(|task| reading.spans(task))
            .collect(),
        stuck: (0..one_shot.tasks.tasks.len())
            .filter_map(|task| reading.stuck(task))
            .collect(),
        handlers: handlers
            .into_iter()
            .map(|(core, beyond)| beyond.incident(core))
            .collect(),
    }
}

/// What a program does that no bound covers. Bounds assume that each job writes or reads each of its channels once, and that the jobs of a task are
/// released at least its period apart. Others wait for such accesses and jobs, too, so otherwise no bound of the chip applies.
fn unlike_described(one_shot: &OneShot, seen: &Seen, per_second: u64) -> Option<String> {
    let tasks = &one_shot.tasks;
    let hasty = tasks.tasks.iter().zip(&seen.jobs);
    let mut hasty = hasty.filter_map(|(task, jobs)| Some((task, jobs.hasty?)));
    if let Some((task, distance)) = hasty.next() {
        let when = match distance / ticks(TICK, per_second) {
            0 => "in the same tick as".to_owned(),
            1 => "1 tick after".to_owned(),
            count => format!("{count} ticks after"),
        };
        return Some(format!(
            "a job of `{}` was released {when} the one before it, and bounds count one job in {}",
            task.name, task.period
        ));
    }
    let channels = tasks.channels.iter().zip(&seen.in_a_job);
    let mut ends = channels.flat_map(|(channel, [writes, reads])| {
        let writer = (channel.from, "wrote", *writes);
        [writer, (channel.to, "read", *reads)].map(|end| (channel, end))
    });
    let (channel, (task, did, count)) = ends.find(|(_, (_, _, count))| *count > 1)?;
    Some(format!(
        "a job of `{}` {did} `{}` {count} times, but bounds count one access",
        tasks.tasks[task].name, channel.name
    ))
}

struct Reading<'a> {
    system: &'a System,
    one_shot: &'a OneShot,
    seen: &'a Seen,
    bounds: &'a Bounds,
    constraints: &'a [Constraint],
    why: Option<String>,
    /// The programs do something that bounds do not cover, or nothing of this chip has a bound.
    unlike: bool,
    per_second: u64,
    end: u64,
}

impl Reading<'_> {
    /// The bound of a task or a flow.
    fn bound(&self, kind: Kind, name: &str) -> Option<Bound> {
        let mut all = self.constraints.iter();
        let found = all.find(|one| one.kind == kind && one.subject == name)?;
        let nanoseconds = u128::from(found.bound?);
        let ticks = (nanoseconds * u128::from(self.per_second)).div_ceil(1_000_000_000);
        Some(Bound {
            ticks: u64::try_from(ticks).unwrap_or(u64::MAX),
            method: format!("{ANALYSED}: {}", found.method),
            covers: format!("{COVERS}; {}", self.bounds.beside()),
        })
    }

    /// Why something of a task that takes these channels has no bound. A constraint says it, where there is one of this kind and name.
    fn unbounded(
        &self,
        who: usize,
        (kind, name): (Option<Kind>, &str),
        bound: &Option<Bound>,
        route: &[usize],
    ) -> Option<String> {
        let mut all = self.constraints.iter();
        let found = all.find(|one| Some(one.kind) == kind && one.subject == name);
        let known = || match (&self.why, found) {
            (Some(why), _) => Some(why.clone()),
            (None, Some(constraint)) => constraint.note.clone(),
            (None, None) => {
                let lost = self.bounds.lost[who].as_ref();
                let lost = lost.map(|lost| lost.why().to_owned());
                let why = self.bounds.unbounded.clone().or(lost);
                why.or_else(|| self.bounds.fails_on(route).cloned())
            }
        };
        let why = || known().unwrap_or_else(|| OVERLOADED.to_owned());
        bound.is_none().then(why)
    }

    fn task(&self, index: usize) -> TaskResult {
        let task = &self.one_shot.tasks.tasks[index];
        let jobs = &self.seen.jobs[index];
        let deadline = ticks(task.deadline, self.per_second);
        let late = jobs.responses.iter().filter(|one| **one > deadline).count() as u64;
        let open = jobs
            .open
            .is_some_and(|at| self.end.saturating_sub(at) > deadline);
        // A job whose deadline is the end is due; how exactly clocks of their own agree on it is not asked.
        let tick = ticks(TICK, self.per_second);
        let own_clocks = self.one_shot.master(&self.system.platform).is_some();
        let due = self.end.saturating_sub(deadline);
        let due = due.saturating_sub(if own_clocks { tick } else { 0 });
        let period = jobs::period(self.system, self.one_shot, index, tick).max(1);
        let further = |since: u64| due.saturating_sub(since) / period;
        // While a job is late, those that are due after it are late, too.
        let behind = jobs.open.filter(|_| open && jobs.since.is_some());
        // The first job has no release, and is due when its core begins.
        let after = match (behind, jobs.since) {
            (Some(_), _) | (None, None) => 0,
            (None, Some(since)) if jobs.ended + jobs.cut_off == 0 => {
                further(since) + u64::from(due >= since)
            }
            (None, Some(since)) => further(since),
        };
        TaskResult {
            application: task.name.clone(),
            deadline,
            allowed: task.misses,
            jobs: jobs.ended,
            misses: late + jobs.cut_off + u64::from(open) + behind.map_or(0, further),
            open: u64::from(jobs.open.is_some() && !open),
            missing: jobs.skipped + after,
            worst: jobs.responses.iter().copied().max(),
            // Not measured: in one-shot systems, responses begin at the kernel's releases.
            begin: None,
        }
    }

    /// A job that began more than its deadline before the end and has not ended. Nothing preempts it, so its core does nothing else.
    fn stuck(&self, index: usize) -> Option<Incident> {
        let task = &self.one_shot.tasks.tasks[index];
        let begun = self.seen.jobs[index].running?;
        let core = self.one_shot.core(index);
        let late = self.end.saturating_sub(begun) > ticks(task.deadline, self.per_second);
        late.then(|| Incident {
            crash: None,
            kind: IncidentKind::Unfinished,
            at: Some(begun),
            tile: core,
            application: task.name.clone(),
            what: format!(
                "its job had not ended when the run ended, so no other task ran on core {core}"
            ),
        })
    }

    fn spans(&self, index: usize) -> Option<SpanResult> {
        let samples = self.seen.spans(index, self.end);
        (!samples.is_empty()).then(|| SpanResult {
            application: self.one_shot.tasks.tasks[index].name.clone(),
            latency: distribution(samples.iter().map(|sample| sample.latency)),
            samples,
        })
    }

    fn requests(&self) -> Vec<RequestResult> {
        let tasks = &self.one_shot.tasks;
        let one = |who: usize,
                   kind: &str,
                   to: String,
                   samples: &[u64],
                   (bound, of, route): (Option<Bound>, Option<Kind>, &[usize])| {
            // Responses are of tasks; all others are of the channel.
            let name = match route {
                [channel] => &tasks.channels[*channel].name,
                _ => &tasks.tasks[who].name,
            };
            RequestResult {
                application: tasks.tasks[who].name.clone(),
                kind: kind.to_owned(),
                to,
                count: samples.len() as u64,
                worst: samples.iter().copied().max().unwrap_or(0),
                unbounded: self.unbounded(who, (of, name), &bound, route),
                bound,
                lumped: None,
                tokens: None,
            }
        };
        let mut all = Vec::new();
        for (index, task) in tasks.tasks.iter().enumerate() {
            let bound = self.bound(Kind::Response, &task.name);
            let core = format!("core {}", self.one_shot.core(index));
            let samples = &self.seen.jobs[index].responses;
            let bound = (bound, Some(Kind::Response), &[][..]);
            all.push(one(index, RESPONSE, core, samples, bound));
        }
        for (index, channel) in tasks.channels.iter().enumerate() {
            let port = &self.bounds.ports[index];
            let hops = format!("port {}, {} hops", channel.name, port.hops);
            let write = self.operation(channel.from, port.write + port.write_wait);
            let writes = &self.seen.writes[index];
            all.push(one(
                channel.from,
                "write",
                hops.clone(),
                writes,
                (write, None, &[]),
            ));
            // A queue is read by its own channel.
            if channel.joins.is_none() {
                let read = self.operation(channel.to, port.read + port.read_wait);
                let reads = &self.seen.reads[index];
                all.push(one(
                    channel.to,
                    "read",
                    hops.clone(),
                    reads,
                    (read, None, &[]),
                ));
            }
            if channel.parallel.is_some() {
                let bound = self.bound(Kind::Channel, &channel.name);
                let handed = &self.seen.handed[index];
                let bound = (bound, Some(Kind::Channel), &[index][..]);
                all.push(one(channel.from, HANDED, hops.clone(), handed, bound));
            }
            if channel.notify {
                let bound = self.bound(Kind::Channel, &channel.name);
                let notices = &self.seen.notices[index];
                let bound = (bound, Some(Kind::Channel), &[index][..]);
                all.push(one(channel.to, NOTICE, hops, notices, bound));
            }
        }
        all
    }

    /// The places of queues, and the maximum number used.
    fn queues(&self) -> Vec<QuotaUse> {
        let channels = self.one_shot.tasks.channels.iter().enumerate();
        let queues = channels
            .filter(|(index, channel)| self.one_shot.slots(*index) > 0 && channel.joins.is_none());
        queues
            .map(|(index, channel)| QuotaUse {
                of: channel.name.clone(),
                quota: PLACES.to_owned(),
                tile: Some(self.one_shot.core(channel.to)),
                used: self.seen.queues[index].most,
                limit: self.one_shot.slots(index).into(),
            })
            .collect()
    }

    /// The bound of an operation of a task. Interrupts lengthen it, too.
    fn operation(&self, task: usize, cycles: u64) -> Option<Bound> {
        if self.unlike || self.bounds.lost[task].is_some() {
            return None;
        }
        let interrupts = Interrupts::of(
            self.one_shot,
            &self.system.platform,
            self.one_shot.core(task),
        );
        let cycles = cycles + interrupts.operation();
        let core = self.system.platform.tile(self.one_shot.core(task));
        let hertz = core.map_or(1, |tile| tile.pipeline.clock.frequency.0.max(1));
        let ticks = u128::from(cycles) * u128::from(self.per_second) / u128::from(hertz);
        Some(Bound {
            ticks: u64::try_from(ticks).unwrap_or(u64::MAX),
            method: "answers by hops, and the work of all others on shared links".to_owned(),
            covers: format!(
                "an interrupt here and one on the other core, the port's lock, and the traffic of all others on the mesh; {}",
                self.bounds.beside()
            ),
        })
    }

    fn flow(&self, index: usize) -> FlowResult {
        let tasks = &self.one_shot.tasks;
        let flow = &tasks.flows[index];
        let deadline = flow.deadline.map(|time| ticks(time, self.per_second));
        let bound = self.bound(Kind::Flow, &flow.name);
        // A flow without a route has no bound either, and the analysis says so.
        let route = tasks.route(flow.from, flow.to);
        let route = route.as_deref().unwrap_or(&[]);
        // What began later may still be in progress.
        let grace = deadline.or(bound.as_ref().map(|bound| bound.ticks));
        let grace = grace.unwrap_or_else(|| ticks(Time(TICK.0), self.per_second));
        let pairs = self.seen.flow(index, self.end.saturating_sub(grace));
        let late = |sample: &&Sample| deadline.is_some_and(|deadline| sample.latency > deadline);
        FlowResult {
            name: flow.name.clone(),
            from: tasks.tasks[flow.from].name.clone(),
            to: tasks.tasks[flow.to].name.clone(),
            through: self.through(flow.from, flow.to),
            deadline,
            misses: pairs.samples.iter().filter(late).count() as u64 + pairs.lost,
            lost: pairs.lost,
            open: 0,
            doubled: pairs.doubled,
            latency: distribution(pairs.samples.iter().map(|sample| sample.latency)),
            samples: pairs.samples,
            unbounded: self.unbounded(flow.from, (Some(Kind::Flow), &flow.name), &bound, route),
            bound,
        }
    }

    /// The tasks between two tasks, along the shortest path of channels.
    fn through(&self, from: usize, to: usize) -> Vec<String> {
        let tasks = &self.one_shot.tasks;
        let mut before: Vec<Option<usize>> = vec![None; tasks.tasks.len()];
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for channel in tasks.channels.iter().filter(|channel| channel.from == at) {
                if channel.to != from && before[channel.to].is_none() {
                    before[channel.to] = Some(at);
                    queue.push_back(channel.to);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = before[to];
        while let Some(task) = at.filter(|task| *task != from) {
            way.push(tasks.tasks[task].name.clone());
            at = before[task];
        }
        way.reverse();
        way
    }
}

/// Why a task was not judged to the end: it stopped, its core never started, or a job there never ended.
fn gone(one_shot: &OneShot, incidents: &[Incident], task: usize) -> Option<String> {
    let name = &one_shot.tasks.tasks[task].name;
    let core = one_shot.core(task);
    let of_core = format!("core {core}");
    let ends = |one: &&Incident| match one.kind {
        IncidentKind::Crash => one.application == *name || one.application == of_core,
        // Nothing preempts a job, so whatever is unfinished affects the whole core; so does whatever was not seen.
        IncidentKind::Unfinished | IncidentKind::Unseen => one.tile == core,
        IncidentKind::Stopped | IncidentKind::KernelStopped => false,
    };
    let end = incidents.iter().find(ends)?;
    let what = match end.kind {
        IncidentKind::Unseen => format!("nobody knows what `{name}` did"),
        _ => format!("`{name}` did not run to the end"),
    };
    Some(format!("{what}: {}: {}", end.application, end.what))
}

/// Whether it is sure that a task's missing jobs should have come: a task that is there may ask for later releases itself, but one that is gone, or that has never run,
/// does not.
fn is_lost(system: &System, variant: &VariantResult, task: &TaskResult) -> bool {
    let Some(one_shot) = &system.one_shot else {
        return false;
    };
    let Some(index) = one_shot.tasks.task(&task.application) else {
        return false;
    };
    let core = one_shot.core(index);
    let unseen = |one: &Incident| one.kind == IncidentKind::Unseen && one.tile == core;
    task.missing > 0
        && !variant.incidents.iter().any(unseen)
        && (task.jobs == 0 || gone(one_shot, &variant.incidents, index).is_some())
}

/// Why nothing of one of these tasks counts as held: it was not there to the end, or its jobs did not come.
fn any_gone(system: &System, variant: &VariantResult, names: &[&str]) -> Option<String> {
    let one_shot = system.one_shot.as_ref()?;
    if matches!(variant.end, End::Exit { .. }) {
        return Some(format!(
            "a core ended the run before its duration of {} was over",
            system.duration
        ));
    }
    let tasks = one_shot.tasks.tasks.iter().enumerate();
    let mut named = tasks.filter(|(_, task)| names.contains(&task.name.as_str()));
    let gone = named.find_map(|(task, _)| gone(one_shot, &variant.incidents, task));
    let mut results = variant.tasks.iter();
    let absent =
        || results.find_map(|task| absent(task).filter(|_| names.contains(&&*task.application)));
    gone.or_else(absent)
}

/// What is said of a task whose jobs did not come although time releases them.
fn absent(task: &TaskResult) -> Option<String> {
    let name = &task.application;
    (task.missing > 0).then(|| match task.jobs {
        0 => format!("`{name}` had no job, where {} were due", task.missing),
        _ => format!("`{name}` had no job in {} of its periods (if its jobs ask for later releases, write arrivals=\"sporadic\")", task.missing),
    })
}

/// A promise of a task that was gone before the end is no longer reported as held.
fn unless(promise: Promise, gone: &Option<String>) -> Promise {
    match gone {
        Some(why) => promise.unless_held(why),
        None => promise,
    }
}

/// For each core with a timer of its own: the error of its clock after synchronisation.
fn clocks(system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise> {
    let Some(one_shot) = &system.one_shot else {
        return Vec::new();
    };
    let Some(master) = one_shot.master(&system.platform) else {
        return Vec::new();
    };
    let cycles = |ticks: u64| grouped(ticks.div_ceil(cycle.max(1)));
    let others = one_shot.cores().into_iter().filter(|core| *core != master);
    let mut all = Vec::new();
    for core in others {
        let what = format!("clock of core {core} beside that of core {master}");
        let Some(clock) = variant.clocks.iter().find(|clock| clock.core == core) else {
            let text = format!("{what}: synchronised");
            all.push(Promise::judged(&variant.name, text, false));
            continue;
        };
        for (when, one) in [
            ("when it was synchronised", clock.synchronised),
            ("at the end", clock.end),
        ] {
            let ClockError { error, bound } = one;
            let text = format!(
                "{what}: wrong by {} cycles {when}, within the bound of {}",
                cycles(error),
                cycles(bound)
            );
            let held = Promise::judged(&variant.name, text, error <= bound);
            let of_core = |task: &usize| one_shot.tasks.tasks[*task].name.as_str();
            let tasks = [one_shot.on_core(core), one_shot.on_core(master)].concat();
            let tasks: Vec<&str> = tasks.iter().map(of_core).collect();
            all.push(unless(held, &any_gone(system, variant, &tasks)));
        }
    }
    all
}

/// What programs did that no bound covers. Without that, an operation of a task that has bounds at all has one.
fn unlike(one_shot: &OneShot, bounds: &Bounds, variant: &VariantResult) -> Option<String> {
    let has_bounds = |name: &str| {
        let mut tasks = one_shot.tasks.tasks.iter().zip(&bounds.lost);
        tasks.any(|(task, lost)| task.name == name && lost.is_none())
    };
    let operations = variant.requests.iter().filter(|one| one.kind == WRITE);
    let mut operations = operations.filter(|one| has_bounds(&one.application));
    let why = operations.find_map(|one| one.unbounded.clone());
    // Where nothing of the chip has a bound, that is said of each.
    why.filter(|why| bounds.unbounded.as_ref() != Some(why))
}

/// For each queue: the maximum number of waiting items, its bound, and its places.
fn queues(system: &System, variant: &VariantResult) -> Vec<Promise> {
    let mut uses = variant
        .quotas
        .iter()
        .filter(|one| one.quota == PLACES)
        .peekable();
    let (Some(one_shot), Some(_)) = (&system.one_shot, uses.peek()) else {
        return Vec::new();
    };
    let bounds = bounds(one_shot, &system.platform);
    let unlike = unlike(one_shot, &bounds, variant);
    let constraints = constraints(&bounds);
    let run = (variant.name.as_str(), system.misses_expected);
    let mut all = Vec::new();
    for queue in uses {
        let what = format!("queue {}", queue.of);
        let (used, limit) = (queue.used, queue.limit);
        let tasks = &one_shot.tasks;
        let channel = tasks.channels.iter().position(|one| one.name == queue.of);
        let sharing = channel.map_or(Vec::new(), |channel| tasks.sharing(channel));
        let mut found = constraints.iter();
        let found = found.find(|one| one.kind == Kind::Queue && one.subject == queue.of);
        let bound = found.filter(|_| unlike.is_none());
        match bound.and_then(|one| one.bound) {
            Some(most) => {
                let relation = relation(used, most);
                let text = format!("{what}: {used} items at most {relation} the bound of {most}");
                let ends = sharing.iter().flat_map(|&one| {
                    let channel = &tasks.channels[one];
                    [channel.from, channel.to].map(|end| tasks.tasks[end].name.as_str())
                });
                let ends: Vec<&str> = ends.collect();
                let gone = any_gone(system, variant, &ends);
                let held = Promise::judged(&variant.name, text, used <= most);
                all.push(unless(held, &gone));
                let text = format!("{what}: bound of {most} items within {limit} places");
                let promise = Promise::judged(&variant.name, text, most <= limit);
                all.push(unless(promise.if_expected(system.misses_expected), &gone));
            }
            None => {
                let places = format!("{limit} places");
                all.push(endless(run, &what, places, found, unlike.as_ref()));
            }
        }
    }
    all
}

/// For each slice and result of a parallel section: it arrives before its reader gives up.
fn sections(system: &System, variant: &VariantResult) -> Vec<Promise> {
    let Some(one_shot) = &system.one_shot else {
        return Vec::new();
    };
    let tasks = &one_shot.tasks;
    let mut channels = tasks.channels.iter();
    if channels.all(|channel| channel.parallel.is_none()) {
        return Vec::new();
    }
    let bounds = bounds(one_shot, &system.platform);
    let unlike = unlike(one_shot, &bounds, variant);
    let constraints = constraints(&bounds);
    let run = (variant.name.as_str(), system.misses_expected);
    let channels = tasks.channels.iter();
    let in_sections = channels.filter(|one| one.parallel.is_some());
    let mut all = Vec::new();
    for channel in in_sections {
        let wait = tasks.tasks[channel.to].wait;
        let mut found = constraints.iter();
        let found = found.find(|one| one.kind == Kind::Channel && one.subject == channel.name);
        let what = format!("{} before its reader gives up", channel.name);
        let bound = found.filter(|_| unlike.is_none());
        all.push(match bound.and_then(|one| one.bound) {
            Some(most) => {
                let text = format!("{what}: bound of {} within {wait}", Time(most * 1000));
                let held = Promise::judged(&variant.name, text, most * 1000 <= wait.0);
                let ends = [channel.from, channel.to].map(|end| tasks.tasks[end].name.as_str());
                let gone = any_gone(system, variant, &ends);
                unless(held.if_expected(system.misses_expected), &gone)
            }
            None => endless(run, &what, wait, found, unlike.as_ref()),
        });
    }
    all
}

/// The promises of a variant. `cycle`: ticks per cycle.
pub fn promises(system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise> {
    let name = &variant.name;
    let cycles = |ticks: u64| grouped(ticks.div_ceil(cycle.max(1)));
    let expected = system.misses_expected;
    let judged = |what: String, held: bool| Promise::judged(name, what, held);
    let within = |what: &str, worst: u64, bound: &Bound| {
        let (worst_cycles, most) = (cycles(worst), cycles(bound.ticks));
        let relation = relation(worst, bound.ticks);
        let text = format!("{what}: worst {worst_cycles} cycles {relation} the bound of {most}");
        judged(text, worst <= bound.ticks)
    };
    // Only for reasons that may be among them: the analysis of a large chip takes time.
    let reasons = OnceCell::new();
    let is_hopeless =
        |why: &String| why == OVERLOADED || reasons.get_or_init(|| hopeless(system)).contains(why);
    let deadline =
        |what: String, bound: &Option<Bound>, limit: u64, why: &Option<String>| match bound {
            Some(bound) => {
                let (most, limit_cycles) = (cycles(bound.ticks), cycles(limit));
                let relation = relation(bound.ticks, limit);
                let text = format!(
                    "{what}: bound of {most} cycles {relation} the deadline of {limit_cycles}"
                );
                judged(text, bound.ticks <= limit).if_expected(expected)
            }
            // `check` says so, too.
            None if why.as_ref().is_some_and(&is_hopeless) => {
                let why = why.as_deref().unwrap_or_default();
                let text = format!("{what}: no bound within the deadline: {why}");
                judged(text, false).if_expected(expected)
            }
            None => Promise::not_judged(
                name,
                format!("{what}: a bound within its deadline"),
                why.clone().unwrap_or_default(),
            ),
        };
    let mut all = Vec::new();
    for flow in &variant.flows {
        let what = format!("flow {}", flow.name);
        if flow.latency.count == 0 {
            let text = format!(
                "{what}: no sample; `{}` begins it with flow_begin, `{}` ends it with flow_end and the same number",
                flow.from, flow.to
            );
            all.push(judged(text, false));
            continue;
        }
        let mut members = vec![flow.from.as_str(), flow.to.as_str()];
        members.extend(flow.through.iter().map(String::as_str));
        // Why it is not known which end belongs to which begin, or which tasks existed until the end.
        let unsure = doubled(flow).or_else(|| any_gone(system, variant, &members));
        if let Some(bound) = &flow.bound {
            all.push(unless(within(&what, flow.latency.max, bound), &unsure));
        }
        if let Some(limit) = flow.deadline {
            let count = flow.latency.count + flow.lost;
            // As on the tiled OS: a flow may miss its deadline if a task on its path may.
            let tasks = variant.tasks.iter();
            let on_the_way = tasks.filter(|task| members.contains(&task.application.as_str()));
            let allowed = on_the_way.map(|task| task.allowed).max().unwrap_or(0);
            let text = format!("{what}: {} late of {count}, {allowed} allowed", flow.misses);
            let observed = judged(text, flow.misses <= allowed).if_expected(expected);
            all.push(unless(observed, &unsure));
            let bound = deadline(what, &flow.bound, limit, &flow.unbounded);
            all.push(unless(bound, &unsure));
        } else if flow.bound.is_none() {
            let why = flow.unbounded.clone().unwrap_or_default();
            all.push(Promise::not_judged(name, format!("{what}: a bound"), why));
        }
    }
    for task in &variant.tasks {
        let what = format!("task {}", task.application);
        let missing = match task.missing {
            0 => String::new(),
            missing => format!(", and {missing} that never came"),
        };
        let text = format!(
            "{what}: {} jobs late of {}{missing}, {} allowed",
            task.misses, task.jobs, task.allowed
        );
        let late = match is_lost(system, variant, task) {
            true => task.misses + task.missing,
            false => task.misses,
        };
        let observed = judged(text, late <= task.allowed).if_expected(expected);
        let gone = any_gone(system, variant, &[&task.application]);
        let observed = unless(observed, &gone);
        all.push(match (task.jobs, task.worst) {
            (0, _) => observed.unless_held("it had no job"),
            (_, None) => observed.unless_held("only its first job ended, which has no release"),
            _ => observed,
        });
        let response = variant
            .requests
            .iter()
            .find(|one| one.kind == RESPONSE && one.application == task.application);
        if let Some(response) = response {
            let limit = task.deadline;
            let bound = deadline(what, &response.bound, limit, &response.unbounded);
            all.push(unless(bound, &gone));
        }
    }
    all.extend(clocks(system, cycle, variant));
    all.extend(queues(system, variant));
    all.extend(sections(system, variant));
    for request in &variant.requests {
        let what = format!(
            "{} of {} ({})",
            request.kind, request.application, request.to
        );
        let gone = any_gone(system, variant, &[&request.application]);
        all.push(match &request.bound {
            Some(bound) if request.count > 0 => unless(within(&what, request.worst, bound), &gone),
            Some(_) => Promise::not_judged(name, what, "there was none"),
            None => {
                let why = request.unbounded.clone().unwrap_or_default();
                Promise::not_judged(name, format!("{what}: a bound"), why)
            }
        });
    }
    all
}
