//! The actuator of the control loop: applies set values and watches the deadline from end to end.
//!
//! Gates: `input` (receive); `log` (memory, may be missing): one record of 64 bytes for each value, written by the DTU.
#![no_std]
#![no_main]

mod message;

use bulkhead_lib::gate::{Aligned, MemoryGate, ReceiveGate};
use bulkhead_lib::{marker, println, time};
use message::Sample;
use zerocopy::IntoBytes;

bulkhead_lib::main!(main);

/// Bytes of a record.
const RECORD: usize = 64;

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    let log = MemoryGate::find("log");
    let (mut jobs, mut misses, mut worst) = (0u64, 0u64, 0u64);
    let mut position = 0.0f64;
    loop {
        let message = match input.receive() {
            Ok(message) => message,
            Err(error) => {
                println!("no input: {error:?}");
                return 1;
            }
        };
        let sample = Sample::from_payload(message.payload());
        if sample.job == 0 {
            // Nobody waits for this credit any more.
            let _ = message.finish();
            break;
        }
        // The end stops of the actuator.
        position = (position + sample.value).clamp(-1000.0, 1000.0);
        if sample.measured != 0 {
            marker::flow_end(sample.job);
            let latency = time::now() - sample.release;
            jobs += 1;
            worst = worst.max(latency);
            if sample.deadline != 0 && latency > sample.deadline {
                misses += 1;
                marker::deadline_miss(sample.job);
            }
        }
        if let Err(error) = message.finish() {
            println!("the controller gets no credit back: {error:?}");
        }
        if let Some(gate) = &log {
            let mut record = Aligned([0u8; RECORD]);
            let bytes = sample.as_bytes();
            record.0[..bytes.len()].copy_from_slice(bytes);
            let records = (gate.size() / RECORD as u64).max(1);
            if gate
                .write(jobs % records * RECORD as u64, &record.0)
                .is_err()
            {
                println!("the log cannot be written");
                return 1;
            }
        }
    }
    marker::check(position.to_bits());
    println!("{jobs} jobs, {misses} deadline misses, worst latency {worst} ns");
    0
}
