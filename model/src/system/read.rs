//! From checked elements to the typed system: resolves references and places everything without a fixed place.
//!
//! Why it exists and what it does not know: see the parent module. Rules on values are in `check`.

use super::bare;
use super::cable;
use super::check::{self, Places};
use super::oneshot;
use super::{
    App, Argument, Cpu, Domain, Flow, Limit, MANAGER_PROGRAM, Manager, Mgate, PAGE, Peer, Quotas,
    ROOT_MANAGER, Rgate, Scope, Service, System, TileLimit, TileMux, TilePolicy, UNIT_PROGRAM,
};
use crate::cpu::share_of;
use crate::error::{Diagnostic, Problem};
use crate::node::{self, Node, Quota};
use crate::platform::{Cache, Platform, PrefetcherKind, Tile};
use crate::programs::Programs;
use crate::source::Span;
use crate::text::suggestion;
use crate::tree::Element;
use crate::units::Size;

/// Reads and checks a `<system>` on a platform, which is named at a place. `None` if something is wrong; `errors` then says what. `open`:
/// see `LoadOptions::open`.
pub fn read(
    element: &Element,
    (platform, named): (Platform, &Span),
    (programs, open): (Option<&dyn Programs>, bool),
    peer: Option<Peer>,
    errors: &mut Vec<Diagnostic>,
) -> Option<System> {
    let node = node::read_root(element, "system", errors)?;
    let prefetches = |cache: &&Cache| {
        let prefetcher = cache.prefetcher.as_ref();
        prefetcher.is_some_and(|prefetcher| prefetcher.kind != PrefetcherKind::Off)
    };
    if node.text("paradigm") != "bare"
        && let Some(cache) = platform.caches.iter().find(prefetches)
    {
        let cause = format!(
            "cache `{}` of the platform `{}` fetches lines ahead, and no bound covers the delay that this causes to others",
            cache.name, platform.name
        );
        errors.push(Diagnostic::new(
            Problem::Inconsistent(cause),
            named,
            "switch it off with <prefetcher kind=\"off\">; programs run with `bulkhead boot` and in systems with paradigm=\"bare\"",
        ));
        return None;
    }
    if node.text("paradigm") == "one-shot" {
        return oneshot::read(element, &node, platform, (programs, open), errors);
    }
    if node.text("paradigm") == "bare" {
        return bare::read(element, &node, platform, programs, errors);
    }
    let before = errors.len();
    if platform.network.credits.is_some() {
        let cause = format!(
            "the routers of the platform `{}` have limited room for packets, and nothing bounds how long calls of the kernel wait for room",
            platform.name
        );
        errors.push(Diagnostic::new(
            Problem::Inconsistent(cause),
            named,
            "a tiled system needs a network with credits=\"unlimited\"; programs run with `bulkhead boot` and in systems with paradigm=\"bare\" or \"one-shot\"",
        ));
        return None;
    }
    oneshot::tiled(&node, errors);
    bare::tiled(&node, errors);
    let Some(kernel_tile) = platform.kernel_tile() else {
        errors.push(Diagnostic::new(
            Problem::NoKernelTile {
                platform: platform.name.clone(),
            },
            named,
            "the tiled OS needs a tiled platform with a privileged tile; write paradigm=\"bare\" for programs without a kernel",
        ));
        return None;
    };
    let mut reader = Reader {
        root: &node,
        platform: &platform,
        places: Places::default(),
        managers: Vec::new(),
        domains: Vec::new(),
        apps: Vec::new(),
        errors,
    };
    reader.collect();
    reader.duplicates();
    reader.qualify();
    let modules = reader.modules(programs);
    if let Some(programs) = programs {
        reader.programs(programs);
    }
    if reader.errors.len() > before {
        return None;
    }
    reader.gates();
    reader.pagers();
    reader.regions(&modules);
    reader.place_tiles();
    let flows = reader.flows();
    let tilemux = reader.tilemux();
    reader.priorities(&tilemux);
    let Reader {
        managers,
        domains,
        apps,
        places,
        ..
    } = reader;
    if errors.len() > before {
        return None;
    }
    let mut system = System {
        name: node.text("name"),
        about: node.maybe_text("about"),
        duration: node.time("duration"),
        kernel_tile,
        platform,
        managers,
        domains,
        apps,
        tilemux,
        modules,
        cables: cable::read(&node, &peer),
        peer,
        flows,
        one_shot: None,
        bare: None,
        variant: None,
        variant_about: None,
        misses_expected: false,
        variants: Vec::new(),
    };
    for manager in 0..system.managers.len() {
        if system.managers[manager].memory == Size(0) {
            let needed = system.manager_memory(manager);
            system.managers[manager].memory = Size(needed.max(MANAGER_MEMORY));
        }
    }
    check::place_memory(&mut system, &places, errors);
    check::check(&system, &places, errors);
    cable::check(&system, &node, &places, errors);
    (errors.len() == before).then_some(system)
}

