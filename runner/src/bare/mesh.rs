//! Programs on the tiles of a mesh.
//!
//! Why it exists: each tile runs its own program from its own memory, loaded as a host would load it before starting the harts. What
//! it deliberately does not know: what the programs are, and whether they know of each other.

use super::{Booted, Options, crashed, program, run};
use crate::error::Error;
use crate::observed::printed;
use crate::progress::Progress;
use bulkhead_abi::memory_map::{MEMORY_BASE, TILE_WINDOWS};
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::image::Image;
use bulkhead_machine::machine::{Machine, Outcome};
use std::fmt::Write;

/// Boots the programs, each on its tiles. All harts with a program start together.
pub(super) fn boot(
    options: &Options<'_>,
    config: &PlatformConfig,
    first: (Image, Vec<u8>),
    progress: &dyn Progress,
) -> Result<Booted, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let mut programs = vec![first];
    let tiles: Vec<u16> = config.tiles.iter().map(|tile| tile.id).collect();
    // The number of the program of each tile, in the order of loading.
    let mut placed = vec![(tiles[0], 0)];
    for &(from, to, elf) in options.others {
        let number = programs.len();
        programs.push(program(elf)?);
        for tile in from..=to {
            if !tiles.contains(&tile) {
                return Err(Error::input(
                    format!("the platform {} has no tile {tile}", config.name),
                    format!("it has {} tiles, from {} on", tiles.len(), tiles[0]),
                ));
            }
            if placed.iter().any(|(other, _)| *other == tile) {
                return Err(Error::input(
                    format!("tile {tile} gets two programs"),
                    "name it once; the first tile gets the program without a number",
                ));
            }
            placed.push((tile, number));
        }
    }
    let mut machine = Machine::new(config)?;
    for &(tile, number) in &placed {
        load(&mut machine, tile, &programs[number].0)?;
    }
    for &(tile, number) in &placed {
        let image = &programs[number].0;
        if let Some(tohost) = image.tohost() {
            machine
                .set_tohost(tile, tohost)
                .map_err(|error| failed(&error))?;
        }
        let core = machine.core(tile).unwrap_or(0);
        machine
            .start_hart(tile, image.entry, core, 0)
            .map_err(|error| failed(&error))?;
    }
    let ran = run(&mut machine, config, options, progress)?;
    let console = consoles(&machine, &tiles).map_err(|error| failed(&error))?;
    let ended_at = match ran.outcome {
        Outcome::Unhandled { tile, .. } => Some(tile),
        _ => None,
    };
    let crash = match ended_at.and_then(|tile| placed.iter().find(|(t, _)| *t == tile)) {
        Some(&(_, number)) => crashed(&machine, ran.outcome, &programs[number].1),
        // Another tile started its hart; no program describes what runs there.
        None => None,
    };
    ran.booted(
        ended_at.unwrap_or(tiles[0]),
        options.max_cycles,
        console,
        crash,
    )
}

/// Puts a program where its segments say, using addresses as seen by the tile's hart.
fn load(machine: &mut Machine, tile: u16, image: &Image) -> Result<(), Error> {
    for segment in &image.segments {
        // Bytes that are not in the file are zero and must also have room.
        let mut bytes = segment.data.clone();
        let size = usize::try_from(segment.size).unwrap_or(usize::MAX);
        let room = |error: &dyn std::fmt::Display| {
            Error::input(
                format!("{}, for tile {tile}: {error}", image.name),
                format!(
                    "link it to the local memory from {MEMORY_BASE:#x} on, to a tile's window from {TILE_WINDOWS:#x} on, or to external memory"
                ),
            )
        };
        if size > LARGEST {
            return Err(room(&format!(
                "a segment of {size} bytes fits no local memory"
            )));
        }
        bytes.resize(size.max(bytes.len()), 0);
        machine
            .load_tile(tile, segment.address, &bytes)
            .map_err(|error| room(&error))?;
    }
    Ok(())
}

/// Maximum bytes of a segment: external memory, with room to spare.
const LARGEST: usize = 1 << 30;

/// The output of the tiles: unchanged if only one printed, otherwise each line with its tile.
pub(super) fn consoles(
    machine: &Machine,
    tiles: &[u16],
) -> Result<String, bulkhead_machine::machine::MachineError> {
    let mut all = Vec::new();
    for &tile in tiles {
        let text = printed(machine, tile)?;
        if !text.is_empty() {
            all.push((tile, text));
        }
    }
    if let [(_, text)] = &mut all[..] {
        return Ok(std::mem::take(text));
    }
    let mut together = String::new();
    for (tile, text) in &all {
        for line in text.lines() {
            // Writing to a string cannot fail.
            let _ = writeln!(together, "tile {tile}: {line}");
        }
    }
    Ok(together)
}
