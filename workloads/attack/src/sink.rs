//! Takes messages and gives credits back, and ignores failures.
//!
//! Gates: `input` (receive). It never ends.
#![no_std]
#![no_main]

use bulkhead_lib::gate::ReceiveGate;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    loop {
        if let Ok(message) = input.receive() {
            // A sender that has no room for its answer harms only itself.
            let _ = message.finish();
        }
    }
}
