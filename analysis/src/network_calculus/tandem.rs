//! Bounds of flows over paths of servers.
//!
//! Two classical analyses of a feed-forward network: *total flow* (bound every server for all its flows together, add
//! up; servers serve in order of arrival) and *separate flow* (what each server leaves to the flow, then the whole path
//! as one server, so that the flow's burst is paid once). The module does not know what the servers are.
//!
//! Sources: Cruz 1991, part II (total flow); Le Boudec and Thiran, sections 1.4.3 and 6.2 (separate flow, pay bursts
//! only once); terms as in A. Bouillard, M. Boyer, E. Le Corronc, *Deterministic Network Calculus*, 2018, chapter 10.

use super::arrival::ArrivalCurve;
use super::bounds::{delay, output};
use super::service::ServiceCurve;
use crate::exact::Exact;
use num_traits::Zero;
use thiserror::Error;

/// A flow: what it sends and the servers that it crosses, in order, each at most once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What it sends into the first server.
    pub arrival: ArrivalCurve,
    /// Indices of servers.
    pub path: Vec<usize>,
}

/// Servers and the flows that cross them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tandem {
    /// What each server guarantees to all its flows together, whatever their order (a strict service curve).
    pub servers: Vec<ServiceCurve>,
    /// The flows.
    pub flows: Vec<Flow>,
}

/// Bounds of one flow, in the unit of time of the curves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TandemBound {
    /// Sum of the servers' own bounds; valid if every server serves in order of arrival.
    pub total_flow: Option<Exact>,
    /// Bound of the path as one server; valid for any order of service between flows.
    pub separate_flow: Option<Exact>,
}

/// Why there is no analysis.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TandemError {
    /// A flow or server that does not exist.
    #[error("there is no {what} {index}")]
    Missing {
        /// `flow` or `server`.
        what: &'static str,
        /// The index.
        index: usize,
    },
    /// Flows feed each other in a circle, so burstiness has no order in which to be computed.
    #[error("the flows depend on each other in a circle through server {0}")]
    Cyclic(usize),
}

#[derive(Clone)]
enum Entry {
    Unknown,
    UnderWay,
    Known(Option<ArrivalCurve>),
}

impl Tandem {
    /// Both bounds of flow `flow`; `None` where a server on the way is overloaded.
    ///
    /// # Errors
    /// [`TandemError`] if an index is wrong or the flows depend on each other in a circle.
    pub fn bound(&self, flow: usize) -> Result<TandemBound, TandemError> {
        let victim = self.flow(flow)?;
        for other in &self.flows {
            if let Some(&index) = other.path.iter().find(|&&s| s >= self.servers.len()) {
                return Err(TandemError::Missing {
                    what: "server",
                    index,
                });
            }
        }
        let mut memory: Vec<Vec<Entry>> = self
            .flows
            .iter()
            .map(|f| vec![Entry::Unknown; f.path.len()])
            .collect();
        let mut total = Some(Exact::zero());
        let mut path: Option<Option<ServiceCurve>> = Some(None);
        for (hop, &server) in victim.path.iter().enumerate() {
            let here = &self.servers[server];
            let cross = self.cross(flow, server, &mut memory)?;
            let own = self.arrival(flow, hop, &mut memory)?;
            total = match (total, &cross, &own) {
                (Some(sum), Some(c), Some(o)) => delay(&c.plus(o), here).ok().map(|d| sum + d),
                _ => None,
            };
            path = match (path, &cross) {
                (Some(before), Some(c)) => {
                    let left = here.residual(c);
                    Some(Some(before.map_or(left.clone(), |b| b.then(&left))))
                }
                _ => None,
            };
        }
        let separate = match path {
            Some(Some(service)) => delay(&victim.arrival, &service).ok(),
            Some(None) => Some(Exact::zero()),
            None => None,
        };
        Ok(TandemBound {
            total_flow: total,
            separate_flow: separate,
        })
    }

    fn flow(&self, index: usize) -> Result<&Flow, TandemError> {
        self.flows.get(index).ok_or(TandemError::Missing {
            what: "flow",
            index,
        })
    }

    /// What all flows but `except` bring to `server`; `None` if unbounded.
    fn cross(
        &self,
        except: usize,
        server: usize,
        memory: &mut [Vec<Entry>],
    ) -> Result<Option<ArrivalCurve>, TandemError> {
        let mut sum = Some(ArrivalCurve::zero());
        for (index, other) in self.flows.iter().enumerate() {
            if index == except {
                continue;
            }
            if let Some(hop) = other.path.iter().position(|&s| s == server) {
                let arrival = self.arrival(index, hop, memory)?;
                sum = match (sum, arrival) {
                    (Some(s), Some(a)) => Some(s.plus(&a)),
                    _ => None,
                };
            }
        }
        Ok(sum)
    }

