//! What accesses of a memory wait at its controller, beside what the analysis says that they may wait at most.
//!
//! The machine's controller and the analysis read the same platform and know nothing of each other. Here the controller has
//! requesters that are as nasty as their slots allow: they fill all of them at once, after random pauses, with hits, with
//! conflicts, with reads and writes. There is neither network nor cache, so the test compares the controller alone.

use bulkhead_analysis::communication::{
    CommunicationError, MemoryTiming, NetworkScenario, Resource, Source, Step, TransactionClass,
    TransactionId, transaction_bound,
};
use bulkhead_machine::dram::controller::{Controller, Request};
use bulkhead_machine::ledger::Ledger;
use bulkhead_machine::noc::Account;
use bulkhead_machine::types::Owner;
use bulkhead_model::platform::Platform;
use bulkhead_model::{LoadOptions, load_platform};
use bulkhead_random::Random;
use bulkhead_runner::convert::convert;
use bulkhead_system_tests::whole::finished;
use proptest::prelude::*;

/// The number of the memory tile, which no requester has.
const MEMORY: u16 = 100;

/// A tile that accesses the memory, with equal accesses.
#[derive(Clone, Copy, Debug)]
struct Requester {
    /// A cache line, or a chunk of a transfer.
    line: bool,
    write: bool,
    /// The most outstanding accesses that it has.
    slots: u32,
    /// Cycles of the memory from the end of an access to the start of the next one on the same slot, at least. (A least distance between starts
    /// would say less: an access that waited long ends just before the next one begins.)
    rest: u64,
}

impl Requester {
    fn bytes(self) -> u64 {
        if self.line { 64 } else { 512 }
    }
}

fn platform(overrides: &[String]) -> Platform {
    let options = LoadOptions {
        overrides: overrides.to_vec(),
        ..LoadOptions::default()
    };
    load_platform("tiled-ddr3", &options).unwrap_or_else(|error| panic!("{error}\n{overrides:?}"))
}

/// What the analysis knows: one resource, one class for each requester.
fn scenario(platform: &Platform, requesters: &[Requester]) -> NetworkScenario {
    let memory = &platform.memories[0];
    let cycle = platform.ticks_per_second() / memory.dram.clock.frequency.0;
    let timing = MemoryTiming::new(&memory.dram, cycle);
    let source = |(tile, one): (usize, &Requester)| {
        let access = timing.access(one.bytes(), one.write, one.line, tile as u16);
        let steps = access.steps.iter().map(|step| Step {
            resource: Some(0),
            ..*step
        });
        let class = TransactionClass {
            name: "access".into(),
            charge: one.bytes(),
            charge_most: one.bytes(),
            outstanding: one.slots,
            least_round_trip: access.front_least + access.least + one.rest * cycle,
            pool: None,
            demand: None,
            steps: [Step::fixed(access.front)]
                .into_iter()
                .chain(steps)
                .collect(),
        };
        Source {
            name: format!("tile {tile}"),
            tile: tile as u16,
            regulator: None,
            classes: vec![class],
        }
    };
    NetworkScenario {
        ticks_per_second: platform.ticks_per_second(),
        resources: vec![Resource {
            name: "memory".into(),
            arbitration: timing.arbitration(),
            outage: timing.refresh(),
            backlog: timing.backlog(),
        }],
        sources: requesters.iter().enumerate().map(source).collect(),
        tandems: Vec::new(),
    }
}

/// A slot of a requester: nothing outstanding, or since when.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Idle { next: u64 },
    Busy { since: u64 },
}

/// Runs the controller until each requester has started this many accesses; gives the worst time of each. Every tick of every access is
/// accounted for, and every wait is in the ledger.
fn worst(platform: &Platform, requesters: &[Requester], accesses: u64, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let size = convert(platform).memories[0].size;
    // Where each requester continues if it streams.
    let mut streams: Vec<u64> = (0..requesters.len() as u64)
        .map(|tile| tile << 20)
        .collect();
    drive(platform, requesters, accesses, |tile| {
        let address = match random.below(10) {
            // Another row of the same bank, where banks go round by rows.
            0..3 => (random.below(64) << 16) + tile as u64 % 2 * 64,
            // Two rows of neighbouring banks.
            3 => (random.below(64) << 16) + 8192 - 64 - random.below(512),
            4..7 => streams[tile] % (size / 2),
            _ => random.below(size / 2),
        };
        streams[tile] += requesters[tile].bytes();
        let pause = match random.below(20) {
            0..12 => 0,
            12..17 => random.below(200),
            _ => random.below(2000),
        };
        (address, pause)
    })
}

