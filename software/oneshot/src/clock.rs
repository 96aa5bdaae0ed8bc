//! The synchronisation of clocks, once, before the first job.
//!
//! Why it exists: where tiles have timers of their own, ticks of two cores would have nothing to do with each other. A master sends its time to
//! every other core, which adds the measured way of the message (m2os-mc-ngres21, section 4.3). What it deliberately does not know: by how much
//! timers drift afterwards, and what a message says; that is in `exec`.
//!
//! When all have their time, the master says when they begin, so no message of the synchronisation is under way while jobs run.
//!
//! Nobody waits for ever: a core that no message reaches keeps its own time, and the master gives up on cores that do not start. A record that
//! anybody writes over can make a core keep a wrong time, like everything that such a core writes to.

use crate::arch::{self, Chip};
use crate::{console, kernel};
use bulkhead_abi::one_shot::clock::{
    BEGIN, CORES_IN_A_WORD, DONE, MASTER_PATIENCE, MESSAGES, NUMBER_BITS, PATIENCE, READY, RECORD,
    SENT, SERVED, WAY,
};
use bulkhead_abi::one_shot::{PORTS_OFFSET, marker};
use bulkhead_exec_one_shot::clock::Window;
use bulkhead_exec_one_shot::port::Memory;
use bulkhead_hal::{csr, marker::custom};

/// The bits of a word with a message's number.
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// Makes ticks those of the master's clock. For [`crate::Configuration::at_first`].
pub fn synchronise() {
    let own = record(arch::core_number());
    let tick = arch::system().timer;
    let correction = match get(own + SERVED) {
        0 => follow(own, tick),
        cores => {
            lead(own, cores, tick);
            begin(own, cores, tick);
            0
        }
    };
    kernel::follow_clock(correction);
}

/// Waits for a time of the master.
fn wait(begin: u64, correction: u64) {
    while csr::time().wrapping_add(correction) < begin {}
}

/// The core with this place in the master's list.
fn served(own: u64, index: u64) -> u16 {
    let word = get(own - 8 * (1 + index / CORES_IN_A_WORD));
    (word >> (16 * (index % CORES_IN_A_WORD))) as u16
}

/// The record of a core.
fn record(core: u16) -> u64 {
    arch::port_records(core) - (PORTS_OFFSET - RECORD)
}

fn get(address: u64) -> u64 {
    let Ok(word) = Chip.load_double(address);
    word
}

fn put(address: u64, word: u64) {
    let Ok(()) = Chip.store_double(address, word);
}

/// Waits for messages; what to add to the own timer, from the message that says most.
fn follow(own: u64, tick: u64) -> u64 {
    let begin = csr::time();
    let mut best: Option<Window> = None;
    for number in 1..=MESSAGES {
        // Before the message can arrive.
        let mut earliest = csr::time();
        put(own + READY, number);
        let (sent, latest) = loop {
            // Before this look: if it finds nothing, the message arrives later.
            let look = csr::time();
            let word = get(own + SENT);
            if word & NUMBER == number {
                break (word >> NUMBER_BITS, csr::time());
            }
            if look - begin > PATIENCE * tick {
                return alone();
            }
            earliest = look;
        };
        let way = loop {
            let word = get(own + WAY);
            if word & NUMBER == number {
                break word >> NUMBER_BITS;
            }
            if csr::time() - begin > PATIENCE * tick {
                return alone();
            }
        };
        let window = Window::of(sent, way, earliest, latest);
        best = Some(best.map_or(window, |best| best.or(window)));
    }
    put(own + READY, DONE);
    let Some(best) = best else { return alone() };
    custom::<{ marker::CLOCK }>(best.correction());
    custom::<{ marker::CLOCK_ERROR }>(best.error());
    while csr::time() - begin <= PATIENCE * tick {
        let word = get(own + SENT);
        if word & NUMBER == DONE {
            wait(word >> NUMBER_BITS, best.correction());
            break;
        }
    }
    best.correction()
}

/// Nobody told the time.
fn alone() -> u64 {
    custom::<{ marker::CLOCK_ALONE }>(0);
    console::number(
        "clock not synchronised: no message of the master in ticks: ",
        PATIENCE,
    );
    0
}

/// Serves the cores of the list, in the order in which they get ready.
fn lead(own: u64, cores: u64, tick: u64) {
    let begin = csr::time();
    loop {
        let mut open = 0;
        let last = csr::time() - begin > MASTER_PATIENCE * tick;
        for index in 0..cores {
            let core = served(own, index);
            let other = record(core);
            match get(other + READY) {
                DONE => continue,
                1 => serve(other, tick),
                _ => {}
            }
            open += 1;
            if last {
                custom::<{ marker::CLOCK_ABSENT }>(core.into());
                console::number("clock: not ready for its time: core number ", core.into());
            }
        }
        if open == 0 || last {
            return;
        }
    }
}

/// Tells all cores when they begin, and begins then, too.
fn begin(own: u64, cores: u64, tick: u64) {
    let begin = (csr::time() / tick + BEGIN) * tick;
    for index in 0..cores {
        put(
            record(served(own, index)) + SENT,
            begin << NUMBER_BITS | DONE,
        );
    }
    wait(begin, 0);
}

/// Sends all messages to a core that waits for the first one.
fn serve(other: u64, tick: u64) {
    let begin = csr::time();
    for number in 1..=MESSAGES {
        while get(other + READY) != number {
            if csr::time() - begin > tick {
                return;
            }
        }
        let sent = csr::time();
        put(other + SENT, sent << NUMBER_BITS | number);
        // The message has arrived when this is over.
        let Ok(()) = Chip.order();
        let way = csr::time() - sent;
        put(other + WAY, way << NUMBER_BITS | number);
    }
}
