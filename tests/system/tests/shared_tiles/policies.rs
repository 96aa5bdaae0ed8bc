//! Both policies of TileMux on the machine, against adversaries, compared with the bounds of the analysis.

use bulkhead_analysis::admission;
use bulkhead_analysis::communication::Chip;
use bulkhead_model::{LoadOptions, load_system};
use bulkhead_report::result::End;
use bulkhead_system_tests::shared_tiles::{boot, elapsed, refusal, spans, system, variant};

#[test]
fn an_endless_loop_gets_its_share_and_no_more() {
    let result = boot(system("shares"), &[]);
    let ticks = |name| elapsed(variant(&result, name), "work") as f64;
    let alone = ticks("alone");
    // Limited to a fifth: the others have at least four fifths, except for switches, and at the end perhaps a budget more.
    let limited = ticks("limited") / alone;
    assert!((1.15..1.30).contains(&limited), "{limited}");
    // Two others without a limit: a third each, within a round of slices.
    let free = ticks("free") / alone;
    assert!((2.7..3.3).contains(&free), "{free}");
}

#[test]
fn tasks_respond_within_the_bounds_of_the_analysis() {
    let result = boot(system("priorities"), &[]);
    let loaded = load_system(system("priorities"), &LoadOptions::default());
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    for one in &loaded.variants {
        let name = one.variant.as_deref().unwrap_or_default();
        let seen = variant(&result, name);
        assert_eq!(seen.end, End::Exit { code: 0 }, "{:?}", seen.incidents);
        assert!(seen.incidents.is_empty(), "{:?}", seen.incidents);
        let tiles = admission::tiles(one).unwrap();
        let [tile] = &tiles[..] else {
            panic!("one tile")
        };
        let requests = admission::requests(one, &Chip::new(&one.platform), tile.tile);
        let requests = requests.expect("the tile is there");
        for reservation in &tile.reservations {
            assert!(reservation.holds(), "{reservation:?}");
            if reservation.app == "urgent" {
                continue;
            }
            let worst = spans(seen, &reservation.app).latency.max;
            let worst = result.microseconds(worst);
            let bound = reservation.response.unwrap() as f64 / 1000.0;
            assert!(
                worst <= bound,
                "{name}, {}: {worst} above {bound}",
                reservation.app
            );
            let task = seen.tasks.iter().find(|t| t.application == reservation.app);
            let task = task.expect("it has a task");
            let [begin, response] =
                [task.begin, task.worst].map(|ticks| ticks.expect("it has jobs"));
            assert!(result.microseconds(response) <= bound, "{task:?}");
            if reservation.app == "slow" {
                // All are released together every ten milliseconds, so this one begins after one job of each of the others.
                let others = ["fast", "middle"].map(|app| spans(seen, app).latency.min);
                assert!(begin >= others.iter().sum(), "{task:?}, {others:?}");
                assert!(
                    response >= begin + spans(seen, "slow").latency.min,
                    "{task:?}"
                );
            }
            // The bound holds for this system, not for every system. It also counts the kernel's requests, a call to TileMux before the job, and one
            // of each budget above; none of these jobs meets such a request or call.
            let response = reservation.response.unwrap();
            let asked = (response + requests.jitter).div_ceil(requests.period) * requests.cost;
            let own = reservation.priority;
            let called = tile.reservations.iter().filter(|one| one.priority >= own);
            let met = asked + called.count() as u64 * tile.call;
            let without = bound - met as f64 / 1000.0;
            println!(
                "{name}, {}: {worst} of {bound}, {without} without requests and calls",
                reservation.app
            );
            assert!(
                worst * 4.0 > without,
                "{name}, {}: {worst} of {without}",
                reservation.app
            );
        }
    }
    // The endless loop with a budget slows the last task down, by its budget once, twice or three times.
    let worst = |name, app| result.microseconds(spans(variant(&result, name), app).latency.max);
    let more = worst("greedy", "slow") - worst("tasks", "slow");
    assert!((190.0..630.0).contains(&more), "{more}");
}

/// Switches and interrupts that a more urgent task causes are in that task's budget: the task below loses no more than that budget and
/// its possible overrun, and keeps its own.
#[test]
fn who_wakes_up_often_takes_no_more_than_its_budget() {
    let result = boot(system("naps"), &[]);
    let loaded = load_system(system("naps"), &LoadOptions::default());
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let worst =
        |name| result.microseconds(spans(variant(&result, name), "task").latency.max) * 1000.0;
    let alone = worst("alone");
    for one in &loaded.variants {
        let name = one.variant.as_deref().unwrap_or_default();
        let seen = variant(&result, name);
        assert_eq!(seen.end, End::Exit { code: 0 }, "{:?}", seen.incidents);
        let tiles = admission::tiles(one).unwrap();
        let [tile] = &tiles[..] else {
            panic!("one tile")
        };
        let find = |app: &str| tile.reservations.iter().find(|one| one.app == app);
        let task = find("task").expect("it has a quota");
        assert!(task.holds(), "{task:?}");
        let most = worst(name);
        println!("{name}: {most} of {:?}, alone {alone}", task.response);
        assert!(
            most <= task.response.unwrap() as f64,
            "{name}: {most}, {task:?}"
        );
        let others = tile.reservations.iter().filter(|one| one.app != "task");
        for other in others {
            let more = most - alone;
            let overrun = 2.0 * tile.switch as f64;
            assert!(more <= other.budget as f64 + overrun, "{name}: {more}");
            // An application that sleeps and wakes all the time uses its budget up.
            let used = more * 2.0 > other.budget as f64;
            assert!(used || other.app != "naps", "{name}: {more}");
        }
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let text = refusal(system("priorities"), &["urgent/cpu@quota=430us"]);
    assert_eq!(
        text,
        "greedy: `slow` on tile 2 may need 5903 us for its quota, later than its deadline of 5000 us"
    );
    // Budgets contain their switches, but not the kernel's requests to TileMux: the whole of a tile cannot be given away.
    let text = refusal(system("priorities"), &["urgent/cpu@quota=480us"]);
    assert_eq!(
        text,
        "greedy: `slow` on tile 2 and applications with higher priority need more time than the tile has, with switches and the kernel's requests included"
    );
}

#[test]
fn equal_systems_run_equally() {
    let digests = || {
        let result = boot(system("priorities"), &["fast/argument[jobs]@value=10"]);
        let variants = result.variants.into_iter();
        variants.map(|v| (v.ticks, v.digest)).collect::<Vec<_>>()
    };
    assert_eq!(digests(), digests());
}
