//! Memory is cleared before another activity gets it.
//!
//! Why it exists: no activity may see what another left in its memory. What it deliberately does not know: which activities access
//! the memory; the capabilities record whether a piece was given to an activity other than the one that cut it.
//!
//! Memory is empty at boot, so only returned memory must be cleared, and only when it is cut out again: then the call takes one
//! step for each [`PIECE`] bytes of the new piece that were used, at the priority of the activity that cuts. Data that a holder
//! itself wrote into memory that it cuts later stays there. TileMux clears page tables when it uses them.

use super::revoke::Job;
use super::{Reply, System, Ticket};
use crate::hardware::{Hardware, Region};
use alloc::boxed::Box;
use bulkhead_abi::syscall::SyscallError;
use bulkhead_capabilities::{Memory, NodeId, Removed};
use bulkhead_common::payer::{Boot, Reserved};

/// Bytes that are cleared in one step.
pub const PIECE: u64 = 2048;
/// Most ranges that are remembered; beyond that, the two closest become one, with the memory between them.
const RANGES_MAX: usize = 64;

/// A piece of memory that is being cleared for its new owner.
#[derive(Clone, Debug)]
pub(super) struct Clearing {
    ticket: Ticket,
    node: NodeId,
    birth: u64,
    /// The part that is left.
    left: Region,
    reply: Reply,
}

/// Memory that was in use: ranges that do not touch.
#[derive(Clone, Debug)]
pub(super) struct Dirty(Reserved<Boot, Region>);

impl Default for Dirty {
    fn default() -> Self {
        Self(Reserved::with_room(RANGES_MAX + 1))
    }
}

fn end(region: &Region) -> u64 {
    region.base + region.size
}

fn hull(a: Region, b: &Region) -> Region {
    let base = a.base.min(b.base);
    let size = end(&a).max(end(b)) - base;
    Region { base, size, ..a }
}

impl Dirty {
    fn add(&mut self, region: Region) {
        // They are in order, so those that touch it are adjacent.
        let place = |r: &Region, at: u64| (r.tile, at);
        let first = |r: &Region| place(r, end(r)) < place(&region, region.base);
        let first = self.0.partition_point(first);
        let last = |r: &Region| place(r, r.base) <= place(&region, end(&region));
        let behind = first + self.0[first..].partition_point(last);
        if first == behind {
            // There is always room for one more than remain here.
            let _ = self.0.push(region);
            self.0[first..].rotate_right(1);
        } else {
            let ends = hull(self.0[first], &self.0[behind - 1]);
            self.0[first] = hull(ends, &region);
            self.0.drain(first + 1..behind);
        }
        if self.0.len() > RANGES_MAX {
            let pairs = self.0.windows(2).enumerate();
            let same = pairs.filter(|(_, pair)| pair[0].tile == pair[1].tile);
            let closest = same.min_by_key(|(_, pair)| pair[1].base - end(&pair[0]));
            if let Some((index, _)) = closest {
                let next = self.0.remove(index + 1);
                self.0[index] = hull(self.0[index], &next);
            }
        }
    }

    /// The first part of a region that was in use.
    fn first(&self, region: &Region) -> Option<Region> {
        let parts = self.0.iter().filter(|r| r.tile == region.tile);
        let mut parts = parts.map(|r| {
            let base = r.base.max(region.base);
            let size = end(r).min(end(region)).saturating_sub(base);
            Region { base, size, ..*r }
        });
        parts.find(|part| part.size > 0)
    }

    /// A part of a range is clear.
    fn clean(&mut self, part: &Region) {
        let holds = |r: &Region| r.tile == part.tile && r.base <= part.base && end(part) <= end(r);
        let Some(index) = self.0.iter().position(holds) else {
            return;
        };
        let whole = self.0.remove(index);
        let before = Region {
            size: part.base - whole.base,
            ..whole
        };
        let after = Region {
            base: end(part),
            size: end(&whole) - end(part),
            ..whole
        };
        for rest in [before, after] {
            if rest.size > 0 {
                self.add(rest);
            }
        }
    }
}

impl System {
    /// A piece of memory goes back to its origin; its users may have left data there.
    pub(super) fn soil(&mut self, removed: &Removed, memory: &Memory) {
        let foreign = |origin: NodeId| self.space.holder_of(origin) != removed.holder;
        if memory.is_piece() && (memory.was_shared() || removed.origin.is_some_and(foreign)) {
            self.dirty.add(Region::of(memory));
        }
    }

    /// Begins to clear a piece of memory that was just cut out. Returns whether it must be cleared.
    pub(super) fn clear(
        &mut self,
        ticket: Ticket,
        node: NodeId,
        memory: &Memory,
        reply: Reply,
    ) -> bool {
        let left = Region::of(memory);
        if self.dirty.first(&left).is_none() {
            return false;
        }
        let birth = self.space.birth(node);
        self.space.prepare(node);
        let clearing = Clearing {
            ticket,
            node,
            birth,
            left,
            reply,
        };
        self.later(ticket, Job::Clear(Box::new(clearing)));
        true
    }

    /// Clears one piece. Returns whether there is more.
    pub(super) fn clear_step(
        &mut self,
        hardware: &mut impl Hardware,
        clearing: &mut Clearing,
    ) -> bool {
        if !self.space.is_preparing(clearing.node, clearing.birth) {
            self.answer(clearing.ticket, Err(SyscallError::Revoked));
            return false;
        }
        let Some(part) = self.dirty.first(&clearing.left) else {
            self.space.ready(clearing.node);
            self.answer(clearing.ticket, Ok(clearing.reply));
            return false;
        };
        let piece = Region {
            size: part.size.min(PIECE),
            ..part
        };
        hardware.clear(piece);
        self.dirty.clean(&piece);
        let stop = end(&clearing.left);
        clearing.left.base = end(&piece);
        clearing.left.size = stop - clearing.left.base;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn region(base: u64, size: u64) -> Region {
        Region {
            tile: 8,
            base,
            size,
        }
    }

    proptest! {
        /// Against a table of bytes: everything used is found, and nothing is cleared twice without need.
        #[test]
        fn all_that_was_used_is_found(steps in proptest::collection::vec((any::<bool>(), 0u64..4000, 1u64..60), 1..300)) {
            let mut dirty = Dirty::default();
            let mut bytes = [false; 4096];
            for (used, base, size) in steps {
                let range = base as usize..(base + size) as usize;
                if used {
                    dirty.add(region(base, size));
                    bytes[range].fill(true);
                } else {
                    let mut left = region(base, size);
                    let mut found = vec![];
                    while let Some(part) = dirty.first(&left) {
                        dirty.clean(&part);
                        prop_assert!(part.base >= left.base && end(&part) <= end(&left));
                        found.push(part);
                        left = region(end(&part), end(&left) - end(&part));
                    }
                    for at in range {
                        let inside = |p: &Region| (p.base..end(p)).contains(&(at as u64));
                        prop_assert!(!bytes[at] || found.iter().any(inside));
                        bytes[at] = false;
                    }
                }
                prop_assert!(dirty.0.len() <= RANGES_MAX);
            }
        }
    }
}
