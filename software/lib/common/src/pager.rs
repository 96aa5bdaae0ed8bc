//! The protocol of pagers, as their clients speak it.
//!
//! Why it exists: a client can have a file appear in its memory. What it deliberately does not know: page faults; TileMux reports those
//! (see `bulkhead_abi::pager`).

use crate::file::PATH;
use crate::requests;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

requests! {
    /// Lets a file appear in the client's memory. Each page is a copy of what the file held when the page was first used;
    /// as long as it is not changed, it may be read from the file again.
    MapFile = 1 -> Placed {
        /// The path, padded with zeros.
        path: [u8; PATH],
    }
    /// Asks how many pages were given, and how many can still be.
    Count = 2 -> Counted {}
    /// Gives pages back, at most [`GIVE_BACK`]: those of the heap are zeros when they are used again, those of a file what it holds.
    GiveBack = 3 -> u64 {
        /// Address of the first one.
        address: u64,
        /// How many.
        pages: u64,
    }
}

/// Pages that can be given back with one request: others wait for no more.
pub const GIVE_BACK: u64 = 32;

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
    /// Left of those.
    pub left: u64,
    /// Used by it and perhaps by others.
    pub shared: u64,
}
