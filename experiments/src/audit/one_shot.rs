//! The check of a one-shot system: each domain's cores alone, and beside adversaries on all other cores of the chip.
//!
//! Why it exists: every core of a mesh reads and writes every other core's memory unless a guard refuses it, so a test must show what an
//! attack breaks and what it only delays. What it deliberately does not know: the chip, and how attacks are made. The meaning of a verdict
//! is that of [`bulkhead_report::audit::result`].
//!
//! The timeline of a core consists of every marker on it with its tick: releases, begins and ends of jobs, operations on ports, flows, and
//! the tasks' own marks.

use super::{Finished, Options};
use crate::audit::timeline;
use bulkhead_abi::marker::MarkerKind;
use bulkhead_model::System;
use bulkhead_model::units::Time;
use bulkhead_report::audit::result::{
    AttackResult, AuditResult, DomainResult, FlowAudit, RequestAudit, Ruling, SCHEMA, Verdict,
};
use bulkhead_report::result::{FlowResult, Interference, RequestResult};
use bulkhead_runner::collect;
use bulkhead_runner::error::Error;
use bulkhead_runner::oneshot::attacked::{self, Seen, Stand};
use bulkhead_runner::oneshot::attacks::{Attack, drawn, library};
use bulkhead_runner::oneshot::results::{Measured, measured};
use bulkhead_runner::paradigm::Paradigm;
use bulkhead_runner::parallel;
use bulkhead_runner::programs::{Library, Program};
use bulkhead_runner::progress::{Progress, Stage};
use bulkhead_runner::run;
use std::collections::{BTreeMap, BTreeSet};

/// Attacks begin at multiples of this, in microseconds.
const GRID: u64 = 100;
/// Picoseconds of a microsecond.
const MICROSECOND: u64 = 1_000_000;
/// Maximum lines of harm listed for an attack.
const HARMS: usize = 8;

/// Attacks that are also tried from the chip's reset on, when kernels start, clocks are synchronised and ports are opened: one that only fills links and ports,
/// one that keeps what others need, and one that writes. The start takes several windows, so not all are.
const EARLY: [&str; 3] = [
    "stores without effect",
    "locks held for ever",
    "writes anywhere",
];

/// An attack, and the tick at which it begins.
type Timed = (Attack, u64);

/// Checks a system.
pub fn audit(
    options: &Options,
    (whole, system): (&System, &System),
    library: &Library,
    progress: &dyn Progress,
) -> Result<Finished, Error> {
    let one_shot = system.one_shot.as_ref();
    let one_shot = one_shot.ok_or_else(|| Error::Machine("no one-shot system".to_owned()))?;
    let all = one_shot.domains(&system.name);
    let known: Vec<&str> = all.iter().map(|one| one.0.as_str()).collect();
    if let Some(unknown) = options
        .domains
        .iter()
        .find(|name| !known.contains(&name.as_str()))
    {
        return Err(Error::input(
            format!("the system has no domain `{unknown}`"),
            format!("it has {}", known.join(", ")),
        ));
    }
    let what = "building the images of the cores";
    progress.stage(Stage::Work { what });
    let room = run::paradigm_of(system)?;
    let programs = room.build(library, &[system]);
    progress.stage(Stage::Done { name: what });
    let programs = programs?;
    let per_second = system.platform.ticks_per_second();
    let window = collect::ticks(options.time, per_second).max(1);
    let wanted = |name: &String| options.domains.is_empty() || options.domains.contains(name);
    let mut domains = Vec::new();
    for (name, cores) in all.iter().filter(|one| wanted(&one.0)) {
        let mut stand = Stand::new(system, cores, &programs)?;
        if let Some(one_shot) = &mut stand.system.one_shot {
            // A run ends at most a window and two steps of the grid after it: what clocks drift apart until then is in the bounds.
            let more = options.time.0 + 2 * GRID * MICROSECOND;
            one_shot.duration.0 = one_shot.duration.0.saturating_add(more);
        }
        let checking = Checking {
            name,
            stand,
            options,
            window,
            room,
            progress,
        };
        domains.push(checking.check()?);
    }
    Ok(Finished {
        result: result(options, (whole, system), window, &programs, domains),
    })
}

