//! Page faults: the functions of a pager, and the requests of its clients.
//!
//! Why it exists: pagers are applications like others, and everything that they do goes through these few calls. What it deliberately
//! does not know: which page a pager gives; see `bulkhead_pager`.

use crate::client::Client;
use crate::gate::{Aligned, MemoryGate, Message};
use crate::session::refused;
use crate::{argument, syscall};
use alloc::format;
use bulkhead_abi::dtu::PAGE_SIZE;
use bulkhead_abi::pager::{
    CLIENT, PagerAccess, PagerAnswer, client_activity, client_memory, label_fault,
};
use bulkhead_abi::syscall::Syscall;
use bulkhead_common::file::path;
use bulkhead_common::pager::{Counted, GIVE_BACK, GiveBack, MapFile, Placed};
use bulkhead_common::status::Status;
use bulkhead_user::user;

/// Result of an operation on pages.
pub type Result<T> = core::result::Result<T, Status>;

/// A client as its pager sees it.
#[derive(Debug)]
pub struct Served {
    number: u16,
    /// First address and pages of its heap.
    pub heap: (u64, u64),
    /// First address and pages of the area for files.
    pub area: (u64, u64),
    /// How often it has been started before, once it is known.
    pub generation: Option<u16>,
    /// The memory that its pages come from.
    pool: Option<MemoryGate>,
}

impl Served {
    /// The client with this number, if there is one.
    ///
    /// # Errors
    /// [`Status::BadRequest`] if the manager's description of it makes no sense.
    pub fn find(number: u16) -> Result<Option<Self>> {
        let Some(text) = argument::text(&format!("{CLIENT}{number}")) else {
            return Ok(None);
        };
        let mut numbers = [0u64; 4];
        let mut parts = text.split(' ');
        for number in &mut numbers {
            let part = parts.next().ok_or(Status::BadRequest)?;
            *number = part.parse().map_err(|_| Status::BadRequest)?;
        }
        let [heap, heap_pages, area, area_pages] = numbers;
        Ok(Some(Self {
            number,
            heap: (heap, heap_pages),
            area: (area, area_pages),
            generation: None,
            pool: None,
        }))
    }

    /// The memory that its pages come from.
    ///
    /// # Errors
    /// The kernel's error, if the client was not given to this pager yet.
    pub fn pool(&mut self) -> Result<MemoryGate> {
        if let Some(pool) = self.pool {
            return Ok(pool);
        }
        let active = syscall::activate(client_memory(self.number));
        let (endpoint, size) = active.map_err(refused)?;
        let pool = MemoryGate::new(endpoint, size);
        self.pool = Some(pool);
        Ok(pool)
    }

    /// The generation of an activity, if it is this client.
    pub fn is(&self, activity: u16) -> Option<u16> {
        let known = self.generation.unwrap_or(0);
        let mut all = [known, known.wrapping_add(1)].into_iter();
        all.find(|generation| {
            let selector = client_activity(self.number, *generation);
            let found = syscall::call(&Syscall::Query { selector });
            found.is_ok_and(|[_, number, ..]| number == activity.into())
        })
    }

    /// Maps pages of its pool, or of the memory behind another capability of the pager, into its address space; at most one of them may
    /// already be mapped.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn map(
        &self,
        address: u64,
        (memory, page): (Option<u16>, u64),
        pages: u64,
        rights: u8,
    ) -> Result<()> {
        let request = Syscall::MapFrom {
            activity: client_activity(self.number, self.generation.unwrap_or(0)),
            memory: memory.unwrap_or(client_memory(self.number)),
            address,
            offset: page * PAGE_SIZE,
            pages,
            rights,
        };
        syscall::call(&request).map(|_| ()).map_err(refused)
    }

    /// Takes a page back. A client that has ended has none.
    pub fn take(&self, address: u64) {
        let _ = self.map(address, (None, 0), 1, 0);
    }
}

/// A fault.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Number of the client.
    pub client: u16,
    /// How often it was started before.
    pub generation: u16,
    /// Address of the page.
    pub address: u64,
    /// The kind of access.
    pub access: PagerAccess,
}

/// The fault that a message reports.
pub fn fault(message: &Message) -> Option<Fault> {
    let access = message.rest().first_chunk::<8>()?;
    let (client, generation) = label_fault(message.label());
    Some(Fault {
        client,
        generation,
        address: message.word()?,
        access: PagerAccess::from_code(u64::from_le_bytes(*access))?,
    })
}

/// Answers a fault. A client that is gone needs no answer.
///
/// # Errors
/// The message, if the client's TileMux has no room for the answer now: other pagers' answers came first. The client waits until the answer
/// is given again, so a pager must not drop the message.
pub fn answer(message: Message, answer: PagerAnswer) -> core::result::Result<(), Message> {
    let word = Aligned((answer as u64).to_le_bytes());
    message.reply_or_keep(&word.0)
}

/// A client's channel to its pager.
#[derive(Debug)]
pub struct Pager(Client);

impl Pager {
    /// A pager behind the send gate of this name.
    ///
    /// # Panics
    /// If the description does not give it.
    pub fn named(name: &str) -> Self {
        Self(Client::named(name))
    }

    /// Maps a file into memory. A page is read when it is first used; if that is not possible, this activity ends. Changes stay
    /// private.
    ///
    /// # Errors
    /// The error of the pager or the file service.
    pub fn map_file(&mut self, name: &str) -> Result<&'static mut [u8]> {
        let Placed { address, size } = self.0.call(&MapFile { path: path(name)? })?;
        Ok(user::pages(address, size))
    }

    /// Numbers of pages that were given to this activity, that can still be given, and that are shared with others.
    ///
    /// # Errors
    /// The pager's error.
    pub fn count(&mut self) -> Result<Counted> {
        self.0.call(&bulkhead_common::pager::Count {})
    }

    /// Gives whole pages of the heap or of files back. They can be used again: pages of the heap are then zero, pages of a file
    /// have the file's contents.
    ///
    /// # Errors
    /// The pager's error; some pages may have been given back then.
    pub fn give_back(&mut self, memory: &mut [u8]) -> Result<()> {
        let start = (memory.as_ptr() as u64).next_multiple_of(PAGE_SIZE);
        let end = memory.as_ptr() as u64 + memory.len() as u64;
        let mut left = end.saturating_sub(start) / PAGE_SIZE;
        let mut address = start;
        while left > 0 {
            let pages = left.min(GIVE_BACK);
            self.0.call(&GiveBack { address, pages })?;
            address += pages * PAGE_SIZE;
            left -= pages;
        }
        Ok(())
    }
}
