//! The state machine of a streaming unit.
//!
//! Why it exists: it answers the kernel in TileMux's protocol, so that the kernel needs to know nothing new, and moves data
//! through the unit piece by piece: read a piece, let it stream through, write what came out, tell the next unit. It does one
//! thing at a time, through the registers of the tile's data transfer unit. Clients take turns after each piece, which runs
//! to its end. What it deliberately does not know: what the stream computes.

use super::context::{Context, Gates, Inbox, Job, Mapping};
use super::stream::{Operation, Stream};
use super::{AcceleratorConfig, Ports, Waits};
use crate::types::Tick;
use bulkhead_abi::accelerator::{Answer, BAD_REQUEST, PIECE, Request};
use bulkhead_abi::dtu::{
    ADDRESS, ARGUMENT, COMMAND, CORE_REQUEST, CURRENT_ACTIVITY, Command, CoreRequest,
    CurrentActivity, DtuError, NO_MESSAGE, Opcode, PRIVILEGED_ARGUMENT, PRIVILEGED_ARGUMENT2,
    PRIVILEGED_COMMAND, PrivilegedOpcode, SIZE, TILEMUX_ACTIVITY, TLB_READ, TLB_WRITE,
};
use bulkhead_abi::message::{HEADER_SIZE, Header};
use bulkhead_abi::tilemux::{self, REQUEST_ENDPOINT, TILEMUX_BUFFER, TileMuxError};
use zerocopy::FromBytes;

/// Clients at most.
const CONTEXTS: usize = 4;
/// Where answers to the kernel are put together: memory that TileMux's program would have.
const SCRATCH: u64 = tilemux::TILEMUX_BASE + 0x1_0000;

/// What the machine is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is under way.
    Free,
    /// Not started by the kernel.
    Off,
    /// A command that looks for a request of the kernel.
    KernelFetch,
    /// A command that answers the kernel.
    KernelAnswer,
    /// A command that looks for an answer of the next unit.
    FetchReply,
    /// A command that frees such an answer.
    FreeReply,
    /// A command that looks for a request.
    FetchRequest,
    /// The change to another client.
    Switching(Tick),
    /// A command that reads a piece.
    Reading(u64),
    /// A piece streams through.
    Streaming(Tick, u64),
    /// A command that writes results.
    Writing(u64),
    /// A command that tells the next unit.
    Forwarding,
    /// A command that answers a client.
    Answering,
}

/// A streaming unit with its control.
#[derive(Clone, Debug)]
pub struct Accelerator {
    config: AcceleratorConfig,
    state: State,
    contexts: Vec<Context>,
    /// Whose turn it is.
    turn: usize,
    /// Whose state is in the unit.
    loaded: Option<u16>,
    /// The kernel may have asked for something.
    kernel: bool,
    /// Ticks in which data streamed through.
    pub streaming: Tick,
    /// Bytes that streamed through.
    pub bytes: u64,
    random: u64,
}

impl Accelerator {
    /// A unit after reset: it does nothing before the kernel starts it.
    pub fn new(config: &AcceleratorConfig, seed: u64) -> Self {
        Self {
            config: config.clone(),
            state: State::Off,
            contexts: Vec::new(),
            turn: 0,
            loaded: None,
            kernel: false,
            streaming: 0,
            bytes: 0,
            random: seed | 1,
        }
    }

    /// The kernel starts the tile's logic.
    pub fn start(&mut self) {
        self.stop();
        self.state = State::Free;
        self.kernel = true;
    }

    /// Takes a client as a boot ROM would give it, without a kernel; tells whether its gates suffice.
    pub fn adopt(
        &mut self,
        ports: &mut dyn Ports,
        activity: u16,
        bucket: u8,
        mappings: &[(u64, u64, u64)],
    ) -> bool {
        self.state = State::Free;
        let requests = [tilemux::Request::Create {
            activity,
            tables: 0,
            table_pages: 0,
        }]
        .into_iter()
        .chain(
            mappings
                .iter()
                .map(|&(address, physical, pages)| tilemux::Request::Map {
                    activity,
                    address,
                    physical,
                    pages,
                    rights: 0,
                }),
        )
        .chain([
            tilemux::Request::SetBucket { activity, bucket },
            tilemux::Request::Start {
                activity,
                entry: 0,
                stack: 0,
            },
        ]);
        let mut good = true;
        for request in requests {
            good &= self.obey(ports, request) == TileMuxError::None;
        }
        good
    }

