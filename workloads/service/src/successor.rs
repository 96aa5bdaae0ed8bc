//! A client that is started again: its first life leaves a request at a server that keeps it, and its second life needs the slot of the
//! same gate, with one credit.
//!
//! Gates: `server` (send, one credit), `note` (memory that outlives it). Arguments: `how` (`call`, `until`, `threads`, `work`): how its
//! second life asks. With `work` the server is the example service, which delays the request that comes after its budget is used up; else
//! it is the timer. It prints how many nanoseconds its second life waited.
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::client::Client;
use bulkhead_lib::common::message::{self, Buffer};
use bulkhead_lib::common::status::Status;
use bulkhead_lib::common::timer::Sleep;
use bulkhead_lib::gate::{MemoryGate, SendGate};
use bulkhead_lib::threads::{self, Calls};
use bulkhead_lib::{argument, println, time};
use core::cell::Cell;
use core::pin::pin;
use protocol::Work;

bulkhead_lib::main!(main);

/// Nanoseconds for which the first life would wait.
const LONG: u64 = 10_000_000_000;
/// Nanoseconds until it fails.
const FIRST: u64 = 1_000_000;
/// Nanoseconds of a request for work.
const WORK: u64 = 10_000;

fn main() -> u64 {
    let note = MemoryGate::named("note");
    let mut life = [0u8; 8];
    if note.read(0, &mut life).is_err() {
        return 2;
    }
    let how = argument::text("how").unwrap_or("call");
    if life == [0; 8] {
        if note.write(0, &1u64.to_le_bytes()).is_err() {
            return 2;
        }
        let mut server = Client::named("server");
        let left = match how {
            "work" => {
                let first = server.call(&work());
                println!("worked: {}", first.is_ok());
                server.call_until(&work(), time::now() + FIRST).map(|_| ())
            }
            _ => {
                let moment = time::now() + LONG;
                server
                    .call_until(&Sleep { moment }, time::now() + FIRST)
                    .map(|_| ())
            }
        };
        panic!("ends with {left:?}");
    }
    let begin = time::now();
    match again(how, begin) {
        Ok(()) => {
            println!("waited {} ns", time::now() - begin);
            0
        }
        Err(status) => {
            println!("failed: {status}");
            1
        }
    }
}

fn work() -> Work {
    Work {
        time: WORK,
        estimate: WORK,
    }
}

fn again(how: &str, begin: u64) -> Result<(), Status> {
    let mut server = Client::named("server");
    let moment = begin;
    match how {
        "work" => server.call(&work()).map(|_| ()),
        "until" => {
            // The slot is taken, so nothing is sent, and the credit stays.
            let early = server.call_until(&Sleep { moment }, begin + 100_000);
            if early != Err(Status::Timeout) {
                println!("too early: {early:?}");
                return Err(Status::BadReply);
            }
            let late = time::now() - begin - 100_000;
            if late > 20_000 {
                println!("{late} ns after the moment");
                return Err(Status::BadReply);
            }
            server
                .call_until(&Sleep { moment }, begin + LONG)
                .map(|_| ())
        }
        "threads" => {
            let (calls, gate) = (Calls::<1>::new(), SendGate::named("server"));
            let outcome = Cell::new(Err(Status::BadReply));
            // Another thread runs while this one waits.
            let turns = Cell::new(0u64);
            let ask = pin!(async {
                let mut buffer = Buffer::new();
                let answer = calls.call(&gate, buffer.request(&Sleep { moment })).await;
                outcome.set(match answer {
                    Ok(answer) => message::outcome::<u64>(answer.word(), answer.rest()),
                    Err(error) => Err(bulkhead_lib::client::failed(error)),
                });
            });
            let other = pin!(async {
                for turn in 1..=20 {
                    threads::sleep_until(begin + turn * 50_000).await;
                    turns.set(turn);
                }
            });
            threads::run([ask, other]);
            match turns.get() {
                20 => outcome.get().map(|_| ()),
                _ => Err(Status::Busy),
            }
        }
        _ => server.call(&Sleep { moment }).map(|_| ()),
    }
}
