//! Single- and double-precision floating point (F and D extensions version 2.2): encodings, NaN boxing and rounding
//! modes. The arithmetic itself is in `fp`.

use super::super::fp::{self, Rounding, nan_box, nan_unbox};
use super::field::*;
use super::{Kind, Op, SINK, Unit};

/// Operation codes in the low byte of `Op::imm`; bit 7 says double precision. The next byte is the rounding mode
/// (or [`NO_ROUNDING`]), the third the third source register.
mod code {
    pub const ADD: u32 = 0;
    pub const SUB: u32 = 1;
    pub const MUL: u32 = 2;
    pub const DIV: u32 = 3;
    pub const SQRT: u32 = 4;
    pub const FMADD: u32 = 5;
    pub const FMSUB: u32 = 6;
    pub const FNMSUB: u32 = 7;
    pub const FNMADD: u32 = 8;
    pub const SGNJ: u32 = 9;
    pub const SGNJN: u32 = 10;
    pub const SGNJX: u32 = 11;
    pub const MIN: u32 = 12;
    pub const MAX: u32 = 13;
    pub const CONVERT: u32 = 14;
    pub const EQ: u32 = 15;
    pub const LT: u32 = 16;
    pub const LE: u32 = 17;
    pub const CLASS: u32 = 18;
    pub const MOVE_TO_X: u32 = 19;
    pub const TO_W: u32 = 20;
    pub const TO_WU: u32 = 21;
    pub const TO_L: u32 = 22;
    pub const TO_LU: u32 = 23;
    pub const FROM_W: u32 = 24;
    pub const FROM_WU: u32 = 25;
    pub const FROM_L: u32 = 26;
    pub const FROM_LU: u32 = 27;
    pub const MOVE_FROM_X: u32 = 28;
    pub const DOUBLE: u32 = 0x80;
}

/// In place of the rounding mode of an operation that does not round.
const NO_ROUNDING: u32 = 8;

fn build(kind: Kind, word: u32, code: u32, rounding: u32, rs3: u32) -> Op {
    let destination = if kind == Kind::FpToInteger {
        rd_or_sink(word)
    } else {
        rd(word)
    };
    Op::new(
        kind,
        destination,
        rs1(word),
        rs2(word),
        (code | (rounding << 8) | (rs3 << 16)) as i32,
    )
}

/// Decodes an F or D encoding.
pub fn decode(word: u32) -> Option<Op> {
    match word & 0x7f {
        0x07 => match funct3(word) {
            2 => Some(Op::new(Kind::Flw, rd(word), rs1(word), 0, imm_i(word))),
            3 => Some(Op::new(Kind::Fld, rd(word), rs1(word), 0, imm_i(word))),
            _ => None,
        },
        0x27 => match funct3(word) {
            2 => Some(Op::new(
                Kind::Fsw,
                SINK as u32,
                rs1(word),
                rs2(word),
                imm_s(word),
            )),
            3 => Some(Op::new(
                Kind::Fsd,
                SINK as u32,
                rs1(word),
                rs2(word),
                imm_s(word),
            )),
            _ => None,
        },
        0x53 => compute(word),
        opcode => {
            let code = code::FMADD + ((opcode >> 2) & 3);
            let double = precision(bits(word, 25, 2))?;
            Some(build(
                Kind::FpArithmetic,
                word,
                code | double,
                rounding(word)?,
                word >> 27,
            ))
        }
    }
}

fn precision(format: u32) -> Option<u32> {
    match format {
        0 => Some(0),
        1 => Some(code::DOUBLE),
        _ => None,
    }
}

/// The rounding field; 5 and 6 are reserved.
fn rounding(word: u32) -> Option<u32> {
    let mode = funct3(word);
    (mode != 5 && mode != 6).then_some(mode)
}

