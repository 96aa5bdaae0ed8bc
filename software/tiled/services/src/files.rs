//! The file service: messages carry names, handles and sizes; the clients transfer the bytes of files themselves.
//!
//! Why it exists: see `bulkhead-filesystem`, which makes all decisions. What it deliberately does not know: its clients.
//!
//! Gates: `priority-0`, ... (receive), `disk` (memory, read and written). Arguments: those of `lib::server`; `inodes` (256): how many files
//! and folders a new image has room for; `quota` and `quota-files` (as many as there are): bytes, such as `64KiB`, and number of files and
//! folders that one client can have; with `-N` appended, for the clients of gate N. An eighth of both is divided among all possible clients
//! (one per slot of the gates), so each has a part that no other client gets. The service's kernel memory pays for the pieces of files that
//! clients access themselves, at least one per client: the service ends if it has no room for them. It opens an existing image and
//! overwrites anything else with an empty image. Otherwise it never ends.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use bulkhead_filesystem::{
    BLOCK, FileSystem, Files, Grant, Lending, Refusal, Result, Status, Store,
};
use bulkhead_lib::abi::syscall::{MAP_READ, MAP_WRITE};
use bulkhead_lib::common::file::{
    Close, Commit, List, MakeFolder, Open, Read, Remove, Stat, Write,
};
use bulkhead_lib::common::message::Request;
use bulkhead_lib::common::payer::{PaidList, Share};
use bulkhead_lib::common::shares::{Seats, Shares};
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::{argument, println, session};

bulkhead_lib::main!(main);

/// Longest transfer of a block on any platform of the catalog, in nanoseconds.
const TRANSFER: u64 = 10_000;
/// Open files that every client can have, whatever others do, and those that all clients share beyond that.
const HANDLES: (usize, usize) = (2, 128);
/// The same for pieces granted at one time, as far as kernel memory suffices: with one piece, a client can use one file.
const PIECES: (usize, usize) = (1, 64);

/// The image, in memory that only transfers reach.
struct Disk(MemoryGate);

impl Store for Disk {
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read(offset, buffer).map_err(|_| Status::Transfer)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write(offset, data).map_err(|_| Status::Transfer)
    }
}

fn main() -> u64 {
    let disk = MemoryGate::named("disk");
    let mut server = Server::from_environment();
    let seats = server.seats();
    let mut system = match open(disk) {
        Ok(system) => system,
        Err(status) => {
            println!("the image on `disk`: {status}");
            return 1;
        }
    };
    if let Err(status) = limit(&mut system, seats, server.priorities()) {
        let clients = seats.count();
        println!(
            "the image on `disk` has no block or no inode for each of {clients} clients (slots of the gates): {status}"
        );
        return 1;
    }
    // The kernel memory for this must be taken before the rest is divided.
    server.offer::<FileService>();
    let mut lending = Lender {
        disk: session::memory("disk"),
        free: PaidList::default(),
    };
    let pieces = match lending.divide(seats) {
        Ok(pieces) => pieces,
        Err(status) => {
            let clients = seats.count();
            println!(
                "the kernel memory does not pay for a piece of a file for each of {clients} clients (slots of the gates), write <limit kernel-memory=...>: {status}"
            );
            return 1;
        }
    };
    let handles = Shares::among(seats, HANDLES.0, HANDLES.1);
    let mut service = FileService {
        files: Files::new(system, lending, handles, pieces),
        later: None,
    };
    server.run(&mut service)
}

// Separate from `main`, because everything else is on the stack of `main`.
#[inline(never)]
fn open(disk: MemoryGate) -> Result<FileSystem<Disk>> {
    match FileSystem::mount(Disk(disk), disk.size()) {
        Ok(mut system) => {
            system.check()?;
            Ok(system)
        }
        Err(Status::Corrupt) => {
            let blocks = u32::try_from(disk.size() / BLOCK as u64).map_err(|_| Status::NoSpace)?;
            FileSystem::format(Disk(disk), blocks, argument::value("inodes", 256))
        }
        Err(status) => Err(status),
    }
}

/// Gives each possible client its share of the image.
fn limit(system: &mut FileSystem<Disk>, seats: Seats, priorities: usize) -> Result<()> {
    system.divide(seats)?;
    let all_files = argument::value("quota-files", usize::MAX);
    for priority in 0..priorities {
        let bytes =
            argument::size(&format!("quota-{priority}")).or_else(|| argument::size("quota"));
        let blocks = bytes.map_or(usize::MAX, |bytes| bytes as usize / BLOCK);
        let files = argument::value(&format!("quota-files-{priority}"), all_files);
        system.limit_each(priority, blocks, files);
    }
    Ok(())
}

/// Gives access to pieces of the image.
struct Lender {
    /// The capability for the image, if clients can get pieces of it.
    disk: Option<u16>,
    /// Selectors of pieces that were taken back.
    free: PaidList<Share, u16>,
}

