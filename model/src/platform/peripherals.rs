//! Peripherals beside the tiles: data and rules.
//!
//! Why it exists: storage, cameras and streaming accelerators are parts of the whole chip, not of a tile. What it deliberately does not
//! know: which program uses one, and how they work.

use super::{Clock, Platform, PlatformKind};
use crate::error::{Diagnostic, Problem};
use crate::node::Node;
use crate::units::{Rate, Size, Time};
use crate::writer::Writer;
use bulkhead_abi::memory_map::{DMA_BASE, DMA_ENGINES, DMA_SIZE};
use serde::Serialize;

/// A peripheral.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Peripheral {
    /// Number on the network.
    pub id: u16,
    /// Name.
    pub name: String,
    /// Its clock.
    pub clock: Clock,
    /// Maximum rate at which it reads, and at which it writes.
    pub rate: Rate,
    /// Bytes that it may move at once after a rest.
    pub bucket: Size,
    /// Bytes of its longest access.
    pub burst: u32,
    /// Maximum accesses under way.
    pub outstanding: u32,
    /// From the start of a command to its first access, in cycles of its clock.
    pub startup: u32,
    /// Maximum unfinished commands.
    pub queue: u32,
    /// From the arrival of an access to a register to its answer, in cycles of its clock.
    pub registers: u32,
    /// The tile that it interrupts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<u16>,
    /// Its kind.
    pub kind: PeripheralKind,
    /// Seed of its content.
    pub seed: u64,
    /// Router that it is attached to.
    pub router: u16,
    /// Its accesses are coherent with the caches of the coherent clusters.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coherent: bool,
}

/// The kind of a peripheral.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeripheralKind {
    /// It has blocks.
    Storage {
        /// Bytes of a block.
        block: Size,
        /// Bytes of its content.
        size: Size,
    },
    /// It delivers frames.
    Camera {
        /// From the start of a frame to the start of the next one.
        period: Time,
        /// Packets of a frame.
        lines: u32,
        /// Bytes of a packet.
        packet: Size,
        /// From the start of a packet to the start of the next one.
        gap: Time,
    },
    /// It reads, computes and writes.
    Accelerator {
        /// Bytes that it computes.
        compute: Rate,
    },
}

/// Attributes of each kind.
const OWN: &[(&str, &[&str])] = &[
    ("storage", &["block", "size"]),
    ("camera", &["period", "lines", "packet", "gap"]),
    ("accelerator", &["compute"]),
];

impl Platform {
    /// The first address of the registers of a peripheral; pages follow those of the DMA engines.
    pub fn peripheral_base(&self, id: u16) -> Option<u64> {
        let place = self.peripherals.iter().position(|one| one.id == id)?;
        let page = (self.engines.len() + place) as u64;
        Some(DMA_BASE + page * DMA_SIZE)
    }
}

/// Reads a peripheral. `None`: an attribute of its kind is missing; `check` has not run then, so `errors` says which.
pub(super) fn read(node: &Node, clock: Clock, errors: &mut Vec<Diagnostic>) -> Option<Peripheral> {
    let (id, word) = (node.integer("id") as u16, node.text("kind"));
    let before = errors.len();
    for (kind, attributes) in OWN {
        for attribute in *attributes {
            let given = node.gives(attribute);
            if *kind == word && !given {
                errors.push(Diagnostic::new(
                    Problem::Inconsistent(format!("peripheral {id} has no `{attribute}`")),
                    &node.span,
                    format!("write {}: kind=\"{kind}\" needs it", example(attribute)),
                ));
            } else if *kind != word && given {
                errors.push(Diagnostic::new(
                    Problem::Inconsistent(format!(
                        "peripheral {id} has `{attribute}`, but is not of kind {kind}"
                    )),
                    node.place(attribute),
                    format!("remove it, or write kind=\"{kind}\""),
                ));
            }
        }
    }
    let rate = node.rate("rate")?;
    if errors.len() > before {
        return None;
    }
    let number = |attribute: &str| node.integer(attribute) as u32;
    let kind = match word.as_str() {
        "storage" => PeripheralKind::Storage {
            block: node.maybe_size("block")?,
            size: node.maybe_size("size")?,
        },
        "camera" => PeripheralKind::Camera {
            period: node.maybe_time("period")?,
            lines: node.maybe_integer("lines")? as u32,
            packet: node.maybe_size("packet")?,
            gap: node.maybe_time("gap")?,
        },
        _ => {
            let Some(compute) = node.maybe_rate("compute").flatten() else {
                errors.push(Diagnostic::new(
                    Problem::Inconsistent(format!(
                        "the rate `compute` of peripheral {id} is unlimited"
                    )),
                    node.place("compute"),
                    "write a rate, such as 100MiB/s",
                ));
                return None;
            };
            PeripheralKind::Accelerator { compute }
        }
    };
    Some(Peripheral {
        id,
        name: node.text("name"),
        clock,
        rate,
        bucket: node.size("bucket"),
        burst: node.size("burst").0 as u32,
        outstanding: number("outstanding"),
        startup: number("startup"),
        queue: number("queue"),
        registers: number("registers"),
        interrupts: node.maybe_integer("interrupts").map(|tile| tile as u16),
        kind,
        seed: node.integer("seed"),
        router: number("router") as u16,
        coherent: node.boolean("coherent"),
    })
}

