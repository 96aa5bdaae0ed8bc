//! Cores on which the kernel's operations may take longer than where they were measured.
//!
//! Why it exists: costs of the kernel are cycles that were measured on `epiphany3`, so they bound nothing on a core that needs more cycles for the same
//! instructions, nor where packets wait for room in routers. What it deliberately does not know: how much more. What the network and the memories of other
//! cores cost otherwise follows from the platform ([`crate::one_shot_mesh`]), as do stores that wait for room in their buffer.

use bulkhead_model::platform::{Clock, Pipeline, PipelineModel, Platform};
use bulkhead_model::units::Size;

/// What the kernel's cycles depend on, of a pipeline: each attribute, its value, and the greatest one, which is that of `epiphany3`. The kernel computes no
/// floating-point numbers and translates no addresses.
fn costs(of: &Pipeline) -> [(&'static str, u32, u32); 7] {
    [
        ("load-to-use", of.load_to_use, 2),
        ("multiply", of.multiply, 4),
        ("divide", of.divide, 34),
        ("branch-penalty", of.branch_penalty, 3),
        ("jump-penalty", of.jump_penalty, 3),
        ("trap-entry", of.trap_entry, 5),
        ("mmio", of.mmio, 2),
    ]
}

/// The banks of `epiphany3`'s local memories; fewer hold up a hart's own accesses.
const BANKS: u32 = 4;
/// The bytes of a bank of `epiphany5`, where bounds were compared with runs, too; in larger ones, more of the kernel's code and data lie together.
const BANK: u64 = 16 << 10;
/// The turns of a bank in which `epiphany3` fetches. A taken branch waits for all of them.
const TURNS: u32 = 2;
/// The loads that `epiphany3` has under way.
const LOADS: u32 = 4;

/// The clock of the chip's fastest core, in hertz: bounds count in its cycles.
fn fastest(platform: &Platform) -> u64 {
    let clocks = platform.tiles.iter();
    let clocks = clocks.map(|tile| tile.pipeline.clock.frequency.0);
    clocks.max().unwrap_or(0)
}

/// Why the kernel, or what it sends, may take longer on a core than bounds count, if so.
pub(crate) fn unbounded(platform: &Platform, core: u16) -> Option<String> {
    if let Some(room) = platform.network.credits {
        return Some(format!(
            "routers have room for credits=\"{room}\" packets of each link, and nothing bounds waits for room; with credits=\"unlimited\" it would be judged"
        ));
    }
    let tile = platform.tile(core)?;
    let pipeline = &tile.pipeline;
    let memory = tile.local_memory.as_ref()?;
    let (of_core, of_memory) = (
        format!("pipeline `{}`", pipeline.name),
        format!("local memory `{}`", memory.name),
    );
    let mut costs = costs(pipeline).into_iter();
    let costly = costs.find(|(_, value, most)| value > most);
    let costly = costly
        .map(|(name, value, most)| format!("{of_core} has {name}=\"{value}\", more than {most}"));
    let hertz = |clock: &Clock| clock.frequency.0;
    let other = || {
        let (banks, fetch, width) = (memory.banks, memory.fetch, memory.width);
        if banks < BANKS {
            Some(format!(
                "{of_memory} has banks=\"{banks}\", less than {BANKS}"
            ))
        } else if memory.size.0 > BANK * u64::from(banks) {
            let size = memory.size;
            Some(format!(
                "{of_memory} has size=\"{size}\" in {banks} banks, more than {} in each",
                Size(BANK)
            ))
        } else if fetch.div_ceil(width) > TURNS {
            Some(format!(
                "{of_memory} has fetch=\"{fetch}B\" and width=\"{width}B\", so a fetch takes more than {TURNS} turns of a bank"
            ))
        } else if pipeline.load_buffer < LOADS {
            let loads = pipeline.load_buffer;
            Some(format!(
                "{of_core} has load-buffer=\"{loads}\", less than {LOADS}"
            ))
        } else if pipeline.model != PipelineModel::Inorder {
            Some(format!("{of_core} is not in order"))
        } else if pipeline.predictor_entries > 0 {
            // A wrong prediction makes a branch that is not taken longer.
            Some(format!("{of_core} predicts branches"))
        } else if hertz(&pipeline.clock) < fastest(platform) {
            Some(format!("{of_core} is slower than others of the chip"))
        } else if hertz(&memory.clock) != hertz(&pipeline.clock) {
            Some(format!("{of_memory} has another clock than its core"))
        } else {
            None
        }
    };
    let why = costly.or_else(other)?;
    Some(format!(
        "the kernel's costs are those of a core like epiphany3's, and on core {core}, {why}"
    ))
}

#[cfg(test)]
mod tests {
    use crate::plan::one_shot::bounds;
    use bulkhead_model::tasks::Unbounded;
    use bulkhead_model::{LoadOptions, load_system_text};

    /// For each of two tasks that share a port: why it has no bound, if so.
    fn lost(platform: &str, overrides: &[&str]) -> Vec<Option<String>> {
        let text = format!(
            r#"<system name="s" paradigm="one-shot" platform="{platform}" duration="10ms">
            <task name="a" program="p::A" core="1" priority="1" period="5ms" cost="1us"/>
            <task name="b" program="p::B" core="2" priority="1" period="5ms" cost="1us"/>
            <channel name="x" from="a" to="b" size="8B"/></system>"#
        );
        let options = LoadOptions {
            overrides: overrides.iter().map(|one| (*one).to_owned()).collect(),
            ..LoadOptions::default()
        };
        let system = load_system_text("s", &text, &options).expect("valid");
        let one_shot = system.one_shot.as_ref().expect("it is one");
        let lost = bounds(one_shot, &system.platform).lost;
        let why = |lost: Option<Unbounded>| {
            lost.map(|lost| match lost {
                Unbounded::Unknown(why) => why,
                Unbounded::Overloaded(why) => panic!("nobody knows that: {why}"),
            })
        };
        lost.into_iter().map(why).collect()
    }

    #[test]
    fn a_core_that_needs_more_cycles_has_no_bounds() {
        for platform in ["epiphany3", "epiphany3-clocks", "epiphany5"] {
            assert_eq!(lost(platform, &[]), [None, None], "{platform}");
        }
        let slow = [
            ("pipeline[ecore]@load-to-use=3", "load-to-use=\"3\""),
            ("pipeline[ecore]@multiply=5", "multiply=\"5\""),
            ("pipeline[ecore]@divide=35", "divide=\"35\""),
            ("pipeline[ecore]@branch-penalty=4", "branch-penalty=\"4\""),
            ("pipeline[ecore]@jump-penalty=4", "jump-penalty=\"4\""),
            ("pipeline[ecore]@trap-entry=6", "trap-entry=\"6\""),
            ("pipeline[ecore]@mmio=3", "mmio=\"3\""),
            ("pipeline[ecore]@predictor-entries=16", "predicts branches"),
            ("pipeline[ecore]@load-buffer=3", "load-buffer=\"3\""),
            ("local-memory[sram]@banks=2", "banks=\"2\""),
            (
                "local-memory[sram]@size=128KiB",
                "size=\"128KiB\" in 4 banks, more than 16KiB",
            ),
            (
                "local-memory[sram]@fetch=32B",
                "fetch=\"32B\" and width=\"8B\"",
            ),
            ("local-memory[sram]@clock=mesh", "has another clock"),
            ("network@credits=2", "credits=\"2\" packets"),
        ];
        for (change, word) in slow {
            for why in lost("epiphany3", &[&format!("platform/{change}")]) {
                let why = why.expect(change);
                assert!(why.contains(word), "{change}: {why}");
            }
        }
        let fast = [
            "platform/pipeline[ecore]@branch-penalty=1",
            "platform/pipeline[ecore]@store-buffer=1",
            "platform/local-memory[sram]@banks=8",
            "platform/local-memory[sram]@size=128KiB",
        ];
        assert_eq!(lost("epiphany3", &fast), [None, None]);
    }
}
