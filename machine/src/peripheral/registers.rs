//! The registers of a peripheral, and what it refuses.
//!
//! Why it exists: software commands the device with them. A command is checked as a whole before any part of it is done, so a refused one
//! has no effect except that it is counted. What it deliberately does not know: how bytes move.

use super::transfer::{From, Job, To};
use super::{Peripheral, Running};
use crate::config::PeripheralKind;
use crate::types::{Tick, align};
use bulkhead_abi::peripheral::{
    AT_END, AT_PACKET, AT_REFUSAL, CAPACITY, CAUSE, COMMAND, COMPLETED, CONSUMED, CULPRIT, Cause,
    ENABLE, FILL, FRAMES, INTERRUPT, KIND, Kind, LENGTH, LINES, OVERFLOWS, PROCESS, QUEUED, READ,
    REFUSED, REGISTERS_END, SIZE, SOURCE, START, STOP, UNIT, WRITE,
};

/// Whether an access to the registers of a peripheral has a target.
pub fn is_register(offset: u64, bytes: u8) -> bool {
    bytes == 8 && offset.is_multiple_of(8) && offset < REGISTERS_END
}

/// Why a command is refused, and the value that is wrong.
type Refusal = (Cause, u64);

impl Peripheral {
    /// Reads a register; `None` if there is none.
    pub fn read(&self, offset: u64, bytes: u8) -> Option<u64> {
        if !is_register(offset, bytes) {
            return None;
        }
        Some(match offset {
            KIND => match self.kind {
                PeripheralKind::Storage { .. } => Kind::Storage as u64,
                PeripheralKind::Camera { .. } => Kind::Camera as u64,
                PeripheralKind::Accelerator { .. } => Kind::Accelerator as u64,
            },
            SOURCE..=LENGTH => self.arguments[(offset - SOURCE) as usize / 8],
            QUEUED => self.queued() as u64,
            CAPACITY => self.queue as u64,
            COMPLETED => self.completed,
            REFUSED => self.refused,
            CAUSE => self.cause as u64,
            CULPRIT => self.culprit,
            INTERRUPT => self.interrupt.into(),
            ENABLE => self.enable,
            SIZE => self.content.len() as u64,
            UNIT => match self.kind {
                PeripheralKind::Storage { block, .. } => block.into(),
                PeripheralKind::Camera { packet, .. } => packet.into(),
                PeripheralKind::Accelerator { .. } => 0,
            },
            LINES => match self.kind {
                PeripheralKind::Camera { lines, .. } => lines.into(),
                _ => 0,
            },
            CONSUMED => self.consumed,
            OVERFLOWS => self.overflows,
            FRAMES => self.frames,
            // Write only.
            _ => 0,
        })
    }

    /// Writes a register; `None` if there is none.
    pub fn write(&mut self, now: Tick, offset: u64, bytes: u8, value: u64) -> Option<()> {
        if !is_register(offset, bytes) {
            return None;
        }
        match offset {
            COMMAND => {
                // In the next cycle at the earliest.
                let edge = align(now, self.cycle);
                if let Err((cause, culprit)) = self.command(edge, value) {
                    self.refuse(cause, culprit);
                }
                let next = self.next_event(edge).max(edge + self.cycle);
                self.next = self.next.min(next);
            }
            SOURCE..=LENGTH => self.arguments[(offset - SOURCE) as usize / 8] = value,
            CAUSE => (self.cause, self.culprit) = (Cause::None, 0),
            INTERRUPT if value & 1 != 0 => self.interrupt = false,
            ENABLE => self.enable = value & (AT_END | AT_REFUSAL | AT_PACKET),
            // A program cannot free what was not delivered yet.
            CONSUMED if self.running.is_some() => {
                self.consumed = value.clamp(self.consumed, self.completed.max(self.consumed));
            }
            _ => {}
        }
        Some(())
    }

    fn command(&mut self, edge: Tick, opcode: u64) -> Result<(), Refusal> {
        let [source, destination, length] = self.arguments;
        let job = |from, to| Job {
            from,
            to,
            bytes: length,
        };
        let job = match (self.kind, opcode) {
            (PeripheralKind::Storage { block, .. }, READ) => {
                let content = self.blocks(source, block)?;
                job(
                    From::Content(content),
                    To::Memory(self.memory(destination)?),
                )
            }
            (PeripheralKind::Storage { block, .. }, WRITE) => {
                let content = self.blocks(destination, block)?;
                job(From::Memory(self.memory(source)?), To::Content(content))
            }
            (PeripheralKind::Accelerator { .. }, PROCESS | FILL) => {
                if length == 0 || !length.is_multiple_of(8) {
                    return Err((Cause::Length, length));
                }
                let from = match opcode {
                    FILL => From::Word(source),
                    _ => From::Memory(self.memory(source)?),
                };
                job(from, To::Memory(self.memory(destination)?))
            }
            (PeripheralKind::Camera { packet, .. }, START) => {
                return self.start(edge, packet.into());
            }
            (PeripheralKind::Camera { .. }, STOP) => {
                self.running = None;
                return Ok(());
            }
            _ => return Err((Cause::Opcode, opcode)),
        };
        if self.queued() >= self.queue {
            return Err((Cause::Busy, opcode));
        }
        self.waiting.push_back(job);
        Ok(())
    }

    /// The offset of the first of some blocks, which exist.
    fn blocks(&self, first: u64, block: u32) -> Result<u64, Refusal> {
        let (length, block) = (self.arguments[2], u64::from(block));
        if length == 0 || !length.is_multiple_of(block) {
            return Err((Cause::Length, length));
        }
        let all = self.content.len() as u64 / block;
        match first < all && length / block <= all - first {
            true => Ok(first * block),
            false => Err((Cause::Block, first)),
        }
    }

    /// An address of a range in one of the device's windows.
    fn memory(&self, address: u64) -> Result<u64, Refusal> {
        let length = self.arguments[2];
        let inside = |(base, bytes): &(u64, u64)| {
            let offset = address.wrapping_sub(*base);
            offset < *bytes && length <= bytes - offset
        };
        match address.is_multiple_of(8) && self.windows.iter().any(inside) {
            true => Ok(address),
            false => Err((Cause::Memory, address)),
        }
    }

    fn start(&mut self, edge: Tick, packet: u64) -> Result<(), Refusal> {
        let [_, ring, length] = self.arguments;
        // Packets of an earlier ring would count for this one.
        if self.running.is_some() || self.queued() > 0 {
            return Err((Cause::Busy, START));
        }
        if length == 0 || !length.is_multiple_of(packet) {
            return Err((Cause::Length, length));
        }
        let at = edge + self.startup;
        self.running = Some(Running {
            ring: self.memory(ring)?,
            slots: length / packet,
            taken: 0,
            next: (0, 0),
            at,
            frame: at,
        });
        (self.completed, self.consumed) = (0, 0);
        (self.overflows, self.frames) = (0, 0);
        Ok(())
    }
}
