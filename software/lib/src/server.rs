//! A server: one receive gate for each priority, served highest first, with an account of every client's processor time.
//!
//! Why it exists: m3-rtas24, section III-C: servers are shared, so a client must delay others neither by many requests nor by long
//! ones. What it deliberately does not know: the requests themselves; they belong to a [`Service`].
//!
//! The description gives the gates `priority-0` (the highest), `priority-1`, ... and the arguments `limit` (time of one request), `budget`
//! and `period` (time of a client in each period), such as `20us` or `none`; `limit-1` and so on apply to the clients of one gate. Before a
//! request is served, the service states its longest time. A request beyond the limit is refused. A request beyond the rest of the client's
//! budget waits until the budget suffices, and all later requests of this client wait behind it. Requests are not interrupted, so a client
//! of the highest priority waits for at most one request of another (at most `limit`, the longest of all gates) besides those of its own
//! gate.
//!
//! Times are those of the clock, in nanoseconds, so they are the server's own execution time only if the server is alone on its
//! tile.

use crate::gate::{Aligned, Message, ReceiveGate};
use crate::time::{Pace, Stopwatch};
use crate::{argument, session, time};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::environment::{GateEntry, GateKind};
use bulkhead_abi::syscall::{SEL_OFFERED, ServerRequest};
use bulkhead_common::account::{Account, Terms, Verdict};
use bulkhead_common::message::{self, Body, Buffer};
use bulkhead_common::payer::Fixed;
use bulkhead_common::quantity;
use bulkhead_common::rounds::Rounds;
use bulkhead_common::shares::Seats;
use bulkhead_common::status::Status;
use bulkhead_common::waiting::Waiting;
use bulkhead_hal::dtu;
use core::sync::atomic::{AtomicU64, Ordering};
use zerocopy::IntoBytes;

pub use bulkhead_common::waiting::{Client, Owner};

/// Maximum clients of one gate: labels below this are served.
pub const CLIENTS: usize = 64;
/// Nanoseconds of an empty request, a generous estimate.
const NULL_TIME: u64 = 1000;
/// Operation of messages without one.
const MALFORMED: u64 = u64::MAX;
/// Names of the gates.
const GATES: [&str; 8] = [
    "priority-0",
    "priority-1",
    "priority-2",
    "priority-3",
    "priority-4",
    "priority-5",
    "priority-6",
    "priority-7",
];

/// The service that a server offers.
pub trait Service {
    /// Maximum nanoseconds that a request takes. The request has not been checked in any way. This function itself must be quick.
    fn estimate(&mut self, client: Client, operation: u64, body: &[u8]) -> u64;

    /// Answers a request, now or later. Requests that are dropped are answered with [`Status::Closed`].
    fn serve(&mut self, request: Incoming);

    /// The request that the last [`serve`](Self::serve) can answer only when something else is done. It is served again in its turn: after
    /// more important requests, and before later ones of its client.
    #[inline(always)]
    fn unanswered(&mut self) -> Option<Incoming> {
        None
    }

    /// Whether clients can open sessions.
    const SESSIONS: bool = false;

    /// A client of this activity asks for memory over its session. Returns a selector of this server, whose capability the client
    /// gets, and two words for the client. The arguments have not been checked in any way.
    ///
    /// # Errors
    /// The reason, which the client gets.
    fn grant(&mut self, _activity: u16, _arguments: [u64; 3]) -> Result<(u16, [u64; 2]), Status> {
        Err(Status::UnknownOperation)
    }

    /// An activity has opened a session. The service cannot refuse it.
    fn opened(&mut self, _activity: u16) {}

    /// The session of an activity is over: the activity closed it or has ended.
    fn gone(&mut self, _activity: u16) {}

    /// Does the work that is due now. Returns when to call it again (nanoseconds since reset). Called after every request and at
    /// that time.
    #[inline(always)]
    fn alarm(&mut self) -> Option<u64> {
        None
    }
}

/// A request that must be answered, once.
#[derive(Debug)]
pub struct Incoming {
    client: Client,
    message: Option<Message>,
}

impl Incoming {
    /// The client.
    pub fn client(&self) -> Client {
        self.client
    }

    /// Number of the activity that sent it; the unit wrote it.
    pub fn activity(&self) -> u16 {
        let message = self.message.as_ref();
        message.map_or(u16::MAX, |m| m.header().sender_activity)
    }

