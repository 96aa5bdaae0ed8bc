//! The check of a system without a kernel: each domain's programs alone, and beside rivals in place of all others.
//!
//! Why it exists: programs of one chip meet at caches, links and memories even if each keeps to its own memory, and only a run against
//! hostile ones shows what that costs. What it deliberately does not know: how a program is run. The meaning of a verdict is that of
//! [`bulkhead_report::audit::result`].
//!
//! The rivals are `memory/bursts`, with the harts, memory and ways of the programs that they replace. In the reference run they sleep. The
//! timeline of a domain consists of every marker of its harts with its tick. Nothing keeps a program without a kernel from the memory of
//! another one, so the check is about rivals that keep to their own memory, and says so.

use super::{Finished, GENERATION, Options};
use bulkhead_abi::marker::MarkerKind;
use bulkhead_model::System;
use bulkhead_model::system::Argument;
use bulkhead_report::audit::result::{
    AttackResult, AuditResult, Difference, DomainResult, FlowAudit, RequestAudit, Ruling, SCHEMA,
    Verdict,
};
use bulkhead_report::format::span;
use bulkhead_report::result::{FlowResult, Incident, IncidentKind, Interference, VariantResult};
use bulkhead_runner::bare::rivals::{Burst, RIVAL, drawn, library};
use bulkhead_runner::collect;
use bulkhead_runner::error::Error;
use bulkhead_runner::measure::MarkerEvent;
use bulkhead_runner::measure::jobs::worst_started;
use bulkhead_runner::programs::Library;
use bulkhead_runner::progress::Progress;
use bulkhead_runner::run;

/// An attack by rivals.
#[derive(Clone, Debug)]
struct Attack {
    name: String,
    /// The bursts of each of them; nothing if they are the system's own programs.
    bursts: Option<Vec<Burst>>,
}

/// An attack and its outcome.
struct Tried {
    attack: Attack,
    result: AttackResult,
    account: Vec<Interference>,
    variant: VariantResult,
}

impl Tried {
    fn badness(&self) -> (bool, u64, u64) {
        let one = &self.result;
        (!one.harm.is_empty(), one.slowdown, one.waited)
    }
}

/// A run.
struct Ran {
    variant: VariantResult,
    markers: Vec<MarkerEvent>,
}

/// Checks a system.
pub fn audit(
    options: &Options,
    (whole, system): (&System, &System),
    library: &Library,
    progress: &dyn Progress,
) -> Result<Finished, Error> {
    let names = || system.domains.iter().map(|domain| domain.name.as_str());
    let mut unknown = options.domains.iter();
    if let Some(unknown) = unknown.find(|name| !names().any(|known| known == name.as_str())) {
        return Err(Error::input(
            format!("the system has no domain `{unknown}`"),
            format!("it has {}", names().collect::<Vec<_>>().join(", ")),
        ));
    }
    let run_options = run::Options {
        system: options.system.clone(),
        overrides: options.overrides.clone(),
        ..run::Options::default()
    };
    let mut system = system.clone();
    system.duration = system.duration.min(options.time);
    let (mut domains, mut added, mut provenance) = (Vec::new(), Vec::new(), None);
    for (index, domain) in system.domains.iter().enumerate() {
        let wanted = options.domains.is_empty() || options.domains.contains(&domain.name);
        if !wanted || !system.apps.iter().any(|app| app.domain == index) {
            continue;
        }
        let checking = Checking {
            system: &system,
            whole,
            domain: index,
            options,
            run_options: &run_options,
            library,
            progress,
        };
        let (result, made) = checking.check()?;
        domains.push(result);
        added.extend(made.result.added.clone());
        provenance = Some(made.result.provenance);
    }
    let provenance = provenance.ok_or_else(|| {
        Error::input(
            "no domain with a program is to be checked",
            "name a domain with at least one <app>",
        )
    })?;
    let per_second = system.platform.ticks_per_second();
    Ok(Finished {
        result: AuditResult {
            schema: SCHEMA,
            system: system.name.clone(),
            variant: options.variant.clone(),
            platform: system.platform.name.clone(),
            ticks_per_second: per_second,
            cycle_ticks: run::reference_cycle(&system),
            window: collect::ticks(system.duration, per_second),
            seed: options.seed,
            searches: options.drawn(),
            provenance,
            chips: Vec::new(),
            added,
            domains,
        },
    })
}

/// A domain being checked.
struct Checking<'a> {
    system: &'a System,
    whole: &'a System,
    domain: usize,
    options: &'a Options,
    run_options: &'a run::Options,
    library: &'a Library,
    progress: &'a dyn Progress,
}

