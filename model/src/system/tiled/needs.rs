//! What a system needs of the chip: the sums that the rules compare with what there is.
//!
//! Why it exists: kernel, TileMux and managers take a part of everything, and how much is written here once; tests compare it
//! with what the chip really uses. What it deliberately does not know: what is too much.

use bulkhead_abi::{dtu, environment, memory_map, syscall, tilemux};
use std::collections::BTreeSet;

pub use bulkhead_abi::tilemux::table_pages;

use crate::system::{App, Limit, Manager, PAGE, Scope, System};

/// Endpoints of a processing tile that the tiled OS keeps for itself: four protection windows, and TileMux's channels.
pub const TILE_ENDPOINTS: u64 = tilemux::FIRST_ENDPOINT as u64;
/// Endpoints of every application beside its gates: two for system calls, one for answers, and [`SPARE_ENDPOINTS`].
pub const APP_ENDPOINTS: u64 = 8;
/// Endpoints that an application without a limit may make usable itself while it runs: the questions to a service, granted
/// memory.
pub const SPARE_ENDPOINTS: u64 = 5;
/// Activities that the kernel knows at most: applications and managers.
pub const ACTIVITIES: usize = 31;
/// Activities that TileMux knows at most.
pub const TILE_ACTIVITIES: usize = 16;
/// Windows through which a tile sees memory.
pub const WINDOWS: usize = memory_map::PMP_WINDOWS as usize;
/// Bytes of a window at most.
pub const WINDOW: u64 = memory_map::PMP_WINDOW_SIZE;
/// Bytes of each window that are kept: TileMux lies in the first one.
pub const WINDOW_KEPT: u64 = tilemux::TILEMUX_MEMORY;
/// Selectors of a manager that are free for what it makes.
pub const SELECTORS: u64 = (syscall::SEL_SHARED - syscall::SEL_FREE) as u64;
/// Gates that may lead across the border of a manager: those that send from inside, and those that receive from outside.
pub const BORDER: u64 = syscall::SHARED_MAX as u64;
/// Services of an application at most.
pub const SERVICES: usize = syscall::SERVICES_MAX as usize;
/// Memory gates of an application at most.
pub const MEMORY_GATES: usize = 32;
/// Bytes of the page that names an application's gates and arguments to it: all of it, its head, a gate, an argument.
pub const ENVIRONMENT: [u64; 4] = [
    environment::ENVIRONMENT_SIZE as u64,
    size_of::<environment::Environment>() as u64,
    size_of::<environment::GateEntry>() as u64,
    size_of::<environment::ArgumentEntry>() as u64,
];
/// The memory gate of a pager for what its clients share.
const SHARED: &str = "shared";
/// Bytes of addresses in which a pager can place files, rounded up.
pub const PAGER_AREA: u64 = 4 << 20;
/// Bytes of a chunk: a token bucket that holds less lets nothing through.
pub const CHUNK: u64 = dtu::CHUNK_MAX as u64;
/// Kernel memory of an application without a limit.
pub const APP_KERNEL_MEMORY: u64 = 4 << 10;
/// Kernel memory that a manager uses itself for each activity that it starts, at most: without gates, and for each gate.
pub const ACTIVITY_KERNEL_MEMORY: [u64; 2] = [7 << 10, 512];
/// Kernel memory that a manager uses for each module of a manager below it.
pub const MODULE_KERNEL_MEMORY: u64 = 256;
/// Kernel memory that there is, at least.
pub const KERNEL_MEMORY_TOTAL: u64 = 320 << 10;

impl App {
    /// Endpoints for its gates.
    pub fn gate_endpoints(&self) -> u64 {
        // A receive gate keeps one right to reply for each slot in an endpoint.
        let receive = self.rgates.iter().map(|gate| 1 + u64::from(gate.slots));
        receive.sum::<u64>() + (self.sgates.len() + self.mgates.len()) as u64
    }

    /// Endpoints that it cannot do without.
    pub fn least_endpoints(&self) -> u64 {
        2 + u64::from(!self.sgates.is_empty()) + self.gate_endpoints()
    }

    /// Endpoints that it may use.
    pub fn endpoints(&self) -> u64 {
        // Each further service has a gate of its own for the kernel's questions.
        let more = SPARE_ENDPOINTS * (self.services.len() as u64).saturating_sub(1);
        let usual = APP_ENDPOINTS + self.gate_endpoints() + u64::from(self.pager.is_some()) + more;
        self.quotas.endpoints.unwrap_or(usual)
    }

    /// Pages for page tables that it cannot do without.
    pub fn least_tables(&self) -> u64 {
        let own = table_pages(self.memory.0);
        match self.pager {
            None => own,
            // Whatever its pager may map needs tables of its own.
            Some(_) => own + table_pages(self.memory.0 + 2 * PAGER_AREA),
        }
    }

    /// Pages for page tables that it may use: a limit sets so many aside, for activities that it makes itself.
    pub fn tables(&self) -> u64 {
        let least = self.least_tables();
        self.quotas.page_tables.unwrap_or(0).max(least)
    }

    /// Kernel memory that it may use.
    pub fn kernel_memory(&self) -> u64 {
        let given = self.quotas.kernel_memory.map(|size| size.0);
        given.unwrap_or(APP_KERNEL_MEMORY)
    }

    /// Bytes of memory for its regions.
    pub fn region_bytes(&self) -> u64 {
        let own = self.mgates.iter();
        let own = own.filter(|gate| gate.of.is_none() && gate.module.is_none());
        own.fold(0, |sum, gate| sum.saturating_add(gate.size.0))
    }
}

