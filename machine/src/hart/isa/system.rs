//! Privileged instructions and environment calls (privileged specification 20211203).

use super::field::*;
use super::{Kind, Op, SINK};

/// Decodes a SYSTEM encoding with funct3 = 0.
pub fn decode(word: u32) -> Option<Op> {
    let kind = match word {
        0x0000_0073 => Kind::Ecall,
        0x0010_0073 => Kind::Ebreak,
        0x1020_0073 => Kind::Sret,
        0x3020_0073 => Kind::Mret,
        0x1050_0073 => Kind::Wfi,
        _ if funct7(word) == 9 && rd(word) == 0 => Kind::SfenceVma,
        _ => return None,
    };
    let (first, second) = if kind == Kind::SfenceVma {
        (rs1(word), rs2(word))
    } else {
        (0, 0)
    };
    Some(Op::new(kind, SINK as u32, first, second, 0))
}
