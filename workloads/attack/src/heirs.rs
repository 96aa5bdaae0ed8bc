//! Children of a hostile program: an endless loop, with as much processor time and urgency as the kernel lets it have.

use bulkhead_lib::abi::syscall::{MAP_EXECUTE, MAP_READ, SHARE, Syscall};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::{println, syscall};

/// `j .`, as a page of instructions would begin.
pub const LOOP: u32 = 0x0000_006f;
/// Where a child finds its loop.
const ADDRESS: u64 = 0x1000_0000;

/// What a child is made of.
pub struct Heir {
    /// A free selector, and the next ones.
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
}

impl Heir {
    fn derive(&self, (budget, period): (u64, u64), priority: u8, idle: u8) -> bool {
        let request = Syscall::DeriveTile {
            source: self.tile,
            target: self.selector,
            endpoints: SHARE,
            budget,
            period,
            rate: SHARE,
            burst: SHARE,
            tables: SHARE,
            priority,
            idle,
        };
        syscall::call(&request).is_ok()
    }

    fn begin(&self, tile: u16, tile_priority: u8) -> bool {
        let activity = self.selector + 1;
        let calls = [
            Syscall::CreateActivity {
                target: activity,
                tile,
                purse: self.purse,
                memory: self.memory,
                reply: self.reply,
                priority: 0,
                tile_priority,
                name: Name::new(self.name).unwrap_or_default(),
            },
            Syscall::Map {
                activity,
                address: ADDRESS,
                offset: self.code,
                pages: 1,
                rights: MAP_READ | MAP_EXECUTE,
            },
            Syscall::Start {
                activity,
                entry: ADDRESS,
                stack: 0,
            },
        ];
        for request in calls {
            if let Err(error) = syscall::call(&request) {
                println!("no child at priority {tile_priority}: {error:?}");
                let request = Syscall::Revoke {
                    selector: activity,
                    keep: 0,
                };
                let _ = syscall::call(&request);
                return false;
            }
        }
        true
    }

    /// Starts the child as strong as it can be.
    pub fn start(&self) -> bool {
        let second = 1_000_000_000;
        let budgets = [
            (800 * second, 1000 * second),
            (80 * second, 1000 * second),
            (second / 10, second),
            (10_000_000, 100_000_000),
            (800_000, 1_000_000),
            (100_000, 1_000_000),
            (10_000, 100_000),
            (SHARE, 0),
            (0, 0),
        ];
        for budget in budgets {
            for priority in [255, 250, 200, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0] {
                for idle in [1, 0] {
                    if !self.derive(budget, priority, idle) {
                        continue;
                    }
                    println!("derived {budget:?} of priority {priority}");
                    if self.begin(self.selector, 255) || self.begin(self.selector, priority) {
                        println!("a child with {budget:?} runs at {priority}");
                        return true;
                    }
                    let request = Syscall::Revoke {
                        selector: self.selector,
                        keep: 0,
                    };
                    let _ = syscall::call(&request);
                }
            }
        }
        // Without a capability of its own.
        self.begin(self.tile, 255) || self.begin(self.tile, 0)
    }
}
