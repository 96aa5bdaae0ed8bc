//! Tiles: their memory windows, endpoints and token buckets.
//!
//! Why it exists: these are each tile's resources. What it deliberately does not know: activities.

use crate::endpoints::EndpointTable;
use crate::hardware::Region;
use crate::memory::Range;
use alloc::vec::Vec;
use bulkhead_abi::dtu::BUCKET_COUNT;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};
use bulkhead_abi::tilemux::{DEFAULT_SLICE, FIRST_ENDPOINT};

/// A memory window of a tile.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// What it shows.
    pub region: Region,
    free: Range,
}

/// A processing tile for activities.
#[derive(Clone, Debug)]
pub struct Tile {
    /// Number on the network.
    pub id: u16,
    /// Clock of its hart in hertz.
    pub frequency: u64,
    /// How its TileMux schedules: an `abi::tilemux::TilePolicy`.
    pub policy: u32,
    /// Time slice of its TileMux in nanoseconds.
    pub slice: u32,
    /// Its harts.
    pub harts: u32,
    /// Its unit's endpoints.
    pub endpoints: EndpointTable,
    /// Its memory windows; empty until it is configured.
    pub windows: Vec<Window>,
    /// Token buckets in use; bucket 0 does not regulate and is everybody's who has no limit.
    buckets: u8,
}

/// Memory of an activity in a window of its tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The memory tile.
    pub memory_tile: u16,
    /// First byte in it.
    pub global: u64,
    /// The same byte's tile-physical address.
    pub physical: u64,
}

impl Tile {
    /// A tile that is not configured.
    pub fn new(id: u16, frequency: u64, endpoints: u16) -> Self {
        Self {
            id,
            frequency,
            policy: 0,
            slice: DEFAULT_SLICE,
            harts: 1,
            endpoints: EndpointTable::new(endpoints, FIRST_ENDPOINT),
            windows: Vec::new(),
            buckets: 1,
        }
    }

    /// The same with another schedule: an `abi::tilemux::TilePolicy`, a slice in nanoseconds, and the number of harts.
    pub const fn scheduled(mut self, policy: u32, slice: u32, harts: u32) -> Self {
        self.policy = policy;
        self.slice = slice;
        self.harts = harts;
        self
    }

    /// Number of the window that an added region would get, if there is one.
    pub fn next_window(&self) -> Option<u16> {
        let next = self.windows.len();
        ((next as u64) < PMP_WINDOWS).then_some(next as u16)
    }

    /// Adds a region whose first `reserved` bytes are not for activities.
    pub fn add_window(&mut self, region: Region, reserved: u64) {
        self.windows.push(Window {
            region,
            free: Range::new(reserved, region.size),
        });
    }

    /// Takes memory for an activity from a window onto a memory tile.
    pub fn take(&mut self, size: u64, memory_tile: u16) -> Option<Placement> {
        self.windows
            .iter_mut()
            .enumerate()
            .filter(|(_, window)| window.region.tile == memory_tile)
            .find_map(|(number, window)| {
                let offset = window.free.take(size)?;
                Some(Placement {
                    memory_tile,
                    global: window.region.base + offset,
                    physical: MEMORY_BASE + number as u64 * PMP_WINDOW_SIZE + offset,
                })
            })
    }

    /// Takes a token bucket.
    pub fn take_bucket(&mut self) -> Option<u8> {
        if usize::from(self.buckets) < BUCKET_COUNT {
            self.buckets += 1;
            Some(self.buckets - 1)
        } else {
            None
        }
    }
}
