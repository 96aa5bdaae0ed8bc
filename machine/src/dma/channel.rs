//! A channel: the current descriptor, and its elements in transit.
//!
//! Why it exists: the engine serves several channels in turn, and each goes through the same steps: read a descriptor, read and write its
//! elements, write its flag, continue. What it deliberately does not know: other channels, memories, the network, and what an access costs.
//!
//! An element is read, then written. It leaves when its write is acknowledged and all earlier elements have left. Writes begin in element
//! order. A descriptor begins when nothing of the previous one is in progress. Its flag is written after all of its elements, so the flag
//! and the interrupt come after the data.

use super::descriptor::{Descriptor, End, WORDS};
use crate::ledger::Ledger;
use crate::ledger::Resource;
use crate::noc::Account;
use crate::types::{Owner, Tick};
use bulkhead_abi::dma::{Cause, NEXT, State};
use std::collections::VecDeque;

/// Element numbers wrap after this one; a window has far fewer elements.
pub const NUMBERS: u32 = (1 << 28) - 1;

/// The two sides of the engine. Each begins one access per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Reads data from memories.
    Read,
    /// Writes data to memories.
    Write,
}

/// Data on the way from a read to its write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// At most eight bytes, in the low ones.
    Word(u64),
    /// Bytes of a memory that answers whole bursts.
    Burst(Box<[u8]>),
}

impl Data {
    /// The first eight bytes, little endian.
    pub fn word(&self) -> u64 {
        match self {
            Data::Word(value) => *value,
            Data::Burst(bytes) => {
                let mut value = [0; 8];
                let count = bytes.len().min(8);
                value[..count].copy_from_slice(&bytes[..count]);
                u64::from_le_bytes(value)
            }
        }
    }
}

/// How far an element is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    /// Its read is outstanding.
    Reading,
    /// The engine holds it and may write it from this moment on.
    Held(Data, Tick),
    /// Its write is outstanding.
    Writing,
    /// It is at its destination or no longer wanted; it may leave from this moment on.
    Over(Tick),
}

/// The use of data that was read.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// It is written to its destination.
    Data,
    /// It is this word of the descriptor.
    Word(usize),
}

/// An access of a channel: one element, or several side by side that travel as one burst.
#[derive(Clone, Debug)]
struct Element {
    source: u64,
    destination: u64,
    bytes: u32,
    for_what: Use,
    progress: Progress,
}

/// The state of a channel's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing.
    Rest,
    /// It reads a descriptor; this is the next word.
    Fetch(usize),
    /// It moves elements; this is the next one, if any.
    Move(Option<(u32, u32)>),
    /// It writes the flag.
    Flag,
}

/// A channel waits for its turn at a side: since when, and for which owner.
#[derive(Clone, Debug, Default)]
struct Wait {
    since: Option<Tick>,
    stretches: Vec<(Owner, Tick)>,
}

/// An access that a channel begins.
#[derive(Clone, Debug)]
pub struct Access {
    /// Number of the element; the answer returns it.
    pub number: u32,
    /// Address as used by the tile's hart.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
    /// The data to write.
    pub data: Option<Data>,
}

/// A channel.
#[derive(Debug)]
pub struct Channel {
    /// The owner of its requests.
    pub owner: Owner,
    registers: Descriptor,
    /// Address of the descriptor in the registers.
    descriptor: u64,
    state: State,
    cause: Cause,
    error_address: u64,
    /// It asks for an interrupt.
    pub interrupt: bool,
    completed: u64,
    phase: Phase,
    /// No read begins earlier.
    from: Tick,
    window: VecDeque<Element>,
    /// Number of the first element of the window.
    first: u32,
    /// Elements of the window whose write has begun or is not needed.
    begun: usize,
    outstanding: usize,
    /// Bytes of a burst; 0: each element is a separate access.
    burst: u32,
    startup: Tick,
    /// No further access begins; this is the state afterwards.
    ending: Option<State>,
    waits: [Wait; 2],
}

impl Channel {
    /// An idle channel of an engine. `startup` is in ticks.
    pub fn new(owner: Owner, outstanding: u32, burst: u32, startup: Tick) -> Self {
        Self {
            owner,
            registers: Descriptor::default(),
            descriptor: 0,
            state: State::Idle,
            cause: Cause::None,
            error_address: 0,
            interrupt: false,
            completed: 0,
            phase: Phase::Rest,
            from: 0,
            window: VecDeque::new(),
            first: 0,
            begun: 0,
            outstanding: outstanding as usize,
            burst,
            startup,
            ending: None,
            waits: Default::default(),
        }
    }

    /// Whether it works.
    pub fn is_busy(&self) -> bool {
        self.state == State::Busy
    }

    /// A word of the descriptor in the registers.
    pub fn word(&self, index: usize) -> u64 {
        self.registers.0[index]
    }

    /// Writes a word of the descriptor. Has no effect while the channel works.
    pub fn set_word(&mut self, index: usize, value: u64) {
        if !self.is_busy() {
            self.registers.0[index] = value;
            self.descriptor = 0;
        }
    }

