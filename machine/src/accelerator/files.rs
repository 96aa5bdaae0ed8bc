//! How a streaming unit reaches files: the calls that it makes to the kernel and to the file service.
//!
//! Why it exists: a unit that requests its files itself needs no helper program. It opens a session as a program does, opens its
//! files, obtains one piece after another as memory that it may transfer itself, and gives everything back. What it deliberately
//! does not know: when a call is made, and how messages travel.
//!
//! One call is outstanding at a time. A label distinguishes its answer from a late one. Two pieces of each file can be held: the
//! one in use, and the next one, which is obtained meanwhile.

use super::context::{Context, Input};
use crate::types::Tick;
use bulkhead_abi::accelerator::{KERNEL, SERVICE};
use bulkhead_abi::dtu::DtuError;
use bulkhead_abi::file::{CLOSE, COMMIT, CREATE, OPEN, READ, TRUNCATE, WRITE};
use bulkhead_abi::syscall::{
    ANY_ENDPOINT, NO_SELECTOR, SEL_ACTIVITY, SEL_FREE, Syscall, SyscallError,
};

/// How long it waits for a service that is still starting, in nanoseconds.
pub const PATIENCE: u64 = 10_000_000;
/// Pause between two attempts.
pub const PAUSE: u64 = 20_000;
/// Selector of the session.
const SESSION: u16 = SEL_FREE;
/// Labels of calls begin here; other messages have smaller ones.
const LABELS: u64 = 1 << 32;

/// An end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Source,
    Sink,
}

/// Maximum number of pieces of a file held at once.
const HELD: usize = 2;

/// One of the slots for a piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(End, usize);

impl Slot {
    /// Selector of the piece.
    const fn selector(self) -> u16 {
        SESSION + 1 + (self.0 as usize * HELD + self.1) as u16
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Session,
    Open(End),
    /// The piece with this position in the file.
    Obtain(Slot, u64),
    Activate(Slot),
    Revoke(Slot),
    Commit,
    Close(End),
    /// Whether any writer of its pipe is left.
    Senders,
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    Kernel,
    Service,
}

impl Call {
    pub const fn channel(self) -> Channel {
        match self {
            Call::Session
            | Call::Obtain(..)
            | Call::Activate(_)
            | Call::Revoke(_)
            | Call::Senders => Channel::Kernel,
            Call::Open(_) | Call::Commit | Call::Close(_) => Channel::Service,
        }
    }
}

/// A context's state for its calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    /// The session is open.
    session: bool,
    /// No call before the first moment; no more patience for a missing service after the second.
    pub not_before: Tick,
    pub give_up: Option<Tick>,
    /// The call that was made and its label.
    pub outstanding: Option<(Call, u64)>,
    made: u64,
}

impl Calls {
    /// A call is being made. Returns its label.
    pub fn make(&mut self, call: Call) -> u64 {
        self.made += 1;
        let label = LABELS + self.made;
        self.outstanding = Some((call, label));
        label
    }
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// First byte in the file.
    start: u64,
    length: u64,
    /// The endpoint through which it can be transferred, once it is activated.
    endpoint: Option<u16>,
}

impl Grant {
    /// The first byte after it.
    const fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }

    const fn holds(&self, position: u64) -> bool {
        self.start <= position && position < self.end()
    }
}

/// A file of a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenFile {
    handle: Option<u64>,
    grants: [Option<Grant>; HELD],
    /// The next piece could not be obtained in advance: it is requested again when it is needed.
    not_ahead: bool,
}

impl OpenFile {
    /// It has a handle.
    pub const fn is_open(&self) -> bool {
        self.handle.is_some()
    }

    /// The slot and the piece that contain a position.
    fn holding(&self, position: u64) -> Option<(usize, Grant)> {
        let mut all = self.grants.iter().enumerate();
        all.find_map(|(place, grant)| Some((place, (*grant)?)).filter(|(_, g)| g.holds(position)))
    }

    /// A slot that is taken by a piece other than the one with a position, if any.
    fn other(&self, position: u64) -> Option<usize> {
        let is_other = |grant: &Option<Grant>| grant.is_some_and(|g| !g.holds(position));
        self.grants.iter().position(is_other)
    }

    /// The endpoint for a position of the file, the offset there, and the bytes that follow.
    pub fn at(&self, position: u64) -> Option<(u16, u64, u64)> {
        let (_, grant) = self.holding(position)?;
        let offset = position - grant.start;
        Some((grant.endpoint?, offset, grant.length - offset))
    }
}

