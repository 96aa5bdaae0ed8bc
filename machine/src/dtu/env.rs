//! What a data transfer unit needs from its tile, and what it tells the tile.
//!
//! Why it exists: the unit is driven by events and asks for everything through [`Env`], so it can be tested with a fake tile of fixed
//! latencies. It does not know the event queue, the caches, the network or the hart.

use crate::ledger::Unfetched;
use crate::local_token::LocalToken;
use crate::noc::packet::Packet;
use crate::types::{Block, Owner, Tick, TileId};
use bulkhead_abi::dtu::{DtuError, Opcode};
use thiserror::Error;

/// The meaning of a tile number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TileKind {
    /// No such tile.
    #[default]
    Absent,
    /// Harts and a data transfer unit.
    Processing,
    /// A memory controller.
    Memory,
}

/// When a local access is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalTiming {
    /// At this moment, not before now.
    Ready(Tick),
    /// The tile will call [`super::Dtu::local_done`] with the token.
    Pending,
}

/// A line cannot be written back now. Ask again when the token completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later;

/// A tile-physical address outside the tile's memory windows, or an access that exceeds their rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the tile may not access physical address {address:#x}")]
pub struct LocalFault {
    /// First address that may not be accessed.
    pub address: u64,
}

/// An access to the unit's registers that is not 8 bytes wide and aligned, or lies outside the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("access of {bytes} bytes to the registers of the data transfer unit at offset {offset:#x}")]
pub struct RegisterFault {
    /// Offset in the unit.
    pub offset: u64,
    /// Width of the access.
    pub bytes: u8,
}

/// A physical address that no protection window allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no protection window allows {} at {physical:#x}", if *write { "writing" } else { "reading" })]
pub struct ProtectionFault {
    /// The tile-physical address.
    pub physical: u64,
    /// Whether the access is a write.
    pub write: bool,
}

/// The hart's reaction to a register write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteEffect {
    /// It continues.
    None,
    /// It sleeps until [`Env::wake_hart`].
    Sleep,
}

/// An event that the unit has asked to receive at a later moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DtuEvent {
    /// The start-up latency of the command with this number is over.
    Command(u32),
    /// A local access with this token is done.
    Local(LocalToken),
    /// The receive unit has examined the message that it holds.
    Receive,
    /// An alarm is due.
    Due(Alarm),
}

/// A moment that software chooses, so it may be far away. Each is one register of the unit: a new moment replaces the one before. So software
/// that sets an alarm again and again leaves nothing behind on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alarm {
    /// The token bucket may admit the chunk that waits.
    Release,
    /// The timer expires.
    Timer,
    /// The delay of an `AWAITED` register is over.
    Awaited,
    /// The sleep command times out.
    Sleep,
}

/// The moments of a unit's alarms.
#[derive(Clone, Copy, Debug)]
pub struct Alarms {
    at: [Tick; Alarm::ALL.len()],
    first: Tick,
}

impl Alarm {
    /// All alarms, in the order in which those of one moment are due.
    pub const ALL: [Alarm; 4] = [Alarm::Release, Alarm::Timer, Alarm::Awaited, Alarm::Sleep];
}

impl Default for Alarms {
    fn default() -> Self {
        Self {
            at: [Tick::MAX; Alarm::ALL.len()],
            first: Tick::MAX,
        }
    }
}

impl Alarms {
    /// Sets the moment of an alarm; [`Tick::MAX`]: never. Moments beyond every run (centuries at any clock) never come, so absurd register
    /// values cannot overflow the time.
    pub fn set(&mut self, alarm: Alarm, at: Tick) {
        self.at[alarm as usize] = if at < Tick::MAX / 2 { at } else { Tick::MAX };
        self.first = self.at.into_iter().fold(Tick::MAX, Tick::min);
    }

    /// The moment of the first alarm, or [`Tick::MAX`].
    #[inline]
    pub fn next_time(&self) -> Tick {
        self.first
    }

    /// Takes the first alarm and its moment.
    pub fn pop(&mut self) -> Option<(Tick, Alarm)> {
        let first = self.first;
        let due = |alarm: &Alarm| first != Tick::MAX && self.at[*alarm as usize] == first;
        let alarm = Alarm::ALL.into_iter().find(due)?;
        self.set(alarm, Tick::MAX);
        Some((first, alarm))
    }
}

/// Resources of the unit that a request may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DtuResource {
    /// A token bucket; the culprit is the victim.
    Bucket,
    /// The receive unit, which stores one message at a time.
    DtuReceive,
}

