//! Decisions of the pager: which page of its memory a client gets, with what in it, and when it gets none.
//!
//! Why it exists: they are pure and tested on the host. What it deliberately does not know: messages, memory, and how a page gets
//! into an address space.
//!
//! Every client has a pool of its own, so that none takes pages from another, and a limit. A page of the heap is zeros; one of
//! a file is a copy of what the file holds there. What comes with a fault are the pages behind it, too, as many as the pager was
//! told, if nobody has touched them.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

use alloc::vec;
use alloc::vec::Vec;
use bulkhead_abi::pager::PagerAccess;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// A range of addresses: the first one, and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address, page aligned.
    pub start: u64,
    /// Pages.
    pub pages: u64,
}

impl Range {
    /// Number of the page at an address in it.
    fn page(&self, address: u64) -> Option<u64> {
        let page = address.checked_sub(self.start)? / PAGE;
        (page < self.pages).then_some(page)
    }
}

/// What a page holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// Zeros.
    Zeros,
    /// A file from an offset on, then zeros.
    File {
        /// Its number: the first one that was placed has 0.
        file: usize,
        /// Offset in bytes.
        offset: u64,
    },
}

/// Pages for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Address of the first one.
    pub address: u64,
    /// The first one's number in the client's pool.
    pub page: u64,
    /// How many, one behind the other in both.
    pub pages: u64,
    /// What is in them.
    pub contents: Contents,
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is at this address, or what was wanted is not allowed there.
    NotThere,
    /// The page was given already.
    Given,
    /// The client has as many as it may.
    NoQuota,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    first: u64,
    pages: u64,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    heap: Range,
    area: Range,
    /// Pages that it may have.
    limit: u64,
    given: u64,
    /// Which pages of heap and area were given, as bits.
    there: Vec<u64>,
    files: Vec<Placed>,
}

impl Client {
    /// With a heap, an area for files, and at most so many pages.
    pub fn new(heap: Range, area: Range, limit: u64) -> Self {
        let words = (heap.pages + area.pages).div_ceil(64) as usize;
        Self {
            heap,
            area,
            limit,
            given: 0,
            there: vec![0; words],
            files: Vec::new(),
        }
    }

    /// Pages that were given and can still be.
    pub const fn count(&self) -> (u64, u64) {
        (self.given, self.limit - self.given)
    }

    fn is_there(&self, page: u64) -> bool {
        let word = self.there.get((page / 64) as usize);
        word.is_none_or(|word| word >> (page % 64) & 1 == 1)
    }

    /// Finds room for a file of so many bytes: its number and its address.
    pub fn place(&mut self, bytes: u64) -> Option<(usize, u64)> {
        let pages = bytes.div_ceil(PAGE).max(1);
        let first = self.files.last().map_or(0, |last| last.first + last.pages);
        let end = first.checked_add(pages)?;
        (end <= self.area.pages).then_some(())?;
        self.files.push(Placed { first, pages });
        Some((self.files.len() - 1, self.area.start + first * PAGE))
    }

