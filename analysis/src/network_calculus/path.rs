//! The path of one flow: total flow, separate flow, and pay multiplexing only once.
//!
//! A path is seen as a tandem: its servers, and for each stretch of it the flows that cross exactly this stretch. [`super::propagation`]
//! computes what those bring to its first server.

use super::arrival::{ArrivalCurve, TokenBucket};
use super::bounds::delay;
use super::network::{Checked, Flow, Multiplexing, Network};
use super::propagation::Propagation;
use super::service::{RateLatency, ServiceCurve};
use crate::exact::Exact;
use num_traits::{Signed, Zero};
use std::collections::BTreeMap;

/// Maximum number of choices of curve pieces that are all tried. If there are more, only the long-term ones are tried, and all that differ
/// from those in one place.
pub(super) const CHOICES: usize = 256;

/// A stretch of a path, by the places of its first and last server, and the flows (ascending) that cross exactly it.
pub(super) type Stretches = BTreeMap<(usize, usize), Vec<usize>>;

/// Flows other than `flow`, by the stretches of its path that they cross. `cuts` (ascending places) end a stretch before them.
pub(super) fn stretches(checked: &Checked<'_>, flow: usize, cuts: &[usize]) -> Stretches {
    let mut all = Stretches::new();
    let path = &checked.network.flows[flow].path;
    let mut running: BTreeMap<usize, usize> = BTreeMap::new();
    for (place, &server) in path.iter().enumerate() {
        for other in checked.others(server, &[flow]) {
            let comes = place > 0 && checked.before(other, server) == Some(path[place - 1]);
            if !comes || cuts.contains(&place) {
                running.insert(other, place);
            }
            let goes = path
                .get(place + 1)
                .is_some_and(|&next| checked.before(other, next) == Some(server));
            if !goes || cuts.contains(&(place + 1)) {
                let first = running.remove(&other).unwrap_or(place);
                all.entry((first, place)).or_default().push(other);
            }
        }
    }
    for flows in all.values_mut() {
        flows.sort_unstable();
    }
    all
}

/// TFA: the sum of what each server needs for all its flows together.
///
/// Sound for FIFO (each server serves all flows in order of arrival), and for arbitrary order with the longest busy time of each
/// server; a server that only this flow crosses serves its data in order in any case.
pub(super) fn total_flow(
    checked: &Checked<'_>,
    flow: usize,
    multiplexing: Multiplexing,
) -> Option<Exact> {
    let mut propagation = Propagation::new(checked, multiplexing);
    let mut sum = Exact::zero();
    for &server in &checked.network.flows[flow].path {
        let all = checked.at[server].clone();
        let in_order = multiplexing == Multiplexing::Fifo || all.len() == 1;
        let arrival = propagation.entering(server, all)?;
        let service = &checked.network.servers[server];
        sum += match in_order {
            true => delay(&arrival, service).ok()?,
            // The busy time ends when the server must have done more than can have arrived.
            false => service.residual(&arrival).breakpoints().first()?.clone(),
        };
    }
    Some(sum)
}

/// SFA: the delay of the flow through what its servers leave to it.
///
/// The burst of a crossing flow grows on the way through servers that it shares with the analysed flow. Its papers and tools
/// leave the analysed flow out there, because it cannot both have delayed others and be delayed by them in full. That is proved
/// for no network in which flows part and meet again, so the figure is only taken where another analysis of the same network, which
/// counts everything, is not above it (PMOO for arbitrary order, LUDB's own for FIFO). Where none is, the least of those is.
pub(super) fn separate_flow(
    checked: &Checked<'_>,
    flow: usize,
    multiplexing: Multiplexing,
) -> Option<Exact> {
    let counted = separate_flow_counting_itself(checked, flow, multiplexing);
    let Some(published) = separate_flow_of_others(checked, flow, multiplexing) else {
        return counted;
    };
    let once = match multiplexing {
        Multiplexing::Arbitrary => pay_multiplexing_once(checked, flow),
        Multiplexing::Fifo => super::ludb::least_upper_delay_bound(checked, flow),
    };
    let proved = counted.into_iter().chain(once).min()?;
    Some(published.max(proved))
}

