//! The contents of memory when a system without a kernel starts.
//!
//! Why it exists: each program is put where the description says, with a device tree that describes its part of the chip. What it
//! deliberately does not know: why a program is there, and what it does.

use super::device_tree::Part;
use crate::convert::convert;
use crate::error::Error;
use crate::image::{BootImage, Piece, Start, TilePiece};
use crate::modules::content_name;
use crate::moved::{Moved, placed};
use crate::programs::Program;
use bulkhead_abi::bare::{ARGUMENTS, ENVIRONMENT, Environment, MAGIC, STACK, TREE_ALIGNMENT};
use bulkhead_abi::plic::source;
use bulkhead_machine::config::PlatformConfig;
use bulkhead_machine::local_tile::core_of;
use bulkhead_model::System;
use bulkhead_model::platform::{PeripheralKind, PlatformKind};
use bulkhead_model::system::bare::{Attached, Coupled, Placed};
use bulkhead_model::system::{App, Bare};
use zerocopy::IntoBytes;

/// Moves a program to its place.
///
/// # Errors
/// If it is not a program for the chip, or does not fit there.
pub(super) fn moved(app: &App, its: &Placed, program: &Program) -> Result<Moved, Error> {
    placed((&program.name, &program.elf), its.base, its.size)
        .map_err(|(error, help)| Error::input(format!("application {}: {error}", app.name), help))
}

/// The whole memory.
///
/// # Errors
/// If a program was not built, or does not fit.
pub(super) fn image(
    system: &System,
    bare: &Bare,
    programs: &[Program],
) -> Result<BootImage, Error> {
    let config = convert(&system.platform);
    let mut boot = BootImage::default();
    for (app, placed) in system.apps.iter().zip(&bare.programs) {
        let mut all = programs.iter();
        let program = all
            .find(|program| program.name == app.program)
            .ok_or_else(|| Error::Machine(format!("the program {} was not built", app.program)))?;
        add(&mut boot, (system, &config), (app, placed), program)?;
        for attached in &placed.attached {
            if attached.file.is_some() {
                boot.contents.push(content(system, attached, programs)?);
            }
        }
    }
    Ok(boot)
}

/// The content of a storage device, with zeros up to its size.
fn content(
    system: &System,
    attached: &Attached,
    programs: &[Program],
) -> Result<(u16, Vec<u8>), Error> {
    let id = attached.peripheral;
    let name = content_name(id);
    let mut all = programs.iter();
    let file = all.find(|program| program.name == name);
    let file = file.ok_or_else(|| Error::Machine(format!("the content of {id} was not read")))?;
    let mut peripherals = system.platform.peripherals.iter();
    let size = peripherals.find_map(|one| match one.kind {
        PeripheralKind::Storage { size, .. } if one.id == id => Some(size),
        _ => None,
    });
    let size = size.ok_or_else(|| Error::Machine(format!("peripheral {id} has no content")))?;
    if file.elf.len() as u64 > size.0 {
        return Err(Error::input(
            format!(
                "{}: {} bytes are more than the {size} of peripheral {id}",
                attached.file.as_deref().unwrap_or_default(),
                file.elf.len()
            ),
            "take a smaller file, or write a larger size=\"...\" at the <peripheral>",
        ));
    }
    let mut bytes = file.elf.clone();
    bytes.resize(size.0 as usize, 0);
    Ok((id, bytes))
}

/// Where a program finds its peripherals: the registers of each, and its number at the interrupt controller.
fn found(system: &System, placed: &Placed) -> Vec<String> {
    let platform = &system.platform;
    let of = |attached: &Attached| {
        let place = platform
            .peripherals
            .iter()
            .position(|one| one.id == attached.peripheral)?;
        let base = platform.peripheral_base(attached.peripheral)?;
        let number = source((platform.engines.len() + place) as u32, 0);
        let name = &platform.peripherals[place].name;
        Some([format!("{name}={base}"), format!("{name}-source={number}")])
    };
    placed.attached.iter().filter_map(of).flatten().collect()
}

/// Where a program finds the doorbells, the number of its tile's first hart at the interrupt controller, and the first hart of each program
/// that it may ring.
fn bells(system: &System, app: &App) -> Vec<String> {
    let platform = &system.platform;
    let place = system.apps.iter().position(|one| one.name == app.name);
    let (Some(bare), Some(place)) = (&system.bare, place) else {
        return Vec::new();
    };
    let page = platform.doorbells_base().zip(platform.doorbells_place());
    let Some((base, part)) = page.filter(|_| bare.has_bells(place)) else {
        return Vec::new();
    };
    let rung = bare.programs[place].rings.iter().map(|other| {
        let placed = &bare.programs[*other];
        let first = placed.harts.first().copied().unwrap_or(0);
        platform.bell(system.apps[*other].tile, first).to_string()
    });
    let rung: Vec<String> = rung.collect();
    vec![
        format!("doorbells={base}"),
        format!("doorbells-source={}", source(part, 0)),
        format!("bells={}", rung.join(",")),
    ]
}