impl Manager {
    /// The bounds of its subtree on a tile.
    pub fn limit(&self, tile: u16) -> Option<&super::TileLimit> {
        let own = self.limits.iter().find(|limit| limit.tile == Some(tile));
        own.or_else(|| self.limits.iter().find(|limit| limit.tile.is_none()))
    }

    /// The bound of its traffic on a tile.
    pub fn traffic(&self, tile: u16) -> Option<Limit> {
        self.limit(tile)?.noc
    }
}

/// What a subtree may use of a tile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnTile {
    /// Endpoints.
    pub endpoints: u64,
    /// Pages for page tables.
    pub tables: u64,
    /// Bytes a second of all that have a limit.
    pub rate: u128,
    /// Bytes at once of all that have a limit.
    pub burst: u128,
    /// Activities without a limit of their traffic.
    pub without_limit: u64,
    /// Activities without a bound of their computing time.
    pub without_cpu: u64,
    /// Everything that runs there.
    pub activities: u64,
}

impl System {
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

    /// What everything below a manager may use of a tile: a limit of a manager below counts instead of what is in it.
    pub fn on_tile(&self, manager: usize, tile: u16) -> OnTile {
        let mut sum = OnTile::default();
        for app in self.apps_of(manager).filter(|app| app.tile == tile) {
            sum.endpoints += app.endpoints();
            sum.tables += app.tables();
            sum.activities += 1;
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

    /// Pages that the limits of a manager set aside for page tables beyond what is needed below it.
    fn spare_tables(&self, manager: usize) -> u64 {
        let tiles = self.tiles_below(manager).into_iter();
        let spare = tiles.map(|tile| {
            let limit = self.managers[manager].limit(tile);
            let limit = limit.and_then(|limit| limit.page_tables).unwrap_or(0);
            limit.saturating_sub(self.on_tile(manager, tile).tables)
        });
        spare.fold(0, u64::saturating_add)
    }

    /// Kernel memory that a manager must have for what is below it.
    pub fn kernel_memory_below(&self, manager: usize) -> u64 {
        let apps = self.apps_of(manager);
        let apps = apps.map(|app| {
            let gates = app.rgates.len() + app.sgates.len() + app.mgates.len();
            started(gates as u64).saturating_add(app.kernel_memory())
        });
        let below = self.managers_below(manager);
        let below = below.map(|m| {
            let modules = MODULE_KERNEL_MEMORY * self.modules_of(m).len() as u64;
            let started = started(self.border_gates(m)).saturating_add(modules);
            started.saturating_add(self.kernel_memory_of(m))
        });
        apps.chain(below).fold(0, u64::saturating_add)
    }

    /// Kernel memory that a manager is given: its limit, or what is needed below it and for itself.
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

    /// Bytes of memory below a manager: applications, regions, managers with their limits. Each manager on the way keeps pages for
    /// the page tables of a tile that it shares with those below it.
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
            // What managers below share, with each other or with the one above, is lit by the one above, with pages for all page tables.
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

    /// Windows that a manager may show on a tile whether it needs them or not: one for each memory tile whose memory it has.
    pub fn windows_possible(&self, manager: usize, tile: u16) -> usize {
        let here = self.managers[manager].tile == tile || self.tiles_below(manager).contains(&tile);
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
        let shared = self.shared_windows_of(manager).into_iter();
        let shared = shared.filter(|window| window.0 == tile).count();
        if here { memories.len() + shared } else { 0 }
    }

    /// The windows through which clients of pagers read what they share.
    fn shared_windows_of(&self, manager: usize) -> BTreeSet<(u16, u16, u64)> {
        let clients = self.apps_of(manager);
        let with_pager = clients.filter_map(|app| Some((app.tile, &self.apps[app.pager?])));
        let shared = with_pager.filter_map(|(tile, pager)| {
            let gate = pager.mgates.iter().find(|gate| gate.name == SHARED)?;
            Some((tile, gate.memory_tile, gate.size.0))
        });
        shared.collect()
    }

    /// Capabilities that a manager makes, at most.
    pub fn selectors_of(&self, manager: usize) -> u64 {
        let apps = self.apps_of(manager).map(|app| {
            let regions = app
                .mgates
                .iter()
                .map(|gate| 1 + u64::from(gate.of.is_none()));
            5 + (app.rgates.len() + app.sgates.len()) as u64 + regions.sum::<u64>()
        });
        let below = self.managers_below(manager).map(|m| {
            let tiles = self.tiles_below(m).len() as u64;
            // Activity, purse, memory, description, its own tile; a quota for each tile; memory of each memory tile; gates and regions
            // across its border, and the regions themselves.
            let border = self.border_gates(m) + self.border_regions(m);
            5 + tiles + self.platform.memories.len() as u64 + border
        });
        // The root manager opens modules for others, others are given theirs.
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

    /// The modules that everything below a manager needs: programs, and data by the names of their elements.
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

    /// Gates that lead across the border of a manager: what sends from inside, what receives from outside, each once, and memory that is
    /// shared.
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

    /// Whether applications of a manager may reach what is in another one.
    pub fn may_reach(&self, scope: Scope, from: usize, owner: usize) -> bool {
        scope == Scope::System || self.is_within(from, owner)
    }
}

/// Kernel memory for starting something with so many gates.
fn started(gates: u64) -> u64 {
    ACTIVITY_KERNEL_MEMORY[0].saturating_add(ACTIVITY_KERNEL_MEMORY[1].saturating_mul(gates))
}
