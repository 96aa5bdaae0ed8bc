//! Random words as instructions: whether they are legal, and what they do.
//!
//! In user mode under Sv39 with nothing but its own code and data mapped, so that a random store or load cannot reach
//! anything else. Jumps and branches are left out: they have their own tests.

use super::{Builder, paging, switch};
use crate::encode::{self, ATOMICS, FLOAT, INTEGER, Instruction, LOADS, STORES};
use crate::layout::*;
use crate::random::Random;

pub(super) fn generate(b: &mut Builder) {
    protected(b);
    instructions(b);
}

/// User mode with nothing but the program's own code and data.
fn protected(b: &mut Builder) {
    paging::setup(b);
    b.data.truncate(8192);
    b.fixed(|a, random| {
        a.li(5, *random.pick(&[0, 0xb1ff, 0x4]));
        a.csr("csrrw", 0, 0x302, 5);
        a.li(5, 8 << 60 | TABLES >> 12);
        a.csr("csrrw", 0, 0x180, 5);
        a.push(encode::word(encode::SFENCE, "sfence.vma"));
        switch(a, 0, ALIAS);
    });
}

/// Every 16-bit encoding that is not a jump: program `seed` has 90 of them, so 550 programs have all.
pub(super) fn generate_compressed(b: &mut Builder, seed: u64) {
    protected(b);
    for index in 0..90 {
        // An odd multiplier visits all encodings, with neighbours far from each other.
        let number = (seed * 90 + index) * 40_501 % 49_152;
        // Quadrants 0 to 2.
        let bits = ((number / 3) << 2) | (number % 3);
        let instruction = encode::half(bits as u32, "compressed".to_owned());
        if straight(&instruction) {
            b.single(instruction);
        }
    }
}

fn instructions(b: &mut Builder) {
    for _ in 0..90 {
        let instruction = loop {
            let instruction = word(&mut b.random);
            if straight(&instruction) {
                break instruction;
            }
        };
        b.single(instruction);
    }
}

fn word(random: &mut Random) -> Instruction {
    let any = random.bits() as u32;
    match random.below(5) {
        0 => encode::half(
            loop {
                let half = random.bits() as u32 & 0xffff;
                if half & 3 != 3 {
                    break half;
                }
            },
            "random".to_owned(),
        ),
        1 => encode::word(any | 3, "random"),
        2 => {
            // A major opcode that exists, the rest random.
            let opcode = *random.pick(&[
                0x03, 0x07, 0x0f, 0x13, 0x1b, 0x23, 0x27, 0x2f, 0x33, 0x3b, 0x43, 0x47, 0x4b, 0x4f,
                0x53, 0x73,
            ]);
            encode::word(any & !0x7f | opcode, "random")
        }
        _ => {
            // A legal instruction with random operands and at most two bits changed.
            let rows: [&[encode::Row]; 3] = [INTEGER, FLOAT, ATOMICS];
            let bits = match random.below(5) {
                3 => random.pick(LOADS).0.1,
                4 => random.pick(STORES).0.1,
                table => random.pick(rows[table as usize]).1,
            };
            let mut bits = bits
                | any & 0x000f_8f80
                | if random.one_in(2) {
                    any & 0x01f0_0000
                } else {
                    0
                };
            for _ in 0..random.below(3) {
                bits ^= 1 << random.range(2, 31);
            }
            encode::word(bits | 3, "changed")
        }
    }
}

/// Not a jump, nothing that could wait, and no read of something that only one side knows.
fn straight(instruction: &Instruction) -> bool {
    let bits = instruction.bits;
    if instruction.bytes == 2 {
        let (quadrant, funct3) = (bits & 3, bits >> 13);
        let jump = quadrant == 1 && funct3 >= 5;
        let indirect = quadrant == 2 && funct3 == 4 && bits & 0x7c == 0;
        return !jump && !indirect;
    }
    if bits & 0x1f == 0x1f {
        // Longer instructions: this test cannot know their length.
        return false;
    }
    if bits & 0xf800_007f == 0x1800_002f {
        // SC without a reservation: QEMU does not check its address.
        return false;
    }
    !matches!(bits & 0x7f, 0x63 | 0x67 | 0x6f)
}
