//! Forges, repeats and overdoes messages with gates of its own and with those of others.
//!
//! Gates: `judge` (send, to a program that answers), `input` (receive, from a program that calls). Arguments: `rounds` (20).
//! Exit code: 0 if everything was refused that must be.
#![no_std]
#![no_main]

use bulkhead_lib::abi::dtu::{DtuError, NO_ENDPOINT, PAGE_SIZE};
use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::gate::{MessageBuffer, ReceiveGate, SendGate};
use bulkhead_lib::hal::{dtu, user};
use bulkhead_lib::{argument, environment, println, time};

bulkhead_lib::main!(main);

struct Tally {
    refused: u64,
    accepted: u64,
}

impl Tally {
    /// An attempt that must fail with this error.
    fn refused(&mut self, what: &str, outcome: Result<(), DtuError>, errors: &[DtuError]) {
        match outcome {
            Err(error) if errors.contains(&error) => self.refused += 1,
            other => {
                println!("{what}: {other:?}");
                self.accepted += 1;
            }
        }
    }
}

fn main() -> u64 {
    let rounds: u64 = argument::value("rounds", 20);
    let (judge, input) = (SendGate::named("judge"), ReceiveGate::named("input"));
    let mut tally = Tally {
        refused: 0,
        accepted: 0,
    };
    let buffer = MessageBuffer::new();
    user::ecall(
        Ecall::Translate,
        buffer.0.as_ptr() as u64 & !(PAGE_SIZE - 1),
        3,
    );
    let small = &buffer.0[..8];
    let own = environment();
    let gone = [DtuError::BadMessage, DtuError::NoReply];
    let none = [
        DtuError::InvalidEndpoint,
        DtuError::ForeignEndpoint,
        DtuError::BadMessage,
        DtuError::NoReply,
    ];
    for _ in 0..rounds {
        // A client calls; it is owed exactly one reply.
        let Some(offset) = next(input.endpoint()) else {
            println!("nobody calls");
            return 1;
        };
        tally.refused(
            "a reply that is too long",
            dtu::reply(input.endpoint(), offset, &buffer.0),
            &[DtuError::BadSize],
        );
        tally.refused(
            "a reply to no slot",
            dtu::reply(input.endpoint(), offset + 1, small),
            &gone,
        );
        let first = dtu::reply(input.endpoint(), offset, small);
        if first.is_err() {
            println!("the reply: {first:?}");
            return 1;
        }
        tally.refused(
            "a second reply",
            dtu::reply(input.endpoint(), offset, small),
            &gone,
        );
        tally.refused(
            "a second acknowledgement",
            dtu::acknowledge(input.endpoint(), offset),
            &gone,
        );
        // Replies to slots of all buffers, including its own buffer for replies: it has no right to do so.
        for endpoint in [own.syscall_reply, own.call_reply, judge.endpoint()] {
            tally.refused(
                "a reply to an answer",
                dtu::reply(endpoint, 0, small),
                &none,
            );
        }
        // More and longer messages than the gate has credits and bytes for; replies to places where nobody can receive.
        tally.refused(
            "a long message",
            dtu::send(judge.endpoint(), &buffer.0, own.call_reply, 0),
            &[DtuError::BadSize],
        );
        tally.refused(
            "an empty message",
            dtu::send(judge.endpoint(), &[], own.call_reply, 0),
            &[DtuError::BadSize],
        );
        let sent = dtu::send(judge.endpoint(), small, own.call_reply, 0);
        tally.refused(
            "beyond the credits",
            dtu::send(judge.endpoint(), small, own.call_reply, 0),
            &[DtuError::NoCredits],
        );
        let answer = own.call_reply;
        while sent.is_ok() {
            if let Some(offset) = next(answer) {
                let _ = dtu::acknowledge(answer, offset);
                break;
            }
        }
        // Everything that is not its own, including its neighbours' endpoints on the tile.
        let mine = [
            judge.endpoint(),
            input.endpoint(),
            own.syscall_send,
            own.syscall_reply,
            own.call_reply,
        ];
        for endpoint in (0..192).filter(|e| !mine.contains(e)) {
            let rights = (input.endpoint() + 1)..=(input.endpoint() + u16::from(input.slots()));
            let not_its = [DtuError::InvalidEndpoint, DtuError::ForeignEndpoint];
            // A right to reply is not a gate for sending.
            let errors: &[DtuError] = match rights.contains(&endpoint) {
                true => &[DtuError::InvalidEndpoint, DtuError::NoCredits],
                false => &not_its,
            };
            tally.refused(
                "somebody's gate",
                dtu::send(endpoint, small, NO_ENDPOINT, 0),
                errors,
            );
            tally.refused(
                "somebody's answer",
                dtu::reply(endpoint, 0, small),
                &not_its,
            );
        }
    }
    println!("{} refused, {} accepted", tally.refused, tally.accepted);
    u64::from(tally.accepted > 0)
}

/// Waits a while for the next message.
fn next(endpoint: u16) -> Option<u32> {
    let end = time::now() + 20_000_000;
    while time::now() < end {
        if let Ok(Some(offset)) = dtu::fetch(endpoint) {
            return Some(offset);
        }
    }
    None
}
