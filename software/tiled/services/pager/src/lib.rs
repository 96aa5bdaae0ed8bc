//! Decisions of the pager: which page of its memory a client gets, the page's contents, and when the client gets none.
//!
//! Why it exists: they are pure and tested on the host. What it deliberately does not know: messages, memory, and how a page gets
//! into an address space.
//!
//! Every client has a limit and a pool of its own, so no client takes pages from another. A page of the heap holds zeros; a page of
//! a file is a copy of the file's contents and read-only until the client writes it. So the pager knows which file pages are
//! unchanged. When a client has reached its limit, the pager takes its unchanged pages back, oldest first, and later reads them
//! again from their file. If the pager has memory for it, clients share the unchanged pages of a file; a client that writes one
//! gets a copy. A fault also brings the pages after it, as many as configured, if they have not been used yet.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

mod client;
mod frames;
mod shared;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_fuzz;

pub use client::{Client, PAGE, Range};

use alloc::vec::Vec;
use bulkhead_abi::pager::PagerAccess;
use bulkhead_common::payer::{Fixed, PaidList, Share};
use shared::{Shared, User};

/// The memory of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the client's pool.
    Own(u64),
    /// In the memory for unchanged pages.
    Shared(u64),
}

/// What the pager must first put into a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing: it is there.
    Nothing,
    /// Zeros, into the frames whose bits are set; the lowest bit is the first frame's.
    Zeros(u64),
    /// A file from an offset on, then zeros.
    File {
        /// Its number: the first path that was placed has number 0.
        file: usize,
        /// Offset in bytes.
        offset: u64,
    },
    /// The contents of this frame of the memory for unchanged pages.
    Copy(u64),
}

/// Pages for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Pages that must first be taken back from clients: client and address. Their frames get a new use.
    pub taken: PaidList<Share, (usize, u64)>,
    /// Address of the first page.
    pub address: u64,
    /// The frame of the first page; the other frames follow it.
    pub place: Place,
    /// How many.
    pub pages: u64,
    /// What to put into them.
    pub fill: Fill,
    /// Whether they may be written.
    pub writable: bool,
}

/// Why there is no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing is at this address, or it does not allow the access.
    NotThere,
    /// The page was given already.
    Given,
    /// The client has as many pages as it may have.
    NoQuota,
}

/// The clients of a pager and the pages that they share.
#[derive(Debug)]
pub struct Pages {
    clients: Fixed<Client>,
    shared: Shared,
}

impl Pages {
    /// For these clients, with this many frames for shared unchanged pages.
    pub fn new(clients: Vec<Client>, shared: u64) -> Self {
        Self {
            clients: clients.into(),
            shared: Shared::new(shared),
        }
    }

    /// A client.
    pub fn client(&mut self, number: usize) -> Option<&mut Client> {
        self.clients.get_mut(number)
    }

    /// Whether a client has this file in its area. If none has it, the number can be used for another file, and the kept pages of
    /// the old one are forgotten.
    pub fn keeps(&mut self, file: usize) -> bool {
        let kept = self.clients.iter().any(|client| client.has(file));
        if !kept {
            self.shared.forget(file);
        }
        kept
    }

    /// Pages of the memory for unchanged pages that a client uses.
    pub fn shares(&self, number: usize) -> u64 {
        self.shared.uses(number)
    }

    /// A client starts afresh, with nothing.
    pub fn reset(&mut self, number: usize) {
        self.shared.leave(number);
        if let Some(client) = self.clients.get_mut(number) {
            client.reset();
        }
    }

    /// The pages for a client's fault could not be filled: the client does not have them, and can ask again.
    pub fn failed(&mut self, number: usize, given: &Given) {
        if let Place::Shared(frame) = given.place {
            self.shared.drop_frame(frame);
        }
        let back = self.give_back(number, given.address, given.pages);
        assert_eq!(back, Ok(()), "they were given a moment ago");
    }

