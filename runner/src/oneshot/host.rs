//! The data of a host core: the images of the other cores in external memory, the list of what it copies and starts, and its reports.
//!
//! Why it exists: with a host core, the loader of the run fills external memory and starts one core; everything else happens on the chip. What it
//! deliberately does not know: how the host core works.

use super::images::{Filled, RING};
use super::layout;
use crate::error::Error;
use crate::image::{BootImage, Piece, Start, TilePiece};
use crate::paradigm::Said;
use crate::programs::Program;
use bulkhead_abi::memory_map::{
    EXTERNAL_MEMORY, MEMORY_BASE, TILE_REGISTERS, TILE_START, TILE_WINDOW_SHIFT, TILE_WINDOWS,
};
use bulkhead_abi::one_shot::host::{
    BROKEN, BUSY, BUSY_RING, CORE_WORDS, HEADER_WORDS, PATIENCE, PIECE_WORDS, SILENT,
};
use bulkhead_abi::one_shot::marker;
use bulkhead_machine::image::Image;
use bulkhead_model::System;
use bulkhead_model::system::OneShot;
use bulkhead_report::result::{Incident, IncidentKind};

/// Bytes of a word.
const WORD: usize = 8;

/// Moves what the loader would put into cores to where the host core finds it. The master of the clocks starts last, the others in the order of their
/// numbers.
///
/// # Errors
/// If the host's image is missing or does not fit.
pub fn hand_over(
    boot: &mut BootImage,
    system: &System,
    one_shot: &OneShot,
    host: u16,
    programs: &[Program],
) -> Result<(), Error> {
    let name = Filled::host(system).name();
    let program = programs.iter().find(|program| program.name == name);
    let program = program.ok_or_else(|| Error::Machine(format!("the {name} was not built")))?;
    let memory = system.platform.memories.first();
    let memory = memory.ok_or_else(|| Error::Machine("no external memory".to_owned()))?;
    let number = |core: u16| u64::from(layout::number(system, core));
    let window = |core: u16| TILE_WINDOWS + (number(core) << TILE_WINDOW_SHIFT);
    let pieces: Vec<TilePiece> = std::mem::take(&mut boot.tiles)
        .into_iter()
        .filter_map(without_zeros)
        .collect();
    let mut starts = std::mem::take(&mut boot.starts);
    let master = one_shot.master(&system.platform);
    starts.sort_by_key(|start| (master == Some(start.tile), start.tile));
    let words = HEADER_WORDS + PIECE_WORDS * pieces.len() as u64 + CORE_WORDS * starts.len() as u64;
    let mut list = vec![starts.len() as u64, pieces.len() as u64];
    let mut images: Vec<u8> = Vec::new();
    let first = EXTERNAL_MEMORY + words * WORD as u64;
    for piece in &pieces {
        list.extend([
            window(piece.tile) + (piece.address - MEMORY_BASE),
            first + images.len() as u64,
            piece.bytes.len() as u64,
        ]);
        images.extend(&piece.bytes);
    }
    for start in &starts {
        let ring = boot.rings.iter().find(|one| one.0 == start.tile);
        let ring = ring.map_or(0, |(_, address)| {
            window(start.tile) + (address - MEMORY_BASE)
        });
        list.extend([
            window(start.tile) + TILE_REGISTERS + TILE_START,
            start.entry,
            ring,
            RING,
            number(start.tile) | u64::from(start.tile) << 16,
        ]);
    }
    let mut bytes: Vec<u8> = list.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(images);
    if bytes.len() as u64 > memory.size.0 {
        return Err(Error::input(
            format!(
                "the images of {} cores need {} bytes, and memory {} has {}",
                starts.len(),
                bytes.len(),
                memory.id,
                memory.size
            ),
            "write a larger size=\"...\" of the <memory>",
        ));
    }
    boot.pieces.push(Piece {
        memory: memory.id,
        offset: 0,
        bytes,
    });
    boot.rings.clear();
    let image = Image::parse(&program.name, &program.elf)
        .map_err(|error| Error::Machine(error.to_string()))?;
    for segment in &image.segments {
        boot.tiles.push(TilePiece {
            tile: host,
            address: segment.address,
            bytes: segment.data.clone(),
        });
    }
    boot.starts.push(Start {
        tile: host,
        hart: 0,
        entry: image.entry,
        arguments: [number(host), 0],
    });
    Ok(())
}

/// Whole words up to the last byte that is not zero: memory begins as zero.
fn without_zeros(mut piece: TilePiece) -> Option<TilePiece> {
    let end = piece.bytes.iter().rposition(|byte| *byte != 0)? + 1;
    piece.bytes.resize(end.next_multiple_of(WORD), 0);
    Some(piece)
}

/// What the host core tells of the consoles of others.
pub fn incidents(system: &System, one_shot: &OneShot, seen: &Said<'_>) -> Vec<Incident> {
    let Some(host) = one_shot.host else {
        return Vec::new();
    };
    let told = |event: &crate::measure::MarkerEvent| {
        if event.kind != marker::HOST_TOLD || event.tile != host {
            return None;
        }
        let mut cores = one_shot.cores().into_iter();
        let number = |core: &u16| u64::from(layout::number(system, *core)) == event.value & 0xFFFF;
        let core = cores.find(number)?;
        let what = match event.value >> 16 {
            SILENT => format!("it had not started {PATIENCE} ticks after the host core {host}"),
            BROKEN => format!(
                "something wrote over its console; the host core {host} shows no more of it"
            ),
            BUSY_RING => format!(
                "its console changed during {BUSY} successive reads by the host core {host}"
            ),
            _ => return None,
        };
        let tasks = one_shot.on_core(core).into_iter();
        let tasks: Vec<&str> = tasks
            .map(|task| one_shot.tasks.tasks[task].name.as_str())
            .collect();
        Some(Incident {
            crash: None,
            kind: IncidentKind::Stopped,
            at: Some(event.at),
            tile: core,
            application: format!("core {core} ({})", tasks.join(", ")),
            what,
        })
    };
    seen.markers.iter().filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_zeros_are_not_copied() {
        let of = |bytes: &[u8]| {
            let piece = TilePiece {
                tile: 0,
                address: 0,
                bytes: bytes.to_vec(),
            };
            without_zeros(piece).map(|piece| piece.bytes)
        };
        assert_eq!(of(&[0; 9]), None);
        assert_eq!(of(&[1, 0, 0]), Some(vec![1, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(
            of(&[0, 0, 0, 0, 0, 0, 0, 0, 5]).map(|bytes| bytes.len()),
            Some(16)
        );
    }
}
