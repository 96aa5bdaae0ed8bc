//! A receiver is told when nobody is left that could send to it; an activity that waits for a semaphore is told when an activity that could
//! raise it is gone.

use super::*;
use crate::system::LOOKED;
use bulkhead_abi::syscall::{SEL_ACTIVITY, SEL_MEMORY, StopCause};
use std::collections::BTreeSet;

const RECEIVER: u16 = APP;
const SENDER: u16 = 200;
const OTHER: u16 = 300;

fn receive(system: &mut System, chip: &mut Chip, caller: u16) -> u16 {
    let create = Syscall::CreateReceive {
        target: 16,
        slots: 4,
        slot_size: 256,
    };
    call(system, chip, caller, create).unwrap();
    let active = activate(16, SEL_ACTIVITY, Some((SEL_MEMORY, 0)));
    call(system, chip, caller, active).unwrap()[0] as u16
}

/// Gives what activity `caller` has at `source` to the activity at the manager's selector `at`, as its selector 20.
fn pass(system: &mut System, chip: &mut Chip, (from, source): (u16, u16), own: u16, at: u16) {
    let obtain = Syscall::Obtain {
        activity: from,
        source,
        target: own,
    };
    call(system, chip, 1, obtain).unwrap();
    let give = Syscall::Delegate {
        activity: at,
        source: own,
        target: 20,
    };
    call(system, chip, 1, give).unwrap();
}

/// The shares of the gates of an activity's send endpoints, apart from its channel to the kernel, which has none.
fn shares(chip: &Chip, id: u16) -> Vec<u32> {
    let of_gate = |endpoint: &Endpoint| match endpoint {
        Endpoint::Send(send) if send.activity == id => Some((send.shares, send.credits_max)),
        _ => None,
    };
    let all = chip.endpoints.values().filter_map(of_gate);
    let counted = all.filter(|(shares, _)| *shares != 0);
    let counted = counted.inspect(|(shares, credits)| {
        assert_eq!(shares.count_ones(), u32::from(*credits));
    });
    counted.map(|(shares, _)| shares).collect()
}

fn wakes(chip: &Chip, id: u16) -> usize {
    let wake = Request::Wake { activity: id };
    chip.requests.iter().filter(|(_, r)| *r == wake).count()
}

#[test]
fn a_receiver_hears_that_the_last_sender_is_gone() {
    let (mut system, mut chip) = boot();
    let [receiver, sender, other] = [RECEIVER, SENDER, OTHER].map(|at| {
        let id = create(&mut system, &mut chip, at, SEL_TILES + 2);
        start(&mut system, &mut chip, at);
        id
    });
    let endpoint = receive(&mut system, &mut chip, receiver);
    let question = Syscall::Senders { endpoint };
    let senders = |system: &mut System, chip: &mut Chip| call(system, chip, receiver, question);
    assert_eq!(senders(&mut system, &mut chip), Ok(vec![0, 0]));
    // Only the receiver may ask, and only about a receive endpoint.
    for (caller, endpoint) in [
        (sender, endpoint),
        (receiver, endpoint + 1),
        (receiver, 999),
    ] {
        let question = Syscall::Senders { endpoint };
        let answer = call(&mut system, &mut chip, caller, question);
        assert_eq!(answer, Err(SyscallError::NoEndpoint));
    }
    for (number, at) in [(0, SENDER), (1, OTHER)] {
        let create = Syscall::CreateSend {
            source: 16,
            target: 17 + number,
            label: 7,
            credits: 2,
        };
        call(&mut system, &mut chip, receiver, create).unwrap();
        pass(
            &mut system,
            &mut chip,
            (RECEIVER, 17 + number),
            60 + number,
            at,
        );
    }
    let active = activate(20, SEL_ACTIVITY, None);
    let first = call(&mut system, &mut chip, sender, active).unwrap()[0] as u16;
    call(&mut system, &mut chip, sender, active).unwrap();
    call(&mut system, &mut chip, other, active).unwrap();
    assert_eq!(senders(&mut system, &mut chip), Ok(vec![3, 0]));
    // Three endpoints with two credits each, for four slots.
    assert_eq!(shares(&chip, sender), [0b11, 0b11]);
    assert_eq!(shares(&chip, other), [0b1100]);
    let deactivate = Syscall::Deactivate {
        gate: 20,
        endpoint: first,
    };
    call(&mut system, &mut chip, sender, deactivate).unwrap();
    assert_eq!(senders(&mut system, &mut chip), Ok(vec![2, 1]));
    system.notified(&mut chip, 2, other, StopCause::Panic);
    finish(&mut system, &mut chip);
    assert_eq!(senders(&mut system, &mut chip), Ok(vec![1, 2]));
    assert_eq!(wakes(&chip, receiver), 0, "somebody is left");
    let stop = Syscall::Stop { activity: SENDER };
    call(&mut system, &mut chip, 1, stop).unwrap();
    assert_eq!(senders(&mut system, &mut chip), Ok(vec![0, 3]));
    assert_eq!(wakes(&chip, receiver), 1);
    // A sender is connected again.
    create(&mut system, &mut chip, 400, SEL_TILES + 2);
    let again = activate(60, 400, None);
    call(&mut system, &mut chip, 1, again).unwrap();
    assert_eq!(senders(&mut system, &mut chip), Ok(vec![1, 3]));
    // The receiver's end wakes nobody.
    system.notified(&mut chip, 2, receiver, StopCause::Panic);
    finish(&mut system, &mut chip);
    assert_eq!(wakes(&chip, receiver), 1);
    check(&mut system);
}

