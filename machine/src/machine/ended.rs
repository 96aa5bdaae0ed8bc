//! The hart that ended a run, its registers and its stack.
//!
//! Why it exists: an unhandled trap ends the run, and the reader wants the call chain. What it deliberately does not know: programs.

use super::{Machine, Outcome};
use crate::crash::{Crashed, PAGE, STACK};
use crate::types::Owner;

/// The register that turns address translation on (privileged specification, section 4.1.11).
const SATP: u16 = 0x180;
/// Number of the stack pointer.
const SP: usize = 2;

impl Machine {
    /// The hart that ended a run: its tile and, if the tile has several harts, its port as the activity.
    pub fn ended_by(&self, outcome: Outcome) -> Option<Owner> {
        let (Outcome::Exit { tile, .. } | Outcome::Unhandled { tile, .. }) = outcome else {
            return None;
        };
        let port = self.cluster(tile).map_or(0, |cluster| {
            let port = cluster.ended_by();
            port.unwrap_or_else(|| {
                panic!("a hart of tile {tile} ended the run, and none of its cluster did")
            })
        });
        Some(Owner::new(tile, port as u16))
    }

    /// The hart whose unhandled trap ended the run, if one did. Stack addresses are physical, so there is no stack if the hart translates
    /// addresses.
    pub fn trapped(&self, outcome: Outcome) -> Option<Crashed> {
        let Outcome::Unhandled { at, trap, .. } = outcome else {
            return None;
        };
        let owner = self.ended_by(outcome)?;
        let hart = match self.cluster(owner.tile) {
            Some(_) => self.cluster_hart(owner.tile, owner.activity.into()),
            None => self.hart(owner.tile),
        };
        let hart = hart.ok()?;
        let registers: [u64; 32] = std::array::from_fn(|number| hart.register(number));
        let translates = hart.csr(SATP).is_some_and(|satp| satp != 0);
        let first = registers[SP] & !(PAGE - 1);
        let mut stack = Vec::new();
        let pages = (0..STACK / PAGE).map_while(|page| first.checked_add(page * PAGE));
        for address in pages.filter(|_| !translates) {
            let mut bytes = vec![0; PAGE as usize];
            // An overrun stack begins below memory.
            if self.peek(owner.tile, address, &mut bytes).is_ok() {
                stack.push((address, bytes));
            }
        }
        // The run ended before the line for the last stores arrived.
        for (store, bytes, value) in hart.waiting_stores() {
            for (at, byte) in (store..).zip(value.to_le_bytes()).take(bytes.into()) {
                let mut pages = stack.iter_mut();
                if let Some(page) = pages.find(|page| page.0 == at & !(PAGE - 1)) {
                    page.1[(at & (PAGE - 1)) as usize] = byte;
                }
            }
        }
        Some(Crashed {
            at,
            owner,
            trap,
            registers,
            stack,
        })
    }
}
