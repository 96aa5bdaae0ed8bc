//! What an access does once its line has arrived.
//!
//! Why it exists: a value is the one at the moment when the hart has the line, not at the moment when it asks for it. An access
//! that misses is queued here with its address, its operation and its operands, and is performed when the line arrives: a load
//! takes its value, a store becomes visible, an atomic operation reads and writes in one step. Until then the destination is among
//! the registers that wait, so no instruction sees an old value.
//!
//! All accesses of one hart to one line are performed in program order, no matter which of them asked for the line. So a load sees
//! the stores before it without comparing addresses on every hit. A known line has no access left to perform ([`super::lines`]).
//! What it deliberately does not know: how long anything takes ([`super::pending`], [`super::store_buffer`]), and where a line's
//! bytes are.

use super::bus::Bus;
use super::core::Core;
use super::isa::{Kind, Op, a};

/// The bytes of one line.
pub trait LineBytes {
    /// Reads `bytes` (1 to 8) at an offset in the line, little endian, zero-extended.
    fn read(&mut self, offset: u64, bytes: u8) -> u64;
    /// Writes the low `bytes` of `value`.
    fn write(&mut self, offset: u64, bytes: u8, value: u64);
    /// A load-reserved reads at an offset in the line.
    fn reserve(&mut self, offset: u64) {
        let _ = offset;
    }
    /// Ends the reservation. Returns whether it was for this line and the line has stayed in the cache since then; `None` if memory
    /// is flat.
    fn take_reservation(&mut self, offset: u64) -> Option<bool> {
        let _ = offset;
        None
    }
}

impl LineBytes for [u8] {
    #[inline(always)]
    fn read(&mut self, offset: u64, bytes: u8) -> u64 {
        let mut value = [0; 8];
        let at = &self[offset as usize..];
        match bytes {
            8 => value.copy_from_slice(&at[..8]),
            4 => value[..4].copy_from_slice(&at[..4]),
            2 => value[..2].copy_from_slice(&at[..2]),
            1 => value[0] = at[0],
            _ => value[..bytes as usize].copy_from_slice(&at[..bytes as usize]),
        }
        u64::from_le_bytes(value)
    }

    #[inline(always)]
    fn write(&mut self, offset: u64, bytes: u8, value: u64) {
        let at = &mut self[offset as usize..];
        let value = value.to_le_bytes();
        match bytes {
            8 => at[..8].copy_from_slice(&value),
            4 => at[..4].copy_from_slice(&value[..4]),
            2 => at[..2].copy_from_slice(&value[..2]),
            1 => at[0] = value[0],
            _ => at[..bytes as usize].copy_from_slice(&value[..bytes as usize]),
        }
    }
}

/// The operation of an access.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// A load within a line.
    Load(Op),
    /// The part of a line-crossing load in one line: its bytes, and its shift in the value in bits.
    Part(Op, u8, u8),
    /// Load-reserved.
    Reserve(Op),
    /// Store-conditional: the value that its load-reserved read, and the value to store.
    Conditional(Op, u64, u64),
    /// An atomic read-modify-write with its operand.
    Modify(Op, u64),
    /// A store of the low bytes of a value.
    Store(u8, u64),
    /// The whole line becomes zero.
    Zero,
    /// A load within a line by an out-of-order pipeline. The value is kept under this number until the load retires.
    Early(Op, u64),
}

/// An access that has not been performed yet.
#[derive(Clone, Copy, Debug)]
pub struct Late {
    /// Name of its line ([`Bus::line_name`]). By the time this line arrives, the address may mean another line.
    pub line: u64,
    /// Physical address.
    pub address: u64,
    /// Its action.
    pub action: Action,
}

/// A load across two lines of which one part is still missing.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    /// The bytes that have arrived.
    value: u64,
    /// Parts that are missing.
    missing: u8,
    /// Destination of the load; a register waits for only one load at a time.
    destination: (Kind, u8),
}

impl Core {
    /// Defers an access until its line arrives.
    pub fn later<B: Bus>(&mut self, bus: &B, address: u64, action: Action) {
        self.late.push(Late {
            line: bus.line_name(address & self.line_mask),
            address,
            action,
        });
    }

