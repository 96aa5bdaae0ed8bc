//! The kernel's markers: where a piece of its work begins and ends.
//!
//! Why it exists: the longest piece is part of every caller's worst case, and these markers make it measurable on the chip; a
//! marker costs a no-op. `tests/costs.rs` states the most that a piece may cost; tests check that the kernel keeps to it. What it
//! deliberately does not know: cycles.

/// Kinds of the markers that the kernel emits when it begins a piece of work and when it has finished it; the value is the number
/// of the call, or one of the following.
pub const WORK_BEGINS: u16 = 0x100;
/// See [`WORK_BEGINS`].
pub const WORK_ENDS: u16 = 0x101;
/// A step of a job.
pub const STEP: u64 = 64;
/// The answer of a server.
pub const ANSWER: u64 = 65;
/// The answer of a TileMux.
pub const TILE_ANSWER: u64 = 66;
/// A notification of a TileMux.
pub const NOTIFICATION: u64 = 67;
/// A late reply.
pub const REPLY: u64 = 68;
/// A text, or a line of the kernel's own, on the console.
pub const TEXT: u64 = 69;
