//! The ledger of a machine: read, kept and emptied.
//!
//! Why it exists: measurements begin in the middle of a run. What it deliberately does not know: what is booked, and who reads it.

use super::Machine;
use crate::ledger::Ledger;

impl Machine {
    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.fabric.ledger
    }

    /// The ledger keeps every transaction from now on. It changes no tick.
    pub fn keep_transactions(&mut self) {
        self.fabric.ledger.keep_transactions();
    }

    /// Forgets all bookings and latencies: measurements start here.
    pub fn clear_ledger(&mut self) {
        self.settle_waits();
        for tile in &mut self.tiles {
            tile.forget_waits(self.now);
        }
        self.fabric.ledger.clear();
    }
}
