//! A server: one receive gate for each priority, served highest first, with the processor time of every client on account.
//!
//! Why it exists: m3-rtas24, section III-C: servers are shared, so a client must neither delay others by many requests nor
//! by long ones. What it deliberately does not know: what is served; that is a [`Service`].
//!
//! The description gives the gates `priority-0` (the highest), `priority-1`, ... and the arguments `limit` (time of one
//! request), `budget` and `period` (time of a client in each period), such as `20us` or `none`; `limit-1` and so on hold for the
//! clients of one gate. Before a request is served, the service says how long it can take at most. A request beyond the
//! limit is refused; one beyond what is left of the client's budget waits until there is enough, with all later ones of
//! this client behind it. Requests are not interrupted, so a client of the highest priority waits for at most one request of
//! another (at most `limit`, the longest of all gates) besides those of its own gate.
//!
//! Time is that of the clock, in nanoseconds, so it is that of the server only where the server is alone on its tile.

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
use bulkhead_common::shares::Seats;
use bulkhead_common::status::Status;
use bulkhead_common::waiting::Waiting;
use bulkhead_hal::dtu;
use core::sync::atomic::{AtomicU64, Ordering};
use zerocopy::IntoBytes;

pub use bulkhead_common::waiting::{Client, Owner};

/// Clients of one gate at most: labels below this are served.
pub const CLIENTS: usize = 64;
/// Nanoseconds of an empty request, generously.
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

/// What a server does.
pub trait Service {
    /// Nanoseconds that a request takes at most; it has not been checked in any way. Must be quick itself.
    fn estimate(&mut self, client: Client, operation: u64, body: &[u8]) -> u64;

    /// Answers a request, now or later. Requests that are dropped are answered with [`Status::Closed`].
    fn serve(&mut self, request: Incoming);

    /// Whether clients can open sessions.
    const SESSIONS: bool = false;

    /// A client of this activity asks for memory over its session. Gives a selector of this server, whose capability the client
    /// gets, and two words for it. The arguments have not been checked in any way.
    ///
    /// # Errors
    /// Why not; the client hears it.
    fn grant(&mut self, _activity: u16, _arguments: [u64; 3]) -> Result<(u16, [u64; 2]), Status> {
        Err(Status::UnknownOperation)
    }

    /// An activity opens a session. Nobody asks whether it may.
    fn opened(&mut self, _activity: u16) {}

    /// The session of an activity is over: it closed it or is gone.
    fn gone(&mut self, _activity: u16) {}

    /// Does what is due at this time (nanoseconds since reset); returns when to be called again. Called after every
    /// request and when that time has come.
    #[inline(always)]
    fn alarm(&mut self) -> Option<u64> {
        None
    }
}

/// A request that is to be answered, once.
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

/// What was done about a request.
enum Outcome {
    Served,
    Nothing,
}

/// The gates, accounts and delayed requests of a server.
pub struct Server {
    lanes: Fixed<Lane>,
    /// Those of the clients of the first gate, which are found with one look less.
    first: Box<[Account; CLIENTS]>,
    /// Those of the clients of the other gates: as many for each.
    lower: Fixed<Account>,
    waiting: Waiting<Message>,
    /// No client of the first gate has less left than this (nanoseconds): so no account is checked before an empty request is answered.
    least: i64,
    /// When that is looked for again at the earliest.
    look_again: u64,
    /// Where messages of the first gate lie. Read anew each time before the unit is asked, so that it is there when the unit answers; as
    /// a plain number, it would be read when it is needed.
    buffer: AtomicU64,
    /// The answer to an empty request.
    nothing: Aligned<[u8; 8]>,
    /// For measuring requests.
    pace: Pace,
    /// Where the kernel asks, if there are sessions.
    control: Option<ReceiveGate>,
    /// Under which selector they are offered.
    offers: u16,
    /// The last thing that was done was a question of the kernel: a request comes first now.
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

/// The name of something that belongs to a service.
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
    /// With the gates and arguments of the description.
    ///
    /// # Panics
    /// If there is no gate, or an argument is no time.
    pub fn from_environment() -> Self {
        Self::named("")
    }

