//! What must hold for a system on a chip: its tasks on their tiles, the quotas of shared tiles, its flows over the network.
//!
//! Why it exists: a description with costs can be judged before anything is built or run. What it deliberately does not know: files,
//! variants, and how open values are chosen; the runner changes descriptions and asks again.
//!
//! A flow is bounded from the description alone if every application on its path has a `<task>` with a cost and its own tile: a job
//! computes for its cost, makes its declared `accesses` (each may evict a dirty line, too), moves the region of each of its memory gates
//! once in each permitted direction, and sends one message of the receiver's slot size through each of its gates. Other applications are
//! assumed to do whatever their own `<task>`, their `<limit>` or their tile allows. Waking up takes a TileMux switch. No job waits for an
//! answer from outside the path. Applications on the path also work on messages of others, and on earlier ones of the flow ([`arrivals`]).

mod arrivals;
pub mod complete;

use bulkhead_model::System;
use bulkhead_model::system::{App, TilePolicy};
use bulkhead_model::tasks::{self, TaskSystem, Unbounded};
use std::collections::BTreeSet;

use super::{Constraint, Kind, Plan, PlanError, Unit, plan};
use crate::admission::{self, Reservation};
use crate::communication::{
    Chip, CommunicationError, Profile, SystemBounds, SystemError, out_of_order,
};
use crate::tiled_kernel::unbounded;
use arrivals::Arrivals;
use bulkhead_abi::message::HEADER_SIZE;

/// A system, judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Verdict {
    /// Tasks of tiles with the same policy; constraints are about applications with a `<task>` that has a cost.
    pub tasks: Vec<Plan>,
    /// Quotas of tiles with fixed priorities, and flows with a promise.
    pub constraints: Vec<Constraint>,
    /// The parts that were not judged, and why.
    pub unjudged: Vec<Unjudged>,
    /// Applications whose missing limit deprives flows of a promise.
    pub unlimited: Vec<String>,
    /// The assumptions of flow bounds.
    pub assumptions: Vec<String>,
}

/// Something that should hold but that no test judged.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unjudged {
    /// Its name: `flow loop`, `task sensor`.
    pub what: String,
    /// Why.
    pub because: String,
}

impl Verdict {
    fn leave(&mut self, what: String, because: String) {
        self.unjudged.push(Unjudged { what, because });
    }

    /// Everything that must hold.
    pub fn all(&self) -> impl Iterator<Item = &Constraint> {
        let tasks = self.tasks.iter().flat_map(|plan| &plan.constraints);
        tasks.chain(&self.constraints)
    }
}

fn other(error: impl std::fmt::Display) -> PlanError {
    PlanError::Other(error.to_string())
}

/// The cost of an application's job, in nanoseconds.
fn cost(app: &App) -> Option<u64> {
    let task = app.task.as_ref()?;
    let cost = task.cost_at(task.criticality, 0)?;
    Some(cost.nanoseconds())
}

/// Whether an application gets the processor only when no activity with a quota wants it.
fn comes_last(system: &System, app: &App) -> bool {
    app.cpu.is_none() && system.tilemux(app.tile).policy == TilePolicy::Realtime
}

/// Judges one run of a system.
///
/// # Errors
/// [`PlanError`] if something is beyond what the tests cover.
pub fn judge(system: &System) -> Result<Verdict, PlanError> {
    if system.bare.is_some() {
        return Ok(without_kernel(system));
    }
    let mut verdict = Verdict {
        tasks: on_tiles(system)?,
        ..Verdict::default()
    };
    for app in &system.apps {
        tokens(app, &mut verdict);
    }
    for tile in admission::tiles(system).map_err(other)? {
        for one in tile.reservations {
            let (bound, limit) = match one.unpaid {
                Some(needed) => (Some(needed), one.budget),
                None => (one.response, one.deadline),
            };
            let mut constraint = Constraint::new(
                Kind::Quota,
                &one.app,
                bound,
                Some(limit),
                Unit::Nanoseconds,
                "quotas as sporadic tasks, switches included",
            );
            if one.unpaid.is_some() {
                constraint.note = Some("the quota does not pay for the task".to_owned());
            }
            constraint.explain(one.unknown.clone().map(Unbounded::Unknown).as_ref());
            quota_bounds(&one, &mut verdict);
            verdict.constraints.push(constraint);
        }
    }
    for app in system.apps.iter().filter(|app| app.task.is_some()) {
        let because = if cost(app).is_none() {
            "its <task> has no cost, from which `check` would bound it".to_owned()
        } else if comes_last(system, app) {
            format!(
                "it has no <cpu>: tile {} has the policy realtime, so it runs last, in the remaining time",
                app.tile
            )
        } else {
            continue;
        };
        verdict.leave(format!("task {}", app.name), because);
    }
    flows(system, &mut verdict)?;
    Ok(verdict)
}

