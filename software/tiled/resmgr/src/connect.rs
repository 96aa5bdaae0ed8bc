//! Connects applications: with each other, and across the borders of managers.
//!
//! Why it exists: a gate whose ends belong to different managers is made by the one above both. What it deliberately does not
//! know: when applications start.

use crate::calls::{Failure, call};
use crate::gates::{Selectors, activate};
use crate::start::{Draft, Started, entry};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::environment::{GateEntry, GateKind};
use bulkhead_abi::syscall::{SEL_MEMORIES, SEL_TILES, Syscall};
use bulkhead_resmgr::description::{App, ImportKind, Manager, Subsystem, Target};

/// Makes the receive gates that managers below need and others send to.
pub fn exports(system: &Subsystem, selectors: &mut Selectors) -> Result<Vec<u16>, Failure> {
    let mut made = Vec::new();
    for export in &system.exports {
        made.push(match export.gate.import {
            Some(import) => import,
            None => selectors.receive(export.gate.slots, export.gate.slot_size)?,
        });
    }
    Ok(made)
}

/// The capability to send to a target.
fn send(
    to: Target,
    (label, credits): (u64, u8),
    drafts: &[Draft],
    exports: &[u16],
    selectors: &mut Selectors,
) -> Result<u16, Failure> {
    match to {
        Target::App { app, gate } => selectors.send(drafts[app].receive[gate], label, credits),
        Target::Export(index) => selectors.send(exports[index], label, credits),
        Target::Import(selector) => Ok(selector),
    }
}

/// Gives a manager what it needs from outside, and its part of the description.
pub fn introduce(
    manager: &Manager,
    drafts: &[Draft],
    exports: &[u16],
    activity: u16,
    selectors: &mut Selectors,
    write: impl FnOnce(String, &mut Selectors) -> Result<(), Failure>,
    part: fn(&Manager, &[u16]) -> String,
) -> Result<(), Failure> {
    let mut given = Vec::new();
    for import in &manager.imports {
        let source = match import.kind {
            ImportKind::Send {
                to, credits, label, ..
            } => send(to, (label, credits), drafts, exports, selectors)?,
            ImportKind::Receive(index) => exports[index],
        };
        // The manager's own selectors begin behind what it is given.
        let target = IMPORTS + given.len() as u16;
        let request = Syscall::Delegate {
            activity,
            source,
            target,
        };
        call("give a gate", &request)?;
        given.push(target);
    }
    write(part(manager, &given), selectors)
}

/// Where a manager finds what it gets from outside.
const IMPORTS: u16 = bulkhead_abi::syscall::SEL_SESSIONS;

/// The memory behind memory gates, by the gate that it belongs to (`APP/GATE`).
pub type Regions = BTreeMap<String, u16>;

/// The memory of a gate's region; made when it is asked for first.
fn region(
    of: &str,
    apps: &[App],
    regions: &mut Regions,
    selectors: &mut Selectors,
) -> Result<u16, Failure> {
    if let Some(memory) = regions.get(of) {
        return Ok(*memory);
    }
    let owner = of.split_once('/').and_then(|(app, gate)| {
        let app = apps.iter().find(|known| known.name == app)?;
        let mut gates = app.memory_gates.iter();
        gates.find(|known| known.name == gate && known.of.is_none())
    });
    let owner = owner.ok_or_else(|| Failure::NoRegion(of.into()))?;
    let memory = selectors.cut(SEL_MEMORIES + owner.memory_tile, owner.size)?;
    regions.insert(of.into(), memory);
    Ok(memory)
}

/// Where an application finds the service behind its send gate with this number.
const SERVICES: u16 = bulkhead_abi::syscall::SEL_SESSIONS;
/// Where it finds the memory of its memory gate with this number.
const MEMORY: u16 = SERVICES + 32;

/// Where this manager keeps the service of its application with this number; below are gates from outside.
const OFFERED: u16 = SERVICES + 32;
/// Applications that can offer one.
const OFFERED_MAX: u16 = SEL_TILES - OFFERED;

/// Gives the service that application `server` offers to all that have a send gate to it.
pub fn offered(
    system: &Subsystem,
    started: &[Started],
    server: usize,
    service: u16,
) -> Result<(), Failure> {
    // Applications are named uniquely, and started in another order than they are described.
    let described = |s: &Started| system.apps.iter().position(|app| app.name == s.name);
    let Some(to) = described(&started[server]) else {
        return Ok(());
    };
    // One service for each application; a second one is not given to anybody.
    if to >= usize::from(OFFERED_MAX) {
        return Err(Failure::Selectors);
    }
    let target = OFFERED + to as u16;
    let request = Syscall::Obtain {
        activity: started[server].selector,
        source: service,
        target,
    };
    call("take a service", &request)?;
    for client in started
        .iter()
        .filter(|s| !s.ended && !s.failed && !s.is_manager)
    {
        let Some(app) = described(client).map(|index| &system.apps[index]) else {
            continue;
        };
        for (number, gate) in app.send.iter().enumerate() {
            if matches!(gate.to, Target::App { app, .. } if app == to) {
                let request = Syscall::Delegate {
                    activity: client.selector,
                    source: target,
                    target: SERVICES + number as u16,
                };
                // A client that has just ended needs none.
                let _ = call("give a service", &request);
            }
        }
    }
    Ok(())
}

/// Makes the send and memory gates of an application.
pub fn connect(
    (apps, index): (&[App], usize),
    drafts: &mut [Draft],
    exports: &[u16],
    regions: &mut Regions,
    selectors: &mut Selectors,
) -> Result<(), Failure> {
    let app = &apps[index];
    let activity = drafts[index].selector;
    for (number, gate) in app.send.iter().enumerate() {
        let terms = (gate.label, gate.credits);
        let capability = send(gate.to, terms, drafts, exports, selectors)?;
        let endpoint = activate(capability, activity, None, false)?;
        drafts[index].gates.push(GateEntry {
            slot_size: gate.slot_size,
            size: gate.credits.into(),
            // Where it will find the service of that application, if it offers one.
            rights: match gate.to {
                Target::App { .. } => u64::from(SERVICES) + number as u64,
                _ => 0,
            },
            ..entry(&app.name, &gate.name, GateKind::Send, endpoint)?
        });
    }
    for (number, gate) in app.memory_gates.iter().enumerate() {
        let own = || format!("{}/{}", app.name, gate.name);
        let of = gate.of.clone().unwrap_or_else(own);
        let memory = region(&of, apps, regions, selectors)?;
        let target = selectors.next()?;
        let request = Syscall::DeriveMemory {
            source: memory,
            target,
            offset: 0,
            size: gate.size,
            rights: gate.rights,
        };
        call("create a memory gate", &request)?;
        let endpoint = activate(target, activity, None, false)?;
        // A server can grant pieces of its memory to its clients.
        let own = match app.receive.is_empty() {
            true => 0,
            false => MEMORY + number as u16,
        };
        if own != 0 {
            let request = Syscall::Delegate {
                activity,
                source: target,
                target: own,
            };
            call("give a memory capability", &request)?;
        }
        drafts[index].gates.push(GateEntry {
            buffer: own.into(),
            size: gate.size,
            rights: gate.rights.into(),
            ..entry(&app.name, &gate.name, GateKind::Memory, endpoint)?
        });
    }
    Ok(())
}
