//! The unit's TLB for virtual pages of activities, filled only by TileMux.
//!
//! Why it exists: applications give commands with virtual addresses, which the unit must not trust. It does not walk
//! page tables; a miss ends the command. Physical addresses are checked against the protection windows elsewhere, so a
//! wrong entry can only harm the tile that inserted it.

use bulkhead_abi::dtu::PAGE_SIZE;

#[derive(Clone, Debug)]
struct Entry {
    activity: u16,
    virtual_page: u64,
    physical_page: u64,
    rights: u64,
    /// Value of the use counter at the last use.
    used: u64,
}

/// Fully associative; the least recently used entry is replaced.
#[derive(Clone, Debug)]
pub struct Tlb {
    entries: Vec<Entry>,
    capacity: usize,
    uses: u64,
}

impl Tlb {
    /// An empty TLB of `capacity` entries.
    pub fn new(capacity: u16) -> Self {
        Self {
            entries: Vec::with_capacity(capacity.into()),
            capacity: capacity.into(),
            uses: 0,
        }
    }

    /// Inserts or replaces the entry of a page. Offsets within the pages are ignored.
    pub fn insert(
        &mut self,
        activity: u16,
        virtual_address: u64,
        physical_address: u64,
        rights: u64,
    ) {
        self.invalidate(activity, virtual_address);
        if self.capacity == 0 {
            return;
        }
        if self.entries.len() == self.capacity {
            // Use numbers are unique, so the choice does not depend on the order of the entries.
            if let Some(oldest) = (0..self.entries.len()).min_by_key(|&i| self.entries[i].used) {
                self.entries.swap_remove(oldest);
            }
        }
        self.uses += 1;
        self.entries.push(Entry {
            activity,
            virtual_page: virtual_address / PAGE_SIZE,
            physical_page: physical_address / PAGE_SIZE,
            rights,
            used: self.uses,
        });
    }

    /// The physical address, if there is an entry with at least these rights.
    pub fn translate(&mut self, activity: u16, address: u64, rights: u64) -> Option<u64> {
        let page = address / PAGE_SIZE;
        let entry = self
            .entries
            .iter_mut()
            .find(|e| e.activity == activity && e.virtual_page == page)?;
        if entry.rights & rights != rights {
            return None;
        }
        self.uses += 1;
        entry.used = self.uses;
        Some(entry.physical_page * PAGE_SIZE + address % PAGE_SIZE)
    }

    /// Drops the entry of a page.
    pub fn invalidate(&mut self, activity: u16, address: u64) {
        let page = address / PAGE_SIZE;
        self.entries
            .retain(|e| e.activity != activity || e.virtual_page != page);
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkhead_abi::dtu::{TLB_READ, TLB_WRITE};

    #[test]
    fn translates_only_for_its_activity_and_rights() {
        let mut tlb = Tlb::new(4);
        tlb.insert(1, 0x1000_0000, 0x8000_3000, TLB_READ);
        assert_eq!(tlb.translate(1, 0x1000_0123, TLB_READ), Some(0x8000_3123));
        assert_eq!(tlb.translate(1, 0x1000_0123, TLB_WRITE), None);
        assert_eq!(tlb.translate(2, 0x1000_0123, TLB_READ), None);
        assert_eq!(tlb.translate(1, 0x1000_1000, TLB_READ), None);
        tlb.insert(1, 0x1000_0000, 0x8000_4000, TLB_READ | TLB_WRITE);
        assert_eq!(tlb.translate(1, 0x1000_0008, TLB_WRITE), Some(0x8000_4008));
        tlb.invalidate(1, 0x1000_0fff);
        assert_eq!(tlb.translate(1, 0x1000_0008, TLB_READ), None);
    }

    #[test]
    fn replaces_the_least_recently_used() {
        let mut tlb = Tlb::new(2);
        tlb.insert(1, 0x1000, 0x1000, TLB_READ);
        tlb.insert(1, 0x2000, 0x2000, TLB_READ);
        assert!(tlb.translate(1, 0x1000, TLB_READ).is_some());
        tlb.insert(1, 0x3000, 0x3000, TLB_READ);
        assert!(tlb.translate(1, 0x1000, TLB_READ).is_some());
        assert!(tlb.translate(1, 0x2000, TLB_READ).is_none());
        tlb.clear();
        assert!(tlb.translate(1, 0x1000, TLB_READ).is_none());
    }

    #[test]
    fn without_entries_everything_misses() {
        let mut tlb = Tlb::new(0);
        tlb.insert(1, 0x1000, 0x1000, TLB_READ);
        assert!(tlb.translate(1, 0x1000, TLB_READ).is_none());
    }
}