/// The same with accesses that `next` chooses: for a tile the address, and half cycles of pause before it.
fn drive(
    platform: &Platform,
    requesters: &[Requester],
    accesses: u64,
    mut next: impl FnMut(usize) -> (u64, u64),
) -> Vec<u64> {
    let config = convert(platform);
    let dram = &config.memories[0].dram;
    let cycle = dram.controller.timing.cycle;
    let mut controller = Controller::new(dram.controller, MEMORY);
    let mut ledger = Ledger::new();
    let tiles = requesters.iter().enumerate();
    let idle = |start| Slot::Idle { next: start };
    let mut slots: Vec<(usize, Slot, u64)> = tiles
        .flat_map(|(tile, one)| (0..one.slots).map(move |_| tile))
        .map(|tile| {
            let (address, pause) = next(tile);
            (tile, idle(pause * cycle / 2), address)
        })
        .collect();
    let mut seen = vec![0; requesters.len()];
    let mut left = accesses * slots.len() as u64;
    let mut waited = 0;
    loop {
        let idle = |(index, slot): (usize, &(usize, Slot, u64))| match slot.1 {
            Slot::Idle { next } => Some((next, index)),
            Slot::Busy { .. } => None,
        };
        let first = slots.iter().enumerate().filter_map(idle).min();
        let first = first.filter(|_| left > 0);
        let decision = controller.next_time();
        match first {
            Some((start, index)) if start <= decision => {
                let (tile, _, address) = slots[index];
                let one = requesters[tile];
                let address = if one.line { address & !63 } else { address };
                let request = Request {
                    token: index,
                    address,
                    bytes: one.bytes() as u32,
                    write: one.write,
                    owner: Owner::new(tile as u16, 0),
                    requester: Owner::new(tile as u16, 0),
                };
                slots[index].1 = Slot::Busy { since: start };
                left -= 1;
                controller.push(start, request, Account::new(start));
            }
            _ if decision == u64::MAX => break,
            _ => controller.step(&mut ledger, None),
        }
        for served in controller.take_served() {
            let (tile, slot, address) = &mut slots[served.token];
            let Slot::Busy { since } = *slot else {
                panic!("{served:?} was not asked for");
            };
            assert_eq!(served.account.accounted(), served.at);
            waited += served.account.waited;
            seen[*tile] = served.at.saturating_sub(since).max(seen[*tile]);
            let again = served.at + requesters[*tile].rest * cycle;
            let (to, pause) = next(*tile);
            *address = to;
            *slot = Slot::Idle {
                next: again + pause * cycle / 2,
            };
        }
    }
    assert!(slots.iter().all(|slot| matches!(slot.1, Slot::Idle { .. })));
    let booked: u64 = ledger.totals().iter().map(|total| total.1).sum();
    assert_eq!(booked, waited, "every wait is somebody's");
    seen
}

/// The bound of each requester's accesses; nothing where any number of others may overtake.
fn bounds(scenario: &NetworkScenario) -> Vec<Option<u64>> {
    let bound = |source| match transaction_bound(scenario, TransactionId { source, class: 0 }) {
        Ok(bound) => Some(bound.path),
        Err(CommunicationError::Overtaken(_) | CommunicationError::TooLarge) => None,
        Err(error) => panic!("{error}"),
    };
    (0..scenario.sources.len()).map(bound).collect()
}