/// An activity that waits for its semaphore, another one that shares it, and the call.
fn asleep(system: &mut System, chip: &mut Chip) -> ([u16; 2], Syscall) {
    let both = [RECEIVER, SENDER].map(|at| {
        let id = create(system, chip, at, SEL_TILES + 2);
        start(system, chip, at);
        id
    });
    let make = Syscall::CreateSemaphore {
        target: 30,
        value: 0,
    };
    call(system, chip, both[0], make).unwrap();
    pass(system, chip, (RECEIVER, 30), 60, SENDER);
    let down = Syscall::SemaphoreDown { semaphore: 30 };
    assert_eq!(later(system, chip, both[0], down), Ok(None));
    (both, down)
}

#[test]
fn a_sleeper_hears_that_somebody_is_gone_who_could_have_woken_him() {
    let (mut system, mut chip) = boot();
    let ([sleeper, giver], down) = asleep(&mut system, &mut chip);
    system.notified(&mut chip, 2, giver, StopCause::Panic);
    finish(&mut system, &mut chip);
    let (who, reply) = system.take_reply().unwrap();
    assert_eq!(
        (who.caller, words(&reply)),
        (sleeper, Err(SyscallError::Gone))
    );
    // The semaphore still exists.
    let up = Syscall::SemaphoreUp { semaphore: 60 };
    call(&mut system, &mut chip, 1, up).unwrap();
    assert_eq!(call(&mut system, &mut chip, sleeper, down), Ok(vec![]));
}

/// Before the fix, a copy that an activity gave itself and took back woke all sleepers, over and over, although none had lost the
/// semaphore.
#[test]
fn whoever_takes_his_own_copy_back_wakes_nobody() {
    let (mut system, mut chip) = boot();
    let ([sleeper, giver], _) = asleep(&mut system, &mut chip);
    let copy = |activity, source, target| Syscall::Delegate {
        activity,
        source,
        target,
    };
    let back = |selector| Syscall::Revoke { selector, keep: 0 };
    let obtain = Syscall::Obtain {
        activity: SENDER,
        source: 20,
        target: 62,
    };
    // A copy for itself; a copy of that; one that came back through another activity.
    for (who, request) in [
        (giver, copy(SEL_ACTIVITY, 20, 70)),
        (giver, copy(SEL_ACTIVITY, 70, 71)),
        (giver, back(70)),
        (1, obtain),
        (1, back(62)),
    ] {
        let done = later(&mut system, &mut chip, who, request);
        assert_eq!(done, Ok(Some(vec![])), "{request:?}");
        let waits = system.activity(sleeper).unwrap().waits;
        assert!(waits.is_some(), "{request:?}");
    }
    // Now an activity has lost it.
    is_told(&mut system, &mut chip, (sleeper, giver), back(20));
}

