//! Takes a resource from the kernel until the kernel has no more, keeps it, and takes what others give back.
//!
//! Arguments: `what`: `endpoints` of its tile (the default) or `kernel-memory`; `pause` between tries after the first
//! refusal (20us); `start`: when it begins, counted from reset (0).
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    ANY_ENDPOINT, NO_SELECTOR, SEL_ACTIVITY, SEL_FREE, SEL_MEMORY, SEL_SESSIONS, Syscall,
    SyscallError,
};
use bulkhead_lib::{argument, syscall, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let pause: u64 = argument::time("pause", 20_000);
    let memory = argument::text("what") == Some("kernel-memory");
    time::sleep_until(argument::time("start", 0));
    let mut selector = SEL_FREE;
    if !memory {
        let derive = Syscall::DeriveMemory {
            source: SEL_MEMORY,
            target: selector,
            offset: 0,
            size: 4096,
            rights: 1,
        };
        if syscall::call(&derive).is_err() {
            return 1;
        }
    }
    loop {
        let take = match memory {
            true => Syscall::CreateSemaphore {
                target: selector,
                value: 0,
            },
            // One capability on as many endpoints as there are.
            false => Syscall::Activate {
                gate: selector,
                activity: SEL_ACTIVITY,
                memory: NO_SELECTOR,
                offset: 0,
                replies: 0,
                endpoint: ANY_ENDPOINT,
            },
        };
        match syscall::call(&take) {
            Ok(_) if !memory => {}
            Ok(_) | Err(SyscallError::SelectorTaken) => {
                if selector + 1 < SEL_SESSIONS {
                    selector += 1;
                }
            }
            Err(_) => time::sleep_until(time::now() + pause),
        }
    }
}
