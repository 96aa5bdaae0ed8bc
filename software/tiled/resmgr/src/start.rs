//! Creates, loads and starts all applications and the managers below.
//!
//! Why it exists: these are the manager's steps, in an order in which no application runs before all gates are there.
//! What it deliberately does not know: what happens afterwards.

use crate::calls::{CREDITS_MAX, Failure, call, kind_of};
use crate::connect;
use crate::gates::{Selectors, activate};
use crate::load::{self, Contents};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::dtu::NO_ENDPOINT;
use bulkhead_abi::environment::{ENVIRONMENT_MAGIC, Environment, GateEntry, GateKind};
use bulkhead_abi::syscall::{
    ObjectKind, SEL_DESCRIPTION, SEL_KERNEL_MEMORY, SEL_MEMORIES, SEL_MODULES, SEL_TILES, SHARE,
    SYSCALL_SLOT, Syscall, SyscallError,
};
use bulkhead_abi::tilemux::{TILEMUX_MEMORY, table_pages};
use bulkhead_abi::words::Name;
use bulkhead_lib::{println, syscall};
use bulkhead_loader::image::Image;
use bulkhead_loader::layout::{Layout, PAGE};
use bulkhead_resmgr::description::{App, Manager, Subsystem, Target, part};
use zerocopy::FromZeros;

/// Bytes of a stack, at most a quarter of an application's memory.
const STACK: u64 = 16 << 10;
/// Bytes of the stack of a manager, which parses XML, recursively.
const MANAGER_STACK: u64 = 64 << 10;
/// Bytes of a slot for replies to an application's messages at least.
const CALL_SLOT: u16 = 64;
/// Kernel memory of an application for what it causes itself, in bytes.
const PURSE: u64 = 4 << 10;
/// Kernel memory of a manager below for each application below it, and for itself.
const PURSE_BELOW: u64 = 14 << 10;

/// A started application or manager.
pub struct Started {
    /// Its activity.
    pub activity: u16,
    /// The capability for it.
    pub selector: u16,
    /// Its name.
    pub name: String,
    /// Where its parts lie.
    pub layout: Layout,
    /// Whether the system ends only after it.
    pub foreground: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether it could not be started, because a manager below did not do its part.
    pub failed: bool,
    /// Whether it is a manager.
    pub is_manager: bool,
}

/// An application on its way to its start.
pub struct Draft {
    /// Its activity.
    pub activity: u16,
    /// The capability for it.
    pub selector: u16,
    /// That for its memory.
    memory: u16,
    program: String,
    image: Image,
    layout: Layout,
    header: Environment,
    /// Its gates so far.
    pub gates: Vec<GateEntry>,
    /// The capabilities of its receive gates.
    pub receive: Vec<u16>,
}

/// What an application needs of this manager.
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

