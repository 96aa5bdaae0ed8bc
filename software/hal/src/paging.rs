//! Page tables of Sv39 with pages of 4 KiB (RISC-V privileged architecture, version 20211203, section 4.4).
//!
//! Why it exists: TileMux maps the pages that the kernel names. What it deliberately does not know: which activity owns which
//! memory, and how table memory is accessed. The latter is a trait, so that tests on the host can compare this file with a walk
//! written from the specification.

use bulkhead_abi::memory_map::PMP_WINDOW_SIZE;
use bulkhead_abi::syscall::PAGED_PAGES_MAX;
use bulkhead_abi::tilemux::table_pages;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Virtual addresses for user pages end here (half of the 39-bit space).
pub const USER_END: u64 = 1 << 38;
/// Entries of a table.
const ENTRIES: u64 = 512;
/// Bytes that a table of the last level maps.
const SPAN: u64 = PAGE * ENTRIES;
/// Tables on the way to a page.
const LEVELS: u64 = 3;

const VALID: u64 = 1;
const READ: u64 = 2;
const WRITE: u64 = 4;
const EXECUTE: u64 = 8;
const USER: u64 = 16;
/// Accessed and dirty, set from the start, because no software here collects them.
const ACCESSED_DIRTY: u64 = 3 << 6;

/// What user mode may do with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Loads.
    pub read: bool,
    /// Stores.
    pub write: bool,
    /// Instruction fetches.
    pub execute: bool,
}

impl Rights {
    /// From the bits of `abi::syscall::MAP_*`; none for other bits, for no rights, and for write without read.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        let rights = Self {
            read: bits & 1 != 0,
            write: bits & 2 != 0,
            execute: bits & 4 != 0,
        };
        if bits == 0 || bits > 7 || rights.write && !rights.read {
            None
        } else {
            Some(rights)
        }
    }
}

/// Access to physical memory that holds tables, in aligned 64-bit words, and to the pages that are free for tables.
pub trait TableMemory {
    /// Reads a word.
    fn read(&self, physical: u64) -> u64;
    /// Writes a word.
    fn write(&mut self, physical: u64, value: u64);
    /// The pages that no table is in.
    fn pool(&mut self) -> &mut Pool;
    /// A page is mapped no more: memory gets what the tile's caches have of it, and they keep nothing.
    fn left(&mut self, _page: u64) {}
}

/// Free pages, in bundles that are linked through their first pages. Any page can become a table of any space. So pages that are not
/// promised to a space are there for the next one, whatever spaces came and went.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Pool {
    /// The first page of the first bundle; 0 if there is none.
    first: u64,
    /// Pages that are not promised to a space.
    free: u64,
}

/// In the second word of a bundle, whose first word is the next bundle, if the first page lists the others; if not, they follow it.
const LISTED: u64 = 2;
/// In the same word: one page besides the first. No word of a free page is a valid entry.
const ONE: u64 = 4;

/// Gives the pool `pages` pages from `first` on.
///
/// # Errors
/// [`MapError::BadAddress`] if they are not aligned or do not exist.
pub fn give(memory: &mut impl TableMemory, first: u64, pages: u64) -> Result<(), MapError> {
    let end = pages.checked_mul(PAGE).and_then(|b| first.checked_add(b));
    let known = end.is_some_and(|end| end <= (NUMBER + 1) * PAGE);
    if !known || first == 0 || !first.is_multiple_of(PAGE) {
        return Err(MapError::BadAddress);
    }
    if let Some(others) = pages.checked_sub(1) {
        bundle(memory, first, others * ONE);
        memory.pool().free += pages;
    }
    Ok(())
}

fn bundle(memory: &mut impl TableMemory, first: u64, others: u64) {
    let next = core::mem::replace(&mut memory.pool().first, first);
    memory.write(first, next);
    memory.write(first + 8, others);
}

/// Takes a page out of the first bundle, its first page last.
fn take(memory: &mut impl TableMemory) -> Option<u64> {
    let first = memory.pool().first;
    if first == 0 {
        return None;
    }
    let others = memory.read(first + 8);
    let Some(rest) = others.checked_sub(ONE) else {
        memory.pool().first = memory.read(first);
        return Some(first);
    };
    memory.write(first + 8, rest);
    if others & LISTED == 0 {
        return Some(first + others / ONE * PAGE);
    }
    let (word, shift) = line(first, rest / ONE);
    Some((memory.read(word) >> shift & NUMBER) * PAGE)
}

