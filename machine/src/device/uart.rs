//! A 16550-compatible console.
//!
//! Output is collected; input comes from a queue that is filled before or between runs. The transmitter is always empty and
//! there are no interrupts: polled drivers, as in firmware and bare-metal programs, need no more. Registers after National
//! Semiconductor's PC16550D data sheet.

use std::collections::VecDeque;

const DATA: u64 = 0;
const INTERRUPT_ENABLE: u64 = 1;
const INTERRUPT_IDENTIFICATION: u64 = 2;
const LINE_CONTROL: u64 = 3;
const MODEM_CONTROL: u64 = 4;
const LINE_STATUS: u64 = 5;
const MODEM_STATUS: u64 = 6;
const SCRATCH: u64 = 7;
/// Line control: registers 0 and 1 are the divisor latch.
const DIVISOR_ACCESS: u8 = 0x80;
/// Line status: transmitter and its holding register are empty.
const TRANSMITTER_EMPTY: u8 = 0x60;
const DATA_READY: u8 = 1;

/// Maximum bytes of a console's output kept, because a program may print forever. On chips with many consoles it is less.
pub const OUTPUT_MAX: usize = 1 << 24;

/// The console of a tile.
#[derive(Clone, Debug)]
pub struct Uart {
    output: Vec<u8>,
    /// Bytes of it that are kept.
    room: usize,
    lost: u64,
    input: VecDeque<u8>,
    divisor: [u8; 2],
    interrupt_enable: u8,
    fifo: bool,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
}

impl Default for Uart {
    fn default() -> Self {
        Self {
            output: Vec::new(),
            room: OUTPUT_MAX,
            lost: 0,
            input: VecDeque::new(),
            divisor: [0; 2],
            interrupt_enable: 0,
            fifo: false,
            line_control: 0,
            modem_control: 0,
            scratch: 0,
        }
    }
}

impl Uart {
    /// A console after reset.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps this many bytes of output.
    pub fn keep(&mut self, bytes: usize) {
        self.room = bytes;
    }

    /// The beginning of everything that was written, as far as it is kept.
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// Appends to the output, as if the tile had written it.
    pub fn put(&mut self, byte: u8) {
        if self.output.len() < self.room {
            self.output.push(byte);
        } else {
            self.lost += 1;
        }
    }

    /// Bytes of output that were not kept.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Bytes that the tile will read.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend(bytes);
    }

    /// Reads a byte register; those beyond the eighth read as 0.
    pub fn read(&mut self, offset: u64) -> u8 {
        let latch = self.line_control & DIVISOR_ACCESS != 0;
        match offset {
            DATA | INTERRUPT_ENABLE if latch => self.divisor[offset as usize],
            DATA => self.input.pop_front().unwrap_or(0),
            INTERRUPT_ENABLE => self.interrupt_enable,
            INTERRUPT_IDENTIFICATION => 1 | if self.fifo { 0xC0 } else { 0 },
            LINE_CONTROL => self.line_control,
            MODEM_CONTROL => self.modem_control,
            LINE_STATUS => TRANSMITTER_EMPTY | if self.input.is_empty() { 0 } else { DATA_READY },
            // Carrier, data set ready, clear to send.
            MODEM_STATUS => 0xB0,
            SCRATCH => self.scratch,
            _ => 0,
        }
    }

    /// Writes a byte register.
    pub fn write(&mut self, offset: u64, value: u8) {
        let latch = self.line_control & DIVISOR_ACCESS != 0;
        match offset {
            DATA | INTERRUPT_ENABLE if latch => self.divisor[offset as usize] = value,
            DATA => self.put(value),
            INTERRUPT_ENABLE => self.interrupt_enable = value & 0xF,
            INTERRUPT_IDENTIFICATION => self.fifo = value & 1 != 0,
            LINE_CONTROL => self.line_control = value,
            MODEM_CONTROL => self.modem_control = value & 0x1F,
            SCRATCH => self.scratch = value,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_counted() {
        let mut uart = Uart::new();
        uart.keep(3);
        b"hello".iter().for_each(|byte| uart.write(0, *byte));
        assert_eq!((uart.output(), uart.lost()), (&b"hel"[..], 2));
    }

    #[test]
    fn prints_and_reads() {
        let mut uart = Uart::new();
        // A driver's start: divisor latch, 8 bits, FIFO.
        uart.write(3, 0x80);
        uart.write(0, 3);
        uart.write(1, 0);
        assert_eq!(uart.read(0), 3);
        uart.write(3, 3);
        uart.write(2, 7);
        assert_eq!(uart.read(2), 0xC1);
        assert_eq!(uart.read(5), 0x60);
        for b in b"hi" {
            uart.write(0, *b);
        }
        assert_eq!(uart.output(), b"hi");
        uart.feed(b"x");
        assert_eq!(uart.read(5), 0x61);
        assert_eq!(uart.read(0), b'x');
        assert_eq!((uart.read(5), uart.read(0)), (0x60, 0));
        uart.write(7, 0x5A);
        assert_eq!(uart.read(7), 0x5A);
    }
}
