//! The four analyses of network calculus against others: worked examples of the field, closed forms, each other, and a simulation that
//! knows queues and buckets, not curves.

use bulkhead_analysis::exact::{Exact, integer, ratio};
use bulkhead_analysis::network_calculus::{
    Analysis, ArrivalCurve, Flow, Multiplexing, Network, NetworkError, RateLatency, ServiceCurve,
    TokenBucket, delay,
};
use bulkhead_random::Random;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::path::Path;
use toml_edit::{DocumentMut, Item, Value};

use Analysis::{LeastUpperDelayBound, PayMultiplexingOnce, SeparateFlow, TotalFlow};
use Multiplexing::{Arbitrary, Fifo};

/// All analyses with the orders of service for which they are defined.
const BOUNDS: [(Analysis, Multiplexing); 6] = [
    (TotalFlow, Arbitrary),
    (TotalFlow, Fifo),
    (SeparateFlow, Arbitrary),
    (SeparateFlow, Fifo),
    (PayMultiplexingOnce, Arbitrary),
    (LeastUpperDelayBound, Fifo),
];

fn server(rate: u32, latency: u32) -> ServiceCurve {
    RateLatency::new(integer(rate), integer(latency)).into()
}

fn flow(rate: u32, burst: u32, path: &[usize]) -> Flow {
    Flow {
        arrival: TokenBucket::new(integer(rate), integer(burst)).into(),
        path: path.to_vec(),
    }
}

/// A number of the oracle's file, exactly.
fn number(value: &Value) -> Exact {
    match value {
        Value::Integer(n) => integer(*n.value()),
        Value::Float(n) => Exact::from_float(*n.value()).expect("a finite number"),
        other => panic!("{other:?} is no number"),
    }
}

fn numbers(item: &Value) -> Vec<Exact> {
    item.as_array()
        .expect("a list")
        .iter()
        .map(number)
        .collect()
}

/// The file of worked examples is next to the checkout, which may be a worktree further down. If it is missing, there is nothing to read;
/// [`worked_examples`] has the same figures.
#[test]
fn oracle_file() {
    let name = "shared/oracles/network_calculus.toml";
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut files = above.map(|at| at.join(name));
    let Some(file) = files.find(|file| file.is_file()) else {
        eprintln!("no {name} beside the checkout: nothing read");
        return;
    };
    let text = std::fs::read_to_string(file).expect("a text");
    let document: DocumentMut = text.parse().expect("TOML");
    let tandems = document["tandem"].as_array_of_tables().expect("[[tandem]]");
    let mut checked = 0;
    for tandem in tandems {
        let list = |name: &str| tandem[name].as_array().expect(name).iter();
        let servers: Vec<ServiceCurve> = list("servers")
            .map(|curve| {
                let curve = numbers(curve);
                RateLatency::new(curve[0].clone(), curve[1].clone()).into()
            })
            .collect();
        let bucket = |curve: &Value| {
            let curve = numbers(curve);
            ArrivalCurve::from(TokenBucket::new(curve[0].clone(), curve[1].clone()))
        };
        let mut flows = vec![Flow {
            arrival: bucket(tandem["flow"].as_value().expect("flow")),
            path: (0..servers.len()).collect(),
        }];
        for (curve, path) in list("cross").zip(list("cross_path")) {
            let path = path.as_array().expect("a path").iter();
            let path = path.map(|s| s.as_integer().expect("a server") as usize);
            flows.push(Flow {
                arrival: bucket(curve),
                path: path.collect(),
            });
        }
        let network = Network { servers, flows };
        for (key, expected) in tandem.iter() {
            let (analysis, multiplexing) = match key {
                "servers" | "flow" | "cross" | "cross_path" => continue,
                "tfa_fifo" => (TotalFlow, Fifo),
                "tfa_arbitrary" => (TotalFlow, Arbitrary),
                "sfa_arbitrary" => (SeparateFlow, Arbitrary),
                "sfa_fifo" => (SeparateFlow, Fifo),
                "pmoo_arbitrary" => (PayMultiplexingOnce, Arbitrary),
                "ludb_fifo" => (LeastUpperDelayBound, Fifo),
                other => panic!("nobody knows `{other}`"),
            };
            let Item::Value(expected) = expected else {
                panic!("{key} is no value")
            };
            let bound = network.bound(0, analysis, multiplexing);
            assert_eq!(bound, Ok(number(expected)), "{key}");
            checked += 1;
        }
    }
    assert!(checked >= 7, "only {checked} figures read");
}