fn result(
    options: &Options,
    (whole, system): (&System, &System),
    window: u64,
    programs: &[Program],
    domains: Vec<DomainResult>,
) -> AuditResult {
    let run_options = run::Options {
        system: options.system.clone(),
        overrides: options.overrides.clone(),
        ..run::Options::default()
    };
    AuditResult {
        schema: SCHEMA,
        system: system.name.clone(),
        variant: options.variant.clone(),
        platform: system.platform.name.clone(),
        ticks_per_second: system.platform.ticks_per_second(),
        cycle_ticks: run::reference_cycle(system),
        window,
        seed: options.seed,
        searches: options.drawn(),
        provenance: run::provenance(whole, &run_options, programs),
        chips: Vec::new(),
        added: Vec::new(),
        domains,
    }
}

/// All attacks at their usual moment, and then those that are also tried from reset on.
fn timed(attacks: Vec<Attack>, start: u64) -> Vec<Timed> {
    let early = attacks
        .iter()
        .filter(|one| EARLY.contains(&one.name.as_str()));
    let early: Vec<Timed> = early
        .map(|one| {
            let name = format!("{} from the start", one.name);
            let about = format!("from the chip's reset on, {}", one.about);
            (
                Attack {
                    name,
                    about,
                    ..one.clone()
                },
                0,
            )
        })
        .collect();
    let usual = attacks.into_iter().map(|one| (one, start));
    usual.chain(early).collect()
}

/// A domain being checked.
struct Checking<'a> {
    name: &'a str,
    stand: Stand,
    options: &'a Options,
    window: u64,
    room: &'a dyn Paradigm,
    progress: &'a dyn Progress,
}

/// A run and its results.
struct Facts {
    seen: Seen,
    measured: Measured,
    account: Vec<Interference>,
    waited_self: u64,
    /// What the consoles say a period later; only of the run alone.
    later: String,
}

/// An attack that was tried.
struct Tried {
    result: AttackResult,
    account: Vec<Interference>,
    measured: Measured,
}

impl Tried {
    fn badness(&self) -> (bool, u64, u64) {
        let one = &self.result;
        (!one.harm.is_empty(), one.slowdown, one.waited)
    }
}

