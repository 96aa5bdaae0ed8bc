//! Boot, the life of activities, their quotas, and what an ended activity leaves behind.

use super::*;
use crate::activity::State;
use bulkhead_abi::dtu::UNLIMITED_CREDITS;
use bulkhead_abi::environment::{ENVIRONMENT_BASE, ENVIRONMENT_MAGIC};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::syscall::{Event, SEL_MODULES, StopCause};
use bulkhead_abi::tilemux::{
    FIRST_ENDPOINT, NOTIFY_ENDPOINT, PRINT_ENDPOINT, REQUEST_ENDPOINT, TILEMUX_MEMORY,
};

#[test]
fn the_root_manager_is_loaded_and_started() {
    let (system, chip) = boot();
    assert_eq!(chip.started, [(1, TILEMUX_BASE)]);
    let Endpoint::Memory(window) = chip.endpoints[&(1, 0)] else {
        panic!("no window")
    };
    let bytes = |at: u64, n: u64| {
        (at..at + n)
            .map(|a| chip.memory.get(&a).copied().unwrap_or(0xAA))
            .collect::<Vec<u8>>()
    };
    assert_eq!(bytes(window.base, 7), b"tilemux");
    // 16 bytes after the file's contents are zeroed.
    assert_eq!(bytes(window.base + 7, 16), [0; 16]);
    let manager = system.activity(1).unwrap();
    assert!(manager.physical > MEMORY_BASE);
    assert_eq!(
        bytes(manager.region.base, 8),
        ENVIRONMENT_MAGIC.to_le_bytes()
    );
    assert_eq!(
        bytes(manager.region.base + PROGRAM_BASE - ENVIRONMENT_BASE, 7),
        b"manager"
    );
    assert_eq!(manager.state(), State::Running);
    assert!(matches!(
        chip.endpoints[&(1, REQUEST_ENDPOINT)],
        Endpoint::Receive(_)
    ));
    assert!(
        matches!(chip.endpoints[&(1, NOTIFY_ENDPOINT)], Endpoint::Send(s) if s.target_tile == 0 && s.label == 1)
    );
    assert!(
        matches!(chip.requests.last(), Some((_, Request::Start { activity: 1, entry, .. })) if *entry == PROGRAM_BASE)
    );
}

/// The kernel's slots for ends and text are divided among the tiles, so none fills those of others: neither by many ends at one moment, nor
/// by text before it is lit again.
#[test]
fn each_tile_has_slots_of_its_own_in_the_kernel() {
    let of = |chip: &Chip, tile: u16| {
        [NOTIFY_ENDPOINT, PRINT_ENDPOINT].map(|endpoint| match chip.endpoints[&(tile, endpoint)] {
            Endpoint::Send(send) => (send.credits_max, send.shares),
            other => panic!("{other:?}"),
        })
    };
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    assert_eq!(of(&chip, 1), [(UNLIMITED_CREDITS, 0x5555_5555), (1, 1)]);
    assert_eq!(of(&chip, 2), [(UNLIMITED_CREDITS, 0xAAAA_AAAA), (1, 2)]);
    // With more tiles than slots, each has one, which others may share.
    let (_, chip) = boot_on(40);
    assert_eq!(of(&chip, 1), [(UNLIMITED_CREDITS, 1), (1, 1)]);
}

/// Free endpoints of a tile, and what the manager has left of everything.
fn left(system: &mut System, chip: &mut Chip) -> Vec<Vec<u64>> {
    let selectors = [
        SEL_TILES + 1,
        SEL_TILES + 2,
        SEL_MEMORIES + MEMORY,
        SEL_KERNEL_MEMORY,
    ];
    let query = |selector| Syscall::Query { selector };
    selectors
        .map(|s| call(system, chip, 1, query(s)).unwrap())
        .to_vec()
}