    /// State and cause.
    pub fn status(&self) -> (State, Cause) {
        (self.state, self.cause)
    }

    /// The address that ended the transfer with an error.
    pub fn error_address(&self) -> u64 {
        self.error_address
    }

    /// Descriptors completed since the start.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// The address of the descriptor in the registers.
    pub fn descriptor(&self) -> u64 {
        self.descriptor
    }

    /// Starts at an edge of the engine's clock, with the descriptor in the registers or with the one at the address there.
    pub fn start(&mut self, edge: Tick, chain: bool) {
        if self.is_busy() {
            return;
        }
        (self.state, self.cause) = (State::Busy, Cause::None);
        (self.error_address, self.completed) = (0, 0);
        self.from = edge + self.startup;
        if chain {
            self.fetch();
        } else {
            self.begin();
        }
    }

    /// Begins no other access.
    pub fn stop(&mut self) {
        if self.is_busy() && self.ending.is_none() {
            self.end(State::Stopped);
        }
    }

    fn end(&mut self, state: State) {
        self.ending = Some(state);
        self.waits = Default::default();
    }

    fn fail(&mut self, cause: Cause, address: u64) {
        // Only the first error is reported.
        if self.ending != Some(State::Error) {
            (self.cause, self.error_address) = (cause, address);
            self.end(State::Error);
        }
    }

    /// Starts reading the descriptor at the address in the registers.
    fn fetch(&mut self) {
        self.descriptor = self.registers.0[NEXT as usize / 8];
        self.phase = Phase::Fetch(0);
        if !self.descriptor.is_multiple_of(8) {
            self.fail(Cause::Descriptor, self.descriptor);
        }
    }

    /// The descriptor in the registers begins.
    fn begin(&mut self) {
        self.phase = Phase::Move(self.registers.first());
        if !self.registers.is_valid() {
            self.fail(Cause::Descriptor, self.descriptor);
        }
    }

    /// At an edge of the engine's clock: elements that need nothing more leave, and the channel continues with its next step.
    pub fn advance(&mut self, now: Tick) {
        if self.ending.is_some() {
            // Data that was read is no longer written.
            for element in self.window.iter_mut().skip(self.begun) {
                if let Progress::Held(..) = &element.progress {
                    element.progress = Progress::Over(now);
                }
            }
        }
        while let Some(element) = self.window.front()
            && matches!(element.progress, Progress::Over(from) if from <= now)
        {
            self.window.pop_front();
            self.first = self.first.wrapping_add(1);
            // Words of a descriptor, and elements left by an error, are never written.
            self.begun -= usize::from(self.begun > 0);
        }
        while self.window.is_empty() && self.phase != Phase::Rest && self.from <= now {
            if let Some(state) = self.ending.take() {
                (self.state, self.phase) = (state, Phase::Rest);
                self.interrupt |= state == State::Error;
                return;
            }
            match self.phase {
                Phase::Fetch(WORDS) => {
                    self.from = now + self.startup;
                    self.begin();
                }
                Phase::Move(None) => match self.registers.flag() {
                    None => self.complete(),
                    Some((address, value)) => {
                        self.phase = Phase::Flag;
                        self.window.push_back(Element {
                            source: address,
                            destination: address,
                            bytes: 8,
                            for_what: Use::Data,
                            progress: Progress::Held(Data::Word(value), now),
                        });
                    }
                },
                Phase::Flag => self.complete(),
                Phase::Fetch(_) | Phase::Move(Some(_)) | Phase::Rest => return,
            }
        }
    }

    /// A descriptor has ended.
    fn complete(&mut self) {
        self.completed += 1;
        self.interrupt |= self.registers.interrupts();
        match self.registers.next() {
            Some(_) => self.fetch(),
            None => (self.state, self.phase) = (State::Done, Phase::Rest),
        }
    }

    /// When it could begin an access on a side if nothing else happens; [`Tick::MAX`]: not without an answer.
    pub fn wants(&self, side: Side) -> Tick {
        if self.ending.is_some() {
            return Tick::MAX;
        }
        match (side, self.phase) {
            (Side::Read, Phase::Fetch(word)) if word < WORDS => self.when_room(),
            (Side::Read, Phase::Move(Some(_))) => self.when_room(),
            (Side::Write, Phase::Move(_) | Phase::Flag) => match self.window.get(self.begun) {
                Some(Element {
                    progress: Progress::Held(_, from),
                    ..
                }) => *from,
                _ => Tick::MAX,
            },
            _ => Tick::MAX,
        }
    }

    fn when_room(&self) -> Tick {
        match self.window.len() < self.outstanding {
            true => self.from,
            false => Tick::MAX,
        }
    }

