//! LUDB: the least upper delay bound of a flow through a tandem of FIFO servers.
//!
//! A server that serves in order of arrival leaves a flow, for each `theta >= 0`, a different service curve (Le Boudec and Thiran, chapter
//! 6, FIFO minimum service curves). Lenzini, Mingozzi and Stea take the curves of a nested tandem from the inside out: what is left of a
//! stretch is convolved with its neighbours, then the flow that crosses all of them is subtracted with its own parameter; the bound is the
//! minimum over all parameters. All intermediate curves are *pseudo-affine*: a latency, then the minimum of token buckets.
//!
//! Written with `theta` itself, with the constraint that no token bucket is negative, all of this is linear in the parameters, so one
//! linear program finds the minimum ([`super::simplex`]). A tandem that is not nested is cut: flows that cross a cut get a new bound there
//! (Bisti et al. 2008). The analysed flow is never cut, so its burst is paid once.

use super::arrival::{ArrivalCurve, TokenBucket};
use super::network::{Checked, Multiplexing};
use super::path::{Choice, choices, crossing, separate_flow_counting_itself, stretches};
use super::propagation::Propagation;
use super::service::RateLatency;
use super::simplex::least_value;
use crate::exact::Exact;
use num_traits::{One, Signed, Zero};

/// Maximum places that may be cut for which all sets of cuts are tried.
const CUTS: usize = 5;

/// A number that depends on the parameters: a constant, and a factor for each.
#[derive(Clone)]
struct Linear {
    constant: Exact,
    factors: Vec<Exact>,
}

impl Linear {
    fn constant(constant: Exact, parameters: usize) -> Self {
        let factors = vec![Exact::zero(); parameters];
        Self { constant, factors }
    }

    fn parameter(index: usize, parameters: usize) -> Self {
        let mut this = Self::constant(Exact::zero(), parameters);
        this.factors[index] = Exact::one();
        this
    }

    /// `self + factor * other`.
    fn plus(&self, factor: &Exact, other: &Self) -> Self {
        let pairs = self.factors.iter().zip(&other.factors);
        Self {
            constant: &self.constant + factor * &other.constant,
            factors: pairs.map(|(a, b)| a + factor * b).collect(),
        }
    }

    fn add(&self, constant: &Exact) -> Self {
        Self {
            constant: &self.constant + constant,
            factors: self.factors.clone(),
        }
    }
}

/// A pseudo-affine curve: 0 up to `latency`, then the minimum of `burst + rate t`.
#[derive(Clone)]
struct PseudoAffine {
    latency: Linear,
    buckets: Vec<(Linear, Exact)>,
}

impl PseudoAffine {
    fn server(piece: &RateLatency, parameters: usize) -> Self {
        let nothing = Linear::constant(Exact::zero(), parameters);
        Self {
            latency: Linear::constant(piece.latency.clone(), parameters),
            buckets: vec![(nothing, piece.rate.clone())],
        }
    }

    fn then(mut self, next: Self) -> Self {
        self.latency = self.latency.plus(&Exact::one(), &next.latency);
        self.buckets.extend(next.buckets);
        self
    }

    /// What is left when `cross` is subtracted with the parameter `theta` (Lenzini et al. 2008, the equivalent service curve of a nested
    /// tandem, in `theta` instead of their `s`); the constraints on it, each at least 0, join `program`. `None` if a bucket has no rate
    /// left.
    fn left(self, cross: &TokenBucket, theta: Linear, program: &mut Vec<Linear>) -> Option<Self> {
        let longer = theta.plus(&-Exact::one(), &self.latency);
        program.push(longer.clone());
        let buckets = self.buckets.into_iter().map(|(burst, rate)| {
            let burst = burst.plus(&rate, &longer).add(&-&cross.burst);
            let rate = rate - &cross.rate;
            rate.is_positive().then_some((burst, rate))
        });
        let buckets: Vec<_> = buckets.collect::<Option<_>>()?;
        program.extend(buckets.iter().map(|(burst, _)| burst.clone()));
        Some(Self {
            latency: theta,
            buckets,
        })
    }
}

/// LUDB: the least delay of the flow over all parameters, over the tried sets of cuts, and over the pieces of the curves. A cut before
/// every server with the parameters of the separate flow analysis is one of them, so the result is never above that.
///
/// Sound for servers that serve in order of arrival; they need not be strict, but what arrives at a stretch is bounded as for any others.
pub(super) fn least_upper_delay_bound(checked: &Checked<'_>, flow: usize) -> Option<Exact> {
    let mut least = separate_flow_counting_itself(checked, flow, Multiplexing::Fifo);
    let mut propagation = Propagation::new(checked, Multiplexing::Fifo);
    for cuts in sets_of_cuts(checked, flow) {
        let Some(cross) = crossing(checked, flow, &cuts, &mut propagation) else {
            continue;
        };
        let found = nested(checked, flow, &cross);
        least = least.into_iter().chain(found).min();
    }
    least
}

