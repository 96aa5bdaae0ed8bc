//! Registers of a chip's doorbells: harts of all tiles interrupt each other with them.
//!
//! Why it exists: software of one hart tells another one that there is something to look at, and the machine model has the registers. What
//! it deliberately does not know: when an interrupt reaches its hart.
//!
//! The doorbells are one part beside the tiles, with a page behind those of the DMA engines and devices
//! ([`crate::memory_map::DMA_BASE`]). Every hart of the chip finds its own registers at the same address, as at a GICv2: the part knows who
//! accesses it. So no hart writes in the name of another one, or changes whom another one listens to. Harts count in the order of tiles,
//! and in a tile by port.

/// Offset of the bell of hart 0; four bytes for each hart, as a software-interrupt device of the ACLINT has them. A write with bit 0 set
/// rings the hart's bell in the name of the writer. It reads 1 until that hart has taken the ring.
pub const BELL: u64 = 0;
/// Offset of the rings of the own bell (eight bytes): bit `h` is a ring of hart `h`. Writing a 1 takes the ring.
pub const RUNG: u64 = 0x400;
/// Offset of the mask of the own bell (eight bytes): only rings of these harts interrupt. 0 after a reset.
pub const HEARD: u64 = 0x408;

/// The most harts: each has a bit.
pub const HARTS: usize = 64;

/// Offset of the bell of a hart.
pub const fn bell(hart: u64) -> u64 {
    BELL + 4 * hart
}
