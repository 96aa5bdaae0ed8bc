//! Tiles that do not answer, answer late, or lie: nobody else waits, and everything that was on them comes back.

use super::*;
use crate::activity::State;
use crate::system::LIES_MAX;
use bulkhead_abi::syscall::{Event, StopCause};

/// What the manager has left of everything.
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

fn revoke(system: &mut System, chip: &mut Chip, selector: u16) -> Option<Vec<u64>> {
    let request = Syscall::Revoke { selector, keep: 0 };
    let done = later(system, chip, 1, request).unwrap();
    check(system);
    done
}

#[test]
fn nobody_else_waits_for_a_tile_that_does_not_answer() {
    let (mut system, mut chip) = boot();
    let endpoints = chip.endpoints.clone();
    let before = left(&mut system, &mut chip);
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let other = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    start(&mut system, &mut chip, APP);
    start(&mut system, &mut chip, 200);
    chip.deaf.push(2);
    // The manager stops an activity; its TileMux does not answer, and the call waits.
    let stop = Syscall::Stop { activity: APP };
    assert_eq!(later(&mut system, &mut chip, 1, stop), Ok(None));
    assert_eq!(system.activity(id).unwrap().state(), State::Stopping);
    assert!(!system.has_step(2) && system.is_asking());
    // Everybody else is served, including those on the same tile, and revocations of other priorities continue.
    assert_eq!(
        call(&mut system, &mut chip, other, Syscall::Nothing {}),
        Ok(vec![])
    );
    let semaphore = Syscall::CreateSemaphore {
        target: 20,
        value: 0,
    };
    call(&mut system, &mut chip, other, semaphore).unwrap();
    let own = Syscall::Revoke {
        selector: 20,
        keep: 0,
    };
    assert_eq!(call(&mut system, &mut chip, other, own), Ok(vec![]));
    // The activity that is being stopped has no rights any more.
    assert_eq!(
        call(&mut system, &mut chip, id, Syscall::Nothing {}),
        Err(SyscallError::NotManager)
    );
    // Its time ends: the tile is stopped, and with it everything on it.
    assert_eq!(system.expire_tiles(&mut chip), Some(LATE));
    chip.now = LATE;
    expire_tiles(&mut system, &mut chip);
    assert_eq!(chip.stopped, [2]);
    finish(&mut system, &mut chip);
    let (who, reply) = system.take_reply().unwrap();
    assert_eq!((who.caller, words(&reply)), (1, Ok(vec![])));
    check(&mut system);
    assert!(system.activity(id).is_none() && system.activity(other).is_none());
    for (at, who) in [(APP, id), (200, other)] {
        let event = call(&mut system, &mut chip, 1, Syscall::WaitEvent { until: 0 }).unwrap();
        assert_eq!(event[..2], [at.into(), who.into()]);
        let event = Event::from_words(event[2..7].try_into().unwrap());
        assert_eq!(event, Some(Event::Stopped(StopCause::TileLost)));
    }
    // Nothing can be created there before the tile is configured again.
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
    let another = creation(300, SEL_TILES + 2, 0);
    assert_eq!(
        call(&mut system, &mut chip, 1, another),
        Err(SyscallError::TileLost)
    );
    for selector in [99, APP + 2, 202, 302] {
        revoke(&mut system, &mut chip, selector);
    }
    assert_eq!(chip.endpoints, endpoints);
    assert_eq!(left(&mut system, &mut chip), before);
    chip.deaf.clear();
    create(&mut system, &mut chip, APP, SEL_TILES + 2);
    start(&mut system, &mut chip, APP);
}

