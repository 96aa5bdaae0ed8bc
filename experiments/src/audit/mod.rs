//! The exact non-interference check: each domain alone, and beside adversaries in place of all others.
//!
//! Why it exists: the machine is deterministic, so "nothing disturbs this domain" can be tested to the tick instead of believed. For each
//! domain, adversaries replace all other applications and keep their tiles, limits and gates. In the reference run they sleep; in every
//! other run they attack from the moment everything runs. First come the system's own programs, unchanged, and a library of attacks with
//! the fitting programs of the catalog; then a seeded random search that varies the worst attack so far. Programs other than the adversary
//! are held back until the attack begins, and have their own reference run, in which they never begin. What it deliberately does not know:
//! kernels. A verdict `bounded` relies on `bulkhead_analysis`, not on the search.

pub mod bare;
pub mod compare;
pub mod one_shot;
mod selection;
#[cfg(test)]
mod tests;
pub mod timeline;

use bulkhead_model::System;
use bulkhead_model::units::{Dimension, Time, parse};
use bulkhead_report::audit::result::{
    self as result, AttackResult, AuditResult, ChipResult, Clock, Difference, DomainResult, Ruling,
    SCHEMA, Verdict,
};
use bulkhead_report::format::span;
use bulkhead_runner::collect;
use bulkhead_runner::error::Error;
use bulkhead_runner::paradigm::BesideRun;
use bulkhead_runner::parallel;
use bulkhead_runner::place;
use bulkhead_runner::programs::Program;
use bulkhead_runner::progress::{Progress, Stage};
use bulkhead_runner::run;
use bulkhead_runner::tiled::attack::{self, Act, Attack, NEVER, Stream};
use bulkhead_runner::tiled::attacked::{Experiment, Place, Seen, Stand};
use bulkhead_runner::tiled::lonely::{self, Added};
use bulkhead_runner::tiled::quiet::{ADVERSARY, ADVERSARY_WITH_CARD};
use bulkhead_runner::tiled::{admission, attacked, catalogue};
use compare::Facts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Attacks that are drawn before their results are examined. Fixed, so that the search does not depend on how many run at a time.
const GENERATION: u32 = 4;

/// The check to make.
#[derive(Clone, Debug)]
pub struct Options {
    /// A description, or a name in the catalog.
    pub system: PathBuf,
    /// Changes of the description.
    pub overrides: Vec<String>,
    /// Check this variant instead of the system without its variants' changes.
    pub variant: Option<String>,
    /// Only these domains; all if empty.
    pub domains: Vec<String>,
    /// Only attacks whose names contain one of these texts, and no random ones; all if empty.
    pub attacks: Vec<String>,
    /// Random attacks on each domain, after the library.
    pub searches: u32,
    /// Seed of the search.
    pub seed: u64,
    /// Simulated time to compare.
    pub time: Time,
}

impl Options {
    /// The usual options for a system.
    pub fn new(system: impl Into<PathBuf>) -> Self {
        Self {
            system: system.into(),
            overrides: Vec::new(),
            variant: None,
            domains: Vec::new(),
            attacks: Vec::new(),
            searches: 8,
            seed: 1,
            // Ten milliseconds, in the unit of the model.
            time: Time(10_000_000_000),
        }
    }
}

/// A time with its unit, as users write it.
///
/// # Errors
/// What is wrong with it.
pub fn time(text: &str) -> Result<Time, Error> {
    let value = parse(text, Dimension::Time);
    let value = value.map_err(|error| {
        Error::input(
            format!("--time {text}: {error}"),
            "write a time such as 10ms",
        )
    })?;
    match value {
        0 => Err(Error::input(
            "--time 0: nothing would be compared",
            "write a time such as 10ms",
        )),
        value => Ok(Time(value)),
    }
}

/// A finished check.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The content of `audit.json`.
    pub result: AuditResult,
}

impl Finished {
    /// Exit code of the command.
    pub fn code(&self) -> u8 {
        self.result.code()
    }

    /// Writes `audit.html` and `audit.json` into `folder`. Returns their paths.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let book = place::pages(folder)?;
        let json = serde_json::to_string_pretty(&self.result)
            .map_err(|error| Error::Report(bulkhead_report::Error::new(error)))?;
        let files = [
            (
                "audit.html",
                bulkhead_report::audit::page::page(&self.result, &book),
            ),
            ("audit.json", json),
        ];
        let mut written = Vec::new();
        for (name, contents) in files {
            let path = folder.join(name);
            place::replace(&path, contents.as_bytes())?;
            written.push(path);
        }
        Ok(written)
    }
}

