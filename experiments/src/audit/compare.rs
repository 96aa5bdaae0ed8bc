//! Compares runs under attack with the run without an attack.
//!
//! What it deliberately does not know: how runs are made and shown.

use bulkhead_abi::dtu::TILEMUX_ACTIVITY;
use bulkhead_analysis::communication::SystemBounds;
use bulkhead_model::System;
use bulkhead_report::audit::result::{Difference, FlowAudit, RequestAudit};
use bulkhead_report::distribution::distribution;
use bulkhead_report::result::{
    FlowResult, Incident, IncidentKind, Interference, Sample, TaskResult,
};
use bulkhead_runner::collect;
use bulkhead_runner::measure::MarkerEvent;
use bulkhead_runner::seen::{Owner, Resource, STRIDE, Timeline};
use bulkhead_runner::tiled::alone::{self, Alone};
use bulkhead_runner::tiled::attacked::{Seen, Stand};
use bulkhead_runner::tiled::bounds;
use bulkhead_runner::tiled::promises;
use bulkhead_runner::tiled::{console, lives, names, requests, unfinished};
use bulkhead_runner::unseen;
use std::collections::{BTreeMap, BTreeSet};

/// Frames wait in parallel, so the sum of their waits can exceed the time that passed.
const ALL_FRAMES: &str = ", waits of all frames added up";

/// Everything about one run that is compared.
#[derive(Default)]
pub struct Facts {
    /// Name and worst latency of each flow and span.
    latencies: BTreeMap<String, u64>,
    /// Flows inside the domain; only samples since the start of the attack.
    flows: Vec<FlowResult>,
    /// Flows, with the number of lost samples.
    lost: BTreeMap<String, u64>,
    /// Applications that stopped other than with exit code 0, the kernel, and unhandled traps: one entry for each time.
    pub stopped: Vec<String>,
    /// Why an application did not exist at the end.
    pub gone: Option<String>,
    /// Why the markers do not show everything that the domain did.
    pub unsure: Option<String>,
    /// Applications that ended in any way.
    ended: BTreeSet<String>,
    /// Jobs of applications with a `<task>` since the start of the attack.
    tasks: Vec<TaskResult>,
    /// Name of each flow and span, with how many were measured since then.
    measured: BTreeMap<String, u64>,
    /// For each of them: the intervals in which none ended.
    silences: BTreeMap<String, Silence>,
    checks: BTreeMap<String, Vec<u64>>,
    instructions: u64,
    /// Waits for others.
    pub account: Vec<Interference>,
    /// Ticks waited for others.
    pub waited: u64,
    /// Ticks waited for itself, the refresh and its own limits.
    pub waited_self: u64,
    /// Application, kind, count and worst latency of requests.
    pub requests: Vec<(String, String, u64, u64)>,
}

/// How long no sample of something ended, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Silence {
    /// The longest interval before an end.
    between: u64,
    /// From the last end to the end of the run.
    last: u64,
}

impl Silence {
    fn of<'s>(samples: impl Iterator<Item = &'s Sample>, start: u64, end: u64) -> Self {
        let mut ends: Vec<u64> = samples.map(|one| one.begin + one.latency).collect();
        ends.sort_unstable();
        let before = std::iter::once(&start).chain(&ends);
        let between = ends.iter().zip(before).map(|(end, before)| end - before);
        Self {
            between: between.max().unwrap_or(0),
            last: end.saturating_sub(ends.last().copied().unwrap_or(start)),
        }
    }
}

