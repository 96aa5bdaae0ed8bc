//! The clock behind a timer: counts at the platform's timebase, ahead and fast by as much as its tile says.
//!
//! Why it exists: timer, deadlines and measurements of clocks need one exact conversion between ticks and counts. What it deliberately does
//! not know: who reads the clock, and the clock of the hart, which does not drift.

use crate::types::Tick;

/// Parts of a drift.
const MILLION: i64 = 1_000_000;
/// Largest drift, in parts per million.
pub const DRIFT_MAX: i32 = 10_000;

/// How the clock of a tile differs from the platform's timebase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockConfig {
    /// Counts at tick 0.
    pub ahead: u64,
    /// Parts per million by which it is faster; at most [`DRIFT_MAX`] in each direction.
    pub drift: i32,
}

/// A clock. Counts are exact: no rounding error adds up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    ahead: u64,
    /// Counts in `per` ticks.
    counts: u128,
    per: u128,
}

impl Clock {
    /// A clock of a machine with this many ticks per second, and counts per second without drift.
    pub fn new(ticks_per_second: u64, timebase_hz: u64, config: ClockConfig) -> Self {
        let speed = u128::try_from(MILLION + i64::from(config.drift));
        let counts = u128::from(timebase_hz) * speed.expect("a drift is a small part of a million");
        let per = u128::from(ticks_per_second) * u128::from(MILLION.unsigned_abs());
        let common = common(counts, per).max(1);
        Self {
            ahead: config.ahead,
            counts: counts / common,
            per: per / common,
        }
    }

    /// The count at a tick, modulo 2^64.
    pub fn time(&self, now: Tick) -> u64 {
        self.ahead
            .wrapping_add((u128::from(now) * self.counts / self.per) as u64)
    }

    /// The first tick at which the count is at least this; [`Tick::MAX`] if that is out of reach.
    pub fn reaches(&self, count: u64) -> Tick {
        // The clock shows `ahead` at tick 0, so it has reached every smaller count there.
        let more = u128::from(count.saturating_sub(self.ahead));
        let tick = more.checked_mul(self.per);
        let tick = tick.and_then(|tick| Tick::try_from(tick.div_ceil(self.counts)).ok());
        tick.unwrap_or(Tick::MAX)
    }
}

/// Greatest common divisor.
fn common(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_fast_clock_that_starts_ahead() {
        // A million ticks a second, one count each; 500 ppm fast: 2001 counts in 2000 ticks.
        let config = ClockConfig {
            ahead: 7,
            drift: 500,
        };
        let clock = Clock::new(1_000_000, 1_000_000, config);
        assert_eq!([clock.time(0), clock.time(1999)], [7, 7 + 1999]);
        assert_eq!(clock.time(2000), 7 + 2001);
        assert_eq!(
            [clock.reaches(3), clock.reaches(7), clock.reaches(2008)],
            [0, 0, 2000]
        );
    }

    proptest! {
        /// The tick is the first one: the count is reached there, and not one tick earlier.
        #[test]
        fn a_count_is_reached_at_one_tick(
            ticks in 1u64..10_000_000_000, hertz in 1u64..10_000_000_000, ahead in 0u64..1 << 40,
            drift in -DRIFT_MAX..=DRIFT_MAX, count in 0u64..1 << 50,
        ) {
            let clock = Clock::new(ticks, hertz, ClockConfig { ahead, drift });
            let tick = clock.reaches(count);
            if tick != Tick::MAX {
                prop_assert!(clock.time(tick) >= count);
                prop_assert!(tick == 0 || clock.time(tick - 1) < count);
            }
        }

        /// Without offset and drift it is the plain quotient.
        #[test]
        fn nothing_stated_changes_nothing(ticks in 1u64..1 << 40, hertz in 1u64..1 << 40, now: u32) {
            let clock = Clock::new(ticks, hertz, ClockConfig::default());
            let plain = u128::from(now) * u128::from(hertz) / u128::from(ticks);
            prop_assert_eq!(u128::from(clock.time(now.into())), plain);
        }
    }
}
