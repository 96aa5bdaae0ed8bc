//! The pager: gives applications the pages of their heaps on first use, and pages of files.
//!
//! Why it exists: see `bulkhead-pager`, which makes all decisions about pages. What it deliberately does not know: the tiles of its
//! clients; the kernel maps, and TileMux reports faults.
//!
//! Gates: `faults` (receive, with a slot for each application that names it as its `pager`), `requests` (receive, may be missing: clients
//! that map files), `files` (send, may be missing: the file service), `shared` (memory, may be missing: for unchanged pages of files, which
//! clients share then). Arguments: `pages` (the whole heap): most pages of a client; `around` (1): pages that one fault brings; `open` (4):
//! files that stay open; `keep` (2000): microseconds that an unused file stays open. It never ends. A client that it refuses ends.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_lib::abi::pager::{CLIENTS, FAULTS, PagerAnswer, SHARED};
use bulkhead_lib::abi::syscall::{MAP_READ, MAP_WRITE};
use bulkhead_lib::common::message::{self, Buffer, Request, text};
use bulkhead_lib::common::pager::{Count, Counted, GIVE_BACK, GiveBack, MapFile, Placed};
use bulkhead_lib::common::payer::{Fixed, Own, PaidList, PaidQueue, Share};
use bulkhead_lib::common::status::Status;
use bulkhead_lib::file::{File, Kept, Mount, READ, Result};
use bulkhead_lib::gate::{MemoryGate, Message, ReceiveGate, SendGate};
use bulkhead_lib::paging::{self, Fault, Served};
use bulkhead_lib::select::{self, Event};
use bulkhead_lib::session::{self, PATIENCE};
use bulkhead_lib::{argument, println, time};
use bulkhead_pager::{Client, Fill, Given, PAGE, Pages, Place, Range};

bulkhead_lib::main!(main);

/// Nanoseconds until the next attempt to deliver an answer that found no room, if nothing else happens.
const AGAIN: u64 = 10_000;
/// Nanoseconds from one attempt to reach a file service that is away to the next one.
const LOOK: u64 = 20_000;

/// A page on its way through the pager.
#[repr(C, align(4096))]
struct Page([u8; PAGE as usize]);

impl Page {
    fn new() -> Box<Self> {
        Box::new(Self([0; PAGE as usize]))
    }
}

struct One {
    served: Served,
    /// Number of its activity, once the activity has made a request.
    activity: Option<u16>,
}

/// What became of a fault.
enum Outcome {
    Given,
    Refused,
    /// Its page is in a file, and the file service is away.
    Later,
}

struct Pager {
    all: Fixed<One>,
    pages: Pages,
    files: Files,
    around: u64,
    /// Answers for which a client's TileMux had no room. Each keeps its client's slot in the gate of faults, so there are at most as many
    /// as slots.
    late: PaidQueue<Share, (Message, PagerAnswer)>,
    /// Faults (`true`) and requests that need the file service while it is away. Each keeps its client's slot in its gate.
    kept: PaidQueue<Share, (bool, Message)>,
    /// Memory for unchanged pages, and the capability for it.
    shared: Option<(MemoryGate, u16)>,
    page: Box<Page>,
    zeros: Box<Page>,
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
    let mut pager = Pager::new()?;
    let gates: Vec<ReceiveGate> = [
        Some(ReceiveGate::named(FAULTS)),
        ReceiveGate::find("requests"),
    ]
    .into_iter()
    .flatten()
    .collect();
    loop {
        // One per turn: a tile that takes no answers delays other clients' faults only by one refused answer.
        if let Some((message, answer)) = pager.late.pop_front() {
            pager.answer(message, answer);
        }
        if pager.files.next_look() <= time::now()
            && let Some((is_fault, message)) = pager.kept.pop_front()
        {
            pager.serve(is_fault, message);
        }
        // While there are no requests, prepares the next pages.
        let kept = (!pager.kept.is_empty()).then(|| pager.files.next_look());
        let until = match (pager.unready(), pager.late.is_empty()) {
            (Some(_), _) => Some(0),
            (None, true) => pager.files.until(),
            (None, false) => Some(time::now() + AGAIN),
        };
        match select::wait(&gates, until.into_iter().chain(kept).min()) {
            Ok(Event::Message(gate, message)) => pager.serve(gate == 0, message),
            Ok(Event::Time) => match pager.unready() {
                Some((number, frame)) => pager.prepare(number, frame)?,
                None => pager.files.close_unused(),
            },
            Err(_) => return Err(Status::Transfer),
        }
    }
}

