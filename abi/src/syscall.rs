//! System calls of the tiled OS: messages to the kernel and their replies, as words.
//!
//! Every activity has a channel to the kernel; the label of the channel tells the kernel who calls and cannot be
//! forged. Only the manager of an activity may manage it; whoever else tries gets [`SyscallError::NotManager`].
//! A request is its number and its fields in the order of their declaration, one word each (a name: four). A reply is
//! a [`SyscallError`] code and, if that is 0, the results.

use crate::dtu::codes;
use crate::words::{Name, Reader, Words};

/// Words of a request or reply at most.
pub const SYSCALL_WORDS: usize = 16;
/// Bytes of a slot for requests and replies, header included.
pub const SYSCALL_SLOT: u16 = 192;

codes! {
    /// Outcome of a system call; the first word of a reply.
    SyscallError: u64 {
        /// Done.
        None = 0,
        /// The number of the call is unknown.
        UnknownCall = 1,
        /// A field is missing or out of its range.
        BadArgument = 2,
        /// The caller does not manage the activity, or is no manager at all.
        NotManager = 3,
        /// No such activity.
        NoActivity = 4,
        /// No such tile, or it is the kernel's, or not a processing tile.
        NoTile = 5,
        /// Not enough memory.
        NoMemory = 6,
        /// The tile's unit has no free endpoint.
        NoEndpoint = 7,
        /// The tile's unit has no free token bucket.
        NoBucket = 8,
        /// No such module.
        NoModule = 9,
        /// The call does not fit the state of the activity (started already, stopped, ...).
        WrongState = 10,
        /// The offset and size lie outside the region.
        OutOfBounds = 11,
        /// The endpoint is not a receive endpoint of that activity.
        NotReceiver = 12,
        /// TileMux refused.
        Refused = 13,
        /// A wait for events is under way already.
        Busy = 14,
        /// The tile's memory windows are used up.
        NoWindow = 15,
    }
}

