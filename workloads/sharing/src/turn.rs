//! One of two activities on a tile that yield to each other: each switch is a flow, from the last instruction of one to the first
//! of the other.
//!
//! Gates: `start` (send) for the second; `start` (receive) for the first. Arguments: `turns` (200), `warmup` (20), `touch`: bytes
//! of a buffer of its own that it writes before it yields, which makes the caches cold (0).
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec;
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::gate::{MessageBuffer, ReceiveGate, SendGate};
use bulkhead_lib::hal::user;
use bulkhead_lib::{argument, marker, println};

bulkhead_lib::main!(main);

/// A cache line on every platform.
const LINE: usize = 64;

fn main() -> u64 {
    let turns: u64 = argument::value("turns", 200);
    let warmup: u64 = argument::value("warmup", 20);
    let mut memory = vec![0u8; argument::value("touch", 0)];
    // The first waits until the second is there, and both continue only when both are on the tile.
    let first = match (ReceiveGate::find("start"), SendGate::find("start")) {
        (Some(gate), _) => {
            if let Err(error) = gate.receive().and_then(|message| message.finish()) {
                println!("no start: {error:?}");
                return 1;
            }
            true
        }
        (None, Some(gate)) => {
            let buffer = MessageBuffer::new();
            if let Err(error) = gate.send(&buffer.0[..1]) {
                println!("no start: {error:?}");
                return 1;
            }
            false
        }
        (None, None) => {
            println!("the description gives no gate `start`");
            return 1;
        }
    };
    let (there, back) = (0, 1);
    let (begins, ends) = if first { (there, back) } else { (back, there) };
    // The first one begins; the other one waits for its turn like a task that has already yielded.
    let mut pending = !first;
    for turn in 0..turns + warmup {
        if turn == warmup {
            marker::measure_begin(turns);
        }
        if pending {
            user::ecall(Ecall::Yield, 0, 0);
            marker::flow_end(2 * turn + ends);
        }
        for line in memory.iter_mut().step_by(LINE) {
            *line = line.wrapping_add(1);
        }
        core::hint::black_box(&memory);
        marker::flow_begin(2 * turn + begins);
        if !pending {
            user::ecall(Ecall::Yield, 0, 0);
            marker::flow_end(2 * turn + ends);
        }
        pending = !first;
    }
    user::ecall(Ecall::Yield, 0, 0);
    0
}
