//! Not an adversary but a victim: it computes with integers and floating-point numbers, all in registers, and checks the
//! result of each round against the first. If its registers or memory are changed, it ends with 1.
//!
//! Arguments: `rounds` (200).
#![no_std]
#![no_main]

use bulkhead_lib::{argument, marker, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let rounds: u64 = argument::value("rounds", 200);
    let first = round(core::hint::black_box(1));
    for number in 0..rounds {
        let again = round(core::hint::black_box(1));
        if again != first {
            println!("round {number}: {again:?} instead of {first:?}");
            return 1;
        }
    }
    marker::check(first.0 ^ first.1.to_bits());
    0
}

/// A logistic map beside an integer generator: every bit of every step matters for the result.
fn round(seed: u64) -> (u64, f64) {
    let (mut integer, mut x, mut y) = (seed, 0.3, 0.6);
    for _ in 0..2000 {
        integer = integer
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        x = 3.9 * x * (1.0 - x);
        y = 3.8 * y * (1.0 - y);
    }
    (integer, x + y)
}
