//! Kills every activity at every point of a scripted session: after every call, answer and step of the kernel, in every way in which
//! an activity can end. Only the victim and what it made are gone, everybody else is answered, and all quota comes back.

use super::making::{Left, left};
use super::*;
use crate::activity::State;
use bulkhead_abi::syscall::{SEL_ACTIVITY, SEL_MEMORY, StopCause};
use std::collections::{BTreeMap, BTreeSet};

/// Selectors of the root manager for the four activities: the parts that [`creation`] needs follow each.
const CLIENT: u16 = APP;
const SERVER: u16 = 200;
const MANAGER: u16 = 300;
const BYSTANDER: u16 = 400;
/// The subordinate manager's selector for its child.
const CHILD: u16 = 22;

/// The party that acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    Root,
    Client,
    Server,
    Manager,
    Child,
    Bystander,
}

use Actor::{Bystander, Child, Client, Manager, Root, Server};

#[derive(Clone, Copy, Debug)]
enum Step {
    Call(Actor, Syscall),
    /// The server answers its last question, if there is one.
    Answer(&'static [u64]),
    /// The client sends a message to the server, whose unit now has a right to reply.
    Message,
    /// It ends by itself.
    Exit(Actor),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    /// A fault.
    Fault,
    /// Its creator stops it.
    Stop,
    /// Its purse is revoked.
    Purse,
    /// Its memory is revoked.
    Memory,
    /// Its tile no longer answers when it is to be stopped.
    DeafTile,
}

const KILLS: [Kill; 5] = [
    Kill::Fault,
    Kill::Stop,
    Kill::Purse,
    Kill::Memory,
    Kill::DeafTile,
];

fn derive(target: u16) -> Syscall {
    Syscall::DeriveMemory {
        source: SEL_MEMORY,
        target,
        offset: 0,
        size: 4096,
        rights: 3,
    }
}

fn exchange(delegate: u8, own: u16) -> Syscall {
    Syscall::Exchange {
        session: 31,
        delegate,
        own,
        count: 1,
        argument0: 0,
        argument1: 0,
        argument2: 0,
    }
}

const fn revoke(selector: u16) -> Syscall {
    Syscall::Revoke { selector, keep: 0 }
}

/// Service, session, gate, request, memory granted and revoked, semaphore, a child that runs and ends, and all ends.
fn script() -> Vec<Step> {
    use Step::{Answer, Call, Exit, Message};
    let semaphore = |target| Syscall::CreateSemaphore { target, value: 0 };
    let create = Syscall::CreateActivity {
        target: CHILD,
        tile: 2,
        purse: CHILD + 2,
        memory: CHILD + 1,
        reply: 0,
        priority: 0,
        tile_priority: 0,
        name: Name::new("child").unwrap(),
    };
    vec![
        Call(
            Server,
            Syscall::CreateReceive {
                target: 20,
                slots: 4,
                slot_size: 256,
            },
        ),
        Call(Server, activate(20, SEL_ACTIVITY, Some((SEL_MEMORY, 0)))),
        Call(Root, Syscall::WaitEvent { until: 0 }),
        Call(
            Server,
            Syscall::CreateService {
                gate: 20,
                target: 21,
            },
        ),
        Call(
            Root,
            Syscall::Obtain {
                activity: SERVER,
                source: 21,
                target: 60,
            },
        ),
        Call(
            Root,
            Syscall::Delegate {
                activity: CLIENT,
                source: 60,
                target: 30,
            },
        ),
        Call(
            Server,
            Syscall::CreateSend {
                source: 20,
                target: 22,
                label: 9,
                credits: 2,
            },
        ),
        Call(
            Client,
            Syscall::OpenSession {
                service: 30,
                target: 31,
                argument: 1,
            },
        ),
        Answer(&[0, 42]),
        Call(Client, exchange(0, 40)),
        Answer(&[0, 22, 1, 5, 6]),
        Call(Client, activate(40, SEL_ACTIVITY, None)),
        Message,
        Call(Client, derive(51)),
        Call(Client, exchange(1, 51)),
        Answer(&[0, 45, 1, 0, 0]),
        Call(Server, activate(45, SEL_ACTIVITY, None)),
        Call(Client, revoke(51)),
        Call(Server, semaphore(46)),
        Call(
            Root,
            Syscall::Obtain {
                activity: SERVER,
                source: 46,
                target: 61,
            },
        ),
        Call(
            Root,
            Syscall::Delegate {
                activity: CLIENT,
                source: 61,
                target: 52,
            },
        ),
        Call(Client, Syscall::SemaphoreDown { semaphore: 52 }),
        Call(Server, Syscall::SemaphoreUp { semaphore: 46 }),
        Call(
            Manager,
            Syscall::CutMemory {
                source: SEL_MEMORY,
                target: CHILD + 1,
                size: 1 << 15,
            },
        ),
        Call(
            Manager,
            Syscall::DeriveKernelMemory {
                source: 1,
                target: CHILD + 2,
                bytes: 4096,
            },
        ),
        Call(Manager, create),
        Call(
            Manager,
            Syscall::Map {
                activity: CHILD,
                address: PROGRAM_BASE,
                offset: 0,
                pages: 4,
                rights: 7,
            },
        ),
        Call(
            Manager,
            Syscall::Start {
                activity: CHILD,
                entry: PROGRAM_BASE,
                stack: PROGRAM_BASE + 0x4000,
            },
        ),
        Call(Child, semaphore(20)),
        Call(Child, derive(21)),
        Call(Child, activate(21, SEL_ACTIVITY, None)),
        Call(Manager, Syscall::WaitEvent { until: 0 }),
        Exit(Child),
        Call(
            Client,
            Syscall::OpenSession {
                service: 30,
                target: 32,
                argument: 2,
            },
        ),
        Answer(&[0, 43]),
        Call(Client, revoke(31)),
        Answer(&[0]),
        Exit(Client),
        Answer(&[0]),
        Exit(Server),
        Exit(Manager),
    ]
}

struct Play {
    system: System,
    chip: Chip,
    numbers: BTreeMap<Actor, u16>,
    /// The party that waits for an answer.
    pending: BTreeSet<u16>,
    /// Questions that the server has not answered.
    seen: usize,
    events: usize,
    kill: Option<(usize, Actor, Kill)>,
    killed: bool,
    checked: bool,
    /// What survivors were told after the death, by error.
    told: BTreeMap<String, u64>,
}

impl Play {
    fn new(kill: Option<(usize, Actor, Kill)>) -> (Self, Left) {
        let (mut system, mut chip) = boot();
        // The tile is lit, once for all: an activity comes and goes.
        create(&mut system, &mut chip, 500, SEL_TILES + 2);
        for selector in [500, 501, 502] {
            call(&mut system, &mut chip, 1, revoke(selector)).ok();
        }
        call(&mut system, &mut chip, 1, Syscall::WaitEvent { until: 0 }).unwrap();
        let mut play = Self {
            system,
            chip,
            numbers: BTreeMap::from([(Root, 1)]),
            pending: BTreeSet::new(),
            seen: 0,
            events: 0,
            kill: None,
            killed: false,
            checked: false,
            told: BTreeMap::new(),
        };
        let left = play.left();
        for (actor, at) in [
            (Client, CLIENT),
            (Server, SERVER),
            (Manager, MANAGER),
            (Bystander, BYSTANDER),
        ] {
            for request in [
                Syscall::CutMemory {
                    source: 99,
                    target: at + 1,
                    size: 1 << 16,
                },
                Syscall::DeriveKernelMemory {
                    source: SEL_KERNEL_MEMORY,
                    target: at + 2,
                    bytes: 16384,
                },
            ] {
                call(&mut play.system, &mut play.chip, 1, request).unwrap();
            }
            let plan = creation(at, SEL_TILES + 2, 0);
            let made = call(&mut play.system, &mut play.chip, 1, plan).unwrap();
            start(&mut play.system, &mut play.chip, at);
            play.numbers.insert(actor, made[0] as u16);
        }
        while play.system.reported().is_some() {}
        play.kill = kill;
        (play, left)
    }

