//! A tile controlled by an attacker: machine mode, all registers of its unit, all memory in its windows.
//!
//! Why it exists: isolation must hold against a hostile TileMux, too. A test puts this into a running tile and starts its hart here, with
//! the kind of its last attack in `a0`: 0 never does anything again, 1 lies to the kernel, 2 floods everything that it can reach, 3 takes
//! the kernel's answers to text only when there is no more room for them. Kind 4 runs alone: it keeps dirty lines of all memory that it can
//! reach, and evicts them when that memory belongs to another owner. What it deliberately does not know: which activities were there; it
//! tries all.
//!
//! Every attempt that wrongly succeeded is counted; the counts are values of `Check` markers, `code << 32 | count`: 1 own endpoints
//! configured, 2 own external registers changed, 3 memory outside of the windows read, 4 messages sent that are too long, 5 replies without
//! a right, 6 endpoints used in the name of an activity that they do not belong to, 7 attempts, 8 attempts that were refused. Kind 3 then
//! says 9 for each answer that it took, and 10 once it may print again.
#![no_std]
#![no_main]

mod arch;

use bulkhead_abi::dtu::{
    BUCKET_RATE, BUCKET_STRIDE, BUCKETS, CurrentActivity, DtuError, ENDPOINT_WORDS,
    EXTERNAL_ARGUMENT, EXTERNAL_COMMAND, Endpoint, ExternalOpcode, FEATURE_PRIVILEGED, FEATURES,
    MemoryEndpoint, NO_ENDPOINT, TILEMUX_ACTIVITY,
};
use bulkhead_abi::memory_map::{DTU_BASE, MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{
    NOTIFY_ENDPOINT, PRINT_ENDPOINT, PRINT_REPLY, PRINT_REPLY_SLOTS, REQUEST_ENDPOINT,
    encode_stopped,
};
use bulkhead_hal::dtu::time;
use bulkhead_hal::{dtu, marker};
use bulkhead_user::probe;

/// Endpoints that are tried.
const LAST: u16 = 192;
/// Activities on whose behalf endpoints are tried, including some that do not exist.
const NAMES: u16 = 24;

#[repr(C, align(4096))]
struct Page([u8; 4096]);

struct Attack {
    attempts: u64,
    refused: u64,
}

impl Attack {
    /// Counts an attempt. Returns whether it succeeded.
    fn attempt<T, E>(&mut self, outcome: Result<T, E>) -> bool {
        self.attempts += 1;
        self.refused += u64::from(outcome.is_err());
        outcome.is_ok()
    }
}

fn words(index: u16) -> [u64; ENDPOINT_WORDS] {
    core::array::from_fn(|i| dtu::read(dtu::endpoint_offset(index) + 8 * i as u64))
}

fn report(code: u64, count: u64) {
    marker::check(code << 32 | count);
}

/// The owner of an endpoint that could do something.
fn owner(endpoint: u16) -> Option<u16> {
    match dtu::endpoint(endpoint) {
        Endpoint::Send(e) => Some(e.activity),
        Endpoint::Receive(e) => Some(e.activity),
        Endpoint::Memory(e) => Some(e.activity),
        Endpoint::Invalid => None,
    }
}

pub extern "C" fn main(last: u64) -> ! {
    let mut page = Page([0; 4096]);
    // The number of a call that does not exist, so that nothing happens on behalf of this tile's activities.
    page.0[..8].copy_from_slice(&63u64.to_le_bytes());
    dtu::end_command();
    let own = CurrentActivity::new(TILEMUX_ACTIVITY, 0, 0);
    dtu::exchange_activity(own);
    if last == 4 {
        hoard();
    }
    if last == 3 {
        // First, because the following attempts lose the credit for text.
        answered_late(&page);
    }
    let mut attack = Attack {
        attempts: 0,
        refused: 0,
    };

    // The memory of the kernel and of all activities, on an endpoint that it makes itself.
    let everything = Endpoint::Memory(MemoryEndpoint {
        activity: TILEMUX_ACTIVITY,
        target_tile: 8,
        rights: 3,
        base: 0,
        size: 1 << 40,
    });
    let (mut configured, wanted) = (0, everything.pack());
    for endpoint in 0..LAST {
        let before = words(endpoint);
        dtu::set_endpoint(endpoint, &everything);
        // An endpoint may change by itself meanwhile: a message arrives, or a credit comes back.
        let mut all = words(endpoint).into_iter().zip(before).zip(wanted);
        let same = !all.any(|((now, before), wanted)| now == wanted && before != wanted);
        configured += u64::from(!same);
        attack.attempt(if same { Err(()) } else { Ok(()) });
    }
    report(1, configured);

    // The registers that belong to the kernel.
    let rate = BUCKETS + BUCKET_STRIDE + BUCKET_RATE;
    let before = dtu::read(rate);
    let mut changed = 0;
    for (register, value) in [
        (FEATURES, FEATURE_PRIVILEGED),
        (rate, before ^ 0xFFFF),
        (EXTERNAL_ARGUMENT, MEMORY_BASE),
        (EXTERNAL_COMMAND, ExternalOpcode::StartHart as u64),
    ] {
        probe::store(DTU_BASE + register, value);
        let now = [FEATURES, rate].map(dtu::read);
        let same = now == [0, before];
        changed += u64::from(!same);
        attack.attempt(if same { Err(()) } else { Ok(()) });
    }
    report(2, changed);

    // After the windows, in every window, and where there is no window.
    let mut read = 0;
    for window in 0..PMP_WINDOWS {
        let size = match dtu::endpoint(window as u16) {
            Endpoint::Memory(shown) => shown.size,
            _ => 0,
        };
        for offset in [size, size + 4096, PMP_WINDOW_SIZE - 8] {
            if offset + 8 > PMP_WINDOW_SIZE {
                continue;
            }
            let before = arch::traps();
            probe::load(MEMORY_BASE + window * PMP_WINDOW_SIZE + offset);
            let refused = arch::traps() != before;
            read += u64::from(!refused);
            attack.attempt(if refused { Err(()) } else { Ok(()) });
        }
    }
    report(3, read);

    // Every endpoint on every activity's behalf.
    let (mut long, mut replied, mut foreign) = (0, 0, 0);
    for name in (0..NAMES).chain([0x7FFF, TILEMUX_ACTIVITY]) {
        dtu::exchange_activity(CurrentActivity::new(name, 0, 0));
        for endpoint in 0..LAST {
            // Lies come last. Its own windows belong to it.
            if endpoint == NOTIFY_ENDPOINT || u64::from(endpoint) < PMP_WINDOWS {
                continue;
            }
            long += u64::from(attack.attempt(dtu::send(endpoint, &page.0, NO_ENDPOINT, 0)));
            replied += u64::from(attack.attempt(dtu::reply(endpoint, 0, &page.0[..8])));
            let used = [
                attack.attempt(dtu::send(endpoint, &page.0[..8], NO_ENDPOINT, 0)),
                attack.attempt(dtu::read_memory(endpoint, 0, &mut page.0[2048..2056])),
                attack.attempt(dtu::fetch(endpoint)),
                attack.attempt(dtu::acknowledge(endpoint, 0)),
            ];
            let mine = owner(endpoint) == Some(name);
            foreign += u64::from(!mine && used.iter().any(|used| *used));
        }
    }
    dtu::exchange_activity(own);
    report(4, long);
    report(5, replied);
    report(6, foreign);
    report(7, attack.attempts);
    report(8, attack.refused);
    match last {
        1 => loop {
            for activity in 0..64 {
                say(&mut page, activity);
            }
        },
        2 => loop {
            for endpoint in (0..LAST).filter(|e| *e != NOTIFY_ENDPOINT) {
                if let Endpoint::Send(send) = dtu::endpoint(endpoint) {
                    dtu::exchange_activity(CurrentActivity::new(send.activity, 0, 0));
                    let _ = dtu::send(endpoint, &page.0[..8], NO_ENDPOINT, 0);
                }
            }
            dtu::exchange_activity(own);
            let _ = dtu::send(PRINT_ENDPOINT, &page.0[..8], NO_ENDPOINT, 0);
        },
        _ => {}
    }
    loop {
        core::hint::spin_loop();
    }
}

/// A window of the tile, and its bytes.
fn window(window: u64) -> (u64, u64) {
    let begin = MEMORY_BASE + window * PMP_WINDOW_SIZE;
    match dtu::endpoint(window as u16) {
        Endpoint::Memory(shown) => (begin, shown.size),
        _ => (begin, 0),
    }
}

/// Says yes to whatever the kernel asks for, and stores to each line of its windows except the first, which has its own memory. When one of
/// them has closed, it reads the first one after each round, so that no other line stays in its caches. Marks 11 and the number of stores
/// until then.
fn hoard() -> ! {
    let (mut stores, mut refused, mut most, mut told) = (0u64, 0, 0u64, false);
    loop {
        // The kernel gives up on a tile that does not answer, and stops its hart.
        while let Ok(Some(offset)) = dtu::fetch(REQUEST_ENDPOINT) {
            let _ = dtu::reply(REQUEST_ENDPOINT, offset, &0u64.to_le_bytes());
        }
        let before = arch::traps();
        let mut lines = 0u64;
        for (begin, size) in (1..PMP_WINDOWS).map(window) {
            for offset in (0..size).step_by(LINE) {
                probe::store(begin + offset, HOARDED);
                lines += 1;
            }
        }
        stores += lines;
        refused += arch::traps() - before;
        if lines >= most {
            most = lines;
            continue;
        }
        if !told {
            report(11, stores - refused);
            told = true;
        }
        let (begin, size) = window(0);
        for offset in (0..size.min(ENOUGH)).step_by(LINE) {
            probe::load(begin + offset);
        }
    }
}

/// Bytes of a line, and the value stored there, which an honest first owner also stores.
const LINE: usize = 64;
/// Enough bytes to displace all others: twice those of the second level.
const ENOUGH: u64 = 1 << 20;
const HOARDED: u64 = 16;

/// Prints until there is no room for the answers, takes them much later, and prints again.
fn answered_late(page: &Page) {
    take_answers();
    let print = || dtu::send(PRINT_ENDPOINT, &page.0[..8], PRINT_REPLY, 0).is_ok();
    for _ in 0..=PRINT_REPLY_SLOTS {
        while !print() {}
    }
    let later = time() + LATE;
    while time() < later {}
    report(9, take_answers());
    while !print() {}
    report(10, 1);
}

/// Nanoseconds for which answers are not taken: less than the kernel's patience.
const LATE: u64 = 1_000_000;

/// Takes the kernel's answers to text. Returns how many there were.
fn take_answers() -> u64 {
    let mut answers = 0;
    while let Ok(Some(offset)) = dtu::fetch(PRINT_REPLY) {
        answers += u64::from(dtu::acknowledge(PRINT_REPLY, offset).is_ok());
    }
    answers
}

/// Says that an activity has stopped.
fn say(page: &mut Page, activity: u16) {
    for (place, word) in page
        .0
        .chunks_exact_mut(8)
        .zip(encode_stopped(activity, StopCause::Panic))
    {
        place.copy_from_slice(&word.to_le_bytes());
    }
    // The tile has a part of the kernel's slots: the next lie waits until the kernel has read an earlier one.
    while dtu::send(NOTIFY_ENDPOINT, &page.0[..40], NO_ENDPOINT, 0) == Err(DtuError::NoSpace) {}
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
