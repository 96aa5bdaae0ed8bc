//! A service that answers the kernel's questions with words of all lengths and values, answers twice, and answers an earlier question again;
//! and its clients, which name selectors at the edges.
//!
//! Gates: `priority-0` (receive) makes it the server; the others have one session. Arguments: `life` (20ms), after which the server fails
//! (its manager starts it again) and a client says how many sessions it got, how many calls were refused, and how many capabilities moved.
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::DtuError;
use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::syscall::{
    SEL_FREE, SEL_MEMORY, SEL_OFFERED, SEL_SESSIONS, SELECTORS, SYSCALL_SLOT, Syscall,
};
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::gate::{Aligned, ReceiveGate};
use bulkhead_lib::hal::{dtu, user};
use bulkhead_lib::zerocopy::IntoBytes;
use bulkhead_lib::{argument, println, syscall, time};
use bulkhead_random::Random;
use core::ptr::addr_of;
use core::sync::atomic::AtomicU64;

bulkhead_lib::main!(main);

/// The buffer for questions; the unit writes it.
#[repr(C, align(64))]
struct Questions([AtomicU64; SLOTS * SYSCALL_SLOT as usize / 8]);
static QUESTIONS: Questions =
    Questions([const { AtomicU64::new(1) }; SLOTS * SYSCALL_SLOT as usize / 8]);
const SLOTS: usize = 4;
/// Selectors: of the server's gate, of a client's sessions, and where a client gets things.
const GATE: u16 = SEL_FREE + 40;
const SESSIONS: u16 = SEL_FREE + 60;
const GOT: u16 = SEL_FREE + 150;

fn main() -> u64 {
    let end = time::now() + argument::time("life", 20_000_000);
    match ReceiveGate::find("priority-0") {
        Some(_) => serve(end),
        None => ask(end),
    }
}

fn reply(input: u16, slot: u32, data: &[u8]) -> bool {
    let mut done = dtu::reply(input, slot, data);
    if done == Err(DtuError::TranslationFault) {
        user::ecall(Ecall::Translate, data.as_ptr() as u64, 1);
        done = dtu::reply(input, slot, data);
    }
    done.is_ok()
}

fn serve(end: u64) -> u64 {
    let receive = Syscall::CreateReceive {
        target: GATE,
        slots: SLOTS as u8,
        slot_size: SYSCALL_SLOT,
    };
    let place = addr_of!(QUESTIONS) as u64 - ENVIRONMENT_BASE;
    let input = syscall::call(&receive).and_then(|_| syscall::receive(GATE, SEL_MEMORY, place));
    let service = Syscall::CreateService {
        gate: GATE,
        target: SEL_OFFERED,
    };
    let input = match input.and_then(|input| syscall::call(&service).map(|_| input)) {
        Ok(input) => input,
        Err(error) => panic!("its service: {error:?}"),
    };
    let mut random = Random::new(end);
    let (mut questions, mut twice, mut before) = (0u64, 0u64, None);
    while time::now() < end {
        let Ok(Some(slot)) = dtu::fetch(input) else {
            time::sleep_until(time::now() + 5_000);
            continue;
        };
        questions += 1;
        let mut words = Aligned([0u64; 9]);
        for word in &mut words.0 {
            *word = match random.below(8) {
                0 => u64::MAX,
                1 => u64::from(SELECTORS) - 4 + random.below(8),
                2 => 65_532 + random.below(8),
                3 => random.next(),
                4 => random.below(12),
                _ => u64::from(GATE) + random.below(4) - 1,
            };
        }
        // Most of the time it agrees; otherwise the first word is its reason.
        if random.chance(70) {
            words.0[0] = 0;
        }
        let length = match random.below(4) {
            0 => 1 + random.below(72) as usize,
            _ => 8 * (1 + random.below(9) as usize),
        };
        let data = &words.0.as_bytes()[..length];
        reply(input, slot, data);
        twice += u64::from(!reply(input, slot, data));
        if let Some(old) = before.replace(slot).filter(|_| random.chance(30)) {
            reply(input, old, data);
        }
    }
    panic!("ends after {questions} questions; {twice} second answers were refused");
}

fn ask(end: u64) -> u64 {
    let mut random = Random::new(end);
    let (mut rounds, mut sessions, mut refused, mut moved) = (0u64, 0u64, 0u64, 0u64);
    let mut call = |request: Syscall| {
        let done = syscall::call(&request);
        refused += u64::from(done.is_err());
        done.ok()
    };
    while time::now() < end {
        rounds += 1;
        let session = SESSIONS + random.below(40) as u16;
        let open = call(Syscall::OpenSession {
            service: SEL_SESSIONS,
            target: session,
            argument: random.next(),
        });
        sessions += u64::from(open.is_some());
        let own = match random.below(4) {
            0 => SELECTORS - 4 + random.below(8) as u16,
            1 => u16::MAX - random.below(8) as u16,
            _ => GOT + random.below(8) as u16,
        };
        let given = call(Syscall::Exchange {
            session,
            delegate: random.below(2) as u8,
            own,
            count: random.below(10) as u16,
            argument0: rounds,
            argument1: 0,
            argument2: u64::MAX,
        });
        moved += given.map_or(0, |[_, _, count, ..]| count);
        for selector in [session, own, GOT + random.below(8) as u16] {
            if random.chance(60) && selector >= SEL_FREE {
                call(Syscall::Revoke { selector, keep: 0 });
            }
        }
        if open.is_none() {
            time::sleep_until(time::now() + 20_000);
        }
    }
    println!("{rounds} rounds, {sessions} children, {refused} refused; {moved} moved");
    0
}
