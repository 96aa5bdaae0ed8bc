//! Lines that other clusters want from this one (decision record 0006).
//!
//! Why it exists: a home agent in front of each memory decides in which order clusters get a line, as the directory does for the first
//! levels of one cluster. To the home, the whole cluster is like one first level: it gives a line up, or keeps it shared. What it
//! deliberately does not know: other clusters, and times.
//!
//! A question of the home never waits for an answer of the home: if this cluster has asked for the line itself, the home has not served
//! that request yet, so the line is not here. It waits only for what ends without the home: answers of first levels, and acknowledgements
//! of lines on their way to memory.

use super::super::messages::{Below, Port};
use super::{Directory, Ended, Management, Memory};
use crate::ledger::{Ledger, Resource};
use crate::noc::{Account, Surrender};
use crate::types::{Owner, Tick, inline};

/// A line that the home wants.
#[derive(Clone, Debug)]
struct Wanted {
    line: u64,
    surrender: Surrender,
    /// The hart of another cluster for which the home wants it.
    owner: Owner,
    account: Account,
    /// It waits for what is under way here for this hart.
    blocker: Option<Owner>,
    /// First levels have been probed, and these have not answered.
    begun: bool,
    probed: u8,
    /// The port that held the line longest with a reservation, and for how long.
    held: (Port, Tick),
}

/// All lines that the home wants: at most one question per line, and as many lines as other clusters have requests under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Surrenders {
    wanted: Vec<Wanted>,
}

impl Surrenders {
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The hart for which the home wants a line, if it wants the line.
    pub fn wanted_by(&self, line: u64) -> Option<Owner> {
        let mut wanted = self.wanted.iter();
        wanted.find(|w| w.line == line).map(|w| w.owner)
    }

    /// A first level has answered a probe. False: the probe was not for the home.
    pub fn answered(&mut self, port: Port, line: u64, held: Tick) -> bool {
        let asked = |w: &&mut Wanted| w.line == line && w.probed >> port & 1 != 0;
        let Some(wanted) = self.wanted.iter_mut().find(asked) else {
            return false;
        };
        wanted.probed &= !(1 << port);
        if held > wanted.held.1 {
            wanted.held = (port, held);
        }
        true
    }
}

/// The state that a question of the home finds.
enum Way {
    /// The line can be taken, if it is here.
    Free,
    /// This cluster does not have the line yet.
    Gone,
    /// Something is under way for this hart, which ends without the home.
    Blocked(Owner),
}

impl Directory {
    /// The home wants a line for a hart of another cluster.
    pub fn want(
        &mut self,
        now: Tick,
        line: u64,
        (surrender, owner, account): (Surrender, Owner, Account),
        ledger: &mut Ledger,
    ) {
        #[cfg(test)]
        self.note(
            line,
            match surrender {
                Surrender::Share => "home: share",
                Surrender::Give => "home: give up",
                Surrender::Discard => "home: discard",
            },
        );
        let twice = self.surrenders.wanted_by(line);
        assert!(twice.is_none(), "{line:#x} is wanted twice: {twice:?}");
        self.surrenders.wanted.push(Wanted {
            line,
            surrender,
            owner,
            account,
            blocker: None,
            begun: false,
            probed: 0,
            held: (0, 0),
        });
        self.settle(now, ledger);
    }

    fn way(&self, line: u64) -> Way {
        // Its bytes must be in memory before the home hears that the line is gone.
        if let Some((_, port, _)) = self.writing.iter().find(|w| w.0 == line) {
            return Way::Blocked(self.owner(*port));
        }
        let Some(transaction) = self.transactions.iter().find(|t| t.is_about(line)) else {
            return Way::Free;
        };
        let blocked = Way::Blocked(self.owner(transaction.ask.port));
        if transaction.recalls(line) {
            return blocked;
        }
        match transaction.memory {
            // The probes are about the line whose place it takes, or all have given up this line.
            Memory::Asked if transaction.probed == 0 || transaction.victim.is_some() => Way::Gone,
            Memory::Elsewhere => Way::Free,
            _ => blocked,
        }
    }

    /// Goes on with what the home wants, as far as possible. This comes before requests that wait.
    pub(super) fn surrender(&mut self, now: Tick, ledger: &mut Ledger) {
        let mut at = 0;
        while at < self.surrenders.wanted.len() {
            match self.surrender_one(at, now, ledger) {
                true => at = 0,
                false => at += 1,
            }
        }
    }

