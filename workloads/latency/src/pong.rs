//! The answering end of the round trip: replies to each message.
//!
//! Gates: `input` (receive). Arguments: `bytes` of the reply (1). It never ends.
#![no_std]
#![no_main]

use bulkhead_lib::gate::{MessageBuffer, ReceiveGate};
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    let size: usize = argument::value("bytes", 1);
    let buffer = MessageBuffer::new();
    let Some(answer) = buffer.0.get(..size) else {
        println!("a reply of {size} bytes is too large");
        return 1;
    };
    loop {
        let result = input.receive().and_then(|message| message.reply(answer));
        if let Err(error) = result {
            println!("no reply possible: {error:?}");
            return 1;
        }
    }
}
