//! Tiles with fixed priorities, by hand.

use super::*;
use bulkhead_model::{LoadOptions, load_system};

fn load(apps: &str) -> System {
    let folder = std::env::temp_dir().join(format!("bulkhead-admission-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let hash = apps
        .bytes()
        .fold(7u64, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let path = folder.join(format!("{hash:x}.xml"));
    let text = format!(
        "<system name=\"s\" platform=\"tiled-gem5\"><domain name=\"d\">{apps}</domain>\
         <tilemux tile=\"2\" policy=\"realtime\"/></system>"
    );
    std::fs::write(&path, text).unwrap();
    let system = load_system(&path, &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    std::fs::remove_file(&path).unwrap();
    system
}

fn app(name: &str, cpu: &str, task: &str) -> String {
    format!("<app name=\"{name}\" tile=\"2\" program=\"p\"><cpu {cpu}/>{task}</app>")
}

#[test]
fn without_priorities_there_is_nothing_to_admit() {
    let system = load_system("quickstart", &LoadOptions::default()).unwrap();
    assert_eq!(tiles(&system), Ok(vec![]));
}

/// 1 of 4 ms, 2 of 6 ms and 3 of 12 ms respond within 1, 3 and 10 ms (1 + 2 + 1 + 1 + 2 + 3 by hand), plus some switches and the kernel
/// requests that fit in.
#[test]
fn response_times_are_those_of_the_test_and_some_switches() {
    let text = app("a", "quota=\"1ms\" period=\"4ms\"", "")
        + &app("b", "quota=\"2ms\" period=\"6ms\"", "")
        + &app("c", "quota=\"3ms\" period=\"12ms\"", "");
    let system = load(&text);
    let found = tiles(&system).unwrap();
    let requests = requests(&system, &Chip::new(&system.platform), 2).unwrap();
    let [tile] = &found[..] else {
        panic!("one tile")
    };
    assert_eq!(tile.tile, 2);
    let names: Vec<_> = tile
        .reservations
        .iter()
        .map(|r| (r.app.as_str(), r.priority))
        .collect();
    assert_eq!(names, [("a", 3), ("b", 2), ("c", 1)]);
    assert!(tile.switch < 20_000, "{}", tile.switch);
    for (reservation, plain) in tile.reservations.iter().zip([1, 3, 10]) {
        let response = reservation.response.unwrap();
        let of_kernel = (response + requests.jitter).div_ceil(requests.period) * requests.cost;
        let extra = response - plain * 1_000_000 - of_kernel;
        assert!(extra > 0 && extra < 20 * tile.switch, "{reservation:?}");
        assert!(reservation.holds());
    }
}

/// A deadline counts from the arrival, and a job is released `jitter` later.
#[test]
fn responses_contain_the_jitter() {
    let response = |jitter: &str| {
        let task = format!("<task period=\"10ms\" deadline=\"5ms\" cost=\"1ms\"{jitter}/>");
        let found = tiles(&load(&app("a", "quota=\"2ms\" period=\"5ms\"", &task))).unwrap();
        found[0].reservations[0].clone()
    };
    let (without, with) = (response(""), response(" jitter=\"2ms\""));
    assert_eq!(with.response, without.response.map(|one| one + 2_000_000));
    let late = response(" jitter=\"3900us\"");
    assert!(without.holds() && !late.holds(), "{late:?}");
}

/// 24 jobs of 10 us share a budget of 20 ms in 48 ms: none waits for the budget, and none takes as long as using all of it would.
#[test]
fn jobs_that_share_a_budget_that_never_runs_out_answer_as_jobs_do() {
    let response = |cost: &str| {
        let task = format!("<task period=\"2ms\" cost=\"{cost}\"/>");
        let found = tiles(&load(&app("a", "quota=\"20ms\" period=\"48ms\"", &task))).unwrap();
        found[0].reservations[0].clone()
    };
    let short = response("10us");
    assert!(short.holds() && short.response < Some(200_000), "{short:?}");
    // 49 of them (two periods and a job) exceed the budget: a piece joined to the last one may be missing.
    let long = response("400us");
    assert!(!long.holds(), "{long:?}");
}

#[test]
fn accesses_of_the_less_urgent_hold_up_the_urgent_and_messages_and_buckets_do_not() {
    let urgent = "<app name=\"a\" tile=\"2\" program=\"p\"><cpu quota=\"1ms\" period=\"4ms\" priority=\"2\"/></app>";
    let response = |others: &str| {
        let found = tiles(&load(&format!("{urgent}{others}"))).unwrap();
        found[0].reservations[0].response.unwrap()
    };
    let beside = |inside: &str| {
        response(&format!(
            "<app name=\"b\" tile=\"2\" program=\"p\"><rgate name=\"in\" slots=\"32\"/>{inside}</app>\
             <app name=\"c\" tile=\"3\" program=\"p\"><sgate name=\"s\" to=\"b\" credits=\"unlimited\"/></app>"
        ))
    };
    let quiet = response("<app name=\"b\" tile=\"2\" program=\"p\"/>");
    // No message for it interrupts, and TileMux does not borrow from its bucket.
    assert_eq!(beside(""), quiet);
    assert_eq!(beside("<limit noc=\"8MiB/s\"/>"), quiet);
    // 50 outstanding accesses, each about 60 ns by itself.
    let leave = quiet - response("");
    assert!((2_000..10_000).contains(&leave), "{leave}");
}

/// A call of a less urgent application that began before counts once, and so does a call with the last of each budget above. By hand for
/// `tiled-gem5`: 2 GHz, and 114.5 ns for each missing line of TileMux, of which 11.25 for activations before it.
#[test]
fn calls_count_once_before_a_job_and_once_for_each_budget() {
    const MS: u64 = 1_000_000;
    let found = |others: &str| {
        let own = app("a", "quota=\"1ms\" period=\"8ms\" priority=\"1\"", "");
        let system = load(&(own + others));
        let requests = requests(&system, &Chip::new(&system.platform), 2).unwrap();
        let tile = tiles(&system).unwrap().remove(0);
        let mut all = tile.reservations.iter();
        let response = all.find(|one| one.app == "a").unwrap().response.unwrap();
        let asked = (response + requests.jitter).div_ceil(requests.period) * requests.cost;
        (response - asked, tile.switch, tile.call)
    };
    let (alone, switch, call) = found("");
    assert_eq!(alone, MS + switch + call);
    // 14 800 cycles and 128 lines; the message takes less than its limit of ten lines and 300 ns.
    let here = 7400 + 14_656;
    assert!((here + 100..here + 1400).contains(&call), "{call}");
    let urgent = |name: &str, priority: u8| {
        let cpu = format!("quota=\"1ms\" period=\"8ms\" priority=\"{priority}\"");
        app(name, &cpu, "")
    };
    let overrun = 2 * switch + 400 + call;
    assert_eq!(found(&urgent("b", 2)).0, alone + MS + overrun);
    let both = urgent("b", 2) + &urgent("c", 1);
    assert_eq!(found(&both).0, alone + 2 * (MS + overrun));
    // Of a manager, each of the smallest budgets: 100 of them.
    let manager = "</domain><manager name=\"m\" tile=\"3\" program=\"p\"><cpu quota=\"1ms\" period=\"8ms\" priority=\"2\"/>\
                   <domain name=\"below\"><app name=\"b\" tile=\"2\" program=\"p\"/></domain></manager><domain name=\"rest\">\
                   <app name=\"r\" tile=\"4\" program=\"p\"/>";
    let leave = found("<app name=\"b\" tile=\"2\" program=\"p\"/>").0 - alone;
    assert_eq!(found(manager).0, alone + leave + MS + 100 * overrun);
}

#[test]
fn what_does_not_fit_is_refused() {
    let text = app("a", "quota=\"5ms\" period=\"10ms\" priority=\"9\"", "")
        + &app(
            "b",
            "quota=\"2ms\" period=\"10ms\" priority=\"3\"",
            "<task period=\"10ms\" deadline=\"6ms\"/>",
        );
    let found = tiles(&load(&text)).unwrap();
    let holds: Vec<_> = found[0]
        .reservations
        .iter()
        .map(Reservation::holds)
        .collect();
    assert_eq!(holds, [true, false]);
    // A job of 3 ms at 1 ms per 2 ms waits for two more periods; three jobs per period exceed the quota.
    let slow = "<task period=\"20ms\" deadline=\"6ms\" cost=\"3ms\"/>";
    let often = "<task period=\"3ms\" cost=\"1ms\"/>";
    let text = app("slow", "quota=\"1ms\" period=\"2ms\"", slow)
        + &app("often", "quota=\"2ms\" period=\"9ms\"", often);
    let found = tiles(&load(&text)).unwrap();
    let find = |name: &str| {
        found[0]
            .reservations
            .iter()
            .find(|r| r.app == name)
            .unwrap()
            .clone()
    };
    // 2 ms per 15 ms need more than 1 ms per 10 ms, although two budgets are available within each deadline.
    let greedy = "<task period=\"15ms\" cost=\"2ms\"/>";
    let refused = tiles(&load(&app(
        "greedy",
        "quota=\"1ms\" period=\"10ms\"",
        greedy,
    )))
    .unwrap();
    assert!(!refused[0].reservations[0].holds());
    // Plus, for each job, two switches, and a message before and after its start.
    let (switch, received) = (11_742, 400);
    assert_eq!(refused[0].switch, switch);
    let extra = 2 * switch + 2 * received;
    let greedy = (2_000_000 + extra) * 10;
    assert_eq!(refused[0].reservations[0].unpaid, Some(greedy.div_ceil(15)));
    assert!(find("slow").response.unwrap() > 5_000_000);
    let often = 3 * (1_000_000 + extra);
    assert_eq!(find("often").unpaid, Some(often));
    assert!(!find("often").holds());
}
