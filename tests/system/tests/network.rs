//! Two chips communicate over good and bad cables, next to hostile neighbours and careless clients.

use bulkhead_machine::trace::proto::Trace;
use bulkhead_report::result::{End, VariantResult};
use bulkhead_runner::progress::Silent;
use bulkhead_runner::run::{Look, Options, looked_at, run};
use bulkhead_system_tests::whole::{finished, system, variant};
use prost::Message;
use std::collections::BTreeMap;

fn check(variant: &VariantResult, application: &str) -> Vec<u64> {
    let checks = variant.checks.iter();
    let checks = checks.filter(|c| c.application == application);
    checks.map(|c| c.value).collect()
}

fn worst(variant: &VariantResult, application: &str) -> (u64, u64) {
    let span = variant.spans.iter().find(|s| s.application == application);
    let latency = &span.expect("a span").latency;
    (latency.count, latency.max)
}

#[test]
fn two_chips_talk() {
    let finished = finished("network/two-chips", &[], false);
    let result = &finished.result;
    for variant in &result.variants {
        assert!(
            variant.incidents.is_empty(),
            "{}: {:?}",
            variant.name,
            variant.incidents
        );
        assert_eq!(variant.end, End::Exit { code: 0 }, "{}", variant.name);
    }
    let (ping, both) = (variant(result, "ping"), variant(result, "both"));
    for variant in &result.variants {
        for span in &variant.spans {
            println!(
                "{}: {} {} ns usually, {} at worst",
                variant.name,
                span.application,
                span.latency.p50 * 1_000_000_000 / result.ticks_per_second,
                span.latency.max * 1_000_000_000 / result.ticks_per_second
            );
        }
    }
    assert_eq!((worst(ping, "ping").0, worst(both, "ping").0), (50, 50));
    // Next to a stream of 262144 bytes the datagrams are the same, and none waits for more than a few of its frames: 12 us per
    // frame on the link in each direction, the service's work between two requests, and the request in progress.
    assert_eq!(check(ping, "ping"), check(both, "ping"));
    assert!(
        worst(both, "ping").1 < worst(ping, "ping").1 + 400_000,
        "{:?}",
        worst(both, "ping")
    );
    // Ticks of 250 ps: 20 us for a datagram and its echo, 80 % of 1 Gbit/s for 262144 bytes.
    assert!(worst(ping, "ping").1 <= 80_000);
    assert!(worst(variant(result, "stream"), "source").1 <= 10_485_760);
    // The stream is the same, whatever happens next to it.
    assert_eq!(
        check(variant(result, "stream"), "source"),
        check(both, "source")
    );
    assert_eq!(finished.code(), 0);
}

#[test]
fn programs_in_c_talk_too() {
    if bulkhead_runner::c_programs::compiler().is_none() {
        println!("skipped: no C compiler for RISC-V; apt-get install gcc-riscv64-unknown-elf");
        return;
    }
    let options = options(&["ping@program=c/talk"], &["ping"]);
    let finished = run(&options, &Silent).unwrap_or_else(|error| panic!("{error}"));
    let end = &finished.result.variants[0].end;
    assert_eq!(
        *end,
        End::Exit { code: 0 },
        "{:?}",
        finished.result.variants[0].incidents
    );
}

fn options(overrides: &[&str], variants: &[&str]) -> Options {
    Options {
        system: "network/two-chips".into(),
        overrides: overrides.iter().map(|&text| text.to_owned()).collect(),
        variants: variants.iter().map(|&name| name.to_owned()).collect(),
        traces: false,
        ..Options::default()
    }
}

/// Slices and instants of the tracks of one card: track, name, numbers of flows.
fn frames(trace: &Trace, path: &str) -> Vec<(String, String, Vec<u64>)> {
    let (mut tracks, mut names) = (BTreeMap::new(), BTreeMap::new());
    let mut all = Vec::new();
    for packet in &trace.packet {
        let sequence = packet.trusted_packet_sequence_id;
        if let Some(track) = &packet.track_descriptor {
            let above = track
                .parent_uuid
                .map(|parent| format!("{}/", tracks[&parent]));
            let name = above.unwrap_or_default() + track.name.as_deref().unwrap_or_default();
            tracks.insert(track.uuid.expect("a number"), name);
        }
        for name in packet.interned_data.iter().flat_map(|d| &d.event_names) {
            names.insert((sequence, name.iid), name.name.clone().unwrap_or_default());
        }
        let Some(event) = &packet.track_event else {
            continue;
        };
        let track = &tracks[&event.track_uuid.expect("a track")];
        if let Some(track) = track.strip_prefix(path)
            && event.name_iid.is_some()
        {
            let name = names[&(sequence, event.name_iid)].clone();
            all.push((track.to_owned(), name, event.flow_ids.clone()));
        }
    }
    all
}