#[test]
fn a_creation_on_a_tile_that_does_not_answer_leaves_nothing() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip, 200, SEL_TILES + 2);
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: APP + 1,
            size: 1 << 16,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: APP + 2,
            bytes: 4096,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let before = left(&mut system, &mut chip);
    chip.deaf.push(2);
    let plan = creation(APP, SEL_TILES + 2, 0);
    assert_eq!(later(&mut system, &mut chip, 1, plan), Ok(None));
    // Nobody can name it yet.
    let early = Syscall::Stop { activity: APP };
    assert_eq!(
        call(&mut system, &mut chip, 1, early),
        Err(SyscallError::Busy)
    );
    chip.now = LATE;
    expire_tiles(&mut system, &mut chip);
    finish(&mut system, &mut chip);
    let (_, reply) = system.take_reply().unwrap();
    assert_eq!(words(&reply), Err(SyscallError::TileLost));
    check(&mut system);
    // The other activity on the tile has gone, too; its endpoints are back.
    let mut after = left(&mut system, &mut chip);
    assert!(after[1][1] >= before[1][1]);
    after[1] = before[1].clone();
    after[3] = before[3].clone();
    assert_eq!(after, before);
}

#[test]
fn what_is_revoked_while_it_is_created_never_lives() {
    // After each answer of TileMux, the purse of the new activity is revoked.
    for answers in 0..3 {
        let (mut system, mut chip) = boot();
        create(&mut system, &mut chip, 200, SEL_TILES + 2);
        let before = left(&mut system, &mut chip);
        let endpoints = chip.endpoints.clone();
        call(&mut system, &mut chip, 1, limited(30, 4_000_000, 8192)).unwrap();
        for request in [
            Syscall::CutMemory {
                source: 99,
                target: APP + 1,
                size: 1 << 16,
            },
            Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target: APP + 2,
                bytes: 4096,
            },
        ] {
            call(&mut system, &mut chip, 1, request).unwrap();
        }
        let owner = ticket(&system, 1);
        let plan = creation(APP, 30, 0);
        assert!(matches!(system.call(&mut chip, owner, plan), Ok(None)));
        // A place is made for it, it is admitted, and its creation begins.
        for _ in 0..3 {
            system.step(&mut chip, 2);
        }
        for _ in 0..answers {
            let Some((number, answer)) = chip.answer() else {
                break;
            };
            system.tile_answered(&mut chip, number, answer);
        }
        let gone = Syscall::Revoke {
            selector: APP + 2,
            keep: 0,
        };
        assert!(matches!(system.call(&mut chip, owner, gone), Ok(None)));
        // As far as it gets without another answer.
        while system.has_step(2) {
            system.step(&mut chip, 2);
        }
        finish(&mut system, &mut chip);
        check(&mut system);
        // Both calls were answered.
        let replies: Vec<_> = core::iter::from_fn(|| system.take_reply())
            .map(|(_, reply)| words(&reply).map(|_| ()))
            .collect();
        let created = if answers == 2 {
            Ok(())
        } else {
            Err(SyscallError::Revoked)
        };
        assert_eq!(replies.len(), 2);
        assert!(replies.contains(&created) && replies.contains(&Ok(())));
        for selector in [30, APP + 1] {
            revoke(&mut system, &mut chip, selector);
        }
        assert_eq!(left(&mut system, &mut chip), before);
        assert_eq!(chip.endpoints, endpoints);
    }
}

#[test]
fn a_tile_that_lies_is_stopped_and_late_answers_are_nothing() {
    let (mut system, mut chip) = boot();
    let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    start(&mut system, &mut chip, APP);
    for number in 0..50 {
        system.tile_answered(&mut chip, number, TileMuxError::None);
    }
    // It reports that activities of other tiles stopped, and some that do not exist.
    for lie in 0..LIES_MAX {
        system.notified(
            &mut chip,
            2,
            [1, 77, u16::MAX][lie as usize % 3],
            StopCause::Panic,
        );
        assert!(chip.stopped.is_empty());
    }
    assert_eq!(system.activity(1).unwrap().state(), State::Running);
    system.notified(&mut chip, 2, 1, StopCause::Panic);
    assert_eq!(chip.stopped, [2]);
    // Its activities are told one by one.
    expire_tiles(&mut system, &mut chip);
    finish(&mut system, &mut chip);
    assert!(system.activity(id).is_none());
    assert_eq!(system.activity(1).unwrap().state(), State::Running);
    check(&mut system);
}