impl Facts {
    /// Extracts the facts of a run; `start` in ticks.
    pub fn new(stand: &Stand, seen: &Seen, start: u64) -> Self {
        let system = stand.system();
        let names = names::of(system, &seen.markers);
        let own: Vec<&str> = system
            .apps
            .iter()
            .filter(|app| app.domain == stand.domain)
            .map(|app| app.name.as_str())
            .collect();
        let is_own = |name: &str| own.contains(&name.trim_end_matches(" (TileMux)"));
        let worst = |samples: &[Sample]| {
            let counted = samples.iter().filter(|sample| sample.begin >= start);
            counted.map(|sample| sample.latency).max()
        };
        let mut latencies = BTreeMap::new();
        let mut measured = BTreeMap::new();
        let mut silences = BTreeMap::new();
        let mut lost = BTreeMap::new();
        // Runs continue to a fixed moment, whenever the system is over.
        let lives = lives::of(system, &seen.markers, &seen.console, seen.ticks, false);
        let mut flows = collect::flows(system, &names, &seen.markers, &lives);
        for flow in &mut flows {
            flow.samples.retain(|sample| sample.begin >= start);
            flow.latency = distribution(flow.samples.iter().map(|s| s.latency));
            if flow.latency.count > 0 {
                latencies.insert(format!("flow {}", flow.name), flow.latency.max);
            }
            let name = format!("flow {}", flow.name);
            measured.insert(name.clone(), flow.latency.count);
            silences.insert(name, Silence::of(flow.samples.iter(), start, seen.ticks));
            lost.insert(flow.name.clone(), flow.lost);
        }
        for span in collect::spans(system, &names, &seen.markers, seen.ticks) {
            if is_own(&span.application) {
                let name = format!("spans of {}", span.application);
                let counted = span.samples.iter().filter(|sample| sample.begin >= start);
                measured.insert(name.clone(), counted.clone().count() as u64);
                silences.insert(name.clone(), Silence::of(counted, start, seen.ticks));
                latencies.extend(worst(&span.samples).map(|w| (name, w)));
            }
        }
        let mut incidents = console::incidents(system, &seen.console, &seen.markers, &|_, _| None);
        incidents.extend(unfinished::stopped(
            system,
            &seen.markers,
            &seen.console,
            false,
        ));
        let unkept = unseen::incidents(&names, &seen.markers, &seen.unkept);
        let unsure = unsure(system, &unkept, &is_own, &flows);
        let mut checks: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for check in collect::checks(&names, &seen.markers) {
            if is_own(&check.application) {
                checks
                    .entry(check.application)
                    .or_default()
                    .push(check.value);
            }
        }
        // Tiles that the domain has to itself: everything that happens there belongs to the domain.
        let tiles = stand.tiles();
        // The TileMux of such a tile works only for the domain.
        let is_own_mux = |owner: Owner| {
            let all_own = || names.on_tile(owner.tile).iter().all(|name| is_own(name));
            owner.activity == TILEMUX_ACTIVITY && tiles.contains(&owner.tile) && all_own()
        };
        let (mut account, mut waited_self) = (BTreeMap::new(), 0);
        for booking in seen.ledger.bookings() {
            if !tiles.contains(&booking.victim.tile) {
                continue;
            }
            let victim = names.owner(booking.victim);
            // At a card, a frame waits for the frames that arrived before it.
            let sender = match booking.resource {
                Resource::NetworkCard => stand.neighbour(booking.victim.tile),
                Resource::DeviceService(server) => stand.neighbour(server.tile),
                _ => None,
            };
            let together = match booking.resource {
                Resource::NetworkCard if sender.is_some() => ALL_FRAMES,
                _ => "",
            };
            let itself = sender.is_none()
                && (matches!(
                    booking.resource,
                    Resource::Refresh(_) | Resource::Bucket | Resource::ProcessorBudget
                ) || is_own(&names.owner(booking.culprit))
                    || is_own_mux(booking.culprit));
            let culprit = match sender {
                Some(sender) => format!("frames from {sender}"),
                None => names.owner(booking.culprit),
            };
            if itself {
                waited_self += booking.ticks;
            } else if is_own(&victim) {
                let resource = collect::group(&names, booking.resource) + together;
                let key = (victim, culprit, resource);
                *account.entry(key).or_insert(0) += booking.ticks;
            }
        }
        let mut account: Vec<Interference> = account
            .into_iter()
            .map(|((victim, culprit, resource), ticks)| Interference {
                victim,
                culprit,
                resource,
                ticks,
            })
            .collect();
        account.sort_by_key(|line| {
            let names = (
                line.victim.clone(),
                line.culprit.clone(),
                line.resource.clone(),
            );
            (std::cmp::Reverse(line.ticks), names)
        });
        let requests = collect::requests(system, &names, &seen.ledger);
        let since: Vec<MarkerEvent> = seen
            .markers
            .iter()
            .copied()
            .filter(|marker| marker.at >= start)
            .collect();
        let tasks = collect::tasks(system, &names, &since, &lives).into_iter();
        let apps = (0..system.apps.len()).filter(|&app| stand.is_own(app));
        let manages = |name: &str| {
            let mut managers = system.managers.iter();
            let manager = managers.position(|manager| manager.name == name);
            let mut own = apps.clone().map(|app| system.manager_of(app));
            manager.is_some_and(|manager| own.any(|of| system.is_within(of, manager)))
        };
        // A manager also ends with an error because an activity of another domain below it did.
        let concerns = |one: &Incident| {
            let of_manager = one.kind == IncidentKind::Crash && manages(&one.application);
            is_own(&one.application) || of_manager
        };
        Self {
            latencies,
            measured,
            silences,
            flows,
            lost,
            tasks: tasks.filter(|task| is_own(&task.application)).collect(),
            gone: apps
                .clone()
                .find_map(|app| promises::gone(system, &incidents, app)),
            unsure,
            ended: seen
                .console
                .lines()
                .filter_map(names::notice)
                .filter(|notice| notice.what.starts_with("stopped") && is_own(&notice.name))
                .map(|notice| notice.name)
                .collect(),
            stopped: incidents
                .iter()
                .filter(|one| concerns(one))
                .map(|i| format!("{} {}", i.application, i.what))
                .chain(kernel_end(system, &seen.console))
                .chain(seen.trapped.clone())
                .collect(),
            checks,
            instructions: seen.instructions,
            waited: account.iter().map(|line| line.ticks).sum(),
            account,
            waited_self,
            requests: requests
                .into_iter()
                .filter(|request| is_own(&request.application))
                .map(|r| (r.application, r.kind, r.count, r.worst))
                .collect(),
        }
    }

