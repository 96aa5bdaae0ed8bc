//! The canonical description of a system as the manager needs it.
//!
//! Why it exists: the manager's policy is this file and nothing else. What it deliberately does not know: platforms,
//! variants, bounds; it ignores what it needs not.
//!
//! The system has ended when all applications have that are not marked with `background="true"`.

use crate::quantity;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::syscall::{MAP_READ, MAP_WRITE};
use core::fmt;
use roxmltree::{Document, Node};

/// An application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Name.
    pub name: String,
    /// Tile.
    pub tile: u16,
    /// Boot module with its program.
    pub program: String,
    /// Bytes.
    pub memory: u64,
    /// Memory tile that they come from.
    pub memory_tile: u16,
    /// Names and values.
    pub arguments: Vec<(String, String)>,
    /// Bytes a second, bytes at once.
    pub limit: Option<(u64, u64)>,
    /// Endpoints.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub tables: Option<u64>,
    /// Bytes of kernel memory.
    pub kernel_memory: Option<u64>,
    /// How often it is started again after a failure.
    pub restarts: u32,
    /// Nanoseconds in each period of nanoseconds, and its priority.
    pub budget: Option<(u64, u64, u8)>,
    /// Period and deadline in nanoseconds.
    pub task: Option<(u64, u64)>,
    /// Receive gates.
    pub receive: Vec<ReceiveGate>,
    /// Send gates.
    pub send: Vec<SendGate>,
    /// Memory gates.
    pub memory_gates: Vec<MemoryGate>,
    /// Whether the system ends only after it.
    pub foreground: bool,
    /// Whether it drives its tile's device.
    pub device: bool,
    /// Whether its heap is mapped page by page when it is used.
    pub lazy: bool,
    /// The application that gives it the pages of its heap.
    pub pager: Option<String>,
    /// Its priority as a caller of the kernel: 2 in a domain of criticality A, 1 of B, otherwise 0.
    pub priority: u8,
}

/// A receive gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceiveGate {
    /// Name.
    pub name: String,
    /// Slots.
    pub slots: u8,
    /// Bytes of a slot.
    pub slot_size: u16,
    /// The capability, if it comes from above.
    pub import: Option<u16>,
}

/// A send gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendGate {
    /// Name.
    pub name: String,
    /// Where it leads.
    pub to: Target,
    /// Bytes of the receiver's slots.
    pub slot_size: u16,
    /// Messages under way at most.
    pub credits: u8,
    /// Label.
    pub label: u64,
    /// It is a session: the service starts first.
    pub session: bool,
}

/// The receiver of a send gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An application of the same manager, and the index of its gate.
    App {
        /// Index of the application.
        app: usize,
        /// Index of its gate.
        gate: usize,
    },
    /// An application below another manager: an index into [`Subsystem::exports`].
    Export(usize),
    /// Outside of what this manager knows: the capability to send is here.
    Import(u16),
}

/// A memory gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGate {
    /// Name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// `abi::syscall::MAP_READ`, `MAP_WRITE`.
    pub rights: u8,
    /// Memory tile that holds it.
    pub memory_tile: u16,
    /// `APP/GATE` whose region it shares.
    pub of: Option<String>,
    /// The module that it shows; then `size` may be 0, for all of it.
    pub module: Option<String>,
    /// The module whose contents the region begins with.
    pub fill: Option<String>,
}

/// Bounds of what is below a manager on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLimit {
    /// The tile.
    pub tile: u16,
    /// Bytes a second, bytes at once.
    pub noc: Option<(u64, u64)>,
    /// Endpoints.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub tables: Option<u64>,
}

/// What is wrong with the description. The runner checks it before the boot, so this is seen only if somebody else made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Line, from 1 on.
    pub line: u32,
    /// What.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "system.xml, line {}: {}", self.line, self.what)
    }
}

type Result<T> = core::result::Result<T, Mistake>;

