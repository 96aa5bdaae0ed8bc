//! Rules of the whole tree: everything below a manager together stays within the manager's limits, everything referenced exists, and
//! nothing waits in a circle.
//!
//! Why it exists: each element can be right while the sum is wrong, and the chip would then refuse in the middle of a start what could
//! have been reported earlier. What it deliberately does not know: rules of single elements; those are in `check`.

use super::needs::{
    CHUNK, ENVIRONMENT, MEMORY_GATES, OnTile, SERVICES, TILE_ACTIVITIES, WINDOW, WINDOWS,
};
use super::time::{Holder, LEAST};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::source::Span;
use crate::system::check::{Places, budget_in_range, limit_in_range};
use crate::system::resolve::senders;
use crate::system::{APP_CREDITS, App, Cpu, System, TilePolicy};
use crate::units::{Rate, Size};

/// Reports every rule that the tree breaks.
pub fn check(system: &System, places: &Places<'_>, errors: &mut Vec<Diagnostic>) {
    let mut tree = Tree {
        system,
        places,
        errors,
    };
    for (app, node) in system.apps.iter().zip(&places.apps) {
        tree.app(app, node);
    }
    super::lineage::check(system, places, tree.errors);
    for manager in 1..system.managers.len() {
        tree.limits(manager);
        tree.on_tiles(manager);
        tree.totals(manager);
    }
    tree.kernel();
    for tile in &system.platform.tiles {
        tree.tile(tile.id);
    }
    tree.memories();
    tree.sessions();
    tree.circles();
}

pub(super) struct Tree<'a, 'p> {
    pub(super) system: &'a System,
    pub(super) places: &'a Places<'p>,
    errors: &'a mut Vec<Diagnostic>,
}

/// The place of a quota's limit, if there is one.
fn bound<'n>(node: &'n Node, tile: u16, attribute: &str) -> &'n Span {
    let tile = Some(u64::from(tile));
    let own = node.all("limit").find(|l| l.maybe_integer("tile") == tile);
    let all = node
        .all("limit")
        .find(|l| l.maybe_integer("tile").is_none());
    own.or(all)
        .map_or(&node.span, |limit| limit.place(attribute))
}

impl Tree<'_, '_> {
    pub(super) fn error(&mut self, what: String, place: &Span, help: impl Into<String>) {
        let error = Diagnostic::new(Problem::Inconsistent(what), place, help);
        self.errors.push(error);
    }

    fn app(&mut self, app: &App, node: &Node) {
        let mut credits = 0;
        for (gate, element) in app.sgates.iter().zip(senders(node)) {
            let before = credits;
            credits += u64::from(gate.credits);
            if before <= APP_CREDITS && credits > APP_CREDITS {
                let all: u64 = app.sgates.iter().map(|g| u64::from(g.credits)).sum();
                let what = format!(
                    "`{}` has {all} credits over all of its gates, {} more than {APP_CREDITS}",
                    app.name,
                    all - APP_CREDITS
                );
                let help = "each answer needs a slot in one buffer: give its gates fewer credits";
                self.error(what, element.place("credits"), help);
            }
        }
        if app.mgates.len() > MEMORY_GATES {
            let what = format!(
                "`{}` has {} memory gates, {} more than {MEMORY_GATES}",
                app.name,
                app.mgates.len(),
                app.mgates.len() - MEMORY_GATES
            );
            let place = node
                .all("mgate")
                .nth(MEMORY_GATES)
                .map_or(&node.span, |gate| &gate.span);
            self.error(
                what,
                place,
                "put several regions into one, or split the application",
            );
        }
        let [page, head, gate, argument] = ENVIRONMENT;
        let gates = (app.rgates.len() + app.sgates.len() + app.mgates.len()) as u64;
        let needed = head + gate * gates + argument * app.arguments.len() as u64;
        if needed > page {
            let what = format!(
                "the {gates} gates and {} arguments of `{}` need {needed} bytes of its environment page, {} more than it has",
                app.arguments.len(),
                app.name,
                needed - page
            );
            let help = format!(
                "a gate takes {gate} bytes, an argument {argument}; put data into a <module>"
            );
            self.error(what, &node.span, help);
        }
        let Some(element) = node.child("limit") else {
            return;
        };
        for attribute in ["memory", "tile"] {
            let is_given = match attribute {
                "tile" => element.maybe_integer(attribute).is_some(),
                _ => element.maybe_size(attribute).is_some(),
            };
            if is_given {
                let what = format!("the <limit> of an application cannot have `{attribute}`");
                let help = format!(
                    "write {attribute}=\"...\" at the <app>: it does not share this with others"
                );
                self.error(what, element.place(attribute), help);
            }
        }
        let least = app.least_endpoints();
        if let Some(given) = app.quotas.endpoints.filter(|given| *given < least) {
            let what = format!(
                "`{}` needs {least} endpoints, {} more than its limit",
                app.name,
                least - given
            );
            let help = format!(
                "write endpoints=\"{least}\" or more: {} for its gates, the others for system calls and answers",
                app.gate_endpoints()
            );
            self.error(what, element.place("endpoints"), help);
        }
        let least = app.least_tables();
        if let Some(given) = app.quotas.page_tables.filter(|given| *given < least) {
            let what = format!(
                "`{}` needs {least} pages for page tables, {} more than its limit",
                app.name,
                least - given
            );
            let help = format!(
                "write page-tables=\"{least}\", or give it less than {} of memory",
                app.memory
            );
            self.error(what, element.place("page-tables"), help);
        }
    }

