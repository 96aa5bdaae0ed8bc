//! Images of the one-shot RTOS: order of jobs, activations, switches, faults, and how large they are.

use bulkhead_machine::machine::Outcome;
use bulkhead_runner::oneshot::console::Ring;
use bulkhead_runner::oneshot::footprint::Footprint;
use bulkhead_system_tests::one_shot::{Event, OneShot, SWITCHES, image, run, summary};

/// Cycles of a tick of 1 ms.
const TICK: u64 = 1_000_000;

/// Checks that the task that begins is the most urgent ready one and that no task preempts; returns the ticks of each task's releases.
fn releases(run: &OneShot, count: usize, tick: u64) -> Vec<Vec<u64>> {
    let mut releases = vec![vec![0]; count];
    let mut ready = (1u64 << count) - 1;
    let mut running = None;
    for (cycle, event) in run.events() {
        match event {
            Event::Release(tasks) | Event::Event(tasks) => {
                for (task, times) in releases.iter_mut().enumerate() {
                    if tasks >> task & 1 == 1 {
                        times.push(cycle / tick);
                    }
                }
                ready |= tasks;
            }
            Event::Begin(task) => {
                assert_eq!(running, None, "{task} preempts at {cycle}");
                assert_eq!(
                    u64::from(ready.trailing_zeros()),
                    task,
                    "at {cycle} of {ready:b}"
                );
                ready &= ready - 1;
                running = Some(task);
            }
            Event::End(task) => assert_eq!(running.take(), Some(task), "at {cycle}"),
            other => panic!("{other:?} at {cycle}"),
        }
    }
    releases
}

#[test]
fn six_tasks_are_released_by_their_periods() {
    let run = run("one-shot/six-tasks", 200 * TICK);
    assert_eq!(run.outcome, Outcome::Limit);
    for (times, period) in releases(&run, 6, TICK).iter().zip([5, 7, 10, 14, 20, 35]) {
        let expected: Vec<u64> = (0..200).step_by(period).collect();
        assert_eq!(times, &expected);
    }
    let Ring::Lines { lines, lost } = &run.rings[0] else {
        panic!("{:?}", run.rings[0])
    };
    let jobs: usize = [5, 7, 10, 14, 20, 35]
        .map(|period| 200usize.div_ceil(period))
        .iter()
        .sum();
    assert_eq!(lines.len() + usize::from(*lost), jobs);
    // Tick 196 is the last one with releases: of the tasks with periods of 7 and 14.
    assert_eq!(lines[lines.len() - 2..], ["task 2", "task 4"]);
}

/// Cycles of a tick of `order`, a tenth of the usual one: what the policy decides depends on the ratio of costs and periods, and no job ends less than a tenth of
/// a tick before a release unless it ends at one, which is far more than interrupts and switches take meanwhile.
const SHORT: u64 = TICK / 10;

/// The policy in its plainest words: at each moment the most urgent released job runs to its end; a task is released at multiples of its
/// period, but not before its last job is over.
fn expected_order(tasks: &[(u64, u64)], until: u64) -> Vec<u64> {
    let mut order = Vec::new();
    let mut next = vec![0u64; tasks.len()];
    let mut jobs = vec![0u64; tasks.len()];
    let mut now = 0;
    while now < until {
        let Some(task) = (0..tasks.len()).find(|task| next[*task] * SHORT <= now) else {
            now = next.iter().min().expect("there are tasks") * SHORT;
            continue;
        };
        let (cycles, period) = tasks[task];
        order.push(task as u64);
        jobs[task] += 1;
        now += cycles
            + if jobs[task].is_multiple_of(4) {
                SHORT
            } else {
                0
            };
        next[task] = jobs[task] * period;
    }
    order
}

#[test]
fn jobs_that_wait_for_each_other_run_in_the_policys_order() {
    let run = run("one-shot/order", 540 * SHORT);
    releases(&run, 6, SHORT);
    let tasks = [
        (10_000, 5),
        (30_000, 7),
        (50_000, 10),
        (70_000, 14),
        (150_000, 20),
        (230_000, 35),
    ];
    let begun: Vec<u64> = run
        .events()
        .into_iter()
        .filter_map(|(_, event)| match event {
            Event::Begin(task) => Some(task),
            _ => None,
        })
        .collect();
    // Interrupts and switches are not in the model; the last jobs before the end may be another number.
    let expected = expected_order(&tasks, 530 * SHORT);
    assert!(begun.len() >= expected.len() && expected.len() > 300);
    assert_eq!(begun[..expected.len()], expected);
}

#[test]
fn the_same_image_gives_the_same_ticks() {
    let [first, second] = [(); 2].map(|()| run("one-shot/order", 50 * SHORT));
    assert_eq!(first.digest, second.digest);
}

#[test]
fn switches_take_less_than_the_papers() {
    let run = run("one-shot/switches", 3000 * TICK);
    assert!(matches!(run.outcome, Outcome::Exit { code: 0, .. }));
    let spans = run.spans();
    for (number, what, paper) in SWITCHES {
        let spans = &spans[&number];
        assert!(spans.len() >= 999, "{what}: {} spans", spans.len());
        let (least, average, most) = summary(spans);
        println!("{what}: {least} to {most} cycles, {average:.1} on average; the paper's {paper}");
        assert!(average < paper, "{what}: {average}");
    }
    let (_, delay, most) = summary(&spans[&1]);
    assert!(
        delay <= 150.0 && most <= 358,
        "{delay} on average, {most} at most"
    );
}

