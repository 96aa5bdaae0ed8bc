//! A pager that fails its clients.
//!
//! Gates: `faults` (receive). Arguments: `how`: `silent` takes a fault and never answers, `ends` ends at the first fault, `lies` says that
//! a page is there which is not.
#![no_std]
#![no_main]

use bulkhead_lib::abi::pager::{FAULTS, PagerAnswer};
use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{argument, paging};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let faults = ReceiveGate::named(FAULTS);
    let how = argument::text("how").unwrap_or("silent");
    loop {
        match (how, faults.receive()) {
            (_, Err(_)) => return 1,
            ("ends", Ok(_)) => return 7,
            ("lies", Ok(message)) => paging::answer(message, PagerAnswer::Mapped),
            (_, Ok(message)) => core::mem::forget(message),
        }
    }
}
