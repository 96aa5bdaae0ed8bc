//! Feed-forward networks: servers, the flows that cross them, and the delay of one flow from end to end.
//!
//! This module knows what a network is, which analysis is sound for which order of service, and why there may be no bound. The analyses
//! themselves are in [`super::path`] and [`super::ludb`]; the arrivals of a flow at a server are in [`super::propagation`]. It does not
//! know what the servers are.
//!
//! Terms: A. Bouillard, M. Boyer, E. Le Corronc, *Deterministic Network Calculus*, Wiley 2018, chapter 10.

use super::arrival::ArrivalCurve;
use super::ludb;
use super::path;
use super::service::ServiceCurve;
use crate::exact::Exact;
use num_traits::Zero;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// A flow: what it sends and the servers that it crosses, in order, each at most once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The arrivals that it sends into the first server.
    pub arrival: ArrivalCurve,
    /// Indices of servers.
    pub path: Vec<usize>,
}

/// Servers and the flows that cross them. Data of one flow stays in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// The guarantee of each server to all its flows together, whatever their order: a strict service curve.
    pub servers: Vec<ServiceCurve>,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// The order in which servers serve different flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Multiplexing {
    /// Nothing is known (also: blind). Round robin and priorities are cases of it, and so is FIFO.
    Arbitrary,
    /// In order of arrival at each server, over all flows; what leaves a server at one moment comes to the next in that order, too.
    Fifo,
}

/// A way to bound the delay of a flow over its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Analysis {
    /// TFA: every server for all its flows together, added up (R. L. Cruz, *A calculus for network delay, part II*, IEEE Transactions
    /// on Information Theory 37(1), 1991). For FIFO a server's part is the horizontal deviation of all that arrives (Le Boudec and
    /// Thiran, theorem 1.4.2); for arbitrary order, the longest time for which it can be busy (section 1.3.2, strict service).
    TotalFlow,
    /// SFA: what each server leaves to the flow, then the path as one server, so that the flow's own burst is paid once (Le
    /// Boudec and Thiran, theorem 1.4.6 and section 6.2.1 for arbitrary order, chapter 6, FIFO minimum service curves, for FIFO).
    SeparateFlow,
    /// PMOO: the path as one server first, then what it leaves, so that the bursts of others are paid once, too (J. B. Schmitt, F. A.
    /// Zdarsky, I. Martinovic, *Improving performance bounds in feed-forward networks by paying multiplexing only once*, MMB 2008;
    /// J. B. Schmitt, F. A. Zdarsky, M. Fidler, *Delay bounds under arbitrary multiplexing*, INFOCOM 2008). For any order.
    PayMultiplexingOnce,
    /// LUDB, the least upper delay bound: the same for FIFO, with the free parameters of every crossing flow chosen at their best (L.
    /// Lenzini, E. Mingozzi, G. Stea, *A methodology for computing end-to-end delay bounds in FIFO-multiplexing tandems*, Performance
    /// Evaluation 65, 2008; L. Bisti, L. Lenzini, E. Mingozzi, G. Stea, *Estimating the worst-case delay in FIFO tandems using
    /// network calculus*, ValueTools 2008). For FIFO only.
    LeastUpperDelayBound,
}

impl Analysis {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::TotalFlow,
        Self::SeparateFlow,
        Self::PayMultiplexingOnce,
        Self::LeastUpperDelayBound,
    ];

    /// The name of the field.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TotalFlow => "TFA",
            Self::SeparateFlow => "SFA",
            Self::PayMultiplexingOnce => "PMOO",
            Self::LeastUpperDelayBound => "LUDB",
        }
    }

    /// Whether it is defined for this order and its bounds hold there. Every bound for [`Multiplexing::Arbitrary`] holds for FIFO, too,
    /// and [`Network::least`] uses it there.
    pub const fn defined_for(self, multiplexing: Multiplexing) -> bool {
        match self {
            Self::TotalFlow | Self::SeparateFlow => true,
            Self::PayMultiplexingOnce => matches!(multiplexing, Multiplexing::Arbitrary),
            Self::LeastUpperDelayBound => matches!(multiplexing, Multiplexing::Fifo),
        }
    }
}

