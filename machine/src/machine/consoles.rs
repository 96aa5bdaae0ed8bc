//! Consoles of a chip's tiles.
//!
//! Why it exists: a program may print forever, and a chip may have a thousand tiles; what the host keeps of all of them together is
//! limited, and each tile has its own part of that. What it deliberately does not know: who prints what.

use super::{Machine, MachineError};
use crate::cluster_tile::ClusterTile;
use crate::device::uart::{OUTPUT_MAX, Uart};
use crate::types::TileId;

/// Maximum bytes of output kept of all tiles together. A chip of up to four consoles keeps [`OUTPUT_MAX`] of each; a chip of 1024 consoles
/// keeps 64 KiB of each.
const CONSOLES_MAX: usize = 1 << 26;

impl Machine {
    /// Divides the room for output among the consoles.
    pub(super) fn divide_consoles(&mut self) {
        let with = self.config.tiles.iter().filter(|tile| tile.uart);
        let tiles: Vec<TileId> = with.map(|tile| tile.id).collect();
        let room = (CONSOLES_MAX / tiles.len().max(1)).min(OUTPUT_MAX);
        for tile in tiles {
            let Ok(Some(uart)) = self.uart_mut(tile) else {
                panic!("tile {tile} has no console, and its configuration says that it has one")
            };
            uart.keep(room);
        }
    }

    fn uart(&self, tile: TileId) -> Result<Option<&Uart>, MachineError> {
        Ok(match (self.mesh.tile(tile), self.cluster(tile)) {
            (Some(local), _) => local.uart(),
            (_, Some(cluster)) => cluster.uart(),
            _ => self.tile(tile)?.uart(),
        })
    }

    fn uart_mut(&mut self, tile: TileId) -> Result<Option<&mut Uart>, MachineError> {
        Ok(match self.mesh.position(tile) {
            Some(position) => self.mesh.tiles[position].uart_mut(),
            None if self.cluster(tile).is_some() => {
                self.cluster_mut(tile).and_then(ClusterTile::uart_mut)
            }
            None => self.tile_mut(tile)?.uart_mut(),
        })
    }

    /// The output of a tile; empty without a console.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn console(&self, tile: TileId) -> Result<&[u8], MachineError> {
        Ok(self.uart(tile)?.map_or(&[], Uart::output))
    }

    /// Bytes of a tile's output that were not kept, because its part of the host's room was full.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn console_lost(&self, tile: TileId) -> Result<u64, MachineError> {
        Ok(self.uart(tile)?.map_or(0, Uart::lost))
    }

    /// Gives a tile's console bytes to read; ignored without a console.
    ///
    /// # Errors
    /// If there is no such tile.
    pub fn feed_console(&mut self, tile: TileId, bytes: &[u8]) -> Result<(), MachineError> {
        if let Some(uart) = self.uart_mut(tile)? {
            uart.feed(bytes);
        }
        Ok(())
    }
}
