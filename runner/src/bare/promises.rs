//! What a run of a system without a kernel promises, and whether it held.
//!
//! Why it exists: every deadline of the description counts; where nothing could be judged, the reason is given. What it deliberately does not
//! know: bounds, because nothing limits what such programs do to each other.

use crate::collect::doubled;
use bulkhead_model::System;
use bulkhead_report::result::{FlowResult, IncidentKind, RequestResult, TaskResult, VariantResult};
use bulkhead_report::verdict::Promise;

/// The promises of a variant.
pub(super) fn of(system: &System, variant: &VariantResult) -> Vec<Promise> {
    let judge = Judge { system, variant };
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
const NO_RESPONSE: &str = "nothing bounds the responses of programs without a kernel";

struct Judge<'a> {
    system: &'a System,
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
        if flow.deadline.is_some() {
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
            all.extend(self.under_way(&format!("flow {name}"), flow.open, "samples"));
        }
        let why = flow.unbounded.as_deref().unwrap_or(NO_RESPONSE);
        all.push(self.not_judged(format!("flow {name}: a bound"), why));
        all
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
                        "none of its jobs was completed: its program must mark where each one ends",
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
