//! The three bounds of a flow through one server: delay, backlog, output.
//!
//! All of them are suprema over a piecewise linear function, so they are attained (or approached) at a breakpoint of one
//! of the curves. The module does not know whether the server is one link or a whole path.

use super::arrival::{ArrivalCurve, TokenBucket};
use super::service::ServiceCurve;
use crate::exact::Exact;
use num_traits::{Signed, Zero};
use thiserror::Error;

/// The flow may send more than the server guarantees to serve, so nothing is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the flow's rate exceeds the rate that the server guarantees")]
pub struct Unbounded;

fn stable(arrival: &ArrivalCurve, service: &ServiceCurve) -> Result<(), Unbounded> {
    let rate = service.rate();
    if rate.is_positive() && arrival.rate() <= rate {
        Ok(())
    } else {
        Err(Unbounded)
    }
}

/// Longest stay of a bit: the horizontal deviation (Le Boudec and Thiran, theorem 1.4.2; the server serves the flow's
/// bits in order).
///
/// # Errors
/// [`Unbounded`] if the flow's long-term rate exceeds the server's.
pub fn delay(arrival: &ArrivalCurve, service: &ServiceCurve) -> Result<Exact, Unbounded> {
    stable(arrival, service)?;
    // Just after 0 the arrivals are the least burst; `at(0)` would be 0.
    let first = &arrival.pieces()[0];
    let mut worst = if first.burst.is_zero() && first.rate.is_positive() {
        // However little has arrived, it waits for the server to start.
        service.breakpoints().first().cloned().ok_or(Unbounded)?
    } else {
        service.time_for(&first.burst).ok_or(Unbounded)?
    };
    let mut windows = arrival.breakpoints();
    for corner in service.breakpoints() {
        windows.extend(window_for(arrival, &service.at(&corner)));
    }
    for window in windows {
        let served = service.time_for(&arrival.at(&window)).ok_or(Unbounded)?;
        worst = worst.max(served - window);
    }
    Ok(worst.max(Exact::zero()))
}

/// Largest amount in the server: the vertical deviation (Le Boudec and Thiran, theorem 1.4.1).
///
/// # Errors
/// [`Unbounded`] if the flow's long-term rate exceeds the server's.
pub fn backlog(arrival: &ArrivalCurve, service: &ServiceCurve) -> Result<Exact, Unbounded> {
    stable(arrival, service)?;
    let windows = arrival
        .breakpoints()
        .into_iter()
        .chain(service.breakpoints());
    Ok(windows
        .map(|t| arrival.at(&t) - service.at(&t))
        .fold(arrival.pieces()[0].burst.clone(), Exact::max))
}

/// An arrival curve of the flow behind the server: each token bucket `b + r t` leaves as `b + sup (r u - service(u)) +
/// r t` (Le Boudec and Thiran, theorem 1.4.3, applied to each bucket by itself, which is never too small).
///
/// # Errors
/// [`Unbounded`] if the flow's long-term rate exceeds the server's.
pub fn output(arrival: &ArrivalCurve, service: &ServiceCurve) -> Result<ArrivalCurve, Unbounded> {
    stable(arrival, service)?;
    let limit = service.rate();
    let corners = service.breakpoints();
    arrival
        .pieces()
        .iter()
        .filter(|p| p.rate <= limit)
        .map(|p| {
            let growth = corners
                .iter()
                .map(|u| &p.rate * u - service.at(u))
                .fold(Exact::zero(), Exact::max);
            ArrivalCurve::from(TokenBucket::new(p.rate.clone(), &p.burst + growth))
        })
        .reduce(|a, b| a.minimum(&b))
        .ok_or(Unbounded)
}

