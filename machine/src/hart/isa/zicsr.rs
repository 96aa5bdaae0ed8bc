//! Control and status register instructions (Zicsr, unprivileged specification 20191213, chapter 9).
//!
//! `csr.rs` says what a register means; this file has only the encoding, and when an instruction reads or writes.

use super::field::*;
use super::{Kind, Op};
use Kind::*;

/// Decodes a CSR encoding; `imm` is the CSR's number, `rs1` a register or the immediate.
pub fn decode(word: u32) -> Option<Op> {
    let kind = match funct3(word) {
        1 => Csrrw,
        2 => Csrrs,
        3 => Csrrc,
        5 => Csrrwi,
        6 => Csrrsi,
        7 => Csrrci,
        _ => return None,
    };
    Some(Op::new(
        kind,
        rd_or_sink(word),
        rs1(word),
        0,
        (word >> 20) as i32,
    ))
}

/// The new value of the register, or `None` if the instruction does not write. `operand` is the value of `rs1` or the
/// immediate.
pub fn new_value(op: &Op, old: u64, operand: u64) -> u64 {
    match op.kind {
        Csrrw | Csrrwi => operand,
        Csrrs | Csrrsi => old | operand,
        _ => old & !operand,
    }
}

/// Whether the instruction writes: set and clear with `x0` or a zero immediate do not.
pub fn writes(op: &Op) -> bool {
    matches!(op.kind, Csrrw | Csrrwi) || op.rs1 != 0
}