    /// The client and its account.
    pub fn owner(&self) -> Owner {
        Owner {
            client: self.client(),
            activity: self.activity(),
        }
    }

    /// Number of the operation.
    pub fn operation(&self) -> u64 {
        self.message
            .as_ref()
            .and_then(Message::word)
            .unwrap_or(MALFORMED)
    }

    /// The request.
    ///
    /// # Errors
    /// [`Status::BadRequest`] if it is too short.
    pub fn body<T: Body>(&self) -> Result<T, Status> {
        message::body(self.message.as_ref().map_or(&[], |m| m.rest()))
    }

    /// The bytes behind the operation.
    pub fn bytes(&self) -> &[u8] {
        self.message.as_ref().map_or(&[], |m| m.rest())
    }

    /// Whether its sender still waits for the answer. A service that keeps requests for a long time asks now and then
    /// ([`Rounds`]) and drops those whose senders are gone: each takes a slot from its sender's successor.
    pub fn is_awaited(&self) -> bool {
        self.message.as_ref().is_some_and(Message::is_awaited)
    }

    /// Answers with bytes, the first eight of which are 0 or the code of a [`Status`]. They must not cross a page.
    pub fn reply(self, reply: &[u8]) {
        self.send(reply);
    }

    /// Answers with success.
    pub fn done<T: Body>(self, reply: &T) {
        self.send(Buffer::new().success(reply));
    }

    /// Answers with failure.
    pub fn fail(self, status: Status) {
        self.send(Aligned(status.code()).0.as_bytes());
    }

    /// Answers with the outcome.
    pub fn answer<T: Body>(self, outcome: Result<T, Status>) {
        match outcome {
            Ok(reply) => self.done(&reply),
            Err(status) => self.fail(status),
        }
    }

    #[inline(always)]
    fn send(mut self, reply: &[u8]) {
        if let Some(message) = self.message.take() {
            // A client that is gone, or that has no room for its answer, harms only itself.
            let _ = message.reply(reply);
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(message) = self.message.take() {
            let _ = message.reply(Aligned(Status::Closed.code()).0.as_bytes());
        }
    }
}

/// One priority.
struct Lane {
    gate: ReceiveGate,
    terms: Terms,
}

/// Index of a client's account among those of its gate, if it has one.
#[inline(always)]
fn place(client: Client) -> Option<usize> {
    (client.label < CLIENTS as u64).then_some(client.label as usize)
}

/// The outcome of taking a request.
enum Outcome {
    Served,
    Nothing,
}

/// The gates, accounts and delayed requests of a server.
pub struct Server {
    lanes: Fixed<Lane>,
    /// Accounts of the clients of the first gate, which are found with one lookup less.
    first: Box<[Account; CLIENTS]>,
    /// Accounts of the clients of the other gates: the same number for each.
    lower: Fixed<Account>,
    waiting: Waiting<Message>,
    /// Checks of requests that wait for a long time.
    rounds: Rounds,
    /// No client of the first gate has less than this left (nanoseconds), so an empty request is answered without checking an
    /// account.
    least: i64,
    /// The earliest time of the next search for that minimum.
    look_again: u64,
    /// Address of the first gate's messages. It is loaded each time before the unit is asked, so that it has arrived when the unit
    /// answers; a plain number would be loaded only when it is needed.
    buffer: AtomicU64,
    /// The answer to an empty request.
    nothing: Aligned<[u8; 8]>,
    /// For measuring requests.
    pace: Pace,
    /// The gate for the kernel's questions, if there are sessions.
    control: Option<ReceiveGate>,
    /// The selector under which the service is offered.
    offers: u16,
    /// The last thing served was a question of the kernel: now a request comes first.
    has_asked: bool,
}

/// A time of the arguments in nanoseconds: that of the gate, or that of all gates.
fn term(service: &str, name: &str, priority: usize) -> Option<u64> {
    let common = of_service(service, name);
    let own = alloc::format!("{common}-{priority}");
    let text = argument::text(&own).or_else(|| argument::text(&common));
    let text = text.or_else(|| argument::text(name))?;
    match quantity::time(text) {
        Some(time) => Some(time),
        None if text == "none" => None,
        None => panic!("argument `{name}`: `{text}` is not a time such as `20us`"),
    }
}

/// The name of a gate or argument of a service.
fn of_service(service: &str, name: &str) -> String {
    match service {
        "" => name.into(),
        service => alloc::format!("{service}-{name}"),
    }
}

fn terms(service: &str, priority: usize) -> Terms {
    let period = term(service, "period", priority);
    if period == Some(0) {
        panic!("argument `period`: a period of 0");
    }
    Terms {
        limit: term(service, "limit", priority).unwrap_or(u64::MAX),
        budget: term(service, "budget", priority).unwrap_or(u64::MAX),
        period: period.unwrap_or(10_000_000),
    }
}

impl Server {
    /// A server with the gates and arguments of the description.
    ///
    /// # Panics
    /// If there is no gate, or an argument is not a time.
    pub fn from_environment() -> Self {
        Self::named("")
    }

