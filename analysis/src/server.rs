//! How long a request waits at a server that serves one request at a time, without preemption.
//!
//! Why it exists: m3-rtas24, section III-C: a shared server is a critical section; its clients must know how long others can hold it. What
//! it deliberately does not know: how long the client's own request takes, and the way there and back.
//!
//! # Method and assumptions
//! A server checks its gates `priority-0`, `priority-1`, ... in this order after each request, and the unit hands out the messages of a
//! gate in cyclic slot order (m3-rtas24, section III-B3). So a request waits for at most one request of a lower-priority gate that had
//! begun before it arrived, and once for each other slot of its own gate; twice if the server may delay requests (a budget), because a slot
//! is free again while its delayed request is served. Requests at higher-priority gates count with the budgets of their clients, like those
//! of deferrable servers: in every period, each client contributes at most its budget plus one request that began with the remaining
//! budget, and once more at the beginning (Strosnider, Lehoczky, Sha, IEEE Transactions on Computers 44(1), 1995). No request takes longer
//! than the `limit` of its gate: the server's estimates hold. Without a limit, or without a budget where one is needed, there is no bound.

use bulkhead_model::System;
use bulkhead_model::units::{Dimension, parse};

/// Rounds after which the search for a window is given up; each round adds one period of some client.
const ROUNDS: usize = 10_000;

/// The terms that a server grants to the clients of one gate. Times in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Messages that the gate holds.
    pub slots: u64,
    /// Applications that send to it.
    pub clients: u64,
    /// Maximum duration of a request; `None`: unlimited.
    pub limit: Option<u64>,
    /// Budget and period of each client, if limited.
    pub budget: Option<(u64, u64)>,
}

/// The terms of an application's gates `priority-0` and on, from its arguments `limit`, `budget` and `period` (see `bulkhead_lib::server`);
/// empty if it is not a server.
pub fn terms(system: &System, server: usize) -> Vec<Terms> {
    let Some(app) = system.apps.get(server) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for priority in 0.. {
        let name = format!("priority-{priority}");
        let Some(gate) = app.rgates.iter().position(|gate| gate.name == name) else {
            break;
        };
        let time = |name: &str| {
            let own = format!("{name}-{priority}");
            let found = |name: &str| app.arguments.iter().find(|known| known.name == name);
            let argument = found(&own).or_else(|| found(name))?;
            // Picoseconds in the model; the server counts nanoseconds.
            parse(&argument.value, Dimension::Time)
                .ok()
                .map(|time| time / 1000)
        };
        let clients = system.apps.iter().filter(|client| {
            let mut gates = client.sgates.iter();
            gates.any(|sgate| (sgate.to, sgate.gate) == (server, gate))
        });
        all.push(Terms {
            slots: app.rgates[gate].slots.into(),
            clients: clients.count() as u64,
            limit: time("limit"),
            budget: time("budget").map(|budget| (budget, time("period").unwrap_or(10_000_000))),
        });
    }
    if app.services.len() > 1 {
        // The services of an application take turns; the duration of another service's turn is not considered, so there is no bound.
        all.push(Terms {
            slots: 1,
            clients: 1,
            limit: None,
            budget: None,
        });
    }
    all
}

