//! A client of the file service that writes the same short file again and again, reads it back, and prints how often that failed.
//!
//! Sessions: `files`. Arguments: `rounds` (100), `pause` between them (200us), `bytes` of the file (64). A span for each round. Ends with 1
//! if one failed.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::file::{CREATE, Mount, READ, Result, TRUNCATE, WRITE};
use bulkhead_lib::hal::marker;
use bulkhead_lib::{argument, println, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut mount = match Mount::connect("files") {
        Ok(mount) => mount,
        Err(status) => {
            println!("no session: {status}");
            return 1;
        }
    };
    let (rounds, pause) = (
        argument::value("rounds", 100),
        argument::time("pause", 200_000),
    );
    let mut failed = 0u64;
    for round in 0..rounds {
        marker::span_begin(round);
        let outcome = write_and_read(&mut mount, round);
        marker::span_end(round);
        if let Err(status) = outcome {
            failed += 1;
            if failed < 4 {
                println!("round {round}: {status}");
            }
        }
        time::sleep_until(time::now() + pause);
    }
    println!("{failed} of {rounds} rounds failed");
    u64::from(failed > 0)
}

fn write_and_read(mount: &mut Mount, round: u64) -> Result<()> {
    let data = vec![round as u8; argument::value("bytes", 64)];
    let mut file = mount.open("honest", WRITE | CREATE | TRUNCATE)?;
    file.write(&data)?;
    file.close()?;
    let mut back = vec![0; data.len() + 1];
    let mut file = mount.open("honest", READ)?;
    let length = file.read(&mut back)?;
    file.close()?;
    match back[..length] == data[..] {
        true => Ok(()),
        false => Err(Status::Corrupt),
    }
}
