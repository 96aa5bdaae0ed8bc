//! The timer service: answers each request at its time, the most important client first.
//!
//! Why it exists: an application that cannot wait with a timer of its own, such as one that waits for several events, asks
//! for a message that wakes it. What it deliberately does not know: its clients.
//!
//! Gates: `priority-0`, ... (receive). Arguments: those of `lib::server`. It never ends.
#![no_std]
#![no_main]

use bulkhead_lib::common::message::Request;
use bulkhead_lib::common::payer::Fixed;
use bulkhead_lib::common::rounds::Rounds;
use bulkhead_lib::common::status::Status;
use bulkhead_lib::common::timer::{Alarms, Next, Periodic, Sleep, Start};
use bulkhead_lib::server::{CLIENTS, Client, Incoming, Server, Service};
use bulkhead_lib::time;

bulkhead_lib::main!(main);

/// Longest time for a request, in nanoseconds: a search over all alarms.
const REQUEST: u64 = 5_000;

fn main() -> u64 {
    let mut server = Server::from_environment();
    let mut timer = Timer {
        alarms: Alarms::with_capacity(server.slots()),
        periodic: Fixed::from_iter((0..server.priorities()).map(|_| [None; CLIENTS])),
        rounds: Rounds::default(),
    };
    server.run(&mut timer)
}

/// A waiting request, and whether it is for the client's periodic timer.
struct Waiting {
    request: Incoming,
    periodic: bool,
}

struct Timer {
    alarms: Alarms<Waiting>,
    /// Periodic timers, and the activity that started each; another activity that has the channel later has none.
    periodic: Fixed<[Option<(u16, Periodic)>; CLIENTS]>,
    rounds: Rounds,
}

impl Timer {
    /// Looks at one request: if its sender has ended, it must not keep the slot of another activity, such as the sender's successor.
    /// Returns when to look again.
    fn look(&mut self, now: u64) -> Option<u64> {
        let Some(index) = self.rounds.due(now, self.alarms.count()) else {
            return self.rounds.next();
        };
        let item = self.alarms.item(index);
        if item.is_some_and(|waiting| !waiting.request.is_awaited()) {
            drop(self.alarms.remove(index));
            self.rounds.dropped();
        }
        Some(now)
    }

    fn periodic(&mut self, client: Client) -> &mut Option<(u16, Periodic)> {
        &mut self.periodic[client.priority][client.label as usize]
    }

    fn wait(&mut self, moment: u64, request: Incoming, periodic: bool) {
        let priority = request.client().priority;
        if let Err(waiting) = self
            .alarms
            .set(moment, priority, Waiting { request, periodic })
        {
            waiting.request.fail(Status::TooMany);
        }
    }
}

impl Service for Timer {
    fn estimate(&mut self, _: Client, _: u64, _: &[u8]) -> u64 {
        REQUEST
    }

    fn serve(&mut self, request: Incoming) {
        let (client, activity) = (request.client(), request.activity());
        match request.operation() {
            Sleep::OPERATION => match request.body::<Sleep>() {
                Ok(Sleep { moment }) => self.wait(moment, request, false),
                Err(status) => request.fail(status),
            },
            Start::OPERATION => {
                let started = request.body::<Start>().and_then(|Start { first, period }| {
                    let timer = Periodic::new(first, period).ok_or(Status::BadRequest)?;
                    *self.periodic(client) = Some((activity, timer));
                    Ok(first)
                });
                request.answer(started);
            }
            Next::OPERATION => match *self.periodic(client) {
                Some((of, timer)) if of == activity => self.wait(timer.next(), request, true),
                _ => request.fail(Status::NotFound),
            },
            _ => request.fail(Status::UnknownOperation),
        }
    }

    fn alarm(&mut self) -> Option<u64> {
        loop {
            let (now, next) = (time::now(), self.alarms.next());
            if next.is_none_or(|next| next > now) {
                // Nothing is due, so there is time for a look.
                return self.look(now).into_iter().chain(next).min();
            }
            // One at a time: a more important alarm may become due during the answer.
            let Waiting { request, periodic } = self.alarms.take(now)?;
            if periodic {
                let client = request.client();
                let rung = self
                    .periodic(client)
                    .as_mut()
                    .map_or(0, |(_, timer)| timer.take(now));
                request.done(&rung);
            } else {
                request.done(&now);
            }
        }
    }
}
