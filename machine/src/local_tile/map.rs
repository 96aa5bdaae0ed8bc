//! The target of a chip-global address.
//!
//! Why it exists: each tile's interface must know where an access goes, and refuse it if it has no target, before any part of it
//! leaves the tile. The map is the same for all tiles. What it deliberately does not know: the local alias, which each tile adds
//! itself.

use crate::config::{PlatformConfig, Topology};
use crate::types::TileId;
use bulkhead_abi::memory_map::{
    CORE_BITS, EXTERNAL_MEMORY, TILE_REGISTERS, TILE_REGISTERS_SIZE, TILE_WINDOW_SHIFT,
    TILE_WINDOWS,
};

/// The target of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A tile's local memory, at this offset.
    Memory(TileId, u64),
    /// A tile's register page, at this offset; its DMA engine has this many channels.
    Register(TileId, u64, u32),
    /// External memory, at this offset.
    External(TileId, u64),
}

/// A tile of the map.
#[derive(Clone, Copy, Debug)]
struct Core {
    tile: TileId,
    /// Bytes of its memory.
    size: u64,
    /// Channels of its DMA engine.
    channels: u32,
}

/// The chip-global map.
#[derive(Clone, Debug)]
pub struct AddressMap {
    /// By core number.
    cores: Vec<Option<Core>>,
    /// The external memory and its size.
    external: Option<(TileId, u64)>,
}

/// The number of the core at a router of a mesh.
pub fn core(topology: Topology, router: u16) -> u64 {
    let columns = match topology {
        Topology::Mesh { columns, .. } | Topology::StarMesh { columns, .. } => columns,
        Topology::Crossbar => u16::MAX,
    };
    u64::from(router / columns) << CORE_BITS | u64::from(router % columns)
}

/// The number of a tile's core: row and column of its router, as in chip addresses. `None`: the tile has no local memory.
pub fn core_of(config: &PlatformConfig, tile: TileId) -> Option<u64> {
    let found = config.tiles.iter().find(|one| one.id == tile)?;
    found.local_memory.as_ref()?;
    Some(core(config.network.topology, found.router))
}

impl AddressMap {
    /// The map of a chip with a valid configuration.
    pub fn new(config: &PlatformConfig) -> Self {
        let mut cores = vec![None; 1 << (2 * CORE_BITS)];
        for tile in &config.tiles {
            if let Some(memory) = &tile.local_memory {
                let core = core(config.network.topology, tile.router);
                cores[core as usize] = Some(Core {
                    tile: tile.id,
                    size: memory.size,
                    channels: tile.dma.as_ref().map_or(0, |dma| dma.channels),
                });
            }
        }
        Self {
            cores,
            external: config.memories.first().map(|m| (m.id, m.size)),
        }
    }

    /// The target of an access of `bytes` bytes; `None` if there is none.
    pub fn find(&self, physical: u64, bytes: u64) -> Option<Target> {
        let within = |offset: u64, size: u64| {
            let end = offset.checked_add(bytes);
            end.is_some_and(|end| end <= size)
        };
        if let Some(offset) = physical.checked_sub(EXTERNAL_MEMORY) {
            let (tile, size) = self.external?;
            return within(offset, size).then_some(Target::External(tile, offset));
        }
        let place = physical.checked_sub(TILE_WINDOWS)?;
        let core = self.cores.get((place >> TILE_WINDOW_SHIFT) as usize)?;
        let Core {
            tile,
            size,
            channels,
        } = (*core)?;
        let offset = place & ((1 << TILE_WINDOW_SHIFT) - 1);
        match offset.checked_sub(TILE_REGISTERS) {
            Some(register) => {
                let target = Target::Register(tile, register, channels);
                within(register, TILE_REGISTERS_SIZE).then_some(target)
            }
            None => within(offset, size).then_some(Target::Memory(tile, offset)),
        }
    }
}