/// Sets of places before which to cut, so that what is left is nested.
fn sets_of_cuts(checked: &Checked<'_>, flow: usize) -> Vec<Vec<usize>> {
    let is_nested = |cuts: &[usize]| crossed(checked, flow, cuts).is_none();
    let whole = stretches(checked, flow, &[]);
    let servers = checked.network.flows[flow].path.len();
    let inside = |place: &usize| {
        let mut all = whole.keys();
        all.any(|(first, last)| first < place && place <= last)
    };
    let places: Vec<usize> = (1..servers).filter(inside).collect();
    if places.len() <= CUTS {
        let sets = (0u32..1 << places.len()).map(|set| {
            let chosen = places.iter().enumerate();
            let chosen = chosen.filter(|(index, _)| set >> index & 1 == 1);
            chosen.map(|(_, &place)| place).collect::<Vec<_>>()
        });
        return sets.filter(|cuts| is_nested(cuts)).collect();
    }
    // The minimal set, and all.
    let mut few = Vec::new();
    while let Some(place) = crossed(checked, flow, &few) {
        few.push(place);
        few.sort_unstable();
    }
    vec![few, places]
}

/// The first server of a stretch that begins within another one and ends behind it: a cut before it lets both be nested.
fn crossed(checked: &Checked<'_>, flow: usize, cuts: &[usize]) -> Option<usize> {
    let all: Vec<_> = stretches(checked, flow, cuts).into_keys().collect();
    let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (a, b)));
    let mut crossing = pairs.filter(|(a, b)| a.0 < b.0 && b.0 <= a.1 && a.1 < b.1);
    crossing.next().map(|(_, b)| b.0)
}

/// The bound of a nested tandem.
fn nested(
    checked: &Checked<'_>,
    flow: usize,
    cross: &[((usize, usize), ArrivalCurve)],
) -> Option<Exact> {
    let own = &checked.network.flows[flow];
    if own.path.is_empty() {
        return Some(Exact::zero());
    }
    let servers: Vec<_> = own
        .path
        .iter()
        .map(|&server| &checked.network.servers[server])
        .collect();
    let all = choices(&servers, cross).into_iter();
    all.filter_map(|choice| of_choice(&own.arrival, cross, &choice))
        .min()
}

