//! Workload 3, messages: sends messages of the largest size to another tile and waits for each reply.
//!
//! Gates: `sink` (send; the receive gate needs slots of 2 KiB). Arguments: those of `role`; `messages` in each run (16).
#![no_std]
#![no_main]

mod role;

use bulkhead_lib::abi::dtu::MESSAGE_MAX;
use bulkhead_lib::abi::message::HEADER_SIZE;
use bulkhead_lib::argument;
use bulkhead_lib::gate::{MessageBuffer, SendGate};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let sink = SendGate::named("sink");
    let messages: u64 = argument::value("messages", 16);
    let buffer = MessageBuffer::new();
    role::run(|| {
        for _ in 0..messages {
            match sink.call(&buffer.0[..MESSAGE_MAX - HEADER_SIZE]) {
                Ok(reply) => drop(reply),
                Err(error) => panic!("the sink does not answer: {error:?}"),
            }
        }
    })
}