    /// Stores that have not been performed, in program order: address, bytes and value.
    pub fn waiting_stores(&self) -> impl Iterator<Item = (u64, u8, u64)> {
        self.late.iter().filter_map(|late| match late.action {
            Action::Store(bytes, value) => Some((late.address, bytes, value)),
            _ => None,
        })
    }

    /// Keeps the part of a line-crossing load that has arrived.
    pub fn split_load(&mut self, op: &Op, value: u64, missing: u8) {
        self.splits.push(Split {
            value,
            missing,
            destination: (op.kind, op.rd),
        });
    }

    /// Performs, in program order, everything that waits for the line with the name `line`.
    pub fn perform_line<M: LineBytes + ?Sized>(&mut self, line: u64, memory: &mut M) {
        let offset = !self.line_mask;
        let mut next = 0;
        while let Some(&late) = self.late.get(next) {
            if late.line == line {
                self.late.remove(next);
                self.perform(late.address & offset, late.address, late.action, memory);
            } else {
                next += 1;
            }
        }
    }

    /// Performs one access at an offset in its line.
    pub fn perform<M: LineBytes + ?Sized>(
        &mut self,
        offset: u64,
        address: u64,
        action: Action,
        memory: &mut M,
    ) {
        match action {
            Action::Load(op) => {
                let value = memory.read(offset, load_bytes(&op));
                self.set_loaded(&op, value);
            }
            Action::Part(op, bytes, shift) => {
                let part = memory.read(offset, bytes) << shift;
                self.add_part(&op, part);
            }
            Action::Reserve(op) => {
                let value = memory.read(offset, a::bytes(&op));
                // A trap in between ended the reservation before it began.
                if std::mem::take(&mut self.reserving) {
                    self.reservation = Some((address, value));
                    memory.reserve(offset);
                }
                self.x[op.rd as usize & 63] = a::extend(&op, value);
            }
            Action::Conditional(op, seen, value) => {
                let success = match memory.take_reservation(offset) {
                    Some(kept) => kept,
                    None => memory.read(offset, a::bytes(&op)) == seen,
                };
                if success {
                    memory.write(offset, a::bytes(&op), value);
                    self.statistics.stores += 1;
                }
                self.x[op.rd as usize & 63] = !success as u64;
            }
            Action::Modify(op, operand) => {
                let old = a::extend(&op, memory.read(offset, a::bytes(&op)));
                let new = a::combine(&op, old, a::extend(&op, operand));
                memory.write(offset, a::bytes(&op), new);
                self.x[op.rd as usize & 63] = old;
            }
            Action::Store(bytes, value) => memory.write(offset, bytes, value),
            Action::Early(op, number) => {
                let value = loaded(&op, memory.read(offset, load_bytes(&op)));
                self.early.push((number, value));
            }
            Action::Zero => {
                for at in (0..=!self.line_mask).step_by(8) {
                    memory.write(at, 8, 0);
                }
            }
        }
        self.complete_trap(&action);
    }

    fn add_part(&mut self, op: &Op, part: u64) {
        let destination = (op.kind, op.rd);
        let position = self
            .splits
            .iter()
            .position(|split| split.destination == destination);
        let position = position.expect("a part belongs to a load across lines");
        let split = &mut self.splits[position];
        split.value |= part;
        split.missing -= 1;
        if split.missing == 0 {
            let value = self.splits.swap_remove(position).value;
            self.set_loaded(op, value);
        }
    }

    /// Writes the loaded value into its destination.
    fn set_loaded(&mut self, op: &Op, value: u64) {
        let value = loaded(op, value);
        match op.kind {
            Kind::Flw | Kind::Fld => self.f[op.rd as usize & 31] = value,
            _ => self.x[op.rd as usize & 63] = value,
        }
    }
}

/// The result of a load, given the bytes that it read.
pub fn loaded(op: &Op, value: u64) -> u64 {
    match op.kind {
        Kind::Lb => value as i8 as i64 as u64,
        Kind::Lh => value as i16 as i64 as u64,
        Kind::Lw => value as i32 as i64 as u64,
        Kind::Flw => value | 0xffff_ffff_0000_0000,
        _ => value,
    }
}

/// Bytes of a load.
pub fn load_bytes(op: &Op) -> u8 {
    match op.kind {
        Kind::Lb | Kind::Lbu => 1,
        Kind::Lh | Kind::Lhu => 2,
        Kind::Lw | Kind::Lwu | Kind::Flw => 4,
        _ => 8,
    }
}
