//! Services: the kernel asks servers, and does what they agree to.
//!
//! Why it exists: a capability changes hands over a session only if the server wants it. What it deliberately does not know: what a session
//! means.
//!
//! A server is asked one question at a time, over a line of its own. Who asks waits for his answer for [`PATIENCE`] at most, whatever
//! the server does, and hears at once if the server is gone.

use super::{Outcome, Reply, System, Ticket, done};
use crate::hardware::Hardware;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use bulkhead_abi::syscall::{EXCHANGE_MAX, Event, ServerRequest, SyscallError};
use bulkhead_capabilities::{HolderId, NodeId};

/// A question waits for so many nanoseconds at most, from its asking on.
pub const PATIENCE: u64 = 50_000_000;

/// Events of an activity that nobody listens to, beyond which it offers no more services.
const UNHEARD_MAX: usize = 8;
/// Closed sessions that a service has not acknowledged, beyond which nobody opens another one.
pub const CLOSED_MAX: usize = 64;

/// Who wants to know.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    /// Opens a session: selectors of service and session.
    Open { service: u16, target: u16 },
    /// Exchanges capabilities: does the client delegate, its first selector, how many.
    Exchange {
        delegate: bool,
        own: u16,
        count: u16,
    },
    /// Tells that a session is closed; nobody waits.
    Close,
}

/// A question to a server.
#[derive(Clone, Copy, Debug)]
struct Question {
    number: u64,
    ticket: Option<Ticket>,
    purpose: Purpose,
    request: ServerRequest,
    until: u64,
}

/// A service and what it is asked.
#[derive(Debug)]
struct Service {
    node: NodeId,
    /// The kernel's send endpoint for it.
    line: u16,
    /// Number of the question that it has not answered yet.
    asked: Option<u64>,
    queue: VecDeque<Question>,
}

impl Service {
    /// Closed sessions that it has not heard of.
    fn closed(&self) -> usize {
        let closed = |q: &&Question| matches!(q.purpose, Purpose::Close);
        self.queue.iter().filter(closed).count()
    }

    fn close(&mut self, number: u64, ident: u64) {
        self.queue.push_back(Question {
            number,
            ticket: None,
            purpose: Purpose::Close,
            request: ServerRequest::Close { ident },
            until: u64::MAX,
        });
    }
}

/// All services.
#[derive(Debug)]
pub(super) struct Services {
    all: Vec<Service>,
    lines: Vec<bool>,
    next: u64,
    /// Questions of all of them.
    pub(super) questions: usize,
}

impl Services {
    pub(super) fn new(lines: u16) -> Self {
        Self {
            all: Vec::new(),
            lines: vec![false; lines.into()],
            next: 1,
            questions: 0,
        }
    }

    /// After any change of a queue.
    fn count(&mut self) {
        self.questions = self.all.iter().map(|s| s.queue.len()).sum();
    }

    /// Calls of a priority that wait for a server.
    pub(super) fn waiting(&self, level: usize) -> usize {
        let questions = self.all.iter().flat_map(|s| &s.queue);
        questions
            .filter(|q| q.ticket.is_some_and(|t| t.level == level))
            .count()
    }
}

impl System {
    pub(super) fn create_service(
        &mut self,
        id: u16,
        caller: HolderId,
        gate: u16,
        target: u16,
    ) -> Result<(), SyscallError> {
        if self.unheard(id) > UNHEARD_MAX {
            return Err(SyscallError::Busy);
        }
        let line = self.services.lines.iter().position(|used| !used);
        let line = line.ok_or(SyscallError::NoEndpoint)?;
        let node = self.space.create_service(caller, gate, target)?;
        if self.space.receiver(node).is_none() {
            self.discard(node);
            return Err(SyscallError::WrongState);
        }
        self.services.lines[line] = true;
        self.services.all.push(Service {
            node,
            line: line as u16,
            asked: None,
            queue: VecDeque::new(),
        });
        if let Some(activity) = self.activities.get(&id) {
            let (creator, selector) = (activity.creator, activity.selector);
            self.post(creator, selector, id, Event::Service(target));
        }
        Ok(())
    }

    /// Whether anybody is to be asked or has been asked.
    #[inline]
    pub fn has_questions(&self) -> bool {
        self.services.questions > 0
    }