    /// What `flow` brings to the server at `hop` of its path; `None` if unbounded.
    fn arrival(
        &self,
        flow: usize,
        hop: usize,
        memory: &mut [Vec<Entry>],
    ) -> Result<Option<ArrivalCurve>, TandemError> {
        match &memory[flow][hop] {
            Entry::Known(curve) => return Ok(curve.clone()),
            Entry::UnderWay => return Err(TandemError::Cyclic(self.flows[flow].path[hop])),
            Entry::Unknown => {}
        }
        let curve = if hop == 0 {
            Some(self.flows[flow].arrival.clone())
        } else {
            memory[flow][hop] = Entry::UnderWay;
            let server = self.flows[flow].path[hop - 1];
            let cross = self.cross(flow, server, memory)?;
            let before = self.arrival(flow, hop - 1, memory)?;
            match (cross, before) {
                (Some(c), Some(b)) => output(&b, &self.servers[server].residual(&c)).ok(),
                _ => None,
            }
        };
        memory[flow][hop] = Entry::Known(curve.clone());
        Ok(curve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{integer, ratio};
    use crate::network_calculus::{RateLatency, TokenBucket};
    use proptest::prelude::*;

    fn server(rate: u32, latency: u32) -> ServiceCurve {
        RateLatency::new(integer(rate), integer(latency)).into()
    }

    fn flow(rate: u32, burst: u32, path: &[usize]) -> Flow {
        Flow {
            arrival: TokenBucket::new(integer(rate), integer(burst)).into(),
            path: path.to_vec(),
        }
    }

    /// Two servers (R = 10, T = 1 and 2), one flow (r = 2, b = 20), alone: as one path T = 3, 20/10: 5. Server by
    /// server the burst is paid twice: 1 + 2 = 3, then burst 20 + 2 * 1 = 22: 2 + 2.2 = 4.2; together 7.2.
    #[test]
    fn pays_the_burst_once() {
        let tandem = Tandem {
            servers: vec![server(10, 1), server(10, 2)],
            flows: vec![flow(2, 20, &[0, 1])],
        };
        let bound = tandem.bound(0).unwrap();
        assert_eq!(bound.separate_flow, Some(integer(5)));
        assert_eq!(bound.total_flow, ratio(36, 5));
    }

    /// A cross flow (r = 4, b = 8) at the second server leaves 10 (t - 2) - 8 - 4 t = 6 t - 28: latency 14/3, rate 6.
    /// Path: latency 1 + 14/3, rate 6; delay 17/3 + 20/6 = 9.
    #[test]
    fn cross_flow_at_one_server() {
        let tandem = Tandem {
            servers: vec![server(10, 1), server(10, 2)],
            flows: vec![flow(2, 20, &[0, 1]), flow(4, 8, &[1])],
        };
        assert_eq!(tandem.bound(0).unwrap().separate_flow, Some(integer(9)));
    }

    #[test]
    fn refuses_circles_and_missing_servers() {
        let circle = Tandem {
            servers: vec![server(10, 0), server(10, 0)],
            flows: vec![flow(1, 1, &[0, 1]), flow(1, 1, &[1, 0])],
        };
        assert!(matches!(circle.bound(0), Err(TandemError::Cyclic(_))));
        let missing = Tandem {
            servers: vec![],
            flows: vec![flow(1, 1, &[3])],
        };
        assert_eq!(
            missing.bound(0),
            Err(TandemError::Missing {
                what: "server",
                index: 3
            })
        );
        assert!(missing.bound(1).is_err());
    }

    /// Simulates first-come first-served unit-capacity links slot by slot: each flow sends greedily within its bucket
    /// after a random start; work of a link goes on to the next in the following slot (latency 1). Returns the longest
    /// time that a unit of flow 0 took.
    fn simulate(rates: &[u64], flows: &[(u64, u64, Vec<usize>, u64)]) -> u64 {
        let mut queues: Vec<std::collections::VecDeque<(usize, usize, u64)>> =
            vec![Default::default(); rates.len()];
        let mut sent = vec![0u64; flows.len()];
        let mut worst = 0;
        for now in 0..400u64 {
            for (f, (rate, burst, path, start)) in flows.iter().enumerate() {
                let allowed = if now >= *start && now < 300 {
                    burst + rate * (now - start)
                } else {
                    sent[f]
                };
                for _ in sent[f]..allowed {
                    queues[path[0]].push_back((f, 0, now));
                }
                sent[f] = sent[f].max(allowed);
            }
            let mut moved = Vec::new();
            for (s, rate) in rates.iter().enumerate() {
                for _ in 0..*rate {
                    let Some((f, hop, born)) = queues[s].pop_front() else {
                        break;
                    };
                    if hop + 1 < flows[f].2.len() {
                        moved.push((f, hop + 1, born));
                    } else if f == 0 {
                        worst = worst.max(now + 1 - born);
                    }
                }
            }
            for item in moved {
                queues[flows[item.0].2[item.1]].push_back(item);
            }
        }
        worst
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_simulated_delay_above_the_bound(
            rates in prop::collection::vec(6u64..10, 3),
            traffic in prop::collection::vec((0u64..3, 1u64..30, 0usize..3, 1usize..4, 0u64..20), 1..4),
        ) {
            let flows: Vec<_> = traffic.iter().map(|&(r, b, from, length, start)| {
                (r, b, (from..(from + length).min(3)).collect::<Vec<_>>(), start)
            }).collect();
            let tandem = Tandem {
                // A slot serves `rate` units by its end: rate-latency with latency 1.
                servers: rates.iter().map(|&r| server(r as u32, 1)).collect(),
                flows: flows.iter().map(|(r, b, path, _)| flow(*r as u32, *b as u32, path)).collect(),
            };
            let bound = tandem.bound(0).unwrap();
            let seen = integer(simulate(&rates, &flows));
            if let Some(total) = &bound.total_flow { prop_assert!(seen <= *total, "{} > {}", seen, total); }
            if let Some(separate) = &bound.separate_flow { prop_assert!(seen <= *separate, "{} > {}", seen, separate); }
        }
    }
}
