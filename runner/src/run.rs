//! The main job: runs a system with all its variants, from the description to the files of the result.
//!
//! What it deliberately does not know: how a step is done (each has its own module), and what kind of system it runs (that is behind
//! [`crate::paradigm`]).

use crate::chips::{disown, images};
use crate::collect;
use crate::convert::accepted;
use crate::counters;
use crate::crash;
use crate::ended::{self, Outside, trapped, unexplained};
use crate::error::Error;
pub use crate::finished::Finished;
use crate::image::BootImage;
use crate::measure::MarkerEvent;
use crate::names::Names;
use crate::observed::{Counts, Observed, console};
use crate::paradigm::{BesideRun, Paradigm, Ran, Said};
use crate::parallel::in_parallel;
use crate::place;
use crate::places::{place_of, program_of};
use crate::programs::{Library, Program};
use crate::progress::{Progress, Stage};
use crate::session::{self, Beside, Plan, Strike, Window};
use crate::unseen;
use crate::warnings;
use crate::watch::{Log, Watcher};
use bulkhead_model::platform::PlatformKind;
use bulkhead_model::system::Peer;
use bulkhead_model::{LoadOptions, System, canonical, load_system, load_system_text};
use bulkhead_report::placement::Placement;
use bulkhead_report::result::{
    AddedRun, End, Incident, IncidentKind, Input, Provenance, RunResult, SCHEMA, VariantResult,
};
use bulkhead_report::verdict::{Promise, Verdict};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The run to make.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A description, or a name in the catalog.
    pub system: PathBuf,
    /// The description itself; `system` is then only its name.
    pub text: Option<String>,
    /// Changes of the description.
    pub overrides: Vec<String>,
    /// Only these variants; all if empty.
    pub variants: Vec<String>,
    /// Write traces.
    pub traces: bool,
    /// The parts of the run that traces show.
    pub window: Window,
}

/// One run to be made.
struct Job<'a> {
    name: String,
    system: System,
    image: BootImage,
    peer_image: Option<BootImage>,
    plan: Plan,
    watcher: Option<Watcher>,
    strike: Option<Strike<'a>>,
}

/// Loads and validates a description. Programs are checked against the checkout.
pub fn load(system: &Path, overrides: &[String], root: &Path) -> Result<(System, Library), Error> {
    let base = if system.extension().is_some_and(|ending| ending == "xml") {
        system.parent().unwrap_or(Path::new("")).to_path_buf()
    } else {
        PathBuf::new()
    };
    let base = std::env::current_dir()
        .map_err(|error| Error::file(Path::new("."), error))?
        .join(base);
    let library = Library::new(root, &base)?;
    let options = LoadOptions {
        overrides: overrides.to_vec(),
        programs: Some(&library),
        ..LoadOptions::default()
    };
    let system = load_system(system, &options)?;
    fits(&system, &library)?;
    accepted(&system)?;
    Ok((system, library))
}

/// The same of a text.
fn load_text(
    name: &Path,
    text: &str,
    overrides: &[String],
    root: &Path,
) -> Result<(System, Library), Error> {
    let folder = std::env::current_dir().map_err(|error| Error::file(Path::new("."), error))?;
    let library = Library::new(root, &folder)?;
    let options = LoadOptions {
        overrides: overrides.to_vec(),
        programs: Some(&library),
        ..LoadOptions::default()
    };
    let system = load_system_text(&name.display().to_string(), text, &options)?;
    fits(&system, &library)?;
    accepted(&system)?;
    Ok((system, library))
}

/// A system that no paradigm runs is refused when it is run.
fn fits(system: &System, library: &Library) -> Result<(), Error> {
    let runs = system.runs().into_iter();
    let mut all = runs.filter_map(|run| Some((run, paradigm_of(run).ok()?)));
    all.try_for_each(|(run, paradigm)| paradigm.fits(run, library))
}

/// The variants of a system; the system itself if it has none.
pub fn variants(system: &System, wanted: &[String]) -> Result<Vec<(String, System)>, Error> {
    let all: Vec<(String, System)> = if system.variants.is_empty() {
        vec![(system.name.clone(), system.clone())]
    } else {
        system
            .variants
            .iter()
            .map(|variant| {
                (
                    variant
                        .variant
                        .clone()
                        .unwrap_or_else(|| variant.name.clone()),
                    variant.clone(),
                )
            })
            .collect()
    };
    if let Some(unknown) = wanted
        .iter()
        .find(|name| !all.iter().any(|(known, _)| known == *name))
    {
        let known: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        return Err(Error::input(
            format!("the system has no variant `{unknown}`"),
            format!("it has {}", known.join(", ")),
        ));
    }
    Ok(all
        .into_iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.contains(name))
        .collect())
}

