//! Computing instructions on corner operands.

use super::{Builder, kept};
use crate::encode::{self, INTEGER, Operands};

pub(super) fn generate(b: &mut Builder) {
    for _ in 0..250 {
        let operand = b.operand(false);
        let (rd, rs1, rs2) = (b.target(), b.source(), b.source());
        match b.random.below(10) {
            0..=4 => {
                let row = *b.random.pick(INTEGER);
                let imm = b.random.corner() as i64;
                let imm = match row.2 {
                    encode::Format::I => imm << 52 >> 52,
                    encode::Format::Shift => imm & 63,
                    encode::Format::ShiftWord => imm & 31,
                    _ => imm & 0xf_ffff,
                };
                b.single(encode::encode(
                    row,
                    Operands {
                        rd,
                        rs1,
                        rs2,
                        imm,
                        ..Operands::default()
                    },
                ));
            }
            5..=7 => {
                let instruction = encode::compressed_integer(&mut b.random, &kept);
                b.single(instruction);
            }
            8 => b.chunk(|a, _| a.memory("ld", rd, operand, 9)),
            _ => {
                let slot = b.slot();
                b.chunk(|a, _| a.memory("sd", rs1, slot, 8));
            }
        }
    }
}