/// The least of several bounds, and what gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Least {
    /// Delay, in the unit of time of the curves.
    pub delay: Exact,
    /// The analysis that gave it.
    pub analysis: Analysis,
    /// The order of service for which the analysis was made.
    pub multiplexing: Multiplexing,
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// A flow or server that does not exist.
    #[error("there is no {what} {index}")]
    Missing {
        /// `flow` or `server`.
        what: &'static str,
        /// The index.
        index: usize,
    },
    /// A flow that returns to a server.
    #[error("flow {flow} crosses server {server} twice")]
    Repeated {
        /// The flow.
        flow: usize,
        /// The server.
        server: usize,
    },
    /// Servers feed each other in a cycle, so there is no order in which to compute burstiness.
    #[error("the network is not feed-forward: servers {} feed each other in a circle", circle(.servers))]
    Cyclic {
        /// Each feeds the next one, the last one the first.
        servers: Vec<usize>,
    },
    /// A server on the path, or an earlier one, has no capacity left for a bound.
    #[error(
        "server {server} is offered {offered} a unit of time and guarantees {served}: nothing bounds the delay behind it"
    )]
    Overloaded {
        /// The server.
        server: usize,
        /// Long-term rate of all its flows.
        offered: Box<Exact>,
        /// Long-term rate that it guarantees.
        served: Box<Exact>,
    },
    /// The analysis says nothing about this order of service.
    #[error("{} is not defined for {} multiplexing", .analysis.name(), match .multiplexing { Multiplexing::Arbitrary => "arbitrary", Multiplexing::Fifo => "FIFO" })]
    NotDefined {
        /// The analysis.
        analysis: Analysis,
        /// The order of service.
        multiplexing: Multiplexing,
    },
}

fn circle(servers: &[usize]) -> String {
    let all: Vec<_> = servers
        .iter()
        .chain(servers.first())
        .map(usize::to_string)
        .collect();
    all.join(" -> ")
}

/// A network whose flows and servers exist and that has no circle.
pub(super) struct Checked<'a> {
    pub network: &'a Network,
    /// For each server its place in an order in which each comes before all servers that it feeds.
    pub rank: Vec<usize>,
    /// Flows at each server, ascending.
    pub at: Vec<Vec<usize>>,
    /// The server that a flow crosses just before another one.
    before: BTreeMap<(usize, usize), usize>,
}

impl<'a> Checked<'a> {
    pub fn new(network: &'a Network) -> Result<Self, NetworkError> {
        let servers = network.servers.len();
        let mut at = vec![Vec::new(); servers];
        let mut before = BTreeMap::new();
        let mut feeds = vec![BTreeSet::new(); servers];
        for (flow, Flow { path, .. }) in network.flows.iter().enumerate() {
            for &server in path {
                let here = at.get_mut(server).ok_or(NetworkError::Missing {
                    what: "server",
                    index: server,
                })?;
                if here.last() == Some(&flow) {
                    return Err(NetworkError::Repeated { flow, server });
                }
                here.push(flow);
            }
            for pair in path.windows(2) {
                before.insert((flow, pair[1]), pair[0]);
                feeds[pair[0]].insert(pair[1]);
            }
        }
        Ok(Self {
            rank: ranks(&feeds)?,
            network,
            at,
            before,
        })
    }

    /// The server from which a flow comes to `server`; `None` from its source.
    pub fn before(&self, flow: usize, server: usize) -> Option<usize> {
        self.before.get(&(flow, server)).copied()
    }

    /// Flows at `server` without those in `except` (ascending).
    pub fn others(&self, server: usize, except: &[usize]) -> Vec<usize> {
        let here = self.at[server].iter().copied();
        here.filter(|flow| except.binary_search(flow).is_err())
            .collect()
    }

    /// The server because of which the delay of `flow` has no bound: among those that its delay depends on, the first that is offered more
    /// than it guarantees; else the first that is offered the largest share of what it guarantees.
    pub fn overloaded(&self, flow: usize) -> NetworkError {
        let mut matter: BTreeSet<usize> = BTreeSet::new();
        let mut open = self.network.flows[flow].path.clone();
        while let Some(server) = open.pop() {
            if matter.insert(server) {
                let here = self.at[server].iter();
                open.extend(here.filter_map(|&flow| self.before(flow, server)));
            }
        }
        let mut worst: Option<(Exact, Exact, usize)> = None;
        let mut ordered: Vec<usize> = matter.into_iter().collect();
        ordered.sort_by_key(|&server| self.rank[server]);
        for server in ordered {
            let flows = self.at[server].iter();
            let offered = flows.fold(Exact::zero(), |sum, &flow| {
                sum + self.network.flows[flow].arrival.rate()
            });
            let served = self.network.servers[server].rate();
            if offered > served || served.is_zero() {
                return NetworkError::Overloaded {
                    server,
                    offered: offered.into(),
                    served: served.into(),
                };
            }
            let fuller = |(o, s, _): &(Exact, Exact, usize)| &offered * s > o * &served;
            if worst.as_ref().is_none_or(fuller) {
                worst = Some((offered, served, server));
            }
        }
        let (offered, served, server) = worst.unwrap_or_default();
        NetworkError::Overloaded {
            server,
            offered: offered.into(),
            served: served.into(),
        }
    }
}

