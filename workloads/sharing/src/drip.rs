//! Sends single messages at chosen moments and never waits for an answer: the worst that a sender can do to the running activity on the
//! receiver's tile, as each message comes alone and so is announced alone.
//!
//! Gates: `target` (send). Arguments in nanoseconds: `period` (1000000), `offset` of the first message from the start of a
//! period (50000), `pause` between messages (2000); `burst`: messages in each period (16).
#![no_std]
#![no_main]

use bulkhead_lib::gate::{MessageBuffer, SendGate};
use bulkhead_lib::{argument, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let target = SendGate::named("target");
    let period: u64 = argument::value("period", 1_000_000);
    let offset: u64 = argument::value("offset", 50_000);
    let pause: u64 = argument::value("pause", 2_000);
    let burst: u64 = argument::value("burst", 16);
    let buffer = MessageBuffer::new();
    loop {
        let start = (time::now() / period + 1) * period + offset;
        for number in 0..burst {
            time::sleep_until(start + number * pause);
            // Without a credit the message is lost.
            let _ = target.send(&buffer.0[..1]);
        }
    }
}
