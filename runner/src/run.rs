//! The main job: a system with all its variants, from the description to the files of the result.
//!
//! What it deliberately does not know: how a step is done; each has its own module.

use crate::admission;
use crate::boot_image::{self, BootImage};
use crate::bounds::{self, Alone};
use crate::chips::OtherSeen;
use crate::collect;
use crate::error::{Error, exit};
use crate::lonely::{self, Added};
use crate::modules::boot_name;
use crate::names::Names;
use crate::place;
use crate::programs::{Library, Program, source};
use crate::progress::{Progress, Stage};
use crate::report;
use crate::result::{
    Counter, End, Incident, Input, Provenance, RunResult, SCHEMA, TileResult, VariantResult,
};
use crate::session::{self, Counts, Observed, Plan};
use crate::watch::{Log, Watcher};
use bulkhead_machine::image::{Location, Resolver};
use bulkhead_machine::machine::Outcome;
use bulkhead_model::system::Peer;
use bulkhead_model::{LoadOptions, System, canonical, load_system};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Name of the kernel's program.
pub(crate) const KERNEL: &str = "tiled/kernel";
/// Name of TileMux's program.
const TILEMUX: &str = "tiled/tilemux";

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A description, or a name of the catalog.
    pub system: PathBuf,
    /// Changes of the description.
    pub overrides: Vec<String>,
    /// Only these variants; all if empty.
    pub variants: Vec<String>,
    /// Write traces.
    pub traces: bool,
}

/// A run that is over.
pub struct Finished {
    /// What is written to `result.json`.
    pub result: RunResult,
    /// Console of each variant.
    pub consoles: Vec<String>,
    /// Trace of each variant.
    pub traces: Vec<Option<Vec<u8>>>,
}

impl Finished {
    /// Exit code of the command.
    pub fn code(&self) -> u8 {
        let failed = self.result.variants.iter().any(|variant| {
            let faulted = variant
                .incidents
                .iter()
                .any(|incident| incident.what.starts_with("stopped"));
            faulted || !matches!(variant.end, End::Duration | End::Exit { code: 0 })
        });
        match (failed, self.result.held()) {
            (true, _) => exit::PROGRAM_FAILED,
            (false, false) => exit::PROMISE_BROKEN,
            (false, true) => exit::GOOD,
        }
    }

    /// Writes all files into `folder`; gives their paths.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut written = Vec::new();
        let mut add = |name: String, contents: &[u8]| -> Result<(), Error> {
            let path = folder.join(name);
            place::write(&path, contents)?;
            written.push(path);
            Ok(())
        };
        add(
            "report.html".to_owned(),
            report::page::report(&self.result)?.as_bytes(),
        )?;
        let json = serde_json::to_string_pretty(&self.result)
            .map_err(|error| Error::Report(error.to_string()))?;
        add("result.json".to_owned(), json.as_bytes())?;
        for (index, variant) in self.result.variants.iter().enumerate() {
            add(
                format!("{}.console.txt", variant.name),
                self.consoles[index].as_bytes(),
            )?;
            if let Some(trace) = &self.traces[index] {
                add(format!("{}.pftrace", variant.name), trace)?;
            }
        }
        Ok(written)
    }
}

/// One run to be made.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) system: System,
    image: BootImage,
    peer_image: Option<BootImage>,
    pub(crate) plan: Plan,
    watcher: Option<Watcher>,
}

/// Loads and validates a description; programs are checked against the checkout.
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
    Ok((system, library))
}

/// The variants of a system: itself, if it has none.
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

/// Programs that a system needs, the kernel first.
pub(crate) fn needed(system: &System) -> Vec<&str> {
    let mut names = vec![KERNEL, TILEMUX];
    names.extend(
        system
            .managers
            .iter()
            .map(|manager| manager.program.as_str()),
    );
    names.extend(system.apps.iter().map(|app| app.program.as_str()));
    if let Some(peer) = &system.peer {
        names.extend(needed(&peer.system));
    }
    names
}

