//! When enough systems have been judged, and the areas under curves.
//!
//! Source: E. Wilson, *Probable inference, the law of succession, and statistical inference*, 1927, for the interval; mc2-rts20,
//! section 6, for the areas. The interval is looked at after every batch, in the order of the samples, so that the number of
//! samples depends on nothing but the samples. (Looking repeatedly makes the real confidence a little lower than the named one,
//! as it does in the paper.)
//!
//! Only the four basic operations and square roots of IEEE 754 are used: the same digits on every host.

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

/// Is a share known well enough?
pub fn known(schedulable: u64, samples: u64, half_width: u64) -> bool {
    samples > 0 && interval(schedulable, samples).1 <= half_width as f64 / 1e6
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

    /// Values of the textbook formula, worked out by hand: n = 100, k = 50 gives 0.0962; k = 0 gives z^2 / (2 (n + z^2)).
    #[test]
    fn wilson_by_hand() {
        assert!((interval(50, 100).1 - 0.096_16).abs() < 1e-4);
        assert!((interval(0, 100).1 - Z * Z / (2.0 * (100.0 + Z * Z))).abs() < 1e-12);
        assert_eq!(interval(0, 0), (0.0, 0.5));
        assert!(!known(0, 34, 50_000) && known(0, 35, 50_000));
        assert!(!known(190, 380, 50_000) && known(191, 382, 50_000));
    }

    #[test]
    fn areas_by_hand() {
        assert!((area(&[1.0, 1.0, 0.0], 0.5) - 1.25).abs() < 1e-12);
        assert!((area(&[], 0.5)).abs() < 1e-12);
    }
}