/// The tracks of both chips' cards show what the cards counted, and an arrow leads from each frame to its end.
#[test]
fn traces_show_every_frame_of_both_chips() {
    let mut options = options(&["cable@loss=50000"], &["both"]);
    options.overrides.push("@duration=20ms".to_owned());
    options.traces = true;
    let finished = run(&options, &Silent).unwrap_or_else(|error| panic!("{error}"));
    let result = &finished.result;
    let far = result.peer.as_ref().expect("two chips");
    for (index, trace) in finished.traces.iter().enumerate() {
        let trace = Trace::decode(&trace.as_ref().expect("a trace")[..]).expect("decodes");
        let sides = [
            ("tile 7: network/", result),
            ("far/tile 7: network/", &**far),
        ];
        let mut flows: Vec<BTreeMap<String, Vec<u64>>> = Vec::new();
        for (path, side) in sides {
            let variant = &side.variants[index];
            let tile = variant.tiles.iter().find(|t| t.tile == 7).expect("a card");
            let counted = |name: &str| {
                let counter = tile.counters.iter().find(|c| c.name == name);
                counter.expect("counted").value as usize
            };
            let mut by_track: BTreeMap<String, Vec<u64>> = BTreeMap::new();
            for (track, name, flow) in frames(&trace, path) {
                let track = match name.as_str() {
                    "dropped" | "lost on the cable" | "doubled by the cable" => name,
                    _ => track,
                };
                by_track.entry(track).or_default().extend(flow);
            }
            let seen = |track: &str| by_track.get(track).map_or(0, Vec::len);
            println!(
                "{} {path}: {} sent, {} stored, {} dropped, {} lost",
                variant.name,
                seen("frames sent"),
                seen("frames stored"),
                seen("dropped"),
                seen("lost on the cable")
            );
            assert_eq!(seen("frames sent"), counted("frames sent"), "{path}");
            assert_eq!(seen("frames stored"), counted("frames received"), "{path}");
            assert_eq!(seen("dropped"), counted("frames dropped"), "{path}");
            assert!(seen("frames sent") > 50);
            flows.push(by_track);
        }
        for (from, to) in [(0, 1), (1, 0)] {
            let sent = &flows[from]["frames sent"];
            let arrived = &flows[to]["frames arrived"];
            assert!(arrived.iter().all(|flow| sent.contains(flow)));
            assert!(
                flows[to]["frames stored"]
                    .iter()
                    .all(|flow| arrived.contains(flow))
            );
            let lost = &flows[from]["lost on the cable"];
            assert!(!lost.is_empty());
            assert!(
                lost.iter()
                    .all(|flow| sent.contains(flow) && !arrived.contains(flow))
            );
        }
    }
}

/// Neither chip can reach the other in less than a cable's delay, so the number of synchronisations within that time does not
/// matter. Whole digests are compared where time ends the run; where a program does, tiles may have gone a little further.
#[test]
fn the_result_is_the_same_however_the_chips_are_stepped() {
    let options = options(&["@duration=6ms", "cable@loss=50000"], &["both"]);
    let digest = |looks: u64| -> String {
        let look = Look {
            chips: looks,
            ..Look::default()
        };
        let (finished, _) = looked_at(&options, look, &Silent).unwrap_or_else(|e| panic!("{e}"));
        let variant = &finished.result.variants[0];
        assert_eq!(variant.end, End::Duration);
        // In the middle of everything.
        assert!(worst(variant, "ping").0 > 5);
        variant.digest.clone()
    };
    let once = digest(1);
    for looks in [1, 3, 7] {
        assert_eq!(digest(looks), once, "{looks}");
    }
}

/// With a tenth lost, a tenth doubled and a fifth late, TCP delivers the stream that was sent.
#[test]
fn a_stream_arrives_over_very_bad_cables() {
    for seed in 1..=6 {
        let seed = format!("cable@seed={seed}");
        let overrides = [
            "cable@loss=100000",
            "cable@duplicate=100000",
            "cable@reorder=200000",
            "@duration=30s",
            &seed,
        ];
        let options = options(&overrides, &["stream"]);
        let finished = run(&options, &Silent).unwrap_or_else(|e| panic!("{e}"));
        let variant = &finished.result.variants[0];
        // The source compares the sink's checksum with its own.
        assert_eq!(
            variant.end,
            End::Exit { code: 0 },
            "{seed}: {:?}",
            variant.incidents
        );
        assert_eq!(check(variant, "source").len(), 1);
    }
}

