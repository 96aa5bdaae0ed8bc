//! Connects applications with each other, also across the borders of managers.
//!
//! Why it exists: if the ends of a gate belong to different managers, the manager above both makes the gate. What it deliberately
//! does not know: when applications start.

use crate::calls::{Failure, call};
use crate::create::entry;
use crate::draft::Draft;
use crate::gates::{Selectors, activate, activate_again};
use crate::load::{self, Modules};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::environment::{GateEntry, GateKind};
use bulkhead_abi::syscall::{SEL_MEMORIES, Syscall, SyscallError};
use bulkhead_resmgr::description::{
    App, ImportKind, Manager, MemoryGate, SendGate, Source, Subsystem, Target, data_module, part,
};

/// Makes the receive gates that belong below other managers and that others send to.
pub fn exports(system: &Subsystem, selectors: &mut Selectors) -> Result<Vec<u16>, Failure> {
    let mut made = Vec::new();
    for export in &system.exports {
        made.push(match export.gate.import {
            Some(import) => import,
            None => {
                let gate = selectors.receive(export.gate.slots, export.gate.slot_size);
                gate.map_err(Failure::by(&export.app))?
            }
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
        Target::App { app, gate, .. } => selectors.send(drafts[app].receive(gate), label, credits),
        Target::Export(index) => selectors.send(exports[index], label, credits),
        Target::Import(selector) => Ok(selector),
    }
}

/// What a manager has made for its subordinate managers and applications.
pub struct Made<'a> {
    /// Its applications.
    pub apps: &'a [App],
    /// The same.
    pub drafts: &'a [Draft],
    /// Its [`exports`].
    pub exports: &'a [u16],
    /// Its modules.
    pub modules: &'a Modules,
}

/// Gives a manager what it needs from outside; `write` receives its part of the description.
pub fn introduce(
    manager: &Manager,
    draft: &Draft,
    made: &Made,
    regions: &mut Regions,
    selectors: &mut Selectors,
    write: impl FnOnce(String, &mut Selectors) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut given = Vec::new();
    for import in &manager.imports {
        let source = match &import.kind {
            ImportKind::Send {
                to, credits, label, ..
            } => send(
                *to,
                (*label, *credits),
                made.drafts,
                made.exports,
                selectors,
            )?,
            ImportKind::Receive(index) => made.exports[*index],
            ImportKind::Memory {
                import: Some(selector),
                ..
            } => *selector,
            ImportKind::Memory { of, part, .. } => {
                let whole = region(of, made.apps, made.modules, regions, selectors)?;
                match part {
                    Some((size, rights)) => selectors.derive(whole, *size, *rights)?,
                    None => whole,
                }
            }
        };
        // The manager's own selectors begin after the ones that it is given.
        let target = IMPORTS + given.len() as u16;
        give(draft.selector, source, target)?;
        given.push(target);
    }
    write(part(manager, &draft.modules, &given), selectors)
}

/// Makes the regions that belong below other managers and that others share. Each is a part of the memory of its manager.
pub fn regions(
    system: &Subsystem,
    below: &[Draft],
    modules: &Modules,
    selectors: &mut Selectors,
) -> Result<Regions, Failure> {
    let mut made = Regions::new();
    // Regions from above exist already.
    for import in system.managers.iter().flat_map(|m| &m.imports) {
        if let ImportKind::Memory {
            of,
            import: Some(selector),
            part: None,
        } = &import.kind
        {
            made.insert(of.clone(), *selector);
        }
    }
    for region in &system.regions {
        let piece = below[region.below].pieces.get(&region.gate.memory_tile);
        let piece = piece.ok_or_else(|| Failure::NoRegion(region.of.as_str().into()))?;
        let memory = new_region(*piece, &region.gate, modules, selectors);
        let memory = memory.map_err(Failure::by(&region.of))?;
        made.insert(region.of.clone(), memory);
    }
    Ok(made)
}

/// Makes a region with its initial contents.
fn new_region(
    pool: u16,
    gate: &MemoryGate,
    modules: &Modules,
    selectors: &mut Selectors,
) -> Result<u16, Failure> {
    let memory = selectors.cut(pool, gate.size)?;
    if let Some(module) = &gate.fill {
        load::fill_from_module(memory, gate.size, &data_module(module), modules)?;
    }
    Ok(memory)
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

/// The memory behind memory gates, by the owning gate (`APP/GATE`).
pub type Regions = BTreeMap<String, u16>;

/// The memory of a gate's region; made at the first request.
fn region(
    of: &str,
    apps: &[App],
    modules: &Modules,
    regions: &mut Regions,
    selectors: &mut Selectors,
) -> Result<u16, Failure> {
    if let Some(memory) = regions.get(of) {
        return Ok(*memory);
    }
    let owner = of.split_once('/').and_then(|(app, gate)| {
        let app = apps.iter().find(|known| known.name == app)?;
        let mut gates = app.memory_gates.iter();
        gates.find(|known| known.name == gate && known.is_own())
    });
    let owner = owner.ok_or_else(|| Failure::NoRegion(of.into()))?;
    let memory = match owner.import {
        Some(import) => import,
        None => new_region(SEL_MEMORIES + owner.memory_tile, owner, modules, selectors)?,
    };
    regions.insert(of.into(), memory);
    Ok(memory)
}

/// Where an application finds the service behind its send gate with this number.
const SERVICES: u16 = bulkhead_abi::syscall::SEL_SESSIONS;
/// Where it finds the memory of its memory gate with this number.
const MEMORY: u16 = SERVICES + 32;

/// Takes a capability of an activity.
pub fn take(activity: u16, source: u16, target: u16) -> Result<(), Failure> {
    let request = Syscall::Obtain {
        activity,
        source,
        target,
    };
    call("take a service", &request).map(|_| ())
}

/// Whether an application gets the service behind a gate, if the gate has one.
pub fn wants(gate: &SendGate) -> bool {
    gate.session || matches!(gate.to, Target::App { .. })
}

/// Gives an application the service behind the send gate with this number.
pub fn give_service(draft: &Draft, gate: usize, service: u16) {
    // A client that has just ended needs no service.
    let _ = give(draft.selector, service, SERVICES + gate as u16);
}

/// Fills the place of a service that will never exist with the client's own memory, which the client has anyway. A client that
/// opens a session there learns that it is no service and does not wait.
pub fn bury(app: &App, draft: &Draft, source: Source) {
    for (number, gate) in app.send.iter().enumerate() {
        if gate.session && Source::from(gate.to) == source {
            let _ = give(draft.selector, draft.memory, SERVICES + number as u16);
        }
    }
}

/// Makes the send and memory gates of an application.
pub fn prepare(
    (apps, index): (&[App], usize),
    drafts: &mut [Draft],
    exports: &[u16],
    modules: &mut Modules,
    regions: &mut Regions,
    selectors: &mut Selectors,
) -> Result<(), Failure> {
    let app = &apps[index];
    for gate in &app.send {
        let terms = (gate.label, gate.credits);
        let capability = send(gate.to, terms, drafts, exports, selectors)?;
        drafts[index].send.push(capability);
        drafts[index].ends.push(None);
    }
    for (number, gate) in app.memory_gates.iter().enumerate() {
        let (source, size) = match (&gate.module, gate.import) {
            (Some(module), _) => {
                let (selector, size) = modules.memory(&data_module(module), selectors)?;
                (selector, if gate.size == 0 { size } else { gate.size })
            }
            (None, Some(import)) => (import, gate.size),
            (None, None) => {
                let own = || format!("{}/{}", app.name, gate.name);
                let of = gate.of.clone().unwrap_or_else(own);
                let memory = region(&of, apps, modules, regions, selectors)?;
                (memory, gate.size)
            }
        };
        let target = selectors.derive(source, size, gate.rights)?;
        // A server can grant pieces of its memory to its clients.
        let own = match app.receive.is_empty() {
            true => 0,
            false => MEMORY + number as u16,
        };
        drafts[index].memories.push((target, own, size));
    }
    Ok(())
}

/// Puts a send gate of an application on an endpoint of its activity, if its receiver exists and is not ending.
pub fn attach(draft: &mut Draft, gate: usize) -> Result<(), Failure> {
    let (capability, end) = (draft.send[gate], &mut draft.ends[gate]);
    if end.is_none() {
        *end = match activate(capability, draft.selector, None, false) {
            Err(Failure::Call(_, SyscallError::WrongState | SyscallError::Revoked)) => None,
            other => Some(other?),
        };
    }
    Ok(())
}

/// Tells an application about its send gates once all of them are on endpoints. Returns no if a receiver does not exist yet.
pub fn tell_of_gates(app: &App, draft: &mut Draft) -> Result<bool, Failure> {
    if draft.ends.contains(&None) {
        return Ok(false);
    }
    for (number, (gate, end)) in app.send.iter().zip(&draft.ends).enumerate() {
        let endpoint = end.unwrap_or(NO_ENDPOINT);
        draft.gates.push(GateEntry {
            slot_size: gate.slot_size,
            size: gate.credits.into(),
            // Where it finds the service of that application, if there is one.
            rights: match wants(gate) {
                true => u64::from(SERVICES) + number as u64,
                false => 0,
            },
            ..entry(&app.name, &gate.name, GateKind::Send, endpoint)?
        });
    }
    Ok(true)
}

/// Puts a memory gate of an application on an endpoint of its activity.
pub fn attach_memory(app: &App, draft: &mut Draft, gate: usize) -> Result<(), Failure> {
    let (activity, (capability, own, size)) = (draft.selector, draft.memories[gate]);
    let gate = &app.memory_gates[gate];
    let endpoint = activate(capability, activity, None, false)?;
    if own != 0 {
        give(activity, capability, own)?;
    }
    draft.gates.push(GateEntry {
        buffer: own.into(),
        size,
        rights: gate.rights.into(),
        ..entry(&app.name, &gate.name, GateKind::Memory, endpoint)?
    });
    Ok(())
}

/// Puts the gate of a client back on its old endpoint after the receiver has come back: the client knows the endpoint's number.
pub fn reattach(draft: &Draft, gate: usize) -> Result<(), Failure> {
    // A client that is not connected yet is connected later.
    match draft.ends.get(gate).copied().flatten() {
        Some(wanted) => activate_again(draft.send[gate], draft.selector, wanted),
        None => Ok(()),
    }
}
