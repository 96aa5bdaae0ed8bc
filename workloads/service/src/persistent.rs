//! A client that continues when its service is gone: it waits until it can open a new session, and asks again.
//!
//! Sessions: `service`. Arguments: `stops` (0): how often it tells the service to stop; `runs` (5) after each; `losses` (0): how often it
//! continues when another client has stopped the service, or the service was not available in time; `until` (0us): keeps its last session
//! until that time after reset, and asks once more. A span lasts while it has that session.
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::client::Client;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::session::Session;
use bulkhead_lib::{argument, marker, println, time};
use protocol::{Add, Keep};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let stops: u64 = argument::value("stops", 0);
    let runs: u64 = argument::value("runs", 5);
    let mut losses: u64 = argument::value("losses", 0);
    for stop in 0..=stops {
        loop {
            match ask(runs) {
                Ok(()) => break,
                Err(Status::Closed) if losses > 0 => losses -= 1,
                Err(status) => {
                    println!("after {stop} stops: {status}");
                    return 1;
                }
            }
        }
        if stop < stops {
            let told = Client::named("service").call(&Keep {});
            println!("told to stop: {:?}", told.err());
        }
    }
    let until = argument::time("until", 0);
    if until > 0 {
        marker::span_begin(stops);
        time::sleep_until(until);
        if let Err(status) = add(1) {
            println!("at the end: {status}");
            return 1;
        }
        marker::span_end(stops);
    }
    println!("{} sums in {} sessions", runs * (stops + 1), stops + 1);
    0
}

fn ask(runs: u64) -> Result<(), Status> {
    // The earlier session is gone with its service.
    Session::open("service", 0, 20_000_000)?;
    add(runs)
}

fn add(runs: u64) -> Result<(), Status> {
    let mut service = Client::named("service");
    for run in 0..runs {
        let sum = service.call(&Add {
            first: run,
            second: 7,
        })?;
        if sum != run + 7 {
            return Err(Status::BadReply);
        }
    }
    Ok(())
}
