//! A manager that starts nothing from its description. Over and over, it starts a child on the first tile that it can use and
//! stops it.
#![no_std]
#![no_main]

mod child;
mod somewhere;
mod window;

use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_TILES, Syscall};
use bulkhead_lib::{println, syscall};
use child::{Child, revoke};

bulkhead_lib::main!(main);

/// The first of its own selectors, after those that it was given.
const WINDOW: u16 = SEL_FREE + 100;

fn main() -> u64 {
    let Some(tile) = somewhere::tile(WINDOW) else {
        return 1;
    };
    let child = Child {
        activity: WINDOW + 1,
        tile: (SEL_TILES + tile, 0),
        purse: SEL_KERNEL_MEMORY,
        memory: WINDOW,
        code: 0,
        reply: 4096,
        pager: None,
        name: "child",
        number: 1,
    };
    let (mut rounds, mut refused) = (0u64, 0u64);
    loop {
        refused += u64::from(child.start().is_err());
        revoke(child.activity);
        // Its end costs kernel memory until the event is taken.
        let _ = syscall::call(&Syscall::WaitEvent { until: 1 });
        rounds += 1;
        if rounds % 50 == 0 {
            println!("{rounds} children, {refused} refused");
        }
    }
}
