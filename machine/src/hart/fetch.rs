//! Instructions on their way to the decoder.
//!
//! Why it exists: where lines hold data, an instruction can be decoded only after its line has been fetched. Only then is it
//! known whether it reaches into the next line. So the hart fetches, keeps the lines in a buffer of two, and decodes again. Flat
//! memory is read at once. What it deliberately does not know: what instructions mean, and what a fetch costs.

use super::bus::Bus;
use crate::types::{LINE_MAX, Line};

/// Why a half-word cannot be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    /// This line must be fetched first.
    Line(u64),
    /// There is no memory, or no block can begin with this instruction.
    Nothing,
    /// The shared blocks are not those of this hart's memory.
    Elsewhere,
}

/// Lines of the block that is being decoded.
#[derive(Clone)]
pub struct FetchBuffer {
    /// Bytes of a line.
    length: u64,
    /// Physical address of the block.
    start: u64,
    lines: [(u64, Line); 2],
    count: usize,
}

impl FetchBuffer {
    /// An empty buffer for lines of `length` bytes.
    pub fn new(length: u64) -> Self {
        Self {
            length,
            start: u64::MAX,
            lines: [(0, [0; LINE_MAX]); 2],
            count: 0,
        }
    }

    /// Starts decoding a block at this address, for the first time or again after a fetch.
    pub fn begin(&mut self, physical: u64) {
        if self.start != physical {
            self.start = physical;
            self.count = 0;
        }
    }

    /// Empties the buffer: the block is decoded, or the fetched lines are stale.
    pub fn clear(&mut self) {
        self.start = u64::MAX;
        self.count = 0;
    }

    /// Takes a line from the instruction cache. Returns whether the line is there.
    pub fn take<B: Bus>(&mut self, bus: &mut B, line: u64) -> bool {
        let entry = &mut self.lines[self.count.min(1)];
        let there = bus.instruction_line(line, &mut entry.1[..self.length as usize]);
        if there {
            entry.0 = line;
            self.count = (self.count + 1).min(2);
        }
        there
    }

    /// The half-word at a physical address.
    pub fn half<B: Bus>(&mut self, bus: &mut B, physical: u64) -> Result<u32, Missing> {
        if !bus.lines_hold_data() {
            let half = bus.read(physical, 2).map_err(|_| Missing::Nothing)?;
            return Ok(half as u32);
        }
        if !bus.allows(physical, 2, false) {
            return Err(Missing::Nothing);
        }
        let offset = physical & (self.length - 1);
        let line = physical - offset;
        let find = |buffer: &Self| {
            let entry = buffer.lines[..buffer.count].iter().find(|l| l.0 == line)?;
            let half = entry.1[offset as usize..].first_chunk()?;
            Some(u32::from(u16::from_le_bytes(*half)))
        };
        if let Some(half) = find(self) {
            return Ok(half);
        }
        if !self.take(bus, line) {
            return Err(Missing::Line(line));
        }
        find(self).ok_or(Missing::Line(line))
    }

    /// The bits of the instruction at a physical address, without those beyond the end of its page.
    pub fn instruction<B: Bus>(&mut self, bus: &mut B, physical: u64) -> Result<u32, Missing> {
        let low = self.half(bus, physical)?;
        if low & 3 != 3 || (physical + 2) & 0xfff == 0 {
            return Ok(low);
        }
        Ok(low | self.half(bus, physical + 2)? << 16)
    }
}
