//! A resource manager that does not do its work: it tries to get resources that are not its own, exhausts its own, makes its memory visible
//! to every tile that it may use, floods the manager above with reports and itself with words, and never ends.
//!
//! In a description: `<manager program="adversary/bad-manager">`.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    Number, SEL_ACTIVITY, SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORIES, SEL_MEMORY, SEL_TILES, SHARE,
    Syscall,
};
use bulkhead_lib::{println, syscall};

bulkhead_lib::main!(main);

fn main() -> u64 {
    // Windows: others that share the tile need one.
    let mut shown = 0;
    for number in 0..8 {
        let piece = SEL_FREE + 400 - number;
        for memory in 0..16 {
            let request = Syscall::CutMemory {
                source: SEL_MEMORIES + memory,
                target: piece,
                size: 4096,
            };
            let _ = syscall::call(&request);
        }
        for tile in 0..16 {
            let request = Syscall::ConfigureTile {
                tile: SEL_TILES + tile,
                memory: piece,
                tables: 0,
            };
            shown += u64::from(syscall::call(&request).is_ok());
        }
    }
    println!("showed {shown} windows");
    // Endpoints of the tile that it lives on itself.
    let mut open = 0;
    while open < 400 && syscall::activate(SEL_MEMORY).is_ok() {
        open += 1;
    }
    println!("opened its memory {open} times");
    let mut taken = 0;
    // All of its memory in small pieces, all of its tiles' endpoints and page tables, all of its kernel memory.
    for number in 0..380u16 {
        let target = SEL_FREE + number;
        let request = match number % 4 {
            0 => Syscall::CutMemory {
                source: SEL_MEMORIES + number % 16,
                target,
                size: 4096,
            },
            1 => Syscall::DeriveTile {
                source: SEL_TILES + number % 16,
                target,
                endpoints: 8,
                budget: SHARE,
                period: 0,
                rate: SHARE,
                burst: SHARE,
                tables: 100,
                priority: 0,
                idle: 1,
                activities: SHARE,
                windows: SHARE,
            },
            2 => Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target,
                bytes: 64,
            },
            _ => Syscall::CreateSemaphore { target, value: 0 },
        };
        taken += u64::from(syscall::call(&request).is_ok());
    }
    println!("took {taken} things");
    // Reports services to the manager above that do not exist, and an end that has not come.
    for round in 0..500u64 {
        let value = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << 40;
        let _ = syscall::call(&Syscall::Report { value });
    }
    let mut told = 0;
    while syscall::call(&Syscall::Tell {
        activity: SEL_ACTIVITY,
        value: told,
    })
    .is_ok()
    {
        told += 1;
    }
    println!("told itself {told} things");
    // Tries everything that is not its own: every selector, every call.
    loop {
        for selector in 0..1024 {
            for number in [
                Number::Start,
                Number::Map,
                Number::Activate,
                Number::Delegate,
                Number::OpenSession,
                Number::Exchange,
                Number::Obtain,
                Number::CreateService,
                Number::CreateActivity,
                Number::OpenModule,
                Number::Usage,
                Number::Tell,
                Number::Query,
            ] {
                let mut words = [0; 14];
                words[0] = number as u64;
                words[1] = selector;
                if let Ok(call) = Syscall::decode(&words) {
                    let _ = syscall::call(&call);
                }
            }
        }
    }
}
