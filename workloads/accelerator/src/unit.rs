//! A client's part of a streaming unit in the description: gates and memory.
//!
//! Gates: `requests` (receive), `input` (memory, read), `output` (memory, write; may be missing), `next` (send to the next
//! unit; may be missing). On a tile with a streaming unit this program is not executed; on a tile with a hart it reports
//! the mistake.
#![no_std]
#![no_main]

bulkhead_lib::main!(main);

fn main() -> u64 {
    panic!("this tile has a hart and no streaming unit");
}
