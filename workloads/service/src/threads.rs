//! Three threads of control in one application: one serves, one rings, one asks two services.
//!
//! Gates: `priority-0` (receive), `adder` and `timer` (send). Arguments: `runs` (20).
#![no_std]
#![no_main]

mod protocol;

use bulkhead_lib::client::failed;
use bulkhead_lib::common::message::{self, Buffer};
use bulkhead_lib::common::status::Status;
use bulkhead_lib::common::timer::Sleep;
use bulkhead_lib::gate::{Aligned, ReceiveGate, SendGate};
use bulkhead_lib::threads::{self, Calls};
use bulkhead_lib::{argument, println, time};
use core::cell::Cell;
use core::pin::pin;
use protocol::Add;

bulkhead_lib::main!(main);

const PERIOD: u64 = 50_000;

fn main() -> u64 {
    let runs: u64 = argument::value("runs", 20);
    let calls = Calls::<2>::new();
    let (served, rung, added, woken) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let gate = ReceiveGate::named("priority-0");
    let serve = pin!(async {
        while served.get() < runs {
            match threads::receive(&gate).await {
                Ok(message) => {
                    let count = Aligned(0u64.to_le_bytes());
                    let _ = message.reply(&count.0);
                    served.set(served.get() + 1);
                }
                Err(error) => return println!("cannot receive: {error:?}"),
            }
        }
    });
    let ring = pin!(async {
        let begin = time::now();
        for run in 1..=runs {
            threads::sleep_until(begin + run * PERIOD).await;
            rung.set(run);
        }
    });
    let add = pin!(async {
        let adder = SendGate::named("adder");
        for run in 0..runs {
            match ask(
                &calls,
                &adder,
                &Add {
                    first: run,
                    second: run,
                },
            )
            .await
            {
                Ok(sum) if sum == 2 * run => added.set(added.get() + 1),
                other => return println!("{run} + {run}: {other:?}"),
            }
        }
    });
    let wake = pin!(async {
        let timer = SendGate::named("timer");
        for _ in 0..runs {
            let moment = time::now() + 10_000;
            match ask(&calls, &timer, &Sleep { moment }).await {
                Ok(now) if now >= moment => woken.set(woken.get() + 1),
                other => return println!("woken at {other:?} instead of {moment}"),
            }
        }
    });
    threads::run([serve, ring, add, wake]);
    println!(
        "{} served, {} rung, {} added, {} woken",
        served.get(),
        rung.get(),
        added.get(),
        woken.get()
    );
    let all = [&served, &rung, &added, &woken];
    u64::from(all.iter().any(|count| count.get() != runs))
}

async fn ask<R: message::Request>(
    calls: &Calls<2>,
    gate: &SendGate,
    request: &R,
) -> Result<R::Reply, Status> {
    let mut buffer = Buffer::new();
    let answer = calls.call(gate, buffer.request(request)).await;
    message::reply(answer.map_err(failed)?.payload())
}
