//! Compares runs beside attacks with the run without one.
//!
//! What it deliberately does not know: how runs are made and shown.

use bulkhead_abi::dtu::TILEMUX_ACTIVITY;
use bulkhead_analysis::communication::SystemBounds;
use bulkhead_model::System;
use bulkhead_report::audit::result::{Difference, FlowAudit, RequestAudit};
use bulkhead_report::distribution::distribution;
use bulkhead_report::result::{FlowResult, Interference, Sample};
use bulkhead_runner::collect;
use bulkhead_runner::seen::{Owner, Resource, STRIDE, Timeline};
use bulkhead_runner::tiled::alone::{self, Alone};
use bulkhead_runner::tiled::attacked::{Seen, Stand};
use bulkhead_runner::tiled::bounds;
use bulkhead_runner::tiled::requests;
use bulkhead_runner::tiled::{console, names};
use std::collections::BTreeMap;

/// Frames wait beside each other, so their waits can add up to more than the time that passed.
const ALL_FRAMES: &str = ", waits of all frames added up";

/// Everything about one run that is compared.
pub struct Facts {
    /// Name and worst latency of each flow and span.
    latencies: BTreeMap<String, u64>,
    /// Flows inside the domain, samples since the start of the attack only.
    flows: Vec<FlowResult>,
    /// Flows with the number of samples that got lost.
    lost: BTreeMap<String, u64>,
    /// Applications that stopped other than with exit code 0, the kernel, and traps that nobody handles.
    stopped: Vec<String>,
    checks: BTreeMap<String, Vec<u64>>,
    instructions: u64,
    /// Waits for others.
    pub account: Vec<Interference>,
    /// Ticks waited for others.
    pub waited: u64,
    /// Ticks waited for itself, refresh and own limits.
    pub waited_self: u64,
    /// Application, kind, count and worst latency of requests.
    pub requests: Vec<(String, String, u64, u64)>,
}

impl Facts {
    /// Reads a run off; `start` in ticks.
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
        let mut lost = BTreeMap::new();
        let mut flows = collect::flows(system, &names, &seen.markers, seen.ticks);
        for flow in &mut flows {
            flow.samples.retain(|sample| sample.begin >= start);
            flow.latency = distribution(flow.samples.iter().map(|s| s.latency));
            if flow.latency.count > 0 {
                latencies.insert(format!("flow {}", flow.name), flow.latency.max);
            }
            lost.insert(flow.name.clone(), flow.lost);
        }
        for span in collect::spans(system, &names, &seen.markers, seen.ticks) {
            if is_own(&span.application) {
                let name = format!("spans of {}", span.application);
                latencies.extend(worst(&span.samples).map(|w| (name, w)));
            }
        }
        let incidents = console::incidents(system, &seen.console, &seen.markers, &|_, _| None);
        let mut checks: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for check in collect::checks(&names, &seen.markers) {
            if is_own(&check.application) {
                checks
                    .entry(check.application)
                    .or_default()
                    .push(check.value);
            }
        }
        // Tiles of the domain that nobody else is on: all that happens there is its own.
        let tiles = stand.tiles();
        // The TileMux of such a tile works for nobody else.
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
            // At a card one frame waits for those that came before it.
            let sender = match booking.resource {
                Resource::NetworkCard => stand.neighbour(booking.victim.tile),
                _ => None,
            };
            let together = if sender.is_some() { ALL_FRAMES } else { "" };
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
                let key = (victim, culprit, collect::group(booking.resource) + together);
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
        Self {
            latencies,
            flows,
            lost,
            stopped: incidents
                .into_iter()
                .filter(|i| is_own(&i.application))
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

    /// The worst slowdown against `alone` in thousandths, and of what.
    pub fn slowdown(&self, alone: &Self) -> (u64, String) {
        let ratio = |attacked: u64, alone: u64| {
            (u128::from(attacked) * 1000)
                .div_ceil(u128::from(alone.max(1)))
                .min(u128::from(u64::MAX)) as u64
        };
        let mut worst = (1000, String::from("nothing"));
        for (name, latency) in &alone.latencies {
            if let Some(attacked) = self.latencies.get(name) {
                let slowdown = ratio(*attacked, *latency);
                if slowdown > worst.0 {
                    worst = (slowdown, name.clone());
                }
            }
        }
        // Instructions in the same time: who makes fewer of them is slower, if he does not just wait.
        let progress = ratio(alone.instructions, self.instructions);
        if progress > worst.0 {
            worst = (
                progress,
                "progress (instructions in the same time)".to_owned(),
            );
        }
        worst
    }

    /// What the attack did beyond delays.
    pub fn harm(&self, alone: &Self) -> Vec<String> {
        let mut harm: Vec<String> = self
            .stopped
            .iter()
            .filter(|what| !alone.stopped.contains(what))
            .cloned()
            .collect();
        for (application, values) in &alone.checks {
            let attacked = self.checks.get(application).map_or(&[][..], Vec::as_slice);
            // A slower run may not have come as far.
            if attacked.iter().zip(values).any(|(a, b)| a != b) {
                harm.push(format!("{application} computed another result"));
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

/// What the kernel says if it stops. Only the kernel can begin a line so.
fn kernel_end(system: &System, console: &str) -> Option<String> {
    let stop = console::kernel_stop(system, console, &|_, _| None)?;
    Some(format!("the kernel stopped: {}", stop.what))
}

/// Strides in which the timelines of two runs differ first, by tile.
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
/// has it; where there is none (on the second chip), from what it did here while the attackers slept.
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
        let mut measured = measured.iter().filter(|_| stand.chip == 0);
        let known = measured
            .find(|known| known.is_of(system, &flow.name))
            .cloned();
        let length = alone::slicing(system).map_or(0, |slicing| slicing.0);
        let known = known.or_else(|| alone::alone(system, &names, flow, &seen.slices, length));
        let known = known.ok_or("its requests alone were not counted")?;
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

/// Worst requests over all attacks beside their bounds.
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

/// What limits the protection beyond requests: shared tiles and channels from outside.
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
        for gate in app.sgates.iter().filter(|_| stand.is_own(index)) {
            if !stand.is_own(gate.to) {
                let server = &system.apps[gate.to].name;
                all.push(format!(
                    "{} depends on {server}, which an adversary replaces",
                    app.name
                ));
            }
        }
    }
    all
}