/// The system to check, without variants.
fn choose(system: &System, variant: Option<&str>) -> Result<System, Error> {
    match variant {
        None => Ok(System {
            variants: Vec::new(),
            ..system.clone()
        }),
        Some(name) => {
            let all = run::variants(system, &[name.to_owned()])?;
            let found = all.into_iter().next().map(|(_, system)| system);
            found.ok_or_else(|| Error::Machine(format!("the variant {name} vanished")))
        }
    }
}

/// The domains to check: chip and index.
fn wanted(system: &System, names: &[String]) -> Result<Vec<(usize, usize)>, Error> {
    let mut all = Vec::new();
    for chip in chips(system) {
        let here = attacked::on_chip(system, chip);
        all.extend((0..here.domains.len()).map(|domain| (chip, domain)));
    }
    let name = |(chip, domain)| attacked::label(system, chip, domain);
    let known: Vec<String> = all.iter().map(|place| name(*place)).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        return Err(Error::input(
            format!("the system has no domain `{unknown}`"),
            format!("it has {}", known.join(", ")),
        ));
    }
    let used = |(chip, domain): (usize, usize)| {
        let mut apps = attacked::on_chip(system, chip).apps.iter();
        apps.any(|app| app.domain == domain)
    };
    Ok(all
        .into_iter()
        .zip(known)
        .filter(|(_, known)| names.is_empty() || names.contains(known))
        .map(|(place, _)| place)
        .filter(|place| used(*place))
        .collect())
}

/// Numbers of a system's chips: its own, and its peer's.
fn chips(system: &System) -> std::ops::RangeInclusive<usize> {
    0..=usize::from(system.peer.is_some())
}

/// Checks a system.
pub fn audit(options: &Options, progress: &dyn Progress) -> Result<Finished, Error> {
    let root = place::root()?;
    let (whole, library) = run::load(&options.system, &options.overrides, &root)?;
    let system = choose(&whole, options.variant.as_deref())?;
    if system.one_shot.is_some() {
        return one_shot::audit(options, (&whole, &system), &library, progress);
    }
    if system.bare.is_some() {
        return bare::audit(options, (&whole, &system), &library, progress);
    }
    if system.platform.kind != bulkhead_model::platform::PlatformKind::Tiled {
        return Err(Error::input(
            format!(
                "the platform {} has no data transfer units",
                system.platform.name
            ),
            "the audit needs the tiled OS, which needs a tiled platform",
        ));
    }
    admission::check(&system.name, &system)?;
    if let Some(peer) = &system.peer {
        admission::check(&peer.name, &peer.system)?;
    }
    let domains = wanted(&system, &options.domains)?;
    let what = "building the programs of the chip";
    progress.stage(Stage::Work { what });
    let with_card = chips(&system)
        .flat_map(|chip| &attacked::on_chip(&system, chip).apps)
        .any(|app| app.device);
    let adversaries = [ADVERSARY, ADVERSARY_WITH_CARD];
    let adversaries = adversaries.into_iter().take(1 + usize::from(with_card));
    let stands: Vec<Stand> = domains
        .iter()
        .map(|&(chip, domain)| Stand::new(&system, chip, domain))
        .collect();
    let [near, far] = besides(&whole, &system, &stands)?;
    let mut names: Vec<&str> = run::needed(&system)?;
    names.extend(adversaries);
    for stand in &stands {
        names.extend(catalogue::programs(&stand.can()).map(|name| -> &str { name }));
    }
    for run in near.iter().chain(&far) {
        names.extend(run::needed(&run.system)?);
    }
    let programs = library.build(names);
    progress.stage(Stage::Done { name: what });
    let mut programs = programs?;
    programs.extend(library.modules(&system)?);
    let per_second = system.platform.ticks_per_second();
    let window = |chip: usize| {
        let here = attacked::on_chip(&system, chip);
        collect::ticks(options.time, here.platform.ticks_per_second()).max(1)
    };
    let near = lonely::measure(&near, &programs, progress)?;
    let far = lonely::measure(&far, &programs, progress)?;
    let mut results = Vec::new();
    for stand in stands {
        let alone = if stand.chip == 0 { &near } else { &far };
        let checking = Checking {
            window: window(stand.chip),
            stand,
            programs: &programs,
            options,
            alone,
            progress,
        };
        results.push(checking.check(&system)?);
    }
    let run_options = run::Options {
        system: options.system.clone(),
        overrides: options.overrides.clone(),
        ..run::Options::default()
    };
    Ok(Finished {
        result: AuditResult {
            schema: SCHEMA,
            system: system.name.clone(),
            variant: options.variant.clone(),
            platform: system.platform.name.clone(),
            ticks_per_second: per_second,
            cycle_ticks: run::reference_cycle(&system),
            window: window(0),
            seed: options.seed,
            searches: options.drawn(),
            provenance: run::provenance(&whole, &run_options, &programs),
            chips: both_chips(&system, window),
            added: near.runs.into_iter().chain(far.runs).collect(),
            domains: results,
        },
    })
}

