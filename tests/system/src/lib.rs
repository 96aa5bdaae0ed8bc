//! Boots a tiled system for a test and reports what happened.
//!
//! Why it exists: the tests are about activities, consoles and markers, not about files and images. What it deliberately
//! does not know: the expected results.
//!
//! Systems are in the folder `systems`; they may name the platform `./shared.xml`, which is `tiled-gem5` with shareable
//! tiles, made from the catalog's file.

pub mod control;
pub mod filed;
pub mod one_shot;
pub mod shared_tiles;
pub mod whole;

use bulkhead_abi::marker::MarkerKind;
use bulkhead_machine::hart::Privilege;
use bulkhead_machine::image::Image;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::statistics::Statistics;
use bulkhead_model::System;
use bulkhead_runner::measure::MarkerEvent;
use bulkhead_runner::observed::Observed;
use bulkhead_runner::programs::Program;
use bulkhead_runner::progress::Silent;
use bulkhead_runner::session::Plan;
use bulkhead_runner::tiled::{Tiled, boot_image, names};
use bulkhead_runner::{boot, collect, convert, observed, place, run, session};
use std::path::Path;

/// What a test asks about.
pub struct Report {
    /// Exit code of the root manager; none if the run's duration ended first.
    pub code: Option<u32>,
    /// Everything on the console.
    pub console: String,
    /// Counters.
    pub statistics: Statistics,
    /// Digest of everything that happened.
    pub digest: String,
    /// Ticks of a cycle of the applications' tiles.
    pub cycle: u64,
    markers: Vec<(u64, u16, u16, u16, u64)>,
}

impl Report {
    /// How an activity stopped, in the kernel's words, without its number and tile.
    pub fn stopped(&self, name: &str) -> Option<&str> {
        let mark = format!("({name}) on tile ");
        let line = self
            .console
            .lines()
            .find(|line| line.starts_with("kernel: ") && line.contains(&mark))?;
        line.split_once(" stopped: ").map(|(_, cause)| cause)
    }

    /// Lines that an application printed.
    pub fn printed(&self, name: &str) -> Vec<&str> {
        let mark = format!("[{name}] ");
        self.console
            .lines()
            .filter_map(|line| line.strip_prefix(&mark))
            .collect()
    }

    /// Cycles of all measured spans on a tile.
    pub fn spans(&self, tile: u16) -> Vec<u64> {
        self.pairs(MarkerKind::SpanBegin, MarkerKind::SpanEnd, Some(tile))
    }

    /// Values and cycles of all pieces of work between two kinds of markers on a tile.
    pub fn work(&self, begin: u16, end: u16, tile: u16) -> Vec<(u64, u64)> {
        self.work_until(begin, end, tile, u64::MAX)
    }

    /// The same for those that ended by this cycle.
    pub fn work_until(&self, begin: u16, end: u16, tile: u16, until: u64) -> Vec<(u64, u64)> {
        let mut open = None;
        let mut all = Vec::new();
        for (tick, at, _, kind, value) in &self.markers {
            if *at != tile || *tick / self.cycle > until {
                continue;
            }
            if *kind == begin {
                open = Some((*value, *tick));
            } else if *kind == end
                && let Some((value, begin)) = open.take()
            {
                all.push((value, (tick - begin) / self.cycle));
            }
        }
        all
    }

    /// Values of the pieces of work that begin on a tile during each measured span of another tile.
    pub fn work_during(&self, begin: u16, tile: u16, spans: u16) -> Vec<Vec<u64>> {
        let mut open = None;
        let mut all = Vec::new();
        for (_, at, _, kind, value) in &self.markers {
            if *at == spans && *kind == MarkerKind::SpanBegin as u16 {
                open = Some(Vec::new());
            } else if *at == spans && *kind == MarkerKind::SpanEnd as u16 {
                all.extend(open.take());
            } else if let Some(open) = &mut open
                && *at == tile
                && *kind == begin
            {
                open.push(*value);
            }
        }
        all
    }

    /// Cycles of all flows.
    pub fn flows(&self) -> Vec<u64> {
        self.pairs(MarkerKind::FlowBegin, MarkerKind::FlowEnd, None)
    }

    fn pairs(&self, begin: MarkerKind, end: MarkerKind, tile: Option<u16>) -> Vec<u64> {
        let mut open = std::collections::BTreeMap::new();
        let mut all = Vec::new();
        for (tick, at, _, kind, value) in &self.markers {
            if tile.is_some_and(|tile| tile != *at) {
                continue;
            }
            if *kind == begin as u16 {
                open.insert(*value, *tick);
            } else if *kind == end as u16
                && let Some(begin) = open.remove(value)
            {
                all.push((tick - begin) / self.cycle);
            }
        }
        all
    }