/// The same figures, and those of the sources' closed forms, worked by hand.
#[test]
fn worked_examples() {
    // Both flows over both servers. PMOO: latency 20 + (25 + 5 * 20) / 5, rate 5: 45 + 25 / 5. LUDB: theta = 25 makes both ends of the
    // maximum equal: max(theta, 50 - theta).
    let both = Network {
        servers: vec![server(10, 10), server(10, 10)],
        flows: vec![flow(5, 25, &[0, 1]), flow(5, 25, &[0, 1])],
    };
    let of = |network: &Network, analysis, order| network.bound(0, analysis, order).unwrap();
    assert_eq!(of(&both, TotalFlow, Fifo), integer(40));
    assert_eq!(of(&both, SeparateFlow, Arbitrary), integer(65));
    assert_eq!(of(&both, SeparateFlow, Fifo), integer(35));
    assert_eq!(of(&both, PayMultiplexingOnce, Arbitrary), integer(50));
    assert_eq!(of(&both, LeastUpperDelayBound, Fifo), integer(25));
    // Full servers may stay busy for ever.
    assert!(matches!(
        both.bound(0, TotalFlow, Arbitrary),
        Err(NetworkError::Overloaded { server: 0, .. })
    ));
    let least = both.least(0, Fifo).unwrap();
    assert_eq!(
        (least.delay, least.analysis, least.multiplexing),
        (integer(25), LeastUpperDelayBound, Fifo)
    );
    let least = both.least(0, Arbitrary).unwrap();
    assert_eq!(least.analysis, PayMultiplexingOnce);

    let second = Network {
        servers: vec![server(20, 20), server(20, 20)],
        flows: vec![flow(5, 25, &[0, 1]), flow(5, 25, &[1])],
    };
    assert_eq!(of(&second, TotalFlow, Fifo), ratio(195, 4).unwrap());
    assert_eq!(of(&second, SeparateFlow, Arbitrary), integer(50));
    assert_eq!(of(&second, PayMultiplexingOnce, Arbitrary), integer(50));

    // Two servers (R = 10, T = 1 and 2), one flow (r = 2, b = 20), alone: as one path T = 3, 20/10: 5. Server by server the burst is
    // paid twice: 1 + 2 = 3, then burst 20 + 2 * 1 = 22: 2 + 2.2 = 4.2; together 7.2.
    let alone = Network {
        servers: vec![server(10, 1), server(10, 2)],
        flows: vec![flow(2, 20, &[0, 1])],
    };
    for (analysis, order) in BOUNDS {
        let expected = match analysis {
            TotalFlow => ratio(36, 5).unwrap(),
            _ => integer(5),
        };
        assert_eq!(of(&alone, analysis, order), expected, "{analysis:?}");
    }
    // A cross flow (r = 4, b = 8) at the second server leaves 10 (t - 2) - 8 - 4 t = 6 t - 28: latency 14/3, rate 6. Path: latency
    // 1 + 14/3, rate 6; delay 17/3 + 20/6 = 9.
    let crossed = Network {
        servers: vec![server(10, 1), server(10, 2)],
        flows: vec![flow(2, 20, &[0, 1]), flow(4, 8, &[1])],
    };
    assert_eq!(of(&crossed, SeparateFlow, Arbitrary), integer(9));
}

