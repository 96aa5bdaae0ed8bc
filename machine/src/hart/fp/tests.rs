//! Known values, and properties against the host's arithmetic. The comparison with Berkeley SoftFloat, operation by
//! operation in every mode, is in `tests/conformance`.

use proptest::prelude::*;

use super::flag::{DIVIDE_BY_ZERO, INEXACT, INVALID, OVERFLOW, UNDERFLOW};
use super::format::{Double, Single};
use super::*;

const RNE: Rounding = Rounding::NearestEven;

/// Operands at every edge of binary32.
const EDGES_32: [u32; 18] = [
    0,
    1,
    2,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x4b00_0001,
    0x5f00_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fbf_ffff,
    0x7fc0_0000,
    0x7fff_ffff,
    0x3effffff,
];

fn with_flags<T>(operation: impl FnOnce(&mut u8) -> T) -> (T, u8) {
    let mut flags = 0;
    let result = operation(&mut flags);
    (result, flags)
}

#[test]
fn known_results_and_flags() {
    let one = 1f32.to_bits();
    let three = 3f32.to_bits();
    // 1/3 = 0x3eaaaaaa|aaa...: the next bit is 1 and more follows, so nearest and up give ...ab.
    for (rounding, expected) in Rounding::ALL.into_iter().zip([
        0x3eaa_aaab,
        0x3eaa_aaaa,
        0x3eaa_aaaa,
        0x3eaa_aaab,
        0x3eaa_aaab,
    ]) {
        assert_eq!(
            with_flags(|f| f32_div(one, three, rounding, f)),
            (expected, INEXACT)
        );
    }
    assert_eq!(
        with_flags(|f| f32_div(one, 0x8000_0000, RNE, f)),
        (0xff80_0000, DIVIDE_BY_ZERO)
    );
    assert_eq!(
        with_flags(|f| f32_div(0, 0, RNE, f)),
        (CANONICAL_NAN_32, INVALID)
    );
    assert_eq!(
        with_flags(|f| f32_sqrt((-1f32).to_bits(), RNE, f)),
        (CANONICAL_NAN_32, INVALID)
    );
    assert_eq!(
        with_flags(|f| f32_sqrt(0x8000_0000, RNE, f)),
        (0x8000_0000, 0)
    );
    // Overflow: infinity or the largest number, by direction.
    for (rounding, expected) in Rounding::ALL.into_iter().zip([
        0x7f80_0000,
        0x7f7f_ffff,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0000,
    ]) {
        assert_eq!(
            with_flags(|f| f32_mul(0x7f7f_ffff, three, rounding, f)),
            (expected, OVERFLOW | INEXACT)
        );
    }
    // x - x is plus zero except when rounding down.
    for rounding in Rounding::ALL {
        let expected = if rounding == Rounding::Down {
            0x8000_0000
        } else {
            0
        };
        assert_eq!(
            with_flags(|f| f32_sub(three, three, rounding, f)),
            (expected, 0)
        );
    }
    // Infinity times zero is invalid even with a quiet NaN as the addend; a quiet NaN alone is not.
    assert_eq!(
        with_flags(|f| f32_fmadd(0x7f80_0000, 0, CANONICAL_NAN_32, RNE, f)),
        (CANONICAL_NAN_32, INVALID)
    );
    assert_eq!(
        with_flags(|f| f32_fmadd(one, 0, 0x7fff_ffff, RNE, f)),
        (CANONICAL_NAN_32, 0)
    );
}

/// IEEE 754, 7.5: tininess after rounding is judged as if the exponent had no bound.
#[test]
fn tininess_is_detected_after_rounding() {
    // With 24 bits and no exponent bound, (2^-126)(1 - 2^-24) rounds to itself: tiny. With 25 significant ones it would round to
    // 2^-126.
    let least_normal = 0x0080_0000;
    let below_one = 0x3f7f_ffff; // 1 - 2^-24
    assert_eq!(
        with_flags(|f| f32_mul(least_normal, below_one, RNE, f)),
        (least_normal, UNDERFLOW | INEXACT)
    );
    // (1 - 2^-24)(1 + 2^-23) 2^-126 = 2^-126 (1 + 2^-24 - 2^-47): not tiny.
    assert_eq!(
        with_flags(|f| f32_mul(0x0080_0001, below_one, RNE, f)),
        (least_normal, INEXACT)
    );
    // 2^-126 (1 - 2^-26): 24 bits round it up to 2^-126, so it is not tiny.
    let fused = with_flags(|f| f32_fmadd(0x8000_0001, 0x3e00_0000, least_normal, RNE, f));
    assert_eq!(fused, (least_normal, INEXACT));
    // An exact subnormal result raises nothing.
    assert_eq!(
        with_flags(|f| f32_mul(least_normal, 0.5f32.to_bits(), RNE, f)),
        (0x0040_0000, 0)
    );
}

