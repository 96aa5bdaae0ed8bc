//! A hostile client of a network service: it takes all sockets that it can get, fills the card with their data for a neighbour and for
//! nobody, sends requests of any shape, leaves connections that nobody answers, and ends its session with all of that; again and again.
//!
//! Gates: `network` (send). Arguments: `to` (address of the neighbour), `port` (9), `seed` (1). It prints how often it left, and the total
//! numbers of datagrams that the service took and of requests that it refused.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use bulkhead_lib::abi::syscall::{SEL_FREE, SEL_SESSIONS, Syscall};
use bulkhead_lib::common::network::{BIND, CONNECT, DATA, Request, SEND_TO, address};
use bulkhead_lib::common::status::Status;
use bulkhead_lib::gate::{MessageBuffer, SendGate};
use bulkhead_lib::zerocopy::IntoBytes;
use bulkhead_lib::{argument, println, syscall, time};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

/// Selector of its session.
const SESSION: u16 = SEL_FREE + 100;
/// Nanoseconds that it waits for anything.
const PATIENCE: u64 = 20_000;
/// Datagrams of each socket before it leaves.
const WORDS: usize = 40;

struct Loud {
    gate: SendGate,
    buffer: MessageBuffer,
    random: Random,
    said: u64,
    refused: u64,
}

impl Loud {
    /// A request with data; returns the value of its answer.
    fn ask(&mut self, request: Request, data: usize) -> Result<u64, Status> {
        let head = request.as_bytes();
        let end = head.len() + data;
        self.buffer.0[..head.len()].copy_from_slice(head);
        let outcome = match self.gate.call(&self.buffer.0[..end]) {
            Ok(answer) => match answer.words() {
                [0, value, ..] => Ok(*value),
                [status, ..] => Err(Status::from_code(*status).unwrap_or(Status::BadReply)),
                [] => Err(Status::BadReply),
            },
            Err(_) => Err(Status::Transfer),
        };
        self.refused += u64::from(outcome.is_err());
        outcome
    }

    /// A message of any length and content that asks for nothing that takes long.
    fn babble(&mut self) {
        let length = self.random.below(120) as usize;
        for byte in &mut self.buffer.0[..length] {
            *byte = self.random.next() as u8;
        }
        self.buffer.0[..8].copy_from_slice(&self.random.below(14).to_le_bytes());
        self.buffer.0[16..24].copy_from_slice(&(time::now() + PATIENCE).to_le_bytes());
        let _ = self.gate.call(&self.buffer.0[..length]);
    }
}

fn main() -> u64 {
    let to = argument::text("to").and_then(address).unwrap_or_default();
    let port = argument::value("port", 9);
    let mut loud = Loud {
        gate: SendGate::named("network"),
        buffer: MessageBuffer::new(),
        random: Random::new(argument::value("seed", 1)),
        said: 0,
        refused: 0,
    };
    let mut rounds = 0u64;
    loop {
        let open = Syscall::OpenSession {
            // That of its first gate.
            service: SEL_SESSIONS,
            target: SESSION,
            argument: 0,
        };
        if syscall::call(&open).is_err() {
            continue;
        }
        let request = |operation: u64, socket: u64, address: [u8; 4]| Request {
            operation,
            socket,
            until: time::now() + PATIENCE,
            address,
            port,
            length: 0,
        };
        let mut sockets = Vec::new();
        let any = Request {
            port: 0,
            ..request(BIND, 0, to)
        };
        while let Ok(socket) = loud.ask(any, 0) {
            sockets.push(socket);
        }
        for word in 0..WORDS {
            for socket in &sockets {
                // Every eighth datagram goes to an absent neighbour.
                let nobody = [to[0], to[1], to[2], 100 + (word % 100) as u8];
                let whom = if word % 8 == 7 { nobody } else { to };
                let sent = loud.ask(request(SEND_TO, *socket, whom), DATA - 72);
                loud.said += u64::from(sent.is_ok());
            }
            loud.babble();
        }
        let _ = loud.ask(request(CONNECT, 0, [to[0], to[1], to[2], 99]), 0);
        let close = Syscall::Revoke {
            selector: SESSION,
            keep: 0,
        };
        let _ = syscall::call(&close);
        rounds += 1;
        println!(
            "{rounds} rounds, {} said, {} refused",
            loud.said, loud.refused
        );
    }
}
