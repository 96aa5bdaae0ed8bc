//! Images that are run for their measurements: spans by number, and the sizes of images.
//!
//! Why it exists: a reproduction runs single images on the tiles of a mesh, without a description. What it deliberately does not know: what
//! the spans are.

use super::footprint::Footprint;
use crate::convert::convert;
use crate::error::Error;
use crate::place;
use crate::programs::{Library, Program};
use crate::progress::{Progress, Stage};
use bulkhead_abi::marker::MarkerKind;
use bulkhead_machine::image::Image;
use bulkhead_machine::machine::{Machine, Outcome, RunLimit};
use bulkhead_model::{LoadOptions, load_platform};
use std::collections::BTreeMap;
use std::path::Path;

/// Cycles of spans by their number, in the order of their ends.
pub type Spans = BTreeMap<u64, Vec<u64>>;

/// The programs of these names.
///
/// # Errors
/// If one does not build.
fn programs<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Vec<Program>, Error> {
    let root = place::root()?;
    Library::new(&root, Path::new("."))?.build(names)
}

/// The size of an image.
///
/// # Errors
/// If it does not build, or is not an image.
pub fn footprint(name: &str) -> Result<Footprint, Error> {
    let built = programs([name])?;
    let one = built.first().map_or(&[][..], |program| &program.elf);
    Footprint::of(name, one)
}

/// Runs images on the tiles of a platform until one ends the run, with a limit of cycles. Returns the spans of the first image's tile.
///
/// # Errors
/// If something does not build or fit, or no image ends the run with success.
pub fn spans(
    platform: &str,
    placed: &[(u16, &str)],
    cycles: u64,
    progress: &dyn Progress,
) -> Result<Spans, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let what = placed.first().map_or("", |one| one.1);
    let platform = load_platform(platform, &LoadOptions::default())?;
    let config = convert(&platform);
    let cycle = config.tiles[0].hart.ticks_per_cycle;
    let built = programs(placed.iter().map(|(_, name)| *name))?;
    let mut machine = Machine::new(&config)?;
    for (tile, name) in placed {
        let program = built.iter().find(|program| program.name == *name);
        let elf = program.map_or(&[][..], |program| &program.elf);
        let image = Image::parse(name, elf).map_err(|error| failed(&error))?;
        for segment in &image.segments {
            machine
                .load_tile(*tile, segment.address, &segment.data)
                .map_err(|error| failed(&error))?;
        }
        let core = machine.core(*tile).unwrap_or(0);
        machine
            .start_hart(*tile, image.entry, core, 0)
            .map_err(|error| failed(&error))?;
    }
    let microsecond = (config.ticks_per_second / 1_000_000).max(1);
    let ticks = cycles.saturating_mul(cycle);
    let mut report = |now: u64| {
        progress.stage(Stage::Simulation {
            name: what,
            microseconds: now / microsecond,
            of: ticks / microsecond,
        });
    };
    let outcome = machine.run(RunLimit { ticks }, Some(&mut report));
    progress.stage(Stage::Done { name: what });
    if !matches!(outcome, Outcome::Exit { code: 0, .. }) {
        return Err(Error::Machine(format!("{what} ended with {outcome:?}")));
    }
    let tile = placed.first().map_or(0, |one| one.0);
    let mut open = BTreeMap::new();
    let mut all = Spans::new();
    for marker in machine
        .markers()
        .iter()
        .filter(|marker| marker.tile == tile)
    {
        if marker.kind == MarkerKind::SpanBegin as u16 {
            open.insert(marker.value, marker.tick);
        } else if marker.kind == MarkerKind::SpanEnd as u16
            && let Some(begin) = open.remove(&marker.value)
        {
            let spans = all.entry(marker.value).or_default();
            spans.push((marker.tick - begin) / cycle);
        }
    }
    Ok(all)
}
