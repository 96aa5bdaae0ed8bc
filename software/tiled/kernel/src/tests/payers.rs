//! Each entry is paid for by the activity that causes it, and no activity can take another's share.

use super::*;
use bulkhead_abi::syscall::{Event, SEL_MEMORY, SEL_TILE, StopCause};
use bulkhead_capabilities::Space;

/// Prepares memory and an empty purse for a child of an activity, at 30.
fn expect_child(system: &mut System, chip: &mut Chip, parent: u16) {
    for request in [
        Syscall::CutMemory {
            source: SEL_MEMORY,
            target: 31,
            size: 1 << 15,
        },
        Syscall::DeriveKernelMemory {
            source: bulkhead_abi::syscall::SEL_KERNEL_MEMORY,
            target: 32,
            bytes: 0,
        },
    ] {
        call(system, chip, parent, request).unwrap();
    }
}

/// A child of an activity on its own tile, at 30.
fn child() -> Syscall {
    match creation(30, SEL_TILE, 0) {
        Syscall::CreateActivity {
            target,
            tile,
            purse,
            memory,
            priority,
            tile_priority,
            name,
            ..
        } => Syscall::CreateActivity {
            target,
            tile,
            purse,
            memory,
            priority,
            tile_priority,
            name,
            reply: 0,
        },
        other => other,
    }
}

fn money(system: &mut System, id: u16) -> u64 {
    let holder = system.activity(id).unwrap().holder;
    system.space().kernel_memory_left(holder).unwrap()
}

/// The contents of an event: the creator's selector, the activity, and the event.
fn heard(results: &[u64]) -> (u64, u64, Event) {
    let event = Event::from_words(results[2..7].try_into().unwrap());
    (results[0], results[1], event.unwrap())
}

const WAIT: Syscall = Syscall::WaitEvent { until: 0 };
const STOP: Syscall = Syscall::Stop { activity: 30 };

#[test]
fn ends_that_nobody_hears_of_are_paid_by_who_does_not_listen() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    // Enough for a child and some ends that are not delivered to it.
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 201,
            size: 1 << 16,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 202,
            bytes: 8192,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let made = call(&mut system, &mut chip, 1, creation(200, SEL_TILES + 2, 0)).unwrap();
    let parent = made[0] as u16;
    start(&mut system, &mut chip, 200);
    expect_child(&mut system, &mut chip, parent);
    let before = money(&mut system, parent);
    let mut ended = Vec::new();
    let refused = loop {
        match call(&mut system, &mut chip, parent, child()) {
            Ok(made) => ended.push(made[0]),
            Err(error) => break error,
        }
        call(&mut system, &mut chip, parent, STOP).unwrap();
        let paid = ended.len() as u64 * Space::NODE_COST;
        assert_eq!(money(&mut system, parent), before - paid);
        assert!(ended.len() < 1000, "nobody pays for what is not heard");
    };
    assert_eq!(refused, SyscallError::NoKernelMemory);
    // All of them are delivered, in order, and then everything is as before.
    for id in ended {
        let event = call(&mut system, &mut chip, parent, WAIT).unwrap();
        assert_eq!(heard(&event), (30, id, Event::Stopped(StopCause::Killed)));
    }
    assert_eq!(money(&mut system, parent), before);
    call(&mut system, &mut chip, parent, child()).unwrap();
    // An activity that ends has nothing more to receive, and what it paid for that comes back.
    call(&mut system, &mut chip, parent, STOP).unwrap();
    let stop = Syscall::Stop { activity: 200 };
    call(&mut system, &mut chip, 1, stop).unwrap();
    assert!(system.activity(parent).is_none());
}

