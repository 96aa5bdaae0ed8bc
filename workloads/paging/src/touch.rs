//! Uses pages of its heap for the first time, one after the other, and measures each time.
//!
//! Arguments: `pages` (32): those at the end of the heap, which the allocator has not touched. `start` (0): microseconds since reset before
//! the first one is used, after the system has started. `print` (0): 1 lets TileMux print a byte of a page that nobody has used. Gates:
//! `region` (memory, 4 KiB; may be missing): the unit transfers from and to such pages. Each page must be zero at first and keep what is
//! written to it. A span for each page: the time of its first use. The check value is the number of pages that were correct. It ends with
//! 0, or 1 if one did not.
#![no_std]
#![no_main]

use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::hal::user;
use bulkhead_lib::{argument, environment, marker, println, time};

bulkhead_lib::main!(main);

const PAGE: usize = 4096;

fn main() -> u64 {
    let pages: usize = argument::value("pages", 32);
    let heap = environment();
    let bytes = (pages * PAGE) as u64;
    if bytes * 2 > heap.heap_size {
        println!("{pages} pages are too many");
        return 1;
    }
    let end = (heap.heap_start + heap.heap_size) & !(PAGE as u64 - 1);
    let space = user::pages(end - bytes, bytes);
    time::sleep_until(argument::value("start", 0u64) * 1000);
    marker::measure_begin(pages as u64);
    for page in 0..pages {
        marker::span_begin(page as u64);
        space[page * PAGE] = !(page as u8);
        marker::span_end(page as u64);
    }
    marker::measure_end(pages as u64);
    let mut right = 0;
    for (number, page) in space.chunks(PAGE).enumerate() {
        let kept = page[0] == !(number as u8);
        right += u64::from(kept && page[1..].iter().all(|byte| *byte == 0));
    }
    marker::check(right);
    println!("{right} pages");
    if argument::value("print", 0u8) != 0 {
        // The page before is not mapped yet: TileMux must fetch it.
        while user::ecall(Ecall::Print, end - bytes - PAGE as u64, 1) == 2 {
            user::ecall(Ecall::Yield, 0, 0);
        }
        println!("printed");
    }
    if let Some(region) = MemoryGate::find("region")
        && !transfers(region, end - bytes)
    {
        println!("a transfer failed");
        return 1;
    }
    u64::from(right != pages as u64)
}

/// Transfers from one unused page to another.
fn transfers(region: MemoryGate, end: u64) -> bool {
    let size = PAGE as u64;
    let (from, to) = (end - 3 * size, end - 4 * size);
    let (from, to) = (user::pages(from, size), user::pages(to, size));
    let written = region.write(0, from);
    // After the zeros of that page, something else.
    let marked = region.write(size - 8, &7u64.to_le_bytes());
    let read = region.read(0, to);
    let moved = to[..PAGE - 8].iter().all(|byte| *byte == 0) && to[PAGE - 8] == 7;
    written.is_ok() && marked.is_ok() && read.is_ok() && moved
}