/// Starts everything.
///
/// # Errors
/// The first failure.
pub fn start(system: &Subsystem) -> Result<Vec<Started>, Failure> {
    let mut selectors = Selectors::new();
    let first_memory = match kind_of(SEL_MODULES) {
        Some((ObjectKind::Memory, [_, _, tile])) => tile as u16,
        _ => 0,
    };
    let windows = configure_tiles(system, first_memory, &mut selectors)?;
    let mut drafts = Vec::new();
    for app in &system.apps {
        let needs = Needs {
            name: &app.name,
            tile: app.tile,
            program: &app.program,
            memory: app.memory,
            memory_tile: app.memory_tile,
            purse: PURSE,
            stack: STACK.min(app.memory / 4),
            priority: app.priority,
        };
        drafts.push(create(&needs, Some(app), &windows, &mut selectors)?);
    }
    let exports = connect::exports(system, &mut selectors)?;
    let mut regions = connect::Regions::new();
    let mut started = Vec::new();
    for manager in &system.managers {
        let draft = below(manager, &windows, first_memory, &mut selectors)?;
        connect::introduce(
            manager,
            &drafts,
            &exports,
            draft.selector,
            &mut selectors,
            |text, s| {
                let memory = s.cut(
                    windows[&(manager.tile, first_memory)],
                    text.len() as u64 + 1,
                )?;
                load::write_memory(memory, &text)?;
                let request = Syscall::Delegate {
                    activity: draft.selector,
                    source: memory,
                    target: SEL_DESCRIPTION,
                };
                call("give a description", &request).map(|_| ())
            },
            part,
        )?;
        fill(&draft, &manager.name, &[], false)?;
        run(&draft)?;
        started.push(Started {
            activity: draft.activity,
            selector: draft.selector,
            name: manager.name.clone(),
            layout: draft.layout,
            foreground: manager.foreground(),
            ended: false,
            failed: false,
            is_manager: true,
        });
    }
    // What runs in the background first: what the others measure shall not see it start. And nobody waits for those who wait for
    // a manager below.
    for dependent in [false, true] {
        let is_now = |app: &App| depends(app) == dependent;
        let mut failed = BTreeSet::new();
        for (index, app) in system.apps.iter().enumerate().filter(|(_, a)| is_now(a)) {
            match connect::connect(
                (&system.apps, index),
                &mut drafts,
                &exports,
                &mut regions,
                &mut selectors,
            ) {
                Err(failure) if dependent => {
                    println!("`{}` is not started: {failure}", app.name);
                    failed.insert(index);
                }
                other => other?,
            }
        }
        let alive = |index: &usize| !failed.contains(index);
        let all: Vec<usize> = (0..drafts.len())
            .filter(|index| is_now(&system.apps[*index]))
            .collect();
        for index in all.iter().filter(|i| alive(i)) {
            let app = &system.apps[*index];
            fill(&drafts[*index], &app.name, &app.arguments, app.lazy)?;
        }
        for foreground in [false, true] {
            for index in all.iter().filter(|i| alive(i)) {
                if system.apps[*index].foreground == foreground {
                    run(&drafts[*index])?;
                }
            }
        }
        started.extend(all.iter().map(|index| Started {
            activity: drafts[*index].activity,
            selector: drafts[*index].selector,
            name: system.apps[*index].name.clone(),
            layout: drafts[*index].layout,
            foreground: system.apps[*index].foreground,
            ended: false,
            failed: failed.contains(index),
            is_manager: false,
        }));
    }
    Ok(started)
}

/// Whether an application sends to somebody below a manager, and so depends on what that manager does.
fn depends(app: &App) -> bool {
    let mut gates = app.send.iter();
    gates.any(|gate| matches!(gate.to, Target::Export(_)))
}

fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

/// The memory that shows on each tile: of its activities, and on tiles that this manager lights, pages for all page tables.
struct Window {
    memory: u64,
    tables: u64,
}

/// Which memory each tile needs, by tile and memory tile.
fn windows(system: &Subsystem, first_memory: u16) -> BTreeMap<(u16, u16), Window> {
    let mut all: BTreeMap<(u16, u16), Window> = BTreeMap::new();
    let mut need = |place: (u16, u16), memory: u64, tables: u64| {
        let window = all.entry(place).or_insert(Window {
            memory: 0,
            tables: 0,
        });
        window.memory += memory;
        window.tables += tables;
    };
    let own = system
        .apps
        .iter()
        .map(|a| (a.tile, a.memory_tile, a.memory));
    let managers = system.managers.iter();
    // A manager's description lies in its window, too.
    let managers = managers.map(|m| (m.tile, first_memory, m.memory));
    for (tile, memory_tile, memory) in own.chain(managers) {
        need(
            (tile, memory_tile),
            pages(memory),
            table_pages(pages(memory)),
        );
    }
    for manager in &system.managers {
        let text = 2 * manager.text.len() as u64 + 256 * manager.imports.len() as u64;
        need((manager.tile, first_memory), pages(text) + PAGE, 0);
    }
    // Tiles that several managers share are this one's to light; so are those where it has something itself.
    let tiles = |manager: &Manager| -> BTreeSet<u16> {
        let apps = manager.inner.iter().map(|a| a.tile);
        apps.chain(manager.managers.iter().map(|m| m.0)).collect()
    };
    for manager in &system.managers {
        for tile in tiles(manager) {
            let sharers = system.managers.iter().filter(|m| tiles(m).contains(&tile));
            let is_own = all.keys().any(|place| place.0 == tile);
            if !is_own && sharers.count() < 2 {
                continue;
            }
            let inner = manager.inner.iter().filter(|a| a.tile == tile);
            let apps = inner.map(|a| table_pages(pages(a.memory)));
            let below = manager.managers.iter().filter(|m| m.0 == tile);
            let tables: u64 = apps.chain(below.map(|m| table_pages(pages(m.1)))).sum();
            let place = all.keys().find(|place| place.0 == tile).copied();
            let window = all.entry(place.unwrap_or((tile, first_memory)));
            window
                .or_insert(Window {
                    memory: 0,
                    tables: 0,
                })
                .tables += tables;
        }
    }
    all
}