/// Domains, applications and flows of a system without managers, and where they are in the file.
pub(super) struct Applications<'a> {
    pub domains: Vec<Domain>,
    pub apps: Vec<App>,
    pub flows: Vec<Flow>,
    pub places: Places<'a>,
}

/// Reads them, ignoring tiles and memories. `None` if something is wrong; `errors` then says what.
pub(super) fn applications<'a>(
    node: &'a Node,
    platform: &Platform,
    programs: Option<&dyn Programs>,
    errors: &mut Vec<Diagnostic>,
) -> Option<Applications<'a>> {
    let before = errors.len();
    let mut reader = Reader {
        root: node,
        platform,
        places: Places::default(),
        managers: Vec::new(),
        domains: Vec::new(),
        apps: Vec::new(),
        errors,
    };
    reader.collect();
    reader.duplicates();
    reader.qualify();
    if let Some(programs) = programs {
        reader.programs(programs);
    }
    let flows = reader.flows();
    let Reader {
        domains,
        apps,
        places,
        errors,
        ..
    } = reader;
    (errors.len() == before).then_some(Applications {
        domains,
        apps,
        flows,
        places,
    })
}

pub(super) struct Reader<'a, 'p> {
    pub(super) root: &'a Node,
    platform: &'p Platform,
    pub(super) places: Places<'a>,
    pub(super) managers: Vec<Manager>,
    pub(super) domains: Vec<Domain>,
    pub(super) apps: Vec<App>,
    pub(super) errors: &'p mut Vec<Diagnostic>,
}

/// Minimum memory of a manager without a specified size.
const MANAGER_MEMORY: u64 = 2 << 20;

/// Memory of a manager; not known yet if the description does not specify it.
fn memory(node: &Node, attribute: &str) -> Size {
    node.maybe_size(attribute).map_or(Size(0), pages)
}

/// Minimum and maximum time slice in picoseconds: a slice must be worth many switches, and its nanoseconds must fit in four bytes.
const SLICE_MIN: u64 = 10_000_000;
const SLICE_MAX: u64 = 1_000_000_000_000;

/// Means "not yet placed". No tile has this number, because the tables end at 4095.
const UNPLACED: u16 = u16::MAX;

