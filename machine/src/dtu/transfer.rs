//! A transfer in chunks, as data.
//!
//! Why it exists: messages and memory transfers differ in what a chunk carries, not in how chunks are counted and bounded.
//! It does not decide when a chunk moves on.

use super::endpoints::ReplyRight;
use crate::noc::packet::Transaction;
use crate::types::{Tick, TileId};
use bulkhead_abi::dtu::{CHUNK_MAX, DtuError};
use bulkhead_abi::message::{HEADER_SIZE, Header};

/// Low bits of a tag that number the chunk; a page has `PAGE_SIZE / CHUNK_MAX` chunks.
pub const CHUNK_BITS: u32 = 3;

/// Where a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing was done for it.
    Todo,
    /// Its data is being read from or written to local memory.
    Local,
    /// Its data is there, and it may be charged.
    Ready,
    /// It waits for the token bucket.
    Waiting,
    /// It was sent, and its answer is awaited.
    Network,
    /// It is finished; also a sent part of a message that is not answered.
    Done,
}

#[derive(Clone, Debug)]
pub struct Chunk {
    /// Position in the payload.
    pub offset: u64,
    /// Bytes of payload.
    pub bytes: u32,
    /// Bytes that are charged: with the header, where the chunk carries it.
    pub charged: u32,
    pub stage: Stage,
    pub data: Option<Box<[u8]>>,
}

/// What gave the right to send a message.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    Send { endpoint: u16, generation: u32 },
    Reply(ReplyRight),
}

#[derive(Clone, Debug)]
pub enum Target {
    Message {
        endpoint: u16,
        header: Header,
        credit_endpoint: u16,
        origin: Origin,
    },
    Memory {
        address: u64,
        endpoint: u16,
        generation: u32,
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
    /// Why no further chunk is to leave.
    pub stop: Option<DtuError>,
}

impl Transfer {
    /// Data comes from the network into local memory.
    pub fn inbound(&self) -> bool {
        matches!(self.target, Target::Memory { read: true, .. })
    }

    pub fn under_way(&self) -> u32 {
        let idle = |chunk: &&Chunk| !matches!(chunk.stage, Stage::Todo | Stage::Done);
        self.chunks.iter().filter(idle).count() as u32
    }
}

/// Number of a message while it is under way: the sender's tile and the tag without the chunk.
pub fn flow(tile: TileId, tag: u32) -> u64 {
    u64::from(tile) << 32 | u64::from(tag >> CHUNK_BITS)
}

/// Cuts a message so that no packet carries more than a chunk of header and payload.
pub fn split_message(payload: u64) -> Vec<Chunk> {
    let (header, chunk) = (HEADER_SIZE as u64, CHUNK_MAX as u64);
    let total = payload + header;
    (0..total.div_ceil(chunk))
        .map(|i| {
            let (start, end) = (i * chunk, ((i + 1) * chunk).min(total));
            let first = start.max(header);
            Chunk {
                offset: first - header,
                bytes: (end - first) as u32,
                charged: (end - start) as u32,
                stage: Stage::Todo,
                data: None,
            }
        })
        .collect()
}

/// Cuts a memory transfer into chunks.
pub fn split_memory(size: u64) -> Vec<Chunk> {
    let chunk = CHUNK_MAX as u64;
    (0..size.div_ceil(chunk))
        .map(|i| {
            let bytes = (size - i * chunk).min(chunk) as u32;
            Chunk {
                offset: i * chunk,
                bytes,
                charged: bytes,
                stage: Stage::Todo,
                data: None,
            }
        })
        .collect()
}
