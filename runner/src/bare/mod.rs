//! Programs without a kernel: `boot` runs any bare-metal program on a platform, and [`Bare`] runs systems of several.
//!
//! Why it exists: the machine is not only for the tiled OS. What it deliberately does not know: what the program is.

mod beside;
mod bounds;
pub mod device_tree;
mod layout;
mod mesh;
mod promises;
mod replaced;
pub mod rivals;
mod system;

pub use bounds::unbounded_flows;
pub use system::Bare;
use system::described;

use crate::convert::convert;
use crate::counters;
use crate::crash;
use crate::error::{Error, exit};
use crate::observed::printed;
use crate::place;
use crate::progress::{Progress, Stage};
use crate::trap;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_machine::config::{PlatformConfig, PlatformKind};
use bulkhead_machine::image::Image;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::statistics::Statistics;
use bulkhead_report::crash::Crash;
use bulkhead_report::result::Counter;
use device_tree::{device_tree, harts};

use bulkhead_machine::trace::{TraceOptions, Tracer};
use bulkhead_model::{LoadOptions, input, load_platform};
use serde::Serialize;
use std::path::Path;

/// How to boot.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The program for the platform's first tile.
    pub elf: &'a Path,
    /// Programs for other tiles (meshes): first and last tile of a row, and the program that each tile of the row gets.
    pub others: &'a [(u16, u16, &'a Path)],
    /// Name or file of the platform.
    pub platform: &'a Path,
    /// Changes of the platform.
    pub overrides: &'a [String],
    /// Maximum cycles of the hart.
    pub max_cycles: Option<u64>,
    /// Where to write a trace.
    pub trace: Option<&'a Path>,
}

/// The outcome of a boot.
#[derive(Clone, Debug, Serialize)]
pub struct Booted {
    /// Why it ended, in words.
    pub end: String,
    /// Exit code of the program, if it reported one.
    pub exit: Option<u32>,
    /// The known facts about the unhandled trap that ended the run, if one did.
    pub crash: Option<Crash>,
    /// Cycles of the hart.
    pub cycles: u64,
    /// Instructions of all harts of the tile.
    pub instructions: u64,
    /// Counters of the tile, and of each hart if it has several.
    pub counters: Vec<Counter>,
    /// Console.
    pub console: String,
    /// SHA-256 over all observations.
    pub digest: String,
    /// Exit code for the command.
    #[serde(skip)]
    pub code: u8,
}

/// Alignment of the device tree: a page, more than the 8 bytes that its specification asks for.
const TREE_ALIGNMENT: u64 = 4096;
/// Simulated seconds without `--max-cycles`: long enough for any test, but finite.
const SECONDS: u64 = 3600;

/// Boots the program on the first tile of the platform.
pub fn boot(options: &Options<'_>, progress: &dyn Progress) -> Result<Booted, Error> {
    let load = LoadOptions {
        overrides: options.overrides.to_vec(),
        ..LoadOptions::default()
    };
    let platform = load_platform(options.platform, &load)?;
    let config = convert(&platform);
    let (image, bytes) = program(options.elf)?;
    if config.kind == PlatformKind::Mesh {
        return mesh::boot(options, &config, (image, bytes), progress);
    }
    if let Some((first, ..)) = options.others.first() {
        return Err(Error::input(
            format!(
                "tile {first} of the platform {} cannot get a program of its own",
                config.name
            ),
            "take a platform of kind mesh, such as `epiphany3`",
        ));
    }
    if config.kind == PlatformKind::Tiled {
        return Err(Error::input(
            format!(
                "on the platform {}, software reaches memory only after a kernel has configured the data transfer units",
                config.name
            ),
            "take a platform of kind bare, such as `single`; `bulkhead run` boots the tiled OS",
        ));
    }
    let size: u64 = config
        .memories
        .iter()
        .map(|memory| memory.size)
        .next()
        .unwrap_or(0);
    image.check_fits(MEMORY_BASE, size).map_err(|error| {
        Error::input(
            error.to_string(),
            format!("link the program to memory from {MEMORY_BASE:#x} on"),
        )
    })?;
    let failed = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let mut machine = Machine::new(&config)?;
    let tile = config.tiles[0].id;
    for segment in &image.segments {
        machine
            .load_tile(tile, segment.address, &segment.data)
            .map_err(|error| failed(&error))?;
    }
    if let Some(tohost) = image.tohost() {
        machine
            .set_tohost(tile, tohost)
            .map_err(|error| failed(&error))?;
    }
    // As on QEMU, the tree is at the end of memory and its address in `a1`; a program that fills all of memory gets no tree.
    let tree = device_tree(&config, size)?;
    let place = (MEMORY_BASE + size).saturating_sub(tree.len() as u64) & !(TREE_ALIGNMENT - 1);
    let room = place >= MEMORY_BASE
        && image
            .segments
            .iter()
            .all(|segment| segment.address + segment.size <= place);
    if room {
        machine
            .load_tile(tile, place, &tree)
            .map_err(|error| failed(&error))?;
    }
    let argument = if room { place } else { 0 };
    // Also as on QEMU's board, all harts start at the entry, each with its number in `a0`.
    if config.tiles[0].cluster.is_some() {
        for (port, number) in harts(&config).into_iter().enumerate() {
            machine
                .start_cluster_hart((tile, port), image.entry, number.into(), argument)
                .map_err(|error| failed(&error))?;
        }
    } else {
        machine
            .start_hart(tile, image.entry, 0, argument)
            .map_err(|error| failed(&error))?;
    }
    let ran = run(&mut machine, &config, options, progress)?;
    let console = printed(&machine, tile).map_err(|error| failed(&error))?;
    let crash = crashed(&machine, ran.outcome, &bytes);
    ran.booted(tile, options.max_cycles, console, crash)
}

