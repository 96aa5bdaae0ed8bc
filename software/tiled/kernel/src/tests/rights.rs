//! Who may do what, and that revocation is complete when it says so.

use super::*;
use bulkhead_abi::dtu::{SendEndpoint, UNLIMITED_CREDITS};
use bulkhead_abi::syscall::SEL_MEMORY;

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
    // Its own memory is shown to the tile by the manager; it cannot show it as a window.
    let show = Syscall::ConfigureTile {
        tile: 2,
        memory: SEL_MEMORY,
        tables: 4,
    };
    assert_eq!(
        call(&mut system, &mut chip, a, show),
        Err(SyscallError::BadArgument)
    );
    // Callers that are not there.
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
    // One of them is undone alone.
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
    assert!(matches!(
        system.call(&mut chip, ticket, revoke),
        Ok(Outcome::Later)
    ));
    while system.has_step(0) {
        assert_eq!(system.take_reply().map(|_| ()), None);
        // While it goes on, nothing new comes of it.
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
    while system.has_step(0) {
        chip.effects = 0;
        let before = system.space().steps();
        system.step(&mut chip, 0);
        // Reading, invalidating, asking TileMux: at most one of each.
        assert!(chip.effects <= 3);
        assert!(system.space().steps() - before <= bulkhead_capabilities::REVOKE_STEPS.into());
        // The manager, whose priority is the highest, is served at any time, and revokes something itself.
        let semaphore = Syscall::CreateSemaphore {
            target: 70,
            value: 0,
        };
        let ticket = ticket(&system, 1);
        assert!(matches!(
            system.call(&mut chip, ticket, semaphore),
            Ok(Outcome::Reply(_))
        ));
        let revoke = Syscall::Revoke {
            selector: 70,
            keep: 0,
        };
        assert!(matches!(
            system.call(&mut chip, ticket, revoke),
            Ok(Outcome::Later)
        ));
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

#[test]
fn late_replies_reach_nobody() {
    let (mut system, mut chip, a, b) = pair();
    let gate = Syscall::CreateReceive {
        target: 20,
        slots: 2,
        slot_size: 64,
    };
    call(&mut system, &mut chip, b, gate).unwrap();
    let [receive, _] = call(
        &mut system,
        &mut chip,
        b,
        activate(20, 0, Some((SEL_MEMORY, 0))),
    )
    .unwrap()[..] else {
        panic!()
    };
    let send = Syscall::CreateSend {
        source: 20,
        target: 21,
        label: 0,
        credits: 2,
    };
    call(&mut system, &mut chip, b, send).unwrap();
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
    let (receive, sender) = (receive as u16, sender as u16);
    // A message is under way: a credit less, and a right to reply at the receiver, as the unit makes it.
    let Some(Endpoint::Send(used)) = chip.endpoints.get_mut(&(2, sender)) else {
        panic!()
    };
    used.credits -= 1;
    let right = |credit_endpoint| {
        Endpoint::Send(SendEndpoint {
            activity: b,
            target_tile: 2,
            target_endpoint: 30,
            credit_endpoint,
            credits: UNLIMITED_CREDITS,
            credits_max: UNLIMITED_CREDITS,
            reply: true,
            ..SendEndpoint::default()
        })
    };
    chip.endpoints.insert((2, receive + 1), right(sender));
    chip.endpoints.insert((2, receive + 2), right(sender + 1));
    call(&mut system, &mut chip, 1, Syscall::Stop { activity: APP }).unwrap();
    assert!(system.activity(a).is_none());
    assert!(!chip.endpoints.contains_key(&(2, receive + 1)));
    // That of another sender stays.
    assert!(chip.endpoints.contains_key(&(2, receive + 2)));
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