    /// One of several services of an application: with the gates `NAME-priority-0`, ..., and the arguments `NAME-limit`, ....
    ///
    /// # Panics
    /// If there is no gate, or an argument is no time.
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
        // Who is no service in the description may be one all the same, for those who have send gates.
        let offers = u16::try_from(first.rights).ok().filter(|s| *s != 0);
        let gates = entries
            .iter()
            .map(|gate| ReceiveGate::new(gate.endpoint, gate.size as u8, gate.buffer));
        Self::with(service, gates, offers.unwrap_or(SEL_OFFERED))
    }

    /// With these gates, the first with the highest priority, and the arguments of the description.
    ///
    /// # Panics
    /// If an argument is no time, or there is no gate.
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
        // Made where they stay: an array of them is a quarter of a small stack.
        let of_lane = |lane: &Lane| core::iter::repeat_n(Account::new(lane.terms, now), CLIENTS);
        let first: Option<Vec<Account>> = lanes.first().map(|lane| of_lane(lane).collect());
        let first = first.and_then(|all| Box::<[Account; CLIENTS]>::try_from(all).ok());
        let Some(first) = first else {
            panic!("a server without a gate");
        };
        Self {
            waiting: Waiting::with_capacity(slots.sum()),
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

    /// Clients that there can be: of each gate as many as it has slots, because each sends with a credit for one. Their labels begin at 0,
    /// as the description gives them away if it does not say others.
    pub fn seats(&self) -> Seats {
        let gates = self.lanes.iter();
        Seats::new(gates.map(|lane| u64::from(lane.gate.slots()).min(CLIENTS as u64)))
    }

    /// Requests that can be under way at once: the slots of all gates.
    pub fn slots(&self) -> usize {
        let slots = self.lanes.iter().map(|lane| usize::from(lane.gate.slots()));
        slots.sum()
    }

    /// What a client may take.
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

    /// Serves for ever.
    ///
    /// # Panics
    /// If the service has sessions and the kernel does not let it.
    pub fn run<S: Service>(&mut self, service: &mut S) -> ! {
        self.offer::<S>();
        // Asked first, so it is kept at hand.
        let first = self.lanes[0].gate;
        loop {
            let alarm = service.alarm();
            let room = self.room();
            self.sleep(alarm);
            self.step(service, first, room);
        }
    }

    /// Offers the service to those that may open sessions, if that has not been done: [`run`](Self::run) does it otherwise. Whoever divides
    /// its kernel memory among clients needs to know what is left then.
    ///
    /// # Panics
    /// If the kernel does not let it.
    pub fn offer<S: Service>(&mut self) {
        if S::SESSIONS && self.control.is_none() {
            self.control = match session::offer(self.offers) {
                Ok(gate) => Some(gate),
                Err(status) => panic!("the service cannot be offered: {status}"),
            };
        }
    }

    /// Serves the most important request that there is, if there is one; gives the time at which there is something to do without
    /// one.
    pub(crate) fn turn(&mut self, service: &mut impl Service) -> Option<u64> {
        let (first, room) = (self.lanes[0].gate, self.room());
        self.step(service, first, room);
        let alarm = service.alarm();
        match self.waiting.is_empty() {
            true => alarm,
            false => alarm.into_iter().chain(self.waiting.next()).min(),
        }
    }

    /// Sleeps until there is something to do. The sleep ends at once if a message is there, so it always comes first: that
    /// is the shortest way from the end of a request to the next one.
    #[inline(always)]
    fn sleep(&mut self, alarm: Option<u64>) {
        let until = if self.waiting.is_empty() {
            alarm.unwrap_or(0)
        } else {
            let next = self.waiting.next().unwrap_or(u64::MAX);
            alarm.map_or(next, |alarm| alarm.min(next))
        };
        crate::gate::drop_answers();
        time::wait(NO_ENDPOINT, until);
    }

    /// Serves the most important request that there is, if there is one.
    #[inline(always)]
    fn step<S: Service>(&mut self, service: &mut S, first: ReceiveGate, room: i64) {
        // The kernel's questions are as important as the most important client, but any client can make it ask: after one of them, a
        // request comes first.
        if S::SESSIONS {
            if !self.has_asked && self.answer_question(service) {
                return;
            }
            self.has_asked = false;
        }
        // A gate that fails would fail for ever; the others go on.
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

    /// What every client of the first gate has left at least. Nothing while requests wait: those come first.
    #[inline(always)]
    fn room(&self) -> i64 {
        match self.waiting.is_empty() {
            true => self.least,
            false => 0,
        }
    }

    /// The next request of the first gate while nothing waits. One that asks for nothing is answered at once.
    #[inline(always)]
    fn take_first(&mut self, service: &mut impl Service, message: Message, begin: Stopwatch) {
        let (start, label) = message.head();
        // While that comes from memory, the unit hears what an empty request is answered with.
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

    /// The same while others wait, or may not have enough left.
    #[inline(never)]
    fn take_behind(&mut self, service: &mut impl Service, message: Message, mut begin: Stopwatch) {
        if let Outcome::Served = self.serve_delayed(service, 0) {
            // Who was there before came first.
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

    /// Looks for the account with the least, once in a period at most: nobody gets more in between.
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
            answer(service, client, operation, message);
            self.charge(client, begin, estimate);
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
            // Nobody overtakes himself.
            Verdict::Serve if is_behind => Verdict::Delay(now),
            verdict => verdict,
        };
        match verdict {
            Verdict::Serve => answer(service, client, operation, message),
            Verdict::Delay(until) => {
                if let Err(message) = self.waiting.put(client, until, message) {
                    refuse(message, Status::TooMany);
                }
                return;
            }
            Verdict::Refuse => refuse(message, Status::TooLong),
        }
        self.charge(client, begin, estimate);
    }

    /// Books what was done from `begin` till now.
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
            // It was due behind another one of this client, but its own time has not come yet.
            self.waiting.postpone(client, until);
            return Outcome::Served;
        }
        let Some((client, message)) = self.waiting.take(priority, now) else {
            return Outcome::Nothing;
        };
        if verdict == Verdict::Refuse {
            refuse(message, Status::TooLong);
        } else {
            answer(service, client, operation, message);
        }
        self.charge(client, begin, estimate);
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

#[inline(always)]
fn answer(service: &mut impl Service, client: Client, operation: u64, message: Message) {
    if operation == 0 {
        // A client that is gone, or that has no room for its answer, harms only itself.
        let _ = message.reply(&Aligned([0; 8]).0);
    } else {
        serve(service, client, operation, message);
    }
}

#[inline(never)]
fn serve(service: &mut impl Service, client: Client, operation: u64, message: Message) {
    if operation == MALFORMED {
        return refuse(message, Status::BadRequest);
    }
    service.serve(Incoming {
        client,
        message: Some(message),
    });
}

#[cold]
#[inline(never)]
fn refuse(message: Message, status: Status) {
    let _ = message.reply(Aligned(status.code()).0.as_bytes());
}
