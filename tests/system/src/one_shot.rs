//! Boots images of the one-shot RTOS for a test, one per tile, and reports what happened.
//!
//! Why it exists: the tests are about jobs, spans and the ring in memory. What it deliberately does not know: the expected
//! results.

use bulkhead_abi::marker::MarkerKind;
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::one_shot::{IMAGE_SIZE, marker};
use bulkhead_machine::image::Image;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_machine::observe::Marker;
use bulkhead_model::{LoadOptions, load_platform};
use bulkhead_runner::convert::convert;
use bulkhead_runner::oneshot::console::{Ring, read};
use bulkhead_runner::place;
use bulkhead_runner::programs::Library;
use std::collections::BTreeMap;
use std::path::Path;

/// What the workloads `switches` measure: number of spans, name, and the paper's average in cycles of its 600 MHz
/// (`targets/m2os.toml`).
pub const SWITCHES: [(u64, &str, f64); 8] = [
    (0, "read the clock", 81.0),
    (1, "suspension: delay until", 358.0),
    (2, "suspension: object", 207.0),
    (3, "suspension: entry", 260.0),
    (4, "suspension: entry with a parameter", 329.0),
    (12, "activation: object", 356.0),
    (13, "activation: entry", 419.0),
    (14, "activation: entry with a parameter", 442.0),
];

/// Minimum, average and maximum of some spans.
pub fn summary(spans: &[u64]) -> (u64, f64, u64) {
    let sum: u64 = spans.iter().sum();
    let average = sum as f64 / spans.len() as f64;
    (
        spans.iter().copied().min().unwrap_or(0),
        average,
        spans.iter().copied().max().unwrap_or(0),
    )
}

/// Images that were run.
pub struct OneShot {
    /// How it ended.
    pub outcome: Outcome,
    /// What the first one's tile printed.
    pub console: String,
    /// The contents of the rings at the end, in the order of tiles.
    pub rings: Vec<Ring>,
    /// Ticks of the machine in a cycle.
    pub cycle: u64,
    /// Digest of everything that happened.
    pub digest: [u8; 32],
    markers: Vec<Marker>,
}

/// An event that the kernel reported about its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// These tasks are ready because of a tick, as a set.
    Release(u64),
    /// These tasks are ready because of what they wait for, as a set.
    Event(u64),
    /// The job of a task begins.
    Begin(u64),
    /// It has ended.
    End(u64),
    /// Its job has exceeded its budget.
    Overrun(u64),
    /// The task stopped for ever.
    Stopped(u64),
}

/// The image of a workload.
pub fn image(name: &str) -> Vec<u8> {
    let root = place::root().expect("a checkout");
    let library = Library::new(&root, Path::new(".")).expect("cargo works");
    let mut programs = library.build([name]).expect("it builds");
    programs.remove(0).elf
}

/// Runs an image on the platform `single`, for at most this many cycles.
pub fn run(name: &str, cycles: u64) -> OneShot {
    run_on("single", &[(0, name)], cycles)
}

/// Runs images on the tiles of a platform, for at most this many cycles.
pub fn run_on(platform: &str, placed: &[(u16, &str)], cycles: u64) -> OneShot {
    let platform = load_platform(Path::new(platform), &LoadOptions::default());
    let config = convert(&platform.expect("it is there"));
    let cycle = config.tiles[0].hart.ticks_per_cycle;
    let mut names: Vec<&str> = placed.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.dedup();
    let images: BTreeMap<&str, Image> = names
        .into_iter()
        .map(|name| (name, Image::parse(name, &image(name)).expect("a program")))
        .collect();
    let mut machine = Machine::new(&config).expect("a chip");
    for (tile, name) in placed {
        let image = &images[name];
        for segment in &image.segments {
            let end = segment.address + segment.size;
            assert!(end <= MEMORY_BASE + IMAGE_SIZE, "beyond a core's memory");
            let loaded = machine.load_tile(*tile, segment.address, &segment.data);
            loaded.expect("memory is there");
        }
        let core = machine.core(*tile).unwrap_or(0);
        let started = machine.start_hart(*tile, image.entry, core, 0);
        started.expect("a hart");
    }
    let ticks = cycles * cycle;
    let outcome = machine.run(RunLimit { ticks }, None);
    let rings = placed
        .iter()
        .map(|(tile, _)| ring(&machine, *tile))
        .collect();
    let console = machine.console(placed[0].0).expect("a console");
    OneShot {
        outcome,
        console: String::from_utf8_lossy(console).into_owned(),
        rings,
        cycle,
        digest: machine.digest(),
        markers: machine.markers(),
    }
}

/// The ring of a tile: the last thing in its image.
fn ring(machine: &Machine, tile: u16) -> Ring {
    let mut memory = vec![0; IMAGE_SIZE as usize];
    let peeked = machine.peek(tile, MEMORY_BASE, &mut memory);
    peeked.expect("memory is there");
    let at = memory.windows(4).rposition(|word| word == b"RING");
    read(&memory[at.unwrap_or(0)..])
}

impl OneShot {
    /// The kernel's events, each with its cycle.
    pub fn events(&self) -> Vec<(u64, Event)> {
        let first = self.markers.first().map_or(0, |marker| marker.tile);
        self.events_of(first)
    }

    /// The same of one tile.
    pub fn events_of(&self, tile: u16) -> Vec<(u64, Event)> {
        let event = |at: &Marker| {
            Some(match at.kind {
                marker::RELEASE => Event::Release(at.value),
                marker::EVENT => Event::Event(at.value),
                marker::BEGIN => Event::Begin(at.value),
                marker::END => Event::End(at.value),
                marker::OVERRUN => Event::Overrun(at.value & 0xFF),
                marker::STOPPED => Event::Stopped(at.value),
                _ => return None,
            })
        };
        let events = self.markers.iter().filter(|at| at.tile == tile);
        events
            .filter_map(|at| Some((at.tick / self.cycle, event(at)?)))
            .collect()
    }

    /// Cycles of all spans by their number, in the order of their ends.
    pub fn spans(&self) -> BTreeMap<u64, Vec<u64>> {
        let mut open = BTreeMap::new();
        let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for marker in &self.markers {
            if marker.kind == MarkerKind::SpanBegin as u16 {
                open.insert(marker.value, marker.tick);
            } else if marker.kind == MarkerKind::SpanEnd as u16
                && let Some(begin) = open.remove(&marker.value)
            {
                let cycles = (marker.tick - begin) / self.cycle;
                all.entry(marker.value).or_default().push(cycles);
            }
        }
        all
    }
}
