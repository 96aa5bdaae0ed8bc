//! A histogram with relative precision: log-linear buckets, exact count, sum, least and greatest value.
//!
//! Why it exists: millions of latencies are recorded while the machine runs, and percentiles are computed afterwards. The extremes
//! are exact because they are compared with bounds. It does not know what it counts.

const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;

/// Counts of values: exact below 64, with a relative error of at most 1/32 above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    minimum: u64,
    maximum: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Values below `2 * SUB` have a bucket each; every further power of two is divided into `SUB` buckets.
fn bucket(value: u64) -> usize {
    if value < 2 * SUB {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros() - SUB_BITS;
    ((exponent as u64) * SUB + (value >> exponent)) as usize
}

/// The greatest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB {
        return bucket;
    }
    let exponent = bucket / SUB - 1;
    let start = bucket % SUB + SUB;
    ((start as u128 + 1) << exponent).wrapping_sub(1) as u64
}

impl Histogram {
    /// No values.
    pub fn new() -> Self {
        Self {
            counts: Vec::new(),
            count: 0,
            sum: 0,
            minimum: u64::MAX,
            maximum: 0,
        }
    }

    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        let at = bucket(value);
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.minimum = self.minimum.min(value);
        self.maximum = self.maximum.max(value);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of the values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Least value, exact; 0 without values.
    pub fn minimum(&self) -> u64 {
        if self.count == 0 { 0 } else { self.minimum }
    }

    /// Greatest value, exact; 0 without values.
    pub fn maximum(&self) -> u64 {
        self.maximum
    }

    /// A value that at least `per_mille`/1000 of the values do not exceed (nearest rank), rounded up within its bucket; 0 without
    /// values.
    pub fn percentile(&self, per_mille: u32) -> u64 {
        if self.count == 0 {
            return 0;
        }
        let rank = (self.count as u128 * per_mille.min(1000) as u128)
            .div_ceil(1000)
            .max(1);
        let mut seen = 0u128;
        for (i, &n) in self.counts.iter().enumerate() {
            seen += n as u128;
            if seen >= rank {
                return upper(i).clamp(self.minimum, self.maximum);
            }
        }
        self.maximum
    }

    /// Non-empty buckets as (greatest value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, n)| **n > 0)
            .map(|(i, n)| (upper(i), *n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_join_without_gap() {
        // Each bucket's greatest value and the next value are in adjacent buckets.
        for b in 0..1900 {
            let top = upper(b);
            assert_eq!(bucket(top), b);
            if top < u64::MAX {
                assert_eq!(bucket(top + 1), b + 1);
            }
        }
    }

    proptest! {
        #[test]
        fn percentiles_against_sorted_values(mut values in prop::collection::vec(0u64..1 << 40, 1..200), per_mille in 0u32..=1000) {
            let mut histogram = Histogram::new();
            for &v in &values {
                histogram.record(v);
            }
            values.sort_unstable();
            let rank = (values.len() * per_mille as usize).div_ceil(1000).max(1);
            let exact = values[rank - 1];
            let got = histogram.percentile(per_mille);
            prop_assert!(got >= exact && got - exact <= exact / 32, "{} {}", got, exact);
            prop_assert_eq!(histogram.maximum(), *values.last().unwrap());
            prop_assert_eq!(histogram.minimum(), values[0]);
            prop_assert_eq!(histogram.sum(), values.iter().sum::<u64>());
        }
    }
}
