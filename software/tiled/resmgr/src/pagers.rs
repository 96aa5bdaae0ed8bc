//! Connects applications with their pagers.
//!
//! Why it exists: a pager needs a client's activity, memory for its pages, and to know where they go; the client's TileMux needs a
//! gate to the pager. What it deliberately does not know: which pages a pager gives.

use crate::calls::{Failure, call};
use crate::create::Draft;
use crate::gates::Selectors;
use alloc::format;
use bulkhead_abi::pager::{AREA, CLIENT, CLIENTS, FAULTS, SEL_CLIENTS};
use bulkhead_abi::syscall::{Syscall, SyscallError};
use bulkhead_abi::tilemux::table_pages;
use bulkhead_loader::layout::{Layout, PAGE};
use bulkhead_resmgr::description::{App, Subsystem};

/// Pages for the page tables of an application.
pub fn tables(app: &App) -> u64 {
    let memory = app.memory.next_multiple_of(PAGE);
    match app.pager {
        None => table_pages(memory),
        // Its own memory, and whatever its pager may map.
        Some(_) => table_pages(memory) + table_pages(memory + 2 * AREA),
    }
}

/// Bytes of memory that go to the pager of an application: for its heap.
pub fn pool(app: Option<&App>, layout: &Layout) -> u64 {
    match app.and_then(|app| app.pager.as_ref()) {
        Some(_) => layout.heap_size,
        None => 0,
    }
}

/// Gives every application that has one its pager. None of them runs yet.
pub fn connect(
    system: &Subsystem,
    drafts: &mut [Draft],
    selectors: &mut Selectors,
) -> Result<(), Failure> {
    for pager in 0..system.apps.len() {
        let name = &system.apps[pager].name;
        let clients = system.apps.iter().enumerate();
        let clients = clients.filter(|(_, app)| app.pager.as_ref() == Some(name));
        for (number, (client, _)) in clients.enumerate() {
            let number = number as u16;
            if number >= CLIENTS {
                return Err(Failure::Selectors);
            }
            introduce(system, drafts, (pager, client), number, selectors)?;
        }
    }
    Ok(())
}

fn introduce(
    system: &Subsystem,
    drafts: &mut [Draft],
    (pager, client): (usize, usize),
    number: u16,
    selectors: &mut Selectors,
) -> Result<(), Failure> {
    let mut gates = system.apps[pager].receive.iter();
    let gate = gates.position(|gate| gate.name == FAULTS);
    let gate = gate.ok_or(Failure::Call("set a pager", SyscallError::NotReceiver))?;
    let Some(pool) = drafts[client].pool else {
        return Ok(());
    };
    let layout = drafts[client].layout;
    let area = (layout.heap + layout.heap_size).next_multiple_of(1 << 21);
    let send = selectors.send(drafts[pager].receive(gate), number.into(), 1)?;
    let request = Syscall::SetPager {
        activity: drafts[client].selector,
        gate: send,
        address: layout.heap,
        pages: (area + AREA - layout.heap) / PAGE,
    };
    call("set a pager", &request)?;
    let target = SEL_CLIENTS + 2 * number;
    for (source, target) in [(drafts[client].selector, target), (pool, target + 1)] {
        let request = Syscall::Delegate {
            activity: drafts[pager].selector,
            source,
            target,
        };
        call("give a pager what it needs", &request)?;
    }
    let about = format!(
        "{} {} {} {} {}",
        drafts[client].activity,
        layout.heap,
        layout.heap_size / PAGE,
        area,
        AREA / PAGE
    );
    drafts[pager]
        .told
        .push((format!("{CLIENT}{number}"), about));
    Ok(())
}
