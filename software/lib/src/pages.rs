//! Memory that begins with a page.
//!
//! Why it exists: the unit transfers up to a page boundary with one command, so a buffer that begins with a page takes the fewest
//! commands. What it deliberately does not know: the contents.

use alloc::vec::Vec;
use bulkhead_abi::dtu::PAGE_SIZE;
use bulkhead_common::status::Status;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// One page.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_SIZE as usize]);

/// Whole pages of the heap.
#[derive(Clone, Debug, Default)]
pub struct Pages(Vec<Page>);

impl Pages {
    /// This many pages of zeros.
    pub fn new(pages: usize) -> Self {
        Self(alloc::vec![Page::new_zeroed(); pages])
    }

    /// Makes room for this many bytes.
    ///
    /// # Errors
    /// [`Status::NoSpace`] if the heap has none: the number of bytes may come from others.
    pub fn grow(&mut self, bytes: usize) -> Result<(), Status> {
        let pages = bytes.div_ceil(PAGE_SIZE as usize);
        if pages > self.0.len() {
            // The contents need not survive.
            self.0.clear();
            let room = self.0.try_reserve_exact(pages);
            room.map_err(|_| Status::NoSpace)?;
            self.0.resize(pages, Page::new_zeroed());
        }
        Ok(())
    }

    /// The bytes of all pages.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The bytes of all pages, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_bytes()
    }
}
