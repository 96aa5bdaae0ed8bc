//! Takes streams of sources, one after the other, and answers each with its checksum.
//!
//! Gates: `network` (send). Arguments: `port` (9). A stream is eight bytes with its length, and this many bytes. It never ends; a
//! stream that breaks off is forgotten.
#![no_std]
#![no_main]

use bulkhead_lib::common::network::DATA;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::socket::{Network, Result, Tcp};
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let port: u16 = argument::value("port", 9);
    let outcome = Network::connect("network").and_then(|mut network| {
        loop {
            let socket = network.listen(port)?;
            if let Err(status) = take(&mut network, &socket) {
                println!("a stream broke: {status}");
            }
            network.close(socket)?;
        }
    });
    let outcome: Result<()> = outcome;
    if let Err(status) = outcome {
        println!("{status}");
    }
    1
}

fn take(network: &mut Network, socket: &Tcp) -> Result<()> {
    network.accept(socket, 0)?;
    let mut length = [0; 8];
    let mut got = 0;
    while got < length.len() {
        got += some(network.receive(socket, &mut length[got..], 0)?)?;
    }
    let (mut left, mut sum) = (u64::from_le_bytes(length), 0xFFFF_FFFFu64);
    let mut data = [0; DATA];
    while left > 0 {
        let room = left.min(DATA as u64) as usize;
        let part = some(network.receive(socket, &mut data[..room], 0)?)?;
        for byte in &data[..part] {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
        left -= part as u64;
    }
    network.send(socket, &sum.to_le_bytes(), 0)
}

/// The stream must not end here.
fn some(bytes: usize) -> Result<usize> {
    match bytes {
        0 => Err(Status::Closed),
        bytes => Ok(bytes),
    }
}
