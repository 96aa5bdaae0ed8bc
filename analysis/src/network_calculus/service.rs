//! Service curves: how much a server does at least in any window in which it is needed.
//!
//! A curve here is the maximum of finitely many rate-latency curves and 0, hence convex. It does not know the other flows;
//! [`ServiceCurve::residual`] takes that into account.

use super::arrival::ArrivalCurve;
use crate::exact::Exact;
use num_traits::{Signed, Zero};

/// `rate * (t - latency)`, or 0 before the latency has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLatency {
    /// Amount per unit of time, positive.
    pub rate: Exact,
    /// Time before service starts, not negative.
    pub latency: Exact,
}

impl RateLatency {
    /// A server with this rate and latency.
    pub fn new(rate: Exact, latency: Exact) -> Self {
        Self { rate, latency }
    }
}

/// The maximum of rate-latency curves; without any, a server that guarantees nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCurve {
    /// Ascending latency, ascending rate, each of them the maximum somewhere.
    pieces: Vec<RateLatency>,
}

impl From<RateLatency> for ServiceCurve {
    fn from(piece: RateLatency) -> Self {
        Self::hull(vec![piece])
    }
}

impl ServiceCurve {
    /// A server that guarantees nothing.
    pub fn none() -> Self {
        Self { pieces: Vec::new() }
    }

    /// The better of two guarantees of the same server.
    pub fn maximum(&self, other: &Self) -> Self {
        Self::hull(self.pieces.iter().chain(&other.pieces).cloned().collect())
    }

    /// What two servers in a row guarantee together: min-plus convolution, which for convex curves puts the segments in
    /// the order of their slopes (Le Boudec and Thiran, theorems 1.4.6 and 3.1.6: *pay bursts only once*).
    pub fn then(&self, next: &Self) -> Self {
        if self.pieces.is_empty() || next.pieces.is_empty() {
            return Self::none();
        }
        let latency = &self.pieces[0].latency + &next.pieces[0].latency;
        // Finite segments (slope, length) of both, then the smaller of the final slopes forever.
        let mut segments: Vec<(Exact, Exact)> = Vec::new();
        for curve in [self, next] {
            let mut start = curve.pieces[0].latency.clone();
            for (piece, end) in curve
                .pieces
                .iter()
                .zip(curve.breakpoints().into_iter().skip(1))
            {
                segments.push((piece.rate.clone(), &end - &start));
                start = end;
            }
        }
        let last = self.rate().min(next.rate());
        segments.retain(|(slope, _)| *slope < last);
        segments.sort();
        // A piece is the line through its segment.
        let mut pieces = Vec::with_capacity(segments.len() + 1);
        let (mut time, mut amount) = (latency, Exact::zero());
        for (slope, length) in segments {
            pieces.push(RateLatency::new(slope.clone(), &time - &amount / &slope));
            amount += &slope * &length;
            time += length;
        }
        let start = &time - &amount / &last;
        pieces.push(RateLatency::new(last, start));
        Self::hull(pieces)
    }

    /// What is left for one flow when the others, in any order of service, send at most `cross` (Le Boudec and Thiran,
    /// section 6.2.1, blind multiplexing; the server must be strict). Guarantees nothing if they fill the server.
    pub fn residual(&self, cross: &ArrivalCurve) -> Self {
        let mut pieces = Vec::new();
        for server in &self.pieces {
            for flow in cross.pieces() {
                let rate = &server.rate - &flow.rate;
                if rate.is_positive() {
                    let latency = (&flow.burst + &server.rate * &server.latency) / &rate;
                    pieces.push(RateLatency::new(rate, latency));
                }
            }
        }
        Self::hull(pieces)
    }

    /// What is left for one flow when the others send at most `cross` and all are served in order of arrival (Le Boudec and Thiran,
    /// chapter 6, FIFO minimum service curves): `service(t) - cross(t - theta)` behind `theta`, and below that its convex hull from there on.
    /// Each `theta` (not negative) gives a guarantee of its own; the maximum of two of them is none. Guarantees nothing if the others
    /// fill the server.
    pub fn fifo_residual(&self, cross: &ArrivalCurve, theta: &Exact) -> Self {
        let mut pieces = Vec::new();
        for server in &self.pieces {
            for flow in cross.pieces() {
                let rate = &server.rate - &flow.rate;
                if rate.is_positive() {
                    let owed = &server.rate * &server.latency + &flow.burst - &flow.rate * theta;
                    let latency = (owed / &rate).max(theta.clone());
                    pieces.push(RateLatency::new(rate, latency));
                }
            }
        }
        Self::hull(pieces)
    }

    /// The server followed by a packetiser of packets of at most `packet`: it may hold back one packet (Le Boudec and
    /// Thiran, theorem 1.7.1).
    pub fn packetised(&self, packet: &Exact) -> Self {
        let pieces = self
            .pieces
            .iter()
            .map(|p| RateLatency::new(p.rate.clone(), &p.latency + packet / &p.rate));
        Self::hull(pieces.collect())
    }

    /// Minimum amount served in a backlogged window of length `window`.
    pub fn at(&self, window: &Exact) -> Exact {
        self.pieces
            .iter()
            .map(|p| &p.rate * (window - &p.latency))
            .max()
            .filter(Signed::is_positive)
            .unwrap_or_else(Exact::zero)
    }

