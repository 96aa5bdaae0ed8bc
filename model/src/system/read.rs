//! From checked elements to the typed system: resolves references and places what has no fixed place.
//!
//! Why it exists and what it does not know: see the parent module. Rules on values stand in `check`.

use super::check::{self, Places};
use super::{
    App, Argument, Cpu, Domain, Flow, Limit, MANAGER_PROGRAM, Manager, Mgate, PAGE, ROOT_MANAGER,
    Rgate, Sgate, System, TileMux, TilePolicy,
};
use crate::error::{Diagnostic, Problem};
use crate::load::Programs;
use crate::node::{self, Node, Quota};
use crate::platform::Platform;
use crate::text::suggestion;
use crate::tree::Element;
use crate::units::{Size, Time};

/// Reads and checks a `<system>`. `None` if something is wrong; then `errors` says what.
pub fn read(
    element: &Element,
    platform: Platform,
    programs: Option<&dyn Programs>,
    errors: &mut Vec<Diagnostic>,
) -> Option<System> {
    let node = node::read_root(element, "system", errors)?;
    let before = errors.len();
    let Some(kernel_tile) = platform.kernel_tile() else {
        errors.push(Diagnostic::new(
            Problem::NoKernelTile,
            node.place("platform"),
            "a system needs a tiled platform with a privileged tile; single programs run with `bulkhead boot`",
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
    if let Some(programs) = programs {
        reader.programs(programs);
    }
    if reader.errors.len() > before {
        return None;
    }
    reader.gates();
    reader.regions();
    reader.place_tiles();
    let flows = reader.flows();
    let tilemux = reader.tilemux();
    reader.priorities(&tilemux);
    let Reader {
        managers,
        domains,
        mut apps,
        places,
        ..
    } = reader;
    if errors.len() > before {
        return None;
    }
    check::place_memory(&platform, &managers, &mut apps, &places, errors);
    let system = System {
        name: node.text("name"),
        about: node.maybe_text("about"),
        duration: node.time("duration"),
        kernel_tile,
        platform,
        managers,
        domains,
        apps,
        tilemux,
        flows,
        variant: None,
        variant_about: None,
        variants: Vec::new(),
    };
    check::check(&system, &places, errors);
    (errors.len() == before).then_some(system)
}

struct Reader<'a, 'p> {
    root: &'a Node,
    platform: &'p Platform,
    places: Places<'a>,
    managers: Vec<Manager>,
    domains: Vec<Domain>,
    apps: Vec<App>,
    errors: &'p mut Vec<Diagnostic>,
}

/// Least and greatest time slice in picoseconds: a slice is worth many switches, and four bytes hold its nanoseconds.
const SLICE_MIN: u64 = 10_000_000;
const SLICE_MAX: u64 = 1_000_000_000_000;

/// Stands for "not yet placed"; no tile has this number, because the tables end at 4095.
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
            memory: pages(self.root.size("manager-memory")),
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
                        memory: pages(child.size("memory")),
                    });
                    self.places.managers.push(child);
                    self.subsystem(child, self.managers.len() - 1);
                }
                "domain" => {
                    self.domains.push(Domain {
                        name: child.text("name"),
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
        let limit = node.child("limit").and_then(|limit| {
            limit.rate("noc").map(|noc| Limit {
                noc,
                burst: limit.size("burst"),
            })
        });
        let rgates = node.all("rgate").map(|gate| Rgate {
            name: gate.text("name"),
            slots: gate.integer("slots") as u32,
            slot_size: u32::try_from(gate.size("slot-size").0).unwrap_or(u32::MAX),
        });
        let mgates = node.all("mgate").map(|gate| {
            let rights = gate.text("rights");
            Mgate {
                name: gate.text("name"),
                size: pages(gate.size("size")),
                of: None,
                read: rights.contains('r'),
                write: rights.contains('w'),
                memory_tile: gate
                    .maybe_integer("memory-tile")
                    .map_or(UNPLACED, |id| id as u16),
            }
        });
        self.apps.push(App {
            name: node.text("name"),
            domain,
            tile,
            program: node.text("program"),
            memory: pages(node.size("memory")),
            memory_tile: node
                .maybe_integer("memory-tile")
                .map_or(UNPLACED, |id| id as u16),
            background: node.boolean("background"),
            lazy_heap: node.text("heap") == "lazy",
            arguments: node
                .all("argument")
                .map(|argument| Argument {
                    name: argument.text("name"),
                    value: argument.text("value"),
                })
                .collect(),
            limit,
            cpu: None,
            task: None,
            rgates: rgates.collect(),
            sgates: Vec::new(),
            mgates: mgates.collect(),
        });
        self.places.apps.push(node);
    }

    fn duplicates(&mut self) {
        // Managers are activities like applications, and reports name activities; `root` is taken.
        let managers = self.places.managers[1..]
            .iter()
            .map(|node| ("manager", *node));
        let apps = self.places.apps.iter().map(|node| ("app", *node));
        unique(managers.clone().chain(apps), self.errors);
        let domains = self.places.domains.iter().map(|node| ("domain", *node));
        unique(domains, self.errors);
        for (kind, node) in managers {
            if node.text("name") == ROOT_MANAGER {
                self.errors.push(Diagnostic::new(
                    Problem::Duplicate {
                        kind,
                        name: ROOT_MANAGER.into(),
                    },
                    node.place("name"),
                    "the first manager of every system has this name; choose another one",
                ));
            }
        }
        unique(
            self.root.all("flow").map(|node| ("flow", node)),
            self.errors,
        );
        unique(
            self.root.all("variant").map(|node| ("variant", node)),
            self.errors,
        );
        for app in &self.places.apps {
            unique(
                app.all("argument").map(|node| ("argument", node)),
                self.errors,
            );
            let gates = app
                .children
                .iter()
                .filter(|child| matches!(child.rule.name, "rgate" | "sgate" | "mgate"));
            unique(gates.map(|node| ("gate", node)), self.errors);
        }
    }

    fn programs(&mut self, programs: &dyn Programs) {
        let used = self
            .places
            .apps
            .iter()
            .map(|node| (*node, node.text("program")));
        let managers = self.places.managers[1..]
            .iter()
            .map(|node| (*node, node.text("program")));
        for (node, name) in used.chain(managers) {
            if !programs.contains(&name) {
                let known = programs.names();
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let help = suggestion(&name, &known, "program");
                self.errors.push(Diagnostic::new(
                    Problem::Unknown {
                        kind: "program",
                        name,
                    },
                    node.place("program"),
                    help,
                ));
            }
        }
    }

    /// Resolves the receivers of all send gates, and numbers the senders.
    fn gates(&mut self) {
        let mut senders: Vec<(usize, usize)> = Vec::new();
        for index in 0..self.apps.len() {
            let node = self.places.apps[index];
            for gate in node.all("sgate") {
                let Some((to, target)) = self.receiver(gate) else {
                    continue;
                };
                let number = senders
                    .iter()
                    .filter(|sender| **sender == (to, target))
                    .count();
                senders.push((to, target));
                self.apps[index].sgates.push(Sgate {
                    name: gate.text("name"),
                    to,
                    gate: target,
                    credits: gate.integer("credits") as u32,
                    label: gate.maybe_integer("label").unwrap_or(number as u64),
                });
            }
        }
    }

    /// Resolves the regions that memory gates share.
    fn regions(&mut self) {
        for index in 0..self.apps.len() {
            let node = self.places.apps[index];
            for (number, gate) in node.all("mgate").enumerate() {
                let Some(of) = gate.maybe_text("of") else {
                    continue;
                };
                match self.region(&of, self.apps[index].mgates[number].size) {
                    Ok(owner) => self.apps[index].mgates[number].of = Some(owner),
                    Err((problem, help)) => {
                        let place = gate.place("of");
                        self.errors.push(Diagnostic::new(problem, place, help));
                    }
                }
            }
        }
    }

    fn region(&self, of: &str, size: Size) -> Result<(usize, usize), (Problem, String)> {
        let unknown = |help: String| {
            let (kind, name) = ("memory gate", of.to_owned());
            Err((Problem::Unknown { kind, name }, help))
        };
        let (app, gate) = of.split_once('/').unwrap_or((of, ""));
        let Some(index) = self.apps.iter().position(|known| known.name == app) else {
            let known: Vec<&str> = self.apps.iter().map(|app| app.name.as_str()).collect();
            return unknown(suggestion(app, &known, "app"));
        };
        let gates = &self.apps[index].mgates;
        let Some(number) = gates.iter().position(|known| known.name == gate) else {
            let known: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
            return unknown(suggestion(gate, &known, "memory gate"));
        };
        let shares = self.places.apps[index].all("mgate").nth(number);
        if shares.is_some_and(|node| node.maybe_text("of").is_some()) {
            let problem = format!("`{of}` has no region of its own");
            let help = "name the gate whose region it shares".to_owned();
            return Err((Problem::Inconsistent(problem), help));
        }
        if size > gates[number].size {
            let problem = format!("the region of `{of}` is smaller than this gate");
            let help = format!("give at most {}B", gates[number].size.0);
            return Err((Problem::Inconsistent(problem), help));
        }
        Ok((index, number))
    }

    fn receiver(&mut self, gate: &Node) -> Option<(usize, usize)> {
        let (name, to) = (gate.text("name"), gate.text("to"));
        let nobody = |gate: &str, cause: String| Problem::GateToNobody {
            gate: gate.into(),
            cause,
        };
        let Some(index) = self.apps.iter().position(|app| app.name == to) else {
            let known: Vec<&str> = self.apps.iter().map(|app| app.name.as_str()).collect();
            let help = suggestion(&to, &known, "app");
            let problem = nobody(&name, format!("there is no app `{to}`"));
            self.errors
                .push(Diagnostic::new(problem, gate.place("to"), help));
            return None;
        };
        let app = &self.apps[index];
        let receivers: Vec<&str> = app.rgates.iter().map(|gate| gate.name.as_str()).collect();
        let Some(wanted) = gate.maybe_text("gate") else {
            let (problem, help) = match receivers.len() {
                0 => (
                    nobody(&name, format!("`{to}` has no receive gate")),
                    format!("add an <rgate name=\"input\"/> to `{to}`"),
                ),
                1 => return Some((index, 0)),
                _ => (
                    nobody(&name, format!("`{to}` has several receive gates")),
                    format!("say which one: gate=\"{}\"", receivers.join("\" or \"")),
                ),
            };
            self.errors
                .push(Diagnostic::new(problem, gate.place("to"), help));
            return None;
        };
        if let Some(target) = receivers.iter().position(|receiver| **receiver == wanted) {
            return Some((index, target));
        }
        let other = self.places.apps[index].children.iter().find(|child| {
            matches!(child.rule.name, "sgate" | "mgate") && child.text("name") == wanted
        });
        let help = suggestion(&wanted, &receivers, "receive gate");
        let problem = match other {
            Some(other) => Problem::GateType {
                gate: name,
                target: format!("{to}/{wanted}"),
                found: if other.rule.name == "sgate" {
                    "a send gate"
                } else {
                    "a memory gate"
                },
            },
            None => nobody(&name, format!("`{to}` has no gate `{wanted}`")),
        };
        self.errors
            .push(Diagnostic::new(problem, gate.place("gate"), help));
        None
    }

    /// Places managers and applications: first what has a fixed tile, then the others in the order of the file on the
    /// first free tile.
    fn place_tiles(&mut self) {
        let mut taken: Vec<(u16, String)> = Vec::new();
        let count = self.managers.len();
        for pass in [true, false] {
            for index in 0..count + self.apps.len() {
                let (name, tile, node, attribute) = if index < count {
                    let manager = &self.managers[index];
                    let attribute = if index == 0 { "manager-tile" } else { "tile" };
                    (
                        &manager.name,
                        manager.tile,
                        self.places.managers[index],
                        attribute,
                    )
                } else {
                    let app = &self.apps[index - count];
                    (&app.name, app.tile, self.places.apps[index - count], "tile")
                };
                let name = name.clone();
                if (tile != UNPLACED) != pass {
                    continue;
                }
                let tile = if pass {
                    if let Err((problem, help)) = self.usable(tile, &name, &taken) {
                        self.errors
                            .push(Diagnostic::new(problem, node.place(attribute), help));
                        continue;
                    }
                    tile
                } else if let Some(free) = self.free_tiles(&taken).first() {
                    *free
                } else {
                    self.errors.push(Diagnostic::new(
                        Problem::NoFreeTile { name },
                        &node.span,
                        "use a platform with more tiles, leave something out, or place it on a tile with shared=\"true\"",
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
            self.apps[index].cpu = node.child("cpu").map(|cpu| {
                let period = cpu.time("period");
                let budget = match cpu.quota("quota") {
                    Quota::Time(time) => time,
                    Quota::Share(share) => share_of(period, share.0),
                };
                Cpu {
                    budget,
                    period,
                    priority: cpu.maybe_integer("priority").unwrap_or(0) as u8,
                }
            });
        }
    }

    fn free_tiles(&self, taken: &[(u16, String)]) -> Vec<u16> {
        let tiles = self
            .platform
            .tiles
            .iter()
            .filter(|tile| !tile.privileged)
            .map(|tile| tile.id);
        tiles
            .filter(|id| taken.iter().all(|place| place.0 != *id))
            .collect()
    }

    fn usable(
        &self,
        id: u16,
        name: &str,
        taken: &[(u16, String)],
    ) -> Result<(), (Problem, String)> {
        let tile = u64::from(id);
        let free: Vec<String> = self.free_tiles(taken).iter().map(u16::to_string).collect();
        let help = if free.is_empty() {
            "no tile is free".to_owned()
        } else {
            format!("free are the tiles {}", free.join(", "))
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

    /// Priorities of a tile are either all given, or follow from deadlines.
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
                    let what = "a priority means nothing on a tile with time slices".to_owned();
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
                let what =
                    format!("some <cpu> on tile {tile} have a priority and this one has not");
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

    fn flows(&mut self) -> Vec<Flow> {
        let mut flows = Vec::new();
        for node in self.root.all("flow") {
            let mut end = |attribute: &str| {
                let name = node.text(attribute);
                let found = self.apps.iter().position(|app| app.name == name);
                if found.is_none() {
                    let known: Vec<&str> = self.apps.iter().map(|app| app.name.as_str()).collect();
                    let help = suggestion(&name, &known, "app");
                    let problem = Problem::Unknown { kind: "app", name };
                    self.errors
                        .push(Diagnostic::new(problem, node.place(attribute), help));
                }
                found
            };
            if let (Some(from), Some(to)) = (end("from"), end("to")) {
                let (name, deadline) = (node.text("name"), node.maybe_time("deadline"));
                flows.push(Flow {
                    name,
                    from,
                    to,
                    deadline,
                });
            }
        }
        flows
    }
}

/// A share in millionths of a period, in whole nanoseconds, at least one.
pub(crate) fn share_of(period: Time, millionths: u32) -> Time {
    let nanoseconds = u128::from(period.0 / 1000) * u128::from(millionths) / 1_000_000;
    Time(u64::try_from(nanoseconds.max(1) * 1000).unwrap_or(u64::MAX))
}

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
