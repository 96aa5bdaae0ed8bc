//! Arrival curves: how much a flow may send in any window of a given length.
//!
//! A curve here is the minimum of finitely many token buckets, hence concave, with value 0 at 0. It does not know what
//! the amounts are (bytes, packets, ticks of service), nor where the flow goes.

use crate::exact::{Exact, integer};
use num_traits::{Signed, Zero};

/// `burst + rate * t` in any window of length `t > 0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Amount per unit of time, not negative.
    pub rate: Exact,
    /// Amount at once, not negative.
    pub burst: Exact,
}

impl TokenBucket {
    /// A bucket with this rate and burst.
    pub fn new(rate: Exact, burst: Exact) -> Self {
        Self { rate, burst }
    }

    /// The maximum admitted by a hardware bucket that adds `quantum` every `period` (positive) up to `limit`.
    ///
    /// A closed window of length `t` contains at most `floor(t / period) + 1` refills, so at most
    /// `limit + quantum * (t / period + 1)` leaves: one quantum more than the ideal bucket of the same rate.
    pub fn stepped(limit: u64, quantum: u64, period: u64) -> Option<Self> {
        Some(Self {
            rate: crate::exact::ratio(quantum, period)?,
            burst: integer(limit) + integer(quantum),
        })
    }

    /// A source that sends `amount` every `period` (positive), each time late by up to `jitter`.
    ///
    /// At most `ceil((t + jitter) / period)` times in a window of length `t`, which is below `(t + jitter) / period + 1`
    /// (Le Boudec and Thiran, section 1.2: GCRA and leaky bucket are equivalent).
    pub fn periodic(amount: u64, period: u64, jitter: u64) -> Option<Self> {
        let rate = crate::exact::ratio(amount, period)?;
        Some(Self {
            burst: integer(amount) + &rate * integer(jitter),
            rate,
        })
    }

    /// Amount in a window of length `window`.
    pub fn at(&self, window: &Exact) -> Exact {
        if window.is_positive() {
            &self.burst + &self.rate * window
        } else {
            Exact::zero()
        }
    }
}

/// The minimum of token buckets. The empty minimum is no limit at all and cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalCurve {
    /// Ascending burst, descending rate, each of them the minimum somewhere.
    pieces: Vec<TokenBucket>,
}

impl From<TokenBucket> for ArrivalCurve {
    fn from(bucket: TokenBucket) -> Self {
        Self {
            pieces: vec![bucket],
        }
    }
}

impl ArrivalCurve {
    /// A flow that sends nothing.
    pub fn zero() -> Self {
        TokenBucket::new(Exact::zero(), Exact::zero()).into()
    }

    /// A flow that sends `amount` once and never again.
    pub fn once(amount: Exact) -> Self {
        TokenBucket::new(Exact::zero(), amount).into()
    }

    /// The minimum of both limits: a flow that obeys both.
    pub fn minimum(&self, other: &Self) -> Self {
        Self::hull(self.pieces.iter().chain(&other.pieces).cloned().collect())
    }

    /// The sum of two flows.
    pub fn plus(&self, other: &Self) -> Self {
        let pairs = self.pieces.iter().flat_map(|a| {
            other
                .pieces
                .iter()
                .map(move |b| TokenBucket::new(&a.rate + &b.rate, &a.burst + &b.burst))
        });
        Self::hull(pairs.collect())
    }

    /// The flow behind an element that delays by at most `delay` (Le Boudec and Thiran, section 1.4.3).
    pub fn delayed(&self, delay: &Exact) -> Self {
        let pieces = self
            .pieces
            .iter()
            .map(|p| TokenBucket::new(p.rate.clone(), &p.burst + &p.rate * delay));
        Self::hull(pieces.collect())
    }

    /// The flow behind an element that collects bits into packets of at most `packet` (Le Boudec and Thiran,
    /// theorem 1.7.1).
    pub fn packetised(&self, packet: &Exact) -> Self {
        let pieces = self
            .pieces
            .iter()
            .map(|p| TokenBucket::new(p.rate.clone(), &p.burst + packet));
        Self::hull(pieces.collect())
    }