impl Checking<'_> {
    fn check(self) -> Result<DomainResult, Error> {
        let system = &self.stand.system;
        let progress_name = format!("attacks on {}", self.name);
        let microsecond = (system.platform.ticks_per_second() / 1_000_000).max(1);
        let start = self.start(microsecond)?;
        let until = start + self.window;
        let mut alone = self.facts(attacked::execute(&self.stand, &[], None, until)?, start);
        if !self.stand.attackers.is_empty() {
            let later = until + self.longest_period().min(self.window);
            alone.later = attacked::execute(&self.stand, &[], None, later)?.console;
        }
        let mut tried: Vec<Tried> = Vec::new();
        let mut only = None;
        if !self.stand.attackers.is_empty() {
            let mut attacks = library(&self.stand);
            attacks.retain(|attack| attack.plans.iter().any(|plan| !plan.steps.is_empty()));
            let searches = 1..=self.options.drawn();
            attacks.extend(searches.map(|n| drawn(&self.stand, n, self.options.seed)));
            let mut attacks = timed(attacks, start);
            only = self
                .options
                .choose(self.name, &mut attacks, |one| &one.0.name)?;
            let total = attacks.len() as u64;
            // A few at a time, because each keeps the memories of all cores.
            for some in attacks.chunks(4) {
                self.progress.stage(Stage::Simulation {
                    name: &progress_name,
                    microseconds: tried.len() as u64,
                    of: total,
                });
                let results = parallel::in_parallel(some, |(attack, begin)| {
                    let begin = Some(*begin);
                    let seen = attacked::execute(&self.stand, &attack.plans, begin, until)?;
                    Ok(self.tried(attack, &alone, self.facts(seen, start)))
                });
                for result in results {
                    tried.push(result?);
                }
            }
        }
        self.progress.stage(Stage::Done {
            name: &progress_name,
        });
        Ok(self.conclude(start, &alone, tried, only))
    }

    /// The longest period of the domain's tasks, in ticks.
    fn longest_period(&self) -> u64 {
        let system = &self.stand.system;
        let own = |core: u16| self.stand.victims.contains(&core);
        let periods = system.one_shot.iter().flat_map(|one_shot| {
            let tasks = one_shot.tasks.tasks.iter().enumerate();
            let tasks = tasks.filter(move |(task, _)| own(one_shot.core(*task)));
            tasks.map(|(_, task)| task.period)
        });
        let longest = periods.max().unwrap_or(Time(0));
        collect::ticks(longest, system.platform.ticks_per_second())
    }

    /// The moment at which each task that ever ends a job has ended one: ports are open by then.
    fn start(&self, microsecond: u64) -> Result<u64, Error> {
        let system = &self.stand.system;
        let most = collect::ticks(system.duration, system.platform.ticks_per_second());
        let seen = attacked::execute(&self.stand, &[], None, most.max(1))?;
        let mut first: BTreeMap<(u16, u64), u64> = BTreeMap::new();
        for marker in timeline::ends(&seen.markers) {
            first.entry(marker.0).or_insert(marker.1);
        }
        let last = first.into_values().max().unwrap_or(0);
        let grid = GRID * microsecond;
        Ok((last / grid + 1) * grid)
    }

    fn facts(&self, seen: Seen, _start: u64) -> Facts {
        let system = &self.stand.system;
        let own = |tile: u16| self.stand.victims.contains(&tile);
        let mut measured = measured(system, &seen.markers, seen.ticks);
        let names = self.room.names(system, &seen.markers);
        let one_shot = system.one_shot.as_ref();
        let is_own = |task: &str| {
            let found = one_shot.and_then(|one_shot| {
                let mut tasks = one_shot.tasks.tasks.iter();
                Some(one_shot.core(tasks.position(|one| one.name == task)?))
            });
            found.is_some_and(own)
        };
        measured.tasks.retain(|task| is_own(&task.application));
        measured.requests.retain(|one| is_own(&one.application));
        measured.flows.retain(|flow| {
            let through = flow.through.iter().all(|task| is_own(task));
            through && is_own(&flow.from) && is_own(&flow.to)
        });
        let (mut account, mut waited_self) = (BTreeMap::new(), 0);
        for booking in seen.ledger.bookings() {
            if !own(booking.victim.tile) {
                continue;
            }
            if own(booking.culprit.tile) {
                waited_self += booking.ticks;
                continue;
            }
            let key = (
                names.owner(booking.victim),
                names.owner(booking.culprit),
                collect::group(&names, booking.resource),
            );
            *account.entry(key).or_insert(0) += booking.ticks;
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
        account.sort_by(|a, b| {
            let names = |one: &Interference| (one.victim.clone(), one.culprit.clone());
            (b.ticks, names(a)).cmp(&(a.ticks, names(b)))
        });
        Facts {
            seen,
            measured,
            account,
            waited_self,
            later: String::new(),
        }
    }

    fn tried(&self, attack: &Attack, alone: &Facts, facts: Facts) -> Tried {
        let (slowdown, of, took) = slowdown(&alone.measured, &facts.measured);
        let stand = &self.stand;
        let names = stand.attackers.iter();
        let acting = names.zip(&attack.plans);
        let acting = acting.filter(|(_, plan)| !plan.steps.is_empty());
        let first = timeline::difference(
            &stand.system,
            &attack.name,
            (&alone.seen.markers, &facts.seen.markers),
        );
        Tried {
            result: AttackResult {
                name: attack.name.clone(),
                plans: acting
                    .map(|(core, _)| format!("core {core}: {}", attack.about))
                    .collect(),
                arguments: Vec::new(),
                identical: first.is_none() && alone.seen.markers == facts.seen.markers,
                first,
                slowdown,
                of,
                took,
                waited: facts.account.iter().map(|line| line.ticks).sum(),
                harm: self.harm(attack, alone, &facts),
                refused: refused(stand, &facts.seen),
            },
            account: facts.account,
            measured: facts.measured,
        }
    }

    /// The harm of an attack beyond delays.
    fn harm(&self, attack: &Attack, alone: &Facts, facts: &Facts) -> Vec<String> {
        let mut harm = Vec::new();
        harm.extend(facts.seen.ended.clone());
        let known: Vec<(&str, &str)> = alone.seen.incidents.iter().map(told).collect();
        for incident in &facts.seen.incidents {
            if !known.contains(&told(incident)) {
                harm.push(format!("{} {}", incident.application, incident.what));
            }
        }
        for &core in &self.stand.victims {
            harm.extend(self.overwritten(core, alone, facts));
            let values = |seen: &Seen| checks(seen, core);
            let (before, now) = (values(&alone.seen), values(&facts.seen));
            // A slower core may not have got as far.
            if before.iter().zip(&now).any(|(a, b)| a != b) {
                harm.push(format!("core {core}: a task computed another result"));
            }
            if attack.writes {
                harm.extend(said(core, alone, facts));
            }
        }
        for flow in &alone.measured.flows {
            let mut flows = facts.measured.flows.iter();
            if let Some(now) = flows.find(|one| one.name == flow.name)
                && now.lost > flow.lost
            {
                let lost = now.lost - flow.lost;
                harm.push(format!("flow {}: {lost} samples never arrived", flow.name));
            }
        }
        for task in &alone.measured.tasks {
            let mut tasks = facts.measured.tasks.iter();
            if let Some(now) = tasks.find(|one| one.application == task.application) {
                let (name, before) = (&task.application, task.jobs);
                // One may arrive just after the end. Only a restarted hart explains more jobs.
                if now.jobs.abs_diff(before) > 1 {
                    harm.push(format!(
                        "task {name}: {} jobs ended, {before} without an attack",
                        now.jobs
                    ));
                }
                if now.misses > task.misses.max(task.allowed) {
                    harm.push(format!(
                        "task {name}: {} jobs late, {} without an attack",
                        now.misses, task.misses
                    ));
                }
            }
        }
        harm.truncate(HARMS);
        harm
    }

    /// Parts of a core's memory that should not change but did.
    fn overwritten(&self, core: u16, alone: &Facts, facts: &Facts) -> Vec<String> {
        let memory = |facts: &Facts| facts.seen.memories.get(&core).cloned().unwrap_or_default();
        let (before, now) = (memory(alone), memory(facts));
        let constant = self.stand.places(core).iter().filter(|one| one.constant);
        let changed = constant.filter_map(|place| {
            let mut all = place.range.clone();
            let differs = |at: &u64| before.get(*at as usize) != now.get(*at as usize);
            let first = all.find(differs)?;
            Some(format!(
                "core {core}: its {} was written over, first at +{first:#x}",
                place.name
            ))
        });
        changed.collect()
    }

    fn conclude(
        &self,
        start: u64,
        alone: &Facts,
        tried: Vec<Tried>,
        only: Option<String>,
    ) -> DomainResult {
        let worst = worst_of(&tried, |_| true);
        let accounted = worst_of(&tried, |one| !one.account.is_empty());
        let account = accounted.map(|at| tried[at].account.clone());
        let (mut requests, mut flows) = (requests(alone, &tried), flows(alone, &tried));
        let void = self.unbounded();
        if let Some(why) = void.first() {
            // A bound that holds only while all behave is no bound here.
            for one in &mut requests {
                (one.bound, one.unbounded) = (None, Some(why.clone()));
            }
            for one in &mut flows {
                (one.bound, one.unbounded) = (None, Some(why.clone()));
            }
        }
        let difference = worst.and_then(|at| tried[at].result.first.clone());
        let mut reasons = Vec::new();
        for one in &tried {
            let harm = one.result.harm.iter();
            reasons.extend(harm.map(|harm| format!("beside {}: {harm}", one.result.name)));
        }
        let above = |what: String, attacked: u64, bound: u64| {
            let [attacked, bound] = [attacked, bound].map(|ticks| self.span(ticks));
            format!("{what}: {attacked}, above its bound of {bound}")
        };
        for one in &requests {
            if let Some(bound) = one
                .bound
                .as_ref()
                .filter(|bound| one.attacked > bound.ticks)
            {
                let what = format!("{} of {}", one.kind, one.application);
                reasons.push(above(what, one.attacked, bound.ticks));
            }
        }
        for one in &flows {
            if let Some(bound) = one
                .bound
                .as_ref()
                .filter(|bound| one.attacked > bound.ticks)
            {
                reasons.push(above(
                    format!("flow {}", one.name),
                    one.attacked,
                    bound.ticks,
                ));
            }
        }
        let broken = !reasons.is_empty();
        let attacks: Vec<AttackResult> = tried.into_iter().map(|one| one.result).collect();
        let identical = attacks.iter().all(|attack| attack.identical);
        let openings = self.openings();
        if !identical {
            reasons.extend(void);
            reasons.extend(openings.iter().cloned());
        }
        let verdict = match (broken, identical, reasons.is_empty()) {
            (true, ..) => Verdict::Broken,
            (false, true, _) => Verdict::Identical,
            (false, false, true) => Verdict::Bounded,
            (false, false, false) => Verdict::Unbounded,
        };
        let attackers = self.attackers();
        let attacked = !attacks.is_empty() && !attackers.is_empty();
        let mut notes = Vec::new();
        if identical && attacked {
            notes.extend(openings);
        }
        let idle = self.idle(start, alone);
        let nothing = (idle.len() == self.tasks().len()).then(|| {
            format!(
                "none of its jobs ended in the {} that were compared, so no attack could delay one: compare a longer time (`--time`)",
                self.span(self.window)
            )
        });
        if nothing.is_none() && !idle.is_empty() {
            notes.push(format!(
                "No job of {} ended in the {} that were compared.",
                idle.join(", "),
                self.span(self.window)
            ));
        }
        let stopped = alone.seen.incidents.iter();
        let stopped = stopped.map(|one| format!("{} {}", one.application, one.what));
        DomainResult {
            name: self.name.to_owned(),
            chip: None,
            criticality: 'A',
            applications: self.tasks(),
            tiles: self.stand.victims.clone(),
            attackers,
            start,
            ruling: Ruling::of(verdict, true, attacked, nothing.or(only)),
            owed: true,
            stopped: stopped.collect(),
            gone: None,
            needs: Vec::new(),
            reasons,
            notes,
            attacks,
            worst,
            difference,
            accounted,
            account: account.unwrap_or_default(),
            waits_alone: alone.waited_self,
            flows,
            requests,
        }
    }

    /// Tasks of which no job ended in the compared time, while all attackers slept.
    fn idle(&self, start: u64, alone: &Facts) -> Vec<String> {
        let ends = timeline::ends(&alone.seen.markers).filter(|one| one.1 >= start);
        let ended: BTreeSet<(u16, u64)> = ends.map(|one| one.0).collect();
        let Some(one_shot) = &self.stand.system.one_shot else {
            return Vec::new();
        };
        let cores = one_shot.cores().into_iter();
        let own = cores.filter(|core| self.stand.victims.contains(core));
        let tasks = own.flat_map(|core| {
            let tasks = one_shot.on_core(core).into_iter().enumerate();
            tasks.map(move |(number, task)| ((core, number as u64), task))
        });
        tasks
            .filter(|(key, _)| !ended.contains(key))
            .map(|(_, task)| one_shot.tasks.tasks[task].name.clone())
            .collect()
    }

    fn span(&self, ticks: u64) -> String {
        let microseconds = self.stand.system.platform.ticks_per_second() as f64 / 1e6;
        bulkhead_report::format::span(ticks as f64 / microseconds)
    }

    /// Why the bounds of this domain do not hold under every attack, if they do not.
    fn unbounded(&self) -> Vec<String> {
        let system = &self.stand.system;
        let one_shot = system.one_shot.as_ref();
        let bounds =
            one_shot.map(|one| bulkhead_analysis::plan::one_shot::bounds(one, &system.platform));
        let assumes = bounds
            .map_or(Vec::new(), |bounds| bounds.assumes)
            .into_iter();
        let own =
            assumes.filter(|(domain, _)| domain.as_deref().unwrap_or(&system.name) == self.name);
        own.map(|(_, why)| format!("the bounds hold only if all cores behave: {why}"))
            .collect()
    }

    /// Channels between the domain and cores that adversaries took: what these may legitimately do.
    fn openings(&self) -> Vec<String> {
        let Some(one_shot) = &self.stand.system.one_shot else {
            return Vec::new();
        };
        let own = |task: usize| self.stand.victims.contains(&one_shot.core(task));
        let tasks = &one_shot.tasks;
        let mut all = Vec::new();
        for channel in &tasks.channels {
            let (from, to) = (
                &tasks.tasks[channel.from].name,
                &tasks.tasks[channel.to].name,
            );
            match (own(channel.from), own(channel.to)) {
                (false, true) => all.push(format!(
                    "core {} writes the channel {} to {to}: it may keep the port's lock, and write items as often as it likes",
                    one_shot.core(channel.from),
                    channel.name
                )),
                (true, false) => all.push(format!(
                    "{from} writes the channel {} to core {}, which may keep the port's lock",
                    channel.name,
                    one_shot.core(channel.to)
                )),
                _ => {}
            }
        }
        // Rights of a queue's writers are those to its record and its places, so each can do to the others what the reader can do.
        for (index, channel) in tasks.channels.iter().enumerate() {
            let sharing = tasks.sharing(index).into_iter();
            let others = sharing.map(|one| &tasks.channels[one]);
            for other in others.filter(|one| own(channel.from) && !own(one.from)) {
                all.push(format!(
                    "core {} writes into the queue {} as {} does: it may fill it, so that no place is left, keep its lock, and change items that wait",
                    one_shot.core(other.from),
                    tasks.channels[tasks.port_of(index)].name,
                    tasks.tasks[channel.from].name
                ));
            }
        }
        all
    }

    fn tasks(&self) -> Vec<String> {
        let Some(one_shot) = &self.stand.system.one_shot else {
            return Vec::new();
        };
        let tasks = one_shot.tasks.tasks.iter().enumerate();
        let own = tasks.filter(|(task, _)| self.stand.victims.contains(&one_shot.core(*task)));
        own.map(|(_, task)| task.name.clone()).collect()
    }

    fn attackers(&self) -> Vec<String> {
        let one_shot = self.stand.system.one_shot.as_ref();
        let named = |core: &u16| {
            let tasks = one_shot.map_or(Vec::new(), |one| one.on_core(*core));
            let names = one_shot.map(|one| {
                let names = tasks
                    .iter()
                    .map(|&task| one.tasks.tasks[task].name.as_str());
                names.collect::<Vec<_>>().join(", ")
            });
            match names.filter(|names| !names.is_empty()) {
                Some(names) => format!("core {core} ({names})"),
                None => format!("core {core}"),
            }
        };
        self.stand.attackers.iter().map(named).collect()
    }
}