/// Maximum nanoseconds that a request at gate `own` waits for requests of others, if it takes `request` itself; `None` without a bound.
pub fn waiting(gates: &[Terms], own: usize, request: u64) -> Option<u64> {
    let here = gates.get(own)?;
    let served = |gate: &Terms| gate.clients > 0;
    let mut fixed: u64 = 0;
    for behind in gates[own + 1..].iter().filter(|gate| served(gate)) {
        fixed = fixed.max(behind.limit?);
    }
    let others = match here.clients {
        0 | 1 => 0,
        _ => here.slots.saturating_sub(1),
    };
    if others > 0 {
        let often = 1 + u64::from(here.budget.is_some());
        fixed = fixed.checked_add(here.limit?.checked_mul(others)?.checked_mul(often)?)?;
    }
    let mut before = Vec::new();
    for gate in gates[..own].iter().filter(|gate| served(gate)) {
        let (budget, period) = gate.budget?;
        let each = budget.checked_add(gate.limit?.min(budget))?;
        before.push((gate.clients.checked_mul(each)?, period.max(1)));
    }
    let mut window = fixed;
    for _ in 0..ROUNDS {
        let mut next = fixed;
        for &(each, period) in &before {
            // Until it is begun; requests that arrive later wait.
            let periods = (window.checked_add(request)?).div_ceil(period) + 1;
            next = next.checked_add(each.checked_mul(periods)?)?;
        }
        if next == window {
            return Some(window);
        }
        window = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_model::{LoadOptions, load_system};
    use proptest::prelude::*;

    fn gate(slots: u64, clients: u64, limit: Option<u64>) -> Terms {
        Terms {
            slots,
            clients,
            limit,
            budget: None,
        }
    }

    #[test]
    fn waits_are_those_by_hand() {
        let gates = [gate(1, 1, Some(20)), gate(4, 3, Some(500))];
        // First: one request of the other gate. Second: three more slots, but the first gate has no budget.
        assert_eq!(waiting(&gates, 0, 20), Some(500));
        assert_eq!(waiting(&gates, 1, 20), None);
        assert_eq!(waiting(&[gate(4, 4, Some(25))], 0, 25), Some(75));
        assert_eq!(waiting(&[gate(4, 1, None)], 0, 25), Some(0));
        assert_eq!(waiting(&[gate(4, 2, None)], 0, 25), None);
        // A budget of 30 (and one request of 10 that began with it) per 100: 40 in the period in which the request arrives, and in the next
        // one.
        let first = Terms {
            budget: Some((30, 100)),
            ..gate(1, 1, Some(10))
        };
        let gates = [first, gate(1, 1, Some(5))];
        assert_eq!(waiting(&gates, 1, 5), Some(80));
        // Demands beyond the capacity have no bound.
        let greedy = Terms {
            budget: Some((100, 100)),
            ..gate(1, 1, Some(100))
        };
        assert_eq!(waiting(&[greedy, gate(1, 1, Some(5))], 1, 5), None);
    }

    #[test]
    fn terms_come_from_the_description() {
        let system = load_system("m3/attack-slow", &LoadOptions::default()).expect("valid");
        let limit = system
            .variants
            .iter()
            .find(|v| v.variant.as_deref() == Some("limit"));
        let system = limit.expect("there");
        let server = system.apps.iter().position(|a| a.name == "server");
        let terms = terms(system, server.expect("there"));
        assert_eq!(terms, [gate(1, 1, Some(25_000)), gate(4, 3, Some(25_000))]);
    }

    proptest! {
        /// A server stepped request by request: gates in order, slots in cyclic order, attackers that immediately ask again in any free
        /// slot. The measured request arrives at any moment.
        #[test]
        fn no_order_of_attackers_exceeds_the_bound(
            slots in 1u64..6,
            lower in 0u64..4,
            limit in 1u64..50,
            low_limit in 1u64..80,
            own_gate_only in any::<bool>(),
            moves in prop::collection::vec((0usize..8, 1u64..=100), 1..80),
            at in 0usize..40,
        ) {
            let clients = if own_gate_only { 2 } else { 1 };
            let gates = [gate(slots, clients, Some(limit)), gate(4, lower, Some(low_limit))];
            let bound = waiting(&gates, 0, limit).expect("limited");
            // Slots of the first gate: free, an attacker's, mine.
            let mut taken = vec![0u8; slots as usize];
            let (mut position, mut now, mut arrived) = (0usize, 0u64, None);
            for (step, &(pick, share)) in moves.iter().enumerate() {
                // Before the server checks, attackers fill any free slot; the measured request comes once.
                if own_gate_only && pick < taken.len() && taken[pick] == 0 && (arrived.is_some() || step != at) {
                    taken[pick] = 1;
                }
                if arrived.is_none() && step >= at && let Some(slot) = taken.iter().position(|t| *t == 0) {
                    taken[slot] = 2;
                    arrived = Some(now);
                }
                let next = (0..taken.len()).map(|i| (position + i) % taken.len()).find(|s| taken[*s] != 0);
                let (length, slot) = match next {
                    Some(slot) if taken[slot] == 2 => {
                        let waited = now - arrived.expect("it came");
                        prop_assert!(waited <= bound, "{waited} > {bound}");
                        return Ok(());
                    }
                    Some(slot) => (limit * share / 100, Some(slot)),
                    None if lower > 0 => (low_limit * share / 100, None),
                    None => {
                        // Nothing to do: a new request is served immediately.
                        now += 1;
                        continue;
                    }
                };
                // The slot is free when its request is over; the measured request may have arrived just after this one began.
                if arrived.is_none() && step + 1 >= at && let Some(free) = taken.iter().position(|t| *t == 0) {
                    taken[free] = 2;
                    arrived = Some(now);
                }
                now += length;
                if let Some(slot) = slot {
                    taken[slot] = 0;
                    position = (slot + 1) % taken.len();
                }
            }
        }
    }
}
