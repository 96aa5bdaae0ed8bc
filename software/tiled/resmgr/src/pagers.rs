//! Connects applications with their pagers.
//!
//! Why it exists: a pager needs its client's activity, memory for the pages, and the addresses of the pages; the client's TileMux
//! needs a gate to the pager. What it deliberately does not know: which pages a pager supplies.

use crate::calls::{Failure, call};
use crate::draft::Draft;
use crate::gates::Selectors;
use alloc::collections::BTreeSet;
use alloc::format;
use bulkhead_abi::pager::{
    AREA, CLIENT, CLIENTS, FAULTS, SHARED, client_activity, client_memory, fault_label,
};
use bulkhead_abi::syscall::{MAP_READ, SEL_TILES, Syscall, SyscallError};
use bulkhead_loader::layout::{Layout, PAGE};
use bulkhead_resmgr::description::{App, Subsystem};

/// Bytes of memory that the pager of an application gets for the application's heap.
pub fn pool(app: Option<&App>, layout: &Layout) -> u64 {
    match app.and_then(|app| app.pager.as_ref()) {
        Some(_) => layout.heap_size,
        None => 0,
    }
}

/// The applications that this pager serves.
pub fn clients(system: &Subsystem, pager: usize) -> impl Iterator<Item = usize> {
    let name = &system.apps[pager].name;
    let apps = system.apps.iter().enumerate();
    let clients = apps.filter(move |(_, app)| app.pager.as_ref() == Some(name));
    clients.map(|(client, _)| client)
}

/// The pager of an application, and the application's number there.
pub fn of(system: &Subsystem, client: usize) -> Option<(usize, u16)> {
    let name = system.apps[client].pager.as_ref()?;
    let pager = system.apps.iter().position(|app| app.name == *name)?;
    let number = clients(system, pager).position(|other| other == client)?;
    Some((pager, number as u16))
}

/// Gives every application with a pager that pager. None of them runs yet.
pub fn connect(
    system: &Subsystem,
    drafts: &mut [Draft],
    selectors: &mut Selectors,
) -> Result<(), Failure> {
    for client in 0..system.apps.len() {
        let Some((pager, number)) = of(system, client) else {
            continue;
        };
        if number >= CLIENTS {
            return Err(Failure::Selectors);
        }
        let layout = drafts[client].layout;
        let area = area(&layout);
        let about = format!(
            "{} {} {} {}",
            layout.heap,
            layout.heap_size / PAGE,
            area,
            AREA / PAGE
        );
        drafts[pager]
            .told
            .push((format!("{CLIENT}{number}"), about));
        let mut pieces = 0..PIECES;
        let introduced =
            pieces.try_for_each(|number| introduce(system, drafts, (client, number), selectors));
        match introduced {
            // The client cannot live without its pager either.
            Err(failure) if drafts[pager].ended(&failure) => drafts[client].lost = Some(failure),
            other => drafts[client]
                .survive(other)
                .map_err(Failure::by(&system.apps[client].name))?,
        }
    }
    Ok(())
}

/// Makes the memory that the clients of a pager share visible to their tiles, read-only.
pub fn share(
    system: &Subsystem,
    drafts: &[Draft],
    pager: usize,
    selectors: &mut Selectors,
) -> Result<(), Failure> {
    let mut gates = system.apps[pager].memory_gates.iter();
    let Some(number) = gates.position(|gate| gate.name == SHARED) else {
        return Ok(());
    };
    let Some(&(source, _, size)) = drafts[pager].memories.get(number) else {
        return Ok(());
    };
    let tiles: BTreeSet<u16> = clients(system, pager)
        .map(|client| system.apps[client].tile)
        .collect();
    if tiles.is_empty() {
        return Ok(());
    }
    let memory = selectors.next()?;
    let request = Syscall::DeriveMemory {
        source,
        target: memory,
        offset: 0,
        size,
        rights: MAP_READ,
    };
    call("derive the memory that clients share", &request)?;
    for tile in tiles {
        let request = Syscall::ConfigureTile {
            tile: SEL_TILES + tile,
            memory,
            tables: 0,
        };
        match call("show the memory that clients share", &request) {
            // The clients on that tile are given up separately.
            Err(failure) if failure.is_lost_tile() => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// The address range where the pager can place files.
fn area(layout: &Layout) -> u64 {
    (layout.heap + layout.heap_size).next_multiple_of(1 << 21)
}

/// Pieces of introducing an application to its pager.
pub const PIECES: usize = 4;

/// Does one piece of introducing an application that has just been created to its pager.
pub fn introduce(
    system: &Subsystem,
    drafts: &mut [Draft],
    (client, piece): (usize, usize),
    selectors: &mut Selectors,
) -> Result<(), Failure> {
    let Some((pager, number)) = of(system, client) else {
        return Ok(());
    };
    let Some(pool) = drafts[client].pool else {
        return Ok(());
    };
    let give = |drafts: &[Draft], source: u16, target: u16| {
        let request = Syscall::Delegate {
            activity: drafts[pager].selector,
            source,
            target,
        };
        call("give a pager what it needs", &request)
    };
    match (piece, drafts[client].faults) {
        (0, before) => {
            let mut gates = system.apps[pager].receive.iter();
            let gate = gates.position(|gate| gate.name == FAULTS);
            let gate = gate.ok_or(Failure::Call("set a pager", SyscallError::NotReceiver))?;
            let source = drafts[pager].receive(gate);
            let faults = match before {
                None => (selectors.send(source, fault_label(number, 0), 1)?, 0),
                Some((selector, before)) => {
                    // Nothing arrives through the predecessor's gate any more.
                    call("take a gate", &Syscall::Revoke { selector, keep: 0 })?;
                    let generation = before.wrapping_add(1);
                    let request = Syscall::CreateSend {
                        source,
                        target: selector,
                        label: fault_label(number, generation),
                        credits: 1,
                    };
                    call("create a send gate", &request)?;
                    (selector, generation)
                }
            };
            drafts[client].faults = Some(faults);
        }
        (1, Some((gate, _))) => {
            let layout = drafts[client].layout;
            let request = Syscall::SetPager {
                activity: drafts[client].selector,
                gate,
                address: layout.heap,
                pages: (area(&layout) + AREA - layout.heap) / PAGE,
            };
            call("set a pager", &request)?;
        }
        (2, Some((_, generation))) => {
            let target = client_activity(number, generation);
            give(drafts, drafts[client].selector, target)?;
        }
        // The pager keeps the memory when a client ends; a new pager has none yet.
        _ if drafts[client].pool_at != Some(drafts[pager].activity) => {
            give(drafts, pool, client_memory(number))?;
            drafts[client].pool_at = Some(drafts[pager].activity);
        }
        _ => {}
    }
    Ok(())
}