    /// The kernel stops the tile's logic.
    pub fn stop(&mut self) {
        self.state = State::Off;
        self.contexts.clear();
        (self.turn, self.loaded) = (0, None);
    }

    /// Goes on as far as possible at this moment.
    pub fn step(&mut self, ports: &mut dyn Ports) -> Waits {
        if self.state == State::Off {
            return Waits::Idle;
        }
        let started = self.contexts.iter().any(|context| context.gates.is_some());
        if self.config.operation == Operation::Rogue && started {
            return self.rampage(ports);
        }
        loop {
            if self.has_command() {
                let command = Command(ports.read(COMMAND));
                if command.opcode() != 0 {
                    return Waits::Busy;
                }
                let error =
                    DtuError::from_code(command.error()).unwrap_or(DtuError::UnknownCommand);
                self.command_done(ports, error);
            } else if let State::Switching(until) | State::Streaming(until, _) = self.state {
                if ports.now() < until {
                    return Waits::Until(until);
                }
                self.time_passed(ports);
            } else if !self.begin(ports) {
                return match self.contexts.iter().any(|c| c.job.is_some()) {
                    true => Waits::Busy,
                    false => Waits::Idle,
                };
            }
        }
    }

    fn has_command(&self) -> bool {
        !matches!(
            self.state,
            State::Free | State::Off | State::Switching(_) | State::Streaming(..)
        )
    }

    fn command(&mut self, ports: &mut dyn Ports, command: Command, state: State) {
        ports.write(COMMAND, command.0);
        self.state = state;
    }

