use super::*;
use bulkhead_model::platform::PipelineModel;
use bulkhead_model::{LoadOptions, load_platform};

fn platform(overrides: &[&str]) -> Platform {
    named("imx6", overrides)
}

fn named(name: &str, overrides: &[&str]) -> Platform {
    let options = LoadOptions {
        overrides: overrides.iter().map(|one| (*one).to_owned()).collect(),
        ..LoadOptions::default()
    };
    load_platform(name, &options).unwrap_or_else(|error| panic!("{error}"))
}

const IN_SLOTS: [&str; 2] = [
    "dram/controller@policy=slots",
    "dram/controller@write-queue=0",
];

fn job(requests: u64, reads: u64, writes: u64) -> ClusterJob {
    ClusterJob {
        time: 1_000_000,
        requests,
        reads,
        writes,
        reads_ordered: true,
        ..ClusterJob::default()
    }
}

/// Cycles beyond the time alone.
fn added(platform: &Platform, others: &[u16], job: &ClusterJob) -> u64 {
    let cluster = ClusterBounds::new(platform, 0, 1).expect("a cluster");
    let bound = cluster.job(0, &Beside::harts(others), job).expect("finite");
    let cycle = cluster.cycle(&cluster.tile.pipeline);
    (bound.path - job.time).div_ceil(cycle)
}

/// By hand: each of three others may have four data requests and two fetches ahead, four cycles each. The hart's own requests have their
/// service once (except the last one), and up to six of them had begun; or the five others of them are ahead of each. An edge of a clock is
/// less than a cycle, twice for each request.
#[test]
fn a_request_waits_for_what_the_first_levels_of_others_can_ask_for() {
    let platform = platform(&[]);
    let own = |requests: u64| (4 * (requests - 1) + 6 * 4).min(5 * 4 * requests);
    let waits = |requests: u64| 3 * 6 * 4 * requests + own(requests);
    for requests in [1, 10, 1000] {
        let most = added(&platform, &[1, 2, 3], &job(requests, 0, 0));
        assert!(
            (waits(requests)..=waits(requests) + 2 * requests).contains(&most),
            "{requests}: {most} {}",
            waits(requests)
        );
    }
    // Without others, only the hart's own requests are in its way.
    assert!(added(&platform, &[], &job(10, 0, 0)) <= own(10) + 2 * 10);
    assert_eq!(added(&platform, &[1, 2, 3], &job(0, 0, 0)), 0);
}

#[test]
fn more_rivals_and_more_requests_cost_more() {
    let platform = platform(&IN_SLOTS);
    let of = |others: &[u16], job: &ClusterJob| added(&platform, others, job);
    for pair in [&[][..], &[1], &[1, 2], &[1, 2, 3]].windows(2) {
        for one in [job(10, 0, 0), job(10, 5, 0), job(10, 5, 5)] {
            assert!(of(pair[0], &one) < of(pair[1], &one), "{pair:?} {one:?}");
        }
    }
    let jobs = [job(10, 0, 0), job(10, 1, 0), job(10, 2, 0), job(10, 2, 1)];
    for pair in jobs.windows(2) {
        assert!(of(&[1], &pair[0]) < of(&[1], &pair[1]), "{pair:?}");
    }
}

/// By hand: with as many registers as there can be requests, nobody waits for one.
#[test]
fn enough_miss_registers_are_never_waited_for() {
    let wait = |registers: &str| {
        let mut overrides = IN_SLOTS.to_vec();
        overrides.push(registers);
        let platform = platform(&overrides);
        let cluster = ClusterBounds::new(&platform, 0, 1).expect("a cluster");
        let scenario = cluster.scenario(&[0, 1], true, false).expect("finite");
        let wait = cluster.longest_without_register(&[0, 1], &scenario);
        (wait.expect("finite"), {
            let read = TransactionId {
                source: 0,
                class: READ,
            };
            transaction_bound(&scenario, read).expect("finite").path
        })
    };
    assert_eq!(wait("cache[l2]@mshrs=12").0, 0);
    // Of eleven others, eight must end, four at a time.
    let (four, held) = wait("cache[l2]@mshrs=4");
    assert_eq!(four, 2 * held);
    let (eleven, held) = wait("cache[l2]@mshrs=11");
    assert_eq!(eleven, held);
}

/// A packet that waits for room in a router is in no bound: without room for a way there and back, only programs that send none have one. With it, nobody
/// waits, and bounds are the same. On `imx6`, a link and a router take a cycle each, and so does a header.
#[test]
fn routers_with_room_for_a_way_there_and_back_change_no_bound() {
    let most = Err(ClusterError::Room { room: 1, needed: 4 });
    for in_turn in [false, true] {
        let bound = |credits: &str, job: &ClusterJob| {
            let credits = format!("network@credits={credits}");
            let mut overrides = IN_SLOTS.to_vec();
            overrides.push(&credits);
            if in_turn {
                overrides.push("dram/controller@turns=hart");
            }
            let platform = platform(&overrides);
            let cluster = ClusterBounds::new(&platform, 0, 1).expect("a cluster");
            let bound = cluster.job(0, &Beside::harts(&[1]), job);
            bound.map(|bound| bound.path)
        };
        for one in [job(10, 1, 0), job(10, 0, 1)] {
            assert_eq!(bound("1", &one), most);
            assert!(bound("3", &one).is_err());
            let enough = bound("4", &one);
            assert!(enough.is_ok(), "{enough:?}");
            assert_eq!(enough, bound("unlimited", &one));
        }
        if !in_turn {
            assert!(bound("1", &job(10, 0, 0)).is_ok());
        }
    }
}

