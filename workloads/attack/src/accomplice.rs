//! Two hostile applications that help each other over a service of their own: they exchange whatever they hold (purses, tile capabilities,
//! memory, gates, semaphores, sessions, each other's activities), derive from it, make activities with it, give it back, and take it away
//! in the middle of an exchange.
//!
//! Gates: `priority-0` (receive) makes it the one that offers the service; the other one has the session `friend`. Both may have more
//! sessions, which they also pass on. Arguments: `friend` (0): the number of its gate to the friend among its send gates; `seed` (1); `say`
//! (20): rounds between two lines. A line counts rounds, exchanges that gave
//! something, and what worked with something of the other. It never ends by itself.
#![no_std]
#![no_main]

use bulkhead_lib::abi::syscall::{
    ANY_ENDPOINT, EXCHANGE_MAX, SEL_ACTIVITY, SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_OFFERED,
    SEL_SESSIONS, SEL_TILE, SHARE, ServerRequest, Syscall,
};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::gate::{Aligned, Message, ReceiveGate, SendGate};
use bulkhead_lib::zerocopy::IntoBytes;
use bulkhead_lib::{argument, println, session, syscall, time};
use bulkhead_random::Random;

bulkhead_lib::main!(main);

/// Its own selectors: what it makes, and what it gets.
const OWN: u16 = SEL_FREE + 40;
const GOT: u16 = SEL_FREE + 80;
const PLACES: u64 = 24;
/// Two sessions with the friend.
const SESSIONS: u16 = SEL_FREE + 120;

struct Accomplice {
    random: Random,
    exchanged: u64,
    used: u64,
    late: u64,
}

fn call(request: Syscall) -> Option<syscall::Results> {
    syscall::call(&request).ok()
}

impl Accomplice {
    fn own(&mut self) -> u16 {
        OWN + self.random.below(PLACES) as u16
    }

    fn got(&mut self) -> u16 {
        GOT + self.random.below(PLACES) as u16
    }

    /// Something that it holds, or that it could hold.
    fn any(&mut self) -> u16 {
        const FIRST: [u16; 5] = [
            SEL_ACTIVITY,
            SEL_KERNEL_MEMORY,
            SEL_TILE,
            SEL_MEMORY,
            SEL_OFFERED,
        ];
        match self.random.below(8) {
            0..2 => FIRST[self.random.below(5) as usize],
            2 => SEL_SESSIONS + self.random.below(3) as u16,
            3..5 => self.own(),
            _ => self.got(),
        }
    }

    /// Counts a call that worked with something of the other.
    fn uses(&mut self, source: u16, done: Option<syscall::Results>) {
        let is_theirs = (GOT..GOT + PLACES as u16).contains(&source);
        self.used += u64::from(is_theirs && done.is_some());
    }

    /// Does something with something.
    fn act(&mut self) {
        let (source, target) = (self.any(), self.own());
        let random = &mut self.random;
        let done = match random.below(15) {
            0 => call(Syscall::DeriveKernelMemory {
                source,
                target,
                bytes: random.below(4096),
            }),
            1 => call(Syscall::DeriveTile {
                source,
                target,
                endpoints: [SHARE, random.below(6)][random.below(2) as usize],
                budget: SHARE,
                period: 0,
                rate: SHARE,
                burst: SHARE,
                tables: [SHARE, random.below(6)][random.below(2) as usize],
                priority: 0,
                idle: 1,
                activities: [SHARE, random.below(2)][random.below(2) as usize],
                windows: SHARE,
            }),
            2 => call(Syscall::DeriveMemory {
                source,
                target,
                offset: 0,
                size: 4096,
                rights: 1 + random.below(3) as u8,
            }),
            3 | 4 => {
                let (tile, purse, memory) = (self.any(), self.any(), self.any());
                let made = call(Syscall::CreateActivity {
                    target,
                    tile,
                    purse,
                    memory,
                    reply: 4096,
                    priority: 0,
                    tile_priority: 0,
                    name: Name::new("child").unwrap_or_default(),
                });
                self.uses(tile, made);
                self.uses(purse, made);
                self.uses(memory, made);
                made
            }
            5 => call(Syscall::Revoke {
                selector: target,
                keep: 0,
            }),
            6 => {
                let selector = self.got();
                let keep = u8::from(self.random.chance(50));
                call(Syscall::Revoke { selector, keep })
            }
            7 | 8 => {
                let (activity, target) = (self.got(), self.any());
                let given = call(Syscall::Delegate {
                    activity,
                    source,
                    target,
                });
                self.uses(activity, given);
                given
            }
            9 | 10 => {
                let (activity, source) = (self.got(), self.any());
                let taken = call(Syscall::Obtain {
                    activity,
                    source,
                    target,
                });
                self.uses(activity, taken);
                taken
            }
            11 => {
                let active = call(Syscall::Activate {
                    gate: source,
                    activity: SEL_ACTIVITY,
                    memory: SEL_MEMORY,
                    offset: 4096,
                    replies: 0,
                    endpoint: ANY_ENDPOINT,
                });
                if let Some([endpoint, ..]) = active {
                    let endpoint = endpoint as u16;
                    call(Syscall::Deactivate {
                        gate: source,
                        endpoint,
                    });
                }
                active
            }
            12 => call(Syscall::CreateSemaphore { target, value: 1 }),
            13 => {
                call(Syscall::CreateReceive {
                    target,
                    slots: 2,
                    slot_size: 64,
                });
                call(Syscall::CreateSend {
                    source: target,
                    target: target + 1,
                    label: 1,
                    credits: 1,
                })
            }
            // Seldom: it ends what the other holds, perhaps the other.
            _ if random.chance(4) => call(Syscall::Stop { activity: source }),
            _ => call(Syscall::SemaphoreUp { semaphore: source }),
        };
        self.uses(source, done);
        while call(Syscall::WaitEvent { until: 1 }).is_some() {}
    }

