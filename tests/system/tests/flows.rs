//! Flows of random descriptions on the chip's network: measurements are within the bounds that `check` and `plan` compute
//! beforehand.
//!
//! `BULKHEAD_FLOWS=100 cargo test --release -p bulkhead-system-tests flows:: -- --nocapture` runs more of them.

use bulkhead_analysis::plan::{Kind, system};
use bulkhead_model::{LoadOptions, load_system};
use bulkhead_random::Random;
use bulkhead_system_tests::whole::finished;
use std::fmt::Write;

/// Descriptions of every test run.
const DRAWN: u64 = 6;

fn one_of<'a>(random: &mut Random, all: &[&'a str]) -> &'a str {
    all[random.below(all.len() as u64) as usize]
}

/// A loop of three applications and limited rivals on tiles of their own, in any order. Costs and accesses are well above
/// the programs' needs.
fn drawn(random: &mut Random) -> String {
    let mut tiles: Vec<u64> = (2..=7).collect();
    for last in (1..tiles.len()).rev() {
        tiles.swap(last, random.below(last as u64 + 1) as usize);
    }
    let platform = one_of(random, &["tiled-gem5", "tiled-fpga"]);
    // The slower chip computes longer.
    let cost = if platform == "tiled-gem5" { 12 } else { 120 };
    let region = |random: &mut Random, name: &str, rights: &str| match random.chance(60) {
        true => {
            let size = one_of(random, &["4KiB", "16KiB", "64KiB"]);
            format!("<mgate name=\"{name}\" size=\"{size}\" rights=\"{rights}\"/>")
        }
        false => String::new(),
    };
    let task = format!("<task period=\"4ms\" cost=\"{cost}us\" accesses=\"150\"/>");
    let (frame, map, log) = (
        region(random, "frame", "r"),
        region(random, "map", "r"),
        region(random, "log", "w"),
    );
    let slot = one_of(random, &["128B", "256B", "512B"]);
    let mut text = format!(
        "<system name=\"drawn\" platform=\"{platform}\" duration=\"150ms\" manager-tile=\"1\"><domain name=\"control\">\
         <app name=\"sensor\" tile=\"{}\" program=\"control/sensor\"><argument name=\"samples\" value=\"8\"/>{task}\
         <sgate name=\"controller\" to=\"controller\"/>{frame}</app>\
         <app name=\"controller\" tile=\"{}\" program=\"control/controller\">{task}<rgate name=\"input\" slots=\"4\" slot-size=\"{slot}\"/>\
         <sgate name=\"actuator\" to=\"actuator\"/>{map}</app>\
         <app name=\"actuator\" tile=\"{}\" program=\"control/actuator\">{task}<rgate name=\"input\" slots=\"4\" slot-size=\"{slot}\"/>{log}</app>\
         </domain><domain name=\"rivals\">",
        tiles[0], tiles[1], tiles[2]
    );
    for (number, tile) in tiles[3..3 + random.below(4) as usize].iter().enumerate() {
        let program = one_of(random, &["adversary/memcpy", "adversary/transfer"]);
        let rate = one_of(random, &["2MiB/s", "8MiB/s", "32MiB/s", "128MiB/s"]);
        let burst = one_of(random, &["1KiB", "4KiB", "16KiB"]);
        let memory = match program {
            "adversary/transfer" => "<mgate name=\"region\" size=\"64KiB\"/>",
            _ => "",
        };
        write!(
            text,
            "<app name=\"rival-{number}\" tile=\"{tile}\" program=\"{program}\" memory=\"2MiB\" background=\"true\">\
             <limit noc=\"{rate}\" burst=\"{burst}\"/>{memory}</app>"
        )
        .expect("a string");
    }
    text + "</domain><flow name=\"loop\" from=\"sensor\" to=\"actuator\" deadline=\"4ms\"/></system>"
}

#[test]
fn no_run_exceeds_what_the_description_promises() {
    let wanted = std::env::var("BULKHEAD_FLOWS").ok();
    let wanted = wanted.map_or(DRAWN, |count| count.parse().expect("a number"));
    let mut random = Random::new(12);
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("drawn.xml");
    let mut ratios = Vec::new();
    for number in 0..wanted {
        let text = drawn(&mut random);
        std::fs::write(&path, &text).expect("it can be written");
        let loaded = load_system(&path, &LoadOptions::default());
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let verdict = system::judge(&loaded).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let mut flows = verdict.constraints.iter();
        let flow = flows.find(|one| one.kind == Kind::Flow && one.subject == "loop");
        let Some(bound) = flow.and_then(|flow| flow.bound) else {
            println!("{number}: no bound: {:?}", verdict.unjudged);
            continue;
        };
        let ran = finished(&path, &[], false);
        let seen = &ran.result.variants[0].flows[0].latency;
        assert_eq!(seen.count, 8, "{text}");
        let worst = ran.result.microseconds(seen.max) * 1000.0;
        println!("{number}: {worst} of {bound} ns");
        assert!(worst <= bound as f64, "{worst} above {bound}\n{text}");
        ratios.push(bound as f64 / worst);
    }
    // A test without measurements would prove nothing.
    assert!(
        ratios.len() as u64 * 2 > wanted,
        "{} with a bound",
        ratios.len()
    );
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    println!(
        "{} of {wanted} with a bound, median bound / seen {median:.2}",
        ratios.len()
    );
}
