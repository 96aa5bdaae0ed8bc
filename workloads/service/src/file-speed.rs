//! Writes a file and reads it over a session, block by block, and measures both.
//!
//! Gates: `files` (send). Arguments: `block` (2048), `count` (128). Spans: 1 is writing, 2 is reading.
#![no_std]
#![no_main]

use bulkhead_lib::file::{CREATE, Mount, READ, Result, TRUNCATE, WRITE};
use bulkhead_lib::gate::MessageBuffer;
use bulkhead_lib::{argument, marker, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match measure() {
        Ok(()) => 0,
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn measure() -> Result<()> {
    let block: usize = argument::value("block", 2048);
    let count: u64 = argument::value("count", 128);
    let mut buffer = MessageBuffer::new();
    let block = block.min(buffer.0.len());
    let mut mount = Mount::connect("files")?;
    let mut file = mount.open("speed", WRITE | CREATE | TRUNCATE)?;
    marker::span_begin(1);
    for number in 0..count {
        buffer.0[0] = number as u8;
        file.write(&buffer.0[..block])?;
    }
    file.commit()?;
    marker::span_end(1);
    file.close()?;
    let mut file = mount.open("speed", READ)?;
    // The first block is granted and cold.
    let mut right = file.read(&mut buffer.0[..block])? == block;
    marker::span_begin(2);
    for number in 1..count {
        right &= file.read(&mut buffer.0[..block])? == block && buffer.0[0] == number as u8;
    }
    marker::span_end(2);
    file.close()?;
    if right {
        Ok(())
    } else {
        Err(bulkhead_lib::common::status::Status::Corrupt)
    }
}
