//! Capabilities of the tiled OS: for each right, its holder, the right that it was derived from, and the quota that moved with it.
//!
//! Why it exists: the kernel hands out every resource of the chip, and an error in this arithmetic would give the same resource to two
//! owners or lose it. So it is a crate of its own: pure, without `unsafe`, without allocation (all memory is reserved at construction),
//! tested against a simple model. What it deliberately does not know: messages, registers, addresses of activities. It says *what* must
//! be undone ([`Removed`]); the kernel does it.
//!
//! # Structure
//! Every right is a node of one fixed arena. A node depends on up to [`EDGES`] older nodes: the one that it was derived from, the activity
//! that holds it, and what its quota comes from. Dependencies lead to older nodes only, so they have no cycles. A node is removed when
//! nothing depends on it; revocation removes the dependents first, one after the other. An endpoint whose receiver goes stays without a
//! receiver, and is born again when it is connected to another one ([`Space::connect`]).
//!
//! # Quota
//! Derivation takes quota out of the parent and records how much; removal gives exactly that amount back. The kernel memory of a node
//! itself is charged to the purse of the activity that caused it. All purses together hold as much as the arena has room for, so a
//! successful charge always finds a node.
//!
//! # Steps
//! Every operation counts the nodes and dependencies that it visits; `*_STEPS` are the worst cases. Revocation is a state machine driven
//! from outside, at most [`REVOKE_STEPS`] at a time, so a more important caller waits for one step. Revocations nest: one of a higher
//! level may run between two steps of another, even on overlapping trees.
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

/// Names that an activity may use for its capabilities: any of `0..SELECTORS`.
pub const SELECTORS: usize = bulkhead_abi::syscall::SELECTORS as usize;
/// The longest chain of derivations; this bounds the search through a node's ancestors.
pub const DEPTH_MAX: u8 = 24;
pub use bulkhead_abi::syscall::PIECES_MAX;

/// Worst-case steps of a lookup.
pub const LOOKUP_STEPS: u32 = 1;
/// Worst-case steps to make a node after its other operands were found: its ancestors, each with what it depends on.
pub const MAKE_STEPS: u32 = (DEPTH_MAX as u32 + 1) * (EDGES as u32 + 1) * 2 + 4 * LOOKUP_STEPS;
/// Worst-case steps of [`Space::fresh_from`].
pub const FRESH_STEPS: u32 = DEPTH_MAX as u32 + 1;
/// Worst-case steps to create an activity: a place, and [`MAKE_STEPS`].
pub const ACTIVITY_STEPS: u32 = MAKE_STEPS + 1;
/// Worst-case steps to cut memory: the search for a gap, and [`MAKE_STEPS`].
pub const CUT_STEPS: u32 = MAKE_STEPS + PIECES_MAX as u32;
/// Worst-case steps of one call of [`Space::step`].
pub const REVOKE_STEPS: u32 = 2 * EDGES as u32 + LEVELS as u32 + 2;

/// Why an operation was refused. A refused operation has changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There is no such activity.
    NoHolder,
    /// The selector names nothing, or is not a valid selector.
    NoCapability,
    /// The selector for the result is in use, or is not a valid selector.
    SelectorTaken,
    /// The capability is of another kind.
    WrongKind,
    /// The capability, or something that it depends on, is being revoked.
    Revoked,
    /// More quota than is left.
    NoQuota,
    /// The purse of the caller is empty.
    NoKernelMemory,
    /// No gap of that size, or too many pieces.
    NoMemory,
    /// Rights, range or number outside of the parent's.
    OutOfBounds,
    /// The chain of derivations is too long.
    TooDeep,
    /// All places for activities are taken.
    NoPlace,
    /// A revocation of this level is in progress.
    Busy,
    /// The receive gate has fewer slots left than the requested credits.
    NoCredits,
    /// The semaphore or gate is in a state that does not allow it.
    WrongState,
}

/// Result of an operation.
pub type Result<T> = core::result::Result<T, Error>;

impl From<Error> for SyscallError {
    /// The same refusal as an error of system calls.
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