    /// When something happens at this channel without an external answer; `until`: no side has a turn for it before.
    pub fn next_time(&self, now: Tick, until: [Tick; 2]) -> Tick {
        let front = match self.window.front().map(|element| &element.progress) {
            Some(Progress::Over(from)) => *from,
            Some(_) => Tick::MAX,
            // Nothing is in progress: it continues when it may.
            None if self.phase != Phase::Rest => self.from,
            None => Tick::MAX,
        };
        // A wish for later is a step of its own: a wait begins then.
        let turn = |side: Side| match self.wants(side) {
            from if from <= now => until[side as usize],
            from => from,
        };
        front.min(turn(Side::Read)).min(turn(Side::Write))
    }

    /// It wants a turn at a side and waits for it.
    pub fn is_waiting(&self, side: Side) -> bool {
        self.waits[side as usize].since.is_some()
    }

    /// It wants a turn at a side, but another channel has the turn for this long.
    pub fn wait(&mut self, side: Side, now: Tick, other: Owner, ticks: Tick) {
        let wait = &mut self.waits[side as usize];
        wait.since.get_or_insert(now);
        match wait.stretches.last_mut() {
            Some((owner, sum)) if *owner == other => *sum += ticks,
            _ => wait.stretches.push((other, ticks)),
        }
    }

    /// The account of an access that begins now, including its waits for the turns of other channels.
    pub fn account(
        &mut self,
        side: Side,
        now: Tick,
        engine: Resource,
        ledger: &mut Ledger,
    ) -> Account {
        let wait = std::mem::take(&mut self.waits[side as usize]);
        let mut account = Account::new(wait.since.unwrap_or(now));
        for (other, ticks) in wait.stretches {
            ledger.wait(&mut account, self.owner, other, engine, ticks);
        }
        assert_eq!(
            account.accounted(),
            now,
            "a channel of {:?} had no turn without another's turn",
            self.owner
        );
        account
    }

    /// Begins the access that the channel wants.
    pub fn take(&mut self, side: Side) -> Access {
        match side {
            Side::Read => self.take_read(),
            Side::Write => self.take_write(),
        }
    }

    fn take_read(&mut self) -> Access {
        let (source, destination, bytes, for_what) = match self.phase {
            Phase::Fetch(word) => {
                self.phase = Phase::Fetch(word + 1);
                let address = self.descriptor.wrapping_add(8 * word as u64);
                (address, 0, 8, Use::Word(word))
            }
            Phase::Move(Some(at)) => {
                let one = self.registers;
                let elements = one.side_by_side(at, self.burst);
                self.phase = Phase::Move(one.after(at, elements));
                let [source, destination] =
                    [End::Source, End::Destination].map(|end| one.address(end, at));
                (
                    source,
                    destination,
                    elements * u32::from(one.bytes()),
                    Use::Data,
                )
            }
            phase => panic!("a channel in {phase:?} wants to read"),
        };
        self.window.push_back(Element {
            source,
            destination,
            bytes,
            for_what,
            progress: Progress::Reading,
        });
        let number = self.first.wrapping_add(self.window.len() as u32 - 1);
        Access {
            number,
            address: source,
            bytes,
            data: None,
        }
    }

    fn take_write(&mut self) -> Access {
        let number = self.first.wrapping_add(self.begun as u32);
        let element = &mut self.window[self.begun];
        let progress = std::mem::replace(&mut element.progress, Progress::Writing);
        let Progress::Held(data, _) = progress else {
            panic!("{progress:?} is not there to be written");
        };
        self.begun += 1;
        Access {
            number,
            address: element.destination,
            bytes: element.bytes,
            data: Some(data),
        }
    }

    /// The answer to an access, which the engine takes at this edge. `Err`: why there is no answer.
    pub fn answer(&mut self, number: u32, edge: Tick, data: Result<Data, Failure>) {
        let place = (number.wrapping_sub(self.first) & NUMBERS) as usize;
        let element = self.window.get_mut(place);
        let element = element.expect("what is answered is under way");
        let written = element.progress == Progress::Writing;
        let failure = data.as_ref().err().copied();
        element.progress = match (&element.progress, element.for_what, data) {
            (Progress::Writing, _, _) | (_, _, Err(_)) => Progress::Over(edge),
            (Progress::Reading, Use::Data, Ok(data)) => Progress::Held(data, edge),
            (Progress::Reading, Use::Word(word), Ok(data)) => {
                self.registers.0[word] = data.word();
                Progress::Over(edge)
            }
            _ => panic!("{element:?} waits for no answer"),
        };
        if let Some(failure) = failure {
            let address = if written {
                element.destination
            } else {
                element.source
            };
            self.fail(failure.cause(written), address);
        }
    }
}

/// Why an access did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing answers at its address.
    Nothing,
    /// A guard refused it.
    Refused,
}

impl Failure {
    fn cause(self, write: bool) -> Cause {
        match (self, write) {
            (Failure::Nothing, false) => Cause::ReadNothing,
            (Failure::Nothing, true) => Cause::WriteNothing,
            (Failure::Refused, false) => Cause::ReadRefused,
            (Failure::Refused, true) => Cause::WriteRefused,
        }
    }
}
