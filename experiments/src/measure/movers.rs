//! Figures of DMA engines beside the tiles: the time of a transfer by its size and by the memory that it goes to.
//!
//! Why it exists: an engine moves data while harts compute, and what it costs depends on the way. What it does not know: see the parent
//! module. Sizes are those of Table 2 of mpsoc-ecrts19; the source is the platform's first memory, as there. The engine is programmed by
//! the last tile, which on that chip is a real-time core.

use super::closed::Costs;
use super::{Chip, Draft, Part, Run, Unit};
use bulkhead_model::platform::{Memory, Tile};
use bulkhead_report::measure::Figure;

/// Bytes of each transfer, in words of eight bytes.
const SIZES: [u64; 8] = [
    2 << 10,
    4 << 10,
    8 << 10,
    9344, // 9.1 KiB, in lines of 64 bytes
    16 << 10,
    22 << 10,
    32 << 10,
    1 << 20,
];
/// Minimum bytes moved: refreshes of the source come in the middle of some transfers, and not of all.
const MOVED: u64 = 1 << 20;
/// Bytes at the start of the destination that stay as they are.
const BEFORE: u64 = 4096;

impl Chip<'_> {
    /// Time of a transfer by its size, to each memory but the first one; `None`: there is no engine, or no other memory.
    pub(super) fn dma(&self) -> Option<Draft> {
        let engine = self.platform.engines.first()?;
        let (source, others) = self.platform.memories.split_first()?;
        others.first()?;
        let tile: &Tile = self.platform.tiles.last()?;
        let costs = Costs::new(self.platform, tile);
        let registers = self.platform.engine_base(engine.id)?;
        let run = |memory: &Memory, bytes: u64| {
            let base = self.platform.memory_base(memory.id)?;
            let fits = bytes <= self.largest && BEFORE + bytes <= memory.size.0;
            let kib = bytes as f64 / super::KIB;
            fits.then(|| Run {
                parts: vec![Part {
                    tile: Some(tile.id),
                    arguments: vec![
                        ("role", "dma".to_owned()),
                        ("bytes", bytes.to_string()),
                        ("engine", format!("{registers:x}")),
                        ("remote", format!("{:x}", base + BEFORE)),
                        ("rounds", MOVED.div_ceil(bytes).to_string()),
                    ],
                    bytes,
                    ..Part::default()
                }],
                unit: Unit::Transfer,
                x: kib,
                closed: costs
                    .transfer(engine, (source, memory), bytes)
                    .map(|cycles| cycles * 1e6 / tile.pipeline.clock.frequency.0 as f64 / kib),
                ..Run::default()
            })
        };
        // Behind an address translator, a block of one colour is not contiguous.
        let others = others.iter().filter(|memory| memory.dropped == 0);
        let curves = others.map(|memory| {
            let runs = SIZES.into_iter().filter_map(|bytes| run(memory, bytes));
            let name = format!("memory {}, {}", memory.id, memory.dram.name);
            (name, runs.collect())
        });
        Some(Draft {
            figure: Figure {
                id: "dma".to_owned(),
                title: "Transfers of a DMA engine".to_owned(),
                about: format!(
                    "A channel of engine {} copies from memory {} to each other memory: from the store that starts it to the load that sees its end, mean of enough transfers to move a megabyte. Tile {} programs it.",
                    engine.id, source.id, tile.id
                ),
                x: "transfer in KiB".to_owned(),
                y: "us a KiB".to_owned(),
                log_x: true,
                ..Figure::default()
            },
            curves: curves.collect(),
        })
    }
}
