//! The controller of the control loop: a PID law with a limited integral, a feed-forward map in memory, and a limited slope.
//!
//! Gates: `input` (receive), `actuator` (send); `map` (memory, may be missing): rows of 4 KiB, one for each range of the
//! error, fetched by the DTU. Arguments: `setpoint` (100), `kp` (0.8), `ki` (0.2), `kd` (0.05).
#![no_std]
#![no_main]

extern crate alloc;

mod message;

use alloc::boxed::Box;
use bulkhead_lib::gate::{MemoryGate, ReceiveGate, SendGate};
use bulkhead_lib::{argument, marker, println};
use message::Sample;
use zerocopy::IntoBytes;

bulkhead_lib::main!(main);

/// A row of the map.
#[repr(C, align(4096))]
struct Row([u64; 512]);

/// State of the control law.
struct Pid {
    kp: f64,
    ki: f64,
    kd: f64,
    integral: f64,
    previous: f64,
}

impl Pid {
    /// Bound of the integral, which keeps a long disturbance from winding it up.
    const INTEGRAL: f64 = 50.0;

    fn step(&mut self, error: f64) -> f64 {
        self.integral = (self.integral + error).clamp(-Self::INTEGRAL, Self::INTEGRAL);
        let slope = error - self.previous;
        self.previous = error;
        self.kp * error + self.ki * self.integral + self.kd * slope
    }
}

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    let actuator = SendGate::named("actuator");
    let map = MemoryGate::find("map");
    let setpoint: f64 = argument::value("setpoint", 100.0);
    let mut law = Pid {
        kp: argument::value("kp", 0.8),
        ki: argument::value("ki", 0.2),
        kd: argument::value("kd", 0.05),
        integral: 0.0,
        previous: 0.0,
    };
    let mut row = Box::new(Row([0; 512]));
    let mut output = 0.0;
    loop {
        let message = match input.receive() {
            Ok(message) => message,
            Err(error) => {
                println!("no input: {error:?}");
                return 1;
            }
        };
        let sample = Sample::from_payload(message.payload());
        // The sensor may continue at once; its value was copied. After its last message it may be gone.
        if let Err(error) = message.finish()
            && sample.job != 0
        {
            println!("the sensor gets no credit back: {error:?}");
        }
        let mut command = Sample::end();
        if sample.job != 0 {
            let error = setpoint - sample.value;
            let mut wanted = law.step(error);
            if let Some(gate) = &map {
                let bytes = row.0.as_mut_bytes();
                let rows = (gate.size() / bytes.len() as u64).max(1);
                let length = bytes.len().min(gate.size() as usize);
                let offset = (error.abs() * 16.0) as u64 % rows * bytes.len() as u64;
                if gate.read(offset, &mut bytes[..length]).is_err() {
                    println!("the map cannot be read");
                    return 1;
                }
                let sum = row.0.iter().fold(0, |sum, word| word.wrapping_add(sum));
                wanted += (sum as u16) as f64 / 65536.0;
            }
            // The actuator must not jump.
            output += (wanted - output).clamp(-5.0, 5.0);
            command = Sample {
                value: output,
                ..sample
            };
        }
        if let Err(error) = actuator.send_waiting(command.as_bytes()) {
            println!("the actuator cannot be reached: {error:?}");
            return 1;
        }
        if sample.job == 0 {
            // The sum of all decisions must be the same in every run.
            marker::check(output.to_bits());
            return 0;
        }
    }
}
