//! A client that keeps a server busy: one long request after the other, for ever; it may lie about them.
//!
//! Gates: `service` (send). Arguments: `time` of a request (500us), `estimate` that it gives the service (the same), `pause` after
//! each (0), `start`: when it begins, counted from reset (0).
#![no_std]
#![no_main]

mod work;

use bulkhead_lib::gate::SendGate;
use bulkhead_lib::{argument, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let service = SendGate::named("service");
    let cost: u64 = argument::time("time", 500_000);
    let estimate: u64 = argument::time("estimate", cost);
    let pause: u64 = argument::time("pause", 0);
    time::sleep_until(argument::time("start", 0));
    let request = work::request(cost, estimate);
    loop {
        // Whether it was refused or served, it asks again.
        let _ = service.call(&request.0[..work::BYTES]);
        if pause > 0 {
            time::sleep_until(time::now() + pause);
        }
    }
}
