//! Atomic instructions (A extension, unprivileged specification 20191213, chapter 8).
//!
//! `imm` of an operation holds the acquire and release bits, the function (funct5) and the width.

use super::field::*;
use super::{Kind, Op};

/// Decodes an A encoding (opcode AMO).
pub fn decode(word: u32) -> Option<Op> {
    let bytes = match funct3(word) {
        2 => 4,
        3 => 8,
        _ => return None,
    };
    let function = word >> 27;
    let kind = match function {
        2 if rs2(word) == 0 => Kind::Lr,
        3 => Kind::Sc,
        0 | 1 | 4 | 8 | 12 | 16 | 20 | 24 | 28 => Kind::Amo,
        _ => return None,
    };
    Some(Op::new(
        kind,
        rd_or_sink(word),
        rs1(word),
        rs2(word),
        (function << 8) as i32 | bytes | ((word >> 25 & 3) as i32 * RELEASE),
    ))
}

/// In `imm`: nothing before the operation may be performed after it.
const RELEASE: i32 = 1 << 16;
/// In `imm`: nothing after the operation may be performed before it.
const ACQUIRE: i32 = 1 << 17;

/// Whether earlier accesses must be performed before the operation.
pub fn releases(op: &Op) -> bool {
    op.imm & RELEASE != 0
}

/// Whether later accesses must be performed after the operation.
pub fn acquires(op: &Op) -> bool {
    op.imm & ACQUIRE != 0
}

/// A value of the operation's width, sign-extended as in a register.
pub fn extend(op: &Op, value: u64) -> u64 {
    if bytes(op) == 4 {
        value as i32 as i64 as u64
    } else {
        value
    }
}

/// Bytes of the access of an atomic operation: 4 or 8.
pub fn bytes(op: &Op) -> u8 {
    op.imm as u8
}

/// The function (funct5) of an atomic operation.
pub fn function(op: &Op) -> u8 {
    (op.imm >> 8 & 0x1f) as u8
}

/// The value that an AMO writes, given the old value and the operand, both sign-extended from the operation's
/// width.
pub fn combine(op: &Op, old: u64, operand: u64) -> u64 {
    modify(function(op), bytes(op), old, operand)
}

/// The value that the AMO with this function (funct5) writes, given an old value and an operand of 4 or 8
/// bytes.
pub fn modify(function: u8, bytes: u8, old: u64, operand: u64) -> u64 {
    let narrow = bytes == 4;
    let signed = |v: u64| if narrow { v as i32 as i64 as u64 } else { v };
    let unsigned = |v: u64| if narrow { v as u32 as u64 } else { v };
    let (old, operand) = (signed(old), signed(operand));
    match function {
        0 => old.wrapping_add(operand),
        1 => operand,
        4 => old ^ operand,
        8 => old | operand,
        12 => old & operand,
        16 => (old as i64).min(operand as i64) as u64,
        20 => (old as i64).max(operand as i64) as u64,
        24 => unsigned(old).min(unsigned(operand)),
        _ => unsigned(old).max(unsigned(operand)),
    }
}
