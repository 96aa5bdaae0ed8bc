//! A child that a hostile program starts: an endless loop.

use bulkhead_lib::abi::syscall::{MAP_EXECUTE, MAP_READ, Syscall, SyscallError};
use bulkhead_lib::abi::words::Name;
use bulkhead_lib::syscall;

/// The code of a child: it makes a check marker of its stack pointer, 16 times its number, and loops for ever (`slti x0, sp, 11`,
/// `j .`).
pub const CODE: [u32; 2] = [0x00B1_2013, 0x0000_006F];
/// Where a child finds its loop.
const ADDRESS: u64 = 0x1000_0000;
/// The page in which a child with a pager begins; it has no other page.
const PAGED: u64 = 0x3000_0000;

/// The parts of a child.
#[derive(Clone, Copy)]
pub struct Child {
    /// A free selector.
    pub activity: u16,
    /// The tile capability, and the priority there.
    pub tile: (u16, u8),
    /// The purse.
    pub purse: u16,
    /// Its memory, with its loop and room for a reply at these offsets.
    pub memory: u16,
    pub code: u64,
    pub reply: u64,
    /// The send gate for its faults, if it begins with one.
    pub pager: Option<u16>,
    /// Name.
    pub name: &'static str,
    /// The number that it reports when it runs.
    pub number: u64,
}

impl Child {
    /// Starts it.
    pub fn start(&self) -> Result<(), SyscallError> {
        let (activity, (tile, tile_priority)) = (self.activity, self.tile);
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
            match self.pager {
                None => Syscall::Map {
                    activity,
                    address: ADDRESS,
                    offset: self.code,
                    pages: 1,
                    rights: MAP_READ | MAP_EXECUTE,
                },
                Some(gate) => Syscall::SetPager {
                    activity,
                    gate,
                    address: PAGED,
                    pages: 1,
                },
            },
            Syscall::Start {
                activity,
                entry: self.pager.map_or(ADDRESS, |_| PAGED),
                stack: 16 * self.number,
            },
        ];
        for request in calls {
            if let Err(error) = syscall::call(&request) {
                revoke(activity);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Revokes the capability at a selector.
pub fn revoke(selector: u16) {
    let _ = syscall::call(&Syscall::Revoke { selector, keep: 0 });
}
