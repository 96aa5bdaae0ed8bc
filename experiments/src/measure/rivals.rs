//! Figures of a chain beside 0 to n-1 harts of its cluster that copy: in the second level and in memory.
//!
//! Why it exists and what it does not know: see the parent module. Ways and banks divide what the harts share; colours do so in a module of
//! their own.

use super::streams::Crowd;
use super::{Chip, Draft, Part, Run, Unit, chase};
use bulkhead_report::measure::Figure;

/// A program that copies so many bytes again and again.
pub(super) fn copier(bytes: u64) -> Part {
    Part {
        arguments: vec![
            ("role", "copy".to_owned()),
            ("bytes", bytes.to_string()),
            ("forever", "true".to_owned()),
        ],
        bytes,
        ..Part::default()
    }
}

impl Chip<'_> {
    /// A rival that copies as fast as it can.
    pub(super) fn rival(&self, hart: u32) -> Part {
        let bytes = (2 * self.last).min(self.largest);
        Part {
            hart,
            ..copier(bytes)
        }
    }

    /// A curve over the number of rivals.
    pub(super) fn beside(
        &self,
        name: &str,
        victim: &Part,
        rival: impl Fn(u32, &mut Part),
        closed: impl Fn(u32) -> Option<f64>,
    ) -> (String, Vec<Run>) {
        let harts = self
            .tile
            .cluster
            .as_ref()
            .map_or(1, |cluster| cluster.harts);
        let runs = (0..harts).map(|rivals| {
            let others = (1..=rivals).map(|hart| {
                let mut part = self.rival(hart);
                rival(hart, &mut part);
                part
            });
            Run {
                parts: std::iter::once(victim.clone()).chain(others).collect(),
                unit: Unit::Cycles,
                x: rivals.into(),
                closed: closed(rivals),
                ..Run::default()
            }
        });
        (name.to_owned(), runs.collect())
    }

    pub(super) fn contention(
        id: &str,
        title: &str,
        about: &str,
        curves: Vec<(String, Vec<Run>)>,
    ) -> Draft {
        Draft {
            figure: Figure {
                id: id.to_owned(),
                title: title.to_owned(),
                about: about.to_owned(),
                x: "rivals that copy".to_owned(),
                y: "cycles a load".to_owned(),
                ..Figure::default()
            },
            curves,
        }
    }

    /// A set in the second level beside rivals, with all ways and with its own ways.
    pub(super) fn rivals_in_cache(&self) -> Option<Draft> {
        self.tile.cluster.as_ref()?;
        let cache = self.tile.l2.as_ref()?;
        let (ways, sets) = (cache.ways, cache.sets() * u64::from(cache.line));
        let memory = self.platform.memories.first()?;
        let victim = chase(self.last / 8, self.stride, self.loads);
        let closed = |rivals: u32| {
            let bytes = 2 * self.last;
            let crowd = Crowd {
                rivals,
                bytes,
                sets,
            };
            self.costs.crowded(memory, self.last / 8, crowd)
        };
        let mut apart = victim.clone();
        let own = (ways / 4).max(1);
        apart.ways = Some((0, own));
        let all = vec![
            self.beside("all ways shared", &victim, |_, _| (), closed),
            self.beside(
                "ways of its own",
                &apart,
                |_, rival| rival.ways = Some((own, ways - own)),
                |_| closed(0),
            ),
        ];
        Some(Self::contention(
            "rivals-cache",
            "A set in the second level, beside rivals",
            "A chain over an eighth of the second level, beside rivals that copy: they share all ways, or the chain has a quarter of them to itself.",
            all,
        ))
    }

    /// A set in memory beside rivals, in their bank and in its own bank.
    pub(super) fn rivals_in_memory(&self) -> Option<Draft> {
        self.tile.cluster.as_ref()?;
        let memory = self.platform.memories.first()?;
        let mut victim = chase(self.beyond(), self.stride, self.loads);
        let closed = |rivals: u32, one_bank: bool| {
            let memory = self.costs.beside(memory, rivals, one_bank)?;
            self.costs.chain_beyond(self.beyond(), memory)
        };
        let all = match memory.dram.bank_bytes(memory.size.0) {
            Some(_) => {
                victim.bank = Some(0);
                vec![
                    self.beside(
                        "all in one bank",
                        &victim,
                        |_, rival| rival.bank = Some(0),
                        |rivals| closed(rivals, true),
                    ),
                    self.beside(
                        "a bank for each",
                        &victim,
                        |hart, rival| {
                            rival.bank = Some(u64::from(hart) % u64::from(memory.dram.banks));
                        },
                        |rivals| closed(rivals, false),
                    ),
                ]
            }
            None => vec![self.beside(
                "all banks",
                &victim,
                |_, _| (),
                |rivals| closed(rivals, false),
            )],
        };
        Some(Self::contention(
            "rivals-memory",
            "A set in memory, beside rivals",
            "A chain over four times the second level, beside rivals that copy.",
            all,
        ))
    }
}
