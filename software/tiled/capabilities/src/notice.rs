//! Notices: news for an activity, kept in a node with a payer.
//!
//! Why it exists: news must be kept until the activity takes it, however long that takes, so it needs a place with a payer. What it
//! deliberately does not know: what the words mean.
//!
//! A notice lives as long as its listener. If the payer ends earlier, the charge moves to the purse from which the payer's purse was
//! derived, and that purse gets so much less back.

use crate::node::{EXTRA, HOLDER, NO_SELECTOR, NodeId, ORIGIN, State};
use crate::object::{NOTICE_WORDS, Notice, Object, Queue};
use crate::space::{HolderId, Plan, Space};
use crate::{Error, Result};

impl Space {
    /// Leaves a notice for `hearer` at the end of a queue. `payer` pays for it; it goes with `about`.
    ///
    /// # Errors
    /// [`Error::NoKernelMemory`], and [`Error::Revoked`] or [`Error::NoHolder`] if the hearer, the subject or the purse is being removed.
    pub fn leave(
        &mut self,
        queue: &mut Queue,
        hearer: HolderId,
        payer: HolderId,
        about: Option<NodeId>,
        words: [u64; NOTICE_WORDS],
    ) -> Result<()> {
        let notice = Notice {
            words,
            previous: queue.last,
            next: NodeId::NONE,
        };
        let purse = self.owner(self.purse(payer)?);
        let other = payer != hearer;
        let about = about.unwrap_or(NodeId::NONE);
        let id = self.make(Plan {
            // The hearer has its own purse for as long as it lives.
            extra: [if other { purse } else { NodeId::NONE }, NodeId::NONE],
            payer,
            ..Plan::own(hearer, about, NO_SELECTOR, Object::Notice(notice))
        })?;
        self.append(queue, id);
        Ok(())
    }

    /// Leaves a notice in the node of something that was just removed, which stays charged to the same purse. It goes with `about`. Must
    /// be called before anything else happens.
    ///
    /// # Errors
    /// [`Error::Revoked`] if the hearer or the subject is being removed, too.
    pub fn leave_instead(
        &mut self,
        queue: &mut Queue,
        hearer: HolderId,
        purse: NodeId,
        about: Option<NodeId>,
        words: [u64; NOTICE_WORDS],
    ) -> Result<()> {
        self.visit(2);
        let holder = self.holders[usize::from(hearer.0)].node;
        let lives = |id: NodeId| self.nodes[id.index()].state == State::Alive;
        if !holder.is_some() || !lives(holder) || !about.is_none_or(lives) {
            return Err(Error::Revoked);
        }
        let Object::KernelMemory { left, .. } = &mut self.nodes[purse.index()].object else {
            return Err(Error::WrongKind);
        };
        // The removal has just given this amount back.
        let rest = left.checked_sub(Self::NODE_COST);
        *left = rest.ok_or(Error::NoKernelMemory)?;
        let id = self.take_free().ok_or(Error::NoKernelMemory)?;
        let notice = Notice {
            words,
            previous: queue.last,
            next: NodeId::NONE,
        };
        self.place(id, Object::Notice(notice), 0, purse);
        self.link(id, HOLDER, holder);
        if let Some(about) = about {
            self.link(id, ORIGIN, about);
            // A hearer that pays itself has its purse for as long as it lives.
            self.link(id, EXTRA, purse);
        }
        self.append(queue, id);
        Ok(())
    }

    fn append(&mut self, queue: &mut Queue, id: NodeId) {
        match self.notice(queue.last) {
            Some(last) => last.next = id,
            None => queue.first = id,
        }
        queue.last = id;
    }

    /// A notice by its node, if there is one.
    pub(crate) fn notice(&mut self, id: NodeId) -> Option<&mut Notice> {
        match &mut self.nodes.get_mut(id.index())?.object {
            Object::Notice(notice) => Some(notice),
            _ => None,
        }
    }

    /// The first notice of a queue.
    pub fn first_notice(&mut self, queue: &Queue) -> Option<&mut [u64; NOTICE_WORDS]> {
        Some(&mut self.notice(queue.first)?.words)
    }

    /// The hearer takes the first notice of a queue; its place is free again.
    pub fn hear(&mut self, queue: &mut Queue) -> Option<[u64; NOTICE_WORDS]> {
        let first = queue.first;
        if !first.is_some() {
            return None;
        }
        let Object::Notice(notice) = self.take_out(first).object else {
            return None;
        };
        queue.removed(&notice);
        Some(notice.words)
    }

    /// The payer of a notice ends: the purse from which the payer's purse was derived pays from now on, and gets so much less back.
    pub(crate) fn inherit(&mut self, id: NodeId) {
        let purse = self.nodes[id.index()].edges[EXTRA].to;
        let cost = self.nodes[id.index()].cost;
        let Some(origin) = self.origin(purse).map(|origin| self.owner(origin)) else {
            return;
        };
        if let Object::KernelMemory { given, .. } = &mut self.nodes[purse.index()].object {
            *given -= cost;
        }
        self.unlink(id, EXTRA);
        self.link(id, EXTRA, origin);
        self.nodes[id.index()].purse = origin;
    }
}