fn compute(word: u32) -> Option<Op> {
    let double = precision(bits(word, 25, 2))?;
    let (funct, select) = (funct3(word), rs2(word));
    let exact = |kind, code| Some(build(kind, word, code | double, NO_ROUNDING, 0));
    let rounded = |kind, code| Some(build(kind, word, code | double, rounding(word)?, 0));
    match word >> 27 {
        f @ 0..=3 => rounded(Kind::FpArithmetic, code::ADD + f),
        0x0b if select == 0 => rounded(Kind::FpArithmetic, code::SQRT),
        0x04 if funct < 3 => exact(Kind::FpArithmetic, code::SGNJ + funct),
        0x05 if funct < 2 => exact(Kind::FpArithmetic, code::MIN + funct),
        // From the other of the two formats.
        0x08 if select == (double == 0) as u32 => rounded(Kind::FpArithmetic, code::CONVERT),
        0x14 if funct < 3 => exact(
            Kind::FpToInteger,
            [code::LE, code::LT, code::EQ][funct as usize],
        ),
        0x18 if select < 4 => rounded(Kind::FpToInteger, code::TO_W + select),
        0x1a if select < 4 => rounded(Kind::FpFromInteger, code::FROM_W + select),
        0x1c if select == 0 && funct == 0 => exact(Kind::FpToInteger, code::MOVE_TO_X),
        0x1c if select == 0 && funct == 1 => exact(Kind::FpToInteger, code::CLASS),
        0x1e if select == 0 && funct == 0 => exact(Kind::FpFromInteger, code::MOVE_FROM_X),
        _ => None,
    }
}

fn base_code(op: &Op) -> u32 {
    op.imm as u32 & 0x7f
}

/// FP source registers as bits 32 to 63.
pub fn sources(op: &Op) -> u64 {
    let f = |register: u32| 1u64 << (32 + (register & 31));
    let one = f(op.rs1 as u32);
    match base_code(op) {
        code::SQRT | code::CONVERT | code::CLASS | code::MOVE_TO_X | code::TO_W..=code::TO_LU => {
            one
        }
        code::FMADD..=code::FNMADD => one | f(op.rs2 as u32) | f(op.imm as u32 >> 16),
        _ => one | f(op.rs2 as u32),
    }
}

/// The unit of an FP operation that is not a load or store.
pub fn unit(op: &Op) -> Unit {
    match base_code(op) {
        code::MUL => Unit::FpMultiply,
        code::DIV => Unit::FpDivide,
        code::SQRT => Unit::FpSqrt,
        code::FMADD..=code::FNMADD => Unit::FpFma,
        _ => Unit::FpAdd,
    }
}

/// The rounding mode is reserved: the instruction is illegal.
#[derive(Debug)]
pub struct ReservedRounding;

fn resolve(op: &Op, dynamic: u8) -> Result<Rounding, ReservedRounding> {
    let mode = (op.imm >> 8) as u8 & 15;
    let mode = match mode {
        7 => dynamic,
        8 => 0,
        mode => mode,
    };
    Rounding::from_bits(mode).ok_or(ReservedRounding)
}

/// Computes the FP register that an [`Kind::FpArithmetic`] operation writes.
#[inline]
pub fn arithmetic(
    op: &Op,
    f: &[u64; 32],
    dynamic: u8,
    flags: &mut u8,
) -> Result<u64, ReservedRounding> {
    let rounding = resolve(op, dynamic)?;
    let (a, b) = (f[op.rs1 as usize & 31], f[op.rs2 as usize & 31]);
    let c = f[(op.imm >> 16) as usize & 31];
    if op.imm as u32 & code::DOUBLE != 0 {
        return Ok(match base_code(op) {
            code::ADD => fp::f64_add(a, b, rounding, flags),
            code::SUB => fp::f64_sub(a, b, rounding, flags),
            code::MUL => fp::f64_mul(a, b, rounding, flags),
            code::DIV => fp::f64_div(a, b, rounding, flags),
            code::SQRT => fp::f64_sqrt(a, rounding, flags),
            code::FMADD => fp::f64_fmadd(a, b, c, rounding, flags),
            code::FMSUB => fp::f64_fmsub(a, b, c, rounding, flags),
            code::FNMSUB => fp::f64_fnmsub(a, b, c, rounding, flags),
            code::FNMADD => fp::f64_fnmadd(a, b, c, rounding, flags),
            code::SGNJ => fp::f64_sgnj(a, b),
            code::SGNJN => fp::f64_sgnjn(a, b),
            code::SGNJX => fp::f64_sgnjx(a, b),
            code::MIN => fp::f64_min(a, b, flags),
            code::MAX => fp::f64_max(a, b, flags),
            _ => fp::f32_to_f64(nan_unbox(a), flags),
        });
    }
    let (wide, a, b, c) = (a, nan_unbox(a), nan_unbox(b), nan_unbox(c));
    Ok(nan_box(match base_code(op) {
        code::ADD => fp::f32_add(a, b, rounding, flags),
        code::SUB => fp::f32_sub(a, b, rounding, flags),
        code::MUL => fp::f32_mul(a, b, rounding, flags),
        code::DIV => fp::f32_div(a, b, rounding, flags),
        code::SQRT => fp::f32_sqrt(a, rounding, flags),
        code::FMADD => fp::f32_fmadd(a, b, c, rounding, flags),
        code::FMSUB => fp::f32_fmsub(a, b, c, rounding, flags),
        code::FNMSUB => fp::f32_fnmsub(a, b, c, rounding, flags),
        code::FNMADD => fp::f32_fnmadd(a, b, c, rounding, flags),
        code::SGNJ => fp::f32_sgnj(a, b),
        code::SGNJN => fp::f32_sgnjn(a, b),
        code::SGNJX => fp::f32_sgnjx(a, b),
        code::MIN => fp::f32_min(a, b, flags),
        code::MAX => fp::f32_max(a, b, flags),
        _ => fp::f64_to_f32(wide, rounding, flags),
    }))
}

