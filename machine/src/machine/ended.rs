//! The owner whose hart ended a run, and the contents of harts' registers and stacks.
//!
//! Why it exists: the reader of a report about an unhandled trap, or about a program that did not finish, wants the chain of calls. What it
//! deliberately does not know: programs.

use super::{Machine, Outcome};
use crate::crash::{Crashed, PAGE, Running, STACK, physical};
use crate::dtu::Dtu;
use crate::hart::{Hart, Privilege};
use crate::types::{Owner, TileId};
use bulkhead_abi::dtu::{Endpoint, NO_ENDPOINT};

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
        let translates = hart.csr(SATP).is_some_and(|satp| satp != 0);
        let registers = std::array::from_fn(|number| hart.register(number));
        let stack = match translates {
            true => Vec::new(),
            false => self.stack(owner.tile, hart, 0),
        };
        Some(Crashed {
            at,
            owner,
            trap,
            registers,
            stack,
        })
    }

    /// The programs that are in user mode now, on tiles with a unit.
    pub fn running(&self) -> Vec<Running> {
        let tiles = self.config.tiles.iter().map(|tile| tile.id);
        let on = |tile| {
            let (hart, unit) = (self.hart(tile).ok()?, self.unit(tile).ok()?);
            if hart.privilege() != Privilege::User || hart.is_halted() {
                return None;
            }
            let owner = unit.current_owner();
            Some(Running {
                owner,
                pc: hart.pc(),
                registers: std::array::from_fn(|number| hart.register(number)),
                stack: self.stack(tile, hart, hart.csr(SATP).unwrap_or(0)),
                spent: spent(unit, owner),
                awaits: unit.sleeping().map(|endpoint| self.senders(tile, endpoint)),
            })
        };
        tiles.filter_map(on).collect()
    }

    /// The activities that can send a message to an endpoint of a tile, or to any of its endpoints.
    fn senders(&self, tile: TileId, endpoint: u16) -> Vec<Owner> {
        let tiles = self.config.tiles.iter().map(|tile| tile.id);
        let units = tiles.filter_map(|from| Some((from, self.unit(from).ok()?)));
        let gates = units.flat_map(|(from, unit)| {
            let all = (0..unit.endpoint_count()).map(move |index| unit.endpoint(index));
            all.filter_map(move |one| match one {
                Endpoint::Send(gate) => Some((from, gate)),
                _ => None,
            })
        });
        let leads = gates.filter(|(_, gate)| {
            let is_any = endpoint == NO_ENDPOINT || gate.target_endpoint == endpoint;
            gate.target_tile == tile && is_any
        });
        let mut owners: Vec<Owner> = leads
            .map(|(from, gate)| Owner::new(from, gate.activity))
            .collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The pages above a hart's stack pointer that are mapped, as its loads would find them.
    fn stack(&self, tile: TileId, hart: &Hart, translation: u64) -> Vec<(u64, Vec<u8>)> {
        let word = |address: u64| {
            let mut bytes = [0; 8];
            self.peek(tile, address, &mut bytes).ok()?;
            Some(u64::from_le_bytes(bytes))
        };
        let first = hart.register(SP) & !(PAGE - 1);
        let pages = (0..STACK / PAGE).map_while(|page| first.checked_add(page * PAGE));
        let pages = pages.filter_map(|address| {
            let from = physical(translation, address, &word)?;
            let mut bytes = vec![0; PAGE as usize];
            // An overrun stack begins below memory.
            self.peek(tile, from, &mut bytes).ok()?;
            // The latest stores may still wait for their lines.
            for (store, length, value) in hart.waiting_stores() {
                for (at, byte) in (store..).zip(value.to_le_bytes()).take(length.into()) {
                    if at & !(PAGE - 1) == from {
                        bytes[(at & (PAGE - 1)) as usize] = byte;
                    }
                }
            }
            Some((address, bytes))
        });
        pages.collect()
    }
}

/// Tiles to which an activity may send at some endpoint, and has no credits left.
fn spent(unit: &Dtu, owner: Owner) -> Vec<TileId> {
    let all = (0..unit.endpoint_count()).filter_map(|index| match unit.endpoint(index) {
        Endpoint::Send(gate) if gate.activity == owner.activity && !gate.reply => Some(gate),
        _ => None,
    });
    let empty = all.filter(|gate| gate.credits == 0 && gate.credits_max != 0);
    let mut tiles: Vec<TileId> = empty.map(|gate| gate.target_tile).collect();
    tiles.sort_unstable();
    tiles.dedup();
    tiles
}
