//! Capabilities of the tiled OS: the holder of each right, the right that it was derived from, and the quota that moved with it.
//!
//! Why it exists: the kernel hands out every resource of the chip, and an error in this arithmetic would give the same resource to two
//! owners or lose it. So it is a crate of its own: pure, without `unsafe`, without allocation (all memory is reserved at construction),
//! tested against a simple model. What it deliberately does not know: messages, registers, addresses of activities. It says *what* must
//! be undone ([`Removed`]); the kernel does it.
//!
//! # Structure
//! Every right is a node of one fixed arena. A node depends on up to [`EDGES`] older nodes: the one that it was derived from,
//! the activity that holds it, and what its quota comes from. Dependencies lead to older nodes only, so they have no
//! cycles. A node is removed when nothing depends on it; revocation removes the dependents first, one after the other. An endpoint whose
//! receiver goes stays without it, and is born again when it is connected to another one ([`Space::connect`]).
//!
//! # Quota
//! Derivation takes quota out of the parent and remembers how much; removal gives exactly that back. What a node itself costs in kernel
//! memory is charged to the purse of the activity that caused it. Purses together hold as much as the arena has room for, so a charge that
//! succeeded cannot run out of nodes.
//!
//! # Steps
//! Every operation counts the nodes and dependencies that it visits; `*_STEPS` state the worst case. Revocation is a machine
//! that is driven from outside, [`REVOKE_STEPS`] at most at a time, so a more important caller waits for one step.
//! Revocations nest: one of a higher level may run between two steps of another, on overlapping trees, too.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod books;
mod exchange;
mod gate;
mod links;
mod node;
mod notice;
mod number;
mod object;
mod resource;
mod revoke;
mod space;
mod time;

use bulkhead_abi::syscall::SyscallError;

pub use books::HOLDING;
pub use node::{EDGES, LEVELS, Node, NodeId, Slot};
pub use object::{
    Amounts, Asked, Line, Memory, NO_OWNER, NOTICE_WORDS, Notice, Object, QUOTAS, Queue, Quota,
    Receive, Request, Service, Tile, Time, UNREGULATED,
};
pub use revoke::{Progress, Removed};
pub use space::{Holder, HolderId, NODES_MAX, Space};
pub use time::Terms;

#[cfg(any(test, feature = "laws"))]
#[path = "tests/laws.rs"]
mod laws;
#[cfg(test)]
mod tests;

/// Names that an activity may use for its capabilities: `0..SELECTORS`, chosen by itself.
pub const SELECTORS: usize = bulkhead_abi::syscall::SELECTORS as usize;
/// Derivations in a row at most; this bounds the look at a node's ancestors.
pub const DEPTH_MAX: u8 = 24;
pub use bulkhead_abi::syscall::PIECES_MAX;

/// Worst-case steps of a look-up.
pub const LOOKUP_STEPS: u32 = 1;
/// Worst-case steps to make a node whose other operands were found: its ancestors, each with what it depends on.
pub const MAKE_STEPS: u32 = (DEPTH_MAX as u32 + 1) * (EDGES as u32 + 1) * 2 + 4 * LOOKUP_STEPS;
/// Worst-case steps of [`Space::fresh_from`].
pub const FRESH_STEPS: u32 = DEPTH_MAX as u32 + 1;
/// Worst-case steps to create an activity: a place, and [`MAKE_STEPS`].
pub const ACTIVITY_STEPS: u32 = MAKE_STEPS + 1;
/// Worst-case steps to cut memory: the search for a gap, and [`MAKE_STEPS`].
pub const CUT_STEPS: u32 = MAKE_STEPS + PIECES_MAX as u32;
/// Worst-case steps of one call of [`Space::step`].
pub const REVOKE_STEPS: u32 = 2 * EDGES as u32 + LEVELS as u32 + 2;

/// Why an operation was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such activity.
    NoHolder,
    /// The selector names nothing, or is none.
    NoCapability,
    /// The selector for the result is in use, or is none.
    SelectorTaken,
    /// The capability is of another kind.
    WrongKind,
    /// The capability or something that it depends on is being revoked.
    Revoked,
    /// More quota than there is.
    NoQuota,
    /// The purse of the caller is empty.
    NoKernelMemory,
    /// No gap of that size, or too many pieces.
    NoMemory,
    /// Rights, range or number outside of what the parent has.
    OutOfBounds,
    /// Too many derivations in a row.
    TooDeep,
    /// All places for activities are taken.
    NoPlace,
    /// A revocation of this level is under way.
    Busy,
    /// The receive gate has fewer slots left than credits were asked for.
    NoCredits,
    /// The semaphore or gate is in a state that does not allow it.
    WrongState,
}

/// Result of an operation.
pub type Result<T> = core::result::Result<T, Error>;

impl From<Error> for SyscallError {
    /// The same refusal in the words of system calls.
    fn from(error: Error) -> Self {
        match error {
            Error::NoHolder => SyscallError::NoActivity,
            Error::NoCapability => SyscallError::NoCapability,
            Error::SelectorTaken => SyscallError::SelectorTaken,
            Error::WrongKind => SyscallError::WrongKind,
            Error::Revoked => SyscallError::Revoked,
            Error::NoQuota => SyscallError::NoQuota,
            Error::NoKernelMemory => SyscallError::NoKernelMemory,
            Error::NoMemory => SyscallError::NoMemory,
            Error::OutOfBounds => SyscallError::OutOfBounds,
            Error::TooDeep => SyscallError::TooDeep,
            Error::NoPlace | Error::Busy => SyscallError::Busy,
            Error::NoCredits => SyscallError::NoCredits,
            Error::WrongState => SyscallError::WrongState,
        }
    }
}
