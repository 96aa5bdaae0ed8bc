//! A server's victim client: asks once in each period, gives up after a while, and counts the outcomes of its requests.
//!
//! Gates: `service` (send). Arguments: `runs` (200), `warmup` (10), `period` (200us), `patience` (10ms), `time` of a request (20us).
//! Each served request is a span. Check values at the end: requests served; refused, by the unit or by the server;
//! not answered in time.
#![no_std]
#![no_main]

mod work;

use bulkhead_lib::gate::SendGate;
use bulkhead_lib::{argument, marker, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    let service = SendGate::named("service");
    let runs: u64 = argument::value("runs", 200);
    let warmup: u64 = argument::value("warmup", 10);
    let period: u64 = argument::time("period", 200_000);
    let patience: u64 = argument::time("patience", 10_000_000);
    let cost: u64 = argument::time("time", 20_000);
    let request = work::request(cost, cost);
    let (mut served, mut refused, mut unanswered) = (0u64, 0u64, 0u64);
    let mut next = time::now();
    for run in 0..warmup + runs {
        if run == warmup {
            marker::measure_begin(runs);
            (served, refused, unanswered) = (0, 0, 0);
        }
        time::sleep_until(next);
        let begin = time::now();
        marker::span_begin(run);
        match service.call_until(&request.0[..work::BYTES], begin + patience) {
            Ok(Some(answer)) if answer.word().unwrap_or(0) == 0 => {
                marker::span_end(run);
                served += 1;
            }
            Ok(None) => unanswered += 1,
            // The server refused it, there was no room for the message, or no credit because the last message is still there.
            Ok(Some(_)) | Err(_) => refused += 1,
        }
        next = (next + period).max(time::now());
    }
    marker::measure_end(runs);
    marker::check(served);
    marker::check(refused);
    marker::check(unanswered);
    0
}
