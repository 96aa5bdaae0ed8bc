//! Shares lines with other programs: hands data over, counts beside another one, or takes turns under a lock.
//!
//! Why it exists: programs without a kernel have no memory in common, so one of them lends a part of its own, and all know its address. If the
//! caches of all of them are coherent, nothing is flushed; if not, a program finds old words, and says so. What it deliberately does not know:
//! where the others run.
//!
//! Arguments: `shared`, the address in hexadecimal of `bytes` bytes (4096 and two lines) in the memory of the program with `lends=true`, which checks
//! that; `passes` (100); `role`:
//! - `produce`, `consume`: for each pass, the one writes all words but those of the first two lines, the other one reads and checks them. A flow begins
//!   when the producer begins to write, and ends when the consumer has read. The consumer ends the run.
//! - `count`: each pass adds `rounds` (100) times 1 to the word at `offset`, atomically, and is a flow from the program to itself. At the end the word
//!   must have what was added. `forever=true`: without flows, and without an end.
//! - `lock`: each pass takes a lock with LR and SC, adds 1 to a word that nothing else protects, and gives the lock back, as a flow. A program with
//!   `parties` waits until so many programs have made their passes, checks the word, and ends the run.
#![no_std]
#![no_main]

use bulkhead_bare::arch::{Memory, fence};
use bulkhead_bare::hal::{device, marker};
use bulkhead_bare::{Program, entry};

entry!(main);

/// Words in lines of their own: the item that is there, the item that was taken; the data are behind them.
const READY: u64 = 0;
const TAKEN: u64 = 64;
const DATA: u64 = 128;
/// The lock, the word that it protects, and how many programs have made their passes.
const LOCK: u64 = 0;
const COUNTER: u64 = 64;
const FINISHED: u64 = 128;

fn main(program: &Program) {
    if program.rank > 0 {
        return;
    }
    let bytes = program.value("bytes", 4096 + DATA);
    let text = program.argument("shared").unwrap_or_default();
    let Ok(address) = u64::from_str_radix(text, 16) else {
        panic!("`shared` is no hexadecimal address: {text:?}");
    };
    let shared = match program.value("lends", false) {
        true => {
            let first = program.memory.base();
            assert!(
                address >= first,
                "{address:#x} is the program's, which ends at {first:#x}"
            );
            program.memory.part(address - first, bytes)
        }
        false => Memory::of_others(address, bytes),
    };
    let passes: u64 = program.value("passes", 100);
    match program.argument("role") {
        Some("produce") => produce(&shared, passes),
        Some("consume") => consume(&shared, passes),
        Some("count") => count(program, &shared, passes),
        Some("lock") => lock(program, &shared, passes),
        other => panic!("no role {other:?}"),
    }
}

/// Waits until a word has a value, and sees all that was written before it got that.
fn wait_for(shared: &Memory, offset: u64, value: u64) {
    while shared.get(offset) != value {}
    fence();
}

/// What a word of an item has.
fn word(item: u64, offset: u64) -> u64 {
    item << 32 | offset
}

fn produce(shared: &Memory, passes: u64) {
    for item in 1..=passes {
        wait_for(shared, TAKEN, item - 1);
        marker::flow_begin(item);
        for offset in (DATA..shared.bytes()).step_by(8) {
            shared.set(offset, word(item, offset));
        }
        fence();
        shared.set(READY, item);
    }
}

fn consume(shared: &Memory, passes: u64) {
    for item in 1..=passes {
        wait_for(shared, READY, item);
        for offset in (DATA..shared.bytes()).step_by(8) {
            let (found, due) = (shared.get(offset), word(item, offset));
            assert!(found == due, "{found:#x} instead of {due:#x}");
        }
        fence();
        marker::flow_end(item);
        shared.set(TAKEN, item);
    }
    device::exit(0);
}

fn count(program: &Program, shared: &Memory, passes: u64) {
    let offset = program.value("offset", 0);
    let rounds: u64 = program.value("rounds", 100);
    let work = || {
        for _ in 0..rounds {
            shared.add(offset, 1);
        }
    };
    let before = shared.get(offset);
    while program.value("forever", false) {
        work();
    }
    for pass in 0..passes {
        marker::flow_begin(pass);
        work();
        fence();
        marker::flow_end(pass);
    }
    let (found, due) = (shared.get(offset), before + rounds * passes);
    assert!(found == due, "{found} instead of {due}");
    device::exit(0);
}

fn lock(program: &Program, shared: &Memory, passes: u64) {
    for pass in 0..passes {
        marker::flow_begin(pass);
        while !shared.replace(LOCK, 0, 1) {}
        fence();
        shared.set(COUNTER, shared.get(COUNTER) + 1);
        fence();
        shared.set(LOCK, 0);
        marker::flow_end(pass);
    }
    fence();
    shared.add(FINISHED, 1);
    if program.argument("parties").is_some() {
        let parties: u64 = program.value("parties", 1);
        wait_for(shared, FINISHED, parties);
        let (found, due) = (shared.get(COUNTER), parties * passes);
        assert!(found == due, "{found} instead of {due}");
        device::exit(0);
    }
}