/// The name, and what happened, without the number of times.
fn told(incident: &bulkhead_report::result::Incident) -> (&str, &str) {
    let what = incident.what.split(':').next().unwrap_or_default();
    (&incident.application, what)
}

/// The results marked by the tasks of a core.
fn checks(seen: &Seen, core: u16) -> Vec<u64> {
    let markers = seen.markers.iter();
    let own = markers.filter(|one| one.tile == core && one.kind == MarkerKind::Check as u16);
    own.map(|one| one.value).collect()
}

/// The first line of a core's console that does not appear when it is alone, within the same time and a period more: whoever finds at its start that another core
/// is not there yet tries it again a period later. If it is delayed, the other one is there at once, and all that follows comes a period earlier than alone.
fn said(core: u16, alone: &Facts, facts: &Facts) -> Option<String> {
    let before = lines(core, &alone.seen.console);
    let later = lines(core, &alone.later);
    let is_known = |line: &&str| before.contains(line) || later.contains(line);
    let mut now = lines(core, &facts.seen.console).into_iter();
    let new = now.find(|line| !is_known(line) && !line.starts_with("stopped: "))?;
    let new: String = new.chars().take(80).collect();
    Some(format!(
        "core {core} printed something that it does not print alone: {new}"
    ))
}

/// The lines of a core.
fn lines(core: u16, console: &str) -> Vec<&str> {
    let start = format!("core {core}: ");
    let lines = console.lines();
    lines.filter_map(|line| line.strip_prefix(&start)).collect()
}

