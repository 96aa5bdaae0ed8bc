//! Tiles on which the kernel and TileMux may take longer than where they were measured.
//!
//! Why it exists: [`crate::admission`] and [`crate::kernel`] count cycles of TileMux and of the kernel that were measured on tiled platforms of the catalog, so they bound nothing
//! on a tile that needs more cycles for the same instructions. What it deliberately does not know: how much more. What lines from memory and packets on the
//! network cost follows from the platform.
//!
//! A tile is like one of the measured ones if none of its numbers is worse. To be as good as the worst of all of them is not enough: with the caches of one and the penalties of
//! another, a switch took 1.4 times as long (`m3/switch` on `tiled-2ghz`, warm, medians there and back: 1614 and 1707 cycles instead of 1143 and 1213).

use bulkhead_model::platform::{Cache, Dtu, Pipeline, Platform, Tile};
use bulkhead_model::units::Size;
use std::cmp::Ordering;

/// A tile on which the costs were measured. Neither the kernel nor TileMux computes floating-point numbers, and both run untranslated.
struct Measured {
    /// Its core, in words.
    name: &'static str,
    /// Cycles of its pipeline, each at most: load-to-use, multiply, divide, branch-penalty, jump-penalty, trap-entry, mmio.
    cycles: [u32; 7],
    /// Places, each at least: predictor-entries, return-stack, store-buffer, load-buffer.
    places: [u32; 4],
    first: Level,
    second: Level,
}

/// A level of caches: size, ways and miss registers at least, latency at most.
#[derive(Clone, Copy)]
struct Level {
    size: Size,
    ways: u32,
    mshrs: u32,
    latency: u32,
}

/// `tiled-2ghz`, and both kinds of cores of `tiled-star`.
const MEASURED: [Measured; 3] = [
    Measured {
        name: "the cores of `tiled-2ghz`",
        cycles: [5, 3, 20, 10, 0, 13, 6],
        places: [2048, 16, 32, 16],
        first: Level {
            size: Size(32 << 10),
            ways: 2,
            mshrs: 4,
            latency: 4,
        },
        second: Level {
            size: Size(512 << 10),
            ways: 8,
            mshrs: 20,
            latency: 18,
        },
    },
    Measured {
        name: "the BOOM cores of `tiled-star`",
        cycles: [4, 3, 34, 12, 0, 12, 16],
        places: [4096, 32, 16, 16],
        first: STAR[0],
        second: STAR[1],
    },
    Measured {
        name: "the Rocket core of `tiled-star`",
        cycles: [2, 8, 34, 3, 1, 5, 16],
        places: [512, 6, 4, 2],
        first: STAR[0],
        second: STAR[1],
    },
];
const STAR: [Level; 2] = [
    Level {
        size: Size(16 << 10),
        ways: 4,
        mshrs: 2,
        latency: 1,
    },
    Level {
        size: Size(512 << 10),
        ways: 8,
        mshrs: 8,
        latency: 20,
    },
];
/// Bytes of a line, of all of them. Shorter ones make more lines of the same bytes.
const LINE: u32 = 64;
/// Cycles of the data transfer unit, of all of them, for commands that TileMux and the kernel wait for.
const COMMANDS: [u32; 8] = [20, 14, 21, 25, 20, 8, 10, 3];

