//! What each activity may do, and that a revocation is complete when it reports its end.

use super::making::left;
use super::*;
use bulkhead_abi::syscall::{ANY_ENDPOINT, NO_SELECTOR, SEL_MEMORY};
use bulkhead_abi::tilemux::FIRST_ENDPOINT;

fn pair() -> (System, Chip, u16, u16) {
    let (mut system, mut chip) = boot();
    let a = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let b = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    start(&mut system, &mut chip, APP);
    start(&mut system, &mut chip, 200);
    (system, chip, a, b)
}

#[test]
fn nobody_reaches_what_he_was_not_given() {
    let (mut system, mut chip, a, _) = pair();
    let endpoints = chip.endpoints.clone();
    for request in [
        Syscall::ConfigureTile {
            tile: SEL_TILES + 1,
            memory: 3,
            tables: 0,
        },
        Syscall::CutMemory {
            source: SEL_MEMORIES + MEMORY,
            target: 20,
            size: 4096,
        },
        Syscall::Stop { activity: APP },
        Syscall::Delegate {
            activity: 200,
            source: 0,
            target: 5,
        },
        Syscall::Obtain {
            activity: 200,
            source: 0,
            target: 5,
        },
        Syscall::Revoke {
            selector: APP,
            keep: 0,
        },
        Syscall::OpenSession {
            service: 9,
            target: 10,
            argument: 0,
        },
    ] {
        assert_eq!(
            call(&mut system, &mut chip, a, request),
            Err(SyscallError::NoCapability),
            "{request:?}"
        );
    }
    // The manager makes its memory visible to the tile; it cannot itself use this memory, or a piece of it, as a window, because there
    // are few windows.
    let piece = Syscall::CutMemory {
        source: SEL_MEMORY,
        target: 20,
        size: 4096,
    };
    call(&mut system, &mut chip, a, piece).unwrap();
    for (memory, tables) in [(SEL_MEMORY, 0), (SEL_MEMORY, 4), (20, 0)] {
        let show = Syscall::ConfigureTile {
            tile: 2,
            memory,
            tables,
        };
        let shown = call(&mut system, &mut chip, a, show);
        assert_eq!(shown, Err(SyscallError::BadArgument));
    }
    // Callers that do not exist.
    for caller in [77, u16::MAX] {
        assert_eq!(
            call(&mut system, &mut chip, caller, Syscall::Nothing {}),
            Err(SyscallError::NotManager)
        );
    }
    assert_eq!(chip.endpoints, endpoints);
}