#[test]
fn everything_is_given_back_when_an_activity_ends() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, 200, SEL_TILES + 2);
    let tile = system.tile_of(2).unwrap().clone();
    let before = left(&mut system, &mut chip);
    let endpoints = chip.endpoints.clone();
    for round in 0..40 {
        let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
        assert_eq!(id, 3 + round);
        start(&mut system, &mut chip, APP);
        // It makes a gate, and its neighbour sends to it.
        let own = Syscall::CreateReceive {
            target: 20,
            slots: 4,
            slot_size: 128,
        };
        call(&mut system, &mut chip, id, own).unwrap();
        let [endpoint, _] =
            call(&mut system, &mut chip, id, activate(20, 0, Some((3, 64)))).unwrap()[..]
        else {
            panic!()
        };
        assert!(endpoint >= FIRST_ENDPOINT.into());
        let send = Syscall::CreateSend {
            source: 20,
            target: 21,
            label: 5,
            credits: 2,
        };
        call(&mut system, &mut chip, id, send).unwrap();
        for (caller, request) in [
            (
                1,
                Syscall::Obtain {
                    activity: APP,
                    source: 21,
                    target: 50,
                },
            ),
            (1, activate(50, 200, None)),
        ] {
            call(&mut system, &mut chip, caller, request).unwrap();
        }
        match round % 3 {
            0 => {
                chip.promised.remove(&(2, id));
                system.notified(&mut chip, 2, id, StopCause::Exit(7));
                finish(&mut system, &mut chip);
            }
            1 => {
                call(&mut system, &mut chip, 1, Syscall::Stop { activity: APP }).unwrap();
            }
            // Its purse is revoked.
            _ => {
                let revoke = Syscall::Revoke {
                    selector: APP + 2,
                    keep: 0,
                };
                call(&mut system, &mut chip, 1, revoke).unwrap();
            }
        }
        let [at, who, event @ ..] =
            &call(&mut system, &mut chip, 1, Syscall::WaitEvent { until: 0 }).unwrap()[..]
        else {
            panic!()
        };
        let cause = if round % 3 == 0 {
            StopCause::Exit(7)
        } else {
            StopCause::Killed
        };
        assert_eq!((*at, *who), (APP.into(), id.into()));
        assert_eq!(
            Event::from_words(event.try_into().unwrap()),
            Some(Event::Stopped(cause))
        );
        assert!(system.activity(id).is_none());
        for selector in [APP + 1, APP + 2] {
            let _ = call(
                &mut system,
                &mut chip,
                1,
                Syscall::Revoke { selector, keep: 0 },
            );
        }
        assert_eq!(chip.endpoints, endpoints);
        assert_eq!(left(&mut system, &mut chip), before);
    }
    let now = system.tile_of(2).unwrap();
    assert_eq!(now.endpoints.left(), tile.endpoints.left());
}

#[test]
fn a_bucket_follows_the_quota_of_the_tile_capability() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    call(&mut system, &mut chip, 1, limited(30, 4_000_000, 8192)).unwrap();
    for (at, id) in [(200, 3), (210, 4)] {
        assert_eq!(create(&mut system, &mut chip, at, 30), id);
        let bucket = Request::SetBucket {
            activity: id,
            bucket: 1,
        };
        assert!(chip.requests.contains(&(2, bucket)));
    }
    assert_eq!(chip.buckets[&(2, 1)], (4_000_000, 8192));
    // The rate of a derived capability comes out of the bucket.
    let mut derived = limited(31, 3_000_000, 4096);
    if let Syscall::DeriveTile { source, .. } = &mut derived {
        *source = 30;
    }
    call(&mut system, &mut chip, 1, derived).unwrap();
    assert_eq!(chip.buckets[&(2, 1)], (1_000_000, 4096));
    // A bucket in use keeps enough for a chunk.
    if let Syscall::DeriveTile {
        target,
        rate,
        burst,
        ..
    } = &mut derived
    {
        (*target, *rate, *burst) = (32, 1000, 4000);
    }
    assert_eq!(
        call(&mut system, &mut chip, 1, derived),
        Err(SyscallError::NoQuota)
    );
    call(
        &mut system,
        &mut chip,
        1,
        Syscall::Revoke {
            selector: 31,
            keep: 0,
        },
    )
    .unwrap();
    assert_eq!(chip.buckets[&(2, 1)], (4_000_000, 8192));
    // All four registers are in use: the fourth limit finds none until one is given back.
    for i in 0..3 {
        call(&mut system, &mut chip, 1, limited(40 + i, 1000, 4096)).unwrap();
    }
    for i in 0..2 {
        create(&mut system, &mut chip, 300 + 10 * i, 40 + i);
    }
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 331,
            size: 65536,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 332,
            bytes: 1000,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let fourth = creation(330, 42, 0);
    assert_eq!(
        call(&mut system, &mut chip, 1, fourth),
        Err(SyscallError::NoBucket)
    );
    call(
        &mut system,
        &mut chip,
        1,
        Syscall::Revoke {
            selector: 40,
            keep: 0,
        },
    )
    .unwrap();
    assert!(system.activity(5).is_none());
    call(&mut system, &mut chip, 1, fourth).unwrap();
}