fn controllers() -> impl Strategy<Value = Vec<String>> {
    (
        0usize..3,
        (1u32..8, 1u32..40),
        prop::option::of((1u32..16, 0u32..15)),
        (0usize..3, 0usize..3),
        (any::<[bool; 4]>(), 0usize..4),
    )
        .prop_map(
            |(policy, (cap, queue), writes, (channel_map, bank_map), (flags, frontend))| {
                let [closed, xor, channels, often] = flags;
                let spread = ["row", "burst", "block"];
                let policy = ["fcfs", "fr-fcfs", "slots"][policy];
                let (size, high, low) = match writes.filter(|_| policy != "slots") {
                    Some((high, low)) => (high + 2, high, low.min(high - 1)),
                    None => (0, 0, 0),
                };
                let set = |name: &str, value: &str| format!("dram/controller@{name}={value}");
                vec![
                    set("policy", policy),
                    set("cap", &cap.to_string()),
                    set("queue", &queue.to_string()),
                    set("page", if closed { "closed" } else { "open" }),
                    set("write-queue", &size.to_string()),
                    set("write-high", &high.to_string()),
                    set("write-low", &low.to_string()),
                    set("channels", if channels { "2" } else { "1" }),
                    set("channel-map", spread[channel_map]),
                    set("bank-map", spread[bank_map]),
                    set("xor", if xor { "true" } else { "false" }),
                    format!("dram@refresh-interval={}", if often { 1500 } else { 6240 }),
                    format!("dram@frontend={}", [22, 1, 60, 400][frontend]),
                ]
            },
        )
}

