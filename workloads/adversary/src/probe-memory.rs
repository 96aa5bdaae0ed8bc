//! Touches an address that is not its own.
//!
//! Arguments: `address` (decimal; default 2147483648, the address of TileMux), `access`: `load` or `store`. It ends
//! with 1 if it is not stopped.
#![no_std]
#![no_main]

use bulkhead_lib::hal::probe;
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let address: u64 = argument::value("address", 0x8000_0000);
    println!("about to touch {address:#x}");
    match argument::text("access") {
        Some("store") => probe::store(address, 1),
        _ => {
            probe::load(address);
        }
    }
    println!("{address:#x} could be touched");
    1
}
