//! The guard of a local memory: which other tiles may read and write which ranges of a tile's window.
//!
//! Why it exists: without a guard, every tile of a mesh could write every other tile's memory and start its hart. The guard checks each
//! request that arrives over the network before it asks for a port, by the source tile that the network reports. What it deliberately does
//! not know: the tile's own hart, whose accesses never come here, and what the ranges are for.
//!
//! No software on the chip can change its rules, because they have no address. The loader sets them before the harts start; until then, or
//! if it never does, the guard is open. A refused request costs the network as much as any other; it takes no turn at a port and changes
//! nothing. Its answer has all bits set, as on a bus without a responder, so a lock looks taken and no record looks free.

use crate::hart::RemoteOperation;
use crate::types::{Tick, TileId};

/// The rights of a tile in a range of another tile's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardRule {
    /// The tile that asks.
    pub tile: TileId,
    /// First offset in the window.
    pub from: u64,
    /// The offset after the last one.
    pub to: u64,
    /// Loads are allowed.
    pub read: bool,
    /// Stores are allowed. Atomic operations need both.
    pub write: bool,
}

/// The requests of a tile that were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// The tile that asked.
    pub from: TileId,
    /// How often.
    pub count: u64,
    /// When the first request arrived.
    pub at: Tick,
    /// Its offset in the window.
    pub offset: u64,
    /// It was a write.
    pub write: bool,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Guard {
    entries: usize,
    /// None: open.
    rules: Option<Vec<GuardRule>>,
    /// By requesting tile, in the order of the first refusals: at most one entry per tile of the chip.
    refused: Vec<Refusals>,
}

impl Guard {
    /// An open guard with room for this many rules.
    pub fn new(entries: u32) -> Self {
        Self {
            entries: entries as usize,
            rules: None,
            refused: Vec::new(),
        }
    }

    /// From now on, only this is allowed. False: the guard has no room for that many rules, and nothing changes.
    pub fn set(&mut self, rules: &[GuardRule]) -> bool {
        let fits = rules.len() <= self.entries;
        if fits {
            self.rules = Some(rules.to_vec());
        }
        fits
    }

    /// The refused requests, by requesting tile.
    pub fn refused(&self) -> &[Refusals] {
        &self.refused
    }

    /// Whether a request is allowed. Counts refused requests.
    #[inline]
    pub fn admits(
        &mut self,
        now: Tick,
        from: TileId,
        (offset, bytes): (u64, u8),
        operation: RemoteOperation,
    ) -> bool {
        let Some(rules) = &self.rules else {
            return true;
        };
        let (read, write) = match operation {
            RemoteOperation::Load | RemoteOperation::Reserve => (true, false),
            RemoteOperation::Store(_) => (false, true),
            RemoteOperation::Conditional(_) | RemoteOperation::Modify(..) => (true, true),
        };
        let end = offset + u64::from(bytes);
        let allows = |rule: &GuardRule| {
            let is_inside = rule.from <= offset && end <= rule.to;
            rule.tile == from && is_inside && (rule.read || !read) && (rule.write || !write)
        };
        if rules.iter().any(allows) {
            return true;
        }
        match self.refused.iter_mut().find(|one| one.from == from) {
            Some(known) => known.count += 1,
            None => self.refused.push(Refusals {
                from,
                count: 1,
                at: now,
                offset,
                write,
            }),
        }
        false
    }

    /// The answer to a request that was refused.
    pub fn refusal(operation: RemoteOperation, bytes: u8) -> u64 {
        match operation {
            // It has failed.
            RemoteOperation::Conditional(_) => 1,
            RemoteOperation::Store(_) => 0,
            _ => u64::MAX >> (64 - 8 * u32::from(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        let mut guard = Guard::new(2);
        let rule = |tile, from, to, write| GuardRule {
            tile,
            from,
            to,
            read: true,
            write,
        };
        assert!(guard.set(&[rule(3, 0x100, 0x110, true), rule(4, 0x110, 0x120, false)]));
        guard
    }

    #[test]
    fn an_open_guard_admits_everything_and_has_so_many_entries() {
        let mut guard = Guard::new(1);
        assert!(guard.admits(0, 7, (0x7E00, 8), RemoteOperation::Store(1)));
        assert!(guard.refused().is_empty());
        let rule = GuardRule {
            tile: 1,
            from: 0,
            to: 8,
            read: true,
            write: true,
        };
        assert!(!guard.set(&[rule, rule]), "it has one entry");
        assert!(guard.admits(0, 7, (0, 8), RemoteOperation::Load));
        assert!(guard.set(&[]), "nobody may do anything");
        assert!(!guard.admits(0, 7, (0, 8), RemoteOperation::Load));
    }

    /// Every access of 1, 2, 4 and 8 bytes around the ranges, of each kind, checked against the text of the rules.
    #[test]
    fn what_is_inside_a_range_is_admitted_and_nothing_else() {
        let kinds = [
            (RemoteOperation::Load, false),
            (RemoteOperation::Store(0), true),
            (RemoteOperation::Reserve, false),
            (RemoteOperation::Conditional(0), true),
        ];
        let mut refused = 0;
        let mut guard = guard();
        for tile in [2, 3, 4] {
            for bytes in [1u8, 2, 4, 8] {
                for offset in (0xF0..0x130).step_by(bytes.into()) {
                    for (operation, writes) in kinds {
                        let last = offset + u64::from(bytes) - 1;
                        let wanted = match tile {
                            3 => (0x100..=0x10F).contains(&offset) && last <= 0x10F,
                            4 => (0x110..=0x11F).contains(&offset) && last <= 0x11F && !writes,
                            _ => false,
                        };
                        let got = guard.admits(9, tile, (offset, bytes), operation);
                        assert_eq!(got, wanted, "{tile} {offset:#x} {bytes} {operation:?}");
                        refused += u64::from(!wanted);
                    }
                }
            }
        }
        let counted: u64 = guard.refused().iter().map(|one| one.count).sum();
        assert_eq!(counted, refused);
        let first = guard.refused()[0];
        assert_eq!(
            (first.from, first.at, first.offset, first.write),
            (2, 9, 0xF0, false)
        );
    }

    #[test]
    fn a_refused_lock_looks_taken() {
        assert_eq!(Guard::refusal(RemoteOperation::Load, 1), 0xFF);
        assert_eq!(Guard::refusal(RemoteOperation::Load, 8), u64::MAX);
        assert_eq!(Guard::refusal(RemoteOperation::Conditional(5), 4), 1);
        assert_eq!(Guard::refusal(RemoteOperation::Store(5), 4), 0);
    }
}
