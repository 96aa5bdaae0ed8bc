//! Keeps what is known about a program that crashed on this tile.
//!
//! What it deliberately does not know: when software reports a crash ([`super::bus`] receives the report).

use super::bus::TileBus;
use crate::crash::{Crashed, KEPT, PAGE, STACK, physical};
use crate::hart::UserTrap;
use crate::types::Tick;
use bulkhead_abi::memory_map::MEMORY_BASE;

/// The stack pointer's register.
const SP: usize = 2;

impl<const TCM: bool> TileBus<'_, TCM> {
    /// Copies the program's state: its registers, and its stack as its own loads would find it.
    pub(super) fn keep(&mut self, at: Tick, trap: &UserTrap, stores: &[(u64, u8, u64)]) {
        if self.local.crashes.len() >= KEPT {
            return;
        }
        let read = |address: u64, buffer: &mut [u8]| {
            let there = (address >= MEMORY_BASE || self.local.tcm.own(address).is_some())
                && self.local.peek(self.caches, address, buffer, self.fabric);
            there.then_some(())
        };
        let word = |address: u64| {
            let mut bytes = [0; 8];
            read(address, &mut bytes)?;
            Some(u64::from_le_bytes(bytes))
        };
        let first = trap.registers[SP] & !(PAGE - 1);
        let pages = (0..=STACK / PAGE).filter_map(|page| {
            let address = first.checked_add(page * PAGE)?;
            let from = physical(trap.translation, address, &word)?;
            let mut bytes = vec![0; PAGE as usize];
            read(from, &mut bytes)?;
            for (store, length, value) in stores {
                let value = value.to_le_bytes();
                for (byte, at) in value.iter().zip(*store..).take(usize::from(*length)) {
                    let inside = at.checked_sub(from).and_then(|at| usize::try_from(at).ok());
                    if let Some(place) = inside.and_then(|at| bytes.get_mut(at)) {
                        *place = *byte;
                    }
                }
            }
            Some((address, bytes))
        });
        let stack = pages.collect();
        self.local.crashes.push(Crashed {
            at,
            owner: self.local.owner,
            trap: trap.trap,
            registers: trap.registers,
            stack,
        });
    }
}
