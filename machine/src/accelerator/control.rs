//! The state machine of a streaming unit.
//!
//! Why it exists: it runs two activities in parallel. The registers of the tile's data transfer unit carry one command at a
//! time: a piece comes in, results go out, messages are sent and fetched. The data path takes one piece at a time. Clients take
//! turns at both, after every command and after every piece. What it deliberately does not know: what a job needs next, and
//! what the stream computes.

use super::context::{Context, Inbox};
use super::files::Call;
use super::job::{Piece, Step};
use super::messages::{Came, came, found, message};
use super::stream::Operation;
use super::{AcceleratorConfig, Later, Ports, Side, Waits, rogue};
use crate::types::Tick;
use bulkhead_abi::accelerator::{Answer, BAD_REQUEST, Request};
use bulkhead_abi::dtu::{
    ADDRESS, ARGUMENT, COMMAND, CORE_REQUEST, CURRENT_ACTIVITY, Command, CoreRequest,
    CurrentActivity, DtuError, NO_ENDPOINT, Opcode, PRIVILEGED_ARGUMENT, PRIVILEGED_ARGUMENT2,
    PRIVILEGED_COMMAND, PrivilegedOpcode, SIZE, TILEMUX_ACTIVITY, TLB_READ, TLB_WRITE,
};
use bulkhead_abi::message::{HEADER_SIZE, Header, MARKED, ONE_WAY, PLACED};
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{self, NOTIFY_ENDPOINT, REQUEST_ENDPOINT, TILEMUX_BUFFER};

/// Where messages to the kernel are assembled: memory that TileMux's program would have.
pub(super) const SCRATCH: u64 = tilemux::TILEMUX_BASE + 0x1_0000;
/// Label of the next unit's answers.
const FORWARD: u64 = 0;

/// The current command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not started by the kernel.
    Off,
    /// No command.
    Free,
    /// Looks for a request of the kernel.
    KernelFetch,
    /// About to answer the kernel's request at an offset.
    KernelDone(u32, tilemux::TileMuxError),
    /// Answers the kernel.
    KernelAnswer,
    /// About to work for the context of an activity.
    Begin(u16, Step),
    /// Working for the context of an activity.
    Step(u16, Step),
    /// Freeing the slot of an answer.
    Freeing,
}

/// A piece in the data path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub activity: u16,
    pub piece: Piece,
    pub until: Tick,
}

/// A streaming unit with its control.
#[derive(Clone, Debug)]
pub struct Accelerator {
    pub(super) config: AcceleratorConfig,
    state: State,
    pub(super) path: Option<Run>,
    pub(super) contexts: Vec<Context>,
    /// The client whose turn it is: at the data transfer unit, and at the data path.
    turns: (usize, usize),
    /// The client whose stream is in the data path.
    pub(super) loaded: Option<u16>,
    /// The kernel may have sent a request.
    kernel: bool,
    /// When the first client whose token bucket lacks tokens for its next command can continue.
    refill: Option<Tick>,
    /// Ticks during which data streamed through.
    pub streaming: Tick,
    /// Bytes that streamed through.
    pub bytes: u64,
    /// Switches from one client's stream to another's.
    pub switches: u64,
    pub(super) random: u64,
}

impl Accelerator {
    /// A unit after reset. It does nothing until the kernel starts it.
    pub fn new(config: &AcceleratorConfig, seed: u64) -> Self {
        Self {
            config: config.clone(),
            state: State::Off,
            path: None,
            contexts: Vec::new(),
            turns: (0, 0),
            loaded: None,
            kernel: false,
            refill: None,
            streaming: 0,
            bytes: 0,
            switches: 0,
            random: seed | 1,
        }
    }

    /// The kernel starts the tile's logic.
    pub fn start(&mut self) {
        self.stop();
        self.state = State::Free;
        self.kernel = true;
    }

