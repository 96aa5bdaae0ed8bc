//! The protocol of pagers, as their clients speak it.
//!
//! Why it exists: a client can have a file appear in its memory. What it deliberately does not know: page faults; those are told by
//! TileMux (see `bulkhead_abi::pager`).

use crate::file::PATH;
use crate::requests;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

requests! {
    /// Lets a file appear in the client's memory. Each page is a copy of what the file held when the page was first used.
    MapFile = 1 -> Placed {
        /// The path, padded with zeros.
        path: [u8; PATH],
    }
    /// Asks how many pages were given, and how many can still be.
    Count = 2 -> Counted {}
}

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
    /// Given.
    pub given: u64,
    /// Left.
    pub left: u64,
}
