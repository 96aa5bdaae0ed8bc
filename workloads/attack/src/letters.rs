//! Messages that nobody should have to pay for.
//!
//! Arguments: `kind`; `seed` (1); `say` (20): rounds between two lines.
//! `letters`: leaves a request for a far moment at the timer (gate `timer`) and fails, so that its manager starts it again.
//! `moments`: asks the timer for moments that have passed, and for periods of a nanosecond and of centuries.
//! `hollow`: keeps the message that came to its gate `box`, or, with `<service/>`, the kernel's first question, and asks the sender's unit
//! without a pause whether it is still awaited.
//! `sender`: sends that message over its gate `box`, and waits.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::SEL_OFFERED;
use bulkhead_lib::client::Client;
use bulkhead_lib::common::timer::{Next, Sleep, Start};
use bulkhead_lib::gate::{ReceiveGate, SendGate};
use bulkhead_lib::{argument, println, session, time};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

fn main() -> u64 {
    let mut random = Random::new(argument::value("seed", 1));
    let every: u64 = argument::value("say", 20);
    match argument::text("kind") {
        Some("letters") => {
            let mut timer = Client::named("timer");
            let moment = u64::MAX - random.below(1 << 20);
            let left = timer.call_until(&Sleep { moment }, time::now() + 10_000);
            println!("1 rounds, {} children, 0 refused", u64::from(left.is_err()));
            1
        }
        Some("moments") => {
            let (mut timer, mut refused) = (Client::named("timer"), 0u64);
            for round in 1u64.. {
                let now = time::now();
                let times = [0, 1, now, now + random.below(5000), u64::MAX];
                let (first, period) = (random.below(5) as usize, random.below(5) as usize);
                let (first, period) = (times[first], times[period]);
                let answered = match random.below(3) {
                    0 => timer.call(&Sleep {
                        moment: first.min(now + 5000),
                    }),
                    1 => timer.call(&Start { first, period }),
                    _ => {
                        // One that has rung already, however often.
                        let first = first.min(now);
                        let started = timer.call(&Start { first, period: 1 });
                        started.and_then(|_| timer.call(&Next {}))
                    }
                };
                refused += u64::from(answered.is_err());
                if round.is_multiple_of(every) {
                    println!("{round} rounds, 0 children, {refused} refused");
                }
            }
            0
        }
        Some("hollow") => {
            let gate = match ReceiveGate::find("box") {
                Some(gate) => gate,
                None => session::offer(SEL_OFFERED)
                    .unwrap_or_else(|status| panic!("its service: {status}")),
            };
            let message = match gate.receive() {
                Ok(message) => message,
                Err(error) => panic!("its gate: {error:?}"),
            };
            let mut asked = 0u64;
            while message.is_awaited() {
                asked += 1;
                if asked.is_multiple_of(1000 * every) {
                    println!("{} rounds, 0 children, 0 refused", asked / 1000);
                }
            }
            println!("the sender has gone");
            1
        }
        Some("sender") => {
            let answer = SendGate::named("box").call(&[1; 8]);
            println!("an answer: {}", answer.is_ok());
            1
        }
        kind => {
            panic!("argument `kind`: {kind:?} is not `letters`, `moments`, `hollow` or `sender`")
        }
    }
}