/// After this call of the giver, the sleeper is told that its semaphore is gone.
fn is_told(system: &mut System, chip: &mut Chip, (sleeper, giver): (u16, u16), call: Syscall) {
    let ticket = ticket(system, giver);
    assert!(matches!(system.call(chip, ticket, call), Ok(None)));
    finish(system, chip);
    let (who, reply) = system.take_reply().unwrap();
    assert_eq!(
        (who.caller, words(&reply)),
        (sleeper, Err(SyscallError::Gone))
    );
    check(system);
}

/// Before the fix, an activity that had got a semaphore twice, separately, counted as losing it with the first of both.
#[test]
fn whoever_has_another_copy_has_not_lost_the_semaphore() {
    let (mut system, mut chip) = boot();
    let ([sleeper, giver], _) = asleep(&mut system, &mut chip);
    // Its second copy comes after more capabilities than one step examines.
    let make = |target| Syscall::CreateSemaphore { target, value: 0 };
    for target in 100..102 + LOOKED as u16 {
        call(&mut system, &mut chip, giver, make(target)).unwrap();
    }
    let again = Syscall::Delegate {
        activity: SENDER,
        source: 60,
        target: 500,
    };
    call(&mut system, &mut chip, 1, again).unwrap();
    let back = |selector| Syscall::Revoke { selector, keep: 0 };
    let done = later(&mut system, &mut chip, giver, back(20));
    assert_eq!(done, Ok(Some(vec![])));
    assert!(system.activity(sleeper).unwrap().waits.is_some());
    is_told(&mut system, &mut chip, (sleeper, giver), back(500));
}

#[test]
fn many_sleepers_hear_it_one_in_each_step() {
    let (mut system, mut chip) = boot();
    let make = Syscall::CreateSemaphore {
        target: 70,
        value: 0,
    };
    call(&mut system, &mut chip, 1, make).unwrap();
    let down = Syscall::SemaphoreDown { semaphore: 70 };
    let mut sleepers = BTreeSet::new();
    let mut giver = 0;
    for number in 0..12 {
        let at = 100 + 10 * number;
        let id = create(&mut system, &mut chip, at, SEL_TILES + 2);
        start(&mut system, &mut chip, at);
        let give = Syscall::Delegate {
            activity: at,
            source: 70,
            target: 70,
        };
        call(&mut system, &mut chip, 1, give).unwrap();
        if number == 0 {
            giver = id;
            continue;
        }
        assert_eq!(later(&mut system, &mut chip, id, down), Ok(None));
        sleepers.insert(id);
    }
    system.notified(&mut chip, 2, giver, StopCause::Panic);
    let mut again = 0;
    while !sleepers.is_empty() {
        while let Some((number, answer)) = chip.answer() {
            system.tile_answered(&mut chip, number, answer);
        }
        // An activity that has stopped stays until its end has been reported.
        system.reported();
        let mut all = 0..3;
        let level = all.find(|level| system.has_step(*level));
        let level = level.expect("somebody is left");
        system.step(&mut chip, level);
        let told = core::iter::from_fn(|| system.take_reply()).collect::<Vec<_>>();
        assert!(told.len() <= 1, "{} in one step", told.len());
        for (who, reply) in told {
            assert_eq!(words(&reply), Err(SyscallError::Gone));
            assert!(sleepers.remove(&who.caller));
            // A sender that comes again meanwhile does not lengthen this.
            if !sleepers.is_empty() {
                let outcome = later(&mut system, &mut chip, who.caller, down);
                assert_eq!(outcome, Err(SyscallError::Gone));
                again += 1;
            }
        }
    }
    assert_eq!(again, 10);
    finish(&mut system, &mut chip);
    check(&mut system);
}

