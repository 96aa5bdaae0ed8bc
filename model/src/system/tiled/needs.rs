//! What a system needs from the chip: the sums that the rules compare with what exists.
//!
//! Why it exists: kernel, TileMux and managers use a part of everything. How much is defined here, once; tests compare it with what the
//! chip really uses. What it deliberately does not know: what is too much.

use bulkhead_abi::{boot, dtu, environment, memory_map, syscall, tilemux};
use std::collections::BTreeSet;

pub use bulkhead_abi::tilemux::table_pages;

use crate::system::{App, KERNEL_MEMORY, Limit, Manager, PAGE, Scope, System, TILE_MEMORY};

/// Endpoints of a processing tile that the tiled OS reserves: four protection windows, and TileMux's channels.
pub const TILE_ENDPOINTS: u64 = tilemux::FIRST_ENDPOINT as u64;
/// Endpoints of every application besides its gates: two for system calls, one for answers, and [`SPARE_ENDPOINTS`].
pub const APP_ENDPOINTS: u64 = 8;
/// Endpoints that an application without a limit may activate itself at run time: requests to a service, granted memory.
pub const SPARE_ENDPOINTS: u64 = 5;
/// Maximum activities known to TileMux.
pub const TILE_ACTIVITIES: usize = tilemux::ACTIVITIES;
/// Windows through which a tile sees memory.
pub const WINDOWS: usize = memory_map::PMP_WINDOWS as usize;
/// Maximum bytes of a window.
pub const WINDOW: u64 = memory_map::PMP_WINDOW_SIZE;
/// Reserved bytes of each window: TileMux is in the first one.
pub const WINDOW_KEPT: u64 = tilemux::TILEMUX_MEMORY;
/// Selectors of a manager available for what it makes.
pub const SELECTORS: u64 = (syscall::SEL_SHARED - syscall::SEL_FREE) as u64;
/// Maximum gates across the border of a manager: those that send from inside, and those that receive from outside.
pub const BORDER: u64 = syscall::SHARED_MAX as u64;
/// Maximum services of an application.
pub const SERVICES: usize = syscall::SERVICES_MAX as usize;
/// Maximum memory gates of an application.
pub const MEMORY_GATES: usize = 32;
/// Bytes of the page that tells an application its gates and arguments: the whole page, its head, a gate, an argument.
pub const ENVIRONMENT: [u64; 4] = [
    environment::ENVIRONMENT_SIZE as u64,
    size_of::<environment::Environment>() as u64,
    size_of::<environment::GateEntry>() as u64,
    size_of::<environment::ArgumentEntry>() as u64,
];
/// A pager's memory gate for what its clients share.
const SHARED: &str = "shared";
/// Bytes of address space in which a pager can place files, rounded up.
pub const PAGER_AREA: u64 = 4 << 20;
/// Bytes of a chunk: a token bucket that holds less admits nothing.
pub const CHUNK: u64 = dtu::CHUNK_MAX as u64;
/// Kernel memory of an application without a limit.
pub const APP_KERNEL_MEMORY: u64 = 4 << 10;
/// Additional kernel memory for each possible client if it serves others: for what a service derives for the client, such as memory.
pub const CLIENT_KERNEL_MEMORY: u64 = 512;
/// Maximum kernel memory that a manager uses itself for each activity that it starts: without gates, and for each gate.
pub const ACTIVITY_KERNEL_MEMORY: [u64; 2] = [7 << 10, 512];
/// Kernel memory that a manager uses for each module of a manager below it.
pub const MODULE_KERNEL_MEMORY: u64 = 256;
/// Kernel memory that a manager uses for each tile of a manager below it: a capability with its quotas, and its copy.
pub const TILE_KERNEL_MEMORY: u64 = 512;
/// Kernel memory that always exists, and the minimum beyond what is given away: for the root manager.
pub const KERNEL_PURSES: [u64; 2] = [2 << 20, 1 << 20];

