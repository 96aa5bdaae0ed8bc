//! Every attack that an application can mount with its own resources: `bulkhead audit` replaces applications with
//! this program.
//!
//! Argument `plan`: see `attacker`.
#![no_std]
#![no_main]

extern crate alloc;

mod attacker;
mod rights;

use attacker::Device;
use bulkhead_lib::time;
use bulkhead_random::Random;

bulkhead_lib::main!(main);

/// It has nothing but memory and gates.
struct Nothing;

impl Device for Nothing {
    fn attack(&mut self, _: u64, _: &mut Random, end: u64) {
        time::sleep_until(end);
    }
}

fn main() -> u64 {
    attacker::run(&mut Nothing)
}