    fn message_command(
        &mut self,
        ports: &mut dyn Ports,
        command: Command,
        (address, physical): (u64, u64),
        words: &[u64],
        state: State,
    ) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        ports.store(physical, &bytes);
        ports.write(ADDRESS, address);
        ports.write(SIZE, bytes.len() as u64);
        self.command(ports, command, state);
    }

    /// Makes an activity the unit's current one. What the former one missed is remembered.
    fn become_current(&mut self, ports: &mut dyn Ports, activity: u16, bucket: u8) {
        let current = CurrentActivity(ports.read(CURRENT_ACTIVITY));
        if current.activity() == activity && current.bucket() == bucket {
            return;
        }
        let next = CurrentActivity::new(activity, 0, bucket);
        ports.write(PRIVILEGED_ARGUMENT, next.0);
        ports.write(
            PRIVILEGED_COMMAND,
            PrivilegedOpcode::ExchangeActivity as u64,
        );
        let old = CurrentActivity(ports.read(PRIVILEGED_ARGUMENT));
        self.count(old);
        self.count(CurrentActivity(ports.read(CURRENT_ACTIVITY)));
    }

    /// An activity has so many unread messages.
    fn count(&mut self, current: CurrentActivity) {
        let (activity, messages) = (current.activity(), current.messages());
        if activity == TILEMUX_ACTIVITY && messages > 0 {
            self.kernel = true;
        }
        for context in self.contexts.iter_mut().filter(|c| c.activity == activity) {
            context.news |= messages > context.quiet;
        }
    }

    /// The client whose turn it is has nothing that it can use now.
    fn nothing_new(&mut self, ports: &mut dyn Ports) {
        let unread = CurrentActivity(ports.read(CURRENT_ACTIVITY)).messages();
        let context = &mut self.contexts[self.turn];
        (context.news, context.quiet) = (false, unread);
    }

    /// There may be messages for an activity.
    fn note(&mut self, activity: u16) {
        if activity == TILEMUX_ACTIVITY {
            self.kernel = true;
        }
        for context in self.contexts.iter_mut().filter(|c| c.activity == activity) {
            context.news = true;
        }
    }

    /// Looks who got messages.
    fn look(&mut self, ports: &mut dyn Ports) {
        loop {
            let request = CoreRequest(ports.read(CORE_REQUEST));
            if !request.is_valid() {
                break;
            }
            self.note(request.activity());
            ports.write(CORE_REQUEST, 0);
        }
        self.count(CurrentActivity(ports.read(CURRENT_ACTIVITY)));
    }

    /// Begins the next thing to do; tells whether there is one.
    fn begin(&mut self, ports: &mut dyn Ports) -> bool {
        self.look(ports);
        if self.kernel {
            self.become_current(ports, TILEMUX_ACTIVITY, 0);
            let command = Command::new(Opcode::Fetch, REQUEST_ENDPOINT, 0);
            self.command(ports, command, State::KernelFetch);
            return true;
        }
        for offset in 0..self.contexts.len() {
            let at = (self.turn + offset) % self.contexts.len();
            if self.has_work(at) {
                self.turn = at;
                return self.begin_context(ports);
            }
        }
        false
    }

    fn has_work(&self, at: usize) -> bool {
        let context = &self.contexts[at];
        match (&context.gates, &context.job) {
            (None, _) => false,
            (Some(_), None) => context.news,
            (Some(_), Some(job)) => match (&job.forward, job.unanswered) {
                // Without credits only an answer of the next unit helps.
                (Some(_), unanswered) if unanswered > 0 && !context.news => false,
                (None, unanswered) if unanswered > 0 && job.is_done() => context.news,
                _ => true,
            },
        }
    }

    fn begin_context(&mut self, ports: &mut dyn Ports) -> bool {
        let (activity, bucket) = {
            let context = &self.contexts[self.turn];
            (context.activity, context.bucket)
        };
        self.become_current(ports, activity, bucket);
        if self.loaded != Some(activity) {
            let first = self.loaded.replace(activity).is_none();
            if !first && self.config.switch > 0 {
                let until = ports.now() + self.config.switch * self.config.cycle;
                self.state = State::Switching(until);
                return true;
            }
        }
        let context = &mut self.contexts[self.turn];
        let Some(gates) = context.gates else {
            return false;
        };
        let fetch = |inbox: Inbox| Command::new(Opcode::Fetch, inbox.endpoint, 0);
        let Some(job) = &mut context.job else {
            self.command(ports, fetch(gates.requests), State::FetchRequest);
            return true;
        };
        if let (true, Some(replies)) = (job.unanswered > 0 && context.news, gates.replies) {
            self.command(ports, fetch(replies), State::FetchReply);
            return true;
        }
        self.work(ports, gates);
        true
    }

    /// The next step of the job whose turn it is.
    fn work(&mut self, ports: &mut dyn Ports, gates: Gates) {
        let context = &mut self.contexts[self.turn];
        let (Some(job), Some(stream)) = (&mut context.job, &mut context.stream) else {
            return;
        };
        if let (Some(piece), Some(next), Some(replies)) = (job.forward, gates.next, gates.replies) {
            ports.write(ARGUMENT, 0);
            let command = Command::new(Opcode::Send, next, replies.endpoint.into());
            let words = piece.encode();
            self.message_command(ports, command, gates.messages, &words, State::Forwarding);
            return;
        }
        // Whole rows, so that a unit behind can take them.
        let rows = match job.request.width {
            width @ 1..=PIECE => PIECE / width * width,
            _ => PIECE,
        };
        if job.out.len() as u64 >= rows || job.drained && !job.out.is_empty() {
            let bytes = (job.out.len() as u64).min(rows);
            let Some(output) = gates.output else {
                job.out.clear();
                return;
            };
            ports.store(gates.data.1, &job.out[..bytes as usize]);
            ports.write(ADDRESS, gates.data.0);
            ports.write(SIZE, bytes);
            ports.write(ARGUMENT, context.base.wrapping_add(job.written));
            let command = Command::new(Opcode::Write, output, 0);
            self.command(ports, command, State::Writing(bytes));
            return;
        }
        if job.read < job.request.bytes && job.status == 0 {
            let whole = (PIECE / stream.granularity()).max(1) * stream.granularity();
            let bytes = (job.request.bytes - job.read).min(whole);
            ports.write(ADDRESS, gates.data.0);
            ports.write(SIZE, bytes);
            ports.write(ARGUMENT, job.request.input.wrapping_add(job.read));
            let command = Command::new(Opcode::Read, gates.input, 0);
            self.command(ports, command, State::Reading(bytes));
            return;
        }
        if !job.drained {
            job.drained = true;
            if job.request.is_last() && job.status == 0 {
                stream.finish(&mut job.out);
            }
            return;
        }
        let answer = Answer {
            status: job.status,
            bytes: job.read,
            checksum: stream.checksum().unwrap_or(job.behind),
        };
        let command = Command::new(Opcode::Reply, gates.requests.endpoint, job.message);
        self.message_command(
            ports,
            command,
            gates.messages,
            &answer.encode(),
            State::Answering,
        );
    }

    fn time_passed(&mut self, ports: &mut dyn Ports) {
        let state = std::mem::replace(&mut self.state, State::Free);
        let State::Streaming(_, bytes) = state else {
            return;
        };
        let context = &mut self.contexts[self.turn];
        let (Some(job), Some(stream), Some(gates)) =
            (&mut context.job, &mut context.stream, context.gates)
        else {
            return;
        };
        let mut data = vec![0; bytes as usize];
        if ports.load(gates.data.1, &mut data) {
            stream.push(&data, &mut job.out);
        } else {
            job.status = DtuError::TargetRefused as u64;
        }
        job.read += bytes;
        // One piece, and the next client has its turn.
        self.turn += 1;
    }

    fn command_done(&mut self, ports: &mut dyn Ports, error: DtuError) {
        match std::mem::replace(&mut self.state, State::Free) {
            State::KernelFetch => self.kernel_request(ports, error),
            // The kernel waits for its answer; the unit tries until it can be given.
            State::KernelAnswer | State::Free | State::Off => {}
            State::FetchRequest => self.client_request(ports, error),
            State::FetchReply => self.reply(ports, error),
            State::Reading(bytes) => {
                if error == DtuError::None {
                    let until = ports.now() + self.config.duration(bytes);
                    self.streaming += self.config.duration(bytes);
                    self.bytes += bytes;
                    self.state = State::Streaming(until, bytes);
                } else {
                    self.fail(error as u64);
                }
            }
            State::Writing(bytes) => self.written(bytes, error),
            State::Forwarding => {
                if let Some(job) = &mut self.contexts[self.turn].job {
                    match error {
                        DtuError::None => {
                            job.forward = None;
                            job.unanswered += 1;
                        }
                        // Somebody gives a credit back when he answers.
                        DtuError::NoCredits if job.unanswered > 0 => {}
                        error => {
                            job.forward = None;
                            self.fail(error as u64);
                        }
                    }
                }
            }
            State::Answering => {
                let context = &mut self.contexts[self.turn];
                context.job = None;
                // Requests may have waited for the end of this one.
                (context.news, context.quiet) = (true, 0);
                self.turn += 1;
            }
            State::FreeReply | State::Switching(_) | State::Streaming(..) => {}
        }
    }

    /// The job ends with this status; nothing more of it is read or written.
    fn fail(&mut self, status: u64) {
        if let Some(job) = &mut self.contexts[self.turn].job {
            if job.status == 0 {
                job.status = status;
            }
            job.out.clear();
            job.drained = true;
        }
    }

    fn written(&mut self, bytes: u64, error: DtuError) {
        if error != DtuError::None {
            return self.fail(error as u64);
        }
        let context = &mut self.contexts[self.turn];
        let next = context.gates.and_then(|gates| gates.next);
        if let Some(job) = &mut context.job {
            job.out.drain(..bytes as usize);
            if next.is_some() {
                let at = context.base.wrapping_add(job.written);
                job.forward = Some(Request {
                    input: at,
                    output: at,
                    bytes,
                    width: job.request.width,
                    position: job.written,
                    total: job.request.total,
                });
            }
            job.written += bytes;
        }
    }

    /// Header and payload words of a message in an inbox.
    fn message(ports: &mut dyn Ports, inbox: Inbox, offset: u64) -> Option<Vec<u64>> {
        let at = inbox.buffer.checked_add(offset)?;
        let mut header = [0; HEADER_SIZE];
        ports.load(at, &mut header).then_some(())?;
        let header = Header::read_from_bytes(&header).ok()?;
        let mut payload = vec![0; header.length.into()];
        ports
            .load(at + HEADER_SIZE as u64, &mut payload)
            .then_some(())?;
        let words = payload.as_chunks().0.iter();
        Some(words.map(|word| u64::from_le_bytes(*word)).collect())
    }

    /// The offset that a fetch found, if it found something.
    fn found(ports: &mut dyn Ports, error: DtuError) -> Option<u64> {
        let offset = ports.read(ARGUMENT);
        (error == DtuError::None && offset != NO_MESSAGE).then_some(offset)
    }

    fn kernel_request(&mut self, ports: &mut dyn Ports, error: DtuError) {
        let Some(offset) = Self::found(ports, error) else {
            self.kernel = false;
            return;
        };
        let inbox = Inbox {
            endpoint: REQUEST_ENDPOINT,
            buffer: TILEMUX_BUFFER,
        };
        let request = Self::message(ports, inbox, offset);
        let outcome = match request.and_then(|words| tilemux::Request::decode(&words)) {
            Some(request) => self.obey(ports, request),
            None => TileMuxError::BadRequest,
        };
        let command = Command::new(Opcode::Reply, REQUEST_ENDPOINT, offset as u32);
        let words = [outcome as u64];
        self.message_command(
            ports,
            command,
            (SCRATCH, SCRATCH),
            &words,
            State::KernelAnswer,
        );
    }

    /// Carries out what the kernel asks, as TileMux would.
    fn obey(&mut self, ports: &mut dyn Ports, request: tilemux::Request) -> TileMuxError {
        use tilemux::Request as R;
        if let R::Create { activity, .. } = request {
            if self.contexts.len() == CONTEXTS {
                return TileMuxError::Full;
            }
            self.contexts.push(Context::new(activity));
            return TileMuxError::None;
        }
        let (R::Map { activity, .. }
        | R::SetBucket { activity, .. }
        | R::Start { activity, .. }
        | R::Stop { activity, .. }) = request
        else {
            // Budgets and whatever else concerns harts: there is none.
            return TileMuxError::None;
        };
        let Some(at) = self.contexts.iter().position(|c| c.activity == activity) else {
            return TileMuxError::NoActivity;
        };
        match request {
            R::Map {
                address,
                physical,
                pages,
                ..
            } => self.contexts[at].mappings.push(Mapping {
                address,
                physical,
                pages,
            }),
            R::SetBucket { bucket, .. } => self.contexts[at].bucket = bucket,
            R::Start { .. } => {
                let Some(gates) = self.contexts[at].gates_of(ports) else {
                    return TileMuxError::WrongState;
                };
                for (address, physical) in [gates.data, gates.messages] {
                    ports.write(PRIVILEGED_ARGUMENT, address | TLB_READ | TLB_WRITE);
                    ports.write(PRIVILEGED_ARGUMENT2, physical | u64::from(activity) << 48);
                    ports.write(PRIVILEGED_COMMAND, PrivilegedOpcode::InsertTlb as u64);
                }
                self.contexts[at].gates = Some(gates);
                self.contexts[at].news = true;
            }
            _ => {
                self.contexts.remove(at);
                (self.turn, self.loaded) = (0, None);
            }
        }
        TileMuxError::None
    }

    fn client_request(&mut self, ports: &mut dyn Ports, error: DtuError) {
        let found = Self::found(ports, error);
        let context = &mut self.contexts[self.turn];
        let (Some(offset), Some(gates)) = (found, context.gates) else {
            return self.nothing_new(ports);
        };
        let words = Self::message(ports, gates.requests, offset);
        let request = words.and_then(|words| Request::decode(&words));
        let mut job = Job {
            request: request.unwrap_or_default(),
            message: offset as u32,
            read: 0,
            written: 0,
            out: Vec::new(),
            drained: false,
            forward: None,
            unanswered: 0,
            status: 0,
            behind: 0,
        };
        let begins = job.request.position == 0;
        if begins {
            context.base = job.request.output;
            context.stream = Stream::new(self.config.operation, job.request.width, self.config.row);
        }
        let good = |stream: &Stream| {
            stream.position == job.request.position
                && job.request.bytes.is_multiple_of(stream.granularity())
                && job
                    .request
                    .position
                    .checked_add(job.request.bytes)
                    .is_some_and(|end| end <= job.request.total)
        };
        if request.is_none() || !context.stream.as_ref().is_some_and(good) {
            job.status = BAD_REQUEST;
            job.drained = true;
            // The answer needs a stream, whatever it is.
            let idle = || Stream::new(Operation::Copy, 1, 1);
            context.stream = context.stream.take().or_else(idle);
        }
        // Results of earlier pieces come before.
        if !begins && let Some(stream) = &context.stream {
            job.written = stream.results();
        }
        context.job = Some(job);
    }

    fn reply(&mut self, ports: &mut dyn Ports, error: DtuError) {
        let found = Self::found(ports, error);
        let context = &mut self.contexts[self.turn];
        let (Some(offset), Some(gates)) = (found, context.gates) else {
            return self.nothing_new(ports);
        };
        let Some(replies) = gates.replies else { return };
        let answer = Self::message(ports, replies, offset).and_then(|words| Answer::decode(&words));
        if let Some(job) = &mut context.job {
            job.unanswered = job.unanswered.saturating_sub(1);
            match answer {
                Some(answer) => {
                    job.behind = answer.checksum;
                    job.status = if job.status == 0 {
                        answer.status
                    } else {
                        job.status
                    };
                }
                None => job.status = BAD_REQUEST,
            }
        }
        let command = Command::new(Opcode::Acknowledge, replies.endpoint, offset as u32);
        self.command(ports, command, State::FreeReply);
    }

    /// An attacker has the control: random accesses to every register, random memory of its own tile, for ever.
    fn rampage(&mut self, ports: &mut dyn Ports) -> Waits {
        let mut next = || {
            // xorshift64* (Vigna, ACM Transactions on Mathematical Software 42, 2016)
            self.random ^= self.random >> 12;
            self.random ^= self.random << 25;
            self.random ^= self.random >> 27;
            self.random.wrapping_mul(0x2545_F491_4F6C_DD1D)
        };
        for _ in 0..8 {
            let value = match next() % 4 {
                0 => next(),
                1 => next() % 4096,
                2 => tilemux::TILEMUX_BASE + next() % (1 << 21),
                _ => (next() % 8) | ((next() % 64) << 8) | ((next() % 64) << 32),
            };
            let offset = match next() % 8 {
                0 => (next() % 0x8000) & !7,
                1 => COMMAND,
                2 => ADDRESS,
                3 => SIZE,
                4 => ARGUMENT,
                5 => PRIVILEGED_ARGUMENT + 8 * (next() % 2),
                6 => PRIVILEGED_COMMAND,
                _ => COMMAND,
            };
            // Who waits in a sleep cannot attack.
            if offset == COMMAND && value as u8 == Opcode::Sleep as u8 {
                continue;
            }
            ports.write(offset, value);
            ports.read(offset);
        }
        Waits::Until(ports.now() + self.config.cycle * 16)
    }
}

impl Job {
    /// Everything is read, written and passed on.
    pub(super) fn is_done(&self) -> bool {
        self.drained && self.out.is_empty() && self.forward.is_none()
    }
}