/// An event worth recording. Recording takes no time; the event happens at [`Env::now`] unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    /// A request waited.
    Wait {
        /// The victim.
        victim: Owner,
        /// The holder of the resource.
        culprit: Owner,
        /// The resource.
        resource: DtuResource,
        /// Start of the wait.
        from: Tick,
        /// End of the wait. It may be in the future, because the release of a bucket is known in advance.
        until: Tick,
    },
    /// A request waited to be fetched.
    Unfetched(Unfetched),
    /// A command of the unprivileged page starts.
    CommandBegin {
        /// Its operation.
        opcode: Opcode,
        /// Its endpoint.
        endpoint: u16,
        /// The current activity.
        owner: Owner,
    },
    /// The running command is done.
    CommandEnd {
        /// Its operation.
        opcode: Opcode,
        /// Its outcome.
        error: DtuError,
    },
    /// The last part of a message left this tile.
    MessageSent {
        /// Number of the message, unique while it is in transit.
        flow: u64,
        /// The receiver.
        destination: TileId,
        /// Number of the message, unique while it is in transit.
        bytes: u32,
        /// Whether it is a reply.
        reply: bool,
    },
    /// A message was stored in a receive buffer of this tile.
    MessageStored {
        /// Number of the message, as in [`Observation::MessageSent`].
        flow: u64,
        /// The sender.
        owner: Owner,
        /// The receive endpoint.
        endpoint: u16,
        /// The activity that it is for.
        activity: u16,
        /// Bytes, header included.
        bytes: u32,
    },
    /// A message that arrived was refused.
    MessageRefused {
        /// Number of the message, as in [`Observation::MessageSent`].
        flow: u64,
        /// The sender.
        owner: Owner,
        /// Why.
        error: DtuError,
    },
    /// Another activity became current.
    ActivityChanged {
        /// The former one.
        from: u16,
        /// The new one.
        to: u16,
    },
    /// Amount in a token bucket after a charge or a change of its parameters.
    BucketLevel {
        /// Number of the bucket.
        bucket: u8,
        /// Bytes; negative while a chunk larger than the limit is paid off.
        bytes: i64,
    },
    /// The external interrupt line changed.
    Interrupt {
        /// Its level.
        level: bool,
    },
}

/// The tile around the unit.
pub trait Env {
    /// The current moment.
    fn now(&self) -> Tick;
    /// Calls [`super::Dtu::event`] with `event` at `at`, which is not before now.
    fn schedule(&mut self, at: Tick, event: DtuEvent);
    /// Calls [`super::Dtu::event`] with the alarm at `at`, which is not before now, and not at the moment set before. [`Tick::MAX`]: never.
    fn set_alarm(&mut self, alarm: Alarm, at: Tick);
    /// Hands a packet to the tile's network interface now. The destination exists and may be this tile itself.
    fn send(&mut self, packet: Packet);
    /// One access of at most [`crate::config::DtuConfig::block`] bytes within one such block through the tile's caches. If the answer
    /// is a moment, the bytes have moved. Otherwise they move when the line arrives, and [`super::Dtu::local_done`] delivers the bytes
    /// of a read.
    ///
    /// # Errors
    /// If no window of the tile allows the access.
    fn local_access(
        &mut self,
        physical: u64,
        block: Block<'_>,
        owner: Owner,
        token: LocalToken,
    ) -> Result<LocalTiming, LocalFault>;
    /// A pending access with this token is cancelled, though its line may still arrive.
    fn local_forget(&mut self, token: LocalToken);
    /// Bytes of a line of the tile's caches.
    fn line(&self) -> u64;
    /// Writes the line at `line` back to memory, if it is dirty, and removes it from the tile's caches. Done when memory has it.
    ///
    /// # Errors
    /// The line is on its way, or the write-back buffer is full; the tile will call [`super::Dtu::local_done`] with the token.
    fn local_write_back(
        &mut self,
        line: u64,
        owner: Owner,
        token: LocalToken,
    ) -> Result<LocalTiming, Later>;
    /// Sets the hart's external interrupt line.
    fn interrupt(&mut self, level: bool);
    /// Whether an interrupt that the hart has enabled is pending. As for WFI, the global enable does not matter.
    fn interrupt_pending(&self) -> bool;
    /// Ends the hart's sleep.
    fn wake_hart(&mut self);
    /// Resets the first hart and starts it at `pc` in machine mode. A second hart stops.
    fn start_hart(&mut self, pc: u64);
    /// Stops the tile's harts until they are started again.
    fn stop_hart(&mut self);
    /// Starts the second hart at `pc` in machine mode. Returns whether there is one.
    fn start_second(&mut self, pc: u64) -> bool;
    /// Sets the second hart's external interrupt line.
    fn interrupt_second(&mut self, level: bool);
    /// Records something.
    fn observe(&mut self, observation: Observation);
}
