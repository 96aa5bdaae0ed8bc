//! How fast a peripheral moves bytes: a rate, and a burst after a rest.
//!
//! Why it exists: the traffic of a device is a promise to those beside it. In any interval of length `t`, it begins accesses of at most
//! `bucket + rate * t` bytes. The level counts bytes times ticks per second, so nothing is rounded away. What it deliberately does not
//! know: what the bytes are.

use crate::types::Tick;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Bytes per second.
    rate: u128,
    /// Ticks per second.
    scale: u128,
    /// The highest level.
    full: u128,
    level: u128,
    as_of: Tick,
}

impl Pace {
    /// A full bucket of `bucket` bytes, which gets `rate` bytes per second.
    pub fn new(rate: u64, bucket: u64, ticks_per_second: u64) -> Self {
        let scale = u128::from(ticks_per_second);
        let full = u128::from(bucket) * scale;
        Self {
            rate: rate.into(),
            scale,
            full,
            level: full,
            as_of: 0,
        }
    }

    /// The first moment, not before `now`, at which an access of this many bytes, at most a bucket, may begin.
    pub fn when(&self, now: Tick, bytes: u32) -> Tick {
        let needed = u128::from(bytes) * self.scale;
        let missing = needed.saturating_sub(self.level);
        let at = u128::from(self.as_of) + missing.div_ceil(self.rate);
        Tick::try_from(at).unwrap_or(Tick::MAX).max(now)
    }

    /// An access begins.
    pub fn take(&mut self, now: Tick, bytes: u32) {
        let passed = u128::from(now - self.as_of);
        let level = (self.level + passed * self.rate).min(self.full);
        let needed = u128::from(bytes) * self.scale;
        let rest = level.checked_sub(needed);
        self.level = rest.unwrap_or_else(|| panic!("{bytes} bytes at {now} are above the rate"));
        self.as_of = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_bucket_goes_at_once_and_then_at_the_rate() {
        // 3 bytes in 10 ticks.
        let mut pace = Pace::new(3, 12, 10);
        assert_eq!(pace.when(100, 8), 100);
        pace.take(100, 8);
        assert_eq!(pace.when(100, 4), 100);
        pace.take(100, 4);
        // 8 bytes need 80 / 3 ticks.
        assert_eq!(pace.when(100, 8), 127);
        pace.take(127, 8);
        // One third of a byte is left.
        assert_eq!(pace.when(127, 1), 130);
    }

    proptest! {
        /// Whatever is requested, and whenever: no stretch of time gets more than the bucket and the rate, and an access that is due may
        /// begin.
        #[test]
        fn no_stretch_of_time_has_more_than_rate_and_bucket(
            rate in 1u64..1000, bucket in 64u64..300, scale in 1u64..5000,
            steps in prop::collection::vec((0u64..50, 1u32..=64), 1..60)
        ) {
            let mut pace = Pace::new(rate, bucket, scale);
            let mut now = 0;
            let mut all: Vec<(u64, u64)> = Vec::new();
            for (rest, bytes) in steps {
                now = pace.when(now + rest, bytes);
                pace.take(now, bytes);
                all.push((now, bytes.into()));
            }
            for (i, (from, _)) in all.iter().enumerate() {
                let mut sum = 0;
                for (to, bytes) in &all[i..] {
                    sum += u128::from(*bytes);
                    let most = u128::from(bucket) * u128::from(scale) + u128::from(to - from) * u128::from(rate);
                    prop_assert!(sum * u128::from(scale) <= most);
                }
            }
        }
    }
}