/// A derivation of processor time: source and target, budget and period, priority.
fn timed(place: (u16, u16), time: (u64, u64), highest: u8, without: bool) -> Syscall {
    let mut request = limited(place.1, SHARE, SHARE);
    if let Syscall::DeriveTile {
        source,
        budget,
        period,
        priority,
        idle,
        ..
    } = &mut request
    {
        *source = place.0;
        (*budget, *period) = time;
        *priority = highest;
        *idle = without.into();
    }
    request
}

fn with_priority(mut request: Syscall, priority: u8) -> Syscall {
    if let Syscall::CreateActivity { tile_priority, .. } = &mut request {
        *tile_priority = priority;
    }
    request
}

#[test]
fn nobody_gets_more_time_or_urgency_than_there_is_in_his_capability() {
    let (mut system, mut chip) = boot();
    let whole = SEL_TILES + 2;
    let refused = Err(SyscallError::NoQuota);
    let seconds = |seconds: u64| seconds * 1_000_000_000;
    // An activity without processor time comes last, and so do its children.
    call(
        &mut system,
        &mut chip,
        1,
        timed((whole, 30), (0, 0), 0, true),
    )
    .unwrap();
    for (time, priority) in [((seconds(800), seconds(1000)), 0), ((0, 0), 255)] {
        let more = timed((30, 31), time, priority, true);
        assert_eq!(call(&mut system, &mut chip, 1, more), refused);
    }
    call(&mut system, &mut chip, 1, timed((30, 31), (0, 0), 0, true)).unwrap();
    let id = create(&mut system, &mut chip, 200, 31);
    let is_limited = |chip: &Chip, id| {
        chip.requests
            .iter()
            .any(|(_, r)| matches!(r, Request::SetBudget { activity, .. } if *activity == id))
    };
    assert!(!is_limited(&chip, id));
    // A manager with 10 % in 1 ms, for at most priority 3.
    let millisecond = 1_000_000;
    let given = timed((whole, 40), (millisecond / 10, millisecond), 3, false);
    call(&mut system, &mut chip, 1, given).unwrap();
    for (time, priority, without) in [
        ((seconds(100), seconds(1000)), 3, false),
        ((millisecond / 10, millisecond), 4, false),
        ((millisecond / 20, millisecond / 2 - 1), 3, false),
        ((0, 0), 0, false),
        ((SHARE, 0), 0, true),
    ] {
        let more = timed((40, 41), time, priority, without);
        assert_eq!(call(&mut system, &mut chip, 1, more), refused, "{time:?}");
    }
    let little = timed((40, 41), (9_999, millisecond), 3, false);
    assert_eq!(
        call(&mut system, &mut chip, 1, little),
        Err(SyscallError::BadArgument)
    );
    let half = timed((40, 41), (millisecond / 20, millisecond), 2, false);
    call(&mut system, &mut chip, 1, half).unwrap();
    create(&mut system, &mut chip, 220, 40);
    for (tile, at) in [(31, 230), (41, 240)] {
        let parts = [
            Syscall::CutMemory {
                source: 99,
                target: at + 1,
                size: 65536,
            },
            Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target: at + 2,
                bytes: 1000,
            },
        ];
        for request in parts {
            call(&mut system, &mut chip, 1, request).unwrap();
        }
        let urgent = with_priority(creation(at, tile, 0), 3);
        assert_eq!(call(&mut system, &mut chip, 1, urgent), refused);
    }
    let fits = with_priority(creation(240, 41, 0), 2);
    let made = call(&mut system, &mut chip, 1, fits).unwrap();
    let expected = Request::SetBudget {
        activity: made[0] as u16,
        budget: millisecond / 20,
        period: millisecond,
        priority: 2,
        start: 0,
    };
    assert!(chip.requests.contains(&(2, expected)));
}

