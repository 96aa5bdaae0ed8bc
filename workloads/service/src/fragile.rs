//! A service that stops on request: adds, and forgets to catch.
//!
//! Gates: `priority-0`, ... (receive). Arguments: those of `lib::server`, and `delay` (0us): when it offers its service. Operation
//! `Keep` ends it.
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::common::message::Request;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::{argument, time};
use protocol::{Add, Keep, add};

bulkhead_lib::main!(main);

fn main() -> u64 {
    time::sleep_until(time::now() + argument::time("delay", 0));
    Server::from_environment().run(&mut Fragile)
}

struct Fragile;

impl Service for Fragile {
    const SESSIONS: bool = true;

    fn estimate(&mut self, _: Client, _: u64, _: &[u8]) -> u64 {
        2000
    }

    fn serve(&mut self, request: Incoming) {
        match request.operation() {
            Add::OPERATION => add(request),
            Keep::OPERATION => panic!("told to stop"),
            _ => request.fail(Status::UnknownOperation),
        }
    }
}