fn requesters() -> impl Strategy<Value = Vec<Requester>> {
    let one =
        (any::<[bool; 2]>(), 1u32..4, 0u64..4).prop_map(|([line, write], slots, rest)| Requester {
            line,
            write,
            slots,
            rest: rest * 3000,
        });
    prop::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Every policy, every map, every page policy, with and without a write queue.
    #[test]
    fn no_access_takes_longer_than_its_bound(controller in controllers(), requesters in requesters(), seed: u64) {
        let platform = platform(&controller);
        let bounds = bounds(&scenario(&platform, &requesters));
        let seen = worst(&platform, &requesters, 100, seed);
        for (seen, bound) in seen.iter().zip(&bounds) {
            prop_assert!(bound.is_none_or(|bound| *seen <= bound), "{} above {:?}", seen, bound);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// In order of arrival without a write queue, the oldest access waits for no younger one: its bound counts the bank or the bus, not both, and no
    /// command of others. So this is where one cycle too few would show.
    #[test]
    fn no_access_in_order_takes_longer_than_its_bound(
        controller in controllers(),
        distances in prop::collection::vec(0u32..30, 6),
        requesters in requesters(),
        seed: u64,
    ) {
        let names = ["row-active", "activate-gap", "four-activates", "write-to-read", "read-to-write", "read-to-precharge"];
        let set = |name: &str, value: u32| format!("dram/controller@{name}={value}");
        let mut all: Vec<String> = controller.into_iter().collect();
        all.push("dram/controller@policy=fcfs".to_owned());
        all.extend(["write-queue", "write-high", "write-low"].map(|name| set(name, 0)));
        all.extend(names.into_iter().zip(distances).map(|(name, value)| set(name, value)));
        let platform = platform(&all);
        let bounds = bounds(&scenario(&platform, &requesters));
        let seen = worst(&platform, &requesters, 100, seed);
        for (seen, bound) in seen.iter().zip(&bounds) {
            prop_assert!(bound.is_some_and(|bound| *seen <= bound), "{} above {:?}", seen, bound);
        }
    }
}

/// Where one distance is what all accesses wait for, the worst access that a search finds comes close to its bound; so a distance that the bound forgot
/// would show. Each is the longest by far once: a written row's end, tRAS, the window of four activations, the turn of the bus.
#[test]
fn bounds_in_order_count_the_distance_that_is_waited_for() {
    struct Case {
        longest: &'static str,
        /// Whose first rows accesses use, one of them at random.
        banks: u64,
        /// Whether each of the other requesters writes.
        writes: [bool; 3],
        /// Accesses are chunks, of which a half lies in the next bank; otherwise they are lines.
        split: bool,
        /// Most that the bound may be, by the worst that was seen.
        limit: f64,
    }
    let lines = |longest, banks, writes, limit| Case {
        longest,
        banks,
        writes,
        split: false,
        limit,
    };
    let cases = [
        lines("dram@write-recovery=80", 1, [true; 3], 1.15),
        lines("dram/controller@row-active=90", 1, [true; 3], 1.15),
        // Each access of the bound waits for a whole window, and one in four does.
        lines("dram/controller@four-activates=400", 8, [true; 3], 4.5),
        // Each access of the bound turns the bus to reads, and one in two can.
        lines(
            "dram/controller@write-to-read=200",
            8,
            [true, false, true],
            2.5,
        ),
        // Rows in two banks are opened side by side.
        Case {
            split: true,
            ..lines("dram@write-recovery=81", 1, [true; 3], 1.4)
        },
    ];
    for Case {
        longest,
        banks,
        writes,
        split,
        limit,
    } in cases
    {
        let controller = [
            "dram/controller@policy=fcfs",
            "dram/controller@write-queue=0",
            "dram/controller@write-high=0",
            "dram/controller@write-low=0",
            "dram@refresh-interval=0",
            longest,
        ];
        let platform = platform(&controller.map(str::to_owned));
        let one = |write, slots| Requester {
            line: !split,
            write,
            slots,
            rest: 0,
        };
        let mut requesters = vec![one(false, 1)];
        requesters.extend(writes.map(|write| one(write, 4)));
        let bound = bounds(&scenario(&platform, &requesters))[0].expect("an order of service");
        let run = |seed| {
            let mut random = Random::new(seed);
            drive(&platform, &requesters, 2000, |_| {
                let bank = random.below(banks) << 13;
                let bank = bank + if split { 8192 - 256 } else { 0 };
                (bank + (random.below(64) << 16), random.below(60))
            })[0]
        };
        let worst = (0..8).map(run).max().expect("eight runs");
        println!("{longest}: {worst} of {bound}");
        assert!(
            worst <= bound && bound as f64 <= worst as f64 * limit,
            "{longest}: {worst} of {bound}"
        );
    }
}

/// The best that a random search finds comes close to the bound: slots are predictable.
#[test]
fn bounds_of_slots_are_within_a_half_of_the_worst_that_random_search_finds() {
    let controller = [
        "dram/controller@policy=slots",
        "dram/controller@write-queue=0",
    ];
    let platform = platform(&controller.map(str::to_owned));
    for tiles in [2, 4, 7] {
        for line in [true, false] {
            let mut requesters = vec![
                Requester {
                    line: true,
                    write: true,
                    slots: 4,
                    rest: 0,
                };
                tiles
            ];
            requesters[0] = Requester {
                line,
                write: false,
                slots: 1,
                rest: 0,
            };
            let bound = bounds(&scenario(&platform, &requesters))[0].expect("slots are bounded");
            let runs = (0..4).map(|seed| worst(&platform, &requesters, 2000, seed)[0]);
            let worst = runs.max().expect("four runs");
            println!("{tiles} tiles, line {line}: {worst} of {bound}");
            assert!(
                worst <= bound && bound * 2 <= worst * 3,
                "{worst} of {bound}"
            );
        }
    }
}

/// An access of many slots beside one of a single slot: the rival passes before each slot, not once. (The lumped link counted it once: 4276 ticks for
/// 5180 seen.)
#[test]
fn each_slot_of_an_access_waits_for_a_turn() {
    let platform = platform(&[
        "dram/controller@policy=slots".to_owned(),
        "dram/controller@write-queue=0".to_owned(),
    ]);
    let one = |line, write| Requester {
        line,
        write,
        slots: 1,
        rest: 0,
    };
    let requesters = [one(true, true), one(false, false)];
    let bounds = bounds(&scenario(&platform, &requesters));
    let seen = worst(&platform, &requesters, 1000, 2);
    println!("{seen:?} of {bounds:?}");
    for (seen, bound) in seen.iter().zip(bounds) {
        assert!(bound.is_some_and(|bound| *seen <= bound), "{seen}");
    }
}

/// First ready with these limits; of the write queue, its size and marks, or 0.
fn first_ready(cap: u32, [size, high, low]: [u32; 3], more: &[&str]) -> Platform {
    let set = |name: &str, value: u32| format!("dram/controller@{name}={value}");
    let own = [
        "dram/controller@policy=fr-fcfs".to_owned(),
        set("cap", cap),
        set("write-queue", size),
        set("write-high", high),
        set("write-low", low),
    ];
    let more = more.iter().map(|&one| one.to_owned());
    platform(&own.into_iter().chain(more).collect::<Vec<_>>())
}

/// The cap bounds how many hits pass; the turns of drains and reads bound what goes in between.
#[test]
fn every_access_has_a_bound_beside_unlimited_rivals() {
    let hog = |write, slots| Requester {
        line: true,
        write,
        slots,
        rest: 0,
    };
    let beside = [
        vec![hog(false, 4), hog(true, 4)],
        vec![hog(true, 1), hog(true, 1)],
        vec![hog(false, 1), hog(true, 16)],
        vec![hog(false, 1), hog(true, 1)],
    ];
    for (cap, queue) in [
        (1, [0; 3]),
        (4, [0; 3]),
        (16, [0; 3]),
        (1, [3, 1, 0]),
        (4, [8, 6, 2]),
        (16, [64, 54, 32]),
    ] {
        let platform = first_ready(cap, queue, &[]);
        for write in [false, true] {
            let mut most = (0.0, 0, 0);
            for rivals in &beside {
                let mut all = vec![hog(write, 1)];
                all.extend(rivals);
                let bound = bounds(&scenario(&platform, &all))[0];
                let bound = bound.expect("an order of service");
                for seed in 0..4 {
                    let worst = worst(&platform, &all, 2000, seed)[0];
                    assert!(
                        worst <= bound,
                        "{cap} {queue:?} {all:?}: {worst} of {bound}"
                    );
                    let share = worst as f64 / bound as f64;
                    most = if share > most.0 {
                        (share, worst, bound)
                    } else {
                        most
                    };
                }
            }
            println!("cap {cap}, queue {queue:?}, write {write}: {most:?}");
        }
    }
}

/// A younger hit that is still in the front end keeps the open row, so the oldest access waits for the front end, too, each time. (That was not
/// counted.)
#[test]
fn hits_in_a_long_front_end_keep_the_row_open() {
    let frontend = 1000;
    let platform = first_ready(16, [0; 3], &[&format!("dram@frontend={frontend}")]);
    let one = |slots| Requester {
        line: true,
        write: false,
        slots,
        rest: 0,
    };
    let requesters = [one(1), one(2)];
    let bound = bounds(&scenario(&platform, &requesters))[0].expect("an order of service");
    let mut asked = 0;
    let seen = drive(&platform, &requesters, 40, |tile| {
        asked += 1;
        match tile {
            // Another row of the bank each time.
            0 => ((1 + asked % 50) << 16, 700),
            // The rival's second access begins half a front end after its first one.
            _ => (asked % 100 * 64, if asked == 3 { frontend } else { 0 }),
        }
    });
    println!("{} of {bound}", seen[0]);
    assert!(seen[0] <= bound, "{} of {bound}", seen[0]);
}

/// Whole systems: every policy, with the map and the rows of the catalog and with others. A run whose observations exceed a bound
/// fails; a request without a bound says why.
#[test]
fn whole_systems_keep_the_bounds_of_every_policy() {
    let spread = [
        "platform/dram/controller@channels=2",
        "platform/dram/controller@bank-map=burst",
        "platform/dram/controller@xor=true",
        "platform/dram/controller@page=closed",
    ];
    for overrides in [&[][..], &spread[..]] {
        let finished = finished("memory-policies", overrides, false);
        let result = &finished.result;
        assert!(result.is_kept(), "{:?}", result.verdict);
        let mut bounded = 0;
        for one in &result.variants {
            assert_eq!(one.flows[0].latency.count, 20, "{}", one.name);
            for request in &one.requests {
                match &request.bound {
                    Some(bound) => {
                        assert!(request.worst <= bound.ticks, "{}: {request:?}", one.name);
                        bounded += usize::from(request.kind == "cache miss");
                    }
                    None => {
                        let why = request.unbounded.as_deref().unwrap_or_default();
                        let known = why.contains("obtained at run time");
                        assert!(known, "{}: {request:?}", one.name);
                    }
                }
            }
            // With a write queue, a flow's requests may take longer than its applications rest.
            let flow = &one.flows[0];
            let first_ready = one.name.starts_with("first-ready");
            let why = flow.unbounded.as_deref().unwrap_or_default();
            let piles_up = first_ready && why.contains("may pile up");
            assert!(flow.bound.is_some() || piles_up, "{}: {why}", one.name);
            let worst = result.microseconds(one.flows[0].latency.max);
            println!("{} {overrides:?}: worst {worst:.1} us", one.name);
        }
        assert!(bounded > 10, "{bounded} cache misses with a bound");
        let digests: std::collections::BTreeSet<_> =
            result.variants.iter().map(|one| &one.digest).collect();
        assert_eq!(digests.len(), 4);
    }
}
