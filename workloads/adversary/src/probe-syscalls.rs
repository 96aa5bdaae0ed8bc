//! Tries every system call, with good and with senseless arguments; all that manage must be refused.
//!
//! Exit code: 0 if they were, else 1.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{Syscall, SyscallError};
use bulkhead_lib::{environment, println, syscall};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut accepted = 0;
    let own = environment().activity;
    for activity in [0, 1, 2, own, own + 1, u16::MAX] {
        for number in 1..64u64 {
            for fill in [0, 1, 4096, u64::MAX] {
                let mut words = [fill; 11];
                words[0] = number;
                words[1] = activity.into();
                let Ok(call) = Syscall::decode(&words) else {
                    continue;
                };
                if syscall::call(&call) != Err(SyscallError::NotManager) {
                    println!("accepted: {call:?}");
                    accepted += 1;
                }
            }
        }
    }
    if syscall::call(&Syscall::Nothing).is_err() {
        println!("the call that does nothing was refused");
        accepted += 1;
    }
    println!("{accepted} calls went wrong");
    u64::from(accepted != 0)
}
