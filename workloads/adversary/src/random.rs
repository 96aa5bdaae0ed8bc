//! Random commands to the unit, random register values, random calls to TileMux: anything that an application may do at all, at random.
//!
//! Gates: `region` (memory) and `self` (send, to its own `input`), all of which may be missing. Arguments: `seed` (1), `steps`
//! (20000; 0: for ever). It ends with 0 unless it is stopped before.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use bulkhead_lib::abi::dtu::{ADDRESS, ARGUMENT, COMMAND, SIZE};
use bulkhead_lib::abi::memory_map::DTU_BASE;
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::argument;
use bulkhead_lib::hal::{probe, user};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

/// The target of its own transfers, with nothing else in it.
#[repr(C, align(4096))]
struct Page([u8; 8192]);

fn main() -> u64 {
    let steps: u64 = argument::value("steps", 20_000);
    let mut random = Random::new(argument::value("seed", 1));
    let page = Box::new(Page([0; 8192]));
    let base = page.0.as_ptr() as u64;
    let mut step = 0;
    while steps == 0 || step < steps {
        step += 1;
        match random.below(8) {
            0 => {
                let odd = [0, 1, 0x8000_0000, u64::MAX, 0x0300_0000, 0x2000_0000];
                let address = match random.below(8) {
                    0 => odd[random.below(6) as usize],
                    _ => base + random.below(8192),
                };
                probe::store(DTU_BASE + ADDRESS, address);
            }
            1 => {
                let size = match random.below(8) {
                    0 => random.next(),
                    _ => random.below(2100),
                };
                probe::store(DTU_BASE + SIZE, size);
            }
            // Never 0: a sleep without end would be its own fault.
            2 => probe::store(DTU_BASE + ARGUMENT, 1 + random.below(20_000)),
            3 => {
                probe::load(DTU_BASE + random.below(512) * 8);
            }
            4 => {
                let call = [Ecall::Translate, Ecall::Wait, Ecall::Yield, Ecall::Print];
                let call = call[random.below(4) as usize];
                let (first, second) = match call {
                    Ecall::Wait => (random.below(300), 1 + random.below(1 << 20)),
                    Ecall::Print => (random.next(), random.below(200)),
                    _ => (base + random.below(8192), random.below(4)),
                };
                user::ecall(call, first, second);
            }
            _ => {
                let endpoint = random.below(40);
                let argument = match random.below(4) {
                    0 => random.next() as u32,
                    _ => random.below(64) as u32,
                };
                let opcode = random.below(9);
                if opcode == 7 {
                    probe::store(DTU_BASE + ARGUMENT, 1 + random.below(5_000));
                }
                let command = opcode | endpoint << 8 | u64::from(argument) << 32;
                probe::store(DTU_BASE + COMMAND, command);
            }
        }
    }
    // A command that still runs must not write to memory that was given back.
    core::mem::forget(page);
    0
}
