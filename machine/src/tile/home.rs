//! Where the lines of a tile's caches come from.
//!
//! Why it exists: a window may move while its lines are in the caches. The caches therefore identify a line by its home, the memory
//! and address that it comes from. A dirty line is written there, whatever the window means by then, and a line is found again when
//! its memory is mapped again. Two windows onto one memory find the same lines. What it deliberately does not know: rights.

use super::Window;
use crate::config::{HOME_ALIGNMENT, MemoryConfig};
use crate::types::TileId;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};

/// The memories of a chip, one after another, followed by room for addresses without a home.
#[derive(Debug)]
pub(super) struct Homes {
    /// First home, number and bytes of the window of each memory.
    memories: Vec<(u64, TileId, u64)>,
    /// The first home that belongs to no memory.
    nowhere: u64,
}

impl Homes {
    pub fn new(memories: &[MemoryConfig]) -> Self {
        let mut nowhere = 0u64;
        let mut places = Vec::new();
        for memory in memories {
            nowhere = nowhere.next_multiple_of(memory.alignment());
            places.push((nowhere, memory.id, memory.window()));
            nowhere = (nowhere + memory.window()).next_multiple_of(HOME_ALIGNMENT);
        }
        Self {
            memories: places,
            nowhere,
        }
    }

    /// The home of an address in a memory, given the memory's index.
    pub fn of(&self, memory: usize, address: u64) -> u64 {
        self.memories[memory].0 + address
    }

    /// The tile of a home's memory, and the address there; `None` if it is nowhere.
    pub fn place(&self, home: u64) -> Option<(TileId, u64)> {
        let last = self.memories.iter().rfind(|memory| memory.0 <= home)?;
        let address = home - last.0;
        (address < last.2).then_some((last.1, address))
    }

    /// The home of a tile-physical address; one that belongs to no memory if the address is outside the tile's windows.
    #[inline]
    pub fn home(&self, windows: &[Window], physical: u64) -> u64 {
        let relative = physical.wrapping_sub(MEMORY_BASE);
        let offset = relative % PMP_WINDOW_SIZE;
        match windows.get((relative / PMP_WINDOW_SIZE) as usize) {
            Some(window) if offset < window.size() => window.home + offset,
            _ => self.nowhere + relative % (PMP_WINDOWS * PMP_WINDOW_SIZE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::dram::ControllerConfig;

    #[test]
    fn each_byte_of_each_memory_has_one_home() {
        let memory = |id, size| MemoryConfig {
            id,
            dram: ControllerConfig::ddr3(1).into(),
            size,
            router: 0,
            second_port_of: Vec::new(),
            dropped: 0,
        };
        let homes = Homes::new(&[memory(7, 0x1800), memory(9, 0x4000)]);
        assert_eq!(homes.of(1, 0), 0x2000);
        assert_eq!(homes.place(0x17FF), Some((7, 0x17FF)));
        // There is nothing after the end of a memory.
        assert_eq!(homes.place(0x1800), None);
        assert_eq!(homes.place(0x2000), Some((9, 0)));
        assert_eq!(homes.place(0x5FFF), Some((9, 0x3FFF)));
        assert_eq!(homes.place(0x6000), None);
        let mut windows = [Window::default(); PMP_WINDOWS as usize];
        windows[1] = Window {
            readable: 0x1000,
            home: homes.of(1, 0x1000),
            ..Window::default()
        };
        let at = MEMORY_BASE + PMP_WINDOW_SIZE;
        assert_eq!(homes.home(&windows, at + 0xFFF), 0x3FFF);
        for outside in [at + 0x1000, at - 1, 0, u64::MAX] {
            assert_eq!(homes.place(homes.home(&windows, outside)), None);
        }
    }
}
