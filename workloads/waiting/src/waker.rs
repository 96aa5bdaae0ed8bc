//! Sends a message now and then; between messages its receiver has to wait.
//!
//! Gates: `waiter` (send). Arguments: `messages` (120), `pause` in nanoseconds between an answer and the next message (100000).
#![no_std]
#![no_main]

use bulkhead_lib::gate::{MessageBuffer, SendGate};
use bulkhead_lib::{argument, println, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let waiter = SendGate::named("waiter");
    let messages: u64 = argument::value("messages", 120);
    let pause: u64 = argument::value("pause", 100_000);
    let buffer = MessageBuffer::new();
    for _ in 0..messages {
        time::sleep_until(time::now() + pause);
        match waiter.call(&buffer.0[..1]) {
            Ok(reply) => drop(reply),
            Err(error) => {
                println!("no reply: {error:?}");
                return 1;
            }
        }
    }
    0
}
