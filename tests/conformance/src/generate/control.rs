//! Branches, jumps, calls and loops.

use super::{Builder, kept, scratch};
use crate::encode::{self, BRANCHES};

pub(super) fn generate(b: &mut Builder) {
    for _ in 0..150 {
        let operand = b.operand(false);
        let (rs1, rs2, link) = (b.source(), b.source(), b.target());
        match b.random.below(9) {
            0..=2 => {
                let (name, _) = *b.random.pick(BRANCHES);
                b.chunk(|a, random| {
                    if random.one_in(2) && !kept(rs1) {
                        a.memory("ld", rs1, operand, 9);
                    }
                    let over = a.label();
                    a.branch(name, rs1, rs2, over);
                    padding(a, random);
                    a.bind(over);
                });
            }
            3 => b.chunk(|a, random| {
                let over = a.label();
                a.jump(link, over);
                padding(a, random);
                a.bind(over);
            }),
            4 => b.chunk(|a, random| {
                // Bit 0 of the target is dropped; the link register may be the base.
                let (over, base) = (a.label(), scratch(random));
                a.address(base, over);
                let odd = random.range(-8, 8);
                a.i("addi", base, base, odd);
                let rd = if random.one_in(3) { base } else { link };
                let drop = i64::from(random.one_in(2));
                a.push(encode::jalr(rd, base, drop - odd));
                padding(a, random);
                a.bind(over);
            }),
            5 => b.chunk(|a, random| {
                let before = a.here();
                let mut inner = crate::assembler::Assembler::new();
                padding(&mut inner, random);
                let length = inner.here();
                let _ = before;
                if random.one_in(3) {
                    a.push(encode::compressed_jump(length + 2));
                } else {
                    let (not, register) = (random.one_in(2), random.range(8, 15) as u32);
                    if !kept(register) && random.one_in(2) {
                        a.i("addi", register, 0, 0);
                    }
                    a.push(encode::compressed_branch(not, register, length + 2));
                }
                for instruction in inner.finish() {
                    a.push(instruction);
                }
            }),
            6 => b.chunk(|a, random| {
                let (over, base) = (a.label(), scratch(random));
                a.address(base, over);
                a.push(encode::compressed_indirect(random.one_in(2), base));
                padding(a, random);
                a.bind(over);
            }),
            7 => {
                // A loop that counts down, with a call inside.
                let count = b.random.range(1, 40) as u64;
                b.chunk(|a, random| {
                    let (again, function, behind) = (a.label(), a.label(), a.label());
                    a.li(5, count);
                    a.bind(again);
                    a.jump(1, function);
                    a.i("addi", 5, 5, -1);
                    a.branch("bne", 5, 0, again);
                    a.jump(0, behind);
                    a.bind(function);
                    let (x, y) = (random.range(18, 27) as u32, random.below(32) as u32);
                    a.r("add", x, x, y);
                    a.i("xori", x, x, 1);
                    if random.one_in(2) {
                        a.push(encode::jalr(0, 1, 0));
                    } else {
                        a.push(encode::compressed_indirect(false, 1));
                    }
                    a.bind(behind);
                });
            }
            _ => {
                let slot = b.slot();
                b.chunk(|a, _| a.memory("sd", link, slot, 8));
            }
        }
    }
}

/// Instructions that show whether they were executed.
fn padding(a: &mut crate::assembler::Assembler, random: &mut crate::random::Random) {
    for _ in 0..random.range(1, 6) {
        if random.one_in(2) {
            let instruction = encode::compressed_integer(random, &kept);
            a.push(instruction);
        } else {
            let register = scratch(random);
            let amount = random.range(-2048, 2047);
            a.i("addi", register, register, amount);
        }
    }
}