/// Reads a program.
fn program(elf: &Path) -> Result<(Image, Vec<u8>), Error> {
    let name = elf.display().to_string();
    let bytes = input::read(elf, input::BINARY_LIMIT).map_err(|error| {
        Error::input(
            format!("{name}: {error}"),
            "name a static RV64GC program in ELF format",
        )
    })?;
    let mut image = Image::parse(&name, &bytes).map_err(|error| {
        Error::input(
            error.to_string(),
            "build it for riscv64gc-unknown-none-elf, statically linked",
        )
    })?;
    image.trim_headers(MEMORY_BASE);
    Ok((image, bytes))
}

/// A run that is over.
struct Ran {
    outcome: Outcome,
    digest: String,
    statistics: Statistics,
}

/// Runs a machine whose programs have been loaded and started.
fn run(
    machine: &mut Machine,
    config: &PlatformConfig,
    options: &Options<'_>,
    progress: &dyn Progress,
) -> Result<Ran, Error> {
    let cycle = config.tiles[0].hart.ticks_per_cycle;
    if options.trace.is_some() {
        machine.set_observer(Some(Box::new(Tracer::new(config, TraceOptions::default()))));
    }
    let ticks = options
        .max_cycles
        .map_or(config.ticks_per_second.saturating_mul(SECONDS), |cycles| {
            cycles.saturating_mul(cycle)
        });
    let per_microsecond = (config.ticks_per_second / 1_000_000).max(1);
    let mut report = |now: u64| {
        progress.stage(Stage::Simulation {
            name: "boot",
            microseconds: now / per_microsecond,
            of: ticks / per_microsecond,
        });
    };
    let outcome = machine.run(RunLimit { ticks }, Some(&mut report));
    progress.stage(Stage::Done { name: "boot" });
    let trace = machine.take_observer().map(|observer| observer.bytes());
    let digest = machine
        .digest()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if let (Some(path), Some(trace)) = (options.trace, trace) {
        place::write(path, trace)?;
    }
    Ok(Ran {
        outcome,
        digest,
        statistics: machine.statistics(),
    })
}

impl Ran {
    /// The outcome, with the counters of a tile.
    fn booted(
        self,
        tile: u16,
        max_cycles: Option<u64>,
        console: String,
        crash: Option<Crash>,
    ) -> Result<Booted, Error> {
        let (end, exit, code) = ending(self.outcome, max_cycles);
        let harts = self.statistics.harts.iter();
        let harts: Vec<_> = harts.filter(|hart| hart.tile == tile).collect();
        let [hart, others @ ..] = &harts[..] else {
            return Err(Error::Machine("the tile has no hart".to_owned()));
        };
        Ok(Booted {
            end,
            exit,
            crash,
            cycles: self.statistics.ticks / hart.cycle,
            instructions: harts.iter().map(|hart| hart.counters.instructions).sum(),
            counters: if others.is_empty() {
                counters::of_tile(&self.statistics, hart)
            } else {
                counters::of_cluster(&self.statistics, &harts)
            },
            console,
            digest: self.digest,
            code,
        })
    }
}

/// The crash that ended the run, if one did. For a program that turned address translation on, only the innermost function is shown, plus
/// its caller if the function has saved nothing.
fn crashed(machine: &Machine, outcome: Outcome, elf: &[u8]) -> Option<Crash> {
    let trapped = machine.trapped(outcome)?;
    let read = |address| trapped.word(address);
    Some(crash::of(elf, &trapped.trap, &trapped.registers, &read))
}

fn ending(outcome: Outcome, max_cycles: Option<u64>) -> (String, Option<u32>, u8) {
    match outcome {
        Outcome::Exit { code: 0, .. } => ("exit code 0".to_owned(), Some(0), exit::GOOD),
        Outcome::Exit { code, .. } => (
            format!("exit code {code}"),
            Some(code),
            exit::PROGRAM_FAILED,
        ),
        Outcome::Unhandled { trap, .. } => (
            format!("unhandled trap: {}", trap::describe(&trap)),
            None,
            exit::PROGRAM_FAILED,
        ),
        Outcome::Idle { .. } => (
            "the hart waits for an interrupt that can never come".to_owned(),
            None,
            exit::PROGRAM_FAILED,
        ),
        Outcome::Limit => (
            match max_cycles {
                Some(cycles) => format!("the limit of {cycles} cycles is reached"),
                None => format!("the limit of {SECONDS} simulated seconds is reached"),
            },
            None,
            exit::PROGRAM_FAILED,
        ),
    }
}