/// The runs in which flows inside the checked domains are alone, of each chip: those that `run` makes for the same bounds.
fn besides(
    whole: &System,
    system: &System,
    stands: &[Stand],
) -> Result<[Vec<BesideRun>; 2], Error> {
    let mut system = system.clone();
    let inside = |here: &mut System, chip: usize| {
        let apps = &here.apps;
        let checked = |app: usize| {
            let mut own = stands.iter().filter(|stand| stand.chip == chip);
            own.any(|stand| apps[app].domain == stand.domain)
        };
        here.flows
            .retain(|flow| checked(flow.from) && apps[flow.from].domain == apps[flow.to].domain);
    };
    inside(&mut system, 0);
    if let Some(peer) = &mut system.peer {
        inside(&mut peer.system, 1);
    }
    let chosen = [(system.name.clone(), system)];
    let all = run::variants(whole, &[])?;
    let mut far = run::far_besides(&chosen, &all)?;
    for run in &mut far {
        let chip = attacked::chip_name(whole, 1).unwrap_or_default();
        run.about = format!("chip {chip}: {}", run.about);
    }
    Ok([lonely::plan(&chosen, &all, true), far])
}

/// The chips of a system that has two.
fn both_chips(system: &System, window: impl Fn(usize) -> u64) -> Vec<ChipResult> {
    let result = |chip: usize| {
        let here = attacked::on_chip(system, chip);
        Some(ChipResult {
            name: attacked::chip_name(system, chip)?.to_owned(),
            platform: here.platform.name.clone(),
            clock: Clock {
                ticks_per_second: here.platform.ticks_per_second(),
                cycle_ticks: run::reference_cycle(here),
            },
            window: window(chip),
        })
    };
    chips(system).filter_map(result).collect()
}

/// A domain being checked.
struct Checking<'a> {
    stand: Stand,
    programs: &'a [Program],
    options: &'a Options,
    /// Measurements of the flows of its chip in runs of their own.
    alone: &'a Added,
    window: u64,
    progress: &'a dyn Progress,
}

/// The facts without an attack, and when the attack begins, in microseconds.
#[derive(Clone, Copy)]
struct Quiet<'a> {
    start: u32,
    seen: &'a Seen,
    facts: &'a Facts,
}

/// An attack that was tried.
struct Tried {
    attack: Attack,
    facts: Facts,
    result: AttackResult,
    /// When it began, in microseconds.
    start: u32,
    /// The facts without it, if its programs are not the adversary.
    quiet: Option<Facts>,
}

impl Tried {
    /// How bad it is: an attack that breaks something ranks first, then the greatest slowdown, then the longest waits.
    fn badness(&self) -> (bool, u64, u64) {
        let result = &self.result;
        (!result.harm.is_empty(), result.slowdown, result.waited)
    }
}

