//! Network calculus and interference in memory banks.
//!
//! Knows which arguments each analysis takes; documentation for users is in `package/bulkhead/traffic.py`.

use crate::convert::{self, each, naturals, run};
use crate::errors;
use bulkhead_analysis::exact::{Exact, integer};
use bulkhead_analysis::network_calculus::{
    Analysis, ArrivalCurve, Flow, Multiplexing, Network, NetworkError, RateLatency, ServiceCurve,
    TokenBucket, backlog, delay, output,
};
use bulkhead_analysis::schedulability::Time;
use bulkhead_analysis::schedulability::memory_banks::{self, Core, Driven, Memory, MemoryTask};
use num_bigint::BigInt;
use pyo3::prelude::*;

/// Numerator and denominator.
type Fraction = (BigInt, BigInt);

fn fraction(value: Exact) -> Fraction {
    value.into_raw()
}

/// Pairs of numbers that are not negative.
fn curve(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<(Exact, Exact)>> {
    let pieces = each(value, what, |position, piece| {
        let what = format!("{what}[{position}]");
        let parts = each(piece, &what, |_, part| {
            let part = convert::rational(part, &what)?;
            if part < integer(0) {
                return Err(errors::task(format!("{what} must not be negative")));
            }
            Ok(part)
        })?;
        match <[Exact; 2]>::try_from(parts) {
            Ok([first, second]) => Ok((first, second)),
            Err(parts) => Err(errors::task(format!(
                "{what} must have two numbers, not {}",
                parts.len()
            ))),
        }
    })?;
    if pieces.is_empty() {
        return Err(errors::task(format!("{what} is empty")));
    }
    Ok(pieces)
}

/// The minimum of token buckets (rate, burst).
fn arrival(value: &Bound<'_, PyAny>, what: &str) -> PyResult<ArrivalCurve> {
    let buckets = curve(value, what)?.into_iter();
    let curves = buckets.map(|(rate, burst)| ArrivalCurve::from(TokenBucket::new(rate, burst)));
    let all = curves.reduce(|a, b| a.minimum(&b));
    Ok(all.unwrap_or_else(ArrivalCurve::zero))
}

/// The maximum of rate-latency curves (rate, latency).
fn service(value: &Bound<'_, PyAny>, what: &str) -> PyResult<ServiceCurve> {
    let pieces = curve(value, what)?.into_iter();
    let curves = pieces.map(|(rate, latency)| ServiceCurve::from(RateLatency::new(rate, latency)));
    Ok(curves.fold(ServiceCurve::none(), |all, one| all.maximum(&one)))
}

/// Delay, backlog and what leaves (token buckets); `None` if the flow may send more than is served.
#[pyfunction]
#[allow(clippy::type_complexity)]
fn network_bounds(
    py: Python<'_>,
    flow: &Bound<'_, PyAny>,
    server: &Bound<'_, PyAny>,
) -> PyResult<Option<(Fraction, Fraction, Vec<(Fraction, Fraction)>)>> {
    let (flow, server) = (arrival(flow, "flow")?, service(server, "server")?);
    run(py, errors::task, || {
        let bounds = (
            delay(&flow, &server),
            backlog(&flow, &server),
            output(&flow, &server),
        );
        Ok::<_, String>(match bounds {
            (Ok(delay), Ok(backlog), Ok(output)) => {
                let pieces = output.pieces().iter();
                let pieces = pieces.map(|p| (fraction(p.rate.clone()), fraction(p.burst.clone())));
                Some((fraction(delay), fraction(backlog), pieces.collect()))
            }
            _ => None,
        })
    })
}

/// Analyses in the order in which Python gets them: (name, whether the order of service is FIFO).
const ANALYSES: [(Analysis, Multiplexing); 6] = [
    (Analysis::TotalFlow, Multiplexing::Fifo),
    (Analysis::SeparateFlow, Multiplexing::Arbitrary),
    (Analysis::TotalFlow, Multiplexing::Arbitrary),
    (Analysis::SeparateFlow, Multiplexing::Fifo),
    (Analysis::PayMultiplexingOnce, Multiplexing::Arbitrary),
    (Analysis::LeastUpperDelayBound, Multiplexing::Fifo),
];

/// Bounds of each flow by each of [`ANALYSES`], and why some have none; flows are pairs of a curve and a path.
#[pyfunction]
#[allow(clippy::type_complexity)]
fn network_tandem(
    py: Python<'_>,
    servers: &Bound<'_, PyAny>,
    flows: &Bound<'_, PyAny>,
) -> PyResult<Vec<(Vec<Option<Fraction>>, Option<String>)>> {
    let servers = each(servers, "servers", |position, server| {
        service(server, &format!("servers[{position}]"))
    })?;
    let flows = each(flows, "flows", |position, flow| {
        let what = format!("flows[{position}]");
        let sends = arrival(&flow.getattr("sends")?, &format!("{what}.sends"))?;
        let path = naturals(&flow.getattr("path")?, &format!("{what}.path"))?;
        Ok(Flow {
            arrival: sends,
            path: path
                .into_iter()
                .map(|server| usize::try_from(server).unwrap_or(usize::MAX))
                .collect(),
        })
    })?;
    let network = Network { servers, flows };
    run(py, errors::task, || {
        let flows = 0..network.flows.len();
        let bounds = flows.map(|flow| {
            let mut reason = None;
            let all = ANALYSES.map(|(analysis, order)| network.bound(flow, analysis, order));
            let all = all.into_iter().map(|bound| match bound {
                Ok(delay) => Ok(Some(fraction(delay))),
                Err(error @ NetworkError::Overloaded { .. }) => {
                    reason = Some(error.to_string());
                    Ok(None)
                }
                Err(error) => Err(error),
            });
            let all = all.collect::<Result<_, _>>()?;
            Ok::<_, NetworkError>((all, reason))
        });
        bounds.collect::<Result<_, _>>()
    })
}

/// Response times of all cores. `driven`: 0 the lesser of both bounds, 1 by requests alone.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
fn memory_bank_response_times(
    py: Python<'_>,
    banks: &Bound<'_, PyAny>,
    open: &Bound<'_, PyAny>,
    transfer: &Bound<'_, PyAny>,
    overtaking: &Bound<'_, PyAny>,
    cores: &Bound<'_, PyAny>,
    driven: u8,
) -> PyResult<Vec<Vec<Option<Time>>>> {
    let limit = bulkhead_analysis::schedulability::task::LIMIT;
    let small =
        |value: &Bound<'_, PyAny>, what: &str| convert::natural(value, &|| what.to_owned(), limit);
    let memory = Memory {
        banks: convert::index(banks, "banks")?,
        open: small(open, "open")?,
        transfer: small(transfer, "transfer")?,
        overtaking: small(overtaking, "overtaking")?,
    };
    let cores = each(cores, "cores", |position, core| {
        let what = format!("cores[{position}]");
        let banks = each(
            &core.getattr("banks")?,
            &format!("{what}.banks"),
            |_, bank| convert::index(bank, &format!("{what}.banks")),
        )?;
        let accesses = naturals(&core.getattr("accesses")?, &format!("{what}.accesses"))?;
        let tasks = convert::tasks(&core.getattr("tasks")?)?;
        if accesses.len() != tasks.len() {
            return Err(errors::task(format!(
                "{what} has {} tasks, but accesses for {}",
                tasks.len(),
                accesses.len()
            )));
        }
        let both = tasks.into_iter().zip(accesses);
        Ok(Core {
            banks,
            tasks: both
                .map(|(task, accesses)| MemoryTask { task, accesses })
                .collect(),
        })
    })?;
    run(py, errors::task, || match driven {
        0 => memory_banks::analyse(&memory, &cores),
        _ => (0..cores.len())
            .map(|core| memory_banks::response_times(&memory, &cores, core, Driven::Request))
            .collect(),
    })
}

/// Adds the functions to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(network_bounds, module)?)?;
    module.add_function(wrap_pyfunction!(network_tandem, module)?)?;
    module.add_function(wrap_pyfunction!(memory_bank_response_times, module)?)
}
