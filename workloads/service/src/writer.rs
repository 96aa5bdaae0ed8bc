//! A client of the console service: writes lines.
//!
//! Gates: `console` (send). Arguments: `lines` (10), `text`.
#![no_std]
#![no_main]

extern crate alloc;

use bulkhead_lib::client::Client;
use bulkhead_lib::common::console::Write;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut console = Client::named("console");
    let lines: u64 = argument::value("lines", 10);
    let text = argument::text("text").unwrap_or("a line");
    for line in 0..lines {
        let line = alloc::format!("{text} {line}");
        if let Err(status) = console.call(&Write::new(&line)) {
            println!("line {line}: {status}");
            return 1;
        }
    }
    // Control characters are refused: a client cannot make lines look like those of another.
    u64::from(console.call(&Write::new("a\nkernel: b")) != Err(Status::BadRequest))
}
