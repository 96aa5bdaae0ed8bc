//! Figures of a chain in the second level beside harts that copy, by cache colour: in main memory, and in a memory behind an address
//! translator.
//!
//! Why it exists: colours divide the sets of a cache, as ways divide each set. What it deliberately does not know: see the parent module.
//!
//! Fixed before the first run. The sets are divided equally between the harts of the cluster, by the highest bits of their number: so the first
//! level keeps all of its sets, as in mpsoc-ecrts19 (Section 6.4), and each A57 of `tx2` has 512 KiB, as in hercules-18 (Section III-D). The
//! chain has an eighth of the second level, as beside rivals with ways of their own; rivals copy twice the second level. In a memory behind a
//! translator each hart has an equal part of the bytes, so rivals copy less there. The chain is measured for 16 times as many loads as
//! elsewhere, so that each rival fills its colour several times meanwhile.

use super::streams::Crowd;
use super::{Chip, Draft, Part, Run, Unit, chase};
use bulkhead_model::platform::Memory;

/// The program that copies within a colour.
const COPIES: &str = "memory/copies";
/// Loads of a chain, relative to other figures.
const LONGER: u64 = 16;
/// Colours are multiples of a page, so that page tables can give them.
const PAGE: u64 = 4096;

/// Equal parts of the sets of a cache, in bytes.
#[derive(Clone, Copy, Debug)]
struct Colours {
    /// Of all sets: one way.
    period: u64,
    /// Of the sets of a colour.
    length: u64,
}

impl Colours {
    /// Keeps a part to a colour.
    fn keep(self, part: &mut Part, colour: u64) {
        part.arguments.extend([
            ("period", self.period.to_string()),
            ("first", (colour * self.length).to_string()),
            ("length", self.length.to_string()),
        ]);
    }

    /// Bytes from the first to the last of `bytes` in a colour, wherever they begin.
    fn extent(self, bytes: u64) -> u64 {
        (bytes.div_ceil(self.length) + 1) * self.period
    }
}

impl Chip<'_> {
    /// A colour of the second level for each hart of the cluster.
    fn colours(&self) -> Option<Colours> {
        let harts = self.tile.cluster.as_ref()?.harts;
        let cache = self.tile.l2.as_ref()?;
        let period = cache.sets() * u64::from(cache.line);
        let length = period / u64::from(harts.next_power_of_two());
        (harts > 1 && length.is_multiple_of(PAGE)).then_some(Colours { period, length })
    }

    /// Lines of main memory.
    pub(super) fn rivals_by_colour(&self) -> Option<Draft> {
        let colours = self.colours()?;
        let memory = self.platform.memories.first()?;
        let place = |part: &mut Part, bytes: u64, _: u32| part.bytes = colours.extent(bytes);
        let about = "A chain over an eighth of the second level, in one colour of several, beside rivals that copy twice the second level: all in the chain's colour, or each in a colour of its own.";
        Some(self.by_colour(
            (
                "rivals-colours",
                "A set in the second level beside rivals, by colour",
                about,
            ),
            (memory, colours, 2 * self.last),
            place,
        ))
    }

    /// Lines of the first memory behind an address translator, whose colours are those of the second level.
    pub(super) fn rivals_by_translator(&self) -> Option<Draft> {
        let colours = self.colours()?;
        let harts = u64::from(self.tile.cluster.as_ref()?.harts);
        let fits = |memory: &&Memory| {
            memory.contiguous() == colours.length
                && memory.dropped == colours.period - colours.length
        };
        let memory = self.platform.memories.iter().find(fits)?;
        let base = self.platform.memory_base(memory.id)?;
        // A hart's part of the bytes, in whole chunks of a colour.
        let room = memory.size.0 / harts / colours.length * colours.length;
        let place = |part: &mut Part, _: u64, hart: u32| {
            let start = memory.name(u64::from(hart) * room, 0);
            part.arguments.extend([
                ("remote", format!("{:x}", base + start)),
                ("extent", (room * memory.colours()).to_string()),
            ]);
            part.bytes = 0;
        };
        let about = format!(
            "As by colours of main memory, but all lines are in memory {} behind its address translator, where each hart has {} KiB.",
            memory.id,
            room >> 10
        );
        let title = "A set behind an address translator beside rivals, by colour";
        Some(self.by_colour(
            ("rivals-translator", title, &about),
            (memory, colours, room),
            place,
        ))
    }

    /// Both curves. `most`: bytes that a hart copies at most; `place` puts a part of so many bytes where its hart has memory.
    fn by_colour(
        &self,
        (id, title, about): (&str, &str, &str),
        (memory, colours, most): (&Memory, Colours, u64),
        place: impl Fn(&mut Part, u64, u32),
    ) -> Draft {
        let harts = self
            .tile
            .cluster
            .as_ref()
            .map_or(1, |cluster| cluster.harts);
        let bytes = (self.last / 8).min(most);
        let theirs = most.min(self.largest) / colours.length * colours.length;
        let mut victim = chase(bytes, self.stride, LONGER * self.loads);
        colours.keep(&mut victim, 0);
        place(&mut victim, bytes, 0);
        let rival = |hart: u32, colour: u64| {
            let mut part = Part {
                program: Some(COPIES),
                hart,
                arguments: vec![("bytes", theirs.to_string())],
                ..Part::default()
            };
            colours.keep(&mut part, colour);
            place(&mut part, theirs, hart);
            part
        };
        let curve = |name: &str, apart: bool| {
            let runs = (0..harts).map(|rivals| {
                let others =
                    (1..=rivals).map(|hart| rival(hart, u64::from(hart) * u64::from(apart)));
                let crowd = Crowd {
                    rivals: if apart { 0 } else { rivals },
                    bytes: theirs,
                    sets: colours.length,
                };
                Run {
                    parts: std::iter::once(victim.clone()).chain(others).collect(),
                    unit: Unit::Cycles,
                    x: rivals.into(),
                    closed: self.costs.crowded(memory, bytes, crowd),
                    ..Run::default()
                }
            });
            (name.to_owned(), runs.collect())
        };
        let curves = vec![curve("one colour", false), curve("a colour for each", true)];
        Self::contention(id, title, about, curves)
    }
}
