//! Takes every place for activities that it can get on its tile, with children that never run, and keeps trying for another one without
//! a pause.
//!
//! Needs kernel memory, endpoints and page tables of its own (`<limit>`) for sixteen children. It prints how many it has after each new
//! one, and after each thousand refused calls since.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, Syscall, SyscallError,
};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::{println, syscall};

bulkhead_lib::main!(main);

/// The piece of its own memory in which children would live, and the first child.
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
            // Its own resources do not suffice: that is not an attack.
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
