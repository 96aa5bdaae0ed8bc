//! The kernel's effects on the machine.
//!
//! Why it exists: with this trait, tests on the host can run the kernel's decisions. What it deliberately does not know: the
//! reasons for the effects.

use bulkhead_abi::dtu::{ENDPOINT_WORDS, Endpoint};
use bulkhead_abi::marker::{Asker, Begins};
use bulkhead_abi::syscall::REPLY_WORDS;
use bulkhead_abi::tilemux::{Request, TileMuxError};
use bulkhead_abi::words::{Name, Words};
use bulkhead_capabilities::Memory;

/// A piece of a memory tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The memory tile.
    pub tile: u16,
    /// First byte in it.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

impl Region {
    /// The region of a capability.
    pub const fn of(memory: &Memory) -> Self {
        Self {
            tile: memory.tile,
            base: memory.base,
            size: memory.size,
        }
    }
}

/// The right to answer a call, as the unit keeps it.
pub type Right = [u64; ENDPOINT_WORDS];

/// Effects on tiles. They are carried out at once and in order.
pub trait Hardware {
    /// Configures an endpoint of a tile.
    fn set_endpoint(&mut self, tile: u16, endpoint: u16, value: Endpoint);
    /// The configuration of an endpoint of a tile.
    fn endpoint(&mut self, tile: u16, endpoint: u16) -> Endpoint;
    /// Invalidates `count` endpoints of a tile, from `first` on, and drops their messages. Nothing leaves through them any more, and
    /// no reply reaches them.
    fn invalidate(&mut self, tile: u16, first: u16, count: u16);
    /// Whether a packet that left through an endpoint of a tile before its invalidation is still in transit: a message that the
    /// receiver has neither stored nor refused, or an access to memory that has not been answered.
    fn is_under_way(&mut self, tile: u16, endpoint: u16) -> bool;
    /// Begins to write back and evict this many lines of a tile's caches (at most [`bulkhead_abi::dtu::WRITE_BACK_LINES`]), starting
    /// at a tile-physical address. No other command of this kind may be in progress at the tile.
    fn write_back(&mut self, tile: u16, physical: u64, lines: u16);
    /// Whether memory has not yet received all lines to be written back at a tile.
    fn is_writing_back(&mut self, tile: u16) -> bool;
    /// Sets a token bucket of a tile: bytes per second, bytes at once.
    fn set_bucket(&mut self, tile: u16, bucket: u8, rate: u64, limit: u64);
    /// Lets machine mode of a tile borrow this many bytes from its token buckets.
    fn set_borrowed(&mut self, tile: u16, bytes: u64);
    /// Gives the device of a tile to an activity: its receive endpoint, and first virtual address, tile-physical address and bytes
    /// of the memory that the device may use. With 0 bytes, no activity has the device.
    fn give_device(&mut self, tile: u16, owner: (u16, u16), memory: (u64, u64, u64));
    /// Starts the hart of a tile at a tile-physical address.
    fn start_hart(&mut self, tile: u16, address: u64);
    /// Stops the hart of a tile for good.
    fn stop_hart(&mut self, tile: u16);
    /// Sends a request to a tile's TileMux on behalf of an asker; its answer will carry `number`. Returns false if that is impossible
    /// because TileMux has not taken the last request.
    fn request(&mut self, tile: u16, request: Request, number: u64, asker: Option<Asker>) -> bool;
    /// The next answer of a TileMux: the number of the request, and the answer.
    fn answer(&mut self) -> Option<(u64, TileMuxError)>;
    /// Sends words to an endpoint of a tile, with a share of its slots; the answer will carry `label`. Returns false if the receiver does
    /// not exist or has no room.
    fn ask(&mut self, to: ((u16, u16), u32), words: &[u64], label: u64) -> bool;
    /// Takes the right to answer the call of a priority at an offset, and frees its slot.
    fn park(&mut self, level: usize, offset: u32) -> Right;
    /// Answers a call whose slot was freed.
    fn answer_parked(&mut self, right: Right, reply: &Words<REPLY_WORDS>);
    /// Reads from a region, a page at most.
    fn read(&mut self, region: Region, offset: u64, buffer: &mut [u8]);
    /// Writes to a region, a page at most.
    fn write(&mut self, region: Region, offset: u64, data: &[u8]);
    /// Fills a region with zeros, a page at most.
    fn clear(&mut self, region: Region);
    /// Reports to the simulator, by markers, which activity begins on which tile and what its creator calls it.
    fn announce(&mut self, begins: Begins, name: &Name);
    /// Nanoseconds since reset.
    fn time(&mut self) -> u64;
}