    /// The worst slowdown against `alone` in thousandths, of what, and what that took at worst without the attack and with it.
    pub fn slowdown(&self, alone: &Self) -> (u64, String, Option<[u64; 2]>) {
        let ratio = |attacked: u64, alone: u64| {
            (u128::from(attacked) * 1000)
                .div_ceil(u128::from(alone.max(1)))
                .min(u128::from(u64::MAX)) as u64
        };
        let mut worst = (1000, String::from("nothing"), None);
        for (name, latency) in &alone.latencies {
            if let Some(attacked) = self.latencies.get(name) {
                let slowdown = ratio(*attacked, *latency);
                if slowdown > worst.0 {
                    worst = (slowdown, name.clone(), Some([*latency, *attacked]));
                }
            }
        }
        // Instructions in the same time: a domain that executes fewer of them is slower, unless it just waits.
        let progress = ratio(alone.instructions, self.instructions);
        if progress > worst.0 {
            worst = (
                progress,
                "progress (instructions in the same time)".to_owned(),
                None,
            );
        }
        worst
    }

    /// Tasks that miss more deadlines than they may, one line each.
    pub fn late(&self) -> impl Iterator<Item = String> + '_ {
        let late = self.tasks.iter().filter(|task| task.misses > task.allowed);
        late.map(|task| {
            let TaskResult {
                application,
                misses,
                jobs,
                ..
            } = task;
            format!("task {application}: {misses} of {jobs} jobs late")
        })
    }

    /// Things that did not arrive in time, or at all, but do alone: by subject, how much of it is missing, and the text. Unbounded delay
    /// shows in this way.
    pub fn shortfalls(&self, alone: &Self) -> Vec<(String, u64, String)> {
        let mut all = Vec::new();
        for before in &alone.tasks {
            let mut tasks = self.tasks.iter();
            let Some(now) = tasks.find(|task| task.application == before.application) else {
                continue;
            };
            let name = format!("task {}", before.application);
            if now.misses > before.misses.max(before.allowed) {
                let words = format!(
                    "{} jobs late, {} without an attack",
                    now.misses, before.misses
                );
                all.push((name.clone(), now.misses - before.misses, words));
            }
            // One may arrive just after the end.
            if now.jobs + 1 < before.jobs {
                let words = format!("{} jobs, {} without an attack", now.jobs, before.jobs);
                all.push((format!("jobs of {name}"), before.jobs - now.jobs, words));
            }
        }
        for (name, &count) in alone.measured.iter().filter(|(_, count)| **count > 0) {
            if self.measured.get(name).copied().unwrap_or(0) == 0 {
                let words = format!("none ended, {count} without an attack");
                all.push((name.clone(), count, words));
            }
        }
        // Anything that is only slower ends something within twice the longest time it ever took, here or alone.
        for (name, now) in &self.silences {
            let Some(before) = alone.silences.get(name) else {
                continue;
            };
            let longest = now.between.max(before.between).max(before.last);
            let some = self.measured.get(name).is_some_and(|count| *count > 0);
            if some && now.last > longest.saturating_mul(2) {
                let words = format!(
                    "none ended in the last {} ticks; otherwise the longest gap was {longest} ticks",
                    now.last
                );
                all.push((format!("{name} until the end"), now.last, words));
            }
        }
        // It runs to the end alone and reports no error, so the attack made it end.
        let early = self.ended.difference(&alone.ended);
        for name in early {
            let words = "ended, but continues without an attack".to_owned();
            all.push((format!("application {name}"), 1, words));
        }
        all
    }

    /// The harm of the attack beyond delays.
    pub fn harm(&self, alone: &Self) -> Vec<String> {
        let mut known = alone.stopped.clone();
        let mut harm = Vec::new();
        for what in &self.stopped {
            // An end that is as frequent as alone is not harm.
            match known.iter().position(|one| way(one) == way(what)) {
                Some(at) => {
                    known.remove(at);
                }
                None => harm.push(what.clone()),
            }
        }
        for (application, values) in &alone.checks {
            let attacked = self.checks.get(application).map_or(&[][..], Vec::as_slice);
            // A slower run may not have got as far.
            if attacked.iter().zip(values).any(|(a, b)| a != b) {
                harm.push(format!("{application} computed a different result"));
            }
        }
        for (flow, lost) in &alone.lost {
            let attacked = self.lost.get(flow).copied().unwrap_or(0);
            if attacked > *lost {
                harm.push(format!(
                    "flow {flow}: {} samples never arrived",
                    attacked - lost
                ));
            }
        }
        harm
    }
}