    /// Time after which `amount` is surely served; `None` if never.
    pub fn time_for(&self, amount: &Exact) -> Option<Exact> {
        if !amount.is_positive() {
            return Some(Exact::zero());
        }
        self.pieces
            .iter()
            .map(|p| &p.latency + amount / &p.rate)
            .min()
    }

    /// Rate over long windows; 0 for a server that guarantees nothing.
    pub fn rate(&self) -> Exact {
        self.pieces
            .last()
            .map_or_else(Exact::zero, |p| p.rate.clone())
    }

    /// The rate-latency curves, by ascending latency.
    pub fn pieces(&self) -> &[RateLatency] {
        &self.pieces
    }

    /// Times at which the slope changes, ascending; the first is the least latency.
    pub(super) fn breakpoints(&self) -> Vec<Exact> {
        let first = self.pieces.first().map(|p| p.latency.clone());
        first
            .into_iter()
            .chain(self.pieces.windows(2).map(|w| crossing(&w[0], &w[1])))
            .collect()
    }

    /// Keeps the pieces that are the maximum somewhere.
    fn hull(mut pieces: Vec<RateLatency>) -> Self {
        pieces.retain(|p| p.rate.is_positive());
        pieces.sort_by(|a, b| a.latency.cmp(&b.latency).then(b.rate.cmp(&a.rate)));
        let mut kept: Vec<RateLatency> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            if kept.last().is_some_and(|last| piece.rate <= last.rate) {
                continue;
            }
            while kept.len() >= 2 {
                let (a, b) = (&kept[kept.len() - 2], &kept[kept.len() - 1]);
                if crossing(a, &piece) <= crossing(a, b) {
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

/// When the steeper line overtakes.
fn crossing(early: &RateLatency, steep: &RateLatency) -> Exact {
    (&steep.rate * &steep.latency - &early.rate * &early.latency) / (&steep.rate - &early.rate)
}

/// What a round-robin server of this `rate` guarantees to one input whose packets have at least `least` each, when the
/// other inputs together have at most one packet of `others` in a round.
///
/// In a backlogged window the input waits for one packet of each other input before each of its own packets:
/// rate `rate * least / (least + others)`, latency `others / rate` (Boyer et al. 2018, section on round-robin
/// arbitration; the same as Stiliadis and Varma's latency-rate server with latency of one round). `None` if `least`
/// or `rate` is not positive.
pub fn round_robin(rate: &Exact, least: &Exact, others: &Exact) -> Option<ServiceCurve> {
    if !rate.is_positive() || !least.is_positive() {
        return None;
    }
    Some(RateLatency::new(rate * least / (least + others), others / rate).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{integer, ratio};
    use crate::network_calculus::TokenBucket;
    use proptest::prelude::*;

    fn server(rate: u32, latency: u32) -> ServiceCurve {
        RateLatency::new(integer(rate), integer(latency)).into()
    }

    #[test]
    fn servers_in_a_row() {
        // Latencies add, the slower rate stays (Le Boudec and Thiran, section 1.4.3).
        assert_eq!(server(10, 2).then(&server(4, 3)), server(4, 5));
    }

    #[test]
    fn residual_of_a_token_bucket() {
        // 10 (t - 2) - (5 + 6 t) = 4 t - 25: rate 4 after 25/4.
        let left = server(10, 2).residual(&TokenBucket::new(integer(6), integer(5)).into());
        assert_eq!(
            left,
            RateLatency::new(integer(4), ratio(25, 4).unwrap()).into()
        );
        let full = server(10, 2).residual(&TokenBucket::new(integer(10), integer(0)).into());
        assert_eq!(full, ServiceCurve::none());
    }

    fn curve() -> impl Strategy<Value = ServiceCurve> {
        prop::collection::vec((1u32..12, 0u32..12), 1..4).prop_map(|v| {
            v.into_iter()
                .map(|(r, t)| server(r, t))
                .reduce(|a, b| a.maximum(&b))
                .unwrap()
        })
    }

    proptest! {
        /// Convolution by its definition on a grid: inf over s of f(s) + g(t - s). The grid's minimum is never below.
        #[test]
        fn convolution_by_definition(f in curve(), g in curve(), t in 0u32..40) {
            let both = f.then(&g).at(&integer(t));
            let grid = (0..=t * 12).map(|s| {
                let s = ratio(s, 12).unwrap();
                f.at(&s) + g.at(&(integer(t) - &s))
            }).min().unwrap();
            prop_assert!(both <= grid);
            // Slopes are below 12, so the grid misses the infimum by at most one step's growth of both.
            prop_assert!(grid - both <= integer(2));
        }

        #[test]
        fn residual_is_the_difference(f in curve(), r in 0u32..12, b in 0u32..20, t in 1u32..40) {
            let cross: ArrivalCurve = TokenBucket::new(integer(r), integer(b)).into();
            let (left, t) = (f.residual(&cross), integer(t));
            prop_assert!(left.at(&t) <= (f.at(&t) - cross.at(&t)).max(Exact::zero()));
        }
    }
}