/// The bound of a flow without a kernel starts from a run of its program alone.
fn without_kernel(system: &System) -> Verdict {
    let mut verdict = Verdict::default();
    for app in system.apps.iter().filter(|app| app.task.is_some()) {
        let because = "only flows have bounds without a kernel; a flow from the program to itself would be judged";
        verdict.leave(format!("task {}", app.name), because.to_owned());
    }
    for flow in &system.flows {
        let because = "its bound starts from a run of its program alone, which only `run` makes: it judges the flow, or says what would make it \
             judged";
        verdict.leave(format!("flow {}", flow.name), because.to_owned());
    }
    verdict
}

/// Bytes of a block of traffic, the minimum that an access pays for.
const BLOCK: u128 = 64;

/// Waits of a job for tokens are not part of any response bound. If its limit cannot pay for the accesses of each job, jobs are late
/// without bound; otherwise nothing is said about them.
fn tokens(app: &App, verdict: &mut Verdict) {
    let (Some(limit), Some(task)) = (app.limit, &app.task) else {
        return;
    };
    let accesses = u128::from(task.accesses);
    if accesses == 0 || limit.noc.0 == 0 || cost(app).is_none() {
        return;
    }
    // Both sides in bytes per period, times the picoseconds of a second.
    let asked = accesses * BLOCK * 1_000_000_000_000;
    let paid = u128::from(limit.noc.0) * u128::from(task.period.0);
    for plan in &mut verdict.tasks {
        let own = |one: &Constraint| one.kind == Kind::Response && one.subject == app.name;
        if asked > paid {
            for one in plan.constraints.iter_mut().filter(|one| own(one)) {
                one.bound = None;
                one.judge(false);
                one.note = Some(format!(
                    "its <limit> pays for {} of its {accesses} accesses in a period",
                    paid / (BLOCK * 1_000_000_000_000)
                ));
            }
        } else {
            plan.constraints.retain(|one| !own(one) || !one.holds());
        }
        plan.schedulable = !plan.constraints.iter().any(Constraint::fails);
    }
    if asked <= paid {
        let why =
            "its accesses wait for tokens of its <limit>, which no bound of a response counts";
        verdict.leave(format!("task {}", app.name), why.to_owned());
    }
}

/// A response under the quota: with TileMux's switches, and only if the quota pays for the job. The task test knows neither, so its
/// response alone would appear to hold where the job waits for the next period of its quota.
fn quota_bounds(one: &Reservation, verdict: &mut Verdict) {
    let (bound, note) = match one.unpaid {
        Some(_) => (None, Some("its quota does not pay for it".to_owned())),
        None => (one.response, None),
    };
    for plan in &mut verdict.tasks {
        let all = plan.constraints.iter_mut();
        for response in all.filter(|of| of.kind == Kind::Response && of.subject == one.app) {
            // Where the quotas' switches have no bound, one that fails without them fails.
            let held = response.holds();
            // A response that has no bound without quotas has none with them.
            response.bound = response.bound.and_then(|without| Some(bound?.max(without)));
            let within = |bound| response.limit.is_none_or(|limit| bound <= limit);
            response.judge(response.bound.is_some_and(within));
            response.note = response.note.take().or_else(|| note.clone());
            if held {
                response.explain(one.unknown.clone().map(Unbounded::Unknown).as_ref());
            }
            response.method = "quotas as sporadic tasks, switches included";
        }
        plan.schedulable = !plan.constraints.iter().any(Constraint::fails);
    }
}

