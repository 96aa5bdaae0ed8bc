//! The flush of a capacity controller: every line that one RCID has filled leaves the cluster.
//!
//! Why it exists: it is the only operation that takes long. The controller looks at one set in each cycle; a line that has to leave has a
//! turn at its bank and is probed and written back like that of a `cbo.flush`, one line after the other. It visits each set once, so it
//! ends even if the RCID's harts go on filling; what they fill behind it stays. It deliberately does not know: registers.

use super::capacity::{Control, Outcome};
use super::directory::Fill;
use super::messages::{Ask, Port, Request};
use super::second_level::SecondLevel;
use crate::hart::QosIds;
use crate::ledger::Ledger;
use crate::noc::{Account, Transaction};
use crate::types::{Owner, Tick};
use bulkhead_abi::cbqri::allocation::SUCCESS;

/// A flush that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    /// The hart that ordered it, and to which its waits are booked.
    by: Port,
    rcid: u16,
    what: Fill,
    register: Control,
    set: usize,
    /// Ways of the set before this one have been visited.
    way: usize,
}

impl Flush {
    pub fn new(by: Port, rcid: u16, what: Fill, register: Control) -> Self {
        Self {
            by,
            rcid,
            what,
            register,
            set: 0,
            way: 0,
        }
    }
}

impl SecondLevel {
    /// Looks at a set.
    pub(super) fn scan(&mut self, now: Tick, ledger: &mut Ledger) {
        let flush = self.flush.as_mut().expect("a flush looks at sets");
        let at = (flush.set, flush.way);
        match self.directory.filled_by(at, flush.rcid, flush.what) {
            Ok((way, line)) => {
                flush.way = way + 1;
                let ask = Ask {
                    port: flush.by,
                    line,
                    request: Request::Reclaim(flush.what),
                    ids: QosIds {
                        rcid: flush.rcid,
                        mcid: 0,
                    },
                    account: Account::new(now),
                };
                self.turn(now, ask, ledger);
            }
            Err(false) => {
                (flush.set, flush.way) = (flush.set + 1, 0);
                self.look_at_next_set(now);
            }
            Err(true) => {
                self.ended = Some(Outcome {
                    register: flush.register,
                    status: SUCCESS,
                    value: None,
                });
                self.flush = None;
            }
        }
    }

    /// Continues the flush when a line has left.
    pub(super) fn reclaimed(&mut self, now: Tick, ledger: &mut Ledger) {
        if let Some((port, account)) = self.directory.reclaimed.pop() {
            let owner = Owner::new(self.tile, port.into());
            ledger.complete(owner, Transaction::CacheWrite, &account, now);
            self.look_at_next_set(now);
        }
    }
}
