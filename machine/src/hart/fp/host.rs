//! Fast paths through the host's floating-point unit, used only where they provably give the same bits and flags.
//!
//! Rust's `f32` and `f64` arithmetic is IEEE 754 with rounding to nearest even, and `mul_add` rounds once. Therefore, with that
//! rounding mode and a result `r` that is normal and larger in magnitude than the least normal number, the host's bits are the
//! result, and no flag but "inexact" can be due: the test on `r` excludes NaN and infinite results (invalid, divide by zero,
//! overflow, NaN operands) and everything that could be tiny. Only the inexact flag remains:
//! - it is sticky, so if it is already set (the usual case after a program's first steps), nothing need be computed;
//! - otherwise an error-free transformation gives the rounding error exactly, inside the exponent range in which none of
//!   its steps can overflow or lose bits below the subnormal limit (Muller et al., "Handbook of Floating-Point Arithmetic",
//!   2nd edition, sections 4.3 to 4.8): 2Sum for sums, the fused residuals `ab - r`, `a - rb` and `a - r*r` for the rest.
//!
//! `None` means: use the integer implementation.

use super::Rounding;
use super::flag::INEXACT;

/// Results in this range leave room for the error terms of binary64 (an error is at most 2^-53 of the result and has at most
/// 53 bits, so its last bit is above 2^-1074; nothing doubles beyond 2^1023).
const DOUBLE_LOW: f64 = f64::from_bits((1023 - 900) << 52);
const DOUBLE_HIGH: f64 = f64::from_bits((1023 + 900) << 52);
const SINGLE_LOW: f32 = f32::from_bits((127 - 60) << 23);
const SINGLE_HIGH: f32 = f32::from_bits((127 + 60) << 23);

fn settled(rounding: Rounding, flags: u8) -> bool {
    rounding == Rounding::NearestEven && flags & INEXACT != 0
}

fn single_ordinary(r: f32) -> bool {
    let magnitude = r.abs();
    magnitude > f32::MIN_POSITIVE && magnitude <= f32::MAX
}

fn double_ordinary(r: f64) -> bool {
    let magnitude = r.abs();
    magnitude > f64::MIN_POSITIVE && magnitude <= f64::MAX
}

fn single_central(r: f32) -> bool {
    (SINGLE_LOW..SINGLE_HIGH).contains(&r.abs())
}

fn double_central(r: f64) -> bool {
    (DOUBLE_LOW..DOUBLE_HIGH).contains(&r.abs())
}

/// Fast path for the nearest mode; if the inexact flag is not set yet, sets it unless `exact` holds.
macro_rules! short_way {
    ($rounding:ident, $flags:ident, $result:expr, $ordinary:ident, $central:expr, $exact:expr) => {{
        if $rounding != Rounding::NearestEven {
            return None;
        }
        let result = $result;
        if settled($rounding, *$flags) {
            return $ordinary(result).then(|| result.to_bits());
        }
        if !$central(result) {
            return None;
        }
        if !$exact(result) {
            *$flags |= INEXACT;
        }
        Some(result.to_bits())
    }};
}

#[inline]
pub(super) fn single_add(a: u32, b: u32, rounding: Rounding, flags: &mut u8) -> Option<u32> {
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    short_way!(
        rounding,
        flags,
        a + b,
        single_ordinary,
        |r| single_central(r) && a.abs() < SINGLE_HIGH && b.abs() < SINGLE_HIGH,
        |s: f32| {
            let part = s - a;
            (a - (s - part)) + (b - part) == 0.0
        }
    )
}

#[inline]
pub(super) fn double_add(a: u64, b: u64, rounding: Rounding, flags: &mut u8) -> Option<u64> {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    short_way!(
        rounding,
        flags,
        a + b,
        double_ordinary,
        |r| double_central(r) && a.abs() < DOUBLE_HIGH && b.abs() < DOUBLE_HIGH,
        |s: f64| {
            let part = s - a;
            (a - (s - part)) + (b - part) == 0.0
        }
    )
}

#[inline]
pub(super) fn single_multiply(a: u32, b: u32, rounding: Rounding, flags: &mut u8) -> Option<u32> {
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    // 24 + 24 bits fit in binary64's 53, and its exponents have room: the product there is exact.
    short_way!(
        rounding,
        flags,
        a * b,
        single_ordinary,
        single_central,
        |r: f32| f64::from(a) * f64::from(b) == f64::from(r)
    )
}

#[inline]
pub(super) fn double_multiply(a: u64, b: u64, rounding: Rounding, flags: &mut u8) -> Option<u64> {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    short_way!(
        rounding,
        flags,
        a * b,
        double_ordinary,
        double_central,
        |r: f64| a.mul_add(b, -r) == 0.0
    )
}

#[inline]
pub(super) fn single_divide(a: u32, b: u32, rounding: Rounding, flags: &mut u8) -> Option<u32> {
    let (a, b) = (f32::from_bits(a), f32::from_bits(b));
    short_way!(
        rounding,
        flags,
        a / b,
        single_ordinary,
        single_central,
        |r: f32| f64::from(r) * f64::from(b) == f64::from(a)
    )
}

#[inline]
pub(super) fn double_divide(a: u64, b: u64, rounding: Rounding, flags: &mut u8) -> Option<u64> {
    let (a, b) = (f64::from_bits(a), f64::from_bits(b));
    short_way!(
        rounding,
        flags,
        a / b,
        double_ordinary,
        |r| double_central(r) && double_central(a) && double_central(b),
        |r: f64| (-r).mul_add(b, a) == 0.0
    )
}

#[inline]
pub(super) fn single_square_root(a: u32, rounding: Rounding, flags: &mut u8) -> Option<u32> {
    let a = f32::from_bits(a);
    short_way!(
        rounding,
        flags,
        a.sqrt(),
        single_ordinary,
        single_central,
        |r: f32| f64::from(r) * f64::from(r) == f64::from(a)
    )
}

#[inline]
pub(super) fn double_square_root(a: u64, rounding: Rounding, flags: &mut u8) -> Option<u64> {
    let a = f64::from_bits(a);
    short_way!(
        rounding,
        flags,
        a.sqrt(),
        double_ordinary,
        |_| a > 0.0 && double_central(a),
        |r: f64| r.mul_add(r, -a) == 0.0
    )
}

#[inline]
pub(super) fn single_fused(
    a: u32,
    b: u32,
    c: u32,
    rounding: Rounding,
    flags: &mut u8,
) -> Option<u32> {
    let (a, b, c) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
    short_way!(
        rounding,
        flags,
        a.mul_add(b, c),
        single_ordinary,
        single_central,
        |r: f32| {
            // The product is exact in binary64 and the sum's error exactly known by 2Sum: no product of binary32 numbers comes near
            // the limits of binary64.
            let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
            let sum = product + c;
            let part = sum - product;
            sum == f64::from(r) && (product - (sum - part)) + (c - part) == 0.0
        }
    )
}

#[inline]
pub(super) fn double_fused(
    a: u64,
    b: u64,
    c: u64,
    rounding: Rounding,
    flags: &mut u8,
) -> Option<u64> {
    // The error of a fused multiply-add needs two numbers; while the flag is not set, the integer implementation is as fast.
    if !settled(rounding, *flags) {
        return None;
    }
    let result = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
    double_ordinary(result).then(|| result.to_bits())
}
