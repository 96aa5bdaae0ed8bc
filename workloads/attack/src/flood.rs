//! Fills the buffer of a receiver: asks a server as fast as its credits allow, for ever, and reads no answer.
//!
//! Gates: `service` (send). Arguments: `time` of a request (20us), `retry`: pause after a message that could not be sent (1us), `start`:
//! when it begins, counted from reset (0).
#![no_std]
#![no_main]

mod work;

use bulkhead_lib::gate::SendGate;
use bulkhead_lib::{argument, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let service = SendGate::named("service");
    let cost: u64 = argument::time("time", 20_000);
    let retry: u64 = argument::time("retry", 1000);
    time::sleep_until(argument::time("start", 0));
    let request = work::request(cost, cost);
    loop {
        if service.send(&request.0[..work::BYTES]).is_err() {
            // No credit, or no room. The pause is short compared with a request, so a free slot is taken at once.
            let until = time::now() + retry;
            while time::now() < until {}
        }
    }
}