#[test]
fn revocation_invalidates_all_that_was_derived_before_it_is_answered() {
    let (mut system, mut chip, a, b) = pair();
    let before = chip.endpoints.clone();
    let part = Syscall::DeriveMemory {
        source: SEL_MEMORY,
        target: 20,
        offset: 4096,
        size: 4096,
        rights: 1,
    };
    call(&mut system, &mut chip, a, part).unwrap();
    for request in [
        Syscall::Obtain {
            activity: APP,
            source: 20,
            target: 50,
        },
        Syscall::Delegate {
            activity: 200,
            source: 50,
            target: 21,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let [first, size] = call(&mut system, &mut chip, b, activate(21, 0, None)).unwrap()[..] else {
        panic!()
    };
    let [second, _] = call(&mut system, &mut chip, b, activate(21, 0, None)).unwrap()[..] else {
        panic!()
    };
    assert_eq!(size, 4096);
    let Endpoint::Memory(endpoint) = chip.endpoints[&(2, first as u16)] else {
        panic!()
    };
    assert_eq!(
        (endpoint.rights, endpoint.size, endpoint.activity),
        (1, 4096, b)
    );
    // One of them is deactivated alone.
    let undo = Syscall::Deactivate {
        gate: 21,
        endpoint: first as u16,
    };
    call(&mut system, &mut chip, b, undo).unwrap();
    assert!(!chip.endpoints.contains_key(&(2, first as u16)));
    assert_eq!(
        call(&mut system, &mut chip, b, undo),
        Err(SyscallError::NoEndpoint)
    );
    assert!(chip.endpoints.contains_key(&(2, second as u16)));
    // Nothing is answered before the last step.
    let ticket = ticket(&system, a);
    let revoke = Syscall::Revoke {
        selector: 20,
        keep: 0,
    };
    assert!(matches!(system.call(&mut chip, ticket, revoke), Ok(None)));
    while system.has_step(0) {
        assert_eq!(system.take_reply().map(|_| ()), None);
        // While it is in progress, nothing new is derived.
        let copy = Syscall::Obtain {
            activity: 200,
            source: 21,
            target: 60,
        };
        assert!(later(&mut system, &mut chip, 1, copy).is_err());
        system.step(&mut chip, 0);
    }
    assert!(system.take_reply().is_some());
    assert_eq!(chip.endpoints, before);
}

#[test]
fn a_step_has_few_effects_and_higher_priorities_come_between() {
    let (mut system, mut chip, a, b) = pair();
    // As much as the purse allows, each active.
    let mut made = 0;
    while call(
        &mut system,
        &mut chip,
        a,
        Syscall::DeriveMemory {
            source: SEL_MEMORY,
            target: 20 + made,
            offset: 0,
            size: 64,
            rights: 3,
        },
    )
    .is_ok()
        && call(&mut system, &mut chip, a, activate(20 + made, 0, None)).is_ok()
    {
        made += 1;
    }
    assert!(made > 5);
    system.notified(&mut chip, 2, a, bulkhead_abi::syscall::StopCause::Panic);
    let mut steps = 0;
    // It stays until its end is reported.
    while system.has_step(0) || system.reported().is_some() {
        chip.effects = 0;
        let before = system.space().steps();
        system.step(&mut chip, 0);
        // An endpoint is read and invalidated, or TileMux is asked.
        assert!(chip.effects <= 2);
        assert!(system.space().steps() - before <= bulkhead_capabilities::REVOKE_STEPS.into());
        // The manager, whose priority is the highest, is served at any time, and revokes something itself.
        let semaphore = Syscall::CreateSemaphore {
            target: 70,
            value: 0,
        };
        let ticket = ticket(&system, 1);
        assert!(matches!(
            system.call(&mut chip, ticket, semaphore),
            Ok(Some(_))
        ));
        let revoke = Syscall::Revoke {
            selector: 70,
            keep: 0,
        };
        assert!(matches!(system.call(&mut chip, ticket, revoke), Ok(None)));
        while system.has_step(2) {
            system.step(&mut chip, 2);
        }
        assert!(system.take_reply().is_some());
        steps += 1;
    }
    assert!(steps > 3 * made);
    check(&mut system);
    assert!(system.activity(b).is_some());
}

/// The oldest packet can be held for any time: nobody else gets its endpoint, its quota or the memory behind it before it is answered.
/// The revoking caller waits for it, and nobody else does, even if that caller is unimportant.
#[test]
fn what_is_under_way_holds_its_own_revocation_and_nobody_else() {
    // A grant of memory, and a gate that sends.
    for sends in [false, true] {
        let (mut system, mut chip, a, b) = pair();
        let what = match sends {
            false => {
                let derive = |source, target| Syscall::DeriveMemory {
                    source,
                    target,
                    offset: 0,
                    size: 4096,
                    rights: 3,
                };
                call(&mut system, &mut chip, a, derive(SEL_MEMORY, 19)).unwrap();
                derive(19, 20)
            }
            true => {
                let gate = Syscall::CreateReceive {
                    target: 19,
                    slots: 2,
                    slot_size: 64,
                };
                call(&mut system, &mut chip, a, gate).unwrap();
                let buffer = Some((SEL_MEMORY, 0));
                call(&mut system, &mut chip, a, activate(19, 0, buffer)).unwrap();
                Syscall::CreateSend {
                    source: 19,
                    target: 20,
                    label: 0,
                    credits: 1,
                }
            }
        };
        call(&mut system, &mut chip, a, what).unwrap();
        let made = call(&mut system, &mut chip, a, activate(20, 0, None)).unwrap();
        let endpoint = made[0] as u16;
        let before = left(&mut system, &mut chip);
        chip.under_way.push((2, endpoint));
        let who = ticket(&system, a);
        let revoke = Syscall::Revoke {
            selector: 20,
            keep: 0,
        };
        assert!(matches!(system.call(&mut chip, who, revoke), Ok(None)));
        // A more important caller revokes an ancestor and waits for the same packet.
        let mut above = ticket(&system, a);
        above.level = 1;
        let all = Syscall::Revoke {
            selector: 19,
            keep: 0,
        };
        assert!(matches!(system.call(&mut chip, above, all), Ok(None)));
        for round in 0..300 {
            for level in [1, 0] {
                assert!(system.has_step(level));
                chip.effects = 0;
                system.step(&mut chip, level);
                assert!(chip.effects <= 2);
            }
            // From this moment nothing leaves any more.
            assert!(round < 3 || !chip.endpoints.contains_key(&(2, endpoint)));
            assert!(system.take_reply().is_none());
            // Others activate endpoints at the same time, and never get this one; and they revoke.
            let derive = Syscall::DeriveMemory {
                source: SEL_MEMORY,
                target: 30,
                offset: 0,
                size: 64,
                rights: 1,
            };
            let other = ticket(&system, b);
            let answer = |outcome| match outcome {
                Ok(Some(reply)) => words(&reply).unwrap(),
                other => panic!("{other:?}"),
            };
            answer(system.call(&mut chip, other, derive));
            let other_one = answer(system.call(&mut chip, other, activate(30, 0, None)));
            assert_ne!(other_one[0], u64::from(endpoint));
            let mut high = ticket(&system, b);
            high.level = 2;
            let gone = Syscall::Revoke {
                selector: 30,
                keep: 0,
            };
            assert!(matches!(system.call(&mut chip, high, gone), Ok(None)));
            let mut steps = 0;
            while system.has_step(2) {
                system.step(&mut chip, 2);
                steps += 1;
            }
            assert!(steps < 10);
            let (answered, _) = system.take_reply().unwrap();
            assert_eq!(answered, high);
        }
        assert_ne!(left(&mut system, &mut chip), before);
        chip.under_way.clear();
        finish(&mut system, &mut chip);
        let mut answered: Vec<_> = core::iter::from_fn(|| system.take_reply()).collect();
        answered.retain(|(who, _)| who.caller == a);
        assert_eq!(answered.len(), 2);
        check(&mut system);
        // Only now can another activity get the number.
        let again = call(&mut system, &mut chip, a, activate(19, 0, None));
        assert!(again.is_err());
        let derive = Syscall::DeriveMemory {
            source: SEL_MEMORY,
            target: 31,
            offset: 0,
            size: 64,
            rights: 1,
        };
        call(&mut system, &mut chip, b, derive).unwrap();
        let next = call(&mut system, &mut chip, b, activate(31, 0, None)).unwrap();
        assert!(next[0] <= u64::from(endpoint), "{next:?}");
    }
}

#[test]
fn who_waits_for_a_reply_of_the_dead_is_woken() {
    let (mut system, mut chip, a, b) = pair();
    let gate = Syscall::CreateReceive {
        target: 20,
        slots: 2,
        slot_size: 64,
    };
    call(&mut system, &mut chip, b, gate).unwrap();
    call(
        &mut system,
        &mut chip,
        b,
        activate(20, 0, Some((SEL_MEMORY, 0))),
    )
    .unwrap();
    call(
        &mut system,
        &mut chip,
        b,
        Syscall::CreateSend {
            source: 20,
            target: 21,
            label: 0,
            credits: 1,
        },
    )
    .unwrap();
    call(
        &mut system,
        &mut chip,
        1,
        Syscall::Obtain {
            activity: 200,
            source: 21,
            target: 50,
        },
    )
    .unwrap();
    let [sender, _] = call(&mut system, &mut chip, 1, activate(50, APP, None)).unwrap()[..] else {
        panic!()
    };
    let Some(Endpoint::Send(used)) = chip.endpoints.get_mut(&(2, sender as u16)) else {
        panic!()
    };
    used.credits = 0;
    system.notified(&mut chip, 2, b, bulkhead_abi::syscall::StopCause::Panic);
    finish(&mut system, &mut chip);
    assert_eq!(
        chip.requests.last(),
        Some(&(2, Request::Wake { activity: a }))
    );
}

/// A piece that is cut out is cleared if another activity had it; that is a write, so a read-only capability cannot be cut.
#[test]
fn the_kernel_writes_nothing_for_who_may_only_read() {
    let (mut system, mut chip, a, _) = pair();
    for rights in 1..8 {
        let part = Syscall::DeriveMemory {
            source: SEL_MEMORY,
            target: 20,
            offset: 0,
            size: 8192,
            rights,
        };
        let writes = rights & 2 != 0;
        let base = system.activity(a).unwrap().region.base;
        call(&mut system, &mut chip, a, part).unwrap();
        chip.memory.insert(base, 7);
        let cut = Syscall::CutMemory {
            source: 20,
            target: 21,
            size: 4096,
        };
        for _ in 0..2 {
            let made = call(&mut system, &mut chip, a, cut);
            assert_eq!(made.is_ok(), writes, "rights {rights}: {made:?}");
            if writes {
                // Another activity has it for a while.
                let lent = Syscall::Obtain {
                    activity: APP,
                    source: 21,
                    target: 50,
                };
                call(&mut system, &mut chip, 1, lent).unwrap();
                let back = Syscall::Revoke {
                    selector: 21,
                    keep: 0,
                };
                call(&mut system, &mut chip, a, back).unwrap();
            }
        }
        assert_eq!(chip.memory[&base] == 0, writes, "rights {rights}");
        let all = Syscall::Revoke {
            selector: 20,
            keep: 0,
        };
        call(&mut system, &mut chip, a, all).unwrap();
        // The piece that the next round cuts out is clean again.
        let clean = Syscall::CutMemory {
            source: SEL_MEMORY,
            target: 20,
            size: 4096,
        };
        call(&mut system, &mut chip, a, clean).unwrap();
        call(&mut system, &mut chip, a, all).unwrap();
    }
}

/// A caller that names an endpoint gets that one or none, so it need not take others meanwhile, which its quota may not allow.
#[test]
fn a_certain_endpoint_is_had_if_it_is_free() {
    let (mut system, mut chip, a, b) = pair();
    let on = |endpoint: u16| Syscall::Activate {
        gate: SEL_MEMORY,
        activity: 0,
        memory: NO_SELECTOR,
        offset: 0,
        replies: 0,
        endpoint,
    };
    let any = call(&mut system, &mut chip, a, on(ANY_ENDPOINT)).unwrap()[0] as u16;
    let high = call(&mut system, &mut chip, a, on(any + 40)).unwrap();
    assert_eq!(high[0] as u16, any + 40);
    assert!(matches!(
        chip.endpoints[&(2, any + 40)],
        Endpoint::Memory(_)
    ));
    let before = (system.books(), chip.endpoints.clone());
    // It is there already.
    assert_eq!(
        call(&mut system, &mut chip, a, on(any)),
        Ok(vec![any.into(), 0])
    );
    // Endpoints taken by others, the system's own, and some that do not exist.
    for endpoint in [any, any + 40, 0, FIRST_ENDPOINT - 1, 192, u16::MAX - 1] {
        for caller in [a, b] {
            if caller == a && [any, any + 40].contains(&endpoint) {
                continue;
            }
            assert_eq!(
                call(&mut system, &mut chip, caller, on(endpoint)),
                Err(SyscallError::NoEndpoint),
                "{endpoint}"
            );
        }
    }
    assert_eq!((system.books(), chip.endpoints.clone()), before);
    // Once given up, it goes to the next caller.
    let undo = Syscall::Deactivate {
        gate: SEL_MEMORY,
        endpoint: any + 40,
    };
    call(&mut system, &mut chip, a, undo).unwrap();
    assert_eq!(
        call(&mut system, &mut chip, b, on(any + 40)).unwrap()[0] as u16,
        any + 40
    );
}
