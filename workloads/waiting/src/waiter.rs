//! Waits for messages in one of three ways, and answers them.
//!
//! Gates: `input` (receive). Arguments: `method`: `sleep` (a command of the unit, from user mode), `syscall` (a call to
//! TileMux, which executes `wfi`) or `poll`; `runs` (100), `warmup` (20). Each wait is a span: it begins when there is
//! nothing to do and ends with the message in hand.
#![no_std]
#![no_main]

use bulkhead_lib::abi::tilemux::Ecall;
use bulkhead_lib::gate::{MessageBuffer, ReceiveGate};
use bulkhead_lib::hal::{dtu, user};
use bulkhead_lib::{argument, marker, println};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let input = ReceiveGate::named("input");
    let runs: u64 = argument::value("runs", 100);
    let warmup: u64 = argument::value("warmup", 20);
    let endpoint = input.endpoint();
    match argument::text("method").unwrap_or("sleep") {
        "sleep" => serve(&input, warmup, runs, || dtu::sleep(endpoint, 0)),
        "syscall" => serve(&input, warmup, runs, || {
            user::ecall(Ecall::Wait, endpoint.into(), 0);
        }),
        "poll" => serve(&input, warmup, runs, || {}),
        other => {
            println!("there is no method `{other}`");
            1
        }
    }
}

#[inline(always)]
fn serve(input: &ReceiveGate, warmup: u64, runs: u64, wait: impl Fn()) -> u64 {
    let answer = MessageBuffer::new();
    for run in 0..warmup + runs {
        if run == warmup {
            marker::measure_begin(runs);
        }
        marker::span_begin(run);
        let message = loop {
            wait();
            match input.fetch() {
                Ok(Some(message)) => break message,
                Ok(None) => {}
                Err(error) => {
                    println!("no message: {error:?}");
                    return 1;
                }
            }
        };
        marker::span_end(run);
        if let Err(error) = message.reply(&answer.0[..1]) {
            println!("no reply possible: {error:?}");
            return 1;
        }
    }
    marker::measure_end(runs);
    0
}
