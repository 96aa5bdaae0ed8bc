//! A pager that fails its clients.
//!
//! Gates: `faults` (receive). Arguments: `how`: `silent` takes a fault and never answers, `ends` ends at the first fault, `lies` reports a
//! page as mapped that is not, `together` does so for six clients at once, at multiples of 10.03 ms.
#![no_std]
#![no_main]

use bulkhead_lib::abi::pager::{FAULTS, PagerAnswer};
use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{argument, paging, time};

bulkhead_lib::main!(main);

/// Nanoseconds between the moments of `together`; those of the program `attack/late`.
const MOMENTS: u64 = 10_030_000;

/// Takes six faults and answers them together. Returns false if that is no longer possible.
fn together(faults: &ReceiveGate) -> bool {
    let kept: [_; 6] = core::array::from_fn(|_| faults.receive());
    time::sleep_until((time::now() / MOMENTS + 1) * MOMENTS);
    let mut answers = kept.into_iter();
    answers.all(|fault| {
        fault
            .map(|message| drop(paging::answer(message, PagerAnswer::Mapped)))
            .is_ok()
    })
}

fn main() -> u64 {
    let faults = ReceiveGate::named(FAULTS);
    let how = argument::text("how").unwrap_or("silent");
    if how == "together" {
        while together(&faults) {}
        return 1;
    }
    loop {
        match (how, faults.receive()) {
            (_, Err(_)) => return 1,
            ("ends", Ok(_)) => return 7,
            ("lies", Ok(message)) => drop(paging::answer(message, PagerAnswer::Mapped)),
            (_, Ok(message)) => core::mem::forget(message),
        }
    }
}
