//! The asking end of the round trip: sends a small message, waits for the reply, over and over.
//!
//! Gates: `pong` (send). Arguments: `runs` (1000), `warmup` (0: the first, cold runs count), `bytes` of the message (1).
#![no_std]
#![no_main]

use bulkhead_lib::gate::{MessageBuffer, SendGate};
use bulkhead_lib::{argument, marker, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let pong = SendGate::named("pong");
    let runs: u64 = argument::value("runs", 1000);
    let warmup: u64 = argument::value("warmup", 0);
    let size: usize = argument::value("bytes", 1);
    let buffer = MessageBuffer::new();
    let Some(message) = buffer.0.get(..size) else {
        println!("a message of {size} bytes is too large");
        return 1;
    };
    for run in 0..warmup + runs {
        if run == warmup {
            marker::measure_begin(runs);
        }
        marker::span_begin(run);
        match pong.call(message) {
            Ok(reply) => drop(reply),
            Err(error) => {
                println!("no reply: {error:?}");
                return 1;
            }
        }
        marker::span_end(run);
    }
    marker::measure_end(runs);
    0
}
