//! The lying writer of a pipe: it sends messages of all lengths with any mark, and places anywhere in the region and outside it, with and
//! without an end.
//!
//! Gates: `pipe` (send), `pipe-region` (memory, may be missing). Arguments: `seed` (1), `messages` (400).
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::DtuError;
use bulkhead_lib::gate::{MessageBuffer, ReceiveGate, SendGate};
use bulkhead_lib::{argument, println, time};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut random = Random::new(argument::value("seed", 1));
    let messages: u64 = argument::value("messages", 400);
    let gate = SendGate::named("pipe");
    let answers = ReceiveGate::named("answers");
    let mut buffer = MessageBuffer::new();
    let mut sent = 0;
    for _ in 0..messages {
        // Usually a place as the library writes it: position and number of bytes.
        let near = [0, 4096, 24 << 10, u64::MAX - 4095, u64::MAX];
        let mut number = || near[random.below(5) as usize].wrapping_add(random.below(64));
        for word in buffer.0[..64].chunks_exact_mut(8) {
            word.copy_from_slice(&number().to_le_bytes());
        }
        let length = [0, 8, 16, 17, 480][random.below(5) as usize];
        // The marks are large numbers; a call's label is never one of them.
        let label = u64::MAX - random.below(5);
        loop {
            while let Ok(Some(answer)) = answers.fetch() {
                answer.acknowledge();
            }
            match gate.send_with_reply(&buffer.0[..length], &answers, label) {
                Err(DtuError::NoCredits) => time::sleep_until(time::now() + 1000),
                Err(DtuError::BadSize | DtuError::NoSpace) => break,
                Err(_) => {
                    println!("{sent} sent");
                    return 0;
                }
                Ok(()) => {
                    sent += 1;
                    break;
                }
            }
        }
    }
    println!("{sent} sent");
    0
}
