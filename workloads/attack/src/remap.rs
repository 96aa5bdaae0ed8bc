//! A pager that maps as much of its client as one call may, and takes it back, over and over, though nobody faults.
//!
//! Arguments: `start` (3ms). Gates: `faults` (receive). It finds the client's heap by trying, and says how often it has mapped all of it.
#![no_std]
#![no_main]

use bulkhead_lib::abi::pager::SEL_CLIENTS;
use bulkhead_lib::abi::syscall::{MAP_PAGES_MAX, MAP_READ, MAP_WRITE, Syscall};
use bulkhead_lib::{argument, println, syscall, time};

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
    loop {
        let done = map(heap, pages, rights) && map(heap, pages, 0);
        refused += u64::from(!done);
        rounds += 1;
        if rounds % 100 == 0 {
            println!("{rounds} rounds of {pages} pages, {refused} refused");
        }
    }
}