/// Most tables of a space: the root, and those that it lists in the half of its entries that no user address reaches.
pub const TABLES_MAX: u64 = 1 + 3 * (ENTRIES / 2);
/// Bits of a page's number, three of which fit into a word beside the bit that would make it valid.
const NUMBER: u64 = (1 << 21) - 1;

/// Word and bit of the root's list where the number of one of its tables is.
const fn line(root: u64, table: u64) -> (u64, u64) {
    let word = ENTRIES / 2 + table / 3;
    (root + 8 * word, 1 + 21 * (table % 3))
}

// What one window shows can all be mapped, and beside it as much as a pager may give.
const _: () =
    assert!(table_pages(PMP_WINDOW_SIZE) + table_pages(PAGED_PAGES_MAX * PAGE) <= TABLES_MAX);

/// Why a mapping failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// An address is not page aligned or outside the user's half.
    BadAddress,
    /// A page is mapped already; if pages may be replaced or taken away, more than one is. Whoever had a page leaves all of its lines, as many as
    /// a table has that is cleared, so a request that takes one away takes no longer than others.
    Mapped,
    /// No page left for a table.
    NoTable,
    /// There is more to do than one request may take (clear a table, or take out the lines of a page that leaves). A table was made that
    /// was missing, and nothing else has changed: the same request gets further.
    Again,
}

/// An address space. Its tables come from the pool, which keeps as many pages for it as it was promised.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct AddressSpace {
    root: u64,
    /// Tables besides the root, in its list.
    tables: u64,
    /// Pages that it may have.
    promised: u64,
}

impl AddressSpace {
    /// An empty space that may have `pages` tables.
    ///
    /// # Errors
    /// [`MapError::NoTable`] if not even one page can be mapped with so many, or there are not so many; then nothing has changed.
    pub fn new(memory: &mut impl TableMemory, pages: u64) -> Result<Self, MapError> {
        let mut space = Self::default();
        if pages < LEVELS {
            return Err(MapError::NoTable);
        }
        space.extend(memory, pages)?;
        space.root = empty(memory)?;
        Ok(space)
    }

    /// Value of `satp` for this space.
    pub const fn satp(&self) -> u64 {
        8 << 60 | self.root >> 12
    }

    /// Promises the space `pages` more tables.
    ///
    /// # Errors
    /// [`MapError::NoTable`] if there are not so many, or it would have more than [`TABLES_MAX`]; then nothing has changed.
    pub fn extend(&mut self, memory: &mut impl TableMemory, pages: u64) -> Result<(), MapError> {
        let all = self.promised.checked_add(pages);
        let all = all.filter(|all| *all <= TABLES_MAX);
        let pool = memory.pool();
        let left = pool.free.checked_sub(pages);
        let (Some(all), Some(left)) = (all, left) else {
            return Err(MapError::NoTable);
        };
        (self.promised, pool.free) = (all, left);
        Ok(())
    }

    /// Ends the space: all its tables are free at once, however many there are.
    pub fn end(&self, memory: &mut impl TableMemory) {
        bundle(memory, self.root, (self.tables * ONE) | LISTED);
        memory.pool().free += self.promised;
    }

    fn table(&mut self, memory: &mut impl TableMemory) -> Result<u64, MapError> {
        let table = empty(memory)?;
        let (word, shift) = line(self.root, self.tables);
        memory.write(word, memory.read(word) | ((table / PAGE) << shift));
        self.tables += 1;
        Ok(table)
    }

    /// Unmaps a page and ignores those that are not mapped. Returns whether any was mapped. Tables stay where they are.
    ///
    /// # Errors
    /// [`MapError::BadAddress`], [`MapError::Mapped`]; then nothing has changed.
    pub fn unmap(
        &mut self,
        memory: &mut impl TableMemory,
        address: u64,
        pages: u64,
    ) -> Result<bool, MapError> {
        check(address, 0, pages)?;
        let entries = (0..pages).filter_map(|page| self.leaf(memory, address + page * PAGE));
        let mut there = entries.filter(|entry| memory.read(*entry) & VALID != 0);
        match (there.next(), there.next()) {
            (_, Some(_)) => Err(MapError::Mapped),
            (first, None) => Ok(first.is_some_and(|entry| change(memory, entry, 0))),
        }
    }

