//! The server's double: it gives a service a story of requests, and keeps what the service answers.
//!
//! What it deliberately does not know: gates, priorities and budgets of time; the library's server decides on those before a service hears
//! of a request.

use super::time;
use bulkhead_common::message::{self, Body, Buffer};
use bulkhead_common::status::Status;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

pub use bulkhead_common::waiting::Client;

/// Most clients of one gate, as in the library.
pub const CLIENTS: usize = 64;
/// Priorities that the double offers, and slots of all gates together.
pub const PRIORITIES: usize = 3;
/// See [`PRIORITIES`].
pub const SLOTS: usize = 6;
/// No service looks at its alarms this often while no time passes.
const TURNS: usize = 1000;

/// What happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// A client and an activity send a request; its number is that of the step.
    Ask(Client, u16, Vec<u8>),
    /// The sender of the request of this step is gone.
    Gone(usize),
    /// Nanoseconds pass.
    Wait(u64),
}

/// An answer: when, to the request of which step, and its bytes.
pub type Answer = (u64, usize, Vec<u8>);

#[derive(Default)]
struct Story {
    steps: Vec<Option<Step>>,
    answers: Rc<RefCell<Vec<Answer>>>,
}

thread_local! {
    static STORY: RefCell<Story> = RefCell::default();
}

/// Runs a service over a story; steps that are `None` do not happen. Returns the answers in their order.
pub fn answers(program: fn() -> u64, steps: Vec<Option<Step>>) -> Vec<Answer> {
    let answers = Rc::default();
    let story = Story {
        steps,
        answers: Rc::clone(&answers),
    };
    STORY.set(story);
    assert_eq!(program(), 0);
    let all = answers.borrow();
    all.clone()
}

/// The service that the program offers.
pub trait Service {
    /// The most nanoseconds that a request takes.
    fn estimate(&mut self, client: Client, operation: u64, body: &[u8]) -> u64;
    /// Answers a request, now or later.
    fn serve(&mut self, request: Incoming);
    /// Does what is due; returns when to call it again.
    fn alarm(&mut self) -> Option<u64> {
        None
    }
}

/// A request that must be answered, once.
#[derive(Debug)]
pub struct Incoming {
    number: usize,
    client: Client,
    activity: u16,
    bytes: Vec<u8>,
    awaited: Rc<Cell<bool>>,
    answers: Option<Rc<RefCell<Vec<Answer>>>>,
}

impl Incoming {
    /// The client.
    pub fn client(&self) -> Client {
        self.client
    }

    /// The sender.
    pub fn activity(&self) -> u16 {
        self.activity
    }

    /// Number of the operation.
    pub fn operation(&self) -> u64 {
        message::split(&self.bytes).map_or(u64::MAX, |(word, _)| word)
    }

    /// The request.
    ///
    /// # Errors
    /// [`Status::BadRequest`] if it is too short.
    pub fn body<T: Body>(&self) -> Result<T, Status> {
        message::body(message::split(&self.bytes).map_or(&[], |(_, rest)| rest))
    }

    /// Whether its sender still waits.
    pub fn is_awaited(&self) -> bool {
        self.awaited.get()
    }

    /// Answers with success.
    pub fn done<T: Body>(self, reply: &T) {
        self.send(Buffer::new().success(reply));
    }

    /// Answers with failure.
    pub fn fail(self, status: Status) {
        self.send(&status.code().to_le_bytes());
    }

    /// Answers with the outcome.
    pub fn answer<T: Body>(self, outcome: Result<T, Status>) {
        match outcome {
            Ok(reply) => self.done(&reply),
            Err(status) => self.fail(status),
        }
    }

    fn send(mut self, reply: &[u8]) {
        self.put(reply);
    }

    fn put(&mut self, reply: &[u8]) {
        if let Some(answers) = self.answers.take() {
            answers
                .borrow_mut()
                .push((time::now(), self.number, reply.to_vec()));
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.put(&Status::Closed.code().to_le_bytes());
    }
}

/// The gates of a program.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Those of the description.
    pub fn from_environment() -> Self {
        Self
    }

    /// Number of priorities.
    pub fn priorities(&self) -> usize {
        PRIORITIES
    }

    /// Slots of all gates.
    pub fn slots(&self) -> usize {
        SLOTS
    }

    /// Runs a service over the story, and ends when the story does.
    pub fn run(&mut self, service: &mut impl Service) -> u64 {
        let Story { steps, answers } = STORY.take();
        let mut waits: BTreeMap<usize, Rc<Cell<bool>>> = BTreeMap::new();
        time::set(1_000);
        let mut next = service.alarm();
        for (number, step) in steps.into_iter().enumerate() {
            let until = match step {
                Some(Step::Wait(nanoseconds)) => time::now() + nanoseconds,
                Some(Step::Gone(of)) => {
                    waits
                        .get(&of)
                        .into_iter()
                        .for_each(|awaited| awaited.set(false));
                    time::now()
                }
                Some(Step::Ask(client, activity, bytes)) => {
                    let awaited = Rc::new(Cell::new(true));
                    waits.insert(number, Rc::clone(&awaited));
                    let request = Incoming {
                        number,
                        client,
                        activity,
                        bytes,
                        awaited,
                        answers: Some(Rc::clone(&answers)),
                    };
                    let operation = request.operation();
                    let body = message::split(&request.bytes).map_or(&[][..], |(_, rest)| rest);
                    assert!(service.estimate(client, operation, body) > 0);
                    service.serve(request);
                    next = service.alarm();
                    time::now()
                }
                None => time::now(),
            };
            let mut turns = 0;
            while let Some(at) = next.filter(|at| *at <= until) {
                time::set(time::now().max(at));
                next = service.alarm();
                turns += 1;
                assert!(turns < TURNS, "the service has no rest");
            }
            time::set(until);
        }
        0
    }
}