    /// Takes a client as a boot ROM would give it, without a kernel. Returns whether its gates suffice.
    pub fn adopt(
        &mut self,
        ports: &mut dyn Ports,
        activity: u16,
        bucket: u8,
        mappings: &[(u64, u64, u64)],
    ) -> bool {
        if self.state == State::Off {
            self.state = State::Free;
        }
        let mut requests = vec![tilemux::Request::Create {
            activity,
            table_pages: 0,
        }];
        let maps = mappings
            .iter()
            .map(|&(address, physical, pages)| tilemux::Request::Map {
                activity,
                address,
                physical,
                pages,
                rights: 0,
            });
        requests.extend(maps);
        requests.push(tilemux::Request::SetBucket { activity, bucket });
        requests.push(tilemux::Request::Start {
            activity,
            entry: 0,
            stack: 0,
        });
        let good = |request| self.obey(ports, request) == Ok(tilemux::TileMuxError::None);
        requests.into_iter().all(good)
    }

    /// The kernel stops the tile's logic.
    pub fn stop(&mut self) {
        self.state = State::Off;
        self.contexts.clear();
        (self.turns, self.loaded, self.path) = ((0, 0), None, None);
    }

    pub(super) fn context(&mut self, activity: u16) -> Option<&mut Context> {
        self.contexts.iter_mut().find(|c| c.activity == activity)
    }

    /// Continues as far as possible at this moment.
    pub fn step(&mut self, ports: &mut dyn Ports) -> Waits {
        if self.state == State::Off {
            return Waits::Idle;
        }
        let started = self.contexts.iter().any(|context| context.gates.is_some());
        // The kernel has its answer. An attacker that never answered would be stopped before it began.
        let is_free = self.state == State::Free;
        if self.config.operation == Operation::Rogue && started && is_free {
            return rogue::rampage(ports, &mut self.random, self.config.cycle);
        }
        loop {
            if self.path.is_some_and(|run| run.until <= ports.now())
                && self.path_done(ports).is_ok()
            {
                ports.used(Side::Path);
                continue;
            }
            if self.path.is_none() && self.begin_path(ports) {
                continue;
            }
            match self.advance(ports) {
                Ok(true) => ports.used(Side::Command),
                Ok(false) | Err(Later) => break,
            }
        }
        let now = ports.now();
        let pause = self.contexts.iter().map(|c| c.calls.not_before);
        let pause = pause.filter(|moment| *moment > now).min();
        let refill = self.refill.filter(|_| self.state == State::Free);
        // A piece whose bytes have not arrived ends with an event.
        let path = self.path.map(|run| run.until).filter(|until| *until > now);
        match [path, pause, refill].into_iter().flatten().min() {
            Some(moment) => Waits::Until(moment),
            None if self.contexts.iter().any(|c| c.job.is_some()) => Waits::Busy,
            _ => Waits::Idle,
        }
    }

    /// Continues or begins a command. Returns whether anything happened.
    fn advance(&mut self, ports: &mut dyn Ports) -> Result<bool, Later> {
        match self.state {
            State::Free => return self.begin_command(ports),
            State::Begin(activity, step) => self.begin(ports, activity, step)?,
            State::KernelDone(offset, outcome) => self.answer_kernel(ports, offset, outcome)?,
            _ => {
                let command = Command(ports.read(COMMAND));
                if command.opcode() != 0 {
                    return Ok(false);
                }
                let error = DtuError::from_code(command.error())
                    .unwrap_or_else(|| panic!("the own unit's answer is no error: {command:?}"));
                self.command_done(ports, error)?;
            }
        }
        Ok(true)
    }

    /// Takes the next piece, if any, into the data path.
    fn begin_path(&mut self, ports: &mut dyn Ports) -> bool {
        let count = self.contexts.len();
        let can = |c: &Context| c.job.as_ref().is_some_and(|job| job.can_stream());
        let mut places = (0..count).map(|offset| (self.turns.1 + offset) % count);
        let Some(place) = places.find(|place| can(&self.contexts[*place])) else {
            return false;
        };
        let context = &mut self.contexts[place];
        let activity = context.activity;
        let Some(job) = &mut context.job else {
            return false;
        };
        let Some(piece) = job.pieces.pop_front() else {
            return false;
        };
        job.moving += 1;
        let other = self.loaded.replace(activity).is_some_and(|a| a != activity);
        let switch = match other {
            true => self.config.switch * self.config.cycle,
            false => 0,
        };
        self.switches += u64::from(other);
        self.turns.1 = place + 1;
        self.path = Some(Run {
            activity,
            piece,
            until: ports.now() + switch + self.config.duration(piece.bytes),
        });
        true
    }

