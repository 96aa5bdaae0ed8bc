//! The sensor of the control loop: releases a job in each period, takes a value and sends it.
//!
//! Gates: `controller` (send); `frame` (memory, may be missing): the raw data of the measurement, fetched by the DTU.
//! Arguments: `samples` (number of jobs, 50), `warmup` (first jobs that are not measured, 2), `setpoint` (what the measured
//! value swings around, 100).
#![no_std]
#![no_main]

extern crate alloc;

mod message;

use alloc::boxed::Box;
use bulkhead_lib::gate::{MemoryGate, SendGate};
use bulkhead_lib::task::PeriodicTask;
use bulkhead_lib::{argument, environment, hal, marker, println, time};
use message::Sample;
use zerocopy::IntoBytes;

bulkhead_lib::main!(main);

/// Raw data of one measurement.
#[repr(C, align(4096))]
struct Frame([u64; 512]);

fn main() -> u64 {
    let controller = SendGate::named("controller");
    let frames = MemoryGate::find("frame");
    let samples: u64 = argument::value("samples", 50);
    let warmup: u64 = argument::value("warmup", 2);
    let setpoint: f64 = argument::value("setpoint", 100.0);
    let mut frame = Box::new(Frame([0; 512]));
    let mut noise = 1u32;
    let mut task = PeriodicTask::from_environment();
    for _ in 0..samples + warmup {
        let job = task.next_job();
        let measured = job > warmup;
        if measured {
            marker::flow_begin(job);
        }
        let release = task.release();
        let mut value = setpoint;
        if let Some(gate) = &frames {
            // A ring of frames, as a converter would fill it.
            let bytes = frame.0.as_mut_bytes();
            let count = (gate.size() / bytes.len() as u64).max(1);
            let length = bytes.len().min(gate.size() as usize);
            if gate
                .read(job % count * bytes.len() as u64, &mut bytes[..length])
                .is_err()
            {
                println!("the frame cannot be read");
                return 1;
            }
            let sum = frame.0.iter().fold(0, |sum, word| word.wrapping_add(sum));
            value += (sum as u16) as f64 / 65536.0;
        }
        // A disturbance: xorshift noise, the same in every run.
        noise ^= noise << 13;
        noise ^= noise >> 17;
        noise ^= noise << 5;
        value += f64::from(noise >> 16) / 65536.0 - 0.5;
        let sample = Sample {
            job,
            release,
            value,
            deadline: environment().deadline,
            measured: measured.into(),
            ..Sample::default()
        };
        if let Err(error) = controller.send_waiting(sample.as_bytes()) {
            println!("the controller cannot be reached: {error:?}");
            return 1;
        }
        task.complete();
    }
    // Work that all do at the end is not part of the last job.
    time::sleep_until(task.release() + environment().deadline);
    let end = controller.send_waiting(Sample::end().as_bytes());
    // Everything is sent; the replies still to come carry nothing.
    hal::marker::check(samples);
    u64::from(end.is_err())
}
