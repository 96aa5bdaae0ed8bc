//! Token buckets (m3-rtas24, section IV-B2): rate, amount and limit, refilled at fixed moments.
//!
//! Why it exists: regulation is a promise about bytes over time, so its arithmetic is exact. A level counts bytes times ticks per
//! second, and a refill adds rate times ticks. Both are integers, so nothing is ever rounded away. A bucket does not know packets,
//! queues or activities.
//!
//! Two requests may wait in line: one access of the hart, and one chunk of the unit. A waiting request has taken nothing yet and may
//! leave the line ([`Bucket::withdraw`]), so a hart can take an interrupt instead of continuing to wait. Some traffic can no longer wait
//! because its cause has already happened: an evicted line, a block of an admitted chunk, what TileMux needs for a switch. It is taken
//! on credit ([`Bucket::take`]): the level falls below zero, and the next request waits until the debt is paid.

use crate::types::Tick;

/// A requester that waits for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// The tile's first hart, with an access that left the caches.
    Hart,
    /// The unit, with a chunk of a command.
    Unit,
}

/// A place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    waiter: Waiter,
    bytes: u32,
    /// When the waiter is to ask again.
    at: Tick,
}

/// One bucket. Refills happen at multiples of the refill period, counted from reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Bytes per second; 0: not regulated.
    rate: u64,
    /// Upper bound of the level in bytes.
    limit: u64,
    /// Level at `as_of`, in bytes times ticks per second; negative while credit is being paid off.
    level: i128,
    /// The moment that the level is for: the latest moment of any request.
    as_of: Tick,
    /// Ticks between two refills.
    period: Tick,
    /// Ticks per second.
    scale: u64,
    /// The waiters, in order; at most one of each kind.
    line: [Option<Place>; 2],
}

impl Bucket {
    /// An empty bucket that does not regulate, refilled every `period` ticks.
    pub fn new(period: Tick, ticks_per_second: u64) -> Self {
        Self {
            rate: 0,
            limit: 0,
            level: 0,
            as_of: 0,
            period: period.max(1),
            scale: ticks_per_second.max(1),
            line: [None; 2],
        }
    }

    /// Whether requests can be delayed.
    #[inline]
    pub fn regulates(&self) -> bool {
        self.rate != 0
    }

