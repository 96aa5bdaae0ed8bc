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

use bulkhead_filesystem::{BLOCK, FileSystem, Files, Result, Status, Store};
use bulkhead_lib::common::file::{
    Close, Commit, List, MakeFolder, Open, Read, Remove, Stat, Write,
};
use bulkhead_lib::common::message::Request;
use bulkhead_lib::gate::MemoryGate;
use bulkhead_lib::server::{Client, Incoming, Server, Service};
use bulkhead_lib::{argument, println};

bulkhead_lib::main!(main);

/// Nanoseconds of a transfer of a block at most, on any platform of the catalog.
const TRANSFER: u64 = 10_000;
/// Open files of all clients.
const HANDLES: usize = 256;

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

    fn serve(&mut self, request: Incoming) {
        let client = request.client();
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