    fn left(&mut self) -> Left {
        left(&mut self.system, &mut self.chip)
    }

    fn is_alive(&self, actor: Actor) -> bool {
        let found = self.numbers.get(&actor);
        let found = found.and_then(|id| self.system.activity(*id));
        found.is_some_and(|a| matches!(a.state(), State::Created | State::Running))
    }

    /// One thing has happened; it may be time to kill.
    fn event(&mut self) {
        self.events += 1;
        let Some((at, victim, kill)) = self.kill else {
            return;
        };
        if self.events != at || !self.is_alive(victim) {
            return;
        }
        self.killed = true;
        let id = self.numbers[&victim];
        let (creator, selector) = match victim {
            Child => (self.numbers[&Manager], CHILD),
            Client => (1, CLIENT),
            Server => (1, SERVER),
            Manager => (1, MANAGER),
            _ => panic!("no victim"),
        };
        let request = match kill {
            Kill::Fault => {
                return self
                    .system
                    .notified(&mut self.chip, 2, id, StopCause::Panic);
            }
            Kill::Stop => Syscall::Stop { activity: selector },
            Kill::Purse => revoke(selector + 2),
            Kill::Memory => revoke(selector + 1),
            Kill::DeafTile => {
                self.chip.deaf.push(2);
                Syscall::Stop { activity: selector }
            }
        };
        // The root manager has the highest priority, so this comes between the steps of every job; its other call may be waiting.
        let mut owner = ticket(&self.system, creator);
        owner.offset = 9999;
        match self.system.call(&mut self.chip, owner, request) {
            // It may be dying already.
            Ok(_) | Err(SyscallError::Revoked) => {}
            Err(error) => panic!("{kill:?} of {victim:?}: {error:?}"),
        }
    }

