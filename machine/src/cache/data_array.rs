//! The data array of a cache: the bytes of its lines.
//!
//! Why it exists: a line's bytes are wherever the line is, so that no access sees them before they have arrived there. It does not
//! know why a line comes or goes.

use super::{Cache, Evicted, HARTS, NO_SLOT};
use crate::types::Owner;
use std::ops::Range;

/// A line of a first-level cache that a hart is using.
#[derive(Debug)]
pub struct HeldLine<'a> {
    /// First address of the line.
    pub address: u64,
    /// Its bytes.
    pub bytes: &'a mut [u8],
    /// The hart has written it.
    pub written: bool,
    /// Which harts have a reservation for it.
    pub reserved: [bool; HARTS],
}

/// Copies the bytes of a line; the usual 64 bytes without a call.
#[inline(always)]
pub(super) fn copy_line(to: &mut [u8], from: &[u8]) {
    /// Apart: the compiler would make one call of both copies.
    #[cold]
    #[inline(never)]
    fn of_other_length(to: &mut [u8], from: &[u8]) {
        to.copy_from_slice(from);
    }
    match (
        <&mut [u8; 64]>::try_from(&mut *to),
        <&[u8; 64]>::try_from(from),
    ) {
        (Ok(to), Ok(from)) => *to = *from,
        _ => of_other_length(to, from),
    }
}

impl Cache {
    /// The bytes of the dirty line that was evicted last (in test builds, of any line).
    pub fn evicted(&self) -> &[u8] {
        &self.evicted
    }

    fn slot(&self, set: usize, way: usize) -> Range<usize> {
        let start = (set * self.ways + way) << self.line_shift;
        start..start + (1 << self.line_shift)
    }

    /// Number of the place of a line among all places (set by set, way by way), if the line is here.
    pub fn slot_of(&self, address: u64) -> Option<usize> {
        let (set, way) = self.way_of(address)?;
        Some(set * self.ways + way)
    }

    /// Number of places for lines.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Adds bytes that belong to no line, behind those of the lines. Returns their first place in [`Cache::bytes`]. They are 0 at first.
    pub fn add_beside(&mut self, bytes: usize) -> usize {
        let place = self.bytes.len();
        self.bytes.resize(place + bytes, 0);
        place
    }

    /// The bytes of a line, if it is here.
    pub fn line(&self, address: u64) -> Option<&[u8]> {
        let (set, way) = self.way_of(address)?;
        Some(&self.bytes[self.slot(set, way)])
    }

    /// The bytes of a line, if it is here. Does not make it dirty.
    pub fn line_mut(&mut self, address: u64) -> Option<&mut [u8]> {
        let (set, way) = self.way_of(address)?;
        let slot = self.slot(set, way);
        Some(&mut self.bytes[slot])
    }

    /// Takes the bytes of a line from the level above, where `owner` had it and it was dirty. Returns the line that this evicts, if any.
    pub fn take_written(&mut self, line: u64, owner: Owner, bytes: &[u8]) -> Option<Evicted> {
        match self.write_line(line, bytes) {
            true => None,
            false => self.fill_absent(line, true, owner, bytes),
        }
    }

    /// Takes the bytes of a line from the level above, where it was dirty. Returns false if the line is not here.
    fn write_line(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Some((set, way)) = self.way_of(address) else {
            return false;
        };
        self.slots[set * self.ways + way].dirty = true;
        let slot = self.slot(set, way);
        copy_line(&mut self.bytes[slot], bytes);
        true
    }

    /// Where the byte at `address` is in [`Cache::bytes`], if its line was used last in its set.
    #[inline]
    pub fn recent_place(&self, address: u64) -> usize {
        let set = self.set_of(address);
        let way = self.recent[set] as usize;
        debug_assert!(
            self.is_at(address, (set * self.ways + way) << self.line_shift),
            "{address:#x} is not in way {way} of set {set}: {:?}",
            self.tags(set)
        );
        (set * self.ways + way) << self.line_shift | address as usize & ((1 << self.line_shift) - 1)
    }

    /// The bytes of a line that was used last in its set.
    #[inline]
    pub fn recent_line(&self, line: u64) -> &[u8] {
        let start = self.recent_place(line);
        &self.bytes[start..start + (1 << self.line_shift)]
    }

    /// The bytes of the line at a place.
    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> &[u8] {
        &self.bytes[place..place + (1 << self.line_shift)]
    }

