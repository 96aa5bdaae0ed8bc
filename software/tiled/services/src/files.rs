//! The file service: names, handles and sizes by messages; the bytes of files by transfers of the clients themselves.
//!
//! Why it exists: see `bulkhead-filesystem`, which decides everything. What it deliberately does not know: who its clients are.
//!
//! Gates: `priority-0`, ... (receive), `disk` (memory, read and written). Arguments: those of `lib::server`; `inodes` (256): how
//! many files and folders a new image has room for. An image that is there already is opened, anything else overwritten with
//! an empty one. It never ends.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use bulkhead_filesystem::{BLOCK, FileSystem, Files, Result, Status, Store};
use bulkhead_lib::abi::syscall::{MAP_READ, MAP_WRITE};
use bulkhead_lib::common::file::{
    Close, Commit, List, MakeFolder, Open, PIECES, Read, Remove, Stat, Write,
};
use bulkhead_lib::common::message::Request;
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::{argument, println, session};

bulkhead_lib::main!(main);

/// Nanoseconds of a transfer of a block at most, on any platform of the catalog.
const TRANSFER: u64 = 10_000;
/// Open files of all clients.
const HANDLES: usize = 256;
/// Activities that can have files open.
const CLIENTS: usize = 64;
/// Pieces that are granted at once.
const GRANTS: usize = 128;

/// The image in memory that only transfers reach.
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
    match open(disk) {
        Ok(system) => {
            let mut service = FileService {
                files: Files::new(system, HANDLES),
                disk: session::memory("disk"),
                clients: Vec::with_capacity(CLIENTS),
                grants: Vec::with_capacity(GRANTS),
                free: Vec::with_capacity(GRANTS),
            };
            Server::from_environment().run(&mut service)
        }
        Err(status) => {
            println!("the image on `disk`: {status}");
            1
        }
    }
}

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

struct FileService {
    files: Files<Disk>,
    /// The capability for the image, if clients can get pieces of it.
    disk: Option<u16>,
    /// Which client an activity is.
    clients: Vec<(u16, Client)>,
    grants: Vec<Pieces>,
    /// Selectors of grants that are over.
    free: Vec<u16>,
}

/// A piece that a client was granted.
struct Pieces {
    activity: u16,
    handle: u64,
    selector: u16,
}

impl FileService {
    /// Takes back what was granted for a handle, or for all handles of an activity.
    fn take_back(&mut self, activity: u16, handle: Option<u64>) {
        let free = &mut self.free;
        self.grants.retain(|grant| {
            let over = grant.activity == activity && handle.is_none_or(|h| h == grant.handle);
            if over {
                session::revoke(grant.selector);
                free.push(grant.selector);
            }
            !over
        });
    }

    /// Takes back the older piece of a file of which a client has as many as it may have at once.
    fn make_room(&mut self, activity: u16, handle: u64) {
        let mine = |grant: &Pieces| grant.activity == activity && grant.handle == handle;
        if self.grants.iter().filter(|grant| mine(grant)).count() >= PIECES
            && let Some(oldest) = self.grants.iter().position(mine)
        {
            let grant = self.grants.remove(oldest);
            session::revoke(grant.selector);
            self.free.push(grant.selector);
        }
    }

    fn remember(&mut self, activity: u16, client: Client) -> Result<()> {
        if let Some(known) = self.clients.iter_mut().find(|c| c.0 == activity) {
            known.1 = client;
        } else if self.clients.len() < CLIENTS {
            self.clients.push((activity, client));
        } else {
            return Err(Status::TooMany);
        }
        Ok(())
    }
}

/// Transfers of a block that an operation takes at most, with folders of up to four blocks on the way.
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
        let disk = self.disk.ok_or(Status::NoRights)?;
        let client = self.clients.iter().find(|c| c.0 == activity);
        let client = client.ok_or(Status::InvalidHandle)?.1;
        let piece = self.files.grant(client, handle, offset, write != 0)?;
        self.make_room(activity, handle);
        if self.grants.len() == GRANTS {
            return Err(Status::TooMany);
        }
        let selector = match self.free.pop() {
            Some(selector) => selector,
            None => session::selector()?,
        };
        let rights = if piece.writable {
            MAP_READ | MAP_WRITE
        } else {
            MAP_READ
        };
        if let Err(status) = session::derive(disk, selector, piece.store, piece.length, rights) {
            self.free.push(selector);
            return Err(status);
        }
        self.grants.push(Pieces {
            activity,
            handle,
            selector,
        });
        Ok((selector, [piece.offset, piece.length]))
    }

    /// Fills free blocks with zeros, one after each request or when there is none: others wait for one of them at most.
    fn alarm(&mut self) -> Option<u64> {
        // A disk that fails shows it to who asks for something.
        let more = self.files.system.prepare().unwrap_or(false);
        more.then_some(1)
    }

    fn gone(&mut self, activity: u16) {
        self.take_back(activity, None);
        if let Some(index) = self.clients.iter().position(|c| c.0 == activity) {
            let (_, client) = self.clients.swap_remove(index);
            self.files.forget(client);
        }
    }

    fn serve(&mut self, request: Incoming) {
        let (client, activity) = (request.client(), request.activity());
        if request.operation() == Close::OPERATION
            && let Ok(Close { handle }) = request.body()
        {
            self.take_back(activity, Some(handle));
        }
        if request.operation() == Open::OPERATION
            && let Err(status) = self.remember(activity, client)
        {
            return request.fail(status);
        }
        let files = &mut self.files;
        match request.operation() {
            Open::OPERATION => with(request, |r: Open| files.open(client, &r)),
            Close::OPERATION => with(request, |r: Close| files.close(client, r.handle)),
            Stat::OPERATION => with(request, |r: Stat| files.stat(&r)),
            List::OPERATION => with(request, |r: List| files.list(&r)),
            MakeFolder::OPERATION => with(request, |r: MakeFolder| files.make_folder(&r)),
            Remove::OPERATION => with(request, |r: Remove| files.remove(&r)),
            Commit::OPERATION => with(request, |r: Commit| files.commit(client, &r)),
            Read::OPERATION => with(request, |r: Read| files.read(client, &r)),
            Write::OPERATION => with(request, |r: Write| files.write(client, &r)),
            _ => request.fail(Status::UnknownOperation),
        }
    }
}

/// Reads a request, does what it asks, answers.
fn with<R: Request>(request: Incoming, action: impl FnOnce(R) -> Result<R::Reply>) {
    let outcome = request.body::<R>().and_then(action);
    request.answer(outcome);
}