/// Response times of applications, whether or not they share tiles, as served by TileMux.
fn on_tiles(system: &System) -> Result<Vec<Plan>, PlanError> {
    let asked = |name: &str| system.app(name).and_then(cost).is_some();
    let judged = |tasks: TaskSystem| {
        let mut plan = plan(&tasks)?;
        plan.constraints
            .retain(|c| c.kind == Kind::Response && asked(&c.subject));
        plan.schedulable = !plan.constraints.iter().any(Constraint::fails);
        Ok(plan)
    };
    bulkhead_model::system::task_systems(system)
        .into_iter()
        .map(judged)
        .collect()
}

/// Applications on the only path from one to another along send gates.
///
/// # Errors
/// Why there is no such path.
fn way(system: &System, from: usize, to: usize) -> Result<Vec<usize>, &'static str> {
    let gates = system.apps.iter().enumerate();
    let edges: BTreeSet<(usize, usize)> = gates
        .flat_map(|(index, app)| app.sgates.iter().map(move |gate| (index, gate.to)))
        .collect();
    let edges: Vec<(usize, usize)> = edges.into_iter().collect();
    if from == to && comes_back(&edges, from) {
        return Err(
            "it begins and ends in one application, and a chain of send gates leads from there back",
        );
    }
    match tasks::route(&edges, system.apps.len(), from, to) {
        Ok(way) => Ok(std::iter::once(from)
            .chain(way.into_iter().map(|edge| edges[edge].1))
            .collect()),
        Err(0) => Err("no send gates lead from its begin to its end"),
        Err(_) => Err("more than one chain of send gates leads from its begin to its end"),
    }
}