/// A service ends and comes back. Meanwhile a neighbour takes all endpoints that it can get: the client's endpoint is not among them,
/// although it leads nowhere, and it costs the client the same as before. Then it is removed in every possible way.
#[test]
fn a_client_keeps_its_endpoint_while_its_service_is_away() {
    let (gate, sends) = (30, 31);
    for end in ["deactivated", "gate gone", "client gone", "receiver gone"] {
        let (mut system, mut chip) = boot();
        let [service, client, neighbour] = [RECEIVER, SENDER, OTHER].map(|at| {
            let id = create(&mut system, &mut chip, at, SEL_TILES + 2);
            start(&mut system, &mut chip, at);
            id
        });
        for request in [
            Syscall::CreateReceive {
                target: gate,
                slots: 4,
                slot_size: 256,
            },
            Syscall::CreateSend {
                source: gate,
                target: sends,
                label: 7,
                credits: 2,
            },
            activate(gate, RECEIVER, Some((RECEIVER + 1, 0))),
        ] {
            call(&mut system, &mut chip, 1, request).unwrap();
        }
        let begun = call(&mut system, &mut chip, 1, activate(sends, SENDER, None));
        let endpoint = begun.unwrap()[0] as u16;
        let again = Syscall::Activate {
            gate: sends,
            activity: SENDER,
            memory: NO_SELECTOR,
            offset: 0,
            replies: 0,
            endpoint,
        };
        let left = |system: &mut System, chip: &mut Chip| {
            let selector = SEL_TILES + 2;
            call(system, chip, 1, Syscall::Query { selector }).unwrap()[1]
        };
        let before = left(&mut system, &mut chip);
        system.notified(&mut chip, 2, service, StopCause::Panic);
        finish(&mut system, &mut chip);
        hear_all(&mut system, &mut chip, 1);
        assert!(!chip.endpoints.contains_key(&(2, endpoint)));
        // The service's own endpoints are back: its channel, its gate and four rights to reply. The client's is not.
        assert_eq!(left(&mut system, &mut chip), before + 2 + 5);
        // Nobody gets it by its number or by asking for any endpoint; not even its own client for another purpose.
        for (caller, activity) in [(neighbour, SEL_ACTIVITY), (client, SEL_ACTIVITY)] {
            let own = Syscall::Activate {
                gate: SEL_MEMORY,
                activity,
                memory: NO_SELECTOR,
                offset: 0,
                replies: 0,
                endpoint,
            };
            let stolen = call(&mut system, &mut chip, caller, own);
            assert_eq!(stolen, Err(SyscallError::NoEndpoint));
        }
        let any = activate(SEL_MEMORY, SEL_ACTIVITY, None);
        let mut taken = 0;
        while let Ok(got) = call(&mut system, &mut chip, neighbour, any) {
            assert_ne!(got[0] as u16, endpoint);
            taken += 1;
        }
        assert!(taken > 5, "{taken}");
        let stop = Syscall::Stop { activity: OTHER };
        call(&mut system, &mut chip, 1, stop).unwrap();
        // Nobody receives there yet.
        let early = call(&mut system, &mut chip, 1, again);
        assert_eq!(early, Err(SyscallError::WrongState));
        create(&mut system, &mut chip, 400, SEL_TILES + 2);
        start(&mut system, &mut chip, 400);
        let buffer = Some((401, 0));
        let place = call(&mut system, &mut chip, 1, activate(gate, 400, buffer));
        let place = (2, place.unwrap()[0] as u16);
        for bytes in [256, 0] {
            let connected = call(&mut system, &mut chip, 1, again);
            assert_eq!(connected, Ok(vec![endpoint.into(), bytes]));
            let Endpoint::Send(send) = chip.endpoints[&(2, endpoint)] else {
                panic!("{:?}", chip.endpoints[&(2, endpoint)])
            };
            let target = (send.target_tile, send.target_endpoint);
            assert_eq!((target, send.activity, send.credits), (place, client, 2));
            assert_eq!(send.shares, 0b11);
        }
        let books = system.books();
        let gone = match end {
            "deactivated" => Syscall::Deactivate {
                gate: sends,
                endpoint,
            },
            "gate gone" => Syscall::Revoke {
                selector: sends,
                keep: 0,
            },
            "client gone" => Syscall::Stop { activity: SENDER },
            _ => Syscall::Stop { activity: 400 },
        };
        call(&mut system, &mut chip, 1, gone).unwrap();
        hear_all(&mut system, &mut chip, 1);
        assert_ne!(system.books(), books);
        assert!(!chip.endpoints.contains_key(&(2, endpoint)));
        create(&mut system, &mut chip, 500, SEL_TILES + 2);
        let next = Syscall::Activate {
            gate: 501,
            activity: 500,
            memory: NO_SELECTOR,
            offset: 0,
            replies: 0,
            endpoint,
        };
        let next = call(&mut system, &mut chip, 1, next).map(|got| got[0]);
        match end {
            "receiver gone" => assert_eq!(next, Err(SyscallError::NoEndpoint)),
            _ => assert_eq!(next, Ok(endpoint.into()), "{end}"),
        }
        check(&mut system);
    }
}