fn add(
    boot: &mut BootImage,
    (system, config): (&System, &PlatformConfig),
    (app, placed): (&App, &Placed),
    program: &Program,
) -> Result<(), Error> {
    let Moved { image, .. } = moved(app, placed, program)?;
    let tile = config.tiles.iter().find(|tile| tile.id == app.tile);
    let tile = tile.ok_or_else(|| Error::Machine(format!("there is no tile {}", app.tile)))?;
    let number = |hart: u16| match (&tile.cluster, core_of(config, app.tile)) {
        (Some(cluster), _) => cluster
            .harts
            .get(usize::from(hart))
            .copied()
            .map_or(0, u64::from),
        (None, core) => core.unwrap_or(0),
    };
    let harts: Vec<u64> = placed.harts.iter().map(|hart| number(*hart)).collect();
    let arguments = app.arguments.iter();
    let arguments: Vec<String> = arguments
        .map(|one| format!("{}={}", one.name, one.value))
        .collect();
    let bells = bells(system, app);
    let ports: &[u16] = match bells.is_empty() {
        true => &[],
        false => &placed.harts,
    };
    let line = [arguments, found(system, placed), bells];
    let line = line.concat().join(" ");
    let mut memory = vec![(placed.base, placed.size)];
    memory.extend(&placed.more);
    let part = Part {
        tile,
        harts: &harts,
        memory: &memory,
        arguments: &line,
        bells: ports,
    };
    let tree = part.tree(config)?;
    let mut environment = Environment {
        magic: MAGIC,
        harts: harts.len() as u32,
        console: tile.uart.into(),
        length: line.len() as u64,
        stacks: match placed.tcm {
            Some(Coupled::Stack { base, size }) => base + size,
            _ => 0,
        },
        arguments: [0; ARGUMENTS],
    };
    let Some(place) = environment.arguments.get_mut(..line.len()) else {
        return Err(Error::input(
            format!(
                "application {}: its arguments have {} characters",
                app.name,
                line.len()
            ),
            format!(
                "a program without a kernel takes {ARGUMENTS}, with `=` and the spaces between"
            ),
        ));
    };
    place.copy_from_slice(line.as_bytes());
    let end = placed.base + placed.size;
    let at = end.saturating_sub(tree.len() as u64) & !(TREE_ALIGNMENT - 1);
    let stacks = match placed.tcm {
        Some(Coupled::Stack { .. }) => 0,
        _ => STACK * harts.len() as u64,
    };
    let memory_tile = system.platform.memory(app.memory_tile);
    let is_coloured = memory_tile.is_some_and(|memory| memory.dropped != 0);
    let inside = placed.tcm == Some(Coupled::Program);
    let needed = stacks + ENVIRONMENT;
    let last = image
        .segments
        .iter()
        .map(|one| one.address + one.size)
        .max();
    let last = last.unwrap_or(placed.base);
    if last.saturating_add(needed) > at {
        let lacking = last + needed - at;
        return Err(Error::input(
            format!(
                "application {}: its memory of {} lacks {lacking} bytes for its program, its device tree and {STACK} bytes of stack for each hart",
                app.name, app.memory
            ),
            match system.platform.kind {
                PlatformKind::Mesh => "take a smaller program: it has the local memory of its tile",
                _ if is_coloured => {
                    "take a smaller program: behind an address translator, memory of one colour is contiguous only up to the lowest dropped bit, and a program without page tables must fit there"
                }
                _ if inside => {
                    "take a smaller program, or write tcm=\"stack\": it must fit into the tightly coupled memories of its tile"
                }
                PlatformKind::Tiled | PlatformKind::Bare => "write a larger memory=\"...\"",
            },
        ));
    }
    let segments = image
        .segments
        .iter()
        .map(|one| (one.address, one.data.clone()));
    let beside = [
        (at, tree),
        (at - ENVIRONMENT, environment.as_bytes().to_vec()),
    ];
    for (address, bytes) in segments.chain(beside) {
        match system.platform.kind {
            PlatformKind::Tiled | PlatformKind::Bare if !inside => boot.pieces.push(Piece {
                memory: app.memory_tile,
                offset: placed.offset + (address - placed.base),
                bytes,
            }),
            _ => boot.tiles.push(TilePiece {
                tile: app.tile,
                address,
                bytes,
            }),
        }
    }
    if let Some(tohost) = image.tohost() {
        if boot.tohost.iter().any(|(tile, _)| *tile == app.tile) {
            return Err(Error::input(
                format!(
                    "application {}: two programs of tile {} have a `tohost`",
                    app.name, app.tile
                ),
                "a tile has one: let the program use the exit device and the console instead",
            ));
        }
        boot.tohost.push((app.tile, tohost));
    }
    boot.starts.extend(
        placed
            .harts
            .iter()
            .zip(&harts)
            .map(|(&hart, &number)| Start {
                tile: app.tile,
                hart,
                entry: image.entry,
                arguments: [number, at],
            }),
    );
    Ok(())
}