    /// One of several services of an application: with the gates `NAME-priority-0`, ..., and the arguments `NAME-limit`, ....
    ///
    /// # Panics
    /// If there is no gate, or an argument is not a time.
    pub fn named(service: &str) -> Self {
        let names = GATES.iter().map(|name| of_service(service, name));
        let entries: Vec<&GateEntry> = names
            .map_while(|name| argument::gate(&name, GateKind::Receive))
            .collect();
        let Some(first) = entries.first() else {
            panic!(
                "no <rgate name=\"{}\"> in the description",
                of_service(service, GATES[0])
            );
        };
        // A program that the description does not call a service may still serve applications that have send gates to it.
        let offers = u16::try_from(first.rights).ok().filter(|s| *s != 0);
        let gates = entries
            .iter()
            .map(|gate| ReceiveGate::new(gate.endpoint, gate.size as u8, gate.buffer));
        Self::with(service, gates, offers.unwrap_or(SEL_OFFERED))
    }

    /// A server with these gates, the first having the highest priority, and the arguments of the description.
    ///
    /// # Panics
    /// If an argument is not a time, or there is no gate.
    pub fn new(gates: impl IntoIterator<Item = ReceiveGate>) -> Self {
        Self::with("", gates, SEL_OFFERED)
    }

    fn with(service: &str, gates: impl IntoIterator<Item = ReceiveGate>, offers: u16) -> Self {
        let now = time::now();
        let lane = |(priority, gate)| Lane {
            gate,
            terms: terms(service, priority),
        };
        let lanes: Fixed<Lane> = gates.into_iter().enumerate().map(lane).collect();
        let slots = lanes.iter().map(|lane| usize::from(lane.gate.slots()));
        // Built in their final place: an array of them would take a quarter of a small stack.
        let of_lane = |lane: &Lane| core::iter::repeat_n(Account::new(lane.terms, now), CLIENTS);
        let first: Option<Vec<Account>> = lanes.first().map(|lane| of_lane(lane).collect());
        let first = first.and_then(|all| Box::<[Account; CLIENTS]>::try_from(all).ok());
        let Some(first) = first else {
            panic!("a server without a gate");
        };
        Self {
            waiting: Waiting::with_capacity(slots.sum()),
            rounds: Rounds::default(),
            least: first[0].clear_for(),
            look_again: 0,
            buffer: AtomicU64::new(lanes[0].gate.buffer()),
            nothing: Aligned([0; 8]),
            pace: Pace::of_tile(),
            control: None,
            offers,
            has_asked: false,
            first,
            lower: lanes[1..].iter().flat_map(of_lane).collect(),
            lanes,
        }
    }

    /// Number of priorities.
    pub fn priorities(&self) -> usize {
        self.lanes.len()
    }

    /// The clients that can exist: for each gate as many as it has slots, because each client sends with a credit for one. Their
    /// labels begin at 0, as the description numbers them unless it gives others.
    pub fn seats(&self) -> Seats {
        let gates = self.lanes.iter();
        Seats::new(gates.map(|lane| u64::from(lane.gate.slots()).min(CLIENTS as u64)))
    }

    /// Maximum outstanding requests: the slots of all gates.
    pub fn slots(&self) -> usize {
        let slots = self.lanes.iter().map(|lane| usize::from(lane.gate.slots()));
        slots.sum()
    }

    /// The limits of a client.
    pub fn terms(&self, priority: usize) -> Terms {
        self.lanes[priority].terms
    }

