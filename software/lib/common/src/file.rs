//! The protocol of the file service.
//!
//! Why it exists: names, sizes and handles travel in messages; the bytes of files go through memory endpoints that the
//! service grants over the session, and only clients without one send them in messages. What it deliberately does not know:
//! how files are stored.

use crate::message::padded;
use crate::requests;
use crate::status::Status;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub use bulkhead_abi::file::{CREATE, PATH, READ, TRUNCATE, WRITE};

use bulkhead_abi::file::{CLOSE, COMMIT, OPEN};

/// Bytes that one message can carry.
pub const INLINE: usize = 216;
/// Pieces of an open file that a client can access at once over its session: with another one, the service takes back the oldest.
pub const PIECES: usize = 4;
/// Maximum bytes of a name.
pub const NAME: usize = 56;

/// [`Opened::kind`] and others: a file.
pub const FILE: u64 = 1;
/// A folder.
pub const FOLDER: u64 = 2;

requests! {
    /// Opens a file.
    Open = OPEN -> Opened {
        /// [`READ`], [`WRITE`], [`CREATE`], [`TRUNCATE`].
        flags: u64,
        /// The path, padded with zeros.
        path: [u8; PATH],
    }
    /// Closes a file.
    Close = CLOSE -> u64 {
        /// The handle.
        handle: u64,
    }
    /// Asks about a file or folder.
    Stat = 3 -> Info {
        /// The path.
        path: [u8; PATH],
    }
    /// Asks for an entry of a folder.
    List = 4 -> Listed {
        /// 0, or [`Listed::next`] of the entry before.
        position: u64,
        /// The path of the folder; zeros: the root folder.
        path: [u8; PATH],
    }
    /// Makes a folder.
    MakeFolder = 5 -> u64 {
        /// The path.
        path: [u8; PATH],
    }
    /// Removes a file that no client has open, or an empty folder.
    Remove = 6 -> u64 {
        /// The path.
        path: [u8; PATH],
    }
    /// Sets the length of a file. Bytes that were transferred before are durable from then on, even if the server dies. Replies
    /// with the size.
    Commit = COMMIT -> u64 {
        /// The handle.
        handle: u64,
        /// Bytes; not fewer than before, and not more than the granted blocks hold.
        size: u64,
    }
    /// Reads a few bytes.
    Read = 8 -> Piece {
        /// The handle.
        handle: u64,
        /// The first byte.
        offset: u64,
        /// Bytes, at most [`INLINE`].
        length: u64,
    }
    /// Writes a few bytes; they are durable when the reply comes. Replies with the file's size.
    Write = 9 -> u64 {
        /// The handle.
        handle: u64,
        /// The first byte.
        offset: u64,
        /// The bytes.
        piece: Piece,
    }
}

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Opened {
    /// The handle for later requests.
    pub handle: u64,
    /// Bytes.
    pub size: u64,
}

/// Kind, size and extents of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Info {
    /// [`FILE`] or [`FOLDER`].
    pub kind: u64,
    /// Bytes.
    pub size: u64,
    /// Extents.
    pub extents: u64,
}

/// An entry of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Listed {
    /// Where the search for the next one begins.
    pub next: u64,
    /// Its kind, size and extents.
    pub info: Info,
    /// Its name, padded with zeros.
    pub name: [u8; NAME],
}

/// A few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Piece {
    /// How many.
    pub length: u64,
    /// The bytes, then zeros.
    pub bytes: [u8; INLINE],
}

impl Piece {
    /// The first bytes of `data`.
    pub fn new(data: &[u8]) -> Self {
        let length = data.len().min(INLINE);
        let mut bytes = [0; INLINE];
        bytes[..length].copy_from_slice(&data[..length]);
        Self {
            length: length as u64,
            bytes,
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`Status::BadRequest`] if there are not as many.
    pub fn data(&self) -> Result<&[u8], Status> {
        let length = usize::try_from(self.length).map_err(|_| Status::BadRequest)?;
        self.bytes.get(..length).ok_or(Status::BadRequest)
    }
}

/// A path as requests carry it.
///
/// # Errors
/// [`Status::BadRequest`] if it is too long or holds a zero.
pub fn path(path: &str) -> Result<[u8; PATH], Status> {
    // The root folder has the empty path, too.
    if path.is_empty() {
        Ok([0; PATH])
    } else {
        padded(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::BODY_MAX;

    #[test]
    fn everything_fits_a_message() {
        for size in [
            size_of::<Open>(),
            size_of::<List>(),
            size_of::<Write>(),
            size_of::<Listed>(),
            size_of::<Piece>(),
        ] {
            assert!(size <= BODY_MAX, "{size}");
        }
    }

    #[test]
    fn pieces_and_paths_that_are_none() {
        assert_eq!(Piece::new(b"abc").data(), Ok(&b"abc"[..]));
        let bad = Piece {
            length: INLINE as u64 + 1,
            bytes: [0; INLINE],
        };
        assert_eq!(bad.data(), Err(Status::BadRequest));
        assert_eq!(path(""), Ok([0; PATH]));
        assert!(path(&"x".repeat(PATH)).is_ok());
        assert_eq!(path(&"x".repeat(PATH + 1)), Err(Status::BadRequest));
        assert_eq!(path("a\0b"), Err(Status::BadRequest));
    }
}
