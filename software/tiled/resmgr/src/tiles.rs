//! Tiles: memory windows, and the quotas that applications get of a tile.
//!
//! Why it exists: before anything lives on a tile, the tile must see memory, and quotas must be moved. What it deliberately does not know:
//! activities.

use crate::calls::{Failure, call};
use crate::gates::Selectors;
use alloc::collections::{BTreeMap, BTreeSet};
use bulkhead_abi::pager::AREA;
use bulkhead_abi::syscall::{PRIORITIES, SEL_MEMORIES, SEL_TILES, SHARE, Syscall, SyscallError};
use bulkhead_abi::tilemux::{TILEMUX_MEMORY, table_pages};
use bulkhead_lib::syscall;
use bulkhead_loader::layout::PAGE;
use bulkhead_resmgr::description::{App, Manager, Subsystem, Time};

/// Bytes in whole pages.
pub fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

/// Pages for the page tables of an application: its own needs, and what its limit allows for activities that it creates.
pub fn tables(app: &App) -> u64 {
    let memory = app.memory.next_multiple_of(PAGE);
    let own = match app.pager {
        None => table_pages(memory),
        // Its own memory, and everything that its pager may map.
        Some(_) => table_pages(memory) + table_pages(memory + 2 * AREA),
    };
    app.tables.unwrap_or(0).max(own)
}

/// The memory that each tile sees: that of its activities and, on tiles that this manager configures first, pages for all page tables.
struct Window {
    memory: u64,
    tables: u64,
}

/// Pages that everything below a manager needs for page tables on a tile.
fn needed_tables(manager: &Manager, tile: u16) -> u64 {
    let apps = manager.inner.iter().filter(|a| a.tile == tile);
    let below = manager.managers.iter().filter(|m| m.0 == tile);
    let below = below.map(|m| table_pages(pages(m.1)));
    apps.map(tables).chain(below).sum()
}

/// The same, plus what the manager's limit allows in addition.
fn manager_tables(manager: &Manager, tile: u16) -> u64 {
    let limit = manager.limits.iter().find(|limit| limit.tile == tile);
    let limit = limit.and_then(|limit| limit.tables).unwrap_or(0);
    limit.max(needed_tables(manager, tile))
}

