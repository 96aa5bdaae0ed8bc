//! Integer operations that only compute: what each does, once for all pipelines.
//!
//! It is a macro, not a function, because a pipeline puts these operations and its own into one `match`. It does not know where operands
//! come from or where results go.

/// A `match` on an operation's kind: `$set!(value)` receives the result of an operation that computes, `$branch!(taken)` the condition of
/// a branch. The caller handles the other kinds.
macro_rules! integer_operations {
    ($kind:expr, $set:ident, $branch:ident, ($a:ident, $b:ident, $imm:ident, $shift:ident), { $($more:tt)* }) => {{
        use $crate::hart::isa::{Kind, integer::word, m};
        match $kind {
            Kind::Lui => $set!($imm),
            Kind::Beq => $branch!($a == $b),
            Kind::Bne => $branch!($a != $b),
            Kind::Blt => $branch!(($a as i64) < $b as i64),
            Kind::Bge => $branch!($a as i64 >= $b as i64),
            Kind::Bltu => $branch!($a < $b),
            Kind::Bgeu => $branch!($a >= $b),
            Kind::Addi => $set!($a.wrapping_add($imm)),
            Kind::Slti => $set!((($a as i64) < $imm as i64) as u64),
            Kind::Sltiu => $set!(($a < $imm) as u64),
            Kind::Xori => $set!($a ^ $imm),
            Kind::Ori => $set!($a | $imm),
            Kind::Andi => $set!($a & $imm),
            Kind::Slli => $set!($a << ($shift & 63)),
            Kind::Srli => $set!($a >> ($shift & 63)),
            Kind::Srai => $set!(($a as i64 >> ($shift & 63)) as u64),
            Kind::Add => $set!($a.wrapping_add($b)),
            Kind::Sub => $set!($a.wrapping_sub($b)),
            Kind::Sll => $set!($a << ($b & 63)),
            Kind::Slt => $set!((($a as i64) < $b as i64) as u64),
            Kind::Sltu => $set!(($a < $b) as u64),
            Kind::Xor => $set!($a ^ $b),
            Kind::Srl => $set!($a >> ($b & 63)),
            Kind::Sra => $set!(($a as i64 >> ($b & 63)) as u64),
            Kind::Or => $set!($a | $b),
            Kind::And => $set!($a & $b),
            Kind::Addiw => $set!(word($a.wrapping_add($imm) as u32)),
            Kind::Slliw => $set!(word(($a as u32) << ($shift & 31))),
            Kind::Srliw => $set!(word($a as u32 >> ($shift & 31))),
            Kind::Sraiw => $set!(($a as i32 >> ($shift & 31)) as i64 as u64),
            Kind::Addw => $set!(word($a.wrapping_add($b) as u32)),
            Kind::Subw => $set!(word($a.wrapping_sub($b) as u32)),
            Kind::Sllw => $set!(word(($a as u32) << ($b & 31))),
            Kind::Srlw => $set!(word($a as u32 >> ($b & 31))),
            Kind::Sraw => $set!(($a as i32 >> ($b & 31)) as i64 as u64),
            Kind::Mul => $set!($a.wrapping_mul($b)),
            Kind::Mulh => $set!(m::mulh($a, $b)),
            Kind::Mulhsu => $set!(m::mulhsu($a, $b)),
            Kind::Mulhu => $set!(m::mulhu($a, $b)),
            Kind::Div => $set!(m::div($a, $b)),
            Kind::Divu => $set!(m::divu($a, $b)),
            Kind::Rem => $set!(m::rem($a, $b)),
            Kind::Remu => $set!(m::remu($a, $b)),
            Kind::Mulw => $set!(word($a.wrapping_mul($b) as u32)),
            Kind::Divw => $set!(m::divw($a, $b)),
            Kind::Divuw => $set!(m::divuw($a, $b)),
            Kind::Remw => $set!(m::remw($a, $b)),
            Kind::Remuw => $set!(m::remuw($a, $b)),
            $($more)*
        }
    }};
}
pub(crate) use integer_operations;

/// A 32-bit result, sign-extended.
#[inline(always)]
pub fn word(value: u32) -> u64 {
    value as i32 as i64 as u64
}
