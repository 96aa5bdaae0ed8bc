//! What devices and DMA engines beside a cluster do on the way of its programs to memory.
//!
//! Why it exists: a device moves bytes without a hart. Its accesses have slots at memory and places on the last link before it, and the programs
//! that command it access its registers over links that others use, too. How long these packets are, and how many there can be, follows from
//! the platform alone; [`super::turns`] counts them. What it deliberately does not know: commands, programs, and what a device does with
//! the bytes.
//!
//! # The links
//! On a crossbar, each part has a link to the router and one back. A router's link has an input for each part, and takes the inputs with
//! packets in turn; each input is a queue in order. The flow's own cluster is `c`, its memory `m`.
//!
//! | link | what passes it |
//! |---|---|
//! | `c` to router | lines and requests of all harts, and their accesses to registers and to memories of tiles ("reaching" accesses), in one queue |
//! | router to `m` | from `c`: lines and requests; from each device and engine: its accesses |
//! | `m` to router | answers, in the order of slots |
//! | router to `c` | from `m`: answers; from each device, engine and tile with memories: its answers to reaching accesses, and interrupts |
//!
//! All other links (of devices, of engines) carry nothing of the program. No access of a device takes a bank, a way or a miss register of
//! the cluster; an interrupt goes to the interrupt controller and takes no time of a hart that does not want it.
//!
//! # What a part can send
//! - **To memory**: at most [`Accesses::under_way`] accesses are under way, of which each is one packet (a burst fits a chunk of the network).
//!   A peripheral begins, in a window of `T`, writes of at most `bucket + rate T` bytes. A packet that is longer than that of a line carries more
//!   bytes than a line, so at most `(bucket + rate T) / (line + 1)` of these begin within `T`, and before that there were those under way
//!   ([`Accesses::long`]). Its reads are short packets. A DMA engine has no rate.
//! - **To the cluster**: answers to loads (eight bytes at most) and stores, and interrupts (four bytes): [`Part::back`] is the longest. A tile with
//!   tightly coupled memories and without a program sends nothing else: what engines read and write there passes links of that tile.
//!
//! # What a hart can have under way
//! Of reaching accesses, a hart in order has as many loads as its load buffer has places and as many stores as its store buffer has
//! ([`reaching`]). Nothing bounds this for a hart out of order, so a program beside one is not judged ([`ClusterError::OutOfOrder`]).

use super::chip::{Chip, ChipError};
use super::cluster::ClusterError;
use super::scenario::Ticks;
use bulkhead_model::platform::{PeripheralKind, Pipeline, PipelineModel, Platform};

/// Bytes of the longest access to a register.
pub(super) const WORD: u64 = 8;

/// What other programs have, beside the program of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Their harts in the cluster, by position.
    pub harts: Vec<u16>,
    /// Those of the harts that may access registers of devices and engines, or memories of tiles.
    pub reaching: Vec<u16>,
    /// The peripherals that they command, by number.
    pub peripherals: Vec<u16>,
    /// The DMA engines that they may start, by number.
    pub engines: Vec<u16>,
    /// Tiles without a program whose tightly coupled memories they may access, by number.
    pub coupled: Vec<u16>,
}

impl Beside {
    /// Harts only.
    pub fn harts(harts: &[u16]) -> Self {
        Self {
            harts: harts.to_vec(),
            ..Self::default()
        }
    }

    /// Something that may send packets over links of the cluster, in words, if there is any.
    pub(super) fn part(&self, platform: &Platform) -> Option<String> {
        let known = platform.peripherals.iter();
        let mut known = known.filter(|one| self.peripherals.contains(&one.id));
        let peripheral = known
            .next()
            .map(|one| format!("the peripheral `{}`", one.name));
        let engine = self.engines.first();
        let engine = engine.map(|id| format!("the DMA engine {id}"));
        let tile = self.coupled.first();
        let tile = tile.map(|id| format!("a tightly coupled memory of tile {id}"));
        peripheral.or(engine).or(tile)
    }
}

