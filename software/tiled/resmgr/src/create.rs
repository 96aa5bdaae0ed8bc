//! Creates activities, and creates them again.
//!
//! Why it exists: an application that failed comes back with its old memory, gates and quotas; only the activity is new. What it
//! deliberately does not know: which application starts when.

use crate::calls::{CREDITS_MAX, Failure, call};
use crate::draft::{Draft, Receiver};
use crate::gates::{Selectors, activate};
use crate::load::{self, Filling, Modules};
use crate::pagers;
use crate::tiles::{self, pages};
use alloc::collections::{BTreeMap, BTreeSet};
use bulkhead_abi::dtu::{NO_ENDPOINT, UNLIMITED_CREDITS};
use bulkhead_abi::environment::{ENVIRONMENT_MAGIC, Environment, GateEntry, GateKind};
use bulkhead_abi::network::INTERRUPT_GATE;
use bulkhead_abi::syscall::{
    SEL_FREE, SEL_KERNEL_MEMORY, SEL_MEMORIES, SEL_OFFERED, SEL_TILES, SYSCALL_SLOT, Syscall,
    SyscallError,
};
use bulkhead_abi::tilemux::{TILEMUX_MEMORY, table_pages};
use bulkhead_abi::words::Name;
use bulkhead_lib::common::payer::{Own, Paid, PaidList};
use bulkhead_loader::layout::{Layout, PAGE};
use bulkhead_resmgr::description::{App, Manager};
use zerocopy::FromZeros;

/// Bytes of a stack, at most a quarter of an application's memory.
const STACK: u64 = 16 << 10;
/// Bytes of the stack of a manager, which parses XML, recursively.
const MANAGER_STACK: u64 = 64 << 10;
/// The fewest bytes of a slot for the replies to an application's messages.
const CALL_SLOT: u16 = 64;
/// Kernel memory of an application for what it causes itself, in bytes, unless the description gives another value.
const PURSE: u64 = 4 << 10;

/// What an application needs from this manager.
struct Needs<'a> {
    name: &'a str,
    tile: u16,
    program: &'a str,
    memory: u64,
    memory_tile: u16,
    /// Kernel memory.
    purse: u64,
    stack: u64,
    priority: u8,
}

/// Slots and bytes of a slot for the replies to an application's messages; none if it sends nothing.
fn call_slots(app: &App) -> Result<Option<(u8, u16)>, Failure> {
    // A sender without credits handles its replies itself: there is room for one.
    let credits = app.send.iter().map(|gate| match gate.credits {
        UNLIMITED_CREDITS => 1,
        credits => u32::from(credits),
    });
    let credits = credits.sum();
    if credits > CREDITS_MAX {
        return Err(Failure::Credits(app.name.as_str().into(), credits));
    }
    let sizes = app.send.iter().map(|gate| gate.slot_size);
    let size = sizes.max().unwrap_or(CALL_SLOT).max(CALL_SLOT);
    Ok((credits > 0).then_some((credits as u8 + 1, size)))
}

/// Collects the parts of an application and creates its activity.
pub fn application(
    app: &App,
    windows: &BTreeMap<(u16, u16), u16>,
    modules: &Modules,
    selectors: &mut Selectors,
) -> Result<Draft, Failure> {
    let needs = Needs {
        name: &app.name,
        tile: app.tile,
        program: &app.program,
        memory: app.memory,
        memory_tile: app.memory_tile,
        purse: app.kernel_memory.unwrap_or(PURSE),
        stack: app.stack.unwrap_or(STACK.min(app.memory / 4)),
        priority: app.priority,
    };
    let mut draft = create(&needs, Some(app), windows, modules, selectors)?;
    let appeared = appear(&mut draft, Some(app));
    draft.survive(appeared)?;
    Ok(draft)
}