impl Context {
    /// The next call needed to get the piece of a file that is needed now.
    pub fn reach(&self, end: End, file: &OpenFile) -> Call {
        let position = self.position(end);
        match file.holding(position) {
            _ if !self.calls.session => Call::Session,
            _ if file.handle.is_none() => Call::Open(end),
            None => match file.grants.iter().position(Option::is_none) {
                Some(free) => Call::Obtain(Slot(end, free), position),
                // They are behind this position, or the job does not continue where it was.
                None => Call::Revoke(Slot(end, 0)),
            },
            Some((place, _)) => match file.other(position) {
                Some(other) => Call::Revoke(Slot(end, other)),
                None => Call::Activate(Slot(end, place)),
            },
        }
    }

    /// The next call needed to get the piece after the current one, if the job needs it.
    pub fn reach_ahead(&self, end: End, file: &OpenFile) -> Option<Call> {
        let (_, current) = file.holding(self.position(end))?;
        let next = current.end();
        current.endpoint?;
        let wanted = !file.not_ahead && self.last(end).is_some_and(|last| next < last);
        wanted.then_some(())?;
        match file.holding(next) {
            Some((place, ahead)) => match ahead.endpoint {
                Some(_) => None,
                None => Some(Call::Activate(Slot(end, place))),
            },
            None => match file.grants.iter().position(Option::is_none) {
                Some(free) => Some(Call::Obtain(Slot(end, free), next)),
                None => {
                    let other = file.other(self.position(end))?;
                    Some(Call::Revoke(Slot(end, other)))
                }
            },
        }
    }

    /// The next call to give back what the file of an end still holds.
    pub fn leave(&self, end: End, file: &OpenFile) -> Option<Call> {
        match (file.grants.iter().position(Option::is_some), file.handle) {
            (Some(place), _) => Some(Call::Revoke(Slot(end, place))),
            (None, Some(_)) => Some(Call::Close(end)),
            (None, None) => None,
        }
    }

    /// The job's position in the file of an end.
    fn position(&self, end: End) -> u64 {
        let Some(job) = &self.job else { return 0 };
        match end {
            End::Source => job.request.input.saturating_add(job.read),
            End::Sink => self.base.saturating_add(job.written),
        }
    }

    /// Where the job will end in the file of an end, if known.
    fn last(&self, end: End) -> Option<u64> {
        let job = self.job.as_ref()?;
        let all = job.all()?;
        Some(match end {
            End::Source => job.request.input.saturating_add(all),
            // As much comes out as goes in.
            End::Sink => {
                let before = self.base.saturating_add(job.request.position);
                before.saturating_add(all)
            }
        })
    }

    fn file(&mut self, end: End) -> Option<&mut OpenFile> {
        let job = self.job.as_mut()?;
        Some(match end {
            End::Source => &mut job.source,
            End::Sink => &mut job.sink,
        })
    }

    /// The message of a call. `None` if there is no service to call.
    pub fn message(&mut self, call: Call) -> Option<Vec<u8>> {
        let gates = self.gates?;
        if let (Call::Senders, Input::Pipe(inbox)) = (call, gates.input) {
            let endpoint = inbox.endpoint;
            return Some(words(Syscall::Senders { endpoint }.encode().as_slice()));
        }
        let (_, service) = gates.files?;
        let handle = |context: &mut Self, end| {
            let file = context.file(end).and_then(|file| file.handle);
            file.unwrap_or(u64::MAX)
        };
        let syscall = match call {
            Call::Session => Syscall::OpenSession {
                service,
                target: SESSION,
                argument: 0,
            },
            Call::Obtain(slot, position) => Syscall::Exchange {
                session: SESSION,
                delegate: 0,
                own: slot.selector(),
                count: 1,
                argument0: handle(self, slot.0),
                argument1: position,
                argument2: u64::from(slot.0 == End::Sink),
            },
            Call::Activate(slot) => Syscall::Activate {
                gate: slot.selector(),
                activity: SEL_ACTIVITY,
                memory: NO_SELECTOR,
                offset: 0,
                replies: 0,
                endpoint: ANY_ENDPOINT,
            },
            Call::Revoke(slot) => Syscall::Revoke {
                selector: slot.selector(),
                keep: 0,
            },
            Call::Open(end) => {
                let flags = match end {
                    End::Source => READ,
                    End::Sink => WRITE | CREATE | TRUNCATE,
                };
                let mut message = words(&[OPEN, flags]);
                message.extend_from_slice(&self.paths[end as usize]);
                return Some(message);
            }
            Call::Commit => {
                let end = self.position(End::Sink);
                return Some(words(&[COMMIT, handle(self, End::Sink), end]));
            }
            Call::Close(end) => return Some(words(&[CLOSE, handle(self, end)])),
            Call::Senders => return None,
        };
        Some(words(syscall.encode().as_slice()))
    }

