//! Processor time in tile capabilities: the derivations allowed, and the moment from which a budget is unused.
//!
//! Why it exists: an owner of time may divide it, but must not gain time that way in any window: not by a longer or shorter period, not by
//! a higher priority, and not by giving a used-up budget to a new activity. What it deliberately does not know: which activity runs, and
//! what admission promises.

use crate::node::{NodeId, ORIGIN};
use crate::object::{Object, Quota, Tile, Time, UNREGULATED};
use crate::space::Space;
use crate::{Error, Result};
use bulkhead_abi::time::charge;

const CPU: usize = Quota::Cpu as usize;

/// The terms of processor time in a derivation, apart from the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Period of the budget in nanoseconds.
    pub period: u64,
    /// The highest priority.
    pub priority: u8,
    /// Whether capabilities without a budget may be derived from it.
    pub idle: bool,
}

impl Time {
    /// Nanoseconds that it takes from each period of the capability that it is derived from.
    pub(crate) fn taken(&self, of: &Time) -> Result<u64> {
        match self.budget {
            0 => Ok(0),
            // This value would mean no limit.
            UNREGULATED => Err(Error::OutOfBounds),
            budget => charge(budget, self.period, of.period).ok_or(Error::OutOfBounds),
        }
    }
}

impl Space {
    /// The time of a capability derived from `parent` with this budget, or with the parent's.
    pub(crate) fn narrowed(
        &self,
        parent: &Tile,
        budget: Option<u64>,
        terms: Terms,
    ) -> Result<Time> {
        let without_budget = budget == Some(0) || terms.idle;
        if terms.priority > parent.time.priority || without_budget && !parent.time.idle {
            return Err(Error::NoQuota);
        }
        let (budget, period) = match budget {
            Some(budget) => (budget, terms.period),
            None => (parent.time.budget, parent.time.period),
        };
        Ok(Time {
            budget,
            period,
            priority: terms.priority,
            // Without a budget, the capability is for idle time only.
            idle: without_budget,
            last: 0,
        })
    }

    /// An activity stops using the time of a tile capability of its own: the used time comes back one period later.
    pub fn stop_using(&mut self, owner: NodeId, now: u64) {
        if let Object::Tile(tile) = &mut self.nodes[owner.index()].object {
            tile.time.last = tile.time.last.max(now);
        }
    }

    /// The moment from which earlier use no longer counts, of the time of a tile capability or of its ancestors: a budget that begins
    /// earlier could be used twice in a period.
    pub fn fresh_from(&mut self, owner: NodeId) -> u64 {
        let mut fresh = 0;
        let mut node = owner;
        while let Ok(tile) = self.tile(node) {
            let Time { last, period, .. } = tile.time;
            self.visit(1);
            if last > 0 {
                fresh = fresh.max(last.saturating_add(period));
            }
            let origin = self.nodes[node.index()].edges[ORIGIN].to;
            if !origin.is_some() {
                break;
            }
            let Ok(parent) = self.tile(origin) else { break };
            node = parent.owner[CPU];
        }
        fresh
    }

    /// A tile capability goes: the one that its time came from must record when it was last used.
    pub(crate) fn pass_on(&mut self, tile: &Tile, id: NodeId, parent: &Tile) {
        if tile.owner[CPU] == id {
            self.stop_using(parent.owner[CPU], tile.time.last);
        }
    }
}
