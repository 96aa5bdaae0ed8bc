//! Boots an image of the one-shot RTOS on the platform `single` for a test and says what happened.
//!
//! Why it exists: tests ask about jobs, spans and the ring in memory. What it deliberately does not know: what is expected.

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

/// An image that was run.
pub struct OneShot {
    /// How it ended.
    pub outcome: Outcome,
    /// What it printed to the tile's console.
    pub console: String,
    /// What its ring said at the end.
    pub ring: Ring,
    /// Ticks of the machine in a cycle.
    pub cycle: u64,
    /// Digest over all that happened.
    pub digest: [u8; 32],
    markers: Vec<Marker>,
}

/// What the kernel said of its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// These tasks are ready, as a set.
    Release(u64),
    /// The job of a task begins.
    Begin(u64),
    /// It has ended.
    End(u64),
    /// It has had more than its budget.
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

/// Runs an image for some cycles at most.
pub fn run(name: &str, cycles: u64) -> OneShot {
    let platform =
        load_platform(Path::new("single"), &LoadOptions::default()).expect("it is there");
    let config = convert(&platform);
    let tile = config.tiles[0].id;
    let cycle = config.tiles[0].hart.ticks_per_cycle;
    let elf = image(name);
    let image = Image::parse(name, &elf).expect("a program");
    let mut machine = Machine::new(&config).expect("a chip");
    for segment in &image.segments {
        assert!(
            segment.address + segment.size <= MEMORY_BASE + IMAGE_SIZE,
            "beyond a core's memory"
        );
        machine
            .load_tile(tile, segment.address, &segment.data)
            .expect("memory is there");
    }
    machine.start_hart(tile, image.entry, 0, 0).expect("a hart");
    let ticks = cycles * cycle;
    let outcome = machine.run(RunLimit { ticks }, None);
    let mut memory = vec![0; IMAGE_SIZE as usize];
    machine
        .peek(tile, MEMORY_BASE, &mut memory)
        .expect("memory is there");
    let at = memory
        .windows(4)
        .rposition(|word| word == b"RING")
        .unwrap_or(0);
    OneShot {
        outcome,
        console: String::from_utf8_lossy(machine.console(tile).expect("a console")).into_owned(),
        ring: read(&memory[at..]),
        cycle,
        digest: machine.digest(),
        markers: machine.markers(),
    }
}

impl OneShot {
    /// What the kernel said, with the cycle of each.
    pub fn events(&self) -> Vec<(u64, Event)> {
        let event = |at: &Marker| {
            Some(match at.kind {
                marker::RELEASE => Event::Release(at.value),
                marker::BEGIN => Event::Begin(at.value),
                marker::END => Event::End(at.value),
                marker::OVERRUN => Event::Overrun(at.value),
                marker::STOPPED => Event::Stopped(at.value),
                _ => return None,
            })
        };
        let events = self.markers.iter();
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