/// The bound with one piece of each curve.
fn of_choice(
    own: &ArrivalCurve,
    cross: &[((usize, usize), ArrivalCurve)],
    choice: &Choice<'_>,
) -> Option<Exact> {
    // One parameter for each stretch, and the delay.
    let parameters = cross.len() + 1;
    let delay = Linear::parameter(cross.len(), parameters);
    let mut program = Vec::new();
    // What is left of neighbouring stretches, each with its first and last server.
    let pieces = choice.servers.iter().enumerate();
    let mut parts: Vec<((usize, usize), PseudoAffine)> = pieces
        .map(|(place, piece)| ((place, place), PseudoAffine::server(piece, parameters)))
        .collect();
    let mut order: Vec<usize> = (0..cross.len()).collect();
    order.sort_by_key(|&index| {
        let (first, last) = cross[index].0;
        (last - first, first)
    });
    for index in order {
        let (first, last) = cross[index].0;
        let from = parts.iter().position(|(part, _)| part.0 == first)?;
        let to = parts.iter().position(|(part, _)| part.1 == last)?;
        let inner = parts.drain(from..=to).map(|(_, curve)| curve);
        let whole = inner.reduce(PseudoAffine::then)?;
        let theta = Linear::parameter(index, parameters);
        let left = whole.left(choice.cross[index], theta, &mut program)?;
        parts.insert(from, ((first, last), left));
    }
    let path = parts
        .into_iter()
        .map(|(_, curve)| curve)
        .reduce(PseudoAffine::then)?;
    // Horizontal deviation: of each bucket at each corner of what the flow sends.
    let behind = delay.plus(&-Exact::one(), &path.latency);
    program.push(behind.clone());
    let first = own.pieces().first()?.burst.clone();
    let corners = own.breakpoints().into_iter().map(|t| (own.at(&t), t));
    let corners: Vec<_> = std::iter::once((first, Exact::zero()))
        .chain(corners)
        .collect();
    for (burst, rate) in &path.buckets {
        if own.rate() > *rate {
            return None;
        }
        for (amount, window) in &corners {
            // delay >= latency + (amount - burst) / rate - window
            let slack = behind.plus(&rate.recip(), burst);
            program.push(slack.add(&(window - amount / rate)));
        }
    }
    let rows: Vec<_> = program
        .into_iter()
        .map(|row| (row.factors, -row.constant))
        .collect();
    least_value(&rows, &delay.factors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{integer, ratio};
    use crate::network_calculus::network::{Flow, Network};
    use proptest::prelude::*;

    /// The curve of Lenzini et al. 2008, as they write it: what is left when a bucket is subtracted with their parameter `s >= 0`. A curve
    /// is a latency and token buckets (burst, rate).
    type Plain = (Exact, Vec<(Exact, Exact)>);

    fn left(curve: &Plain, burst: &Exact, rate: &Exact, s: &Exact) -> Plain {
        let wait = |(b, r): &(Exact, Exact)| ((burst - b) / r).max(Exact::zero());
        let most = curve.1.iter().map(wait).max().unwrap();
        let buckets = curve.1.iter().map(|(b, r)| {
            let level = r * (s + &most - (burst - b) / r);
            (level, r - rate)
        });
        (&curve.0 + &most + s, buckets.collect())
    }

    fn then(a: Plain, b: Plain) -> Plain {
        (a.0 + b.0, a.1.into_iter().chain(b.1).collect())
    }

    fn delay(curve: &Plain, burst: &Exact) -> Exact {
        let wait = |(b, r): &(Exact, Exact)| ((burst - b) / r).max(Exact::zero());
        &curve.0 + curve.1.iter().map(wait).max().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Three servers, one flow over the first two, one over all, or over the last two: by their formula for all parameters of a grid.
        #[test]
        fn least_over_a_grid_of_parameters(
            servers in prop::array::uniform3((6u32..14, 0u32..5)),
            own in (1u32..3, 1u32..12), inner in (1u32..3, 1u32..12), outer in (1u32..3, 1u32..12), late in any::<bool>(),
        ) {
            let path = |inside: bool| match (inside, late) {
                (false, _) => vec![0, 1, 2],
                (true, false) => vec![0, 1],
                (true, true) => vec![1, 2],
            };
            let flow = |(rate, burst): (u32, u32), path: Vec<usize>| Flow {
                arrival: TokenBucket::new(integer(rate), integer(burst)).into(),
                path,
            };
            let network = Network {
                servers: servers.iter().map(|&(r, t)| RateLatency::new(integer(r), integer(t)).into()).collect(),
                flows: vec![flow(own, path(false)), flow(inner, path(true)), flow(outer, path(false))],
            };
            let checked = Checked::new(&network).unwrap();
            let mut propagation = Propagation::new(&checked, Multiplexing::Fifo);
            let cross = crossing(&checked, 0, &[], &mut propagation).unwrap();
            // If the inner flow joins late, all curves are still those of the sources.
            let exact = nested(&checked, 0, &cross).unwrap();
            let plain: Vec<Plain> = servers.iter().map(|&(r, t)| (integer(t), vec![(Exact::zero(), integer(r))])).collect();
            let mut least: Option<Exact> = None;
            for s in 0..24u32 {
                for u in 0..24u32 {
                    let (s, u) = (ratio(s, 4).unwrap(), ratio(u, 4).unwrap());
                    let (first, last) = if late { (1, 2) } else { (0, 1) };
                    let both = then(plain[first].clone(), plain[last].clone());
                    let both = left(&both, &integer(inner.1), &integer(inner.0), &s);
                    let whole = if late { then(plain[0].clone(), both) } else { then(both, plain[2].clone()) };
                    let whole = left(&whole, &integer(outer.1), &integer(outer.0), &u);
                    let found = delay(&whole, &integer(own.1));
                    least = least.into_iter().chain([found]).min();
                }
            }
            let least = least.unwrap();
            prop_assert!(exact <= least, "{exact} above {least}");
            // Between two grid points the delay falls by little more than one step of each.
            prop_assert!(&least - &exact <= integer(1), "{exact} far below {least}");
        }
    }

    /// Crossing stretches, [0, 1] and [1, 2]: one cut before server 1 or 2 nests them.
    #[test]
    fn cuts_what_is_not_nested() {
        let flow = |path: &[usize]| Flow {
            arrival: TokenBucket::new(integer(1), integer(4)).into(),
            path: path.to_vec(),
        };
        let network = Network {
            servers: (0..3)
                .map(|_| RateLatency::new(integer(10), integer(1)).into())
                .collect(),
            flows: vec![flow(&[0, 1, 2]), flow(&[0, 1]), flow(&[1, 2])],
        };
        let checked = Checked::new(&network).unwrap();
        assert_eq!(crossed(&checked, 0, &[]), Some(1));
        assert_eq!(sets_of_cuts(&checked, 0), [vec![1], vec![2], vec![1, 2]]);
        assert!(least_upper_delay_bound(&checked, 0).is_some());
    }
}
