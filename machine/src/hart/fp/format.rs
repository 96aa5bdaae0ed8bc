//! Taking numbers apart and rounding them back: the two steps that all operations share.
//!
//! A finite non-zero number is (sign, exponent, significand) with the significand's leading one at bit 63, so its value is
//! `significand / 2^63 * 2^exponent` in every format. Operations do not know the formats' layouts.

use super::Rounding;
use super::flag::{INEXACT, INVALID, OVERFLOW, UNDERFLOW};

/// One of the two interchange formats; bits are always held in the low end of a `u64`.
pub(super) trait Format {
    /// Bits of the significand with the hidden one.
    const PRECISION: u32;
    /// Bits of the exponent field.
    const EXPONENT_BITS: u32;

    const FRACTION_BITS: u32 = Self::PRECISION - 1;
    const FRACTION_MASK: u64 = (1 << Self::FRACTION_BITS) - 1;
    /// Largest value of the exponent field: infinities and NaNs.
    const EXPONENT_MAX: u64 = (1 << Self::EXPONENT_BITS) - 1;
    const BIAS: i32 = (1 << (Self::EXPONENT_BITS - 1)) - 1;
    const SIGN: u64 = 1 << (Self::FRACTION_BITS + Self::EXPONENT_BITS);
    const INFINITY: u64 = Self::EXPONENT_MAX << Self::FRACTION_BITS;
    const QUIET: u64 = 1 << (Self::FRACTION_BITS - 1);
    const NAN: u64 = Self::INFINITY | Self::QUIET;
    const LARGEST: u64 = Self::INFINITY - 1;
}

/// binary32.
pub(super) struct Single;
/// binary64.
pub(super) struct Double;

impl Format for Single {
    const PRECISION: u32 = 24;
    const EXPONENT_BITS: u32 = 8;
}

impl Format for Double {
    const PRECISION: u32 = 53;
    const EXPONENT_BITS: u32 = 11;
}

/// The class of a number, apart from its sign.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Zero,
    Finite,
    Infinity,
    Nan,
}

/// A number taken apart; `exponent` and `significand` mean something only for [`Kind::Finite`].
#[derive(Clone, Copy)]
pub(super) struct Unpacked {
    pub negative: bool,
    pub kind: Kind,
    pub exponent: i32,
    pub significand: u64,
}

pub(super) fn is_nan<F: Format>(bits: u64) -> bool {
    bits & !F::SIGN > F::INFINITY
}

pub(super) fn is_signaling<F: Format>(bits: u64) -> bool {
    is_nan::<F>(bits) && bits & F::QUIET == 0
}

#[inline]
pub(super) fn unpack<F: Format>(bits: u64) -> Unpacked {
    let negative = bits & F::SIGN != 0;
    let field = (bits >> F::FRACTION_BITS) & F::EXPONENT_MAX;
    let fraction = bits & F::FRACTION_MASK;
    let (kind, exponent, significand) = if field == F::EXPONENT_MAX {
        (
            if fraction == 0 {
                Kind::Infinity
            } else {
                Kind::Nan
            },
            0,
            0,
        )
    } else if field != 0 {
        (
            Kind::Finite,
            field as i32 - F::BIAS,
            1 << 63 | fraction << (64 - F::PRECISION),
        )
    } else if fraction == 0 {
        (Kind::Zero, 0, 0)
    } else {
        let zeros = fraction.leading_zeros();
        // A subnormal's unit in the last place is 2^(1 - BIAS - FRACTION_BITS); bit 63 - zeros is its leading one.
        (
            Kind::Finite,
            1 - F::BIAS - F::FRACTION_BITS as i32 + 63 - zeros as i32,
            fraction << zeros,
        )
    };
    Unpacked {
        negative,
        kind,
        exponent,
        significand,
    }
}

/// Whether the magnitude goes up by one unit, given its last kept bit, the first dropped bit and whether any later one is set.
#[inline]
pub(super) fn rounds_up(
    rounding: Rounding,
    negative: bool,
    odd: bool,
    half: bool,
    rest: bool,
) -> bool {
    match rounding {
        Rounding::NearestEven => half && (rest || odd),
        Rounding::TowardZero => false,
        Rounding::Down => negative && (half || rest),
        Rounding::Up => !negative && (half || rest),
        Rounding::NearestAway => half,
    }
}

/// Splits `significand` at `shift` (at least 1): the kept part, the first dropped bit, whether a later one is set.
#[inline]
pub(super) fn split(significand: u64, shift: u32) -> (u64, bool, bool) {
    match shift {
        0..=63 => (
            significand >> shift,
            significand >> (shift - 1) & 1 != 0,
            significand & ((1 << (shift - 1)) - 1) != 0,
        ),
        64 => (0, significand >> 63 != 0, significand << 1 != 0),
        _ => (0, false, significand != 0),
    }
}

/// Rounds and packs a non-zero number; `significand` has its leading one at bit 63, and its lowest bit is set if the operation
/// dropped any set bit ("jammed"). The result is exact because at least ten bits lie between it and the rounding position.
#[inline]
pub(super) fn round_pack<F: Format>(
    negative: bool,
    exponent: i32,
    significand: u64,
    rounding: Rounding,
    flags: &mut u8,
) -> u64 {
    let sign = if negative { F::SIGN } else { 0 };
    let field = exponent + F::BIAS;
    let shift = 64 - F::PRECISION;
    let (kept, half, rest) = split(significand, shift);
    let up = rounds_up(rounding, negative, kept & 1 != 0, half, rest);
    let inexact = half || rest;
    if field >= 1 {
        // Adding the hidden one into the exponent field, and a carry out of the significand, both raise it by one.
        let magnitude = ((field as u64 - 1) << F::FRACTION_BITS) + kept + u64::from(up);
        if magnitude >= F::INFINITY {
            *flags |= OVERFLOW | INEXACT;
            let infinite = match rounding {
                Rounding::NearestEven | Rounding::NearestAway => true,
                Rounding::TowardZero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
            return sign | if infinite { F::INFINITY } else { F::LARGEST };
        }
        if inexact {
            *flags |= INEXACT;
        }
        return sign | magnitude;
    }
    // Tiny after rounding: rounded as if the exponent had no lower bound, it still lies below the least normal number.
    let tiny = field < 0 || kept + u64::from(up) < 1 << F::PRECISION;
    let (kept, half, rest) = split(significand, shift + (1 - field) as u32);
    let up = rounds_up(rounding, negative, kept & 1 != 0, half, rest);
    if half || rest {
        *flags |= INEXACT | if tiny { UNDERFLOW } else { 0 };
    }
    sign | (kept + u64::from(up))
}

/// The NaN that results from a NaN operand. Raises the invalid flag for a signalling one.
pub(super) fn nan_result<F: Format>(operands: &[u64], flags: &mut u8) -> u64 {
    if operands.iter().any(|&bits| is_signaling::<F>(bits)) {
        *flags |= INVALID;
    }
    F::NAN
}

/// The NaN of an operation without a meaningful result.
pub(super) fn invalid<F: Format>(flags: &mut u8) -> u64 {
    *flags |= INVALID;
    F::NAN
}

/// A zero of the given sign.
pub(super) fn zero<F: Format>(negative: bool) -> u64 {
    if negative { F::SIGN } else { 0 }
}

/// An infinity of the given sign.
pub(super) fn infinity<F: Format>(negative: bool) -> u64 {
    zero::<F>(negative) | F::INFINITY
}
