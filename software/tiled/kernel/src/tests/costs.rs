//! The most that each system call costs before it is answered or becomes a job.
//!
//! Why it exists: a caller waits for at most one piece of another caller's work, so the largest piece is part of every worst case. Tests
//! hold the kernel to these numbers, and print the observed values beside them. What it deliberately does not know: cycles; they are
//! measured on the chip.
//!
//! *Nodes* are visited capabilities and dependencies, as [`bulkhead_capabilities::Space::steps`] counts them; *effects* are accesses of the
//! kernel's unit to other tiles: an endpoint read, configured or invalidated, a bucket, a request, a question, one piece of memory.

use bulkhead_abi::syscall::Number;
use bulkhead_capabilities::{
    ACTIVITY_STEPS, CUT_STEPS, DEPTH_MAX, FRESH_STEPS, LOOKUP_STEPS, MAKE_STEPS, QUOTAS,
    REVOKE_STEPS,
};

/// The largest cost of one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Visited capabilities and dependencies.
    pub nodes: u32,
    /// Accesses to other tiles.
    pub effects: u32,
}

const fn bound(nodes: u32, effects: u32) -> Bound {
    Bound { nodes, effects }
}

const LOOKUP: u32 = LOOKUP_STEPS;
/// A new node is discarded again: visited, removed, and its end noticed.
const UNDONE: u32 = 3 * REVOKE_STEPS;
/// A copy looks up both ends.
const COPY: u32 = MAKE_STEPS + 2 * LOOKUP;
/// The most times that one piece of work tries to ask a server: once, if the server can be asked.
const ASKED: u32 = 4;

/// A step of a revocation. A notice may replace a removed node. When a copy of a semaphore goes, all its ancestors
/// are visited.
pub const REVOCATION: Bound = bound(2 * REVOKE_STEPS + 4 + DEPTH_MAX as u32, 3);
/// A step of clearing memory.
pub const CLEARING: Bound = bound(LOOKUP, 1);
/// A step of making an activity or a window: makes a part; or discards the two parts of a window that exist and closes the window.
pub const MAKING: Bound = bound(2 * UNDONE + CUT_STEPS + LOOKUP, 2);
/// What a server agreed to: copies a capability; then asks the server its next question.
pub const AGREEMENT: Bound = bound(COPY + 4 * LOOKUP + ASKED * REVOKE_STEPS, ASKED + 1);

/// A late reply. It may deliver a notice, which frees its place.
pub const REPLY: Bound = bound(REVOKE_STEPS, 1);

/// The most that a call costs before it is answered, waits, or becomes a job of bounded steps.
pub const fn of(call: Number) -> Bound {
    match call {
        Number::Nothing | Number::Senders | Number::Report => bound(0, 0),
        // Delivers a notice and frees its place.
        Number::WaitEvent => bound(REVOKE_STEPS, 0),
        Number::Query | Number::Usage => bound(LOOKUP, 0),
        Number::Tell => bound(LOOKUP, 0),
        Number::DeriveTile => bound(2 * LOOKUP + QUOTAS as u32 + MAKE_STEPS, 1),
        Number::DeriveKernelMemory | Number::DeriveMemory => bound(LOOKUP + MAKE_STEPS, 0),
        Number::CutMemory => bound(2 * LOOKUP + CUT_STEPS, 0),
        Number::OpenModule => bound(2 * LOOKUP + MAKE_STEPS, 0),
        // The window, and TileMux's endpoint for requests.
        Number::ConfigureTile => bound(4 * LOOKUP + MAKE_STEPS, 2),
        // The activity itself, a bucket, and the bytes that TileMux may borrow.
        Number::CreateActivity => bound(6 * LOOKUP + ACTIVITY_STEPS + FRESH_STEPS, 2),
        Number::Map | Number::Start => bound(LOOKUP, 1),
        // A mapping and an endpoint.
        Number::SetPager => bound(6 * LOOKUP + 2 * MAKE_STEPS + UNDONE, 2),
        Number::MapFrom => bound(4 * LOOKUP + MAKE_STEPS, 1),
        // Tells the unit, and asks TileMux.
        Number::GiveDevice => bound(2 * LOOKUP, 2),
        Number::Stop => bound(2 * LOOKUP, 0),
        Number::Revoke => bound(2 * LOOKUP, 0),
        Number::Deactivate => bound(2 * LOOKUP, 0),
        Number::CreateReceive | Number::CreateSemaphore => bound(MAKE_STEPS, 0),
        Number::CreateSend => bound(2 * LOOKUP + MAKE_STEPS, 0),
        Number::Activate => bound(6 * LOOKUP + MAKE_STEPS, 1),
        Number::Delegate | Number::Obtain => bound(LOOKUP + COPY, 0),
        // The service, and a notice about it for the creator.
        Number::CreateService => bound(2 * LOOKUP + 2 * MAKE_STEPS + 2 * UNDONE, 0),
        Number::OpenSession | Number::Exchange => bound(4 * LOOKUP + ASKED * REVOKE_STEPS, ASKED),
        Number::SemaphoreDown | Number::SemaphoreUp => bound(LOOKUP, 0),
    }
}