    /// Returns whether the question has been answered.
    fn surrender_one(&mut self, at: usize, now: Tick, ledger: &mut Ledger) -> bool {
        let resource = Resource::Directory(self.tile);
        let line = self.surrenders.wanted[at].line;
        let mut there = self.cache.slot_of(line);
        if !self.surrenders.wanted[at].begun {
            let way = self.way(line);
            let wanted = &mut self.surrenders.wanted[at];
            if let Some(blocker) = wanted.blocker.take() {
                let waited = now - wanted.account.accounted();
                ledger.wait(&mut wanted.account, wanted.owner, blocker, resource, waited);
            }
            match way {
                Way::Blocked(blocker) => {
                    wanted.blocker = Some(blocker);
                    return false;
                }
                Way::Gone => there = None,
                Way::Free => {}
            }
            wanted.begun = true;
            let keep = wanted.surrender == Surrender::Share;
            if let Some(slot) = there {
                let holders = self.holders[slot];
                wanted.probed = match keep {
                    true => holders.owner.map_or(0, |owner| 1 << owner),
                    false => holders.all(),
                };
                let (probed, by) = (wanted.probed, wanted.owner);
                self.probe(line, probed, keep, by);
            } else {
                // It has no place, or that of a line that is still to come.
                self.surrendered(at, now, None, ledger);
                return true;
            }
        }
        if self.surrenders.wanted[at].probed != 0 {
            return false;
        }
        self.surrendered(at, now, there, ledger);
        true
    }

    /// No port that must give up the line still holds it. Answers the home.
    fn surrendered(&mut self, at: usize, now: Tick, slot: Option<usize>, ledger: &mut Ledger) {
        let mut wanted = self.surrenders.wanted.remove(at);
        let line = wanted.line;
        let (holder, held) = wanted.held;
        let rest = now - wanted.account.accounted();
        let held = held.min(rest);
        wanted.account.service += rest - held;
        let (culprit, resource) = (self.owner(holder), Resource::Reservation(self.tile));
        ledger.wait(&mut wanted.account, wanted.owner, culprit, resource, held);
        let kept = slot.is_some() && wanted.surrender == Surrender::Share;
        let mut bytes = None;
        if let Some(slot) = slot {
            let dirty = self.cache.is_dirty(line);
            if dirty && wanted.surrender != Surrender::Discard {
                let there = self.cache.line(line).expect("it is here");
                bytes = Some(Box::new(inline(there)));
            }
            let holders = &mut self.holders[slot];
            if kept {
                assert!(holders.owner.is_none(), "{line:#x} is shared: {holders:?}");
                holders.elsewhere = true;
                if dirty {
                    self.cache.mark_clean(line);
                }
            } else {
                assert!(holders.all() == 0, "{line:#x} is gone: {holders:?}");
                self.capacity.free(slot);
                self.cache.invalidate(line);
            }
        }
        self.below.push(Below::Surrendered {
            line,
            owner: wanted.owner,
            kept,
            bytes,
            account: wanted.account,
        });
        self.ended.push(Ended {
            owner: wanted.owner,
            slot,
            register: false,
        });
    }

    /// The other clusters have performed a cache-management operation: now this one does. `account` continues that of the request.
    pub fn managed(&mut self, now: Tick, line: u64, account: Account, ledger: &mut Ledger) {
        #[cfg(test)]
        self.note(line, "home: managed");
        let asked =
            |t: &super::Transaction| t.ask.line == line && matches!(t.memory, Memory::Elsewhere);
        let at = self.transactions.iter().position(asked);
        let at = at.unwrap_or_else(|| panic!("nobody managed {line:#x}"));
        let transaction = &mut self.transactions[at];
        transaction.ask.account = account;
        // A home has one request for a line at a time: it has the answer to its last question, and its next one comes behind this.
        let wanted = self.surrenders.wanted_by(line);
        assert!(
            wanted.is_none(),
            "{line:#x} is managed and wanted: {wanted:?}"
        );
        self.manage_here(at, now, ledger);
        self.settle(now, ledger);
    }

    fn manage_here(&mut self, at: usize, now: Tick, ledger: &mut Ledger) {
        let transaction = &mut self.transactions[at];
        transaction.memory = Memory::Nothing;
        let (line, request) = (transaction.ask.line, transaction.ask.request);
        let keep = request == super::Request::Manage(Management::Clean);
        let slot = self.cache.slot_of(line);
        let holders = slot.map_or_else(super::Holders::default, |slot| self.holders[slot]);
        let probed = match keep {
            true => holders.owner.map_or(0, |owner| 1 << owner),
            false => holders.all(),
        };
        self.transactions[at].probed = probed;
        let by = self.owner(self.transactions[at].ask.port);
        self.probe(line, probed, keep, by);
        self.proceed(at, now, ledger);
    }
}