/// Packets of devices go elsewhere, and fill the same buffers.
#[test]
fn limited_room_beside_a_device_is_refused() {
    let overrides = [
        &IN_SLOTS[..],
        &["dram/controller@turns=hart", "network@credits=64"],
    ]
    .concat();
    let platform = named("imx6-devices", &overrides);
    let cluster = ClusterBounds::new(&platform, 0, 1).expect("a cluster");
    let disk = Beside {
        peripherals: vec![3],
        ..Beside::harts(&[1])
    };
    let job = job(10, 1, 0);
    assert!(cluster.job(0, &Beside::harts(&[1]), &job).is_ok());
    let refused = cluster.job(0, &disk, &job);
    assert!(
        matches!(refused, Err(ClusterError::Network { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_memory_that_reorders_bounds_only_programs_that_stay_in_the_second_level() {
    let platform = platform(&[]);
    let cluster = ClusterBounds::new(&platform, 0, 1).expect("a cluster");
    assert!(cluster.job(0, &Beside::harts(&[1]), &job(10, 0, 0)).is_ok());
    for one in [job(10, 1, 0), job(10, 0, 1)] {
        let refused = cluster.job(0, &Beside::harts(&[1]), &one);
        assert_eq!(refused, Err(ClusterError::Reorders(1)));
    }
}

#[test]
fn what_does_not_exist_is_refused() {
    let platform = platform(&[]);
    let cluster = ClusterBounds::new(&platform, 0, 1).expect("a cluster");
    assert_eq!(
        cluster.job(0, &Beside::harts(&[4]), &job(1, 0, 0)),
        Err(ClusterError::NoHart { tile: 0, hart: 4 })
    );
    assert!(ClusterBounds::new(&platform, 7, 1).is_err());
    let single = load_platform("single", &LoadOptions::default()).expect("valid");
    assert_eq!(
        ClusterBounds::new(&single, 0, 1).err(),
        Some(ClusterError::NoCluster(0))
    );
}

/// A disk of another program costs more, its registers cost more again, and what cannot be bounded is refused.
#[test]
fn a_device_of_another_program_is_counted_where_memory_serves_in_turn() {
    let turns = [&IN_SLOTS[..], &["dram/controller@turns=hart"]].concat();
    let harts = Beside::harts(&[1]);
    let disk = Beside {
        peripherals: vec![3],
        ..harts.clone()
    };
    let all = Beside {
        reaching: vec![1],
        ..disk.clone()
    };
    let bound = |overrides: &[&str], beside: &Beside, job: &ClusterJob| {
        let platform = named("imx6-devices", overrides);
        let cluster = ClusterBounds::new(&platform, 0, 1).expect("a cluster");
        cluster.job(0, beside, job).map(|bound| bound.path)
    };
    let with = |beside| bound(&turns, beside, &job(100, 50, 10)).expect("finite");
    assert!(with(&harts) < with(&disk) && with(&disk) < with(&all));
    // What stays in the second level meets no device.
    let stays = job(100, 0, 0);
    assert_eq!(bound(&turns, &all, &stays), bound(&turns, &harts, &stays));
    assert_eq!(bound(&[], &all, &stays), bound(&[], &harts, &stays));
    for overrides in [&[][..], &IN_SLOTS] {
        let refused = bound(overrides, &disk, &job(1, 1, 0));
        assert!(
            matches!(&refused, Err(ClusterError::NoTurns { part, memory: 1 }) if part == "the peripheral `disk`"),
            "{refused:?}"
        );
    }
    let change = |more| bound(&[&turns[..], more].concat(), &all, &job(1, 1, 0));
    // A burst that memory answers with a longer packet than a slot.
    let slow = change(&["network@width=1B"]);
    assert_eq!(slow, Err(ClusterError::Links));
    let mut platform = named("imx6-devices", &turns);
    platform.tiles[0].pipeline.model = PipelineModel::Interval;
    let cluster = ClusterBounds::new(&platform, 0, 1).expect("a cluster");
    let refused = cluster.job(0, &all, &job(1, 1, 0));
    assert_eq!(refused, Err(ClusterError::OutOfOrder { tile: 0, hart: 1 }));
}

/// Any program may start the engine and access memories of tiles, whose answers come back to the cluster.
#[test]
fn engines_and_memories_of_tiles_are_counted() {
    let overrides = [
        "network@channels=shared",
        "dram[ddr4]/controller@policy=slots",
        "dram[ddr4]/controller@write-queue=0",
        "dram[ddr4]/controller@turns=hart",
    ];
    let platform = named("zcu102", &overrides);
    let cluster = ClusterBounds::new(&platform, 0, 8).expect("a cluster");
    let bound = |beside: &Beside| {
        let found = cluster.job(0, beside, &job(100, 50, 10));
        found.expect("finite").path
    };
    let harts = Beside::harts(&[1]);
    let coupled = Beside {
        reaching: vec![1],
        coupled: vec![1, 2],
        ..harts.clone()
    };
    let engine = Beside {
        engines: vec![3],
        ..coupled.clone()
    };
    assert!(bound(&harts) < bound(&coupled) && bound(&coupled) < bound(&engine));
}
