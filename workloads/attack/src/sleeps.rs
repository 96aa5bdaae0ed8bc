//! A hostile program that lets the unit's own sleep command stop its hart, for times of all lengths, on a tile that it shares: an honest one
//! waits through TileMux there.
//!
//! Arguments: `seed` (1).
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::NO_ENDPOINT;
use bulkhead_lib::hal::dtu;
use bulkhead_lib::{argument, println};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut random = Random::new(argument::value("seed", 1));
    let mut sleeps = 0u64;
    loop {
        let endpoint = match random.below(4) {
            // Somebody else's, or nobody's.
            0 => random.below(200) as u16,
            _ => NO_ENDPOINT,
        };
        // Nanoseconds: up to three jobs of its neighbour, or longer than the system lasts.
        let time = match random.below(8) {
            0 => u64::MAX >> random.below(8),
            _ => 1 + random.below(600_000),
        };
        dtu::sleep(endpoint, time);
        sleeps += 1;
        if sleeps.is_multiple_of(10) {
            println!("{sleeps} sleeps of the hart");
        }
    }
}
