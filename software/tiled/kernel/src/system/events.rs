//! Events for activities: events of the activities that they created, and words from their creators.
//!
//! Why it exists: an event waits until its receiver listens, and no activity may fill the kernel with events. Each event has a
//! place that was paid for. Words are kept in the activity that they are about; the end of an activity is kept in the node that the
//! activity had. What it deliberately does not know: how creators react.

use super::speaking::Heard;
use super::waiting;
use super::{Reply, System, done};
use crate::pending::{Ticket, Waiting, Why};
use crate::post;
use bulkhead_abi::syscall::{Event, SEL_ACTIVITY, SyscallError};
use bulkhead_capabilities::{HolderId, NOTICE_WORDS, NodeId, Removed};

impl System {
    /// Keeps an activity's word for its creator; only the last word about each topic is kept.
    pub(super) fn report(&mut self, id: u16, value: u64) -> Result<(), SyscallError> {
        let topic = post::topic(value).ok_or(SyscallError::BadArgument)?;
        self.activities.say(id, topic, value);
        if let Some(creator) = self.activities.get(id).map(|a| a.creator) {
            self.deliver(creator);
        }
        Ok(())
    }

    /// Keeps a creator's word for an activity. A later word about an import replaces an undelivered one.
    pub(super) fn tell(&mut self, from: u16, to: u16, value: u64) -> Result<(), SyscallError> {
        let topic = post::topic(value).ok_or(SyscallError::BadArgument)?;
        let creator = self.activities.get(to).map(|a| a.creator);
        let post = self.activities.post(to).ok_or(SyscallError::NoActivity)?;
        if creator != Some(from) {
            return Err(SyscallError::OutOfBounds);
        }
        let told = &mut post.told;
        if topic == 0 && told.has(topic) {
            return Err(SyscallError::Busy);
        }
        told.put(topic, value);
        self.deliver(to);
        Ok(())
    }

    /// Leaves a notice for an activity, if it exists; the notice is removed with `about`.
    pub(super) fn notify(
        &mut self,
        to: u16,
        payer: HolderId,
        about: Option<NodeId>,
        words: [u64; NOTICE_WORDS],
    ) -> Result<(), SyscallError> {
        let hearer = self.activities.get(to).map(|a| a.holder);
        let (Some(hearer), Some(post)) = (hearer, self.activities.post(to)) else {
            return Ok(());
        };
        self.space
            .leave(&mut post.notices, hearer, payer, about, words)?;
        self.deliver(to);
        Ok(())
    }

    /// An activity has ended. Its creator gets a notice, which reuses the activity's node. An activity that ends itself gets no
    /// notice.
    pub(super) fn notify_end(
        &mut self,
        creator: u16,
        removed: &Removed,
        words: [u64; NOTICE_WORDS],
    ) {
        let hearer = self.activities.get(creator).map(|a| a.holder);
        let (Some(holder), Some(post)) = (hearer, self.activities.post(creator)) else {
            return;
        };
        let notices = &mut post.notices;
        // Even if kernel memory is exhausted, the ended activity must not stay.
        let _ = self
            .space
            .leave_instead(notices, holder, removed.purse, None, words);
    }

    /// An activity's next event, as a reply.
    pub(super) fn next_event(&mut self, id: u16) -> Option<Reply> {
        let (selector, who, event) = match self.activities.hear(id)? {
            Heard::Told(word) => (SEL_ACTIVITY, id, Event::Told(word)),
            Heard::Said(who, selector, word) => (selector, who, Event::Reported(word)),
            Heard::Notice => {
                let notices = &mut self.activities.post(id)?.notices;
                let words = self.space.first_notice(notices)?;
                let (selector, who, last, event) = post::read(*words)?;
                match last {
                    Some(word) => {
                        *words = post::ended(selector, who, None, event);
                        (selector, who, Event::Reported(word))
                    }
                    None => {
                        self.space.hear(notices)?;
                        (selector, who, event)
                    }
                }
            }
        };
        let mut reply = done();
        reply.push(&[selector.into(), who.into()]);
        reply.push(&event.to_words());
        Some(reply)
    }

    /// An activity that waits for an event, if it does, gets it with its reply, in a piece of work of its own.
    pub(super) fn deliver(&mut self, id: u16) {
        let waits = self.activities.get(id).and_then(|a| a.waits);
        if let Some(Waiting { ticket, until, .. }) = waits.filter(|w| matches!(w.why, Why::Event)) {
            self.wait_no_more(id);
            self.replies.push_back(ticket.level, (ticket, Err(until)));
        }
    }

    /// An activity without a pending event waits for one.
    pub(super) fn wait_event(&mut self, ticket: Ticket, until: u64) -> Result<(), SyscallError> {
        let until = if until == 0 { u64::MAX } else { until };
        self.wait(Waiting::new(ticket, Why::Event, until))
    }

    /// An activity waits in its own place, and in the queue of the object for which it waits.
    pub(super) fn wait(&mut self, waiting: Waiting) -> Result<(), SyscallError> {
        let id = waiting.ticket.caller;
        let activity = self.activities.get_mut(id);
        let activity = activity.ok_or(SyscallError::NotManager)?;
        if activity.waits.is_some() {
            return Err(SyscallError::Busy);
        }
        match waiting.why {
            Why::Event => activity.waits = Some(waiting),
            Why::Semaphore(node) if self.is_alarmed(node) => return Err(SyscallError::Gone),
            Why::Semaphore(node) | Why::Server(node, _) => {
                let line = self.space.line(node).ok_or(SyscallError::Gone)?;
                self.activities.line_up(line, waiting);
            }
        }
        if waiting.until != u64::MAX {
            self.timers.insert((waiting.until, id));
        }
        Ok(())
    }

    /// Ends the wait of an activity.
    pub(super) fn wait_no_more(&mut self, id: u16) -> Option<Waiting> {
        let waiting = self.activities.get(id)?.waits?;
        match waiting.why {
            Why::Event => self.activities.get_mut(id)?.waits = None,
            Why::Semaphore(node) | Why::Server(node, _) => {
                let line = self.space.line(node)?;
                self.activities.step_out(line, id);
            }
        }
        if matches!(waiting.why, Why::Server(..)) {
            self.questions -= 1;
            self.asking[waiting.ticket.level] -= 1;
        }
        self.timers.remove(&(waiting.until, id));
        Some(waiting)
    }

    /// Tells the first activity that waits for a semaphore or a server that the object, or another holder of it, is gone. Returns
    /// whether there was one.
    pub(super) fn dismiss(&mut self, node: NodeId) -> bool {
        let first = self.space.line(node).and_then(|line| waiting::first(line));
        let Some(waiting) = first.and_then(|id| self.wait_no_more(id)) else {
            return false;
        };
        self.answer(waiting.ticket, Err(SyscallError::Gone));
        true
    }

    /// Whether any activity waits with a time limit.
    pub fn has_impatient(&self) -> bool {
        !self.timers.is_empty()
    }

    /// Answers the first activity whose time limit has passed, if there is one; many may wait until the same moment, and each is a
    /// piece of work. Returns when the next limit ends, or has ended.
    pub fn expire(&mut self, now: u64) -> Option<u64> {
        let (until, id) = *self.timers.first()?;
        if until <= now {
            self.timers.pop_first();
            if let Some(waiting) = self.wait_no_more(id) {
                self.answer(waiting.ticket, Err(SyscallError::Timeout));
            }
        }
        self.timers.first().map(|next| next.0)
    }
}
