//! A streaming unit controlled by an attacker.
//!
//! Why it exists: for tests of isolation. What it deliberately does not know: what a unit should do.

use super::{Ports, Waits};
use crate::types::Tick;
use bulkhead_abi::dtu::{
    ADDRESS, ARGUMENT, COMMAND, Opcode, PRIVILEGED_ARGUMENT, PRIVILEGED_COMMAND, SIZE,
};
use bulkhead_abi::tilemux;

/// Random accesses to every register and to random memory of its own tile, forever.
pub fn rampage(ports: &mut dyn Ports, random: &mut u64, cycle: Tick) -> Waits {
    let mut next = || {
        // xorshift64* (Vigna, ACM Transactions on Mathematical Software 42, 2016)
        *random ^= *random >> 12;
        *random ^= *random << 25;
        *random ^= *random >> 27;
        random.wrapping_mul(0x2545_F491_4F6C_DD1D)
    };
    for _ in 0..8 {
        let value = match next() % 4 {
            0 => next(),
            1 => next() % 4096,
            2 => tilemux::TILEMUX_BASE + next() % (1 << 21),
            _ => (next() % 8) | ((next() % 64) << 8) | ((next() % 64) << 32),
        };
        let offset = match next() % 8 {
            0 => (next() % 0x8000) & !7,
            1 => COMMAND,
            2 => ADDRESS,
            3 => SIZE,
            4 => ARGUMENT,
            5 => PRIVILEGED_ARGUMENT + 8 * (next() % 2),
            6 => PRIVILEGED_COMMAND,
            _ => COMMAND,
        };
        // A sleeping unit cannot attack.
        if offset == COMMAND && value as u8 == Opcode::Sleep as u8 {
            continue;
        }
        ports.write(offset, value);
        ports.read(offset);
    }
    Waits::Until(ports.now() + cycle * 16)
}