/// SFA, where every flow that crosses a server, including the analysed one, adds to the bursts behind it.
pub(super) fn separate_flow_counting_itself(
    checked: &Checked<'_>,
    flow: usize,
    multiplexing: Multiplexing,
) -> Option<Exact> {
    let mut propagation = Propagation::new(checked, multiplexing);
    let path = &checked.network.flows[flow].path;
    let cross = path
        .iter()
        .map(|&server| propagation.entering(server, checked.others(server, &[flow])));
    let cross: Option<Vec<_>> = cross.collect();
    through(checked, flow, &cross?, multiplexing)
}

/// SFA, where the analysed flow adds nothing to the bursts of flows that cross its path, while they are on it.
fn separate_flow_of_others(
    checked: &Checked<'_>,
    flow: usize,
    multiplexing: Multiplexing,
) -> Option<Exact> {
    let mut outside = Propagation::new(checked, multiplexing);
    let path = &checked.network.flows[flow].path;
    let others = stretches(checked, flow, &[]).into_iter();
    let flows = others.map(|((first, last), flows)| {
        Some(Flow {
            arrival: outside.entering(path[first], flows)?,
            path: (first..=last).collect(),
        })
    });
    let network = Network {
        servers: path
            .iter()
            .map(|&server| checked.network.servers[server].clone())
            .collect(),
        flows: flows.collect::<Option<_>>()?,
    };
    let alone = Checked::new(&network).ok()?;
    let mut inside = Propagation::new(&alone, multiplexing);
    let cross = (0..path.len()).map(|place| inside.entering(place, alone.at[place].clone()));
    let cross: Option<Vec<_>> = cross.collect();
    through(checked, flow, &cross?, multiplexing)
}

/// The flow's delay through what its servers leave when `cross` arrives at each.
///
/// In order of arrival, each server leaves a curve for each `theta`. Those that are tried are the longest times that the server takes for
/// `cross` alone, and for each bucket of it by itself: a bucket that sends much later may leave more than all of them together.
fn through(
    checked: &Checked<'_>,
    flow: usize,
    cross: &[ArrivalCurve],
    multiplexing: Multiplexing,
) -> Option<Exact> {
    let Flow { arrival, path } = &checked.network.flows[flow];
    let servers = path.iter().map(|&server| &checked.network.servers[server]);
    let of = |left: Vec<ServiceCurve>| match left.into_iter().reduce(|a, b| a.then(&b)) {
        Some(service) => delay(arrival, &service).ok(),
        None => Some(Exact::zero()),
    };
    if multiplexing == Multiplexing::Arbitrary {
        return of(servers
            .zip(cross)
            .map(|(s, cross)| s.residual(cross))
            .collect());
    }
    let left: Vec<Vec<ServiceCurve>> = servers
        .zip(cross)
        .map(|(s, cross)| in_order(s, cross))
        .collect();
    let sizes: Vec<usize> = left.iter().map(Vec::len).collect();
    let tried = picks(&sizes).into_iter();
    tried
        .filter_map(|pick| {
            of(pick
                .into_iter()
                .zip(&left)
                .map(|(p, left)| left[p].clone())
                .collect())
        })
        .min()
}

/// What a server that serves in order of arrival leaves, for each `theta` that is tried; that of `cross` as a whole is the last one.
fn in_order(service: &ServiceCurve, cross: &ArrivalCurve) -> Vec<ServiceCurve> {
    let buckets = cross.pieces().iter().map(|bucket| bucket.clone().into());
    let mut thetas: Vec<Exact> = buckets
        .chain([cross.clone()])
        .filter_map(|c| delay(&c, service).ok())
        .collect();
    let last = thetas.pop();
    thetas.retain(|theta| Some(theta) != last.as_ref());
    thetas.extend(last);
    thetas
        .iter()
        .map(|theta| service.fifo_residual(cross, theta))
        .collect()
}

