//! Cache blocks: management (Zicbom), zeroing (Zicboz) and prefetch hints (Zicbop), as in the RISC-V Base Cache Management Operation
//! ISA Extensions 1.0.
//!
//! The environment registers determine which mode may execute them (`execute_cache.rs` asks [`super::super::core::Core`]). This file
//! has only the encoding.

use super::field::*;
use super::{Kind, Op, SINK};

/// `imm` of [`Kind::CacheBlock`]: the line leaves the caches and its contents are lost.
pub const INVALIDATE: i32 = 0;
/// The line is written to memory and stays.
pub const CLEAN: i32 = 1;
/// The line is written to memory and leaves the caches.
pub const FLUSH: i32 = 2;
/// The line is filled with zeros.
pub const ZERO: i32 = 4;

/// Decodes a CBO encoding (opcode MISC-MEM, funct3 2).
pub fn decode(word: u32) -> Option<Op> {
    let what = imm_i(word);
    let exists = matches!(what, INVALIDATE | CLEAN | FLUSH | ZERO);
    (rd(word) == 0 && exists).then(|| Op::new(Kind::CacheBlock, SINK as u32, rs1(word), 0, what))
}

/// Decodes an ORI with `x0` as destination as a prefetch hint, if it is one.
pub fn decode_hint(word: u32) -> Option<Op> {
    let hint = matches!(word >> 20 & 31, 0 | 1 | 3);
    (rd(word) == 0 && hint).then(|| Op::new(Kind::Prefetch, SINK as u32, rs1(word), 0, imm_i(word)))
}

/// Whether a prefetch hint is for instructions.
pub fn is_for_fetch(op: &Op) -> bool {
    op.imm & 31 == 0
}

/// Offset of a prefetch hint from its base register.
pub fn hint_offset(op: &Op) -> u64 {
    (op.imm & !31) as i64 as u64
}
