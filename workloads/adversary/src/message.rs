//! A hog of a receiver's time: sends messages of the largest size as fast as its credits allow, for ever.
//!
//! Gates: `target` (send). Arguments: `size` (64).
#![no_std]
#![no_main]

use bulkhead_lib::argument;
use bulkhead_lib::gate::{MessageBuffer, SendGate};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let target = SendGate::named("target");
    let size: usize = argument::value("size", 64);
    let buffer = MessageBuffer::new();
    let message = &buffer.0[..size.min(buffer.0.len())];
    loop {
        // Without a credit it tries again at once.
        let _ = target.send(message);
    }
}