/// Programs that a system and its peer need.
///
/// # Errors
/// If no paradigm can run the system.
pub fn needed(system: &System) -> Result<Vec<&str>, Error> {
    let mut names = paradigm_of(system)?.programs(system);
    if let Some(peer) = &system.peer {
        names.extend(needed(&peer.system)?);
    }
    Ok(names)
}

/// The paradigm of a system.
///
/// # Errors
/// If no paradigm boots systems on this platform.
pub fn paradigm_of(system: &System) -> Result<&'static dyn Paradigm, Error> {
    match system.platform.kind {
        _ if system.one_shot.is_some() => Ok(&crate::oneshot::OneShot),
        _ if system.bare.is_some() => Ok(&crate::bare::Bare),
        PlatformKind::Tiled => Ok(&crate::tiled::Tiled),
        PlatformKind::Bare | PlatformKind::Mesh => Err(Error::input(
            format!(
                "the platform {} has no data transfer units",
                system.platform.name
            ),
            "the tiled OS needs a tiled platform; write paradigm=\"bare\" for programs without a kernel",
        )),
    }
}

/// What an experiment examines besides the result. None of it changes a tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// When harts stop and messages arrive.
    pub harts: bool,
    /// Transactions in slices of this many nanoseconds, for the variants with these names.
    pub slices: Option<(u64, &'a [&'a str])>,
    /// How often two chips synchronise within the delay of their shortest cable; 0 means once, which is enough.
    pub chips: u64,
}

/// The observations of a variant.
pub struct Seen {
    /// The variant.
    pub system: System,
    /// The names behind the numbers.
    pub names: Names,
    /// Every marker that was kept.
    pub markers: Vec<MarkerEvent>,
    /// When harts stopped and messages arrived.
    pub log: Option<Log>,
    /// Start of each slice, and the transactions that ended in it.
    pub slices: Vec<(u64, Counts)>,
    /// When the kernel began each piece of its work, and which.
    pub work: Vec<(u64, u64)>,
}

/// Runs a system.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Finished, Error> {
    looked_at(options, Look::default(), progress).map(|(finished, _)| finished)
}

/// Runs a system and watches its harts. Returns a log for each variant.
pub fn watched(options: &Options, progress: &dyn Progress) -> Result<(Finished, Vec<Log>), Error> {
    let look = Look {
        harts: true,
        ..Look::default()
    };
    let (finished, seen) = looked_at(options, look, progress)?;
    Ok((finished, seen.into_iter().filter_map(|s| s.log).collect()))
}

/// Runs a system with an intervention on the machine in every variant, without the additional runs for bounds.
pub fn struck(
    options: &Options,
    strike: Strike<'_>,
    progress: &dyn Progress,
) -> Result<Finished, Error> {
    whole(options, Look::default(), Some(strike), progress).map(|(finished, _)| finished)
}

/// Runs a system and examines more of it. Returns what was seen of each variant.
pub fn looked_at(
    options: &Options,
    look: Look<'_>,
    progress: &dyn Progress,
) -> Result<(Finished, Vec<Seen>), Error> {
    whole(options, look, None, progress)
}

fn whole(
    options: &Options,
    look: Look<'_>,
    strike: Option<Strike<'_>>,
    progress: &dyn Progress,
) -> Result<(Finished, Vec<Seen>), Error> {
    let root = place::root()?;
    let (system, library) = match &options.text {
        Some(text) => load_text(&options.system, text, &options.overrides, &root)?,
        None => load(&options.system, &options.overrides, &root)?,
    };
    let variants = variants(&system, &options.variants)?;
    let subject = (&system, &library);
    of_variants(subject, variants, options, (look, strike), progress)
}

/// Runs other variants of a loaded system than those of its description. Returns what was seen of each.
pub fn chosen(
    subject: (&System, &Library),
    variants: Vec<(String, System)>,
    options: &Options,
    progress: &dyn Progress,
) -> Result<(Finished, Vec<Seen>), Error> {
    of_variants(
        subject,
        variants,
        options,
        (Look::default(), None),
        progress,
    )
}

