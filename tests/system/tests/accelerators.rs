//! Streaming units under the tiled OS: right results, no core in the data path, clients in turn.

use bulkhead_runner::result::VariantResult;
use bulkhead_whole_system_tests::{finished, variant};

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
    // Two clients share the unit: each is slower than alone, and neither waits for all of the other's work.
    let shared = median(of("shared"), "camera");
    assert!(shared > unit && shared < 3 * unit, "{shared} {unit}");
    assert_eq!(finished.code(), 0);
}