/// Maximum pieces that can be cut out of one memory.
pub const PIECES: u64 = syscall::PIECES_MAX as u64;
/// Memory of a manager for its program, environment, buffers and stack.
const MANAGER_IMAGE: u64 = 320 << 10;
/// Maximum bytes of a manager's heap: for each byte of its description, which it reads completely (9 to 11 were measured), and for each
/// application and manager that it starts.
const MANAGER_HEAP: [u64; 2] = [11, 1 << 10];

impl App {
    /// Endpoints for its gates.
    pub fn gate_endpoints(&self) -> u64 {
        // A receive gate keeps one right to reply for each slot in an endpoint.
        let receive = self.rgates.iter().map(|gate| 1 + u64::from(gate.slots));
        receive.sum::<u64>() + (self.sgates.len() + self.mgates.len()) as u64
    }

    /// Minimum endpoints that it needs.
    pub fn least_endpoints(&self) -> u64 {
        2 + u64::from(!self.sgates.is_empty()) + self.gate_endpoints()
    }

    /// Endpoints that it may use.
    pub fn endpoints(&self) -> u64 {
        // Each further service has its own gate for the kernel's requests.
        let more = SPARE_ENDPOINTS * (self.services.len() as u64).saturating_sub(1);
        let usual = APP_ENDPOINTS + self.gate_endpoints() + u64::from(self.pager.is_some()) + more;
        self.quotas.endpoints.unwrap_or(usual)
    }

    /// Minimum pages for page tables that it needs.
    pub fn least_tables(&self) -> u64 {
        let own = table_pages(self.memory.0);
        match self.pager {
            None => own,
            // Everything that its pager may map needs its own tables.
            Some(_) => own + table_pages(self.memory.0 + 2 * PAGER_AREA),
        }
    }

    /// Pages for page tables that it may use. A limit reserves this many, for activities that it makes itself.
    pub fn tables(&self) -> u64 {
        let least = self.least_tables();
        self.quotas.page_tables.unwrap_or(0).max(least)
    }

    /// Places for activities on its tile that it asks for: its own, and the additional ones granted by a limit.
    pub fn least_places(&self) -> u64 {
        self.quotas.activities.unwrap_or(1)
    }

    /// Kernel memory that it may use.
    pub fn kernel_memory(&self) -> u64 {
        let given = self.quotas.kernel_memory.map(|size| size.0);
        given.unwrap_or(APP_KERNEL_MEMORY + CLIENT_KERNEL_MEMORY * self.clients())
    }

    /// Maximum clients of its services: each has a slot of a gate.
    pub fn clients(&self) -> u64 {
        let gates = self.rgates.iter();
        let gates = gates.filter(|gate| self.service_of(&gate.name).is_some());
        gates.map(|gate| u64::from(gate.slots)).sum()
    }

    /// Bytes of memory for its regions.
    pub fn region_bytes(&self) -> u64 {
        let own = self.mgates.iter();
        let own = own.filter(|gate| gate.of.is_none() && gate.module.is_none());
        own.fold(0, |sum, gate| sum.saturating_add(gate.size.0))
    }
}

impl Manager {
    /// The limits of its subtree on a tile.
    pub fn limit(&self, tile: u16) -> Option<&super::TileLimit> {
        let own = self.limits.iter().find(|limit| limit.tile == Some(tile));
        own.or_else(|| self.limits.iter().find(|limit| limit.tile.is_none()))
    }

    /// The bound of its traffic on a tile.
    pub fn traffic(&self, tile: u16) -> Option<Limit> {
        self.limit(tile)?.noc
    }
}

/// The share of a tile that a subtree may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnTile {
    /// Endpoints.
    pub endpoints: u64,
    /// Pages for page tables.
    pub tables: u64,
    /// Bytes per second of all activities with a limit.
    pub rate: u128,
    /// Bursts of all activities with a limit, in bytes.
    pub burst: u128,
    /// Activities without a limit of their traffic.
    pub without_limit: u64,
    /// Activities without a bound of their computing time.
    pub without_cpu: u64,
    /// Everything that runs there.
    pub activities: u64,
    /// Places for activities: those of everything that runs there, and the additional ones granted by limits.
    pub places: u64,
    /// Applications that share the places not requested by others.
    pub sharing: u64,
}

