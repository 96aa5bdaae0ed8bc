//! Requests that wait at a directory.
//!
//! Why it exists: they try again whenever something ends, the oldest first, and here is decided to whom each part of a wait is booked: for a line,
//! to the hart before; for a register or a place in a set, to whoever gives one back that the request may have. What it deliberately does not know: what a request
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
            Lacks::Way => {
                let ways = self.fillable(ask);
                let may = |slot| self.cache.is_in(slot, ways, ask.line);
                ended.slot.is_some_and(may)
            }
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
            let same = |b: Blocker| {
                b.lacks == waiting.blocker.lacks && {
                    // For a register or a place, it waits for nobody else before somebody has given one back.
                    b.lacks != Lacks::Line || b.owner == waiting.blocker.owner
                }
            };
            if given.is_none() && blocker.is_some_and(same) {
                self.waiting.push_back(waiting);
                kept += 1;
                continue;
            }
            let resource = Resource::Directory(self.tile);
            ledger.wait(&mut waiting.ask.account, victim, culprit, resource, waited);
            if let Some(blocker) = blocker {
                self.waiting.push_back(Waiting {
                    ask: waiting.ask,
                    since: now,
                    blocker,
                });
                kept += 1;
            } else if let Err((ask, blocker)) = self.start(now, waiting.ask, ledger) {
                panic!("{ask:?} need not wait, and does not begin because of {blocker:?}");
            }
        }
    }

    /// What a request would wait for.
    fn would_wait(&self, ask: &Ask) -> Option<Blocker> {
        let line = self.blocker(ask.line).map(Blocker::line);
        let register = || self.full(ask);
        line.or_else(register).or_else(|| self.crowded(ask))
    }

    /// The ways of its set that a request may fill.
    pub(super) fn fillable(&self, ask: &Ask) -> u64 {
        self.cache.existing(self.capacity.ways(ask, ask.fill()))
    }

    /// The hart that a request would wait for because every line that it might replace is busy: that of the oldest transaction about one of
    /// them, or of another cluster.
    pub(super) fn crowded(&self, ask: &Ask) -> Option<Blocker> {
        if self.manages(ask).is_some() || self.cache.slot_of(ask.line).is_some() {
            return None;
        }
        let ways = self.fillable(ask);
        let lines = || self.cache.lines_in(ways, ask.line);
        let wanted = |line| self.surrenders.wanted_by(line);
        let about = |line| self.transactions.iter().position(|t| t.is_about(line));
        let busy = |line| about(line).is_some() || wanted(line).is_some();
        if !lines().all(|line| line.is_some_and(busy)) {
            return None;
        }
        let oldest = lines().flatten().filter_map(about).min();
        let oldest = oldest.map(|at| self.owner(self.transactions[at].ask.port));
        let owner = oldest.or_else(|| lines().flatten().find_map(wanted));
        Some(Blocker {
            owner: owner.expect("only transactions and other clusters use lines"),
            lacks: Lacks::Way,
        })
    }

    /// The hart that a request would wait for because no miss register is free.
    pub(super) fn full(&self, ask: &Ask) -> Option<Blocker> {
        if self.manages(ask).is_some() {
            return None;
        }
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