/// Collects the parts of an activity and plans its memory.
fn create(
    needs: &Needs,
    app: Option<&App>,
    windows: &BTreeMap<(u16, u16), u16>,
    modules: &Modules,
    selectors: &mut Selectors,
) -> Result<Draft, Failure> {
    let image = load::image(needs.name, needs.program, modules)?;
    let call_slots = match app {
        Some(app) => call_slots(app)?,
        None => None,
    };
    let receive = app.map_or(&[][..], |app| &app.receive);
    let bytes = |slots: u8, size: u16| u64::from(slots) * u64::from(size);
    let buffers = bytes(1, SYSCALL_SLOT)
        + call_slots.map_or(0, |(slots, size)| bytes(slots, size))
        + receive
            .iter()
            .map(|g| bytes(g.slots, g.slot_size))
            .sum::<u64>();
    let layout = Layout::plan(&image, needs.memory, buffers, needs.stack);
    let layout = layout.map_err(|error| Failure::Layout(needs.name.into(), error))?;
    let full = || Failure::Environment(needs.name.into());
    let name = Name::new(needs.name).ok_or_else(full)?;

    let window = windows.get(&(needs.tile, needs.memory_tile)).copied();
    let window = window.ok_or(Failure::Call("give memory", SyscallError::NoMemory))?;
    let for_pager = pagers::pool(app, &layout);
    let memory = selectors.cut(window, needs.memory - for_pager)?;
    let pool = match for_pager {
        0 => None,
        bytes => Some(selectors.cut(window, bytes)?),
    };
    let tile = match app {
        Some(app) => tiles::for_app(app, selectors)?,
        None => tiles::for_itself(needs.tile, needs.memory, selectors)?,
    };
    // An activity without kernel memory of its own uses this manager's.
    let purse = match needs.purse {
        0 => SEL_KERNEL_MEMORY,
        bytes => {
            let target = selectors.next()?;
            let request = Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target,
                bytes,
            };
            call("give kernel memory", &request)?;
            target
        }
    };
    let selector = selectors.next()?;
    let mut receiver = |slots: u8, slot_size: u16, import: Option<u16>| {
        let gate = match import {
            Some(import) => import,
            None => selectors.receive(slots, slot_size)?,
        };
        Ok::<_, Failure>(Receiver {
            gate,
            slots,
            slot_size,
        })
    };
    let answers = match call_slots {
        Some((slots, size)) => Some(receiver(slots, size, None)?),
        None => None,
    };
    let receivers = receive.iter();
    let receivers = receivers.map(|gate| receiver(gate.slots, gate.slot_size, gate.import));
    Ok(Draft {
        activity: 0,
        selector,
        memory,
        name,
        tile,
        tile_number: needs.tile,
        purse,
        priority: needs.priority,
        program: needs.program.into(),
        image,
        layout,
        header: Environment::new_zeroed(),
        gates: PaidList::default(),
        answers,
        receivers: receivers.collect::<Result<_, _>>()?,
        pool,
        pool_at: None,
        faults: None,
        told: PaidList::default(),
        send: PaidList::default(),
        ends: PaidList::default(),
        memories: PaidList::default(),
        quotas: PaidList::default(),
        pieces: Paid::default(),
        modules: PaidList::default(),
        lost: None,
    })
}

/// Creates the activity of a draft for the first time.
fn appear(draft: &mut Draft, app: Option<&App>) -> Result<(), Failure> {
    begin(draft, app)?;
    for number in 0..draft.receives() {
        receive(draft, app, number)?;
    }
    match app {
        Some(app) if app.device => give_device(draft),
        _ => Ok(()),
    }
}