fn example(attribute: &str) -> &'static str {
    match attribute {
        "block" => "block=\"512B\"",
        "size" => "size=\"1MiB\"",
        "period" => "period=\"1ms\"",
        "lines" => "lines=\"64\"",
        "packet" => "packet=\"512B\"",
        "gap" => "gap=\"10us\"",
        _ => "compute=\"100MiB/s\"",
    }
}

/// Reports every rule broken by the peripherals of `platform`, read from `root`.
pub(super) fn check(platform: &Platform, root: &Node, errors: &mut Vec<Diagnostic>) {
    let engines = root.all("engine").count() as u64;
    for (count, node) in (1..).zip(root.all("peripheral")) {
        let id = node.integer("id");
        let mut wrong = |cause: String, attribute: &str, help: String| {
            let problem = Problem::Inconsistent(format!("peripheral {id} {cause}"));
            errors.push(Diagnostic::new(problem, node.place(attribute), help));
        };
        if platform.kind != PlatformKind::Bare {
            wrong(
                "is beside the tiles, but the platform is not bare".into(),
                "id",
                "write kind=\"bare\" at the platform, or remove it".into(),
            );
        }
        if engines + count == DMA_ENGINES + 1 {
            wrong(
                format!("is one of more than {DMA_ENGINES} engines and peripherals"),
                "id",
                "remove it".into(),
            );
        }
        let (burst, bucket) = (node.size("burst").0, node.size("bucket"));
        let line = super::cluster::coherent_line(root);
        match (node.boolean("coherent"), line) {
            (true, None) => wrong(
                "is coherent with caches, but no tile has a coherent cluster".into(),
                "coherent",
                "write coherent=\"true\" at the <cluster> of a tile, or remove it: programs then flush lines (cbo.flush) around transfers".into(),
            ),
            (true, Some(line)) if burst > line => wrong(
                format!(
                    "is coherent, and has bursts of {}, which are longer than a line ({})",
                    Size(burst),
                    Size(line)
                ),
                "burst",
                format!("write {}: a device asks the caches for one line at a time", Size(line)),
            ),
            _ => {}
        }
        let chunk = platform.network.chunk;
        if !burst.is_power_of_two() || burst > u64::from(chunk) {
            wrong(
                format!(
                    "has bursts of {burst} bytes; a burst must be a power of two and at most a chunk of the network ({chunk})"
                ),
                "burst",
                "write a power of two, such as 64B".into(),
            );
        }
        if bucket.0 < burst {
            wrong(
                format!("has a bucket of {bucket}, which is less than a burst"),
                "bucket",
                format!("write at least {}", Size(burst)),
            );
        }
        if let Some(tile) = node.maybe_integer("interrupts")
            && !platform.tiles.iter().any(|one| u64::from(one.id) == tile)
        {
            wrong(
                format!("interrupts tile {tile}, which does not exist"),
                "interrupts",
                "write the number of a <tile>, or remove it: software then polls the registers"
                    .into(),
            );
        }
        let found = platform
            .peripherals
            .iter()
            .find(|one| u64::from(one.id) == id);
        match found.map(|one| one.kind) {
            Some(PeripheralKind::Storage { block, size })
                if !block.0.is_power_of_two() || !size.0.is_multiple_of(block.0) =>
            {
                wrong(
                    format!(
                        "has {size} in blocks of {block}; a block must be a power of two, and the size a multiple of it"
                    ),
                    "size",
                    "write a power of two as `block`, and a multiple of it as `size`".into(),
                );
            }
            Some(PeripheralKind::Camera { packet, .. }) if !packet.0.is_multiple_of(8) => wrong(
                format!("has packets of {packet}, which is not a multiple of eight bytes"),
                "packet",
                "write a multiple of 8B".into(),
            ),
            Some(PeripheralKind::Camera {
                period, lines, gap, ..
            }) if gap.0 == 0 || gap.0.saturating_mul(lines.into()) > period.0 => wrong(
                format!("has {lines} packets {gap} apart, which do not fit a frame of {period}"),
                "gap",
                "write a gap above 0, and a period of at least all gaps".into(),
            ),
            _ => {}
        }
    }
}

/// Writes a peripheral, except its source and end.
pub(super) fn write(writer: &mut Writer, one: &Peripheral) {
    let kind = match one.kind {
        PeripheralKind::Storage { .. } => "storage",
        PeripheralKind::Camera { .. } => "camera",
        PeripheralKind::Accelerator { .. } => "accelerator",
    };
    writer
        .start("peripheral")
        .attribute("id", one.id)
        .attribute("name", &one.name)
        .attribute("kind", kind)
        .attribute("clock", &one.clock.name)
        .rate("rate", one.rate)
        .size("bucket", one.bucket)
        .bytes("burst", one.burst)
        .attribute("outstanding", one.outstanding)
        .attribute("startup", one.startup)
        .attribute("queue", one.queue)
        .attribute("registers", one.registers)
        .optional("interrupts", one.interrupts)
        .attribute("seed", one.seed)
        .attribute("router", one.router)
        .optional("coherent", one.coherent.then_some("true"));
    match one.kind {
        PeripheralKind::Storage { block, size } => {
            writer.size("block", block).size("size", size);
        }
        PeripheralKind::Camera {
            period,
            lines,
            packet,
            gap,
        } => {
            writer
                .time("period", period)
                .attribute("lines", lines)
                .size("packet", packet)
                .time("gap", gap);
        }
        PeripheralKind::Accelerator { compute } => {
            writer.rate("compute", compute);
        }
    }
}