/// A manager below this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Name.
    pub name: String,
    /// Tile.
    pub tile: u16,
    /// Boot module with its program.
    pub program: String,
    /// Bytes.
    pub memory: u64,
    /// All applications below it, in its own subsystems, too.
    pub inner: Vec<App>,
    /// Tile and bytes of the managers below it.
    pub managers: Vec<(u16, u64)>,
    /// Its part of the description.
    pub text: String,
    /// What it gets from outside: gates that the description connects across its border.
    pub imports: Vec<Import>,
    /// Its bounds on tiles.
    pub limits: Vec<TileLimit>,
    /// Nanoseconds in each period of nanoseconds, on each of its tiles.
    pub cpu: Option<(u64, u64)>,
    /// Bytes of kernel memory.
    pub kernel_memory: u64,
    /// Bytes of memory for what is below it, if the description says so.
    pub user_memory: Option<u64>,
}

impl Manager {
    /// Whether the system ends only after it.
    pub fn foreground(&self) -> bool {
        self.inner.iter().any(|app| app.foreground)
    }
}

/// What a manager gets for a gate of an application below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The application.
    pub app: String,
    /// Its gate.
    pub gate: String,
    /// What it is.
    pub kind: ImportKind,
}

/// The kinds of imports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportKind {
    /// The capability to send from this gate, to be made from that of the receiver.
    Send {
        /// The receiver.
        to: Target,
        /// Messages under way at most.
        credits: u8,
        /// Label.
        label: u64,
        /// Bytes of the receiver's slots.
        slot_size: u16,
        /// It is a session: the service behind it is wanted, too.
        session: bool,
    },
    /// The capability to receive at this gate: an index into [`Subsystem::exports`].
    Receive(usize),
}

/// A receive gate below a manager that others send to from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The application.
    pub app: String,
    /// The gate.
    pub gate: ReceiveGate,
}

/// What one manager is responsible for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subsystem {
    /// Its own applications.
    pub apps: Vec<App>,
    /// The managers below it.
    pub managers: Vec<Manager>,
    /// Receive gates of others that it makes, because more than one manager needs them.
    pub exports: Vec<Export>,
    /// Which of its imports are gates of whom: the number of the import, and who receives there.
    pub offers: Vec<(usize, Source)>,
}

/// Who has a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// An application of this manager.
    App(usize),
    /// An application below another manager, by an index into [`Subsystem::exports`].
    Export(usize),
    /// Somebody outside, by the selector of the capability to send to him.
    Import(u16),
}

impl From<Target> for Source {
    fn from(target: Target) -> Self {
        match target {
            Target::App { app, .. } => Source::App(app),
            Target::Export(index) => Source::Export(index),
            Target::Import(selector) => Source::Import(selector),
        }
    }
}

/// What a manager got from above: application, gate, selector, bytes of the receiver's slots.
type Got = (String, String, u16, u16);

/// Reads a description: the whole of it, or what [`part`] made.
///
/// # Errors
/// What is wrong, and where.
pub fn read(text: &str) -> Result<Subsystem> {
    let document = Document::parse(text).map_err(|error| Mistake {
        line: error.pos().row,
        what: alloc::format!("{error}"),
    })?;
    let root = document.root_element();
    let is_part = root.has_tag_name("part");
    let top = match is_part {
        true => root.children().find(|n| n.has_tag_name("manager")),
        false => Some(root),
    };
    let Some(top) = top else {
        return mistake(&root, "a part without <manager>".into());
    };
    let mut got: Vec<Got> = Vec::new();
    for node in root.children().filter(|n| n.has_tag_name("import")) {
        got.push((
            attribute(&node, "app")?.into(),
            attribute(&node, "gate")?.into(),
            value(&node, "selector", quantity::number)?,
            value(&node, "slot-size", quantity::number)?,
        ));
    }
    let domains = top.children().filter(|n| n.has_tag_name("domain"));
    let own: Vec<Node> = domains
        .flat_map(|d| d.children().filter(|n| n.has_tag_name("app")))
        .collect();
    let below: Vec<Node> = top
        .children()
        .filter(|n| n.has_tag_name("manager"))
        .collect();
    let mut system = Subsystem {
        apps: own.iter().map(app).collect::<Result<_>>()?,
        managers: Vec::new(),
        exports: Vec::new(),
        offers: Vec::new(),
    };
    for node in &below {
        system.managers.push(manager(text, node)?);
    }
    for (app, node) in own.iter().enumerate() {
        let name = system.apps[app].name.clone();
        for gate in &mut system.apps[app].receive {
            gate.import = find(&got, &name, &gate.name).map(|g| g.2);
        }
        for gate in node.children().filter(sends) {
            let gate = system.send_gate(&got, &name, &gate, None)?;
            system.apps[app].send.push(gate);
        }
    }
    for (index, node) in below.iter().enumerate() {
        for app in node.descendants().filter(|n| n.has_tag_name("app")) {
            system.border(&got, index, &app)?;
        }
    }
    for (number, (app, gate, ..)) in got.iter().enumerate() {
        let own = system.apps.iter().position(|a| a.name == *app);
        let own = own.filter(|own| system.apps[*own].receive.iter().any(|g| g.name == *gate));
        let mut exports = system.exports.iter();
        let export = exports.position(|e| e.app == *app && e.gate.name == *gate);
        let source = own.map(Source::App).or(export.map(Source::Export));
        system.offers.extend(source.map(|source| (number, source)));
    }
    Ok(system)
}

