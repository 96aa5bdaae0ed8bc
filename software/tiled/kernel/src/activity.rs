//! Activities: what the kernel remembers of each.
//!
//! Why it exists: calls are checked against this. What it deliberately does not know: what an activity computes.

use crate::hardware::Region;
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::words::Name;
use bulkhead_capabilities::{HolderId, NodeId};

/// Where an activity is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its TileMux is being told of it.
    Creating,
    /// Created; memory and gates may be set up.
    Created,
    /// Runs.
    Running,
    /// Its TileMux is asked to stop it.
    Stopping,
    /// Stopped; what it holds is being revoked.
    Stopped(StopCause),
}

/// An activity.
#[derive(Clone, Debug)]
pub struct Activity {
    /// For reports.
    pub name: Name,
    /// Its place among the holders of capabilities.
    pub holder: HolderId,
    /// Its node among the capabilities.
    pub node: NodeId,
    /// Index into the kernel's tiles.
    pub tile: usize,
    /// Number of the activity that created it; [`bulkhead_abi::tilemux::KERNEL_ACTIVITY`] for the root manager.
    pub creator: u16,
    /// Its creator knows of it.
    pub is_known: bool,
    /// How often its number had been given away before.
    pub generation: u32,
    /// The creator's selector for it.
    pub selector: u16,
    /// Its priority as a caller.
    pub priority: u8,
    /// Where it is in its life.
    pub state: State,
    /// Its memory.
    pub region: Region,
    /// The same memory's tile-physical address.
    pub physical: u64,
    /// The tile capability whose processor time it has for itself, if it is limited.
    pub cpu: Option<NodeId>,
    /// First address and pages of the range that a pager serves, and TileMux's endpoint to it.
    pub paged: Option<(u64, u64, u16)>,
    /// Endpoints for system calls: send, receive.
    pub syscalls: (u16, u16),
}
