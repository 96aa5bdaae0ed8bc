//! Opens sockets until it gets no more, and dies with all of them.
//!
//! Gates: `network` (send). Arguments: `to` (address), `port` (9): the destination of its connections; `after` (1ms):
//! when it dies.
#![no_std]
#![no_main]

use bulkhead_lib::common::status::Status;
use bulkhead_lib::socket::{Network, Remote, Result, address};
use bulkhead_lib::{argument, println, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match open() {
        Ok(sockets) => panic!("dies with {sockets} sockets"),
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn open() -> Result<u64> {
    let to = argument::text("to").and_then(address);
    let to = Remote {
        address: to.ok_or(Status::BadRequest)?,
        port: argument::value("port", 9),
    };
    let end = time::now() + argument::time("after", 1_000_000);
    let mut network = Network::connect("network")?;
    // The other side may still be starting.
    let patience = time::now() + 20_000_000;
    let _connection = loop {
        match network.connect_to(to, time::now() + 1_000_000) {
            Err(Status::Closed | Status::Timeout) if time::now() < patience => {}
            other => break other?,
        }
        time::sleep_until(time::now() + 100_000);
    };
    let mut sockets = 1;
    loop {
        match network.bind(0) {
            Ok(_) => sockets += 1,
            Err(Status::TooMany) => break,
            Err(status) => return Err(status),
        }
    }
    time::sleep_until(end);
    Ok(sockets)
}
