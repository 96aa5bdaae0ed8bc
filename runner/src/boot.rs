//! Puts a system into one chip, as a boot ROM would leave it, and starts its harts.
//!
//! What it deliberately does not know: what is in the memories, and what runs.

use crate::error::Error;
use crate::image::BootImage;
use crate::paradigm::Paradigm;
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::machine::Machine;
use bulkhead_model::System;

/// A chip with `system` in its memory, as a boot ROM would leave it.
pub fn boot(paradigm: &dyn Paradigm, system: &System, image: &BootImage) -> Result<Machine, Error> {
    boot_as(paradigm, system, image, None)
}

/// Like [`boot`]; with `first`, the chip is the peer of that system's chip.
pub fn boot_as(
    paradigm: &dyn Paradigm,
    system: &System,
    image: &BootImage,
    first: Option<&System>,
) -> Result<Machine, Error> {
    let config = crate::convert::convert_system(system, first);
    boot_on(paradigm, system, image, &config)
}

/// Like [`boot`], on a chip that is a variant of the system's.
pub fn boot_on(
    paradigm: &dyn Paradigm,
    system: &System,
    image: &BootImage,
    config: &PlatformConfig,
) -> Result<Machine, Error> {
    let machine_error = |error: &dyn std::fmt::Display| Error::Machine(error.to_string());
    let mut machine = Machine::new(config)?;
    for piece in &image.pieces {
        machine
            .load_memory(piece.memory, piece.offset, &piece.bytes)
            .map_err(|error| machine_error(&error))?;
    }
    for piece in &image.tiles {
        machine
            .load_tile(piece.tile, piece.address, &piece.bytes)
            .map_err(|error| machine_error(&error))?;
    }
    for (device, bytes) in &image.contents {
        machine
            .load_storage(*device, bytes)
            .map_err(|error| machine_error(&error))?;
    }
    for (tile, rules) in &image.guards {
        machine
            .set_guard(*tile, rules)
            .map_err(|error| machine_error(&error))?;
    }
    paradigm.prepare(system, &mut machine)?;
    for &(tile, address) in &image.tohost {
        machine
            .set_tohost(tile, address)
            .map_err(|error| machine_error(&error))?;
    }
    for start in &image.starts {
        let [first, second] = start.arguments;
        let mut clusters = config.clusters();
        let is_cluster = clusters.any(|(tile, _)| tile.id == start.tile);
        let started = match is_cluster {
            true => {
                let hart = (start.tile, start.hart.into());
                machine.start_cluster_hart(hart, start.entry, first, second)
            }
            false => machine.start_hart(start.tile, start.entry, first, second),
        };
        started.map_err(|error| machine_error(&error))?;
    }
    Ok(machine)
}