#[test]
fn minimum_and_maximum_prefer_numbers() {
    let (minus_zero, signalling, quiet, one) = (0x8000_0000, 0x7f80_0001, 0x7fff_ffff, 0x3f80_0000);
    assert_eq!(with_flags(|f| f32_min(0, minus_zero, f)), (minus_zero, 0));
    assert_eq!(with_flags(|f| f32_max(minus_zero, 0, f)), (0, 0));
    assert_eq!(with_flags(|f| f32_min(signalling, one, f)), (one, INVALID));
    assert_eq!(with_flags(|f| f32_max(one, quiet, f)), (one, 0));
    assert_eq!(
        with_flags(|f| f32_max(quiet, quiet, f)),
        (CANONICAL_NAN_32, 0)
    );
}

#[test]
fn comparisons_quiet_and_signalling() {
    let (quiet, signalling, one) = (0x7fc0_0000, 0x7f80_0001, 0x3f80_0000);
    assert_eq!(with_flags(|f| f32_eq(quiet, one, f)), (false, 0));
    assert_eq!(with_flags(|f| f32_eq(signalling, one, f)), (false, INVALID));
    assert_eq!(with_flags(|f| f32_lt(quiet, one, f)), (false, INVALID));
    assert_eq!(with_flags(|f| f32_le(0, 0x8000_0000, f)), (true, 0));
    assert_eq!(with_flags(|f| f32_lt(0x8000_0000, 0, f)), (false, 0));
    assert_eq!(with_flags(|f| f32_eq(0x8000_0000, 0, f)), (true, 0));
}

/// Volume I, table "Format of result of FCLASS instruction".
#[test]
fn classes() {
    let expected = [
        (0xff80_0000, 0),
        (0xbf80_0000, 1),
        (0x8000_0001, 2),
        (0x8000_0000, 3),
        (0, 4),
        (0x007f_ffff, 5),
        (0x0080_0000, 6),
        (0x7f80_0000, 7),
        (0xff80_0001, 8),
        (0xffc0_0000, 9),
    ];
    for (bits, class) in expected {
        assert_eq!(f32_classify(bits), 1 << class, "{bits:#x}");
    }
    assert_eq!(f64_classify(0x7ff0_0000_0000_0001), 1 << 8);
    assert_eq!(f64_classify(0x000f_ffff_ffff_ffff), 1 << 5);
}

/// Volume I, table "Domains of float-to-integer conversions and behavior for invalid inputs".
#[test]
fn conversions_saturate() {
    let minus_infinity = f64::NEG_INFINITY.to_bits();
    let nan = 0xfff8_0000_0000_0000;
    for (value, w, wu, l, lu) in [
        (minus_infinity, 0xffff_ffff_8000_0000, 0, 1 << 63, 0),
        (nan, 0x7fff_ffff, u64::MAX, (1 << 63) - 1, u64::MAX),
        (
            1e30f64.to_bits(),
            0x7fff_ffff,
            u64::MAX,
            (1 << 63) - 1,
            u64::MAX,
        ),
    ] {
        assert_eq!(with_flags(|f| f64_to_w(value, RNE, f)), (w, INVALID));
        assert_eq!(with_flags(|f| f64_to_wu(value, RNE, f)), (wu, INVALID));
        assert_eq!(with_flags(|f| f64_to_l(value, RNE, f)), (l, INVALID));
        assert_eq!(with_flags(|f| f64_to_lu(value, RNE, f)), (lu, INVALID));
    }
    // Unsigned: a value that rounds to more than -1 gives zero and inexact, not invalid.
    let minus_half = (-0.5f64).to_bits();
    assert_eq!(with_flags(|f| f64_to_wu(minus_half, RNE, f)), (0, INEXACT));
    assert_eq!(
        with_flags(|f| f64_to_wu(minus_half, Rounding::NearestAway, f)),
        (0, INVALID)
    );
    assert_eq!(
        with_flags(|f| f64_to_wu(4294967295f64.to_bits(), RNE, f)),
        (u64::MAX, 0)
    );
    assert_eq!(
        with_flags(|f| f64_to_l((-9223372036854775808f64).to_bits(), RNE, f)),
        (1 << 63, 0)
    );
}

#[test]
fn boxing() {
    assert_eq!(nan_box(0x3f80_0000), 0xffff_ffff_3f80_0000);
    assert_eq!(nan_unbox(0xffff_ffff_3f80_0000), 0x3f80_0000);
    assert_eq!(nan_unbox(0x3ff0_0000_0000_0000), CANONICAL_NAN_32);
}

/// Numbers with exponents close enough that sums often cancel and products reach both limits.
fn double() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (any::<u64>(), 1000u64..1046)
            .prop_map(|(bits, exponent)| bits & !(0x7ff << 52) | exponent << 52),
        (any::<u64>(), 0u64..60)
            .prop_map(|(bits, exponent)| bits & !(0x7ff << 52) | exponent << 52),
        (-64i64..64).prop_map(|v| (v as f64).to_bits()),
    ]
}

fn single() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        proptest::sample::select(EDGES_32.to_vec()),
        (any::<u32>(), 115u32..139)
            .prop_map(|(bits, exponent)| bits & !(0xff << 23) | exponent << 23),
        (any::<u32>(), 0u32..30).prop_map(|(bits, exponent)| bits & !(0xff << 23) | exponent << 23),
    ]
}

