//! Registers of a platform-level interrupt controller (PLIC).
//!
//! Why it exists: software finds out which part of the chip interrupted it, and the machine model is the controller. What it deliberately
//! does not know: what sources are, except for those of DMA engines and devices beside the tiles ([`source`]).
//!
//! The layout is that of the RISC-V Platform-Level Interrupt Controller Specification, version 1.0.0. All registers have four bytes. A
//! tile or cluster that takes interrupts has a controller of its own, at [`crate::memory_map::PLIC_BASE`].

use crate::dma::CHANNELS_MAX;
use crate::memory_map::DMA_ENGINES;

/// Offset of the priority of source 0, which does not exist; four bytes for each source.
pub const PRIORITY: u64 = 0;
/// Offset of the pending bits, which are read only: source `s` is bit `s % 32` of word `s / 32`.
pub const PENDING: u64 = 0x1000;
/// Offset of the enable bits of context 0, in the same order.
pub const ENABLE: u64 = 0x2000;
/// Bytes of enable bits of a context.
pub const ENABLE_SIZE: u64 = 0x80;
/// Offset of the threshold of context 0.
pub const THRESHOLD: u64 = 0x20_0000;
/// Offset of the claim and completion register from a context's threshold.
pub const CLAIM: u64 = 4;
/// Bytes from a context's threshold to that of the next context.
pub const CONTEXT_SIZE: u64 = 0x1000;

/// The highest priority; 0 never interrupts. The register has three bits, as on SiFive's chips.
pub const PRIORITY_MAX: u32 = 7;
/// The highest number of a source.
pub const SOURCES: u32 = DMA_ENGINES as u32 * CHANNELS_MAX;

/// The source of a channel of an engine, or of a device (channel 0). Engines and devices count in the order of their pages
/// ([`crate::memory_map::DMA_BASE`]).
pub const fn source(engine: u32, channel: u32) -> u32 {
    1 + engine * CHANNELS_MAX + channel
}

/// The machine-mode context of the hart at a port of a cluster; a single hart has port 0. The next one is its supervisor-mode context.
pub const fn context(port: u32) -> u32 {
    2 * port
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets as the specification writes them, in its memory map.
    #[test]
    fn registers_are_where_the_specification_has_them() {
        assert_eq!(PRIORITY + 4, 0x00_0004);
        assert_eq!(PENDING + 0x7C, 0x00_107C);
        assert_eq!(ENABLE, 0x00_2000);
        assert_eq!(ENABLE + ENABLE_SIZE, 0x00_2080);
        assert_eq!(THRESHOLD, 0x20_0000);
        assert_eq!(THRESHOLD + CLAIM, 0x20_0004);
        assert_eq!(THRESHOLD + CONTEXT_SIZE + CLAIM, 0x20_1004);
    }

    #[test]
    fn every_channel_has_a_source() {
        assert_eq!(source(0, 0), 1);
        assert_eq!(source(1, 2), 11);
        assert_eq!(source(15, 7), SOURCES);
        assert_eq!(context(3), 6);
    }
}
