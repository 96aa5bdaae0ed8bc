//! Comparisons, minimum and maximum, sign injection and classification: nothing here rounds.

use super::flag::INVALID;
use super::format::{Format, is_nan, is_signaling};

/// Maps the bits of a number that is not a NaN to integers in the same order (minus zero just below plus zero).
fn ordered<F: Format>(bits: u64) -> i64 {
    let magnitude = (bits & (F::SIGN - 1)) as i64;
    if bits & F::SIGN != 0 {
        -1 - magnitude
    } else {
        magnitude
    }
}

/// Quiet comparison: only signalling NaNs are invalid.
pub(super) fn equal<F: Format>(a: u64, b: u64, flags: &mut u8) -> bool {
    if is_nan::<F>(a) || is_nan::<F>(b) {
        if is_signaling::<F>(a) || is_signaling::<F>(b) {
            *flags |= INVALID;
        }
        return false;
    }
    a == b || (a | b) & !F::SIGN == 0
}

/// Signalling comparison: any NaN is invalid.
pub(super) fn less<F: Format>(a: u64, b: u64, or_equal: bool, flags: &mut u8) -> bool {
    if is_nan::<F>(a) || is_nan::<F>(b) {
        *flags |= INVALID;
        return false;
    }
    if a == b || (a | b) & !F::SIGN == 0 {
        return or_equal;
    }
    ordered::<F>(a) < ordered::<F>(b)
}

/// `minimumNumber` / `maximumNumber` of IEEE 754-2019: a number wins over a NaN, and minus zero is below plus zero.
pub(super) fn extreme<F: Format>(a: u64, b: u64, maximum: bool, flags: &mut u8) -> u64 {
    if is_signaling::<F>(a) || is_signaling::<F>(b) {
        *flags |= INVALID;
    }
    match (is_nan::<F>(a), is_nan::<F>(b)) {
        (true, true) => F::NAN,
        (true, false) => b,
        (false, true) => a,
        (false, false) if (ordered::<F>(a) < ordered::<F>(b)) != maximum => a,
        (false, false) => b,
    }
}

/// The one-hot mask of `fclass`.
pub(super) fn classify<F: Format>(bits: u64) -> u64 {
    let negative = bits & F::SIGN != 0;
    let magnitude = bits & !F::SIGN;
    let class = if is_nan::<F>(bits) {
        if is_signaling::<F>(bits) { 8 } else { 9 }
    } else {
        let distance = match magnitude {
            0 => 0,
            _ if magnitude == F::INFINITY => 3,
            _ if magnitude <= F::FRACTION_MASK => 1,
            _ => 2,
        };
        if negative { 3 - distance } else { 4 + distance }
    };
    1 << class
}
