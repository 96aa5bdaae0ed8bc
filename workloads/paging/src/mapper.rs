//! Asks its pager for files without a pause, under names that no file has.
//!
//! Gates: `pager` (send, the pager's gate `requests`). Arguments: `seed` (1): of the names. It never ends.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use bulkhead_lib::paging::Pager;
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let seed: u64 = argument::value("seed", 1);
    let mut pager = Pager::named("pager");
    for round in 1u64.. {
        let mapped = pager.map_file(&format!("no-file-{seed}-{round}"));
        if mapped.is_ok() || round.is_multiple_of(100) {
            println!("{round} asked");
        }
    }
    0
}
