//! Loads and stores of all sizes at any alignment.

use super::{Builder, HALF, kept, scratch};
use crate::encode::{self, LOADS, Operands, STORES};

pub(super) fn generate(b: &mut Builder) {
    for _ in 0..250 {
        let (rd, rs2, float) = (b.target(), b.source(), b.random.below(32) as u32);
        let base = if b.random.one_in(2) { 8 } else { 9 };
        match b.random.below(12) {
            0..=3 => {
                let (row, size) = *b.random.pick(LOADS);
                let rd = if row.2 == encode::Format::FloatLoad {
                    float
                } else {
                    rd
                };
                let imm = offset(b, size);
                b.single(encode::encode(
                    row,
                    Operands {
                        rd,
                        rs1: base,
                        imm,
                        ..Operands::default()
                    },
                ));
            }
            4..=6 => {
                let (row, size) = *b.random.pick(STORES);
                let rs2 = if row.2 == encode::Format::FloatStore {
                    float
                } else {
                    rs2
                };
                let imm = offset(b, size);
                b.single(encode::encode(
                    row,
                    Operands {
                        rs1: base,
                        rs2,
                        imm,
                        ..Operands::default()
                    },
                ));
            }
            7 | 8 => {
                let instruction = encode::compressed_memory(&mut b.random, &kept);
                b.single(instruction);
            }
            9 => {
                // A base register that is also the destination.
                let (row, size) = *b.random.pick(LOADS);
                let imm = offset(b, size);
                b.chunk(|a, random| {
                    let register = scratch(random);
                    a.i("addi", register, base, imm);
                    let rd = if row.2 == encode::Format::FloatLoad {
                        float
                    } else {
                        register
                    };
                    a.push(encode::encode(
                        row,
                        Operands {
                            rd,
                            rs1: register,
                            imm: 0,
                            ..Operands::default()
                        },
                    ));
                });
            }
            10 => {
                // The stack pointer moves and returns.
                let amount = b.random.range(1, 31) * 16;
                b.chunk(|a, _| {
                    a.push(stack(amount));
                    a.push(stack(-amount));
                });
            }
            _ => {
                let (row, _) = *b.random.pick(STORES);
                let slot = b.slot();
                b.single(encode::encode(
                    row,
                    Operands {
                        rs1: 8,
                        rs2,
                        imm: slot,
                        ..Operands::default()
                    },
                ));
            }
        }
    }
}

/// An offset whose access stays inside the base's half of the data area; one in two is aligned.
fn offset(b: &mut Builder, size: u32) -> i64 {
    let half = HALF as i64 / 2;
    let offset = b.random.range(-half, half - i64::from(size));
    if b.random.one_in(2) {
        offset & -i64::from(size)
    } else {
        offset
    }
}

/// `c.addi16sp`.
fn stack(amount: i64) -> encode::Instruction {
    let bit = |from: u32, to: u32| ((amount >> from) as u32 & 1) << to;
    let field = bit(9, 12) | bit(4, 6) | bit(6, 5) | bit(8, 4) | bit(7, 3) | bit(5, 2);
    encode::half(0x6101 | field, format!("c.addi16sp {amount}"))
}
