//! A receiver that takes one message and ends without a reply.
//!
//! Gates: `input` (receive).
#![no_std]
#![no_main]

use bulkhead_lib::gate::ReceiveGate;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    match input.receive() {
        Ok(message) => {
            // The slot stays taken, and the right to reply unused.
            core::mem::forget(message);
            0
        }
        Err(_) => 1,
    }
}