#[test]
fn a_client_that_dies_loses_only_its_own() {
    let finished = finished(system("network-neighbours"), &[], false);
    let (alone, careless) = (
        variant(&finished.result, "alone"),
        variant(&finished.result, "careless"),
    );
    assert!(alone.incidents.is_empty(), "{:?}", alone.incidents);
    let who: Vec<&str> = careless
        .incidents
        .iter()
        .map(|i| i.application.as_str())
        .collect();
    assert!(
        who.iter()
            .all(|name| *name == "careless" || *name == "root"),
        "{:?}",
        careless.incidents
    );
    assert!(who.contains(&"careless"));
    // It had all the sockets that it may have, one of them connected, and the other end was told of its end.
    let console = &finished.consoles[0];
    assert!(console.contains("dies with 4 sockets"), "{console}");
    assert!(console.contains("[sink] a stream broke"), "{console}");
    assert_eq!(
        (worst(alone, "ping").0, worst(careless, "ping").0),
        (500, 500)
    );
    assert_eq!(check(alone, "ping"), check(careless, "ping"));
}

/// Next to a client of the same service that fills the card and leaves, over and over, every datagram comes back.
#[test]
fn a_client_that_fills_the_card_silences_nobody() {
    let overrides = ["careless@program=network/loud", "careless@background=true"];
    let finished = finished(system("network-neighbours"), &overrides, false);
    let (alone, beside) = (
        variant(&finished.result, "alone"),
        variant(&finished.result, "careless"),
    );
    let console = &finished.consoles[0];
    let last = |line: &&str| line.contains(" said, ");
    let said = console.lines().rfind(last).unwrap_or_default();
    println!(
        "{:?} alone, {:?} beside: {said}",
        worst(alone, "ping"),
        worst(beside, "ping")
    );
    assert!(beside.incidents.is_empty(), "{:?}", beside.incidents);
    assert_eq!(worst(beside, "ping").0, 500, "{console}");
    assert_eq!(check(alone, "ping"), check(beside, "ping"));
    assert!(said.starts_with("[careless] "), "no attack: {console}");
}

#[test]
fn a_flood_of_frames_of_chance_brings_nobody_down() {
    let finished = finished(system("network-flood"), &[], false);
    let result = &finished.result;
    for variant in &result.variants {
        assert!(
            variant.incidents.is_empty(),
            "{}: {:?}",
            variant.name,
            variant.incidents
        );
        assert_eq!(worst(variant, "probe").0, 200, "{}", variant.name);
    }
    let received = |name: &str| {
        let tiles = variant(result, name).tiles.iter().find(|t| t.tile == 6);
        let counters = tiles.map_or(&[][..], |t| &t.counters[..]);
        let found = counters.iter().find(|c| c.name == "frames received");
        found.map_or(0, |c| c.value)
    };
    assert_eq!(received("alone"), 0);
    assert!(received("flood") > 100, "{}", received("flood"));
    assert_eq!(finished.code(), 0);
}

/// The service's counts that the probe prints at the end: frames of nobody, their time, dropped ones, their time, made room, time
/// in all.
fn counts(console: &str) -> Vec<u64> {
    let line = console.lines().find(|l| l.contains("frames of nobody"));
    let line = line.unwrap_or_else(|| panic!("{console}"));
    line.split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[test]
fn forged_openings_and_junk_keep_nobody_from_the_service() {
    let finished = finished(system("network-openings"), &[], false);
    let honest = variant(&finished.result, "honest");
    for (variant, console) in finished.result.variants.iter().zip(&finished.consoles) {
        println!(
            "{}: {:?} {:?}",
            variant.name,
            worst(variant, "neighbour"),
            worst(variant, "probe")
        );
        for line in console
            .lines()
            .filter(|l| l.contains("forged") || l.contains("nobody"))
        {
            println!("  {line}");
        }
        assert_eq!(variant.end, End::Exit { code: 0 }, "{console}");
        assert_eq!(
            (worst(variant, "neighbour").0, worst(variant, "probe").0),
            (60, 400)
        );
        let [taken, time, dropped, drop_time, recycled, _, end] = counts(console)[..] else {
            panic!("{console}");
        };
        // A fifth of the time, plus a period's budget and a frame.
        assert!(time <= end / 5 + 220_000, "{time} of {end}");
        match variant.name.as_str() {
            "honest" => assert_eq!((dropped, recycled), (0, 0)),
            "openings" => assert!(recycled > 50, "{recycled}"),
            _ => assert!(dropped > 1000 && drop_time < end / 5, "{taken} {dropped}"),
        }
        // A request waits for only a few frames more than without a flood.
        assert!(worst(variant, "probe").1 < worst(honest, "probe").1 + 400_000);
    }
}
