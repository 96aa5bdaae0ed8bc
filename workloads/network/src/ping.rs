//! Sends datagrams to an echo, one after the other, and checks and measures the replies.
//!
//! Gates: `network` (send). Arguments: `to` (address), `port` (7), `runs` (100), `size` (64), `timeout` (1ms): when a datagram
//! counts as lost, `lost` (0): how many may be, `pause` between two (0), `patience` (20ms): how long it waits for the very
//! first answer, before it measures. Each reply is a span; it prints the number of lost datagrams. A check value: the sum over
//! all replies.
#![no_std]
#![no_main]

use bulkhead_lib::common::network::DATA;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::socket::{Network, Remote, Result, address};
use bulkhead_lib::{argument, marker, println, time};

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
        port: argument::value("port", 7),
    };
    let runs: u64 = argument::value("runs", 100);
    let size = argument::value("size", 64usize).clamp(8, DATA);
    let timeout = argument::time("timeout", 1_000_000);
    let allowed: u64 = argument::value("lost", 0);
    let pause = argument::time("pause", 0);
    let mut network = Network::connect("network")?;
    let socket = network.bind(0)?;
    let (mut sent, mut got) = ([0; DATA], [0; DATA]);
    let (mut lost, mut sum) = (0, 0u64);
    // The echo may still be starting.
    let patience = time::now() + argument::time("patience", 20_000_000);
    let mut tries = [0xFF; 16];
    loop {
        network.send_to(&socket, to, &tries)?;
        tries[0] = tries[0].wrapping_sub(1);
        match network.receive_from(&socket, &mut got, time::now() + 200_000) {
            Ok(_) => break,
            Err(Status::Timeout) if time::now() < patience => {}
            Err(status) => return Err(status),
        }
    }
    for run in 0..runs {
        for (index, byte) in sent[..size].iter_mut().enumerate() {
            *byte = (run as usize * 31 + index) as u8;
        }
        sent[..8].copy_from_slice(&run.to_le_bytes());
        marker::span_begin(run);
        network.send_to(&socket, to, &sent[..size])?;
        let until = time::now() + timeout;
        let back = loop {
            match network.receive_from(&socket, &mut got, until) {
                // An earlier datagram that came late, or came twice.
                Ok((length, from)) if from == to && length >= 8 && got[..8] != sent[..8] => {}
                Ok((length, from)) => break from == to && got[..length] == sent[..size],
                Err(Status::Timeout) => {
                    lost += 1;
                    break true;
                }
                Err(status) => return Err(status),
            }
        };
        marker::span_end(run);
        if !back {
            println!("datagram {run} came back as another one");
            return Ok(false);
        }
        sum = sum.wrapping_add(got[..size].iter().map(|b| u64::from(*b)).sum());
        if pause > 0 {
            time::sleep_until(time::now() + pause);
        }
    }
    marker::check(sum);
    if lost > 0 {
        println!("{lost} of {runs} lost");
    }
    Ok(lost <= allowed)
}
