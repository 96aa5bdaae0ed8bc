//! What a run of a tiled system promises, and whether it held.
//!
//! Why it exists: a bound that is never compared is decoration, and a deadline that counts only sometimes is not a deadline. Every
//! deadline of the description counts, wherever it is; where nothing could be judged, the reason is given. What it deliberately does not
//! know: how a bound is computed, and how an observation was made.

use super::bounds::members;
use super::console::is_done_to;
use super::unfinished::{NOTHING, STOPPED};
use crate::collect::doubled;
use crate::measure::jobs;
use bulkhead_analysis::plan::system::{Unjudged, judge};
use bulkhead_analysis::plan::{Constraint, Kind};
use bulkhead_model::System;
use bulkhead_report::format::grouped;
use bulkhead_report::plan::failure;
use bulkhead_report::result::{
    Bound, End, FlowResult, Incident, IncidentKind, RequestResult, TaskResult, VariantResult,
};
use bulkhead_report::verdict::{Judgement, Promise, relation};

/// The promises of a variant. `cycle`: ticks per cycle of the reference clock.
pub fn of(system: &System, cycle: u64, variant: &VariantResult) -> Vec<Promise> {
    let judge = Judge {
        system,
        cycle: cycle.max(1),
        variant,
        responses: match variant.tasks.is_empty() {
            true => Ok(Responses::default()),
            false => responses(system),
        },
    };
    let flows = variant.flows.iter().flat_map(|flow| {
        let gone = judge.unsure(&members(system, flow));
        let all = judge.flow(flow).into_iter();
        all.map(move |one| unless(one, &gone))
    });
    let of = |name: &str| system.apps.iter().position(|app| app.name == name);
    let tasks = variant.tasks.iter().flat_map(|task| {
        let gone = judge.unsure(of(&task.application).as_slice());
        let mut all = judge.task(task);
        // The bound of a description says what must hold.
        let bound = all.pop();
        let observed = all.into_iter().map(move |one| unless(one, &gone));
        observed.chain(bound)
    });
    let requests = variant.requests.iter().map(|request| {
        let gone = judge.gone(of(&request.application).as_slice());
        unless(judge.request(request), &gone)
    });
    let all = flows.chain(tasks).chain(requests);
    all.chain(judge.done_to()).collect()
}

/// A promise of an application that was gone before the end is no longer reported as held.
fn unless(promise: Promise, gone: &Option<String>) -> Promise {
    match gone {
        Some(why) => promise.unless_held(why),
        None => promise,
    }
}

/// Why an application was not judged to the end: it stopped with an error, or its manager stopped it, and it did not come back.
pub fn gone(system: &System, incidents: &[Incident], app: usize) -> Option<String> {
    let app = system.apps.get(app)?;
    let by_its_manager = |one: &Incident| one.what.starts_with(STOPPED);
    let own = |one: &&Incident| {
        let ended = matches!(one.kind, IncidentKind::Crash | IncidentKind::Stopped);
        (ended || by_its_manager(one)) && one.application == app.name
    };
    let ends = incidents.iter().filter(own);
    let last = ends.clone().next_back()?;
    let is_gone = ends
        .clone()
        .any(|one| is_done_to(one) || by_its_manager(one))
        || ends.count() > app.restarts() as usize;
    is_gone.then(|| format!("`{}` did not run to the end: {}", app.name, last.what))
}

/// The beginning of why an application is gone: the incident itself, which is listed above, has the rest.
fn brief(why: &str) -> &str {
    let from = why.find("stopped: ").map_or(0, |at| at + "stopped: ".len());
    let rest = &why[from..];
    let ends = [": ", " at ", "; "].into_iter();
    let end = ends.filter_map(|end| rest.find(end)).min();
    &why[..end.map_or(why.len(), |end| from + end)]
}

/// Why something in progress at the end is not judged.
const BEFORE_THE_DEADLINE: &str = "the run ended before the deadline";