    fn ask(
        &mut self,
        hardware: &mut impl Hardware,
        service: NodeId,
        ticket: Option<Ticket>,
        purpose: Purpose,
        request: ServerRequest,
    ) -> Result<Outcome, SyscallError> {
        if let Some(ticket) = ticket {
            self.may_wait(ticket)?;
        }
        let number = self.services.next;
        let until = hardware.time().saturating_add(PATIENCE);
        let mut all = self.services.all.iter_mut();
        let service = all.find(|s| s.node == service);
        service
            .ok_or(SyscallError::Gone)?
            .queue
            .push_back(Question {
                number,
                ticket,
                purpose,
                request,
                until,
            });
        self.services.next += 1;
        self.services.count();
        self.ask_next(hardware);
        Ok(Outcome::Later)
    }

    pub(super) fn open_session(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        service: u16,
        target: u16,
        argument: u64,
    ) -> Result<Outcome, SyscallError> {
        let node = self.space.service(caller, service)?;
        self.space.is_free(caller, target)?;
        let mut all = self.services.all.iter();
        if all.any(|s| s.node == node && s.closed() >= CLOSED_MAX) {
            return Err(SyscallError::Busy);
        }
        let request = ServerRequest::Open {
            argument,
            activity: ticket.caller,
        };
        let purpose = Purpose::Open { service, target };
        self.ask(hardware, node, Some(ticket), purpose, request)
    }

    pub(super) fn exchange(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        session: u16,
        (delegate, own, count): (bool, u16, u16),
        arguments: [u64; 3],
    ) -> Result<Outcome, SyscallError> {
        let (service, ident) = self.space.session(caller, session)?;
        if count > EXCHANGE_MAX {
            return Err(SyscallError::BadArgument);
        }
        let request = ServerRequest::Exchange {
            ident,
            delegate: delegate.into(),
            count,
            arguments,
        };
        let purpose = Purpose::Exchange {
            delegate,
            own,
            count,
        };
        self.ask(hardware, service, Some(ticket), purpose, request)
    }

    /// Asks every server that is free its next question: that of the highest priority.
    pub fn ask_next(&mut self, hardware: &mut impl Hardware) {
        for index in 0..self.services.all.len() {
            let service = &self.services.all[index];
            if service.asked.is_some() {
                continue;
            }
            let questions = service.queue.iter().enumerate();
            let level = |q: &Question| q.ticket.map_or(0, |t| t.level + 1);
            let first = questions.max_by_key(|(i, q)| (level(q), usize::MAX - i));
            let Some((position, question)) = first else {
                continue;
            };
            let (number, ticket) = (question.number, question.ticket);
            let words = question.request.encode();
            let place = self.space.receiver(service.node).map(|(_, place)| place);
            let line = service.line;
            let sent = place.is_some_and(|to| hardware.ask(line, to, words.as_slice(), number));
            let service = &mut self.services.all[index];
            if sent {
                service.asked = Some(number);
            } else {
                // No room: the server gave the kernel's slot to somebody else, or closed its gate.
                service.queue.remove(position);
                self.services.count();
                if let Some(ticket) = ticket {
                    self.answer(ticket, Err(SyscallError::Refused));
                }
            }
        }
    }

    /// A server has answered.
    pub fn answered(&mut self, hardware: &mut impl Hardware, number: u64, words: &[u64]) {
        let mut all = self.services.all.iter_mut();
        let Some(service) = all.find(|s| s.asked == Some(number)) else {
            return;
        };
        service.asked = None;
        let node = service.node;
        let position = service.queue.iter().position(|q| q.number == number);
        if let Some(question) = position.and_then(|p| service.queue.remove(p)) {
            // Without a ticket, the patience had ended, or the client.
            let outcome = match question.ticket {
                Some(ticket) => self.agreed(node, ticket, question.purpose, words),
                None => Err(SyscallError::Gone),
            };
            if let (Purpose::Open { .. }, Err(_), [0, ident, ..]) =
                (question.purpose, outcome, words)
            {
                // The server believes that there is a session.
                self.close(node, *ident);
            }
            if let Some(ticket) = question.ticket {
                self.answer(ticket, outcome);
            }
        }
        self.services.count();
        self.ask_next(hardware);
    }

