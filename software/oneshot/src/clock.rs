//! The synchronisation of clocks, once, before the first job.
//!
//! Why it exists: where tiles have timers of their own, ticks of two cores would have nothing to do with each other. A master sends its time to
//! every other core, which adds the measured way of the message (m2os-mc-ngres21, section 4.3). What it deliberately does not know: by how much
//! timers drift afterwards, and what a message says; that is in `exec`.
//!
//! When all have their time, the master says when they begin, so no message of the synchronisation is under way while jobs run.
//!
//! Nobody waits for ever: a core that no message reaches keeps its own time, and the master gives up on cores that do not start or do not go on. Every
//! core of a chip can write into these records. So a core takes only messages whose value follows from its request, the master compares what
//! a core took with what it sent, and a core keeps its own time unless the master then tells it when all begin. Each of these is told.

use crate::arch::{self, Chip};
use crate::{console, kernel};
use bulkhead_abi::one_shot::clock::{
    BEGIN, CORES_IN_A_WORD, DONE, LIST_SHIFT, MASTER_PATIENCE, MESSAGES, NUMBER_BITS, PATIENCE,
    READY, RECORD, SENT, SERVED, SERVED_MAX, WAY,
};
use bulkhead_abi::one_shot::{PORTS_OFFSET, clock_alone, marker};
use bulkhead_exec_one_shot::clock::{self, Receipt, Sent, Window};
use bulkhead_exec_one_shot::port::Memory;
use bulkhead_hal::{csr, marker::custom};

/// The bits of a word with a message's number.
const NUMBER: u64 = (1 << NUMBER_BITS) - 1;

