//! Two services of one program: both add, and each prints who opens sessions.
//!
//! Gates: `priority-0`, ..., `second-priority-0`, ... (receive). Arguments: those of `lib::server`, with and without `second-`.
//! Operation `Keep` ends it.
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::common::message::Request;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::println;
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::services::{self, Offer};
use protocol::{Add, Keep, add};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut first = Offer {
        server: Server::from_environment(),
        service: Adder {
            name: "first",
            sessions: 0,
        },
    };
    let mut second = Offer {
        server: Server::named("second"),
        service: Adder {
            name: "second",
            sessions: 0,
        },
    };
    services::run(&mut [&mut first, &mut second])
}

struct Adder {
    name: &'static str,
    sessions: u32,
}

impl Service for Adder {
    const SESSIONS: bool = true;

    fn estimate(&mut self, _: Client, _: u64, _: &[u8]) -> u64 {
        2000
    }

    fn opened(&mut self, _: u16) {
        self.sessions += 1;
        println!("{}: session {}", self.name, self.sessions);
    }

    fn serve(&mut self, request: Incoming) {
        match request.operation() {
            Add::OPERATION => add(request),
            Keep::OPERATION => panic!("told to stop"),
            _ => request.fail(Status::UnknownOperation),
        }
    }
}