impl Checking<'_> {
    fn check(&self) -> Result<(DomainResult, run::Finished), Error> {
        let sleeping = Attack {
            name: "the others sleep".to_owned(),
            bursts: Some(vec![Burst::default(); self.rivals().len()]),
        };
        let mut attacks = Vec::new();
        if !self.rivals().is_empty() {
            attacks.extend(self.library());
        }
        let domain = &self.system.domains[self.domain].name;
        let only = self.options.choose(domain, &mut attacks, |one| &one.name)?;
        attacks.insert(0, sleeping);
        let (mut ran, made) = self.run(&attacks)?;
        let quiet = ran.remove(0);
        attacks.remove(0);
        let mut tried: Vec<Tried> = Vec::new();
        self.compare(&quiet, attacks, ran, &mut tried);
        let (mut number, searches) = (0u32, self.options.drawn());
        while number < searches && !self.rivals().is_empty() {
            let mut generation = Vec::new();
            while generation.len() < GENERATION as usize && number < searches {
                number += 1;
                let worst = worst_of(&tried).map(|at| &tried[at].attack);
                generation.push(self.drawn(number, worst));
            }
            let (ran, _) = self.run(&generation)?;
            self.compare(&quiet, generation, ran, &mut tried);
        }
        Ok((self.conclude(&quiet, tried, only), made))
    }

    /// Positions of the applications that rivals replace.
    fn rivals(&self) -> Vec<usize> {
        let apps = self.system.apps.iter().enumerate();
        let others = apps.filter(|(_, app)| app.domain != self.domain);
        others.map(|(at, _)| at).collect()
    }

    fn is_own(&self, name: &str) -> bool {
        let mut apps = self.system.apps.iter();
        apps.any(|app| app.domain == self.domain && app.name == name)
    }

    /// Attacks without a pause, each of one kind, and the system's own programs.
    fn library(&self) -> Vec<Attack> {
        let own = Attack {
            name: "the system's own programs".to_owned(),
            bursts: None,
        };
        let others = library().into_iter().map(|(name, burst)| Attack {
            name: name.to_owned(),
            bursts: Some(vec![burst; self.rivals().len()]),
        });
        std::iter::once(own).chain(others).collect()
    }

    /// An attack of the search: random, or the worst so far with one rival changed.
    fn drawn(&self, number: u32, worst: Option<&Attack>) -> Attack {
        let worst = worst.filter(|_| number.is_multiple_of(2));
        let varied = worst.and_then(|worst| worst.bursts.as_deref());
        let bursts = drawn(self.rivals().len(), (number, self.options.seed), varied);
        let how = if varied.is_some() { ", varied" } else { "" };
        Attack {
            name: format!("search {number}{how}"),
            bursts: Some(bursts),
        }
    }

    /// The system under an attack.
    fn under(&self, attack: &Attack) -> System {
        let mut system = self.system.clone();
        let own: Vec<bool> = system
            .apps
            .iter()
            .map(|app| app.domain == self.domain)
            .collect();
        system.flows.retain(|flow| own[flow.from] && own[flow.to]);
        // Deadlines are judged by `run`; the check judges what attacks add.
        for (at, burst) in self
            .rivals()
            .into_iter()
            .zip(attack.bursts.iter().flatten())
        {
            let app = &mut system.apps[at];
            RIVAL.clone_into(&mut app.program);
            app.task = None;
            let arguments = burst.arguments().into_iter();
            app.arguments = arguments
                .map(|(name, value)| Argument {
                    name: name.to_owned(),
                    value: value.to_string(),
                })
                .collect();
        }
        system
    }

    fn run(&self, attacks: &[Attack]) -> Result<(Vec<Ran>, run::Finished), Error> {
        let variants = attacks.iter();
        let variants = variants.map(|attack| (attack.name.clone(), self.under(attack)));
        let (made, seen) = run::chosen(
            (self.whole, self.library),
            variants.collect(),
            self.run_options,
            self.progress,
        )?;
        for (attack, variant) in attacks.iter().zip(&made.result.variants) {
            if attack.bursts.is_some() {
                took_place(&attack.name, &variant.incidents, |name| self.is_own(name))?;
            }
        }
        let ran = made.result.variants.iter().zip(seen);
        let ran = ran.map(|(variant, seen)| Ran {
            variant: variant.clone(),
            markers: self.timeline(seen.markers),
        });
        Ok((ran.collect(), made))
    }

    /// The markers of the domain's harts.
    fn timeline(&self, mut markers: Vec<MarkerEvent>) -> Vec<MarkerEvent> {
        let cluster = |tile: u16| {
            self.system
                .platform
                .tile(tile)
                .is_some_and(|tile| tile.cluster.is_some())
        };
        let bare = self.system.bare.as_ref();
        markers.retain(|one| {
            let hart = if cluster(one.tile) { one.activity } else { 0 };
            let app = bare.and_then(|bare| bare.at(&self.system.apps, one.tile, hart));
            app.is_some_and(|app| self.system.apps[app].domain == self.domain)
        });
        markers
    }

    fn compare(&self, quiet: &Ran, attacks: Vec<Attack>, ran: Vec<Ran>, tried: &mut Vec<Tried>) {
        for (attack, ran) in attacks.into_iter().zip(ran) {
            let first = difference(&attack.name, &quiet.markers, &ran.markers);
            let own = |one: &&Interference| self.is_own(&one.victim) && !self.is_own(&one.culprit);
            let account: Vec<_> = ran
                .variant
                .interference
                .iter()
                .filter(own)
                .cloned()
                .collect();
            let (slowdown, of, took) = slowdown(&quiet.variant, &ran.variant);
            let rivals = self.rivals();
            let bursts = attack.bursts.iter().flatten();
            let plans = rivals.iter().zip(bursts);
            let plans = plans.map(|(at, burst)| {
                let name = &self.system.apps[*at].name;
                format!("{name}: {RIVAL} {}", burst.text())
            });
            let result = AttackResult {
                name: attack.name.clone(),
                plans: plans.collect(),
                arguments: attack
                    .bursts
                    .iter()
                    .flatten()
                    .map(|one| one.text())
                    .collect(),
                identical: first.is_none(),
                first,
                slowdown,
                of,
                took,
                waited: account.iter().map(|one| one.ticks).sum(),
                harm: self.harm(quiet, &ran),
                refused: 0,
            };
            tried.push(Tried {
                attack,
                result,
                account,
                variant: ran.variant,
            });
        }
    }

    /// The harm of an attack beyond delays.
    fn harm(&self, quiet: &Ran, ran: &Ran) -> Vec<String> {
        let mut harm = Vec::new();
        let known = &quiet.variant.incidents;
        for one in &ran.variant.incidents {
            let before = known.iter();
            let mut before = before.filter(|old| old.application == one.application);
            if one.kind != IncidentKind::Unseen
                && self.is_own(&one.application)
                && !before.any(|old| old.kind == one.kind)
            {
                harm.push(format!("{} {}", one.application, one.what));
            }
        }
        let checks = |markers: &[MarkerEvent]| -> Vec<(u16, u16, u64)> {
            let all = markers.iter();
            let all = all.filter(|one| one.kind == MarkerKind::Check as u16);
            all.map(|one| (one.tile, one.activity, one.value)).collect()
        };
        let of = |hart: (u16, u16), all: &[(u16, u16, u64)]| -> Vec<u64> {
            let all = all.iter().filter(|one| (one.0, one.1) == hart);
            all.map(|one| one.2).collect()
        };
        let (before, now) = (checks(&quiet.markers), checks(&ran.markers));
        let mut harts: Vec<(u16, u16)> = before.iter().map(|one| (one.0, one.1)).collect();
        harts.sort_unstable();
        harts.dedup();
        for hart in harts {
            // A slower hart may not have got as far.
            let pairs = of(hart, &before).into_iter().zip(of(hart, &now));
            if pairs.into_iter().any(|(before, now)| before != now) {
                harm.push(format!(
                    "hart {} of tile {} computed another result",
                    hart.1, hart.0
                ));
            }
        }
        harm
    }

    fn conclude(&self, quiet: &Ran, tried: Vec<Tried>, only: Option<String>) -> DomainResult {
        let domain = &self.system.domains[self.domain];
        let worst = worst_of(&tried);
        let account = worst.map(|at| tried[at].account.clone());
        let flows = flows(quiet, &tried);
        let microsecond = self.system.platform.ticks_per_second() as f64 / 1e6;
        let time = |ticks: u64| span(ticks as f64 / microsecond);
        let mut reasons = Vec::new();
        for one in &tried {
            let harm = one.result.harm.iter();
            reasons.extend(harm.map(|harm| format!("beside {}: {harm}", one.result.name)));
        }
        for flow in &flows {
            if let Some(bound) = flow
                .bound
                .as_ref()
                .filter(|bound| flow.attacked > bound.ticks)
            {
                reasons.push(format!(
                    "flow {}: {}, above its bound of {}",
                    flow.name,
                    time(flow.attacked),
                    time(bound.ticks)
                ));
            }
        }
        let broken = !reasons.is_empty();
        let identical = tried.iter().all(|one| one.result.identical);
        if !identical {
            for flow in &flows {
                match (&flow.bound, flow.deadline) {
                    (None, _) => reasons.push(format!(
                        "flow {} has no bound: {}",
                        flow.name,
                        flow.unbounded.as_deref().unwrap_or_default()
                    )),
                    (Some(bound), Some(deadline)) if bound.ticks > deadline => {
                        reasons.push(format!(
                            "flow {}: the bound of {} does not keep the deadline of {}",
                            flow.name,
                            time(bound.ticks),
                            time(deadline)
                        ));
                    }
                    _ => {}
                }
            }
            // The bound of a flow from a program to itself contains all its requests; nothing else bounds them.
            let apps = self.system.apps.iter().enumerate();
            for (at, app) in apps.filter(|(_, app)| app.domain == self.domain) {
                let mut own = self.system.flows.iter();
                if !own.any(|flow| (flow.from, flow.to) == (at, at)) {
                    reasons.push(format!(
                        "nothing bounds the waits of {}: it has no flow from itself to itself",
                        app.name
                    ));
                }
            }
        }
        let verdict = match (broken, identical, reasons.is_empty()) {
            (true, ..) => Verdict::Broken,
            (false, true, _) => Verdict::Identical,
            (false, false, true) => Verdict::Bounded,
            (false, false, false) => Verdict::Unbounded,
        };
        let others = self.system.domains.iter().enumerate();
        let mut others = others.filter(|(index, _)| *index != self.domain);
        let owed = others.all(|(_, other)| other.criticality >= domain.criticality);
        let name = |own: bool| -> Vec<String> {
            let apps = self.system.apps.iter();
            let apps = apps.filter(|app| (app.domain == self.domain) == own);
            apps.map(|app| app.name.clone()).collect()
        };
        let attackers = name(false);
        let attacked = !attackers.is_empty();
        let stopped: Vec<String> = quiet
            .variant
            .incidents
            .iter()
            .filter(|one| one.kind != IncidentKind::Unseen && self.is_own(&one.application))
            .map(|one| format!("{} {}", one.application, one.what))
            .collect();
        // Without a mark there is nothing to compare.
        let gone = match (quiet.markers.is_empty(), stopped.first()) {
            (true, _) => {
                Some("its programs emit no markers, so nothing shows their behaviour".to_owned())
            }
            (false, stopped) => stopped.cloned(),
        };
        let mut tiles: Vec<u16> = self
            .system
            .apps
            .iter()
            .filter(|app| app.domain == self.domain)
            .map(|app| app.tile)
            .collect();
        tiles.sort_unstable();
        tiles.dedup();
        let difference = worst.and_then(|at| tried[at].result.first.clone());
        let waits_alone = quiet.variant.interference.iter();
        let waits_alone = waits_alone.filter(|one| self.is_own(&one.victim));
        let notes = [
            "The rivals keep to their own memory and write no lockdown register. Nothing prevents a program without a kernel from doing these things.",
            "The first sample of a flow is the start of its program, and is not compared with the bound if there are others.",
        ];
        DomainResult {
            name: domain.name.clone(),
            chip: None,
            criticality: domain.criticality,
            applications: name(true),
            tiles,
            attackers,
            start: 0,
            ruling: Ruling::of(verdict, owed, attacked, gone.clone().or(only)),
            owed,
            stopped,
            gone,
            needs: Vec::new(),
            reasons,
            notes: notes.map(str::to_owned).to_vec(),
            worst,
            difference,
            accounted: worst,
            account: account.unwrap_or_default(),
            waits_alone: waits_alone.map(|one| one.ticks).sum(),
            flows,
            requests: self.requests(quiet, &tried),
            attacks: tried.into_iter().map(|one| one.result).collect(),
        }
    }

    fn requests(&self, quiet: &Ran, tried: &[Tried]) -> Vec<RequestAudit> {
        let own = quiet.variant.requests.iter();
        let own = own.filter(|one| self.is_own(&one.application));
        own.map(|one| {
            let key = (&one.application, &one.kind, &one.to);
            let others = tried.iter().flat_map(|tried| &tried.variant.requests);
            let same = others.filter(|other| (&other.application, &other.kind, &other.to) == key);
            RequestAudit {
                application: one.application.clone(),
                kind: format!("{} ({})", one.kind, one.to),
                alone: one.worst,
                attacked: same.map(|other| other.worst).max().unwrap_or(0),
                bound: one.bound.clone(),
                unbounded: one.unbounded.clone(),
            }
        })
        .collect()
    }
}

