//! A client of a service that does not answer: gives up, and continues or ends with its request outstanding.
//!
//! Gates: `service` (send, two credits to continue). Arguments: `patience` (100us; 0: sends a request and
//! ends).
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::client::Client;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::{argument, println, time};
use protocol::Keep;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let patience = argument::time("patience", 100_000);
    let mut service = Client::named("service");
    if patience == 0 {
        let outcome = service.call_until(&Keep {}, time::now());
        println!("gone");
        return u64::from(outcome != Err(Status::Timeout));
    }
    // The last request that the service keeps is never answered; the one before is answered when the next one
    // comes.
    time::sleep_until(time::now() + patience);
    let outcome = service.call_until(&Keep {}, time::now() + patience);
    if outcome != Err(Status::Timeout) || service.null().is_err() {
        println!("{outcome:?}");
        return 1;
    }
    println!("no answer in {patience} ns, and the service lives");
    0
}
