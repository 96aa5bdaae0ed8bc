//! The operations by name: `f32_*` and `f64_*`.
//!
//! Operands and results are raw bits; `flags` is ORed into. Conversions to integers return the value of the destination
//! register: 32-bit results, signed or not, are sign-extended, as the instructions require.

use super::format::{Double, Single};
use super::{Rounding, arithmetic, compare, convert};

macro_rules! operations {
    ($module:ident, $format:ident, $bits:ty, $add:ident, $multiply:ident, $divide:ident, $square_root:ident, $fused:ident) => {
        mod $module {
            use super::super::host;
            use super::*;

            const SIGN: $bits = 1 << (<$bits>::BITS - 1);

            /// `a + b`.
            #[inline]
            #[must_use]
            pub fn add(a: $bits, b: $bits, rounding: Rounding, flags: &mut u8) -> $bits {
                host::$add(a, b, rounding, flags).unwrap_or_else(|| {
                    arithmetic::add::<$format>(a.into(), b.into(), rounding, flags) as $bits
                })
            }

            /// `a - b`.
            #[inline]
            #[must_use]
            pub fn sub(a: $bits, b: $bits, rounding: Rounding, flags: &mut u8) -> $bits {
                add(a, b ^ SIGN, rounding, flags)
            }

            /// `a * b`.
            #[inline]
            #[must_use]
            pub fn mul(a: $bits, b: $bits, rounding: Rounding, flags: &mut u8) -> $bits {
                host::$multiply(a, b, rounding, flags).unwrap_or_else(|| {
                    arithmetic::multiply::<$format>(a.into(), b.into(), rounding, flags) as $bits
                })
            }

            /// `a / b`.
            #[inline]
            #[must_use]
            pub fn div(a: $bits, b: $bits, rounding: Rounding, flags: &mut u8) -> $bits {
                host::$divide(a, b, rounding, flags).unwrap_or_else(|| {
                    arithmetic::divide::<$format>(a.into(), b.into(), rounding, flags) as $bits
                })
            }

            /// The square root of `a`.
            #[inline]
            #[must_use]
            pub fn sqrt(a: $bits, rounding: Rounding, flags: &mut u8) -> $bits {
                host::$square_root(a, rounding, flags).unwrap_or_else(|| {
                    arithmetic::square_root::<$format>(a.into(), rounding, flags) as $bits
                })
            }

            /// `a * b + c`, rounded once (`fmadd`).
            #[inline]
            #[must_use]
            pub fn fmadd(
                a: $bits,
                b: $bits,
                c: $bits,
                rounding: Rounding,
                flags: &mut u8,
            ) -> $bits {
                host::$fused(a, b, c, rounding, flags).unwrap_or_else(|| {
                    arithmetic::fused::<$format>(a.into(), b.into(), c.into(), rounding, flags)
                        as $bits
                })
            }

            /// `a * b - c`, rounded once (`fmsub`).
            #[inline]
            #[must_use]
            pub fn fmsub(
                a: $bits,
                b: $bits,
                c: $bits,
                rounding: Rounding,
                flags: &mut u8,
            ) -> $bits {
                fmadd(a, b, c ^ SIGN, rounding, flags)
            }

            /// `-(a * b) + c`, rounded once (`fnmsub`).
            #[inline]
            #[must_use]
            pub fn fnmsub(
                a: $bits,
                b: $bits,
                c: $bits,
                rounding: Rounding,
                flags: &mut u8,
            ) -> $bits {
                fmadd(a ^ SIGN, b, c, rounding, flags)
            }

            /// `-(a * b) - c`, rounded once (`fnmadd`).
            #[inline]
            #[must_use]
            pub fn fnmadd(
                a: $bits,
                b: $bits,
                c: $bits,
                rounding: Rounding,
                flags: &mut u8,
            ) -> $bits {
                fmadd(a ^ SIGN, b, c ^ SIGN, rounding, flags)
            }

            /// The smaller operand (IEEE 754-2019 `minimumNumber`).
            #[must_use]
            pub fn min(a: $bits, b: $bits, flags: &mut u8) -> $bits {
                compare::extreme::<$format>(a.into(), b.into(), false, flags) as $bits
            }

            /// The larger operand (IEEE 754-2019 `maximumNumber`).
            #[must_use]
            pub fn max(a: $bits, b: $bits, flags: &mut u8) -> $bits {
                compare::extreme::<$format>(a.into(), b.into(), true, flags) as $bits
            }

            /// `a == b` (`feq`, a quiet comparison).
            #[must_use]
            pub fn eq(a: $bits, b: $bits, flags: &mut u8) -> bool {
                compare::equal::<$format>(a.into(), b.into(), flags)
            }

            /// `a < b` (`flt`, a signalling comparison).
            #[must_use]
            pub fn lt(a: $bits, b: $bits, flags: &mut u8) -> bool {
                compare::less::<$format>(a.into(), b.into(), false, flags)
            }

            /// `a <= b` (`fle`, a signalling comparison).
            #[must_use]
            pub fn le(a: $bits, b: $bits, flags: &mut u8) -> bool {
                compare::less::<$format>(a.into(), b.into(), true, flags)
            }

            /// The one-hot class mask of `fclass`: bit 0 minus infinity to bit 7 plus infinity, 8 signalling, 9 quiet NaN.
            #[must_use]
            pub fn classify(a: $bits) -> u64 {
                compare::classify::<$format>(a.into())
            }

            /// `a` with the sign of `b` (`fsgnj`).
            #[must_use]
            pub const fn sgnj(a: $bits, b: $bits) -> $bits {
                a & !SIGN | b & SIGN
            }

            /// `a` with the opposite of the sign of `b` (`fsgnjn`).
            #[must_use]
            pub const fn sgnjn(a: $bits, b: $bits) -> $bits {
                a & !SIGN | !b & SIGN
            }

            /// `a` with its sign changed if `b` is negative (`fsgnjx`).
            #[must_use]
            pub const fn sgnjx(a: $bits, b: $bits) -> $bits {
                a ^ b & SIGN
            }

            /// To a signed 32-bit integer (`fcvt.w`).
            #[must_use]
            pub fn to_w(a: $bits, rounding: Rounding, flags: &mut u8) -> u64 {
                convert::to_integer::<$format>(a.into(), 1 << 31, (1 << 31) - 1, rounding, flags)
            }

            /// To an unsigned 32-bit integer, sign-extended (`fcvt.wu`).
            #[must_use]
            pub fn to_wu(a: $bits, rounding: Rounding, flags: &mut u8) -> u64 {
                let value =
                    convert::to_integer::<$format>(a.into(), 0, u32::MAX.into(), rounding, flags);
                i64::from(value as i32) as u64
            }

            /// To a signed 64-bit integer (`fcvt.l`).
            #[must_use]
            pub fn to_l(a: $bits, rounding: Rounding, flags: &mut u8) -> u64 {
                convert::to_integer::<$format>(a.into(), 1 << 63, (1 << 63) - 1, rounding, flags)
            }

            /// To an unsigned 64-bit integer (`fcvt.lu`).
            #[must_use]
            pub fn to_lu(a: $bits, rounding: Rounding, flags: &mut u8) -> u64 {
                convert::to_integer::<$format>(a.into(), 0, u64::MAX, rounding, flags)
            }

            /// From the signed integer in the low 32 bits of `value` (`fcvt` from `w`).
            #[must_use]
            pub fn from_w(value: u64, rounding: Rounding, flags: &mut u8) -> $bits {
                from_l(i64::from(value as i32) as u64, rounding, flags)
            }

            /// From the unsigned integer in the low 32 bits of `value` (`fcvt` from `wu`).
            #[must_use]
            pub fn from_wu(value: u64, rounding: Rounding, flags: &mut u8) -> $bits {
                from_lu(u64::from(value as u32), rounding, flags)
            }

            /// From a signed 64-bit integer (`fcvt` from `l`).
            #[must_use]
            pub fn from_l(value: u64, rounding: Rounding, flags: &mut u8) -> $bits {
                let signed = value as i64;
                convert::from_integer::<$format>(signed < 0, signed.unsigned_abs(), rounding, flags)
                    as $bits
            }

            /// From an unsigned 64-bit integer (`fcvt` from `lu`).
            #[must_use]
            pub fn from_lu(value: u64, rounding: Rounding, flags: &mut u8) -> $bits {
                convert::from_integer::<$format>(false, value, rounding, flags) as $bits
            }
        }
    };
}