    /// The elements of a manager's own limits.
    fn limits(&mut self, manager: usize) {
        let (system, node) = (self.system, self.places.managers[manager]);
        let tiles = system.tiles_below(manager);
        let mut seen = Vec::new();
        for element in node.all("limit") {
            let tile = element.maybe_integer("tile");
            if seen.contains(&tile) {
                let which = tile.map_or("all tiles".to_owned(), |tile| format!("tile {tile}"));
                let name = &system.managers[manager].name;
                let what = format!("manager `{name}` has two limits for {which}");
                self.error(what, &element.span, "merge them into one");
            }
            seen.push(tile);
            if let Some(tile) = tile {
                if !tiles.iter().any(|known| u64::from(*known) == tile) {
                    let name = &system.managers[manager].name;
                    let what = format!("nothing below manager `{name}` is on tile {tile}");
                    let all: Vec<String> = tiles.iter().map(u16::to_string).collect();
                    let help = format!("its tiles are {}", all.join(", "));
                    self.error(what, element.place("tile"), help);
                }
                for attribute in ["kernel-memory", "memory"] {
                    if element.maybe_size(attribute).is_some() {
                        let what = format!("a <limit> for one tile cannot have `{attribute}`");
                        let help =
                            "write it into a <limit> without `tile`: it is a sum over all tiles";
                        self.error(what, element.place(attribute), help);
                    }
                }
            }
            for limit in system.managers[manager].limits.iter() {
                if let Some(noc) = limit.noc.filter(|_| limit.tile.map(u64::from) == tile) {
                    let all = match limit.tile {
                        Some(tile) => vec![tile],
                        None => tiles.clone(),
                    };
                    for tile in all {
                        limit_in_range(system, tile, noc, element, self.errors);
                    }
                }
            }
        }
        if let (Some(own), Some(element)) = (system.managers[manager].cpu, node.child("cpu")) {
            budget_in_range(own, element, self.errors);
            self.highest(manager, own, element);
        }
    }

    /// The highest priority below a manager has a meaning, and is really the highest.
    fn highest(&mut self, manager: usize, own: Cpu, element: &Node) {
        if own.priority == 0 {
            return;
        }
        let system = self.system;
        let tiles = system.tiles_below(manager);
        let mut ordered = tiles
            .iter()
            .filter(|tile| system.tilemux(**tile).policy == TilePolicy::Realtime)
            .peekable();
        let place = element.place("priority");
        if ordered.peek().is_none() {
            let what = "a priority has no effect on tiles with time slices".to_owned();
            let help = "write <tilemux tile=\"...\" policy=\"realtime\"/> into the system, or leave it out";
            return self.error(what, place, help);
        }
        let parts = ordered.flat_map(|tile| system.times_of(manager, *tile));
        let Some((holder, most)) = parts.max_by_key(|(_, cpu)| cpu.priority) else {
            return;
        };
        if most.priority > own.priority {
            let name = match holder {
                Holder::App(app) => &system.apps[app].name,
                Holder::Manager(below) => &system.managers[below].name,
            };
            let what = format!(
                "`{name}` has priority {}, above the highest of what is below manager `{}`",
                most.priority, system.managers[manager].name
            );
            let help = format!(
                "write priority=\"{}\" or more, or leave it out",
                most.priority
            );
            self.error(what, place, help);
        }
    }