    /// A piece has streamed through.
    fn path_done(&mut self, ports: &mut dyn Ports) -> Result<(), Later> {
        let Some(run) = self.path else { return Ok(()) };
        let mut data = vec![0; run.piece.bytes as usize];
        let there = ports.load(Side::Path, run.piece.at, &mut data)?;
        self.path = None;
        self.streaming += self.config.duration(run.piece.bytes);
        self.bytes += run.piece.bytes;
        let Some(context) = self.context(run.activity) else {
            panic!("a piece of nobody: {run:?}");
        };
        if !there {
            context.fail(DtuError::TargetRefused as u64);
        }
        context.streamed(run.piece, &data);
        Ok(())
    }

    fn command(&mut self, ports: &mut dyn Ports, command: Command, state: State) {
        ports.write(COMMAND, command.0);
        self.state = state;
    }

    /// A command with data at an address.
    fn data_command(
        &mut self,
        ports: &mut dyn Ports,
        command: Command,
        (address, size, argument): (u64, u64, u64),
        state: State,
    ) {
        ports.write(ADDRESS, address);
        ports.write(SIZE, size);
        ports.write(ARGUMENT, argument);
        self.command(ports, command, state);
    }

    /// Makes an activity the unit's current one. Remembers which messages the former one has not seen.
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

    /// An activity has this many unread messages.
    fn count(&mut self, current: CurrentActivity) {
        let (activity, messages) = (current.activity(), current.messages());
        if activity == TILEMUX_ACTIVITY && messages > 0 {
            self.kernel = true;
        }
        if let Some(context) = self.context(activity) {
            context.count(messages);
        }
    }

    /// Checks which clients have received messages.
    fn look(&mut self, ports: &mut dyn Ports) {
        loop {
            let request = CoreRequest(ports.read(CORE_REQUEST));
            if !request.is_valid() {
                break;
            }
            if request.activity() == TILEMUX_ACTIVITY {
                self.kernel = true;
            }
            if let Some(context) = self.context(request.activity()) {
                context.note();
            }
            ports.write(CORE_REQUEST, 0);
        }
        self.count(CurrentActivity(ports.read(CURRENT_ACTIVITY)));
    }

