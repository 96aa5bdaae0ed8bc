//! Round trips to the kernel, over and over: a call that does nothing, or calls that make and revoke something.
//!
//! Arguments: `runs` (1000), `kind`: `nothing` (the default), `create` (a semaphore, and its revocation), `memory` (derive memory, make it
//! active, revoke it), `copies` (make a semaphore and `copies` (200) copies, and revoke them all, at multiples of `every` if that is given), `pause` (0) before each call, or before each sequence: without a pause, the caller of the highest priority calls
//! again before the kernel takes a call of any other.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    ANY_ENDPOINT, NO_SELECTOR, SEL_ACTIVITY, SEL_FREE, SEL_MEMORY, Syscall,
};
use bulkhead_lib::{argument, marker, println, syscall, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let runs: u64 = argument::value("runs", 1000);
    let revoke = Syscall::Revoke {
        selector: SEL_FREE,
        keep: 0,
    };
    let create = [
        Syscall::CreateSemaphore {
            target: SEL_FREE,
            value: 0,
        },
        revoke,
    ];
    let memory = [
        Syscall::DeriveMemory {
            source: SEL_MEMORY,
            target: SEL_FREE,
            offset: 0,
            size: 4096,
            rights: 1,
        },
        Syscall::Activate {
            gate: SEL_FREE,
            activity: SEL_ACTIVITY,
            memory: NO_SELECTOR,
            offset: 0,
            replies: 0,
            endpoint: ANY_ENDPOINT,
        },
        revoke,
    ];
    let calls: &[Syscall] = match argument::text("kind") {
        Some("create") => &create,
        Some("memory") => &memory,
        Some("copies") => return copies(runs),
        _ => match argument::time("pause", 0) {
            0 => return nothing(runs),
            pause => return now_and_then(runs, pause),
        },
    };
    let pause = argument::time("pause", 0);
    marker::measure_begin(runs);
    for run in 0..runs {
        if pause > 0 {
            time::sleep_until(time::now() + pause);
        }
        for (number, call) in calls.iter().enumerate() {
            let span = run * 4 + number as u64;
            marker::span_begin(span);
            let result = syscall::call(call);
            marker::span_end(span);
            if let Err(error) = result {
                println!("{call:?}: {error:?}");
                return 1;
            }
        }
    }
    marker::measure_end(runs);
    0
}

/// Revocations of many steps.
fn copies(runs: u64) -> u64 {
    let pause = argument::time("pause", 0);
    let (count, every) = (
        argument::value("copies", 200u16),
        argument::time("every", 0),
    );
    for run in 0..runs {
        time::sleep_until(time::now() + pause);
        let make = Syscall::CreateSemaphore {
            target: SEL_FREE,
            value: 0,
        };
        let copy = |number: u16| Syscall::Delegate {
            activity: SEL_ACTIVITY,
            source: SEL_FREE,
            target: SEL_FREE + number,
        };
        let mut made = syscall::call(&make).map(drop);
        for number in 1..=count {
            made = made.and_then(|()| syscall::call(&copy(number)).map(drop));
        }
        if let Some(whole) = time::now().checked_div(every) {
            time::sleep_until((whole + 1) * every);
        }
        marker::span_begin(run);
        let revoked = syscall::call(&Syscall::Revoke {
            selector: SEL_FREE,
            keep: 0,
        });
        marker::span_end(run);
        if let Err(error) = made.and_then(|()| revoked.map(drop)) {
            println!("copies: {error:?}");
            return 1;
        }
    }
    0
}

/// As an application makes calls: the request is known at compile time.
fn nothing(runs: u64) -> u64 {
    marker::measure_begin(runs);
    for run in 0..runs {
        marker::span_begin(run);
        let result = syscall::complete(&Syscall::Nothing {});
        marker::span_end(run);
        if let Err(error) = result {
            println!("nothing: {error:?}");
            return 1;
        }
    }
    marker::measure_end(runs);
    0
}

/// The same with pauses.
fn now_and_then(runs: u64, pause: u64) -> u64 {
    marker::measure_begin(runs);
    for run in 0..runs {
        time::sleep_until(time::now() + pause);
        marker::span_begin(run);
        let result = syscall::call(&Syscall::Nothing {});
        marker::span_end(run);
        if let Err(error) = result {
            println!("nothing: {error:?}");
            return 1;
        }
    }
    marker::measure_end(runs);
    0
}