fn find<'a>(got: &'a [Got], app: &str, gate: &str) -> Option<&'a Got> {
    got.iter().find(|(a, g, ..)| a == app && g == gate)
}

/// Whether an element of an application is one by which it sends.
fn sends(node: &Node) -> bool {
    node.has_tag_name("sgate") || node.has_tag_name("session")
}

/// The name of the receive gate that such an element leads to.
fn leads_to(node: &Node) -> Result<String> {
    match node.has_tag_name("session") {
        true => Ok(alloc::format!("priority-{}", attribute(node, "priority")?)),
        false => Ok(attribute(node, "gate")?.into()),
    }
}

/// An attribute that may be missing.
fn maybe<T>(node: &Node, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    match node.attribute(name) {
        Some(_) => value(node, name, parse).map(Some),
        None => Ok(None),
    }
}

/// The traffic that a limit allows, if it says so.
fn traffic(node: &Node) -> Result<Option<(u64, u64)>> {
    match maybe(node, "noc", quantity::rate)? {
        Some(rate) => Ok(Some((rate, value(node, "burst", quantity::size)?))),
        None => Ok(None),
    }
}

fn manager(text: &str, node: &Node) -> Result<Manager> {
    let inner = node.descendants().filter(|n| n.has_tag_name("app"));
    let mut apps = Vec::new();
    for app_node in inner {
        apps.push(app(&app_node)?);
    }
    let mut managers = Vec::new();
    for below in node
        .descendants()
        .filter(|n| n.has_tag_name("manager") && n != node)
    {
        let tile = value(&below, "tile", quantity::number)?;
        managers.push((tile, value(&below, "memory", quantity::size)?));
    }
    let (mut limits, mut kernel_memory, mut user_memory) = (Vec::new(), None, None);
    for limit in node.children().filter(|n| n.has_tag_name("limit")) {
        kernel_memory = kernel_memory.or(maybe(&limit, "kernel-memory", quantity::size)?);
        user_memory = user_memory.or(maybe(&limit, "memory", quantity::size)?);
        if let Some(tile) = maybe(&limit, "tile", quantity::number)? {
            limits.push(TileLimit {
                tile,
                noc: traffic(&limit)?,
                endpoints: maybe(&limit, "endpoints", quantity::number)?,
                tables: maybe(&limit, "page-tables", quantity::number)?,
            });
        }
    }
    let Some(kernel_memory) = kernel_memory else {
        return mistake(node, "<manager> without its kernel memory".into());
    };
    let cpu = match node.children().find(|n| n.has_tag_name("cpu")) {
        Some(cpu) => {
            let quota = value(&cpu, "quota", quantity::time)?;
            Some((quota, value(&cpu, "period", quantity::time)?))
        }
        None => None,
    };
    Ok(Manager {
        limits,
        cpu,
        kernel_memory,
        user_memory,
        name: attribute(node, "name")?.into(),
        tile: value(node, "tile", quantity::number)?,
        program: attribute(node, "program")?.into(),
        memory: value(node, "memory", quantity::size)?,
        inner: apps,
        managers,
        text: text[node.range()].into(),
        imports: Vec::new(),
    })
}