    /// Whether the line of `address` has this place in [`Cache::bytes`].
    pub fn is_at(&self, address: u64, place: usize) -> bool {
        let slot = place >> self.line_shift;
        let (set, way) = (slot / self.ways, slot % self.ways);
        set == self.set_of(address)
            && self.tags(set)[way] == (address >> self.line_shift) as u32 + 1
    }

    /// Notes that a hart has written the line at this place in [`Cache::bytes`]. Other harts' reservations for it end.
    #[inline]
    pub fn wrote(&mut self, place: usize, hart: usize) {
        let slot = place >> self.line_shift;
        self.slots[slot].dirty = true;
        let other = &mut self.reserved[HARTS - 1 - hart];
        if *other == slot {
            *other = NO_SLOT;
        }
    }

    /// Ends all reservations for the line in a slot.
    #[inline]
    pub(super) fn end_reservations(&mut self, slot: usize) {
        for reserved in &mut self.reserved {
            if *reserved == slot {
                *reserved = NO_SLOT;
            }
        }
    }

    /// The bytes of all lines, and those beside them ([`Cache::add_beside`]).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes of all lines, for a store to a dirty one.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// A load-reserved of a hart reads the line that contains `address`, which is here.
    pub fn reserve(&mut self, address: u64, hart: usize) {
        self.reserved[hart] = self.here(address, "reserved");
    }

    /// Whether a hart has a reservation for this line.
    pub fn is_reserved(&self, line: u64) -> bool {
        let slot = self.slot_of(line);
        slot.is_some_and(|slot| self.reserved.contains(&slot))
    }

    /// Ends a hart's reservation. Returns whether the reservation was for the line that contains `address` and that line has neither left
    /// the cache nor been written by another hart since.
    pub fn take_reservation(&mut self, address: u64, hart: usize) -> bool {
        let slot = std::mem::replace(&mut self.reserved[hart], NO_SLOT);
        slot != NO_SLOT && self.is_at(address, slot << self.line_shift)
    }

    /// Gives the line these bytes and marks it clean, if it is here.
    pub fn clean(&mut self, address: u64, bytes: &[u8]) {
        if let Some((set, way)) = self.way_of(address) {
            self.slots[set * self.ways + way].dirty = false;
            let slot = self.slot(set, way);
            self.bytes[slot].copy_from_slice(bytes);
        }
    }

    /// Marks a line clean, if it is here.
    pub fn mark_clean(&mut self, address: u64) {
        if let Some((set, way)) = self.way_of(address) {
            self.slots[set * self.ways + way].dirty = false;
        }
    }

    /// The bytes of the line in a place ([`Cache::slot_of`]).
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        let start = slot << self.line_shift;
        &mut self.bytes[start..start + (1 << self.line_shift)]
    }

    /// The bytes of a line, if it is here and dirty.
    pub fn dirty_line(&self, address: u64) -> Option<&[u8]> {
        let (set, way) = self.way_of(address)?;
        self.slots[set * self.ways + way]
            .dirty
            .then(|| &self.bytes[self.slot(set, way)])
    }

    /// Replaces the bytes of the evicted line by those of another. Keeps the evicted bytes if they are still needed.
    #[inline(always)]
    pub(super) fn replace(&mut self, at: usize, evicted: Option<Evicted>, bytes: &[u8]) {
        let start = at << self.line_shift;
        let slot = &mut self.bytes[start..start + bytes.len()];
        if let Some(e) = evicted {
            if e.dirty || cfg!(debug_assertions) {
                copy_line(&mut self.evicted, slot);
            }
            self.end_reservations(at);
        }
        let slot = &mut self.bytes[start..start + bytes.len()];
        copy_line(slot, bytes);
    }

    /// The place of a line that must be here.
    fn here(&self, address: u64, to_be: &str) -> usize {
        self.slot_of(address)
            .unwrap_or_else(|| panic!("the line at {address:#x} is not here to be {to_be}"))
    }

    /// Lets a hart use a line, which must be here.
    pub fn hold(&mut self, address: u64, using: impl FnOnce(&mut HeldLine<'_>)) {
        let slot = self.here(address, "used");
        let start = slot << self.line_shift;
        let mut line = HeldLine {
            address,
            bytes: &mut self.bytes[start..start + (1 << self.line_shift)],
            written: false,
            reserved: self.reserved.map(|reserved| reserved == slot),
        };
        using(&mut line);
        let (written, reserved) = (line.written, line.reserved);
        self.slots[slot].dirty |= written;
        for (of_hart, reserved) in self.reserved.iter_mut().zip(reserved) {
            if reserved {
                *of_hart = slot;
            } else if *of_hart == slot {
                *of_hart = NO_SLOT;
            }
        }
    }
}