/// The way in which something ended, without its output, which may count what it had done until then.
fn way(stopped: &str) -> &str {
    let last = stopped.find("; it said last: ");
    let panic = || {
        stopped
            .find("stopped: panic: ")
            .map(|at| at + "stopped: panic".len())
    };
    &stopped[..last.or_else(panic).unwrap_or(stopped.len())]
}

/// The worst shortfall of each subject over all attacks that had an effect (name, with the attack, without it), in words.
pub fn shortfalls<'a>(
    attacks: impl Iterator<Item = (&'a str, &'a Facts, &'a Facts)>,
) -> Vec<String> {
    let mut worst: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for (attack, facts, alone) in attacks {
        for (subject, missing, words) in facts.shortfalls(alone) {
            let known = worst.entry(subject).or_default();
            if missing > known.0 {
                *known = (missing, format!("{words}, beside {attack}"));
            }
        }
    }
    let all = worst.into_iter();
    all.map(|(subject, (_, words))| format!("{subject}: {words}"))
        .collect()
}

/// The kernel's message if it stops. Only the kernel can begin a line this way.
fn kernel_end(system: &System, console: &str) -> Option<String> {
    let stop = console::kernel_stop(system, console, &|_, _| None)?;
    Some(format!("the kernel stopped: {}", stop.what))
}

/// Strides in which the timelines of two runs first differ, by tile.
pub fn differing(alone: &Seen, attacked: &Seen) -> BTreeMap<u16, u64> {
    alone
        .timelines
        .iter()
        .filter_map(|(tile, timeline)| {
            let other = attacked.timelines.get(tile)?;
            Some((*tile, timeline.first_difference(other)?))
        })
        .collect()
}

/// The first difference over all tiles, from runs that kept the strides in which the tiles differ.
pub fn first_difference(
    beside: &str,
    (alone, attacked): (&Seen, &Seen),
    strides: &BTreeMap<u16, u64>,
) -> Option<Difference> {
    let on = |tile: u16, stride: u64| -> Option<(u64, Difference)> {
        let (a, b): (&Timeline, &Timeline) =
            (alone.timelines.get(&tile)?, attacked.timelines.get(&tile)?);
        let pairs = a.recorded.iter().zip(&b.recorded);
        let at = pairs.take_while(|(a, b)| a == b).count();
        let (first, second) = (a.recorded.get(at), b.recorded.get(at));
        let moment = [first, second].into_iter().flatten().map(|e| e.0).min()?;
        let text = |entry: Option<&(u64, bulkhead_runner::seen::Event)>| {
            entry.map_or("nothing more happens".to_owned(), |e| e.1.to_string())
        };
        Some((
            moment,
            Difference {
                beside: beside.to_owned(),
                tile,
                event: stride * STRIDE + at as u64,
                alone_at: first.map(|e| e.0),
                alone: text(first),
                attacked_at: second.map(|e| e.0),
                attacked: text(second),
            },
        ))
    };
    strides
        .iter()
        .filter_map(|(tile, stride)| on(*tile, *stride))
        .min_by_key(|(moment, difference)| (*moment, difference.tile))
        .map(|(_, difference)| difference)
}

