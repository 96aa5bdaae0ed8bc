//! Multiplication and division (M extension, unprivileged specification 20191213, chapter 7).

use super::field::*;
use super::{Kind, Op};
use Kind::*;

/// Decodes an M encoding (opcode OP or OP-32 with funct7 = 1).
pub fn decode(word: u32) -> Option<Op> {
    let funct = funct3(word) as usize;
    let kind = if word & 0x7f == 0x33 {
        [Mul, Mulh, Mulhsu, Mulhu, Div, Divu, Rem, Remu][funct]
    } else {
        match funct {
            0 => Mulw,
            4 => Divw,
            5 => Divuw,
            6 => Remw,
            7 => Remuw,
            _ => return None,
        }
    };
    Some(Op::new(kind, rd_or_sink(word), rs1(word), rs2(word), 0))
}

/// Upper half of the signed product.
pub fn mulh(a: u64, b: u64) -> u64 {
    ((a as i64 as i128 * b as i64 as i128) >> 64) as u64
}

/// Upper half of signed times unsigned.
pub fn mulhsu(a: u64, b: u64) -> u64 {
    ((a as i64 as i128 * b as i128) >> 64) as u64
}

/// Upper half of the unsigned product.
pub fn mulhu(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Signed division; division by zero gives -1, overflow gives the dividend (table 7.1).
pub fn div(a: u64, b: u64) -> u64 {
    if b == 0 {
        u64::MAX
    } else {
        (a as i64).wrapping_div(b as i64) as u64
    }
}

/// Unsigned division; division by zero gives all ones.
pub fn divu(a: u64, b: u64) -> u64 {
    a.checked_div(b).unwrap_or(u64::MAX)
}

/// Signed remainder; by zero gives the dividend, overflow gives 0.
pub fn rem(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        (a as i64).wrapping_rem(b as i64) as u64
    }
}

/// Unsigned remainder; by zero gives the dividend.
pub fn remu(a: u64, b: u64) -> u64 {
    a.checked_rem(b).unwrap_or(a)
}

/// Signed 32-bit division.
pub fn divw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as i32, b as i32);
    if b == 0 {
        u64::MAX
    } else {
        a.wrapping_div(b) as i64 as u64
    }
}

/// Unsigned 32-bit division; the result is sign-extended.
pub fn divuw(a: u64, b: u64) -> u64 {
    (a as u32).checked_div(b as u32).unwrap_or(u32::MAX) as i32 as i64 as u64
}

/// Signed 32-bit remainder.
pub fn remw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as i32, b as i32);
    (if b == 0 { a } else { a.wrapping_rem(b) }) as i64 as u64
}

/// Unsigned 32-bit remainder; the result is sign-extended.
pub fn remuw(a: u64, b: u64) -> u64 {
    (a as u32).checked_rem(b as u32).unwrap_or(a as u32) as i32 as i64 as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_follows_table_7_1() {
        let min = i64::MIN as u64;
        assert_eq!(
            [div(7, 0), divu(7, 0), rem(7, 0), remu(7, 0)],
            [u64::MAX, u64::MAX, 7, 7]
        );
        assert_eq!([div(min, u64::MAX), rem(min, u64::MAX)], [min, 0]);
        let min = i32::MIN as i64 as u64;
        assert_eq!(
            [divw(7, 0), divuw(7, 0), remw(7, 0), remuw(7, 0)],
            [u64::MAX, u64::MAX, 7, 7]
        );
        assert_eq!([divw(min, u64::MAX), remw(min, u64::MAX)], [min, 0]);
        assert_eq!(remuw(0x8000_0001, 0), 0xffff_ffff_8000_0001);
    }

    #[test]
    fn upper_halves() {
        let all = u64::MAX;
        assert_eq!(
            [mulh(all, all), mulhu(all, all), mulhsu(all, all)],
            [0, all - 1, all]
        );
    }
}
