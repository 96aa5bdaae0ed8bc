//! Makes small requests of the network service, over and over, to see whether it lives and how long it takes.
//!
//! Gates: `network` (send). Arguments: `runs` (100), `pause` between two (20us), `counts` (no): whether it prints at the end what
//! the service did for frames that belong to no client. Each round opens a socket, asks for the own address and closes the socket;
//! it is a span.
#![no_std]
#![no_main]

use bulkhead_lib::socket::{Network, Result};
use bulkhead_lib::{argument, marker, println, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match ask() {
        Ok(()) => 0,
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn ask() -> Result<()> {
    let runs: u64 = argument::value("runs", 100);
    let pause = argument::time("pause", 20_000);
    let mut network = Network::connect("network")?;
    for run in 0..runs {
        marker::span_begin(run);
        let socket = network.bind(0)?;
        network.own()?;
        network.unbind(socket)?;
        marker::span_end(run);
        time::sleep_until(time::now() + pause);
    }
    if argument::text("counts") == Some("yes") {
        let counts = network.counts()?;
        println!(
            "frames of nobody: {} in {} ns, {} dropped in {} ns, {} recycled, {} expired, after {} ns",
            counts.taken,
            counts.time,
            counts.dropped,
            counts.drop_time,
            counts.recycled,
            counts.expired,
            time::now()
        );
    }
    Ok(())
}