/// Worst latencies of flows over all attacks beside their bounds. A bound starts from what the flow did in a run of its own, as `run`
/// has it, on the same chip; where there is none, from what it did here while the attackers slept.
pub fn flows(
    stand: &Stand,
    (seen, measured): (&Seen, &[Alone]),
    alone: &Facts,
    attacks: &[Facts],
) -> Vec<FlowAudit> {
    let system = stand.system();
    let names = names::of(system, &seen.markers);
    let bound = |flow: &FlowResult| {
        let members = bounds::members(system, flow);
        if let Some(why) = bounds::obstacle(system, &members) {
            return Err(why);
        }
        let mut measured = measured.iter();
        let known = measured
            .find(|known| known.is_of(system, &flow.name))
            .cloned();
        let ended = seen.ledger.transactions();
        let known = known.or_else(|| alone::alone(system, &names, flow, ended, None));
        let known = known.ok_or("no sample ended while the attackers slept")?;
        bounds::flow_bound(system, &members, &known)
    };
    let flows = alone.flows.iter().filter(|flow| flow.latency.count > 0);
    flows
        .map(|flow| {
            let others = attacks.iter().flat_map(|facts| &facts.flows);
            let (bound, unbounded) = match bound(flow) {
                Ok(bound) => (Some(bound), None),
                Err(why) => (None, Some(why)),
            };
            FlowAudit {
                name: flow.name.clone(),
                deadline: flow.deadline,
                alone: flow.latency.max,
                attacked: others
                    .filter(|other| other.name == flow.name)
                    .map(|other| other.latency.max)
                    .max()
                    .unwrap_or(0),
                bound,
                unbounded,
            }
        })
        .collect()
}

/// Worst requests over all attacks, with their bounds.
pub fn requests(stand: &Stand, alone: &Facts, attacks: &[Facts]) -> Vec<RequestAudit> {
    let mut all: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for (application, kind, _, worst) in &alone.requests {
        all.entry((application.clone(), kind.clone()))
            .or_default()
            .0 = *worst;
    }
    for (application, kind, _, worst) in attacks.iter().flat_map(|facts| &facts.requests) {
        let entry = all.entry((application.clone(), kind.clone())).or_default();
        entry.1 = entry.1.max(*worst);
    }
    let analysis = SystemBounds::new(stand.system(), &[]);
    all.into_iter()
        .map(|((application, kind), (alone, attacked))| {
            let system = stand.system();
            let mut apps = system.apps.iter();
            let app = apps.position(|app| app.name == application);
            let found = match (&analysis, app) {
                (Ok(analysis), Some(app)) => {
                    requests::of_request(system, analysis, app, &kind).map(|found| found.bound)
                }
                (Err(error), _) => Err(error.to_string()),
                (_, None) => Err("there is no such application".to_owned()),
            };
            let (bound, unbounded) = match found {
                Ok(bound) => (Some(bound), None),
                Err(why) => (None, Some(why)),
            };
            RequestAudit {
                application,
                kind,
                alone,
                attacked,
                bound,
                unbounded,
            }
        })
        .collect()
}

/// Applications of the domain, and those outside that they send to, which adversaries replace.
pub fn needs(stand: &Stand) -> Vec<(&str, &str)> {
    let system = stand.system();
    let own = system.apps.iter().enumerate();
    let own = own.filter(|(index, _)| stand.is_own(*index));
    let mut all = Vec::new();
    for (_, app) in own {
        for gate in app.sgates.iter().filter(|gate| !stand.is_own(gate.to)) {
            all.push((app.name.as_str(), system.apps[gate.to].name.as_str()));
        }
    }
    all
}