/// Rivals never end. If one did, its attack did not take place, and would count as one without effect.
fn took_place(
    attack: &str,
    incidents: &[Incident],
    is_own: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let ended = |one: &&Incident| {
        let others = [IncidentKind::Unseen, IncidentKind::Unfinished];
        !others.contains(&one.kind) && !is_own(&one.application)
    };
    match incidents.iter().find(ended) {
        None => Ok(()),
        Some(one) => Err(Error::input(
            format!(
                "attack `{attack}`: in place of {}, {RIVAL} ended: {}",
                one.application, one.what
            ),
            "give that program more memory: its rival has the same",
        )),
    }
}

/// The worst latency of the samples that began when the program had started.
fn worst_latency(flow: &FlowResult) -> u64 {
    worst_started(&flow.samples).unwrap_or(flow.latency.max)
}

fn flows(quiet: &Ran, tried: &[Tried]) -> Vec<FlowAudit> {
    let counted = quiet.variant.flows.iter();
    let counted = counted.filter(|flow| flow.latency.count > 0);
    counted
        .map(|flow| {
            let others = || {
                let all = tried.iter().flat_map(|one| &one.variant.flows);
                all.filter(|one| one.name == flow.name)
            };
            // Beside one attack it may have replaced other lines than alone.
            let unbounded = others().find_map(|one| one.unbounded.clone());
            let unbounded = flow.unbounded.clone().or(unbounded);
            FlowAudit {
                name: flow.name.clone(),
                deadline: flow.deadline,
                alone: worst_latency(flow),
                attacked: others().map(worst_latency).max().unwrap_or(0),
                bound: flow.bound.clone().filter(|_| unbounded.is_none()),
                unbounded,
            }
        })
        .collect()
}