    /// A call was answered. The first word of the answer says whether it succeeded.
    pub fn answered(&mut self, call: Call, answer: &[u64], now: Tick, nanosecond: Tick) {
        let (code, rest) = match answer.split_first() {
            Some((code, rest)) => (*code, rest),
            None => (SyscallError::Refused as u64, answer),
        };
        let word = |index: usize| rest.get(index).copied().unwrap_or(0);
        if code != 0 {
            if call == Call::Session && code == SyscallError::NoCapability as u64 {
                // The service has not been offered yet.
                let end = self
                    .calls
                    .give_up
                    .get_or_insert(now + PATIENCE * nanosecond);
                if now < *end {
                    self.calls.not_before = now + PAUSE * nanosecond;
                    return;
                }
            }
            return self.refused(
                call,
                match call.channel() {
                    Channel::Kernel => KERNEL + code,
                    Channel::Service => SERVICE + code,
                },
            );
        }
        match call {
            Call::Session => self.calls.session = true,
            Call::Open(end) => {
                let (handle, size) = (word(0), word(1));
                if let Some(file) = self.file(end) {
                    file.handle = Some(handle);
                }
                if let (End::Source, Some(job)) = (end, &mut self.job) {
                    job.limit(size.saturating_sub(job.request.input));
                }
            }
            Call::Obtain(slot, position) => {
                let grant = Grant {
                    start: word(0),
                    length: word(1),
                    endpoint: None,
                };
                let good = word(2) == 1 && grant.holds(position);
                if let Some(place) = self.place(slot) {
                    *place = Some(grant);
                }
                if !good {
                    self.fail(SERVICE);
                }
            }
            Call::Activate(slot) => {
                if let Some(grant) = self.place(slot).and_then(Option::as_mut) {
                    grant.endpoint = Some(word(0) as u16);
                }
            }
            Call::Revoke(slot) => {
                if let Some(place) = self.place(slot) {
                    *place = None;
                }
            }
            Call::Senders => {
                if word(0) == 0 && word(1) > 0 {
                    // Earlier data must still be read.
                    self.cut_off = true;
                    self.note();
                }
            }
            Call::Commit => {
                if let Some(job) = &mut self.job {
                    job.committed = true;
                }
            }
            Call::Close(end) => {
                if let Some(file) = self.file(end) {
                    file.handle = None;
                }
            }
        }
    }

    /// The place for a piece.
    fn place(&mut self, Slot(end, place): Slot) -> Option<&mut Option<Grant>> {
        self.file(end)?.grants.get_mut(place)
    }

    /// Whether a slot differs from that of the piece in use, and that piece exists.
    fn is_ahead(&mut self, end: End, place: usize) -> bool {
        let position = self.position(end);
        let current = self.file(end).and_then(|file| file.holding(position));
        current.is_some_and(|(current, grant)| current != place && grant.endpoint.is_some())
    }

    /// A call was refused.
    fn refused(&mut self, call: Call, status: u64) {
        match call {
            // It is already gone, which is just as good.
            Call::Revoke(slot) => {
                if let Some(place) = self.place(slot) {
                    *place = None;
                }
                return;
            }
            // It is not needed yet. When it is, the outcome will be reported.
            Call::Obtain(Slot(end, place), _) | Call::Activate(Slot(end, place))
                if self.is_ahead(end, place) =>
            {
                if let Some(file) = self.file(end) {
                    file.not_ahead = true;
                }
                return;
            }
            Call::Close(end) => {
                if let Some(file) = self.file(end) {
                    file.handle = None;
                }
            }
            // A question only.
            Call::Senders => return,
            _ => {}
        }
        self.fail(status);
    }

    /// The service will no longer answer: everything that it gave is void.
    pub fn service_gone(&mut self) {
        self.calls = Calls {
            made: self.calls.made,
            ..Calls::default()
        };
        if let Some(job) = &mut self.job {
            (job.source, job.sink) = (OpenFile::default(), OpenFile::default());
        }
        self.fail(DtuError::ReceiverGone as u64);
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
