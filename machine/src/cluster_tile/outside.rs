//! A cluster's memory as tools see it, without any effect on time or state.
//!
//! Why it exists: what a program has stored may be in a first level, on its way, or in the second level.

use super::ClusterTile;
use crate::fabric::Fabric;

/// The parts of a range in lines of `length` bytes: the line, the part's offset in it, and the part in the range.
fn pieces(
    from: u64,
    bytes: usize,
    length: u64,
) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let address = from + next as u64;
        let offset = (address % length) as usize;
        let count = (length as usize - offset).min(bytes - next);
        let range = next..next + count;
        next += count;
        (count > 0).then_some((address - offset as u64, offset, range))
    })
}

impl ClusterTile {
    fn modified(&self, line: u64) -> Option<&[u8]> {
        let mut firsts = self.harts.iter();
        firsts.find_map(|hart| hart.side.first.modified(line))
    }

    /// The newest bytes of a line, if memory has others. `all` are the clusters of the chip.
    fn newest<'a>(
        &'a self,
        line: u64,
        all: &'a [ClusterTile],
        fabric: &'a Fabric,
    ) -> Option<&'a [u8]> {
        if !self.second.directory.coherent {
            return self.modified(line).or_else(|| self.second.peek(line));
        }
        // One cluster at most has modified it. Bytes that go to memory are newer than those there, and older than any copy: a cluster gets
        // the line only after they have arrived.
        let coherent = || {
            all.iter()
                .filter(|cluster| cluster.second.directory.coherent)
        };
        let modified = coherent().find_map(|cluster| cluster.modified(line));
        let here = || coherent().find_map(|cluster| cluster.second.directory.copy(line));
        let tag = (line / self.line) as u32;
        modified.or_else(here).or_else(|| fabric.given(tag))
    }

    /// Reads memory as the harts find it. False: there is none. `all` are the clusters of the chip.
    pub fn peek(
        &self,
        physical: u64,
        buffer: &mut [u8],
        (all, fabric): (&[ClusterTile], &Fabric),
    ) -> bool {
        let map = &self.second.map;
        let place = map.find(physical);
        let Some((memory, first)) = place.filter(|_| map.has(physical, buffer.len() as u64)) else {
            return false;
        };
        for (line, offset, range) in pieces(physical, buffer.len(), self.line) {
            let from = match self.newest(line, all, fabric) {
                Some(bytes) => &bytes[offset..],
                None => {
                    let at = line + offset as u64 - physical + first;
                    let (memory, at) = fabric.bytes_at(memory, at);
                    &fabric.ram[memory][at as usize..]
                }
            };
            let count = range.len();
            buffer[range].copy_from_slice(&from[..count]);
        }
        true
    }

    /// A memory has got other bytes from this offset on: so has every copy.
    pub fn reload(&mut self, (memory, offset): (usize, u64), bytes: &[u8]) {
        let from = self.second.map.base(memory) + offset;
        for (line, offset, range) in pieces(from, bytes.len(), self.line) {
            let from = &bytes[range];
            self.second.poke(line, offset, from);
            for hart in &mut self.harts {
                hart.side.first.poke(line, offset, from);
            }
        }
    }
}
