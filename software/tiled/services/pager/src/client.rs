//! One client: its addresses, its frames, and the contents of its pages.
//!
//! What it deliberately does not know: other clients.

use crate::Refusal;
use crate::frames::Frames;
use alloc::vec;
use bulkhead_common::payer::{Fixed, PaidList, PaidQueue, Share};

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The most files of a client.
pub const FILES: usize = 32;
/// The most pages that one fault brings.
const RUN: u64 = 64;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address, page aligned.
    pub start: u64,
    /// Pages.
    pub pages: u64,
}

impl Range {
    /// The number of the page at an address, if the address is in the range.
    fn page(&self, address: u64) -> Option<u64> {
        let page = address.checked_sub(self.start)? / PAGE;
        (page < self.pages).then_some(page)
    }
}

/// The initial contents of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Zeros.
    Zeros,
    /// A page of a file: the file's number and the page's.
    File(usize, u64),
}

/// A page of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Absent,
    /// As in its file, and read-only.
    Clean(u32),
    /// The client's own.
    Changed(u32),
    /// A frame shared with others.
    Shared,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    first: u64,
    pages: u64,
    file: usize,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    heap: Range,
    area: Range,
    /// Pages that it may have.
    limit: u64,
    frames: Frames,
    /// The pages of the heap, then those of the area.
    pages: Fixed<Page>,
    /// Its own unchanged pages, oldest first; some entries are of pages that have been changed or lost since.
    clean: PaidQueue<Share, u32>,
    placed: PaidList<Share, Placed>,
}