fn cycles(of: &Pipeline) -> [(&'static str, u32); 7] {
    [
        ("load-to-use", of.load_to_use),
        ("multiply", of.multiply),
        ("divide", of.divide),
        ("branch-penalty", of.branch_penalty),
        ("jump-penalty", of.jump_penalty),
        ("trap-entry", of.trap_entry),
        ("mmio", of.mmio),
    ]
}

fn places(of: &Pipeline) -> [(&'static str, u32); 4] {
    [
        ("predictor-entries", of.predictor_entries),
        ("return-stack", of.return_stack),
        ("store-buffer", of.store_buffer),
        ("load-buffer", of.load_buffer),
    ]
}

fn commands(of: &Dtu) -> [(&'static str, u32); 8] {
    [
        ("read", of.read),
        ("write", of.write),
        ("send", of.send),
        ("reply", of.reply),
        ("receive", of.receive),
        ("fetch", of.fetch),
        ("acknowledge", of.acknowledge),
        ("tlb-latency", of.tlb_latency),
    ]
}

/// Attributes on the wrong side of their limits.
fn worse(part: &str, of: &[(&str, u32)], limits: &[u32], wrong: Ordering) -> Vec<String> {
    let word = match wrong {
        Ordering::Less => "less",
        _ => "more",
    };
    let both = of.iter().zip(limits);
    both.filter(|((_, value), limit)| value.cmp(limit) == wrong)
        .map(|((what, value), limit)| format!("{part} has {what}=\"{value}\", {word} than {limit}"))
        .collect()
}

impl Level {
    fn slower(&self, of: Option<&Cache>) -> Vec<String> {
        let Some(of) = of else {
            return vec!["it has less than two levels of caches".to_owned()];
        };
        let part = format!("cache `{}`", of.name);
        let places = [("ways", of.ways), ("mshrs", of.mshrs), ("line", of.line)];
        let mut all = worse(
            &part,
            &places,
            &[self.ways, self.mshrs, LINE],
            Ordering::Less,
        );
        all.extend(worse(
            &part,
            &[("latency", of.latency)],
            &[self.latency],
            Ordering::Greater,
        ));
        if of.size.0 < self.size.0 {
            all.push(format!(
                "{part} has size=\"{}\", less than {}",
                of.size, self.size
            ));
        }
        all
    }
}

impl Measured {
    /// What is worse about a tile.
    fn slower(&self, tile: &Tile) -> Vec<String> {
        let pipeline = &tile.pipeline;
        let part = format!("pipeline `{}`", pipeline.name);
        let mut all = worse(&part, &cycles(pipeline), &self.cycles, Ordering::Greater);
        all.extend(worse(
            &part,
            &places(pipeline),
            &self.places,
            Ordering::Less,
        ));
        for first in [&tile.l1i, &tile.l1d] {
            all.extend(self.first.slower(first.as_ref()));
        }
        all.extend(self.second.slower(tile.l2.as_ref()));
        if let Some(unit) = &tile.dtu {
            let part = format!("data transfer unit `{}`", unit.name);
            all.extend(worse(&part, &commands(unit), &COMMANDS, Ordering::Greater));
            if unit.clock.frequency.0 < pipeline.clock.frequency.0 {
                all.push(format!("{part} has a slower clock than its core"));
            }
        }
        all
    }
}

/// Why TileMux or the kernel may take longer on a tile than bounds count, if so. The reason compares it with the measured one that is most like it.
pub(crate) fn unbounded(platform: &Platform, tile: u16) -> Option<String> {
    let found = platform.tile(tile)?;
    let all = MEASURED.iter().map(|one| (one.name, one.slower(found)));
    let (name, slower) = all.min_by_key(|(_, slower)| slower.len())?;
    let why = slower.first()?;
    Some(format!(
        "the costs of TileMux and the kernel are those of {name} and tiles that are no slower, and on tile {tile}, {why}"
    ))
}

#[cfg(test)]
mod tests {
    use crate::admission;
    use crate::judgement::Judgement;
    use bulkhead_model::{LoadOptions, load_system_text};

    /// Why the two applications of a shared tile have no bound, if so.
    fn unknown(platform: &str, overrides: &[&str]) -> Vec<Option<String>> {
        let text = format!(
            r#"<system name="s" platform="{platform}" duration="10ms"><domain name="d">
            <app name="a" tile="2" program="p"><cpu quota="300us" period="2ms" priority="7"/></app>
            <app name="b" tile="2" program="p"><cpu quota="300us" period="2ms" priority="3"/></app>
            </domain><tilemux tile="2" policy="realtime"/></system>"#
        );
        let options = LoadOptions {
            overrides: overrides
                .iter()
                .map(|one| format!("platform/{one}"))
                .collect(),
            ..LoadOptions::default()
        };
        let system =
            load_system_text("s", &text, &options).unwrap_or_else(|error| panic!("{error}"));
        let tiles = admission::tiles(&system).expect("it is judged");
        let all = tiles.into_iter().flat_map(|tile| tile.reservations);
        all.map(|one| {
            let judged = one.judgement() != Judgement::NotJudged;
            assert_eq!(
                (one.response.is_some(), one.unknown.is_none()),
                (judged, judged)
            );
            one.unknown
        })
        .collect()
    }

    #[test]
    fn a_tile_that_needs_more_cycles_has_no_bounds() {
        for platform in ["tiled-2ghz", "tiled-star", "tiled-ddr3", "tiled-64"] {
            assert_eq!(unknown(platform, &[]), [None, None], "{platform}");
        }
        let slow = [
            ("pipeline@load-to-use=6", "load-to-use=\"6\", more than 5"),
            ("pipeline@multiply=4", "multiply=\"4\""),
            ("pipeline@divide=21", "divide=\"21\""),
            ("pipeline@branch-penalty=11", "branch-penalty=\"11\""),
            ("pipeline@jump-penalty=1", "jump-penalty=\"1\""),
            ("pipeline@trap-entry=14", "trap-entry=\"14\""),
            ("pipeline@mmio=7", "mmio=\"7\""),
            (
                "pipeline@predictor-entries=1024",
                "predictor-entries=\"1024\", less than 2048",
            ),
            ("pipeline@return-stack=4", "return-stack=\"4\""),
            ("pipeline@store-buffer=16", "store-buffer=\"16\""),
            ("pipeline@load-buffer=1", "load-buffer=\"1\""),
            ("cache[l1]@size=16KiB", "size=\"16KiB\", less than 32KiB"),
            ("cache[l1]@ways=1", "ways=\"1\""),
            ("cache[l1]@mshrs=1", "mshrs=\"1\""),
            ("cache[l1]@latency=5", "cache `l1` has latency=\"5\""),
            ("cache[l2]@size=256KiB", "size=\"256KiB\", less than 512KiB"),
            ("cache[l2]@ways=4", "ways=\"4\""),
            ("cache[l2]@latency=19", "latency=\"19\", more than 18"),
            ("dtu[dtu]@fetch=9", "fetch=\"9\", more than 8"),
            ("dtu[dtu]@clock=noc", "slower clock"),
        ];
        for (change, why) in slow {
            for said in unknown("tiled-2ghz", &[change]) {
                let said = said.unwrap_or_else(|| panic!("{change} is judged"));
                assert!(said.contains(why), "{change}: {said}");
            }
        }
    }
}