/// Limits of the protection, beyond requests: shared tiles and channels from outside.
pub fn openings(stand: &Stand) -> Vec<String> {
    let system = stand.system();
    let mut all = Vec::new();
    let tiles = stand.tiles();
    let here = stand.attackers.iter().filter(|at| at.chip == stand.chip);
    for attacker in here.map(|at| &system.apps[at.app]) {
        if tiles.contains(&attacker.tile) {
            all.push(format!(
                "{} shares tile {} with the domain: time slices, caches and TileMux have no bound here",
                attacker.name, attacker.tile
            ));
        }
        for gate in &attacker.sgates {
            if stand.is_own(gate.to) {
                let receiver = &system.apps[gate.to].name;
                all.push(format!(
                    "{} may send to {receiver}, whose work on its messages has no bound here",
                    attacker.name
                ));
            }
        }
    }
    for (index, app) in system.apps.iter().enumerate() {
        let neighbour = stand.neighbour(app.tile);
        if let Some(sender) = neighbour.filter(|_| app.device && stand.is_own(index)) {
            all.push(format!(
                "{sender} sends frames to the network card of {}: there is no bound for what comes over a cable",
                app.name
            ));
        }
    }
    let needs = needs(stand).into_iter();
    all.extend(
        needs
            .map(|(app, server)| format!("{app} depends on {server}, which an adversary replaces")),
    );
    all
}