/// Gives every tile the memory that its activities need. Returns the capabilities to cut that memory from.
fn configure_tiles(
    system: &Subsystem,
    first_memory: u16,
    selectors: &mut Selectors,
) -> Result<BTreeMap<(u16, u16), u16>, Failure> {
    let mut made = BTreeMap::new();
    for ((tile, memory_tile), window) in windows(system, first_memory) {
        let size = window.memory + window.tables * PAGE + TILEMUX_MEMORY;
        let memory = selectors.cut(SEL_MEMORIES + memory_tile, size)?;
        let configure = |tables: u64| {
            syscall::call(&Syscall::ConfigureTile {
                tile: SEL_TILES + tile,
                memory,
                tables,
            })
        };
        let done = match configure(window.tables) {
            // Somebody above lit the tile, with page tables for all.
            Err(SyscallError::BadArgument) if window.tables > 0 => configure(0),
            other => other,
        };
        done.map_err(|error| Failure::Call("configure a tile", error))?;
        made.insert((tile, memory_tile), memory);
    }
    Ok(made)
}

/// Slots and bytes of a slot for the replies to an application's messages; none if it sends nothing.
fn call_slots(app: &App) -> Result<Option<(u8, u16)>, Failure> {
    let credits = app.send.iter().map(|gate| u32::from(gate.credits)).sum();
    if credits > CREDITS_MAX {
        return Err(Failure::Credits(app.name.clone(), credits));
    }
    let sizes = app.send.iter().map(|gate| gate.slot_size);
    let size = sizes.max().unwrap_or(CALL_SLOT).max(CALL_SLOT);
    Ok((credits > 0).then_some((credits as u8 + 1, size)))
}

/// The tile capability for an application: with quotas of its own where the description limits it.
fn tile_for(app: &App, selectors: &mut Selectors) -> Result<u16, Failure> {
    let source = SEL_TILES + app.tile;
    if app.limit.is_none() && app.budget.is_none() {
        return Ok(source);
    }
    let (rate, burst) = app.limit.unwrap_or((SHARE, SHARE));
    let (budget, period, _) = app.budget.unwrap_or((SHARE, 0, 0));
    let target = selectors.next()?;
    let request = Syscall::DeriveTile {
        source,
        target,
        endpoints: SHARE,
        budget,
        period,
        rate,
        burst,
        tables: SHARE,
    };
    call("give quotas", &request)?;
    Ok(target)
}

