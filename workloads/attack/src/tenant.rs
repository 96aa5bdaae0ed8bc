//! The kernel's victim client: in each period it obtains a piece of memory as a gate, which costs kernel memory and an
//! endpoint of its tile, and gives it back.
//!
//! Arguments: `runs` (200), `warmup` (10), `period` (200us). Each round in which all calls succeed is a span. Check values
//! at the end: rounds in which all calls succeeded; rounds in which the kernel refused a call; 0.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_MEMORY, Syscall, SyscallError};
use bulkhead_lib::{argument, marker, syscall, time};

bulkhead_lib::main!(main);

/// Gets a memory gate.
fn get() -> Result<(), SyscallError> {
    syscall::call(&Syscall::DeriveMemory {
        source: SEL_MEMORY,
        target: SEL_FREE,
        offset: 0,
        size: 4096,
        rights: 1,
    })?;
    syscall::activate(SEL_FREE)?;
    Ok(())
}

fn main() -> u64 {
    let runs: u64 = argument::value("runs", 200);
    let warmup: u64 = argument::value("warmup", 10);
    let period: u64 = argument::time("period", 200_000);
    let revoke = Syscall::Revoke {
        selector: SEL_FREE,
        keep: 0,
    };
    let (mut served, mut refused) = (0u64, 0u64);
    let mut next = time::now();
    for run in 0..warmup + runs {
        if run == warmup {
            marker::measure_begin(runs);
            (served, refused) = (0, 0);
        }
        time::sleep_until(next);
        marker::span_begin(run);
        let outcome = get();
        // The result of the first call goes back in any case.
        let back = syscall::call(&revoke);
        match outcome.and(back) {
            Ok(_) => {
                marker::span_end(run);
                served += 1;
            }
            Err(_) => refused += 1,
        }
        next = (next + period).max(time::now());
    }
    marker::measure_end(runs);
    marker::check(served);
    marker::check(refused);
    marker::check(0);
    0
}
