//! Requests to a TileMux: the most important caller's request comes first, and this puts nothing in the wrong order.

use super::*;

/// A page of an activity is mapped at an address.
fn map(activity: u16, address: u64) -> Syscall {
    Syscall::Map {
        activity,
        address,
        offset: 0,
        pages: 1,
        rights: 1,
    }
}

/// A call that its TileMux has yet to answer; everything that the kernel can do without that answer is done.
fn begin(system: &mut System, chip: &mut Chip, caller: u16, request: Syscall) {
    let ticket = ticket(system, caller);
    assert!(matches!(system.call(chip, ticket, request), Ok(None)));
    while let Some(level) = (0..3).rev().find(|level| system.has_step(*level)) {
        system.step(chip, level);
    }
}

/// Before the fix, requests waited in the order of their arrival: a caller that mapped without a pause, with many activities, made a more
/// important starter wait for all of them.
#[test]
fn a_request_waits_for_no_less_important_ones() {
    let (mut system, mut chip) = boot();
    let [_, first, second] =
        [APP, 200, 400].map(|at| create(&mut system, &mut chip, at, SEL_TILES + 2));
    for activity in [200, 400] {
        let (source, target) = (APP, 50);
        let give = Syscall::Delegate {
            activity,
            source,
            target,
        };
        call(&mut system, &mut chip, 1, give).unwrap();
    }
    let [a, b, c] = [0x1000_0000, 0x1000_1000, 0x1000_2000];
    let before = chip.requests.len();
    begin(&mut system, &mut chip, first, map(50, a));
    begin(&mut system, &mut chip, second, map(50, b));
    begin(&mut system, &mut chip, 1, map(APP, c));
    finish(&mut system, &mut chip);
    let maps = chip.requests[before..].iter();
    let maps = maps.filter_map(|(_, request)| match request {
        Request::Map { address, .. } => Some(*address),
        _ => None,
    });
    assert_eq!(maps.collect::<Vec<_>>(), [a, c, b]);
    check(&mut system);
}

/// An activity that is stopped while its creation waits is created first: otherwise its TileMux would learn of it afterwards, with another
/// activity's page tables.
#[test]
fn a_stop_comes_after_the_creation() {
    let (mut system, mut chip) = boot();
    let first = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let resources = |at: u16, bytes: u64| {
        let cut = Syscall::CutMemory {
            source: 99,
            target: at + 1,
            size: 1 << 16,
        };
        let purse = Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: at + 2,
            bytes,
        };
        [cut, purse]
    };
    for request in resources(400, 1 << 16)
        .into_iter()
        .chain(resources(500, 4096))
    {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let made = call(&mut system, &mut chip, 1, creation(400, SEL_TILES + 2, 0)).unwrap();
    let creator = made[0] as u16;
    for (source, target) in [(SEL_TILES + 2, 50), (501, 51), (502, 52), (APP, 60)] {
        let give = Syscall::Delegate {
            activity: 400,
            source,
            target,
        };
        call(&mut system, &mut chip, 1, give).unwrap();
    }
    let give = Syscall::Delegate {
        activity: APP,
        source: APP,
        target: 60,
    };
    call(&mut system, &mut chip, 1, give).unwrap();
    // TileMux is busy with something else.
    begin(&mut system, &mut chip, first, map(60, 0x1000_0000));
    let mut creation = creation(50, 50, 0);
    if let Syscall::CreateActivity {
        target,
        purse,
        memory,
        ..
    } = &mut creation
    {
        (*target, *purse, *memory) = (55, 52, 51);
    }
    begin(&mut system, &mut chip, creator, creation);
    let back = Syscall::Revoke {
        selector: 501,
        keep: 0,
    };
    begin(&mut system, &mut chip, 1, back);
    let before = chip.requests.len();
    finish(&mut system, &mut chip);
    let later: Vec<_> = chip.requests[before..]
        .iter()
        .map(|(_, request)| *request)
        .collect();
    let [
        Request::Create { activity: made, .. },
        Request::Stop { activity: ended },
        ..,
    ] = later[..]
    else {
        panic!("{later:?}");
    };
    assert_eq!(made, ended);
    check(&mut system);
}