    /// The account of a client, if there is one.
    pub fn account(&self, client: Client) -> Option<&Account> {
        let label = place(client)?;
        match client.priority.checked_sub(1) {
            None => Some(&self.first[label]),
            Some(lane) => self.lower.get(lane * CLIENTS + label),
        }
    }

    #[inline(always)]
    fn account_mut(&mut self, client: Client) -> Option<&mut Account> {
        let label = place(client)?;
        match client.priority.checked_sub(1) {
            None => Some(&mut self.first[label]),
            Some(lane) => self.lower.get_mut(lane * CLIENTS + label),
        }
    }

    /// Serves forever.
    ///
    /// # Panics
    /// If the service has sessions and the kernel refuses them.
    pub fn run<S: Service>(&mut self, service: &mut S) -> ! {
        self.offer::<S>();
        // It is asked first, so it is kept at hand.
        let first = self.lanes[0].gate;
        loop {
            let alarm = service.alarm();
            let room = self.room();
            self.sleep(alarm);
            self.step(service, first, room);
        }
    }

    /// Offers the service to the activities that may open sessions, unless that has been done. Otherwise [`run`](Self::run) does it; a
    /// server that divides its kernel memory among clients calls it earlier, to know how much is left.
    ///
    /// # Panics
    /// If the kernel refuses.
    pub fn offer<S: Service>(&mut self) {
        if S::SESSIONS && self.control.is_none() {
            self.control = match session::offer(self.offers) {
                Ok(gate) => Some(gate),
                Err(status) => panic!("the service cannot be offered: {status}"),
            };
        }
    }

    /// Serves the most important request, if there is one. Returns the time at which there is something to do without a request.
    pub(crate) fn turn(&mut self, service: &mut impl Service) -> Option<u64> {
        let (first, room) = (self.lanes[0].gate, self.room());
        self.step(service, first, room);
        let alarm = service.alarm();
        match self.waiting.is_empty() {
            true => alarm,
            false => alarm.into_iter().chain(self.look_at_waiting()).min(),
        }
    }

    /// A request is about to wait.
    fn begin_rounds(&mut self) {
        if self.waiting.is_empty() {
            self.rounds = Rounds::default();
        }
    }

    /// Checks a request that has waited for a long time, and drops it if its sender has ended. Returns the time at which waiting requests
    /// need attention.
    #[cold]
    fn look_at_waiting(&mut self) -> Option<u64> {
        let now = time::now();
        let due = self.rounds.due(now, self.waiting.count());
        let item = due.and_then(|index| Some((index, self.waiting.item(index)?)));
        if let Some((index, message)) = item {
            if !message.is_awaited() {
                drop(self.waiting.remove(index));
                self.rounds.dropped();
            }
            return Some(now);
        }
        self.rounds
            .next()
            .into_iter()
            .chain(self.waiting.next())
            .min()
    }

    /// Sleeps until there is something to do. The sleep ends at once if a message is there, so the server always sleeps first: that
    /// is the shortest path from the end of a request to the next one.
    #[inline(always)]
    fn sleep(&mut self, alarm: Option<u64>) {
        let until = if self.waiting.is_empty() {
            alarm.unwrap_or(0)
        } else {
            let next = self.look_at_waiting().unwrap_or(u64::MAX);
            alarm.map_or(next, |alarm| alarm.min(next))
        };
        crate::gate::drop_answers();
        time::wait(NO_ENDPOINT, until);
    }

    /// Serves the most important request, if there is one.
    #[inline(always)]
    fn step<S: Service>(&mut self, service: &mut S, first: ReceiveGate, room: i64) {
        // The kernel's questions are as important as the most important client's requests, but any client can cause them: after one
        // question, a request comes first.
        if S::SESSIONS {
            if !self.has_asked && self.answer_question(service) {
                return;
            }
            self.has_asked = false;
        }
        // A gate that fails would fail forever; the other gates continue.
        let buffer = self.buffer.load(Ordering::Relaxed);
        if let Ok(Some((message, begin))) = first.fetch_timed_from(buffer) {
            return match room >= NULL_TIME as i64 {
                true => self.take_first(service, message, begin),
                false => self.take_behind(service, message, begin),
            };
        }
        self.step_lower(service);
    }

    /// Answers a question of the kernel, if there is one.
    #[inline(always)]
    fn answer_question(&mut self, service: &mut impl Service) -> bool {
        let question = self.control.map(|control| control.fetch());
        let Some(Ok(Some(question))) = question else {
            return false;
        };
        answer_kernel(service, question);
        self.has_asked = true;
        true
    }

