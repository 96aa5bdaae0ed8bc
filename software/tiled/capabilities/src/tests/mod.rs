//! The crate against worked examples, attacks, and a model that computes everything from scratch.

mod attacks;
mod examples;
mod model;
mod random;
mod revocation;
mod time;

use crate::{HolderId, Progress, Space};

pub(crate) const KERNEL: HolderId = Space::KERNEL;
/// Selectors under which the kernel holds the objects that exist at boot.
pub(crate) const TILE: u16 = 1;
pub(crate) const MEMORY: u16 = 2;
pub(crate) const PURSE: u16 = 3;
pub(crate) const SMALL_TILE: u16 = 4;

/// A space with room for `nodes` capabilities and eight activities, with one tile without regulation, one with 4 GB/s, and 1 MiB of
/// memory.
pub(crate) fn space(nodes: usize) -> Space {
    space_of(nodes, 8)
}

/// The same with room for `holders` activities.
pub(crate) fn space_of(nodes: usize, holders: u16) -> Space {
    let mut space = Space::new(nodes, holders);
    space.add_tile(TILE, 1, 100, 1000, None).unwrap();
    let regulated = Some((4_000_000_000, 65536));
    space.add_tile(SMALL_TILE, 2, 20, 50, regulated).unwrap();
    space.add_memory(MEMORY, 8, 0x1000, 1 << 20, 7).unwrap();
    space
}

/// Runs a revocation to its end; returns the number of nodes removed.
pub(crate) fn finish(space: &mut Space, level: usize) -> usize {
    let mut removed = 0;
    loop {
        match space.step(level) {
            Progress::Working | Progress::Disconnected(_) => {}
            Progress::Removed(_) => removed += 1,
            Progress::Done => return removed,
        }
    }
}

/// An activity of the kernel on a tile capability of the kernel, with `bytes` of kernel memory. Uses the selectors from `at` on for
/// purse, memory and the activity.
pub(crate) fn activity(space: &mut Space, tile: u16, at: u16, bytes: u64) -> HolderId {
    if space.find(KERNEL, PURSE).is_err() {
        let left = space.kernel_memory_left(KERNEL).unwrap();
        space.add_kernel_memory(PURSE, left / 2).unwrap();
    }
    space
        .derive_kernel_memory(KERNEL, PURSE, at, bytes)
        .unwrap();
    space
        .cut_memory(KERNEL, MEMORY, at + 1, 4096, 4096)
        .unwrap();
    space
        .create_activity(KERNEL, at + 2, tile, at, at + 1)
        .unwrap()
        .1
}