impl System {
    /// Tiles other than the kernel's.
    fn user_tiles(&self) -> usize {
        self.platform.tiles.len().saturating_sub(1)
    }

    /// Bytes of the kernel's heap: there is kernel memory for everything given away.
    pub fn kernel_heap(&self) -> u64 {
        let [least, rest] = KERNEL_PURSES;
        // More than can exist is a separate error.
        let given = self.kernel_memory_below(0);
        let given = if given > self.kernel_memory_most() {
            0
        } else {
            given
        };
        let purses = given.saturating_add(rest).max(least);
        let heap = boot::kernel_heap(self.user_tiles() as u64, purses);
        heap.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
    }

    /// Bytes of the first memory tile used by kernel, boot table, modules and the kernel's heap.
    pub fn kernel_keeps(&self) -> u64 {
        KERNEL_MEMORY.saturating_add(self.kernel_heap())
    }

    /// Maximum kernel memory that can be given away: the heap must fit in the first memory tile next to what is there, and in what the
    /// kernel sees of it.
    pub fn kernel_memory_most(&self) -> u64 {
        let size = self
            .platform
            .memories
            .first()
            .map_or(0, |memory| memory.size.0);
        let mut tiles = self.tiles_below(0);
        tiles.push(self.managers[0].tile);
        tiles.sort_unstable();
        tiles.dedup();
        let managers = self.managers.iter().map(|manager| manager.memory.0);
        let managers = managers.fold(TILE_MEMORY * tiles.len() as u64, u64::saturating_add);
        let beside = size.saturating_sub(managers).min(WINDOW);
        let heap = beside.saturating_sub(KERNEL_MEMORY);
        let purses = boot::kernel_purses(self.user_tiles() as u64, heap);
        let most = purses.min(boot::KERNEL_PURSES_MAX);
        most.saturating_sub(KERNEL_PURSES[1]) >> 10 << 10
    }

    /// Endpoints that the kernel's unit needs.
    pub fn kernel_endpoints(&self) -> usize {
        boot::kernel_endpoints(self.user_tiles())
    }

    /// The applications of a manager, without those of managers below.
    pub fn apps_of(&self, manager: usize) -> impl Iterator<Item = &App> {
        let all = self.apps.iter();
        all.filter(move |app| self.domains[app.domain].manager == manager)
    }

    /// The managers directly below one.
    pub fn managers_below(&self, manager: usize) -> impl Iterator<Item = usize> {
        (0..self.managers.len()).filter(move |m| self.managers[*m].parent == Some(manager))
    }

    /// Tiles of everything below a manager, sorted.
    pub fn tiles_below(&self, manager: usize) -> Vec<u16> {
        let mut tiles: Vec<u16> = self.apps_of(manager).map(|app| app.tile).collect();
        for below in self.managers_below(manager) {
            tiles.push(self.managers[below].tile);
            tiles.extend(self.tiles_below(below));
        }
        tiles.sort_unstable();
        tiles.dedup();
        tiles
    }

    /// Activities below a manager.
    pub fn activities_below(&self, manager: usize) -> usize {
        let below = self.managers_below(manager);
        let inner: usize = below.map(|m| 1 + self.activities_below(m)).sum();
        self.apps_of(manager).count() + inner
    }