impl<'a> Reader<'a, '_> {
    fn collect(&mut self) {
        self.managers.push(Manager {
            name: ROOT_MANAGER.into(),
            parent: None,
            tile: self
                .root
                .maybe_integer("manager-tile")
                .map_or(UNPLACED, |id| id as u16),
            program: MANAGER_PROGRAM.into(),
            memory: memory(self.root, "manager-memory"),
            local: ROOT_MANAGER.into(),
            limits: Vec::new(),
            kernel_memory: None,
            user_memory: None,
            cpu: None,
        });
        self.places.managers.push(self.root);
        self.subsystem(self.root, 0);
    }

    fn subsystem(&mut self, node: &'a Node, manager: usize) {
        for child in &node.children {
            match child.rule.name {
                "manager" => {
                    self.managers.push(Manager {
                        name: child.text("name"),
                        parent: Some(manager),
                        tile: child.maybe_integer("tile").map_or(UNPLACED, |id| id as u16),
                        program: child.text("program"),
                        memory: memory(child, "memory"),
                        local: child.text("name"),
                        limits: child.all("limit").map(tile_limit).collect(),
                        kernel_memory: total(child, "kernel-memory"),
                        user_memory: total(child, "memory"),
                        cpu: child.child("cpu").map(cpu),
                    });
                    self.places.managers.push(child);
                    self.subsystem(child, self.managers.len() - 1);
                }
                "domain" => {
                    self.domains.push(Domain {
                        name: child.text("name"),
                        local: child.text("name"),
                        criticality: child.text("criticality").chars().next().unwrap_or('E'),
                        manager,
                    });
                    self.places.domains.push(child);
                    for app in child.all("app") {
                        self.app(app, self.domains.len() - 1);
                    }
                }
                _ => {}
            }
        }
    }

    fn app(&mut self, node: &'a Node, domain: usize) {
        let tile = node.maybe_integer("tile").map_or(UNPLACED, |id| id as u16);
        let limit = node.child("limit");
        let quotas = limit.map(|limit| Quotas {
            endpoints: limit.maybe_integer("endpoints"),
            page_tables: limit.maybe_integer("page-tables"),
            activities: limit.maybe_integer("activities"),
            kernel_memory: limit.maybe_size("kernel-memory"),
        });
        let limit = limit.and_then(traffic);
        let services = node.all("service").map(|service| Service {
            name: service.maybe_text("name"),
            sessions: service.integer("sessions") as u32,
            scope: scope(service),
            restarts: match service.text("restart").as_str() {
                "on-failure" => service.integer("restarts") as u32,
                _ => 0,
            },
        });
        let rgates = node.all("rgate").map(|gate| Rgate {
            name: gate.text("name"),
            slots: gate.integer("slots") as u32,
            slot_size: u32::try_from(gate.size("slot-size").0).unwrap_or(u32::MAX),
            global: gate.maybe_text("global"),
            scope: scope(gate),
        });
        let mgates = node.all("mgate").map(|gate| {
            let rights = gate.text("rights");
            Mgate {
                name: gate.text("name"),
                size: pages(gate.maybe_size("size").unwrap_or(Size(0))),
                module: None,
                fill: None,
                of: None,
                scope: scope(gate),
                read: rights.contains('r'),
                write: rights.contains('w'),
                memory_tile: gate
                    .maybe_integer("memory-tile")
                    .map_or(UNPLACED, |id| id as u16),
            }
        });
        self.apps.push(App {
            name: node.text("name"),
            local: node.text("name"),
            domain,
            tile,
            program: node.text("program"),
            memory: pages(node.size("memory")),
            stack: node.maybe_size("stack").map(pages),
            memory_tile: node
                .maybe_integer("memory-tile")
                .map_or(UNPLACED, |id| id as u16),
            background: node.boolean("background"),
            device: node.maybe_text("device").is_some(),
            lazy_heap: node.text("heap") == "lazy",
            pager: None,
            arguments: node
                .all("argument")
                .map(|argument| Argument {
                    name: argument.text("name"),
                    value: argument.text("value"),
                })
                .collect(),
            limit,
            cpu: None,
            quotas: quotas.unwrap_or_default(),
            task: None,
            services: services.collect(),
            rgates: rgates.collect(),
            sgates: Vec::new(),
            mgates: mgates.collect(),
        });
        self.places.apps.push(node);
    }

    fn duplicates(&mut self) {
        // Managers are activities like applications, and reports name activities; `root` is taken.
        for manager in 0..self.managers.len() {
            let below = self.places.managers.iter().enumerate().skip(1);
            let below = below.filter(|(m, _)| self.managers[*m].parent == Some(manager));
            let below = below.map(|(_, node)| ("manager", *node));
            let apps = self.places.apps.iter().zip(&self.apps);
            let apps = apps.filter(|(_, app)| self.domains[app.domain].manager == manager);
            unique(
                below.chain(apps.map(|(node, _)| ("app", *node))),
                self.errors,
            );
            let domains = self.places.domains.iter().zip(&self.domains);
            let domains = domains.filter(|(_, domain)| domain.manager == manager);
            unique(domains.map(|(node, _)| ("domain", *node)), self.errors);
        }
        let managers = self.places.managers[1..].iter();
        unique(managers.clone().map(|node| ("manager", *node)), self.errors);
        for node in managers {
            if node.text("name") == ROOT_MANAGER {
                self.errors.push(Diagnostic::new(
                    Problem::Duplicate {
                        kind: "manager",
                        name: ROOT_MANAGER.into(),
                    },
                    node.place("name"),
                    "`root` is the name of the first manager of every system; choose another one",
                ));
            }
        }
        self.reserved();
        for kind in ["flow", "variant", "module"] {
            let all = self.root.all(kind).map(|node| (kind, node));
            unique(all, self.errors);
        }
        for app in &self.places.apps {
            unique(
                app.all("argument").map(|node| ("argument", node)),
                self.errors,
            );
            let is_gate =
                |child: &&Node| matches!(child.rule.name, "rgate" | "sgate" | "session" | "mgate");
            let gates = app.children.iter().filter(is_gate);
            unique(gates.map(|node| ("gate", node)), self.errors);
        }
    }

    fn reserved(&mut self) {
        let managers = self.places.managers[1..].iter();
        for node in self.places.apps.iter().chain(managers) {
            let name = node.text("name");
            if RESERVED.contains(&name.as_str()) {
                self.errors.push(Diagnostic::new(
                    Problem::Reserved { name },
                    node.place("name"),
                    "results use this name for something else; choose another one",
                ));
            }
        }
    }

    fn programs(&mut self, programs: &dyn Programs) {
        // The managers of the tiled OS load less than a system without a kernel, whose programs lie anywhere.
        let is_bare = self.root.text("paradigm") == "bare";
        let refusal = |name: &str| match is_bare {
            true => programs.bare_refusal(name),
            false => programs.application_refusal(name),
        };
        let managers = self.places.managers[1..].iter();
        for node in self.places.apps.iter().chain(managers) {
            let name = node.text("program");
            let (problem, help) = if !programs.contains(&name) {
                let known = programs.names();
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let help = suggestion(&name, &known, "program");
                let kind = "program";
                (Problem::Unknown { kind, name }, help)
            } else if let Some((what, help)) = refusal(&name) {
                (Problem::Inconsistent(what), help)
            } else {
                continue;
            };
            self.errors
                .push(Diagnostic::new(problem, node.place("program"), help));
        }
    }

    /// Places managers and applications: first those with a fixed tile, then the others in file order on the first free tile. An
    /// application without a free tile goes to the shared tile with the fewest occupants.
    fn place_tiles(&mut self) {
        let mut taken: Vec<(u16, String)> = Vec::new();
        // Tiles named by any line of the file are not free, wherever that line is.
        let managers = self.managers.iter().map(|manager| manager.tile);
        let named: Vec<u16> = managers
            .chain(self.apps.iter().map(|app| app.tile))
            .collect();
        let count = self.managers.len();
        for pass in [true, false] {
            for index in 0..count + self.apps.len() {
                let (name, tile, is_unit, node, attribute) = if index < count {
                    let manager = &self.managers[index];
                    let attribute = if index == 0 { "manager-tile" } else { "tile" };
                    (
                        &manager.name,
                        manager.tile,
                        false,
                        self.places.managers[index],
                        attribute,
                    )
                } else {
                    let app = &self.apps[index - count];
                    let node = self.places.apps[index - count];
                    (&app.name, app.tile, app.is_unit(), node, "tile")
                };
                let name = name.clone();
                if (tile != UNPLACED) != pass {
                    continue;
                }
                let tile = if pass {
                    if let Err((problem, help)) =
                        self.usable(tile, &name, is_unit, (&taken, &named))
                    {
                        self.errors
                            .push(Diagnostic::new(problem, node.place(attribute), help));
                        continue;
                    }
                    tile
                } else if let Some(free) = self.free_tiles(is_unit, &taken).first() {
                    *free
                } else if let Some(shared) = self
                    .emptiest_shared(is_unit, &taken)
                    .filter(|_| index >= count)
                {
                    shared
                } else {
                    self.errors.push(Diagnostic::new(
                        Problem::NoFreeTile { name },
                        &node.span,
                        "use a platform with more tiles, leave something out, or write a <tilemux tile=\"...\"/> for a tile to share",
                    ));
                    continue;
                };
                taken.push((tile, name));
                if index < count {
                    self.managers[index].tile = tile;
                } else {
                    self.apps[index - count].tile = tile;
                }
            }
        }
        for index in 0..self.apps.len() {
            let node = self.places.apps[index];
            let clock = self
                .platform
                .tile(self.apps[index].tile)
                .map(|tile| &tile.pipeline.clock);
            let Some(frequency) = clock.map(|clock| clock.frequency) else {
                continue;
            };
            let app = &self.apps[index];
            let criticality = self.domains[app.domain].criticality;
            let task = node
                .child("task")
                .map(|task| crate::tasks::task(task, Some(frequency), &app.name, criticality));
            self.apps[index].task = task;
            self.apps[index].cpu = node.child("cpu").map(cpu);
        }
    }

    /// Tiles for managers and applications: those with a hart, or those with a streaming unit.
    fn tiles_for(&self, is_unit: bool) -> impl Iterator<Item = &Tile> {
        let tiles = self.platform.tiles.iter();
        tiles.filter(move |tile| !tile.privileged && tile.accelerator.is_some() == is_unit)
    }

    fn free_tiles(&self, is_unit: bool, taken: &[(u16, String)]) -> Vec<u16> {
        let tiles = self.tiles_for(is_unit).map(|tile| tile.id);
        tiles
            .filter(|id| taken.iter().all(|place| place.0 != *id))
            .collect()
    }

    /// The shareable tile with the fewest occupants.
    fn emptiest_shared(&self, is_unit: bool, taken: &[(u16, String)]) -> Option<u16> {
        self.tiles_for(is_unit)
            .filter(|tile| tile.shared || self.may_share(tile.id))
            .map(|tile| tile.id)
            .min_by_key(|id| (taken.iter().filter(|place| place.0 == *id).count(), *id))
    }

    fn usable(
        &self,
        id: u16,
        name: &str,
        is_unit: bool,
        (taken, named): (&[(u16, String)], &[u16]),
    ) -> Result<(), (Problem, String)> {
        let tile = u64::from(id);
        let free = self.free_tiles(is_unit, taken).into_iter();
        let free = free.filter(|tile| !named.contains(tile));
        let free: Vec<String> = free.map(|tile| tile.to_string()).collect();
        let help = match &free[..] {
            [] => "no tile is free".to_owned(),
            [one] => format!("tile {one} is free"),
            _ => format!("free are the tiles {}", free.join(", ")),
        };
        if self.platform.memory(id).is_some() {
            return Err((
                Problem::TileNotUsable {
                    tile,
                    what: "a memory tile",
                },
                help,
            ));
        }
        let Some(found) = self.platform.tile(id) else {
            let help = format!("platform `{}`: {help}", self.platform.name);
            return Err((
                Problem::Unknown {
                    kind: "tile",
                    name: id.to_string(),
                },
                help,
            ));
        };
        if Some(id) == self.platform.kernel_tile() {
            return Err((
                Problem::TileNotUsable {
                    tile,
                    what: "the kernel's",
                },
                help,
            ));
        }
        if found.accelerator.is_some() != is_unit {
            let help = match is_unit {
                true => format!("{help}; `{UNIT_PROGRAM}` is for streaming units"),
                false => {
                    format!("{help}; only program=\"{UNIT_PROGRAM}\" uses a streaming unit")
                }
            };
            let name = name.into();
            return Err((
                Problem::Unit {
                    tile,
                    is_unit,
                    name,
                },
                help,
            ));
        }
        match taken.iter().find(|place| place.0 == id) {
            Some((_, first)) if !found.shared && !self.may_share(id) => Err((
                Problem::TileNotShared {
                    tile,
                    first: first.clone(),
                    second: name.into(),
                },
                format!("{help}; or write <tilemux tile=\"{id}\"/> into the system to share it"),
            )),
            _ => Ok(()),
        }
    }

    /// Whether the system says how the tile is shared.
    fn may_share(&self, id: u16) -> bool {
        let mut muxes = self.root.all("tilemux");
        muxes.any(|mux| mux.maybe_integer("tile") == Some(u64::from(id)))
    }

    fn tilemux(&mut self) -> Vec<TileMux> {
        let mut all: Vec<TileMux> = Vec::new();
        for node in self.root.all("tilemux") {
            let tile = node.integer("tile") as u16;
            let slice = node.time("slice");
            let mut error = |problem, place, help: &str| {
                let error = Diagnostic::new(problem, node.place(place), help);
                self.errors.push(error);
            };
            if self.platform.tile(tile).is_none_or(|t| t.privileged) {
                let name = tile.to_string();
                let help = "name a tile that runs applications";
                error(Problem::Unknown { kind: "tile", name }, "tile", help);
            } else if all.iter().any(|mux| mux.tile == tile) {
                let what = format!("tile {tile} has two <tilemux>");
                error(Problem::Inconsistent(what), "tile", "leave one of them out");
            } else if !(SLICE_MIN..=SLICE_MAX).contains(&slice.0) {
                let what = format!("a time slice of {slice} is not between 10us and 1s");
                error(Problem::Inconsistent(what), "slice", "1ms is usual");
            }
            self.known(node);
            for app in 0..self.apps.len() {
                if self.apps[app].tile == tile && !self.allows(node, app) {
                    let what = format!(
                        "tile {tile} is for {}, not for `{}`",
                        node.text("for"),
                        self.apps[app].name
                    );
                    let help = "place it elsewhere, or add its name, its domain's or its manager's to `for` of the <tilemux>";
                    let place = self.places.apps[app].place("tile");
                    let error = Diagnostic::new(Problem::Inconsistent(what), place, help);
                    self.errors.push(error);
                }
            }
            all.push(TileMux {
                tile,
                policy: match node.text("policy").as_str() {
                    "realtime" => TilePolicy::Realtime,
                    _ => TilePolicy::Throughput,
                },
                slice,
            });
        }
        all
    }

    /// Priorities on a tile are either all given or derived from deadlines.
    fn priorities(&mut self, muxes: &[TileMux]) {
        for index in 0..self.apps.len() {
            let realtime = muxes
                .iter()
                .any(|mux| mux.tile == self.apps[index].tile && mux.policy == TilePolicy::Realtime);
            let Some(element) = self.places.apps[index].child("cpu") else {
                continue;
            };
            let given = element.maybe_integer("priority");
            if !realtime {
                if given.is_some() {
                    let what = "a priority has no effect on a tile with time slices".to_owned();
                    let help = format!(
                        "write <tilemux tile=\"{}\" policy=\"realtime\"/> into the system, or leave it out",
                        self.apps[index].tile
                    );
                    let place = element.place("priority");
                    let error = Diagnostic::new(Problem::Inconsistent(what), place, help);
                    self.errors.push(error);
                }
                continue;
            }
            let tile = self.apps[index].tile;
            let same: Vec<usize> = (0..self.apps.len())
                .filter(|other| self.apps[*other].tile == tile && self.apps[*other].cpu.is_some())
                .collect();
            let has = |other: usize| {
                let cpu = self.places.apps[other].child("cpu");
                cpu.is_some_and(|cpu| cpu.maybe_integer("priority").is_some())
            };
            if given.is_some() {
                continue;
            }
            if same.iter().any(|other| has(*other)) {
                let what = format!(
                    "other <cpu> elements on tile {tile} have a priority, but this one has none"
                );
                let help = "give all of them a priority, or none: then the shorter the deadline, the more urgent";
                let place = element.place("quota");
                let error = Diagnostic::new(Problem::Inconsistent(what), place, help);
                self.errors.push(error);
                continue;
            }
            let urgency = |app: usize| {
                let app = &self.apps[app];
                let period = app.cpu.map_or(u64::MAX, |cpu| cpu.period.0);
                app.task.as_ref().map_or(period, |task| task.deadline.0)
            };
            let own = (urgency(index), index);
            let behind = same
                .iter()
                .filter(|other| (urgency(**other), **other) > own);
            let priority = 1 + behind.count() as u8;
            if let Some(cpu) = &mut self.apps[index].cpu {
                cpu.priority = priority;
            }
        }
    }
}