/// Computes the integer register that an [`Kind::FpToInteger`] operation writes.
#[inline]
pub fn to_integer(
    op: &Op,
    f: &[u64; 32],
    dynamic: u8,
    flags: &mut u8,
) -> Result<u64, ReservedRounding> {
    let rounding = resolve(op, dynamic)?;
    let (a, b) = (f[op.rs1 as usize & 31], f[op.rs2 as usize & 31]);
    if op.imm as u32 & code::DOUBLE != 0 {
        return Ok(match base_code(op) {
            code::EQ => fp::f64_eq(a, b, flags) as u64,
            code::LT => fp::f64_lt(a, b, flags) as u64,
            code::LE => fp::f64_le(a, b, flags) as u64,
            code::CLASS => fp::f64_classify(a),
            code::MOVE_TO_X => a,
            code::TO_W => fp::f64_to_w(a, rounding, flags),
            code::TO_WU => fp::f64_to_wu(a, rounding, flags),
            code::TO_L => fp::f64_to_l(a, rounding, flags),
            _ => fp::f64_to_lu(a, rounding, flags),
        });
    }
    let (raw, a, b) = (a, nan_unbox(a), nan_unbox(b));
    Ok(match base_code(op) {
        code::EQ => fp::f32_eq(a, b, flags) as u64,
        code::LT => fp::f32_lt(a, b, flags) as u64,
        code::LE => fp::f32_le(a, b, flags) as u64,
        code::CLASS => fp::f32_classify(a),
        code::MOVE_TO_X => raw as i32 as i64 as u64,
        code::TO_W => fp::f32_to_w(a, rounding, flags),
        code::TO_WU => fp::f32_to_wu(a, rounding, flags),
        code::TO_L => fp::f32_to_l(a, rounding, flags),
        _ => fp::f32_to_lu(a, rounding, flags),
    })
}

/// Computes the FP register that an [`Kind::FpFromInteger`] operation writes.
#[inline]
pub fn from_integer(
    op: &Op,
    value: u64,
    dynamic: u8,
    flags: &mut u8,
) -> Result<u64, ReservedRounding> {
    let rounding = resolve(op, dynamic)?;
    if op.imm as u32 & code::DOUBLE != 0 {
        return Ok(match base_code(op) {
            code::FROM_W => fp::f64_from_w(value, rounding, flags),
            code::FROM_WU => fp::f64_from_wu(value, rounding, flags),
            code::FROM_L => fp::f64_from_l(value, rounding, flags),
            code::FROM_LU => fp::f64_from_lu(value, rounding, flags),
            _ => value,
        });
    }
    Ok(nan_box(match base_code(op) {
        code::FROM_W => fp::f32_from_w(value, rounding, flags),
        code::FROM_WU => fp::f32_from_wu(value, rounding, flags),
        code::FROM_L => fp::f32_from_l(value, rounding, flags),
        code::FROM_LU => fp::f32_from_lu(value, rounding, flags),
        _ => value as u32,
    }))
}
