//! A server that needs a fixed time for each request and takes requests of important clients first.
//!
//! Gates: `high` and `low` (receive). Arguments: `service` in nanoseconds (1000000): everything that a request costs the server, from the
//! check for it to the check for the next one. It computes for that time, less whatever the last request took beyond its computation. It
//! never ends.
#![no_std]
#![no_main]

use bulkhead_lib::gate::{MessageBuffer, ReceiveGate};
use bulkhead_lib::{argument, environment, println, time};

bulkhead_lib::main!(main);

/// Steps of a generator that take well below this many cycles on every platform.
const STEPS: u64 = 64;
const STEPS_CYCLES: u64 = 4096;

/// Computes for this many cycles, starting at `start`.
fn work(start: u64, cycles: u64, state: &mut u64) {
    let passed = || time::cycle().wrapping_sub(start);
    while passed() + STEPS_CYCLES < cycles {
        for _ in 0..STEPS {
            *state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        }
        *state = core::hint::black_box(*state);
    }
    while passed() < cycles {}
}

fn main() -> u64 {
    let high = ReceiveGate::named("high");
    let low = ReceiveGate::named("low");
    let service: u64 = argument::value("service", 1_000_000);
    let frequency = environment().frequency;
    let cycles = (u128::from(service) * u128::from(frequency) / 1_000_000_000) as u64;
    let answer = MessageBuffer::new();
    let mut state = 1;
    // What the last request took beyond its computation, and when that was due to end.
    let mut beyond = 0;
    let mut computed = None;
    loop {
        let start = time::cycle();
        if let Some(end) = computed.take() {
            beyond = start.wrapping_sub(end);
        }
        let request = match high.fetch() {
            Ok(None) => low.fetch(),
            other => other,
        };
        let result = match request {
            Ok(Some(request)) => {
                let computing = cycles.saturating_sub(beyond);
                work(start, computing, &mut state);
                computed = Some(start.wrapping_add(computing));
                request.reply(&answer.0[..1])
            }
            Ok(None) => {
                time::wait_any();
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            println!("no reply possible: {error:?}");
            return 1;
        }
    }
}
