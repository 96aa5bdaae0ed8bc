//! What an activity finds when it starts: one page with its identity, gates and arguments.
//!
//! The loader of the activity fills the page (the resource manager, or the kernel for the root manager); the activity can only read
//! it. After the [`Environment`] come `gates` [`GateEntry`]s and then `arguments` [`ArgumentEntry`]s, without gaps. Addresses are
//! virtual, times in nanoseconds.

use crate::dtu::codes;
use crate::words::NAME;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Virtual address of the page, the first of every address space.
pub const ENVIRONMENT_BASE: u64 = 0x1000_0000;
/// Bytes of the page with all entries.
pub const ENVIRONMENT_SIZE: usize = 4096;
/// Virtual address at which programs are linked.
pub const PROGRAM_BASE: u64 = ENVIRONMENT_BASE + ENVIRONMENT_SIZE as u64;
/// First bytes of the page: "ACTIVITY".
pub const ENVIRONMENT_MAGIC: u64 = u64::from_le_bytes(*b"ACTIVITY");
/// Bytes of an argument's value.
pub const VALUE: usize = 64;

/// Start of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Environment {
    /// [`ENVIRONMENT_MAGIC`].
    pub magic: u64,
    /// The activity's number, unique in the system.
    pub activity: u16,
    /// The tile that it runs on.
    pub tile: u16,
    /// Not zero while other activities live on this tile, or its processor time is limited: then it must wait through TileMux,
    /// which maintains this field.
    pub shared: u32,
    /// Frequency of the `time` CSR in hertz.
    pub timebase: u64,
    /// Clock of the tile's hart in hertz.
    pub frequency: u64,
    /// Period of its task, 0 if it has none.
    pub period: u64,
    /// Deadline of its task relative to the release, 0 if it has none.
    pub deadline: u64,
    /// First byte of the heap.
    pub heap_start: u64,
    /// Bytes of the heap.
    pub heap_size: u64,
    /// Lowest address of the stack; the page below is not mapped.
    pub stack_bottom: u64,
    /// End of the stack.
    pub stack_top: u64,
    /// Send endpoint for system calls.
    pub syscall_send: u16,
    /// Receive endpoint for their replies, one slot.
    pub syscall_reply: u16,
    /// Receive endpoint for the replies to calls over send gates, or [`crate::dtu::NO_ENDPOINT`].
    pub call_reply: u16,
    /// Number of [`GateEntry`]s.
    pub gates: u16,
    /// Number of [`ArgumentEntry`]s.
    pub arguments: u16,
    /// Bytes of a line on the tile with the shortest lines, if caches hold data; 0 if memory is flat.
    pub line: u16,
    /// Zero.
    pub reserved: [u16; 2],
    /// Virtual address of the buffer of `syscall_reply`.
    pub syscall_buffer: u64,
    /// Virtual address of the buffer of `call_reply`.
    pub call_buffer: u64,
    /// Name of the activity.
    pub name: [u8; NAME],
}

/// Offset of [`Environment::shared`], which TileMux writes.
pub const SHARED_OFFSET: u64 = 12;

codes! {
    /// [`GateEntry::kind`].
    GateKind: u32 {
        /// Sends messages.
        Send = 1,
        /// Receives messages.
        Receive = 2,
        /// Reads and writes memory.
        Memory = 3,
    }
}

/// A gate that the activity holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct GateEntry {
    /// Name in the description.
    pub name: [u8; NAME],
    /// A [`GateKind`].
    pub kind: u32,
    /// Endpoint of the tile's DTU.
    pub endpoint: u16,
    /// Bytes of a slot (receive), or most bytes of a message (send), header included.
    pub slot_size: u16,
    /// Virtual address of the buffer (receive).
    pub buffer: u64,
    /// Bytes of the region (memory), slots (receive), credits (send).
    pub size: u64,
    /// Rights of a memory gate: [`crate::dtu::TLB_READ`], [`crate::dtu::TLB_WRITE`]. Of a send gate: the selector at which its
    /// receiver's service will be found, or 0. Of a receive gate: the selector under which to offer its service, or 0.
    pub rights: u64,
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ArgumentEntry {
    /// Name, zero-padded.
    pub name: [u8; NAME],
    /// Value as text, zero-padded.
    pub value: [u8; VALUE],
}
