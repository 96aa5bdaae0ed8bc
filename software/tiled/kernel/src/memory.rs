//! Physical memory: regions are cut from the front of a range.
//!
//! Why it exists: every byte is given to one owner. What it deliberately does not know: owners. Nothing is ever given
//! twice: memory of an activity that stopped stays out of use until the next boot, so that no late transfer of another tile
//! can reach a new owner.

/// Granularity of regions in bytes.
pub const PAGE: u64 = 4096;

/// A range of memory of which the front part is given away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    next: u64,
    end: u64,
}

impl Range {
    /// The bytes from `start` to `end`; only whole pages are given.
    pub const fn new(start: u64, end: u64) -> Self {
        Self {
            next: start.next_multiple_of(PAGE),
            end: end / PAGE * PAGE,
        }
    }

    /// Start of a region of `size` bytes, rounded up to pages, or none if there is no room.
    pub fn take(&mut self, size: u64) -> Option<u64> {
        let size = size.checked_next_multiple_of(PAGE)?;
        let end = self.next.checked_add(size)?;
        if end > self.end {
            return None;
        }
        let start = self.next;
        self.next = end;
        Some(start)
    }

    /// Bytes that are left.
    pub const fn left(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }
}
