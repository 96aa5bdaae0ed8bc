//! Writes to every register of its tile's unit.
//!
//! Argument `page`: `unprivileged` (all offsets of the page that it may use; the writes must not change any
//! rights), or `privileged`, `external`, `endpoints` (must fault at the first access).
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::{ENDPOINTS, EXTERNAL_PAGE, PRIVILEGED_PAGE};
use bulkhead_lib::abi::memory_map::DTU_BASE;
use bulkhead_lib::hal::probe;
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let page = argument::text("page").unwrap_or("unprivileged");
    let base = match page {
        "privileged" => PRIVILEGED_PAGE,
        "external" => EXTERNAL_PAGE,
        "endpoints" => ENDPOINTS,
        _ => 0,
    };
    for offset in (0..4096).step_by(8) {
        for value in [0, 1, 0xFF, u64::MAX, 0x8000_0000_0000_0001] {
            probe::store(DTU_BASE + base + offset, value);
            probe::load(DTU_BASE + base + offset);
        }
    }
    println!("every register of the page {page} was written");
    u64::from(base != 0)
}
