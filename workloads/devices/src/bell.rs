//! Two programs on harts of different tiles that ring each other's bells in turn, and sleep in between. Each writes a number to memory before
//! it rings, and looks whether the other one finds it there.
//!
//! Arguments: `doorbells`, the address of the registers, `doorbells-source`, the number at the interrupt controller, and `bells`, the
//! hart to ring (the loader gives all of them for `rings`); `first=true` of the one that begins; `rounds` (100); `shared`, the
//! hexadecimal address of a page in the memory of one of them, which no other program uses. The first one marks the beginning and the end
//! of each round, and ends the run. With `hostile=true`, a program rings without a pause and hears nothing.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Memory, Registers, fence};
use bulkhead_bare::hal::abi::doorbell::{HEARD, RUNG, bell};
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::interrupts::Interrupts;
use bulkhead_bare::{Program, entry};

entry!(main);

fn main(program: &Program) {
    if program.rank > 0 {
        return;
    }
    let bells = Registers::at(program.value("doorbells", 0));
    let other: u64 = program.value("bells", 0);
    if program.value("hostile", false) {
        loop {
            bells.set_half(bell(other), 1);
        }
    }
    let text = program.argument("shared").unwrap_or_default();
    let Ok(address) = u64::from_str_radix(text, 16) else {
        panic!("`shared` is no hexadecimal address: {text:?}");
    };
    let mailbox = Memory::of_others(address, 64);
    let interrupts = Interrupts::of(program);
    let source: u32 = program.value("doorbells-source", 0);
    interrupts.listen(source + program.hart as u32);
    // Nobody else is heard, whoever may ring.
    bells.set(HEARD, 1 << other);
    let send = |number: u64| {
        mailbox.set(0, number);
        mailbox.flush();
        fence();
        bells.set_half(bell(other), 1);
    };
    // Sleeps until the bell has rung, and returns what is in the mailbox.
    let receive = || {
        let source = interrupts.wait();
        bells.set(RUNG, bells.get(RUNG));
        fence();
        interrupts.complete(source);
        mailbox.flush();
        fence();
        mailbox.get(0)
    };
    let rounds: u64 = program.value("rounds", 100);
    if program.value("first", false) {
        for round in 1..=rounds {
            marker::flow_begin(round);
            send(2 * round);
            assert_eq!(receive(), 2 * round + 1);
            marker::flow_end(round);
        }
        device::exit(0);
    }
    loop {
        let number = receive();
        send(number + 1);
    }
}
