//! Where the memories of a chip without data transfer units are among physical addresses.
//!
//! Why it exists: such a chip may have several memories, each behind a port of its own, and all tiles and clusters find them at the same
//! addresses. What it deliberately does not know: tiled platforms, where units decide what a tile reaches.

use super::{ConfigError, PlatformConfig, PlatformKind};
use crate::types::TileId;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};

/// The memories in the order of the configuration: the first one begins at [`MEMORY_BASE`], each further one at the next multiple of
/// [`PMP_WINDOW_SIZE`] behind its predecessor.
#[derive(Clone, Debug)]
pub struct MemoryMap {
    /// For each memory: first address, bytes of its window, number on the network.
    memories: Vec<(u64, u64, TileId)>,
}

impl MemoryMap {
    /// The map of a platform.
    pub fn new(platform: &PlatformConfig) -> Self {
        let mut base = MEMORY_BASE;
        let all = platform.memories.iter().map(|memory| {
            let first = base;
            base += memory.window().next_multiple_of(PMP_WINDOW_SIZE);
            (first, memory.window(), memory.id)
        });
        Self {
            memories: all.collect(),
        }
    }

    /// The memory at a physical address, by its place in the configuration, and the address in it.
    #[inline]
    pub fn find(&self, physical: u64) -> Option<(usize, u64)> {
        let all = self.memories.iter().enumerate();
        let mut all =
            all.map(|(index, (base, size, _))| (index, physical.wrapping_sub(*base), *size));
        let found = all.find(|(_, offset, size)| offset < size);
        found.map(|(index, offset, _)| (index, offset))
    }

    /// Whether a range lies in one memory.
    #[inline]
    pub fn has(&self, physical: u64, bytes: u64) -> bool {
        let mut all = self.memories.iter();
        all.any(|(base, size, _)| {
            let offset = physical.wrapping_sub(*base);
            offset < *size && offset + bytes <= *size
        })
    }

    /// The first address of a memory, by its place in the configuration.
    pub fn base(&self, index: usize) -> u64 {
        self.memories[index].0
    }

    /// Its number on the network.
    pub fn id(&self, index: usize) -> TileId {
        self.memories[index].2
    }
}

impl PlatformConfig {
    /// Whether a machine of this chip can be built here: the configuration is valid, and the host has room for the memories. Builds none.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.validate()?;
        self.check_room()
    }

    /// Whether the host can hold the memories: the allocator would end the process otherwise.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check_room(&self) -> Result<(), ConfigError> {
        let held = self.memories.iter().filter(|m| m.second_port_of.is_empty());
        let all: u128 = held.map(|m| u128::from(m.size)).sum();
        let has_room = |bytes: usize| {
            let mut probe = Vec::<u8>::new();
            let reserved = probe.try_reserve_exact(bytes);
            std::hint::black_box(&probe);
            reserved.is_ok()
        };
        match usize::try_from(all).is_ok_and(has_room) {
            true => Ok(()),
            false => Err(ConfigError {
                platform: self.name.clone(),
                what: format!(
                    "its memories have {} MiB, and this computer has no room for them; choose smaller ones",
                    all >> 20
                ),
            }),
        }
    }

    /// The bytes behind a memory, by index: its own, or those of the memories whose second port it is, in their order. Each as its index
    /// and its size.
    pub fn behind(&self, index: usize) -> Vec<(usize, u64)> {
        let memory = &self.memories[index];
        if memory.second_port_of.is_empty() {
            return vec![(index, memory.size)];
        }
        let find = |id: &TileId| {
            let place = self.memories.iter().position(|one| one.id == *id)?;
            Some((place, self.memories[place].size))
        };
        memory.second_port_of.iter().filter_map(find).collect()
    }

    /// Second ports lead to memories that have bytes, and have as many bytes as these.
    pub(super) fn validate_second_ports(&self) -> Result<(), ConfigError> {
        for (index, memory) in self.memories.iter().enumerate() {
            let of = &memory.second_port_of;
            if of.is_empty() {
                continue;
            }
            let id = memory.id;
            let fail = |what: String| {
                Err(ConfigError {
                    platform: self.name.clone(),
                    what: format!("memory tile {id}: {what}"),
                })
            };
            if self.kind != PlatformKind::Bare {
                return fail("a second port needs a bare platform".into());
            }
            for other in of {
                let found = self.memories.iter().find(|one| one.id == *other);
                if !found.is_some_and(|one| one.second_port_of.is_empty()) {
                    return fail(format!("there is no memory {other} with bytes of its own"));
                }
            }
            let all: u64 = self.behind(index).iter().map(|(_, size)| size).sum();
            if all != memory.size {
                return fail(format!(
                    "it has {} bytes, and the memories behind it have {all}",
                    memory.size
                ));
            }
        }
        Ok(())
    }

    /// All memories of a chip with several of them are in the windows of every tile.
    pub(super) fn validate_map(&self) -> Result<(), ConfigError> {
        if self.kind != PlatformKind::Bare || self.memories.len() < 2 {
            return Ok(());
        }
        let windows = |size: u64| size.div_ceil(PMP_WINDOW_SIZE);
        let needed: u64 = self
            .memories
            .iter()
            .map(|memory| windows(memory.window()))
            .sum();
        match needed <= PMP_WINDOWS {
            true => Ok(()),
            false => Err(ConfigError {
                platform: self.name.clone(),
                what: format!(
                    "several memories of a bare platform take {PMP_WINDOWS} windows of {PMP_WINDOW_SIZE} bytes, each at least one, not {needed}"
                ),
            }),
        }
    }
}
