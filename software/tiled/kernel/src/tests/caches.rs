//! Memory changes its owner through caches: a model of the worst contents that a tile's caches can have, and of the kernel's
//! countermeasures.
//!
//! The model trusts no TileMux: all memory that a window lets a tile write may be dirty in its caches at any moment, and all memory that a
//! window lets a running hart read may be in them. Only the kernel's command evicts it. So these tests fail if the kernel omits a command,
//! gives it too early, or gives it for too few lines.

use super::*;
use bulkhead_abi::dtu::{MemoryEndpoint, TLB_WRITE};
use bulkhead_abi::memory_map::PMP_WINDOWS;
use std::collections::BTreeSet;

const PAGE: u64 = 4096;
/// Bytes of a line.
const LINE: u64 = 64;

/// A page of memory that a tile's caches may have lines of.
type Cached = (u16, u64);

/// What the caches may hold. Without a line size, memory is flat and they hold nothing.
#[derive(Clone, Default)]
pub struct Caches {
    pub line: u64,
    dirty: BTreeSet<Cached>,
    /// Lines that may be older than memory, because the tile could not see the write.
    old: BTreeSet<Cached>,
    /// Pages that an activity of a tile uses: tile, page, activity.
    used: BTreeSet<(u16, u64, u16)>,
    /// Pages of activities that have ended, while the caches may have lines of them.
    left: BTreeSet<Cached>,
    dark: BTreeSet<u16>,
    /// Commands in progress: tile; first address, lines, and how often they will still be reported as running.
    commands: BTreeMap<u16, (u64, u16, u8)>,
}

/// What a window shows.
fn shown(
    endpoints: &BTreeMap<(u16, u16), Endpoint>,
    tile: u16,
    window: u16,
) -> Option<MemoryEndpoint> {
    match endpoints.get(&(tile, window)) {
        Some(Endpoint::Memory(memory)) if u64::from(window) < PMP_WINDOWS => Some(*memory),
        _ => None,
    }
}

fn pages(memory: MemoryEndpoint) -> impl Iterator<Item = u64> {
    (memory.base..memory.base + memory.size).step_by(PAGE as usize)
}

impl Caches {
    /// An endpoint gets another value.
    pub fn changed(
        &mut self,
        endpoints: &BTreeMap<(u16, u16), Endpoint>,
        tile: u16,
        endpoint: u16,
    ) {
        let Some(memory) = shown(endpoints, tile, endpoint).filter(|_| self.line > 0) else {
            return;
        };
        if u64::from(memory.rights) & TLB_WRITE != 0 {
            self.dirty.extend(pages(memory).map(|page| (tile, page)));
        }
    }

    /// Endpoints are about to be invalid.
    pub fn closes(
        &mut self,
        endpoints: &BTreeMap<(u16, u16), Endpoint>,
        tile: u16,
        first: u16,
        count: u16,
    ) {
        for window in first..first + count {
            let Some(memory) = shown(endpoints, tile, window).filter(|_| self.line > 0) else {
                continue;
            };
            for page in pages(memory) {
                assert!(
                    !self.dirty.contains(&(tile, page)),
                    "tile {tile} may have dirty lines of {page:#x}, and window {window} closes"
                );
                if !self.dark.contains(&tile) {
                    self.old.insert((tile, page));
                }
            }
        }
    }

    /// A command begins; it is over when its state has been read twice.
    pub fn write_back(&mut self, tile: u16, physical: u64, lines: u16) {
        let before = self.commands.insert(tile, (physical, lines, 2));
        assert_eq!(
            before, None,
            "the unit of tile {tile} refuses a second command"
        );
    }

    pub fn is_writing_back(
        &mut self,
        endpoints: &BTreeMap<(u16, u16), Endpoint>,
        tile: u16,
    ) -> bool {
        let Some((physical, lines, left)) = self.commands.remove(&tile) else {
            return false;
        };
        if left > 0 {
            self.commands.insert(tile, (physical, lines, left - 1));
            return true;
        }
        self.written(endpoints, tile, physical, lines);
        false
    }

    fn written(
        &mut self,
        endpoints: &BTreeMap<(u16, u16), Endpoint>,
        tile: u16,
        physical: u64,
        lines: u16,
    ) {
        let window = ((physical - MEMORY_BASE) / PMP_WINDOW_SIZE) as u16;
        let memory = shown(endpoints, tile, window).expect("lines of a window");
        let from = memory.base + (physical - MEMORY_BASE) % PMP_WINDOW_SIZE;
        let to = (from + u64::from(lines) * self.line).min(memory.base + memory.size);
        let writes = u64::from(memory.rights) & TLB_WRITE != 0 && !self.dark.contains(&tile);
        for page in (from..to).step_by(PAGE as usize) {
            if !writes {
                self.dirty.remove(&(tile, page));
            }
            self.old.remove(&(tile, page));
            self.left.remove(&(tile, page));
        }
    }

