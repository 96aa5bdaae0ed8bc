//! Where the tightly coupled memories of a chip are among physical addresses.
//!
//! Why it exists: the sender of a request must know the tile that has the bytes, and must refuse an address without a target before the
//! request leaves. What it deliberately does not know: the sender.

use crate::config::PlatformConfig;
use crate::hart::RemoteOperation;
use crate::noc::{PacketKind, Transaction};
use crate::types::TileId;
use bulkhead_abi::memory_map::{TCM_BASE, TCM_WINDOW};
use std::sync::Arc;

/// The windows of all tiles that have such memories, in the order of the configuration.
#[derive(Clone, Debug)]
pub struct TcmMap {
    /// For each tile: its number on the network, and the bytes of its memories together.
    tiles: Arc<[(TileId, u64)]>,
}

impl TcmMap {
    /// The map of a platform.
    pub fn new(platform: &PlatformConfig) -> Self {
        let bytes = |tile: &crate::config::TileConfig| -> u64 {
            tile.tcm.iter().map(|memory| memory.size).sum()
        };
        let tiles = platform.tiles.iter().map(|tile| (tile.id, bytes(tile)));
        Self {
            tiles: tiles.filter(|(_, size)| *size != 0).collect(),
        }
    }

    /// No tile has such memories.
    pub fn is_empty(&self) -> bool {
        self.tiles.is_empty()
    }

    /// The first address of a tile's memories; `None`: it has none.
    pub fn base(&self, tile: TileId) -> Option<u64> {
        let place = self.tiles.iter().position(|one| one.0 == tile)?;
        Some(TCM_BASE + place as u64 * TCM_WINDOW)
    }

    /// The tile that has all bytes of a range, and the offset in its memories.
    pub fn find(&self, physical: u64, bytes: u64) -> Option<(TileId, u64)> {
        let place = physical.checked_sub(TCM_BASE)?;
        let (tile, size) = self.tiles.get((place / TCM_WINDOW) as usize)?;
        let offset = place % TCM_WINDOW;
        (offset + bytes <= *size).then_some((*tile, offset))
    }

    /// The tile of an address, and a hart's request for aligned bytes there; `None` if no memory has the address.
    pub fn request(
        &self,
        physical: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> Option<(TileId, PacketKind, Transaction)> {
        let (tile, address) = self.find(physical, bytes.into())?;
        let transaction = match operation {
            RemoteOperation::Load => Transaction::RemoteLoad,
            RemoteOperation::Store(_) => Transaction::RemoteStore,
            _ => Transaction::RemoteAtomic,
        };
        let kind = PacketKind::Remote {
            address,
            bytes,
            register: false,
            operation,
        };
        Some((tile, kind, transaction))
    }
}