    /// Begins the next command. Returns whether there is one.
    fn begin_command(&mut self, ports: &mut dyn Ports) -> Result<bool, Later> {
        self.look(ports);
        if self.kernel {
            self.become_current(ports, TILEMUX_ACTIVITY, 0);
            let command = Command::new(Opcode::Fetch, REQUEST_ENDPOINT, 0);
            self.command(ports, command, State::KernelFetch);
            return Ok(true);
        }
        let count = self.contexts.len();
        self.refill = None;
        for offset in 0..count {
            let place = (self.turns.0 + offset) % count;
            let context = &mut self.contexts[place];
            if let Some(step) = context.next(ports.now()) {
                // A command that waited for its bucket in the data transfer unit would make all other clients wait, too.
                let step = match self.config.affords(ports, context, step) {
                    Ok(step) => step,
                    Err(moment) => {
                        let first = self.refill.map_or(moment, |other| other.min(moment));
                        self.refill = Some(first);
                        continue;
                    }
                };
                let (activity, bucket) = (context.activity, context.bucket);
                self.turns.0 = place + 1;
                match step {
                    Step::Exit(_) => self.become_current(ports, TILEMUX_ACTIVITY, 0),
                    _ => self.become_current(ports, activity, bucket),
                }
                self.begin(ports, activity, step)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Begins a step of a context, immediately or once the data it writes is in memory.
    fn begin(&mut self, ports: &mut dyn Ports, activity: u16, step: Step) -> Result<(), Later> {
        self.state = State::Free;
        let begun = self.try_begin(ports, activity, step);
        if begun.is_err() {
            self.state = State::Begin(activity, step);
        }
        begun
    }

    fn try_begin(&mut self, ports: &mut dyn Ports, activity: u16, step: Step) -> Result<(), Later> {
        let state = State::Step(activity, step);
        let Some(context) = self.context(activity) else {
            return Ok(());
        };
        let Some(gates) = context.gates else {
            return Ok(());
        };
        let base = context.base;
        let Some(job) = &mut context.job else {
            match step {
                Step::FetchRequest(inbox) | Step::FetchAnswer(inbox) | Step::FetchKernel(inbox) => {
                    self.command(ports, Command::new(Opcode::Fetch, inbox.endpoint, 0), state)
                }
                Step::Exit(code) => self.exit(ports, activity, code, state)?,
                _ => {}
            }
            return Ok(());
        };
        let results = match step {
            Step::Write(_, _, bytes) | Step::Store(_, _, bytes) | Step::Put(_, bytes) => bytes,
            _ => 0,
        };
        let Some(results) = job.out.get(..results as usize) else {
            // The job failed while they were being written.
            return Ok(());
        };
        let answers = gates.answers.map_or(NO_ENDPOINT, |inbox| inbox.endpoint);
        let (out, messages) = (gates.out(), gates.messages());
        match step {
            Step::FetchRequest(inbox)
            | Step::FetchAnswer(inbox)
            | Step::FetchKernel(inbox)
            | Step::FetchPipe(inbox) => {
                self.command(ports, Command::new(Opcode::Fetch, inbox.endpoint, 0), state);
            }
            Step::Use(inbox, message) => {
                let command = Command::new(Opcode::Reply, inbox.endpoint, message);
                ports.store(Side::Command, messages.physical, &[0])?;
                self.data_command(ports, command, (messages.address, 1, 0), state);
            }
            Step::Read(endpoint, offset, bytes, page) => {
                job.moving += 1;
                job.page = 1 - page;
                let command = Command::new(Opcode::Read, endpoint, 0);
                let address = gates.pages[page].address;
                self.data_command(ports, command, (address, bytes, offset), state);
            }
            Step::Write(endpoint, offset, bytes) => {
                ports.store(Side::Command, out.physical, results)?;
                let command = Command::new(Opcode::Write, endpoint, 0);
                self.data_command(ports, command, (out.address, bytes, offset), state);
            }
            Step::Store(endpoint, offset, bytes) => {
                ports.store(Side::Command, out.physical, results)?;
                let command = Command::new(Opcode::Write, endpoint, 0);
                self.data_command(ports, command, (out.address, bytes, offset), state);
            }
            Step::Place(endpoint, offset, bytes) => {
                let place = self::bytes(&[offset, bytes]);
                ports.store(Side::Command, messages.physical, &place)?;
                let command = Command::new(Opcode::Send, endpoint, answers.into());
                let data = (messages.address, place.len() as u64, PLACED);
                self.data_command(ports, command, data, state);
            }
            Step::Put(endpoint, bytes) => {
                ports.store(Side::Command, out.physical, results)?;
                let command = Command::new(Opcode::Send, endpoint, answers.into());
                self.data_command(ports, command, (out.address, bytes, ONE_WAY), state);
            }
            Step::End(endpoint) => {
                ports.store(Side::Command, messages.physical, &[0])?;
                let command = Command::new(Opcode::Send, endpoint, answers.into());
                self.data_command(ports, command, (messages.address, 1, MARKED), state);
            }
            Step::Probe(endpoint) => {
                let command = Command::new(Opcode::Send, endpoint, answers.into());
                self.data_command(ports, command, (messages.address, 0, 0), state);
            }
            Step::Forward(next, mut piece) => {
                let at = base.wrapping_add(piece.position);
                (piece.input, piece.output) = (at, at);
                let bytes = bytes(&piece.encode());
                ports.store(Side::Command, messages.physical, &bytes)?;
                let command = Command::new(Opcode::Send, next, answers.into());
                let data = (messages.address, bytes.len() as u64, FORWARD);
                self.data_command(ports, command, data, state);
            }
            Step::Call(call) => {
                use super::files::Channel;
                let label = context.calls.make(call);
                let Some(bytes) = context.message(call) else {
                    context.calls.outstanding = None;
                    context.fail(BAD_REQUEST);
                    return Ok(());
                };
                let (endpoint, reply) = match call.channel() {
                    Channel::Kernel => (gates.kernel.0, gates.kernel.1.endpoint),
                    Channel::Service => (gates.files.map_or(NO_ENDPOINT, |f| f.0), answers),
                };
                ports.store(Side::Command, messages.physical, &bytes)?;
                let command = Command::new(Opcode::Send, endpoint, reply.into());
                let data = (messages.address, bytes.len() as u64, label);
                self.data_command(ports, command, data, state);
            }
            Step::Answer(inbox, message, answer) => {
                let bytes = bytes(&answer.encode());
                ports.store(Side::Command, messages.physical, &bytes)?;
                let command = Command::new(Opcode::Reply, inbox.endpoint, message);
                let data = (messages.address, bytes.len() as u64, 0);
                self.data_command(ports, command, data, state);
            }
            Step::Exit(code) => self.exit(ports, activity, code, state)?,
        }
        Ok(())
    }

    /// Tells the kernel that an activity has ended.
    fn exit(
        &mut self,
        ports: &mut dyn Ports,
        activity: u16,
        code: u64,
        state: State,
    ) -> Result<(), Later> {
        let words = tilemux::encode_stopped(activity, StopCause::Exit(code));
        let bytes = bytes(&words);
        ports.store(Side::Command, SCRATCH, &bytes)?;
        let command = Command::new(Opcode::Send, NOTIFY_ENDPOINT, NO_ENDPOINT.into());
        self.data_command(ports, command, (SCRATCH, bytes.len() as u64, 0), state);
        Ok(())
    }

    fn command_done(&mut self, ports: &mut dyn Ports, error: DtuError) -> Result<(), Later> {
        let came = match self.state {
            State::KernelFetch => return self.kernel_request(ports, error),
            State::Step(_, step) => came(ports, step, error)?,
            _ => None,
        };
        match std::mem::replace(&mut self.state, State::Free) {
            // The unit has forgotten a page: the page is inserted again and the command repeated.
            State::Step(activity, step) if error == DtuError::TranslationFault => {
                self.insert_pages(ports, activity);
                if let (Step::Read(..), Some(job)) =
                    (step, self.context(activity).and_then(|c| c.job.as_mut()))
                {
                    job.moving -= 1;
                }
                self.begin(ports, activity, step)?;
            }
            State::Step(activity, step) => self.step_done(ports, activity, step, (error, came)),
            // The kernel waits for its answer; the unit retries until the answer can be sent.
            _ => {}
        }
        Ok(())
    }

    /// Lets the data transfer unit use the pages of a context.
    pub(super) fn insert_pages(&mut self, ports: &mut dyn Ports, activity: u16) {
        let pages = self
            .context(activity)
            .and_then(|c| c.gates)
            .map(|g| g.pages);
        for page in pages.into_iter().flatten() {
            ports.write(PRIVILEGED_ARGUMENT, page.address | TLB_READ | TLB_WRITE);
            let physical = page.physical | u64::from(activity) << 48;
            ports.write(PRIVILEGED_ARGUMENT2, physical);
            ports.write(PRIVILEGED_COMMAND, PrivilegedOpcode::InsertTlb as u64);
        }
    }

    fn step_done(
        &mut self,
        ports: &mut dyn Ports,
        activity: u16,
        step: Step,
        (error, came): (DtuError, Option<Came>),
    ) {
        let (operation, row) = (self.config.operation, self.config.row);
        let nanosecond = self.config.nanosecond.max(1);
        let now = ports.now();
        let Some(context) = self.context(activity) else {
            return;
        };
        if came.is_some() {
            context.took();
        }
        match step {
            Step::FetchRequest(inbox) => match came {
                None => context.nothing_at(inbox.endpoint),
                Some((offset, request)) => {
                    let request = request.and_then(|(_, words)| Request::decode(&words));
                    context.take(operation, row, request, Some(offset as u32));
                }
            },
            Step::FetchPipe(inbox) => match came {
                None => context.nothing_at(inbox.endpoint),
                // The buffer is not in the tile's memory.
                Some((offset, None)) => context.pipe_broken(offset as u32),
                Some((offset, Some((header, words)))) => {
                    if header.reply_label == MARKED {
                        context.pipe_ended(offset as u32);
                    } else if header.reply_label == PLACED {
                        context.pipe_placed(&words, offset as u32);
                    } else if header.reply_label != ONE_WAY {
                        context.pipe_broken(offset as u32);
                    } else if let Some(job) = &mut context.job {
                        job.came(Piece {
                            at: inbox.buffer + offset + HEADER_SIZE as u64,
                            bytes: header.length.into(),
                            message: Some(offset as u32),
                        });
                    }
                }
            },
            Step::FetchKernel(inbox) | Step::FetchAnswer(inbox) => match came {
                None => context.nothing_at(inbox.endpoint),
                Some((offset, message)) => {
                    if let Some((header, words)) = message {
                        match context.calls.outstanding {
                            Some((call, label)) if label == header.label => {
                                context.calls.outstanding = None;
                                context.answered(call, &words, now, nanosecond);
                            }
                            _ => context.came_back(&header, &words),
                        }
                    }
                    let command = Command::new(Opcode::Acknowledge, inbox.endpoint, offset as u32);
                    self.command(ports, command, State::Freeing);
                }
            },
            Step::Use(_, message) => {
                // A writer that is gone needs no answer.
                if let Some(job) = &mut context.job {
                    job.used.retain(|used| *used != message);
                }
            }
            Step::Read(_, _, bytes, page) => {
                let at = context.gates.map_or(0, |gates| gates.pages[page].physical);
                match (&mut context.job, error) {
                    (Some(job), DtuError::None) => {
                        job.came(Piece {
                            at,
                            bytes,
                            message: None,
                        });
                        job.came_from_region(bytes);
                    }
                    (Some(job), error) => {
                        job.moving -= 1;
                        context.fail(error as u64);
                    }
                    _ => {}
                }
            }
            Step::Write(_, _, bytes) => context.written(bytes, error),
            Step::Store(_, _, bytes) => context.stored(bytes, error),
            Step::Put(..) | Step::Place(..) | Step::End(_) | Step::Forward(..) => {
                context.sent(step, error)
            }
            // It asks again when it is woken again.
            Step::Call(Call::Senders) if error != DtuError::None => {
                context.calls.outstanding = None;
                context.forsaken |= matches!(error, DtuError::NoSpace | DtuError::NoCredits);
            }
            Step::Call(_) => match error {
                DtuError::None => {}
                // All share the slots; one becomes free soon.
                DtuError::NoSpace | DtuError::NoCredits => context.calls.outstanding = None,
                _ => {
                    context.calls.outstanding = None;
                    context.service_gone();
                }
            },
            Step::Probe(endpoint) => {
                if matches!(error, DtuError::InvalidEndpoint | DtuError::ForeignEndpoint) {
                    context.gone(endpoint);
                }
            }
            Step::Answer(..) => context.job = None,
            Step::Exit(_) => {
                // The kernel handles notifications first, so there will be room soon.
                if error != DtuError::NoSpace {
                    let removed = self.remove(now, activity);
                    removed.expect("who ends has no piece in the data path");
                }
            }
        }
    }

    fn kernel_request(&mut self, ports: &mut dyn Ports, error: DtuError) -> Result<(), Later> {
        let Some(offset) = found(ports, error) else {
            self.kernel = false;
            self.state = State::Free;
            return Ok(());
        };
        let inbox = Inbox {
            endpoint: REQUEST_ENDPOINT,
            buffer: TILEMUX_BUFFER,
            fresh: true,
        };
        let request = message(ports, inbox, offset)?;
        let outcome = match request.and_then(|(_, words)| tilemux::Request::decode(&words)) {
            Some(request) => self.obey(ports, request)?,
            None => tilemux::TileMuxError::BadRequest,
        };
        self.answer_kernel(ports, offset as u32, outcome)
    }

    fn answer_kernel(
        &mut self,
        ports: &mut dyn Ports,
        offset: u32,
        outcome: tilemux::TileMuxError,
    ) -> Result<(), Later> {
        self.state = State::KernelDone(offset, outcome);
        let bytes = bytes(&[outcome as u64]);
        ports.store(Side::Command, SCRATCH, &bytes)?;
        let command = Command::new(Opcode::Reply, REQUEST_ENDPOINT, offset);
        let data = (SCRATCH, bytes.len() as u64, 0);
        self.data_command(ports, command, data, State::KernelAnswer);
        Ok(())
    }
}

impl Context {
    /// An answer that no call waits for.
    fn came_back(&mut self, header: &Header, words: &[u64]) {
        if !matches!(header.label, FORWARD | ONE_WAY | MARKED | PLACED) {
            // It answers an abandoned call.
            return;
        }
        // Whoever has the gate may answer more often than it was asked.
        self.under_way = self.under_way.saturating_sub(1);
        self.blocked = false;
        if header.label != FORWARD {
            return;
        }
        match (Answer::decode(words), &mut self.job) {
            (Some(answer), Some(job)) => {
                job.behind = answer.checksum;
                if answer.status != 0 {
                    self.fail(answer.status);
                }
            }
            (None, Some(_)) => self.fail(BAD_REQUEST),
            _ => {}
        }
    }

    /// A message with or about results was sent, or could not be sent.
    fn sent(&mut self, step: Step, error: DtuError) {
        match error {
            DtuError::None => {
                self.under_way += 1;
                let pieces = self.gates.and_then(|gates| gates.regions.1);
                let pieces = pieces.map_or(1, |store| store.pieces);
                if let Step::Place(..) = step {
                    self.store = (self.store + 1) % pieces;
                }
                if let Some(job) = &mut self.job {
                    match step {
                        Step::Put(_, bytes) => {
                            job.out.drain(..bytes as usize);
                            job.written += bytes;
                        }
                        Step::Place(..) => job.stored = 0,
                        Step::End(_) => job.ended = true,
                        _ => job.forward = None,
                    }
                }
            }
            // A receiver returns a credit when it answers.
            DtuError::NoCredits if self.under_way > 0 => self.blocked = true,
            error => {
                self.fail(error as u64);
                if let Some(job) = &mut self.job {
                    job.ended = true;
                }
            }
        }
    }

    /// Results were put into the region of a pipe, or could not be.
    fn stored(&mut self, bytes: u64, error: DtuError) {
        if error != DtuError::None {
            return self.fail(error as u64);
        }
        if let Some(job) = self.job.as_mut().filter(|job| job.status == 0) {
            job.out.drain(..bytes as usize);
            job.written += bytes;
            job.stored += bytes;
        }
    }

    /// Results were written, or could not be.
    fn written(&mut self, bytes: u64, error: DtuError) {
        if error != DtuError::None {
            return self.fail(error as u64);
        }
        let next = self.gates.and_then(|gates| gates.next);
        if let Some(job) = self.job.as_mut().filter(|job| job.status == 0) {
            job.out.drain(..bytes as usize);
            job.forward = next.map(|_| Request {
                input: 0,
                output: 0,
                bytes,
                width: job.request.width,
                position: job.written,
                total: job.request.total,
            });
            job.written += bytes;
        }
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