impl Subsystem {
    /// The send gate of an application; `inside` is the manager that it is below.
    fn send_gate(
        &mut self,
        got: &[Got],
        app: &str,
        node: &Node,
        inside: Option<usize>,
    ) -> Result<SendGate> {
        let name: String = attribute(node, "name")?.into();
        let (to, gate) = (attribute(node, "to")?, leads_to(node)?);
        let own = self.apps.iter().position(|a| a.name == to);
        let place = |app: &App| app.receive.iter().position(|g| g.name == gate);
        let (target, slot_size) = if let Some((_, _, selector, size)) = find(got, app, &name) {
            (Target::Import(*selector), *size)
        } else if let Some((app, index)) = own.and_then(|o| Some((o, place(&self.apps[o])?))) {
            let size = self.apps[app].receive[index].slot_size;
            (Target::App { app, gate: index }, size)
        } else if let Some((below, inner, index)) =
            self.managers.iter().enumerate().find_map(|(m, manager)| {
                let inner = manager.inner.iter().position(|a| a.name == to)?;
                Some((m, inner, place(&manager.inner[inner])?))
            })
            && Some(below) != inside
        {
            let receive = self.managers[below].inner[inner].receive[index].clone();
            let size = receive.slot_size;
            (Target::Export(self.export(got, below, to, receive)), size)
        } else {
            return mistake(node, alloc::format!("there is no gate `{gate}` of `{to}`"));
        };
        Ok(SendGate {
            name,
            to: target,
            slot_size,
            credits: value(node, "credits", quantity::credits)?,
            label: value(node, "label", quantity::number)?,
            session: node.has_tag_name("session"),
        })
    }

    /// The receive gate below a manager is made here, unless it comes from above, and given to it.
    fn export(&mut self, got: &[Got], below: usize, app: &str, mut gate: ReceiveGate) -> usize {
        let mut all = self.exports.iter();
        if let Some(known) = all.position(|e| e.app == app && e.gate.name == gate.name) {
            return known;
        }
        self.managers[below].imports.push(Import {
            app: app.into(),
            gate: gate.name.clone(),
            kind: ImportKind::Receive(self.exports.len()),
        });
        gate.import = find(got, app, &gate.name).map(|g| g.2);
        self.exports.push(Export {
            app: app.into(),
            gate,
        });
        self.exports.len() - 1
    }

    /// What an application below a manager needs from outside of it.
    fn border(&mut self, got: &[Got], below: usize, node: &Node) -> Result<()> {
        let name = attribute(node, "name")?;
        let inner = self.managers[below].inner.iter();
        let gates = inner.filter(|a| a.name == name);
        let gates: Vec<ReceiveGate> = gates.flat_map(|a| a.receive.clone()).collect();
        for gate in gates {
            if find(got, name, &gate.name).is_some() {
                self.export(got, below, name, gate);
            }
        }
        for gate in node.children().filter(sends) {
            let to = attribute(&gate, "to")?;
            let is_inside = self.managers[below].inner.iter().any(|a| a.name == to);
            let gate_name = attribute(&gate, "name")?;
            if is_inside && find(got, name, gate_name).is_none() {
                continue;
            }
            let gate = self.send_gate(got, name, &gate, Some(below))?;
            self.managers[below].imports.push(Import {
                app: name.into(),
                gate: gate.name.clone(),
                kind: ImportKind::Send {
                    to: gate.to,
                    credits: gate.credits,
                    label: gate.label,
                    slot_size: gate.slot_size,
                    session: gate.session,
                },
            });
        }
        Ok(())
    }
}

/// The description for a manager below: its part, and the selectors of what it gets, in the order of its imports.
pub fn part(manager: &Manager, selectors: &[u16]) -> String {
    let mut text = String::from("<part>");
    for (import, selector) in manager.imports.iter().zip(selectors) {
        let slot_size = match import.kind {
            ImportKind::Send { slot_size, .. } => slot_size,
            _ => 0,
        };
        text += &alloc::format!(
            "<import app=\"{}\" gate=\"{}\" selector=\"{selector}\" slot-size=\"{slot_size}\"/>",
            import.app,
            import.gate,
        );
    }
    text += &manager.text;
    text += "</part>";
    text
}

