//! Children of a hostile program: an endless loop, with as much processor time and urgency as the kernel lets it have.

use crate::child::{Child, revoke};
use bulkhead_lib::abi::syscall::{SHARE, Syscall};
use bulkhead_lib::{println, syscall};

/// The parts of a child.
pub struct Heir {
    /// A free selector; the next two are also free.
    pub selector: u16,
    /// The tile capability to derive from.
    pub tile: u16,
    /// The purse.
    pub purse: u16,
    /// Its memory, with its loop and room for a reply at these offsets.
    pub memory: u16,
    pub code: u64,
    pub reply: u64,
    /// Name.
    pub name: &'static str,
    /// The number that it reports when it runs.
    pub number: u64,
    /// What its creator tries first.
    pub wish: Wish,
}

/// What a creator tries first, before it accepts what it gets.
#[derive(Clone, Copy)]
pub enum Wish {
    /// Everything, starting with the most.
    Any,
    /// A share of a period that is longer than any run.
    Period,
    /// A tenth of each millisecond.
    Tenth,
    /// The highest priority of all.
    Urgent,
    /// A capability derived from a derived one.
    Grandchild,
}

impl Heir {
    fn derive(
        &self,
        place: (u16, u16),
        (budget, period): (u64, u64),
        priority: u8,
        idle: u8,
    ) -> bool {
        let request = Syscall::DeriveTile {
            source: place.0,
            target: place.1,
            endpoints: SHARE,
            budget,
            period,
            rate: SHARE,
            burst: SHARE,
            tables: SHARE,
            priority,
            idle,
            activities: SHARE,
            windows: SHARE,
        };
        syscall::call(&request).is_ok()
    }

    fn begin(&self, tile: u16, tile_priority: u8) -> bool {
        let child = Child {
            activity: self.selector + 2,
            tile: (tile, tile_priority),
            purse: self.purse,
            memory: self.memory,
            code: self.code,
            reply: self.reply,
            pager: None,
            name: self.name,
            number: self.number,
        };
        let started = child.start();
        if let Err(error) = started {
            println!("no child at priority {tile_priority}: {error:?}");
        }
        started.is_ok()
    }

    /// A capability with this time for the child, derived twice for a grandchild.
    fn inherit(&self, budget: (u64, u64), priority: u8, idle: u8) -> Option<u16> {
        let (first, second) = (self.selector, self.selector + 1);
        if !self.derive((self.tile, first), budget, priority, idle) {
            return None;
        }
        match self.wish {
            Wish::Grandchild => self
                .derive((first, second), budget, priority, idle)
                .then_some(second),
            _ => Some(first),
        }
    }

    /// Starts the child with as much as it can get.
    pub fn start(&self) -> bool {
        let second = 1_000_000_000;
        let all = [
            (800 * second, 1000 * second),
            (100 * second, 1000 * second),
            (80 * second, 1000 * second),
            (second / 10, second),
            (10_000_000, 100_000_000),
            (800_000, 1_000_000),
            (100_000, 1_000_000),
            (10_000, 100_000),
            (SHARE, 0),
            (0, 0),
        ];
        let budgets = match self.wish {
            Wish::Period => &all[..3],
            Wish::Tenth => &all[6..8],
            _ => &all[..],
        };
        let priorities: &[u8] = match self.wish {
            Wish::Urgent => &[255],
            _ => &[255, 250, 200, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
        };
        for budget in budgets {
            for priority in priorities {
                for idle in [1, 0] {
                    if let Some(tile) = self.inherit(*budget, *priority, idle) {
                        println!("derived {budget:?} of priority {priority}");
                        if self.begin(tile, 255) || self.begin(tile, *priority) {
                            println!("a child with {budget:?} runs at {priority}");
                            return true;
                        }
                    }
                    revoke(self.selector);
                }
            }
        }
        // Without a capability of its own.
        self.begin(self.tile, 255) || self.begin(self.tile, 0)
    }
}
