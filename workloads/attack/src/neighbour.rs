//! A program that gets endpoints that others have just given up. Over and over, it receives at new endpoints of its own, to which
//! nobody ever had a right to send, so it expects no message.
//!
//! Arguments: `rounds` (200), `pause` (20us): how long each endpoint exists. Ends with 1 if a message came.
#![no_std]
#![no_main]

use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_MEMORY, Syscall, SyscallError};
use bulkhead_lib::hal::dtu;
use bulkhead_lib::{argument, println, syscall, time};
use core::sync::atomic::AtomicU64;

bulkhead_lib::main!(main);

/// Slots, and bytes of each.
const SLOTS: u8 = 2;
const SLOT: u16 = 192;

#[repr(C, align(64))]
struct Buffer([AtomicU64; SLOTS as usize * SLOT as usize / 8]);
static BUFFER: Buffer = Buffer([const { AtomicU64::new(0) }; SLOTS as usize * SLOT as usize / 8]);

/// One endpoint from its creation to its end; returns the number of messages that came.
fn round(pause: u64) -> Result<u64, SyscallError> {
    let buffer = BUFFER.0.as_ptr() as u64;
    syscall::call(&Syscall::CreateReceive {
        target: SEL_FREE,
        slots: SLOTS,
        slot_size: SLOT,
    })?;
    let endpoint = syscall::receive(SEL_FREE, SEL_MEMORY, buffer - ENVIRONMENT_BASE)?;
    time::sleep_until(time::now() + pause);
    let mut came = 0;
    while let Ok(Some(place)) = dtu::fetch(endpoint) {
        println!("stolen: a message at endpoint {endpoint}");
        let _ = dtu::acknowledge(endpoint, place);
        came += 1;
    }
    syscall::call(&Syscall::Revoke {
        selector: SEL_FREE,
        keep: 0,
    })?;
    Ok(came)
}

fn main() -> u64 {
    let rounds: u64 = argument::value("rounds", 200);
    let pause = argument::time("pause", 20_000);
    let (mut came, mut tried) = (0, 0);
    for _ in 0..rounds {
        match round(pause) {
            Ok(messages) => {
                came += messages;
                tried += 1;
            }
            // Others may have all endpoints at this moment.
            Err(SyscallError::NoEndpoint) => {}
            Err(error) => {
                println!("{error:?}");
                return 2;
            }
        }
        let _ = syscall::call(&Syscall::Revoke {
            selector: SEL_FREE,
            keep: 0,
        });
    }
    println!("{came} messages at {tried} endpoints");
    u64::from(came > 0 || tried < rounds / 2)
}