    /// What is below a manager stays within the manager's limits on each tile.
    fn on_tiles(&mut self, manager: usize) {
        let (system, node) = (self.system, self.places.managers[manager]);
        let own = &system.managers[manager];
        for tile in system.tiles_below(manager) {
            let sum = system.on_tile(manager, tile);
            let limit = own.limit(tile).copied();
            let below = format!("what is below manager `{}` on tile {tile}", own.name);
            let counts = [
                (
                    "endpoints",
                    "endpoints",
                    sum.endpoints,
                    limit.and_then(|l| l.endpoints),
                ),
                (
                    "page-tables",
                    "pages for page tables",
                    sum.tables,
                    limit.and_then(|l| l.page_tables),
                ),
                (
                    "activities",
                    "places for activities",
                    sum.places,
                    limit.and_then(|l| l.activities),
                ),
            ];
            for (attribute, name, needed, given) in counts {
                if let Some(given) = given.filter(|given| *given < needed) {
                    let what = format!(
                        "{below} needs {needed} {name}, {} more than the limit",
                        needed - given
                    );
                    let help =
                        format!("write {attribute}=\"{needed}\", or give less to what is below");
                    self.error(what, bound(node, tile, attribute), help);
                }
            }
            if let Some(noc) = limit.and_then(|l| l.noc) {
                self.traffic(&below, (node, tile), sum, (noc.noc, noc.burst));
            }
            self.time(&below, (manager, tile), sum);
        }
    }

    fn traffic(
        &mut self,
        below: &str,
        (node, tile): (&Node, u16),
        sum: OnTile,
        given: (Rate, Size),
    ) {
        // An application without its own limit uses what is left, and needs at least something.
        let rest = u128::from(sum.without_limit > 0);
        let (rate, burst) = (sum.rate + rest, sum.burst + rest * u128::from(CHUNK));
        let others = match sum.without_limit {
            0 => String::new(),
            1 => ", and one more application shares the rest".to_owned(),
            more => format!(", and {more} more applications share the rest"),
        };
        let full = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        if rate > u128::from(given.0.0) {
            let what = format!(
                "{below} may cause {} of traffic{others}; the limit is {}",
                Rate(full(sum.rate)),
                given.0
            );
            let help = format!(
                "write noc=\"{}\" or more, or lower the limits below",
                Rate(full(rate))
            );
            self.error(what, bound(node, tile, "noc"), help);
        } else if burst > u128::from(given.1.0) {
            let what = format!(
                "{below} may cause {} of traffic at once{others}; the limit's burst is {}",
                Size(full(sum.burst)),
                given.1
            );
            let help = format!(
                "write burst=\"{}\" or more, or lower the bursts below; {CHUNK}B must be left for those without a limit",
                Size(full(burst))
            );
            self.error(what, bound(node, tile, "burst"), help);
        }
    }

