//! The effects of one activity of a tile on the others.

use bulkhead_analysis::admission;
use bulkhead_analysis::communication::Chip;
use bulkhead_model::{LoadOptions, load_system};
use bulkhead_runner::watch::Event;
use bulkhead_system_tests::shared_tiles::{boot, boot_heard, spans, system, variant, watch};

#[test]
fn a_crash_harms_nobody_else() {
    let result = boot(system("crash"), &[]);
    let alone = variant(&result, "alone");
    assert!(alone.incidents.is_empty(), "{:?}", alone.incidents);
    for name in ["throughput", "realtime"] {
        let seen = variant(&result, name);
        // The root manager ends with 3, because some applications did not end with 0.
        let bad = seen.incidents.iter().filter(|i| i.application != "root");
        let what: Vec<_> = bad.map(|i| (i.application.as_str(), i.at)).collect();
        let at = |name| {
            what.iter()
                .find(|(app, _)| *app == name)
                .and_then(|(_, at)| *at)
        };
        // Each fault has its own moment, though both are on one tile.
        let (store, panic) = (at("store"), at("panic"));
        assert!(
            store.is_some() && panic.is_some() && store != panic && what.len() == 2,
            "{what:?}"
        );
        assert_eq!(spans(seen, "ping").samples.len(), 100);
        assert_eq!(seen.checks, alone.checks);
        assert_eq!(seen.checks.len(), 1);
    }
}

#[test]
fn a_message_wakes_the_urgent_at_once() {
    for platform in ["tiled-gem5", "tiled-fpga"] {
        let (result, logs) = watch(system("wake"), &[&format!("@platform={platform}")]);
        for (variant, log) in result.variants.iter().zip(&logs) {
            let span = spans(variant, "waiter");
            assert_eq!(span.samples.len(), 100, "{platform}");
            for sample in &span.samples {
                let (begin, end) = (sample.begin, sample.begin + sample.latency);
                let mut messages = log.of(2).filter(|(at, event)| {
                    (begin..=end).contains(at) && matches!(event, Event::Message(_))
                });
                let (came, _) = messages.next().unwrap();
                let cycles = result.cycles(end - came);
                // A switch, and the fetch of the message.
                assert!(cycles <= 2000, "{platform}, {}: {cycles}", variant.name);
            }
        }
    }
}

#[test]
fn a_switch_is_short_and_within_its_bound() {
    for (platform, most) in [("tiled-gem5", 1500), ("tiled-fpga", 1500)] {
        let text = format!("@platform={platform}");
        let result = boot("m3/switch", &[&text]);
        let options = LoadOptions {
            overrides: vec![text],
            ..LoadOptions::default()
        };
        let loaded = load_system("m3/switch", &options).unwrap_or_else(|error| panic!("{error}"));
        let chip = Chip::new(&loaded.platform);
        let bound = admission::switch(&loaded, &chip, 2).unwrap();
        for flow in &variant(&result, "warm").flows {
            let median = result.cycles(flow.latency.p50);
            assert!(median < most, "{platform}: {median}");
        }
        for one in &result.variants {
            for flow in &one.flows {
                let worst = result.microseconds(flow.latency.max) * 1000.0;
                assert!(
                    worst <= bound as f64,
                    "{platform}, {}: {worst} above {bound}",
                    one.name
                );
            }
        }
    }
}

#[test]
fn a_storm_of_messages_for_the_less_urgent_costs_nothing() {
    let result = boot("m3/storm", &[]);
    let jobs = |name| {
        let samples = &spans(variant(&result, name), "task").samples;
        samples
            .iter()
            .map(|s| result.cycles(s.latency))
            .collect::<Vec<_>>()
    };
    let quiet = jobs("quiet");
    assert_eq!(quiet.len(), 40);
    // Neither with the unit's choice of the interrupting messages nor with a second hart that takes the interrupts. TileMux's work between
    // two jobs may leave a branch predicted differently: one misprediction in a job. In the first job the manager may still start the
    // receiver.
    for name in ["storm", "second-hart"] {
        for (quiet, stormy) in quiet.iter().zip(&jobs(name)).skip(1) {
            assert!(stormy.abs_diff(*quiet) <= 10, "{name}: {stormy}, {quiet}");
        }
    }
}

/// An attack on a control loop's tile: no job is later than `check` says, all of them together lose no more than `check` counts for the
/// kernel's requests to TileMux, and the attackers did what they report.
fn held(name: &str, took: &str) {
    held_with(name, took, &[]);
}

