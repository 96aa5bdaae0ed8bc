//! The pager: gives applications the pages of their heaps when they are first used, and pages of files.
//!
//! Why it exists: see `bulkhead-pager`, which decides which page comes from where. What it deliberately does not know: where its
//! clients live; the kernel maps, and TileMux tells of faults.
//!
//! Gates: `faults` (receive, slots for as many as name it as their `pager`), `requests` (receive, may be missing: clients that map
//! files), `files` (send, may be missing: the file service). Arguments: `pages` (pages of a client at most; all of its heap
//! without it), `around` (1): pages that come with one fault. It never ends. A client to which it says no is ended.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_lib::abi::pager::{CLIENTS, FAULTS, PagerAnswer};
use bulkhead_lib::abi::syscall::{MAP_READ, MAP_WRITE};
use bulkhead_lib::common::message::{self, Buffer, Request, text};
use bulkhead_lib::common::pager::{Count, Counted, MapFile, Placed};
use bulkhead_lib::common::status::Status;
use bulkhead_lib::file::{Mount, READ, Result};
use bulkhead_lib::gate::{Message, ReceiveGate, SendGate};
use bulkhead_lib::paging::{self, Served};
use bulkhead_lib::select::{self, Event};
use bulkhead_lib::{argument, println};
use bulkhead_pager::{Client, Contents, Given, PAGE, Range};

bulkhead_lib::main!(main);

/// Through which contents pass.
#[repr(C, align(4096))]
struct Page([u8; PAGE as usize]);

struct One {
    served: Served,
    client: Client,
    /// Paths of its files.
    files: Vec<String>,
    /// Pages of its pool up to this one hold zeros, or were given.
    zeroed: u64,
}

impl One {
    /// Whether the pages that its next fault gets are to be filled with zeros.
    fn lacks_zeros(&self, around: u64) -> bool {
        let (given, left) = self.client.count();
        self.zeroed < given + around.max(1).min(left)
    }
}

struct Pager {
    all: Vec<One>,
    mount: Option<Mount>,
    around: u64,
    page: Box<Page>,
}

fn main() -> u64 {
    match serve() {
        Ok(()) => 0,
        Err(status) => {
            println!("{status}");
            1
        }
    }
}

fn serve() -> Result<()> {
    let mut all = Vec::new();
    for number in 0..CLIENTS {
        let Some(served) = Served::find(number)? else {
            break;
        };
        let range = |(start, pages)| Range { start, pages };
        let pages = served.pool.size() / PAGE;
        let limit = argument::value("pages", pages).min(pages);
        all.push(One {
            client: Client::new(range(served.heap), range(served.area), limit),
            served,
            files: Vec::new(),
            zeroed: 0,
        });
    }
    let mut pager = Pager {
        all,
        mount: None,
        around: argument::value("around", 1),
        page: Box::new(Page([0; PAGE as usize])),
    };
    let gates: Vec<ReceiveGate> = [
        Some(ReceiveGate::named(FAULTS)),
        ReceiveGate::find("requests"),
    ]
    .into_iter()
    .flatten()
    .collect();
    loop {
        let around = pager.around;
        // While nobody asks, the next pages are made ready.
        let idle = pager.all.iter().any(|one| one.lacks_zeros(around));
        match select::wait(&gates, idle.then_some(0)) {
            Ok(Event::Message(0, message)) => pager.fault(message),
            Ok(Event::Message(_, message)) => pager.request(message),
            Ok(Event::Time) => pager.prepare()?,
            Err(_) => return Err(Status::Transfer),
        }
    }
}

impl Pager {
    fn fault(&mut self, message: Message) {
        let given = paging::fault(&message).and_then(|(number, address, access)| {
            let one = self.all.get_mut(usize::from(number))?;
            let given = one.client.fault(address, access, self.around);
            let given = given.map_err(|why| {
                println!("client {number} at {address:#x}: {why:?}");
            });
            Some((usize::from(number), given.ok()?))
        });
        let done = given.is_some_and(|(number, given)| {
            let done = self.give(number, &given);
            done.map_err(|status| println!("client {number}: {status}"))
                .is_ok()
        });
        let answer = match done {
            true => PagerAnswer::Mapped,
            false => PagerAnswer::Refused,
        };
        paging::answer(message, answer);
    }

    /// Fills a page with zeros for whoever comes next.
    fn prepare(&mut self) -> Result<()> {
        let around = self.around;
        let mut all = self.all.iter_mut();
        if let Some(one) = all.find(|one| one.lacks_zeros(around)) {
            let (given, _) = one.client.count();
            let next = one.zeroed.max(given);
            self.page.0.fill(0);
            let written = one.served.pool.write(next * PAGE, &self.page.0);
            written.map_err(|_| Status::Transfer)?;
            one.zeroed = next + 1;
        }
        Ok(())
    }

    /// Fills pages and maps them.
    fn give(&mut self, number: usize, given: &Given) -> Result<()> {
        for next in 0..given.pages {
            let Self {
                all, mount, page, ..
            } = self;
            let one = &all[number];
            match given.contents {
                Contents::Zeros if given.page + next < one.zeroed => continue,
                Contents::Zeros => page.0.fill(0),
                Contents::File { file, offset } => {
                    let mount = mount.as_mut().ok_or(Status::Closed)?;
                    let mut file = mount.open(&one.files[file], READ)?;
                    file.seek(offset + next * PAGE);
                    let length = file.read(&mut page.0)?;
                    file.close()?;
                    page.0[length..].fill(0);
                }
            }
            let at = (given.page + next) * PAGE;
            let written = one.served.pool.write(at, &page.0);
            written.map_err(|_| Status::Transfer)?;
        }
        let rights = MAP_READ | MAP_WRITE;
        let one = &mut self.all[number];
        one.zeroed = one.zeroed.max(given.page + given.pages);
        one.served
            .map(given.address, given.page, given.pages, rights)
    }

    fn request(&mut self, message: Message) {
        let activity = message.header().sender_activity;
        let mut buffer = Buffer::new();
        let reply = match message.word() {
            Some(0) => buffer.success(&message::Null {}),
            Some(MapFile::OPERATION) => match self.map_file(activity, message.rest()) {
                Ok(placed) => buffer.success(&placed),
                Err(status) => buffer.failure(status),
            },
            Some(Count::OPERATION) => match self.find(activity) {
                Ok(one) => {
                    let (given, left) = one.client.count();
                    buffer.success(&Counted { given, left })
                }
                Err(status) => buffer.failure(status),
            },
            _ => buffer.failure(Status::UnknownOperation),
        };
        // A client that is gone needs none.
        let _ = message.reply(reply);
    }

    fn find(&mut self, activity: u16) -> Result<&mut One> {
        let mut all = self.all.iter_mut();
        all.find(|one| one.served.activity == activity)
            .ok_or(Status::NoRights)
    }

    fn map_file(&mut self, activity: u16, body: &[u8]) -> Result<Placed> {
        let MapFile { path } = message::body(body)?;
        let name = text(&path)?;
        if self.mount.is_none() {
            SendGate::find("files").ok_or(Status::NotFound)?;
            self.mount = Some(Mount::connect("files")?);
        }
        let mount = self.mount.as_mut().ok_or(Status::Closed)?;
        let file = mount.open(name, READ)?;
        let size = file.size();
        file.close()?;
        let one = self.find(activity)?;
        let (_, address) = one.client.place(size).ok_or(Status::NoSpace)?;
        one.files.push(name.into());
        Ok(Placed { address, size })
    }
}
