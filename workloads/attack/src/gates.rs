//! A neighbour that makes many receive gates while it runs, and an accomplice on another tile that floods them: these messages appear in
//! no description.
//!
//! Arguments: `gates` (40): how many it makes and gives to each client that opens a session; it takes messages whenever it runs. Needs
//! `<service/>`, the gate `priority-0` and kernel memory. With `send` (no) it is the accomplice: from `start` (2ms) on it sends through
//! all gates that the server of its session gives to it, for ever, and prints a line after each 2000 messages.
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::{DtuError, NO_ENDPOINT, UNLIMITED_CREDITS};
use bulkhead_lib::abi::environment::ENVIRONMENT_BASE;
use bulkhead_lib::abi::message::HEADER_SIZE;
use bulkhead_lib::abi::syscall::{
    ANY_ENDPOINT, SEL_ACTIVITY, SEL_FREE, SEL_MEMORY, SEL_OFFERED, SEL_SESSIONS, Syscall,
    SyscallError,
};
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::gate::Aligned;
use bulkhead_lib::hal::{dtu, user};
use bulkhead_lib::{argument, println, syscall, time};
use core::sync::atomic::{AtomicU64, Ordering};

bulkhead_lib::main!(main);

/// First selector of receive gates and rights to send; the session is at [`SEL_FREE`].
const RECEIVE: u16 = SEL_FREE + 1;
const SEND: u16 = RECEIVE + MOST as u16;
/// The most gates.
const MOST: usize = 64;

/// The buffer of questions, then that of the messages of all gates, which nobody reads.
#[repr(C, align(4096))]
struct Buffer([AtomicU64; 1024]);
static BUFFER: Buffer = Buffer([const { AtomicU64::new(1) }; 1024]);

fn receive(gate: u16, slots: u8, slot_size: u16, at: u64) -> Result<u16, SyscallError> {
    syscall::call(&Syscall::CreateReceive {
        target: gate,
        slots,
        slot_size,
    })?;
    let [endpoint, ..] = syscall::call(&Syscall::Activate {
        gate,
        activity: SEL_ACTIVITY,
        memory: SEL_MEMORY,
        offset: BUFFER.0.as_ptr() as u64 - ENVIRONMENT_BASE + at,
        replies: u8::from(at == 0),
        endpoint: ANY_ENDPOINT,
    })?;
    Ok(endpoint as u16)
}

fn serve() -> Result<(), SyscallError> {
    let questions = receive(SEL_FREE, 2, 192, 0)?;
    let mut endpoints = [NO_ENDPOINT; MOST];
    let gates = argument::value("gates", 40).min(MOST as u64) as usize;
    for (number, endpoint) in (0..).zip(&mut endpoints[..gates]) {
        *endpoint = receive(RECEIVE + number, 32, 64, 4096)?;
        syscall::call(&Syscall::CreateSend {
            source: RECEIVE + number,
            target: SEND + number,
            label: 1,
            credits: UNLIMITED_CREDITS,
        })?;
    }
    syscall::call(&Syscall::CreateService {
        gate: SEL_FREE,
        target: SEL_OFFERED,
    })?;
    let mut given = 0;
    loop {
        if let Ok(Some(place)) = dtu::fetch(questions) {
            let at = (place as usize + HEADER_SIZE) / 8;
            let word = |index: usize| BUFFER.0[at + index].load(Ordering::Relaxed);
            let mut answer = Aligned([0u8; 40]);
            if word(0) == 2 {
                let count = word(3).min(gates as u64 - given);
                answer.0[8..16].copy_from_slice(&(u64::from(SEND) + given).to_le_bytes());
                answer.0[16..24].copy_from_slice(&count.to_le_bytes());
                given += count;
            }
            let _ = retry(&answer.0, || dtu::reply(questions, place, &answer.0));
        }
        for endpoint in &endpoints[..gates] {
            while let Ok(Some(place)) = dtu::fetch(*endpoint) {
                let _ = dtu::acknowledge(*endpoint, place);
            }
        }
    }
}

/// Repeats a command once the unit knows the page of its data.
fn retry(data: &[u8], command: impl Fn() -> Result<(), DtuError>) -> Result<(), DtuError> {
    match command() {
        Err(DtuError::TranslationFault) => {
            user::ecall(Ecall::Translate, data.as_ptr() as u64, 1);
            command()
        }
        other => other,
    }
}

fn flood() -> Result<(), SyscallError> {
    time::sleep_until(argument::time("start", 2_000_000));
    syscall::call(&Syscall::OpenSession {
        service: SEL_SESSIONS,
        target: SEL_FREE,
        argument: 0,
    })?;
    let mut endpoints = [NO_ENDPOINT; MOST];
    let mut count = 0;
    for own in SEND..SEND + MOST as u16 {
        let given = syscall::call(&Syscall::Exchange {
            session: SEL_FREE,
            delegate: 0,
            own,
            count: 1,
            argument0: 0,
            argument1: 0,
            argument2: 0,
        });
        if given.is_ok()
            && let Ok((endpoint, _)) = syscall::activate(own)
        {
            endpoints[count] = endpoint;
            count += 1;
        }
    }
    let message = Aligned([7u8; 8]);
    let mut sent = 0u64;
    loop {
        for endpoint in &endpoints[..count] {
            let send = || dtu::send(*endpoint, &message.0, NO_ENDPOINT, 0);
            if retry(&message.0, send).is_ok() {
                sent += 1;
                if sent.is_multiple_of(2000) {
                    println!("{sent} messages over {count} gates");
                }
            }
        }
    }
}

fn main() -> u64 {
    let done = match argument::text("send") {
        Some("yes") => flood(),
        _ => serve(),
    };
    println!("{done:?}");
    1
}