fn of_variants(
    (system, library): (&System, &Library),
    variants: Vec<(String, System)>,
    options: &Options,
    (look, strike): (Look<'_>, Option<Strike<'_>>),
    progress: &dyn Progress,
) -> Result<(Finished, Vec<Seen>), Error> {
    let paradigm = paradigm_of(system)?;
    for (name, variant) in &variants {
        options.window.check(variant)?;
        paradigm.admit(name, variant)?;
    }
    // A bound that is the subject itself has its own runs.
    let (mut besides, mut far) = (Vec::new(), Vec::new());
    if look.slices.is_none() {
        let all = self::variants(system, &[])?;
        besides = paradigm.besides(&variants, &all, true);
        far = far_besides(&variants, &all)?;
    }
    let own = besides.len();
    besides.append(&mut far);
    let what = "building the programs of the chip";
    progress.stage(Stage::Work { what });
    let added = besides.iter().map(|run| &run.system);
    let systems = variants.iter().map(|(_, system)| system).chain(added);
    let systems: Vec<&System> = systems.collect();
    let needed: Vec<Vec<&str>> = systems
        .iter()
        .map(|one| needed(one))
        .collect::<Result<_, _>>()?;
    let programs = library.build_warned(needed.into_iter().flatten());
    let made = paradigm.build(library, &systems);
    progress.stage(Stage::Done { name: what });
    let (mut programs, mut warnings) = programs?;
    warnings.extend(warnings::unread(&systems, &programs, |name| {
        library.sources(name)
    }));
    for text in &warnings {
        progress.stage(Stage::Warning { text });
    }
    programs.extend(made?);
    programs.extend(library.modules(system)?);
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for (name, variant) in variants {
        let mut job = job(paradigm, name, variant, &programs, options.traces)?;
        job.strike = strike;
        job.watcher = look.harts.then(Watcher::default);
        job.plan.looks = look.chips.max(1);
        if let Some((nanoseconds, wanted)) = look.slices
            && wanted.contains(&job.name.as_str())
        {
            let per_second = u128::from(job.system.platform.ticks_per_second());
            let length = u128::from(nanoseconds) * per_second / 1_000_000_000;
            job.plan.slice = Some(u64::try_from(length).unwrap_or(u64::MAX).max(1));
        }
        jobs.push(job);
    }
    let wanted = jobs.len();
    for run in &besides {
        let name = format!("{} alone", run.flow);
        let mut job = job(paradigm, name, run.system.clone(), &programs, false)?;
        job.plan.transactions = true;
        jobs.push(job);
    }
    let mut observed = in_parallel(&jobs, |job| {
        let beside = Beside {
            watcher: job.watcher.clone(),
            strike: job.strike,
            window: options.window.clone(),
        };
        session::execute_beside(
            paradigm,
            &job.system,
            (&job.image, job.peer_image.as_ref()),
            job.plan,
            &job.name,
            progress,
            beside,
        )
    })
    .into_iter()
    .collect::<Result<Vec<Observed>, Error>>()?;
    for (job, seen) in jobs.iter().zip(&mut observed) {
        let peer = job.system.peer.as_ref();
        let peers = peer.map(|peer| paradigm_of(&peer.system)).transpose()?;
        disown(paradigm, peers, &job.system, &programs, seen);
    }
    let besides: Vec<(BesideRun, Job<'_>, Observed)> = besides
        .into_iter()
        .zip(jobs.split_off(wanted))
        .zip(observed.split_off(wanted))
        .map(|((run, job), seen)| (run, job, seen))
        .collect();
    let mut seen = Vec::new();
    for (job, observed) in jobs.iter().zip(&observed) {
        seen.push(Seen {
            system: job.system.clone(),
            names: paradigm.names(&job.system, &observed.markers),
            markers: observed.markers.clone(),
            log: job.watcher.as_ref().map(Watcher::take),
            slices: observed.slices.clone(),
            work: paradigm.work(&job.system, &observed.markers),
        });
    }
    let finished = finish(
        paradigm,
        system,
        options,
        &programs,
        &jobs,
        observed,
        (besides, own),
    )?;
    Ok((finished, seen))
}

fn job(
    paradigm: &dyn Paradigm,
    name: String,
    mut system: System,
    programs: &[Program],
    traces: bool,
) -> Result<Job<'static>, Error> {
    paradigm.learn(&mut system, programs)?;
    let (image, peer_image) = images(paradigm, &system, programs)?;
    let plan = Plan {
        ticks: collect::ticks(system.duration, system.platform.ticks_per_second()),
        trace: traces,
        slice: None,
        transactions: paradigm.serves_bounds(&system),
        looks: 1,
    };
    Ok(Job {
        name,
        system,
        image,
        peer_image,
        plan,
        watcher: None,
        strike: None,
    })
}