/// A device, an engine, or a tile with memories, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// What it asks memory for; a tile without a program asks for nothing.
    pub accesses: Option<Accesses>,
    /// Its longest packet to the cluster.
    pub back: Ticks,
}

/// The accesses of a part to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accesses {
    /// Maximum under way.
    pub under_way: u64,
    /// Its longest packet to memory.
    pub longest: Ticks,
    /// Its longest answer from memory.
    pub answered: Ticks,
    /// How many bytes it writes; `None`: as many as memory takes.
    pub pace: Option<Pace>,
}

/// A promise of a peripheral: within any `t` ticks, it begins writes of at most `bucket + rate t / second` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    pub bucket: u64,
    pub rate: u64,
    /// Ticks of a second.
    pub second: u64,
    /// Bytes of a line of the cluster.
    pub line: u64,
}

impl Accesses {
    /// Maximum packets that are longer than that of a line and pass a link within a window; `None`: nothing but memory's slots bounds them, or there is no such number.
    pub fn long(&self, window: u128) -> Option<u128> {
        let pace = self.pace?;
        let [bucket, rate, second] = [pace.bucket, pace.rate, pace.second].map(u128::from);
        // What does not fit admits more than there are slots.
        let bytes = bucket + rate.checked_mul(window)? / second.max(1);
        Some(u128::from(self.under_way) + bytes / (u128::from(pace.line) + 1))
    }
}

/// The parts of the chip that others use.
///
/// # Errors
/// If one of them does not exist.
pub(super) fn parts(
    platform: &Platform,
    chip: &Chip<'_>,
    beside: &Beside,
    line: u64,
) -> Result<Vec<Part>, ChipError> {
    let back = chip.wire(WORD);
    let second = platform.ticks_per_second();
    let mut all = Vec::new();
    for &id in &beside.peripherals {
        let mut known = platform.peripherals.iter();
        let one = known.find(|one| one.id == id);
        let one = one.ok_or(ChipError::NoTile {
            kind: "peripheral",
            id,
        })?;
        let longest = chip.wire(one.burst.into());
        // A camera reads nothing.
        let answered = match one.kind {
            PeripheralKind::Camera { .. } => chip.wire(0),
            _ => longest,
        };
        all.push(Part {
            accesses: Some(Accesses {
                under_way: one.outstanding.into(),
                longest,
                answered,
                pace: Some(Pace {
                    bucket: one.bucket.0,
                    rate: one.rate.0,
                    second,
                    line,
                }),
            }),
            back,
        });
    }
    for &id in &beside.engines {
        let mut known = platform.engines.iter();
        let one = known.find(|one| one.id == id);
        let one = one.ok_or(ChipError::NoTile {
            kind: "DMA engine",
            id,
        })?;
        // Descriptors and flags are words.
        let longest = chip.wire(u64::from(one.dma.burst).max(WORD));
        all.push(Part {
            accesses: Some(Accesses {
                under_way: u64::from(one.dma.channels) * u64::from(one.dma.outstanding),
                longest,
                answered: longest,
                pace: None,
            }),
            back,
        });
    }
    let tile = Part {
        accesses: None,
        back,
    };
    all.extend(beside.coupled.iter().map(|_| tile));
    Ok(all)
}

/// Reaching accesses that a hart can have under way.
///
/// # Errors
/// If the hart is out of order.
pub(super) fn reaching(pipeline: &Pipeline, tile: u16, hart: u16) -> Result<u64, ClusterError> {
    if pipeline.model != PipelineModel::Inorder {
        return Err(ClusterError::OutOfOrder { tile, hart });
    }
    // A buffer has at least one place. (The machine may use fewer places of a large one.)
    let places = [pipeline.load_buffer, pipeline.store_buffer];
    Ok(places.map(|all| u64::from(all.max(1))).iter().sum())
}

#[cfg(test)]
#[path = "beside_tests.rs"]
mod tests;
