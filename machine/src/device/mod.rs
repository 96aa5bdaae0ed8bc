//! The devices of a tile: timer, console, exit, host-target interface, network card.
//!
//! Why it exists: programs for QEMU's `virt` board expect them at the addresses of `abi::memory_map`. The small ones answer
//! immediately and cost as much as the hart charges for an uncached access. What they deliberately do not know: the event queue and
//! the hart; they only say what the tile has to do.

pub mod clint;
pub mod clock;
pub mod htif;
pub mod network;
pub mod plic;
pub mod uart;

pub use clint::Clint;
pub use clock::{Clock, ClockConfig};
pub use htif::{Htif, HtifEffect};
pub use plic::Plic;
pub use uart::Uart;

use bulkhead_abi::memory_map::{EXIT_FAIL, EXIT_PASS};

/// The request of a write to the exit device: an exit code, if the value means one.
pub fn exit_code(value: u32) -> Option<u32> {
    match value & 0xFFFF {
        low if low == EXIT_PASS => Some(0),
        low if low == EXIT_FAIL => Some(value >> 16),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_of_the_test_finisher() {
        // QEMU's sifive_test: 0x5555 passes, 0x3333 fails with the code in the upper half.
        assert_eq!(exit_code(0x5555), Some(0));
        assert_eq!(exit_code(7 << 16 | 0x3333), Some(7));
        assert_eq!(exit_code(0x7777), None);
    }
}