/// Refusals by guards to the attackers: by victim, how often in total.
fn refused(stand: &Stand, seen: &Seen) -> u64 {
    let own = seen.refused.iter();
    let own = own.filter(|(core, _)| stand.victims.contains(core));
    own.map(|(_, one)| one.count).sum()
}

/// The worst slowdown in thousandths, of what, and what it took.
fn slowdown(alone: &Measured, attacked: &Measured) -> (u64, String, Option<[u64; 2]>) {
    let mut worst = (1000, String::from("nothing"), None);
    let mut compare = |name: String, before: u64, now: u64| {
        let ratio = (u128::from(now) * 1000).div_ceil(u128::from(before.max(1)));
        let ratio = u64::try_from(ratio).unwrap_or(u64::MAX);
        if before > 0 && ratio > worst.0 {
            worst = (ratio, name, Some([before, now]));
        }
    };
    for (before, now) in pairs(&alone.requests, &attacked.requests) {
        let name = format!("{} of {}", before.kind, before.application);
        compare(name, before.worst, now.worst);
    }
    for before in &alone.flows {
        let mut flows = attacked.flows.iter();
        if let Some(now) = flows.find(|one| one.name == before.name) {
            let name = format!("flow {}", before.name);
            compare(name, before.latency.max, now.latency.max);
        }
    }
    worst
}