impl Checking<'_> {
    fn check(&self, system: &System) -> Result<DomainResult, Error> {
        let stand = &self.stand;
        let name = format!("domain {}", stand.label());
        let cards = stand.cards();
        let mut attacks = vec![catalogue::own(cards.len())];
        attacks.extend(attack::library(&cards));
        attacks.extend(catalogue::attacks(&stand.can()));
        let domain = stand.label();
        let only = self
            .options
            .choose(&domain, &mut attacks, |one| &one.name)?;
        let searches = self.options.drawn();
        let total = attacks.len() as u64 + u64::from(searches);
        let report = |done: u64| {
            self.progress.stage(Stage::Simulation {
                name: &name,
                microseconds: done,
                of: total,
            });
        };
        report(0);
        let started = attacked::start(stand, None, self.programs)?;
        let start = started.start;
        let microsecond = stand.system().platform.ticks_per_second() / 1_000_000;
        let from = u64::from(start) * microsecond;
        let without = self.experiment((start, NEVER), None, BTreeMap::new());
        let alone = started.execute(&Experiment {
            transactions: true,
            ..without
        })?;
        let reference = Facts::new(stand, &alone, from);
        let quiet = Quiet {
            start,
            seen: &alone,
            facts: &reference,
        };
        let mut tried: Vec<Tried> = Vec::new();
        if !cards.is_empty() {
            self.attempt(attacks, quiet, &mut tried)?;
            report(tried.len() as u64);
            let mut stream = Stream::new(&stand.label(), self.options.seed);
            let mut number = 0u32;
            while number < searches {
                let mut generation = Vec::new();
                while generation.len() < GENERATION as usize && number < searches {
                    number += 1;
                    let worst = worst_of(&tried, |_| true).map(|at| tried[at].attack.clone());
                    generation.push(match worst {
                        Some(worst) if number.is_multiple_of(2) => stream.mutate(
                            format!("search {number}, varied: {}", root_name(&worst.name)),
                            &worst,
                            &cards,
                        ),
                        _ => stream.attack(format!("search {number}"), &cards),
                    });
                }
                self.attempt(generation, quiet, &mut tried)?;
                report(tried.len() as u64);
            }
        }
        let difference = match worst_of(&tried, |_| true) {
            Some(at) => {
                let microseconds = u64::from(tried[at].start);
                let difference = self.explain(quiet, &tried[at])?;
                difference.map(|found| (microseconds * microsecond, found))
            }
            None => None,
        };
        self.progress.stage(Stage::Done { name: &name });
        Ok(self.conclude(system, from, quiet, tried, (difference, only)))
    }

    /// A run that is compared from `start` on, in which the attackers begin at `begin`.
    fn run(
        &self,
        (start, begin): (u32, u32),
        attack: Option<&Attack>,
        record: BTreeMap<u16, u64>,
    ) -> Result<Seen, Error> {
        attacked::execute(
            &self.experiment((start, begin), attack, record),
            self.programs,
        )
    }

    fn experiment<'b>(
        &'b self,
        (start, begin): (u32, u32),
        attack: Option<&'b Attack>,
        record: BTreeMap<u16, u64>,
    ) -> Experiment<'b> {
        let microsecond = self.stand.system().platform.ticks_per_second() / 1_000_000;
        Experiment {
            stand: &self.stand,
            acts: attack.map(|attack| attack.acts.as_slice()),
            begin,
            start,
            until: u64::from(start) * microsecond + self.window,
            transactions: false,
            record,
        }
    }

    /// Tries attacks, several at a time.
    fn attempt(
        &self,
        attacks: Vec<Attack>,
        quiet: Quiet<'_>,
        tried: &mut Vec<Tried>,
    ) -> Result<(), Error> {
        let results = parallel::in_parallel(&attacks, |attack| {
            if attack.waits() {
                return self.tried(attack, quiet);
            }
            match attacked::start(&self.stand, Some(&attack.acts), self.programs) {
                Ok(started) => {
                    let start = started.start;
                    let without = (start, NEVER);
                    let without = self.experiment(without, Some(attack), BTreeMap::new());
                    let seen = started.execute(&without)?;
                    let facts = self.facts(&seen, start);
                    let own = Quiet {
                        start,
                        seen: &seen,
                        facts: &facts,
                    };
                    let mut tried = self.tried(attack, own)?;
                    tried.quiet = Some(facts);
                    Ok(tried)
                }
                Err(error) => {
                    let mut tried = self.tried(attack, quiet)?;
                    let stuck = format!("the system did not start: {error}");
                    tried.result.harm.push(stuck);
                    Ok(tried)
                }
            }
        });
        for result in results {
            tried.push(result?);
        }
        Ok(())
    }

    fn facts(&self, seen: &Seen, start: u32) -> Facts {
        let microsecond = self.stand.system().platform.ticks_per_second() / 1_000_000;
        Facts::new(&self.stand, seen, u64::from(start) * microsecond)
    }

    /// Tries one attack, which starts like the run without it.
    fn tried(&self, attack: &Attack, quiet: Quiet<'_>) -> Result<Tried, Error> {
        let start = quiet.start;
        let seen = self.run((start, start), Some(attack), BTreeMap::new())?;
        let facts = self.facts(&seen, start);
        let (slowdown, of, took) = facts.slowdown(quiet.facts);
        let describe = |(place, act): (&Place, &Act)| {
            let own = self.stand.own_program(*place);
            format!("{}: {}", self.stand.name(*place), act.describe(own))
        };
        let attackers = self.stand.attackers.iter();
        let result = AttackResult {
            name: attack.name.clone(),
            plans: attackers.zip(&attack.acts).map(describe).collect(),
            arguments: attack.acts.iter().map(|act| act.text(start)).collect(),
            identical: compare::differing(quiet.seen, &seen).is_empty(),
            slowdown,
            of,
            took,
            waited: facts.waited,
            harm: facts.harm(quiet.facts),
            first: None,
            refused: 0,
        };
        Ok(Tried {
            attack: attack.clone(),
            facts,
            result,
            start,
            quiet: None,
        })
    }

    /// Runs again to find the first difference.
    fn explain(&self, quiet: Quiet<'_>, tried: &Tried) -> Result<Option<Difference>, Error> {
        let (start, attack) = (tried.start, Some(&tried.attack));
        let without = match tried.attack.waits() {
            true => None,
            false => attack,
        };
        let own;
        let alone = match &tried.quiet {
            None => quiet.seen,
            Some(_) => {
                own = self.run((start, NEVER), without, BTreeMap::new())?;
                &own
            }
        };
        let attacked = self.run((start, start), attack, BTreeMap::new())?;
        let strides = compare::differing(alone, &attacked);
        let alone = self.run((start, NEVER), without, strides.clone())?;
        let attacked = self.run((start, start), attack, strides.clone())?;
        let name = &tried.attack.name;
        Ok(compare::first_difference(
            name,
            (&alone, &attacked),
            &strides,
        ))
    }

    fn conclude(
        &self,
        system: &System,
        from: u64,
        quiet: Quiet<'_>,
        tried: Vec<Tried>,
        (difference, only): (Option<(u64, Difference)>, Option<String>),
    ) -> DomainResult {
        let (stand, reference) = (&self.stand, quiet.facts);
        let worst = worst_of(&tried, |_| true);
        let domain = stand.domain();
        let accounted = worst_of(&tried, |one| !one.facts.account.is_empty());
        let account = accounted.map(|at| tried[at].facts.account.clone());
        let floods = tried.iter().filter(|one| one.attack.sends_frames());
        let late = floods.clone().filter(|one| one.result.identical).count();
        let (late, floods) = (late, floods.count());
        let (mut facts, mut attacks, mut quiets) = (Vec::new(), Vec::new(), Vec::new());
        for one in tried {
            facts.push(one.facts);
            attacks.push(one.result);
            quiets.push(one.quiet);
        }
        let requests = compare::requests(stand, reference, &facts);
        let flows = compare::flows(stand, (quiet.seen, &self.alone.alone), reference, &facts);
        let openings = compare::openings(stand);
        let needs = compare::needs(stand).into_iter();
        let needs: BTreeSet<&str> = needs.map(|(_, server)| server).collect();
        let needs: Vec<String> = needs.into_iter().map(str::to_owned).collect();
        let gone = result::gone(reference.gone.as_deref(), &needs);
        let gone = gone.or_else(|| reference.unsure.clone()).or_else(|| {
            let mut all = attacks.iter().zip(&facts);
            all.find_map(|(attack, facts)| {
                Some(format!(
                    "beside {}: {}",
                    attack.name,
                    facts.unsure.as_ref()?
                ))
            })
        });
        let mut reasons = Vec::new();
        for attack in &attacks {
            let harm = attack.harm.iter();
            reasons.extend(harm.map(|harm| format!("beside {}: {harm}", attack.name)));
        }
        for request in &requests {
            if let Some(bound) = &request.bound
                && request.attacked > bound.ticks
            {
                reasons.push(format!(
                    "{} of {}: {} ticks, above its bound of {}",
                    request.kind, request.application, request.attacked, bound.ticks
                ));
            }
        }
        for flow in &flows {
            if let Some(bound) = &flow.bound
                && flow.attacked > bound.ticks
            {
                reasons.push(format!(
                    "flow {}: {} ticks, above its bound of {}",
                    flow.name, flow.attacked, bound.ticks
                ));
            }
        }
        let broken = !reasons.is_empty();
        let identical = attacks.iter().all(|attack| attack.identical);
        if !identical {
            for request in &requests {
                if let Some(why) = &request.unbounded {
                    reasons.push(format!(
                        "{} of {} has no bound: {why}",
                        request.kind, request.application
                    ));
                }
            }
            for flow in &flows {
                match (&flow.bound, flow.deadline) {
                    (None, _) => reasons.push(format!(
                        "flow {} has no bound: {}",
                        flow.name,
                        flow.unbounded.as_deref().unwrap_or_default()
                    )),
                    (Some(bound), Some(deadline)) if bound.ticks > deadline => {
                        let ticks = stand.system().platform.ticks_per_second() as f64 / 1e6;
                        reasons.push(format!(
                            "flow {}: the bound of {} does not keep the deadline of {}",
                            flow.name,
                            span(bound.ticks as f64 / ticks),
                            span(deadline as f64 / ticks)
                        ));
                    }
                    _ => {}
                }
            }
            let felt = attacks
                .iter()
                .zip(facts.iter().zip(&quiets))
                .filter(|(attack, _)| !attack.identical);
            let felt = felt.map(|(attack, (facts, quiet))| {
                let quiet = quiet.as_ref().unwrap_or(reference);
                (attack.name.as_str(), facts, quiet)
            });
            reasons.extend(compare::shortfalls(felt));
            reasons.extend(openings.iter().cloned());
        }
        let compared = match (broken, identical, reasons.is_empty()) {
            (true, ..) => Verdict::Broken,
            (false, true, _) => Verdict::Identical,
            (false, false, true) => Verdict::Bounded,
            (false, false, false) => Verdict::Unbounded,
        };
        let owed = chips(system).all(|chip| {
            let others = attacked::on_chip(system, chip).domains.iter().enumerate();
            others
                .filter(|(index, _)| (chip, *index) != (stand.chip, stand.domain))
                .all(|(_, other)| other.criticality >= domain.criticality)
        });
        let mut notes = Vec::new();
        if stand.attackers.is_empty() {
            notes.push("There is no other domain: nothing was tried.".to_owned());
        }
        notes.extend(reference.late().map(|late| {
            format!(
                "While all others slept, {late}. The check judges only what attacks add; `run` judges deadlines."
            )
        }));
        // An arriving frame is an event of the tile.
        if late > 0 && stand.is_reached_by_frames() {
            notes.push(format!(
                "In {late} of {floods} attacks over a cable no frame arrived in the time that was compared: who sends \
                 them may need longer to start; compare longer (--time)."
            ));
        }
        if identical {
            notes.extend(openings);
        }
        if let Some((from, difference)) = &difference
            && difference
                .alone_at
                .into_iter()
                .chain(difference.attacked_at)
                .min()
                < Some(*from)
        {
            notes.push(
                "The first difference lies before the attack: the start of the system depends on what the others \
                 will do later."
                    .to_owned(),
            );
        }
        let attackers = self.attackers();
        let attacked = !attacks.is_empty() && !attackers.is_empty();
        DomainResult {
            name: stand.label(),
            chip: stand.chip_name().map(str::to_owned),
            criticality: domain.criticality,
            applications: self.names(|app| stand.is_own(app)),
            tiles: stand.tiles(),
            attackers,
            start: from,
            ruling: Ruling::of(compared, owed, attacked, gone.or(only)),
            owed,
            stopped: reference.stopped.clone(),
            gone: reference.gone.clone(),
            needs,
            reasons,
            notes,
            attacks,
            worst,
            difference: difference.map(|(_, found)| found),
            accounted,
            account: account.unwrap_or_default(),
            waits_alone: reference.waited_self,
            flows,
            requests,
        }
    }

    fn names(&self, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let apps = self.stand.system().apps.iter().enumerate();
        apps.filter(|(index, _)| wanted(*index))
            .map(|(_, app)| app.name.clone())
            .collect()
    }

    /// Applications outside the domain: on its own chip, then on the other one.
    fn attackers(&self) -> Vec<String> {
        let mut all = self.names(|app| !self.stand.is_own(app));
        let others = self.stand.attackers.iter();
        let others = others.filter(|place| place.chip != self.stand.chip);
        all.extend(others.map(|place| self.stand.name(*place)));
        all
    }
}

/// The attack from which a varied one is derived.
fn root_name(name: &str) -> &str {
    name.rsplit(": ").next().unwrap_or(name)
}

/// The worst attack with an effect, of those that count; the first in a tie.
fn worst_of(tried: &[Tried], counts: impl Fn(&Tried) -> bool) -> Option<usize> {
    let mut worst: Option<usize> = None;
    let felt = tried.iter().enumerate();
    for (at, one) in felt.filter(|(_, one)| !one.result.identical && counts(one)) {
        if worst.is_none_or(|worst| one.badness() > tried[worst].badness()) {
            worst = Some(at);
        }
    }
    worst
}