#[test]
fn a_budget_that_was_used_begins_a_period_later() {
    let (mut system, mut chip) = boot();
    let period = 10_000_000;
    let given = timed((SEL_TILES + 2, 30), (period / 4, period), 3, false);
    call(&mut system, &mut chip, 1, given).unwrap();
    let part = |at| timed((30, at), (period / 8, period / 2), 3, false);
    call(&mut system, &mut chip, 1, part(31)).unwrap();
    create(&mut system, &mut chip, 200, 31);
    chip.now = 5_000;
    for selector in [200, 31] {
        call(
            &mut system,
            &mut chip,
            1,
            Syscall::Revoke { selector, keep: 0 },
        )
        .unwrap();
    }
    // All of it for another activity: what the first one used comes back a period after its end.
    let id = create(&mut system, &mut chip, 220, 30);
    let start = chip.requests.iter().find_map(|(_, request)| match request {
        Request::SetBudget {
            activity, start, ..
        } if *activity == id => Some(*start),
        _ => None,
    });
    assert!(
        start.is_some_and(|start| start >= 5_000 + period),
        "{start:?}"
    );
}

#[test]
fn processor_time_is_enforced_by_tilemux_and_belongs_to_one() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let mut quota = limited(30, SHARE, SHARE);
    if let Syscall::DeriveTile { budget, period, .. } = &mut quota {
        (*budget, *period) = (2_500_000, 10_000_000);
    }
    call(&mut system, &mut chip, 1, quota).unwrap();
    let id = create(&mut system, &mut chip, 200, 30);
    let expected = Request::SetBudget {
        activity: id,
        budget: 2_500_000,
        period: 10_000_000,
        priority: 0,
        start: 0,
    };
    assert!(chip.requests.contains(&(2, expected)));
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 211,
            size: 65536,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 212,
            bytes: 1000,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    assert_eq!(
        call(&mut system, &mut chip, 1, creation(210, 30, 0)),
        Err(SyscallError::WrongState)
    );
    // Time that was promised to an activity is not given away.
    if let Syscall::DeriveTile { source, target, .. } = &mut quota {
        (*source, *target) = (30, 31);
    }
    assert_eq!(
        call(&mut system, &mut chip, 1, quota),
        Err(SyscallError::WrongState)
    );
}

#[test]
fn a_creation_that_fails_leaves_nothing() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 201,
            size: 65536,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 202,
            bytes: 1000,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let before = left(&mut system, &mut chip);
    let endpoints = system.tile_of(2).unwrap().endpoints.left();
    chip.refuse = true;
    assert_eq!(
        call(&mut system, &mut chip, 1, creation(200, SEL_TILES + 2, 0)),
        Err(SyscallError::Refused)
    );
    chip.refuse = false;
    assert_eq!(left(&mut system, &mut chip), before);
    assert_eq!(system.tile_of(2).unwrap().endpoints.left(), endpoints);
    // No activity gets a priority above that of its creator; the root's is the highest.
    assert_eq!(
        call(&mut system, &mut chip, 1, creation(200, SEL_TILES + 2, 3)),
        Err(SyscallError::BadArgument)
    );
    call(&mut system, &mut chip, 1, creation(200, SEL_TILES + 2, 2)).unwrap();
}

#[test]
fn a_window_that_goes_darkens_its_tile() {
    let (mut system, mut chip) = boot();
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    start(&mut system, &mut chip, APP);
    call(
        &mut system,
        &mut chip,
        1,
        Syscall::Revoke {
            selector: 99,
            keep: 0,
        },
    )
    .unwrap();
    assert!(system.activity(id).is_none());
    assert_eq!(chip.stopped, [2]);
    assert!(chip.endpoints.keys().all(|(tile, _)| *tile == 1));
    // It can be lit again.
    let _ = call(
        &mut system,
        &mut chip,
        1,
        Syscall::Revoke {
            selector: APP + 2,
            keep: 0,
        },
    );
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    assert_eq!(
        chip.started,
        [(1, TILEMUX_BASE), (2, TILEMUX_BASE), (2, TILEMUX_BASE)]
    );
}

#[test]
fn page_tables_are_out_of_reach_and_limited() {
    let (mut system, mut chip) = boot();
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    // They are in the window after TileMux, and in no memory that an activity can name and cut.
    let memory = system.activity(id).unwrap();
    let tables = TILEMUX_BASE + TILEMUX_MEMORY;
    assert!(chip.tables.contains(&(2, tables, 100)));
    assert_eq!(memory.physical, tables + 100 * 4096);
    let mut quota = limited(30, SHARE, SHARE);
    if let Syscall::DeriveTile { tables, .. } = &mut quota {
        *tables = 3;
    }
    call(&mut system, &mut chip, 1, quota).unwrap();
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 201,
            size: 65536,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 202,
            bytes: 1000,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    assert_eq!(
        call(&mut system, &mut chip, 1, creation(200, 30, 0)),
        Err(SyscallError::NoQuota)
    );
    let module = Syscall::OpenModule {
        modules: SEL_MODULES,
        target: 40,
        key: module_key(b"app"),
    };
    call(&mut system, &mut chip, 1, module).unwrap();
    assert_eq!(
        call(&mut system, &mut chip, id, module),
        Err(SyscallError::NoCapability)
    );
}

