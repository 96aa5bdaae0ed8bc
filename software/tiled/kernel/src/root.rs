//! Starts the root resource manager: the only activity that the kernel itself loads.
//!
//! Why it exists: some activity must be the first. What it deliberately does not know: what the manager will do; the manager gets
//! all tiles, all memory, the modules and nearly all kernel memory.

use crate::hardware::Hardware;
use crate::load::{self, Loading};
use crate::pending::Ticket;
use crate::system::{Reply, System};
use alloc::vec::Vec;
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::environment::{ENVIRONMENT_BASE, ENVIRONMENT_MAGIC, Environment};
use bulkhead_abi::syscall::{
    MAP_PAGES_MAX, PRIORITIES, SEL_KERNEL_MEMORY, SEL_MEMORIES, SEL_MODULES, SEL_TILES,
    SYSCALL_SLOT, Syscall, SyscallError,
};
use bulkhead_abi::tilemux::{KERNEL_ACTIVITY, TILEMUX_MEMORY, table_pages};
use bulkhead_abi::words::Name;
use bulkhead_capabilities::Space;
use bulkhead_loader::layout::{Layout, PAGE};
use zerocopy::{FromZeros, IntoBytes};

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

/// First of the kernel's selectors for the manager's parts.
const WINDOW: u16 = 17;
const MEMORY: u16 = 18;
const SELF: u16 = 19;

/// The manager calls with the highest priority.
const LEVEL: usize = PRIORITIES - 1;

/// The root manager's place.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its tile.
    pub tile: u16,
    /// Bytes of memory.
    pub memory: u64,
    /// The memory tile that they come from.
    pub memory_tile: u16,
    /// The environment's `line`.
    pub line: u16,
}

/// The kernel as a caller.
pub const OWN: Ticket = Ticket {
    caller: KERNEL_ACTIVITY,
    generation: 0,
    level: LEVEL,
    offset: 0,
};

/// A call of the kernel itself; returns its results.
fn call(
    system: &mut System,
    hardware: &mut impl Hardware,
    call: Syscall,
) -> Result<Reply, RootError> {
    let reply = match system.call(hardware, OWN, call)? {
        Some(reply) => reply,
        None => loop {
            if let Some((_, reply)) = system.take_reply() {
                break reply;
            }
            while let Some((number, answer)) = hardware.answer() {
                system.tile_answered(hardware, number, answer);
            }
            system.expire_tiles(hardware);
            if system.has_step(LEVEL) {
                system.step(hardware, LEVEL);
            }
        },
    };
    let code = reply.as_slice().first().copied();
    match code.and_then(SyscallError::from_code) {
        Some(SyscallError::None) => Ok(reply),
        Some(error) => Err(error.into()),
        None => Err(RootError::BadProgram),
    }
}

/// Begins to take back the memory that the manager lived in, and the manager with it.
pub fn take_back(system: &mut System, hardware: &mut impl Hardware) {
    for selector in [SELF, MEMORY, WINDOW] {
        // If it is gone already, there is nothing to do.
        let _ = system.call(hardware, OWN, Syscall::Revoke { selector, keep: 0 });
    }
}

/// Loads and starts the manager, and gives it everything; returns its activity.
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
    let memory = place.memory.next_multiple_of(PAGE);
    let tables = table_pages(memory);
    let pool = SEL_MEMORIES + place.memory_tile;
    let tile = SEL_TILES + place.tile;

    for request in [
        Syscall::CutMemory {
            source: pool,
            target: WINDOW,
            size: memory + tables * PAGE + TILEMUX_MEMORY,
        },
        Syscall::ConfigureTile {
            tile,
            memory: WINDOW,
            tables,
        },
        Syscall::CutMemory {
            source: WINDOW,
            target: MEMORY,
            size: memory,
        },
    ] {
        call(system, hardware, request)?;
    }
    let plan = Syscall::CreateActivity {
        target: SELF,
        tile,
        purse: SEL_KERNEL_MEMORY,
        memory: MEMORY,
        reply: layout.buffers_offset,
        priority: LEVEL as u8,
        tile_priority: 0,
        name: Name::new("root").unwrap_or_default(),
    };
    let made = call(system, hardware, plan)?;
    let id = made.as_slice().get(1).map_or(0, |id| *id as u16);
    let Some(activity) = system.activity(id) else {
        return Err(RootError::Call(SyscallError::NoActivity));
    };
    let (region, holder, (send, receive)) = (activity.region, activity.holder, activity.syscalls);
    let frequency = system.tile_of(id).map_or(0, |tile| tile.frequency);
    // Everything: tiles, memory, modules.
    let named = (0..).zip(system.space().held_by(Space::KERNEL, 0));
    let named = named.filter(|(_, node)| node.is_some());
    let all: Vec<u16> = named.map(|(selector, _)| selector).collect();
    for selector in all {
        if selector == SEL_MODULES || selector >= SEL_TILES {
            let kernel = Space::KERNEL;
            let given = system
                .space()
                .copy(kernel, (kernel, selector), (holder, selector));
            given.map_err(SyscallError::from)?;
        }
    }
    let loading = Loading::new(image, module, region, ENVIRONMENT_BASE);
    let mut loading = loading.map_err(|_| RootError::BadProgram)?;
    while !loading.step(hardware) {}
    for part in layout.parts() {
        let mut done = 0;
        while done < part.pages {
            let pages = (part.pages - done).min(MAP_PAGES_MAX);
            let (address, offset) = (part.address + done * PAGE, part.offset + done * PAGE);
            let map = Syscall::Map {
                activity: SELF,
                address,
                offset,
                pages,
                rights: part.rights,
            };
            call(system, hardware, map)?;
            done += pages;
        }
    }
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
        syscall_reply: receive,
        call_reply: NO_ENDPOINT,
        line: place.line,
        syscall_buffer: layout.buffers,
        name: Name::new("root").unwrap_or_default().0,
        ..Environment::new_zeroed()
    };
    // Without gates and arguments nothing follows the header, and memory is empty at boot.
    hardware.write(region, 0, header.as_bytes());
    let start = Syscall::Start {
        activity: SELF,
        entry: loading.entry(),
        stack: layout.stack_top,
    };
    call(system, hardware, start)?;
    Ok(id)
}