/// A sink tree of n equal servers with equal latency-free flows, one entering at each server: LUDB is known in closed form (Lenzini,
/// Martorini, Mingozzi, Stea 2006): each crossing burst is paid once at the rate of the server where it joins, so the delay of the
/// longest flow is the sum of burst / rate over all joining flows.
#[test]
fn sink_trees() {
    for n in 1..6usize {
        let network = Network {
            servers: (0..n).map(|i| server(20 + 4 * i as u32, 3)).collect(),
            flows: (0..n)
                .map(|i| flow(2, 10 + i as u32, &(i..n).collect::<Vec<_>>()))
                .collect(),
        };
        let expected = (0..n).fold(integer(0), |sum, i| {
            sum + integer(3) + ratio(10 + i as u32, 20 + 4 * i as u32).unwrap()
        });
        assert_eq!(network.bound(0, LeastUpperDelayBound, Fifo), Ok(expected));
    }
}

#[test]
fn refusals_say_where_and_why() {
    let circle = Network {
        servers: vec![server(10, 0); 4],
        flows: vec![
            flow(1, 1, &[0, 1, 2]),
            flow(1, 1, &[2, 3, 1]),
            flow(1, 1, &[0]),
        ],
    };
    let error = circle.bound(0, TotalFlow, Fifo).unwrap_err();
    assert_eq!(
        error,
        NetworkError::Cyclic {
            servers: vec![1, 2, 3]
        }
    );
    insta::assert_snapshot!(error, @"the network is not feed-forward: servers 1 -> 2 -> 3 -> 1 feed each other in a circle");

    let full = Network {
        servers: vec![server(10, 0), server(3, 0), server(10, 0)],
        flows: vec![flow(1, 1, &[2]), flow(4, 1, &[0, 1, 2])],
    };
    for (analysis, order) in BOUNDS {
        let error = full.bound(0, analysis, order).unwrap_err();
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"server 1 is offered 4 a unit of time and guarantees 3: nothing bounds the delay behind it");
        }
    }
    assert!(full.least(0, Fifo).is_err());

    let wrong = |flows| Network {
        servers: vec![server(1, 0)],
        flows,
    };
    let missing = |what, index| Err(NetworkError::Missing { what, index });
    let network = wrong(vec![flow(1, 1, &[3])]);
    assert_eq!(network.bound(0, TotalFlow, Fifo), missing("server", 3));
    let network = wrong(vec![]);
    assert_eq!(network.bound(1, TotalFlow, Fifo), missing("flow", 1));
    let network = wrong(vec![flow(1, 1, &[0, 0])]);
    assert_eq!(
        network.bound(0, TotalFlow, Fifo),
        Err(NetworkError::Repeated { flow: 0, server: 0 })
    );
    let network = wrong(vec![flow(0, 1, &[0])]);
    let error = network
        .bound(0, LeastUpperDelayBound, Arbitrary)
        .unwrap_err();
    insta::assert_snapshot!(error, @"LUDB is not defined for arbitrary multiplexing");
}

/// Many flows over a long path, so that there are many groups of flows: an answer in little time.
#[test]
fn long_paths_have_an_answer() {
    let n = 40;
    let mut flows: Vec<Flow> = (0..n)
        .map(|i| {
            flow(
                1,
                5,
                &(i / 2..=(i / 2 + 3 + i % 5).min(n - 1)).collect::<Vec<_>>(),
            )
        })
        .collect();
    flows.push(flow(1, 5, &(0..n).collect::<Vec<_>>()));
    let network = Network {
        servers: vec![server(60, 1); n],
        flows,
    };
    for (analysis, order) in BOUNDS {
        assert!(network.bound(n, analysis, order).is_ok(), "{analysis:?}");
    }
}

/// What the simulation knows about a flow: rate, burst, path.
type Sent = (u64, u64, Vec<usize>);