/// Whether edges lead from a node over others back to it.
fn comes_back(edges: &[(usize, usize)], node: usize) -> bool {
    let mut reached = BTreeSet::from([node]);
    let mut open = vec![node];
    while let Some(here) = open.pop() {
        for &(_, next) in edges.iter().filter(|edge| edge.0 == here && edge.1 != here) {
            if next == node {
                return true;
            }
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

/// Maximum work of an application's job according to the description.
fn profile(system: &System, app: usize, ticks: impl Fn(u64) -> u64) -> Option<Profile> {
    let here = &system.apps[app];
    let task = here.task.as_ref()?;
    let moved = |wanted: fn(&bulkhead_model::system::Mgate) -> bool| {
        let sizes = here.mgates.iter().filter(|gate| wanted(gate));
        sizes.fold(0u64, |sum, gate| sum.saturating_add(gate.size.0))
    };
    let mut messages = Vec::new();
    for gate in &here.sgates {
        let receiver = system.apps.get(gate.to)?.rgates.get(gate.gate);
        let slot = receiver.map_or(0, |gate| u64::from(gate.slot_size));
        messages.push((gate.to, slot.saturating_sub(HEADER_SIZE as u64)));
    }
    Some(Profile {
        app,
        compute: ticks(cost(here)?),
        compute_includes_network: true,
        line_reads: task.accesses,
        line_writes: task.accesses,
        dma_read: moved(|gate| gate.read),
        dma_written: moved(|gate| gate.write),
        messages,
        calls: 0,
    })
}

fn flows(system: &System, verdict: &mut Verdict) -> Result<(), PlanError> {
    if system.flows.iter().all(|flow| flow.deadline.is_none()) {
        return Ok(());
    }
    let chip = Chip::new(&system.platform);
    let per_second = u128::from(chip.ticks_per_second()).max(1);
    let ticks = |nanoseconds: u64| {
        let ticks = (u128::from(nanoseconds) * per_second).div_ceil(1_000_000_000);
        u64::try_from(ticks).unwrap_or(u64::MAX)
    };
    let shares = |app: usize| {
        let tile = system.apps[app].tile;
        let others = system.apps.iter().enumerate();
        let apps = others.filter(|(other, its)| *other != app && its.tile == tile);
        apps.count() > 0 || system.managers.iter().any(|manager| manager.tile == tile)
    };
    let profiles: Vec<Profile> = (0..system.apps.len())
        .filter(|&app| !shares(app))
        .filter_map(|app| profile(system, app, ticks))
        .collect();
    let profiled = |app: usize| profiles.iter().any(|profile| profile.app == app);
    let bounds = SystemBounds::new(system, &profiles);
    for flow in &system.flows {
        let Some(deadline) = flow.deadline else {
            continue;
        };
        let name = &flow.name;
        let what = format!("flow {name}");
        let bounds = match &bounds {
            Ok(bounds) => bounds,
            // A memory that serves in any order, beside an application without a limit.
            Err(why) => {
                verdict.leave(what, why.to_string());
                continue;
            }
        };
        let members = match way(system, flow.from, flow.to) {
            Ok(members) => members,
            Err(why) => {
                verdict.leave(what, why.to_owned());
                continue;
            }
        };
        if let Some(why) = out_of_order(system, &members) {
            verdict.leave(what, why);
            continue;
        }
        if let Some(&lacking) = members.iter().find(|&&app| !profiled(app)) {
            let why = if cost(&system.apps[lacking]).is_none() {
                "has no <task> with a cost, with which the bound of a flow begins"
            } else {
                "shares its tile; on a tile of its own it would be judged"
            };
            let app = &system.apps[lacking].name;
            verdict.leave(what, format!("`{app}` {why}"));
            continue;
        }
        let arrivals = match Arrivals::new(system, &members, profiled) {
            Ok(arrivals) => arrivals,
            Err(why) => {
                verdict.leave(what, why);
                continue;
            }
        };
        let tiles = || members.iter().map(|&member| system.apps[member].tile);
        if let Some(why) = tiles().find_map(|tile| unbounded(&system.platform, tile)) {
            verdict.leave(what, why);
            continue;
        }
        let mut wake = 0;
        for tile in tiles() {
            wake = wake.max(admission::switch(system, &chip, tile).map_err(other)?);
        }
        let jitter = system.apps[flow.from].task.as_ref();
        let jitter = jitter.map_or(0, |task| task.jitter.nanoseconds());
        // The whole time, including the token waits of the applications on the path.
        let bound = arrivals.bound(|jobs| {
            let found = match bounds.flow_of_jobs(jobs, ticks(wake)) {
                // More jobs than any clock can count.
                Err(SystemError::Communication(CommunicationError::TooLarge)) => return Ok(None),
                found => found.map_err(other)?,
            };
            let whole = u128::from(found.bound.whole()) * 1_000_000_000;
            let whole = u64::try_from(whole.div_ceil(per_second)).ok();
            Ok(whole.and_then(|whole| whole.checked_add(jitter)))
        })?;
        let free = |(index, app): (usize, &App)| app.limit.is_none() && !profiled(index);
        let unlimited: Vec<&str> = system
            .apps
            .iter()
            .enumerate()
            .filter(|one| free(*one))
            .map(|(_, app)| app.name.as_str())
            .collect();
        if !unlimited.is_empty() {
            let most = bound.map_or("no bound".to_owned(), |bound| {
                format!("{} us", bound.div_ceil(1000))
            });
            let because = format!(
                "not judged ({most} at worst), because there is no <limit> for {}",
                unlimited.join(", ")
            );
            verdict.leave(what, because);
            verdict.unlimited = unlimited.into_iter().map(str::to_owned).collect();
            continue;
        }
        verdict.constraints.push(Constraint::new(
            Kind::Flow,
            name,
            bound,
            Some(deadline.nanoseconds()),
            Unit::Nanoseconds,
            "windows of the network (Le Boudec and Thiran 2001), jobs as described",
        ));
    }
    if let Ok(bounds) = bounds {
        verdict.assumptions = bounds.assumptions();
    }
    Ok(())
}