    /// Rate in bytes per second.
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Upper bound of the amount in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whole bytes in the bucket; negative while credit is being paid off.
    pub fn amount(&mut self, now: Tick) -> i64 {
        self.settle(now);
        let bytes = self.level.div_euclid(i128::from(self.scale));
        bytes.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// Changes the rate. A waiter asks again at the moment it was given.
    pub fn set_rate(&mut self, now: Tick, rate: u64) {
        self.settle(now);
        self.rate = rate;
    }

    /// Changes the bound. The level is cut at the next refill, so the order of the three writes does not matter.
    pub fn set_limit(&mut self, now: Tick, limit: u64) {
        self.settle(now);
        self.limit = limit;
    }

    /// Sets the level.
    pub fn set_amount(&mut self, now: Tick, bytes: u64) {
        self.level = i128::from(bytes) * i128::from(self.scale);
        self.as_of = now;
    }

    /// Takes `bytes` if they are available and no other waiter is ahead of this one.
    ///
    /// A request for more bytes than the limit can never be covered. It passes when the bucket is full and takes the level below zero:
    /// the rate still holds over time, and the burst is the size of the request instead of the limit.
    ///
    /// # Errors
    /// When to ask again, after `now`: the earliest moment at which the bytes can be available. Until then, the waiter keeps its place
    /// in line; [`Bucket::withdraw`] gives it up.
    pub fn ask(&mut self, now: Tick, waiter: Waiter, bytes: u32) -> Result<(), Tick> {
        if self.rate == 0 {
            self.withdraw(waiter);
            return Ok(());
        }
        self.settle(now);
        if now < self.as_of {
            // The hart, which runs ahead of the unit within a block, has asked for a later moment.
            return Err(self.stand(Place {
                waiter,
                bytes,
                at: self.as_of,
            }));
        }
        let before = match self.line[0] {
            // A waiter that does not ask at its turn has continued without the tokens.
            Some(first) if first.waiter != waiter && first.at < now => {
                self.withdraw(first.waiter);
                None
            }
            Some(first) if first.waiter != waiter => Some(first),
            _ => None,
        };
        // The first waiter takes its bytes before the bucket has those of the second. Together they may exceed what the bucket ever
        // holds.
        let ahead = before.map_or(0, |first| self.cost(first.bytes));
        let cost = self.cost(bytes);
        let needed = self.needed(cost);
        let missing = needed.saturating_add(ahead) - self.level;
        if missing <= 0 {
            self.level -= cost;
            self.withdraw(waiter);
            return Ok(());
        }
        let at = self
            .refilled(missing)
            .max(before.map_or(0, |first| first.at.saturating_add(1)));
        Err(self.stand(Place { waiter, bytes, at }))
    }

    /// Joins the line or keeps a place there. Returns the moment of the place.
    fn stand(&mut self, place: Place) -> Tick {
        let mut line = self.line.iter_mut().flatten();
        match line.find(|old| old.waiter == place.waiter) {
            Some(old) => *old = place,
            None => self.line[usize::from(self.line[0].is_some())] = Some(place),
        }
        place.at
    }

    /// Gives up a place in line.
    pub fn withdraw(&mut self, waiter: Waiter) {
        if self.line[0].is_some_and(|first| first.waiter == waiter) {
            self.line = [self.line[1], None];
        } else if self.line[1].is_some_and(|second| second.waiter == waiter) {
            self.line[1] = None;
        }
    }

    /// Takes `bytes` that cannot wait, on credit if necessary.
    pub fn take(&mut self, now: Tick, bytes: u32) {
        if self.rate != 0 {
            self.settle(now);
            self.level -= self.cost(bytes);
        }
    }

    /// Whether the bucket owes no more than `credit` bytes.
    ///
    /// # Errors
    /// When to ask again, after `now`.
    pub fn solvent(&mut self, now: Tick, credit: u32) -> Result<(), Tick> {
        if self.rate == 0 {
            return Ok(());
        }
        self.settle(now);
        let missing = -self.level - self.cost(credit);
        if missing <= 0 {
            Ok(())
        } else {
            Err(self.refilled(missing))
        }
    }

    fn cost(&self, bytes: u32) -> i128 {
        i128::from(bytes) * i128::from(self.scale)
    }

    /// The level that something with this cost needs.
    fn needed(&self, cost: i128) -> i128 {
        cost.min(i128::from(self.limit) * i128::from(self.scale))
    }

    /// When refills will have added `missing`, which is positive. Refills happen at multiples of the period; each adds the same amount.
    fn refilled(&self, missing: i128) -> Tick {
        let quantum = i128::from(self.rate) * i128::from(self.period);
        let refills = (missing + quantum - 1) / quantum;
        let tick =
            (i128::from(self.as_of / self.period) + refills).saturating_mul(self.period.into());
        u64::try_from(tick).unwrap_or(Tick::MAX)
    }

    /// Brings the level up to `now`, unless it is already for a later moment.
    fn settle(&mut self, now: Tick) {
        if now <= self.as_of {
            return;
        }
        let refills = now / self.period - self.as_of / self.period;
        self.as_of = now;
        if refills != 0 && self.rate != 0 {
            // At most 2^128 / 2: rate and ticks are 64 bits each; only absurd register values saturate.
            let gained = u128::from(self.rate).saturating_mul(u128::from(refills));
            let gained = gained.saturating_mul(u128::from(self.period));
            let gained = i128::try_from(gained).unwrap_or(i128::MAX);
            self.level = self.level.saturating_add(gained);
            self.clamp();
        }
    }

    fn clamp(&mut self) {
        self.level = self
            .level
            .min(i128::from(self.limit) * i128::from(self.scale));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 4 GHz ticks, refill every 2000 ticks (1000 cycles of 2 GHz), as on the platform `tiled-2ghz`.
    fn bucket(rate: u64, amount: u64, limit: u64) -> Bucket {
        let mut bucket = Bucket::new(2000, 4_000_000_000);
        bucket.set_rate(0, rate);
        bucket.set_amount(0, amount);
        bucket.set_limit(0, limit);
        bucket
    }

    /// When `bytes` pass if a single request asks for them at `now`, and again whenever it is told to.
    fn charge(bucket: &mut Bucket, now: Tick, bytes: u32) -> Tick {
        let mut at = now;
        while let Err(later) = bucket.ask(at, Waiter::Hart, bytes) {
            assert!(later > at || later == Tick::MAX);
            if later == Tick::MAX {
                return later;
            }
            at = later;
        }
        at
    }

    #[test]
    fn without_rate_nothing_waits() {
        let mut bucket = bucket(0, 0, 0);
        assert_eq!(charge(&mut bucket, 77, 1 << 20), 77);
    }

    #[test]
    fn releases_at_the_first_refill_that_covers_the_request() {
        // 8 MiB/s = 8388608 B/s: a refill brings 8388608 * 2000 / 4e9 = 4.194304 bytes.
        // 512 bytes from an empty bucket need ceil(512 / 4.194304) = ceil(122.07) = 123 refills: tick 123 * 2000.
        let mut first = bucket(8 << 20, 0, 4096);
        assert_eq!(charge(&mut first, 0, 512), 246_000);
        // Left: 123 * 4.194304 - 512 = 3.899 bytes. The next needs ceil(508.1006 / 4.194304) = 122 more: refill 245.
        assert_eq!(charge(&mut first, 0, 512), 490_000);
        // From tick 1999 the first refill is at 2000 as well.
        assert_eq!(charge(&mut bucket(8 << 20, 0, 4096), 1999, 1), 2000);
        // At tick 2000, the refill of that moment has already happened: a level set to 0 at 2000 stays 0.
        let mut late = bucket(8 << 20, 0, 4096);
        late.set_amount(2000, 0);
        assert_eq!(charge(&mut late, 2000, 1), 4000);
    }

    #[test]
    fn an_amount_leaves_at_once_and_the_limit_bounds_it() {
        let mut bucket = bucket(8 << 20, 1024, 1024);
        assert_eq!(charge(&mut bucket, 10, 512), 10);
        assert_eq!(charge(&mut bucket, 11, 512), 11);
        // Empty at 11: 64 bytes need ceil(64 / 4.194304) = ceil(15.26) = 16 refills.
        assert_eq!(charge(&mut bucket, 11, 64), 32_000);
        // After a second it is full, and no more than full.
        assert_eq!(bucket.amount(4_000_000_000), 1024);
    }

    #[test]
    fn no_drift_over_an_hour() {
        // 1 B/s and requests of 1 byte: exactly one per second, on the grid, however long it runs. The refill quantum is 1 * 2000 / 4e9
        // bytes, so a byte takes 2e6 refills = 4e9 ticks.
        let mut bucket = bucket(1, 0, 16);
        for second in 1..=3600 {
            assert_eq!(charge(&mut bucket, 0, 1), second * 4_000_000_000);
        }
    }

    #[test]
    fn a_request_above_the_limit_goes_into_debt() {
        // Limit 100, full. 512 bytes pass at once because it is full, and the level becomes -412. The next byte waits until level 1:
        // ceil(413 / 4.194304) = ceil(98.47) = 99 refills.
        let mut bucket = bucket(8 << 20, 100, 100);
        assert_eq!(charge(&mut bucket, 0, 512), 0);
        assert_eq!(bucket.amount(0), -412);
        assert_eq!(charge(&mut bucket, 0, 1), 198_000);
    }

    #[test]
    fn absurd_registers_do_not_overflow() {
        let mut bucket = bucket(u64::MAX, u64::MAX, u64::MAX);
        charge(&mut bucket, u64::MAX, u32::MAX);
        bucket.set_rate(u64::MAX, 1);
        bucket.set_amount(u64::MAX, 0);
        assert_eq!(charge(&mut bucket, u64::MAX, u32::MAX), u64::MAX);
        bucket.amount(u64::MAX);
    }

    proptest! {
        /// The definition of a token bucket: in any span, at most limit (or one oversized request) + rate * span passes.
        #[test]
        fn stays_under_the_envelope(
            rate in 1u64..1 << 30,
            limit in 0u64..8192,
            requests in prop::collection::vec((0u64..100_000, 1u32..2048), 1..60),
        ) {
            let mut bucket = bucket(rate, 0, limit);
            let (mut now, mut releases) = (0, Vec::new());
            for (gap, bytes) in requests {
                now += gap;
                let release = charge(&mut bucket, now, bytes);
                prop_assert!(release >= now);
                prop_assert!(releases.last().is_none_or(|&(last, _)| last <= release), "order");
                releases.push((release, u128::from(bytes)));
            }
            for first in 0..releases.len() {
                let mut sum = 0u128;
                for &(release, bytes) in &releases[first..] {
                    sum += bytes;
                    // Passed = level before - level after + gained. Before: at most the limit. After: at least 0, or limit - bytes after
                    // an oversized request. Gained: the rate times the refills in between.
                    let burst = u128::from(limit).max(bytes) * 4_000_000_000;
                    let span = u128::from(release / 2000 - releases[first].0 / 2000) * 2000;
                    prop_assert!(sum * 4_000_000_000 <= burst + u128::from(rate) * span);
                }
            }
        }

        /// Against a bucket that is stepped refill by refill, in rational arithmetic (everything times the scale).
        #[test]
        fn equals_a_stepped_bucket(
            rate in 1u64..1 << 26,
            limit in 1u64..4096,
            amount in 0u64..4096,
            requests in prop::collection::vec((0u64..50_000, 1u32..1024), 1..20),
        ) {
            let mut bucket = bucket(rate, amount, limit);
            let scale = 4_000_000_000i128;
            let cap = i128::from(limit) * scale;
            let (mut level, mut refill, mut last, mut now) = (i128::from(amount) * scale, 0u64, 0, 0);
            for (gap, bytes) in requests {
                now += gap;
                let mut at = now.max(last);
                let cost = i128::from(bytes) * scale;
                loop {
                    while (refill + 1) * 2000 <= at {
                        refill += 1;
                        level = (level + i128::from(rate) * 2000).min(cap);
                    }
                    if level >= cost.min(cap) { break }
                    at = (refill + 1) * 2000;
                    if at > 10_000_000_000 { return Ok(()) }
                }
                level -= cost;
                last = at;
                prop_assert_eq!(charge(&mut bucket, now, bytes), at);
            }
        }
    }
}
