//! Connects applications: with each other, and across the borders of managers.
//!
//! Why it exists: a gate whose ends belong to different managers is made by the one above both. What it deliberately does not
//! know: when applications start.

use crate::calls::{Failure, call};
use crate::create::{Draft, entry};
use crate::gates::{Selectors, activate};
use crate::load;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::environment::{GateEntry, GateKind};
use bulkhead_abi::syscall::{SEL_MEMORIES, SEL_TILES, Syscall, SyscallError};
use bulkhead_resmgr::description::{App, ImportKind, Manager, Source, Subsystem, Target};

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
        Target::App { app, gate } => selectors.send(drafts[app].receive(gate), label, credits),
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
        give(activity, source, target)?;
        given.push(target);
    }
    write(part(manager, &given), selectors)
}

/// Gives an activity a capability of this manager.
pub fn give(activity: u16, source: u16, target: u16) -> Result<(), Failure> {
    let request = Syscall::Delegate {
        activity,
        source,
        target,
    };
    call("give a capability", &request).map(|_| ())
}

/// Where a manager finds what it gets from outside.
pub const IMPORTS: u16 = bulkhead_abi::syscall::SEL_SESSIONS;

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
    if let Some(module) = &owner.fill {
        load::fill_from_module(memory, owner.size, &data_module(module))?;
    }
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

/// The boot module of a `<module>`; programs have no such names.
fn data_module(name: &str) -> String {
    format!("data:{name}")
}

/// Takes the service that an application offers under a selector of its own; gives this manager's selector.
pub fn obtain(draft: &Draft, server: usize, service: u16) -> Result<u16, Failure> {
    // One service for each application; a second one is not given to anybody.
    if server >= usize::from(OFFERED_MAX) {
        return Err(Failure::Selectors);
    }
    let target = OFFERED + server as u16;
    take(draft.selector, service, target)?;
    Ok(target)
}

/// Takes a capability of an activity.
pub fn take(activity: u16, source: u16, target: u16) -> Result<(), Failure> {
    let request = Syscall::Obtain {
        activity,
        source,
        target,
    };
    call("take a service", &request).map(|_| ())
}

/// Gives a service to an application that sends to whom it belongs.
pub fn give_service(app: &App, draft: &Draft, source: Source, service: u16) {
    for (number, gate) in app.send.iter().enumerate() {
        let wanted = match gate.to {
            Target::App { .. } => true,
            _ => gate.session,
        };
        if wanted && Source::from(gate.to) == source {
            // A client that has just ended needs none.
            let _ = give(draft.selector, service, SERVICES + number as u16);
        }
    }
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
    for gate in &app.send {
        let terms = (gate.label, gate.credits);
        let capability = send(gate.to, terms, drafts, exports, selectors)?;
        drafts[index].send.push(capability);
    }
    for (number, gate) in app.memory_gates.iter().enumerate() {
        let target = selectors.next()?;
        let (source, size) = match &gate.module {
            Some(module) => {
                let name = data_module(module);
                let (selector, size) = load::module(&name, selectors)?;
                (selector, if gate.size == 0 { size } else { gate.size })
            }
            None => {
                let own = || format!("{}/{}", app.name, gate.name);
                let of = gate.of.clone().unwrap_or_else(own);
                (region(&of, apps, regions, selectors)?, gate.size)
            }
        };
        let request = Syscall::DeriveMemory {
            source,
            target,
            offset: 0,
            size,
            rights: gate.rights,
        };
        call("create a memory gate", &request)?;
        // A server can grant pieces of its memory to its clients.
        let own = match app.receive.is_empty() {
            true => 0,
            false => MEMORY + number as u16,
        };
        drafts[index].memories.push((target, own, size));
    }
    attach(app, &mut drafts[index])
}

/// Puts the send and memory gates of an application on endpoints of its activity.
pub fn attach(app: &App, draft: &mut Draft) -> Result<(), Failure> {
    let activity = draft.selector;
    for (number, (gate, capability)) in app.send.iter().zip(&draft.send).enumerate() {
        let endpoint = activate(*capability, activity, None, false)?;
        draft.gates.push(GateEntry {
            slot_size: gate.slot_size,
            size: gate.credits.into(),
            // Where it will find the service of that application, if it offers one.
            rights: match gate.to {
                Target::App { .. } => u64::from(SERVICES) + number as u64,
                _ if gate.session => u64::from(SERVICES) + number as u64,
                _ => 0,
            },
            ..entry(&app.name, &gate.name, GateKind::Send, endpoint)?
        });
    }
    for (gate, (capability, own, size)) in app.memory_gates.iter().zip(&draft.memories) {
        let endpoint = activate(*capability, activity, None, false)?;
        if *own != 0 {
            give(activity, *capability, *own)?;
        }
        draft.gates.push(GateEntry {
            buffer: (*own).into(),
            size: *size,
            rights: gate.rights.into(),
            ..entry(&app.name, &gate.name, GateKind::Memory, endpoint)?
        });
    }
    Ok(())
}

/// Endpoints that are tried at most until one has the number that an application knows.
const TRIES: usize = 64;

/// Puts the gates of a client to a receiver that has come back on the endpoints where they were: the client knows their numbers.
pub fn reattach(app: &App, draft: &Draft, receiver: usize) -> Result<(), Failure> {
    for (number, (gate, capability)) in app.send.iter().zip(&draft.send).enumerate() {
        if !matches!(gate.to, Target::App { app, .. } if app == receiver) {
            continue;
        }
        let wanted = draft.gates[app.receive.len() + number].endpoint;
        let mut others = Vec::new();
        while others.len() < TRIES {
            let endpoint = activate(*capability, draft.selector, None, false)?;
            if endpoint == wanted {
                break;
            }
            others.push(endpoint);
        }
        for endpoint in &others {
            let request = Syscall::Deactivate {
                gate: *capability,
                endpoint: *endpoint,
            };
            call("give back an endpoint", &request)?;
        }
        if others.len() == TRIES {
            return Err(Failure::Call(
                "connect a client again",
                SyscallError::NoEndpoint,
            ));
        }
    }
    Ok(())
}
