//! A hostile client of any service: messages of random length, operation and content, as many as the credits allow.
//!
//! Gates: `service` (send). Arguments: `seed` (1), `messages` (5000).
#![no_std]
#![no_main]

use bulkhead_lib::gate::{MessageBuffer, SendGate};
use bulkhead_lib::{argument, println};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let service = SendGate::named("service");
    let mut random = Random::new(argument::value("seed", 1));
    let messages: u64 = argument::value("messages", 5000);
    let mut next = || random.next();
    let mut buffer = MessageBuffer::new();
    let mut answers = 0;
    for _ in 0..messages {
        for word in buffer.0[..256].chunks_exact_mut(8) {
            let value = match next() % 4 {
                0 => next(),
                1 => next() % 16,
                2 => u64::MAX,
                _ => u64::from_le_bytes(*b"a/b/c/d/"),
            };
            word.copy_from_slice(&value.to_le_bytes());
        }
        // Half of them carry an operation that may exist.
        if next() % 2 == 0 {
            buffer.0[..8].copy_from_slice(&(next() % 12).to_le_bytes());
        }
        let length = match next() % 3 {
            0 => next() % 257,
            1 => 8 * (next() % 33),
            _ => 256,
        };
        // The unit refuses a message that is too long for the slot; everything else must be answered.
        if service.call(&buffer.0[..length as usize]).is_ok() {
            answers += 1;
        }
    }
    println!("{answers} of {messages} answered");
    0
}