fn held_with(name: &str, took: &str, overrides: &[&str]) {
    let (result, consoles) = boot_heard(system(name), overrides);
    let options = LoadOptions {
        overrides: overrides.iter().map(|text| (*text).to_owned()).collect(),
        ..LoadOptions::default()
    };
    let loaded = load_system(system(name), &options);
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let tiles = admission::tiles(&loaded).unwrap_or_else(|error| panic!("{error}"));
    let (bound, period) = (
        tiles[0].reservations[0].response.unwrap_or(0),
        tiles[0].reservations[0].period,
    );
    let nanoseconds = |ticks| (result.microseconds(ticks) * 1000.0) as u64;
    // From their releases on, because a job can also begin late; one of them begins at its release.
    let responses = ["alone", "beside"].map(|name| {
        let samples = &spans(variant(&result, name), "control").samples;
        assert_eq!(samples.len(), 100, "{name}");
        let jobs = || samples.iter().zip((0u64..).map(|job| job * period));
        let first = jobs().map(|(job, release)| nanoseconds(job.begin) - release);
        let first = first.min().unwrap_or(0);
        let all =
            jobs().map(|(job, release)| nanoseconds(job.begin + job.latency) - first - release);
        all.collect::<Vec<u64>>()
    });
    let worst = responses
        .each_ref()
        .map(|all| *all.iter().max().unwrap_or(&0));
    let all = responses.each_ref().map(|all| all.iter().sum::<u64>());
    println!("{name}: alone and beside {worst:?} ns of {bound}, together {all:?}");
    assert!(consoles[1].contains(took), "no attack: {}", consoles[1]);
    let said = consoles[1].lines().rfind(|line| line.contains(took));
    println!("the last of the attack: {}", said.unwrap_or_default());
    assert!(!consoles[1].contains("won: "), "{}", consoles[1]);
    assert!(worst[1] <= bound, "{worst:?} above {bound}");
    let requests = admission::requests(&loaded, &Chip::new(&loaded.platform), 2);
    let requests = requests.unwrap_or_else(|error| panic!("{error}"));
    // A job meets at most one: the time between two is longer than a job.
    let delay = worst[1].saturating_sub(worst[0]);
    println!(
        "a job takes {delay} ns longer, a request at most {}",
        requests.cost
    );
    assert!(delay <= requests.cost, "a request takes {delay} ns");
    let time = 99 * period;
    let most = (time / requests.period + 2) * requests.cost;
    let lost = all[1].saturating_sub(all[0]);
    assert!(lost <= most, "{lost} ns lost, {most} admitted");
}

#[test]
fn gates_that_a_neighbour_makes_while_it_runs_interrupt_nobody_more_urgent() {
    held("gates", " messages over 40 gates");
}

#[test]
fn a_pager_that_maps_without_faults_delays_nobody_more_urgent() {
    held("remap", " 0 refused");
}

#[test]
fn a_pager_that_takes_dirty_pages_delays_nobody_more_urgent() {
    held("soil", "all lines of 64 pages are dirty");
}

/// TileMux once set a timer after each request of the kernel, so the start of an activity interrupted its first job.
#[test]
fn nothing_interrupts_a_job_that_nobody_asks_for_anything() {
    let (result, logs) = watch(system("undisturbed"), &[]);
    let ([seen], [log]) = (&result.variants[..], &logs[..]) else {
        panic!("one variant")
    };
    for (tile, app) in [(2, "slices"), (3, "priorities")] {
        let samples = &spans(seen, app).samples;
        assert_eq!(samples.len(), 1, "{app}");
        for job in samples {
            let (begin, end) = (job.begin, job.begin + job.latency);
            let inside = |(at, event): &(u64, Event)| {
                (begin..end).contains(at) && *event == Event::Interrupt
            };
            assert_eq!(
                log.of(tile).filter(inside).count(),
                0,
                "{app}, {begin} to {end}"
            );
        }
        assert!(
            log.of(tile).any(|(_, event)| event == Event::Interrupt),
            "{app}"
        );
    }
}

/// Where nobody is urgent, the kernel's requests to TileMux take a tenth of a hart that others want, and each request takes one interrupt.
#[test]
fn a_pager_that_maps_without_faults_takes_a_share_of_a_tile_with_slices() {
    let (result, consoles) = boot_heard(system("remap-slices"), &[]);
    let [alone, beside] = ["alone", "beside"].map(|name| {
        let samples = &spans(variant(&result, name), "control").samples;
        assert_eq!(samples.len(), 100, "{name}");
        samples.iter().map(|job| job.latency).sum::<u64>()
    });
    println!("all jobs take {alone} ticks alone, {beside} beside the pager");
    assert!(
        consoles[1].contains(" 0 refused"),
        "no attack: {}",
        consoles[1]
    );
    assert!(
        beside * 100 <= alone * 120,
        "{beside} beside, {alone} alone"
    );
    // The pager asked for that. Before the fix, the ledger named its client, which sleeps and asks for nothing.
    let hart = variant(&result, "beside").interference.iter();
    let hart = hart.filter(|entry| entry.victim == "control" && entry.resource == "processor");
    let of = |name| {
        let rows = hart.clone().filter(|entry| entry.culprit == name);
        rows.map(|entry| entry.ticks).sum::<u64>()
    };
    let (pager, client) = (of("pager"), of("client"));
    println!("control waits {pager} ticks for the pager, {client} for its client");
    assert!(pager > 20 * client, "{pager} and {client}");
}