/// Makes ticks those of the master's clock. For [`crate::Configuration::at_first`].
pub fn synchronise() {
    let own = record(arch::core_number());
    let tick = arch::system().timer;
    let correction = match get(own + SERVED) {
        0 => follow(own, tick).unwrap_or_else(|why| {
            alone(why);
            0
        }),
        list => {
            lead(own, list, tick);
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

/// Waits for messages; what to add to the own timer, from the message that says most, or why it is not known ([`clock_alone`]).
fn follow(own: u64, tick: u64) -> Result<u64, u64> {
    let begin = csr::time();
    let name = arch::core_number();
    let mut best: Option<Window> = None;
    let mut receipt = Receipt::default();
    for number in 1..=MESSAGES {
        // Before the message can arrive.
        let mut earliest = csr::time();
        let request = earliest << NUMBER_BITS | number;
        put(own + READY, request);
        let (sent, latest) = loop {
            // Before this look: if it finds nothing, the message arrives later.
            let look = csr::time();
            let word = get(own + SENT);
            if word & NUMBER == number {
                break (word, csr::time());
            }
            if look - begin > PATIENCE * tick {
                return Err(clock_alone::NO_MESSAGE);
            }
            earliest = look;
        };
        let (way, check) = loop {
            let word = get(own + WAY);
            if word & NUMBER == number {
                break clock::way_of(word);
            }
            if csr::time() - begin > PATIENCE * tick {
                return Err(clock_alone::NO_MESSAGE);
            }
        };
        if check != clock::check(name, request, sent, way) {
            tell_false(number);
            continue;
        }
        receipt.add(number, check);
        let window = Window::of(sent >> NUMBER_BITS, way, earliest, latest);
        best = Some(best.map_or(window, |best| best.or(window)));
    }
    let best = best.ok_or(clock_alone::NO_TRUE_MESSAGE)?;
    let receipt = receipt.word();
    put(own + READY, receipt);
    let correction = best.correction();
    custom::<{ marker::CLOCK }>(correction);
    custom::<{ marker::CLOCK_ERROR }>(best.error());
    let mut is_told = false;
    while csr::time() - begin <= PATIENCE * tick {
        let (way, sent) = (get(own + WAY), get(own + SENT));
        if way & NUMBER != DONE || sent & NUMBER != DONE {
            continue;
        }
        let at = sent >> NUMBER_BITS;
        // The master says it up to BEGIN ticks before, and this core may be behind by its error.
        let soon = at.wrapping_sub(csr::time().wrapping_add(correction)) <= (BEGIN + 1) * tick;
        if !soon || clock::way_of(way).1 != clock::check(name, receipt, sent, 0) {
            if !is_told {
                tell_false(DONE);
            }
            is_told = true;
            continue;
        }
        wait(at, correction);
        return Ok(correction);
    }
    Err(clock_alone::NO_BEGIN)
}

/// A message in the own record is not one that the master sent for the request.
#[cold]
fn tell_false(number: u64) {
    custom::<{ marker::CLOCK_FALSE }>(number);
    console::number(
        "clock: its record was written over: message number ",
        number,
    );
}

/// Nobody told the time.
#[cold]
fn alone(why: u64) {
    custom::<{ marker::CLOCK_ALONE }>(why);
    console::number("clock not synchronised: reason ", why);
}

/// The cores of the master's list, a bit for each.
#[derive(Clone, Copy, Default)]
struct Set([u64; (SERVED_MAX as usize + 1) / 64]);

impl Set {
    fn put(&mut self, index: u64) {
        if let Some(word) = self.0.get_mut(index as usize / 64) {
            *word |= 1 << (index % 64);
        }
    }

    fn has(&self, index: u64) -> bool {
        let word = self.0.get(index as usize / 64);
        word.is_some_and(|word| word >> (index % 64) & 1 == 1)
    }
}

/// Serves the cores of the list, in the order in which they get ready, and then tells those that have its time when they begin.
fn lead(own: u64, list: u64, tick: u64) {
    let cores = list & ((1 << LIST_SHIFT) - 1);
    let is_whole = || {
        let cores = (0..cores).map(|index| served(own, index));
        clock::list(cores) == list >> LIST_SHIFT
    };
    if cores > SERVED_MAX || !is_whole() {
        return alone(clock_alone::LIST);
    }
    let begin = csr::time();
    let is_late = || csr::time() - begin > MASTER_PATIENCE * tick;
    // Those that have its time, and those on which it gave up.
    let (mut told, mut over) = (Set::default(), Set::default());
    loop {
        let mut open = 0;
        let last = is_late();
        for index in 0..cores {
            if over.has(index) {
                continue;
            }
            let core = served(own, index);
            let took = match get(record(core) + READY) & NUMBER {
                1 if !is_late() => serve(core, tick),
                // It has its time, but not from here.
                DONE => Some(false),
                _ => {
                    open += 1;
                    if last {
                        tell_absent(core);
                    }
                    continue;
                }
            };
            over.put(index);
            match took {
                Some(true) => told.put(index),
                Some(false) => tell_denied(core),
                None => tell_absent(core),
            }
        }
        if open == 0 || last {
            break;
        }
    }
    let time = (csr::time() / tick + BEGIN) * tick;
    for index in (0..cores).filter(|index| told.has(*index)) {
        tell_begin(served(own, index), time);
    }
    wait(time, 0);
}

/// A core did not get ready, or did not go on.
#[cold]
fn tell_absent(core: u16) {
    custom::<{ marker::CLOCK_ABSENT }>(core.into());
    console::number("clock: not ready for its time: core number ", core.into());
}

/// A core took messages that this core did not send.
#[cold]
fn tell_denied(core: u16) {
    custom::<{ marker::CLOCK_DENIED }>(core.into());
    console::number("clock: took what was not sent: core number ", core.into());
}

/// Tells a core that has its time when all begin.
fn tell_begin(core: u16, time: u64) {
    let other = record(core);
    let receipt = get(other + READY);
    let sent = time << NUMBER_BITS | DONE;
    put(other + SENT, sent);
    // The core looks at the other word first.
    let Ok(()) = Chip.order();
    if let Some(word) = clock::way_word(DONE, 0, clock::check(core, receipt, sent, 0)) {
        put(other + WAY, word);
    }
}

/// Sends its messages to a core that waits for the first one, and says whether it took these and no others. None: it did not go on. All of this
/// takes a tick at most, whoever writes into the core's record meanwhile: others wait.
fn serve(core: u16, tick: u64) -> Option<bool> {
    let other = record(core);
    let mut all = Sent::default();
    let (mut last, begin) = (0, csr::time());
    loop {
        if csr::time() - begin > tick {
            return None;
        }
        let request = get(other + READY);
        let number = request & NUMBER;
        if number == DONE {
            return Some(all.agrees(request));
        }
        if number <= last || number > MESSAGES {
            continue;
        }
        let since = csr::time();
        let word = since << NUMBER_BITS | number;
        put(other + SENT, word);
        // The message has arrived when this is over.
        let Ok(()) = Chip.order();
        let way = csr::time() - since;
        let check = clock::check(core, request, word, way);
        put(other + WAY, clock::way_word(number, way, check)?);
        all.add(number, check);
        last = number;
    }
}
