//! Streaming units under the tiled OS: right results, no core in the data path, clients in turn.

use bulkhead_report::result::VariantResult;
use bulkhead_runner::watch::Log;
use bulkhead_system_tests::whole::{finished, observed, variant};

/// The image of `workloads/accelerator/src/edges.rs`.
fn image(bytes: usize) -> Vec<u8> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Sobel by its definition, pixel by pixel.
fn edges(image: &[u8], width: usize) -> Vec<u8> {
    let height = image.len() / width;
    let pixel = |x: usize, y: usize| i32::from(image[y * width + x]);
    (0..image.len())
        .map(|i| {
            let (x, y) = (i % width, i / width);
            if x == 0 || y == 0 || x + 1 == width || y + 1 == height {
                return 0;
            }
            let (mut gx, mut gy) = (0, 0);
            for (d, weight) in [(0, 1), (1, 2), (2, 1)] {
                gx += weight * (pixel(x + 1, y + d - 1) - pixel(x - 1, y + d - 1));
                gy += weight * (pixel(x + d - 1, y + 1) - pixel(x + d - 1, y - 1));
            }
            (gx.abs() + gy.abs()).min(255) as u8
        })
        .collect()
}

fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// CRC-32 of IEEE 802.3, bit by bit.
fn crc(bytes: &[u8]) -> u64 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
        }
    }
    u64::from(!crc)
}

fn checks(variant: &VariantResult, application: &str) -> Vec<u64> {
    let own = variant
        .checks
        .iter()
        .filter(|c| c.application == application);
    own.map(|check| check.value).collect()
}

fn median(variant: &VariantResult, application: &str) -> u64 {
    let span = variant.spans.iter().find(|s| s.application == application);
    span.expect("it measures").latency.p50
}

#[test]
fn units_compute_what_programs_compute_and_much_faster() {
    let finished = finished("accelerators", &[], false);
    let result = edges(&image(256 * 256), 256);
    let (hash, sum) = (fnv(&result), crc(&result));
    let of = |name: &str| variant(&finished.result, name);
    for (name, application, expected) in [
        ("program", "camera", vec![hash]),
        ("unit", "camera", vec![hash]),
        ("program-checksum", "inspector", vec![hash, sum]),
        ("pipeline", "inspector", vec![hash, sum]),
        ("shared", "camera", vec![hash]),
        ("shared", "inspector", vec![hash, sum]),
    ] {
        assert_eq!(
            checks(of(name), application),
            expected,
            "{name}: {:?}",
            of(name).incidents
        );
    }
    let (program, unit) = (
        median(of("program"), "camera"),
        median(of("unit"), "camera"),
    );
    assert!(program > 4 * unit, "{program} {unit}");
    let both = median(of("program-checksum"), "inspector");
    let pipeline = median(of("pipeline"), "inspector");
    assert!(both > 4 * pipeline, "{both} {pipeline}");
    // Two clients share the unit: each is slower than alone, and neither waits for the whole of the other's work.
    let shared = median(of("shared"), "camera");
    assert!(shared > unit && shared < 3 * unit, "{shared} {unit}");
    assert_eq!(finished.code(), 0);
}

/// The percentage of cycles in which an application's hart was clocked while it measured.
fn clocked(variant: &VariantResult, log: &Log, application: &str) -> f64 {
    let span = variant.spans.iter().find(|s| s.application == application);
    let span = span.expect("it measures");
    let tile = variant
        .tiles
        .iter()
        .find(|tile| tile.applications.iter().any(|a| a == application));
    let tile = tile.expect("it runs somewhere").tile;
    let slept = |begin, latency| log.slept(tile, begin, begin + latency);
    let all: u64 = span.samples.iter().map(|s| s.latency).sum();
    let asleep: u64 = span.samples.iter().map(|s| slept(s.begin, s.latency)).sum();
    100.0 * (all - asleep) as f64 / all as f64
}