    /// Lets the kernel work, step by step, until there is nothing to do.
    fn pump(&mut self) {
        loop {
            if let Some((number, answer)) = self.chip.answer() {
                self.system.tile_answered(&mut self.chip, number, answer);
            } else if let Some(level) = (0..3).rev().find(|level| self.system.has_step(*level)) {
                self.system.step(&mut self.chip, level);
            } else if self.system.is_asking() {
                // Only a tile that does not answer is left to wait for.
                self.chip.now += LATE;
                expire_tiles(&mut self.system, &mut self.chip);
            } else {
                break;
            }
            self.replies();
            self.event();
        }
        if self.killed && !self.checked {
            check(&mut self.system);
            self.checked = true;
        }
        self.replies();
    }

    fn replies(&mut self) {
        while let Some((who, reply)) = self.system.take_reply() {
            if who.offset == 9999 {
                continue;
            }
            assert!(
                self.pending.remove(&who.caller),
                "{who:?} is answered twice"
            );
            let lives = self.system.activity(who.caller).is_some();
            self.tell(lives, words(&reply).map(|_| ()));
        }
    }

    fn tell(&mut self, lives: bool, outcome: Result<(), SyscallError>) {
        match outcome {
            Err(error) if lives => {
                assert!(self.killed, "without a death: {error:?}");
                let clear = matches!(
                    error,
                    SyscallError::Gone
                        | SyscallError::NoCapability
                        | SyscallError::Revoked
                        | SyscallError::Timeout
                        | SyscallError::TileLost
                        | SyscallError::NoActivity
                );
                assert!(clear, "{error:?}");
                *self.told.entry(format!("{error:?}")).or_default() += 1;
            }
            _ => {}
        }
    }

    fn call(&mut self, actor: Actor, request: Syscall) -> Option<Vec<u64>> {
        let id = self.numbers.get(&actor).copied()?;
        if !self.is_alive(actor) || self.pending.contains(&id) {
            return None;
        }
        let caller = ticket(&self.system, id);
        let outcome = self.system.call(&mut self.chip, caller, request);
        let result = match outcome {
            Ok(None) => {
                self.pending.insert(id);
                None
            }
            Ok(Some(reply)) => words(&reply).ok(),
            Err(error) => {
                self.tell(true, Err(error));
                None
            }
        };
        self.event();
        if matches!(request, Syscall::CreateActivity { .. }) {
            // The created activity is the child; it may be killed as soon as it exists.
            let known: BTreeSet<u16> = self.numbers.values().copied().collect();
            let made =
                (1..100).find(|id| !known.contains(id) && self.system.activity(*id).is_some());
            if let Some(made) = made {
                self.numbers.insert(Child, made);
            }
        }
        self.pump();
        result
    }

    /// An activity that is not involved is never disturbed.
    fn bystander(&mut self) {
        if !self.is_alive(Bystander) {
            return;
        }
        let id = self.numbers[&Bystander];
        for request in [derive(20), activate(20, SEL_ACTIVITY, None), revoke(20)] {
            let done = later(&mut self.system, &mut self.chip, id, request);
            assert!(matches!(done, Ok(Some(_))), "{request:?}: {done:?}");
        }
    }

    fn run(&mut self) {
        for (number, step) in script().into_iter().enumerate() {
            match step {
                Step::Call(actor, request) => {
                    self.call(actor, request);
                }
                Step::Answer(answer) => {
                    if self.is_alive(Server)
                        && let Some((.., number)) = self.chip.asked.get(self.seen).cloned()
                    {
                        self.seen += 1;
                        self.system.answered(&mut self.chip, number, answer);
                        self.event();
                    }
                    self.pump();
                }
                Step::Message => self.message(),
                Step::Exit(actor) => {
                    if self.is_alive(actor) {
                        let id = self.numbers[&actor];
                        let cause = StopCause::Exit(0);
                        self.system.notified(&mut self.chip, 2, id, cause);
                        self.event();
                    }
                    self.pump();
                }
            }
            if number % 4 == 0 {
                self.drain();
                self.bystander();
            }
        }
    }

