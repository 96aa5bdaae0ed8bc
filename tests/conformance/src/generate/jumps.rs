//! Jumps and branches of every length: the whole range of their immediates.
//!
//! User mode has one page that it can write and execute, alone in its gigabyte. A jump is written somewhere into it and called.
//! Where it lands there are zeros (an illegal instruction) or nothing (a page fault), so the trap shows the target, and the
//! runtime continues at the address in `ra`.

use super::{Builder, kept, paging, switch};
use crate::encode::{self, BRANCHES, FENCE_I, SFENCE, word};
use crate::layout::*;

/// The page's address: in the middle of what its table can map.
const PAGE: u64 = 0x1_0010_0000;
/// The last page of the data area.
const PHYSICAL: u64 = DATA + 3 * 4096;

pub(super) fn generate(b: &mut Builder) {
    paging::setup(b);
    b.data[3 * 4096..4 * 4096].fill(0);
    paging::map_alone(b, PAGE, PHYSICAL);
    b.fixed(|a, _| {
        a.li(5, 8 << 60 | TABLES >> 12);
        a.csr("csrrw", 0, 0x180, 5);
        a.push(word(SFENCE, "sfence.vma"));
        switch(a, 0, ALIAS);
    });
    for _ in 0..50 {
        b.chunk(|a, random| {
            let at = match random.below(8) {
                // Across the page's end, and right at it.
                0 => 4094,
                1 => 4092,
                _ => random.below(2047) * 2,
            };
            let link = loop {
                let link = random.below(32) as u32;
                if link != 1 && !kept(link) {
                    break link;
                }
            };
            let (rs1, rs2) = (random.below(32) as u32, random.below(32) as u32);
            let near = random.one_in(3);
            let mut even = |bits: u32| {
                let bits = if near { bits.min(6) } else { bits };
                let offset = random.range(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) & !1;
                // Not to itself or into itself: that might never end.
                if matches!(offset, 0 | 2) { 4 } else { offset }
            };
            let (long, middle, short, tiny) = (even(21), even(13), even(12), even(9));
            let jump = match random.below(5) {
                0 => encode::jal(link, long),
                1 | 2 => encode::branch(*random.pick(BRANCHES), rs1, rs2, middle),
                3 => encode::compressed_jump(short),
                _ => encode::compressed_branch(random.one_in(2), random.range(8, 15) as u32, tiny),
            };
            if jump.bytes == 4 && at == 4094 {
                // Its second half is missing: the fetch faults there.
                a.li(7, PAGE + at);
                a.li(6, u64::from(jump.bits & 0xffff));
                a.memory("sh", 6, 0, 7);
            } else {
                a.li(7, PAGE + at);
                a.li(6, u64::from(jump.bits));
                a.memory("sh", 6, 0, 7);
                if jump.bytes == 4 {
                    a.i("srli", 6, 6, 16);
                    a.memory("sh", 6, 2, 7);
                }
            }
            a.push(word(FENCE_I, "fence.i"));
            let mut called = encode::jalr(1, 7, 0);
            called.text += &format!(" -> {}", jump.text);
            a.push(called);
            // Zeros again.
            a.li(7, PAGE + at);
            a.memory("sh", 0, 0, 7);
            if at != 4094 {
                a.memory("sh", 0, 2, 7);
            }
        });
    }
}