/// Creates an activity with its receive endpoints, and plans its memory.
fn create(
    needs: &Needs,
    app: Option<&App>,
    windows: &BTreeMap<(u16, u16), u16>,
    selectors: &mut Selectors,
) -> Result<Draft, Failure> {
    let image = load::image(needs.name, needs.program)?;
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
    let memory = selectors.cut(window, needs.memory)?;
    let tile = match app {
        Some(app) => tile_for(app, selectors)?,
        None => SEL_TILES + needs.tile,
    };
    let purse = selectors.next()?;
    let request = Syscall::DeriveKernelMemory {
        source: SEL_KERNEL_MEMORY,
        target: purse,
        bytes: needs.purse,
    };
    call("give kernel memory", &request)?;
    let selector = selectors.next()?;
    let request = Syscall::CreateActivity {
        target: selector,
        tile,
        purse,
        memory,
        reply: layout.buffers_offset,
        priority: needs.priority,
        tile_priority: app.and_then(|a| a.budget).map_or(0, |b| b.2),
        name,
    };
    let [id, syscall_send, syscall_reply, frequency, ..] = call("create an activity", &request)?;
    let mut at = bytes(1, SYSCALL_SLOT);
    let mut place = |gate: u16, slots: u8, slot_size: u16, replies: bool| {
        let offset = layout.buffers_offset + at;
        let endpoint = activate(gate, selector, Some((memory, offset)), replies)?;
        let buffer = layout.buffers + at;
        at += bytes(slots, slot_size);
        Ok::<_, Failure>((endpoint, buffer))
    };
    let (call_reply, call_buffer) = match call_slots {
        Some((slots, size)) => {
            let gate = selectors.receive(slots, size)?;
            place(gate, slots, size, false)?
        }
        None => (NO_ENDPOINT, 0),
    };
    let mut made = Vec::new();
    let mut gates = Vec::new();
    for gate in receive {
        let capability = match gate.import {
            Some(import) => import,
            None => selectors.receive(gate.slots, gate.slot_size)?,
        };
        let (endpoint, buffer) = place(capability, gate.slots, gate.slot_size, true)?;
        made.push(capability);
        gates.push(GateEntry {
            slot_size: gate.slot_size,
            buffer,
            size: gate.slots.into(),
            ..entry(needs.name, &gate.name, GateKind::Receive, endpoint)?
        });
    }
    let own = bulkhead_lib::environment();
    let (period, deadline) = app.and_then(|a| a.task).unwrap_or((0, 0));
    let header = Environment {
        magic: ENVIRONMENT_MAGIC,
        activity: id as u16,
        tile: needs.tile,
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
        call_reply,
        syscall_buffer: layout.buffers,
        call_buffer,
        name: name.0,
        ..Environment::new_zeroed()
    };
    Ok(Draft {
        activity: id as u16,
        selector,
        memory,
        program: needs.program.into(),
        image,
        layout,
        header,
        gates,
        receive: made,
    })
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

/// Creates a manager below with the resources of its part: tiles, memory, kernel memory, modules.
fn below(
    manager: &Manager,
    windows: &BTreeMap<(u16, u16), u16>,
    first_memory: u16,
    selectors: &mut Selectors,
) -> Result<Draft, Failure> {
    let everybody = manager.inner.len() + manager.managers.len();
    let needs = Needs {
        name: &manager.name,
        tile: manager.tile,
        program: &manager.program,
        memory: manager.memory,
        memory_tile: first_memory,
        purse: PURSE_BELOW * (everybody as u64 + 1),
        stack: MANAGER_STACK.min(manager.memory / 4),
        priority: manager.inner.iter().map(|a| a.priority).max().unwrap_or(0),
    };
    let draft = create(&needs, None, windows, selectors)?;
    let give = |source: u16, target: u16| {
        let request = Syscall::Delegate {
            activity: draft.selector,
            source,
            target,
        };
        call("give a resource", &request).map(|_| ())
    };
    give(SEL_MODULES, SEL_MODULES)?;
    let tiles = manager.inner.iter().map(|a| a.tile);
    let tiles: BTreeSet<u16> = tiles.chain(manager.managers.iter().map(|m| m.0)).collect();
    for tile in tiles {
        give(SEL_TILES + tile, SEL_TILES + tile)?;
    }
    let mut memories: BTreeMap<u16, u64> = BTreeMap::new();
    for app in &manager.inner {
        let gates = app.memory_gates.iter();
        for gate in gates {
            *memories.entry(gate.memory_tile).or_default() += pages(gate.size);
        }
        *memories.entry(app.memory_tile).or_default() +=
            pages(app.memory) + table_pages(pages(app.memory)) * PAGE + TILEMUX_MEMORY;
    }
    for (_, memory) in &manager.managers {
        *memories.entry(first_memory).or_default() += pages(*memory)
            + table_pages(pages(*memory)) * PAGE
            + TILEMUX_MEMORY
            + pages(2 * manager.text.len() as u64)
            + 2 * PAGE;
    }
    for (tile, size) in memories {
        let piece = selectors.cut(SEL_MEMORIES + tile, size)?;
        give(piece, SEL_MEMORIES + tile)?;
    }
    Ok(draft)
}

/// Fills the memory of an application.
fn fill(
    draft: &Draft,
    name: &str,
    arguments: &[(String, String)],
    lazy: bool,
) -> Result<(), Failure> {
    let contents = Contents {
        name,
        program: &draft.program,
        image: &draft.image,
        layout: &draft.layout,
        lazy,
        header: draft.header,
        gates: &draft.gates,
        arguments,
    };
    load::load(draft.selector, draft.memory, &contents)
}

fn run(draft: &Draft) -> Result<(), Failure> {
    let request = Syscall::Start {
        activity: draft.selector,
        entry: draft.image.entry,
        stack: draft.layout.stack_top,
    };
    call("start an activity", &request).map(|_| ())
}
