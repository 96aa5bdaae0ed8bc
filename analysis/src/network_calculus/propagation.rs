//! What flows bring to a server: arrival curves, from the sources through all servers before.
//!
//! Flows that come from one server together are bounded together: what that server can hold back is then paid once for all of them, not
//! once for each (J. B. Schmitt, F. A. Zdarsky, *The DISCO network calculator*, ValueTools 2006, aggregate arrival bounds; S. Bondorf, J.
//! B. Schmitt, *Boosting sensor network calculus by thoroughly bounding cross-traffic*, INFOCOM 2015). The module does not know whose delay
//! is asked for: every flow that crosses a server counts there.

use super::arrival::{ArrivalCurve, TokenBucket};
use super::bounds::{delay, output};
use super::network::{Checked, Multiplexing};
use super::service::ServiceCurve;
use crate::exact::Exact;
use num_traits::Zero;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of groups of flows at servers that one question may touch. Beyond that, each flow is bounded by itself: that takes only
/// as many bounds as the paths are long in all.
const GROUPS: usize = 20_000;

type Key = (usize, Vec<usize>);

/// Arrival curves of groups of flows, computed on demand.
pub(super) struct Propagation<'a> {
    checked: &'a Checked<'a>,
    multiplexing: Multiplexing,
    /// Flows that come together are bounded together.
    grouped: bool,
    /// `None`: unbounded.
    known: BTreeMap<Key, Option<ArrivalCurve>>,
}

impl<'a> Propagation<'a> {
    pub fn new(checked: &'a Checked<'a>, multiplexing: Multiplexing) -> Self {
        Self {
            checked,
            multiplexing,
            grouped: true,
            known: BTreeMap::new(),
        }
    }

    /// The arrivals that `flows` (ascending, all of which cross `server`) bring to it together; `None` if unbounded.
    pub fn entering(&mut self, server: usize, flows: Vec<usize>) -> Option<ArrivalCurve> {
        if self.grouped {
            let key = (server, flows.clone());
            if self.compute(key.clone()) {
                return self.known.get(&key).cloned().flatten();
            }
            self.grouped = false;
            self.known.clear();
        }
        for &flow in &flows {
            self.compute((server, vec![flow]));
        }
        self.sum(server, &flows)
    }

    /// Computes a group and all groups that it depends on, from the sources on; false if there are too many of them.
    fn compute(&mut self, key: Key) -> bool {
        let mut wanted = BTreeSet::new();
        let mut open = vec![key];
        while let Some((server, flows)) = open.pop() {
            let ranked = (self.checked.rank[server], (server, flows));
            if self.known.contains_key(&ranked.1) || wanted.contains(&ranked) {
                continue;
            }
            for (before, group) in self.groups(server, &ranked.1.1) {
                let rest = self.checked.others(before, &group);
                match self.grouped {
                    true if rest.is_empty() => {}
                    true => open.push((before, rest)),
                    false => open.extend(rest.into_iter().map(|flow| (before, vec![flow]))),
                }
                open.push((before, group));
            }
            wanted.insert(ranked);
            if self.grouped && wanted.len() + self.known.len() > GROUPS {
                return false;
            }
        }
        for (_, (server, flows)) in wanted {
            let curve = self.arrive(server, &flows);
            self.known.insert((server, flows), curve);
        }
        true
    }

    /// The flows by the server from which they come.
    fn groups(&self, server: usize, flows: &[usize]) -> BTreeMap<usize, Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &flow in flows {
            if let Some(before) = self.checked.before(flow, server) {
                groups.entry(before).or_default().push(flow);
            }
        }
        groups
    }

    /// The arrivals that a group brings, if all that it depends on is known.
    fn arrive(&self, server: usize, flows: &[usize]) -> Option<ArrivalCurve> {
        let fresh = flows
            .iter()
            .filter(|&&flow| self.checked.before(flow, server).is_none());
        let mut sum = fresh.fold(ArrivalCurve::zero(), |sum, &flow| {
            sum.plus(&self.checked.network.flows[flow].arrival)
        });
        for (before, group) in self.groups(server, flows) {
            let own = self.sum(before, &group)?;
            let cross = self.sum(before, &self.checked.others(before, &group))?;
            sum = sum.plus(&self.behind(before, &own, &cross)?);
        }
        Some(sum)
    }

    /// The known arrivals of flows at a server together.
    fn sum(&self, server: usize, flows: &[usize]) -> Option<ArrivalCurve> {
        if flows.is_empty() {
            return Some(ArrivalCurve::zero());
        }
        let known = |flows: &[usize]| self.known.get(&(server, flows.to_vec())).cloned().flatten();
        if self.grouped {
            return known(flows);
        }
        flows.iter().try_fold(ArrivalCurve::zero(), |sum, &flow| {
            Some(sum.plus(&known(&[flow])?))
        })
    }

    /// What `own` is behind a server that also serves `cross` (Le Boudec and Thiran, theorem 1.4.3, with what the server leaves; for FIFO
    /// also section 1.4.3 with the delay of all of its traffic).
    fn behind(
        &self,
        server: usize,
        own: &ArrivalCurve,
        cross: &ArrivalCurve,
    ) -> Option<ArrivalCurve> {
        let service = &self.checked.network.servers[server];
        let mut curves = vec![output(own, &service.residual(cross)).ok()];
        if self.multiplexing == Multiplexing::Fifo {
            let stay = delay(&own.plus(cross), service).ok();
            curves.push(stay.map(|stay| own.delayed(&stay)));
            curves.extend(
                own.pieces()
                    .iter()
                    .map(|piece| grown(piece, service, cross)),
            );
        }
        let bounded = curves.into_iter().flatten();
        bounded.reduce(|a, b| a.minimum(&b))
    }
}

/// A bucket behind a server that serves it and `cross` in order of arrival. Of the guarantees `service(t) - cross(t - theta)`, the one
/// whose `theta` is the delay of `cross` and a flow of this rate without a burst delays the bucket by `theta`: behind `theta`, the server has
/// always done as much as the bucket's rate asks for.
fn grown(
    piece: &TokenBucket,
    service: &ServiceCurve,
    cross: &ArrivalCurve,
) -> Option<ArrivalCurve> {
    let rate = TokenBucket::new(piece.rate.clone(), Exact::zero());
    let theta = delay(&cross.plus(&rate.into()), service).ok()?;
    Some(ArrivalCurve::from(piece.clone()).delayed(&theta))
}
