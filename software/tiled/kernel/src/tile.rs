//! Tiles: their memory windows, endpoints and token buckets.
//!
//! Why it exists: each tile has these registers. What it deliberately does not know: their owners; capabilities handle quotas.

use crate::endpoints::EndpointTable;
use crate::hardware::Region;
use crate::pending::Asked;
use alloc::vec::Vec;
use bulkhead_abi::dtu::BUCKET_COUNT;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};
use bulkhead_abi::syscall::PRIORITIES;
use bulkhead_abi::tilemux::{ACTIVITIES as TILE_ACTIVITIES, DEFAULT_SLICE, FIRST_ENDPOINT};
use bulkhead_capabilities::{HolderId, NodeId, Space};
use bulkhead_common::line::Ranks;
use bulkhead_common::payer::{Caller, Creator, Paid};

/// A processing tile for activities.
#[derive(Clone, Debug)]
pub struct Tile {
    /// Number on the network.
    pub id: u16,
    /// Clock of its hart in hertz.
    pub frequency: u64,
    /// An `abi::tilemux::TilePolicy`: how TileMux orders its activities.
    pub policy: u32,
    /// Time slice of TileMux in nanoseconds.
    pub slice: u32,
    /// Its harts.
    pub harts: u32,
    /// Bytes of a line of its caches, if these hold data; 0 if memory is flat.
    pub line: u64,
    /// Its unit's endpoints.
    pub endpoints: EndpointTable,
    /// The memory that its windows show.
    pub windows: [Option<Region>; PMP_WINDOWS as usize],
    /// Bytes of a window being closed that its caches no longer hold.
    pub written: [u64; PMP_WINDOWS as usize],
    /// A window was closed while its hart ran, so its caches may have old lines of the memory behind it.
    pub is_stale: bool,
    /// Which of its windows are read-only.
    pub read_only: [bool; PMP_WINDOWS as usize],
    /// The capability of each window; everything that reaches memory through a window ends before the window does.
    pub shown: [NodeId; PMP_WINDOWS as usize],
    /// TileMux runs, or is being loaded.
    pub is_lit: bool,
    /// TileMux did not answer or lied: its hart was stopped, and it gets no more requests.
    pub is_lost: bool,
    /// Numbers of the tile's activities.
    pub activities: Paid<Creator, Vec<u16>>,
    /// The request that TileMux has, and those that wait, by the priority of their callers.
    pub(crate) sent: Option<Asked>,
    pub(crate) asked: Ranks<Caller, Asked, PRIORITIES>,
    /// Notifications that could not be true, less those that come late because their activities were stopped at the same moment.
    pub(crate) lies: i32,
    /// The activity that started TileMux. Only it may give memory for page tables, because whoever can write page tables controls
    /// the whole tile.
    pub lit_by: HolderId,
    /// Which windows show memory for page tables. TileMux takes any of it for any activity, so the tile is lost with each of them.
    pub tables: [bool; PMP_WINDOWS as usize],
    /// The tile capabilities whose processor time an activity has for itself.
    pub budgets: Paid<Creator, Vec<NodeId>>,
    /// The activity that has its device.
    pub device: Option<u16>,
    /// The tile capability whose rate each token bucket has; bucket 0 does not regulate.
    pub buckets: [Option<NodeId>; BUCKET_COUNT],
    /// The tile capability that gets a bucket once an activity of it has been made.
    pub claims: [Option<NodeId>; BUCKET_COUNT],
    /// Number of activities of each bucket. A bucket without activities stays with its tile capability until another one needs it.
    pub bucket_users: [u16; BUCKET_COUNT],
    /// Activities share it: TileMux may borrow from the buckets.
    pub is_shared: bool,
}

impl Tile {
    /// A tile that is not configured, with time slices of 1 ms.
    pub fn new(id: u16, frequency: u64, endpoints: u16) -> Self {
        // The tile's capabilities have quotas for no more.
        let mut activities = Paid::<Creator, Vec<u16>>::default();
        activities.reserve(TILE_ACTIVITIES);
        Self {
            id,
            frequency,
            policy: 0,
            slice: DEFAULT_SLICE,
            harts: 1,
            line: 0,
            endpoints: EndpointTable::new(endpoints, FIRST_ENDPOINT),
            windows: [None; PMP_WINDOWS as usize],
            written: [0; PMP_WINDOWS as usize],
            is_stale: false,
            read_only: [false; PMP_WINDOWS as usize],
            shown: [NodeId::NONE; PMP_WINDOWS as usize],
            is_lit: false,
            is_lost: false,
            activities,
            sent: None,
            asked: Ranks::default(),
            lies: 0,
            lit_by: Space::KERNEL,
            tables: [false; PMP_WINDOWS as usize],
            budgets: Paid::default(),
            device: None,
            buckets: [None; BUCKET_COUNT],
            claims: [None; BUCKET_COUNT],
            bucket_users: [0; BUCKET_COUNT],
            is_shared: false,
        }
    }

    /// The same with another schedule (an `abi::tilemux::TilePolicy` and a slice in nanoseconds), this many harts, and caches that hold the
    /// bytes of memory in lines of `line` bytes.
    pub const fn built(mut self, (policy, slice): (u32, u32), harts: u32, line: u64) -> Self {
        (self.policy, self.slice) = (policy, slice);
        self.harts = harts;
        self.line = line;
        self
    }

    /// Tile-physical address of the first byte of a region, if a window shows all of it and, with `write`, is writable.
    pub fn physical(&self, region: Region, write: bool) -> Option<u64> {
        let windows = self.windows.iter().zip(&self.read_only);
        windows
            .enumerate()
            .filter(|(_, (_, read_only))| !(write && **read_only))
            .find_map(|(number, (window, _))| {
                let window = (*window)?;
                let offset = region.base.checked_sub(window.base)?;
                let inside =
                    window.tile == region.tile && offset.checked_add(region.size)? <= window.size;
                inside.then(|| MEMORY_BASE + number as u64 * PMP_WINDOW_SIZE + offset)
            })
    }

    /// The capability of the window behind a tile-physical address that [`Self::physical`] gave.
    pub fn window_at(&self, physical: u64) -> NodeId {
        self.shown[((physical - MEMORY_BASE) / PMP_WINDOW_SIZE) as usize]
    }

    /// The bucket that a tile capability has or has claimed, or the first one that none has.
    pub fn bucket_of(&self, owner: Option<NodeId>) -> Option<usize> {
        (1..self.buckets.len()).find(|b| self.claims[*b].or(self.buckets[*b]) == owner)
    }

    /// The bucket of a tile capability, or one that no activity has; takes nothing yet.
    pub fn bucket(&self, owner: NodeId) -> Option<u8> {
        let own = self.bucket_of(Some(owner)).or_else(|| self.bucket_of(None));
        let idle = || (1..self.buckets.len()).find(|b| self.bucket_users[*b] == 0);
        Some(own.or_else(idle)? as u8)
    }
}
