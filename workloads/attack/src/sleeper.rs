//! Semaphores whose owner ends while many wait for others of its semaphores.
//!
//! Gates: `priority-0` (receive) makes it the owner, which offers a service; the others have the session `owner`. The owner makes eight
//! semaphores, gives each client another one, and fails after `life` (2ms); its manager starts it again. A client waits for its semaphore,
//! which nobody raises, learns that it is gone, and asks again. Arguments: `say` (4): how often a client learns that before it says so.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    SEL_FREE, SEL_OFFERED, SEL_SESSIONS, ServerRequest, Syscall, SyscallError,
};
use bulkhead_lib::gate::{Aligned, ReceiveGate};
use bulkhead_lib::zerocopy::IntoBytes;
use bulkhead_lib::{argument, println, session, syscall, time};

bulkhead_lib::main!(main);

const SEMAPHORES: u16 = SEL_FREE + 40;
const COUNT: u16 = 8;
/// A client's session and semaphore.
const SESSION: u16 = SEL_FREE + 60;
const GOT: u16 = SEL_FREE + 61;

fn main() -> u64 {
    match ReceiveGate::find("priority-0") {
        Some(_) => own(),
        None => wait(),
    }
}

fn own() -> u64 {
    let end = time::now() + argument::time("life", 2_000_000);
    for target in SEMAPHORES..SEMAPHORES + COUNT {
        if let Err(error) = syscall::call(&Syscall::CreateSemaphore { target, value: 0 }) {
            panic!("a semaphore: {error:?}");
        }
    }
    let control = match session::offer(SEL_OFFERED) {
        Ok(control) => control,
        Err(status) => panic!("its service: {status}"),
    };
    let (mut given, mut lost) = (0u16, 0u64);
    while time::now() < end {
        let Ok(Some(question)) = control.receive_until(end) else {
            continue;
        };
        let words = match ServerRequest::decode(question.words()) {
            Some(ServerRequest::Open { activity, .. }) => [0, activity.into(), 0, 0, 0],
            Some(ServerRequest::Exchange { .. }) => {
                given += 1;
                [0, u64::from(SEMAPHORES + given % COUNT), 1, 0, 0]
            }
            _ => [0; 5],
        };
        // A client that is gone harms only itself.
        lost += u64::from(question.reply(Aligned(words).0.as_bytes()).is_err());
    }
    panic!("ends with {given} semaphores given, {lost} answers lost");
}

fn wait() -> u64 {
    let every: u64 = argument::value("say", 4);
    let (mut gone, mut other, mut revoked) = (0u64, 0u64, 0u64);
    loop {
        for selector in [GOT, SESSION] {
            // Most of the time the owner's end has removed them.
            revoked += u64::from(syscall::call(&Syscall::Revoke { selector, keep: 0 }).is_ok());
        }
        let open = Syscall::OpenSession {
            // That of its only gate.
            service: SEL_SESSIONS,
            target: SESSION,
            argument: 0,
        };
        let obtain = Syscall::Exchange {
            session: SESSION,
            delegate: 0,
            own: GOT,
            count: 1,
            argument0: 0,
            argument1: 0,
            argument2: 0,
        };
        if syscall::call(&open).is_err() || syscall::call(&obtain).is_err() {
            time::sleep_until(time::now() + 20_000);
            continue;
        }
        match syscall::call(&Syscall::SemaphoreDown { semaphore: GOT }) {
            Err(SyscallError::Gone | SyscallError::Revoked | SyscallError::NoCapability) => {
                gone += 1
            }
            outcome => {
                other += 1;
                println!("won: {outcome:?}");
            }
        }
        if gone.is_multiple_of(every) {
            println!("{gone} rounds, {other} children, 0 refused; {revoked} revoked");
        }
    }
}
