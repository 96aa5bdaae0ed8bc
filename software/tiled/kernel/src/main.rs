//! The kernel of the tiled OS on its own tile, in machine mode.
//!
//! Why it exists: boots the system and then answers messages: system calls, notifications of TileMux, text. What it
//! deliberately does not know: decisions (they are in the library) and registers (they are in `arch`).
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod unit;

use alloc::vec::Vec;
use bulkhead_abi::boot::{BootTile, TILE_MEMORY, TILE_PROCESSING};
use bulkhead_abi::syscall::{StopCause, Syscall, SyscallError, module_key};
use bulkhead_abi::words;
use bulkhead_kernel::activity::State;
use bulkhead_kernel::hardware::Region;
use bulkhead_kernel::memory::Range;
use bulkhead_kernel::report::Stopped;
use bulkhead_kernel::root;
use bulkhead_kernel::system::{KernelEndpoints, MemoryTile, Module, Outcome, Place, Reply, System};
use bulkhead_kernel::tile::Tile;
use unit::{Received, Unit};

/// Called by `arch` with what the boot ROM gave.
fn boot(own_tile: u16, table: &arch::BootTable) -> ! {
    let header = table.header;
    let (tiles, modules) = (&table.tiles, &table.modules);
    let tile_of = |t: &BootTile| t.id as u16;
    let mut memories: Vec<MemoryTile> = tiles
        .iter()
        .filter(|t| t.kind == TILE_MEMORY)
        .map(|t| MemoryTile {
            id: tile_of(t),
            free: Range::new(0, t.memory),
        })
        .collect();
    let Some(first) = memories.first_mut() else {
        panic!("the platform has no memory")
    };
    first.free = Range::new(header.free_start, header.free_end);
    let memory_tile = first.id;
    let users: Vec<Tile> = tiles
        .iter()
        .filter(|t| t.kind == TILE_PROCESSING && tile_of(t) != own_tile)
        .map(|t| {
            let tile = Tile::new(tile_of(t), t.frequency, t.endpoints as u16);
            tile.scheduled(t.policy, t.slice, t.harts)
        })
        .collect();
    let modules = modules
        .iter()
        .map(|m| Module {
            key: module_key(words::text(&m.name).as_bytes()),
            region: Region {
                tile: memory_tile,
                base: m.offset,
                size: m.size,
            },
        })
        .collect();
    let Some(default_tile) = users.first().map(|t| t.id) else {
        panic!("the platform has no tile for activities")
    };
    let mut unit = Unit::new(own_tile, users.iter().map(|t| t.id));
    let kernel = KernelEndpoints {
        tile: own_tile,
        syscalls: unit::SYSCALLS,
        notifications: unit::NOTIFICATIONS,
        prints: unit::PRINTS,
    };
    let mut system = System::new(kernel, memories, users, modules, header.timebase);
    let place = Place {
        tile: match header.manager_tile as u16 {
            0 => default_tile,
            tile => tile,
        },
        memory: header.manager_memory.max(1 << 20),
        memory_tile,
    };
    let manager = match root::start(&mut system, &mut unit, place) {
        Ok(manager) => manager,
        Err(error) => panic!("the root manager cannot be started: {error:?}"),
    };
    serve(&mut system, &mut unit, manager)
}

/// Answers messages until the root manager has ended.
fn serve(system: &mut System, unit: &mut Unit, root: u16) -> ! {
    // Managers that wait for events: the offset of the message to answer.
    let mut waiting: Vec<(u16, u32)> = Vec::new();
    loop {
        match unit.next() {
            Received::Stopped {
                tile,
                activity,
                cause,
            } => {
                if system.notified(unit, tile, activity, cause) {
                    report(system, unit, activity, cause);
                }
            }
            Received::Call {
                caller,
                words,
                offset,
            } => {
                let call = Syscall::decode(words.as_slice());
                let stop = match call {
                    Ok(Syscall::Stop { activity }) => Some(activity),
                    _ => None,
                };
                match call.and_then(|call| system.call(unit, caller, call)) {
                    Ok(Outcome::Reply(reply)) => {
                        if let Some(activity) = stop {
                            report(system, unit, activity, StopCause::Killed);
                        }
                        unit.reply(offset, &reply);
                    }
                    Ok(Outcome::Later) if waiting.iter().all(|(who, _)| *who != caller) => {
                        waiting.push((caller, offset));
                    }
                    Ok(Outcome::Later) => unit.reply(offset, &failed(SyscallError::Busy)),
                    Err(error) => unit.reply(offset, &failed(error)),
                }
            }
            Received::Text { offset } => unit.print(offset),
        }
        waiting.retain(|(manager, offset)| match system.take_event(*manager) {
            Some(event) => {
                unit.reply(*offset, &event);
                false
            }
            None => true,
        });
        if let Some(State::Stopped(cause)) = system.activity(root).map(|a| a.state) {
            arch::exit(match cause {
                StopCause::Exit(code) => code as u16,
                _ => 1,
            });
        }
    }
}

fn failed(error: SyscallError) -> Reply {
    let mut reply = Reply::new();
    reply.push(&[error as u64]);
    reply
}

fn report(system: &System, unit: &mut Unit, activity: u16, cause: StopCause) {
    if let (Some(target), Some(tile)) = (system.activity(activity), system.tile_of(activity)) {
        unit.line(Stopped {
            activity,
            name: target.name.as_str(),
            tile: tile.id,
            cause,
        });
    }
}