/// However many activities wait until the same moment, one of them is answered per piece of work: before the fix, a call of a higher
/// priority waited for all of them.
#[test]
fn those_who_wait_until_one_moment_are_answered_one_by_one() {
    let (mut system, mut chip) = boot();
    let ids = [APP, 200, 300].map(|at| create(&mut system, &mut chip, at, SEL_TILES + 2));
    for id in ids {
        let wait = Syscall::WaitEvent { until: 500 };
        assert_eq!(later(&mut system, &mut chip, id, wait), Ok(None));
    }
    for (left, id) in ids.into_iter().enumerate() {
        let next = system.expire(500);
        assert_eq!(next, (left < 2).then_some(500));
        let (who, reply) = system.take_reply().expect("an answer");
        assert_eq!(
            (who.caller, words(&reply)),
            (id, Err(SyscallError::Timeout))
        );
        assert!(system.take_reply().is_none());
    }
}

#[test]
fn who_waits_for_an_event_waits_as_long_as_he_wants() {
    let (mut system, mut chip) = boot();
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let wait = |until: u64| Syscall::WaitEvent { until };
    assert_eq!(later(&mut system, &mut chip, 1, wait(500)), Ok(None));
    assert!(system.has_impatient() && system.is_busy());
    assert_eq!(system.expire(499), Some(500));
    assert!(system.take_reply().is_none());
    assert_eq!(system.expire(500), None);
    let (who, reply) = system.take_reply().expect("an answer");
    assert_eq!(who, ticket(&system, 1));
    assert_eq!(words(&reply), Err(SyscallError::Timeout));
    assert!(!system.has_impatient());
    // An earlier event is delivered whatever the time is; a later one is delivered at once.
    system.notified(&mut chip, 2, id, StopCause::Exit(0));
    finish(&mut system, &mut chip);
    let heard = later(&mut system, &mut chip, 1, wait(1));
    assert_eq!(heard.unwrap().unwrap()[1], u64::from(id));
    let id = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    assert_eq!(later(&mut system, &mut chip, 1, wait(500)), Ok(None));
    system.notified(&mut chip, 2, id, StopCause::Exit(0));
    finish(&mut system, &mut chip);
    let (_, reply) = system.take_reply().expect("an answer");
    assert_eq!(words(&reply).unwrap()[1], u64::from(id));
    assert!(!system.has_impatient());
    // An activity that waits without end gets no timeout, and one that dies is forgotten.
    assert_eq!(later(&mut system, &mut chip, 1, wait(0)), Ok(None));
    assert_eq!(system.expire(u64::MAX), None);
    assert!(system.take_reply().is_none());
    let id = create(&mut system, &mut chip, 300, SEL_TILES + 2);
    assert_eq!(later(&mut system, &mut chip, id, wait(500)), Ok(None));
    system.notified(&mut chip, 2, id, StopCause::Exit(0));
    finish(&mut system, &mut chip);
    assert!(!system.has_impatient());
}

#[test]
fn whoever_is_created_is_announced_once() {
    let (mut system, mut chip) = boot();
    assert_eq!(chip.begun.len(), 1);
    assert_eq!((chip.begun[0].0.activity, chip.begun[0].0.creator), (1, 0));
    assert_eq!(chip.begun[0].1.as_str(), "root");
    for (round, selector) in [200, 220].into_iter().enumerate() {
        let id = create(&mut system, &mut chip, selector, SEL_TILES + 2);
        let (begins, name) = chip.begun[1 + round];
        let entered = system.activity(id).unwrap();
        assert_eq!((begins.activity, begins.creator), (id, 1));
        assert_eq!(Some(begins.tile), system.tile_of(id).map(|tile| tile.id));
        // Both have the same name.
        assert_eq!(begins.is_namesake, round == 1);
        assert_eq!(
            (begins.is_namesake, name),
            (entered.is_namesake, entered.name)
        );
    }
    assert_eq!(chip.begun.len(), 3);
}
