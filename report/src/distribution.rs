//! Summary of a set of latencies.
//!
//! What it deliberately does not know: units.

use crate::result::Distribution;

/// Nearest-rank percentile of sorted values: the smallest value that is not exceeded by `percent` of all values. 0 without values.
pub fn percentile(sorted: &[u64], percent: u64) -> u64 {
    let rank = (sorted.len() as u64 * percent).div_ceil(100).max(1) as usize;
    sorted.get(rank - 1).copied().unwrap_or(0)
}

/// Whether this many samples say something about a percentile: at least ten of them lie beyond it, so that it is not just the maximum. 20
/// samples for the median, 1000 for the 99th percentile.
pub fn is_known(percent: u64, count: u64) -> bool {
    let beyond = 100u64.saturating_sub(percent);
    u128::from(count) * u128::from(beyond) >= 1000
}

/// A percentile for a reader; `-` if there are too few samples.
pub fn shown(percent: u64, count: u64, text: impl FnOnce() -> String) -> String {
    if is_known(percent, count) {
        text()
    } else {
        "-".to_owned()
    }
}

/// The meaning of `-` in a table's percentile columns, if one of these sample counts is too small for one of these percentiles.
pub fn note(percentiles: &[u64], counts: impl IntoIterator<Item = u64>) -> Option<String> {
    let counts: Vec<u64> = counts.into_iter().collect();
    let missing = percentiles
        .iter()
        .filter(|&&p| counts.iter().any(|&n| !is_known(p, n)));
    let needs: Vec<String> = missing
        .map(|p| format!("p{p} needs {}", 1000u64.div_ceil(100 - p.min(&99))))
        .collect();
    (!needs.is_empty()).then(|| {
        format!(
            "-: too few samples for this percentile ({}).",
            needs.join(", ")
        )
    })
}

/// Integer square root, rounded down.
fn root(value: u128) -> u64 {
    value.isqrt().min(u128::from(u64::MAX)) as u64
}

/// Summary of `values` in any order. All zero if there are none.
pub fn distribution(values: impl IntoIterator<Item = u64>) -> Distribution {
    let mut sorted: Vec<u64> = values.into_iter().collect();
    sorted.sort_unstable();
    let count = sorted.len() as u64;
    if count == 0 {
        return Distribution::default();
    }
    let sum: u128 = sorted.iter().map(|&v| u128::from(v)).sum();
    let n = u128::from(count);
    // Sample variance in exact integers: sum((n v - sum)^2) = n^2 sum((v - mean)^2).
    let squares: u128 = sorted
        .iter()
        .map(|&v| {
            let distance = (n * u128::from(v)).abs_diff(sum);
            distance.saturating_mul(distance)
        })
        .fold(0, u128::saturating_add);
    let deviation = if count > 1 {
        root(squares / (n * n * (n - 1)))
    } else {
        0
    };
    Distribution {
        count,
        min: sorted[0],
        p50: percentile(&sorted, 50),
        p99: percentile(&sorted, 99),
        max: sorted[sorted.len() - 1],
        mean: (sum / n) as u64,
        deviation,
    }
}

/// The values without outliers, as in box plots: within 1.5 interquartile ranges of the quartiles (m3-rtas24, section V-A).
pub fn without_outliers(values: &[u64]) -> Vec<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let (low, high) = (percentile(&sorted, 25), percentile(&sorted, 75));
    let reach = (high - low) * 3 / 2;
    sorted.retain(|&v| v >= low.saturating_sub(reach) && v <= high + reach);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank_is_as_in_the_textbook() {
        // The worked example of the nearest-rank method: 15 20 35 40 50.
        let sorted = [15, 20, 35, 40, 50];
        let got = [5, 30, 40, 50, 100].map(|p| percentile(&sorted, p));
        assert_eq!(got, [15, 20, 20, 35, 50]);
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        // 10 / (1 - p).
        for (percent, least) in [(50, 20), (90, 100), (99, 1000)] {
            assert!(is_known(percent, least), "{percent}");
            assert!(!is_known(percent, least - 1), "{percent}");
        }
        assert!(!is_known(100, u64::MAX));
        assert_eq!(shown(99, 50, || "7".to_owned()), "-");
        assert_eq!(shown(99, 1000, || "7".to_owned()), "7");
        assert_eq!(note(&[50, 99], [1000]), None);
        assert_eq!(
            note(&[50, 99], [50, 1000]).expect("too few"),
            "-: too few samples for this percentile (p99 needs 1000)."
        );
    }

    #[test]
    fn summary_of_a_small_set() {
        // 2 4 4 4 5 5 7 9: mean 5, sum of squares of distances 32, sample variance 32/7, root 2.1.
        let summary = distribution([9, 2, 4, 4, 5, 4, 5, 7]);
        assert_eq!((summary.mean, summary.deviation), (5, 2));
        assert_eq!((summary.min, summary.p50, summary.max), (2, 4, 9));
    }

    #[test]
    fn nothing_gives_zeros() {
        assert_eq!(distribution([]), Distribution::default());
    }

    #[test]
    fn a_cold_start_is_an_outlier() {
        let mut values = vec![316; 99];
        values.push(3460);
        assert_eq!(without_outliers(&values), vec![316; 99]);
    }
}