    /// Maps `pages` pages from `address` on to physical memory from `physical` on; `replace` says whether a page may be mapped there. Returns
    /// whether one was; if so, the caller must drop cached translations.
    ///
    /// # Errors
    /// See [`MapError`].
    pub fn map(
        &mut self,
        memory: &mut impl TableMemory,
        (address, physical, pages): (u64, u64, u64),
        rights: Rights,
        replace: bool,
    ) -> Result<bool, MapError> {
        check(address, physical, pages)?;
        let end = address + pages * PAGE;
        let pieces = self.admit(memory, (address, end), replace)?;
        let mut missing = spans(address, end).map(|(at, _)| at);
        if let Some(at) = missing.find(|at| self.leaf(memory, *at).is_none()) {
            self.grow(memory, at)?;
            if pieces > 1 {
                return Err(MapError::Again);
            }
        }
        let mut found = false;
        let bits = (u64::from(rights.read) * READ)
            | (u64::from(rights.write) * WRITE)
            | (u64::from(rights.execute) * EXECUTE);
        let mut number = physical >> 12;
        for (at, next) in spans(address, end) {
            let Some(first) = self.leaf(memory, at) else {
                panic!("{at:#x} has no table, and {pieces} were missing")
            };
            for entry in (first..first + (next - at) / PAGE * 8).step_by(8) {
                let value = number << 10 | bits | VALID | USER | ACCESSED_DIRTY;
                found |= change(memory, entry, value);
                number += 1;
            }
        }
        Ok(found)
    }

    /// Whether pages can be mapped in a range: there is memory for the tables, and, if nothing may be replaced, none of the pages
    /// is mapped. Returns how many tables must be made and pages leave.
    fn admit(
        &self,
        memory: &impl TableMemory,
        (address, end): (u64, u64),
        replace: bool,
    ) -> Result<u64, MapError> {
        let (mut tables, mut there) = (0, 0);
        // The last table of the second level that does not exist.
        let mut missing = None;
        for (at, next) in spans(address, end) {
            let is_valid = |entry: u64| memory.read(entry) & VALID != 0;
            let top = index(at, 2);
            match self.leaf(memory, at) {
                Some(first) => {
                    let entries = (first..first + (next - at) / PAGE * 8).step_by(8);
                    there += entries.filter(|entry| is_valid(*entry)).count() as u64;
                    if there > u64::from(replace) {
                        return Err(MapError::Mapped);
                    }
                }
                None if is_valid(self.root + 8 * top) => tables += 1,
                // The first one behind a missing table needs that table, too.
                None => tables += 1 + u64::from(missing.replace(top) != Some(top)),
            }
        }
        let fits = tables + self.tables < self.promised;
        fits.then_some(tables + there).ok_or(MapError::NoTable)
    }

    /// Makes the first table that is missing on the way to a page.
    fn grow(&mut self, memory: &mut impl TableMemory, address: u64) -> Result<(), MapError> {
        let mut entry = self.root + 8 * index(address, 2);
        let top = memory.read(entry);
        if top & VALID != 0 {
            entry = (top >> 10 << 12) + 8 * index(address, 1);
        }
        let new = self.table(memory)?;
        memory.write(entry, new >> 12 << 10 | VALID);
        Ok(())
    }

    /// Address of the last-level entry of a page, if there are tables for it.
    fn leaf(&self, memory: &impl TableMemory, address: u64) -> Option<u64> {
        let mut table = self.root;
        for level in [2, 1] {
            let value = memory.read(table + 8 * index(address, level));
            if value & VALID == 0 {
                return None;
            }
            table = value >> 10 << 12;
        }
        Some(table + 8 * index(address, 0))
    }

    /// Physical address and rights of a mapped user address.
    pub fn translate(&self, memory: &impl TableMemory, address: u64) -> Option<(u64, Rights)> {
        if address >= USER_END {
            return None;
        }
        let value = memory.read(self.leaf(memory, address)?);
        // In the order of `MAP_READ` and so on, behind the bit for a valid entry; there are none in other entries.
        let rights = Rights::from_bits((value >> 1 & 7) as u8)?;
        (value & VALID != 0).then_some(((value >> 10 << 12) | (address % PAGE), rights))
    }
}

