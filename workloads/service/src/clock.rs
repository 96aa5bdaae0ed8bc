//! A client of the timer service: sleeps and follows a periodic timer; measures how late it is woken.
//!
//! Gates: `timer` (send). Arguments: `runs` (20), `period` (100us).
#![no_std]
#![no_main]

use bulkhead_lib::client::Client;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::common::timer::{Next, Sleep, Start};
use bulkhead_lib::{argument, marker, println, time};

bulkhead_lib::main!(main);

fn main() -> u64 {
    match follow() {
        Ok(worst) => {
            println!("at most {worst} ns late");
            0
        }
        Err(status) => {
            println!("the timer: {status}");
            1
        }
    }
}

fn follow() -> Result<u64, Status> {
    let runs: u64 = argument::value("runs", 20);
    let period = argument::time("period", 100_000);
    let mut timer = Client::named("timer");
    if timer.call(&Next {}) != Err(Status::NotFound) {
        return Err(Status::BadReply);
    }
    if timer.call(&Start {
        first: 0,
        period: 0,
    }) != Err(Status::BadRequest)
    {
        return Err(Status::BadReply);
    }
    let mut worst = 0;
    for _ in 0..runs {
        let moment = time::now() + period;
        timer.call(&Sleep { moment })?;
        let now = time::now();
        if now < moment {
            return Err(Status::BadReply);
        }
        worst = worst.max(now - moment);
    }
    let first = time::now() + period;
    timer.call(&Start { first, period })?;
    let mut rung = 0;
    while rung < runs {
        let count = timer.call(&Next {})?;
        rung += count;
        let late = time::now() - (first + (rung - 1) * period);
        marker::check(late);
        worst = worst.max(late);
    }
    Ok(worst)
}
