//! A manager that wants more of a server's slots than a gate has: it activates the gate of an application below it at several endpoints at
//! once, and again after each `Deactivate`, each time with all credits, and sends through all of them as much as the unit allows. Half of
//! the endpoints are those of a copy of the gate. It starts nothing.
//!
//! Needs a send gate to `service/example` as its first import. Arguments: `time` of a request (20us).
#![no_std]
#![no_main]

mod work;

use bulkhead_lib::abi::dtu::{DtuError, NO_ENDPOINT};
use bulkhead_lib::abi::syscall::{SEL_ACTIVITY, SEL_FREE, SEL_SESSIONS, Syscall};
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::hal::{dtu, user};
use bulkhead_lib::{argument, println, syscall};

bulkhead_lib::main!(main);

/// The gate, and a copy of it.
const GATES: [u16; 2] = [SEL_SESSIONS, SEL_FREE + 100];
/// Endpoints at one time.
const ENDPOINTS: usize = 6;
/// Rounds between two lines.
const ROUNDS: u64 = 20;

/// Sends until the unit refuses. Returns how many messages were stored.
fn fill(endpoint: u16, request: &[u8]) -> u64 {
    let mut sent = 0;
    loop {
        match dtu::send(endpoint, request, NO_ENDPOINT, 0) {
            Ok(()) => sent += 1,
            Err(DtuError::TranslationFault) => {
                user::ecall(Ecall::Translate, request.as_ptr() as u64, 1);
            }
            Err(_) => return sent,
        }
    }
}

fn main() -> u64 {
    let cost: u64 = argument::time("time", 20_000);
    let request = work::request(cost, cost);
    let copy = Syscall::Delegate {
        activity: SEL_ACTIVITY,
        source: GATES[0],
        target: GATES[1],
    };
    if let Err(error) = syscall::call(&copy) {
        println!("no gate: {error:?}");
        return 1;
    }
    let (mut stored, mut active) = (0, 0u64);
    for round in 1u64.. {
        let mut endpoints = [None; ENDPOINTS];
        for (place, gate) in endpoints.iter_mut().zip(GATES.into_iter().cycle()) {
            if let Ok((endpoint, _)) = syscall::activate(gate) {
                *place = Some((gate, endpoint));
                active += 1;
                stored += fill(endpoint, &request.0[..work::BYTES]);
            }
        }
        for (gate, endpoint) in endpoints.into_iter().flatten() {
            let _ = syscall::call(&Syscall::Deactivate { gate, endpoint });
        }
        if round.is_multiple_of(ROUNDS) {
            println!("{stored} messages through {active} endpoints");
        }
    }
    0
}
