//! Registers and descriptors of a DMA engine: of a tile with a local memory, or beside the tiles of a bare chip.
//!
//! Why it exists: software programs the engine, and the machine model is it. What it deliberately does not know: what a transfer costs.
//!
//! `docs/reference/dma.md` describes each field. All registers have eight bytes and are accessed whole. A channel's first eight registers
//! are a descriptor, and a descriptor in memory has the same layout.

/// Offset of the first channel in a page of registers: a tile's ([`crate::memory_map::TILE_REGISTERS`]), or the engine's own
/// ([`crate::memory_map::DMA_BASE`]).
pub const FIRST_CHANNEL: u64 = 0x400;
/// Bytes of registers of a channel; the next channel follows.
pub const CHANNEL_SIZE: u64 = 0x80;
/// The most channels of an engine.
pub const CHANNELS_MAX: u32 = 8;

/// Bytes of a descriptor: eight words.
pub const DESCRIPTOR_SIZE: u64 = 0x40;
/// Word: bits 0 and 1 are the binary logarithm of an element's bytes, bit 2 is [`INTERRUPT_AT_END`]; the upper 32 bits are the flag's value.
/// All other bits are 0.
pub const CONFIG: u64 = 0x00;
/// Word: address of the first element's source.
pub const SOURCE: u64 = 0x08;
/// Word: address of the first element's destination.
pub const DESTINATION: u64 = 0x10;
/// Word: elements of a row (low 32 bits) and rows (high 32 bits).
pub const COUNTS: u64 = 0x18;
/// Word: bytes from an element of a row to the next one, signed: of the source (low 32 bits) and of the destination (high 32 bits).
pub const ELEMENT_STRIDES: u64 = 0x20;
/// Word: bytes from the start of a row to the start of the next one, in the same way.
pub const ROW_STRIDES: u64 = 0x28;
/// Word: address of the next descriptor; 0: this is the last one.
pub const NEXT: u64 = 0x30;
/// Word: address of eight bytes that get the flag's value when all elements have been written; 0: there is no flag.
pub const FLAG: u64 = 0x38;

/// Register: a write of [`START`], [`START_CHAIN`] or [`STOP`]; it reads 0.
pub const CONTROL: u64 = 0x40;
/// Register: bits 0 to 7 are a [`State`], bits 8 to 15 a [`Cause`].
pub const STATUS: u64 = 0x48;
/// Register: the address that ended the transfer with an error.
pub const ERROR_ADDRESS: u64 = 0x50;
/// Register: bit 0 is 1 while the channel asks for an interrupt. A write with bit 0 ends that.
pub const INTERRUPT: u64 = 0x58;
/// Register: descriptors that have ended since the channel was started.
pub const COMPLETED: u64 = 0x60;
/// Register: the address of the descriptor in the channel's registers; 0: software wrote them.
pub const DESCRIPTOR: u64 = 0x68;
/// Offset after the last register of a channel.
pub const REGISTERS_END: u64 = 0x70;

/// Value of [`CONTROL`]: start with the descriptor in the registers.
pub const START: u64 = 1;
/// Value of [`CONTROL`]: start with the descriptor at the address in [`NEXT`].
pub const START_CHAIN: u64 = 2;
/// Value of [`CONTROL`]: begin no other access.
pub const STOP: u64 = 4;

/// Bit of [`CONFIG`]: ask for an interrupt when this descriptor has ended.
pub const INTERRUPT_AT_END: u64 = 1 << 2;
/// Bits of [`CONFIG`] that must be 0.
pub const CONFIG_RESERVED: u64 = 0xFFFF_FFF8;

/// What a channel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It was never started.
    #[default]
    Idle = 0,
    /// It works, or waits for outstanding accesses. Writes of a descriptor and starts have no effect.
    Busy = 1,
    /// The last descriptor has ended.
    Done = 2,
    /// The transfer ended with an error.
    Error = 3,
    /// The transfer was stopped.
    Stopped = 4,
}

/// Why a transfer ended with an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// There was no error.
    #[default]
    None = 0,
    /// A read: nothing answers at the address.
    ReadNothing = 1,
    /// A write: nothing answers at the address.
    WriteNothing = 2,
    /// A guard refused a read.
    ReadRefused = 3,
    /// A guard refused a write.
    WriteRefused = 4,
    /// A bit of the configuration must be 0, or an address or a stride is not a multiple of an element's bytes (for flag and next
    /// descriptor: of eight bytes). The error's address is the descriptor's.
    Descriptor = 5,
}

/// The words of a transfer of `elements` contiguous elements of `1 << log2` bytes, without interrupt, flag, or next descriptor.
pub const fn contiguous(log2: u64, source: u64, destination: u64, elements: u32) -> [u64; 8] {
    let stride = 1u64 << log2;
    [
        log2,
        source,
        destination,
        elements as u64 | 1 << 32,
        stride | stride << 32,
        0,
        0,
        0,
    ]
}