impl Pager {
    fn new() -> Result<Self> {
        let (mut all, mut clients) = (Vec::new(), Vec::new());
        for number in 0..CLIENTS {
            let Some(served) = Served::find(number)? else {
                break;
            };
            let range = |(start, pages)| Range { start, pages };
            let (heap, area) = (range(served.heap), range(served.area));
            let limit = argument::value("pages", heap.pages).min(heap.pages);
            clients.push(Client::new(heap, area, limit));
            all.push(One {
                served,
                activity: None,
            });
        }
        let shared = MemoryGate::find(SHARED).zip(session::memory(SHARED));
        let frames = shared.map_or(0, |(gate, _)| gate.size() / PAGE);
        Ok(Self {
            all: all.into(),
            pages: Pages::new(clients, frames),
            files: Files::new(),
            around: argument::value("around", 1),
            late: PaidQueue::default(),
            kept: PaidQueue::default(),
            shared,
            page: Page::new(),
            zeros: Page::new(),
        })
    }

    /// A client and the next of its frames to fill with zeros.
    fn unready(&mut self) -> Option<(usize, u64)> {
        let enough = self.around.max(1);
        let (all, pages) = (&self.all, &mut self.pages);
        let mut numbers = (0..all.len()).filter(|number| all[*number].served.generation.is_some());
        numbers.find_map(|number| Some((number, pages.client(number)?.wants_zeros(enough)?)))
    }

    /// Fills a frame with zeros for the next fault.
    fn prepare(&mut self, number: usize, frame: u64) -> Result<()> {
        let pool = self.all[number].served.pool()?;
        let written = pool.write(frame * PAGE, &self.zeros.0);
        written.map_err(|_| Status::Transfer)?;
        if let Some(client) = self.pages.client(number) {
            client.zeroed(frame);
        }
        Ok(())
    }

    /// Answers a fault or a request, now or when the file service is there.
    fn serve(&mut self, is_fault: bool, message: Message) {
        match is_fault {
            true => self.fault(message),
            false => self.request(message),
        }
    }

    fn fault(&mut self, message: Message) {
        let outcome = match paging::fault(&message) {
            Some(fault) => self.serve_fault(fault),
            None => Outcome::Refused,
        };
        match outcome {
            Outcome::Given => self.answer(message, PagerAnswer::Mapped),
            Outcome::Refused => self.answer(message, PagerAnswer::Refused),
            Outcome::Later => self.kept.push_back((true, message)),
        }
    }

    /// Answers a fault, now or later.
    fn answer(&mut self, message: Message, answer: PagerAnswer) {
        if let Err(message) = paging::answer(message, answer) {
            self.late.push_back((message, answer));
        }
    }

    /// Gives the missing page.
    fn serve_fault(&mut self, fault: Fault) -> Outcome {
        let number = usize::from(fault.client);
        let Some(one) = self.all.get(number) else {
            return Outcome::Refused;
        };
        if one.served.generation != Some(fault.generation) {
            // The faulting activity has ended meanwhile.
            let known = one.served.generation.unwrap_or(fault.generation);
            if fault.generation.wrapping_sub(known) > u16::MAX / 2 {
                return Outcome::Refused;
            }
            self.begin(number, fault.generation, None);
        }
        let given = self
            .pages
            .fault(number, fault.address, fault.access, self.around);
        let given = match given {
            Ok(given) => given,
            Err(why) => {
                println!("client {number} at {:#x}: {why:?}", fault.address);
                return Outcome::Refused;
            }
        };
        let Err(status) = self.give(number, &given) else {
            return Outcome::Given;
        };
        self.pages.failed(number, &given);
        if status == Status::Closed && self.files.is_away() {
            return Outcome::Later;
        }
        println!("client {number}: {status}");
        Outcome::Refused
    }

    /// A client starts afresh.
    fn begin(&mut self, number: usize, generation: u16, activity: Option<u16>) {
        let one = &mut self.all[number];
        one.served.generation = Some(generation);
        one.activity = activity;
        self.pages.reset(number);
    }