/// Serves units slot by slot. A server of (rate, latency) idles for up to its latency when data reaches it while it is empty, and then
/// serves `rate` units by the end of each slot; they reach the next server in the following slot. Sources save tokens and send all of them
/// at random moments, or always immediately. For arbitrary order each server has priorities that change occasionally, mostly with `victim`
/// last. Returns the longest delay of each flow.
fn simulate(
    servers: &[(u64, u64)],
    flows: &[Sent],
    order: Multiplexing,
    victim: usize,
    seed: u64,
) -> Vec<u64> {
    let mut random = Random::new(seed | 1);
    // For each server and flow what waits: (when it was sent, its number in the order of arrival).
    let mut queues = vec![vec![VecDeque::<(u64, u64)>::new(); flows.len()]; servers.len()];
    let mut idle: Vec<Option<u64>> = vec![None; servers.len()];
    let mut priority: Vec<Vec<usize>> = vec![(0..flows.len()).collect(); servers.len()];
    let mut tokens: Vec<u64> = flows.iter().map(|f| f.1).collect();
    let greedy: Vec<bool> = flows.iter().map(|_| random.below(2) == 0).collect();
    let start: Vec<u64> = flows.iter().map(|_| random.below(30)).collect();
    let mut worst = vec![0; flows.len()];
    let mut arrivals = 0;
    // What each server sent on in the last slot, in the order in which it served it.
    let mut under_way: Vec<Vec<(usize, usize, u64)>> = vec![Vec::new(); servers.len()];
    for now in 0..600u64 {
        let mut groups: Vec<_> = under_way.iter_mut().map(std::mem::take).collect();
        for (f, (rate, burst, ..)) in flows.iter().enumerate() {
            let sends = now >= start[f] && now < 400 && (greedy[f] || random.below(25) == 0);
            if sends {
                groups.push((0..tokens[f]).map(|_| (f, 0, now)).collect());
                tokens[f] = 0;
            }
            tokens[f] = (tokens[f] + rate).min(*burst);
        }
        // Of data that arrives at the same moment on different paths, the victim's is mostly last. Data from one server stays in order:
        // otherwise later data would overtake it, and service would not be first in, first out.
        if random.below(4) > 0 {
            groups.sort_by_key(|group| group.last().is_some_and(|(f, ..)| *f == victim));
        }
        let coming = groups.into_iter().flatten();
        for (f, hop, born) in coming {
            arrivals += 1;
            queues[flows[f].2[hop]][f].push_back((born, arrivals));
        }
        for (s, &(rate, latency)) in servers.iter().enumerate() {
            if queues[s].iter().all(VecDeque::is_empty) {
                idle[s] = None;
                continue;
            }
            let lazy = random.below(4) > 0;
            let left = idle[s].get_or_insert(if lazy { latency } else { 0 });
            if *left > 0 {
                *left -= 1;
                continue;
            }
            if random.below(20) == 0 {
                let (a, b) = (
                    random.below(flows.len() as u64),
                    random.below(flows.len() as u64),
                );
                priority[s].swap(a as usize, b as usize);
                if random.below(3) > 0 {
                    priority[s].sort_by_key(|f| *f == victim);
                }
            }
            for _ in 0..rate {
                let waiting = priority[s].iter().filter(|&&f| !queues[s][f].is_empty());
                let next = match order {
                    Arbitrary => waiting.copied().next(),
                    Fifo => waiting.copied().min_by_key(|&f| queues[s][f][0].1),
                };
                let Some(f) = next else { break };
                let (born, _) = queues[s][f].pop_front().unwrap();
                let hop = flows[f].2.iter().position(|&server| server == s).unwrap() + 1;
                match hop < flows[f].2.len() {
                    true => under_way[s].push((f, hop, born)),
                    false => worst[f] = worst[f].max(now + 1 - born),
                }
            }
        }
    }
    worst
}

