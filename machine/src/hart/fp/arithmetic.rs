//! Sum, product, quotient, square root and fused multiply-add in integer arithmetic.
//!
//! They are correct for every operand, rounding mode and flag, and never use the host's floating-point arithmetic.

use super::Rounding;
use super::flag::DIVIDE_BY_ZERO;
use super::format::{
    Format, Kind, Unpacked, infinity, invalid, nan_result, round_pack, unpack, zero,
};

/// Shifts right; the lowest bit of the result is also set if any bit that was shifted out was set.
#[inline]
fn shift_jam(value: u128, shift: u32) -> u128 {
    match shift {
        0 => value,
        1..=127 => value >> shift | u128::from(value << (128 - shift) != 0),
        _ => u128::from(value != 0),
    }
}

/// Rounds `wide / 2^126 * 2^exponent`; `wide` is not zero.
#[inline]
fn round_wide<F: Format>(
    negative: bool,
    exponent: i32,
    wide: u128,
    rounding: Rounding,
    flags: &mut u8,
) -> u64 {
    let zeros = wide.leading_zeros();
    let wide = wide << zeros;
    let significand = (wide >> 64) as u64 | u64::from(wide as u64 != 0);
    round_pack::<F>(
        negative,
        exponent + 1 - zeros as i32,
        significand,
        rounding,
        flags,
    )
}

/// The sign of an exact zero that comes from operands of different signs.
fn cancelled<F: Format>(rounding: Rounding) -> u64 {
    zero::<F>(rounding == Rounding::Down)
}

/// Sum of two non-zero finite numbers whose significands have their leading ones at bit 126.
#[inline]
fn sum_wide<F: Format>(
    left: (bool, i32, u128),
    right: (bool, i32, u128),
    rounding: Rounding,
    flags: &mut u8,
) -> u64 {
    let (large, small) = if (left.1, left.2) >= (right.1, right.2) {
        (left, right)
    } else {
        (right, left)
    };
    // Bits are lost only when the exponents differ by more than the free bits at the bottom; then at most one bit cancels,
    // and the jammed bit stays far below the rounding position.
    let aligned = shift_jam(small.2, (large.1 - small.1) as u32);
    let wide = if large.0 == small.0 {
        large.2 + aligned
    } else {
        large.2 - aligned
    };
    if wide == 0 {
        return cancelled::<F>(rounding);
    }
    round_wide::<F>(large.0, large.1, wide, rounding, flags)
}

fn wide(number: &Unpacked) -> (bool, i32, u128) {
    (
        number.negative,
        number.exponent,
        u128::from(number.significand) << 63,
    )
}

pub(super) fn add<F: Format>(a: u64, b: u64, rounding: Rounding, flags: &mut u8) -> u64 {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    match (x.kind, y.kind) {
        (Kind::Nan, _) | (_, Kind::Nan) => nan_result::<F>(&[a, b], flags),
        (Kind::Infinity, Kind::Infinity) if x.negative != y.negative => invalid::<F>(flags),
        (Kind::Infinity, _) => a,
        (_, Kind::Infinity) => b,
        (Kind::Zero, Kind::Zero) if x.negative == y.negative => a,
        (Kind::Zero, Kind::Zero) => cancelled::<F>(rounding),
        (Kind::Zero, _) => b,
        (_, Kind::Zero) => a,
        // The significands are at most 53 bits wide, so 64 bits hold a sum, and ten bits below it catch what is lost.
        (Kind::Finite, Kind::Finite) => {
            let (large, small) = if (x.exponent, x.significand) >= (y.exponent, y.significand) {
                (x, y)
            } else {
                (y, x)
            };
            let distance = (large.exponent - small.exponent) as u32;
            let (high, low) = (large.significand >> 1, small.significand >> 1);
            let aligned = match distance {
                0 => low,
                1..=63 => low >> distance | u64::from(low << (64 - distance) != 0),
                _ => 1,
            };
            let sum = if large.negative == small.negative {
                high + aligned
            } else {
                high - aligned
            };
            if sum == 0 {
                return cancelled::<F>(rounding);
            }
            let zeros = sum.leading_zeros();
            round_pack::<F>(
                large.negative,
                large.exponent + 1 - zeros as i32,
                sum << zeros,
                rounding,
                flags,
            )
        }
    }
}