    /// Takes pages back, fills pages and maps them.
    fn give(&mut self, number: usize, given: &Given) -> Result<()> {
        for (other, address) in &given.taken {
            self.all[*other].served.take(*address);
        }
        let pool = self.all[number].served.pool()?;
        let shared = self.shared;
        let shared = || shared.ok_or(Status::NoRights);
        let (gate, memory, frame) = match given.place {
            Place::Own(frame) => (pool, None, frame),
            Place::Shared(frame) => (shared()?.0, Some(shared()?.1), frame),
        };
        let write = |next: u64, page: &Page| {
            let written = gate.write((frame + next) * PAGE, &page.0);
            written.map_err(|_| Status::Transfer)
        };
        match given.fill {
            Fill::Nothing => {}
            Fill::Zeros(missing) => {
                let mut pages = (0..given.pages).filter(|next| missing >> next & 1 == 1);
                pages.try_for_each(|next| write(next, &self.zeros))?;
            }
            Fill::File { file, offset } => {
                for next in 0..given.pages {
                    self.files
                        .read(file, offset + next * PAGE, &mut self.page)?;
                    write(next, &self.page)?;
                }
            }
            Fill::Copy(from) => {
                let read = shared()?.0.read(from * PAGE, &mut self.page.0);
                read.map_err(|_| Status::Transfer)?;
                write(0, &self.page)?;
            }
        }
        let rights = match given.writable {
            true => MAP_READ | MAP_WRITE,
            false => MAP_READ,
        };
        let served = &self.all[number].served;
        served.map(given.address, (memory, frame), given.pages, rights)
    }

    fn request(&mut self, message: Message) {
        let activity = message.header().sender_activity;
        let mut buffer = Buffer::new();
        let reply = match message.word() {
            Some(0) => buffer.success(&message::Null {}),
            Some(MapFile::OPERATION) => match self.map_file(activity, message.rest()) {
                Ok(placed) => buffer.success(&placed),
                Err(Status::Closed) if self.files.is_away() => {
                    return self.kept.push_back((false, message));
                }
                Err(status) => buffer.failure(status),
            },
            Some(Count::OPERATION) => match self.count(activity) {
                Ok(counted) => buffer.success(&counted),
                Err(status) => buffer.failure(status),
            },
            Some(GiveBack::OPERATION) => match self.give_back(activity, message.rest()) {
                Ok(()) => buffer.success(&0u64),
                Err(status) => buffer.failure(status),
            },
            _ => buffer.failure(Status::UnknownOperation),
        };
        // A client that is gone needs no answer.
        let _ = message.reply(reply);
    }

    /// The client of an activity.
    fn find(&mut self, activity: u16) -> Result<usize> {
        let mut known = self.all.iter();
        if let Some(number) = known.position(|one| one.activity == Some(activity)) {
            return Ok(number);
        }
        let mut all = self.all.iter().enumerate();
        let found = all.find_map(|(number, one)| Some((number, one.served.is(activity)?)));
        let (number, generation) = found.ok_or(Status::NoRights)?;
        if self.all[number].served.generation != Some(generation) {
            self.begin(number, generation, None);
        }
        self.all[number].activity = Some(activity);
        Ok(number)
    }

    fn count(&mut self, activity: u16) -> Result<Counted> {
        let number = self.find(activity)?;
        let shared = self.pages.shares(number);
        let client = self.pages.client(number).ok_or(Status::NoRights)?;
        let (given, left) = client.count();
        Ok(Counted {
            given,
            left,
            shared,
        })
    }

    fn map_file(&mut self, activity: u16, body: &[u8]) -> Result<Placed> {
        let MapFile { path } = message::body(body)?;
        let number = self.find(activity)?;
        let (all, pages) = (&mut self.files, &mut self.pages);
        let (file, size) = all.place(text(&path)?, |file| pages.keeps(file))?;
        let client = pages.client(number).ok_or(Status::NoRights)?;
        let address = client.place(size, file).ok_or(Status::NoSpace)?;
        Ok(Placed { address, size })
    }

    fn give_back(&mut self, activity: u16, body: &[u8]) -> Result<()> {
        let GiveBack { address, pages } = message::body(body)?;
        let number = self.find(activity)?;
        if !(1..=GIVE_BACK).contains(&pages) {
            return Err(Status::BadRequest);
        }
        let given = self.pages.give_back(number, address, pages);
        given.map_err(|_| Status::BadRequest)?;
        // Their memory gets a new use only after that.
        let served = &self.all[number].served;
        (0..pages).for_each(|page| served.take(address + page * PAGE));
        Ok(())
    }
}

/// A file that is open.
struct Open {
    file: usize,
    kept: Kept,
    /// When it was last used, in nanoseconds.
    used: u64,
}

/// Files of clients; some of them are open.
struct Files {
    mount: Option<Mount>,
    /// Until when faults and requests are kept for the file service, since it was first found to be away.
    until: Option<u64>,
    /// When to look for it again. Without this, a client could make the kernel look for it without a pause.
    look: u64,
    paths: PaidList<Share, String>,
    open: PaidList<Own, Open>,
    /// How many may be open.
    most: usize,
    /// How long an unused file stays open, in nanoseconds.
    keep: u64,
}

impl Files {
    fn new() -> Self {
        Self {
            mount: None,
            until: None,
            look: 0,
            paths: PaidList::default(),
            open: PaidList::default(),
            most: argument::value("open", 4usize).max(1),
            keep: argument::value("keep", 2000u64) * 1000,
        }
    }

