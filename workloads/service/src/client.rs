//! A client of the example service: makes requests over and over, and measures them.
//!
//! Gates: `service` (send). Arguments: `runs` (1000), `request` (`null`, `add` or `work`), `time` and `estimate` of work
//! (0; the same), `pause` between requests (0), `refused` (0: how many requests may be refused, because they are too long or because
//! the service does not know them).
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::client::Client;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::{argument, marker, println};
use protocol::{Add, Work};

bulkhead_lib::main!(main);

#[derive(Clone, Copy)]
enum Kind {
    Null,
    Add,
    Work,
}

fn main() -> u64 {
    let mut service = Client::named("service");
    let runs: u64 = argument::value("runs", 1000);
    let kind = match argument::text("request") {
        None | Some("null") => Kind::Null,
        Some("add") => Kind::Add,
        Some("work") => Kind::Work,
        Some(other) => panic!("there is no request `{other}`"),
    };
    let time: u64 = argument::time("time", 0);
    let estimate: u64 = argument::time("estimate", time);
    let pause: u64 = argument::time("pause", 0);
    let allowed: u64 = argument::value("refused", 0);
    let mut refused = 0;
    for run in 0..runs {
        marker::span_begin(run);
        let outcome = match kind {
            Kind::Null => service.null(),
            Kind::Add => match service.call(&Add {
                first: run,
                second: 5,
            }) {
                Ok(sum) if sum == run + 5 => Ok(()),
                Ok(sum) => panic!("{run} + 5 = {sum}"),
                Err(status) => Err(status),
            },
            Kind::Work => service.call(&Work { time, estimate }).map(|_| ()),
        };
        marker::span_end(run);
        match outcome {
            Ok(()) => {}
            Err(Status::TooLong) => refused += 1,
            Err(Status::UnknownOperation) => {
                if refused == 0 {
                    println!("request {run}: {}", Status::UnknownOperation);
                }
                refused += 1;
            }
            Err(status) => {
                println!("request {run}: {status}");
                return 1;
            }
        }
        if pause > 0 {
            bulkhead_lib::time::sleep_until(bulkhead_lib::time::now() + pause);
        }
    }
    if refused > 0 {
        println!("{refused} of {runs} refused");
    }
    if refused > allowed { 1 } else { 0 }
}