/// Creates the activity of a draft: the first one, or a new one after the last one has ended.
pub fn begin(draft: &mut Draft, app: Option<&App>) -> Result<(), Failure> {
    let request = Syscall::CreateActivity {
        target: draft.selector,
        tile: draft.tile,
        purse: draft.purse,
        memory: draft.memory,
        reply: draft.layout.buffers_offset,
        priority: draft.priority,
        tile_priority: app.and_then(|a| a.budget).map_or(0, |b| b.2),
        name: draft.name,
    };
    let [id, syscall_send, syscall_reply, frequency, ..] = call("create an activity", &request)?;
    let own = bulkhead_lib::environment();
    let (period, deadline) = app.and_then(|a| a.task).unwrap_or((0, 0));
    let layout = &draft.layout;
    draft.header = Environment {
        magic: ENVIRONMENT_MAGIC,
        activity: id as u16,
        tile: draft.tile_number,
        timebase: own.timebase,
        frequency,
        period,
        deadline,
        heap_start: layout.heap,
        heap_size: layout.heap_size,
        stack_bottom: layout.stack_bottom,
        stack_top: layout.stack_top,
        syscall_send: syscall_send as u16,
        syscall_reply: syscall_reply as u16,
        call_reply: NO_ENDPOINT,
        line: own.line,
        syscall_buffer: layout.buffers,
        name: draft.name.0,
        ..Environment::new_zeroed()
    };
    draft.activity = id as u16;
    draft.gates = PaidList::default();
    draft.ends = PaidList::new(alloc::vec![None; draft.send.len()]);
    Ok(())
}

/// Opens a receive endpoint of an activity. The first one is for the answers to its calls, if it makes any.
pub fn receive(draft: &mut Draft, app: Option<&App>, number: usize) -> Result<(), Failure> {
    let bytes = |slots: u8, size: u16| u64::from(slots) * u64::from(size);
    let all = || draft.answers.iter().chain(&draft.receivers);
    let Some(receiver) = all().nth(number) else {
        return Ok(());
    };
    let before = all().take(number).map(|r| bytes(r.slots, r.slot_size));
    let at = bytes(1, SYSCALL_SLOT) + before.sum::<u64>();
    let gate = number.checked_sub(draft.answers.iter().len());
    let offset = draft.layout.buffers_offset + at;
    let place = Some((draft.memory, offset));
    let endpoint = activate(receiver.gate, draft.selector, place, gate.is_some())?;
    let buffer = draft.layout.buffers + at;
    let Some((app, gate)) = app.zip(gate) else {
        (draft.header.call_reply, draft.header.call_buffer) = (endpoint, buffer);
        return Ok(());
    };
    let name = &app.receive[gate].name;
    let entry = GateEntry {
        slot_size: receiver.slot_size,
        buffer,
        size: receiver.slots.into(),
        rights: app
            .service_of(name)
            .map_or(0, |service| u64::from(SEL_OFFERED + service)),
        ..entry(&app.name, name, GateKind::Receive, endpoint)?
    };
    draft.gates.push(entry);
    Ok(())
}

/// Gives an application the device of its tile. The device may use the application's heap and raises interrupts at the gate `interrupt`.
pub fn give_device(draft: &Draft) -> Result<(), Failure> {
    let named = |gate: &&GateEntry| bulkhead_abi::words::text(&gate.name) == INTERRUPT_GATE;
    let gate = draft.gates.iter().find(named);
    let mut parts = draft.layout.parts().iter();
    let heap = parts.find(|part| part.address == draft.layout.heap);
    let (Some(gate), Some(heap)) = (gate, heap) else {
        return Err(Failure::Call("give a device", SyscallError::NotReceiver));
    };
    let request = Syscall::GiveDevice {
        tile: draft.tile,
        activity: draft.selector,
        endpoint: gate.endpoint,
        address: heap.address,
        offset: heap.offset,
        size: heap.pages * PAGE,
    };
    call("give a device", &request).map(|_| ())
}

/// The entry of a gate in the environment of an application.
pub fn entry(app: &str, name: &str, kind: GateKind, endpoint: u16) -> Result<GateEntry, Failure> {
    let name = Name::new(name).ok_or_else(|| Failure::Environment(app.into()))?;
    Ok(GateEntry {
        name: name.0,
        kind: kind as u32,
        endpoint,
        ..GateEntry::new_zeroed()
    })
}

