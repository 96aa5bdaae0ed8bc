//! The canonical description of a system as the manager needs it.
//!
//! Why it exists: the manager's policy is this file and nothing else. What it deliberately does not know: platforms, variants, bounds;
//! it ignores everything else in the file.
//!
//! The system ends when all applications without `background="true"` have ended.

use crate::quantity;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use bulkhead_abi::syscall::{MAP_READ, MAP_WRITE};
use bulkhead_abi::time::enclose;
use core::fmt;
use roxmltree::{Document, Node};

pub use border::part;

/// An application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// Name.
    pub name: String,
    /// Tile.
    pub tile: u16,
    /// The boot module with its program.
    pub program: String,
    /// Bytes.
    pub memory: u64,
    /// Bytes of that memory for the stack, if the description gives a size.
    pub stack: Option<u64>,
    /// The memory tile of that memory.
    pub memory_tile: u16,
    /// Names and values.
    pub arguments: Vec<(String, String)>,
    /// Bytes per second, and bytes at once.
    pub limit: Option<(u64, u64)>,
    /// Endpoints.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub tables: Option<u64>,
    /// Places for activities on its tile: its own, and those of the activities that it creates.
    pub activities: u64,
    /// Bytes of kernel memory.
    pub kernel_memory: Option<u64>,
    /// How often it is restarted after a failure.
    pub restarts: u32,
    /// The names of its services; a plain `<service/>` has an empty name.
    pub services: Vec<String>,
    /// Nanoseconds in each period, the period in nanoseconds, and the priority.
    pub budget: Option<(u64, u64, u8)>,
    /// Period and deadline in nanoseconds.
    pub task: Option<(u64, u64)>,
    /// Receive gates.
    pub receive: Vec<ReceiveGate>,
    /// Send gates.
    pub send: Vec<SendGate>,
    /// Memory gates.
    pub memory_gates: Vec<MemoryGate>,
    /// Whether the system waits for its end.
    pub foreground: bool,
    /// Whether it drives its tile's device.
    pub device: bool,
    /// Whether its heap is mapped page by page on first use.
    pub lazy: bool,
    /// The application that gives it the pages of its heap.
    pub pager: Option<String>,
    /// Its priority as a caller of the kernel: 2 in a domain of criticality A, 1 in one of criticality B, otherwise 0.
    pub priority: u8,
}

impl App {
    /// Its own processor time, if it has any.
    pub fn time(&self) -> Option<Time> {
        self.budget.map(|(budget, period, priority)| Time {
            budget,
            period,
            priority,
            idle: true,
        })
    }

    /// The number of the service that a receive gate belongs to: the gates of service `x` are called `x-priority-0` and so on.
    pub fn service_of(&self, gate: &str) -> Option<u16> {
        let of = |name: &str| -> Option<()> {
            let rest = match name {
                "" => gate,
                name => gate.strip_prefix(name)?.strip_prefix('-')?,
            };
            let number = rest.strip_prefix("priority-")?;
            number.bytes().all(|b| b.is_ascii_digit()).then_some(())
        };
        let mut services = self.services.iter();
        services
            .position(|name| of(name).is_some())
            .map(|s| s as u16)
    }

    /// The sources that the application provides.
    pub fn sources(&self, app: usize) -> impl Iterator<Item = Source> + use<> {
        // An application without services has gates, too.
        let services = self.services.len().max(1) as u16;
        (0..services).map(move |service| Source::App { app, service })
    }
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
    /// Most messages outstanding.
    pub credits: u8,
    /// Label.
    pub label: u64,
    /// The gate is a session: the service starts first.
    pub session: bool,
    /// Name of the receiving application, for reports.
    pub receiver: String,
    /// Name of the service, if it is a session and the service has one.
    pub service: Option<String>,
    /// How long its application waits for the receiver before its start, in nanoseconds.
    pub patience: u64,
}

/// The receiver of a send gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An application of the same manager and the index of its gate.
    App {
        /// Index of the application.
        app: usize,
        /// Index of its gate.
        gate: usize,
        /// Number of the service that the gate belongs to, or 0.
        service: u16,
    },
    /// An application below another manager, by an index into [`Subsystem::exports`].
    Export(usize),
    /// A receiver outside this manager; this selector holds the capability to send to it.
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
    /// Memory tile of the region.
    pub memory_tile: u16,
    /// `APP/GATE` of the region that it shares.
    pub of: Option<String>,
    /// The module that it shows; a `size` of 0 then means the whole module.
    pub module: Option<String>,
    /// The module that supplies the region's initial contents.
    pub fill: Option<String>,
    /// The capability for its region, if it comes from above.
    pub import: Option<u16>,
}

impl MemoryGate {
    /// Whether the gate has a region of its own.
    pub fn is_own(&self) -> bool {
        self.of.is_none() && self.module.is_none()
    }
}

/// Processor time of an application, or of everything below a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Nanoseconds.
    pub budget: u64,
    /// In each period of this many nanoseconds.
    pub period: u64,
    /// The highest priority.
    pub priority: u8,
    /// Whether it may also have applications without a budget, which come last.
    pub idle: bool,
}

