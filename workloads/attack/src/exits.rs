//! A hostile program whose children all end at one moment, and with them those of every other such program of the system: their TileMuxes then
//! have more to say to the kernel than it has slots for.
//!
//! Arguments: `every` (2ms): the distance of these moments.
#![no_std]
#![no_main]

mod child;

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, Syscall};
use bulkhead_lib::{argument, println, syscall, time};
use child::{Child, revoke};
use core::ptr::addr_of;

bulkhead_lib::main!(main);

/// The piece of its own memory that children live in, and their selectors behind it.
const PIECE: u16 = SEL_FREE + 7;
const MADE: u16 = SEL_FREE + 8;
/// More children than a tile has places for.
const CHILDREN: u16 = 16;

/// Waits until the moment that the stack pointer says, in nanoseconds, and exits. The page is where an environment lies, and TileMux writes
/// into that: the code begins behind it.
const CODE: [u32; 25] = {
    let mut code = [0; 25];
    // j 64
    code[0] = 0x0400_006F;
    // addi a7, zero, Ecall::Wait; a0 = NO_ENDPOINT; mv a1, sp; ecall
    code[16] = 0x0020_0893;
    code[17] = 0x0001_0537;
    code[18] = 0xFFF5_0513;
    code[19] = 0x0001_0593;
    code[20] = 0x0000_0073;
    // addi a7, zero, Ecall::Exit; li a0, 0; ecall; j .
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
    let every = argument::time("every", 2_000_000);
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
    let (mut ended, mut rounds) = (0u64, 0u64);
    loop {
        // They are made within the first half of the time, or are too late for this moment and end at once.
        let moment = (time::now() / every + 2) * every;
        let mut born = 0;
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
            if child.start().is_err() {
                break;
            }
            born += 1;
        }
        time::sleep_until(moment);
        // Hears of their ends, which the kernel has heard first.
        for _ in 0..born {
            let until = moment + 10 * every;
            ended += u64::from(syscall::call(&Syscall::WaitEvent { until }).is_ok());
        }
        (MADE..MADE + CHILDREN).for_each(revoke);
        rounds += 1;
        println!("{rounds} moments, {born} children at the last, {ended} ended");
    }
}