/// The resources of an activity are free as soon as its TileMux refuses a part of its creation, so the activity's end there overtakes all
/// waiting requests: one of them may be another creation, which would find no place.
#[test]
fn what_is_left_of_a_refused_creation_ends_first() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let [first, second] = [200, 300].map(|at| {
        create(&mut system, &mut chip, at, SEL_TILES + 2);
        let stop = Syscall::Stop { activity: at };
        call(&mut system, &mut chip, 1, stop).unwrap();
        let made = call(&mut system, &mut chip, 1, creation(at, SEL_TILES + 2, 1));
        made.unwrap()[0] as u16
    });
    // The creator of an activity pays for it.
    for (at, bytes) in [(400, 1 << 16), (500, 4096)] {
        let cut = Syscall::CutMemory {
            source: 99,
            target: at + 1,
            size: 1 << 16,
        };
        call(&mut system, &mut chip, 1, cut).unwrap();
        let purse = Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: at + 2,
            bytes,
        };
        call(&mut system, &mut chip, 1, purse).unwrap();
    }
    let made = call(&mut system, &mut chip, 1, creation(400, SEL_TILES + 2, 0));
    let creator = made.unwrap()[0] as u16;
    let give = |activity, source, target| Syscall::Delegate {
        activity,
        source,
        target,
    };
    for request in [
        limited(500, 1_000_000, 8192),
        give(400, 500, 50),
        give(400, 501, 51),
        give(400, 502, 52),
        give(200, APP, 60),
        give(300, APP, 60),
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let mut made = creation(50, 50, 0);
    if let Syscall::CreateActivity {
        target,
        purse,
        memory,
        ..
    } = &mut made
    {
        (*target, *purse, *memory) = (55, 52, 51);
    }
    let before = chip.requests.len();
    begin(&mut system, &mut chip, creator, made);
    let (number, answer) = chip.answer().expect("it was asked");
    // Its bucket is refused.
    chip.refuse = true;
    system.tile_answered(&mut chip, number, answer);
    chip.refuse = false;
    begin(&mut system, &mut chip, first, map(60, 0x1000_0000));
    begin(&mut system, &mut chip, second, map(60, 0x1000_1000));
    finish(&mut system, &mut chip);
    let kinds = chip.requests[before..].iter();
    let kinds = kinds.map(|(_, request)| match request {
        Request::Create { .. } => "create",
        Request::SetBucket { .. } => "bucket",
        // The first of them is sent before the refusal is handled.
        Request::Map { .. } => "map",
        Request::Stop { .. } => "stop",
        other => panic!("{other:?}"),
    });
    let kinds: Vec<_> = kinds.collect();
    assert_eq!(kinds, ["create", "bucket", "map", "stop", "map"]);
    check(&mut system);
}

/// The end of a more important activity is reported first: its restart waits for that.
#[test]
fn the_end_of_the_most_important_is_said_first() {
    let (mut system, mut chip) = boot();
    let low = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    create(&mut system, &mut chip, 200, SEL_TILES + 2);
    let stop = Syscall::Stop { activity: 200 };
    call(&mut system, &mut chip, 1, stop).unwrap();
    let made = call(&mut system, &mut chip, 1, creation(200, SEL_TILES + 2, 2)).unwrap();
    let high = made[0] as u16;
    for at in [APP, 200] {
        start(&mut system, &mut chip, at);
    }
    for id in [low, high] {
        system.notified(&mut chip, 2, id, StopCause::Panic);
    }
    assert_eq!(system.report_level(), Some(2));
    assert_eq!(system.reported(), Some((high, StopCause::Panic)));
    assert_eq!(system.reported(), Some((low, StopCause::Panic)));
    assert_eq!(system.report_level(), None);
    finish(&mut system, &mut chip);
    check(&mut system);
}

/// The askers of the requests from here on.
fn askers(chip: &Chip, from: usize) -> Vec<(Request, Option<u16>)> {
    let all = chip.requests[from..].iter().zip(&chip.askers[from..]);
    all.map(|((_, request), asker)| (*request, asker.map(|asker| asker.activity)))
        .collect()
}

/// The ledger is told which activity asked the kernel, not the subject of the request; and none if no activity asked.
#[test]
fn a_request_is_in_the_name_of_who_asked() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let creator = Some(Asker {
        activity: 1,
        tile: 1,
    });
    let last = chip.requests.len() - 1;
    assert!(matches!(chip.requests[last].1, Request::Create { .. }));
    assert_eq!(chip.askers[last], creator);
    let from = chip.requests.len();
    call(&mut system, &mut chip, 1, map(APP, 0x1000_0000)).unwrap();
    start(&mut system, &mut chip, APP);
    let stop = Syscall::Stop { activity: APP };
    call(&mut system, &mut chip, 1, stop).unwrap();
    let names = askers(&chip, from);
    assert!(
        matches!(
            names[..],
            [
                (Request::Map { .. }, Some(1)),
                (Request::Start { .. }, Some(1)),
                (Request::Stop { .. }, None),
            ]
        ),
        "{names:?}"
    );
}

/// The asker is named even if its request waited and it has ended since; a later activity with its number is not named.
#[test]
fn who_asked_and_ended_is_named() {
    let (mut system, mut chip) = boot();
    let [_, first, second] =
        [APP, 200, 400].map(|at| create(&mut system, &mut chip, at, SEL_TILES + 2));
    for activity in [200, 400] {
        let (source, target) = (APP, 50);
        let give = Syscall::Delegate {
            activity,
            source,
            target,
        };
        call(&mut system, &mut chip, 1, give).unwrap();
    }
    let from = chip.requests.len();
    begin(&mut system, &mut chip, first, map(50, 0x1000_0000));
    begin(&mut system, &mut chip, second, map(50, 0x1000_1000));
    // Its request waits for the first one's answer.
    system.notified(&mut chip, 2, second, StopCause::Panic);
    finish(&mut system, &mut chip);
    let names = askers(&chip, from);
    let maps = names
        .iter()
        .filter(|(r, _)| matches!(r, Request::Map { .. }));
    let maps: Vec<_> = maps.map(|(_, asker)| *asker).collect();
    assert_eq!(maps, [Some(first), Some(second)], "{names:?}");
}
