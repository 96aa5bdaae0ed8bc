//! A transfer in chunks, as data.
//!
//! Why it exists: messages and memory transfers differ in what a chunk carries, not in how chunks are counted and bounded. It
//! does not decide when a chunk advances.

use super::endpoints::ReplyRight;
use crate::noc::packet::Transaction;
use crate::types::{Tick, TileId};
use bulkhead_abi::dtu::{CHUNK_MAX, DtuError};
use bulkhead_abi::message::{HEADER_SIZE, Header};

/// Low bits of a tag, which number the chunk; a page has `PAGE_SIZE / CHUNK_MAX` chunks.
pub const CHUNK_BITS: u32 = 3;

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing has been done for it.
    Todo,
    /// Its data is being read from or written to local memory.
    Local,
    /// Its data is available, and it may be charged.
    Ready,
    /// It waits for the token bucket.
    Waiting,
    /// It was sent and waits for its answer.
    Network,
    /// It is finished. A part of a message that is not answered is finished once it is sent.
    Done,
}

#[derive(Clone, Debug)]
pub struct Chunk {
    /// Position in the payload.
    pub offset: u64,
    /// Bytes of payload.
    pub bytes: u32,
    /// Bytes that are charged: those of all blocks that the chunk touches, including the header if the chunk carries it.
    pub charged: u32,
    pub stage: Stage,
    pub data: Option<Box<[u8]>>,
}

/// The origin of the right to send a message.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    Send { endpoint: u16, generation: u64 },
    Reply(ReplyRight),
}

#[derive(Clone, Debug)]
pub enum Target {
    Message {
        endpoint: u16,
        header: Header,
        credit_endpoint: u16,
        epoch: u64,
        origin: Origin,
    },
    Memory {
        address: u64,
        endpoint: u16,
        generation: u64,
        transaction: Transaction,
        read: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Transfer {
    pub destination: TileId,
    pub target: Target,
    /// Tile-physical address of the data.
    pub physical: u64,
    pub chunks: Vec<Chunk>,
    /// When the waiting chunk asked for its tokens.
    pub asked: Tick,
    /// Why no further chunk may leave.
    pub stop: Option<DtuError>,
}

impl Transfer {
    /// Data comes from the network into local memory.
    pub fn inbound(&self) -> bool {
        matches!(self.target, Target::Memory { read: true, .. })
    }

    /// The chunk that waits for its tokens.
    pub fn waiting(&self) -> Option<&Chunk> {
        self.chunks.iter().find(|c| c.stage == Stage::Waiting)
    }

    pub fn under_way(&self) -> u32 {
        let idle = |chunk: &&Chunk| !matches!(chunk.stage, Stage::Todo | Stage::Done);
        self.chunks.iter().filter(idle).count() as u32
    }
}

/// Number of a message in transit: the sender's tile and the tag without the chunk.
pub fn flow(tile: TileId, tag: u32) -> u64 {
    u64::from(tile) << 32 | u64::from(tag >> CHUNK_BITS)
}

/// Bytes of the blocks that a range touches. A memory processes a whole block even for one byte.
fn touched(start: u64, end: u64, block: u32) -> u32 {
    let block = u64::from(block.max(1));
    let first = start / block * block;
    (end.saturating_sub(first))
        .div_ceil(block)
        .saturating_mul(block) as u32
}

/// Splits a message so that no packet carries more than one chunk of header and payload. It is charged as if it started at a
/// block boundary.
pub fn split_message(payload: u64, block: u32) -> Vec<Chunk> {
    let (header, chunk) = (HEADER_SIZE as u64, CHUNK_MAX as u64);
    let total = payload + header;
    (0..total.div_ceil(chunk))
        .map(|i| {
            let (start, end) = (i * chunk, ((i + 1) * chunk).min(total));
            let first = start.max(header);
            Chunk {
                offset: first - header,
                bytes: (end - first) as u32,
                charged: touched(start, end, block),
                stage: Stage::Todo,
                data: None,
            }
        })
        .collect()
}

/// Splits a memory transfer at `address` of the memory into chunks.
pub fn split_memory(address: u64, size: u64, block: u32) -> Vec<Chunk> {
    let chunk = CHUNK_MAX as u64;
    (0..size.div_ceil(chunk))
        .map(|i| {
            let bytes = (size - i * chunk).min(chunk) as u32;
            let start = address.saturating_add(i * chunk);
            Chunk {
                offset: i * chunk,
                bytes,
                charged: touched(start, start.saturating_add(bytes.into()), block),
                stage: Stage::Todo,
                data: None,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charges(chunks: &[Chunk]) -> Vec<(u32, u32)> {
        chunks.iter().map(|c| (c.bytes, c.charged)).collect()
    }

    #[test]
    fn whole_blocks_are_charged() {
        let memory = |address, size| charges(&split_memory(address, size, 64));
        assert_eq!(memory(0, 1), [(1, 64)]);
        assert_eq!(memory(63, 2), [(2, 128)]);
        assert_eq!(memory(128, 1024), [(512, 512), (512, 512)]);
        // 512 bytes that begin within a block touch nine.
        assert_eq!(memory(8, 520), [(512, 576), (8, 64)]);
        assert_eq!(memory(u64::MAX - 1, 1), [(1, 64)]);
        // A byte with its 32-byte header is one block; 2016 bytes with the header are four chunks.
        assert_eq!(charges(&split_message(1, 64)), [(1, 64)]);
        assert_eq!(charges(&split_message(33, 64)), [(33, 128)]);
        let long = charges(&split_message(2016, 64));
        assert_eq!(long.iter().map(|c| c.1).sum::<u32>(), 2048);
    }
}