/// PMOO: the delay of the flow through what the whole path leaves to it.
///
/// Let `t_0 <= t_1 <= ...` be such that server i is busy in `[t_(i-1), t_i]` and empty before it, backwards from the end of some data.
/// Then what the flow got done is at least `sum_i service_i(t_i - t_(i-1)) - sum_c arrival_c(over the stretch of c)`: each crossing flow is
/// subtracted once. For one rate-latency piece `(R_i, T_i)` of each server and one bucket `(r_c, b_c)` of each stretch, the least
/// of that over all such times is a rate-latency curve of rate `R = min_i (R_i - sum of r_c at i)` and latency
/// `sum_i T_i + (sum_c b_c + sum_i T_i (sum of r_c at i)) / R`. Any choice of pieces is a bound, so their maximum is.
///
/// Sound for any order of service; servers must be strict.
pub(super) fn pay_multiplexing_once(checked: &Checked<'_>, flow: usize) -> Option<Exact> {
    let Flow { arrival, path } = &checked.network.flows[flow];
    if path.is_empty() {
        return Some(Exact::zero());
    }
    let mut propagation = Propagation::new(checked, Multiplexing::Arbitrary);
    let cross = crossing(checked, flow, &[], &mut propagation)?;
    let servers: Vec<_> = path.iter().map(|&s| &checked.network.servers[s]).collect();
    let mut whole = ServiceCurve::none();
    for choice in choices(&servers, &cross) {
        let (pieces, buckets) = (&choice.servers, &choice.cross);
        let mut latency = Exact::zero();
        let mut amount = Exact::zero();
        let mut rate: Option<Exact> = None;
        for (place, piece) in pieces.iter().enumerate() {
            let here = cross
                .iter()
                .zip(buckets)
                .filter(|(((first, last), _), _)| (*first..=*last).contains(&place));
            let taken = here.fold(Exact::zero(), |sum, (_, bucket)| sum + &bucket.rate);
            latency += &piece.latency;
            amount += &piece.latency * &taken;
            let left = &piece.rate - taken;
            rate = Some(rate.map_or(left.clone(), |rate| rate.min(left)));
        }
        amount = buckets.iter().fold(amount, |sum, b| sum + &b.burst);
        if let Some(rate) = rate.filter(Signed::is_positive) {
            latency += amount / &rate;
            whole = whole.maximum(&RateLatency::new(rate, latency).into());
        }
    }
    delay(arrival, &whole).ok()
}

/// The arrivals that cross each stretch of a path, at its first server; `None` if any is unbounded.
pub(super) fn crossing(
    checked: &Checked<'_>,
    flow: usize,
    cuts: &[usize],
    propagation: &mut Propagation<'_>,
) -> Option<Vec<((usize, usize), ArrivalCurve)>> {
    let path = &checked.network.flows[flow].path;
    let all = stretches(checked, flow, cuts).into_iter();
    all.map(|(stretch, flows)| Some((stretch, propagation.entering(path[stretch.0], flows)?)))
        .collect()
}

/// One piece of each server's curve, and one of each crossing arrival curve.
pub(super) struct Choice<'a> {
    pub servers: Vec<&'a RateLatency>,
    pub cross: Vec<&'a TokenBucket>,
}

/// Choices of pieces: all of them if they are few, else the long-term ones and all that differ from those in one place. Empty if a server
/// guarantees nothing.
pub(super) fn choices<'a>(
    servers: &[&'a ServiceCurve],
    cross: &'a [((usize, usize), ArrivalCurve)],
) -> Vec<Choice<'a>> {
    let sizes: Vec<usize> = servers
        .iter()
        .map(|s| s.pieces().len())
        .chain(cross.iter().map(|(_, c)| c.pieces().len()))
        .collect();
    let chosen = |pick: Vec<usize>| Choice {
        servers: servers
            .iter()
            .zip(&pick)
            .map(|(s, &p)| &s.pieces()[p])
            .collect(),
        cross: cross
            .iter()
            .zip(&pick[servers.len()..])
            .map(|((_, c), &p)| &c.pieces()[p])
            .collect(),
    };
    picks(&sizes).into_iter().map(chosen).collect()
}

/// Choices of one of each of `sizes` things: all of them if they are few, else the last ones and all that differ from those in one place.
/// Empty if any size is 0.
fn picks(sizes: &[usize]) -> Vec<Vec<usize>> {
    if sizes.contains(&0) {
        return Vec::new();
    }
    let last: Vec<usize> = sizes.iter().map(|size| size - 1).collect();
    let number = sizes
        .iter()
        .try_fold(1usize, |n, &size| n.checked_mul(size))
        .filter(|&n| n <= CHOICES);
    match number {
        Some(number) => (0..number)
            .map(|mut index| {
                let digits = sizes.iter().map(|size| {
                    let digit = index % size;
                    index /= size;
                    digit
                });
                digits.collect()
            })
            .collect(),
        None => {
            let mut picks = vec![last.clone()];
            for (place, &longest) in last.iter().enumerate() {
                picks.extend((0..longest).map(|piece| {
                    let mut pick = last.clone();
                    pick[place] = piece;
                    pick
                }));
            }
            picks
        }
    }
}
