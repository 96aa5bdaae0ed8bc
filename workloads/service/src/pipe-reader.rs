//! Reads a stream from a pipe to its end and measures the time.
//!
//! Gates: `pipe` (receive). Arguments: `bytes` that must come (100000), `step` (0: examines pieces in place; otherwise bytes of a
//! read, whose contents are compared).
#![no_std]
#![no_main]

extern crate alloc;

use bulkhead_lib::pipe::{Reader, Result};
use bulkhead_lib::{argument, marker, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match read() {
        Ok(true) => 0,
        Ok(false) => {
            println!("not what was written");
            1
        }
        Err(status) => {
            println!("the pipe: {status}");
            1
        }
    }
}

fn read() -> Result<bool> {
    let bytes: usize = argument::value("bytes", 100_000);
    let step: usize = argument::value("step", 0);
    let mut pipe = Reader::named("pipe");
    let mut data = alloc::vec![0; step];
    let mut done = 0;
    let mut right = true;
    pipe.peek()?;
    marker::span_begin(1);
    loop {
        if step == 0 {
            let length = pipe.peek()?.len();
            if length == 0 {
                break;
            }
            pipe.consume(length);
            done += length;
        } else {
            let length = match pipe.read(&mut data) {
                Ok(length) => length,
                Err(status) => {
                    println!("{done} bytes came");
                    return Err(status);
                }
            };
            if length == 0 {
                break;
            }
            right &= (0..length).all(|index| data[index] == (done + index) as u8);
            done += length;
        }
    }
    marker::span_end(1);
    Ok(right && done == bytes)
}