/// Creates a subordinate manager with the resources of its part: tiles, memory, kernel memory, and its modules, which it can only read.
pub fn below(
    manager: &Manager,
    (windows, first_memory): (&BTreeMap<(u16, u16), u16>, u16),
    modules: &mut Modules,
    selectors: &mut Selectors,
) -> Result<Draft, Failure> {
    let needs = Needs {
        name: &manager.name,
        tile: manager.tile,
        program: &manager.program,
        memory: manager.memory,
        memory_tile: first_memory,
        purse: manager.kernel_memory,
        stack: MANAGER_STACK.min(manager.memory / 4),
        priority: manager.inner.iter().map(|a| a.priority).max().unwrap_or(0),
    };
    let mut draft = create(&needs, None, windows, modules, selectors)?;
    let appeared = appear(&mut draft, None);
    draft.survive(appeared)?;
    // If the manager's tile is lost on the way, the parts of its memory that others need are made all the same.
    let mut give = |source: u16, target: u16| {
        let request = Syscall::Delegate {
            activity: draft.selector,
            source,
            target,
        };
        match draft.lost {
            None => draft.survive(call("give a resource", &request).map(|_| ())),
            Some(_) => Ok(()),
        }
    };
    let mut found = PaidList::default();
    for name in &manager.modules {
        let (module, _) = modules.memory(name, selectors)?;
        let target = SEL_FREE + found.len() as u16;
        give(module, target)?;
        found.push(target);
    }
    let tiles = manager.inner.iter().map(|a| a.tile);
    let tiles: BTreeSet<u16> = tiles.chain(manager.managers.iter().map(|m| m.0)).collect();
    let mut all = PaidList::default();
    for tile in tiles {
        let quotas = tiles::for_manager(manager, tile, selectors)?;
        give(quotas, SEL_TILES + tile)?;
        all.push((tile, quotas));
    }
    let mut memories: BTreeMap<u16, u64> = BTreeMap::new();
    // Each further manager on the way reserves pages for the page tables of a tile that it shares with its subordinates, in the first
    // window that it makes there (`tiles::windows`). Only that manager knows which memory that window shows, so every memory gets that many
    // pages.
    let further = manager.managers.len() as u64;
    let mut kept = 0;
    let mut activity = |memory: u64, tables: u64| {
        kept += tables * PAGE * further;
        pages(memory) + tables * PAGE + TILEMUX_MEMORY
    };
    for app in &manager.inner {
        let gates = app.memory_gates.iter();
        for gate in gates.filter(|gate| gate.is_own()) {
            *memories.entry(gate.memory_tile).or_default() += pages(gate.size);
        }
        *memories.entry(app.memory_tile).or_default() += activity(app.memory, tiles::tables(app));
    }
    let first: &mut u64 = memories.entry(first_memory).or_default();
    for (_, memory) in &manager.managers {
        *first += activity(*memory, table_pages(pages(*memory)));
    }
    memories.values_mut().for_each(|memory| *memory += kept);
    // The memory that the description allows beyond the needs comes from the first memory tile, and so do the parts of the description.
    let needed: u64 = memories.values().sum();
    let more = manager.user_memory.unwrap_or(0).saturating_sub(needed);
    let text = pages(2 * manager.text.len() as u64) + 2 * PAGE;
    *memories.entry(first_memory).or_default() +=
        pages(more) + text * manager.managers.len() as u64;
    let mut pieces = Paid::<Own, BTreeMap<_, _>>::default();
    for (tile, size) in memories.into_iter().filter(|(_, size)| *size > 0) {
        let piece = selectors.cut(SEL_MEMORIES + tile, size)?;
        give(piece, SEL_MEMORIES + tile)?;
        pieces.insert(tile, piece);
    }
    draft.pieces = pieces;
    draft.modules = found;
    draft.quotas = all;
    Ok(draft)
}

/// Fills the memory of a subordinate manager.
pub fn fill(draft: &Draft, name: &str, modules: &Modules) -> Result<(), Failure> {
    let mut filling = Filling::new();
    let mut pieces = draft.pieces(false);
    pieces.try_for_each(|piece| filling.step(piece, &draft.contents(name, &[]), modules))
}

/// Starts an activity.
pub fn run(draft: &Draft) -> Result<(), Failure> {
    let request = Syscall::Start {
        activity: draft.selector,
        entry: draft.image.entry,
        stack: draft.layout.stack_top,
    };
    call("start an activity", &request).map(|_| ())
}