    fn acts(&mut self) {
        for _ in 0..self.random.below(4) {
            self.act();
        }
    }

    /// Answers a question of the kernel: agrees to everything, after it has done something else, and gives or takes anything.
    fn answer(&mut self, question: Message) {
        let request = ServerRequest::decode(question.words());
        self.acts();
        let words = match request {
            Some(ServerRequest::Open { activity, .. }) => [0, activity.into(), 0, 0, 0],
            Some(ServerRequest::Exchange { delegate, .. }) => {
                self.exchanged += 1;
                let selector = match delegate {
                    0 => self.any(),
                    _ => self.got(),
                };
                let count = self.random.below(u64::from(EXCHANGE_MAX) + 2);
                [0, selector.into(), count, 0, 0]
            }
            _ => [0; 5],
        };
        // The kernel may have given up the question meanwhile.
        self.late += u64::from(question.reply(Aligned(words).0.as_bytes()).is_err());
    }

    /// Opens or closes a session with the friend, or exchanges something.
    fn ask(&mut self, service: u16) {
        let session = SESSIONS + self.random.below(2) as u16;
        match self.random.below(16) {
            0 => {
                call(Syscall::Revoke {
                    selector: session,
                    keep: 0,
                });
            }
            1 | 2 => {
                call(Syscall::OpenSession {
                    service,
                    target: session,
                    argument: 0,
                });
            }
            _ => {
                let delegate = self.random.below(2) as u8;
                let own = match delegate {
                    0 => self.got(),
                    _ => self.any(),
                };
                let given = call(Syscall::Exchange {
                    session,
                    delegate,
                    own,
                    count: 1 + self.random.below(u64::from(EXCHANGE_MAX)) as u16,
                    argument0: 0,
                    argument1: 0,
                    argument2: 0,
                });
                self.exchanged += u64::from(given.is_some());
            }
        }
        if call(Syscall::Query { selector: session }).is_none() {
            call(Syscall::OpenSession {
                service,
                target: session,
                argument: 0,
            });
        }
    }
}

fn main() -> u64 {
    let mut accomplice = Accomplice {
        random: Random::new(argument::value("seed", 1)),
        exchanged: 0,
        used: 0,
        late: 0,
    };
    let every: u64 = argument::value("say", 20);
    let control: Option<ReceiveGate> = ReceiveGate::find("priority-0").map(|_| {
        let offered = session::offer(SEL_OFFERED);
        offered.unwrap_or_else(|status| panic!("its service: {status}"))
    });
    let number = argument::value("friend", 0);
    let friend = SendGate::find("friend").map(|_| SEL_SESSIONS + number);
    for round in 1u64.. {
        match (&control, friend) {
            (Some(control), _) => {
                while let Ok(Some(question)) = control.fetch() {
                    accomplice.answer(question);
                }
                accomplice.acts();
                time::sleep_until(time::now() + accomplice.random.below(20_000));
            }
            (None, Some(service)) => {
                accomplice.ask(service);
                accomplice.acts();
            }
            (None, None) => {
                panic!("it has neither <rgate name=\"priority-0\"> nor <session name=\"friend\">")
            }
        }
        if round.is_multiple_of(every) {
            let (exchanged, used) = (accomplice.exchanged, accomplice.used);
            let late = accomplice.late;
            println!("{round} rounds, {exchanged} exchanges, {used} uses; {late} late");
        }
    }
    0
}
