//! Prints texts of the greatest length without a pause: TileMux reads each byte in machine mode, whether or not the kernel has room for the
//! text.
//!
//! A line counts the texts so far. The program never ends by itself.
#![no_std]
#![no_main]

use bulkhead_lib::abi::tilemux::{Ecall, PRINT_TEXT};
use bulkhead_lib::hal::user;
use bulkhead_lib::println;

bulkhead_lib::main!(main);

/// A line.
static TEXT: [u8; PRINT_TEXT] = {
    let mut text = [b'x'; PRINT_TEXT];
    text[PRINT_TEXT - 1] = b'\n';
    text
};

fn main() -> u64 {
    let mut texts = 0u64;
    loop {
        for _ in 0..500 {
            user::ecall(Ecall::Print, TEXT.as_ptr() as u64, PRINT_TEXT as u64);
        }
        texts += 500;
        println!("{texts} texts");
    }
}