    /// Whether the file service is away, and may come back in time.
    fn is_away(&self) -> bool {
        let waits = self.until.is_some_and(|until| time::now() < until);
        self.mount.is_none() && waits
    }

    /// When what was kept for the file service can be tried again.
    fn next_look(&self) -> u64 {
        self.mount.as_ref().map_or(self.look, |_| 0)
    }

    /// Connects with the file service, if it is there: nobody waits for it here.
    fn connect(&mut self) -> Result<()> {
        SendGate::find("files").ok_or(Status::NotFound)?;
        let now = time::now();
        self.until.get_or_insert(now.saturating_add(PATIENCE));
        if now < self.look {
            return Err(Status::Closed);
        }
        match Mount::attempt("files") {
            Ok(Some(mount)) => {
                (self.mount, self.until) = (Some(mount), None);
                Ok(())
            }
            Ok(None) => {
                self.look = time::now() + LOOK;
                Err(Status::Closed)
            }
            Err(status) => {
                // There will be none.
                self.until = Some(0);
                Err(status)
            }
        }
    }

    /// When the next file has been unused for long enough.
    fn until(&self) -> Option<u64> {
        let moments = self.open.iter().map(|open| open.used + self.keep);
        moments.min()
    }

    /// Closes a file that has not been used for long: others may want to write it.
    fn close_unused(&mut self) {
        let (now, keep) = (time::now(), self.keep);
        let mut all = self.open.iter();
        if let Some(index) = all.position(|open| open.used + keep <= now) {
            self.close(index);
        }
    }

    fn close(&mut self, index: usize) {
        let Open { kept, .. } = self.open.swap_remove(index);
        if let Some(mount) = &mut self.mount {
            // A service that is gone needs no notice.
            let _ = mount.resume(kept).close();
        }
    }

    /// No file is open any more; the service is a new one.
    fn start_again(&mut self) {
        while !self.open.is_empty() {
            self.close(0);
        }
        self.mount = None;
    }

    /// Does something with an open file. A restarted service does not know which files were open before, so this tries again.
    fn with<T>(&mut self, file: usize, action: impl Fn(&mut File) -> Result<T>) -> Result<T> {
        let known = self.mount.is_some();
        match self.attempt(file, &action) {
            Err(Status::Closed | Status::InvalidHandle | Status::Transfer) if known => {
                self.start_again();
                self.attempt(file, &action)
            }
            other => other,
        }
    }

    fn attempt<T>(&mut self, file: usize, action: impl Fn(&mut File) -> Result<T>) -> Result<T> {
        if self.mount.is_none() {
            self.connect()?;
        }
        let known = self.open.iter().position(|open| open.file == file);
        if known.is_none() && self.open.len() >= self.most {
            let oldest = self.open.iter().enumerate();
            if let Some((index, _)) = oldest.min_by_key(|(_, open)| open.used) {
                self.close(index);
            }
        }
        let known = self.open.iter().position(|open| open.file == file);
        let mount = self.mount.as_mut().ok_or(Status::Closed)?;
        let mut opened = match known {
            Some(index) => mount.resume(self.open.swap_remove(index).kept),
            None => mount.open(&self.paths[file], READ)?,
        };
        let done = action(&mut opened);
        let kept = opened.keep();
        let used = time::now();
        self.open.push(Open { file, kept, used });
        done
    }

    /// Reads a page of a file; bytes after its end are zeros.
    fn read(&mut self, file: usize, offset: u64, page: &mut Page) -> Result<()> {
        let page = core::cell::RefCell::new(page);
        self.with(file, |file| {
            let mut page = page.borrow_mut();
            file.seek(offset);
            let length = file.read(&mut page.0)?;
            page.0[length..].fill(0);
            Ok(())
        })
    }

    /// Opens a file; returns its number and its size. `keeps` says whether a client has the file with this number.
    fn place(&mut self, name: &str, mut keeps: impl FnMut(usize) -> bool) -> Result<(usize, u64)> {
        let known = self.paths.iter().position(|path| path == name);
        let unused = || (0..self.paths.len()).find(|file| !keeps(*file));
        let file = known.or_else(unused).unwrap_or(self.paths.len());
        keeps(file);
        match self.paths.get_mut(file) {
            Some(path) => *path = name.into(),
            None => self.paths.push(name.into()),
        }
        // The known attributes may be older than the file.
        if let Some(open) = self.open.iter().position(|open| open.file == file) {
            self.close(open);
        }
        let size = self.with(file, |file| Ok(file.size()))?;
        Ok((file, size))
    }
}
