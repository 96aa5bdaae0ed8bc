//! Takes every place for activities of its tile that it gets, with children that never run, and tries for another one without a pause.
//!
//! Needs kernel memory, endpoints and page tables of its own (`<limit>`) for sixteen children. It says how many it has whenever there is
//! one more, and after each thousand calls that were refused since.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, Syscall, SyscallError,
};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::{println, syscall};

bulkhead_lib::main!(main);

/// The piece of its own memory that children would live in, and the first of them.
const PIECE: u16 = SEL_FREE + 100;
const CHILD: u16 = PIECE + 1;

fn main() -> u64 {
    let cut = Syscall::CutMemory {
        source: SEL_MEMORY,
        target: PIECE,
        size: 4096,
    };
    if syscall::call(&cut).is_err() {
        return 1;
    }
    let (mut children, mut refused) = (0, 0u64);
    loop {
        let child = Syscall::CreateActivity {
            target: CHILD + children,
            tile: SEL_TILE,
            purse: SEL_KERNEL_MEMORY,
            memory: PIECE,
            reply: 0,
            priority: 0,
            tile_priority: 0,
            name: Name::new("child").unwrap_or_default(),
        };
        match syscall::call(&child) {
            Ok(_) => {
                children += 1;
                println!("{children} children");
            }
            // What it is made of does not suffice: that is no attack.
            Err(error @ (SyscallError::NoKernelMemory | SyscallError::NoEndpoint)) => {
                println!("{error:?}");
                return 2;
            }
            Err(_) => refused += 1,
        }
        if refused == 1000 {
            println!("{children} children, the next one was refused a thousand times");
            refused = 0;
        }
    }
}
