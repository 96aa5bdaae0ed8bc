//! The simulator's copy of a program that crashed, or that ran when a run ended: its registers and its stack.
//!
//! Why it exists: the callers of the function that crashed are on its stack, and that memory gets another owner soon after. What it
//! deliberately does not know: programs, and the names of programs and functions.

use crate::hart::UnhandledTrap;
use crate::types::{Owner, Tick, TileId};

/// Bytes of the stack that are kept, upwards from the stack pointer.
pub const STACK: u64 = 64 * 1024;
/// Number of crashes kept per tile. The first ones are kept, because a program that is restarted again and again may crash forever.
pub const KEPT: usize = 64;
/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// A program that crashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crashed {
    /// When its multiplexer reported it: the time of the marker.
    pub at: Tick,
    /// Tile and activity.
    pub owner: Owner,
    /// Cause, place and value of the trap.
    pub trap: UnhandledTrap,
    /// Integer registers `x0` to `x31`.
    pub registers: [u64; 32],
    /// The mapped pages of its stack: virtual address and contents.
    pub(crate) stack: Vec<(u64, Vec<u8>)>,
}

impl Crashed {
    /// A word at a virtual address of the program, if it was kept.
    pub fn word(&self, address: u64) -> Option<u64> {
        word(&self.stack, address)
    }
}

/// A program that is in user mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Tile and activity.
    pub owner: Owner,
    /// Where it is.
    pub pc: u64,
    /// Integer registers `x0` to `x31`.
    pub registers: [u64; 32],
    /// Pages of its stack that are mapped: virtual address and contents.
    pub stack: Vec<(u64, Vec<u8>)>,
    /// Tiles to which it can send nothing, because it has no credits left for a receive endpoint there.
    pub spent: Vec<TileId>,
    /// If it sleeps until a message arrives: the activities that can send that message, the unit's rights to answer included.
    pub awaits: Option<Vec<Owner>>,
}

impl Running {
    /// A word at a virtual address of the program, if it is on the stack.
    pub fn word(&self, address: u64) -> Option<u64> {
        word(&self.stack, address)
    }
}

fn word(stack: &[(u64, Vec<u8>)], address: u64) -> Option<u64> {
    let mut word = [0; 8];
    for (byte, at) in word.iter_mut().zip(address..address.checked_add(8)?) {
        let page = stack.iter().find(|page| page.0 == at & !(PAGE - 1))?;
        *byte = *page.1.get((at & (PAGE - 1)) as usize)?;
    }
    Some(u64::from_le_bytes(word))
}

/// The physical address of a byte that a program in user mode may read, by Sv39 (privileged specification 20211203, section 4.4).
/// `read` returns a word of physical memory.
pub(crate) fn physical(
    translation: u64,
    address: u64,
    read: &dyn Fn(u64) -> Option<u64>,
) -> Option<u64> {
    const NUMBER: u64 = (1 << 44) - 1;
    const VALID: u64 = 1;
    const READ: u64 = 2;
    const LEAF: u64 = 0b1110;
    const USER: u64 = 16;
    match translation >> 60 {
        0 => return Some(address),
        8 => {}
        _ => return None,
    }
    let mut table = (translation & NUMBER) << 12;
    for level in [2, 1, 0] {
        let shift = 12 + 9 * level;
        let entry = read(table + (address >> shift & 0x1ff) * 8)?;
        if entry & VALID == 0 {
            return None;
        }
        let found = (entry >> 10 & NUMBER) << 12;
        if entry & LEAF != 0 {
            let inside = (1 << shift) - 1;
            let allowed = entry & READ != 0 && entry & USER != 0;
            return allowed.then_some(found & !inside | address & inside);
        }
        table = found;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_every_size_are_found_and_others_refused() {
        // One table of each level, at 0x1000, 0x2000 and 0x3000.
        let entries = [
            (0x1000 + 8, 0x2000 >> 2 | 1),
            (0x1000 + 2 * 8, 0x4000_0000 >> 2 | 0b10011),
            (0x2000, 0x3000 >> 2 | 1),
            (0x2000 + 8, 0x0020_0000 >> 2 | 0b10011),
            (0x3000 + 5 * 8, 0x7000 >> 2 | 0b10011),
            // Not for user mode, not readable, not valid.
            (0x3000 + 6 * 8, 0x7000 >> 2 | 0b00011),
            (0x3000 + 7 * 8, 0x7000 >> 2 | 0b11001),
            (0x3000 + 8 * 8, 0x7000 >> 2 | 0b10010),
        ];
        let read = |address| {
            let all = entries.iter();
            Some(all.filter(|e| e.0 == address).map(|e| e.1).sum())
        };
        let of = |address| physical(8 << 60 | 1, address, &read);
        assert_eq!(of(0x4000_5008), Some(0x7008));
        assert_eq!(of(0x4020_1234), Some(0x0020_1234));
        assert_eq!(of(0x8765_4321), Some(0x4765_4321));
        for address in [0x4000_6000, 0x4000_7000, 0x4000_8000, 0x4000_9000, 0] {
            assert_eq!(of(address), None, "{address:#x}");
        }
        assert_eq!(physical(0, 0x1234, &read), Some(0x1234));
        assert_eq!(physical(9 << 60 | 1, 0x4000_5008, &read), None);
    }

    #[test]
    fn words_may_cross_pages_that_were_kept() {
        let crashed = Crashed {
            at: 0,
            owner: Owner::new(1, 2),
            trap: UnhandledTrap {
                cause: 0,
                pc: 0,
                value: 0,
            },
            registers: [0; 32],
            stack: vec![(0x1000, vec![1; 4096]), (0x2000, vec![2; 4096])],
        };
        assert_eq!(crashed.word(0x1ffc), Some(0x0202_0202_0101_0101));
        assert_eq!(crashed.word(0x2ffc), None);
        assert_eq!(crashed.word(0xffc), None);
        assert_eq!(crashed.word(u64::MAX - 3), None);
    }
}