#[test]
fn a_word_has_its_place_and_no_call_looks_at_those_of_others() {
    let (mut system, mut chip) = boot();
    let a = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let b = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    let report = |value| Syscall::Report { value };
    let tell = |activity, value| Syscall::Tell { activity, value };
    let about = |topic: u64| topic << bulkhead_abi::syscall::ABOUT;
    // The last word about a topic counts, however many words come about other topics.
    for round in 0..1000 {
        for topic in [0, 1, 32] {
            call(&mut system, &mut chip, a, report(about(topic) | round)).unwrap();
        }
    }
    call(&mut system, &mut chip, b, report(7)).unwrap();
    let refused = call(&mut system, &mut chip, a, report(about(33)));
    assert_eq!(refused, Err(SyscallError::BadArgument));
    let mut said = Vec::new();
    for _ in 0..4 {
        let event = call(&mut system, &mut chip, 1, WAIT).unwrap();
        said.push(heard(&event));
    }
    // A child with many words does not keep one with few waiting.
    assert!(said[..2].contains(&(200, b.into(), Event::Reported(7))));
    for topic in [0, 1, 32] {
        let last = Event::Reported(about(topic) | 999);
        assert!(said.contains(&(APP.into(), a.into(), last)));
    }
    assert_eq!(hear_all(&mut system, &mut chip, 1), 0);
    // Words to an activity have places of their own, which only its creator fills.
    for round in 0..1000 {
        call(&mut system, &mut chip, 1, tell(APP, about(3) | round)).unwrap();
    }
    call(&mut system, &mut chip, 1, tell(APP, 5)).unwrap();
    assert_eq!(
        call(&mut system, &mut chip, 1, tell(APP, 6)),
        Err(SyscallError::Busy)
    );
    assert_eq!(
        call(&mut system, &mut chip, a, tell(0, about(3))),
        Err(SyscallError::OutOfBounds)
    );
    let mut told = Vec::new();
    for _ in 0..2 {
        let event = call(&mut system, &mut chip, a, WAIT).unwrap();
        told.push(heard(&event).2);
    }
    told.sort_by_key(|event| event.to_words()[1]);
    assert_eq!(told, [Event::Told(5), Event::Told(about(3) | 999)]);
}

#[test]
fn the_last_word_of_who_ended_is_heard_before_his_end() {
    let (mut system, mut chip) = boot();
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    for value in [3 << bulkhead_abi::syscall::ABOUT, 42] {
        call(&mut system, &mut chip, id, Syscall::Report { value }).unwrap();
    }
    system.notified(&mut chip, 2, id, StopCause::Exit(1));
    finish(&mut system, &mut chip);
    let mut events = Vec::new();
    for _ in 0..2 {
        let event = call(&mut system, &mut chip, 1, WAIT).unwrap();
        events.push(heard(&event).2);
    }
    let expected = [Event::Reported(42), Event::Stopped(StopCause::Exit(1))];
    assert_eq!(events, expected);
    assert_eq!(later(&mut system, &mut chip, 1, WAIT), Ok(None));
}

/// Finding 6: a service is on its server's account, so a server that offers many runs out of its own memory, and others can still
/// offer theirs.
#[test]
fn who_offers_services_pays_for_each() {
    let (mut system, mut chip) = boot();
    let greedy = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let other = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    for (at, id) in [(APP, greedy), (200, other)] {
        start(&mut system, &mut chip, at);
        let gate = Syscall::CreateReceive {
            target: 20,
            slots: 16,
            slot_size: 64,
        };
        call(&mut system, &mut chip, id, gate).unwrap();
        let active = activate(20, 0, Some((SEL_MEMORY, 0)));
        call(&mut system, &mut chip, id, active).unwrap();
    }
    let offer = |target| Syscall::CreateService { gate: 20, target };
    let before = money(&mut system, other);
    let mut offered = 0u16;
    loop {
        let left = money(&mut system, greedy);
        match call(&mut system, &mut chip, greedy, offer(21 + offered)) {
            // The service, and the notice about it for its creator.
            Ok(_) => assert_eq!(left - money(&mut system, greedy), 2 * Space::NODE_COST),
            Err(error) => break assert_eq!(error, SyscallError::NoKernelMemory),
        }
        offered += 1;
    }
    assert!(offered > 2 && money(&mut system, other) == before);
    call(&mut system, &mut chip, other, offer(21)).unwrap();
}