    /// The share of a tile that everything below a manager may use: the limit of a manager below counts instead of its contents.
    pub fn on_tile(&self, manager: usize, tile: u16) -> OnTile {
        let mut sum = OnTile::default();
        for app in self.apps_of(manager).filter(|app| app.tile == tile) {
            sum.endpoints += app.endpoints();
            sum.tables += app.tables();
            sum.activities += 1;
            sum.places += app.least_places();
            sum.sharing += u64::from(app.quotas.activities.is_none());
            match app.limit {
                Some(limit) => {
                    sum.rate += u128::from(limit.noc.0);
                    sum.burst += u128::from(limit.burst.0);
                }
                None => sum.without_limit += 1,
            }
            sum.without_cpu += u64::from(app.cpu.is_none());
        }
        for below in self.managers_below(manager) {
            if self.managers[below].tile == tile {
                sum.endpoints += APP_ENDPOINTS;
                sum.tables += table_pages(self.managers[below].memory.0);
                sum.activities += 1;
                sum.places += 1;
                sum.without_limit += 1;
                sum.without_cpu += 1;
            }
            let inner = self.on_tile(below, tile);
            if inner.activities == 0 {
                continue;
            }
            let limit = self.managers[below].limit(tile);
            sum.endpoints += limit.and_then(|l| l.endpoints).unwrap_or(inner.endpoints);
            sum.tables += limit.and_then(|l| l.page_tables).unwrap_or(inner.tables);
            sum.activities += inner.activities;
            match limit.and_then(|l| l.activities) {
                Some(places) => sum.places += places,
                None => {
                    sum.places += inner.places;
                    sum.sharing += inner.sharing;
                }
            }
            match limit.and_then(|l| l.noc) {
                Some(noc) => {
                    sum.rate += u128::from(noc.noc.0);
                    sum.burst += u128::from(noc.burst.0);
                }
                None => {
                    sum.rate += inner.rate;
                    sum.burst += inner.burst;
                    sum.without_limit += inner.without_limit;
                }
            }
            if self.managers[below].cpu.is_none() {
                sum.without_cpu += inner.without_cpu;
            }
        }
        sum
    }

    /// Places for activities that an application gets on its tile: those that it asks for, or its own and its share of the unrequested
    /// ones.
    pub fn places_of(&self, app: &App) -> u64 {
        if let Some(given) = app.quotas.activities {
            return given;
        }
        let mut scope = self.domains[app.domain].manager;
        let all = loop {
            let manager = &self.managers[scope];
            let limit = manager.limit(app.tile).and_then(|limit| limit.activities);
            match (limit, manager.parent) {
                (Some(limit), _) => break limit,
                (None, Some(parent)) => scope = parent,
                (None, None) => break self.places_on(app.tile),
            }
        };
        let sum = self.on_tile(scope, app.tile);
        1 + all.saturating_sub(sum.places) / sum.sharing.max(1)
    }

    /// Places for activities on a tile, besides the root manager's.
    pub fn places_on(&self, tile: u16) -> u64 {
        TILE_ACTIVITIES as u64 - u64::from(self.managers[0].tile == tile)
    }

    /// Places for activities that a manager gets on a tile for everything below it.
    pub fn places_below(&self, manager: usize, tile: u16) -> u64 {
        let limit = self.managers[manager].limit(tile);
        if let Some(given) = limit.and_then(|limit| limit.activities) {
            return given;
        }
        let apps = self.apps_of(manager).filter(|app| app.tile == tile);
        let below = self.managers_below(manager).map(|m| {
            let own = u64::from(self.managers[m].tile == tile);
            own + self.places_below(m, tile)
        });
        apps.map(|app| self.places_of(app)).chain(below).sum()
    }

    /// Pages that a manager's limits reserve for page tables beyond what is needed below it.
    fn spare_tables(&self, manager: usize) -> u64 {
        let tiles = self.tiles_below(manager).into_iter();
        let spare = tiles.map(|tile| {
            let limit = self.managers[manager].limit(tile);
            let limit = limit.and_then(|limit| limit.page_tables).unwrap_or(0);
            limit.saturating_sub(self.on_tile(manager, tile).tables)
        });
        spare.fold(0, u64::saturating_add)
    }

    /// Kernel memory that a manager must have for everything below it.
    pub fn kernel_memory_below(&self, manager: usize) -> u64 {
        let apps = self.apps_of(manager);
        let apps = apps.map(|app| {
            let gates = app.rgates.len() + app.sgates.len() + app.mgates.len();
            started(gates as u64).saturating_add(app.kernel_memory())
        });
        let below = self.managers_below(manager);
        let below = below.map(|m| {
            let modules = MODULE_KERNEL_MEMORY * self.modules_of(m).len() as u64;
            let tiles = TILE_KERNEL_MEMORY * self.tiles_below(m).len() as u64;
            let started = started(self.border_gates(m)).saturating_add(modules + tiles);
            started.saturating_add(self.kernel_memory_of(m))
        });
        apps.chain(below).fold(0, u64::saturating_add)
    }

