//! What a boot ROM would have placed in memory: kernel, boot table, modules.
//!
//! Why it exists: the tiled OS starts only from bytes in the first memory tile. What it deliberately does not know: what
//! the kernel does with them.

use crate::error::Error;
use crate::image::{BootImage, Piece, Start};
use crate::programs::Program;
use bulkhead_abi::boot::{
    BOOT_MAGIC, BOOT_VERSION, BootHeader, BootModule, BootTile, MODULE_NAME, TILE_MEMORY,
    TILE_PROCESSING,
};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::tilemux as abi;
use bulkhead_machine::image::Image;
use bulkhead_model::System;
use bulkhead_model::system::TilePolicy;
use zerocopy::IntoBytes;

/// Modules and free memory start at multiples of this.
const PAGE: u64 = 4096;
/// Name of the module with the description.
pub const DESCRIPTION: &str = "system.xml";

/// Lays out the kernel and its modules. `modules` are loadable programs by name.
pub fn assemble(
    system: &System,
    kernel: &Program,
    modules: &[Program],
    description: &str,
) -> Result<BootImage, Error> {
    let memory = system
        .platform
        .memories
        .first()
        .ok_or_else(|| Error::Machine("the platform has no memory tile".to_owned()))?;
    let image = Image::parse(&kernel.name, &kernel.elf)
        .map_err(|error| Error::Machine(error.to_string()))?;
    let mut pieces = Vec::new();
    let mut end = 0;
    for segment in &image.segments {
        let offset = segment.address.checked_sub(MEMORY_BASE).ok_or_else(|| {
            Error::Machine(format!(
                "the kernel has a segment at {:#x}, below the memory",
                segment.address
            ))
        })?;
        end = end.max(offset + segment.size);
        pieces.push((offset, segment.data.clone()));
    }
    let table = end.next_multiple_of(PAGE);
    let count = modules.len() + 1;
    let bytes = size_of::<BootHeader>()
        + size_of::<BootTile>() * (system.platform.tiles.len() + system.platform.memories.len())
        + size_of::<BootModule>() * count;
    let mut next = (table + bytes as u64).next_multiple_of(PAGE);
    let mut entries = Vec::new();
    let contents = modules
        .iter()
        .map(|program| (program.name.as_str(), program.elf.as_slice()))
        .chain([(DESCRIPTION, description.as_bytes())]);
    for (name, data) in contents {
        entries.push(module(name, next, data.len() as u64)?);
        pieces.push((next, data.to_vec()));
        next = (next + data.len() as u64).next_multiple_of(PAGE);
    }
    if next >= memory.size.0 {
        return Err(Error::input(
            format!(
                "kernel and programs take {next} bytes, the first memory tile has {}",
                memory.size.0
            ),
            "give the platform a larger memory, or use fewer programs",
        ));
    }
    pieces.push((table, boot_table(system, &entries, (next, memory.size.0))));
    let piece = |(offset, bytes)| Piece {
        memory: memory.id,
        offset,
        bytes,
    };
    Ok(BootImage {
        tiles: Vec::new(),
        rings: Vec::new(),
        guards: Vec::new(),
        contents: Vec::new(),
        pieces: pieces.into_iter().map(piece).collect(),
        tohost: Vec::new(),
        starts: vec![Start {
            tile: system.kernel_tile,
            hart: 0,
            entry: image.entry,
            arguments: [system.kernel_tile.into(), MEMORY_BASE + table],
        }],
    })
}

fn module(name: &str, offset: u64, size: u64) -> Result<BootModule, Error> {
    let mut bytes = [0; MODULE_NAME];
    if name.len() >= MODULE_NAME {
        return Err(Error::input(
            format!(
                "the program name `{name}` has more than {} bytes",
                MODULE_NAME - 1
            ),
            "use a shorter path",
        ));
    }
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    Ok(BootModule {
        name: bytes,
        offset,
        size,
    })
}

fn boot_table(
    system: &System,
    modules: &[BootModule],
    (free_start, free_end): (u64, u64),
) -> Vec<u8> {
    let platform = &system.platform;
    let processing = platform.tiles.iter().map(|tile| BootTile {
        id: tile.id.into(),
        kind: TILE_PROCESSING,
        frequency: tile.pipeline.clock.frequency.0,
        endpoints: tile.dtu.as_ref().map_or(0, |dtu| dtu.endpoints),
        harts: tile.harts,
        policy: match system.tilemux(tile.id).policy {
            TilePolicy::Throughput => abi::TilePolicy::Throughput as u32,
            TilePolicy::Realtime => abi::TilePolicy::Realtime as u32,
        },
        slice: (system.tilemux(tile.id).slice.0 / 1000) as u32,
        line: tile.l1d.as_ref().map_or(0, |cache| cache.line.into()),
        ..BootTile::default()
    });
    let memories = platform.memories.iter().map(|memory| BootTile {
        id: memory.id.into(),
        kind: TILE_MEMORY,
        memory: memory.size.0,
        ..BootTile::default()
    });
    let tiles: Vec<BootTile> = processing.chain(memories).collect();
    let root = system.managers.first();
    let header = BootHeader {
        magic: BOOT_MAGIC,
        version: BOOT_VERSION,
        tiles: tiles.len() as u32,
        modules: modules.len() as u32,
        manager_tile: root.map_or(0, |manager| manager.tile.into()),
        manager_memory: root.map_or(0, |manager| manager.memory.0),
        timebase: platform.timebase.0,
        free_start,
        free_end,
        heap: system.kernel_heap(),
    };
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(tiles.iter().flat_map(|tile| tile.as_bytes().to_vec()));
    bytes.extend(modules.iter().flat_map(|module| module.as_bytes().to_vec()));
    bytes
}
