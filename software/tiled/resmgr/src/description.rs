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
    /// Whether its heap is mapped page by page when it is used.
    pub lazy: bool,
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
    };
    for node in &below {
        system.managers.push(manager(text, node)?);
    }
    for (app, node) in own.iter().enumerate() {
        let name = system.apps[app].name.clone();
        for gate in &mut system.apps[app].receive {
            gate.import = find(&got, &name, &gate.name).map(|g| g.2);
        }
        for gate in node.children().filter(|n| n.has_tag_name("sgate")) {
            let gate = system.send_gate(&got, &name, &gate, None)?;
            system.apps[app].send.push(gate);
        }
    }
    for (index, node) in below.iter().enumerate() {
        for app in node.descendants().filter(|n| n.has_tag_name("app")) {
            system.border(&got, index, &app)?;
        }
    }
    Ok(system)
}

fn find<'a>(got: &'a [Got], app: &str, gate: &str) -> Option<&'a Got> {
    got.iter().find(|(a, g, ..)| a == app && g == gate)
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
    Ok(Manager {
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
        let (to, gate) = (attribute(node, "to")?, attribute(node, "gate")?);
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
            credits: value(node, "credits", quantity::number)?,
            label: value(node, "label", quantity::number)?,
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
        for gate in node.children().filter(|n| n.has_tag_name("sgate")) {
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
        budget: None,
        task: None,
        receive: Vec::new(),
        send: Vec::new(),
        memory_gates: Vec::new(),
        foreground: node.attribute("background") != Some("true"),
        lazy: node.attribute("heap") == Some("lazy"),
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
                let rate = value(&child, "noc", quantity::rate)?;
                app.limit = Some((rate, value(&child, "burst", quantity::size)?));
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
                size: value(&child, "size", quantity::size)?,
                rights: value(&child, "rights", |text| match text {
                    "r" => Some(MAP_READ),
                    "w" => Some(MAP_WRITE),
                    "rw" => Some(MAP_READ | MAP_WRITE),
                    _ => None,
                })?,
                memory_tile: value(&child, "memory-tile", quantity::number)?,
                of: child.attribute("of").map(Into::into),
            }),
            _ => {}
        }
    }
    Ok(app)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"<system name="x" platform="p" duration="50000000ns" manager-tile="1" manager-memory="2097152B">
  <domain name="control" criticality="A">
    <app name="sensor" tile="2" program="control/sensor" memory="262144B" memory-tile="8">
      <argument name="samples" value="50"/>
      <task period="1000000ns" deadline="400000ns" misses="0"/>
      <sgate name="controller" to="controller" gate="input" credits="2" label="7"/>
    </app>
    <app name="controller" tile="3" program="control/controller" memory="262144B" memory-tile="8">
      <rgate name="input" slots="4" slot-size="256B"/>
    </app>
  </domain>
  <manager name="sub" tile="4" program="tiled/resmgr" memory="2097152B">
    <domain name="logger" criticality="D">
      <app name="hog" tile="5" program="adversary/memcpy" memory="1048576B" memory-tile="8" background="true">
        <limit noc="8388608B/s" burst="4096B"/>
        <cpu quota="2500000ns" period="10000000ns" priority="3"/>
        <mgate name="buffer" size="8192B" rights="rw" memory-tile="8"/>
      </app>
    </domain>
  </manager>
  <flow name="loop" from="sensor" to="controller"/>
