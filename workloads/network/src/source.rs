//! Sends a stream to a sink, which answers with its checksum.
//!
//! Gates: `network` (send). Arguments: `to` (address), `port` (9), `bytes` (262144), `seed` (1). Span 1: from the connection to the
//! sink's answer, so that bytes divided by it is the throughput. A check value: the checksum of the sent stream.
#![no_std]
#![no_main]

use bulkhead_lib::common::network::DATA;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::socket::{Network, Remote, Result, address};
use bulkhead_lib::{argument, marker, println, time};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

fn main() -> u64 {
    match measure() {
        Ok(good) => u64::from(!good),
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn measure() -> Result<bool> {
    let to = argument::text("to").and_then(address);
    let to = Remote {
        address: to.ok_or(Status::BadRequest)?,
        port: argument::value("port", 9),
    };
    let bytes: u64 = argument::value("bytes", 262_144);
    let mut random = Random::new(argument::value("seed", 1u64).wrapping_mul(2) | 1);
    let mut network = Network::connect("network")?;
    // The sink may still be starting.
    let socket = loop {
        match network.connect_to(to, time::now() + 5_000_000) {
            Err(Status::Closed | Status::Timeout) if time::now() < 1_000_000_000 => {
                time::sleep_until(time::now() + 100_000);
            }
            other => break other?,
        }
    };
    let started = time::now();
    marker::span_begin(1);
    network.send(&socket, &bytes.to_le_bytes(), 0)?;
    let (mut left, mut sum) = (bytes, 0xFFFF_FFFFu64);
    let mut data = [0; DATA];
    while left > 0 {
        let length = left.min(DATA as u64) as usize;
        for part in data[..length].chunks_mut(8) {
            part.copy_from_slice(&random.next().to_le_bytes()[..part.len()]);
        }
        sum = checksum(sum, &data[..length]);
        network.send(&socket, &data[..length], 0)?;
        left -= length as u64;
    }
    let mut answer = [0; 8];
    let mut got = 0;
    while got < answer.len() {
        match network.receive(&socket, &mut answer[got..], 0)? {
            0 => return Err(Status::Closed),
            length => got += length,
        }
    }
    marker::span_end(1);
    let span = time::now() - started;
    network.close(socket)?;
    marker::check(sum);
    let rate = bytes * 1_000_000 / span.max(1);
    println!("{bytes} bytes in {span} ns: {rate} kB/s");
    if u64::from_le_bytes(answer) != sum {
        println!("the sink saw something else");
        return Ok(false);
    }
    Ok(true)
}

/// For a stream, piece by piece: the order matters.
fn checksum(sum: u64, data: &[u8]) -> u64 {
    data.iter().fold(sum, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
