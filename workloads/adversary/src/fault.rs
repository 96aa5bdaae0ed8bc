//! Does something forbidden, once.
//!
//! Arguments: `kind`: `load`, `store`, `execute`, `privileged` (reads a machine-mode register), `breakpoint`, `panic` or `call`
//! (an unknown call to TileMux).
#![no_std]
#![no_main]

use bulkhead_lib::hal::probe;
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let kind = argument::text("kind").unwrap_or("load");
    println!("about to do: {kind}");
    match kind {
        "load" => {
            probe::load(8);
        }
        "store" => probe::store(8, 1),
        "execute" => probe::jump(0x2000_0000),
        "privileged" => probe::machine_register(),
        "breakpoint" => probe::breakpoint(),
        "call" => probe::unknown_call(),
        _ => panic!("as ordered"),
    }
    println!("and nobody stopped it");
    1
}
