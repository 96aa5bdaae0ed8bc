//! Calls TileMux as often as it can: text, yields, translations, waits that end at once.
#![no_std]
#![no_main]

use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::hal::user;
use bulkhead_lib::println;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut round = 0u64;
    loop {
        println!("round {round}");
        user::ecall(Ecall::Yield, 0, 0);
        user::ecall(Ecall::Translate, round.wrapping_mul(0x1_0001_1000), 3);
        user::ecall(Ecall::Wait, round & 0xFF, 1);
        user::ecall(Ecall::Print, round.wrapping_mul(0x1_0001_1000), round);
        round += 1;
    }
}
