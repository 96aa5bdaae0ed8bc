//! Many cores of the one-shot RTOS on a mesh of 4 by 4: ports by hops, and a flow over all of them beside its bound.

use bulkhead_analysis::schedulability::Task;
use bulkhead_analysis::schedulability::one_shot::{Flow, PlacedTask, flow_bounds};
use bulkhead_machine::machine::Outcome;
use bulkhead_runner::oneshot::console::Ring;
use bulkhead_system_tests::one_shot::{Event, OneShot, SWITCHES, run_on, summary};

/// Cycles of a tick of 1 ms.
const TICK: u64 = 600_000;

/// What `port_times` measures: name, the paper's figure in cycles one hop away, and cycles of a hop there and back that an operation
/// waits for, by the number of answers: 3 for each (docs/reference/mesh.md).
const OPERATIONS: [(u64, &str, f64, u64); 7] = [
    // State, then address.
    (1, "get", 88.0, 6),
    // The lock; then acknowledgements of data and news.
    (2, "write 8 bytes", 358.0, 6),
    // The lock, news, data, and the acknowledgement that it was read.
    (3, "read 8 bytes", 524.0, 12),
    (4, "write 40 bytes", 742.0, 6),
    // Four words under way together, and one more.
    (5, "read 40 bytes", 1418.0, 15),
    (6, "lock", 127.0, 3),
    // What is given back is posted.
    (7, "unlock", 80.0, 0),
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
    let spans = run.spans();
    for (operation, what, paper, slope) in OPERATIONS {
        let summaries: Vec<(u64, f64, u64)> = (0..7)
            .map(|hops| summary(&spans[&(10 * operation + hops)]))
            .collect();
        let least: Vec<u64> = summaries.iter().map(|(least, _, _)| *least).collect();
        let averages: Vec<f64> = summaries.iter().map(|(_, average, _)| *average).collect();
        println!(
            "{what}: least {least:?}, average {averages:.1?} cycles, own core and 1 to 6 hops; the paper's, one hop, {paper}"
        );
        assert!(averages[1] < paper, "{what}: {}", averages[1]);
        // Two hops more cost twice the slope, to the cycle: half cycles of a single hop depend on whether it is an odd one.
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

/// Tiles along the way of the flow.
const WAY: [u16; 16] = [0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12];
/// Cycles that interrupts of the tick and the switches before and after a job take, at most.
const OVERHEAD: u64 = 1200;
/// Cycles from the end of a job to its item in the next core's port: what it stored last is under way.
const TRANSFER: u64 = 100;

/// Longest jobs of the tasks 0 and 1 of a tile, from their first instruction to their last.
fn costs(run: &OneShot, tile: u16) -> [u64; 2] {
    let mut longest = [0; 2];
    let mut begun = 0;
    for (cycle, event) in run.events_of(tile) {
        match event {
            Event::Begin(_) => begun = cycle,
            Event::End(task) => {
                let cost = &mut longest[task as usize];
                *cost = (*cost).max(cycle - begun);
            }
            Event::Release(_) => {}
            other => panic!("{other:?} on tile {tile}"),
        }
    }
    longest
}

fn pipeline(cores: usize) {
    let way = &WAY[..cores];
    let (sink, others) = way.split_last().expect("cores");
    let mut placed: Vec<(u16, &str)> = others
        .iter()
        .map(|tile| (*tile, "one-shot/pipeline-stage"))
        .collect();
    placed[0].1 = "one-shot/pipeline-source";
    placed.push((*sink, "one-shot/pipeline-sink"));
    let run = run_on("epiphany3", &placed, 400 * TICK);
    assert_eq!(run.outcome, Outcome::Limit);
    let mut tasks = Vec::new();
    let mut flow = Flow {
        tasks: Vec::new(),
        transfers: vec![TRANSFER; cores - 1],
    };
    for (core, tile) in way.iter().enumerate() {
        let [stage, other] = costs(&run, *tile).map(|cost| cost + OVERHEAD);
        let period = if core == 0 { 20 * TICK } else { TICK };
        flow.tasks.push(tasks.len());
        tasks.push(PlacedTask {
            task: Task::new(stage, period),
            core,
        });
        tasks.push(PlacedTask {
            task: Task::new(other, 5 * TICK),
            core,
        });
    }
    let bound = flow_bounds(&tasks, std::slice::from_ref(&flow))
        .expect("right tasks")
        .remove(0)
        .expect("a bound");
    let flows = run.flows();
    let worst = flows.values().max().copied().expect("flows");
    let least = flows.values().min().copied().expect("flows");
    println!(
        "{cores} cores: {} events, {least} to {worst} cycles; bound {}",
        flows.len(),
        bound.latency
    );
    assert!(worst <= bound.latency && bound.lossless, "{bound:?}");
    // Events begin every twenty ticks; from the third on none is lost. Later ones may be under way at the end.
    let expected: Vec<u64> = (3..=18).collect();
    let seen: Vec<u64> = flows
        .keys()
        .copied()
        .take_while(|number| *number <= 18)
        .collect();
    assert_eq!(seen, expected);
    let Some(Ring::Lines { lines, .. }) = run.rings.last() else {
        panic!("{:?}", run.rings)
    };
    assert_eq!(lines.last(), Some(&format!("stages {}", cores - 2)));
}

#[test]
fn a_flow_over_four_cores() {
    pipeline(4);
}

#[test]
fn a_flow_over_sixteen_cores() {
    pipeline(16);
}