fn rounding() -> impl Strategy<Value = Rounding> {
    proptest::sample::select(Rounding::ALL.to_vec())
}

fn canonical(value: f64) -> u64 {
    if value.is_nan() {
        CANONICAL_NAN_64
    } else {
        value.to_bits()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// The integer implementation alone against the host, which follows IEEE 754 (nearest even).
    #[test]
    fn integers_agree_with_the_host(a in double(), b in double(), c in double()) {
        let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
        let flags = &mut 0;
        prop_assert_eq!(arithmetic::add::<Double>(a, b, RNE, flags), canonical(x + y));
        prop_assert_eq!(arithmetic::multiply::<Double>(a, b, RNE, flags), canonical(x * y));
        prop_assert_eq!(arithmetic::divide::<Double>(a, b, RNE, flags), canonical(x / y));
        prop_assert_eq!(arithmetic::square_root::<Double>(a, RNE, flags), canonical(x.sqrt()));
        prop_assert_eq!(arithmetic::fused::<Double>(a, b, c, RNE, flags), canonical(x.mul_add(y, z)));
        prop_assert_eq!(f64_to_l(a, Rounding::TowardZero, flags), if x.is_nan() { i64::MAX as u64 } else { x as i64 as u64 });
        prop_assert_eq!(f64_to_lu(a, Rounding::TowardZero, flags), if x.is_nan() { u64::MAX } else { x as u64 });
        prop_assert_eq!(f64_from_l(a, RNE, flags), (a as i64 as f64).to_bits());
        prop_assert_eq!(f32_from_lu(a, RNE, flags), (a as f32).to_bits());
    }

    /// The fast paths give the same bits and flags as the integer implementation, whatever flags are already set.
    #[test]
    fn short_ways_agree_with_the_integers(
        a in double(), b in double(), c in double(), d in single(), e in single(), g in single(),
        rounding in rounding(), before in 0u8..32,
    ) {
        let both = |short: &dyn Fn(&mut u8) -> u64, long: &dyn Fn(&mut u8) -> u64| {
            let (mut left, mut right) = (before, before);
            ((short(&mut left), left), (long(&mut right), right))
        };
        let (d64, e64, g64) = (u64::from(d), u64::from(e), u64::from(g));
        for (short, long) in [
            both(&|f| f64_add(a, b, rounding, f), &|f| arithmetic::add::<Double>(a, b, rounding, f)),
            both(&|f| f64_mul(a, b, rounding, f), &|f| arithmetic::multiply::<Double>(a, b, rounding, f)),
            both(&|f| f64_div(a, b, rounding, f), &|f| arithmetic::divide::<Double>(a, b, rounding, f)),
            both(&|f| f64_sqrt(a, rounding, f), &|f| arithmetic::square_root::<Double>(a, rounding, f)),
            both(&|f| f64_fmadd(a, b, c, rounding, f), &|f| arithmetic::fused::<Double>(a, b, c, rounding, f)),
            both(&|f| f32_add(d, e, rounding, f).into(), &|f| arithmetic::add::<Single>(d64, e64, rounding, f)),
            both(&|f| f32_mul(d, e, rounding, f).into(), &|f| arithmetic::multiply::<Single>(d64, e64, rounding, f)),
            both(&|f| f32_div(d, e, rounding, f).into(), &|f| arithmetic::divide::<Single>(d64, e64, rounding, f)),
            both(&|f| f32_sqrt(d, rounding, f).into(), &|f| arithmetic::square_root::<Single>(d64, rounding, f)),
            both(&|f| f32_fmadd(d, e, g, rounding, f).into(), &|f| arithmetic::fused::<Single>(d64, e64, g64, rounding, f)),
        ] {
            prop_assert_eq!(short, long);
        }
    }

    /// Widening is exact and narrowing undoes it.
    #[test]
    fn widening_is_exact(a in single(), rounding in rounding()) {
        let (wide, flags) = with_flags(|f| f32_to_f64(a, f));
        prop_assume!(!f32::from_bits(a).is_nan());
        prop_assert_eq!((wide, flags), (f64::from(f32::from_bits(a)).to_bits(), 0));
        prop_assert_eq!(with_flags(|f| f64_to_f32(wide, rounding, f)), (a, 0));
    }

    /// Directed roundings enclose the exact value: one ulp apart when inexact, equal when exact.
    #[test]
    fn directed_roundings_enclose(a in double(), b in double()) {
        for operation in [f64_add, f64_mul, f64_div] {
            let (down, flags) = with_flags(|f| operation(a, b, Rounding::Down, f));
            let up = operation(a, b, Rounding::Up, &mut 0);
            let (down, up) = (f64::from_bits(down), f64::from_bits(up));
            if flags & INEXACT != 0 {
                prop_assert_eq!(down.next_up(), up);
            } else if !down.is_nan() {
                prop_assert_eq!(down, up);
            }
        }
    }
}