/// An order of the servers in which each comes before all that it feeds.
fn ranks(feeds: &[BTreeSet<usize>]) -> Result<Vec<usize>, NetworkError> {
    let mut fed = vec![0usize; feeds.len()];
    for next in feeds.iter().flatten() {
        fed[*next] += 1;
    }
    let mut ready: Vec<usize> = (0..feeds.len()).filter(|&s| fed[s] == 0).collect();
    let mut rank = vec![usize::MAX; feeds.len()];
    let mut next = 0;
    while let Some(server) = ready.pop() {
        rank[server] = next;
        next += 1;
        for &behind in &feeds[server] {
            fed[behind] -= 1;
            if fed[behind] == 0 {
                ready.push(behind);
            }
        }
    }
    // Each server without a rank is fed by another one without: going backwards from any of them, one recurs.
    let Some(mut here) = rank.iter().position(|&r| r == usize::MAX) else {
        return Ok(rank);
    };
    let mut seen = Vec::new();
    loop {
        if let Some(start) = seen.iter().position(|&s| s == here) {
            let mut servers = seen.split_off(start);
            servers.reverse();
            let least = servers
                .iter()
                .enumerate()
                .min_by_key(|(_, server)| **server);
            let first = least.map_or(0, |(index, _)| index);
            servers.rotate_left(first);
            return Err(NetworkError::Cyclic { servers });
        }
        seen.push(here);
        let feeder = (0..feeds.len()).find(|&s| rank[s] == usize::MAX && feeds[s].contains(&here));
        here = feeder.unwrap_or(here);
    }
}

impl Network {
    /// An upper bound of the delay of `flow` from its source to behind its last server, by one analysis.
    ///
    /// # Errors
    /// [`NetworkError`] if the network is not one, if the analysis is not defined for the order of service, or if there is no bound.
    pub fn bound(
        &self,
        flow: usize,
        analysis: Analysis,
        multiplexing: Multiplexing,
    ) -> Result<Exact, NetworkError> {
        let checked = self.checked(flow)?;
        if !analysis.defined_for(multiplexing) {
            return Err(NetworkError::NotDefined {
                analysis,
                multiplexing,
            });
        }
        let found = match analysis {
            Analysis::TotalFlow => path::total_flow(&checked, flow, multiplexing),
            Analysis::SeparateFlow => path::separate_flow(&checked, flow, multiplexing),
            Analysis::PayMultiplexingOnce => path::pay_multiplexing_once(&checked, flow),
            Analysis::LeastUpperDelayBound => ludb::least_upper_delay_bound(&checked, flow),
        };
        found.ok_or_else(|| checked.overloaded(flow))
    }

    /// The least bound that holds for this order of service, and the analysis that gave it; of equal ones the first of
    /// [`Analysis::ALL`]. For FIFO, analyses for arbitrary order count, too.
    ///
    /// # Errors
    /// [`NetworkError`] if no analysis has a bound.
    pub fn least(&self, flow: usize, multiplexing: Multiplexing) -> Result<Least, NetworkError> {
        let checked = self.checked(flow)?;
        let mut least: Option<Least> = None;
        for order in [multiplexing, Multiplexing::Arbitrary] {
            for analysis in Analysis::ALL {
                match self.bound(flow, analysis, order) {
                    Ok(delay) if least.as_ref().is_none_or(|l| delay < l.delay) => {
                        least = Some(Least {
                            delay,
                            analysis,
                            multiplexing: order,
                        });
                    }
                    _ => {}
                }
            }
            if multiplexing == Multiplexing::Arbitrary {
                break;
            }
        }
        least.ok_or_else(|| checked.overloaded(flow))
    }

    fn checked(&self, flow: usize) -> Result<Checked<'_>, NetworkError> {
        let checked = Checked::new(self)?;
        match flow < self.flows.len() {
            true => Ok(checked),
            false => Err(NetworkError::Missing {
                what: "flow",
                index: flow,
            }),
        }
    }
}
