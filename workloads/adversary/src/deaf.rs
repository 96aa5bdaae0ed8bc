//! A receiver that takes one message and ends without a reply.
//!
//! Gates: `input` (receive). Arguments: `delay` (0 ns) before it ends.
#![no_std]
#![no_main]

use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{argument, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    match input.receive() {
        Ok(message) => {
            // The slot stays taken, and the right to reply unused.
            core::mem::forget(message);
            time::sleep_until(time::now() + argument::time("delay", 0));
            0
        }
        Err(_) => 1,
    }
}