    pub fn maps(
        &mut self,
        endpoints: &BTreeMap<(u16, u16), Endpoint>,
        (tile, activity): (u16, u16),
        physical: u64,
        count: u64,
    ) {
        let window = ((physical - MEMORY_BASE) / PMP_WINDOW_SIZE) as u16;
        let Some(memory) = shown(endpoints, tile, window).filter(|_| self.line > 0) else {
            return;
        };
        let from = memory.base + (physical - MEMORY_BASE) % PMP_WINDOW_SIZE;
        for page in (from..from + count * PAGE).step_by(PAGE as usize) {
            assert!(
                !self.old.contains(&(tile, page)),
                "tile {tile} has old lines of {page:#x}"
            );
            self.used.insert((tile, page, activity));
        }
    }

    pub fn ends(&mut self, tile: u16, activity: u16) {
        let of = |used: &(u16, u64, u16)| used.0 == tile && used.2 == activity;
        let left = self
            .used
            .extract_if(.., of)
            .map(|(tile, page, _)| (tile, page));
        self.left.extend(left);
    }

    pub fn stops(&mut self, tile: u16) {
        self.dark.insert(tile);
        let of = |used: &(u16, u64, u16)| used.0 == tile;
        let left = self.used.extract_if(.., of);
        self.left.extend(left.map(|(tile, page, _)| (tile, page)));
    }

    pub fn starts(&mut self, tile: u16) {
        self.dark.remove(&tile);
    }

    /// Memory is filled past the caches, for a new owner.
    pub fn fills(&self, region: Region) {
        for (tile, page) in &self.left {
            assert!(
                page + PAGE <= region.base || region.base + region.size <= *page,
                "{region:?} is filled below what tile {tile} has of {page:#x}"
            );
        }
    }
}

fn revoke(selector: u16) -> Syscall {
    Syscall::Revoke { selector, keep: 0 }
}

fn cut(source: u16, target: u16, size: u64) -> Syscall {
    Syscall::CutMemory {
        source,
        target,
        size,
    }
}

/// All of an activity's memory is mapped.
fn map(activity: u16) -> Syscall {
    Syscall::Map {
        activity,
        address: PROGRAM_BASE,
        offset: 0,
        pages: 16,
        rights: 7,
    }
}

/// TileMux and an activity run; then the window that shows the memory of both goes, with their possible writes.
#[test]
fn a_window_closes_when_memory_has_its_lines() {
    let (mut system, mut chip) = boot_with(2, LINE);
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    start(&mut system, &mut chip, APP);
    assert!(!chip.caches.dirty.is_empty(), "the model sees the window");
    call(&mut system, &mut chip, 1, revoke(99)).unwrap();
    assert!(chip.caches.dirty.iter().all(|(tile, _)| *tile != 2));
    // The tile is dark: it cannot read anything again.
    assert!(chip.caches.old.is_empty());
}

/// An activity ends, and its memory is cut out for another one: the kernel clears it past the caches of the tile, whose window stays.
#[test]
fn memory_is_cleared_when_no_lines_are_above_it() {
    let (mut system, mut chip) = boot_with(2, LINE);
    create(&mut system, &mut chip, 500, SEL_TILES + 2);
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    call(&mut system, &mut chip, 1, map(APP)).unwrap();
    start(&mut system, &mut chip, APP);
    assert!(!chip.caches.used.is_empty(), "the model sees the mapping");
    call(&mut system, &mut chip, 1, revoke(APP)).unwrap();
    let effects = chip.effects;
    call(&mut system, &mut chip, 1, revoke(APP + 1)).unwrap();
    call(&mut system, &mut chip, 1, cut(99, APP + 1, 1 << 16)).unwrap();
    assert!(chip.effects >= effects + 32, "it was cleared");
}

/// A window closes while the tile's hart runs, so a captured tile reads lines again before it closes. When the memory is shown there again,
/// nobody starts on old contents.
#[test]
fn memory_that_comes_back_is_not_seen_through_old_lines() {
    let (mut system, mut chip) = boot_with(2, LINE);
    create(&mut system, &mut chip, 500, SEL_TILES + 2);
    let show = Syscall::ConfigureTile {
        tile: SEL_TILES + 2,
        memory: 60,
        tables: 0,
    };
    for request in [cut(SEL_MEMORIES + MEMORY, 60, 1 << 17), show, revoke(60)] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    assert!(!chip.caches.old.is_empty(), "the hart may have read it");
    for request in [
        cut(SEL_MEMORIES + MEMORY, 60, 1 << 17),
        show,
        cut(60, APP + 1, 1 << 16),
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: APP + 2,
            bytes: 4096,
        },
        creation(APP, SEL_TILES + 2, 0),
        map(APP),
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    start(&mut system, &mut chip, APP);
}
