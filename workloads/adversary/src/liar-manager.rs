//! A resource manager that lies about services: as fast as it can, it reports everything that others import from it as restarted,
//! available, gone, and so on, and supplies first nothing and then memory instead of services.
//!
//! In a description: `<manager program="adversary/liar-manager">`. It starts nothing and never ends.
#![no_std]
#![no_main]

use bulkhead_lib::abi::news::{News, Standing};
use bulkhead_lib::abi::syscall::{SEL_ACTIVITY, SEL_MEMORY, SEL_SHARED, SHARED_MAX, Syscall};
use bulkhead_lib::{println, syscall};

bulkhead_lib::main!(main);

/// How often it reports a service where there is none.
const EMPTY: u32 = 300;

fn main() -> u64 {
    let news = News {
        restarts: 0,
        standing: Standing::Offered,
    };
    for _ in 0..EMPTY {
        let value = news.about(0);
        let _ = syscall::call(&Syscall::Report { value });
    }
    for import in 0..SHARED_MAX {
        let _ = syscall::call(&Syscall::Delegate {
            activity: SEL_ACTIVITY,
            source: SEL_MEMORY,
            target: SEL_SHARED + import,
        });
    }
    println!("lies");
    let mut restarts = 0u32;
    loop {
        for import in 0..SHARED_MAX {
            for standing in Standing::ALL.iter().filter(|s| !s.is_final()) {
                let news = News {
                    restarts,
                    standing: *standing,
                };
                let value = news.about(import);
                let _ = syscall::call(&Syscall::Report { value });
            }
        }
        restarts = restarts.wrapping_add(1);
    }
}
