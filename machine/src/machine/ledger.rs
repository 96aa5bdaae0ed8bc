//! The ledger of a machine: reading, keeping and clearing it.
//!
//! Why it exists: measurements begin in the middle of a run. What it deliberately does not know: what is recorded, and what uses
//! it.

use super::Machine;
use crate::ledger::Ledger;
use crate::types::Owner;

impl Machine {
    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.fabric.ledger
    }

    /// From now on, the ledger keeps every transaction. This changes no tick.
    pub fn keep_transactions(&mut self) {
        self.fabric.ledger.keep_transactions();
    }

    /// From now on, the ledger keeps the lines that a hart of a cluster asks memory for. This changes no tick.
    pub fn keep_asked(&mut self, owner: Owner) {
        self.fabric.ledger.keep_asked(owner);
    }

    /// Drops all entries and latencies: measurements start here.
    pub fn clear_ledger(&mut self) {
        self.settle_waits();
        for tile in &mut self.tiles {
            tile.forget_waits(self.now);
        }
        self.fabric.ledger.clear();
    }
}
