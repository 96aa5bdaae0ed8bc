//! Offers a service that the description does not give it, again and again, then ends normally.
//!
//! Why it exists: its manager is notified of each offer. What it deliberately does not know: how the manager reacts.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_OFFERED, Syscall};
use bulkhead_lib::{println, session, syscall};

bulkhead_lib::main!(main);

fn main() -> u64 {
    // The gate of the offer has the first free selector.
    let mut offers = u64::from(session::offer(SEL_OFFERED).is_ok());
    let again = Syscall::CreateService {
        gate: SEL_FREE,
        target: SEL_OFFERED,
    };
    for _ in 0..200 {
        let is_free = session::revoke(SEL_OFFERED).is_ok();
        offers += u64::from(is_free && syscall::call(&again).is_ok());
    }
    println!("{offers} offers");
    0
}
