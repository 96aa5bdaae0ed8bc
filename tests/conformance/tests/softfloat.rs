//! The hart's arithmetic against Berkeley SoftFloat (release 3, RISC-V specialisation): every operation, every rounding mode,
//! results and flags, over all pairs of corner operands and over random ones.
//!
//! `FP_CASES` sets the number of random operand sets of each operation (default 20000).
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use bulkhead_conformance::random::Random;
use bulkhead_machine::hart::fp::{self, Rounding};
use softfloat_wrapper::{ExceptionFlags, F32, F64, Float, RoundingMode};

const MODES: [(Rounding, RoundingMode); 5] = [
    (Rounding::NearestEven, RoundingMode::TiesToEven),
    (Rounding::TowardZero, RoundingMode::TowardZero),
    (Rounding::Down, RoundingMode::TowardNegative),
    (Rounding::Up, RoundingMode::TowardPositive),
    (Rounding::NearestAway, RoundingMode::TiesToAway),
];

/// Result and flags of SoftFloat.
fn reference(operation: impl FnOnce() -> u64) -> (u64, u8) {
    ExceptionFlags::default().set();
    let result = operation();
    let mut flags = ExceptionFlags::default();
    flags.get();
    (result, flags.to_bits())
}

fn cases() -> u64 {
    std::env::var("FP_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000)
}

/// Both signs of every edge of a format, and values that make sums and products land on the edges.
fn corners(precision: u32, exponent_bits: u32) -> Vec<u64> {
    let fraction = precision - 1;
    let (top, ones) = ((1 << exponent_bits) - 1, (1 << fraction) - 1);
    let bias = top >> 1;
    let mut corners = Vec::new();
    let w = u64::from(precision);
    for exponent in [
        0,
        1,
        2,
        w,
        bias - w,
        bias - 1,
        bias,
        bias + 1,
        bias + w - 1,
        bias + w,
        bias + 31,
        bias + 63,
        top - 1,
        top,
    ] {
        for mantissa in [0, 1, 1 << (fraction - 1), ones - 1, ones] {
            for sign in [0, 1] {
                corners.push(sign << (fraction + exponent_bits) | exponent << fraction | mantissa);
            }
        }
    }
    corners
}

/// A random operand: any bits, or exponents near the bias, near the bottom, near the top.
fn operand(random: &mut Random, precision: u32, exponent_bits: u32) -> u64 {
    let fraction = precision - 1;
    let width = fraction + exponent_bits + 1;
    let bits = random.bits() >> (64 - width);
    let top = (1 << exponent_bits) - 1;
    let exponent = match random.below(5) {
        0 => return bits,
        1 | 2 => {
            (top >> 1) as i64 + random.range(-(i64::from(precision) + 3), i64::from(precision) + 3)
        }
        3 => random.range(0, i64::from(precision) + 3),
        _ => top as i64 - random.range(0, 4),
    };
    let mut bits = bits & !(top << fraction) | (exponent as u64) << fraction;
    // Long runs of zeros or ones reach the ties.
    let run = (1 << random.below(u64::from(fraction))) - 1;
    match random.below(3) {
        0 => bits &= !run,
        1 => bits |= run,
        _ => {}
    }
    bits
}

macro_rules! compare {
    ($name:ident, $bits:ty, $float:ty, $precision:expr, $exponent:expr, $add:ident, $sub:ident, $mul:ident, $div:ident, $sqrt:ident,
     $fmadd:ident, $eq:ident, $lt:ident, $le:ident, $to_w:ident, $to_wu:ident, $to_l:ident, $to_lu:ident,
     $from_w:ident, $from_wu:ident, $from_l:ident, $from_lu:ident) => {
        mod $name {
            use super::*;

            /// `before` are flags already accrued: they steer the implementation to its different ways.
            fn check(name: &str, operands: &[u64], before: u8, ours: impl Fn(&mut u8) -> u64, theirs: impl Fn() -> u64) {
                let mut flags = before;
                let result = ours(&mut flags);
                let (expected, raised) = reference(theirs);
                assert!(
                    (result, flags) == (expected, raised | before),
                    "{name} {operands:#x?} (flags {before:#x}): {result:#x} flags {flags:#x}, SoftFloat {expected:#x} flags {:#x}",
                    raised | before
                );
            }

            fn two(a: u64, b: u64, before: u8) {
                let (x, y) = (<$float>::from_bits(a as $bits), <$float>::from_bits(b as $bits));
                let (a, b) = (a as $bits, b as $bits);
                let operands = &[u64::from(a), u64::from(b)];
                for (mode, theirs) in MODES {
                    check("add", operands, before, |f| fp::$add(a, b, mode, f).into(), || x.add(y, theirs).to_bits().into());
                    check("sub", operands, before, |f| fp::$sub(a, b, mode, f).into(), || x.sub(y, theirs).to_bits().into());
                    check("mul", operands, before, |f| fp::$mul(a, b, mode, f).into(), || x.mul(y, theirs).to_bits().into());
                    check("div", operands, before, |f| fp::$div(a, b, mode, f).into(), || x.div(y, theirs).to_bits().into());
                }
                check("eq", operands, before, |f| fp::$eq(a, b, f).into(), || x.eq(y).into());
                check("lt", operands, before, |f| fp::$lt(a, b, f).into(), || x.lt(y).into());
                check("le", operands, before, |f| fp::$le(a, b, f).into(), || x.le(y).into());
            }

            fn one(a: u64, before: u8) {
                let x = <$float>::from_bits(a as $bits);
                let a = a as $bits;
                let operands = &[u64::from(a)];
                let extend = |word: u32| i64::from(word as i32) as u64;
                for (mode, theirs) in MODES {
                    check("sqrt", operands, before, |f| fp::$sqrt(a, mode, f).into(), || x.sqrt(theirs).to_bits().into());
                    check("to_w", operands, before, |f| fp::$to_w(a, mode, f), || extend(x.to_i32(theirs, true) as u32));
                    check("to_wu", operands, before, |f| fp::$to_wu(a, mode, f), || extend(x.to_u32(theirs, true)));
                    check("to_l", operands, before, |f| fp::$to_l(a, mode, f), || x.to_i64(theirs, true) as u64);
                    check("to_lu", operands, before, |f| fp::$to_lu(a, mode, f), || x.to_u64(theirs, true));
                }
            }

            fn fused(a: u64, b: u64, c: u64, before: u8) {
                let (x, y, z) =
                    (<$float>::from_bits(a as $bits), <$float>::from_bits(b as $bits), <$float>::from_bits(c as $bits));
                let (a, b, c) = (a as $bits, b as $bits, c as $bits);
                let operands = &[u64::from(a), u64::from(b), u64::from(c)];
                for (mode, theirs) in MODES {
                    check(
                        "fmadd",
                        operands,
                        before,
                        |f| fp::$fmadd(a, b, c, mode, f).into(),
                        || x.fused_mul_add(y, z, theirs).to_bits().into(),
                    );
                }
            }

            fn integer(value: u64, before: u8) {
                for (mode, theirs) in MODES {
                    let o = &[value];
                    check("from_w", o, before, |f| fp::$from_w(value, mode, f).into(), || {
                        <$float>::from_i32(value as i32, theirs).to_bits().into()
                    });
                    check("from_wu", o, before, |f| fp::$from_wu(value, mode, f).into(), || {
                        <$float>::from_u32(value as u32, theirs).to_bits().into()
                    });
                    check("from_l", o, before, |f| fp::$from_l(value, mode, f).into(), || {
                        <$float>::from_i64(value as i64, theirs).to_bits().into()
                    });
                    check("from_lu", o, before, |f| fp::$from_lu(value, mode, f).into(), || {
                        <$float>::from_u64(value, theirs).to_bits().into()
                    });
                }
            }

            #[test]
            fn all_pairs_of_corners() {
                let corners = corners($precision, $exponent);
                for &a in &corners {
                    one(a, 0);
                    one(a, 1);
                    for &b in &corners {
                        two(a, b, 0);
                        two(a, b, 1);
                    }
                }
            }

            #[test]
            fn corners_of_fused() {
                let corners = corners($precision, $exponent);
                let mut random = Random::new(1);
                for &a in &corners {
                    for &b in &corners {
                        for _ in 0..3 {
                            let c = *random.pick(&corners);
                            fused(a, b, c, 0);
                            fused(a, b, c, 1);
                        }
                    }
                }
            }

            #[test]
            fn random_operands() {
                let mut random = Random::new(u64::from($precision as u32));
                for _ in 0..cases() {
                    let a = operand(&mut random, $precision, $exponent);
                    let b = operand(&mut random, $precision, $exponent);
                    let c = operand(&mut random, $precision, $exponent);
                    let before = random.below(32) as u8;
                    one(a, before);
                    two(a, b, before);
                    fused(a, b, c, before);
                    // An addend of the size of the product, where sums cancel.
                    let product = fp::$mul(a as $bits, b as $bits, Rounding::NearestEven, &mut 0);
                    fused(a, b, (u64::from(product)).wrapping_add(random.below(5)).wrapping_sub(2), before);
                    integer(random.corner(), before);
                }
            }
        }
    };
}

compare!(
    single,
    u32,
    F32,
    24,
    8,
    f32_add,
    f32_sub,
    f32_mul,
    f32_div,
    f32_sqrt,
    f32_fmadd,
    f32_eq,
    f32_lt,
    f32_le,
    f32_to_w,
    f32_to_wu,
    f32_to_l,
    f32_to_lu,
    f32_from_w,
    f32_from_wu,
    f32_from_l,
    f32_from_lu
);
compare!(
    double,
    u64,
    F64,
    53,
    11,
    f64_add,
    f64_sub,
    f64_mul,
    f64_div,
    f64_sqrt,
    f64_fmadd,
    f64_eq,
    f64_lt,
    f64_le,
    f64_to_w,
    f64_to_wu,
    f64_to_l,
    f64_to_lu,
    f64_from_w,
    f64_from_wu,
    f64_from_l,
    f64_from_lu
);

#[test]
fn between_the_formats() {
    let mut random = Random::new(3);
    let mut doubles = corners(53, 11);
    // The edges of binary32 as binary64 values, and their neighbours.
    for single in corners(24, 8) {
        let (wide, _) = reference(|| {
            F32::from_bits(single as u32)
                .to_f64(RoundingMode::TiesToEven)
                .to_bits()
        });
        doubles.extend([
            wide,
            wide.wrapping_add(1),
            wide.wrapping_sub(1),
            wide ^ 1 << 28,
            wide ^ 3 << 27,
        ]);
        let mut flags = 0;
        let result = fp::f32_to_f64(single as u32, &mut flags);
        let expected = reference(|| {
            F32::from_bits(single as u32)
                .to_f64(RoundingMode::TiesToEven)
                .to_bits()
        });
        assert_eq!((result, flags), expected, "{single:#x}");
    }
    doubles.extend(
        (0..cases()).map(|_| {
            random.bits() & 0x8000_ffff_ffff_ffff | (random.range(860, 1160) as u64) << 52
        }),
    );
    for double in doubles {
        for (mode, theirs) in MODES {
            let mut flags = 0;
            let result = fp::f64_to_f32(double, mode, &mut flags);
            let expected = reference(|| F64::from_bits(double).to_f32(theirs).to_bits().into());
            assert_eq!((u64::from(result), flags), expected, "{double:#x} {mode:?}");
        }
    }
}
