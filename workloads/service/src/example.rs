//! The example of the book, and a service for tests: adds, computes for a while, keeps requests.
//!
//! Gates: `priority-0`, ... (receive). Arguments: those of `lib::server`. It never ends.
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::common::message;
use bulkhead_lib::common::message::Request;
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::{common::status::Status, time};
use protocol::{Add, Keep, Work, add};

bulkhead_lib::main!(main);

fn main() -> u64 {
    Server::from_environment().run(&mut Example { kept: None })
}

struct Example {
    kept: Option<Incoming>,
}

impl Service for Example {
    fn estimate(&mut self, _: Client, operation: u64, body: &[u8]) -> u64 {
        match operation {
            Work::OPERATION => message::body::<Work>(body).map_or(0, |work| work.estimate),
            _ => 2000,
        }
    }

    fn serve(&mut self, request: Incoming) {
        match request.operation() {
            Add::OPERATION => add(request),
            Work::OPERATION => {
                let work = request.body::<Work>();
                let done = work.map(|work| {
                    let begin = time::now();
                    while time::now() - begin < work.time {}
                    time::now() - begin
                });
                request.answer(done);
            }
            Keep::OPERATION => {
                if let Some(earlier) = self.kept.replace(request) {
                    earlier.done(&1u64);
                }
            }
            _ => request.fail(Status::UnknownOperation),
        }
    }
}