    /// Kernel memory given to a manager: its limit, or what is needed below it and for itself.
    pub fn kernel_memory_of(&self, manager: usize) -> u64 {
        let needed = self.kernel_memory_below(manager);
        let needed = needed.saturating_add(APP_KERNEL_MEMORY);
        let limit = self.managers[manager].kernel_memory;
        limit.map_or(needed, |size| size.0)
    }

    /// All managers below one.
    fn all_managers_below(&self, manager: usize) -> Vec<usize> {
        let all = 0..self.managers.len();
        let below = all.filter(|other| *other != manager && self.is_within(*other, manager));
        below.collect()
    }

    /// Bytes of memory below a manager: applications, regions, managers with their limits. Each manager in between keeps pages for the
    /// page tables of a tile that it shares with those below it.
    pub fn memory_below(&self, manager: usize) -> u64 {
        let managers = self.all_managers_below(manager);
        let levels = 1 + managers.len() as u64;
        let activity = |memory: u64, tables: u64| {
            let tables = tables.saturating_mul(PAGE * levels);
            memory.saturating_add(tables).saturating_add(WINDOW_KEPT)
        };
        let mut sum = 0u64;
        for (index, app) in self.apps.iter().enumerate() {
            if self.is_within(self.manager_of(index), manager) {
                sum = sum.saturating_add(activity(app.memory.0, app.tables()));
                sum = sum.saturating_add(app.region_bytes());
            }
        }
        for below in managers {
            let memory = self.managers[below].memory.0;
            sum = sum.saturating_add(activity(memory, table_pages(memory)));
            let tables = self.spare_tables(below).saturating_mul(PAGE * levels);
            sum = sum.saturating_add(tables);
            sum = sum.saturating_add(self.spare_memory(below));
        }
        sum
    }

    /// Bytes that the limit of a manager allows beyond what is needed below it.
    pub fn spare_memory(&self, manager: usize) -> u64 {
        match self.managers[manager].user_memory {
            Some(limit) => limit.0.saturating_sub(self.memory_below(manager)),
            None => 0,
        }
    }

    /// The windows onto memory that a manager makes: tile, memory tile, bytes.
    pub fn windows_of(&self, manager: usize) -> Vec<(u16, u16, u64)> {
        let first = self.platform.memories.first().map_or(0, |memory| memory.id);
        let mut windows: Vec<(u16, u16, u64)> = Vec::new();
        let mut need = |tile: u16, memory: u16, bytes: u64| {
            let known = windows.iter_mut().find(|w| (w.0, w.1) == (tile, memory));
            match known {
                Some(window) => window.2 = window.2.saturating_add(bytes),
                None => windows.push((tile, memory, bytes.saturating_add(WINDOW_KEPT))),
            }
        };
        let with_tables =
            |memory: u64, tables: u64| memory.saturating_add(tables.saturating_mul(PAGE));
        for app in self.apps_of(manager) {
            need(
                app.tile,
                app.memory_tile,
                with_tables(app.memory.0, app.tables()),
            );
        }
        let below: Vec<usize> = self.managers_below(manager).collect();
        for index in &below {
            let memory = self.managers[*index].memory.0;
            need(
                self.managers[*index].tile,
                first,
                with_tables(memory, table_pages(memory)),
            );
        }
        let tiles: Vec<Vec<u16>> = below.iter().map(|m| self.tiles_below(*m)).collect();
        for (index, tile) in
            (below.iter().zip(&tiles)).flat_map(|(m, all)| all.iter().map(|t| (*m, *t)))
        {
            let sharers = tiles.iter().filter(|all| all.contains(&tile)).count();
            let own = self.apps_of(manager).find(|app| app.tile == tile);
            let is_own = own.is_some() || below.iter().any(|m| self.managers[*m].tile == tile);
            // The kernel starts the root manager's tile with pages only for that manager.
            let is_own = is_own || manager == 0 && self.managers[0].tile == tile;
            // A tile shared by the managers below, with each other or with the manager above, is started by the one above, with pages
            // for all page tables.
            if sharers > 1 || is_own {
                let limit = self.managers[index].limit(tile);
                let inner = self.on_tile(index, tile).tables;
                let tables = limit.and_then(|limit| limit.page_tables).unwrap_or(inner);
                let memory = own.map_or(first, |app| app.memory_tile);
                need(tile, memory, with_tables(0, tables));
            }
        }
        windows.extend(self.shared_windows_of(manager));
        windows
    }

