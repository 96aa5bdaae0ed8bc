//! Names: which application, gate, region or module a name refers to.
//!
//! Why it exists: names are local to the manager above them, so a subsystem need not care about names used by others; only what others
//! should know has a global name. What it deliberately does not know: tiles and quotas.

use super::read::Reader;
use super::{App, Flow, Module, ModuleSource, Scope, Sgate};
use crate::error::{Diagnostic, Problem};
use crate::grammar::NAME_MAX;
use crate::node::Node;
use crate::programs::{HostKind, Programs, check_host_file};
use crate::text::suggestion;
use crate::units::Size;

/// The mistake, and its remedy.
type Failure = (Problem, String);
/// Also the attribute concerned.
type Misplaced = (&'static str, Failure);

/// The gate at which a pager receives page faults.
const FAULTS: &str = "faults";
/// Maximum clients of a pager.
const PAGER_CLIENTS: u32 = 16;

/// The elements by which an application sends.
pub(super) fn senders(app: &Node) -> impl Iterator<Item = &Node> {
    let children = app.children.iter();
    children.filter(|child| matches!(child.rule.name, "sgate" | "session"))
}

/// An application has no service of this name, or none without a name.
fn no_service(app: &App, wanted: Option<String>) -> Misplaced {
    let names = app.services.iter().filter_map(|s| s.name.as_deref());
    let names: Vec<&str> = names.collect();
    match wanted {
        _ if app.services.is_empty() => {
            let problem = format!("`{}` offers no service", app.name);
            let help = format!(
                "write <service/> into `{}` if its program serves sessions, or use an <sgate>",
                app.name
            );
            ("to", (Problem::Inconsistent(problem), help))
        }
        Some(name) => {
            let (kind, help) = ("service", suggestion(&name, &names, "service"));
            ("service", (Problem::Unknown { kind, name }, help))
        }
        None => {
            let problem = format!("`{}` has several services", app.name);
            let help = format!("say which one: service=\"{}\"", names.join("\" or \""));
            ("to", (Problem::Inconsistent(problem), help))
        }
    }
}

impl<'a> Reader<'a, '_> {
    /// Applications and domains whose names several managers use are qualified with their manager's name.
    pub(super) fn qualify(&mut self) {
        let local: Vec<String> = self.apps.iter().map(|app| app.local.clone()).collect();
        let managers: Vec<String> = self.managers.iter().map(|m| m.name.clone()).collect();
        for index in 0..self.apps.len() {
            let name = &local[index];
            let taken = local.iter().filter(|other| *other == name).count() > 1;
            if !taken && !managers.contains(name) {
                continue;
            }
            let manager = self.domains[self.apps[index].domain].manager;
            let full = format!("{}.{name}", managers[manager]);
            if full.len() > NAME_MAX {
                let what = format!(
                    "`{name}` is not unique in the system, and its full name `{full}` has more than {NAME_MAX} characters"
                );
                let place = self.places.apps[index].place("name");
                let help = "choose a shorter name, or one that is used nowhere else";
                let error = Diagnostic::new(Problem::Inconsistent(what), place, help);
                self.errors.push(error);
            }
            self.apps[index].name = full;
        }
        let local: Vec<String> = self.domains.iter().map(|d| d.local.clone()).collect();
        for domain in &mut self.domains {
            if local.iter().filter(|other| **other == domain.local).count() > 1 {
                domain.name = format!("{}.{}", managers[domain.manager], domain.local);
            }
        }
    }

    fn manager_of(&self, app: usize) -> usize {
        self.domains[self.apps[app].domain].manager
    }

    /// The managers enclosing one, itself first.
    fn around(&self, manager: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(manager), |m| self.managers[*m].parent)
    }

    fn is_within(&self, manager: usize, above: usize) -> bool {
        self.around(manager).any(|m| m == above)
    }

    /// The application that a name refers to below a manager: one of this manager, else of the nearest enclosing one, else the only one
    /// in the system.
    fn application(&self, name: &str, manager: usize) -> Result<usize, Failure> {
        if let Some((place, local)) = name.split_once('.')
            && let Some(place) = self.managers.iter().position(|m| m.name == place)
        {
            let all = 0..self.apps.len();
            let mut inside = all.filter(|app| self.manager_of(*app) == place);
            if let Some(found) = inside.find(|app| self.apps[*app].local == local) {
                return Ok(found);
            }
        }
        let named: Vec<usize> = (0..self.apps.len())
            .filter(|app| self.apps[*app].local == name)
            .collect();
        for around in self.around(manager) {
            if let Some(found) = named.iter().find(|app| self.manager_of(**app) == around) {
                return Ok(*found);
            }
        }
        match named.as_slice() {
            [only] => Ok(*only),
            [] => {
                let known: Vec<&str> = self.apps.iter().map(|app| app.name.as_str()).collect();
                let problem = Problem::Unknown {
                    kind: "app",
                    name: name.into(),
                };
                Err((problem, suggestion(name, &known, "app")))
            }
            several => {
                let names = several.iter().map(|app| self.apps[*app].name.as_str());
                let problem = format!("`{name}` is the name of {} apps", several.len());
                let names: Vec<&str> = names.collect();
                let help = format!("say which one: {}", names.join(" or "));
                Err((Problem::Inconsistent(problem), help))
            }
        }
    }

    /// Resolves the receivers of all send gates and sessions, and numbers the senders.
    pub(super) fn gates(&mut self) {
        self.globals();
        let mut numbers: Vec<(usize, usize)> = Vec::new();
        for index in 0..self.apps.len() {
            let node = self.places.apps[index];
            for gate in senders(node) {
                let found = match gate.rule.name {
                    "session" => self.service(index, gate),
                    _ => self.receiver(index, gate),
                };
                let Some((to, target)) = found else {
                    continue;
                };
                let number = numbers.iter().filter(|s| **s == (to, target)).count();
                numbers.push((to, target));
                let session = (gate.rule.name == "session").then(|| gate.integer("priority") as u8);
                self.apps[index].sgates.push(Sgate {
                    name: gate.text("name"),
                    to,
                    gate: target,
                    credits: gate.integer("credits") as u32,
                    label: gate.maybe_integer("label").unwrap_or(number as u64),
                    session,
                    patience: gate.time("patience"),
                });
            }
        }
    }

    /// Resolves the pagers of all applications.
    pub(super) fn pagers(&mut self) {
        for index in 0..self.apps.len() {
            let node = self.places.apps[index];
            let Some(name) = node.maybe_text("pager") else {
                continue;
            };
            match self.pager(index, node, &name) {
                Ok(pager) => self.apps[index].pager = Some(pager),
                Err(failure) => self.fail(node, "pager", failure),
            }
        }
    }

    fn pager(&self, client: usize, node: &Node, name: &str) -> Result<usize, Failure> {
        let wrong = |what: String, help: &str| Err((Problem::Inconsistent(what), help.to_owned()));
        let manager = self.manager_of(client);
        let pager = self.application(name, manager)?;
        let paged = self.places.apps[pager].maybe_text("pager").is_some();
        if self.manager_of(pager) != manager || paged {
            return wrong(
                format!(
                    "`{name}` cannot be a pager here: it is below another manager, or has a pager itself"
                ),
                "name an application of the same manager whose heap is mapped from the start",
            );
        }
        if node.text("heap") == "lazy" {
            return wrong(
                "the heap is mapped by TileMux or by a pager, not by both".into(),
                "remove heap=\"lazy\" or the pager",
            );
        }
        let mut gates = self.apps[pager].rgates.iter().enumerate();
        let Some((gate, faults)) = gates.find(|(_, gate)| gate.name == FAULTS) else {
            return wrong(
                format!("`{name}` has no receive gate `{FAULTS}`"),
                "write <rgate name=\"faults\"/> into that application",
            );
        };
        let clients = self.places.apps.iter();
        let clients = clients.filter(|app| app.maybe_text("pager").as_deref() == Some(name));
        let senders = self.apps.iter().flat_map(|app| &app.sgates);
        let credits = senders.filter(|s| (s.to, s.gate) == (pager, gate));
        let credits: u32 = credits.map(|s| s.credits).sum();
        let needed = clients.count() as u32 + credits;
        if needed > faults.slots.min(PAGER_CLIENTS) {
            return wrong(
                format!(
                    "the gate `{FAULTS}` of `{name}` has {} slots, but {needed} faults and messages may be under way (a pager has at most {PAGER_CLIENTS} clients)",
                    faults.slots
                ),
                "give the gate more slots, or some applications another pager",
            );
        }
        Ok(pager)
    }

    fn fail(&mut self, node: &Node, attribute: &str, (problem, help): Failure) {
        let error = Diagnostic::new(problem, node.place(attribute), help);
        self.errors.push(error);
    }

    /// Global names are unique below each manager.
    fn globals(&mut self) {
        let mut seen: Vec<(usize, String)> = Vec::new();
        for index in 0..self.apps.len() {
            let manager = self.manager_of(index);
            for gate in self.places.apps[index].all("rgate") {
                let Some(name) = gate.maybe_text("global") else {
                    continue;
                };
                let entry = (manager, name.clone());
                if seen.contains(&entry) {
                    let kind = "global gate";
                    let help =
                        "give one of them another name; below different managers both may have it";
                    self.fail(
                        gate,
                        "global",
                        (Problem::Duplicate { kind, name }, help.into()),
                    );
                }
                seen.push(entry);
            }
        }
    }

    /// The receive gate with a global name, as seen below a manager.
    fn global(&self, name: &str, manager: usize) -> Result<(usize, usize), Failure> {
        let mut named: Vec<(usize, usize)> = Vec::new();
        for (index, app) in self.apps.iter().enumerate() {
            let gates = app.rgates.iter().enumerate();
            let gates = gates.filter(|(_, gate)| gate.global.as_deref() == Some(name));
            named.extend(gates.map(|(gate, _)| (index, gate)));
        }
        for around in self.around(manager) {
            let mut here = named
                .iter()
                .filter(|(app, _)| self.manager_of(*app) == around);
            if let Some(found) = here.next() {
                return Ok(*found);
            }
        }
        named.retain(|(app, gate)| self.apps[*app].rgates[*gate].scope == Scope::System);
        match named.as_slice() {
            [only] => Ok(*only),
            [] => {
                let gates = self.apps.iter().flat_map(|app| &app.rgates);
                let mut known: Vec<&str> =
                    gates.filter_map(|gate| gate.global.as_deref()).collect();
                known.sort_unstable();
                known.dedup();
                let problem = Problem::Unknown {
                    kind: "global gate",
                    name: name.into(),
                };
                let help = match known.contains(&name) {
                    true => "the gate has scope=\"manager\": only what is below its manager may send to it".into(),
                    false => suggestion(name, &known, "global gate"),
                };
                Err((problem, help))
            }
            several => {
                let names = several.iter().map(|(app, gate)| {
                    let app = &self.apps[*app];
                    format!("to=\"{}\" gate=\"{}\"", app.name, app.rgates[*gate].name)
                });
                let names: Vec<String> = names.collect();
                let what = format!("`{name}` is the global name of {} gates", several.len());
                let help = format!("say which one: {}", names.join(" or "));
                Err((Problem::Inconsistent(what), help))
            }
        }
    }

    /// Whether an application may use what another application's manager keeps to its subtree.
    fn reach(&self, scope: Scope, from: usize, to: usize, what: &str) -> Result<(), Failure> {
        let owner = self.manager_of(to);
        if scope == Scope::System || self.is_within(self.manager_of(from), owner) {
            return Ok(());
        }
        let problem = format!(
            "{what} of `{}` is only for applications below manager `{}`, and `{}` is not below it",
            self.apps[to].name, self.managers[owner].name, self.apps[from].name
        );
        let help = "write scope=\"system\" there to let all applications use it, or put both applications below the same manager";
        Err((Problem::Inconsistent(problem), help.into()))
    }

    /// The gate of a session's service.
    fn service(&mut self, from: usize, node: &Node) -> Option<(usize, usize)> {
        let found = self.find_service(from, node);
        match found {
            Ok(found) => Some(found),
            Err(misplaced) => {
                let (attribute, failure) = *misplaced;
                self.fail(node, attribute, failure);
                None
            }
        }
    }

    fn find_service(&self, from: usize, node: &Node) -> Result<(usize, usize), Box<Misplaced>> {
        let manager = self.manager_of(from);
        let to = self.application(&node.text("to"), manager);
        let to = to.map_err(|failure| Box::new(("to", failure)))?;
        let app = &self.apps[to];
        let wanted = node.maybe_text("service");
        let mut services = app.services.iter();
        let found = match (&wanted, app.services.as_slice()) {
            (None, [only]) => Some(only),
            _ => services.find(|service| service.name == wanted),
        };
        let Some(service) = found else {
            return Err(Box::new(no_service(app, wanted)));
        };
        self.reach(service.scope, from, to, "the service")
            .map_err(|failure| Box::new(("to", failure)))?;
        let priority = node.integer("priority");
        let wanted = service.gate(priority);
        let gate = app.rgates.iter().position(|gate| gate.name == wanted);
        gate.map(|gate| (to, gate)).ok_or_else(|| {
            let known = app.rgates.iter().filter_map(|g| service.priority(&g.name));
            let known: Vec<&str> = known.collect();
            let problem = format!("`{}` has no clients of priority {priority}", app.name);
            let help = match known.is_empty() {
                true => format!("give `{}` an <rgate name=\"{wanted}\"/>", app.name),
                false => format!(
                    "its priorities are {}; or give it an <rgate name=\"{wanted}\"/>",
                    known.join(", ")
                ),
            };
            Box::new(("priority", (Problem::Inconsistent(problem), help)))
        })
    }

    fn receiver(&mut self, from: usize, gate: &Node) -> Option<(usize, usize)> {
        match self.find_receiver(from, gate) {
            Ok(found) => Some(found),
            Err(misplaced) => {
                let (attribute, failure) = *misplaced;
                self.fail(gate, attribute, failure);
                None
            }
        }
    }

    fn find_receiver(&self, from: usize, gate: &Node) -> Result<(usize, usize), Box<Misplaced>> {
        let name = gate.text("name");
        let manager = self.manager_of(from);
        let (index, target) = match (gate.maybe_text("to"), gate.maybe_text("global")) {
            (Some(to), None) => {
                let index = self.application(&to, manager).map_err(|(problem, help)| {
                    let problem = match problem {
                        Problem::Unknown { .. } => Problem::GateToNobody {
                            gate: name.clone(),
                            cause: format!("there is no app `{to}`"),
                        },
                        other => other,
                    };
                    Box::new(("to", (problem, help)))
                })?;
                (index, self.gate_of(index, &to, &name, gate)?)
            }
            (None, Some(global)) => {
                let found = self.global(&global, manager);
                found.map_err(|failure| Box::new(("global", failure)))?
            }
            (to, _) => {
                let problem = match to {
                    Some(_) => format!("gate `{name}` has both `to` and `global`"),
                    None => format!("gate `{name}` leads nowhere"),
                };
                let help = "write either to=\"APP\" or global=\"NAME\"".to_owned();
                return Err(Box::new(("name", (Problem::Inconsistent(problem), help))));
            }
        };
        let rgate = &self.apps[index].rgates[target];
        let what = format!("gate `{}`", rgate.name);
        let attribute = if gate.maybe_text("to").is_some() {
            "to"
        } else {
            "global"
        };
        let reached = self.reach(rgate.scope, from, index, &what);
        reached.map_err(|failure| Box::new((attribute, failure)))?;
        Ok((index, target))
    }

    /// The receive gate of an application that a send gate refers to.
    fn gate_of(
        &self,
        index: usize,
        to: &str,
        name: &str,
        gate: &Node,
    ) -> Result<usize, Box<Misplaced>> {
        let nobody = |cause: String| Problem::GateToNobody {
            gate: name.into(),
            cause,
        };
        let app = &self.apps[index];
        let receivers: Vec<&str> = app.rgates.iter().map(|gate| gate.name.as_str()).collect();
        let Some(wanted) = gate.maybe_text("gate") else {
            let failure = match receivers.len() {
                0 => (
                    nobody(format!("`{to}` has no receive gate")),
                    format!("add an <rgate name=\"input\"/> to `{to}`"),
                ),
                1 => return Ok(0),
                _ => (
                    nobody(format!("`{to}` has several receive gates")),
                    format!("say which one: gate=\"{}\"", receivers.join("\" or \"")),
                ),
            };
            return Err(Box::new(("to", failure)));
        };
        if let Some(target) = receivers.iter().position(|receiver| **receiver == wanted) {
            return Ok(target);
        }
        let other = self.places.apps[index].children.iter().find(|child| {
            matches!(child.rule.name, "sgate" | "session" | "mgate") && child.text("name") == wanted
        });
        let help = suggestion(&wanted, &receivers, "receive gate");
        let problem = match other {
            Some(other) => Problem::GateType {
                gate: name.into(),
                target: format!("{to}/{wanted}"),
                found: if other.rule.name == "mgate" {
                    "a memory gate"
                } else {
                    "a send gate"
                },
            },
            None => nobody(format!("`{to}` has no gate `{wanted}`")),
        };
        Err(Box::new(("gate", (problem, help))))
    }

    /// Resolves the regions and modules of memory gates.
    pub(super) fn regions(&mut self, modules: &[Module]) {
        for index in 0..self.apps.len() {
            let node = self.places.apps[index];
            for (number, gate) in node.all("mgate").enumerate() {
                let kinds = ["of", "module", "fill"];
                let given: Vec<&str> = kinds
                    .into_iter()
                    .filter(|kind| gate.maybe_text(kind).is_some())
                    .collect();
                if given.len() > 1 {
                    let problem = format!("the memory gate has `{}`", given.join("` and `"));
                    let help = "keep one of them: each defines the region".into();
                    self.fail(gate, given[1], (Problem::Inconsistent(problem), help));
                    continue;
                }
                if gate.maybe_size("size").is_none() && given != ["module"] {
                    let (attribute, element) = ("size".into(), "mgate".into());
                    let help = "add size=\"4KiB\": bytes of the region".into();
                    let problem = Problem::MissingAttribute { attribute, element };
                    self.fail(gate, "name", (problem, help));
                    continue;
                }
                let Some(kind) = given.first() else {
                    continue;
                };
                let name = gate.text(kind);
                let size = self.apps[index].mgates[number].size;
                let done = match *kind {
                    "of" => self.region(index, &name, size).map(|owner| {
                        self.apps[index].mgates[number].of = Some(owner);
                    }),
                    kind => self.module(index, &name, modules).and_then(|module| {
                        let entry = &mut self.apps[index].mgates[number];
                        if kind == "fill" {
                            entry.fill = Some(module);
                        } else if entry.write {
                            let problem =
                                "the gate may write to the module, which is constant".to_owned();
                            let help = "write rights=\"r\", or fill=\"...\" for a copy of its own";
                            return Err((Problem::Inconsistent(problem), help.into()));
                        } else {
                            entry.module = Some(module);
                        }
                        Ok(())
                    }),
                };
                if let Err(failure) = done {
                    self.fail(gate, kind, failure);
                }
            }
        }
    }

    fn region(&self, from: usize, of: &str, size: Size) -> Result<(usize, usize), Failure> {
        let unknown = |help: String| {
            let (kind, name) = ("memory gate", of.to_owned());
            Err((Problem::Unknown { kind, name }, help))
        };
        let (app, gate) = of.split_once('/').unwrap_or((of, ""));
        let index = match self.application(app, self.manager_of(from)) {
            Ok(index) => index,
            Err((Problem::Unknown { .. }, help)) => return unknown(help),
            Err(other) => return Err(other),
        };
        let gates = &self.apps[index].mgates;
        let Some(number) = gates.iter().position(|known| known.name == gate) else {
            let known: Vec<&str> = gates.iter().map(|gate| gate.name.as_str()).collect();
            return unknown(suggestion(gate, &known, "memory gate"));
        };
        let owner = self.places.apps[index].all("mgate").nth(number);
        let has = |kind: &str| owner.is_some_and(|node| node.maybe_text(kind).is_some());
        if has("of") || has("module") {
            let problem = format!("`{of}` has no region of its own");
            let help = match has("module") {
                true => "name the module itself: module=\"...\"",
                false => "name the gate whose region it shares",
            };
            return Err((Problem::Inconsistent(problem), help.into()));
        }
        let what = format!("region `{gate}`");
        self.reach(gates[number].scope, from, index, &what)?;
        if size > gates[number].size {
            let problem = format!("the region of `{of}` is smaller than this gate");
            let help = format!("give at most {}B", gates[number].size.0);
            return Err((Problem::Inconsistent(problem), help));
        }
        Ok((index, number))
    }

    /// The modules of the system.
    pub(super) fn modules(&mut self, programs: Option<&dyn Programs>) -> Vec<Module> {
        let mut modules = Vec::new();
        for node in self.root.all("module") {
            let name = node.text("name");
            let size = node.maybe_size("size");
            let source = match (node.maybe_text("file"), node.maybe_text("folder"), size) {
                (Some(file), None, None) => ModuleSource::File(file),
                (None, Some(folder), Some(size)) => ModuleSource::Folder(folder, size),
                (None, Some(_), None) => {
                    let problem = format!("the image of module `{name}` has no size");
                    let help = "add size=\"1MiB\": files, and room for what is written".into();
                    self.fail(node, "folder", (Problem::Inconsistent(problem), help));
                    continue;
                }
                (file, ..) => {
                    let problem = match file {
                        Some(_) => {
                            format!("module `{name}` has a file, and a folder or a size, too")
                        }
                        None => format!("module `{name}` has neither a file nor a folder"),
                    };
                    let help = "write either file=\"...\" or folder=\"...\" size=\"...\"".into();
                    self.fail(node, "name", (Problem::Inconsistent(problem), help));
                    continue;
                }
            };
            let (attribute, written, kind) = match &source {
                ModuleSource::File(file) => ("file", file, HostKind::File),
                ModuleSource::Folder(folder, _) => ("folder", folder, HostKind::Folder),
            };
            check_host_file(programs, (node, attribute), (written, kind), self.errors);
            self.known(node);
            modules.push(Module { name, source });
        }
        modules
    }

    fn module(&self, app: usize, name: &str, modules: &[Module]) -> Result<usize, Failure> {
        let Some(found) = modules.iter().position(|module| module.name == name) else {
            let known: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
            let problem = Problem::Unknown {
                kind: "module",
                name: name.into(),
            };
            return Err((problem, suggestion(name, &known, "module")));
        };
        let mut nodes = self.root.all("module");
        let sharers = nodes.find(|node| node.text("name") == name);
        if let Some(sharers) = sharers.filter(|node| !self.allows(node, app)) {
            let problem = format!(
                "module `{name}` is for {}, not for `{}`",
                sharers.text("for"),
                self.apps[app].name
            );
            let help = "add its name, its domain's or its manager's to `for` of the <module>";
            return Err((Problem::Inconsistent(problem), help.into()));
        }
        Ok(found)
    }

    /// Whether `for` of an element names an application: itself, its domain, or an enclosing manager. Without `for`, it does.
    pub(super) fn allows(&self, node: &Node, app: usize) -> bool {
        let Some(list) = node.maybe_text("for") else {
            return true;
        };
        let domain = &self.domains[self.apps[app].domain];
        let mut around = self.around(domain.manager);
        let own = [
            &self.apps[app].name,
            &self.apps[app].local,
            &domain.name,
            &domain.local,
        ];
        let is_named = |name: &str| list.split_whitespace().any(|known| known == name);
        own.into_iter().any(|name| is_named(name))
            || around.any(|manager| is_named(&self.managers[manager].name))
    }

    /// Every name in `for` must exist.
    pub(super) fn known(&mut self, node: &Node) {
        let Some(list) = node.maybe_text("for") else {
            return;
        };
        let mut known: Vec<&str> = Vec::new();
        for app in &self.apps {
            known.extend([app.name.as_str(), app.local.as_str()]);
        }
        known.extend(
            self.domains
                .iter()
                .flat_map(|d| [d.name.as_str(), d.local.as_str()]),
        );
        known.extend(self.managers.iter().map(|manager| manager.name.as_str()));
        known.sort_unstable();
        known.dedup();
        let unknown = list.split_whitespace().find(|name| !known.contains(name));
        if let Some(name) = unknown {
            let kind = "app, domain or manager";
            let help = suggestion(name, &known, kind);
            let name = name.to_owned();
            self.fail(node, "for", (Problem::Unknown { kind, name }, help));
        }
    }

    pub(super) fn flows(&mut self) -> Vec<Flow> {
        let mut flows = Vec::new();
        for node in self.root.all("flow") {
            let mut end = |attribute: &str| match self.application(&node.text(attribute), 0) {
                Ok(found) => Some(found),
                Err(failure) => {
                    self.fail(node, attribute, failure);
                    None
                }
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