/// The window in which the flow may just send `amount`, if it takes more than an instant and is ever reached.
fn window_for(arrival: &ArrivalCurve, amount: &Exact) -> Option<Exact> {
    let mut latest = Exact::zero();
    for piece in arrival.pieces() {
        if piece.burst >= *amount {
            continue;
        }
        if piece.rate.is_zero() {
            return None;
        }
        latest = latest.max((amount - &piece.burst) / &piece.rate);
    }
    latest.is_positive().then_some(latest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::{integer, ratio};
    use crate::network_calculus::RateLatency;
    use proptest::prelude::*;

    fn bucket(rate: u32, burst: u32) -> ArrivalCurve {
        TokenBucket::new(integer(rate), integer(burst)).into()
    }

    fn server(rate: u32, latency: u32) -> ServiceCurve {
        RateLatency::new(integer(rate), integer(latency)).into()
    }

    /// Worked example of the field (token bucket through a rate-latency server): R = 10, T = 10, r = 5, b = 25 gives
    /// delay T + b/R = 12.5, backlog b + rT = 75, output burst b + rT = 75.
    #[test]
    fn worked_example() {
        let (arrival, service) = (bucket(5, 25), server(10, 10));
        assert_eq!(delay(&arrival, &service).unwrap(), ratio(25, 2).unwrap());
        assert_eq!(backlog(&arrival, &service).unwrap(), integer(75));
        assert_eq!(output(&arrival, &service).unwrap(), bucket(5, 75));
    }

    /// IETF integrated services flow (Le Boudec and Thiran, section 1.4.1, figure 1.8): arrivals min(M + pt, b + rt),
    /// rate-latency server. Delay: (M + (b - M)/(p - r) * (p - R)^+) / R + T. With M = 2, p = 12, b = 20, r = 3, R = 6,
    /// T = 4: (2 + 18/9 * 6) / 6 + 4 = 14/6 + 4 = 19/3. Backlog with (b - M)/(p - r) = 2 <= T: b + rT = 32.
    #[test]
    fn variable_bit_rate_flow() {
        let arrival = bucket(12, 2).minimum(&bucket(3, 20));
        assert_eq!(
            delay(&arrival, &server(6, 4)).unwrap(),
            ratio(19, 3).unwrap()
        );
        assert_eq!(backlog(&arrival, &server(6, 4)).unwrap(), integer(32));
    }

    #[test]
    fn overload_is_unbounded() {
        assert_eq!(delay(&bucket(11, 1), &server(10, 0)), Err(Unbounded));
        assert_eq!(
            backlog(&bucket(1, 1), &ServiceCurve::none()),
            Err(Unbounded)
        );
        // Exactly full is still bounded.
        assert_eq!(delay(&bucket(10, 20), &server(10, 3)).unwrap(), integer(5));
    }

    fn curves() -> impl Strategy<Value = (ArrivalCurve, ServiceCurve)> {
        let arrival = prop::collection::vec((0u32..8, 0u32..30), 1..4).prop_map(|v| {
            v.into_iter()
                .map(|(r, b)| bucket(r, b))
                .reduce(|a, b| a.minimum(&b))
                .unwrap()
        });
        let service = prop::collection::vec((8u32..16, 0u32..12), 1..4).prop_map(|v| {
            v.into_iter()
                .map(|(r, t)| server(r, t))
                .reduce(|a, b| a.maximum(&b))
                .unwrap()
        });
        (arrival, service)
    }

    proptest! {
        /// Against the definitions on a grid: the bound is reached nowhere from below by more than a step's growth.
        #[test]
        fn deviations_by_definition((arrival, service) in curves()) {
            let step = |n: u32| ratio(n, 4).unwrap();
            let (d, v) = (delay(&arrival, &service).unwrap(), backlog(&arrival, &service).unwrap());
            let mut grid_delay = service.time_for(&arrival.pieces()[0].burst).unwrap();
            let mut grid_backlog = arrival.pieces()[0].burst.clone();
            for n in 1..240 {
                let t = step(n);
                grid_delay = grid_delay.max(service.time_for(&arrival.at(&t)).unwrap() - &t);
                grid_backlog = grid_backlog.max(arrival.at(&t) - service.at(&t));
            }
            prop_assert!(grid_delay <= d && grid_backlog <= v);
            prop_assert!(d - grid_delay <= step(1) && v - grid_backlog <= integer(4));
        }

        #[test]
        fn more_traffic_is_never_better((arrival, service) in curves(), rate in 0u32..3, burst in 0u32..9) {
            let more = arrival.plus(&bucket(rate, burst));
            if let Ok(worse) = delay(&more, &service) {
                prop_assert!(worse >= delay(&arrival, &service).unwrap());
                prop_assert!(backlog(&more, &service).unwrap() >= backlog(&arrival, &service).unwrap());
            }
        }

        /// What leaves in any window: `sup_u arrival(t + u) - service(u)`, evaluated on a grid, is within the bound.
        #[test]
        fn output_covers_the_deconvolution((arrival, service) in curves(), t in 1u32..30) {
            let leaves = output(&arrival, &service).unwrap();
            let t = integer(t);
            for u in 0..160 {
                let u = ratio(u, 4).unwrap();
                prop_assert!(arrival.at(&(&t + &u)) - service.at(&u) <= leaves.at(&t));
            }
        }
    }
}