/// Bounds of the responses of tasks, as reported by `check`, and why the other tasks have none.
#[derive(Default)]
struct Responses {
    bounds: Vec<Constraint>,
    unjudged: Vec<Unjudged>,
}

/// # Errors
/// Why no bound is known.
fn responses(system: &System) -> Result<Responses, String> {
    let verdict = judge(system).map_err(|error| error.to_string())?;
    let all = verdict.tasks.into_iter().flat_map(|plan| plan.constraints);
    Ok(Responses {
        bounds: all.filter(|one| one.kind == Kind::Response).collect(),
        unjudged: verdict.unjudged,
    })
}

/// Why not everything that an application did was seen: its tile made more markers than are kept.
pub fn unseen(system: &System, incidents: &[Incident], app: usize) -> Option<String> {
    let tile = system.apps.get(app)?.tile;
    let mut all = incidents.iter();
    let one = all.find(|one| one.kind == IncidentKind::Unseen && one.tile == tile)?;
    Some(format!(
        "`{}` filled the room for markers of tile {tile}, so some jobs and flows there were not recorded",
        one.application
    ))
}

struct Judge<'a> {
    system: &'a System,
    cycle: u64,
    variant: &'a VariantResult,
    responses: Result<Responses, String>,
}

impl Judge<'_> {
    fn cycles(&self, ticks: u64) -> String {
        grouped(ticks.div_ceil(self.cycle))
    }

    fn judged(&self, what: String, held: bool) -> Promise {
        Promise::judged(&self.variant.name, what, held)
    }

    fn not_judged(&self, what: String, because: &str) -> Promise {
        Promise::not_judged(&self.variant.name, what, because)
    }

    /// Why the promises of these applications were not judged to the end.
    fn gone(&self, apps: &[usize]) -> Option<String> {
        let incidents = &self.variant.incidents;
        let mut apps = apps.iter();
        let why = apps.find_map(|&app| gone(self.system, incidents, app))?;
        Some(brief(&why).to_owned())
    }

    /// Why the markers of these applications do not show everything they did.
    fn unsure(&self, apps: &[usize]) -> Option<String> {
        let incidents = &self.variant.incidents;
        let mut members = apps.iter();
        let unseen = members.find_map(|&app| unseen(self.system, incidents, app));
        unseen.or_else(|| self.gone(apps))
    }

    /// Applications run until they end by themselves, and failed services are restarted as the description says.
    fn done_to(&self) -> impl Iterator<Item = Promise> {
        let all = self.variant.incidents.iter();
        all.filter(|one| is_done_to(one)).map(|one| {
            let what = format!("{}: nobody ends it: {}", one.application, one.what);
            self.judged(what, false)
        })
    }

    /// A promise about a deadline. A variant may be declared to show how deadlines are missed.
    fn deadline(&self, what: String, held: bool) -> Promise {
        self.judged(what, held)
            .if_expected(self.system.misses_expected)
    }

    /// The first of some applications that did something, and did not finish.
    fn unfinished(&self, names: &[&str]) -> Option<&str> {
        let all = self.variant.incidents.iter();
        let mut all =
            all.filter(|one| one.kind == IncidentKind::Unfinished && !one.what.contains(NOTHING));
        let one = all.find(|one| names.contains(&&*one.application))?;
        Some(&one.application)
    }

    /// Says what is missing if a flow never began although both of its ends did what they should.
    fn none_began(&self, flow: &FlowResult) -> String {
        let mut all = self.variant.incidents.iter();
        if all.any(|one| [&flow.from, &flow.to].contains(&&one.application)) {
            return String::new();
        }
        format!(
            ": none began at `{}`, whose program must mark the begin (`flow_begin`; in C `bh_flow_begin`)",
            flow.from
        )
    }

    fn flow(&self, flow: &FlowResult) -> Vec<Promise> {
        let name = &flow.name;
        if flow.latency.count == 0 {
            let advice = match (flow.lost, &self.variant.end) {
                (begun @ 1.., _) => format!(
                    ": of {begun} that began at `{}`, none ended at `{}`; both must mark the same numbers",
                    flow.from, flow.to
                ),
                (0, End::Duration) => match self.unfinished(&[&flow.from, &flow.to]) {
                    Some(who) => format!("; `{who}` did not finish: see what it did last"),
                    None => {
                        "; the system must first start, so give it a longer duration".to_owned()
                    }
                },
                _ => self.none_began(flow),
            };
            return vec![self.judged(format!("flow {name}: no sample{advice}"), false)];
        }
        let mut all = Vec::new();
        let doubled = doubled(flow);
        if let Some(bound) = &flow.bound {
            let observed = self.observed(flow, bound).into_iter();
            all.extend(observed.map(|one| unless(one, &doubled)));
        }
        if let Some(deadline) = flow.deadline {
            let apps = members(self.system, flow);
            let tasks = apps.iter();
            let tasks = tasks.filter_map(|&app| self.system.apps.get(app)?.task.as_ref());
            let allowed = tasks.map(|task| task.misses).max().unwrap_or(0);
            let observed = self.deadline(
                format!(
                    "flow {name}: {} late of {}, {allowed} allowed",
                    flow.misses,
                    flow.latency.count + flow.lost
                ),
                flow.misses <= allowed,
            );
            all.push(unless(observed, &doubled));
            if let Some(bound) = &flow.bound {
                let (most, limit) = (self.cycles(bound.ticks), self.cycles(deadline));
                let relation = relation(bound.ticks, deadline);
                let what = format!(
                    "flow {name}: bound of {most} cycles {relation} the deadline of {limit}"
                );
                all.push(self.deadline(what, bound.ticks <= deadline));
            }
        }
        if flow.deadline.is_some() {
            all.extend(self.under_way(&format!("flow {name}"), flow.open, "samples"));
        }
        if flow.bound.is_none() {
            let what = match flow.deadline {
                Some(_) => format!("flow {name}: a bound within its deadline"),
                None => format!("flow {name}: a bound"),
            };
            let why = flow.unbounded.as_deref();
            all.push(self.not_judged(what, why.unwrap_or("nothing is known of it")));
        }
        all
    }

    /// Whether samples kept to the bound of their flow. The bound assumes applications that have started: a sample that exceeds it and
    /// began before a first sample had passed through all of them is not judged.
    fn observed(&self, flow: &FlowResult, bound: &Bound) -> Vec<Promise> {
        let of = format!("flow {}", flow.name);
        let started = jobs::worst_started(&flow.samples);
        if flow.latency.max <= bound.ticks || started.is_some_and(|worst| worst > bound.ticks) {
            return vec![self.within(&of, flow.latency.max, bound)];
        }
        let whole = self.within(&of, flow.latency.max, bound);
        let why = "it began before a first sample had gone through, so its applications may not have started";
        let mut promises = vec![self.not_judged(whole.what, why)];
        promises.extend(started.map(|worst| self.within(&of, worst, bound)));
        promises
    }

    /// The samples that were in progress when the run ended and could still have been in time.
    fn under_way(&self, of: &str, open: u64, what: &str) -> Option<Promise> {
        let what = format!("{of}: {what} under way at the end: {open}");
        (open > 0).then(|| self.not_judged(what, BEFORE_THE_DEADLINE))
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
                let allowed = task.allowed;
                let settled = jobs.saturating_sub(task.open);
                let never = match task.worst {
                    None if misses > 0 && misses == settled => {
                        ", because none was completed: the program must mark the end of each job (`complete`; in C `bh_complete`)"
                    }
                    _ => "",
                };
                let what = format!(
                    "task {name}: {misses} of {settled} jobs late, {allowed} allowed{never}"
                );
                let promise = self.deadline(what, misses <= allowed);
                match task.missing {
                    0 if settled == 0 => promise.unless_held(BEFORE_THE_DEADLINE),
                    0 if task.worst.is_none() => promise.unless_held(
                        "none of its jobs was completed: its program must mark the end of each job (`complete`; in C `bh_complete`)",
                    ),
                    0 => promise,
                    missing => {
                        let why = format!(
                            "{missing} more periods passed without a job, and its program runs in the background and cannot be asked \
                             whether it hangs"
                        );
                        promise.unless_held(&why)
                    }
                }
            }
        };
        let what = format!("task {name}: a bound within its deadline");
        let bound = match &self.responses {
            Err(why) => self.not_judged(what, why),
            Ok(all) => match all.bounds.iter().find(|one| one.subject == *name) {
                None => {
                    let task = format!("task {name}");
                    let why = all.unjudged.iter().find(|one| one.what == task);
                    let why = why.map(|one| one.because.as_str());
                    self.not_judged(what, why.unwrap_or("nothing is known of it"))
                }
                Some(one) => match (self.exceeded(task, one), one.judgement) {
                    // Anything that took longer than its bound shows that the bound is wrong.
                    (Some(exceeded), _) => exceeded,
                    (None, Judgement::Held) => self.deadline(what, true),
                    (None, Judgement::Failed) => {
                        self.deadline(format!("task {name}: {}", failure(one)), false)
                    }
                    (None, Judgement::NotJudged) => {
                        self.not_judged(what, one.note.as_deref().unwrap_or_default())
                    }
                },
            },
        };
        let open = self.under_way(&format!("task {name}"), task.open, "jobs");
        open.into_iter().chain([observed, bound]).collect()
    }

    /// The failure of a bound that a job exceeded.
    fn exceeded(&self, task: &TaskResult, bound: &Constraint) -> Option<Promise> {
        let per_second = u128::from(self.system.platform.ticks_per_second());
        let most = (u128::from(bound.bound?) * per_second).div_ceil(1_000_000_000);
        let worst = task.worst.filter(|worst| u128::from(*worst) > most)?;
        let what = format!(
            "task {}: worst response {} cycles above the bound of {}, which assumes that a job takes at most its <task>'s cost alone",
            task.application,
            self.cycles(worst),
            self.cycles(u64::try_from(most).unwrap_or(u64::MAX))
        );
        // The cost contains the interference in memory, which a variant may be meant to show.
        Some(self.deadline(what, false))
    }

    fn request(&self, request: &RequestResult) -> Promise {
        let name = format!("{} of {}", request.kind, request.application);
        match &request.bound {
            Some(bound) => self.within(&name, request.worst, bound),
            None => {
                let why = request.unbounded.as_deref();
                let why = why.unwrap_or("nothing is known of it");
                self.not_judged(format!("{name}: a bound"), why)
            }
        }
    }

    fn within(&self, name: &str, worst: u64, bound: &Bound) -> Promise {
        let what = format!(
            "{name}: worst {} cycles {} the bound of {}",
            self.cycles(worst),
            relation(worst, bound.ticks),
            self.cycles(bound.ticks)
        );
        self.judged(what, worst <= bound.ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system, load_system_text};
    use bulkhead_report::distribution::distribution;
    use bulkhead_report::result::Sample;
    use bulkhead_report::verdict::{Judgement, Outcome, Verdict};

    fn system(variant: &str) -> System {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let mut all = system.variants.into_iter();
        all.find(|one| one.variant.as_deref() == Some(variant))
            .expect("there")
    }

    fn flow(latencies: &[u64], bound: Option<u64>) -> FlowResult {
        FlowResult {
            name: "loop".to_owned(),
            from: "sensor".to_owned(),
            to: "actuator".to_owned(),
            through: vec!["controller".to_owned()],
            deadline: Some(1000),
            misses: latencies.iter().filter(|&&l| l > 1000).count() as u64,
            lost: 0,
            open: 0,
            doubled: 0,
            latency: distribution(latencies.iter().copied()),
            samples: latencies
                .iter()
                .zip(0..)
                .map(|(&latency, number)| Sample {
                    number,
                    begin: 150 + number * 10_000,
                    latency,
                })
                .collect(),
            bound: bound.map(|ticks| Bound {
                ticks,
                method: String::new(),
                covers: String::new(),
            }),
            unbounded: bound.is_none().then(|| "nobody knows".to_owned()),
        }
    }

    fn task(jobs: u64, misses: u64) -> TaskResult {
        TaskResult {
            application: "sensor".to_owned(),
            deadline: 1000,
            allowed: 0,
            jobs,
            misses,
            open: 0,
            missing: 0,
            worst: Some(1),
            begin: None,
        }
    }

    fn empty(variant: &str) -> VariantResult {
        VariantResult {
            name: variant.to_owned(),
            ticks: 0,
            end: End::Duration,
            instructions: 0,
            digest: String::new(),
            flows: Vec::new(),
            spans: Vec::new(),
            tasks: Vec::new(),
            requests: Vec::new(),
            interference: Vec::new(),
            tiles: Vec::new(),
            incidents: Vec::new(),
            checks: Vec::new(),
            links: Vec::new(),
            quotas: Vec::new(),
            clocks: Vec::new(),
        }
    }

    fn verdict(variant: &str, flows: Vec<FlowResult>, tasks: Vec<TaskResult>) -> Verdict {
        let result = VariantResult {
            flows,
            tasks,
            ..empty(variant)
        };
        Verdict::of(of(&system(variant), 2, &result))
    }

    fn judgements(verdict: &Verdict) -> Vec<Judgement> {
        verdict.promises().iter().map(|one| one.judgement).collect()
    }

    use Judgement::{Failed, Held, NotJudged};

    #[test]
    fn a_flow_without_samples_keeps_no_promise() {
        for variant in ["regulated", "unregulated"] {
            let none = verdict(variant, vec![flow(&[], Some(900))], Vec::new());
            assert_eq!(none.outcome(), Outcome::Failed, "{variant}");
            assert!(none.promises()[0].what.contains("no sample"));
        }
    }

    #[test]
    fn samples_whose_ends_may_be_somebody_elses_are_not_held() {
        let of = |latency| {
            let doubled = FlowResult {
                doubled: 1,
                ..flow(&[500, latency], Some(900))
            };
            verdict("regulated", vec![doubled], Vec::new())
        };
        assert_eq!(judgements(&of(900)), [NotJudged, NotJudged, Held]);
        let why = of(900).promises()[1].because.clone().unwrap_or_default();
        assert!(
            why.starts_with("1 of its samples have numbers that ended at `actuator` more often"),
            "{why}"
        );
        assert_eq!(judgements(&of(1200)), [Failed, Failed, Held]);
    }

    #[test]
    fn each_way_to_fail_fails() {
        // Observation against bound, observation against deadline, bound against deadline.
        for (worst, bound, expected) in [
            (900, 900, [Held, Held, Held]),
            (900, 899, [Failed, Held, Held]),
            (900, 1001, [Held, Held, Failed]),
            (1200, 1200, [Held, Failed, Failed]),
            (1200, 1199, [Failed, Failed, Failed]),
        ] {
            let found = verdict(
                "regulated",
                vec![flow(&[1, worst], Some(bound))],
                Vec::new(),
            );
            assert_eq!(judgements(&found), expected, "{worst} {bound}");
        }
    }

    /// A bound assumes applications that have started; that is known only once a sample has passed through them.
    #[test]
    fn a_sample_that_may_meet_a_start_is_not_judged_by_the_bound() {
        let of = |samples: &[(u64, u64)], bound| {
            let mut flow = flow(
                &samples.iter().map(|one| one.1).collect::<Vec<_>>(),
                Some(bound),
            );
            for (sample, (begin, _)) in flow.samples.iter_mut().zip(samples) {
                sample.begin = *begin;
            }
            judgements(&verdict("regulated", vec![flow], Vec::new()))
        };
        let deadlines = [Held, Held];
        for (samples, expected) in [
            (&[(0, 50), (100, 50)][..], &[Held][..]),
            (&[(0, 90), (100, 50)], &[NotJudged, Held]),
            // The second one begins before the first one has ended.
            (&[(0, 150), (100, 70)], &[NotJudged]),
            (&[(0, 90), (100, 90)], &[Failed]),
            (&[(0, 50), (50, 90)], &[Failed]),
        ] {
            let found = of(samples, 60);
            assert_eq!(found, [expected, &deadlines[..]].concat(), "{samples:?}");
        }
    }

    #[test]
    fn a_deadline_counts_whoever_is_unlimited_and_says_that_it_has_no_bound() {
        for variant in ["alone", "regulated"] {
            let found = verdict(variant, vec![flow(&[1200], None)], Vec::new());
            assert_eq!(judgements(&found), [Failed, NotJudged], "{variant}");
            let why = found.promises()[1].because.as_deref();
            assert_eq!(why, Some("nobody knows"));
        }
    }

    #[test]
    fn misses_that_are_meant_are_shown_and_do_not_count() {
        let both = |variant| verdict(variant, vec![flow(&[1200], Some(1300))], vec![task(5, 5)]);
        let shown = both("unregulated");
        assert_eq!(
            judgements(&shown),
            [Held, Failed, Failed, Failed, NotJudged]
        );
        assert_eq!((shown.counts().expected, shown.is_kept()), (3, true));
        assert_eq!(both("regulated").counts().failed, 3);
        // An observation that exceeds a bound is never intended.
        let wrong = verdict("unregulated", vec![flow(&[1, 900], Some(899))], Vec::new());
        assert!(!wrong.is_kept());
    }

    #[test]
    fn a_response_that_check_bounds_above_its_deadline_fails_the_run_too() {
        let app = |name: &str| {
            format!(
                "<app name='{name}' program='p' tile='2'><task period='4ms' deadline='1ms' cost='600us'/></app>"
            )
        };
        // Alone on its tile, and in turn with another one.
        for (other, expected) in [(String::new(), Held), (app("other"), Failed)] {
            let text = format!(
                "<system name='s' platform='tiled-gem5'><domain name='d'>{}{other}</domain><tilemux tile='2'/></system>",
                app("sensor")
            );
            let system = load_system_text("s", &text, &LoadOptions::default()).expect("valid");
            let mut result = empty("s");
            result.tasks = vec![task(5, 0)];
            let found = Verdict::of(of(&system, 2, &result));
            assert_eq!(judgements(&found), [Held, expected], "{text}");
        }
    }

    /// By hand: alone on its tile, a job of 600 us has a bound of 600 us, which is 2 400 000 ticks.
    #[test]
    fn a_job_that_took_longer_than_its_bound_fails_the_run_before_its_deadline_does() {
        let text = "<system name='s' platform='tiled-gem5'><domain name='d'><app name='sensor' program='p' tile='2'>\
                    <task period='4ms' deadline='1ms' cost='600us'/></app></domain></system>";
        let system = load_system_text("s", text, &LoadOptions::default()).expect("valid");
        for (worst, expected) in [(2_400_000, Held), (2_400_001, Failed)] {
            let mut result = empty("s");
            result.tasks = vec![TaskResult {
                deadline: 4_000_000,
                worst: Some(worst),
                ..task(5, 0)
            }];
            let found = Verdict::of(of(&system, 2, &result));
            assert_eq!(judgements(&found), [Held, expected], "{worst}");
        }
    }

    /// A neighbour's markers used up the room of the sensor's tile: what was seen of the sensor before is not everything it did.
    #[test]
    fn who_was_not_seen_to_the_end_keeps_no_promise() {
        let of = |tile| {
            let result = VariantResult {
                flows: vec![flow(&[900], Some(900))],
                tasks: vec![task(5, 0)],
                incidents: vec![Incident {
                    crash: None,
                    kind: IncidentKind::Unseen,
                    at: Some(7),
                    tile,
                    application: "flood".to_owned(),
                    what: "it made too many".to_owned(),
                }],
                ..empty("regulated")
            };
            Verdict::of(super::of(&system("regulated"), 2, &result))
        };
        let sensor = system("regulated");
        let sensor = sensor.apps.iter().find(|app| app.name == "sensor");
        let unseen = of(sensor.expect("there").tile);
        assert_eq!(judgements(&unseen), [NotJudged; 5]);
        let why = unseen.promises()[0].because.as_deref().unwrap_or_default();
        assert!(why.contains("`flood` filled the room for markers"), "{why}");
        // Elsewhere, that says nothing about it.
        assert_eq!(judgements(&of(7))[..4], [Held; 4]);
    }

    #[test]
    fn who_was_stopped_keeps_no_promise() {
        let of = |kind, what: &str| {
            let result = VariantResult {
                flows: vec![flow(&[900], Some(900))],
                tasks: vec![task(5, 0)],
                incidents: vec![Incident {
                    crash: None,
                    kind,
                    at: None,
                    tile: 2,
                    application: "sensor".to_owned(),
                    what: what.to_owned(),
                }],
                ..empty("regulated")
            };
            judgements(&Verdict::of(super::of(&system("regulated"), 2, &result)))
        };
        let gone = [NotJudged; 5];
        let own = of(IncidentKind::Crash, "stopped: load page fault");
        assert_eq!(own, gone, "its own doing is an incident");
        for (kind, what) in [
            (IncidentKind::Crash, "stopped: its tile was lost"),
            (IncidentKind::Stopped, "not started again: no room"),
        ] {
            let found = of(kind, what);
            assert_eq!(
                (&found[..5], &found[5..]),
                (&gone[..], &[Failed][..]),
                "{what}"
            );
        }
        // An application that has merely not finished still exists.
        let there = of(IncidentKind::Unfinished, "has not finished");
        assert_eq!(there, [Held, Held, Held, Held, NotJudged]);
    }

    #[test]
    fn jobs_that_did_not_come_are_not_held() {
        let silent = TaskResult {
            missing: 19,
            ..task(1, 0)
        };
        let found = verdict("regulated", Vec::new(), vec![silent.clone()]);
        assert_eq!(judgements(&found), [NotJudged, NotJudged]);
        let late = TaskResult {
            misses: 1,
            ..silent
        };
        let found = verdict("regulated", Vec::new(), vec![late]);
        assert_eq!(judgements(&found), [Failed, NotJudged]);
    }

    #[test]
    fn what_was_under_way_at_the_end_is_not_judged() {
        let open = |jobs| TaskResult {
            open: 1,
            worst: (jobs > 1).then_some(1),
            ..task(jobs, 0)
        };
        let of = |task| judgements(&verdict("regulated", Vec::new(), vec![task]));
        assert_eq!(of(open(5)), [NotJudged, Held, NotJudged]);
        // The only job.
        assert_eq!(of(open(1)), [NotJudged, NotJudged, NotJudged]);
        let flow = FlowResult {
            open: 2,
            ..flow(&[900], Some(900))
        };
        let found = verdict("regulated", vec![flow], Vec::new());
        assert_eq!(judgements(&found), [Held, Held, Held, NotJudged]);
        let last = found.promises().last().expect("there");
        assert_eq!(last.what, "flow loop: samples under way at the end: 2");
    }

    #[test]
    fn jobs_count_and_programs_that_mark_none_are_not_judged() {
        let of = |jobs, misses| verdict("regulated", Vec::new(), vec![task(jobs, misses)]);
        assert_eq!(judgements(&of(10, 0)), [Held, NotJudged]);
        assert_eq!(judgements(&of(10, 10)), [Failed, NotJudged]);
        let own = judgements(&of(0, 3));
        assert_eq!(own, [Failed, NotJudged], "by their own account");
        assert_eq!(of(0, 0).outcome(), Outcome::NothingJudged);
    }
}
