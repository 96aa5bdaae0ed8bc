//! Decoded blocks that harts of several tiles share.
//!
//! Why it exists: a thousand tiles run the same code at the same addresses, each for a few instructions before the host continues with the
//! next one. If each tile had its own blocks, nearly every block would come from the host's memory, which took longer than executing it.
//! What it deliberately does not know: what tiles are, and when they run.
//!
//! Sharing changes nothing for a hart. It uses a shared block only if the block's bytes were those of its own memory when it would have
//! decoded it ([`Verified`]); like a decoded block, it remains valid until `fence.i`. A hart whose memory has other bytes joins another
//! group, or continues with its own blocks, and keeps the blocks that it may use.

use super::block::{BlockCache, Verified};
use super::bus::Bus;
use super::{Exit, Hart, Stop};
use crate::types::Tick;

/// Decoded blocks for harts of several tiles, which run one after another ([`Hart::run_shared`]). Changes no result and no tick: it only
/// saves memory of the host, and so its time.
#[derive(Default)]
pub struct SharedBlocks {
    /// Each group has harts of one pipeline whose memories have the same code, as far as it was executed.
    #[allow(clippy::vec_box)] // A run swaps the boxes.
    groups: Vec<Box<BlockCache>>,
}

/// Groups of harts with the same code; the harts of further images have blocks of their own.
const GROUPS: usize = 32;

/// Which decoded blocks a hart uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// It has not run yet.
    Undecided,
    /// The blocks of a group.
    Group(usize),
    /// Its own.
    Own,
}

impl SharedBlocks {
    /// The group for a hart with these blocks, from the group `from` on; `None`: it uses its own blocks.
    fn group(&mut self, own: &BlockCache, from: usize) -> Option<usize> {
        let mut later = from..self.groups.len();
        if let Some(group) = later.find(|group| self.groups[*group].fits(own)) {
            return Some(group);
        }
        if from >= GROUPS || self.groups.len() == GROUPS {
            return None;
        }
        self.groups.push(Box::new(own.shared()));
        Some(self.groups.len() - 1)
    }

    /// Gives a group what a hart may use of another one. `None`: the group has other blocks there.
    fn carry(&mut self, from: usize, to: usize, known: &Verified) -> Option<Verified> {
        let pair = self.groups.get_disjoint_mut([from, to]);
        let [from, to] = pair.expect("a hart goes from one group to another one");
        to.take_along(from, known).then(|| known.clone())
    }
}

impl Hart {
    /// [`Hart::run`] for one of several harts with the same code, which share decoded blocks. A hart that was first run this way must not
    /// be run in another way.
    pub fn run_shared<B: Bus>(
        &mut self,
        bus: &mut B,
        horizon: Tick,
        shared: &mut SharedBlocks,
    ) -> Stop {
        const { assert!(B::SHARES_BLOCKS) };
        if self.sharing == Sharing::Undecided {
            // Out of order, a hart looks at its blocks between runs, too.
            self.join(shared, if self.window.is_none() { 0 } else { GROUPS });
        }
        while let Sharing::Group(group) = self.sharing {
            std::mem::swap(&mut self.blocks, &mut shared.groups[group]);
            let stop = self.run(bus, horizon);
            std::mem::swap(&mut self.blocks, &mut shared.groups[group]);
            if !std::mem::take(&mut self.leaves) {
                return stop;
            }
            // It has stopped before a block, and continues there with other blocks.
            self.join(shared, group + 1);
        }
        self.run(bus, horizon)
    }

    /// Joins a group from the group `from` on, or uses its own blocks from now on.
    fn join(&mut self, shared: &mut SharedBlocks, from: usize) {
        let before = match self.sharing {
            Sharing::Group(group) => self.core.verified.take().map(|known| (group, known)),
            Sharing::Undecided | Sharing::Own => None,
        };
        let mut next = from;
        while let Some(group) = shared.group(&self.blocks, next) {
            let verified = match &before {
                None => Some(Verified::new()),
                Some((before, known)) => shared.carry(*before, group, known),
            };
            if verified.is_some() {
                self.sharing = Sharing::Group(group);
                self.core.verified = verified;
                return;
            }
            next = group + 1;
        }
        self.sharing = Sharing::Own;
        if let Some((group, known)) = before {
            self.blocks.clear();
            let fits = self.blocks.take_along(&shared.groups[group], &known);
            assert!(fits, "an empty cache has room for every block");
        }
    }

    /// The hart continues with other blocks.
    pub(super) fn leave_group(&mut self) -> Exit {
        self.leaves = true;
        self.fetched.clear();
        Exit::Suspend(Stop::Horizon)
    }
}