    fn time(&mut self, below: &str, (manager, tile): (usize, u16), sum: OnTile) {
        let (system, node) = (self.system, self.places.managers[manager]);
        let Some(all) = system.time_below(manager, tile) else {
            return;
        };
        let period = all.period.nanoseconds();
        let percent = |time: u64| {
            let millionths = u128::from(time) * 1_000_000 / u128::from(period.max(1));
            format!("{}%", millionths as f64 / 10_000.0)
        };
        let Some(element) = node.child("cpu") else {
            if all.budget > all.period {
                let what = format!(
                    "{below} needs {} of the processor's time in each {}, because it may use its time at any moment",
                    percent(all.budget.nanoseconds()),
                    all.period
                );
                let help = "give what is below it shorter quotas, or periods that are multiples of the shorter ones";
                self.error(what, &node.span, help);
            }
            return;
        };
        let rest = sum.without_cpu > 0;
        let taken = system.time_taken(manager, tile, period);
        let needed = taken.saturating_add(if rest { LEAST.nanoseconds() } else { 0 });
        if rest && sum.activities > 1 {
            let what = format!(
                "{below} has {} without a <cpu>, but a manager's processor time must be divided between them",
                match sum.without_cpu {
                    1 => "one activity".to_owned(),
                    several => format!("{several} activities"),
                }
            );
            self.error(
                what,
                element.place("quota"),
                "give each of them a <cpu>: only one that is alone there needs none",
            );
        } else if needed > all.budget.nanoseconds() {
            let what = format!(
                "{below} has {} of the processor's time{}; the limit is {}",
                percent(taken),
                if rest {
                    ", and one activity uses the rest"
                } else {
                    ""
                },
                percent(all.budget.nanoseconds())
            );
            let parts = system.times_of(manager, tile);
            let uneven = parts.iter().any(|(_, cpu)| {
                let own = cpu.period.nanoseconds().max(1);
                own > period || !period.is_multiple_of(own)
            });
            let why = match uneven {
                true => {
                    ": a quota below counts once for each of its periods that can begin within a period of the manager"
                }
                false => "",
            };
            let help = match needed > period {
                true => format!("lower the quotas below, or give the manager a longer period{why}"),
                false => format!(
                    "write quota=\"{}\" or more, or lower the quotas below{why}",
                    percent(needed)
                ),
            };
            self.error(what, element.place("quota"), help);
        }
    }

    /// Bounds over all tiles.
    fn totals(&mut self, manager: usize) {
        let (system, node) = (self.system, self.places.managers[manager]);
        let own = &system.managers[manager];
        let kernel = system.kernel_memory_below(manager);
        let totals = [
            ("kernel-memory", "kernel memory", kernel, own.kernel_memory),
            (
                "memory",
                "memory",
                system.memory_below(manager),
                own.user_memory,
            ),
        ];
        for (attribute, name, needed, given) in totals {
            let Some(given) = given.filter(|given| given.0 < needed) else {
                continue;
            };
            let element = node
                .all("limit")
                .find(|l| l.maybe_size(attribute).is_some());
            let what = format!(
                "what is below manager `{}` needs {} of {name}, {} more than the limit",
                own.name,
                Size(needed),
                Size(needed - given.0)
            );
            let help = format!(
                "write {attribute}=\"{}\", or give less to what is below",
                Size(needed)
            );
            let place = element.map_or(&node.span, |element| element.place(attribute));
            self.error(what, place, help);
        }
    }

