//! Tests of what is measured, without running anything.

use super::closed::{Costs, hops};
use super::needs::NEEDS;
use super::streams::{Crowd, Stream};
use super::{Draft, Options, Part, drafts, measure, ports, published, sizes};
use bulkhead_model::platform::{Platform, Topology};
use bulkhead_model::{LoadOptions, load_platform};
use bulkhead_runner::error::Error;
use bulkhead_runner::progress::Silent;
use std::collections::BTreeSet;

#[test]
fn sizes_are_powers_and_the_middle_between() {
    assert_eq!(sizes(4, 16), [4, 6, 8, 12, 16]);
    assert_eq!(sizes(4, 3), [0; 0]);
}

fn load(name: &str) -> Platform {
    load_platform(name, &LoadOptions::default()).expect("valid")
}

fn figure(platform: &Platform, id: &str) -> Option<Draft> {
    let mut all = drafts(platform, &Options::default()).into_iter();
    all.find(|one| one.figure.id == id)
}

#[test]
fn figures_are_those_that_a_platform_can_have() {
    for (name, colours, translator, slowdown) in [
        ("single", false, false, false),
        ("virt", true, false, false),
        ("imx6", true, false, false),
        ("tx2", true, false, true),
        ("zcu102", true, false, true),
        ("zcu102-colours", true, true, true),
        ("epiphany3", false, false, false),
    ] {
        let platform = load(name);
        let has = |id| figure(&platform, id).is_some();
        let all = [
            has("rivals-colours"),
            has("rivals-translator"),
            has("slowdown"),
        ];
        assert_eq!(all, [colours, translator, slowdown], "{name}");
    }
}