#[inline]
pub(super) fn multiply<F: Format>(a: u64, b: u64, rounding: Rounding, flags: &mut u8) -> u64 {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    let negative = x.negative != y.negative;
    match (x.kind, y.kind) {
        (Kind::Nan, _) | (_, Kind::Nan) => nan_result::<F>(&[a, b], flags),
        (Kind::Infinity, Kind::Zero) | (Kind::Zero, Kind::Infinity) => invalid::<F>(flags),
        (Kind::Infinity, _) | (_, Kind::Infinity) => infinity::<F>(negative),
        (Kind::Zero, _) | (_, Kind::Zero) => zero::<F>(negative),
        (Kind::Finite, Kind::Finite) => {
            let product = u128::from(x.significand) * u128::from(y.significand);
            round_wide::<F>(negative, x.exponent + y.exponent, product, rounding, flags)
        }
    }
}

pub(super) fn divide<F: Format>(a: u64, b: u64, rounding: Rounding, flags: &mut u8) -> u64 {
    let (x, y) = (unpack::<F>(a), unpack::<F>(b));
    let negative = x.negative != y.negative;
    match (x.kind, y.kind) {
        (Kind::Nan, _) | (_, Kind::Nan) => nan_result::<F>(&[a, b], flags),
        (Kind::Infinity, Kind::Infinity) | (Kind::Zero, Kind::Zero) => invalid::<F>(flags),
        (Kind::Infinity, _) => infinity::<F>(negative),
        (_, Kind::Infinity) | (Kind::Zero, _) => zero::<F>(negative),
        (_, Kind::Zero) => {
            *flags |= DIVIDE_BY_ZERO;
            infinity::<F>(negative)
        }
        (Kind::Finite, Kind::Finite) => {
            // The numerator is at least half the denominator times 2^63, so the quotient has 63 or 64 significant bits.
            let numerator = u128::from(x.significand) << 63;
            let denominator = u128::from(y.significand);
            let quotient = (numerator / denominator) as u64;
            let inexact = u128::from(quotient) * denominator != numerator;
            let zeros = quotient.leading_zeros();
            let significand = quotient << zeros | u64::from(inexact);
            round_pack::<F>(
                negative,
                x.exponent - y.exponent - zeros as i32,
                significand,
                rounding,
                flags,
            )
        }
    }
}

pub(super) fn square_root<F: Format>(a: u64, rounding: Rounding, flags: &mut u8) -> u64 {
    let x = unpack::<F>(a);
    match x.kind {
        Kind::Nan => nan_result::<F>(&[a], flags),
        Kind::Zero => a,
        _ if x.negative => invalid::<F>(flags),
        Kind::Infinity => a,
        Kind::Finite => {
            // sqrt(s / 2^63 * 2^e) = sqrt(s * 2^63) / 2^63 * 2^(e/2); an odd exponent moves its factor of two into the
            // radicand.
            let odd = x.exponent & 1;
            let radicand = u128::from(x.significand) << (63 + odd);
            let root = radicand.isqrt();
            let significand = root as u64 | u64::from(root * root != radicand);
            round_pack::<F>(false, (x.exponent - odd) / 2, significand, rounding, flags)
        }
    }
}

/// `a * b + c` with one rounding.
pub(super) fn fused<F: Format>(a: u64, b: u64, c: u64, rounding: Rounding, flags: &mut u8) -> u64 {
    let (x, y, z) = (unpack::<F>(a), unpack::<F>(b), unpack::<F>(c));
    let negative = x.negative != y.negative;
    // Infinity times zero is invalid even when the addend is a quiet NaN (volume I, "Single-Precision Floating-Point
    // Computational Instructions").
    if matches!(
        (x.kind, y.kind),
        (Kind::Infinity, Kind::Zero) | (Kind::Zero, Kind::Infinity)
    ) {
        return invalid::<F>(flags);
    }
    if [x.kind, y.kind, z.kind].contains(&Kind::Nan) {
        return nan_result::<F>(&[a, b, c], flags);
    }
    if x.kind == Kind::Infinity || y.kind == Kind::Infinity {
        return if z.kind == Kind::Infinity && z.negative != negative {
            invalid::<F>(flags)
        } else {
            infinity::<F>(negative)
        };
    }
    if z.kind == Kind::Infinity {
        return c;
    }
    if x.kind == Kind::Zero || y.kind == Kind::Zero {
        return match z.kind {
            Kind::Zero if z.negative != negative => cancelled::<F>(rounding),
            _ => c,
        };
    }
    let product = u128::from(x.significand) * u128::from(y.significand);
    let exponent = x.exponent + y.exponent;
    // The product's low 22 bits are zero, so moving its leading one from bit 127 to bit 126 loses nothing.
    let product = if product >> 127 != 0 {
        (negative, exponent + 1, product >> 1)
    } else {
        (negative, exponent, product)
    };
    if z.kind == Kind::Zero {
        return round_wide::<F>(product.0, product.1, product.2, rounding, flags);
    }
    sum_wide::<F>(product, wide(&z), rounding, flags)
}