impl Client {
    /// With a heap, an area for files, and at most this many pages.
    pub fn new(heap: Range, area: Range, limit: u64) -> Self {
        let pages = vec![Page::Absent; (heap.pages + area.pages) as usize];
        Self {
            heap,
            area,
            limit,
            frames: Frames::new(limit),
            pages: pages.into(),
            clean: PaidQueue::default(),
            placed: PaidList::default(),
        }
    }

    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.heap, self.area, self.limit);
    }

    /// Pages given to the client, and those that still can be.
    pub const fn count(&self) -> (u64, u64) {
        let (all, used) = self.frames.count();
        (used, all - used)
    }

    /// The frame to fill with zeros next, if fewer than `enough` hold zeros.
    pub fn wants_zeros(&self, enough: u64) -> Option<u64> {
        self.frames.wants_zeros(enough)
    }

    /// This frame holds zeros now.
    pub fn zeroed(&mut self, frame: u64) {
        self.frames.zeroed(frame);
    }

    /// Finds room for a file of this many bytes and returns its address. `file` is its number for the pager.
    pub fn place(&mut self, bytes: u64, file: usize) -> Option<u64> {
        let pages = bytes.div_ceil(PAGE).max(1);
        let first = self.placed.last().map_or(0, |last| last.first + last.pages);
        let end = first.checked_add(pages)?;
        (end <= self.area.pages && self.placed.len() < FILES).then_some(())?;
        self.placed.push(Placed { first, pages, file });
        Some(self.area.start + first * PAGE)
    }

    /// Whether it has a file with this number.
    pub(crate) fn has(&self, file: usize) -> bool {
        self.placed.iter().any(|placed| placed.file == file)
    }

    /// The number of the page at an address.
    pub(crate) fn page(&self, address: u64) -> Option<u64> {
        let area = || Some(self.heap.pages + self.area.page(address)?);
        self.heap.page(address).or_else(area)
    }

    fn address(&self, page: u64) -> u64 {
        match page.checked_sub(self.heap.pages) {
            None => self.heap.start + page * PAGE,
            Some(page) => self.area.start + page * PAGE,
        }
    }

    fn placed(&self, page: u64) -> Option<Placed> {
        let page = page.checked_sub(self.heap.pages)?;
        let holds = |f: &&Placed| (f.first..f.first + f.pages).contains(&page);
        self.placed.iter().find(holds).copied()
    }

    /// The initial contents of a page; `None` if there is no such page.
    pub(crate) fn source(&self, page: u64) -> Option<Source> {
        if page < self.heap.pages {
            return Some(Source::Zeros);
        }
        let Placed { first, file, .. } = self.placed(page)?;
        Some(Source::File(file, page - self.heap.pages - first))
    }

    fn state(&self, page: u64) -> Page {
        let state = self.pages.get(page as usize);
        state.copied().unwrap_or(Page::Absent)
    }

    fn set(&mut self, page: u64, state: Page) {
        if let Some(place) = self.pages.get_mut(page as usize) {
            *place = state;
        }
    }

    pub(crate) fn is_shared(&self, page: u64) -> bool {
        self.state(page) == Page::Shared
    }

    /// Its own frame for a page, and whether it may write it.
    pub(crate) fn own(&self, page: u64) -> Option<(u64, bool)> {
        match self.state(page) {
            Page::Clean(frame) => Some((frame.into(), false)),
            Page::Changed(frame) => Some((frame.into(), true)),
            Page::Absent | Page::Shared => None,
        }
    }

    /// A page of its own is about to be written.
    pub(crate) fn changes(&mut self, page: u64) {
        if let Page::Clean(frame) = self.state(page) {
            self.set(page, Page::Changed(frame));
        }
    }

    /// A page is now shared with others.
    pub(crate) fn share(&mut self, page: u64) {
        self.set(page, Page::Shared);
    }

    /// A page is gone.
    pub(crate) fn lose(&mut self, page: u64) {
        if let Some((frame, _)) = self.own(page) {
            self.frames.free(frame);
        }
        self.set(page, Page::Absent);
    }

    /// A frame: a free one, or that of the oldest unchanged page; then also that page's address.
    fn frame(&mut self, zeros: bool) -> Result<(u64, bool, Option<u64>), Refusal> {
        if let Some((frame, zero)) = self.frames.take(zeros) {
            return Ok((frame, zero, None));
        }
        // The entries before it are of pages that have been changed or lost since; without an unchanged page nothing is
        // changed.
        let mut clean = self.clean.iter().copied().enumerate();
        let oldest = clean.find_map(|(at, page)| match self.state(page.into()) {
            Page::Clean(frame) => Some((at, page.into(), frame)),
            _ => None,
        });
        let (at, page, frame) = oldest.ok_or(Refusal::NoQuota)?;
        self.clean.drain(..=at);
        self.set(page, Page::Absent);
        Ok((frame.into(), false, Some(self.address(page))))
    }

    fn hold(&mut self, page: u64, frame: u64, changed: bool) {
        let frame = frame as u32;
        if changed {
            self.set(page, Page::Changed(frame));
            return;
        }
        // Entries of pages that have been changed or lost since are dropped before they pile up.
        if self.clean.len() >= 2 * self.limit as usize {
            let pages = &self.pages;
            let is_clean = |page: &u32| matches!(pages[*page as usize], Page::Clean(_));
            self.clean.retain(is_clean);
            let mut seen = alloc::collections::BTreeSet::new();
            self.clean.retain(|page| seen.insert(*page));
        }
        self.set(page, Page::Clean(frame));
        self.clean.push_back(page as u32);
    }

    /// Takes a frame for a page with contents. Returns it, and the address of the page that had it before.
    pub(crate) fn take(&mut self, page: u64, changed: bool) -> Result<(u64, Option<u64>), Refusal> {
        let (frame, _, taken) = self.frame(false)?;
        self.hold(page, frame, changed);
        Ok((frame, taken))
    }

    /// How many pages of a file, from an unchanged one on, can come together.
    pub(crate) fn more(&mut self, page: u64, frame: u64, most: u64) -> u64 {
        let end = self.placed(page).map_or(0, |f| f.first + f.pages) + self.heap.pages;
        let mut pages = 1;
        while pages < most.min(RUN)
            && page + pages < end
            && self.state(page + pages) == Page::Absent
            && self.frames.take_this(frame + pages).is_some()
        {
            self.hold(page + pages, frame + pages, false);
            pages += 1;
        }
        pages
    }

    /// Takes frames for a page of the heap and those after it. Returns the first frame, how many there are, which of them
    /// must be zeroed, and the address of the page that had a frame before.
    pub(crate) fn take_zeros(
        &mut self,
        page: u64,
        most: u64,
    ) -> Result<(u64, u64, u64, Option<u64>), Refusal> {
        let (frame, zero, taken) = self.frame(true)?;
        self.hold(page, frame, true);
        let (mut pages, mut lacking) = (1, u64::from(!zero));
        while pages < most.min(RUN)
            && page + pages < self.heap.pages
            && self.state(page + pages) == Page::Absent
            && taken.is_none()
            && let Some(zero) = self.frames.take_this(frame + pages)
        {
            lacking |= u64::from(!zero) << pages;
            self.hold(page + pages, frame + pages, true);
            pages += 1;
        }
        Ok((frame, pages, lacking, taken))
    }
}