    #[inline(never)]
    fn step_lower(&mut self, service: &mut impl Service) {
        for priority in 0..self.lanes.len() {
            if !self.waiting.is_empty()
                && let Outcome::Served = self.serve_delayed(service, priority)
            {
                return;
            }
            if priority > 0
                && let Ok(Some((message, begin))) = self.lanes[priority].gate.fetch_timed()
            {
                return self.take_any(service, priority, message, begin);
            }
        }
    }

    /// The least time that a client of the first gate has left; 0 while requests wait, because those come first.
    #[inline(always)]
    fn room(&self) -> i64 {
        match self.waiting.is_empty() {
            true => self.least,
            false => 0,
        }
    }

    /// Takes a request of the first gate while no other waits. An empty request is answered at once.
    #[inline(always)]
    fn take_first(&mut self, service: &mut impl Service, message: Message, begin: Stopwatch) {
        let (start, label) = message.head();
        // While the message's head comes from memory, the unit gets the answer to an empty request.
        dtu::stage(&self.nothing.0);
        let client = Client { priority: 0, label };
        if let Some(label) = place(client)
            && start.is_null()
        {
            // A client that is gone, or that has no room for its answer, harms only itself.
            let _ = message.reply_staged(&self.nothing.0);
            let taken = begin.nanoseconds(self.pace);
            let account = &mut self.first[label];
            account.charge(time::now(), taken, NULL_TIME);
            self.least = self.least.min(account.clear_for());
            return;
        }
        self.take(service, client, start.word(), message, begin);
    }

    /// The same while other requests wait, or clients may not have enough time left.
    #[inline(never)]
    fn take_behind(&mut self, service: &mut impl Service, message: Message, mut begin: Stopwatch) {
        if let Outcome::Served = self.serve_delayed(service, 0) {
            // An earlier request has been served first.
            begin = Stopwatch::start();
        }
        self.take_any(service, 0, message, begin);
    }

    #[inline(always)]
    fn take_any(
        &mut self,
        service: &mut impl Service,
        priority: usize,
        message: Message,
        begin: Stopwatch,
    ) {
        let (start, label) = message.head();
        let client = Client { priority, label };
        self.take(service, client, start.word(), message, begin);
    }

    /// Finds the account with the least time left, at most once in a period: no account is refilled in between.
    #[cold]
    fn look(&mut self, now: u64) {
        if now >= self.look_again {
            let least = self.first.iter().map(Account::clear_for).min();
            self.least = least.unwrap_or(0);
            self.look_again = now.saturating_add(self.lanes[0].terms.period);
        }
    }