/// A call that is refused after a bucket was chosen leaves the buckets as they were: an unused one stays with its last owner.
#[test]
fn who_is_refused_late_keeps_no_bucket() {
    let (mut system, mut chip) = boot();
    let lives = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    for target in [20, 21] {
        call(&mut system, &mut chip, 1, limited(target, 1_000_000, 8192)).unwrap();
    }
    create(&mut system, &mut chip, 200, 20);
    let stop = Syscall::Stop { activity: 200 };
    call(&mut system, &mut chip, 1, stop).unwrap();
    let state = |system: &System, chip: &Chip| {
        let tile = system.tile_of(lives).unwrap();
        (
            tile.buckets,
            tile.claims,
            tile.bucket_users,
            chip.buckets.clone(),
        )
    };
    let before = state(&system, &chip);
    chip.refuse = true;
    for tile in [20, 21] {
        let refused = call(&mut system, &mut chip, 1, creation(200, tile, 0));
        assert_eq!(refused, Err(SyscallError::Refused));
        assert_eq!(state(&system, &chip), before, "{tile}");
    }
    chip.refuse = false;
    call(&mut system, &mut chip, 1, creation(200, 21, 0)).unwrap();
    let (buckets, claims, ..) = state(&system, &chip);
    assert!(buckets != before.0 && claims == before.1);
}

/// Finding 8: a bucket whose activities have all ended is free for the next one; an activity does not keep it just because it used it
/// once.
#[test]
fn a_bucket_that_nobody_uses_is_given_on() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let limited = |target| limited(target, 1_000_000, 8192);
    for round in 0..6 {
        let (tile, at) = (300 + round, 310 + 10 * round);
        call(&mut system, &mut chip, 1, limited(tile)).unwrap();
        let id = create(&mut system, &mut chip, at, tile);
        assert!(system.activity(id).is_some());
        // The capability with its rate stays.
        let stop = Syscall::Stop { activity: at };
        call(&mut system, &mut chip, 1, stop).unwrap();
    }
}

#[test]
fn refused_creations_take_no_bucket() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    create(&mut system, &mut chip, 200, SEL_TILES + 2);
    for target in [20, 21, 22, 23] {
        let derive = limited(target, 1_000_000, 8192);
        call(&mut system, &mut chip, 1, derive).unwrap();
    }
    let before = chip.buckets.clone();
    for tile in [20, 21, 22] {
        // The selector for the capability is taken.
        let mut refused = creation(200, tile, 0);
        if let Syscall::CreateActivity { target, .. } = &mut refused {
            *target = APP;
        }
        let refused = call(&mut system, &mut chip, 1, refused);
        assert_eq!(refused, Err(SyscallError::SelectorTaken));
    }
    assert_eq!(chip.buckets, before);
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 301,
            size: 1 << 16,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 302,
            bytes: 4096,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    call(&mut system, &mut chip, 1, creation(300, 23, 0)).unwrap();
}

#[test]
fn who_waits_takes_nobodys_place() {
    let (mut system, mut chip) = boot();
    let semaphore = Syscall::CreateSemaphore {
        target: 70,
        value: 0,
    };
    call(&mut system, &mut chip, 1, semaphore).unwrap();
    let mut sleepers = Vec::new();
    for number in 0..13 {
        let at = 100 + 10 * number;
        let id = create(&mut system, &mut chip, at, SEL_TILES + 2);
        let delegate = Syscall::Delegate {
            activity: at,
            source: 70,
            target: 70,
        };
        call(&mut system, &mut chip, 1, delegate).unwrap();
        let down = Syscall::SemaphoreDown { semaphore: 70 };
        assert_eq!(later(&mut system, &mut chip, id, down), Ok(None));
        sleepers.push(id);
    }
    // Another caller of that priority can wait, too; and nobody waits twice.
    let other = create(&mut system, &mut chip, 300, SEL_TILES + 2);
    assert_eq!(later(&mut system, &mut chip, other, WAIT), Ok(None));
    let again = later(&mut system, &mut chip, other, WAIT);
    assert_eq!(again, Err(SyscallError::Busy));
    // None of them holds a slot of the kernel.
    assert!(chip.parked >= 14);
    for id in sleepers {
        let up = Syscall::SemaphoreUp { semaphore: 70 };
        call(&mut system, &mut chip, 1, up).unwrap();
        let (who, reply) = system.take_reply().unwrap();
        assert_eq!((who.caller, words(&reply)), (id, Ok(vec![])));
    }
}
