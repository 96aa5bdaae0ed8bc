//! Activities: what the kernel remembers of each.
//!
//! Why it exists: calls are checked against this. What it deliberately does not know: what an activity computes.

use crate::hardware::Region;
use crate::tile::Placement;
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::words::Name;

/// Where an activity is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Created; memory and gates may be set up.
    Created,
    /// Runs.
    Running,
    /// Stopped for good.
    Stopped(StopCause),
}

/// An activity.
#[derive(Clone, Debug)]
pub struct Activity {
    /// For reports.
    pub name: Name,
    /// Index into the kernel's tiles.
    pub tile: usize,
    /// Who manages it; [`bulkhead_abi::tilemux::KERNEL_ACTIVITY`] for the root manager.
    pub manager: u16,
    /// Whether it may manage others.
    pub manages: bool,
    /// Where it is in its life.
    pub state: State,
    /// Its memory.
    pub memory: Placement,
    /// Bytes of it.
    pub size: u64,
    /// Its token bucket; 0: none of its own.
    pub bucket: u8,
    /// Endpoints for system calls: send, receive.
    pub syscalls: (u16, u16),
}

impl Activity {
    /// Its memory without the page tables.
    pub fn region(&self) -> Region {
        Region {
            tile: self.memory.memory_tile,
            base: self.memory.global,
            size: self.size,
        }
    }
}
