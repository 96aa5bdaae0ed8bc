//! Page tables of Sv39 with pages of 4 KiB (RISC-V privileged architecture, version 20211203, section 4.4).
//!
//! Why it exists: TileMux maps the pages that the kernel names. What it deliberately does not know: which activity owns which
//! memory, and how table memory is accessed. The latter is a trait, so that tests on the host can compare this file with a walk
//! written from the specification.

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Virtual addresses for user pages end here (half of the 39-bit space).
pub const USER_END: u64 = 1 << 38;
/// Entries of a table.
const ENTRIES: u64 = 512;
/// Bytes that a table of the last level maps.
const SPAN: u64 = PAGE * ENTRIES;

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

/// Access to physical memory that holds tables, in aligned 64-bit words.
pub trait TableMemory {
    /// Reads a word.
    fn read(&self, physical: u64) -> u64;
    /// Writes a word.
    fn write(&mut self, physical: u64, value: u64);
}

/// Why a mapping failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// An address is not page aligned or outside the user's half.
    BadAddress,
    /// A page is mapped already.
    Mapped,
    /// No page left for a table.
    NoTable,
}

/// An address space whose tables come from a region of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressSpace {
    root: u64,
    next: u64,
    end: u64,
    /// More pages for tables, used after the first ones; empty if there are none.
    spare: (u64, u64),
}

impl AddressSpace {
    /// An empty space. `tables` is the physical address of `pages` pages.
    ///
    /// # Errors
    /// [`MapError::NoTable`] without at least one page, [`MapError::BadAddress`] if not aligned.
    pub fn new(memory: &mut impl TableMemory, tables: u64, pages: u64) -> Result<Self, MapError> {
        let end = pages.checked_mul(PAGE).and_then(|b| tables.checked_add(b));
        let end = end.filter(|_| tables.is_multiple_of(PAGE));
        let mut space = Self {
            root: 0,
            next: tables,
            end: end.ok_or(MapError::BadAddress)?,
            spare: (0, 0),
        };
        space.root = space.table(memory)?;
        Ok(space)
    }

    /// Value of `satp` for this space.
    pub const fn satp(&self) -> u64 {
        8 << 60 | self.root >> 12
    }

    /// Gives the space more pages for tables, once.
    ///
    /// # Errors
    /// [`MapError::NoTable`] the second time, [`MapError::BadAddress`] if not aligned.
    pub fn extend(&mut self, tables: u64, pages: u64) -> Result<(), MapError> {
        let end = pages.checked_mul(PAGE).and_then(|b| tables.checked_add(b));
        match end {
            Some(end) if tables.is_multiple_of(PAGE) && self.spare == (0, 0) => {
                self.spare = (tables, end);
                Ok(())
            }
            Some(_) if tables.is_multiple_of(PAGE) => Err(MapError::NoTable),
            _ => Err(MapError::BadAddress),
        }
    }

    fn table(&mut self, memory: &mut impl TableMemory) -> Result<u64, MapError> {
        if self.next >= self.end {
            // The used-up range replaces the spare one, so that no more can be added.
            (self.next, self.end) = self.spare;
            self.spare.0 = self.spare.1;
        }
        if self.next >= self.end {
            return Err(MapError::NoTable);
        }
        let table = self.next;
        self.next += PAGE;
        (0..ENTRIES).for_each(|i| memory.write(table + 8 * i, 0));
        Ok(table)
    }

    /// Maps `pages` pages from `address` on to physical memory from `physical` on.
    ///
    /// # Errors
    /// See [`MapError`]; then nothing has changed.
    pub fn map(
        &mut self,
        memory: &mut impl TableMemory,
        address: u64,
        physical: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), MapError> {
        self.place(memory, (address, physical, pages), rights, false)
            .map(|_| ())
    }