/// Bounds on a tile for everything below a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLimit {
    /// The tile.
    pub tile: u16,
    /// Bytes per second, and bytes at once.
    pub noc: Option<(u64, u64)>,
    /// Endpoints.
    pub endpoints: Option<u64>,
    /// Pages for page tables.
    pub tables: Option<u64>,
    /// Places for activities.
    pub activities: Option<u64>,
    /// Windows onto memory.
    pub windows: Option<u64>,
}

/// What is wrong with the description. The runner checks a description before the boot, so this appears only if the description was made
/// in another way.
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

/// A subordinate manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Name.
    pub name: String,
    /// Tile.
    pub tile: u16,
    /// The boot module with its program.
    pub program: String,
    /// Bytes.
    pub memory: u64,
    /// All applications below it, including those of its own subsystems.
    pub inner: Vec<App>,
    /// Tile and bytes of each manager below it.
    pub managers: Vec<(u16, u64)>,
    /// Its part of the description.
    pub text: String,
    /// What it gets from outside: gates that the description connects across its border.
    pub imports: Vec<Import>,
    /// The boot modules needed below it, sorted by name.
    pub modules: Vec<String>,
    /// Its bounds on tiles.
    pub limits: Vec<TileLimit>,
    /// Processor time on each tile where something below it has some, or where its own `<cpu>` grants some.
    pub times: Vec<(u16, Time)>,
    /// Bytes of kernel memory.
    pub kernel_memory: u64,
    /// Bytes of memory for everything below it, if the description gives a size.
    pub user_memory: Option<u64>,
}

impl Manager {
    /// Whether the system waits for its end.
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
    /// The capability to send from this gate, to be derived from the receiver's.
    Send {
        /// The receiver.
        to: Target,
        /// Most messages outstanding.
        credits: u8,
        /// Label.
        label: u64,
        /// Bytes of the receiver's slots.
        slot_size: u16,
        /// The gate is a session: the service behind it is needed, too.
        session: bool,
    },
    /// The capability to receive at this gate: an index into [`Subsystem::exports`].
    Receive(usize),
    /// Memory of a region that another manager makes or shares.
    Memory {
        /// The region: `APP/GATE` of its owner.
        of: String,
        /// The capability, if it comes from above.
        import: Option<u16>,
        /// Bytes and rights; the owner gets the whole region.
        part: Option<(u64, u8)>,
    },
}

/// A receive gate below a manager to which applications outside it send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The application.
    pub app: String,
    /// The gate.
    pub gate: ReceiveGate,
}

/// A region of an application below a manager that applications outside it share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// `APP/GATE`.
    pub of: String,
    /// The subordinate manager whose memory it takes.
    pub below: usize,
    /// Its bytes, memory tile and contents.
    pub gate: MemoryGate,
}

/// What one manager is responsible for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subsystem {
    /// Its own applications.
    pub apps: Vec<App>,
    /// The managers below it.
    pub managers: Vec<Manager>,
    /// Receive gates in other subsystems that it makes because more than one manager needs them.
    pub exports: Vec<Export>,
    /// Which of its imports are gates: the number of the import, and the application that receives at the gate.
    pub offers: Vec<(usize, Source)>,
    /// Regions in other subsystems that it makes because more than one manager needs them.
    pub regions: Vec<Region>,
    /// The boot modules that it was given, and their selectors; the root manager has all modules.
    pub modules: Vec<(String, u16)>,
}

/// The owner of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// A service of an application of this manager.
    App {
        /// Index of the application.
        app: usize,
        /// Number of the service.
        service: u16,
    },
    /// An application below another manager, by an index into [`Subsystem::exports`].
    Export(usize),
    /// A receiver outside, by the selector of the capability to send to it.
    Import(u16),
}

impl From<Target> for Source {
    fn from(target: Target) -> Self {
        match target {
            Target::App { app, service, .. } => Source::App { app, service },
            Target::Export(index) => Source::Export(index),
            Target::Import(selector) => Source::Import(selector),
        }
    }
}

/// What a manager got from above: application, gate, selector, bytes of the receiver's slots.
type Got = (String, String, u16, u16);

/// Reads a description: the whole one, or one that [`part`] made.
///
/// # Errors
/// The mistake and its place.
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
    let mut modules = Vec::new();
    for node in root
        .children()
        .filter(|n| is_part && n.has_tag_name("module"))
    {
        let selector = value(&node, "selector", quantity::number)?;
        modules.push((attribute(&node, "name")?.into(), selector));
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
        regions: Vec::new(),
        modules,
    };
    for node in &below {
        system.managers.push(manager(text, node)?);
    }
    for (app, node) in own.iter().enumerate() {
        let name = system.apps[app].name.clone();
        for gate in &mut system.apps[app].receive {
            gate.import = find(&got, &name, &gate.name).map(|g| g.2);
        }
        for gate in &mut system.apps[app].memory_gates {
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
        system.shared(&got, index);
    }
    for (number, (app, gate, ..)) in got.iter().enumerate() {
        let own = system.apps.iter().position(|a| a.name == *app);
        let own = own.filter(|own| system.apps[*own].receive.iter().any(|g| g.name == *gate));
        let mut exports = system.exports.iter();
        let export = exports.position(|e| e.app == *app && e.gate.name == *gate);
        let own = own.map(|app| Source::App {
            app,
            service: system.apps[app].service_of(gate).unwrap_or(0),
        });
        let source = own.or(export.map(Source::Export));
        system.offers.extend(source.map(|source| (number, source)));
    }
    Ok(system)
}