/// Changes the entry of a page. Returns whether one was mapped there.
fn change(memory: &mut impl TableMemory, entry: u64, value: u64) -> bool {
    let old = memory.read(entry);
    memory.write(entry, value);
    if old & VALID != 0 {
        memory.left(old >> 10 << 12);
    }
    old & VALID != 0
}

/// A free page as a table without entries.
fn empty(memory: &mut impl TableMemory) -> Result<u64, MapError> {
    let table = take(memory).ok_or(MapError::NoTable)?;
    (0..ENTRIES).for_each(|i| memory.write(table + 8 * i, 0));
    Ok(table)
}

/// A range in parts, each of which lies in one table of the last level.
fn spans(address: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let all = address / SPAN..end.div_ceil(SPAN);
    let all = all.map(move |span| (address.max(span * SPAN), end.min((span + 1) * SPAN)));
    all.filter(|(begin, end)| begin < end)
}

/// Checks the range of a mapping.
fn check(address: u64, physical: u64, pages: u64) -> Result<(), MapError> {
    let aligned = address.is_multiple_of(PAGE) && physical.is_multiple_of(PAGE);
    let end = pages.checked_mul(PAGE).and_then(|b| address.checked_add(b));
    let exists = aligned && end.is_some_and(|end| end <= USER_END);
    exists.then_some(()).ok_or(MapError::BadAddress)
}