    fn tile(&mut self, tile: u16) {
        let system = self.system;
        let apps = system.apps.iter().zip(&self.places.apps);
        let apps: Vec<(&App, &&Node)> = apps.filter(|(app, _)| app.tile == tile).collect();
        let managers = system.managers.iter().zip(&self.places.managers);
        let managers = managers.filter(|(manager, _)| manager.tile == tile);
        let managers: Vec<&Node> = managers.map(|(_, node)| *node).collect();
        let last = apps.last().map(|(_, node)| **node);
        let Some(last) = last.or(managers.last().copied()) else {
            return;
        };
        let managers = managers.len();
        let count = apps.len() + managers;
        if count > TILE_ACTIVITIES {
            let what = format!(
                "{count} applications and managers on tile {tile}, {} more than a tile takes",
                count - TILE_ACTIVITIES
            );
            let free = TILE_ACTIVITIES.saturating_sub(managers);
            let place = apps.get(free).map_or(&last.span, |(_, node)| &node.span);
            self.error(
                what,
                place,
                format!("place some on another tile: at most {TILE_ACTIVITIES} share one"),
            );
        }
        let (places, most) = (system.on_tile(0, tile).places, system.places_on(tile));
        if count <= TILE_ACTIVITIES && places > most {
            let limited = apps.iter().rfind(|(app, _)| app.least_places() > 1);
            let place = limited.and_then(|(_, node)| node.child("limit"));
            let place = place.map_or(&last.span, |limit| limit.place("activities"));
            let what = format!(
                "tile {tile} needs {places} places for activities, {} more than it has",
                places - most
            );
            let help = format!(
                "give its applications at most {most} places together (one for each application itself), or place some on another tile"
            );
            self.error(what, place, help);
        }
        let windows: Vec<(usize, u16, u64)> = (0..system.managers.len())
            .flat_map(|manager| {
                let own = system.windows_of(manager).into_iter();
                own.filter(move |window| window.0 == tile)
                    .map(move |w| (manager, w.1, w.2))
            })
            .collect();
        // The kernel shows the root manager's memory through a separate window.
        let root = usize::from(system.managers[0].tile == tile);
        if windows.len() + root > WINDOWS {
            let what = format!(
                "tile {tile} needs {} windows onto memory, {} more than it has: one for each manager and memory tile",
                windows.len() + root,
                windows.len() + root - WINDOWS
            );
            let help =
                "give its applications the same memory-tile, or let fewer managers share the tile";
            self.error(what, last.place("tile"), help);
        }
        for (manager, memory, bytes) in windows {
            if bytes > WINDOW {
                let what = format!(
                    "manager `{}` needs {} of memory tile {memory} for tile {tile}, {} more than one window shows",
                    system.managers[manager].name,
                    Size(bytes),
                    Size(bytes - WINDOW)
                );
                let help = "give the applications less memory, or place some on another tile or memory tile";
                self.error(what, last.place("memory"), help);
            }
        }
        let capacity = system.platform.network.link_capacity();
        let mut sum = 0u128;
        for (app, node) in apps {
            let Some(limit) = app.limit.filter(|limit| limit.noc <= capacity) else {
                continue;
            };
            let before = sum;
            sum += u128::from(limit.noc.0);
            let link = u128::from(capacity.0);
            if before <= link && sum > link {
                let what = format!(
                    "the limits on tile {tile} add up to more than its link carries, {capacity}"
                );
                let left = Rate((link - before) as u64);
                let place = node.child("limit").map_or(&node.span, |l| l.place("noc"));
                self.error(what, place, format!("at most {left} are left here"));
            }
        }
    }

    /// Limits that together promise more than a memory has would limit nothing.
    fn memories(&mut self) {
        let system = self.system;
        for memory in &system.platform.memories {
            let dram = &memory.dram;
            let peak = u128::from(dram.bus) * 2 * u128::from(dram.clock.frequency.0);
            let link = u128::from(system.platform.network.link_capacity().0);
            let capacity = peak.min(link);
            let mut sum = 0u128;
            let all = system.apps.iter().zip(&self.places.apps);
            // A rate that no link can carry is a separate mistake.
            let limited: Vec<_> = all
                .filter_map(|(app, node)| {
                    let is_used = app.memory_tile == memory.id
                        || app.mgates.iter().any(|gate| gate.memory_tile == memory.id);
                    let limit = app
                        .limit
                        .filter(|limit| is_used && u128::from(limit.noc.0) <= link)?;
                    Some((limit, *node))
                })
                .collect();
            for (limit, node) in &limited {
                let before = sum;
                // A single limit above the capacity is harmless; beside others, it alone is wrong.
                if u128::from(limit.noc.0) > capacity {
                    if limited.len() > 1 {
                        let what = format!(
                            "the limit of {} is more than memory tile {} gives in all, {}, and other applications use that memory tile",
                            limit.noc,
                            memory.id,
                            Rate(capacity as u64)
                        );
                        let place = node.child("limit").map_or(&node.span, |l| l.place("noc"));
                        self.error(
                            what,
                            place,
                            "write what the others leave, or `none` for no limit",
                        );
                    }
                    continue;
                }
                sum += u128::from(limit.noc.0);
                if before <= capacity && sum > capacity {
                    let what = format!(
                        "the limits of all applications that use memory tile {} add up to more than it gives, {}",
                        memory.id,
                        Rate(capacity as u64)
                    );
                    let left = Rate((capacity - before) as u64);
                    let place = node.child("limit").map_or(&node.span, |l| l.place("noc"));
                    let help = format!("at most {left} are left here; `none` for no limit");
                    self.error(what, place, help);
                }
            }
        }
    }

