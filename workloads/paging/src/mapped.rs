//! Lets a file appear in memory, reads it there, and changes what it reads.
//!
//! Gates: `files` (send, the file service), `pager` (send, the pager's gate `requests`). Arguments: `pages` (8); `start` (0):
//! microseconds since reset before the first one is used. A span for each page: the time until its first byte is read. The
//! check values are the sum of all bytes, and the number of the pager's pages that this application has got. It ends with 0, or
//! 1 if the memory or the file is wrong.
#![no_std]
#![no_main]

extern crate alloc;

use bulkhead_lib::common::status::Status;
use bulkhead_lib::file::{CREATE, Mount, READ, Result, TRUNCATE, WRITE};
use bulkhead_lib::hal::user;
use bulkhead_lib::paging::Pager;
use bulkhead_lib::{argument, marker, println, time};

bulkhead_lib::main!(main);

const PAGE: usize = 4096;

/// The byte at a place of the file.
const fn byte(at: usize) -> u8 {
    (at / PAGE * 31 + at % 251) as u8
}

fn main() -> u64 {
    match work() {
        Ok(true) => 0,
        Ok(false) => {
            println!("not what was written");
            1
        }
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn work() -> Result<bool> {
    let pages: usize = argument::value("pages", 8);
    // Not a whole number of pages: the rest of the last page is zeros.
    let bytes = pages * PAGE - 100;
    let mut mount = Mount::connect("files")?;
    let mut buffer = alloc::vec![0u8; bytes];
    for (at, place) in buffer.iter_mut().enumerate() {
        *place = byte(at);
    }
    // The second page begins with a text.
    let text = b"a text that nobody has looked at\n";
    buffer[PAGE..PAGE + text.len()].copy_from_slice(text);
    let mut file = mount.open("mapped", WRITE | CREATE | TRUNCATE)?;
    file.write(&buffer)?;
    file.close()?;
    let mut pager = Pager::named("pager");
    let memory = pager.map_file("mapped")?;
    if memory.len() != bytes || pager.map_file("nowhere").err() != Some(Status::NotFound) {
        return Ok(false);
    }
    // Printed by TileMux, before this application has used the page.
    user::print(&memory[PAGE..PAGE + text.len()]);
    time::sleep_until(argument::value("start", 0u64) * 1000);
    let mut right = true;
    for page in 0..pages {
        marker::span_begin(page as u64);
        right &= memory[page * PAGE] == buffer[page * PAGE];
        marker::span_end(page as u64);
    }
    right &= memory == buffer.as_slice();
    let sum: u64 = memory.iter().map(|byte| u64::from(*byte)).sum();
    marker::check(sum);
    let counted = pager.count()?;
    marker::check(counted.given + counted.shared);
    // Changes stay here.
    memory[0] = !memory[0];
    let mut file = mount.open("mapped", READ)?;
    let mut first = [0u8];
    right &= file.read(&mut first)? == 1 && first[0] == buffer[0];
    file.close()?;
    Ok(right)
}