/// What an experiment looks at beside the result. Nothing of it changes a tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look<'a> {
    /// When harts stop and messages come.
    pub harts: bool,
    /// Transactions in slices of so many nanoseconds, of the variants with these names.
    pub slices: Option<(u64, &'a [&'a str])>,
    /// How often two chips look at each other in the delay of their shortest cable; 0 is once, which is enough.
    pub chips: u64,
}

/// What was seen of a variant.
pub struct Seen {
    /// The variant.
    pub system: System,
    /// Whose numbers are whose.
    pub names: Names,
    /// When harts stopped and messages came.
    pub log: Option<Log>,
    /// Begin of each slice and the transactions that ended in it.
    pub slices: Vec<(u64, Counts)>,
    /// When the kernel began a piece of its work, and which.
    pub work: Vec<(u64, u64)>,
}

/// Kind of the kernel's marker where it begins a piece of work (its module `bounds`).
const WORK_BEGINS: u16 = 0x100;

/// Runs a system.
pub fn run(options: &Options, progress: &dyn Progress) -> Result<Finished, Error> {
    looked_at(options, Look::default(), progress).map(|(finished, _)| finished)
}

/// Runs a system and watches its harts; gives a log for each variant.
pub fn watched(options: &Options, progress: &dyn Progress) -> Result<(Finished, Vec<Log>), Error> {
    let look = Look {
        harts: true,
        ..Look::default()
    };
    let (finished, seen) = looked_at(options, look, progress)?;
    Ok((finished, seen.into_iter().filter_map(|s| s.log).collect()))
}

/// Runs a system and looks at more of it; gives what was seen of each variant.
pub fn looked_at(
    options: &Options,
    look: Look<'_>,
    progress: &dyn Progress,
) -> Result<(Finished, Vec<Seen>), Error> {
    let root = place::root()?;
    let (system, library) = load(&options.system, &options.overrides, &root)?;
    if system.platform.kind != bulkhead_model::platform::PlatformKind::Tiled {
        return Err(Error::input(
            format!(
                "the platform {} has no data transfer units",
                system.platform.name
            ),
            "the tiled OS needs a tiled platform; `bulkhead boot` runs single programs on this one",
        ));
    }
    let chosen = variants(&system, &options.variants)?;
    for (name, variant) in &chosen {
        admission::check(name, variant)?;
    }
    // Who counts by himself has runs of his own.
    let lonely = match look.slices {
        None => lonely::plan(&chosen, &variants(&system, &[])?),
        Some(_) => lonely::Lonely::default(),
    };
    let variants = chosen;
    let what = "building the programs of the chip";
    progress.stage(Stage::Work { what });
    let added = lonely.runs.iter().map(|run| &run.system);
    let systems = variants.iter().map(|(_, system)| system).chain(added);
    let programs = library.build(systems.flat_map(needed));
    progress.stage(Stage::Done { name: what });
    let mut programs = programs?;
    programs.extend(library.modules(&system)?);
    let mut jobs = Vec::new();
    for (name, variant) in variants {
        let mut job = job(name, variant, &programs, options.traces)?;
        job.watcher = look.harts.then(Watcher::default);
        job.plan.looks = look.chips.max(1);
        if let Some((nanoseconds, wanted)) = look.slices
            && wanted.contains(&job.name.as_str())
        {
            let per_second = u128::from(job.system.platform.ticks_per_second());
            let length = u128::from(nanoseconds) * per_second / 1_000_000_000;
            job.plan.slice = Some((u64::try_from(length).unwrap_or(u64::MAX).max(1), 0));
        }
        jobs.push(job);
    }
    let wanted = jobs.len();
    for run in &lonely.runs {
        let name = format!("{} alone", run.flow);
        let mut job = job(name, run.system.clone(), &programs, false)?;
        job.plan.slice = bounds::slicing(&run.system);
        jobs.push(job);
    }
    let mut observed = in_parallel(&jobs, |job| {
        session::execute_watched(
            &job.system,
            (&job.image, job.peer_image.as_ref()),
            job.plan,
            &job.name,
            progress,
            job.watcher.clone(),
        )
    })
    .into_iter()
    .collect::<Result<Vec<Observed>, Error>>()?;
    let alone = observed.split_off(wanted);
    let added = jobs.split_off(wanted);
    let added = lonely.read(&added, alone, &programs);
    let seen = jobs.iter().zip(&observed).map(|(job, observed)| Seen {
        system: job.system.clone(),
        names: Names::new(&job.system, &observed.console),
        log: job.watcher.as_ref().map(Watcher::take),
        slices: observed.slices.clone(),
        work: {
            let markers = observed.markers.iter();
            let kernel = job.system.kernel_tile;
            let begun = markers.filter(|m| m.kind == WORK_BEGINS && m.tile == kernel);
            begun.map(|marker| (marker.at, marker.value)).collect()
        },
    });
    let seen = seen.collect();
    let finished = finish(&system, options, &programs, &jobs, observed, added);
    Ok((finished, seen))
}