fn mistake<T>(node: &Node, what: String) -> Result<T> {
    let position = node.document().text_pos_at(node.range().start);
    Err(Mistake {
        line: position.row,
        what,
    })
}

fn attribute<'a>(node: &Node<'a, '_>, name: &str) -> Result<&'a str> {
    match node.attribute(name) {
        Some(value) => Ok(value),
        None => mistake(
            node,
            alloc::format!("<{}> lacks `{name}`", node.tag_name().name()),
        ),
    }
}

fn value<T>(node: &Node, name: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let text = attribute(node, name)?;
    match parse(text) {
        Some(value) => Ok(value),
        None => mistake(node, alloc::format!("`{name}=\"{text}\"` is not canonical")),
    }
}

fn app(node: &Node) -> Result<App> {
    let mut app = App {
        name: attribute(node, "name")?.into(),
        tile: value(node, "tile", quantity::number)?,
        program: attribute(node, "program")?.into(),
        memory: value(node, "memory", quantity::size)?,
        memory_tile: value(node, "memory-tile", quantity::number)?,
        arguments: Vec::new(),
        limit: None,
        endpoints: None,
        tables: None,
        kernel_memory: None,
        restarts: 0,
        budget: None,
        task: None,
        receive: Vec::new(),
        send: Vec::new(),
        memory_gates: Vec::new(),
        foreground: node.attribute("background") != Some("true"),
        device: node.attribute("device").is_some(),
        lazy: node.attribute("heap") == Some("lazy"),
        pager: node.attribute("pager").map(String::from),
        priority: match node.parent().and_then(|d| d.attribute("criticality")) {
            Some("A") => 2,
            Some("B") => 1,
            _ => 0,
        },
    };
    for child in node.children().filter(Node::is_element) {
        match child.tag_name().name() {
            "argument" => app.arguments.push((
                attribute(&child, "name")?.into(),
                attribute(&child, "value")?.into(),
            )),
            "limit" => {
                app.limit = traffic(&child)?;
                app.endpoints = maybe(&child, "endpoints", quantity::number)?;
                app.tables = maybe(&child, "page-tables", quantity::number)?;
                app.kernel_memory = maybe(&child, "kernel-memory", quantity::size)?;
            }
            "service" => app.restarts = maybe(&child, "restarts", quantity::number)?.unwrap_or(0),
            "cpu" => {
                let quota = value(&child, "quota", quantity::time)?;
                let priority = value(&child, "priority", |text| text.parse().ok())?;
                app.budget = Some((quota, value(&child, "period", quantity::time)?, priority));
            }
            "task" => {
                let period = value(&child, "period", quantity::time)?;
                app.task = Some((period, value(&child, "deadline", quantity::time)?));
            }
            "rgate" => app.receive.push(ReceiveGate {
                name: attribute(&child, "name")?.into(),
                slots: value(&child, "slots", quantity::number)?,
                slot_size: value(&child, "slot-size", |text| {
                    quantity::size(text)?.try_into().ok()
                })?,
                import: None,
            }),
            "mgate" => app.memory_gates.push(MemoryGate {
                name: attribute(&child, "name")?.into(),
                size: maybe(&child, "size", quantity::size)?.unwrap_or(0),
                rights: value(&child, "rights", |text| match text {
                    "r" => Some(MAP_READ),
                    "w" => Some(MAP_WRITE),
                    "rw" => Some(MAP_READ | MAP_WRITE),
                    _ => None,
                })?,
                memory_tile: value(&child, "memory-tile", quantity::number)?,
                of: child.attribute("of").map(Into::into),
                module: child.attribute("module").map(Into::into),
                fill: child.attribute("fill").map(Into::into),
            }),
            _ => {}
        }
    }
    Ok(app)
}

#[cfg(test)]
mod tests;