impl Lender {
    /// Divides the pieces that the remaining kernel memory can pay for among the possible clients.
    fn divide(&mut self, seats: Seats) -> Result<Shares<Client>> {
        let left = session::kernel_memory()?;
        // The first block, which holds no client's data, serves to measure the cost of one piece.
        let cost = match self.disk {
            None => return Ok(Shares::among(seats, 0, 0)),
            Some(_) => {
                let piece = self.lend(&Grant {
                    store: 0,
                    offset: 0,
                    length: BLOCK as u64,
                    writable: false,
                })?;
                let cost = left.saturating_sub(session::kernel_memory()?);
                self.take_back(piece)?;
                cost
            }
        };
        let all = left / cost.max(1);
        let (each, most) = PIECES;
        let own = each.saturating_mul(seats.count());
        let rest = (all as usize).checked_sub(own).ok_or(Status::TooMany)?;
        Ok(Shares::among(seats, each, rest.min(most)))
    }
}

impl Lending for Lender {
    fn lend(&mut self, piece: &Grant) -> Result<u16> {
        let disk = self.disk.ok_or(Status::NoRights)?;
        let selector = match self.free.pop() {
            Some(selector) => selector,
            None => session::selector()?,
        };
        let rights = if piece.writable {
            MAP_READ | MAP_WRITE
        } else {
            MAP_READ
        };
        let derived = session::derive(disk, selector, piece.store, piece.length, rights);
        if derived.is_err() {
            self.free.push(selector);
        }
        derived.map(|()| selector)
    }

    fn take_back(&mut self, selector: u16) -> Result<()> {
        session::revoke(selector)?;
        self.free.push(selector);
        Ok(())
    }
}

struct FileService {
    files: Files<Disk, Lender>,
    /// The request that was just made, if leftovers of ended clients are in its way.
    later: Option<Incoming>,
}

impl FileService {
    /// Performs a request, or a part of the work that must come first.
    fn perform<R: Request>(
        &mut self,
        request: Incoming,
        action: impl FnOnce(&mut Files<Disk, Lender>, R) -> core::result::Result<R::Reply, Refusal>,
    ) {
        let body = request.body::<R>().map_err(Refusal::from);
        match body.and_then(|body| action(&mut self.files, body)) {
            Ok(reply) => request.done(&reply),
            Err(Refusal::Status(status)) => request.fail(status),
            Err(Refusal::Later(inode)) => {
                self.files.clean(Some(inode));
                self.later = Some(request);
            }
        }
    }
}

/// The most block transfers that an operation takes, with folders of up to four blocks on the way.
fn transfers(operation: u64) -> u64 {
    match operation {
        Close::OPERATION | Commit::OPERATION => 16,
        Read::OPERATION => 4,
        Stat::OPERATION | List::OPERATION => 12,
        Open::OPERATION | MakeFolder::OPERATION | Remove::OPERATION => 28,
        Write::OPERATION => 44,
        _ => 0,
    }
}

impl Service for FileService {
    fn estimate(&mut self, _: Client, operation: u64, _: &[u8]) -> u64 {
        transfers(operation) * TRANSFER
    }

    const SESSIONS: bool = true;

    fn grant(&mut self, activity: u16, arguments: [u64; 3]) -> Result<(u16, [u64; 2])> {
        let [handle, offset, write] = arguments;
        let (selector, piece) = self.files.grant(activity, handle, offset, write != 0)?;
        Ok((selector, [piece.offset, piece.length]))
    }

    /// Takes back a piece or closes a file that an ended client left, or fills a free block with zeros: one such step after each request,
    /// or when there is no request, so others wait for at most one step.
    fn alarm(&mut self) -> Option<u64> {
        // Every client sees the failure of a disk at its own requests.
        let files = &mut self.files;
        let more = files.clean(None) || files.system.prepare().unwrap_or(false);
        more.then_some(1)
    }

    fn opened(&mut self, activity: u16) {
        self.files.begin(activity);
    }

    fn gone(&mut self, activity: u16) {
        self.files.end(activity);
    }

    fn unanswered(&mut self) -> Option<Incoming> {
        self.later.take()
    }

    fn serve(&mut self, request: Incoming) {
        let owner = request.owner();
        let files = &mut self.files;
        match request.operation() {
            Open::OPERATION => self.perform(request, |files, r: Open| files.open(owner, &r)),
            Remove::OPERATION => self.perform(request, |files, r: Remove| files.remove(&r)),
            Write::OPERATION => self.perform(request, |files, r: Write| files.write(owner, &r)),
            MakeFolder::OPERATION => {
                self.perform(request, |files, r: MakeFolder| files.make_folder(owner, &r))
            }
            Close::OPERATION => with(request, |r: Close| files.close(owner, r.handle)),
            Stat::OPERATION => with(request, |r: Stat| files.stat(&r)),
            List::OPERATION => with(request, |r: List| files.list(&r)),
            Commit::OPERATION => with(request, |r: Commit| files.commit(owner, &r)),
            Read::OPERATION => with(request, |r: Read| files.read(owner, &r)),
            _ => request.fail(Status::UnknownOperation),
        }
    }
}

/// Reads a request, performs it and answers.
fn with<R: Request>(request: Incoming, action: impl FnOnce(R) -> Result<R::Reply>) {
    let outcome = request.body::<R>().and_then(action);
    request.answer(outcome);
}
