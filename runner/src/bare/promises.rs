//! What a run of a system without a kernel promises, and whether it held.
//!
//! Why it exists: every deadline of the description and every bound counts; where nothing could be judged, the reason is given. What it
//! deliberately does not know: how a bound is computed.

use crate::collect::doubled;
use crate::measure::jobs;
use bulkhead_model::System;
use bulkhead_report::format::grouped;
use bulkhead_report::result::{
    Bound, FlowResult, IncidentKind, RequestResult, TaskResult, VariantResult,
};
use bulkhead_report::verdict::Promise;

/// The promises of a variant.
pub(super) fn of(system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise> {
    let judge = Judge {
        system,
        cycle: cycle.max(1),
        variant,
    };
    let flows = variant.flows.iter().flat_map(|flow| judge.flow(flow));
    let tasks = variant.tasks.iter().flat_map(|task| judge.task(task));
    let requests = variant
        .requests
        .iter()
        .map(|request| judge.request(request));
    flows.chain(tasks).chain(requests).collect()
}

/// Why something in progress at the end is not judged.
const BEFORE_THE_DEADLINE: &str = "the run ended before the deadline";
/// Why no response has a bound.
const NO_RESPONSE: &str =
    "only flows have bounds without a kernel; a flow from the program to itself would be judged";

struct Judge<'a> {
    system: &'a System,
    /// Ticks of a cycle of the reference clock.
    cycle: u64,
    variant: &'a VariantResult,
}

impl Judge<'_> {
    fn judged(&self, what: String, held: bool) -> Promise {
        Promise::judged(&self.variant.name, what, held)
    }

    fn not_judged(&self, what: String, because: &str) -> Promise {
        Promise::not_judged(&self.variant.name, what, because)
    }

    fn deadline(&self, what: String, held: bool) -> Promise {
        self.judged(what, held)
            .if_expected(self.system.misses_expected)
    }

    /// Why the markers of some programs do not show everything they did: the programs stopped, or made too many marks.
    fn unsure(&self, names: &[&str]) -> Option<String> {
        let tile = |name: &str| self.system.app(name).map(|app| app.tile);
        self.variant
            .incidents
            .iter()
            .find_map(|one| match one.kind {
                IncidentKind::Unseen if names.iter().any(|name| tile(name) == Some(one.tile)) => {
                    Some(format!("not all markers of tile {} were kept", one.tile))
                }
                IncidentKind::Stopped if names.contains(&&*one.application) => Some(format!(
                    "`{}` did not run to the end: {}",
                    one.application, one.what
                )),
                _ => None,
            })
    }

    fn under_way(&self, of: &str, open: u64, what: &str) -> Option<Promise> {
        let what = format!("{of}: {what} under way at the end: {open}");
        (open > 0).then(|| self.not_judged(what, BEFORE_THE_DEADLINE))
    }

    fn flow(&self, flow: &FlowResult) -> Vec<Promise> {
        let name = &flow.name;
        if flow.latency.count == 0 {
            return vec![self.judged(format!("flow {name}: no sample"), false)];
        }
        let mut all = Vec::new();
        let cycles = |ticks: u64| self.cycles(ticks);
        if let Some(bound) = &flow.bound {
            let unsure = doubled(flow).or_else(|| self.unsure(&[&flow.from]));
            let observed = self.within_bound(flow, bound).into_iter();
            all.extend(observed.map(|one| match &unsure {
                Some(why) => one.unless_held(why),
                None => one,
            }));
        }
        if let Some(deadline) = flow.deadline {
            let ends = [&flow.from, &flow.to].into_iter();
            let tasks = ends.filter_map(|name| self.system.app(name)?.task.as_ref());
            let allowed = tasks.map(|task| task.misses).max().unwrap_or(0);
            let what = format!(
                "flow {name}: {} late of {}, {allowed} allowed",
                flow.misses,
                flow.latency.count + flow.lost
            );
            let unsure = doubled(flow).or_else(|| self.unsure(&[&flow.from, &flow.to]));
            let observed = self.deadline(what, flow.misses <= allowed);
            all.push(match unsure {
                Some(why) => observed.unless_held(&why),
                None => observed,
            });
            if let Some(bound) = &flow.bound {
                let (most, limit) = (cycles(bound.ticks), cycles(deadline));
                let what =
                    format!("flow {name}: bound of {most} cycles within the deadline of {limit}");
                all.push(self.deadline(what, bound.ticks <= deadline));
            }
            all.extend(self.under_way(&format!("flow {name}"), flow.open, "samples"));
        }
        if flow.bound.is_none() {
            let why = flow.unbounded.as_deref().unwrap_or(NO_RESPONSE);
            all.push(self.not_judged(format!("flow {name}: a bound"), why));
        }
        all
    }

    /// Whether samples kept to the bound of their flow: all of them, or those that began when the program had started. A bound that does not
    /// hold is wrong, whatever the variant shows.
    fn within_bound(&self, flow: &FlowResult, bound: &Bound) -> Vec<Promise> {
        let within = |worst: u64| {
            let (seen, most) = (self.cycles(worst), self.cycles(bound.ticks));
            let what = format!(
                "flow {}: worst {seen} cycles within the bound of {most}",
                flow.name
            );
            self.judged(what, worst <= bound.ticks)
        };
        let all = within(flow.latency.max);
        match jobs::worst_started(&flow.samples) {
            Some(started) if flow.latency.max > bound.ticks && started <= bound.ticks => {
                let why = "it began before a first sample had gone through, so its program may not have started";
                vec![self.not_judged(all.what, why), within(started)]
            }
            _ => vec![all],
        }
    }

    fn cycles(&self, ticks: u64) -> String {
        grouped(ticks.div_ceil(self.cycle))
    }

    fn task(&self, task: &TaskResult) -> Vec<Promise> {
        let name = &task.application;
        let observed = match (task.jobs, task.misses) {
            (0, 0) => {
                let what = format!("task {name}: its deadline");
                self.not_judged(
                    what,
                    "its program marks no jobs: their releases and ends must be marked",
                )
            }
            (jobs, misses) => {
                let settled = jobs.saturating_sub(task.open);
                let allowed = task.allowed;
                let what =
                    format!("task {name}: {misses} of {settled} jobs late, {allowed} allowed");
                let promise = self.deadline(what, misses <= allowed);
                match self.unsure(&[name]) {
                    Some(why) => promise.unless_held(&why),
                    None if settled == 0 => promise.unless_held(BEFORE_THE_DEADLINE),
                    None if task.worst.is_none() => promise.unless_held(
                        "none of its jobs was completed: its program must mark the end of each job",
                    ),
                    None => promise,
                }
            }
        };
        let open = self.under_way(&format!("task {name}"), task.open, "jobs");
        let bound = self.not_judged(
            format!("task {name}: a bound within its deadline"),
            NO_RESPONSE,
        );
        open.into_iter().chain([observed, bound]).collect()
    }

    fn request(&self, request: &RequestResult) -> Promise {
        let why = request.unbounded.as_deref().unwrap_or(NO_RESPONSE);
        let what = format!("{} of {}: a bound", request.kind, request.application);
        self.not_judged(what, why)
    }
}
