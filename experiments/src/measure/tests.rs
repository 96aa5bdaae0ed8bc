//! Tests of what is measured, without running anything.

use super::closed::{Costs, hops};
use super::sizes;
use bulkhead_model::{LoadOptions, load_platform};

#[test]
fn sizes_are_powers_and_the_middle_between() {
    assert_eq!(sizes(4, 16), [4, 6, 8, 12, 16]);
    assert_eq!(sizes(4, 3), [0; 0]);
}

#[test]
fn hops_are_counted_by_rows_and_columns() {
    assert_eq!((hops(4, 0, 0), hops(4, 0, 5), hops(4, 3, 12)), (0, 2, 6));
}

/// By hand, from the parameters in the files.
#[test]
fn closed_forms_are_those_of_the_pages() {
    let load = |name: &str| load_platform(name, &LoadOptions::default()).expect("valid");
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