/// The same requests of two runs. A system's requests are always the same.
fn pairs<'r>(
    one: &'r [RequestResult],
    other: &'r [RequestResult],
) -> impl Iterator<Item = (&'r RequestResult, &'r RequestResult)> {
    one.iter().zip(other)
}

fn requests(alone: &Facts, tried: &[Tried]) -> Vec<RequestAudit> {
    let all = alone.measured.requests.iter().enumerate();
    all.map(|(index, one)| {
        let worst = |one: &Tried| one.measured.requests.get(index).map_or(0, |r| r.worst);
        RequestAudit {
            application: one.application.clone(),
            kind: format!("{} ({})", one.kind, one.to),
            alone: one.worst,
            attacked: tried.iter().map(worst).max().unwrap_or(0),
            bound: one.bound.clone(),
            unbounded: one.unbounded.clone(),
        }
    })
    .collect()
}

fn flows(alone: &Facts, tried: &[Tried]) -> Vec<FlowAudit> {
    let counted = |flow: &&FlowResult| flow.latency.count > 0;
    let all = alone.measured.flows.iter().filter(counted);
    all.map(|flow| {
        let others = tried.iter().flat_map(|one| &one.measured.flows);
        let same = others.filter(|one| one.name == flow.name);
        FlowAudit {
            name: flow.name.clone(),
            deadline: flow.deadline,
            alone: flow.latency.max,
            attacked: same.map(|one| one.latency.max).max().unwrap_or(0),
            bound: flow.bound.clone(),
            unbounded: flow.unbounded.clone(),
        }
    })
    .collect()
}

/// The worst attack with an effect, of those that count; the first in a tie.
fn worst_of(tried: &[Tried], counts: impl Fn(&Tried) -> bool) -> Option<usize> {
    let mut worst: Option<usize> = None;
    let is_felt = |one: &Tried| !one.result.identical || !one.result.harm.is_empty();
    let felt = tried.iter().enumerate().filter(|(_, one)| is_felt(one));
    for (at, one) in felt.filter(|(_, one)| counts(one)) {
        if worst.is_none_or(|worst| one.badness() > tried[worst].badness()) {
            worst = Some(at);
        }
    }
    worst
}
