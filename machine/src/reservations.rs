//! A memory that performs requests: loads, stores, and atomic operations with reservations.
//!
//! Why it exists: local memories and external memory perform the same requests of harts on a mesh, each request at one moment. What it
//! deliberately does not know: when that moment is, and what the request costs.

use crate::hart::{LineBytes, RemoteOperation, modify};
use crate::types::TileId;

/// Reservations of eight bytes, at most one per tile.
#[derive(Clone, Debug, Default)]
pub struct Reservations(Vec<(TileId, u64)>);

/// The eight bytes around an offset.
const fn word(offset: u64) -> u64 {
    offset & !7
}

impl Reservations {
    /// At least one byte is written: reservations there end.
    #[inline]
    pub fn end(&mut self, offset: u64, bytes: u64) {
        if !self.0.is_empty() {
            let written = word(offset)..=word(offset + bytes - 1);
            self.0.retain(|(_, at)| !written.contains(at));
        }
    }

    /// A tile reserves the eight bytes around an offset.
    pub fn reserve(&mut self, tile: TileId, offset: u64) {
        self.0.retain(|(by, _)| *by != tile);
        self.0.push((tile, word(offset)));
    }

    /// Whether a tile's reservation is valid for an offset.
    pub fn has(&self, tile: TileId, offset: u64) -> bool {
        self.0.contains(&(tile, word(offset)))
    }

    /// Ends a tile's reservation. Returns whether it was still valid for this offset.
    pub fn take(&mut self, tile: TileId, offset: u64) -> bool {
        let kept = self.has(tile, offset);
        self.0.retain(|(by, _)| *by != tile);
        kept
    }

    /// Writes the low bytes of a value. Reservations there end.
    #[inline]
    pub fn write(&mut self, memory: &mut [u8], offset: u64, bytes: u8, value: u64) {
        self.end(offset, bytes.into());
        LineBytes::write(memory, offset, bytes, value);
    }

    /// Performs a tile's request on a memory. Returns the value for the answer.
    pub fn perform(
        &mut self,
        memory: &mut [u8],
        tile: TileId,
        offset: u64,
        bytes: u8,
        operation: RemoteOperation,
    ) -> u64 {
        match operation {
            RemoteOperation::Load => LineBytes::read(memory, offset, bytes),
            RemoteOperation::Store(value) => {
                self.write(memory, offset, bytes, value);
                0
            }
            RemoteOperation::Reserve => {
                self.reserve(tile, offset);
                LineBytes::read(memory, offset, bytes)
            }
            RemoteOperation::Conditional(value) => {
                let kept = self.take(tile, offset);
                if kept {
                    self.write(memory, offset, bytes, value);
                }
                u64::from(!kept)
            }
            RemoteOperation::Modify(function, operand) => {
                let old = LineBytes::read(memory, offset, bytes);
                let value = modify(function, bytes, old, operand);
                self.write(memory, offset, bytes, value);
                old
            }
        }
    }
}
