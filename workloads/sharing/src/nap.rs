//! Sleeps and wakes up as often as it can, for ever: an activity that shares its tile is displaced each time. While awake it takes
//! its messages, so others may come; none of them wakes it.
//!
//! Gates: `input` (receive), if there is one. Arguments: `nap` in nanoseconds (1000).
#![no_std]
#![no_main]

use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{argument, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let input = ReceiveGate::find("input");
    let nap: u64 = argument::value("nap", 1_000);
    loop {
        time::sleep_until(time::now() + nap);
        while let Some(Ok(Some(message))) = input.as_ref().map(ReceiveGate::fetch) {
            message.acknowledge();
        }
    }
}