    /// The most activities alive at one time, as far as their spans show.
    pub fn alive_at_once(&self) -> usize {
        let mut lives = std::collections::BTreeMap::new();
        let kinds = [MarkerKind::SpanBegin as u16, MarkerKind::SpanEnd as u16];
        for (tick, tile, activity, kind, _) in &self.markers {
            if !kinds.contains(kind) {
                continue;
            }
            let life = lives.entry((*tile, *activity)).or_insert((*tick, *tick));
            life.1 = *tick;
        }
        let alive = |at: u64| lives.values().filter(|l| l.0 <= at && at <= l.1).count();
        lives.values().map(|life| alive(life.0)).max().unwrap_or(0)
    }

    /// When a tile made its first marker, in cycles.
    pub fn began(&self, tile: u16) -> Option<u64> {
        let first = self.markers.iter().find(|m| m.1 == tile);
        first.map(|m| m.0 / self.cycle)
    }

    /// When a tile made its last marker, in cycles.
    pub fn last(&self, tile: u16) -> Option<u64> {
        let last = self.markers.iter().rfind(|m| m.1 == tile);
        last.map(|m| m.0 / self.cycle)
    }

    /// When the last measured span on a tile ended, in cycles.
    pub fn last_span(&self, tile: u16) -> Option<u64> {
        let is_end =
            |m: &&(u64, u16, u16, u16, u64)| (m.1, m.3) == (tile, MarkerKind::SpanEnd as u16);
        let last = self.markers.iter().rfind(is_end);
        last.map(|m| m.0 / self.cycle)
    }

    /// Values of all markers of a kind on a tile.
    pub fn values(&self, kind: MarkerKind, tile: u16) -> Vec<u64> {
        let wanted = self
            .markers
            .iter()
            .filter(|m| m.3 == kind as u16 && m.1 == tile);
        wanted.map(|m| m.4).collect()
    }
}

/// Boots a system of the folder `systems`, or all of its variants, and reports in their order.
pub fn boot(file: &str) -> Vec<Report> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("systems");
    let text = std::fs::read_to_string(folder.join(file)).expect("the system is there");
    boot_text(&text, &[])
}

/// Boots a system given as text, with overrides such as `app@tile=3`.
pub fn boot_text(text: &str, overrides: &[&str]) -> Vec<Report> {
    boot_with(text, overrides, |_| {})
}

/// An intervention on a tile in the middle of a run.
#[derive(Clone, Copy, Debug)]
pub struct Strike {
    /// When, in nanoseconds since reset.
    pub at: u64,
    /// Where.
    pub tile: u16,
    /// What.
    pub how: Blow,
}

/// The special settings of a boot.
#[derive(Clone, Copy, Debug, Default)]
struct Special {
    /// A tile is struck.
    strike: Option<Strike>,
    /// At the end, the kernel closes its books.
    books: bool,
}

/// How a tile is struck.
#[derive(Clone, Copy, Debug)]
pub enum Blow {
    /// The running activity jumps to an address where nothing is; if TileMux runs, the next activity that runs does.
    Crash,
    /// `tiled/captured` runs there in machine mode, and ends with an attack of this kind.
    Capture(u64),
}

/// Boots a system given as text and strikes a tile. When it ends, the kernel closes its books.
pub fn boot_struck(text: &str, strike: Strike) -> Report {
    let special = Special {
        strike: Some(strike),
        books: true,
    };
    boot_one(text, special)
}

fn boot_one(text: &str, special: Special) -> Report {
    let mut reports = boot_all(text, &[], |_| {}, special);
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

/// Boots a system given as text; when it ends, the kernel closes its books.
pub fn boot_booked(text: &str) -> Report {
    let special = Special {
        books: true,
        ..Special::default()
    };
    boot_one(text, special)
}

/// Boot module that asks the kernel to close its books: `bulkhead_kernel::books::MODULE`.
const BOOKS: &str = "kernel:books";

/// Boots a system given as text in a folder that `prepare` has filled.
pub fn boot_with(text: &str, overrides: &[&str], prepare: impl FnOnce(&Path)) -> Vec<Report> {
    boot_all(text, overrides, prepare, Special::default())
}

fn boot_all(
    text: &str,
    overrides: &[&str],
    prepare: impl FnOnce(&Path),
    special: Special,
) -> Vec<Report> {
    let root = place::root().expect("the checkout is there");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let platform = std::fs::read_to_string(root.join("catalog/platforms/tiled-2ghz.xml"))
        .expect("the platform is there");
    let shared = platform
        .replace("name=\"tiled-2ghz\"", "name=\"shared\"")
        .replace("<tile id=", "<tile shared=\"true\" id=")
        .replace("<tile shared=\"true\" id=\"0\"", "<tile id=\"0\"");
    std::fs::write(folder.path().join("shared.xml"), shared).expect("a file can be written");
    prepare(folder.path());
    let path = folder.path().join("system.xml");
    std::fs::write(&path, text).expect("a file can be written");
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let (system, library) = match run::load(&path, &overrides, &root) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{error}"),
    };
    let captured = special.strike.map(|_| "tiled/captured");
    let names = ["tiled/kernel", "tiled/tilemux"]
        .into_iter()
        .chain(captured)
        .map(str::to_owned)
        .chain(system.programs());
    let names: Vec<String> = names.collect();
    let programs = library.build(names.iter().map(String::as_str));
    let programs = programs.and_then(|mut programs| {
        programs.extend(library.modules(&system)?);
        Ok(programs)
    });
    let mut programs = match programs {
        Ok(programs) => programs,
        Err(error) => panic!("{error}"),
    };
    if special.books {
        let (name, elf) = (BOOKS.to_owned(), vec![1]);
        programs.push(Program { name, elf });
    }
    system
        .runs()
        .into_iter()
        .map(|run| execute(run, &programs, special))
        .collect()
}

