//! The same simulation of scenarios that come from descriptions: what the analysis derives from a random `<system>` is simulated and
//! bounded.
//!
//! The simulation keeps everything that waits for tokens in one line, so the bounds are computed for such a line, too. It omits messages,
//! because it does not know that their packets follow each other, and gives nothing on credit. So it shows less than the hardware, and what
//! it shows must be within the bounds.

use super::{Simulation, within};
use bulkhead_analysis::communication::{NetworkScenario, SystemBounds};
use bulkhead_model::{LoadOptions, System, load_system_text};
use bulkhead_random::Random;
use std::fmt::Write;

/// Descriptions of every test; `BULKHEAD_SYSTEMS` overrides the number.
const SYSTEMS: u64 = 40;
/// Long enough for thousands of accesses of each tile.
const TICKS: u64 = 400_000;

fn drawn(random: &mut Random) -> String {
    let mut one_of = |all: &[&'static str]| all[random.below(all.len() as u64) as usize];
    let platform = one_of(&["tiled-gem5", "tiled-fpga"]);
    let count: u16 = one_of(&["2", "3", "4", "5"]).parse().expect("a number");
    let mut text =
        format!("<system name='s' platform='{platform}' manager-tile='1'><domain name='d'>");
    for tile in 2..2 + count {
        let region = one_of(&[
            "",
            "<mgate name='m' size='64KiB'/>",
            "<mgate name='m' size='4KiB' rights='r'/>",
        ]);
        let rate = one_of(&["", "1MiB/s", "8MiB/s", "64MiB/s", "512MiB/s"]);
        let burst = one_of(&["512B", "1KiB", "4KiB", "16KiB"]);
        let limit = match rate {
            "" => String::new(),
            rate => format!("<limit noc='{rate}' burst='{burst}'/>"),
        };
        write!(
            text,
            "<app name='a{tile}' tile='{tile}' program='p'>{region}{limit}</app>"
        )
        .expect("a string");
    }
    text + "</domain></system>"
}

fn scenario(system: &System) -> NetworkScenario {
    let bounds = SystemBounds::new(system, &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut scenario = bounds.scenario().clone();
    let resources = scenario.resources.iter();
    let receives: Vec<bool> = resources
        .map(|one| one.name.starts_with("receive unit"))
        .collect();
    for source in &mut scenario.sources {
        if let Some(regulator) = &mut source.regulator {
            regulator.line = u32::MAX;
        }
        for class in &mut source.classes {
            let mut resources = class.steps.iter().filter_map(|step| step.resource);
            if resources.any(|resource| receives[resource]) {
                class.steps.clear();
                class.outstanding = 0;
            }
        }
    }
    scenario
}

#[test]
fn no_observation_of_a_description_above_its_bound() {
    let systems = std::env::var("BULKHEAD_SYSTEMS").ok();
    let systems = systems.map_or(SYSTEMS, |text| text.parse().expect("a number"));
    for number in 0..systems {
        let mut random = Random::new(number + 1);
        let text = drawn(&mut random);
        let system = load_system_text("s", &text, &LoadOptions::default());
        let system = system.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let scenario = scenario(&system);
        let mut simulation = Simulation::new(&scenario, random.next(), 1, false);
        simulation.run(TICKS);
        within(&simulation).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