    /// Windows onto memory that a manager and the managers below it make on a tile.
    pub fn windows_below(&self, manager: usize, tile: u16) -> usize {
        let below = self.all_managers_below(manager).into_iter();
        let all = below.chain([manager]).flat_map(|m| self.windows_of(m));
        all.filter(|window| window.0 == tile).count()
    }

    /// Memory tiles whose memory a manager has.
    fn memories_of(&self, manager: usize) -> BTreeSet<u16> {
        let first = self.platform.memories.first().map_or(0, |memory| memory.id);
        // Its own memory is in the first.
        let mut memories = BTreeSet::from([first]);
        let all = self.apps.iter().enumerate();
        for (_, app) in all.filter(|(app, _)| self.is_within(self.manager_of(*app), manager)) {
            memories.insert(app.memory_tile);
            let own = app.mgates.iter();
            let own = own.filter(|gate| gate.of.is_none() && gate.module.is_none());
            memories.extend(own.map(|gate| gate.memory_tile));
        }
        memories
    }

    /// The windows through which clients of pagers read shared pages.
    fn shared_windows_of(&self, manager: usize) -> BTreeSet<(u16, u16, u64)> {
        let clients = self.apps_of(manager);
        let with_pager = clients.filter_map(|app| Some((app.tile, &self.apps[app.pager?])));
        let shared = with_pager.filter_map(|(tile, pager)| {
            let gate = pager.mgates.iter().find(|gate| gate.name == SHARED)?;
            Some((tile, gate.memory_tile, gate.size.0))
        });
        shared.collect()
    }

    /// Maximum capabilities that a manager makes.
    pub fn selectors_of(&self, manager: usize) -> u64 {
        let apps = self.apps_of(manager).map(|app| {
            let regions = app
                .mgates
                .iter()
                .map(|gate| 1 + u64::from(gate.of.is_none()));
            // A receiving application can offer one service without a <service>.
            let services = app.services.len().max(app.rgates.len().min(1));
            5 + (services + app.rgates.len() + app.sgates.len()) as u64 + regions.sum::<u64>()
        });
        let below = self.managers_below(manager).map(|m| {
            let tiles = self.tiles_below(m).len() as u64;
            // Activity, purse, memory, description, its own tile; a quota for each tile; memory of each memory tile; gates and regions
            // across its border, the regions themselves, and services.
            let border = self.border_gates(m) + self.border_regions(m) + self.border_services(m);
            5 + tiles + self.platform.memories.len() as u64 + border
        });
        // The root manager opens modules for others; other managers receive theirs.
        let modules = match manager {
            0 => {
                let below = self.managers_below(0).flat_map(|m| self.modules_of(m));
                below.collect::<BTreeSet<&str>>().len()
            }
            manager => self.modules_of(manager).len(),
        };
        let windows = self.windows_of(manager).len();
        apps.chain(below).sum::<u64>() + (modules + windows) as u64
    }

    /// The modules needed by everything below a manager: programs, and data by the names of their elements.
    pub fn modules_of(&self, manager: usize) -> BTreeSet<&str> {
        let all = self.apps.iter().enumerate();
        let inner = all.filter(|(app, _)| self.is_within(self.manager_of(*app), manager));
        let mut modules = BTreeSet::new();
        for (_, app) in inner {
            modules.insert(app.program.as_str());
            let data = app.mgates.iter().filter_map(|g| g.module.or(g.fill));
            modules.extend(data.map(|module| self.modules[module].name.as_str()));
        }
        let managers = self.all_managers_below(manager).into_iter();
        modules.extend(managers.map(|m| self.managers[m].program.as_str()));
        modules
    }