    /// Maps pages as [`map`](Self::map) does, but replaces those that are mapped there. Returns whether there were any; if so, the
    /// caller must drop cached translations.
    ///
    /// # Errors
    /// [`MapError::BadAddress`], [`MapError::NoTable`]; then nothing has changed.
    pub fn replace(
        &mut self,
        memory: &mut impl TableMemory,
        address: u64,
        physical: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<bool, MapError> {
        self.place(memory, (address, physical, pages), rights, true)
    }

    /// Unmaps pages and ignores those that are not mapped. Returns whether any was mapped. Tables stay where they are.
    ///
    /// # Errors
    /// [`MapError::BadAddress`].
    pub fn unmap(
        &mut self,
        memory: &mut impl TableMemory,
        address: u64,
        pages: u64,
    ) -> Result<bool, MapError> {
        check(address, 0, pages)?;
        let mut found = false;
        for page in 0..pages {
            if let Some(entry) = self.leaf(memory, address + page * PAGE)
                && memory.read(entry) & VALID != 0
            {
                memory.write(entry, 0);
                found = true;
            }
        }
        Ok(found)
    }

    fn place(
        &mut self,
        memory: &mut impl TableMemory,
        (address, physical, pages): (u64, u64, u64),
        rights: Rights,
        replace: bool,
    ) -> Result<bool, MapError> {
        check(address, physical, pages)?;
        let end = address + pages * PAGE;
        self.admit(memory, (address, end), replace)?;
        let mut found = false;
        let bits = (u64::from(rights.read) * READ)
            | (u64::from(rights.write) * WRITE)
            | (u64::from(rights.execute) * EXECUTE);
        let mut number = physical >> 12;
        for (at, next) in spans(address, end) {
            let first = self.entry(memory, at)?;
            for entry in (first..first + (next - at) / PAGE * 8).step_by(8) {
                found |= memory.read(entry) & VALID != 0;
                memory.write(entry, number << 10 | bits | VALID | USER | ACCESSED_DIRTY);
                number += 1;
            }
        }
        Ok(found)
    }

    /// Whether pages can be mapped in a range: there is memory for the tables, and, if nothing may be replaced, none of the pages
    /// is mapped.
    fn admit(
        &self,
        memory: &impl TableMemory,
        (address, end): (u64, u64),
        replace: bool,
    ) -> Result<(), MapError> {
        let mut tables = 0;
        // The last table of the second level that does not exist.
        let mut missing = None;
        for (at, next) in spans(address, end) {
            let is_valid = |entry| memory.read(entry) & VALID != 0;
            let top = index(at, 2);
            match self.leaf(memory, at) {
                Some(_) if replace => {}
                Some(first) => {
                    let mut entries = (first..first + (next - at) / PAGE * 8).step_by(8);
                    if entries.any(is_valid) {
                        return Err(MapError::Mapped);
                    }
                }
                None if is_valid(self.root + 8 * top) => tables += 1,
                // The first one behind a missing table needs that table, too.
                None => tables += 1 + u64::from(missing.replace(top) != Some(top)),
            }
        }
        let left = (self.end - self.next) + (self.spare.1 - self.spare.0);
        match tables * PAGE <= left {
            true => Ok(()),
            false => Err(MapError::NoTable),
        }
    }

    /// Address of the last-level entry of a page; makes the tables on the way.
    fn entry(&mut self, memory: &mut impl TableMemory, address: u64) -> Result<u64, MapError> {
        let mut table = self.root;
        for level in [2, 1] {
            let entry = table + 8 * index(address, level);
            let value = memory.read(entry);
            table = if value & VALID == 0 {
                let new = self.table(memory)?;
                memory.write(entry, new >> 12 << 10 | VALID);
                new
            } else {
                value >> 10 << 12
            };
        }
        Ok(table + 8 * index(address, 0))
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
        let rights = Rights {
            read: value & READ != 0,
            write: value & WRITE != 0,
            execute: value & EXECUTE != 0,
        };
        (value & VALID != 0).then_some(((value >> 10 << 12) | (address % PAGE), rights))
    }
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
    match aligned && end.is_some_and(|end| end <= USER_END) {
        true => Ok(()),
        false => Err(MapError::BadAddress),
    }
}

/// Table index of an address at a level.
const fn index(address: u64, level: u32) -> u64 {
    address >> (12 + 9 * level) & (ENTRIES - 1)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Flat(BTreeMap<u64, u64>);
    impl TableMemory for Flat {
        fn read(&self, physical: u64) -> u64 {
            *self.0.get(&physical).unwrap_or(&0)
        }
        fn write(&mut self, physical: u64, value: u64) {
            self.0.insert(physical, value);
        }
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
        fn the_hardware_sees_what_was_mapped(page in 0u64..(USER_END / PAGE - 600), physical in 0u64..1 << 40, pages in 1u64..600) {
            let mut memory = Flat::default();
            let mut space = AddressSpace::new(&mut memory, 0x8000_0000, bulkhead_abi::tilemux::table_pages(pages * PAGE)).unwrap();
            let (address, physical) = (page * PAGE, physical * PAGE);
            space.map(&mut memory, address, physical, pages, RW).unwrap();
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
            let mut memory = Flat::default();
            let mut space = AddressSpace::new(&mut memory, 0x8000_0000, 8).unwrap();
            let read = Rights { write: false, ..RW };
            // Two tables of the last level: the pages lie around a border of 2 MiB.
            let base = (4 << 20) - 6 * PAGE;
            let mut plain: BTreeMap<u64, (u64, Rights)> = BTreeMap::new();
            for (page, pages, frame, how) in steps {
                let (address, physical) = (base + page * PAGE, frame * PAGE);
                let there = |plain: &BTreeMap<u64, _>| (page..page + pages).any(|p| plain.contains_key(&p));
                let rights = if how == 1 { read } else { RW };
                match how {
                    0 => {
                        let found = space.unmap(&mut memory, address, pages);
                        prop_assert_eq!(found, Ok(there(&plain)));
                        (page..page + pages).for_each(|p| { plain.remove(&p); });
                    }
                    _ => {
                        let found = space.replace(&mut memory, address, physical, pages, rights);
                        prop_assert_eq!(found, Ok(there(&plain)));
                        (0..pages).for_each(|p| { plain.insert(page + p, (physical + p * PAGE, rights)); });
                    }
                }
                for page in 0..16 {
                    let found = space.translate(&memory, base + page * PAGE);
                    prop_assert_eq!(found, plain.get(&page).copied());
                }
            }
        }
    }

    #[test]
    fn refuses_what_it_must() {
        let mut memory = Flat::default();
        let mut space = AddressSpace::new(&mut memory, 0x1000, 3).unwrap();
        assert_eq!(
            space.map(&mut memory, 0x1001, 0, 1, RW),
            Err(MapError::BadAddress)
        );
        assert_eq!(
            space.map(&mut memory, 0x1000, 7, 1, RW),
            Err(MapError::BadAddress)
        );
        assert_eq!(
            space.map(&mut memory, USER_END, 0, 1, RW),
            Err(MapError::BadAddress)
        );
        assert_eq!(
            space.map(&mut memory, 0, 0, u64::MAX / 2, RW),
            Err(MapError::BadAddress)
        );
        assert_eq!(space.map(&mut memory, 0x1000, 0, 1, RW), Ok(()));
        assert_eq!(
            space.map(&mut memory, 0x1000, 0, 1, RW),
            Err(MapError::Mapped)
        );
        assert_eq!(
            space.map(&mut memory, 1 << 30, 0, 1, RW),
            Err(MapError::NoTable)
        );
        assert_eq!(
            AddressSpace::new(&mut memory, 0x1000, 0).unwrap_err(),
            MapError::NoTable
        );
        assert_eq!(Rights::from_bits(2), None);
        assert_eq!(Rights::from_bits(0), None);
        assert_eq!(Rights::from_bits(9), None);
    }
}