/// Every figure says what it needs, and a platform that lacks one is told so.
#[test]
fn a_figure_that_a_platform_cannot_have_is_refused_with_its_needs() {
    let mut had = BTreeSet::new();
    for name in [
        "single",
        "virt",
        "imx6",
        "tx2",
        "zcu102",
        "zcu102-colours",
        "epiphany3",
        "epiphany5",
    ] {
        let platform = load(name);
        let all = drafts(&platform, &Options::default()).into_iter();
        had.extend(all.map(|one| one.figure.id));
        had.extend(ports::Cores::of(&platform).map(|_| ports::ID.to_owned()));
    }
    let listed: BTreeSet<String> = NEEDS.iter().map(|one| one.0.to_owned()).collect();
    assert_eq!(had, listed);
    let refused = |platform: &str, figure: &str| {
        let options = Options {
            platform: platform.into(),
            figures: vec![figure.to_owned()],
            ..Options::default()
        };
        match measure(&options, &Silent) {
            Err(Error::Input { cause, remedy }) => format!("{cause}\n  {remedy}"),
            other => panic!("{other:?}"),
        }
    };
    let all = [
        refused("virt", "isolation"),
        refused("imx6", "ports"),
        refused("single", "slowdown-in-order"),
        refused("epiphany3", "latencies"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

/// The programs' lists of cores are by row and column, so tiles of a wider mesh have other numbers.
#[test]
fn ports_are_on_cores_that_many_hops_away() {
    for (name, count) in [("epiphany3", 6), ("epiphany5", 8)] {
        let platform = load(name);
        let Topology::Mesh { columns, .. } = platform.network.topology else {
            panic!("{name} is a mesh");
        };
        let cores = ports::Cores::of(&platform).expect("it has ports");
        assert_eq!(cores.others.len(), count);
        for (tile, far) in cores.others {
            assert_eq!(u64::from(hops(columns, 0, tile)), far, "{name}: {tile}");
        }
    }
    assert!(ports::Cores::of(&load("single")).is_none());
}

/// Published points are within their figure's axes, and named by their source.
#[test]
fn published_curves_have_a_source() {
    for (platform, figure, count) in [
        ("epiphany3", "ports", 2),
        ("imx6", "isolation", 2),
        ("tx2", "slowdown", 2),
        ("tx2", "slowdown-in-order", 2),
        ("zcu102", "dma", 1),
        ("tx2", "loads", 3),
        ("single", "latency", 0),
    ] {
        let curves = published::curves(platform, figure).expect("it can be read");
        assert_eq!(curves.len(), count, "{platform} {figure}");
        for curve in curves {
            assert!(curve.source.is_some() && !curve.points.is_empty());
            let first = curve.points[0];
            let expected = match &*curve.name {
                "m2os-mc-ngres21, write 8 bytes" => (1.0, 596.8, 6),
                "m2os-mc-ngres21, read 8 bytes" => (1.0, 873.5, 6),
                "mc2-rts20, frames, averages" => (5.0, 1.85, 2),
                "mpsoc-ecrts19, Table 2" => (2.0, 2.46, 8),
                _ => continue,
            };
            assert_eq!((first.x, first.y, curve.points.len()), expected);
        }
    }
}

/// Each case divides what its name says: ways between program and rivals, and banks.
#[test]
fn cases_of_isolation_divide_what_they_say() {
    let imx6 = load("imx6");
    let draft = figure(&imx6, "isolation").expect("it has banks and ways");
    let base = imx6.memory_base(1).expect("a memory");
    let of = |run: &super::Run| {
        let banks = run.parts.iter().map(|one| one.bank.expect("a bank"));
        let buffer = run.parts[0].arguments.iter();
        let buffer = buffer.clone().find(|one| one.0 == "buffer");
        let buffer = buffer.map(|(_, at)| {
            let at = u64::from_str_radix(at, 16).expect("hexadecimal");
            (at - base) / (128 << 20)
        });
        let ways = run.parts.iter().map(|one| one.ways);
        (
            banks.collect::<Vec<u64>>(),
            buffer,
            ways.collect::<Vec<_>>(),
        )
    };
    let shared = vec![None; 4];
    let apart = vec![Some((0, 4)), Some((4, 12)), Some((4, 12)), Some((4, 12))];
    for (curve, (_, runs)) in draft.curves.iter().enumerate() {
        let is_frame = curve == 1;
        let buffer = |bank: u64| is_frame.then_some(bank);
        let beside = if is_frame { 4 } else { 0 };
        let expected = [
            (vec![0], buffer(0), vec![Some((0, 4))]),
            (vec![0; 4], buffer(0), shared.clone()),
            (vec![0, 1, 2, 3], buffer(0), shared.clone()),
            (vec![0; 4], buffer(0), apart.clone()),
            (vec![0, beside, 2, 3], buffer(beside), apart.clone()),
            (vec![0, 1, 2, 3], buffer(0), apart.clone()),
        ];
        assert_eq!(runs.iter().map(of).collect::<Vec<_>>(), expected);
    }
}

/// The bytes of a part behind its address translator, and the sets of a cache with this many bytes in a way that its lines use. Parts in main memory are
/// wherever they are placed, so only their sets are known.
fn lines(platform: &Platform, part: &Part, way: u64) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let text = |name: &str| {
        let mut all = part.arguments.iter();
        all.find(|one| one.0 == name).map(|one| one.1.clone())
    };
    let number = |name: &str| text(name).expect("given").parse::<u64>().expect("a number");
    let (period, first, length) = (number("period"), number("first"), number("length"));
    let remote = text("remote").map(|at| u64::from_str_radix(&at, 16).expect("hexadecimal"));
    let (mut bytes, mut sets) = (BTreeSet::new(), BTreeSet::new());
    let start = remote.unwrap_or(0).next_multiple_of(period) + first;
    for block in 0..number("bytes").div_ceil(length) {
        for at in (start..start + length).step_by(64) {
            let at = at + block * period;
            sets.insert(at % way);
            let Some(remote) = remote else { continue };
            assert!((remote..remote + number("extent")).contains(&at));
            let memory = platform.memory(9).expect("a memory");
            let base = platform.memory_base(9).expect("a memory");
            assert!(bytes.insert(memory.byte(at - base).0));
        }
    }
    (bytes, sets)
}

/// Parts with a colour each have no set in common, and together all of them; parts with one colour have the same sets. Nobody has a byte of another.
#[test]
fn colours_divide_the_sets_and_nobody_shares_bytes() {
    for (name, id, way) in [
        ("tx2", "rivals-colours", 128 << 10),
        ("zcu102-colours", "rivals-colours", 64 << 10),
        ("zcu102-colours", "rivals-translator", 64 << 10),
    ] {
        let platform = load(name);
        let draft = figure(&platform, id).expect("a figure");
        for (curve, parts) in draft.curves.iter().zip([1, 4]) {
            let run = curve.1.last().expect("three rivals");
            assert_eq!(run.parts.len(), 4);
            let all: Vec<_> = run
                .parts
                .iter()
                .map(|one| lines(&platform, one, way))
                .collect();
            let bytes: usize = all.iter().map(|one| one.0.len()).sum();
            let together: BTreeSet<u64> = all.iter().flat_map(|one| one.0.clone()).collect();
            assert_eq!(together.len(), bytes, "{name}");
            let sets: BTreeSet<u64> = all.iter().flat_map(|one| one.1.clone()).collect();
            assert_eq!(sets.len() as u64, way / 64 / 4 * parts, "{name} {id}");
        }
    }
}

/// By hand, from the parameters in the files.
#[test]
fn streams_and_crowds_are_those_of_the_page() {
    let single = load("single");
    let costs = Costs::new(&single, &single.tiles[0]);
    let near =
        |a: Option<f64>, b: f64| assert!((a.expect("a value") - b).abs() < 1e-9 * b, "{a:?} {b}");
    // Ten instructions and a cycle for the branch that is taken, for each line of 64 bytes; two loads are issued while a line is on its way.
    near(costs.stream(Stream::Read, 4 << 10), 64.0 / 11.0);
    let served = 1.0 - 208.0 / 6240.0;
    near(
        costs.stream(Stream::Read, 8 << 20),
        64.0 / (9.0 + 66.75 / served),
    );
    // A copy waits for two lines, in other rows, and has 20 instructions and the branch for both; two loads and four stores are issued meanwhile.
    near(
        costs.stream(Stream::Copy, 8 << 20),
        128.0 / (15.0 + 2.0 * 94.25 / served),
    );
    // In the second level, 12 cycles for a line.
    near(costs.stream(Stream::Write, 64 << 10), 64.0 / (7.0 + 12.0));
    let imx6 = load("imx6");
    let costs = Costs::new(&imx6, &imx6.tiles[0]);
    let memory = &imx6.memories[0];
    // Lines of four words, as many as the store buffer has entries: the loads of the next line are issued meanwhile. Their row is in the same bank, which is free
    // after 27 cycles of 528 MHz. Refresh takes 85 of 4118 cycles. A few lines
    // hit the second level, whose replacement is random.
    let line = |stream| costs.stream(stream, 4 << 20).expect("a value");
    let served = 1.0 - 85.0 / 4118.0;
    let (row, write) = (
        27.0 * 800.0 / 528.0 / served,
        32.0 * 0.8 / line(Stream::Write),
    );
    let pair = 64.0 * 0.8 / line(Stream::Copy);
    assert!(
        (pair - (write - 5.5 + row)).abs() < 0.01 * pair,
        "{pair} {write} {row}"
    );
    let crowd = |rivals, sets| Crowd {
        rivals,
        bytes: 2 << 20,
        sets,
    };
    // Without rivals, lines of the second level stay; with them they do not, and the fewer sets there are, the fewer stay.
    let load = |rivals, sets| {
        costs
            .crowded(memory, 128 << 10, crowd(rivals, sets))
            .expect("a cluster")
    };
    let alone = costs.chain(128 << 10, 1.0).expect("a cluster");
    assert!((load(0, 16 << 10) - alone).abs() < 1e-9);
    let one = load(1, 16 << 10);
    assert!(alone < load(1, 64 << 10) && load(1, 64 << 10) < one && one < load(3, 16 << 10));
    // Three others in one bank: an access of 41.7 cycles, and one and a half for each of them.
    let cycle = costs.row_cycle().expect("blocks");
    near(costs.beside(memory, 3, true), cycle * 5.5);
    near(
        costs.beside(memory, 0, true),
        costs.refreshed(costs.memory(false).expect("a cluster")),
    );
}

#[test]
fn hops_are_counted_by_rows_and_columns() {
    assert_eq!((hops(4, 0, 0), hops(4, 0, 5), hops(4, 3, 12)), (0, 2, 6));
}

/// By hand, from the parameters in the files.
#[test]
fn closed_forms_are_those_of_the_pages() {
    let single = load("single");
    let costs = Costs::new(&single, &single.tiles[0]);
    assert_eq!((costs.first(), costs.second()), (2.0, Some(12.0)));
    // A request: 1 + 1 * 2 + 1 + 16/16 + 1 = 6 cycles; memory: 16 + 11 + 64/16 = 31 of 1.25 ns; the answer with a line: 6 + 64/16 = 10.
    assert_eq!(costs.memory(true), Some(12.0 + 6.0 + 38.75 + 10.0));
    // Another row: 22 more cycles of 1.25 ns.
    assert_eq!(costs.memory(false), Some(12.0 + 6.0 + 38.75 + 27.5 + 10.0));
    assert_eq!(costs.overlap(), 2);
    // tRAS 20 and tRP 7 cycles of 528 MHz, in the time that the refresh leaves: 85 of 4118 cycles.
    let imx6 = load("imx6");
    let cycle = Costs::new(&imx6, &imx6.tiles[0])
        .row_cycle()
        .expect("blocks");
    let by_hand = 27.0 * 800.0 / 528.0 / (1.0 - 85.0 / 4118.0);
    assert!((cycle - by_hand).abs() < 1e-9, "{cycle}");
    // 16 cycles of 1.2 GHz, 6 and 10 of the switch's 500 MHz, and 38 + 2 + 4 (or 20 + 2 + 4) of 250 MHz.
    let zcu102 = load("zcu102");
    let costs = Costs::new(&zcu102, &zcu102.tiles[0]);
    let nanoseconds = |memory: usize| {
        let cycles = costs.memory_of(&zcu102.memories[memory], true);
        cycles.expect("a second level") / 1.2
    };
    assert!(
        (nanoseconds(3) - 221.0 - 1.0 / 3.0).abs() < 1e-6,
        "{}",
        nanoseconds(3)
    );
    assert!(
        (nanoseconds(1) - 149.0 - 1.0 / 3.0).abs() < 1e-6,
        "{}",
        nanoseconds(1)
    );
    // The question to the other cluster: 10 cycles there, and both ways 9 cycles of 800 MHz (2 + 1 * (1 + 2) + 1 + 1 + 2), all at 2 GHz.
    let row = |name: &str| {
        let chip = load(name);
        let cycles = Costs::new(&chip, &chip.tiles[0]).memory(true);
        cycles.expect("a second level")
    };
    let question = row("tx2-coherent") - row("tx2");
    assert!((question - 55.0).abs() < 1e-9, "{question}");
    // A store to start: 6 cycles of 2 ns and 16 of the engine. A burst from the main memory: 6, 40 + 19 + 8 of 1333 MHz, 14; to the port: 14,
    // 38 + 2 + 8 of 4 ns, 6. Fifteen more at 16 cycles of the engine, which the port's 8 of 4 ns equal. A load: 6, 25, 6.
    let r5 = Costs::new(&zcu102, &zcu102.tiles[2]);
    let [from, to] = [0, 3].map(|memory: usize| &zcu102.memories[memory]);
    let cycles = r5.transfer(&zcu102.engines[0], (from, to), 2048);
    let by_hand = 44.0 + 40.0 + 67.0 / 1.333 + 232.0 + 15.0 * 32.0 + 74.0;
    let transfer = cycles.expect("a crossbar") / 0.5;
    assert!((transfer - by_hand).abs() < 1e-6, "{transfer} {by_hand}");
    let mesh = load("epiphany3");
    let costs = Costs::new(&mesh, &mesh.tiles[0]);
    // The table on the page about local memories: 9 + 3 h.
    for far in 1..=6 {
        let closed = costs.remote(far).expect("local");
        assert!(
            (closed - f64::from(9 + 3 * far)).abs() <= 2.0,
            "{far}: {closed}"
        );
    }
}
