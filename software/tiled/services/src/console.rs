//! The console service: prints the lines of many clients unmixed, each marked with its writer.
//!
//! Why it exists: lines that an application prints through its own tile's multiplexer can mix with those of others, and nothing
//! bounds their amount; here budgets do. What it deliberately does not know: the meaning of the lines.
//!
//! Gates: `priority-0`, ... (receive). Arguments: those of `lib::server`. It never ends.
#![no_std]
#![no_main]

use bulkhead_lib::common::console::Write;
use bulkhead_lib::common::message::Request;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::println;
use bulkhead_lib::server::{Client, Incoming, Server, Service};

bulkhead_lib::main!(main);

/// Longest time for a line, in nanoseconds: four calls of the multiplexer, with the printing.
const REQUEST: u64 = 40_000;

fn main() -> u64 {
    Server::from_environment().run(&mut Console)
}

struct Console;

impl Service for Console {
    fn estimate(&mut self, _: Client, _: u64, _: &[u8]) -> u64 {
        REQUEST
    }

    fn serve(&mut self, request: Incoming) {
        if request.operation() != Write::OPERATION {
            return request.fail(Status::UnknownOperation);
        }
        let Client { priority, label } = request.client();
        let printed = request.body::<Write>().and_then(|write| {
            let line = write.line().ok_or(Status::BadRequest)?;
            println!("{priority}.{label}: {line}");
            Ok(write.length)
        });
        request.answer(printed);
    }
}