operations!(
    single,
    Single,
    u32,
    single_add,
    single_multiply,
    single_divide,
    single_square_root,
    single_fused
);
operations!(
    double,
    Double,
    u64,
    double_add,
    double_multiply,
    double_divide,
    double_square_root,
    double_fused
);

pub use double::{
    add as f64_add, classify as f64_classify, div as f64_div, eq as f64_eq, fmadd as f64_fmadd,
    fmsub as f64_fmsub, fnmadd as f64_fnmadd, fnmsub as f64_fnmsub, from_l as f64_from_l,
    from_lu as f64_from_lu, from_w as f64_from_w, from_wu as f64_from_wu, le as f64_le,
    lt as f64_lt, max as f64_max, min as f64_min, mul as f64_mul, sgnj as f64_sgnj,
    sgnjn as f64_sgnjn, sgnjx as f64_sgnjx, sqrt as f64_sqrt, sub as f64_sub, to_l as f64_to_l,
    to_lu as f64_to_lu, to_w as f64_to_w, to_wu as f64_to_wu,
};
pub use single::{
    add as f32_add, classify as f32_classify, div as f32_div, eq as f32_eq, fmadd as f32_fmadd,
    fmsub as f32_fmsub, fnmadd as f32_fnmadd, fnmsub as f32_fnmsub, from_l as f32_from_l,
    from_lu as f32_from_lu, from_w as f32_from_w, from_wu as f32_from_wu, le as f32_le,
    lt as f32_lt, max as f32_max, min as f32_min, mul as f32_mul, sgnj as f32_sgnj,
    sgnjn as f32_sgnjn, sgnjx as f32_sgnjx, sqrt as f32_sqrt, sub as f32_sub, to_l as f32_to_l,
    to_lu as f32_to_lu, to_w as f32_to_w, to_wu as f32_to_wu,
};

/// From binary32 to binary64 (`fcvt.d.s`): exact; only a signalling NaN raises a flag.
#[must_use]
pub fn f32_to_f64(a: u32, flags: &mut u8) -> u64 {
    convert::format_to_format::<Single, Double>(a.into(), Rounding::NearestEven, flags)
}

/// From binary64 to binary32 (`fcvt.s.d`).
#[must_use]
pub fn f64_to_f32(a: u64, rounding: Rounding, flags: &mut u8) -> u32 {
    convert::format_to_format::<Double, Single>(a, rounding, flags) as u32
}
