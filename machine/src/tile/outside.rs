//! A tile's memory as tools see it: from the top of its caches down, without any effect on time or state.
//!
//! Why it exists: what a program has stored may not be in any memory tile yet.

use super::{Local, Tile};
use crate::cache::Hierarchy;
use crate::fabric::Fabric;
use std::ops::Range;

/// The part of a range that lies within one line.
struct Piece {
    /// Address of the line in the caches.
    line: u64,
    /// Where the part begins within the line.
    offset: usize,
    /// The part's position in the whole range.
    range: Range<usize>,
    /// The memory that the line comes from, and the part's address there.
    memory: usize,
    at: usize,
}

impl Local {
    /// The parts of a range, one for each line that it touches; `None` where the tile may not read.
    fn pieces(&self, physical: u64, bytes: usize) -> impl Iterator<Item = Option<Piece>> {
        let length = u64::from(self.line);
        let mut next = 0;
        std::iter::from_fn(move || {
            let address = physical.wrapping_add(next as u64);
            let offset = (address % length) as usize;
            let count = (length as usize - offset).min(bytes - next);
            let range = next..next + count;
            next += count;
            (count > 0).then(|| {
                let (window, at) = self.window(address, count as u64, false)?;
                Some(Piece {
                    line: self.name(address) - offset as u64,
                    offset,
                    range,
                    memory: window.memory,
                    at: at as usize,
                })
            })
        })
    }
}

impl Local {
    /// Reads memory as the tile's hart sees it. False: the tile may not read there.
    pub(super) fn peek(
        &self,
        caches: &Hierarchy,
        physical: u64,
        buffer: &mut [u8],
        fabric: &Fabric,
    ) -> bool {
        if let Some(offset) = self.tcm.own(physical) {
            let there = self.tcm.has(offset, buffer.len() as u64);
            if there {
                let at = self.tcm.place(offset);
                buffer.copy_from_slice(&caches.data_bytes()[at..at + buffer.len()]);
            }
            return there;
        }
        for piece in self.pieces(physical, buffer.len()) {
            let Some(piece) = piece else {
                return false;
            };
            let count = piece.range.len();
            let from = match caches.peek(piece.line) {
                Some(line) => &line[piece.offset..piece.offset + count],
                None => {
                    let (memory, at) = fabric.bytes_at(piece.memory, piece.at as u64);
                    &fabric.ram[memory][at as usize..at as usize + count]
                }
            };
            buffer[piece.range].copy_from_slice(from);
        }
        true
    }
}

impl Tile {
    /// Reads memory as the tile's hart sees it. False: the tile may not read there.
    pub fn peek(&self, physical: u64, buffer: &mut [u8], fabric: &Fabric) -> bool {
        self.local.peek(&self.caches, physical, buffer, fabric)
    }

    /// Bytes changed in a memory (its index, and an address there): updates the tile's cached copies.
    pub fn reload(&mut self, (memory, address): (usize, u64), bytes: &[u8]) {
        let length = u64::from(self.local.line);
        let (mut home, mut rest) = (self.local.homes.of(memory, address), bytes);
        while !rest.is_empty() {
            let offset = (home % length) as usize;
            let (part, after) = rest.split_at(rest.len().min(length as usize - offset));
            self.caches.poke(home - offset as u64, offset, part);
            home += part.len() as u64;
            rest = after;
        }
    }

    /// Writes memory and the tile's cached copies of it, as a tool that loads a program does. False: the tile may not read there.
    pub fn poke(&mut self, physical: u64, bytes: &[u8], fabric: &mut Fabric) -> bool {
        if let Some(offset) = self.local.tcm.own(physical) {
            let there = self.local.tcm.has(offset, bytes.len() as u64);
            if there {
                let at = self.local.tcm.place(offset);
                self.caches.data_bytes_mut()[at..at + bytes.len()].copy_from_slice(bytes);
            }
            return there;
        }
        for piece in self.local.pieces(physical, bytes.len()) {
            let Some(piece) = piece else {
                return false;
            };
            let from = &bytes[piece.range];
            self.caches.poke(piece.line, piece.offset, from);
            let (memory, at) = fabric.bytes_at(piece.memory, piece.at as u64);
            fabric.ram[memory][at as usize..at as usize + from.len()].copy_from_slice(from);
        }
        true
    }
}