/// The same work by a program and by units: the speed-up, and the remaining work of the driving core.
fn speed_up(system: &str, cases: &[(&str, &str, &str)]) -> Vec<(f64, f64, f64, f64)> {
    let (finished, logs) = observed(system, &[]);
    assert_eq!(finished.code(), 0);
    let result = &finished.result;
    let expected = edges(&image(256 * 256), 256);
    let (hash, sum) = (fnv(&expected), crc(&expected));
    let find = |name: &str, application: &str| {
        let at = result.variants.iter().position(|v| v.name == name);
        let at = at.expect("a variant");
        let found = checks(&result.variants[at], application);
        assert_eq!(
            found[0], hash,
            "{name}: {:?}",
            result.variants[at].incidents
        );
        assert!(found.len() < 2 || found[1] == sum, "{name}");
        (&result.variants[at], &logs[at])
    };
    let mut all = Vec::new();
    for (by_program, by_units, application) in cases {
        let (program, slow) = find(by_program, application);
        let (units, fast) = find(by_units, application);
        let times = [program, units].map(|v| median(v, application));
        let speed = times[0] as f64 / times[1] as f64;
        let busy = (
            clocked(program, slow, application),
            clocked(units, fast, application),
        );
        println!(
            "{system}, {by_units}: {} cycles, {by_program} {} cycles: {speed:.1} times faster; core clocked {:.2} % instead of {:.1} %",
            result.cycles(times[1]),
            result.cycles(times[0]),
            busy.1,
            busy.0
        );
        // The core's work with the units, relative to its work without them.
        let left = busy.1 * times[1] as f64 / (busy.0 * times[0] as f64);
        all.push((speed, busy.0, busy.1, left));
    }
    all
}

#[test]
fn the_core_sleeps_while_units_work() {
    let memory = speed_up(
        "accelerators",
        &[
            ("program", "unit", "camera"),
            ("program-checksum", "pipeline", "inspector"),
        ],
    );
    let files = speed_up(
        "accelerators-files",
        &[
            ("program", "unit", "camera"),
            ("program-checksum", "pipeline", "inspector"),
            ("program", "shared", "camera"),
        ],
    );
    // The core's own work stays the same when a service makes the whole faster, so its share is not a measure there.
    for (_, _, units, _) in &memory {
        assert!(*units < 3.0, "{units}");
    }
    for (speed, program, _, left) in memory.into_iter().chain(files) {
        assert!(speed > 4.0, "{speed}");
        assert!(program > 90.0 && left < 0.005, "{program} {left}");
    }
}