    /// Memory gates below a manager whose regions are shared across its border.
    fn border_regions(&self, manager: usize) -> u64 {
        let inside = |app: usize| self.is_within(self.manager_of(app), manager);
        let mut count = 0;
        for (index, app) in self.apps.iter().enumerate().filter(|(app, _)| inside(*app)) {
            for (number, gate) in app.mgates.iter().enumerate() {
                let crosses = match gate.of {
                    Some((owner, _)) => !inside(owner),
                    None => {
                        let others = self.apps.iter().enumerate();
                        let others = others.filter(|(other, _)| !inside(*other));
                        let mut gates = others.flat_map(|(_, other)| &other.mgates);
                        gates.any(|other| other.of == Some((index, number)))
                    }
                };
                count += u64::from(crosses);
            }
        }
        count
    }

    /// Gates across the border of a manager: those that send from inside, those that receive from outside, each once, and shared memory.
    pub fn border_gates(&self, manager: usize) -> u64 {
        let inside = |app: usize| self.is_within(self.manager_of(app), manager);
        let mut senders = 0;
        let mut receivers: Vec<(usize, usize)> = Vec::new();
        for (from, app) in self.apps.iter().enumerate() {
            for gate in &app.sgates {
                match (inside(from), inside(gate.to)) {
                    (true, false) => senders += 1,
                    (false, true) => receivers.push((gate.to, gate.gate)),
                    _ => {}
                }
            }
        }
        receivers.sort_unstable();
        receivers.dedup();
        senders + receivers.len() as u64 + self.border_regions(manager)
    }

    /// Gates below a manager at which outside applications open sessions; the manager above takes the service of each.
    fn border_services(&self, manager: usize) -> u64 {
        let inside = |app: usize| self.is_within(self.manager_of(app), manager);
        let all = self.apps.iter().enumerate();
        let senders = all.filter(|(from, _)| !inside(*from));
        let gates = senders.flat_map(|(_, app)| &app.sgates);
        let sessions = gates.filter(|gate| gate.session.is_some() && inside(gate.to));
        let services: BTreeSet<(usize, usize)> =
            sessions.map(|gate| (gate.to, gate.gate)).collect();
        services.len() as u64
    }

    /// Pieces that a manager cuts out of its part of a memory tile: windows, regions, and what it gives to managers.
    pub fn pieces_of(&self, manager: usize, memory: u16) -> u64 {
        let windows = self.windows_of(manager).into_iter();
        let windows = windows.filter(|window| window.1 == memory).count();
        let regions = self.apps_of(manager).flat_map(|app| &app.mgates);
        let own = |gate: &&super::Mgate| gate.of.is_none() && gate.module.is_none();
        let regions = regions
            .filter(own)
            .filter(|gate| gate.memory_tile == memory);
        // Regions shared across the border of a manager are cut out of that manager's memory.
        let below = self.managers_below(manager);
        let below = below
            .filter(|m| self.memories_of(*m).contains(&memory))
            .count();
        // The kernel cuts the root manager's own window.
        let first = self.platform.memories.first().map(|memory| memory.id);
        let root = usize::from(manager == 0 && first == Some(memory));
        (windows + regions.count() + below + root) as u64
    }

    /// Maximum bytes of a manager's part of the description.
    pub fn description_bytes(&self, manager: usize) -> u64 {
        let depth = self.lineage(manager);
        let apps = self.apps_of(manager);
        let apps: u64 = apps.map(|app| self.app_bytes(app, depth)).sum();
        let domains = self.domains.iter().filter(|d| d.manager == manager);
        let domains: u64 = domains.map(|d| element(depth, 60, &[&d.name])).sum();
        let below = self.managers_below(manager).map(|m| {
            let limits = element(depth, 200, &[]) * (2 + self.tiles_below(m).len() as u64);
            let head = &self.managers[m];
            element(depth, 120, &[&head.name, &head.program]) + limits + self.description_bytes(m)
        });
        let below: u64 = below.sum();
        // The lines around each one: the head of the system, or those from above.
        let around: u64 = match manager {
            0 => {
                let about = self.about.as_deref().unwrap_or_default();
                let flows = self.flows.iter().map(|flow| {
                    let ends = [flow.from, flow.to].map(|app| self.apps[app].name.as_str());
                    element(0, 100, &[&flow.name, ends[0], ends[1]])
                });
                let head = element(0, 200, &[&self.name, &self.platform.name, about]);
                head + flows.sum::<u64>() + element(0, 100, &[]) * self.tilemux.len() as u64
            }
            _ => {
                let modules = self.modules_of(manager).into_iter();
                let modules = modules.map(|module| element(0, 60, &[module]));
                let gates = self.border_gates(manager) + self.border_regions(manager);
                512 + modules.sum::<u64>() + element(0, 240, &[]) * gates
            }
        };
        apps + domains + below + around
    }

