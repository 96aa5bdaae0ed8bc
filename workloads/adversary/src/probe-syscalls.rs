//! Tries every system call on capabilities that it was not given, with good and with senseless arguments; all must be refused.
//!
//! Exit code: 0 if they were, else 1.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{Number, SEL_MEMORIES, SEL_SESSIONS, SEL_TILES, Syscall};
use bulkhead_lib::{println, syscall};

bulkhead_lib::main!(main);

/// Calls that need no capability: they create something on the caller's own account, wait for something that will not come, or ask about
/// an endpoint of the caller.
const FREE: [Number; 6] = [
    Number::Nothing,
    Number::WaitEvent,
    Number::CreateReceive,
    Number::CreateSemaphore,
    Number::Report,
    Number::Senders,
];

fn main() -> u64 {
    let mut accepted = 0;
    for selector in [
        4,
        5,
        16,
        SEL_SESSIONS,
        SEL_TILES,
        SEL_TILES + 1,
        SEL_MEMORIES + 8,
        1023,
        1024,
        u16::MAX,
    ] {
        for number in 1..64u64 {
            if Number::from_code(number).is_some_and(|n| FREE.contains(&n)) {
                continue;
            }
            for fill in [0, 1, 4096, u64::MAX] {
                let mut words = [fill; 14];
                words[0] = number;
                words[1] = selector.into();
                let Ok(call) = Syscall::decode(&words) else {
                    continue;
                };
                if syscall::call(&call).is_ok() {
                    println!("accepted: {call:?}");
                    accepted += 1;
                }
            }
        }
    }
    if syscall::call(&Syscall::Nothing {}).is_err() {
        println!("the call that does nothing was refused");
        accepted += 1;
    }
    println!("{accepted} calls went wrong");
    u64::from(accepted != 0)
}