/// What lies in memory when the chip starts.
fn image(system: &System, programs: &[Program]) -> Result<BootImage, Error> {
    let find = |name: &str| {
        programs
            .iter()
            .find(|program| program.name == name)
            .ok_or_else(|| Error::Machine(format!("the program {name} was not built")))
    };
    let mut modules: Vec<Program> = Vec::new();
    for name in needed(system).into_iter().skip(1) {
        if !modules.iter().any(|module| module.name == name) {
            modules.push(find(name)?.clone());
        }
    }
    for module in &system.modules {
        modules.push(find(&boot_name(&module.name))?.clone());
    }
    boot_image::assemble(
        system,
        find(KERNEL)?,
        &modules,
        &canonical::for_chip(system),
    )
}

/// What lies in the memories of a system's chip and its peer's: of each the modules that it needs itself.
pub(crate) fn images(
    system: &System,
    programs: &[Program],
) -> Result<(BootImage, Option<BootImage>), Error> {
    let image_of = |system: &System| {
        let alone = System {
            peer: None,
            ..system.clone()
        };
        image(&alone, programs)
    };
    let peer = system.peer.as_ref();
    let peer_image = peer.map(|peer| image_of(&peer.system)).transpose()?;
    Ok((image_of(system)?, peer_image))
}

fn job(name: String, system: System, programs: &[Program], traces: bool) -> Result<Job, Error> {
    let (image, peer_image) = images(&system, programs)?;
    let per_second = system.platform.ticks_per_second();
    let alone = system.flows.iter().any(|flow| {
        let members = bounds::members_of(&system, flow);
        bounds::is_alone(&system, &members)
    });
    let slice = bounds::slicing(&system).filter(|_| alone);
    let plan = Plan {
        ticks: collect::ticks(system.duration, per_second),
        trace: traces,
        slice,
        looks: 1,
    };
    Ok(Job {
        name,
        system,
        image,
        peer_image,
        plan,
        watcher: None,
    })
}

/// Does the same for all on all processors; results in the order of the inputs. Each run is deterministic by itself, so
/// which ends first does not matter. Long work of few inputs: each is handed out by itself.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    inputs: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync + Send,
) -> Vec<Result<R, Error>> {
    inputs.par_iter().with_max_len(1).map(work).collect()
}