#[test]
fn images_are_small() {
    for (name, paper) in [
        ("one-shot/six-tasks", 12_686),
        ("one-shot/two-tasks", 11_678),
    ] {
        let elf = image(name);
        let size = Footprint::of(name, &elf).expect("an image");
        // A millisecond of `single`, for which it is built; `boot` says so on another platform.
        assert_eq!(bulkhead_runner::oneshot::tick::counts(&elf), Some(10_000));
        println!(
            "{name}: text {}, data {}, bss {}: {} bytes; stack {}, ring {}; the paper's {paper}",
            size.text,
            size.data,
            size.bss,
            size.total(),
            size.stack,
            size.ring
        );
        assert!(2 * size.total() <= paper, "{name}: {size:?}");
    }
}

#[test]
fn every_kind_of_activation() {
    let run = run("one-shot/services", 200 * TICK);
    assert!(
        matches!(run.outcome, Outcome::Exit { code: 0, .. }),
        "{}",
        run.console
    );
    let at = |who: &str| -> Vec<u64> {
        let mark = format!("{who} at ");
        let lines = run
            .console
            .lines()
            .filter_map(|line| line.strip_prefix(&mark));
        lines.map(|tick| tick.parse().expect("a tick")).collect()
    };
    let every_other: Vec<u64> = (0..30).map(|job| 2 * job).collect();
    assert_eq!(at("source"), every_other);
    // Its first job comes with the start, and each ring of the bell releases one at once; the last one comes with the end.
    assert_eq!(at("doorbell")[1..], every_other[..29]);
    // Events come every two ticks; jobs keep five ticks of distance, from the first event on.
    let sporadic = at("sporadic");
    assert_eq!(sporadic[..2], [0, 0]);
    assert!(sporadic.len() >= 11);
    assert!(
        sporadic[1..].windows(2).all(|pair| pair[1] == pair[0] + 5),
        "{sporadic:?}"
    );
    // The timing event sets itself again every three ticks, and the entry opens every second time.
    let alarms = at("alarm");
    assert!(
        alarms.windows(2).all(|pair| pair[1] == pair[0] + 3) && alarms[0] == 3,
        "{alarms:?}"
    );
    let pairs: Vec<u64> = alarms.chunks_exact(2).map(|pair| pair[1]).collect();
    assert_eq!(at("pair")[1..], pairs);
    // Kernels tell ticks from what tasks wait for. No tick releases the tasks of the doorbell and of the entry. The sporadic one is released by its first
    // event, and then by the ticks that keep its distance.
    let (mut ticks, mut events) = (0, 0);
    for (_, event) in run.events() {
        match event {
            Event::Release(tasks) => ticks |= tasks,
            Event::Event(tasks) => events |= tasks,
            _ => {}
        }
    }
    assert_eq!((ticks, events), (0b0110, 0b1101), "{ticks:b} {events:b}");
}

#[test]
fn a_fault_stops_its_task_alone() {
    let run = run("one-shot/faults", 100 * TICK);
    assert!(
        matches!(run.outcome, Outcome::Exit { code: 0, .. }),
        "{}",
        run.console
    );
    let has = |text: &str| {
        let found = run
            .console
            .lines()
            .filter(|line| line.starts_with(text))
            .count();
        assert!(found > 0, "{text}\n{}", run.console);
        found
    };
    assert_eq!(has("honest "), 10);
    // The stack grows into the code, which is locked.
    has("stopped: task 1, cause 7 at 0x");
    has("stopped: task 2, panic at workloads/one-shot/src/faults.rs:");
    has("stopped: task 3, cause 7 at 0x");
    assert!(run.console.contains(", value 0x0000000080000000"));
    has("stopped: task 4, cause 5 at 0x");
    assert!(run.console.contains(", value 0x0000000040000000"));
    has("stopped: task 6, cause 24 at 0x");
    assert_eq!(has("stopped: "), 5);
    // One job is over its budget at its end, one within a tick; nobody is watched while nobody runs.
    assert_eq!(has("over its budget: task 5"), 2);
    // The one within a tick with the place that it had reached.
    assert_eq!(has("over its budget: task 5 at 0x00000000800"), 1);
    assert_eq!(has("over its budget: "), 2);
    let overruns = run
        .events()
        .into_iter()
        .filter_map(|(_, event)| match event {
            Event::Overrun(task) => Some(task),
            _ => None,
        });
    assert_eq!(overruns.collect::<Vec<_>>(), [5, 5]);
}

/// Operations on ports of the own core: numbers of spans of `port_times`, and the paper's figures with one hop, in its cycles.
const PORTS: [(u64, &str, f64); 8] = [
    (0, "initialise", 334.0),
    (10, "get", 88.0),
    (20, "write 8 bytes", 358.0),
    (30, "read 8 bytes", 524.0),
    (40, "write 40 bytes", 742.0),
    (50, "read 40 bytes", 1418.0),
    (60, "lock", 127.0),
    (70, "unlock", 80.0),
];

#[test]
fn ports_of_the_own_core() {
    // Its tick is 60 ms here. Then it looks for the next core, and there is none: that is a fault of the task.
    let run = run("one-shot/port-times", 70 * TICK);
    assert!(run.console.contains("right at hops 0\n"), "{}", run.console);
    let beyond = "stopped: task 0, cause 5 at 0x";
    let address = "value 0x0000000100107e08";
    let told = run.console.lines().last().expect("lines");
    assert!(
        told.starts_with(beyond) && told.ends_with(address),
        "{told}"
    );
    let spans = run.spans();
    for (number, what, paper) in PORTS {
        let (least, average, most) = summary(&spans[&number]);
        println!(
            "own core: {what}: {least} to {most} cycles, {average:.1} on average; the paper's, one hop away, {paper}"
        );
        assert!(2.0 * average <= paper, "{what}: {average}");
    }
}