/// The memory that each tile needs, by tile and memory tile. The root manager found its own tile with a TileMux that has pages for the root
/// manager only.
fn windows(
    system: &Subsystem,
    first_memory: u16,
    own_tile: Option<u16>,
) -> BTreeMap<(u16, u16), Window> {
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
        .map(|a| (a.tile, a.memory_tile, a.memory, tables(a)));
    let managers = system.managers.iter();
    // A manager's description is in its window, too.
    let managers = managers.map(|m| {
        let tables = table_pages(pages(m.memory));
        (m.tile, first_memory, m.memory, tables)
    });
    for (tile, memory_tile, memory, tables) in own.chain(managers) {
        need((tile, memory_tile), pages(memory), tables);
    }
    for manager in &system.managers {
        let text = 2 * manager.text.len() as u64 + 256 * manager.imports.len() as u64;
        need((manager.tile, first_memory), pages(text) + PAGE, 0);
    }
    // This manager configures the tiles that several subordinate managers share first, and those on which it has something itself.
    let tiles = |manager: &Manager| -> BTreeSet<u16> {
        let apps = manager.inner.iter().map(|a| a.tile);
        apps.chain(manager.managers.iter().map(|m| m.0)).collect()
    };
    for manager in &system.managers {
        for tile in tiles(manager) {
            let sharers = system.managers.iter().filter(|m| tiles(m).contains(&tile));
            let is_own = own_tile == Some(tile) || all.keys().any(|place| place.0 == tile);
            if !is_own && sharers.count() < 2 {
                continue;
            }
            let tables = manager_tables(manager, tile);
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

/// Gives every tile the memory that its activities need. Returns the capabilities from which that memory is cut.
pub fn configure(
    system: &Subsystem,
    first_memory: u16,
    own_tile: Option<u16>,
    selectors: &mut Selectors,
) -> Result<BTreeMap<(u16, u16), u16>, Failure> {
    let mut made = BTreeMap::new();
    for ((tile, memory_tile), window) in windows(system, first_memory, own_tile) {
        let size = window.memory + window.tables * PAGE + TILEMUX_MEMORY;
        let memory = selectors.cut(SEL_MEMORIES + memory_tile, size);
        let memory = memory.map_err(Failure::on(tile))?;
        let configure = |tables: u64| {
            syscall::call(&Syscall::ConfigureTile {
                tile: SEL_TILES + tile,
                memory,
                tables,
            })
        };
        let done = match configure(window.tables) {
            // A manager above configured the tile first, with page tables for all.
            Err(SyscallError::BadArgument) if window.tables > 0 => configure(0),
            // The activities meant for this tile are told later.
            Err(SyscallError::TileLost) => Ok(syscall::Results::default()),
            other => other,
        };
        done.map_err(|error| Failure::Call("configure a tile", error))
            .map_err(Failure::on(tile))?;
        made.insert((tile, memory_tile), memory);
    }
    Ok(made)
}

/// Quotas of a tile that an application or manager gets for itself; those that are `None` are shared.
#[derive(Default)]
struct Quotas {
    endpoints: Option<u64>,
    time: Option<Time>,
    noc: Option<(u64, u64)>,
    tables: Option<u64>,
    activities: Option<u64>,
    windows: Option<u64>,
}

/// Whether an activity without processor time of its own may share a tile with activities that have some.
fn has_idle(tile: u16) -> bool {
    let request = Syscall::Query {
        selector: SEL_TILES + tile,
    };
    matches!(syscall::call(&request), Ok([.., idle]) if idle != 0)
}

/// Derives a capability for a tile with these quotas, moved out of this manager's. An activity without time of its own comes last, and so
/// does everything derived from it; below a manager whose time is divided, it gets the remainder of that time.
fn derive(tile: u16, quotas: &Quotas, selectors: &mut Selectors) -> Result<u16, Failure> {
    let source = SEL_TILES + tile;
    let (rate, burst) = quotas.noc.unwrap_or((SHARE, SHARE));
    let has_idle = has_idle(tile);
    let time = quotas.time.unwrap_or(Time {
        budget: if has_idle { 0 } else { SHARE },
        period: 0,
        priority: 0,
        idle: true,
    });
    let target = selectors.next()?;
    let request = Syscall::DeriveTile {
        source,
        target,
        endpoints: quotas.endpoints.unwrap_or(SHARE),
        budget: time.budget,
        period: time.period,
        rate,
        burst,
        tables: quotas.tables.unwrap_or(SHARE),
        priority: time.priority,
        idle: (time.idle && has_idle).into(),
        activities: quotas.activities.unwrap_or(SHARE),
        windows: quotas.windows.unwrap_or(SHARE),
    };
    call("give quotas", &request)?;
    Ok(target)
}

/// The tile capability for an application. It has its own quotas where the description limits the application, and its own places, so that
/// nobody takes them or its page tables while it is restarted. It uses its manager's windows.
pub fn for_app(app: &App, selectors: &mut Selectors) -> Result<u16, Failure> {
    let quotas = Quotas {
        endpoints: app.endpoints,
        time: app.time(),
        noc: app.limit,
        tables: Some(tables(app)),
        activities: Some(app.activities),
        windows: Some(0),
    };
    derive(app.tile, &quotas, selectors)
}

/// Endpoints of a manager's own activity: its channel to the kernel, and, for each priority of applications, the memory that it fills and
/// the module that it reads.
const MANAGER_ENDPOINTS: u64 = 2 + 2 * PRIORITIES as u64;

/// The tile capability for a manager's own activity: others that share the tile must not take the endpoints that it activates there.
pub fn for_itself(tile: u16, memory: u64, selectors: &mut Selectors) -> Result<u16, Failure> {
    let quotas = Quotas {
        endpoints: Some(MANAGER_ENDPOINTS),
        tables: Some(table_pages(pages(memory))),
        activities: Some(1),
        windows: Some(0),
        ..Quotas::default()
    };
    derive(tile, &quotas, selectors)
}

/// The tile capability for everything below a manager.
pub fn for_manager(
    manager: &Manager,
    tile: u16,
    selectors: &mut Selectors,
) -> Result<u16, Failure> {
    let limit = manager.limits.iter().find(|limit| limit.tile == tile);
    let mut times = manager.times.iter();
    let quotas = Quotas {
        time: times.find(|time| time.0 == tile).map(|time| time.1),
        ..limit.map_or_else(Quotas::default, |limit| Quotas {
            endpoints: limit.endpoints,
            time: None,
            noc: limit.noc,
            tables: limit.tables,
            activities: limit.activities,
            windows: limit.windows,
        })
    };
    derive(tile, &quotas, selectors)
}