</system>"#;

    #[test]
    fn everything_is_found() {
        let system = read(TEXT).unwrap();
        let mut apps = system.apps;
        assert_eq!(apps.len(), 2);
        assert_eq!(system.managers.len(), 1);
        let below = &system.managers[0];
        assert_eq!(
            (below.name.as_str(), below.tile, below.foreground()),
            ("sub", 4, false)
        );
        apps.extend(below.inner.clone());
        assert_eq!(apps[0].task, Some((1_000_000, 400_000)));
        assert_eq!(
            apps[0].send[0],
            SendGate {
                name: "controller".into(),
                to: Target::App { app: 1, gate: 0 },
                slot_size: 256,
                credits: 2,
                label: 7
            }
        );
        assert_eq!(
            apps[1].receive[0],
            ReceiveGate {
                name: "input".into(),
                slots: 4,
                slot_size: 256,
                import: None,
            }
        );
        assert_eq!(apps[2].limit, Some((8 << 20, 4096)));
        assert_eq!(apps[2].budget, Some((2_500_000, 10_000_000, 3)));
        assert_eq!(apps[2].memory_gates[0].rights, 3);
        let foreground: Vec<bool> = apps.iter().map(|a| a.foreground).collect();
        assert_eq!(foreground, [true, true, false]);
    }

    #[test]
    fn mistakes_have_lines() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("<system>\n<domain><app/></domain></system>"),
            "system.xml, line 2: <app> lacks `name`"
        );
        let text = TEXT.replace("262144B", "256KiB");
        assert_eq!(
            error(&text),
            "system.xml, line 3: `memory=\"256KiB\"` is not canonical"
        );
        let text = TEXT.replace("to=\"controller\" gate", "to=\"nobody\" gate");
        assert_eq!(
            error(&text),
            "system.xml, line 6: there is no gate `input` of `nobody`"
        );
        assert!(error("<system>").starts_with("system.xml, line 1:"));
    }

    const NESTED: &str = r#"<system name="x">
  <domain name="d"><app name="a" tile="1" program="p" memory="4096B" memory-tile="8">
    <rgate name="in" slots="2" slot-size="64B"/>
    <sgate name="down" to="c" gate="in" credits="1" label="3"/>
  </app></domain>
  <manager name="m" tile="2" program="tiled/resmgr" memory="65536B">
    <domain name="e"><app name="b" tile="3" program="p" memory="4096B" memory-tile="8">
      <sgate name="up" to="a" gate="in" credits="2" label="9"/>
      <sgate name="near" to="c" gate="in" credits="1" label="0"/>
    </app></domain>
    <manager name="n" tile="4" program="tiled/resmgr" memory="65536B">
      <domain name="f"><app name="c" tile="5" program="p" memory="4096B" memory-tile="8">
        <rgate name="in" slots="4" slot-size="128B"/>
        <sgate name="top" to="a" gate="in" credits="1" label="1"/>
      </app></domain>
    </manager>
  </manager>
</system>"#;

    #[test]
    fn gates_across_borders_are_given_down_level_by_level() {
        let top = read(NESTED).unwrap();
        // The root makes c's gate, because a sends to it, and the sends of b and c to a.
        assert_eq!(top.exports.len(), 1);
        assert_eq!(
            (top.exports[0].app.as_str(), top.exports[0].gate.slot_size),
            ("c", 128)
        );
        assert_eq!(top.apps[0].send[0].to, Target::Export(0));
        let m = &top.managers[0];
        let kinds: Vec<(&str, &str)> = m
            .imports
            .iter()
            .map(|i| (i.app.as_str(), i.gate.as_str()))
            .collect();
        assert_eq!(kinds, [("c", "in"), ("b", "up"), ("c", "top")]);
        assert_eq!(m.managers, [(4, 65536)]);

        let middle = read(&part(m, &[20, 21, 22])).unwrap();
        assert_eq!(middle.apps[0].send[0].to, Target::Import(21));
        assert_eq!(middle.apps[0].send[0].slot_size, 64);
        // b sends to c, whose gate came from above; it goes down to n, and b's send is made from it.
        let n = &middle.managers[0];
        assert!(n.imports.iter().any(|i| i.gate == "in"));
        assert!(n.imports.iter().any(|i| matches!(
            i.kind,
            ImportKind::Send {
                to: Target::Import(22),
                ..
            }
        )));

        let selectors: Vec<u16> = (30..30 + n.imports.len() as u16).collect();
        let bottom = read(&part(n, &selectors)).unwrap();
        assert_eq!(bottom.apps.len(), 1);
        assert!(bottom.apps[0].receive[0].import.is_some());
        assert!(matches!(bottom.apps[0].send[0].to, Target::Import(_)));
    }
}