fn finish(
    paradigm: &dyn Paradigm,
    system: &System,
    options: &Options,
    programs: &[Program],
    jobs: &[Job<'_>],
    observed: Vec<Observed>,
    (besides, own_besides): (Vec<(BesideRun, Job<'_>, Observed)>, usize),
) -> Result<Finished, Error> {
    let mut variants = Vec::new();
    let mut names = Vec::new();
    for (job, seen) in jobs.iter().zip(&observed) {
        let own = paradigm.names(&job.system, &seen.markers);
        let mut variant = read(paradigm, &job.name, &job.system, &own, programs, seen);
        variant
            .incidents
            .extend(peer_incidents(&job.system, programs, seen, &variant.end)?);
        variants.push(variant);
        names.push(own);
    }
    let beside_names: Vec<Names> = besides
        .iter()
        .map(|(_, job, seen)| paradigm.names(&job.system, &seen.markers))
        .collect();
    let runs: Vec<Ran<'_>> = jobs
        .iter()
        .zip(&observed)
        .zip(&names)
        .map(|((job, seen), names)| Ran {
            system: &job.system,
            names,
            seen,
        })
        .collect();
    let besides: Vec<(BesideRun, Ran<'_>)> = besides
        .iter()
        .zip(&beside_names)
        .map(|((run, job, seen), names)| {
            let ran = Ran {
                system: &job.system,
                names,
                seen,
            };
            (run.clone(), ran)
        })
        .collect();
    let (besides, far) = besides.split_at(own_besides);
    let added = paradigm.bound(&runs, besides, &mut variants);
    let mut peers = Vec::new();
    let mut far_added = Vec::new();
    for (job, seen) in jobs.iter().zip(&observed) {
        if let (Some(peer), Some(other)) = (&job.system.peer, &seen.other) {
            let variant;
            (variant, far_added) =
                peer_variant(&job.name, &peer.system, programs, &other.observed, far)?;
            peers.push((peer, variant));
        }
    }
    let cycle = reference_cycle(system);
    let mut promises = Vec::new();
    for (job, variant) in jobs.iter().zip(&variants) {
        let stop = stop_of(variant);
        let own = paradigm.promises(&job.system, cycle, variant);
        promises.extend(own.into_iter().map(|promise| unless(promise, &stop)));
    }
    let stops: Vec<Option<String>> = variants.iter().map(stop_of).collect();
    let (mut consoles, mut traces) = (Vec::new(), Vec::new());
    let missing = observed.iter().map(|seen| seen.missing).collect();
    for (job, seen) in jobs.iter().zip(observed) {
        consoles.push(console(&job.system, seen.console, seen.other.as_ref()));
        traces.push(seen.trace);
    }
    Ok(Finished {
        result: RunResult {
            schema: SCHEMA,
            system: system.name.clone(),
            platform: system.platform.name.clone(),
            ticks_per_second: system.platform.ticks_per_second(),
            cycle_ticks: cycle,
            provenance: provenance(system, options, programs),
            placement: Placement::of(system),
            variants,
            added,
            verdict: Verdict::of(promises),
            peer: peer_result(options, programs, (peers, far_added), &stops)?.map(Box::new),
        },
        consoles,
        traces,
        missing,
    })
}

/// Why nothing that was seen in a variant counts: the kernel of one of its chips stopped.
fn stop_of(variant: &VariantResult) -> Option<String> {
    let mut all = variant.incidents.iter();
    let stop = all.find(|one| one.kind == IncidentKind::KernelStopped)?;
    Some(format!(
        "the run ended with the {}: {}",
        stop.application, stop.what
    ))
}

fn unless(promise: Promise, stop: &Option<String>) -> Promise {
    match stop {
        Some(why) => promise.unless_held(why),
        None => promise,
    }
}

/// Ticks per cycle of the first application's hart.
pub fn reference_cycle(system: &System) -> u64 {
    let tile = system
        .apps
        .first()
        .map_or(system.kernel_tile, |app| app.tile);
    let hertz = system
        .platform
        .tile(tile)
        .map_or(1, |tile| tile.pipeline.clock.frequency.0.max(1));
    system.platform.ticks_per_second() / hertz
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The inputs of a result: description, programs, changes.
pub fn provenance(system: &System, options: &Options, programs: &[Program]) -> Provenance {
    let mut inputs = vec![Input {
        name: format!("{} (description, with its platform)", system.name),
        sha256: sha256(canonical::complete(system).as_bytes()),
    }];
    inputs.extend(programs.iter().map(|program| Input {
        name: program.name.clone(),
        sha256: sha256(&program.elf),
    }));
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        inputs,
        overrides: options.overrides.clone(),
    }
}

/// Extracts what happened on a chip.
fn read(
    paradigm: &dyn Paradigm,
    name: &str,
    system: &System,
    names: &Names,
    programs: &[Program],
    seen: &Observed,
) -> VariantResult {
    let outside = Outside::of(paradigm, system, programs, seen);
    let end = ended::end(outside.as_ref(), seen.outcome);
    let until = ended::until(system, &end, seen.ticks);
    let said = Said::of(names, seen, &end, until);
    let mut incidents = incidents(paradigm, system, programs, &said, seen);
    incidents.extend(trapped(names, seen, seen.outcome, &end, outside.as_ref()));
    incidents.extend(unexplained(system, &end, &incidents));
    incidents.extend(seen.forged.iter().cloned());
    incidents.extend(unseen::incidents(names, &seen.markers, &seen.unkept));
    incidents.extend(seen.unread.map(unseen::unread));
    let mut lives = paradigm.lives(system, seen);
    unseen::shorten(&mut lives, &incidents);
    VariantResult {
        name: name.to_owned(),
        ticks: seen.ticks,
        instructions: seen
            .statistics
            .harts
            .iter()
            .map(|hart| hart.counters.instructions)
            .sum(),
        digest: seen.digest.clone(),
        flows: collect::flows(system, names, &seen.markers, &lives),
        spans: collect::spans(system, names, &seen.markers, seen.ticks),
        tasks: collect::tasks(system, names, &seen.markers, &lives),
        requests: collect::requests(system, names, &seen.ledger),
        interference: collect::interference(names, &seen.ledger),
        tiles: counters::of_tiles(system, names, seen),
        incidents,
        checks: collect::checks(names, &seen.markers),
        links: collect::links(names, &seen.statistics, &seen.carried),
        quotas: paradigm.quotas(system, &seen.console),
        clocks: Vec::new(),
        end,
    }
}

/// The incidents, with places in the sources and backtraces.
fn incidents(
    paradigm: &dyn Paradigm,
    system: &System,
    programs: &[Program],
    said: &Said<'_>,
    seen: &Observed,
) -> Vec<Incident> {
    let locate = |application: &str, pc: u64| {
        let program = program_of(paradigm, system, programs, application)?;
        let by = paradigm.moved(system, application, program);
        let place = place_of(program, pc.wrapping_sub(by));
        let called = crash::called(program, said.names, seen, (application, pc));
        // The place may be in the program's own sources, within functions of others.
        Some(
            match called.filter(|own| by == 0 && !place.starts_with(own)) {
                Some(own) => format!("{place}, called in {own}"),
                None => place,
            },
        )
    };
    let mut all = paradigm.incidents(system, said, &locate);
    for incident in &mut all {
        if let Some(program) = program_of(paradigm, system, programs, &incident.application) {
            crash::explain(program, incident, seen);
        }
    }
    all
}

/// Runs that bounds of flows on the second chip need: each of that chip alone. `chosen` and `all`: variants of the whole.
///
/// # Errors
/// If no paradigm runs that chip.
pub fn far_besides(
    chosen: &[(String, System)],
    all: &[(String, System)],
) -> Result<Vec<BesideRun>, Error> {
    let far = |whole: &[(String, System)]| -> Vec<(String, System)> {
        let peers = whole.iter();
        let peers = peers.filter_map(|(name, one)| Some((name.clone(), one.peer.as_ref()?)));
        peers
            .map(|(name, peer)| (name, (*peer.system).clone()))
            .collect()
    };
    let chosen = far(chosen);
    match chosen.first() {
        Some((_, system)) => Ok(paradigm_of(system)?.besides(&chosen, &far(all), false)),
        None => Ok(Vec::new()),
    }
}

/// The results of the peer in a variant. Its incidents are listed with the first chip.
fn peer_variant(
    name: &str,
    system: &System,
    programs: &[Program],
    seen: &Observed,
    besides: &[(BesideRun, Ran<'_>)],
) -> Result<(VariantResult, Vec<AddedRun>), Error> {
    let paradigm = paradigm_of(system)?;
    let names = paradigm.names(system, &seen.markers);
    let mut variant = read(paradigm, name, system, &names, programs, seen);
    variant.incidents.clear();
    let ran = Ran {
        system,
        names: &names,
        seen,
    };
    let added = paradigm.bound(&[ran], besides, std::slice::from_mut(&mut variant));
    Ok((variant, added))
}

/// The results of the peer's chip.
fn peer_result(
    options: &Options,
    programs: &[Program],
    (peers, added): (Vec<(&Peer, VariantResult)>, Vec<AddedRun>),
    stops: &[Option<String>],
) -> Result<Option<RunResult>, Error> {
    let Some((first, _)) = peers.first() else {
        return Ok(None);
    };
    let (name, system) = (first.name.clone(), &first.system);
    let cycle = reference_cycle(system);
    let mut promises = Vec::new();
    for ((peer, variant), stop) in peers.iter().zip(stops) {
        let own = paradigm_of(&peer.system)?.promises(&peer.system, cycle, variant);
        promises.extend(own.into_iter().map(|promise| unless(promise, stop)));
    }
    Ok(Some(RunResult {
        schema: SCHEMA,
        system: name,
        platform: system.platform.name.clone(),
        ticks_per_second: system.platform.ticks_per_second(),
        cycle_ticks: cycle,
        provenance: provenance(system, options, programs),
        placement: Placement::of(system),
        variants: peers.into_iter().map(|(_, variant)| variant).collect(),
        added,
        verdict: Verdict::of(promises),
        peer: None,
    }))
}

/// The incidents on the peer's chip. `end`: why the run ended, which concerns the first chip.
fn peer_incidents(
    system: &System,
    programs: &[Program],
    seen: &Observed,
    end: &End,
) -> Result<Vec<Incident>, Error> {
    let (Some(peer), Some(other)) = (&system.peer, &seen.other) else {
        return Ok(Vec::new());
    };
    let paradigm = paradigm_of(&peer.system)?;
    let names = paradigm.names(&peer.system, &other.observed.markers);
    let outside = Outside::of(paradigm, &peer.system, programs, &other.observed);
    let outside = outside.filter(|one| one.application.is_some());
    let own = other.outcome;
    let own = own.map(|outcome| ended::end(outside.as_ref(), outcome));
    // An application that was still working when the first chip's work was done was not cut off.
    let end = own.as_ref().unwrap_or(end);
    let said = Said::of(&names, &other.observed, end, other.observed.ticks);
    let mut all = incidents(paradigm, &peer.system, programs, &said, &other.observed);
    all.extend(other.observed.forged.iter().cloned());
    if let (Some(outcome), Some(own)) = (other.outcome, &own) {
        let seen = &other.observed;
        all.extend(trapped(&names, seen, outcome, own, outside.as_ref()));
    }
    for incident in &mut all {
        // Its times are ticks of another clock.
        incident.at = None;
        incident.application = format!("{}/{}", peer.name, incident.application);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_report::verdict::Judgement;

    #[test]
    fn nothing_of_a_variant_holds_whose_kernel_stopped() {
        let incident = |kind| Incident {
            crash: None,
            kind,
            at: None,
            tile: 0,
            application: "kernel".to_owned(),
            what: "panicked at src/unit.rs:481:5: no".to_owned(),
        };
        let variant = |incidents| VariantResult {
            name: "v".to_owned(),
            ticks: 0,
            end: End::Exit { code: 2 },
            instructions: 0,
            digest: String::new(),
            flows: Vec::new(),
            spans: Vec::new(),
            tasks: Vec::new(),
            requests: Vec::new(),
            interference: Vec::new(),
            tiles: Vec::new(),
            incidents,
            checks: Vec::new(),
            links: Vec::new(),
            quotas: Vec::new(),
            clocks: Vec::new(),
        };
        assert_eq!(stop_of(&variant(vec![incident(IncidentKind::Crash)])), None);
        let stop = stop_of(&variant(vec![incident(IncidentKind::KernelStopped)]));
        let judged = |held| unless(Promise::judged("v", "w", held), &stop);
        assert_eq!(judged(true).judgement, Judgement::NotJudged);
        assert_eq!(
            judged(true).because.as_deref(),
            Some("the run ended with the kernel: panicked at src/unit.rs:481:5: no")
        );
        // A failure stays a failure.
        assert_eq!(judged(false).judgement, Judgement::Failed);
        let kept = unless(Promise::judged("v", "w", true), &None);
        assert_eq!(kept.judgement, Judgement::Held);
    }
}
