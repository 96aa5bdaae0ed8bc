//! Conversions between the formats and to and from integers, saturating as RISC-V requires.

use super::Rounding;
use super::flag::{INEXACT, INVALID};
use super::format::{
    Format, Kind, infinity, nan_result, round_pack, rounds_up, split, unpack, zero,
};

/// From one format to the other.
pub(super) fn format_to_format<From: Format, To: Format>(
    a: u64,
    rounding: Rounding,
    flags: &mut u8,
) -> u64 {
    let x = unpack::<From>(a);
    match x.kind {
        Kind::Nan => {
            nan_result::<From>(&[a], flags);
            To::NAN
        }
        Kind::Infinity => infinity::<To>(x.negative),
        Kind::Zero => zero::<To>(x.negative),
        Kind::Finite => round_pack::<To>(x.negative, x.exponent, x.significand, rounding, flags),
    }
}

/// To an integer between `-lowest` and `highest` (magnitudes); NaN counts as plus infinity. The result is the two's complement.
pub(super) fn to_integer<F: Format>(
    a: u64,
    lowest: u64,
    highest: u64,
    rounding: Rounding,
    flags: &mut u8,
) -> u64 {
    let x = unpack::<F>(a);
    let limit = if x.negative && x.kind != Kind::Nan {
        lowest.wrapping_neg()
    } else {
        highest
    };
    let (kept, half, rest) = match x.kind {
        Kind::Zero => return 0,
        Kind::Finite if x.exponent < 64 => match x.exponent {
            63 => (x.significand, false, false),
            exponent => split(x.significand, (63 - exponent) as u32),
        },
        _ => {
            *flags |= INVALID;
            return limit;
        }
    };
    let magnitude = kept + u64::from(rounds_up(rounding, x.negative, kept & 1 != 0, half, rest));
    if magnitude > if x.negative { lowest } else { highest } {
        *flags |= INVALID;
        return limit;
    }
    if half || rest {
        *flags |= INEXACT;
    }
    if x.negative {
        magnitude.wrapping_neg()
    } else {
        magnitude
    }
}

/// From a sign and a magnitude.
pub(super) fn from_integer<F: Format>(
    negative: bool,
    magnitude: u64,
    rounding: Rounding,
    flags: &mut u8,
) -> u64 {
    if magnitude == 0 {
        return 0;
    }
    let zeros = magnitude.leading_zeros();
    round_pack::<F>(
        negative,
        63 - zeros as i32,
        magnitude << zeros,
        rounding,
        flags,
    )
}