/// The limit of computing time in an element.
fn cpu(node: &Node) -> Cpu {
    let period = node.time("period");
    let budget = match node.quota("quota") {
        Quota::Time(time) => time,
        Quota::Share(share) => share_of(period, share.0),
    };
    Cpu {
        budget,
        period,
        priority: node.maybe_integer("priority").unwrap_or(0) as u8,
    }
}

fn traffic(limit: &Node) -> Option<Limit> {
    limit.rate("noc").map(|noc| Limit {
        noc,
        burst: limit.size("burst"),
    })
}

fn scope(node: &Node) -> Scope {
    match node.text("scope").as_str() {
        "manager" => Scope::Manager,
        _ => Scope::System,
    }
}

fn tile_limit(limit: &Node) -> TileLimit {
    TileLimit {
        tile: limit.maybe_integer("tile").map(|tile| tile as u16),
        noc: traffic(limit),
        endpoints: limit.maybe_integer("endpoints"),
        page_tables: limit.maybe_integer("page-tables"),
        activities: limit.maybe_integer("activities"),
    }
}

/// A limit over all tiles of a manager.
fn total(manager: &Node, attribute: &str) -> Option<Size> {
    manager
        .all("limit")
        .find_map(|limit| limit.maybe_size(attribute))
}

/// Names that results use for things other than applications: a row of a table must not be mistaken for another.
const RESERVED: [&str; 4] = ["kernel", "TileMux", "refresh", "nobody"];

/// Rounds up to pages. The tables keep sizes far below 2^64.
fn pages(size: Size) -> Size {
    Size(size.0.next_multiple_of(PAGE))
}

fn unique<'n>(nodes: impl Iterator<Item = (&'static str, &'n Node)>, errors: &mut Vec<Diagnostic>) {
    let mut seen: Vec<String> = Vec::new();
    for (kind, node) in nodes {
        let name = node.text("name");
        if seen.contains(&name) {
            errors.push(Diagnostic::new(
                Problem::Duplicate { kind, name },
                node.place("name"),
                "give one of them another name",
            ));
        } else {
            seen.push(name);
        }
    }
}