    /// The flow measured in another unit: `factor` (not negative) for each unit of amount.
    pub fn scaled(&self, factor: &Exact) -> Self {
        let pieces = self
            .pieces
            .iter()
            .map(|p| TokenBucket::new(&p.rate * factor, &p.burst * factor));
        Self::hull(pieces.collect())
    }

    /// Amount in a window of length `window`.
    pub fn at(&self, window: &Exact) -> Exact {
        self.pieces
            .iter()
            .map(|p| p.at(window))
            .min()
            .unwrap_or_else(Exact::zero)
    }

    /// Rate over long windows.
    pub fn rate(&self) -> Exact {
        self.pieces
            .iter()
            .map(|p| p.rate.clone())
            .min()
            .unwrap_or_else(Exact::zero)
    }

    /// The token buckets, by ascending burst.
    pub fn pieces(&self) -> &[TokenBucket] {
        &self.pieces
    }

    /// Window lengths at which the rate changes, ascending.
    pub(super) fn breakpoints(&self) -> Vec<Exact> {
        self.pieces
            .windows(2)
            .map(|w| (&w[1].burst - &w[0].burst) / (&w[0].rate - &w[1].rate))
            .collect()
    }

    /// Keeps the pieces that are the minimum somewhere.
    fn hull(mut pieces: Vec<TokenBucket>) -> Self {
        pieces.sort_by(|a, b| a.burst.cmp(&b.burst).then(a.rate.cmp(&b.rate)));
        let mut kept: Vec<TokenBucket> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            if kept.last().is_some_and(|last| piece.rate >= last.rate) {
                continue;
            }
            while kept.len() >= 2 {
                let (a, b) = (&kept[kept.len() - 2], &kept[kept.len() - 1]);
                // `b` is needed only if `piece` undercuts `a` later than `b` does.
                let at_b = (&b.burst - &a.burst) * (&a.rate - &piece.rate);
                let at_piece = (&piece.burst - &a.burst) * (&a.rate - &b.rate);
                if at_piece <= at_b {
                    kept.pop();
                } else {
                    break;
                }
            }
            kept.push(piece);
        }
        Self { pieces: kept }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(rate: u32, burst: u32) -> TokenBucket {
        TokenBucket::new(integer(rate), integer(burst))
    }

    #[test]
    fn keeps_only_pieces_that_matter() {
        // 1 + 9t and 10 + t cross at t = 9/8, where 7 + 7t is above both (14.9 against 11.1); 20 + 5t is dominated.
        let curve = [bucket(7, 7), bucket(1, 10), bucket(5, 20)]
            .into_iter()
            .fold(ArrivalCurve::from(bucket(9, 1)), |c, b| {
                c.minimum(&b.into())
            });
        assert_eq!(curve.pieces(), [bucket(9, 1), bucket(1, 10)]);
    }

    #[test]
    fn stepped_bucket_admits_one_quantum_more() {
        // 100 at once, 10 every 5: window 5 can hold the refills at both its ends: 100 + 2 * 10.
        let curve = TokenBucket::stepped(100, 10, 5).unwrap();
        assert_eq!(curve.at(&integer(5)), integer(120));
    }

    proptest! {
        #[test]
        fn hull_is_the_minimum(pieces in prop::collection::vec((0u32..20, 0u32..50), 1..8), t in 1u32..40) {
            let t = integer(t);
            let all: Vec<_> = pieces.iter().map(|&(r, b)| bucket(r, b)).collect();
            let curve = ArrivalCurve::hull(all.clone());
            prop_assert_eq!(curve.at(&t), all.iter().map(|p| p.at(&t)).min().unwrap());
        }

        #[test]
        fn sum_is_pointwise(a in prop::collection::vec((0u32..20, 0u32..50), 1..5),
                            b in prop::collection::vec((0u32..20, 0u32..50), 1..5), t in 1u32..40) {
            let make = |v: &[(u32, u32)]| ArrivalCurve::hull(v.iter().map(|&(r, b)| bucket(r, b)).collect());
            let (a, b, t) = (make(&a), make(&b), integer(t));
            prop_assert_eq!(a.plus(&b).at(&t), a.at(&t) + b.at(&t));
        }
    }
}