/// A stream goes through two units without a request, and both end when it ends: from a program, between the units, and to a
/// program, in messages and through regions.
#[test]
fn units_pass_a_stream_on_and_end_with_it() {
    for regions in [
        [false; 3],
        [true; 3],
        [true, false, true],
        [false, true, false],
    ] {
        let pipe = |number: usize, writer: &str, name: &str| match regions[number] {
            // Pieces of one page, of two pages, and of three.
            true => {
                let size = [12, 32, 36][number];
                (
                    format!(r#"<mgate name="{name}-region" size="{size}KiB"/>"#),
                    format!(r#"of="{writer}/{name}-region" size="{size}KiB"/>"#),
                )
            }
            false => (String::new(), String::new()),
        };
        let mut pipes = [
            pipe(0, "writer", "pipe"),
            pipe(1, "copy", "output"),
            pipe(2, "sum", "output"),
        ];
        for (pipe, name) in pipes.iter_mut().zip(["input", "input", "pipe"]) {
            if !pipe.1.is_empty() {
                pipe.1
                    .insert_str(0, &format!("<mgate name=\"{name}-region\" "));
            }
        }
        let [(w, c), (o, s), (p, r)] = pipes;
        let text = format!(
            r#"<system name="chain" platform="tiled-accelerated" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="60011"/><argument name="step" value="333"/><sgate name="pipe" to="copy" credits="2"/>{w}</app>
    <app name="copy" tile="7" program="accelerator/unit"><rgate name="input" slots="2" slot-size="512B"/><sgate name="output" to="sum" credits="3"/>{c}{o}</app>
    <app name="sum" tile="6" program="accelerator/unit"><rgate name="input" slots="3" slot-size="1KiB"/><sgate name="output" to="reader" credits="2"/>{s}{p}</app>
    <app name="reader" tile="3" program="service/pipe-reader"><argument name="bytes" value="60011"/><argument name="step" value="127"/><rgate name="pipe" slots="2" slot-size="512B"/>{r}</app>
  </domain>
</system>"#
        );
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("chain.xml");
        std::fs::write(&path, text).expect("it can be written");
        let finished = finished(path, &[], false);
        let variant = &finished.result.variants[0];
        assert_eq!(finished.code(), 0, "{regions:?}: {:?}", variant.incidents);
    }
}

/// A client that gives a unit an address outside the region ends its own job at the unit, and no other client's.
#[test]
fn a_piece_beside_the_region_is_refused() {
    let text = r#"<system name="beside" platform="tiled-accelerated" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer" background="true"><argument name="bytes" value="60011"/><sgate name="pipe" to="copy" credits="2"/><mgate name="pipe-region" size="12KiB"/></app>
    <app name="copy" tile="7" program="accelerator/unit"><rgate name="input" slots="2" slot-size="512B"/><mgate name="input-region" of="writer/pipe-region" size="4KiB"/></app>
  </domain>
</system>"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("beside.xml");
    std::fs::write(&path, text).expect("it can be written");
    let finished = finished(path, &[], false);
    let variant = &finished.result.variants[0];
    let end = &variant.end;
    assert_eq!(*end, bulkhead_report::result::End::Exit { code: 3 });
    let told = format!("{:?}", variant.incidents);
    assert!(told.contains("256"), "{told}");
}

/// A file that the service hands out in several pieces: the unit obtains the next piece while it uses the previous one.
#[test]
fn a_long_file_is_reached_piece_by_piece() {
    let catalog = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../catalog/systems/accelerators-files.xml"
    );
    let text = std::fs::read_to_string(catalog).expect("the catalog");
    let (first, last) = text.split_once("  <variant").expect("variants");
    let (_, end) = last.rsplit_once("  <variant").expect("variants");
    let text = format!("{first}  <variant{end}").replace(
        "<argument name=\"by\" value=\"unit\"/>",
        "<argument name=\"by\" value=\"unit\"/><argument name=\"height\" value=\"640\"/><argument name=\"runs\" value=\"2\"/>",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.xml");
    std::fs::write(&path, text).expect("it can be written");
    let finished = finished(path, &[], false);
    let hash = fnv(&edges(&image(256 * 640), 256));
    let variant = &finished.result.variants[0];
    let found = checks(variant, "camera");
    assert_eq!(found, [hash], "{:?}", variant.incidents);
    assert_eq!(checks(variant, "inspector")[0], hash);
    println!(
        "640 rows, two clients: {} cycles",
        median(variant, "camera")
    );
}

/// A job that a unit cannot do ends with a status, and no other job does.
#[test]
fn files_that_are_not_there_and_units_gone_mad() {
    // The file of the pipeline's first unit is never made; its neighbour on the same tile is not affected.
    let finished = finished(
        "accelerators-files",
        &["first/argument[input]@value=nowhere"],
        false,
    );
    let shared = variant(&finished.result, "shared");
    let hash = fnv(&edges(&image(256 * 256), 256));
    assert_eq!(checks(shared, "camera"), [hash]);
    assert_eq!(checks(shared, "inspector"), [0u64; 0]);
    // The unit of the pipeline's end is an attacker: with the gates of its client it reaches nothing else.
    let attacked = bulkhead_system_tests::whole::finished(
        "accelerators-files",
        &["platform/accelerator[checksum]@operation=rogue"],
        false,
    );
    let shared = variant(&attacked.result, "shared");
    assert_eq!(checks(shared, "camera"), [hash]);
    assert_eq!(checks(shared, "inspector"), [0u64; 0]);
}

/// When the stage behind a unit ends, the unit ends, too, and then the stage before it. No stage hangs.
#[test]
fn a_chain_whose_reader_is_gone_ends() {
    let text = r#"<system name="broken" platform="tiled-accelerated" duration="100ms" manager-tile="1">
  <domain name="d">
    <app name="writer" tile="2" program="service/pipe-writer"><argument name="bytes" value="2000000"/><sgate name="pipe" to="copy" credits="2"/></app>
    <app name="copy" tile="7" program="accelerator/unit"><rgate name="input" slots="2" slot-size="2KiB"/><sgate name="output" to="gone" credits="2"/></app>
    <app name="gone" tile="3" program="adversary/fault" background="true"><rgate name="pipe" slots="2" slot-size="2KiB"/></app>
  </domain>
</system>"#;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("broken.xml");
    std::fs::write(&path, text).expect("it can be written");
    let finished = finished(path, &[], false);
    let end = &finished.result.variants[0].end;
    assert_eq!(*end, bulkhead_report::result::End::Exit { code: 3 });
}