/// Servers, and flows with any ascending path: tandems, trees, and flows that part and meet again.
fn networks() -> impl Strategy<Value = (Vec<(u64, u64)>, Vec<Sent>)> {
    (2usize..5).prop_flat_map(|n| {
        let servers = prop::collection::vec((4u64..12, 0u64..6), n);
        let path = prop::collection::vec(prop::bool::weighted(0.75), n).prop_map(move |used| {
            let path: Vec<usize> = (0..n).filter(|&s| used[s]).collect();
            if path.is_empty() { vec![0] } else { path }
        });
        let flows = prop::collection::vec((0u64..4, 1u64..25, path), 1..5);
        (servers, flows)
    })
}

/// As the analysis sees it: a slot's work is done by its end.
fn network(servers: &[(u64, u64)], flows: &[Sent]) -> Network {
    Network {
        servers: servers
            .iter()
            .map(|&(rate, latency)| server(rate as u32, latency as u32 + 1))
            .collect(),
        flows: flows
            .iter()
            .map(|(rate, burst, path)| flow(*rate as u32, *burst.max(rate) as u32, path))
            .collect(),
    }
}

fn concave() -> impl Strategy<Value = ArrivalCurve> {
    prop::collection::vec((0u32..8, 0u32..30), 1..4).prop_map(|buckets| {
        let curves = buckets
            .into_iter()
            .map(|(r, b)| TokenBucket::new(integer(r), integer(b)));
        curves
            .map(ArrivalCurve::from)
            .reduce(|a, b| a.minimum(&b))
            .unwrap()
    })
}

fn convex() -> impl Strategy<Value = ServiceCurve> {
    prop::collection::vec((8u32..40, 0u32..12), 1..3).prop_map(|pieces| {
        let curves = pieces.into_iter().map(|(r, t)| server(r, t));
        curves.reduce(|a, b| a.maximum(&b)).unwrap()
    })
}

/// Networks with curves of several pieces.
fn curved() -> impl Strategy<Value = Network> {
    (1usize..4).prop_flat_map(|n| {
        let path =
            (0..n, 1..=n).prop_map(move |(from, length)| (from..(from + length).min(n)).collect());
        let flow = (concave(), path).prop_map(|(arrival, path)| Flow { arrival, path });
        let servers = prop::collection::vec(convex(), n);
        (servers, prop::collection::vec(flow, 1..4))
            .prop_map(|(servers, flows)| Network { servers, flows })
    })
}