fn execute(system: &System, programs: &[Program], special: Special) -> Report {
    let needed = system.programs();
    let is_module = |p: &&Program| {
        let always = p.name == "tiled/tilemux" || p.name == BOOKS;
        always || p.name.starts_with("data:") || needed.contains(&p.name)
    };
    let modules: Vec<Program> = programs.iter().filter(is_module).cloned().collect();
    let kernel = programs
        .iter()
        .find(|p| p.name == "tiled/kernel")
        .expect("the kernel was built");
    let description = bulkhead_model::canonical::for_chip(system);
    let image = boot_image::assemble(system, kernel, &modules, &description).expect("all fits");
    let ticks_per_second = system.platform.ticks_per_second();
    let plan = Plan {
        ticks: collect::ticks(system.duration, ticks_per_second),
        trace: false,
        slice: None,
        transactions: false,
        looks: 1,
    };
    let Some(strike) = special.strike else {
        let observed: Observed =
            match session::execute(&Tiled, system, &image, plan, "test", &Silent) {
                Ok(observed) => observed,
                Err(error) => panic!("{error}"),
            };
        let Observed {
            outcome,
            statistics,
            digest,
            markers,
            console,
            ..
        } = observed;
        return report(system, outcome, statistics, digest, markers, console);
    };
    let config = convert::convert_system(system, None);
    let mut machine = boot::boot_on(&Tiled, system, &image, &config).expect("it boots");
    let at = u128::from(strike.at) * u128::from(ticks_per_second) / 1_000_000_000;
    machine.run(RunLimit { ticks: at as u64 }, None);
    let ended = hurt(&mut machine, strike, programs);
    let outcome = ended.unwrap_or_else(|| machine.run(RunLimit { ticks: plan.ticks }, None));
    let console = machine.console(system.kernel_tile).expect("a console");
    report(
        system,
        outcome,
        machine.statistics(),
        String::new(),
        observed::markers(&machine),
        names::described(system, &String::from_utf8_lossy(console)),
    )
}

/// Strikes a tile of a stopped machine. If the run ends before that is possible, reports how it ended.
fn hurt(machine: &mut Machine, strike: Strike, programs: &[Program]) -> Option<Outcome> {
    let tile = strike.tile;
    match strike.how {
        Blow::Crash => {
            for _ in 0..10_000 {
                let hart = machine.hart(tile).expect("the tile");
                if hart.privilege() == Privilege::User && !hart.is_halted() {
                    machine.divert_hart(tile, 0).expect("the tile");
                    break;
                }
                let next = machine.now() + 1000;
                let outcome = machine.run(RunLimit { ticks: next }, None);
                if outcome != Outcome::Limit {
                    return Some(outcome);
                }
            }
        }
        Blow::Capture(kind) => {
            let mut all = programs.iter();
            let program = all.find(|p| p.name == "tiled/captured");
            let program = program.expect("it was built");
            let image = Image::parse(&program.name, &program.elf).expect("a program");
            for segment in &image.segments {
                let mut bytes = segment.data.clone();
                bytes.resize(segment.size as usize, 0);
                let put = machine.load_tile(tile, segment.address, &bytes);
                put.expect("TileMux's memory");
            }
            let started = machine.start_hart(tile, image.entry, kind, 0);
            started.expect("the tile");
        }
    }
    None
}

fn report(
    system: &System,
    outcome: Outcome,
    statistics: Statistics,
    digest: String,
    markers: Vec<MarkerEvent>,
    console: String,
) -> Report {
    let ticks_per_second = system.platform.ticks_per_second();
    let clock = system.platform.tiles[system.platform.tiles.len() - 1]
        .pipeline
        .clock
        .frequency
        .0;
    Report {
        code: match outcome {
            Outcome::Exit { code, .. } => Some(code),
            Outcome::Limit => None,
            other => panic!("the machine stopped: {other:?}\n{console}"),
        },
        console,
        statistics,
        digest,
        cycle: ticks_per_second / clock,
        markers: markers
            .iter()
            .map(|m| (m.at, m.tile, m.activity, m.kind, m.value))
            .collect(),
    }
}
