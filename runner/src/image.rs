//! The memory contents of a chip when it starts, and which harts start.
//!
//! Why it exists: every paradigm lays out its own bytes, and a chip accepts them all in the same way. What it deliberately does
//! not know: what the bytes are.

use bulkhead_machine::local_tile::GuardRule;

/// Bytes for the memories, and the harts that start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootImage {
    /// Bytes for the memories. All other bytes are zero.
    pub pieces: Vec<Piece>,
    /// Bytes for the local memories of tiles. All other bytes there are zero.
    pub tiles: Vec<TilePiece>,
    /// Where consoles in memory are: the tile, and the address there.
    pub rings: Vec<(u16, u64)>,
    /// The rules of the guards of local memories, by tile. All other guards are open.
    pub guards: Vec<(u16, Vec<GuardRule>)>,
    /// Words through which programs report their exit (HTIF), by tile.
    pub tohost: Vec<(u16, u64)>,
    /// Contents of storage devices, by number. What they do not fill is 0.
    pub contents: Vec<(u16, Vec<u8>)>,
    /// Harts that start. All others wait.
    pub starts: Vec<Start>,
}

/// Bytes in a tile's local memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TilePiece {
    /// The tile.
    pub tile: u16,
    /// Address as seen by the tile's hart.
    pub address: u64,
    /// The bytes there.
    pub bytes: Vec<u8>,
}

/// Bytes in a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The memory tile.
    pub memory: u16,
    /// Offset in it.
    pub offset: u64,
    /// The bytes there.
    pub bytes: Vec<u8>,
}

/// A hart that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its tile.
    pub tile: u16,
    /// Its position in the tile: 0 except in a cluster.
    pub hart: u16,
    /// First instruction, tile-physical.
    pub entry: u64,
    /// The values in `a0` and `a1`.
    pub arguments: [u64; 2],
}
