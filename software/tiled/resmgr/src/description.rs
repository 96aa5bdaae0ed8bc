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
}

/// A send gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendGate {
    /// Name.
    pub name: String,
    /// Index of the receiving application.
    pub to: usize,
    /// Index of its gate.
    pub gate: usize,
    /// Messages under way at most.
    pub credits: u8,
    /// Label.
    pub label: u64,
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

/// Reads a description.
///
/// # Errors
/// What is wrong, and where.
pub fn read(text: &str) -> Result<Vec<App>> {
    let document = Document::parse(text).map_err(|error| Mistake {
        line: error.pos().row,
        what: alloc::format!("{error}"),
    })?;
    let root = document.root_element();
    let nodes: Vec<Node> = root
        .descendants()
        .filter(|n| n.has_tag_name("app"))
        .collect();
    let mut apps = nodes.iter().map(app).collect::<Result<Vec<App>>>()?;
    for (index, node) in nodes.iter().enumerate() {
        for gate in node.children().filter(|n| n.has_tag_name("sgate")) {
            let gate = send_gate(&apps, &gate)?;
            apps[index].send.push(gate);
        }
    }
    Ok(apps)
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
            }),
            _ => {}
        }
    }
    Ok(app)
}

fn send_gate(apps: &[App], node: &Node) -> Result<SendGate> {
    let (to, gate) = (attribute(node, "to")?, attribute(node, "gate")?);
    let target = apps.iter().position(|a| a.name == to);
    let place = target.and_then(|to| apps[to].receive.iter().position(|g| g.name == gate));
    let (Some(to), Some(gate)) = (target, place) else {
        return mistake(node, alloc::format!("there is no gate `{gate}` of `{to}`"));
    };
    Ok(SendGate {
        name: attribute(node, "name")?.into(),
        to,
        gate,
        credits: value(node, "credits", quantity::number)?,
        label: value(node, "label", quantity::number)?,
    })
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
        let apps = read(TEXT).unwrap();
        assert_eq!(apps.len(), 3);
        assert_eq!(apps[0].task, Some((1_000_000, 400_000)));
        assert_eq!(
            apps[0].send[0],
            SendGate {
                name: "controller".into(),
                to: 1,
                gate: 0,
                credits: 2,
                label: 7
            }
        );
        assert_eq!(
            apps[1].receive[0],
            ReceiveGate {
                name: "input".into(),
                slots: 4,
                slot_size: 256
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
            error("<system>\n<app/></system>"),
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
}
