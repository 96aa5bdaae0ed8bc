//! The base integer instruction set RV64I (unprivileged specification 20191213, chapters 2 and 5).
//!
//! Its semantics are single expressions in the dispatch loop.

use super::field::*;
use super::{Kind, Op, zicbo};
use Kind::*;

/// Decodes an RV64I encoding.
pub fn decode(word: u32) -> Option<Op> {
    let (rd, rs1, rs2) = (rd_or_sink(word), rs1(word), rs2(word));
    let op = match word & 0x7f {
        0x37 => Op::new(Lui, rd, 0, 0, imm_u(word)),
        0x17 => Op::new(Auipc, rd, 0, 0, imm_u(word)),
        0x6f => Op::new(Jal, rd, 0, 0, imm_j(word)),
        0x67 if funct3(word) == 0 => Op::new(Jalr, rd, rs1, 0, imm_i(word)),
        0x63 => {
            let kind = match funct3(word) {
                0 => Beq,
                1 => Bne,
                4 => Blt,
                5 => Bge,
                6 => Bltu,
                7 => Bgeu,
                _ => return None,
            };
            Op::new(kind, super::SINK as u32, rs1, rs2, imm_b(word))
        }
        0x03 => {
            let kind = [Lb, Lh, Lw, Ld, Lbu, Lhu, Lwu].get(funct3(word) as usize)?;
            Op::new(*kind, rd, rs1, 0, imm_i(word))
        }
        0x23 => {
            let kind = [Sb, Sh, Sw, Sd].get(funct3(word) as usize)?;
            Op::new(*kind, super::SINK as u32, rs1, rs2, imm_s(word))
        }
        0x13 => immediate(word, rd, rs1)?,
        0x1b => {
            let shift = bits(word, 20, 5) as i32;
            match (funct3(word), funct7(word)) {
                (0, _) => Op::new(Addiw, rd, rs1, 0, imm_i(word)),
                (1, 0) => Op::new(Slliw, rd, rs1, 0, shift),
                (5, 0) => Op::new(Srliw, rd, rs1, 0, shift),
                (5, 0x20) => Op::new(Sraiw, rd, rs1, 0, shift),
                _ => return None,
            }
        }
        0x33 => {
            let kind = match (funct7(word), funct3(word)) {
                (0, f) => [Add, Sll, Slt, Sltu, Xor, Srl, Or, And][f as usize],
                (0x20, 0) => Sub,
                (0x20, 5) => Sra,
                _ => return None,
            };
            Op::new(kind, rd, rs1, rs2, 0)
        }
        0x3b => {
            let kind = match (funct7(word), funct3(word)) {
                (0, 0) => Addw,
                (0x20, 0) => Subw,
                (0, 1) => Sllw,
                (0, 5) => Srlw,
                (0x20, 5) => Sraw,
                _ => return None,
            };
            Op::new(kind, rd, rs1, rs2, 0)
        }
        // All FENCE encodings, including reserved ones, are fences (chapter 2.7: "treat as normal
        // fences").
        0x0f if funct3(word) == 0 => Op::new(Fence, super::SINK as u32, 0, 0, 0),
        _ => return None,
    };
    Some(op)
}

fn immediate(word: u32, rd: u32, rs1: u32) -> Option<Op> {
    let imm = imm_i(word);
    let shift = bits(word, 20, 6) as i32;
    Some(match funct3(word) {
        0 => Op::new(Addi, rd, rs1, 0, imm),
        1 if word >> 26 == 0 => Op::new(Slli, rd, rs1, 0, shift),
        // The project's marker: a HINT with a positive immediate and `x0` as destination.
        2 if rd == super::SINK as u32 && imm > 0 => Op::new(Marker, rd, rs1, 0, imm),
        2 => Op::new(Slti, rd, rs1, 0, imm),
        3 => Op::new(Sltiu, rd, rs1, 0, imm),
        4 => Op::new(Xori, rd, rs1, 0, imm),
        5 if word >> 26 == 0 => Op::new(Srli, rd, rs1, 0, shift),
        5 if word >> 26 == 0x10 => Op::new(Srai, rd, rs1, 0, shift),
        6 => return zicbo::decode_hint(word).or(Some(Op::new(Ori, rd, rs1, 0, imm))),
        7 => Op::new(Andi, rd, rs1, 0, imm),
        _ => return None,
    })
}