    #[inline(never)]
    fn take(
        &mut self,
        service: &mut impl Service,
        client: Client,
        operation: Option<u64>,
        message: Message,
        begin: Stopwatch,
    ) {
        let operation = operation.unwrap_or(MALFORMED);
        let estimate = match operation {
            0 => NULL_TIME,
            operation => service.estimate(client, operation, message.rest()),
        };
        let empty = self.waiting.is_empty();
        if let Some(account) = self.account_mut(client)
            && empty & account.is_clear(estimate)
        {
            let again = answer(service, client, operation, message);
            self.charge(client, begin, estimate);
            if let Some(message) = again {
                self.put_back(client, message);
            }
        } else {
            self.take_slowly(service, client, operation, estimate, message);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_slowly(
        &mut self,
        service: &mut impl Service,
        client: Client,
        operation: u64,
        estimate: u64,
        message: Message,
    ) {
        let is_behind = self.waiting.has(client);
        let Some(account) = self.account_mut(client) else {
            return refuse(message, Status::TooMany);
        };
        let (now, begin) = (time::now(), Stopwatch::start());
        let verdict = match account.judge(now, estimate) {
            // A client's request never overtakes an earlier one of the same client.
            Verdict::Serve if is_behind => Verdict::Delay(now),
            verdict => verdict,
        };
        let again = match verdict {
            Verdict::Serve => answer(service, client, operation, message),
            Verdict::Delay(until) => {
                self.begin_rounds();
                if let Err(message) = self.waiting.put(client, until, message) {
                    refuse(message, Status::TooMany);
                }
                return;
            }
            Verdict::Refuse => {
                refuse(message, Status::TooLong);
                return self.charge(client, begin, estimate);
            }
        };
        self.charge(client, begin, estimate);
        if let Some(message) = again {
            self.put_back(client, message);
        }
    }

    /// Sets a request aside that could not be answered yet, until its turn comes again.
    #[cold]
    #[inline(never)]
    fn put_back(&mut self, client: Client, message: Message) {
        self.begin_rounds();
        if let Err(message) = self.waiting.put_back(client, time::now(), message) {
            refuse(message, Status::TooMany);
        }
    }

    /// Charges the time from `begin` until now.
    fn charge(&mut self, client: Client, begin: Stopwatch, estimate: u64) {
        let (end, taken) = (time::now(), begin.nanoseconds(self.pace));
        let mut left = i64::MAX;
        if let Some(account) = self.account_mut(client) {
            account.charge(end, taken, estimate);
            left = account.clear_for();
        }
        if client.priority == 0 {
            self.least = self.least.min(left);
        }
        if self.least < NULL_TIME as i64 {
            self.look(end);
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_delayed(&mut self, service: &mut impl Service, priority: usize) -> Outcome {
        let now = time::now();
        let Some((client, message)) = self.waiting.due(priority, now) else {
            return Outcome::Nothing;
        };
        let begin = Stopwatch::start();
        let operation = message.word().unwrap_or(MALFORMED);
        let estimate = match operation {
            0 => NULL_TIME,
            operation => service.estimate(client, operation, message.rest()),
        };
        let Some(account) = self.account_mut(client) else {
            return Outcome::Nothing;
        };
        let verdict = account.judge(now, estimate);
        if let Verdict::Delay(until) = verdict {
            // The request has become the client's first, but its own time has not come yet.
            self.waiting.postpone(client, until);
            return Outcome::Served;
        }
        let Some((client, message)) = self.waiting.take(priority, now) else {
            return Outcome::Nothing;
        };
        let again = match verdict {
            Verdict::Refuse => {
                refuse(message, Status::TooLong);
                None
            }
            _ => answer(service, client, operation, message),
        };
        self.charge(client, begin, estimate);
        if let Some(message) = again {
            self.put_back(client, message);
        }
        Outcome::Served
    }
}

/// Answers a question of the kernel about sessions. The number of a session is that of the activity that opened it.
#[cold]
#[inline(never)]
fn answer_kernel(service: &mut impl Service, question: Message) {
    let mut words = [0u64; 8];
    let count = question.payload().len() / 8;
    for (word, bytes) in words.iter_mut().zip(question.payload().chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    }
    let answer = match ServerRequest::decode(&words[..count.min(8)]) {
        Some(ServerRequest::Open { activity, .. }) => {
            service.opened(activity);
            [0, activity.into(), 0, 0, 0]
        }
        Some(ServerRequest::Exchange {
            ident,
            delegate: 0,
            count: 1,
            arguments,
        }) => match service.grant(ident as u16, arguments) {
            Ok((selector, [first, second])) => [0, selector.into(), 1, first, second],
            Err(status) => [status.code(), 0, 0, 0, 0],
        },
        Some(ServerRequest::Close { ident }) => {
            service.gone(ident as u16);
            [0; 5]
        }
        _ => [Status::UnknownOperation.code(), 0, 0, 0, 0],
    };
    let _ = question.reply(Aligned(answer).0.as_bytes());
}

/// Answers a request, or returns it if it is for later.
#[inline(always)]
fn answer(
    service: &mut impl Service,
    client: Client,
    operation: u64,
    message: Message,
) -> Option<Message> {
    if operation == 0 {
        // A client that is gone, or that has no room for its answer, harms only itself.
        let _ = message.reply(&Aligned([0; 8]).0);
        None
    } else {
        serve(service, client, operation, message)
    }
}

#[inline(never)]
fn serve(
    service: &mut impl Service,
    client: Client,
    operation: u64,
    message: Message,
) -> Option<Message> {
    if operation == MALFORMED {
        refuse(message, Status::BadRequest);
        return None;
    }
    service.serve(Incoming {
        client,
        message: Some(message),
    });
    service.unanswered()?.message.take()
}

#[cold]
#[inline(never)]
fn refuse(message: Message, status: Status) {
    let _ = message.reply(Aligned(status.code()).0.as_bytes());
}