    /// Does what a server agreed to.
    fn agreed(
        &mut self,
        service: NodeId,
        ticket: Ticket,
        purpose: Purpose,
        words: &[u64],
    ) -> Result<Reply, SyscallError> {
        let word = |index: usize| words.get(index).copied().unwrap_or(0);
        if words.is_empty() || word(0) != 0 {
            return Err(SyscallError::Refused);
        }
        let client = self.holder(ticket)?;
        let mut reply = done();
        match purpose {
            Purpose::Open {
                service: selector,
                target,
            } => {
                // The client may have put something else there meanwhile.
                if self.space.service(client, selector)? != service {
                    return Err(SyscallError::Gone);
                }
                self.space
                    .create_session(client, selector, target, word(1))?;
            }
            Purpose::Exchange {
                delegate,
                own,
                count,
            } => {
                let server = self.space.holder_of(service);
                let theirs = u16::try_from(word(1)).map_err(|_| SyscallError::Refused)?;
                let count = word(2).min(count.into()) as u16;
                let (from, to) = match delegate {
                    true => ((client, own), (server, theirs)),
                    false => ((server, theirs), (client, own)),
                };
                self.space.check_copies(client, from, to, count)?;
                for i in 0..count {
                    let (from, to) = ((from.0, from.1 + i), (to.0, to.1 + i));
                    self.space.copy(client, from, to)?;
                }
                reply.push(&[word(3), word(4), count.into()]);
            }
            Purpose::Close => {}
        }
        Ok(reply)
    }

    /// Answers those whose patience has ended. Returns when the next one's ends.
    pub fn expire(&mut self, now: u64) -> Option<u64> {
        let mut next: Option<u64> = None;
        let mut late = Vec::new();
        for service in &mut self.services.all {
            let asked = service.asked;
            service.queue.retain_mut(|question| {
                if question.until > now {
                    next = Some(next.map_or(question.until, |n| n.min(question.until)));
                    return true;
                }
                late.extend(question.ticket.take());
                question.until = u64::MAX;
                // What the server was asked stays, so that its late answer is understood.
                asked == Some(question.number)
            });
        }
        self.services.count();
        // Only closed sessions, of which nobody's patience ends.
        next = next.filter(|next| *next != u64::MAX);
        for ticket in late {
            self.answer(ticket, Err(SyscallError::Timeout));
        }
        next
    }

    /// A service is gone: who waits for it hears so.
    pub(super) fn service_gone(&mut self, node: NodeId) {
        let mut all = self.services.all.iter();
        let Some(index) = all.position(|s| s.node == node) else {
            return;
        };
        let service = self.services.all.swap_remove(index);
        self.services.lines[usize::from(service.line)] = false;
        self.services.count();
        for ticket in service.queue.iter().filter_map(|q| q.ticket) {
            self.answer(ticket, Err(SyscallError::Gone));
        }
    }

    /// A session is gone: its server hears so, unless it is going, too.
    pub(super) fn session_gone(&mut self, service: Option<NodeId>, ident: u64) {
        let Some(service) = service.map(|s| self.space.owner(s)) else {
            return;
        };
        self.close(service, ident);
    }

    /// A server is told that a session is no more, if it is there.
    fn close(&mut self, service: NodeId, ident: u64) {
        let number = self.services.next;
        let mut all = self.services.all.iter_mut();
        if let Some(service) = all.find(|s| s.node == service) {
            service.close(number, ident);
            self.services.next += 1;
            self.services.count();
        }
    }

    /// A client is gone: nobody waits for what it asked. Returns the calls that waited.
    pub(super) fn forget_questions(&mut self, client: u16) -> Vec<Ticket> {
        let mut gone = Vec::new();
        for service in &mut self.services.all {
            let asked = service.asked;
            service.queue.retain_mut(|question| {
                if question.ticket.is_none_or(|t| t.caller != client) {
                    return true;
                }
                gone.extend(question.ticket.take());
                question.until = u64::MAX;
                asked == Some(question.number)
            });
        }
        self.services.count();
        gone
    }

    /// Whether a server or a TileMux is still to hear of an activity of this number, so that the number must not be used again.
    pub(super) fn is_mentioned(&self, id: u16) -> bool {
        let mut questions = self.services.all.iter().flat_map(|s| &s.queue);
        let mut asked = self.tiles.iter().flat_map(|t| &t.asked);
        questions.any(|question| match question.request {
            ServerRequest::Open { activity, .. } => activity == id,
            ServerRequest::Close { ident } => ident == u64::from(id),
            ServerRequest::Exchange { .. } => false,
        }) || asked.any(|asked| asked.activity == id)
    }
}