/// Table index of an address at a level.
const fn index(address: u64, level: u32) -> u64 {
    address >> (12 + 9 * level) & (ENTRIES - 1)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use bulkhead_abi::syscall::MAP_PAGES_MAX;
    use bulkhead_abi::tilemux::REQUEST_PIECES;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    /// Words, the pool, and how many pages were left.
    #[derive(Default)]
    struct Flat(BTreeMap<u64, u64>, Pool, u64);
    impl TableMemory for Flat {
        fn read(&self, physical: u64) -> u64 {
            *self.0.get(&physical).unwrap_or(&0)
        }
        fn write(&mut self, physical: u64, value: u64) {
            self.0.insert(physical, value);
        }
        fn pool(&mut self) -> &mut Pool {
            &mut self.1
        }
        fn left(&mut self, _: u64) {
            self.2 += 1;
        }
    }

    /// Memory with so many pages for tables.
    fn flat(pages: u64) -> Flat {
        let mut memory = Flat::default();
        give(&mut memory, 0x8000_0000, pages).unwrap();
        memory
    }

    /// Does the same again until it is done: the pieces are as many as was said at most, and none of them clears more than a table or takes
    /// out more than the lines of a page.
    fn settle<T>(
        memory: &mut Flat,
        space: &mut AddressSpace,
        mut once: impl FnMut(&mut Flat, &mut AddressSpace) -> Result<T, MapError>,
    ) -> Result<T, MapError> {
        for _ in 0..REQUEST_PIECES {
            let before = (space.tables, memory.2);
            let found = once(memory, space);
            let work = (space.tables - before.0) + (memory.2 - before.1);
            assert!(work <= 1, "{work} tables and pages in a piece");
            if !matches!(found, Err(MapError::Again)) {
                return found;
            }
            assert_eq!(work, 1, "nothing was done");
        }
        panic!("a request has more than {REQUEST_PIECES} pieces")
    }

    /// The walk of the specification, step by step: PTESIZE = 8, LEVELS = 3.
    fn walk(memory: &Flat, satp: u64, va: u64) -> Option<(u64, u64)> {
        assert_eq!(satp >> 60, 8);
        let vpn = [va >> 12 & 511, va >> 21 & 511, va >> 30 & 511];
        let mut a = (satp & ((1 << 44) - 1)) * 4096;
        for i in (0..3).rev() {
            let pte = memory.read(a + vpn[i] * 8);
            if pte & 1 == 0 || (pte & 2 == 0 && pte & 4 != 0) {
                return None;
            }
            if pte & 0b1010 != 0 {
                assert_eq!(i, 0, "no superpages here");
                return Some(((pte >> 10) * 4096 + va % 4096, pte & 0xff));
            }
            a = (pte >> 10) * 4096;
        }
        None
    }

    const RW: Rights = Rights {
        read: true,
        write: true,
        execute: false,
    };

    proptest! {
        #[test]
        fn the_hardware_sees_what_was_mapped(
            page in prop_oneof![
                2 => 0u64..(USER_END / PAGE - 600),
                // Around a border of the second or of the top level.
                1 => (1u64..200, 0u64..64, any::<bool>()).prop_map(|(border, before, top)| (border << if top { 18 } else { 9 }) - before),
            ],
            physical in 0u64..1 << 40,
            pages in 1u64..MAP_PAGES_MAX + 1,
        ) {
            let tables = table_pages(pages * PAGE);
            let mut memory = flat(tables);
            let mut space = AddressSpace::new(&mut memory, tables).unwrap();
            let (address, physical) = (page * PAGE, physical * PAGE);
            let map = |memory: &mut Flat, space: &mut AddressSpace| space.map(memory, (address, physical, pages), RW, false);
            settle(&mut memory, &mut space, map).unwrap();
            for i in [0, pages / 2, pages - 1] {
                let (found, bits) = walk(&memory, space.satp(), address + i * PAGE + 5).unwrap();
                prop_assert_eq!(found, physical + i * PAGE + 5);
                // valid, read, write, user, accessed, dirty; neither execute nor global
                prop_assert_eq!(bits, 0b1101_0111);
                prop_assert_eq!(space.translate(&memory, address + i * PAGE + 5), Some((found, RW)));
            }
            prop_assert!(walk(&memory, space.satp(), address + pages * PAGE).is_none());
            prop_assert!(page == 0 || walk(&memory, space.satp(), address - 1).is_none());
        }
    }

    proptest! {
        /// Compares pages that are mapped, replaced and unmapped with a plain table.
        #[test]
        fn pages_are_replaced_and_taken_away(
            steps in proptest::collection::vec((0u64..12, 1u64..4, 0u64..100, 0u8..4), 0..60),
        ) {
            let mut memory = flat(8);
            let mut space = AddressSpace::new(&mut memory, 8).unwrap();
            let read = Rights { write: false, ..RW };
            // Two tables of the last level: the pages lie around a border of 2 MiB.
            let base = (4 << 20) - 6 * PAGE;
            let mut plain: BTreeMap<u64, (u64, Rights)> = BTreeMap::new();
            for (page, pages, frame, how) in steps {
                let (address, physical) = (base + page * PAGE, frame * PAGE);
                let rights = if how == 1 { read } else { RW };
                // Of pages that are there, one may be replaced or taken away.
                let there = (page..page + pages).filter(|p| plain.contains_key(p)).count();
                let once = |memory: &mut Flat, space: &mut AddressSpace| match how {
                    0 => space.unmap(memory, address, pages),
                    _ => space.map(memory, (address, physical, pages), rights, true),
                };
                let found = settle(&mut memory, &mut space, once);
                prop_assert_eq!(found, if there > 1 { Err(MapError::Mapped) } else { Ok(there == 1) });
                for p in (0..pages).filter(|_| there < 2) {
                    match how {
                        0 => plain.remove(&(page + p)),
                        _ => plain.insert(page + p, (physical + p * PAGE, rights)),
                    };
                }
                for page in 0..16 {
                    let found = space.translate(&memory, base + page * PAGE);
                    prop_assert_eq!(found, plain.get(&page).copied());
                }
            }
        }
    }

    proptest! {
        /// Spaces begin, map and end in any order: whoever was promised pages gets them, no page is in two tables, and what
        /// was mapped stays, also while others come and go.
        #[test]
        fn what_was_promised_is_there(
            steps in proptest::collection::vec((0usize..5, 0u64..40, 0u64..(1 << 18), 1u64..MAP_PAGES_MAX + 1), 1..100),
            windows in 1u64..4,
        ) {
            const ALL: u64 = 120;
            let mut memory = Flat::default();
            for window in 0..windows {
                give(&mut memory, 0x8000_0000 + (window << 29), ALL / windows).unwrap();
            }
            let all = ALL / windows * windows;
            let mut spaces: [Option<(AddressSpace, u64, BTreeMap<u64, u64>)>; 5] = Default::default();
            for (who, promise, page, pages) in steps {
                let promised = |spaces: &[Option<(_, u64, _)>; 5]| spaces.iter().flatten().map(|s| s.1).sum::<u64>();
                let free = all - promised(&spaces);
                match &mut spaces[who] {
                    place @ None => {
                        let made = AddressSpace::new(&mut memory, promise);
                        prop_assert_eq!(made.is_ok(), promise >= LEVELS && promise <= free, "{} of {}", promise, free);
                        *place = made.ok().map(|space| (space, promise, BTreeMap::new()));
                    }
                    place if promise % 4 == 0 => {
                        place.take().unwrap().0.end(&mut memory);
                    }
                    Some((space, promise, plain)) => {
                        // Far apart, so that many tables of each level are needed.
                        let address = page * 37 * PAGE;
                        let once = |memory: &mut Flat, space: &mut AddressSpace| {
                            space.map(memory, (address, page * PAGE, pages), RW, true)
                        };
                        let made = settle(&mut memory, space, once);
                        let mut needed = std::collections::BTreeSet::from([(3, 0)]);
                        let known = plain.keys().copied();
                        for at in known.chain((0..pages).map(|p| address / PAGE + p)) {
                            needed.extend([(2, at >> 18), (1, at >> 9)]);
                        }
                        let there = (0..pages).filter(|p| plain.contains_key(&(address / PAGE + p))).count();
                        prop_assert_eq!(made.is_ok(), needed.len() as u64 <= *promise && there < 2);
                        if made.is_ok() {
                            (0..pages).for_each(|p| { plain.insert(address / PAGE + p, (page + p) * PAGE); });
                        }
                    }
                }
                for (space, _, plain) in spaces.iter().flatten() {
                    let ends = plain.iter().take(3).chain(plain.iter().rev().take(3));
                    for (page, physical) in ends {
                        let found = walk(&memory, space.satp(), page * PAGE).map(|found| found.0);
                        prop_assert_eq!(found, Some(*physical));
                    }
                    // No address of the other half is valid.
                    let root = space.root;
                    prop_assert!((256..512).all(|entry| memory.read(root + 8 * entry) & VALID == 0));
                }
            }
            for place in &mut spaces {
                if let Some((space, ..)) = place.take() {
                    space.end(&mut memory);
                }
            }
            // All pages are there, each once.
            prop_assert_eq!(memory.1.free, all);
            let mut pages: Vec<u64> = core::iter::from_fn(|| take(&mut memory)).collect();
            pages.sort_unstable();
            pages.dedup();
            prop_assert_eq!(pages.len() as u64, all);
        }
    }

    #[test]
    fn refuses_what_it_must() {
        let mut memory = flat(5);
        let mut space = AddressSpace::new(&mut memory, 3).unwrap();
        assert_eq!(
            space.map(&mut memory, (0x1001, 0, 1), RW, false),
            Err(MapError::BadAddress)
        );
        assert_eq!(
            space.map(&mut memory, (0x1000, 7, 1), RW, false),
            Err(MapError::BadAddress)
        );
        assert_eq!(
            space.map(&mut memory, (USER_END, 0, 1), RW, false),
            Err(MapError::BadAddress)
        );
        assert_eq!(
            space.map(&mut memory, (0, 0, u64::MAX / 2), RW, false),
            Err(MapError::BadAddress)
        );
        assert_eq!(
            space.map(&mut memory, (0x1000, 0, 1), RW, false),
            Err(MapError::Again)
        );
        assert_eq!(space.map(&mut memory, (0x1000, 0, 1), RW, false), Ok(false));
        assert_eq!(
            space.map(&mut memory, (0x1000, 0, 1), RW, false),
            Err(MapError::Mapped)
        );
        assert_eq!(
            space.map(&mut memory, (1 << 30, 0, 1), RW, false),
            Err(MapError::NoTable)
        );
        // Too few for a page, more than there are, more than a space can list.
        for pages in [0, 2, 3, u64::MAX] {
            assert_eq!(
                AddressSpace::new(&mut memory, pages).unwrap_err(),
                MapError::NoTable
            );
        }
        give(&mut memory, 0x9000_0000, 2 * TABLES_MAX).unwrap();
        assert_eq!(space.extend(&mut memory, TABLES_MAX - 3), Ok(()));
        assert_eq!(space.extend(&mut memory, 1), Err(MapError::NoTable));
        for (first, pages) in [(0x1001, 1), (0, 1), (NUMBER * PAGE, 2), (PAGE, u64::MAX)] {
            assert_eq!(give(&mut memory, first, pages), Err(MapError::BadAddress));
        }
        assert_eq!(Rights::from_bits(2), None);
        assert_eq!(Rights::from_bits(0), None);
        assert_eq!(Rights::from_bits(9), None);
    }
}