/// The first marker that differs.
fn difference(beside: &str, alone: &[MarkerEvent], attacked: &[MarkerEvent]) -> Option<Difference> {
    let mut both = alone.iter().zip(attacked);
    let at = match both.position(|(alone, attacked)| alone != attacked) {
        Some(at) => at,
        None if alone.len() == attacked.len() => return None,
        None => alone.len().min(attacked.len()),
    };
    let said = |all: &[MarkerEvent]| match all.get(at) {
        Some(one) => format!(
            "hart {} marks {} of kind {}",
            one.activity, one.value, one.kind
        ),
        None => "nothing more happens".to_owned(),
    };
    let first = alone.get(at).or(attacked.get(at))?;
    Some(Difference {
        beside: beside.to_owned(),
        tile: first.tile,
        event: at as u64,
        alone_at: alone.get(at).map(|one| one.at),
        alone: said(alone),
        attacked_at: attacked.get(at).map(|one| one.at),
        attacked: said(attacked),
    })
}

/// The worst slowdown in thousandths, of what, and what it took.
fn slowdown(quiet: &VariantResult, attacked: &VariantResult) -> (u64, String, Option<[u64; 2]>) {
    let mut worst = (1000, String::from("nothing"), None);
    for flow in &quiet.flows {
        let mut others = attacked.flows.iter();
        let Some(other) = others.find(|other| other.name == flow.name) else {
            continue;
        };
        let (before, now) = (worst_latency(flow), worst_latency(other));
        let ratio = (u128::from(now) * 1000).div_ceil(u128::from(before.max(1)));
        let ratio = u64::try_from(ratio).unwrap_or(u64::MAX);
        if before > 0 && ratio > worst.0 {
            worst = (ratio, format!("flow {}", flow.name), Some([before, now]));
        }
    }
    worst
}

/// The worst attack with an effect; the first in a tie.
fn worst_of(tried: &[Tried]) -> Option<usize> {
    let mut worst: Option<usize> = None;
    for (at, one) in tried.iter().enumerate() {
        let felt = !one.result.identical || !one.result.harm.is_empty();
        if felt && worst.is_none_or(|worst| one.badness() > tried[worst].badness()) {
            worst = Some(at);
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attack_whose_rival_ends_is_no_attack() {
        let incident = |application: &str, kind| Incident {
            kind,
            at: None,
            tile: 0,
            application: application.to_owned(),
            what: "ended the run with exit code 1".to_owned(),
            crash: None,
        };
        let judged = |incidents: &[Incident]| took_place("misses", incidents, |name| name == "own");
        let own = incident("own", IncidentKind::Stopped);
        let late = incident("copy", IncidentKind::Unfinished);
        assert!(judged(&[own.clone(), late]).is_ok());
        let error = judged(&[own, incident("copy", IncidentKind::Stopped)]);
        let error = error.expect_err("the rival ended").to_string();
        assert!(
            error.contains("`misses`") && error.contains("copy"),
            "{error}"
        );
    }
}
