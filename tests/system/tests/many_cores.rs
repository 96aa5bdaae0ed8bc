//! Many cores of the one-shot RTOS on a mesh of 4 by 4: switches, and ports by hops. Described systems are in `one_shot_systems`.

use bulkhead_machine::machine::Outcome;
use bulkhead_system_tests::one_shot::{OneShot, SWITCHES, run_on, summary};

/// Cycles of a tick of 1 ms.
const TICK: u64 = 600_000;

/// The measurements of `port_times`: name, the paper's figure in cycles one hop away, and the cycles that an operation waits for one hop
/// there and back, by the number of answers: 3 for each (docs/reference/mesh.md).
const OPERATIONS: [(u64, &str, f64, u64); 7] = [
    // One word has all.
    (1, "get", 88.0, 3),
    // The lock; then acknowledgements of data and news.
    (2, "write 8 bytes", 358.0, 6),
    // The lock, news, data, and the acknowledgement of the read.
    (3, "read 8 bytes", 524.0, 12),
    (4, "write 40 bytes", 742.0, 6),
    // Four words in transit together, and one more.
    (5, "read 40 bytes", 1418.0, 15),
    (6, "lock", 127.0, 3),
    // Releases are posted.
    (7, "unlock", 80.0, 0),
];

/// The same for `queue_times`, compared with the paper's figures for sampling ports: the paper has no queues.
const QUEUES: [(u64, &str, f64, u64); 2] = [
    // The lock, positions, and the acknowledgement of item and positions.
    (1, "put 8 bytes into a queue", 358.0, 9),
    // The lock, positions, item, and the acknowledgement of the positions.
    (2, "take 8 bytes from a queue", 524.0, 12),
];

#[test]
fn operations_on_ports_by_hops() {
    let owners = [1, 2, 3, 7, 11, 15].map(|tile| (tile, "one-shot/port-owner"));
    let placed = [&[(0, "one-shot/port-times")][..], &owners].concat();
    let run = run_on("epiphany3", &placed, 60 * TICK);
    assert!(
        matches!(run.outcome, Outcome::Exit { code: 0, .. }),
        "{:?} {}",
        run.outcome,
        run.console
    );
    for hops in 0..7 {
        let line = format!("right at hops {hops}");
        assert!(
            run.console.lines().any(|other| other == line),
            "{}",
            run.console
        );
    }
    grow_by_hops(&run, &OPERATIONS);
}

#[test]
fn operations_on_queues_by_hops() {
    let placed = [0, 1, 2, 3, 7, 11, 15].map(|tile| (tile, "one-shot/queue-times"));
    let run = run_on("epiphany3", &placed, 60 * TICK);
    assert!(
        matches!(run.outcome, Outcome::Exit { code: 0, .. }),
        "{:?} {}",
        run.outcome,
        run.console
    );
    assert_eq!(run.console, "right\n".repeat(7));
    grow_by_hops(&run, &QUEUES);
}

/// A hundred items there and back, in far less than a tick each: nobody polls, and no item is missed.
#[test]
fn items_are_told_by_doorbells() {
    let placed = [(0, "one-shot/notice"), (1, "one-shot/notice")];
    let run = run_on("epiphany3", &placed, 20 * TICK);
    assert!(
        matches!(run.outcome, Outcome::Exit { code: 0, .. }),
        "{:?} {}",
        run.outcome,
        run.console
    );
    assert!(run.console.lines().any(|line| line == "right"));
    let trips = &run.spans()[&1];
    let (least, average, most) = summary(trips);
    println!("there and back by doorbells: {least} to {most} cycles, {average:.1} on average");
    assert_eq!(trips.len(), 100);
    assert!(most < TICK / 10, "{most}");
}

/// The same with queues of three places, all full before their reader checks: rings that come together are one interrupt.
#[test]
fn items_of_queues_are_told_by_doorbells() {
    let placed = [(0, "one-shot/notice-queue"), (1, "one-shot/notice-queue")];
    let run = run_on("epiphany3", &placed, 20 * TICK);
    assert!(
        matches!(run.outcome, Outcome::Exit { code: 0, .. }),
        "{:?} {}",
        run.outcome,
        run.console
    );
    assert!(run.console.lines().any(|line| line == "right"));
}

/// Prints the cost of operations, and checks that it grows with the answers that they wait for.
fn grow_by_hops(run: &OneShot, operations: &[(u64, &str, f64, u64)]) {
    let spans = run.spans();
    for &(operation, what, paper, slope) in operations {
        let summaries: Vec<(u64, f64, u64)> = (0..7)
            .map(|hops| summary(&spans[&(10 * operation + hops)]))
            .collect();
        let least: Vec<u64> = summaries.iter().map(|(least, _, _)| *least).collect();
        let averages: Vec<f64> = summaries.iter().map(|(_, average, _)| *average).collect();
        println!(
            "{what}: least {least:?}, average {averages:.1?} cycles, own core and 1 to 6 hops; the paper's, one hop, {paper}"
        );
        assert!(averages[1] < paper, "{what}: {}", averages[1]);
        // Two more hops cost twice the slope, to the cycle: half cycles of a single hop depend on its parity.
        for hops in 1..5 {
            assert_eq!(
                least[hops + 2] - least[hops],
                2 * slope,
                "{what}, from {hops} hops on: {least:?}"
            );
        }
    }
}

#[test]
fn switches_on_the_papers_platform() {
    let run = run_on("epiphany3", &[(0, "one-shot/switches-mesh")], 3000 * TICK);
    assert!(matches!(run.outcome, Outcome::Exit { code: 0, .. }));
    let spans = run.spans();
    for (number, what, paper) in SWITCHES {
        let (least, average, most) = summary(&spans[&number]);
        println!(
            "epiphany3: {what}: {least} to {most} cycles, {average:.1} on average; the paper's {paper}"
        );
        assert!(average < paper, "{what}: {average}");
    }
}
