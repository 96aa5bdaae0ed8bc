//! A pager that, over and over, maps as much of its client as one call may, and takes it back page by page, although nobody faults.
//!
//! Arguments: `start` (3ms), `keep` (0ns): how long the client has the pages each time; it may make them dirty (`attack/soil`). Gates:
//! `faults` (receive). It finds the client's heap by trying, and prints how often it has mapped all of it.
#![no_std]
#![no_main]

use bulkhead_lib::abi::pager::{FAULTS, PagerAnswer, SEL_CLIENTS};
use bulkhead_lib::abi::syscall::{MAP_PAGES_MAX, MAP_READ, MAP_WRITE, Syscall};
use bulkhead_lib::gate::ReceiveGate;
use bulkhead_lib::{argument, paging, println, syscall, time};

bulkhead_lib::main!(main);

/// Where heaps may begin.
const BEGIN: u64 = 0x1000_0000;
const PAGE: u64 = 4096;

fn map(address: u64, pages: u64, rights: u8) -> bool {
    let call = Syscall::MapFrom {
        activity: SEL_CLIENTS,
        memory: SEL_CLIENTS + 2,
        address,
        offset: 0,
        pages,
        rights,
    };
    syscall::call(&call).is_ok()
}

fn main() -> u64 {
    let keep = argument::time("keep", 0);
    let faults = ReceiveGate::named(FAULTS);
    time::sleep_until(argument::time("start", 3_000_000));
    let rights = MAP_READ | MAP_WRITE;
    let mut places = (0..1024).map(|page| BEGIN + page * PAGE);
    let Some(heap) = places.find(|place| map(*place, 1, rights)) else {
        println!("no heap");
        return 1;
    };
    let mut pages = MAP_PAGES_MAX;
    while pages > 1 && !map(heap, pages, rights) {
        pages /= 2;
    }
    let (mut rounds, mut refused) = (0u64, 0u64);
    let take = || (0..pages).all(|page| map(heap + page * PAGE, 1, 0));
    take();
    loop {
        let mut done = map(heap, pages, rights);
        if keep > 0 {
            while let Ok(Some(fault)) = faults.fetch() {
                let _ = paging::answer(fault, PagerAnswer::Mapped);
            }
            time::sleep_until(time::now() + keep);
        }
        if pages > 1 && map(heap, pages, 0) {
            println!("won: took {pages} pages at once");
        }
        done &= take();
        refused += u64::from(!done);
        rounds += 1;
        if rounds.is_multiple_of(2) {
            println!("{rounds} rounds of {pages} pages, {refused} refused");
        }
    }
}
