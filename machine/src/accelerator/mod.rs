//! A streaming unit behind the data transfer unit, in place of a hart.
//!
//! Why it exists: an accelerator takes part in the system like an application. It has an activity for each client with endpoints from the
//! kernel, a token bucket, and no other rights. Messages drive it and it moves its data itself, so no core is in the data path (m3-rtas24,
//! section II-B2). What it deliberately does not know: the network, and the insides of the data transfer unit, which it uses through the
//! registers that a hart would use.
//!
//! - [`stream`]: what it computes, and how long that takes.
//! - [`context`]: what it keeps for each client.
//! - [`job`]: what a client's job needs next.
//! - [`files`]: how it reaches files.
//! - [`control`]: the state machine that moves the data.
//! - [`kernel`]: how it answers the kernel, as TileMux does.
//! - [`messages`]: how it reads messages sent to it.
//! - [`rogue`]: what an attacker makes it do.

mod context;
mod control;
mod files;
mod job;
mod kernel;
mod messages;
mod rogue;
pub mod stream;
mod tokens;

pub use control::Accelerator;
pub use stream::Operation;

use crate::types::Tick;

/// A streaming unit. Latencies in cycles of its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceleratorConfig {
    /// The operation that it computes.
    pub operation: Operation,
    /// Ticks a cycle.
    pub cycle: Tick,
    /// Ticks per nanosecond, for waiting for services.
    pub nanosecond: Tick,
    /// Bytes that it takes per cycle.
    pub bytes_per_cycle: u32,
    /// Cycles before the first byte of a piece.
    pub startup: u64,
    /// Cycles to switch from one client to another, saving one state and loading another.
    pub switch: u64,
    /// Maximum bytes of a row, for operations that keep rows.
    pub row: u32,
}

/// The interface of the state machine to its tile.
pub trait Ports {
    /// The current moment.
    fn now(&self) -> Tick;
    /// Reads a register of the tile's unit.
    fn read(&mut self, offset: u64) -> u64;
    /// Writes a register of the tile's unit.
    fn write(&mut self, offset: u64, value: u64);
    /// Reads the tile's memory. Returns whether the address is in it.
    ///
    /// # Errors
    /// It takes time. The state machine must ask again, for the same bytes, after the next event, and must have changed nothing meanwhile.
    fn load(&mut self, side: Side, physical: u64, buffer: &mut [u8]) -> Result<bool, Later>;
    /// Writes the tile's memory. Returns whether the address is in it.
    ///
    /// # Errors
    /// As for [`Ports::load`].
    fn store(&mut self, side: Side, physical: u64, data: &[u8]) -> Result<bool, Later>;
    /// The side has used what it asked for: its next request is a new access.
    fn used(&mut self, side: Side);
}

/// The part of the unit that uses memory. Each does one thing at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The data path.
    Path,
    /// Messages and results, for the commands of the data transfer unit.
    Command,
}

/// An access to memory takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later;

/// The event for which the state machine waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Any event of its unit, while idle.
    Idle,
    /// Any event of its unit, in the middle of a job.
    Busy,
    /// This moment, in the middle of a job.
    Until(Tick),
}