    /// Maximum bytes of an application in a description.
    fn app_bytes(&self, app: &App, depth: u64) -> u64 {
        let pager = app.pager.map_or("", |pager| self.apps[pager].name.as_str());
        let head = element(depth, 220, &[&app.name, &app.program, pager]);
        // A manager on the chip reads a <limit> for each.
        let limits = [true, app.cpu.is_some(), app.task.is_some()];
        let limits = limits.into_iter().filter(|is_there| *is_there).count() as u64;
        let arguments = app
            .arguments
            .iter()
            .map(|a| element(depth, 32, &[&a.name, &a.value]));
        let services = app
            .services
            .iter()
            .map(|s| element(depth, 100, &[s.name.as_deref().unwrap_or_default()]));
        let receive = app
            .rgates
            .iter()
            .map(|gate| element(depth, 60, &[&gate.name]));
        let send = app.sgates.iter().map(|gate| {
            let to = &self.apps[gate.to];
            // The gate's name is as long as that of its service.
            element(
                depth,
                170,
                &[&gate.name, &to.name, &to.rgates[gate.gate].name],
            )
        });
        let memory = app.mgates.iter().map(|gate| {
            let module = gate
                .module
                .or(gate.fill)
                .map_or("", |m| self.modules[m].name.as_str());
            let owner = gate
                .of
                .map(|(app, gate)| (&self.apps[app].name, &self.apps[app].mgates[gate].name));
            let (owner, of) = owner.map_or(("", ""), |(app, gate)| (app.as_str(), gate.as_str()));
            element(depth, 130, &[&gate.name, module, owner, of])
        });
        let inner = arguments
            .chain(services)
            .chain(receive)
            .chain(send)
            .chain(memory);
        head + element(depth, 160, &[]) * limits + inner.sum::<u64>()
    }

    /// Managers above one.
    fn lineage(&self, manager: usize) -> u64 {
        let mut above = self.managers[manager].parent;
        let mut count = 0;
        while let Some(manager) = above {
            (above, count) = (self.managers[manager].parent, count + 1);
        }
        count
    }

    /// Memory that a manager needs to read its part of the description and to start everything below it.
    pub fn manager_memory(&self, manager: usize) -> u64 {
        let [byte, start] = MANAGER_HEAP;
        let starts = self.apps_of(manager).count() + self.managers_below(manager).count();
        let heap = byte * self.description_bytes(manager) + start * starts as u64;
        (MANAGER_IMAGE + heap).next_multiple_of(PAGE)
    }

    /// Whether applications of one manager may reach what is in another.
    pub fn may_reach(&self, scope: Scope, from: usize, owner: usize) -> bool {
        scope == Scope::System || self.is_within(from, owner)
    }
}

/// Kernel memory for starting something with this many gates.
fn started(gates: u64) -> u64 {
    ACTIVITY_KERNEL_MEMORY[0].saturating_add(ACTIVITY_KERNEL_MEMORY[1].saturating_mul(gates))
}

/// Bytes of an element's lines in the canonical description of a manager this deep below the root: its tags and its values.
fn element(depth: u64, tags: u64, values: &[&str]) -> u64 {
    let written = |c: char| {
        if "&<\"\n\t\r".contains(c) {
            6
        } else {
            c.len_utf8() as u64
        }
    };
    let values = values.iter().flat_map(|value| value.chars());
    // It begins and ends on separate lines, at most three levels below its manager.
    4 * (depth + 3) + tags + values.map(written).sum::<u64>()
}
