//! When enough systems have been judged, and the areas under curves.
//!
//! Source: E. Wilson, *Probable inference, the law of succession, and statistical inference*, 1927, for the interval; mc2-rts20,
//! section 6, for the areas. The interval is checked after every batch, in the order of the samples, so the number of samples
//! depends only on the samples. (Repeated checking makes the real confidence slightly lower than stated, as it does in the
//! paper.)
//!
//! The decision when to stop is exact; what is only printed (shares, widths, areas) is floating point, using only the four basic
//! operations and square roots of IEEE 754: the same digits on every host.

use num_bigint::BigUint;

/// Quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// The share and half the width of its 95 % confidence interval by Wilson's score, both in 0 to 1.
/// Without samples nothing is known: the half width is a half.
pub fn interval(schedulable: u64, samples: u64) -> (f64, f64) {
    if samples == 0 {
        return (0.0, 0.5);
    }
    let (k, n) = (schedulable.min(samples) as f64, samples as f64);
    let share = k / n;
    let width = Z / (n + Z * Z) * (k * (n - k) / n + Z * Z / 4.0).sqrt();
    (share, width)
}

/// Ends of the same interval, in 0 to 1. The interval is not centred at the share.
pub fn bounds(schedulable: u64, samples: u64) -> (f64, f64) {
    if samples == 0 {
        return (0.0, 1.0);
    }
    let (k, n) = (schedulable.min(samples) as f64, samples as f64);
    let centre = (k + Z * Z / 2.0) / (n + Z * Z);
    let width = interval(schedulable, samples).1;
    ((centre - width).max(0.0), (centre + width).min(1.0))
}

/// Square of the quantile in parts of [`SQUARES`], rounded up: the interval is at least as wide as stated.
const Z_SQUARED: u64 = 3_841_458_821;
const SQUARES: u64 = 1_000_000_000;

/// Whether a share is known well enough: half the width of its interval is at most `half_width` millionths. Exact.
pub fn known(schedulable: u64, samples: u64, half_width: u64) -> bool {
    if samples == 0 {
        return false;
    }
    let big = BigUint::from;
    let (k, n) = (big(schedulable.min(samples)), big(samples));
    let (z, one, million) = (big(Z_SQUARED), big(SQUARES), big(1_000_000u64));
    // With Z = z / one and h = half_width / million the condition is Z (4 k (n - k) + Z n) <= 4 n h^2 (n + Z)^2; both sides times
    // one^2 million^2.
    let four = big(4u64);
    let spread = &four * &k * (&n - &k) * &one + &z * &n;
    let width = big(half_width);
    let whole = &n * &one + &z;
    &z * spread * &million * &million <= four * n * &width * &width * &whole * &whole
}

/// Area under a curve of shares at `step`, `2 step`, ... by the trapezoidal rule; at utilisation 0 everything is schedulable.
/// In processors.
pub fn area(shares: &[f64], step: f64) -> f64 {
    let mut before = 1.0;
    let mut sum = 0.0;
    for &share in shares {
        sum += (before + share) / 2.0;
        before = share;
    }
    sum * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of the textbook formula, worked out by hand: n = 100, k = 50 gives 0.0962; k = 0 gives z^2 / (2 (n + z^2)).
    #[test]
    fn wilson_by_hand() {
        assert!((interval(50, 100).1 - 0.096_16).abs() < 1e-4);
        assert!((interval(0, 100).1 - Z * Z / (2.0 * (100.0 + Z * Z))).abs() < 1e-12);
        assert_eq!(interval(0, 0), (0.0, 0.5));
        assert!(!known(0, 34, 50_000) && known(0, 35, 50_000));
        assert!(!known(190, 380, 50_000) && known(191, 382, 50_000));
    }

    proptest! {
        /// The exact rule matches the printed width, except for what floating point cannot distinguish.
        #[test]
        fn the_rule_is_the_width(samples in 1u64..100_000, share in 0u64..=1_000, half in 1_000u64..500_000) {
            let schedulable = samples * share / 1_000;
            let width = interval(schedulable, samples).1 * 1e6;
            let half_f = half as f64;
            prop_assume!((width - half_f).abs() > 1e-6 * half_f);
            prop_assert_eq!(known(schedulable, samples, half), width < half_f);
        }
    }

    /// Wilson's score for 8 of 10, as worked examples give it: 0.490 to 0.943.
    #[test]
    fn bounds_by_hand() {
        let (low, high) = bounds(8, 10);
        assert!((low - 0.490).abs() < 1e-3 && (high - 0.943).abs() < 1e-3);
        assert_eq!(bounds(0, 0), (0.0, 1.0));
        assert!(bounds(0, 16).0.abs() < 1e-12 && bounds(16, 16).1 == 1.0);
    }

    #[test]
    fn areas_by_hand() {
        assert!((area(&[1.0, 1.0, 0.0], 0.5) - 1.25).abs() < 1e-12);
        assert!((area(&[], 0.5)).abs() < 1e-12);
    }
}