    /// Others' answers must not be taken for the bystander's.
    fn drain(&mut self) {
        self.pump();
        while self.system.reported().is_some() {}
    }

    /// What the units do when a message is in transit.
    fn message(&mut self) {
        let mine = |activity: u16, e: &Endpoint| matches!(e, Endpoint::Send(s) if s.activity == activity && s.label == 9);
        let client = self.numbers[&Client];
        let found = self
            .chip
            .endpoints
            .iter_mut()
            .find(|(_, e)| mine(client, e));
        let Some((&(tile, number), Endpoint::Send(send))) = found else {
            return;
        };
        send.credits -= 1;
        let (receiver, right) = (send.target_tile, send.target_endpoint + 1);
        let right_to_reply = bulkhead_abi::dtu::SendEndpoint {
            activity: self.numbers[&Server],
            target_tile: tile,
            target_endpoint: 0,
            credit_endpoint: number,
            credits: 1,
            credits_max: 1,
            reply: true,
            ..Default::default()
        };
        let right_to_reply = Endpoint::Send(right_to_reply);
        self.chip
            .endpoints
            .insert((receiver, right), right_to_reply);
        self.event();
    }

    /// Time passes, everything is taken back, and nothing is missing.
    fn close(mut self, left: &Left) -> (usize, bool, BTreeMap<String, u64>) {
        self.chip.now += 1_000_000_000;
        expire_all(&mut self.system, self.chip.now);
        self.pump();
        self.chip.deaf.clear();
        let expected: &[Actor] = match self.kill {
            Some((_, _, Kill::DeafTile)) if self.killed => &[],
            _ => &[Bystander],
        };
        for actor in [Client, Server, Manager, Child, Bystander] {
            assert_eq!(self.is_alive(actor), expected.contains(&actor), "{actor:?}");
        }
        // An activity that still waits is waiting for an event, which is allowed.
        let pending = self.pending.iter().copied();
        // An activity that is gone needs no answer, and no slot of the kernel waits for one.
        let waiting: Vec<u16> = pending
            .filter(|id| self.system.activity(*id).is_some())
            .collect();
        assert!(
            waiting.iter().all(|id| *id == 1),
            "{waiting:?} were not answered"
        );
        self.pending.clear();
        for at in [CLIENT, SERVER, MANAGER, BYSTANDER] {
            for selector in [at, at + 1, at + 2] {
                let _ = later(&mut self.system, &mut self.chip, 1, revoke(selector));
            }
        }
        for selector in [60, 61] {
            let _ = later(&mut self.system, &mut self.chip, 1, revoke(selector));
        }
        // New memory lights a lost tile again.
        if self.killed && matches!(self.kill, Some((_, _, Kill::DeafTile))) {
            let _ = later(&mut self.system, &mut self.chip, 1, revoke(99));
            create(&mut self.system, &mut self.chip, 500, SEL_TILES + 2);
            for selector in [500, 501, 502] {
                let _ = later(&mut self.system, &mut self.chip, 1, revoke(selector));
            }
        }
        while self.system.take_reply().is_some() {}
        hear_all(&mut self.system, &mut self.chip, 1);
        check(&mut self.system);
        assert_eq!(&self.left(), left);
        (self.events, self.killed, self.told)
    }
}

/// Kills every victim in every way, with a run of its own for each `stride`th point.
fn matrix(stride: usize) {
    let (mut play, left) = Play::new(None);
    play.run();
    let (events, killed, told) = play.close(&left);
    assert!(!killed && told.is_empty());
    let (mut deaths, mut heard) = (0, BTreeMap::<String, u64>::new());
    let mut first = 0;
    for victim in [Client, Server, Manager, Child] {
        for kill in KILLS {
            // The others begin elsewhere, so together they reach every point.
            first = first % stride + 1;
            for at in (first..=events).step_by(stride) {
                let (mut play, left) = Play::new(Some((at, victim, kill)));
                play.run();
                let (_, killed, told) = play.close(&left);
                deaths += u64::from(killed);
                for (error, count) in told {
                    *heard.entry(error).or_default() += count;
                }
            }
        }
    }
    println!("{events} points, {deaths} deaths; told to others: {heard:?}");
    assert!(deaths > 0);
}

#[test]
fn activities_are_killed_at_many_points_of_a_session() {
    matrix(37);
}

/// `cargo test --release -p bulkhead-kernel --lib -- --ignored every_point --nocapture`.
#[test]
#[ignore = "thousands of runs"]
fn every_activity_is_killed_at_every_point_of_a_session() {
    matrix(1);
}