fn finish(
    system: &System,
    options: &Options,
    programs: &[Program],
    jobs: &[Job],
    observed: Vec<Observed>,
    added: Added,
) -> Finished {
    let mut variants = Vec::new();
    let mut alone: Vec<Alone> = Vec::new();
    let (mut consoles, mut traces) = (Vec::new(), Vec::new());
    let mut peers = Vec::new();
    for (job, seen) in jobs.iter().zip(observed) {
        let names = Names::new(&job.system, &seen.console);
        let mut variant = variant(job, &names, programs, &seen);
        variant.incidents.extend(peer_incidents(&job.system, &seen));
        for flow in &variant.flows {
            let members = bounds::members(&job.system, flow);
            if bounds::is_alone(&job.system, &members)
                && !alone.iter().any(|known| known.flow == flow.name)
            {
                let length = job.plan.slice.map_or(0, |slice| slice.0);
                let found = bounds::alone(&job.system, &names, flow, &seen.slices, length);
                alone.extend(found);
            }
        }
        if let (Some(peer), Some(other)) = (&job.system.peer, &seen.other) {
            peers.push((
                peer,
                peer_variant(&job.name, &peer.system, programs, &other.observed),
            ));
        }
        variants.push(variant);
        consoles.push(console(&job.system, seen.console, seen.other.as_ref()));
        traces.push(seen.trace);
    }
    alone.extend(added.alone);
    let mut verdicts = Vec::new();
    for (job, variant) in jobs.iter().zip(&mut variants) {
        bounds::add(&job.system, variant, &alone, &added.missing);
        verdicts.extend(bounds::verdicts(
            &job.system,
            reference_cycle(system),
            variant,
        ));
    }
    let ticks_per_second = system.platform.ticks_per_second();
    Finished {
        result: RunResult {
            schema: SCHEMA,
            system: system.name.clone(),
            platform: system.platform.name.clone(),
            ticks_per_second,
            cycle_ticks: reference_cycle(system),
            provenance: provenance(system, options, programs),
            variants,
            added: added.runs,
            verdicts,
            peer: peer_result(options, programs, peers).map(Box::new),
        },
        consoles,
        traces,
    }
}

/// Ticks of a cycle of the first application's hart.
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

