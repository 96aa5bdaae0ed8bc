//! Requests that wait at a directory.
//!
//! Why it exists: they try again whenever something ends, the oldest first, and here is decided to whom each part of a wait is booked: for a line,
//! to the hart before; for a register or a place in a set, to whoever gives one back. What it deliberately does not know: what a request
//! does once it begins.

use super::{Blocker, Directory, Ended, Lacks, Transaction, Waiting};
use crate::cluster_tile::messages::Ask;
use crate::ledger::{Ledger, Resource};
use crate::types::Tick;

impl Directory {
    /// Begins what has waited for something that has ended.
    pub(super) fn settle(&mut self, now: Tick, ledger: &mut Ledger) {
        self.surrender(now, ledger);
        while !self.ended.is_empty() && !self.waiting.is_empty() {
            let ended = std::mem::take(&mut self.ended);
            self.again(now, &ended, ledger);
            self.surrender(now, ledger);
        }
        self.ended.clear();
    }

    /// Whether what has ended gives back a register or a place in a set that a request waits for.
    fn gives(&self, ended: Ended, waiting: &Waiting) -> bool {
        let ask = &waiting.ask;
        match waiting.blocker.lacks {
            Lacks::Line => false,
            Lacks::Register => {
                ended.register && (!self.divided || ended.owner == self.owner(ask.port))
            }
            Lacks::Way => self.cache.share_set(ended.line, ask.line),
        }
    }

    /// Lets every request that waits try again, the oldest first.
    fn again(&mut self, now: Tick, ended: &[Ended], ledger: &mut Ledger) {
        // Requests that go on waiting move behind those that have not tried yet, so their order stays.
        let (all, mut kept) = (self.waiting.len(), 0);
        for _ in 0..all {
            let waiting = self.waiting.pop_front();
            let mut waiting = waiting.expect("each request tries once");
            let waited = now - waiting.since;
            let victim = self.owner(waiting.ask.port);
            // A register or a place that somebody gives back ends a stretch of each wait for one, whoever takes it.
            let given = ended.iter().find(|ended| self.gives(**ended, &waiting));
            let culprit = given.map_or(waiting.blocker.owner, |given| given.owner);
            let line = waiting.ask.line;
            let mut tried = self.waiting.range(self.waiting.len() - kept..);
            let before = tried.find(|w| w.ask.line == line);
            let blocker = before
                .map(|w| Blocker::line(self.owner(w.ask.port)))
                .or_else(|| self.would_wait(&waiting.ask));
            if blocker == Some(waiting.blocker) && given.is_none() {
                self.waiting.push_back(waiting);
                kept += 1;
                continue;
            }
            let resource = Resource::Directory(self.tile);
            ledger.wait(&mut waiting.ask.account, victim, culprit, resource, waited);
            let outcome = match blocker {
                Some(blocker) => Err((waiting.ask, blocker)),
                None => self.start(now, waiting.ask, ledger),
            };
            if let Err((ask, blocker)) = outcome {
                self.waiting.push_back(Waiting {
                    ask,
                    since: now,
                    blocker,
                });
                kept += 1;
            }
        }
    }

    /// The hart that a request would wait for, because of its line or of miss registers.
    fn would_wait(&self, ask: &Ask) -> Option<Blocker> {
        let line = self.blocker(ask.line).map(Blocker::line);
        line.or_else(|| self.full(ask))
    }

    /// The hart that a request would wait for because no miss register is free.
    pub(super) fn full(&self, ask: &Ask) -> Option<Blocker> {
        let asks = match self.cache.slot_of(ask.line) {
            Some(slot) => self.upgrades(ask, slot),
            None => true,
        };
        if !asks {
            return None;
        }
        let counts = |t: &&Transaction| t.is_below() && (!self.divided || t.ask.port == ask.port);
        let mut reads = self.transactions.iter().filter(counts);
        let first = reads.next()?;
        (1 + reads.count() >= self.limit).then(|| Blocker {
            owner: self.owner(first.ask.port),
            lacks: Lacks::Register,
        })
    }
}