fn find<'a>(got: &'a [Got], app: &str, gate: &str) -> Option<&'a Got> {
    got.iter().find(|(a, g, ..)| a == app && g == gate)
}

/// Whether an element of an application makes it a sender.
fn sends(node: &Node) -> bool {
    node.has_tag_name("sgate") || node.has_tag_name("session")
}

/// The name of the receive gate that a sending element leads to.
fn leads_to(node: &Node) -> Result<String> {
    match node.has_tag_name("session") {
        true => Ok(match node.attribute("service") {
            Some(service) => {
                alloc::format!("{service}-priority-{}", attribute(node, "priority")?)
            }
            None => alloc::format!("priority-{}", attribute(node, "priority")?),
        }),
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

/// The traffic that a limit allows, if it bounds traffic.
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
    let mut modules = BTreeSet::new();
    for app in &apps {
        modules.insert(app.program.clone());
        let data = app.memory_gates.iter();
        let data = data.filter_map(|gate| gate.module.as_ref().or(gate.fill.as_ref()));
        modules.extend(data.map(|name| data_module(name)));
    }
    for below in node
        .descendants()
        .filter(|n| n.has_tag_name("manager") && n != node)
    {
        modules.insert(attribute(&below, "program")?.into());
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
                activities: maybe(&limit, "activities", quantity::number)?,
                windows: maybe(&limit, "windows", quantity::number)?,
            });
        }
    }
    let Some(kernel_memory) = kernel_memory else {
        return mistake(node, "<manager> without its kernel memory".into());
    };
    let tiles = apps.iter().map(|app| app.tile);
    let tiles: BTreeSet<u16> = tiles.chain(managers.iter().map(|below| below.0)).collect();
    let mut times = Vec::new();
    for tile in tiles {
        times.extend(time_below(node, tile)?.map(|time| (tile, time)));
    }
    Ok(Manager {
        limits,
        times,
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
        modules: modules.into_iter().collect(),
    })
}

/// Whether anything below a manager is on a tile.
fn is_on(node: &Node, tile: u16) -> bool {
    let number = |n: Node| n.attribute("tile").and_then(|text| text.parse().ok());
    node.descendants().any(|n| {
        let counts = n.has_tag_name("app") || n.has_tag_name("manager") && n != *node;
        counts && number(n) == Some(tile)
    })
}

/// The processor time of everything below a manager on a tile: its own `<cpu>`, or the time that the shares below it can be derived
/// from.
fn time_below(node: &Node, tile: u16) -> Result<Option<Time>> {
    if !is_on(node, tile) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for child in node.children() {
        if child.has_tag_name("manager") {
            parts.extend(time_below(&child, tile)?);
        }
        for app_node in child.children().filter(|n| n.has_tag_name("app")) {
            let app = app(&app_node)?;
            parts.extend(app.time().filter(|_| app.tile == tile));
        }
    }
    let priority = parts.iter().map(|part| part.priority).max().unwrap_or(0);
    if let Some(cpu) = node.children().find(|n| n.has_tag_name("cpu")) {
        return Ok(Some(Time {
            budget: value(&cpu, "quota", quantity::time)?,
            period: value(&cpu, "period", quantity::time)?,
            priority: maybe(&cpu, "priority", quantity::number)?.unwrap_or(priority),
            idle: false,
        }));
    }
    let all = enclose(parts.iter().map(|part| (part.budget, part.period)));
    Ok(all.map(|(budget, period)| Time {
        budget,
        period,
        priority,
        idle: true,
    }))
}

/// The boot module of a `<module>`; no program has such a name.
pub fn data_module(name: &str) -> String {
    alloc::format!("data:{name}")
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
        stack: maybe(node, "stack", quantity::size)?,
        memory_tile: value(node, "memory-tile", quantity::number)?,
        arguments: Vec::new(),
        limit: None,
        endpoints: None,
        tables: None,
        activities: 1,
        kernel_memory: None,
        restarts: 0,
        services: Vec::new(),
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
                app.activities = maybe(&child, "activities", quantity::number)?.unwrap_or(1);
                app.kernel_memory = maybe(&child, "kernel-memory", quantity::size)?;
            }
            "service" => {
                app.restarts = maybe(&child, "restarts", quantity::number)?.unwrap_or(0);
                let name = child.attribute("name").unwrap_or("");
                app.services.push(name.into());
            }
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
                import: None,
            }),
            _ => {}
        }
    }
    Ok(app)
}

mod border;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_fuzz;
