//! Free blocks: finding, taking and giving them back.
//!
//! Why it exists: extents should be long. What it deliberately does not know: files.

use crate::layout::{BITS, BLOCK, Extent, Superblock};
use crate::transaction::{Block, Transactions};
use crate::{Result, Status, Store};
use core::ops::Range;
use zerocopy::IntoBytes;

/// Bits that are marked at once.
const MARKED: u32 = 512;

/// Looks for at most `wanted` free blocks: those from `near` on if `near` is free, else the first run that is long enough, else
/// the longest run.
///
/// # Errors
/// [`Status::NoSpace`] if no block is free.
#[inline(never)]
pub fn find<S: Store>(
    store: &mut Transactions<S>,
    layout: &Superblock,
    near: Option<u32>,
    wanted: u32,
) -> Result<Extent> {
    // A run that reaches from one block of the bitmap into the next is found as two; they are merged when taken.
    if let Some(near) = near.filter(|&near| near < layout.blocks) {
        let length = run_at(store, layout, near, wanted)?;
        if length > 0 {
            let length = length.min(layout.blocks - near);
            return Ok(Extent {
                start: near,
                length,
            });
        }
    }
    anywhere(store, layout, wanted)
}

/// Free blocks from one on, at most this many, within a few bytes of the bitmap.
fn run_at<S: Store>(
    store: &mut Transactions<S>,
    layout: &Superblock,
    near: u32,
    wanted: u32,
) -> Result<u32> {
    let mut words = [[0; 8]; 8];
    let (block, bit) = (layout.bitmap + near / BITS, near % BITS);
    // No further than wanted, and no further than the block.
    let first = bit / 64 * 64;
    let end = bit.saturating_add(wanted).min(BITS) - first;
    let end = end.min(words.as_bytes().len() as u32 * 8);
    let bytes = &mut words.as_mut_bytes()[..end.div_ceil(64) as usize * 8];
    store.read(block, first as usize / 8, bytes)?;
    let run = runs(&words, bit - first..end).next();
    Ok(run
        .filter(|run| run.start == bit - first)
        .map_or(0, |r| r.length))
}

/// The first run of free blocks that is long enough, or the longest one.
fn anywhere<S: Store>(
    store: &mut Transactions<S>,
    layout: &Superblock,
    wanted: u32,
) -> Result<Extent> {
    let mut map: Block = [0; BLOCK];
    let mut best = Extent::default();
    let mut first = 0;
    while first < layout.blocks {
        store.read(layout.bitmap + first / BITS, 0, &mut map)?;
        let end = (layout.blocks - first).min(BITS);
        for run in runs(map.as_chunks().0, 0..end) {
            let start = first + run.start;
            let end = (start + run.length).min(layout.blocks);
            let length = end.saturating_sub(start).min(wanted);
            if length > best.length {
                best = Extent { start, length };
            }
            if best.length == wanted {
                return Ok(best);
            }
        }
        first += BITS;
    }
    match best.length {
        0 => Err(Status::NoSpace),
        _ => Ok(best),
    }
}

/// Runs of zeros in some bits of the words of a bitmap.
fn runs(map: &[[u8; 8]], bits: Range<u32>) -> impl Iterator<Item = Extent> + '_ {
    let mut at = bits.start;
    core::iter::from_fn(move || {
        let start = next(map, at..bits.end, false)?;
        let end = next(map, start..bits.end, true).unwrap_or(bits.end);
        at = end;
        Some(Extent {
            start,
            length: end - start,
        })
    })
}

/// The first of some bits that is set (or clear).
fn next(map: &[[u8; 8]], bits: Range<u32>, set: bool) -> Option<u32> {
    let Range { start: from, end } = bits;
    let words = &map[..end.div_ceil(64) as usize];
    let flip = if set { 0 } else { u64::MAX };
    let mut index = (from / 64) as usize;
    // Bits before `from` do not count.
    let mut mask = u64::MAX << (from % 64);
    while let Some(word) = words.get(index) {
        let found = (u64::from_le_bytes(*word) ^ flip) & mask;
        if found != 0 {
            let bit = index as u32 * 64 + found.trailing_zeros();
            return (bit < end).then_some(bit);
        }
        mask = u64::MAX;
        index += 1;
    }
    None
}

/// Marks blocks as used or free.
///
/// # Errors
/// [`Status::Corrupt`] if one of them is so marked already.
#[inline(never)]
pub fn mark<S: Store>(
    store: &mut Transactions<S>,
    layout: &Superblock,
    extent: Extent,
    used: bool,
) -> Result<()> {
    let inside = extent.start >= layout.data
        && u64::from(extent.start) + u64::from(extent.length) <= u64::from(layout.blocks);
    if !inside {
        return Err(Status::Corrupt);
    }
    let mut at = extent.start;
    while at < extent.end() {
        // A few bytes at a time; they never reach into the next block of the bitmap.
        let end = extent.end().min((at / MARKED + 1) * MARKED);
        let block = layout.bitmap + at / BITS;
        let first = at / 8 * 8;
        let mut map = [0; MARKED as usize / 8];
        let map = &mut map[..(end - first).div_ceil(8) as usize];
        let place = (first % BITS / 8) as usize;
        store.read(block, place, map)?;
        for bit in at - first..end - first {
            let (byte, mask) = ((bit / 8) as usize, 1 << (bit % 8));
            if (map[byte] & mask != 0) == used {
                return Err(Status::Corrupt);
            }
            map[byte] ^= mask;
        }
        store.change(block, place, map)?;
        at = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn runs_are_the_zeros(bytes in proptest::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], BLOCK), from in 0..BITS, length in 0..BITS) {
            let end = (from + length).min(BITS);
            let mut map = [0; BLOCK];
            map.copy_from_slice(&bytes);
            let is_free = |bit: u32| map[(bit / 8) as usize] >> (bit % 8) & 1 == 0;
            let mut expected: Vec<Extent> = Vec::new();
            for bit in from..end {
                if !is_free(bit) {
                    continue;
                }
                match expected.last_mut() {
                    Some(last) if last.end() == bit => last.length += 1,
                    _ => expected.push(Extent { start: bit, length: 1 }),
                }
            }
            prop_assert_eq!(runs(map.as_chunks().0, from..end).collect::<Vec<_>>(), expected);
        }
    }
}
