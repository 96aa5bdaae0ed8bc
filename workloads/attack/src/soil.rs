//! A client of a pager that stores to each line of its heap, over and over: a pager that takes the pages back must have all lines
//! written back.
//!
//! Arguments: `pages` (64). It prints one line after it has done so ten times.
#![no_std]
#![no_main]

use bulkhead_lib::hal::user;
use bulkhead_lib::{argument, environment, println};

bulkhead_lib::main!(main);

const PAGE: u64 = 4096;
const LINE: usize = 64;

fn main() -> u64 {
    let pages: u64 = argument::value("pages", 64);
    let begin = environment().heap_start.next_multiple_of(PAGE);
    let heap = user::pages(begin, pages * PAGE);
    for round in 0u8.. {
        for line in heap.chunks_mut(LINE) {
            line[0] = round;
            core::hint::black_box(&line[0]);
        }
        if round == 10 {
            println!("all lines of {pages} pages are dirty");
        }
    }
    0
}
