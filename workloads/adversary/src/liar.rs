//! Lies to the machine about its tile: it claims that others have the hart, that nobody waits, that new activities begin, that an
//! activity faulted.
//!
//! Why it exists: reports rely on markers. What it deliberately does not know: whether it deceived anybody.
#![no_std]
#![no_main]

use bulkhead_lib::abi::marker::{Begins, MarkerKind, Since};
use bulkhead_lib::marker;

bulkhead_lib::main!(main);

fn main() -> u64 {
    loop {
        for activity in 0..64 {
            lie(activity);
        }
    }
}

fn lie(activity: u16) {
    let never = Since {
        activity,
        moment: Since::NEVER,
    };
    let begins = Begins {
        activity,
        creator: 0,
        tile: 2,
        is_namesake: false,
    };
    marker::custom::<{ MarkerKind::MuxEnters as u16 }>(0);
    marker::mux_runs(activity.into());
    marker::custom::<{ MarkerKind::MuxLeaves as u16 }>(0);
    marker::mux_budget(never.pack());
    marker::mux_ready(never.pack());
    marker::mux_member(never.pack());
    marker::mux_interrupts(0);
    marker::activity_begins(begins.pack());
    for word in [u64::from_le_bytes(*b"innocent"), 0, 0, 0] {
        marker::activity_name(word);
    }
    marker::activity_fault(13);
}
