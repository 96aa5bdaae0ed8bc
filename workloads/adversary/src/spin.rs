//! An endless loop: uses its own time slice and nothing else.
#![no_std]
#![no_main]

bulkhead_lib::main!(main);

fn main() -> u64 {
    loop {
        core::hint::spin_loop();
    }
}
