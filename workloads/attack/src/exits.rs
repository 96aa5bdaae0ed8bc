//! Children on a shared tile that all end at one moment: their TileMux then has more ends to tell the kernel than the kernel has slots
//! for the tile.
//!
//! Arguments: `every` (5ms): the time between two such moments. Each child must be made long before its moment; one that comes too late
//! ends at once. A line counts the moments so far, and the children of the last one that were in time. It never ends by itself.
#![no_std]
#![no_main]

#[expect(dead_code, reason = "its children do more than loop")]
mod child;

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, Syscall};
use bulkhead_lib::{argument, println, syscall, time};
use child::{Child, revoke};
use core::ptr::addr_of;

bulkhead_lib::main!(main);

/// The piece of its own memory in which children live; their selectors follow it.
const PIECE: u16 = SEL_FREE + 7;
const MADE: u16 = SEL_FREE + 8;
const CHILDREN: u16 = 8;
/// The most slots that the kernel has for the notifications of one tile on a chip of eight: 32, divided among seven.
const SLOTS: u16 = 5;
const _: () = assert!(CHILDREN > SLOTS, "no end would find the slots full");

/// Waits until the moment that the stack pointer says, in nanoseconds, and exits. The page is where an environment lies, and TileMux
/// writes into that: the code begins behind it.
const CODE: [u32; 25] = {
    let mut code = [0; 25];
    // j 64
    code[0] = 0x0400_006F;
    // li a7, Ecall::Wait; li a0, NO_ENDPOINT; mv a1, sp; ecall
    code[16] = 0x0020_0893;
    code[17] = 0x0001_0537;
    code[18] = 0xFFF5_0513;
    code[19] = 0x0001_0593;
    code[20] = 0x0000_0073;
    // li a7, Ecall::Exit; li a0, 0; ecall; j .
    code[21] = 0x0000_0893;
    code[22] = 0x0000_0513;
    code[23] = 0x0000_0073;
    code[24] = 0x0000_006F;
    code
};

/// The children's code, and room for replies; not zero, so it is loaded.
#[repr(C, align(4096))]
struct Room([u32; 25], [u32; 2048]);
static ROOM: Room = Room(CODE, [1; 2048]);

fn main() -> u64 {
    let every = argument::time("every", 5_000_000);
    let code = addr_of!(ROOM) as u64 - ENVIRONMENT_BASE;
    let cut = Syscall::CutMemory {
        source: SEL_MEMORY,
        target: PIECE,
        size: code + 2 * 4096,
    };
    if let Err(error) = syscall::call(&cut) {
        println!("no memory for children: {error:?}");
        return 1;
    }
    for round in 1u64.. {
        let moment = (time::now() / every + 1) * every;
        let mut ready = 0;
        for number in 0..CHILDREN {
            let child = Child {
                activity: MADE + number,
                tile: (SEL_TILE, 0),
                purse: SEL_KERNEL_MEMORY,
                memory: PIECE,
                code,
                reply: code + 4096,
                pager: None,
                name: "brief",
                number: moment / 16,
            };
            match child.start() {
                Ok(()) => ready += u64::from(time::now() < moment),
                Err(error) => {
                    println!("child {number}: {error:?}");
                    break;
                }
            }
        }
        time::sleep_until(moment + every / 4);
        (MADE..MADE + CHILDREN).for_each(revoke);
        println!("{round} moments, {ready} children");
    }
    0
}
