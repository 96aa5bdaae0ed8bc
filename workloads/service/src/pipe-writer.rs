//! Writes a stream into a pipe.
//!
//! Gates: `pipe` (send). Arguments: `bytes` (100000), `step` (0: whole pieces without a copy; otherwise bytes of a write),
//! `fail` (none): it panics after this many bytes.
#![no_std]
#![no_main]

extern crate alloc;

use bulkhead_lib::pipe::{Result, Writer};
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match write() {
        Ok(()) => 0,
        Err(status) => {
            println!("the pipe: {status}");
            1
        }
    }
}

fn write() -> Result<()> {
    let bytes: usize = argument::value("bytes", 100_000);
    let step: usize = argument::value("step", 0);
    let mut pipe = Writer::named("pipe");
    let mut done = 0;
    let mut data = alloc::vec![0; step];
    let fail: usize = argument::value("fail", usize::MAX);
    while done < bytes {
        if done >= fail {
            panic!("after {done} bytes");
        }
        if step == 0 {
            let length = pipe.piece().min(bytes - done);
            // The first byte of each piece identifies it; filling the whole piece would measure the filling.
            pipe.space()?[0] = done as u8;
            pipe.send(length)?;
            done += length;
        } else {
            let length = step.min(bytes - done);
            for (index, byte) in data[..length].iter_mut().enumerate() {
                *byte = (done + index) as u8;
            }
            pipe.write(&data[..length])?;
            done += length;
        }
    }
    pipe.close()
}
