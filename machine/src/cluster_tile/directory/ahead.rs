//! Lines that the second level or a first level fetches ahead.
//!
//! Why it exists: such a line is a transaction like that of a request, in the name of the port that it serves, but nobody waits for
//! it. So it is dropped where a request would wait, and it takes no line from a first level of another port. What it deliberately does
//! not know: which lines are worth it ([`super::super::ahead`], [`super::super::first_level`]).

use super::{Blocker, Directory, Transaction, Waiting};
use crate::cluster_tile::messages::{Ask, Down, Request};
use crate::ledger::Ledger;
use crate::types::{Owner, Tick};

/// Where a line is when it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// In its place.
    Here,
    /// On its way from memory.
    Coming,
    /// Neither.
    Absent,
}

/// The fate of a line that was to be fetched ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseeing {
    /// It is on its way.
    Begun,
    /// It is here, or it comes anyway.
    Known,
    /// A request would have to wait.
    Dropped,
}

impl Directory {
    /// Where a line is.
    pub fn presence(&self, line: u64) -> Presence {
        // A transaction that only wants a line alone, which is here, has not missed.
        let brings = |t: &Transaction| t.ask.line == line && t.looked.missed && t.is_below();
        if self.transactions.iter().any(brings) {
            return Presence::Coming;
        }
        match self.cache.slot_of(line) {
            Some(_) => Presence::Here,
            None => Presence::Absent,
        }
    }

    /// Fetches a line ahead ([`Request::Ahead`]), if the request need not wait for anything.
    pub fn fetch_ahead(&mut self, now: Tick, ask: Ask, ledger: &mut Ledger) -> Foreseeing {
        #[cfg(test)]
        self.note(ask.line, "ahead");
        let waits = self.waiting.iter().any(|w| w.ask.line == ask.line);
        if waits || self.presence(ask.line) != Presence::Absent {
            return Foreseeing::Known;
        }
        match self.start(now, ask, ledger) {
            Ok(()) => Foreseeing::Begun,
            Err(_) => Foreseeing::Dropped,
        }
    }

    /// A request cannot begin: it waits for this hart, unless a first level fetches the line ahead.
    pub(super) fn wait_or_drop(&mut self, now: Tick, ask: Ask, blocker: Blocker) {
        if ask.request == Request::ReadAhead {
            let (line, account) = (ask.line, ask.account);
            return self.out.push((ask.port, Down::Dropped { line, account }));
        }
        self.waiting.push_back(Waiting {
            ask,
            since: now,
            blocker,
        });
    }

    /// The hart of another port that keeps its line, although a first level wants to fetch it ahead: it may have written the line, and
    /// would have to ask for it again.
    pub(super) fn spares(&self, ask: &Ask, slot: usize) -> Option<Owner> {
        let owner = self.holders[slot].owner.filter(|owner| *owner != ask.port);
        let owner = owner.filter(|_| ask.request == Request::ReadAhead);
        owner.map(|port| self.owner(port))
    }

    /// The lines that a request may not replace although they are in its ways: a line that is fetched ahead does not replace lines that
    /// first levels of other ports have. A recall from the port's own first level makes nobody else wait.
    pub(super) fn kept_from(&self, ask: &Ask) -> Vec<u64> {
        if !ask.request.is_ahead() {
            return Vec::new();
        }
        let own = 1u8 << ask.port;
        let others = |line: &u64| {
            let slot = self.cache.slot_of(*line).expect("it is in its set");
            self.holders[slot].all() & !own != 0
        };
        let lines = self.cache.lines_in(self.fillable(ask), ask.line);
        lines.flatten().filter(others).collect()
    }
}