codes! {
    /// Numbers of the calls.
    Number: u64 {
        /// See [`Syscall::Nothing`].
        Nothing = 0,
        /// See [`Syscall::ConfigureTile`].
        ConfigureTile = 1,
        /// See [`Syscall::CreateActivity`].
        CreateActivity = 2,
        /// See [`Syscall::OpenMemory`].
        OpenMemory = 3,
        /// See [`Syscall::OpenModule`].
        OpenModule = 4,
        /// See [`Syscall::Close`].
        Close = 5,
        /// See [`Syscall::Map`].
        Map = 6,
        /// See [`Syscall::CreateReceive`].
        CreateReceive = 7,
        /// See [`Syscall::CreateSend`].
        CreateSend = 8,
        /// See [`Syscall::CreateMemory`].
        CreateMemory = 9,
        /// See [`Syscall::SetLimit`].
        SetLimit = 10,
        /// See [`Syscall::SetBudget`].
        SetBudget = 11,
        /// See [`Syscall::Start`].
        Start = 12,
        /// See [`Syscall::WaitEvent`].
        WaitEvent = 13,
        /// See [`Syscall::Stop`].
        Stop = 14,
        /// See [`Syscall::Connect`].
        Connect = 15,
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syscall {
    /// Does nothing; measures a call.
    Nothing,
    /// Gives `memory` bytes to a tile for the activities to come, and starts TileMux there if it does not run.
    ConfigureTile {
        /// The tile.
        tile: u16,
        /// Bytes, rounded up to pages by the kernel.
        memory: u64,
        /// The memory tile that they come from.
        memory_tile: u16,
    },
    /// Creates an activity, managed by the caller. Results: its number, its send endpoint for system calls, the clock of
    /// its tile in hertz.
    CreateActivity {
        /// Where it will run.
        tile: u16,
        /// Bytes of its memory; page tables ([`crate::tilemux::table_pages`]) come on top.
        memory: u64,
        /// The memory tile that they come from; one that the tile was configured with.
        memory_tile: u16,
        /// Name for reports.
        name: Name,
    },
    /// Gives the caller a memory endpoint onto an activity's memory before it is started. Results: endpoint.
    OpenMemory {
        /// The activity.
        activity: u16,
    },
    /// Gives the caller a memory endpoint to read a boot module. Results: endpoint, bytes.
    OpenModule {
        /// Hash of the module's name: [`module_key`], because the names are longer than a message's fields.
        key: u64,
    },
    /// Gives an endpoint of `OpenMemory` or `OpenModule` back.
    Close {
        /// The endpoint.
        endpoint: u16,
    },
    /// Maps pages of the activity's memory into its address space.
    Map {
        /// The activity.
        activity: u16,
        /// First virtual address, page aligned.
        address: u64,
        /// Offset into its memory, page aligned.
        offset: u64,
        /// Number of pages.
        pages: u64,
        /// [`MAP_READ`], [`MAP_WRITE`], [`MAP_EXECUTE`].
        rights: u8,
    },
    /// Makes a receive endpoint for an activity. Results: endpoint.
    CreateReceive {
        /// The activity.
        activity: u16,
        /// Offset of the buffer in its memory, a multiple of 64.
        offset: u64,
        /// Slots, 1 to 32.
        slots: u8,
        /// Bytes of a slot, header included, a multiple of 64 up to 2048.
        slot_size: u16,
        /// Not zero: with rights to reply.
        replies: u8,
    },
    /// Makes a send endpoint for an activity. Results: endpoint.
    CreateSend {
        /// The sender.
        activity: u16,
        /// The receiver, managed by the caller, too.
        target: u16,
        /// Receive endpoint of the receiver.
        endpoint: u16,
        /// Label that the receiver sees.
        label: u64,
        /// Messages under way at most.
        credits: u8,
    },
    /// Makes a memory endpoint for an activity to fresh memory. Results: endpoint, number of the memory object.
    CreateMemory {
        /// The activity.
        activity: u16,
        /// Bytes.
        size: u64,
        /// [`MAP_READ`], [`MAP_WRITE`].
        rights: u8,
        /// The memory tile that holds it.
        memory_tile: u16,
    },
    /// Makes a memory endpoint for an activity to a memory object of an earlier `CreateMemory`. Results: endpoint.
    Connect {
        /// The activity.
        activity: u16,
        /// Number of the memory object.
        object: u64,
        /// [`MAP_READ`], [`MAP_WRITE`].
        rights: u8,
    },
    /// Limits the traffic of an activity.
    SetLimit {
        /// The activity.
        activity: u16,
        /// Bytes a second.
        rate: u64,
        /// Bytes at once.
        burst: u64,
    },
    /// Limits the processor time of an activity to `budget` nanoseconds in each `period` nanoseconds.
    SetBudget {
        /// The activity.
        activity: u16,
        /// Nanoseconds of execution.
        budget: u64,
        /// Nanoseconds.
        period: u64,
        /// Greater is more urgent, on tiles with fixed priorities.
        priority: u8,
    },
    /// Starts an activity.
    Start {
        /// The activity.
        activity: u16,
        /// Virtual address of its first instruction.
        entry: u64,
        /// Initial stack pointer.
        stack: u64,
    },
    /// Waits until an activity that the caller manages has stopped. Results: activity, [`StopCause`] words.
    WaitEvent,
    /// Stops an activity.
    Stop {
        /// The activity.
        activity: u16,
    },
}

/// The pages may be read.
pub const MAP_READ: u8 = 1;
/// The pages may be written.
pub const MAP_WRITE: u8 = 2;
/// The pages may be executed.
pub const MAP_EXECUTE: u8 = 4;

/// A number for a module's name (64-bit FNV-1a); the kernel finds the module by it.
pub const fn module_key(name: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < name.len() {
        hash = (hash ^ name[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

impl Syscall {
    /// The request as words.
    pub fn encode(&self) -> Words<SYSCALL_WORDS> {
        let mut words = Words::new();
        match *self {
            Syscall::Nothing => words.push(&[Number::Nothing as u64]),
            Syscall::ConfigureTile {
                tile,
                memory,
                memory_tile,
            } => words.push(&[
                Number::ConfigureTile as u64,
                tile.into(),
                memory,
                memory_tile.into(),
            ]),
            Syscall::CreateActivity {
                tile,
                memory,
                memory_tile,
                name,
            } => words
                .push(&[
                    Number::CreateActivity as u64,
                    tile.into(),
                    memory,
                    memory_tile.into(),
                ])
                .push(&name.to_words()),
            Syscall::OpenMemory { activity } => {
                words.push(&[Number::OpenMemory as u64, activity.into()])
            }
            Syscall::OpenModule { key } => words.push(&[Number::OpenModule as u64, key]),
            Syscall::Close { endpoint } => words.push(&[Number::Close as u64, endpoint.into()]),
            Syscall::Map {
                activity,
                address,
                offset,
                pages,
                rights,
            } => words.push(&[
                Number::Map as u64,
                activity.into(),
                address,
                offset,
                pages,
                rights.into(),
            ]),
            Syscall::CreateReceive {
                activity,
                offset,
                slots,
                slot_size,
                replies,
            } => words.push(&[
                Number::CreateReceive as u64,
                activity.into(),
                offset,
                slots.into(),
                slot_size.into(),
                replies.into(),
            ]),
            Syscall::CreateSend {
                activity,
                target,
                endpoint,
                label,
                credits,
            } => words.push(&[
                Number::CreateSend as u64,
                activity.into(),
                target.into(),
                endpoint.into(),
                label,
                credits.into(),
            ]),
            Syscall::CreateMemory {
                activity,
                size,
                rights,
                memory_tile,
            } => words.push(&[
                Number::CreateMemory as u64,
                activity.into(),
                size,
                rights.into(),
                memory_tile.into(),
            ]),
            Syscall::Connect {
                activity,
                object,
                rights,
            } => words.push(&[
                Number::Connect as u64,
                activity.into(),
                object,
                rights.into(),
            ]),
            Syscall::SetLimit {
                activity,
                rate,
                burst,
            } => words.push(&[Number::SetLimit as u64, activity.into(), rate, burst]),
            Syscall::SetBudget {
                activity,
                budget,
                period,
                priority,
            } => words.push(&[
                Number::SetBudget as u64,
                activity.into(),
                budget,
                period,
                priority.into(),
            ]),
            Syscall::Start {
                activity,
                entry,
                stack,
            } => words.push(&[Number::Start as u64, activity.into(), entry, stack]),
            Syscall::WaitEvent => words.push(&[Number::WaitEvent as u64]),
            Syscall::Stop { activity } => words.push(&[Number::Stop as u64, activity.into()]),
        };
        words
    }

    /// The request that these words are.
    ///
    /// # Errors
    /// [`SyscallError::UnknownCall`] for an unknown number, [`SyscallError::BadArgument`] if a field is missing or
    /// does not fit its type. Whether the values make sense is for the kernel to judge.
    pub fn decode(words: &[u64]) -> Result<Self, SyscallError> {
        let mut reader = Reader(words);
        let number = reader.word().ok_or(SyscallError::BadArgument)?;
        let number = Number::from_code(number).ok_or(SyscallError::UnknownCall)?;
        Self::fields(number, &mut reader).ok_or(SyscallError::BadArgument)
    }

    fn fields(number: Number, r: &mut Reader) -> Option<Self> {
        Some(match number {
            Number::Nothing => Syscall::Nothing,
            Number::ConfigureTile => Syscall::ConfigureTile {
                tile: r.half()?,
                memory: r.word()?,
                memory_tile: r.half()?,
            },
            Number::CreateActivity => Syscall::CreateActivity {
                tile: r.half()?,
                memory: r.word()?,
                memory_tile: r.half()?,
                name: r.name()?,
            },
            Number::OpenMemory => Syscall::OpenMemory {
                activity: r.half()?,
            },
            Number::OpenModule => Syscall::OpenModule { key: r.word()? },
            Number::Close => Syscall::Close {
                endpoint: r.half()?,
            },
            Number::Map => Syscall::Map {
                activity: r.half()?,
                address: r.word()?,
                offset: r.word()?,
                pages: r.word()?,
                rights: r.byte()?,
            },
            Number::CreateReceive => Syscall::CreateReceive {
                activity: r.half()?,
                offset: r.word()?,
                slots: r.byte()?,
                slot_size: r.half()?,
                replies: r.byte()?,
            },
            Number::CreateSend => Syscall::CreateSend {
                activity: r.half()?,
                target: r.half()?,
                endpoint: r.half()?,
                label: r.word()?,
                credits: r.byte()?,
            },
            Number::CreateMemory => Syscall::CreateMemory {
                activity: r.half()?,
                size: r.word()?,
                rights: r.byte()?,
                memory_tile: r.half()?,
            },
            Number::Connect => Syscall::Connect {
                activity: r.half()?,
                object: r.word()?,
                rights: r.byte()?,
            },
            Number::SetLimit => Syscall::SetLimit {
                activity: r.half()?,
                rate: r.word()?,
                burst: r.word()?,
            },
            Number::SetBudget => Syscall::SetBudget {
                activity: r.half()?,
                budget: r.word()?,
                period: r.word()?,
                priority: r.byte()?,
            },
            Number::Start => Syscall::Start {
                activity: r.half()?,
                entry: r.word()?,
                stack: r.word()?,
            },
            Number::WaitEvent => Syscall::WaitEvent,
            Number::Stop => Syscall::Stop {
                activity: r.half()?,
            },
        })
    }
}

/// Why an activity stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopCause {
    /// It ended by itself with this code.
    Exit(u64),
    /// A trap: RISC-V cause, program counter, trap value.
    Fault {
        /// Value of `mcause`.
        cause: u64,
        /// Address of the instruction.
        pc: u64,
        /// Value of `mtval`.
        value: u64,
    },
    /// Its program panicked.
    Panic,
    /// Its heap was exhausted.
    OutOfMemory,
    /// Its manager stopped it.
    Killed,
}

impl StopCause {
    /// Kind, and three words that depend on it.
    pub const fn to_words(self) -> [u64; 4] {
        match self {
            StopCause::Exit(code) => [0, code, 0, 0],
            StopCause::Fault { cause, pc, value } => [1, cause, pc, value],
            StopCause::Panic => [2, 0, 0, 0],
            StopCause::OutOfMemory => [3, 0, 0, 0],
            StopCause::Killed => [4, 0, 0, 0],
        }
    }

    /// The cause that these words are.
    pub const fn from_words(words: [u64; 4]) -> Option<Self> {
        Some(match words {
            [0, code, ..] => StopCause::Exit(code),
            [1, cause, pc, value] => StopCause::Fault { cause, pc, value },
            [2, ..] => StopCause::Panic,
            [3, ..] => StopCause::OutOfMemory,
            [4, ..] => StopCause::Killed,
            _ => return None,
        })
    }
}