    /// What a fault at an address gets: at most `most` pages, at least one.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn fault(
        &mut self,
        address: u64,
        access: PagerAccess,
        most: u64,
    ) -> Result<Given, Refusal> {
        if access == PagerAccess::Execute {
            return Err(Refusal::NotThere);
        }
        let (bit, end, contents) = match (self.heap.page(address), self.area.page(address)) {
            (Some(page), _) => (page, self.heap.pages, Contents::Zeros),
            (_, Some(page)) => {
                let holds = |f: &Placed| (f.first..f.first + f.pages).contains(&page);
                let file = self.files.iter().position(holds);
                let file = file.ok_or(Refusal::NotThere)?;
                let Placed { first, pages } = self.files[file];
                let offset = (page - first) * PAGE;
                let end = self.heap.pages + first + pages;
                let contents = Contents::File { file, offset };
                (self.heap.pages + page, end, contents)
            }
            _ => return Err(Refusal::NotThere),
        };
        if self.is_there(bit) {
            return Err(Refusal::Given);
        }
        let left = self.limit - self.given;
        let most = most.max(1).min(left).min(end - bit);
        let pages = (0..most)
            .take_while(|next| !self.is_there(bit + next))
            .count() as u64;
        if pages == 0 {
            return Err(Refusal::NoQuota);
        }
        for page in bit..bit + pages {
            self.there[(page / 64) as usize] |= 1 << (page % 64);
        }
        let page = self.given;
        self.given += pages;
        Ok(Given {
            address: address & !(PAGE - 1),
            page,
            pages,
            contents,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    const HEAP: Range = Range {
        start: 0x1002_0000,
        pages: 20,
    };
    const AREA: Range = Range {
        start: 0x1020_0000,
        pages: 8,
    };

    #[test]
    fn a_heap_page_is_given_once() {
        let mut client = Client::new(HEAP, AREA, 3);
        let at = HEAP.start + 5 * PAGE;
        let given = client.fault(at + 77, PagerAccess::Write, 1).unwrap();
        assert_eq!(
            given,
            Given {
                address: at,
                page: 0,
                pages: 1,
                contents: Contents::Zeros
            }
        );
        assert_eq!(client.fault(at, PagerAccess::Read, 1), Err(Refusal::Given));
        // Those behind it come, too, but not the one that is there, and not more than the limit.
        let before = client.fault(at - 2 * PAGE, PagerAccess::Read, 4).unwrap();
        assert_eq!((before.page, before.pages), (1, 2));
        assert_eq!(client.count(), (3, 0));
        assert_eq!(
            client.fault(HEAP.start, PagerAccess::Read, 1),
            Err(Refusal::NoQuota)
        );
    }

    #[test]
    fn nothing_is_beside_heap_and_files() {
        let mut client = Client::new(HEAP, AREA, 100);
        let end = HEAP.start + HEAP.pages * PAGE;
        for address in [0, HEAP.start - 1, end, AREA.start, u64::MAX] {
            assert_eq!(
                client.fault(address, PagerAccess::Read, 1),
                Err(Refusal::NotThere),
                "{address:#x}"
            );
        }
        assert_eq!(
            client.fault(HEAP.start, PagerAccess::Execute, 1),
            Err(Refusal::NotThere)
        );
        assert_eq!(client.place(3 * PAGE - 1), Some((0, AREA.start)));
        assert_eq!(client.place(0), Some((1, AREA.start + 3 * PAGE)));
        assert_eq!(client.place(5 * PAGE), None);
        assert_eq!(client.place(u64::MAX), None);
        let second = client
            .fault(AREA.start + PAGE + 9, PagerAccess::Read, 8)
            .unwrap();
        assert_eq!(
            second,
            Given {
                address: AREA.start + PAGE,
                page: 0,
                pages: 2,
                contents: Contents::File {
                    file: 0,
                    offset: PAGE
                }
            }
        );
        assert_eq!(
            client.fault(AREA.start + 4 * PAGE, PagerAccess::Read, 1),
            Err(Refusal::NotThere)
        );
    }

    proptest! {
        /// No page of the pool is given twice, none beyond the limit, and every address has one page.
        #[test]
        fn pages_are_nobody_elses(
            limit in 0u64..40, most in 0u64..6, faults in proptest::collection::vec((0u64..30, any::<bool>()), 0..80),
        ) {
            let mut client = Client::new(HEAP, AREA, limit);
            client.place(AREA.pages * PAGE).unwrap();
            let mut pool = BTreeSet::new();
            let mut mapped = BTreeMap::new();
            for (page, file) in faults {
                let range = if file { AREA } else { HEAP };
                let address = range.start + page * PAGE + 1;
                match client.fault(address, PagerAccess::Write, most) {
                    Ok(given) => {
                        prop_assert!(given.pages <= most.max(1));
                        for next in 0..given.pages {
                            prop_assert!(pool.insert(given.page + next));
                            let at = given.address + next * PAGE;
                            prop_assert!(range.page(at).is_some());
                            prop_assert_eq!(mapped.insert(at, given.page + next), None);
                        }
                    }
                    Err(Refusal::Given) => prop_assert!(mapped.contains_key(&(address - 1))),
                    Err(Refusal::NotThere) => prop_assert!(page >= range.pages),
                    Err(Refusal::NoQuota) => prop_assert_eq!(pool.len() as u64, limit),
                }
                prop_assert!(pool.iter().all(|page| *page < limit));
            }
        }
    }
}
