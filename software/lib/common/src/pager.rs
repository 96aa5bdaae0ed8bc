//! The protocol between pagers and their clients.
//!
//! Why it exists: a client can map a file into its memory. What it deliberately does not know: page faults; TileMux reports those
//! (see `bulkhead_abi::pager`).

use crate::file::PATH;
use crate::requests;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

requests! {
    /// Maps a file into the client's memory. Each page is a copy of the file's contents when the page was first used; until the
    /// client changes it, it may be read from the file again.
    MapFile = 1 -> Placed {
        /// The path, padded with zeros.
        path: [u8; PATH],
    }
    /// Asks how many pages were given, and how many more can be.
    Count = 2 -> Counted {}
    /// Gives pages back, at most [`GIVE_BACK`]: when they are used again, pages of the heap are zero, and pages of a file have the
    /// file's contents.
    GiveBack = 3 -> u64 {
        /// Address of the first one.
        address: u64,
        /// How many.
        pages: u64,
    }
}

/// Maximum pages that one request gives back; it limits how long other requests wait.
pub const GIVE_BACK: u64 = 2;

/// Where a file appears.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Placed {
    /// Address of the first byte.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// Pages of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counted {
    /// Given to it alone.
    pub given: u64,
    /// Number that can still be given.
    pub left: u64,
    /// Used by it and perhaps by others.
    pub shared: u64,
}
