//! An application that starts children on its tile, as urgent and with as much processor time as it can get, and then loops for ever.
//!
//! It needs kernel memory, endpoints and page tables for them. Arguments: `children` (4); `name` of the children (`heir`; or
//! `actuator`); `wish` (`any`, `period`, `tenth`, `urgent` or `grandchild`: see [`heirs::Wish`]). Each child makes a check marker of its
//! number (1, ...).
#![no_std]
#![no_main]

mod child;
mod heirs;

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, Syscall};
use bulkhead_lib::{argument, println, syscall};
use child::CODE;
use core::ptr::addr_of;
use heirs::{Heir, Wish};

bulkhead_lib::main!(main);

/// Two pages: the children's loop, and room for their replies.
#[repr(C, align(4096))]
struct Pages {
    code: [u32; 1024],
    replies: [u8; 4096],
}

/// The relevant bytes are not zero, so it is in the part of the program that is loaded.
#[used]
static PAGES: Pages = Pages {
    code: {
        let mut code = [0; 1024];
        (code[0], code[1]) = (CODE[0], CODE[1]);
        code
    },
    replies: [1; 4096],
};

fn main() -> u64 {
    let children: u16 = argument::value("children", 4);
    let name = match argument::text("name") {
        Some("actuator") => "actuator",
        _ => "heir",
    };
    let wish = match argument::text("wish") {
        Some("period") => Wish::Period,
        Some("tenth") => Wish::Tenth,
        Some("urgent") => Wish::Urgent,
        Some("grandchild") => Wish::Grandchild,
        _ => Wish::Any,
    };
    let code = addr_of!(PAGES) as u64 - ENVIRONMENT_BASE;
    // All of its memory up to these pages: its own code and data stay mapped.
    let cut = Syscall::CutMemory {
        source: SEL_MEMORY,
        target: SEL_FREE,
        size: code + 8192,
    };
    if let Err(error) = syscall::call(&cut) {
        println!("no memory for children: {error:?}");
    }
    let mut started = 0;
    for number in 0..children {
        let heir = Heir {
            selector: SEL_FREE + 1 + 3 * number,
            tile: SEL_TILE,
            purse: SEL_KERNEL_MEMORY,
            memory: SEL_FREE,
            code,
            reply: code + 4096 + 256 * u64::from(number % 16),
            name,
            number: u64::from(number) + 1,
            wish,
        };
        started += u32::from(heir.start());
    }
    println!("started {started} children");
    loop {
        core::hint::spin_loop();
    }
}