#[test]
fn children_that_come_and_go_delay_nobody_more_urgent() {
    held("churn", " 0 refused");
}

#[test]
fn lines_that_children_leave_behind_delay_nobody_more_urgent() {
    held("burn", " dirty pages, 0 refused");
}

/// Children on the loop's tile end at one moment, more of them than the kernel has slots for their tile, while the kernel revokes something
/// for an important caller for 800 us and hears nobody. Before the fix, TileMux waited for a slot in machine mode.
#[test]
fn ends_that_the_kernel_has_no_slot_for_delay_nobody_more_urgent() {
    held("exits", " moments, 7 children");
}

/// The unit's sleep command stops the hart, but not the interrupts that give it to a more urgent activity.
#[test]
fn a_hart_that_sleeps_delays_nobody_more_urgent() {
    held("sleeps", " sleeps of the hart");
}

/// A job that is released while TileMux reads a neighbour's text begins when that call and a switch are over. The wait is in its response,
/// which begins with its release.
#[test]
fn a_text_of_a_neighbour_delays_a_job_by_one_call() {
    held("texts", " texts");
    let result = boot(system("texts"), &[]);
    let loaded = load_system(system("texts"), &LoadOptions::default());
    let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
    let tiles = admission::tiles(&loaded).unwrap_or_else(|error| panic!("{error}"));
    let [alone, beside] = ["alone", "beside"].map(|name| {
        let task = &variant(&result, name).tasks[0];
        let nanoseconds = |ticks: u64| (result.microseconds(ticks) * 1000.0) as u64;
        [task.begin, task.worst].map(|ticks| nanoseconds(ticks.unwrap_or(0)))
    });
    let (call, switch) = (tiles[0].call, tiles[0].switch);
    println!(
        "begun after and response: alone {alone:?}, beside texts {beside:?} ns; call {call}, switch {switch}"
    );
    // Half of the time that such a call took when it was first measured.
    assert!(beside[0] > alone[0] + 2_300, "no call was under way");
    assert!(beside[0] <= call + switch, "{beside:?}");
    assert!(beside[1] > alone[1] + 2_300, "{alone:?}, {beside:?}");
}

/// The same attacks on a tile whose second hart takes the interrupts.
#[test]
fn attacks_on_a_tile_with_two_harts_delay_nobody_more_urgent() {
    for (name, took) in [
        ("gates", " messages over 40 gates"),
        ("soil", "all lines of 64 pages are dirty"),
        ("churn", " 0 refused"),
        ("burn", " dirty pages, 0 refused"),
    ] {
        held_with(name, took, &["platform/tile[2]@harts=2"]);
    }
}

#[test]
fn a_lazy_heap_costs_one_fault_a_page_and_gives_the_same_results() {
    let result = boot(system("lazy"), &[]);
    let traps = |name| {
        let tile = variant(&result, name)
            .tiles
            .iter()
            .find(|tile| tile.tile == 2);
        let mut counters = tile.unwrap().counters.iter();
        counters
            .find(|counter| counter.name == "traps")
            .unwrap()
            .value
    };
    for name in ["eager", "lazy"] {
        let seen = variant(&result, name);
        // An application that uses up its heap ends for that reason, however the heap is mapped.
        let [ended] = &seen.incidents[..] else {
            panic!("{name}: {:?}", seen.incidents);
        };
        assert_eq!(ended.application, "exhaust", "{name}");
        let why = "stopped: heap exhausted: memory allocation of ";
        assert!(ended.what.starts_with(why), "{name}: {}", ended.what);
        let advice = "; give the application more `memory`";
        assert!(ended.what.ends_with(advice), "{name}: {}", ended.what);
        assert!(seen.flows.is_empty());
    }
    // Two heaps of 64 pages are written, and one of at least 16.
    assert!(
        traps("lazy") >= traps("eager") + 2 * 64 + 16,
        "{} and {}",
        traps("lazy"),
        traps("eager")
    );
}
