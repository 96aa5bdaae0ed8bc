//! Page faults: what a pager needs, and what its clients ask of it.
//!
//! Why it exists: pagers are applications like others, and everything that they do goes through these few calls. What it deliberately
//! does not know: which page a pager gives; see `bulkhead_pager`.

use crate::client::Client;
use crate::gate::{Aligned, MemoryGate, Message};
use crate::session::refused;
use crate::{argument, syscall};
use alloc::format;
use bulkhead_abi::dtu::PAGE_SIZE;
use bulkhead_abi::pager::{CLIENT, PagerAccess, PagerAnswer, SEL_CLIENTS};
use bulkhead_abi::syscall::{NO_SELECTOR, SEL_ACTIVITY, Syscall};
use bulkhead_common::file::path;
use bulkhead_common::pager::{Counted, MapFile, Placed};
use bulkhead_common::status::Status;
use bulkhead_hal::user;

/// Result of an operation on pages.
pub type Result<T> = core::result::Result<T, Status>;

/// A client as its pager sees it.
#[derive(Debug)]
pub struct Served {
    number: u16,
    /// Number of its activity.
    pub activity: u16,
    /// First address and pages of its heap.
    pub heap: (u64, u64),
    /// First address and pages of the area for files.
    pub area: (u64, u64),
    /// The memory that its pages come from.
    pub pool: MemoryGate,
}

impl Served {
    /// The client with this number, if there is one.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn find(number: u16) -> Result<Option<Self>> {
        let Some(text) = argument::text(&format!("{CLIENT}{number}")) else {
            return Ok(None);
        };
        let mut numbers = [0u64; 5];
        let mut parts = text.split(' ');
        for number in &mut numbers {
            let part = parts.next().ok_or(Status::BadRequest)?;
            *number = part.parse().map_err(|_| Status::BadRequest)?;
        }
        let [activity, heap, heap_pages, area, area_pages] = numbers;
        let request = Syscall::Activate {
            gate: SEL_CLIENTS + 2 * number + 1,
            activity: SEL_ACTIVITY,
            memory: NO_SELECTOR,
            offset: 0,
            replies: 0,
        };
        let [endpoint, size, ..] = syscall::call(&request).map_err(refused)?;
        Ok(Some(Self {
            number,
            activity: activity as u16,
            heap: (heap, heap_pages),
            area: (area, area_pages),
            pool: MemoryGate::new(endpoint as u16, size),
        }))
    }

    /// Maps pages of the pool into its address space.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn map(&self, address: u64, page: u64, pages: u64, rights: u8) -> Result<()> {
        let client = SEL_CLIENTS + 2 * self.number;
        let request = Syscall::MapFrom {
            activity: client,
            memory: client + 1,
            address,
            offset: page * PAGE_SIZE,
            pages,
            rights,
        };
        syscall::call(&request).map(|_| ()).map_err(refused)
    }
}

/// A fault: the client's number, the address of the page, what was wanted of it.
pub fn fault(message: &Message) -> Option<(u16, u64, PagerAccess)> {
    let access = message.rest().first_chunk::<8>()?;
    let access = PagerAccess::from_code(u64::from_le_bytes(*access))?;
    Some((message.label() as u16, message.word()?, access))
}

/// Answers a fault. A client that is gone needs no answer.
pub fn answer(message: Message, answer: PagerAnswer) {
    let word = Aligned((answer as u64).to_le_bytes());
    let _ = message.reply(&word.0);
}

/// A client's channel to its pager.
#[derive(Debug)]
pub struct Pager(Client);

impl Pager {
    /// Over the send gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        Self(Client::named(name))
    }

    /// Lets a file appear in memory. A page is read when it is first used; if that is not possible, this activity ends. Changes stay
    /// here.
    ///
    /// # Errors
    /// What the pager and the file service say.
    pub fn map_file(&mut self, name: &str) -> Result<&'static mut [u8]> {
        let Placed { address, size } = self.0.call(&MapFile { path: path(name)? })?;
        Ok(user::pages(address, size))
    }

    /// Pages that were given to this activity and can still be.
    ///
    /// # Errors
    /// What the pager says.
    pub fn count(&mut self) -> Result<(u64, u64)> {
        let Counted { given, left } = self.0.call(&bulkhead_common::pager::Count {})?;
        Ok((given, left))
    }
}