/// Programs that end at the moment when they are stopped: their TileMux notifies and answers that there is nothing to stop, and the kernel
/// takes the answer first. Before the fix, a caller that did that often took the tile from everybody there.
#[test]
fn a_tile_has_not_told_a_lie_when_its_answer_is_heard_before_its_notification() {
    let (mut system, mut chip) = boot();
    let stop = Syscall::Stop { activity: APP };
    for cause in [StopCause::Exit(7), StopCause::Panic] {
        for _ in 0..=LIES_MAX {
            let id = create(&mut system, &mut chip, APP, SEL_TILES + 2);
            start(&mut system, &mut chip, APP);
            chip.refuse = true;
            assert_eq!(later(&mut system, &mut chip, 1, stop), Ok(Some(vec![])));
            chip.refuse = false;
            system.notified(&mut chip, 2, id, cause);
            for selector in [APP + 1, APP + 2] {
                revoke(&mut system, &mut chip, selector);
            }
            hear_all(&mut system, &mut chip, 1);
        }
    }
    assert!(chip.stopped.is_empty());
    // Any further report is a lie.
    for lie in 0..=LIES_MAX {
        assert_eq!(chip.stopped.is_empty(), lie <= LIES_MAX);
        system.notified(&mut chip, 2, 77, StopCause::Panic);
    }
    assert_eq!(chip.stopped, [2]);
}

/// However many tiles are late at one moment: each is given up in a piece of work of its own.
#[test]
fn tiles_that_are_late_at_one_moment_are_given_up_one_by_one() {
    let (mut system, mut chip) = boot_on(4);
    for tile in [2, 3, 4] {
        let (window, at) = (90 + tile, 100 * tile);
        let cut = |source, target, size| Syscall::CutMemory {
            source,
            target,
            size,
        };
        for request in [
            cut(SEL_MEMORIES + MEMORY, window, 1 << 22),
            Syscall::ConfigureTile {
                tile: SEL_TILES + tile,
                memory: window,
                tables: 100,
            },
            cut(window, at + 1, 1 << 16),
            Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target: at + 2,
                bytes: 4096,
            },
            creation(at, SEL_TILES + tile, 0),
        ] {
            call(&mut system, &mut chip, 1, request).unwrap();
        }
    }
    chip.deaf = vec![2, 3, 4];
    for activity in [200, 300, 400] {
        let start = Syscall::Start {
            activity,
            entry: PROGRAM_BASE,
            stack: 0x1000_8000,
        };
        assert_eq!(later(&mut system, &mut chip, 1, start), Ok(None));
    }
    chip.now = LATE;
    // In pieces: a tile, its activity, its caller, and the end of the list; then the next tile.
    for given_up in 1..=3 {
        for step in 0..4 {
            let next = system.expire_tiles(&mut chip);
            assert_eq!(chip.stopped.len(), given_up);
            assert_eq!(next, (step < 3 || given_up < 3).then_some(LATE));
            // An answer of a lost tile, to any request, has no effect. Tiles are numbered from 1.
            let lost = u64::from(chip.stopped[given_up - 1]) - 1;
            for number in 0..1000 {
                system.tile_answered(&mut chip, number << 16 | lost, TileMuxError::None);
            }
            let answers = system.take_reply().into_iter().count();
            assert_eq!(answers, usize::from(step == 2));
        }
    }
}