pub(crate) fn provenance(system: &System, options: &Options, programs: &[Program]) -> Provenance {
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

pub(crate) fn variant(
    job: &Job,
    names: &Names,
    programs: &[Program],
    seen: &Observed,
) -> VariantResult {
    read(&job.name, &job.system, names, programs, seen)
}

/// Reads off what happened on a chip.
fn read(
    name: &str,
    system: &System,
    names: &Names,
    programs: &[Program],
    seen: &Observed,
) -> VariantResult {
    let locate = |application: &str, pc: u64| {
        let app = system.apps.iter().find(|app| app.name == application)?;
        let program = programs
            .iter()
            .find(|program| program.name == app.program)?;
        Some(place_of(program, pc))
    };
    VariantResult {
        name: name.to_owned(),
        ticks: seen.ticks,
        end: end(programs, seen.outcome),
        instructions: seen
            .statistics
            .harts
            .iter()
            .map(|hart| hart.counters.instructions)
            .sum(),
        digest: seen.digest.clone(),
        flows: collect::flows(system, names, &seen.markers, seen.ticks),
        spans: collect::spans(system, names, &seen.markers, seen.ticks),
        requests: collect::requests(system, names, &seen.ledger),
        interference: collect::interference(names, &seen.ledger),
        tiles: tiles(names, seen),
        incidents: collect::incidents(system, names, &seen.console, &seen.markers, locate),
        checks: collect::checks(names, &seen.markers),
        quotas: collect::quotas(system, &seen.console),
    }
}

/// Where in the source a program counter lies. Of functions that were inlined into each other, the innermost that is neither the
/// compiler's nor of a package of others; then the function that they are in.
fn place_of(program: &Program, pc: u64) -> String {
    let resolver = Resolver::new(&program.elf);
    let named = |mut place: Location| {
        place.file = place.file.map(|file| source(&file).to_owned());
        place
    };
    let place = named(resolver.resolve(pc));
    let mut frames = resolver.inlined(pc).into_iter().map(named);
    let own = frames.find(|frame| {
        let file = frame.file.as_deref();
        file.is_some_and(|file| !file.starts_with('/') && !file.starts_with("cargo/"))
    });
    match (own, &place.function) {
        (Some(own), Some((outer, _))) if own.function.as_ref().is_some_and(|f| f.0 != *outer) => {
            format!("{own}, inlined into {outer}")
        }
        (Some(own), _) if own.file != place.file => Location {
            function: place.function,
            ..own
        }
        .to_string(),
        _ => place.to_string(),
    }
}

/// The console of both chips.
fn console(system: &System, own: String, other: Option<&OtherSeen>) -> String {
    match (&system.peer, other) {
        (Some(peer), Some(seen)) => {
            format!("{own}--- {} ---\n{}", peer.name, seen.observed.console)
        }
        _ => own,
    }
}

/// What the peer did in a variant. What went wrong there stands with the first chip.
fn peer_variant(
    name: &str,
    system: &System,
    programs: &[Program],
    seen: &Observed,
) -> VariantResult {
    let names = Names::new(system, &seen.console);
    let mut variant = read(name, system, &names, programs, seen);
    variant.incidents.clear();
    bounds::add(system, &mut variant, &[], &[]);
    variant
}

/// The results of the peer's chip.
fn peer_result(
    options: &Options,
    programs: &[Program],
    peers: Vec<(&Peer, VariantResult)>,
) -> Option<RunResult> {
    let (first, _) = peers.first()?;
    let (name, system) = (first.name.clone(), &first.system);
    let cycle = reference_cycle(system);
    let mut verdicts = Vec::new();
    for (peer, variant) in &peers {
        verdicts.extend(bounds::verdicts(&peer.system, cycle, variant));
    }
    Some(RunResult {
        schema: SCHEMA,
        system: name,
        platform: system.platform.name.clone(),
        ticks_per_second: system.platform.ticks_per_second(),
        cycle_ticks: cycle,
        provenance: provenance(system, options, programs),
        variants: peers.into_iter().map(|(_, variant)| variant).collect(),
        added: Vec::new(),
        verdicts,
        peer: None,
    })
}

/// What went wrong on the peer's chip.
fn peer_incidents(system: &System, seen: &Observed) -> Vec<Incident> {
    let (Some(peer), Some(other)) = (&system.peer, &seen.other) else {
        return Vec::new();
    };
    let console = &other.observed.console;
    let names = Names::new(&peer.system, console);
    let locate = |_: &str, _: u64| None;
    let mut all = collect::incidents(&peer.system, &names, console, &[], locate);
    if let Some(Outcome::Unhandled { tile, trap, .. }) = other.outcome {
        all.push(Incident {
            at: None,
            tile,
            application: "kernel".to_owned(),
            what: format!("stopped: {}", crate::trap::describe(&trap)),
        });
    }
    for incident in &mut all {
        incident.application = format!("{}/{}", peer.name, incident.application);
    }
    all
}

fn end(programs: &[Program], outcome: Outcome) -> End {
    match outcome {
        Outcome::Exit { code, .. } => End::Exit { code },
        Outcome::Limit => End::Duration,
        Outcome::Idle { .. } => End::Idle,
        Outcome::Unhandled { tile, trap, .. } => {
            let place = programs
                .iter()
                .find(|program| program.name == KERNEL)
                .map(|program| place_of(program, trap.pc))
                .unwrap_or_default();
            End::Trap {
                what: format!("tile {tile}: {} in {place}", crate::trap::describe(&trap)),
            }
        }
    }
}

fn tiles(names: &Names, seen: &Observed) -> Vec<TileResult> {
    seen.statistics
        .harts
        .iter()
        .map(|hart| TileResult {
            tile: hart.tile,
            applications: names.on_tile(hart.tile),
            instructions: hart.counters.instructions,
            counters: crate::counters::of_tile(&seen.statistics, hart)
                .into_iter()
                .chain(crate::counters::of_card(&seen.network_cards, hart.tile))
                .collect(),
        })
        .collect::<Vec<_>>()
        .into_iter()
        .chain(seen.statistics.memories.iter().map(|memory| TileResult {
            tile: memory.tile,
            applications: vec!["memory".to_owned()],
            instructions: 0,
            counters: crate::counters::of_memory(memory),
        }))
        .collect()
}

/// Counters as they stand in a result.
pub fn counter(name: impl Into<String>, value: u64) -> Counter {
    Counter {
        name: name.into(),
        value,
    }
}
