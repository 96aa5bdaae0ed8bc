//! A manager that is the pager of its own children: over and over, it keeps their faults, ends the children, and answers all of the
//! faults at once. So answers for nobody fill the slots in which a tile's TileMux receives answers of honest pagers and of the kernel. A
//! manager has endpoints for five faults; several such managers answer at the same moments.
#![no_std]
#![no_main]

mod child;
mod somewhere;
mod window;

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::pager::PagerAnswer;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILES, Syscall};
use bulkhead_lib::hal::dtu;
use bulkhead_lib::{println, syscall, time};
use child::{Child, revoke};
use core::ptr::addr_of;

bulkhead_lib::main!(main);

/// The first of its own selectors, after those that it was given.
const WINDOW: u16 = SEL_FREE + 100;
const RECEIVE: u16 = WINDOW + 1;
const SEND: u16 = WINDOW + 2;
const CHILD: u16 = WINDOW + 3;
const SLOT: u16 = 64;
/// Faults that it keeps.
const KEPT: usize = 5;
/// Nanoseconds between the moments at which it answers. They fall into different parts of the periods of the tile's tasks.
const MOMENTS: u64 = 10_030_000;

/// Where faults arrive. Not zero, so it is in the part of the program that is loaded.
#[repr(C, align(4096))]
struct Faults([u8; 4096]);
static FAULTS: Faults = Faults([1; 4096]);

/// An answer; it must not cross a page.
#[repr(align(64))]
struct Answer([u8; 8]);

fn main() -> u64 {
    let Some(tile) = somewhere::tile(WINDOW) else {
        return 1;
    };
    let made = syscall::call(&Syscall::CreateReceive {
        target: RECEIVE,
        slots: KEPT as u8,
        slot_size: SLOT,
    });
    let offset = addr_of!(FAULTS) as u64 - ENVIRONMENT_BASE;
    let input = match made.and_then(|_| syscall::receive(RECEIVE, SEL_MEMORY, offset)) {
        Ok(input) => input,
        Err(error) => {
            println!("no gate: {error:?}");
            return 1;
        }
    };
    let child = Child {
        activity: CHILD,
        tile: (SEL_TILES + tile, 0),
        purse: SEL_KERNEL_MEMORY,
        memory: WINDOW,
        code: 0,
        reply: 4096,
        pager: Some(SEND),
        name: "child",
        number: 0,
    };
    let answer = Answer((PagerAnswer::Mapped as u64).to_le_bytes());
    let (mut answered, mut refused) = (0u64, 0u64);
    for round in 1u64.. {
        let mut kept = [0; KEPT];
        for fault in &mut kept {
            let gate = syscall::call(&Syscall::CreateSend {
                source: RECEIVE,
                target: SEND,
                label: 1,
                credits: 1,
            });
            if let Err(error) = gate.and_then(|_| child.start()) {
                println!("no child: {error:?}");
                return 1;
            }
            *fault = loop {
                if let Ok(Some(place)) = dtu::fetch(input) {
                    break place;
                }
            };
            revoke(CHILD);
            revoke(SEND);
            // Its end costs kernel memory until the event is taken.
            let _ = syscall::call(&Syscall::WaitEvent { until: 1 });
        }
        time::sleep_until((time::now() / MOMENTS + 1) * MOMENTS);
        for fault in kept {
            match dtu::reply(input, fault, &answer.0) {
                Ok(()) => answered += 1,
                // No room: that is the state in which it leaves the tile.
                Err(_) => {
                    refused += 1;
                    let _ = dtu::acknowledge(input, fault);
                }
            }
        }
        println!("{round} rounds: {answered} late answers, {refused} without room");
    }
    0
}
