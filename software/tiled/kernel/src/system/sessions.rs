//! Services: the kernel asks servers, and does what they allow.
//!
//! Why it exists: a capability moves over a session only if the server agrees. What it deliberately does not know: what a session
//! means.
//!
//! The kernel asks a server one question at a time; each service has its own queue of callers. A caller waits for the answer at
//! most [`PATIENCE`], whatever the server does, and gets an error at once if the server is gone.

use super::{Reply, System, done, failed, waiting};
use crate::activity::count;
use crate::hardware::Hardware;
use crate::pending::{Purpose, Question, Ticket, Waiting, Why};
use crate::post;
use bulkhead_abi::syscall::arguments::{Exchange, OpenSession};
use bulkhead_abi::syscall::{EXCHANGE_MAX, Event, ServerRequest, SyscallError};
use bulkhead_abi::tilemux::KERNEL_ACTIVITY;
use bulkhead_capabilities::{Asked, HolderId, NOTICE_WORDS, NodeId, Notice, Object, Removed};

/// Most nanoseconds that a caller waits for the answer, from its call on.
pub const PATIENCE: u64 = 50_000_000;

/// Most questions that one piece of work takes back if a server cannot be asked.
const REFUSED_MAX: u32 = 4;
/// The first word of a notice that a session was closed. The second is the server's number for the session, the third the number of
/// the activity that had it.
const CLOSED: u64 = u64::MAX;

impl System {
    pub(super) fn create_service(
        &mut self,
        id: u16,
        caller: HolderId,
        gate: u16,
        target: u16,
    ) -> Result<(), SyscallError> {
        let (receives, before) = match self.space.look(caller, gate)? {
            (id, Object::Receive(gate)) => (id, *gate),
            _ => return Err(SyscallError::WrongKind),
        };
        if before.place.is_none() {
            return Err(SyscallError::WrongState);
        }
        let node = self.space.create_service(caller, gate, target)?;
        let offered = match self.activities.get(id).map(|a| (a.creator, a.selector)) {
            Some((creator, selector)) => {
                let words = post::ended(selector, id, None, Event::Service(target));
                self.notify(creator, caller, Some(node), words)
            }
            None => Ok(()),
        };
        if offered.is_err() {
            self.discard(node);
            self.space.go_back(receives, &before);
        }
        offered
    }

    /// Whether any question waits to be asked or answered.
    #[inline]
    pub fn has_questions(&self) -> bool {
        self.questions > 0
    }

    /// The highest priority of an activity that waits for a server; the lowest if none does.
    pub fn asked_level(&self) -> usize {
        let highest = self.asking.iter().rposition(|count| *count > 0);
        highest.unwrap_or(0)
    }

    /// A number for a question to a server; it contains the service's node.
    fn number_for(&mut self, service: NodeId) -> u64 {
        self.question += 1;
        self.question << 16 | u64::from(service.0)
    }

    fn ask(
        &mut self,
        hardware: &mut impl Hardware,
        service: NodeId,
        ticket: Ticket,
        purpose: Purpose,
    ) -> Result<(), SyscallError> {
        self.space.offer(service).ok_or(SyscallError::Gone)?;
        let until = hardware.time().saturating_add(PATIENCE);
        let number = self.number_for(service);
        let question = Question { number, purpose };
        self.wait(Waiting::new(ticket, Why::Server(service, question), until))?;
        self.questions += 1;
        self.asking[ticket.level] += 1;
        self.ask_next(hardware, service);
        Ok(())
    }

    pub(super) fn open_session(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        c: &OpenSession,
    ) -> Result<(), SyscallError> {
        let node = self.space.service(caller, c.service)?;
        self.space.is_free(caller, c.target)?;
        self.ask(hardware, node, ticket, Purpose::Open(*c))
    }

    pub(super) fn exchange(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        c: &Exchange,
    ) -> Result<(), SyscallError> {
        let (service, ident) = self.space.session(caller, c.session)?;
        if c.count > EXCHANGE_MAX {
            return Err(SyscallError::BadArgument);
        }
        self.ask(hardware, service, ticket, Purpose::Exchange(*c, ident))
    }

