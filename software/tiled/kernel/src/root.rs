//! Starts the root resource manager: the only activity that the kernel itself loads.
//!
//! Why it exists: somebody must be there first. What it deliberately does not know: what the manager will do; it gets the
//! right to manage, a channel to the kernel, and nothing else.

use crate::hardware::Hardware;
use crate::load;
use crate::system::{Place, System};
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::environment::{
    ENVIRONMENT_BASE, ENVIRONMENT_MAGIC, ENVIRONMENT_SIZE, Environment,
};
use bulkhead_abi::syscall::{SYSCALL_SLOT, SyscallError};
use bulkhead_abi::tilemux::{KERNEL_ACTIVITY, table_pages};
use bulkhead_abi::words::Name;
use bulkhead_loader::environment;
use bulkhead_loader::layout::{Layout, PAGE};
use zerocopy::FromZeros;

/// Names under which the boot modules may hold the root manager.
pub const MANAGER_NAMES: [&str; 2] = ["resmgr", "tiled/resmgr"];
/// Bytes of its stack: it parses XML, recursively.
const STACK: u64 = 64 << 10;

/// Why the manager could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootError {
    /// There is no such module.
    NoModule,
    /// The module is not a usable program.
    BadProgram,
    /// The program does not fit its memory.
    TooSmall,
    /// A step failed.
    Call(SyscallError),
}

impl From<SyscallError> for RootError {
    fn from(error: SyscallError) -> Self {
        RootError::Call(error)
    }
}

/// Loads and starts the manager; returns its activity.
///
/// # Errors
/// See [`RootError`].
pub fn start(
    system: &mut System,
    hardware: &mut impl Hardware,
    place: Place,
) -> Result<u16, RootError> {
    let module = system.module(&MANAGER_NAMES).ok_or(RootError::NoModule)?;
    let image = load::parse(hardware, module).map_err(|_| RootError::BadProgram)?;
    let buffers = u64::from(SYSCALL_SLOT);
    let layout = Layout::plan(&image, place.memory, buffers, STACK);
    let layout = layout.map_err(|_| RootError::TooSmall)?;
    let with_tables = place.memory.next_multiple_of(PAGE) + table_pages(place.memory) * PAGE;
    system.configure_tile(hardware, place.tile, with_tables, place.memory_tile)?;
    let name = Name::new("root").unwrap_or_default();
    let id = system.create(hardware, KERNEL_ACTIVITY, place, name, true)?;
    let Some(activity) = system.activity(id) else {
        return Err(RootError::Call(SyscallError::NoActivity));
    };
    let (region, (send, _)) = (activity.region(), activity.syscalls);
    let frequency = system.tile_of(id).map_or(0, |tile| tile.frequency);
    load::load(hardware, module, region, ENVIRONMENT_BASE).map_err(|_| RootError::BadProgram)?;
    for part in layout.parts() {
        system.map(
            hardware,
            KERNEL_ACTIVITY,
            id,
            part.address,
            part.offset,
            part.pages,
            part.rights,
        )?;
    }
    let slot = SYSCALL_SLOT;
    let reply = system.receive_endpoint(hardware, id, layout.buffers_offset, 1, slot, false)?;
    let header = Environment {
        magic: ENVIRONMENT_MAGIC,
        activity: id,
        tile: place.tile,
        timebase: system.timebase(),
        frequency,
        heap_start: layout.heap,
        heap_size: layout.heap_size,
        stack_bottom: layout.stack_bottom,
        stack_top: layout.stack_top,
        syscall_send: send,
        syscall_reply: reply,
        call_reply: NO_ENDPOINT,
        syscall_buffer: layout.buffers,
        name: name.0,
        ..Environment::new_zeroed()
    };
    let mut page = [0; ENVIRONMENT_SIZE];
    if environment::fill(&mut page, header, &[], &[]).is_err() {
        return Err(RootError::TooSmall);
    }
    hardware.write(region, 0, &page);
    system.start(hardware, KERNEL_ACTIVITY, id, image.entry, layout.stack_top)?;
    Ok(id)
}