    /// No service has more sessions than it takes.
    fn sessions(&mut self) {
        let system = self.system;
        for (to, app) in system.apps.iter().enumerate() {
            self.services(to);
            for gate in 0..app.rgates.len() {
                let Some(service) = app.service_of(&app.rgates[gate].name) else {
                    continue;
                };
                let mut count = 0;
                for (client, node) in system.apps.iter().zip(&self.places.apps) {
                    for (sgate, element) in client.sgates.iter().zip(senders(node)) {
                        if (sgate.to, sgate.gate) != (to, gate) || sgate.session.is_none() {
                            continue;
                        }
                        count += 1;
                        let sessions = u64::from(service.sessions);
                        if count == sessions + 1 {
                            let what = format!(
                                "clients open more than {sessions} sessions at gate `{}` of `{}`",
                                app.rgates[gate].name, app.name
                            );
                            let help = "write sessions=\"...\" at its <service>, at most 64, or use a second service";
                            self.error(what, element.place("to"), help);
                        }
                        if sgate.label >= 64 {
                            let what = format!("a session cannot have the label {}", sgate.label);
                            let help = "labels of sessions are the clients' numbers: write 0 to 63, or leave it out";
                            self.error(what, element.place("label"), help);
                        }
                    }
                }
            }
        }
    }

    /// Services of an application have names and share one fate: the application is what is restarted.
    fn services(&mut self, index: usize) {
        let app = &self.system.apps[index];
        let node = self.places.apps[index];
        for (number, (service, element)) in app.services.iter().zip(node.all("service")).enumerate()
        {
            let before = &app.services[..number];
            if before.iter().any(|other| other.name == service.name) {
                let which = match &service.name {
                    Some(name) => format!("of the name `{name}`"),
                    None => "without a name".to_owned(),
                };
                let what = format!("`{}` has two services {which}", app.name);
                let help = "give each a name of its own; one of them needs none";
                self.error(what, element.place("name"), help);
            }
            if number == SERVICES {
                let what = format!(
                    "`{}` has {} services, {} more than {SERVICES}",
                    app.name,
                    app.services.len(),
                    app.services.len() - SERVICES
                );
                let help =
                    "split the application, or serve several kinds of requests at one service";
                self.error(what, &element.span, help);
            }
            if let Some(first) = before
                .first()
                .filter(|first| first.restarts != service.restarts)
            {
                let what = format!(
                    "the services of `{}` are restarted different numbers of times, {} and {} times",
                    app.name, first.restarts, service.restarts
                );
                let help = "the application restarts as a whole: write the same `restart` and `restarts` at all of its services";
                self.error(what, element.place("restart"), help);
            }
        }
    }

    /// A client starts after its services, so no application may depend on itself.
    fn circles(&mut self) {
        let system = self.system;
        let needs = |app: usize| {
            let gates = system.apps[app].sgates.iter();
            gates
                .filter(|gate| gate.session.is_some())
                .map(|gate| gate.to)
        };
        // 0: not seen; 1: on the way; 2: done.
        let mut state = vec![0u8; system.apps.len()];
        for first in 0..system.apps.len() {
            if state[first] != 0 {
                continue;
            }
            let mut way = vec![(first, needs(first).collect::<Vec<usize>>())];
            state[first] = 1;
            while let Some((at, left)) = way.last_mut() {
                let at = *at;
                let Some(next) = (!left.is_empty()).then(|| left.remove(0)) else {
                    state[at] = 2;
                    way.pop();
                    continue;
                };
                match state[next] {
                    0 => {
                        state[next] = 1;
                        way.push((next, needs(next).collect()));
                    }
                    1 => {
                        let start = way.iter().position(|(app, _)| *app == next).unwrap_or(0);
                        let names = way[start..].iter().map(|(app, _)| *app).chain([next]);
                        let names: Vec<&str> =
                            names.map(|app| system.apps[app].name.as_str()).collect();
                        let what = format!("the sessions form a circle: {}", names.join(" needs "));
                        let gates = senders(self.places.apps[at]).zip(&system.apps[at].sgates);
                        let mut gates = gates.filter(|(_, g)| g.session.is_some() && g.to == next);
                        let place = gates
                            .next()
                            .map_or(&self.places.apps[at].span, |(n, _)| n.place("to"));
                        let help = "each waits for the other to start: replace one of the sessions by an <sgate>";
                        self.error(what, place, help);
                    }
                    _ => {}
                }
            }
        }
    }
}