/// Why the markers of a domain's applications do not show everything they did.
fn unsure(
    system: &System,
    unkept: &[Incident],
    is_own: &dyn Fn(&str) -> bool,
    flows: &[FlowResult],
) -> Option<String> {
    let mut apps = system.apps.iter().enumerate();
    let unseen = apps.find_map(|(index, app)| {
        let own = is_own(&app.name).then_some(index)?;
        promises::unseen(system, unkept, own)
    });
    let mut inside = flows
        .iter()
        .filter(|flow| is_own(&flow.from) && is_own(&flow.to));
    let doubled = |flow: &FlowResult| {
        let why = collect::doubled(flow)?;
        Some(format!("flow {}: {why}", flow.name))
    };
    unseen.or_else(|| inside.find_map(doubled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};

    #[test]
    fn an_end_that_comes_more_often_is_harm() {
        let stopped = |ends: &[&str]| Facts {
            stopped: ends.iter().map(|&end| end.to_owned()).collect(),
            ..Facts::default()
        };
        let alone = stopped(&["server stopped: exit 1", "server stopped: exit 2"]);
        assert!(alone.harm(&alone).is_empty());
        // Whatever it printed, the end is the same.
        let said = |number: u64| {
            let exit = format!("server stopped: exit 1; it said last: {number} requests");
            let panic = format!("client stopped: panic: {number} sums at client.rs:7");
            stopped(&[&exit, &panic])
        };
        assert_eq!(said(7).harm(&said(9)), Vec::<String>::new());
        let crash = "server stopped: its tile was lost";
        let attacked = stopped(&["server stopped: exit 1", crash, "server stopped: exit 1"]);
        assert_eq!(attacked.harm(&alone), [crash, "server stopped: exit 1"]);
    }

    /// Only tiles of the domain and flows inside it count.
    #[test]
    fn what_was_not_seen_or_has_no_number_of_its_own_is_unsure() {
        let system = load_system("quickstart", &LoadOptions::default()).expect("valid");
        let system = &system.variants[1];
        let is_own = |name: &str| ["sensor", "controller", "actuator"].contains(&name);
        let tile = |name: &str| {
            system
                .apps
                .iter()
                .find(|app| app.name == name)
                .expect("there")
                .tile
        };
        let unseen = |name: &str| Incident {
            crash: None,
            kind: IncidentKind::Unseen,
            at: None,
            tile: tile(name),
            application: name.to_owned(),
            what: String::new(),
        };
        let flow = |doubled| FlowResult {
            name: "loop".to_owned(),
            from: "sensor".to_owned(),
            to: "actuator".to_owned(),
            through: Vec::new(),
            deadline: None,
            misses: 0,
            lost: 0,
            open: 0,
            doubled,
            latency: distribution([]),
            samples: Vec::new(),
            bound: None,
            unbounded: None,
        };
        let because = |incidents: &[Incident], doubled| {
            unsure(system, incidents, &is_own, &[flow(doubled)]).unwrap_or_default()
        };
        assert_eq!(because(&[], 0), "");
        assert_eq!(because(&[unseen("hog-1")], 0), "");
        assert!(because(&[unseen("sensor")], 0).starts_with("`sensor` filled the room"));
        assert!(because(&[], 2).starts_with("flow loop: 2 of its samples have numbers"));
    }

    /// A short wait may make something else much later: a missed slot, or an exhausted budget.
    #[test]
    fn what_gets_later_counts_whole_however_short_the_wait_was() {
        let spans = |worst, waited| Facts {
            latencies: BTreeMap::from([("spans of task".to_owned(), worst)]),
            waited,
            ..Facts::default()
        };
        let (slowdown, of, took) = spans(1_007_000, 10).slowdown(&spans(7000, 0));
        assert_eq!((slowdown, of.as_str()), (143_858, "spans of task"));
        assert_eq!(took, Some([7000, 1_007_000]));
    }

    #[test]
    fn who_hangs_between_spans_is_a_shortfall() {
        let facts = |ends: &[u64]| {
            let sample = |end: &u64| Sample {
                number: 0,
                begin: end - 1,
                latency: 1,
            };
            let samples: Vec<Sample> = ends.iter().map(sample).collect();
            let name = "spans of v".to_owned();
            Facts {
                measured: BTreeMap::from([(name.clone(), samples.len() as u64)]),
                silences: BTreeMap::from([(name, Silence::of(samples.iter(), 100, 1000))]),
                ..Facts::default()
            }
        };
        let alone = facts(&[200, 300, 400, 500, 600, 700, 800, 900]);
        let all = facts(&[200, 300, 400]).shortfalls(&alone).into_iter();
        let all: Vec<_> = all.map(|one| (one.0, one.1)).collect();
        assert_eq!(all, [("spans of v until the end".to_owned(), 600)]);
        // Half as fast, and still working at the end.
        assert!(facts(&[300, 500, 700]).shortfalls(&alone).is_empty());
        // It is done: alone, nothing more arrives either.
        let done = facts(&[150, 200]);
        assert!(facts(&[160, 220]).shortfalls(&done).is_empty());
    }

    #[test]
    fn who_ends_early_is_a_shortfall() {
        let ended = |names: &[&str]| Facts {
            ended: names.iter().map(|&name| name.to_owned()).collect(),
            ..Facts::default()
        };
        let (alone, attacked) = (ended(&["short"]), ended(&["short", "controller"]));
        let all = attacked.shortfalls(&alone).into_iter();
        assert!(all.map(|one| one.0).eq(["application controller"]));
    }

    #[test]
    fn jobs_that_are_late_or_do_not_come_are_shortfalls() {
        let facts = |jobs, misses, loops| Facts {
            tasks: vec![TaskResult {
                application: "ctl".to_owned(),
                deadline: 1,
                allowed: 1,
                jobs,
                misses,
                open: 0,
                missing: 0,
                worst: None,
            }],
            measured: BTreeMap::from([("flow loop".to_owned(), loops)]),
            ..Facts::default()
        };
        let alone = facts(10, 0, 5);
        // Misses that the description allows, and a job that arrives just after the end.
        assert!(facts(9, 1, 1).shortfalls(&alone).is_empty());
        // Lateness without a cause from outside is reported, but is not a shortfall of the protection.
        assert_eq!(alone.late().count(), 0);
        let late: Vec<String> = facts(10, 2, 5).late().collect();
        assert_eq!(late, ["task ctl: 2 of 10 jobs late"]);
        assert!(facts(10, 2, 5).shortfalls(&facts(10, 2, 5)).is_empty());
        let hung = facts(4, 3, 0).shortfalls(&alone).into_iter();
        let hung = hung.map(|(subject, missing, _)| format!("{subject} {missing}"));
        assert!(hung.eq(["task ctl 3", "jobs of task ctl 6", "flow loop 5"]));
        let (few, many) = (facts(10, 2, 5), facts(10, 7, 5));
        let attacks = [("mild", &few), ("bad", &many), ("mild", &few)];
        let said = shortfalls(
            attacks
                .into_iter()
                .map(|(name, facts)| (name, facts, &alone)),
        );
        assert_eq!(
            said,
            ["task ctl: 7 jobs late, 0 without an attack, beside bad"]
        );
    }
}