#[test]
fn memory_is_cleared_before_somebody_else_gets_it() {
    let (mut system, mut chip) = boot();
    let a = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let b = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    let region = system.activity(a).unwrap().region;
    let secret = Region {
        size: 4096,
        ..region
    };
    chip.write(secret, 100, b"secret");
    call(&mut system, &mut chip, 1, Syscall::Stop { activity: APP }).unwrap();
    revoke(&mut system, &mut chip, APP + 1);
    assert_eq!(chip.memory.get(&(region.base + 100)), Some(&b's'));
    // The same place for another activity: in steps of the caller's priority, between which others are served.
    let cut = Syscall::CutMemory {
        source: 99,
        target: 50,
        size: 1 << 16,
    };
    let owner = ticket(&system, 1);
    assert!(matches!(system.call(&mut chip, owner, cut), Ok(None)));
    // Not usable before it is clear.
    let early = Syscall::Delegate {
        activity: 200,
        source: 50,
        target: 50,
    };
    let asked = system.call(&mut chip, owner, early);
    assert!(matches!(asked, Err(SyscallError::Busy)));
    let mut steps = 0;
    while system.has_step(2) {
        chip.effects = 0;
        system.step(&mut chip, 2);
        assert!(chip.effects <= 1);
        assert_eq!(
            later(&mut system, &mut chip, b, Syscall::Nothing {}).map(|r| r.is_some()),
            Ok(true)
        );
        steps += 1;
        if steps == 40 {
            break;
        }
    }
    finish(&mut system, &mut chip);
    let (_, reply) = system.take_reply().unwrap();
    assert_eq!(words(&reply).unwrap(), [region.base]);
    let dirty = (region.base..region.base + region.size)
        .filter(|at| chip.memory.get(at).is_some_and(|byte| *byte != 0));
    assert_eq!(dirty.count(), 0);
    // Memory that nobody else had is not cleared: an activity may cut its own memory into pieces.
    chip.write(secret, 0, b"own");
    revoke(&mut system, &mut chip, 50);
    assert!(later(&mut system, &mut chip, 1, cut).unwrap().is_some());
    assert_eq!(chip.memory.get(&region.base), Some(&b'o'));
}

#[test]
fn a_piece_that_is_revoked_while_it_is_cleared_is_gone() {
    let (mut system, mut chip) = boot();
    let a = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let region = system.activity(a).unwrap().region;
    revoke(&mut system, &mut chip, APP + 1);
    let cut = Syscall::CutMemory {
        source: 99,
        target: 50,
        size: 1 << 16,
    };
    let owner = ticket(&system, 1);
    assert!(matches!(system.call(&mut chip, owner, cut), Ok(None)));
    system.step(&mut chip, 2);
    let gone = Syscall::Revoke {
        selector: 99,
        keep: 0,
    };
    assert!(matches!(
        system.call(&mut chip, Ticket { level: 1, ..owner }, gone),
        Ok(None)
    ));
    while system.has_step(1) {
        system.step(&mut chip, 1);
    }
    finish(&mut system, &mut chip);
    let replies: Vec<_> = core::iter::from_fn(|| system.take_reply())
        .map(|(_, reply)| words(&reply).map(|_| ()))
        .collect();
    // The reply of the higher priority leaves first.
    assert_eq!(replies, [Err(SyscallError::Revoked), Ok(())]);
    check(&mut system);
    // The rest is cleared for the next owner.
    chip.write(
        Region {
            size: 65536,
            ..region
        },
        65535,
        b"x",
    );
    let cut = Syscall::CutMemory {
        source: SEL_MEMORIES + MEMORY,
        target: 60,
        size: 1 << 22,
    };
    call(&mut system, &mut chip, 1, cut).unwrap();
    assert_eq!(chip.memory.get(&(region.base + 65535)), Some(&0));
}

#[test]
fn numbers_of_activities_come_back_and_confuse_nobody() {
    let (mut system, mut chip) = boot();
    let first = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let old = ticket(&system, first);
    let mut again = 0;
    for _ in 0..70_000u32 {
        let stop = Syscall::Stop { activity: APP };
        assert_eq!(later(&mut system, &mut chip, 1, stop), Ok(Some(vec![])));
        assert!(
            later(&mut system, &mut chip, 1, Syscall::WaitEvent { until: 0 })
                .unwrap()
                .is_some()
        );
        let made = later(&mut system, &mut chip, 1, creation(APP, SEL_TILES + 2, 0));
        let id = made.unwrap().unwrap()[0] as u16;
        assert!(id != 0 && id != 1 && id < 0x8000);
        while system.reported().is_some() {}
        chip.requests.clear();
        if id == first {
            again += 1;
            // A call that the first activity of this number left somewhere does not count as the new one's.
            let refused = system.call(&mut chip, old, Syscall::Nothing {});
            assert!(matches!(refused, Err(SyscallError::NotManager)));
            let own = ticket(&system, id);
            assert!(system.call(&mut chip, own, Syscall::Nothing {}).is_ok());
        }
    }
    assert_eq!(again, 2);
    check(&mut system);
}