/// Found by [`more_traffic_or_less_service_is_never_better`]: the parameter of one crossing flow's first bucket gave 7/9, and that of its
/// second one, which alone is left when the server before is a second late, 34/45.
#[test]
fn each_bucket_of_a_crossing_flow_has_its_own_parameter() {
    let both = ArrivalCurve::from(TokenBucket::new(integer(2), integer(4)))
        .minimum(&ArrivalCurve::once(integer(5)));
    let network = |late| Network {
        servers: vec![server(8, late), server(9, 0)],
        flows: vec![
            flow(0, 1, &[1]),
            Flow {
                arrival: both.clone(),
                path: vec![0, 1],
            },
            flow(4, 0, &[1]),
        ],
    };
    for late in [0, 1] {
        let bound = network(late).bound(0, SeparateFlow, Fifo).unwrap();
        assert_eq!(bound, ratio(34, 45).unwrap(), "{late}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("NETWORKS").ok().and_then(|n| n.parse().ok()).unwrap_or(200)))]

    #[test]
    fn no_simulated_delay_above_a_bound((servers, flows) in networks(), seed in any::<u64>()) {
        let flows: Vec<Sent> = flows.into_iter().map(|(r, b, path)| (r, b.max(r), path)).collect();
        let network = network(&servers, &flows);
        for order in [Arbitrary, Fifo] {
            for victim in 0..flows.len() {
                let seen = simulate(&servers, &flows, order, victim, seed);
                for (analysis, of) in BOUNDS {
                    if of == Fifo && order == Arbitrary {
                        continue;
                    }
                    for (f, seen) in seen.iter().enumerate() {
                        if let Ok(bound) = network.bound(f, analysis, of) {
                            prop_assert!(integer(*seen) <= bound, "{order:?} flow {f}: {seen} above {analysis:?} {of:?} {bound}");
                        }
                    }
                }
            }
        }
    }

    /// One server and one flow: nothing to multiplex.
    #[test]
    fn all_agree_on_one_server((arrival, service) in (concave(), convex())) {
        let expected = delay(&arrival, &service).ok();
        let network = Network { servers: vec![service], flows: vec![Flow { arrival, path: vec![0] }] };
        for (analysis, order) in BOUNDS {
            prop_assert_eq!(network.bound(0, analysis, order).ok(), expected.clone(), "{:?} {:?}", analysis, order);
        }
    }

    #[test]
    fn least_is_the_least(network in curved()) {
        for order in [Arbitrary, Fifo] {
            let all: Vec<_> = BOUNDS.iter().filter(|(_, of)| order == Fifo || *of == Arbitrary)
                .filter_map(|&(analysis, of)| network.bound(0, analysis, of).ok()).collect();
            prop_assert_eq!(network.least(0, order).ok().map(|l| l.delay), all.into_iter().min());
        }
    }

    /// FIFO is a case of arbitrary order; LUDB is never above what it generalises.
    #[test]
    fn orders_of_bounds((servers, flows) in networks()) {
        let network = network(&servers, &flows);
        let of = |analysis, order| network.bound(0, analysis, order).ok();
        if let Some(ludb) = of(LeastUpperDelayBound, Fifo) {
            if let Some(sfa) = of(SeparateFlow, Fifo) { prop_assert!(ludb <= sfa); }
            if let Some(sfa) = of(SeparateFlow, Arbitrary) { prop_assert!(ludb <= sfa); }
        }
        if let (Some(fifo), Some(any)) = (of(TotalFlow, Fifo), of(TotalFlow, Arbitrary)) { prop_assert!(fifo <= any); }
    }

    #[test]
    fn more_traffic_or_less_service_is_never_better(network in curved(), rate in 0u32..2, burst in 0u32..9, slower in 0u32..4, which in any::<prop::sample::Index>()) {
        let mut more = network.clone();
        let f = which.index(more.flows.len());
        more.flows[f].arrival = more.flows[f].arrival.plus(&TokenBucket::new(integer(rate), integer(burst)).into());
        let mut less = network.clone();
        let s = which.index(less.servers.len());
        less.servers[s] = less.servers[s].pieces().iter()
            .map(|p| ServiceCurve::from(RateLatency::new(p.rate.clone(), &p.latency + integer(slower))))
            .reduce(|a, b| a.maximum(&b)).unwrap();
        let mut besides = network.clone();
        besides.flows.push(network.flows[f].clone());
        for (analysis, order) in BOUNDS {
            for worse in [&more, &less, &besides] {
                if let Ok(bound) = worse.bound(0, analysis, order) {
                    // Separate flow in order of arrival tries finitely many parameters, and those of another network may fit better (one in some
                    // thousands of these networks). What holds then: no bound of a worse network is below the least one of this.
                    let of = if (analysis, order) == (SeparateFlow, Fifo) { LeastUpperDelayBound } else { analysis };
                    let before = network.bound(0, of, order);
                    prop_assert!(before.as_ref().is_ok_and(|before| *before <= bound), "{analysis:?} {order:?}: {before:?} then {bound}");
                }
            }
        }
    }

    /// Whatever the network: an answer or an error, without a panic.
    #[test]
    fn no_network_panics(paths in prop::collection::vec(prop::collection::vec(0usize..5, 0..5), 0..4), rate in 0u32..9, burst in 0u32..9) {
        let network = Network {
            servers: vec![server(rate, burst), ServiceCurve::none(), server(8, 0), server(burst, 1)],
            flows: paths.iter().map(|path| flow(rate, burst, path)).collect(),
        };
        for (analysis, order) in BOUNDS {
            let _ = network.bound(0, analysis, order).map_err(|e| e.to_string());
        }
        let _ = network.least(0, Fifo);
    }
}
