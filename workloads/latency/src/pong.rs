//! The answering end of the round trip: replies to each message with as many bytes as it had.
//!
//! Gates: `input` (receive). It never ends.
#![no_std]
#![no_main]

use bulkhead_lib::gate::{MessageBuffer, ReceiveGate};
use bulkhead_lib::println;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    let buffer = MessageBuffer::new();
    loop {
        let result = input.receive().and_then(|message| {
            let length = message.payload().len();
            message.reply(&buffer.0[..length])
        });
        if let Err(error) = result {
            println!("no reply possible: {error:?}");
            return 1;
        }
    }
}