    /// Sends a free server, in turn, the next question of the highest priority or a notice of a closed session. Without turns, a
    /// caller that asks without a pause would keep the server from ever giving back what it holds for clients that are gone.
    fn ask_next(&mut self, hardware: &mut impl Hardware, service: NodeId) {
        for _ in 0..REFUSED_MAX {
            let Some(offer) = self.space.offer(service).copied() else {
                return;
            };
            if offer.asked != 0 {
                return;
            }
            let client = waiting::first(&offer.waiting);
            let question = client.and_then(|id| Some((id, self.question_of(id)?)));
            let question =
                question.filter(|_| offer.last == Asked::Close || offer.closed.is_empty());
            let sent = match question {
                Some((id, Question { number, purpose })) => {
                    self.send(hardware, service, number, purpose.request(id))
                }
                None => {
                    let mut closed = offer.closed;
                    let Some(words) = self.space.hear(&mut closed) else {
                        return;
                    };
                    if let Some(offer) = self.space.offer(service) {
                        (offer.closed, offer.last) = (closed, Asked::Close);
                    }
                    self.closing_heard(&words);
                    self.close(hardware, service, words[1])
                }
            };
            if sent {
                return;
            }
            // No room: the server keeps an earlier question, gave out unlimited credits, or closed its gate.
            if let Some(waiting) = question.and_then(|(id, _)| self.wait_no_more(id)) {
                self.answer(waiting.ticket, Err(SyscallError::Refused));
            }
        }
    }

    /// The question of a waiting client.
    fn question_of(&self, client: u16) -> Option<Question> {
        match self.activities.get(client)?.waits?.why {
            Why::Server(_, question) => Some(question),
            _ => None,
        }
    }

    /// Asks a server. Returns whether the question was sent.
    fn send(
        &mut self,
        hardware: &mut impl Hardware,
        service: NodeId,
        number: u64,
        request: ServerRequest,
    ) -> bool {
        let place = self.space.receiver(service).map(|(_, place)| place);
        let words = request.encode();
        let share = self.space.offer(service).map_or(0, |offer| offer.shares);
        let sent = place.is_some_and(|to| hardware.ask((to, share), words.as_slice(), number));
        if let Some(offer) = self.space.offer(service).filter(|_| sent) {
            offer.asked = number;
            offer.last = match request {
                ServerRequest::Open { .. } => Asked::Open,
                ServerRequest::Exchange { .. } => Asked::Exchange,
                ServerRequest::Close { .. } => Asked::Close,
            };
            self.questions += 1;
        }
        sent
    }

    /// Tells a free server that a session has ended.
    fn close(&mut self, hardware: &mut impl Hardware, service: NodeId, ident: u64) -> bool {
        let number = self.number_for(service);
        self.send(hardware, service, number, ServerRequest::Close { ident })
    }

    /// A server has answered.
    pub fn answered(&mut self, hardware: &mut impl Hardware, number: u64, words: &[u64]) {
        let service = NodeId(number as u16);
        let offer = self.space.offer(service);
        let Some(offer) = offer.filter(|offer| offer.asked == number) else {
            return;
        };
        offer.asked = 0;
        let (opens, line) = (offer.last == Asked::Open, offer.waiting);
        self.questions -= 1;
        // `None` if the time limit had passed or the client had ended.
        let client = self.asked_by(&line, number);
        let mut agreed = false;
        if let Some(waiting) = client.and_then(|id| self.wait_no_more(id))
            && let Why::Server(_, question) = waiting.why
        {
            let outcome = match words {
                [0, ..] => self.agreed(service, waiting.ticket, question.purpose, words),
                words => Ok(declined(words)),
            };
            agreed = outcome.is_ok();
            self.answer(waiting.ticket, outcome);
        }
        if let (true, false, [0, ident, ..]) = (opens, agreed, words) {
            // The server believes that there is a session.
            self.close(hardware, service, *ident);
        }
        self.ask_next(hardware, service);
    }

    /// The activity that waits for the answer to a question. It was the first of its priority when the question was asked, and
    /// still is.
    fn asked_by(&self, line: &bulkhead_capabilities::Line, number: u64) -> Option<u16> {
        let mut firsts = line.first.iter().copied();
        firsts.find(|id| self.question_of(*id).is_some_and(|q| q.number == number))
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
        let client = self.holder(ticket)?;
        let mut reply = done();
        match purpose {
            Purpose::Open(c) => {
                // The client may have put another capability there meanwhile.
                if self.space.service(client, c.service)? != service {
                    return Err(SyscallError::Gone);
                }
                self.space
                    .create_session(client, c.service, c.target, word(1))?;
            }
            Purpose::Exchange(c, ident) => {
                // The session must still exist.
                if self.space.session(client, c.session)? != (service, ident) {
                    return Err(SyscallError::Gone);
                }
                let server = self.space.holder_of(service);
                let theirs = u16::try_from(word(1)).map_err(|_| SyscallError::Refused)?;
                let count = word(2).min(c.count.into()) as u16;
                let (from, to) = match c.delegate {
                    0 => ((server, theirs), (client, c.own)),
                    _ => ((client, c.own), (server, theirs)),
                };
                if count > 0 {
                    self.space.copy(client, from, to)?;
                }
                reply.push(&[word(3), word(4), count.into()]);
            }
        }
        Ok(reply)
    }