    /// The pages for a client's fault at an address: at least one, at most `most`.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub fn fault(
        &mut self,
        number: usize,
        address: u64,
        access: PagerAccess,
        most: u64,
    ) -> Result<Given, Refusal> {
        let client = self.clients.get_mut(number).ok_or(Refusal::NotThere)?;
        let page = client.page(address).ok_or(Refusal::NotThere)?;
        let source = client.source(page);
        let source = source.filter(|_| access != PagerAccess::Execute);
        let source = source.ok_or(Refusal::NotThere)?;
        let write = access == PagerAccess::Write;
        let address = address & !(PAGE - 1);
        let one = |place, fill, taken| Given {
            taken: PaidList::new(taken),
            address,
            place,
            pages: 1,
            fill,
            writable: write,
        };
        let user = User {
            client: number,
            page,
            address,
        };
        if client.is_shared(page) {
            if !write {
                return Err(Refusal::Given);
            }
            // The client gets a copy; the shared page stays for the others.
            let (frame, taken) = client.take(page, true)?;
            let copied = self.shared.part(user).ok_or(Refusal::Given)?;
            let taken = taken.map(|address| (number, address));
            let fill = Fill::Copy(copied);
            return Ok(one(Place::Own(frame), fill, Vec::from_iter(taken)));
        }
        if let Some((frame, writable)) = client.own(page) {
            if !write || writable {
                return Err(Refusal::Given);
            }
            client.changes(page);
            return Ok(one(Place::Own(frame), Fill::Nothing, Vec::new()));
        }
        let client::Source::File(file, first) = source else {
            let (frame, pages, zeros, taken) = client.take_zeros(page, most)?;
            let taken = taken.map(|address| (number, address));
            return Ok(Given {
                pages,
                writable: true,
                ..one(Place::Own(frame), Fill::Zeros(zeros), Vec::from_iter(taken))
            });
        };
        let fill = Fill::File {
            file,
            offset: first * PAGE,
        };
        if self.shared.is_used() && !write {
            let (frame, is_new, users) = self.shared.join((file, first), user);
            let mut taken = Vec::new();
            for user in users {
                if let Some(other) = self.clients.get_mut(user.client) {
                    other.lose(user.page);
                    taken.push((user.client, user.address));
                }
            }
            if let Some(client) = self.clients.get_mut(number) {
                client.share(page);
            }
            let fill = if is_new { fill } else { Fill::Nothing };
            return Ok(one(Place::Shared(frame), fill, taken));
        }
        let (frame, taken) = client.take(page, write)?;
        let pages = match (write, taken) {
            (false, None) => client.more(page, frame, most),
            _ => 1,
        };
        let fill = match self.shared.find((file, first)) {
            Some(frame) => Fill::Copy(frame),
            None => fill,
        };
        let taken = taken.map(|address| (number, address));
        Ok(Given {
            pages,
            ..one(Place::Own(frame), fill, Vec::from_iter(taken))
        })
    }

    /// A client gives pages back: afterwards its heap reads as zeros there, and its files have their contents. The pages must be
    /// unmapped before their frames get a new use.
    ///
    /// # Errors
    /// [`Refusal::NotThere`] if not all of them belong to the heap or the area.
    pub fn give_back(&mut self, number: usize, address: u64, pages: u64) -> Result<(), Refusal> {
        let client = self.clients.get_mut(number).ok_or(Refusal::NotThere)?;
        let first = client.page(address).ok_or(Refusal::NotThere)?;
        let last = pages.checked_sub(1).and_then(|n| n.checked_mul(PAGE));
        let last = last.and_then(|offset| client.page(address.checked_add(offset)?));
        let last = last.ok_or(Refusal::NotThere)?;
        if !address.is_multiple_of(PAGE) || last.checked_sub(first) != Some(pages - 1) {
            return Err(Refusal::NotThere);
        }
        for page in first..=last {
            if client.is_shared(page) {
                let address = address + (page - first) * PAGE;
                let user = User {
                    client: number,
                    page,
                    address,
                };
                self.shared.part(user);
            }
            client.lose(page);
        }
        Ok(())
    }
}
