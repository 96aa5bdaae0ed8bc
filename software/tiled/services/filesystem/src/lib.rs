//! A file system of extents in a region of memory, with a redo log.
//!
//! Why it exists: a file is a sequence of few large extents, so a client can get a memory endpoint onto each and transfer data
//! without the server. What it deliberately does not know: clients, gates, handles; the place of the region (a [`Store`]).
//!
//! Promise: if the store writes in order, an acknowledged operation survives a crash of the server at any later point, and any
//! other operation happens completely or not at all. That holds for names, sizes and extents, and for the zeros of fresh blocks.
//! Clients write the bytes of files themselves; these are stored when the transfer has ended.
//!
//! Every operation touches a bounded number of blocks; see [`FileSystem`].
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod accounts;
mod allocate;
mod charge;
mod check;
mod files;
mod layout;
mod operations;
mod path;
mod pieces;
mod reserve;
mod serve;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_accounts;
#[cfg(test)]
mod tests_fuzz;
#[cfg(test)]
mod tests_refusals;
#[cfg(test)]
mod tests_serve;
#[cfg(test)]
mod tests_steps;
mod transaction;

pub use accounts::Account;
pub use bulkhead_common::status::Status;
pub use check::Summary;
pub use files::{Entry, FileSystem, Stat};
pub use layout::{
    BLOCK, Extent, GROW_MAX, GROWTH, IMAGE_BLOCKS_MAX, Kind, NAME_MAX, ROOT, size_for,
};
pub use path::{Name, Path};
pub use pieces::{Grant, Lending};
pub use reserve::RESERVE;
pub use serve::{Files, HANDLES, Refusal};

/// Result of an operation.
pub type Result<T> = core::result::Result<T, Status>;

/// A region of bytes.
pub trait Store {
    /// Reads.
    ///
    /// # Errors
    /// If the region cannot be read there.
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Writes. The effect of an earlier call is stored before any effect of a later one.
    ///
    /// # Errors
    /// If the region cannot be written there; a part may have been written.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()>;
}