    /// A session is gone: its server is told, unless it is ending, too. Until then, the session's charge pays for the notice.
    pub(super) fn session_gone(
        &mut self,
        hardware: &mut impl Hardware,
        removed: &Removed,
        ident: u64,
    ) {
        let Some(service) = removed.origin.map(|s| self.space.owner(s)) else {
            return;
        };
        // A server may know its client by the client's number; the number that the server chose for the session tells the kernel
        // nothing.
        let client = self.number(removed.holder).unwrap_or(KERNEL_ACTIVITY);
        let words = [CLOSED, ident, client.into(), 0, 0, 0];
        let Some(mut closed) = self.space.offer(service).map(|offer| offer.closed) else {
            return;
        };
        let (server, about) = (self.space.holder_of(service), Some(service));
        let left = self
            .space
            .leave_instead(&mut closed, server, removed.purse, about, words);
        if left.is_ok() {
            self.questions += 1;
            if let Some(offer) = self.space.offer(service) {
                offer.closed = closed;
            }
            count(&mut self.mentions, client, true);
            self.ask_next(hardware, service);
        }
    }

    /// An undelivered notice is gone.
    pub(super) fn notice_gone(&mut self, removed: &Removed, notice: &Notice) {
        if notice.words[0] == CLOSED {
            // Its service ends, too.
            return self.closing_heard(&notice.words);
        }
        let hearer = self.number(removed.holder);
        if let Some(post) = hearer.and_then(|id| self.activities.post(id)) {
            post.notices.removed(notice);
        }
    }

    /// A server knows of a closed session, or has ended.
    fn closing_heard(&mut self, words: &[u64; NOTICE_WORDS]) {
        self.questions -= 1;
        count(&mut self.mentions, words[2] as u16, false);
    }
}

/// A reply that reports a server's refusal and its reason.
fn declined(words: &[u64]) -> Reply {
    let mut reply = failed(SyscallError::Refused);
    reply.push(words.get(..1).unwrap_or_default());
    reply
}

#[cfg(test)]
mod tests {
    use crate::activity::count;
    use crate::system::NUMBERS_END;
    use crate::tests::sessions::served;
    use crate::tests::{boot, finish, later};
    use bulkhead_abi::syscall::{StopCause, Syscall};

    /// Before the fix, a number that 255 notices to servers mentioned was never used again; after that had happened to all numbers,
    /// the kernel would have searched forever.
    #[test]
    fn numbers_come_back_however_often_servers_were_to_hear_of_them() {
        let (mut system, _) = boot();
        let next = system.next_activity;
        (0..1000).for_each(|_| count(&mut system.mentions, next, true));
        assert_eq!(system.number_for_new().map(|new| new.0), Some(next + 1));
        (0..1000).for_each(|_| count(&mut system.mentions, next, false));
        system.next_activity = next;
        assert_eq!(system.number_for_new().map(|new| new.0), Some(next));
        (0..NUMBERS_END).for_each(|id| count(&mut system.mentions, id, true));
        assert_eq!(system.number_for_new(), None);
        (0..NUMBERS_END).for_each(|id| count(&mut system.mentions, id, false));
        assert!(system.number_for_new().is_some());
    }

    /// A server chooses the numbers of its sessions. Before the fix, it could choose numbers of future activities, and the creator
    /// of such an activity waited until the kernel had found another number.
    #[test]
    fn only_its_own_sessions_keep_the_number_of_an_activity_that_is_gone() {
        let (mut system, mut chip, client, _) = served();
        let next = system.next_activity;
        for session in 0..8 {
            let open = Syscall::OpenSession {
                service: 30,
                target: 100 + session,
                argument: 0,
            };
            assert_eq!(later(&mut system, &mut chip, client, open), Ok(None));
            let (.., number) = chip.asked.last().cloned().unwrap();
            system.answered(&mut chip, number, &[0, (next + session).into()]);
            while system.take_reply().is_some() {}
        }
        system.notified(&mut chip, 2, client, StopCause::Exit(0));
        finish(&mut system, &mut chip);
        // The server is told of one of them.
        assert!(system.has_questions() && system.activity(client).is_none());
        assert_eq!(system.number_for_new().map(|new| new.0), Some(next));
        system.next_activity = client;
        assert_ne!(system.number_for_new().map(|new| new.0), Some(client));
        while system.has_questions() {
            let (.., number) = chip.asked.last().cloned().unwrap();
            system.answered(&mut chip, number, &[0]);
        }
        system.next_activity = client;
        assert_eq!(system.number_for_new().map(|new| new.0), Some(client));
    }
}