/// The root manager's resources cost in proportion to the number of tiles.
#[test]
fn the_root_manager_starts_on_a_chip_of_any_size() {
    for tiles in [1, 2, 16, 17, 19, 20, 64, 128, 254] {
        super::boot_on(tiles);
    }
}

/// A manager and everything that it creates share the windows that the manager was given, so later managers find theirs.
#[test]
fn windows_are_counted_for_whom_they_were_given_to() {
    let (mut system, mut chip) = boot();
    let child = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    start(&mut system, &mut chip, 200);
    let show = |tile, memory| Syscall::ConfigureTile {
        tile,
        memory,
        tables: 0,
    };
    for target in 60..64 {
        let cut = Syscall::CutMemory {
            source: SEL_MEMORIES + MEMORY,
            target,
            size: 1 << 16,
        };
        call(&mut system, &mut chip, 1, cut).unwrap();
    }
    let mut quota = limited(70, SHARE, SHARE);
    if let Syscall::DeriveTile { windows, .. } = &mut quota {
        *windows = 1;
    }
    call(&mut system, &mut chip, 1, quota).unwrap();
    for source in [70, 60, 61] {
        let give = Syscall::Delegate {
            activity: 200,
            source,
            target: source,
        };
        call(&mut system, &mut chip, 1, give).unwrap();
    }
    call(&mut system, &mut chip, 1, show(70, 60)).unwrap();
    // Neither the manager nor the child with a copy of the capability gets another window.
    for (who, memory) in [(1, 62), (child, 61)] {
        let refused = call(&mut system, &mut chip, who, show(70, memory));
        assert_eq!(refused, Err(SyscallError::NoQuota), "{who}");
    }
    check(&mut system);
    for memory in [62, 63] {
        call(&mut system, &mut chip, 1, show(SEL_TILES + 2, memory)).unwrap();
    }
    // The tile's number of windows is the limit for everybody.
    let full = call(&mut system, &mut chip, 1, show(SEL_TILES + 2, 61));
    assert_eq!(full, Err(SyscallError::NoWindow));
    // A window comes back with its memory.
    revoke(&mut system, &mut chip, 60);
    call(&mut system, &mut chip, child, show(70, 61)).unwrap();
    check(&mut system);
}

/// A program that creates and ends children next to an application does not fragment the page tables that the application needs: when it
/// comes back, there are as many page tables as its quota says.
#[test]
fn children_split_no_page_tables_of_others() {
    let (mut system, mut chip) = boot();
    // The first one lights the tile, with a hundred pages for page tables.
    create(&mut system, &mut chip, 400, SEL_TILES + 2);
    revoke(&mut system, &mut chip, 400);
    // One with more than 2 MiB needs 8 of them, each child 7.
    let (app, hostile) = (60, 61);
    for (target, pages) in [(app, 8), (hostile, 92)] {
        let mut quota = limited(target, SHARE, SHARE);
        if let Syscall::DeriveTile { tables, .. } = &mut quota {
            *tables = pages;
        }
        call(&mut system, &mut chip, 1, quota).unwrap();
    }
    for request in [
        Syscall::CutMemory {
            source: 99,
            target: 301,
            size: 5 << 19,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: 302,
            bytes: 4096,
        },
        creation(300, app, 0),
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let child = |number: u16| 310 + 3 * number;
    for number in 0..13 {
        create(&mut system, &mut chip, child(number), hostile);
    }
    revoke(&mut system, &mut chip, 300);
    // Another activity comes to its old place, and its own former place has no room for it.
    revoke(&mut system, &mut chip, child(1));
    let again = creation(child(1), hostile, 0);
    call(&mut system, &mut chip, 1, again).unwrap();
    call(&mut system, &mut chip, 1, creation(300, app, 0)).unwrap();
    check(&mut system);
}
