//! The interrupt controller of a tile with one hart.
//!
//! Why it exists: other parts of the chip interrupt the tile by messages, and the hart asks its controller for the source. With one hart,
//! messages and accesses come in the order of their moments, so a line changes at once. What it deliberately does not know: the hart.

use super::{Local, Signal};
use crate::device::Plic;
use crate::hart::InterruptLine;
use crate::noc::{Packet, PacketKind};
use bulkhead_abi::memory_map::{PLIC_BASE, PLIC_SIZE};

/// The lines, by context.
const LINES: [InterruptLine; 2] = [InterruptLine::External, InterruptLine::SupervisorExternal];

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Interrupts {
    plic: Plic,
    levels: [bool; LINES.len()],
}

impl Default for Interrupts {
    fn default() -> Self {
        Self {
            plic: Plic::new(LINES.len()),
            levels: [false; LINES.len()],
        }
    }
}

impl Interrupts {
    /// Something has changed: so have these lines.
    fn lines(&mut self, signals: &mut Vec<Signal>) {
        for (context, line) in LINES.into_iter().enumerate() {
            let level = self.plic.level(context);
            if self.levels[context] != level {
                self.levels[context] = level;
                signals.push(Signal::Line(line, level));
            }
        }
    }
}

impl Local {
    /// Another part interrupts the tile.
    pub(super) fn interrupted(&mut self, packet: &Packet) {
        let (PacketKind::Interrupt { source }, Some(interrupts)) =
            (&packet.kind, &mut self.interrupts)
        else {
            panic!("no interrupt for this tile: {packet:?}");
        };
        interrupts.plic.message((*source).into());
        interrupts.lines(&mut self.signals);
    }

    /// An access to the interrupt controller: reads, or writes the value. `None`: the address is not there; `Some(None)`: nothing answers.
    pub(super) fn controller(
        &mut self,
        (physical, bytes): (u64, u8),
        write: Option<u64>,
    ) -> Option<Option<u64>> {
        let offset = physical.wrapping_sub(PLIC_BASE);
        let interrupts = self.interrupts.as_mut().filter(|_| offset < PLIC_SIZE)?;
        let value = match write {
            None => interrupts.plic.read(offset, bytes),
            Some(value) => interrupts.plic.write(offset, bytes, value).map(|()| 0),
        };
        interrupts.lines(&mut self.signals);
        Some(value)
    }
}
