//! Services, sessions, exchange, semaphores: agreement, refusal, lateness and interruption.

use super::*;
use bulkhead_abi::syscall::{Event, SEL_MEMORY, ServerRequest, StopCause};

/// A server (selector 200 of the manager) with a service that the manager holds at 60, and a client.
pub fn served() -> (System, Chip, u16, u16) {
    let (mut system, mut chip) = boot();
    let client = create(&mut system, &mut chip, APP, SEL_TILES + 2);
    let server = create(&mut system, &mut chip, 200, SEL_TILES + 2);
    for at in [APP, 200] {
        start(&mut system, &mut chip, at);
    }
    for request in [
        Syscall::CreateReceive {
            target: 20,
            slots: 2,
            slot_size: 256,
        },
        activate(20, 0, Some((SEL_MEMORY, 0))),
        Syscall::CreateService {
            gate: 20,
            target: 21,
        },
    ] {
        call(&mut system, &mut chip, server, request).unwrap();
    }
    let event = call(&mut system, &mut chip, 1, Syscall::WaitEvent { until: 0 }).unwrap();
    assert_eq!(event[..2], [200, server.into()]);
    let event = Event::from_words(event[2..7].try_into().unwrap());
    assert_eq!(event, Some(Event::Service(21)));
    for request in [
        Syscall::Obtain {
            activity: 200,
            source: 21,
            target: 60,
        },
        Syscall::Delegate {
            activity: APP,
            source: 60,
            target: 30,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    (system, chip, client, server)
}

const OPEN: Syscall = Syscall::OpenSession {
    service: 30,
    target: 31,
    argument: 7,
};

fn answer(
    system: &mut System,
    chip: &mut Chip,
    words_: &[u64],
) -> Option<Result<Vec<u64>, SyscallError>> {
    let (.., number) = chip.asked.last().cloned().unwrap();
    system.answered(chip, number, words_);
    check(system);
    system.take_reply().map(|(_, reply)| words(&reply))
}

fn open(system: &mut System, chip: &mut Chip, client: u16) {
    assert_eq!(later(system, chip, client, OPEN), Ok(None));
    let (_, asked, _) = chip.asked.last().unwrap();
    assert_eq!(
        ServerRequest::decode(asked),
        Some(ServerRequest::Open {
            argument: 7,
            activity: client
        })
    );
    assert_eq!(answer(system, chip, &[0, 42]), Some(Ok(vec![])));
}

fn exchange(delegate: u8, own: u16, count: u16) -> Syscall {
    Syscall::Exchange {
        session: 31,
        delegate,
        own,
        count,
        argument0: 1,
        argument1: 2,
        argument2: 3,
    }
}

#[test]
fn a_server_agrees_or_refuses() {
    let (mut system, mut chip, client, server) = served();
    assert_eq!(later(&mut system, &mut chip, client, OPEN), Ok(None));
    assert_eq!(
        answer(&mut system, &mut chip, &[1]),
        Some(Err(SyscallError::Refused))
    );
    open(&mut system, &mut chip, client);
    let memory = Syscall::DeriveMemory {
        source: SEL_MEMORY,
        target: 40,
        offset: 0,
        size: 4096,
        rights: 1,
    };
    call(&mut system, &mut chip, server, memory).unwrap();
    // The client obtains.
    assert_eq!(
        later(&mut system, &mut chip, client, exchange(0, 50, 1)),
        Ok(None)
    );
    let (_, asked, _) = chip.asked.last().unwrap();
    let expected = ServerRequest::Exchange {
        ident: 42,
        delegate: 0,
        count: 1,
        arguments: [1, 2, 3],
    };
    assert_eq!(ServerRequest::decode(asked), Some(expected));
    assert_eq!(
        answer(&mut system, &mut chip, &[0, 40, 1, 8, 9]),
        Some(Ok(vec![8, 9, 1]))
    );
    call(&mut system, &mut chip, client, activate(50, 0, None)).unwrap();
    // It delegates; the server takes less than was offered.
    call(
        &mut system,
        &mut chip,
        client,
        Syscall::CreateSemaphore {
            target: 51,
            value: 0,
        },
    )
    .unwrap();
    assert_eq!(
        later(&mut system, &mut chip, client, exchange(1, 51, 1)),
        Ok(None)
    );
    assert_eq!(
        answer(&mut system, &mut chip, &[0, 45, 0, 0, 0]),
        Some(Ok(vec![0, 0, 0]))
    );
    assert_eq!(
        later(&mut system, &mut chip, client, exchange(1, 51, 1)),
        Ok(None)
    );
    assert_eq!(
        answer(&mut system, &mut chip, &[0, 45, 1, 0, 0]),
        Some(Ok(vec![0, 0, 1]))
    );
    call(
        &mut system,
        &mut chip,
        server,
        Syscall::SemaphoreUp { semaphore: 45 },
    )
    .unwrap();
    call(
        &mut system,
        &mut chip,
        client,
        Syscall::SemaphoreDown { semaphore: 51 },
    )
    .unwrap();
    // Selectors that the server does not have, and answers that are invalid.
    for words in [&[0, 99, 1, 0, 0][..], &[0, u64::MAX, 1, 0, 0], &[], &[7]] {
        assert_eq!(
            later(&mut system, &mut chip, client, exchange(0, 55, 1)),
            Ok(None)
        );
        assert!(matches!(
            answer(&mut system, &mut chip, words),
            Some(Err(_))
        ));
    }
    assert_eq!(
        call(&mut system, &mut chip, client, exchange(0, 55, 9)),
        Err(SyscallError::BadArgument)
    );
    // An answer to no question has no effect.
    system.answered(&mut chip, 12345, &[0, 1]);
    assert!(system.take_reply().is_none());
}

#[test]
fn a_server_that_dies_ends_sessions_and_waiting() {
    let (mut system, mut chip, client, server) = served();
    open(&mut system, &mut chip, client);
    assert_eq!(
        later(&mut system, &mut chip, client, exchange(0, 50, 1)),
        Ok(None)
    );
    system.notified(&mut chip, 2, server, StopCause::Panic);
    finish(&mut system, &mut chip);
    let (who, reply) = system.take_reply().unwrap();
    assert_eq!(
        (who.caller, words(&reply)),
        (client, Err(SyscallError::Gone))
    );
    for request in [exchange(0, 50, 1), OPEN] {
        assert_eq!(
            call(&mut system, &mut chip, client, request),
            Err(SyscallError::NoCapability)
        );
    }
    // Its line is free for another client.
    assert!(!system.has_questions());
}

#[test]
fn a_server_that_never_answers_costs_its_clients_their_patience_only() {
    let (mut system, mut chip, client, _) = served();
    assert_eq!(later(&mut system, &mut chip, client, OPEN), Ok(None));
    let end = system.expire(0).unwrap();
    assert_eq!(system.expire(end - 1), Some(end));
    assert!(system.take_reply().is_none());
    assert_eq!(system.expire(end), None);
    assert_eq!(
        words(&system.take_reply().unwrap().1),
        Err(SyscallError::Timeout)
    );
    // The next question is not asked before the first is answered; an answer that comes too late does nothing.
    let asked = chip.asked.len();
    assert_eq!(later(&mut system, &mut chip, client, OPEN), Ok(None));
    assert_eq!(chip.asked.len(), asked);
    assert_eq!(answer(&mut system, &mut chip, &[0, 1]), None);
    // First it is told that the first client's session does not exist.
    assert_eq!(chip.asked.len(), asked + 1);
    assert_eq!(answer(&mut system, &mut chip, &[0]), None);
    assert_eq!(chip.asked.len(), asked + 2);
    assert_eq!(answer(&mut system, &mut chip, &[0, 2]), Some(Ok(vec![])));
}

#[test]
fn a_session_that_is_closed_is_told() {
    let (mut system, mut chip, client, _) = served();
    open(&mut system, &mut chip, client);
    call(
        &mut system,
        &mut chip,
        client,
        Syscall::Revoke {
            selector: 31,
            keep: 0,
        },
    )
    .unwrap();
    let (_, asked, _) = chip.asked.last().unwrap();
    assert_eq!(
        ServerRequest::decode(asked),
        Some(ServerRequest::Close { ident: 42 })
    );
    assert_eq!(answer(&mut system, &mut chip, &[0]), None);
}

/// Before the fix, a caller that asked without a pause kept a server from learning of closed sessions, and from giving back what it held
/// for them.
#[test]
fn questions_and_closed_sessions_take_turns() {
    let (mut system, mut chip, client, _) = served();
    open(&mut system, &mut chip, client);
    let open = |service, target| Syscall::OpenSession {
        service,
        target,
        argument: 0,
    };
    let obtain = |session| Syscall::Exchange {
        session,
        delegate: 0,
        own: 90,
        count: 1,
        argument0: 0,
        argument1: 0,
        argument2: 0,
    };
    let asked = |chip: &Chip| ServerRequest::decode(&chip.asked.last().unwrap().1);
    for (caller, request, ident) in [(client, open(30, 33), 43), (1, open(60, 61), 44)] {
        assert_eq!(later(&mut system, &mut chip, caller, request), Ok(None));
        assert_eq!(
            answer(&mut system, &mut chip, &[0, ident]),
            Some(Ok(vec![]))
        );
    }
    // The manager asks, and both continue asking; meanwhile a session is closed.
    assert_eq!(later(&mut system, &mut chip, 1, obtain(61)), Ok(None));
    let close = Syscall::Revoke {
        selector: 31,
        keep: 0,
    };
    call(&mut system, &mut chip, client, close).unwrap();
    assert_eq!(later(&mut system, &mut chip, client, obtain(33)), Ok(None));
    let refused = Some(Err(SyscallError::Refused));
    assert_eq!(answer(&mut system, &mut chip, &[4]), refused);
    assert_eq!(later(&mut system, &mut chip, 1, obtain(61)), Ok(None));
    assert_eq!(asked(&chip), Some(ServerRequest::Close { ident: 42 }));
    assert_eq!(answer(&mut system, &mut chip, &[0]), None);
    for _ in 0..2 {
        let is_question = matches!(asked(&chip), Some(ServerRequest::Exchange { .. }));
        assert!(is_question, "{:?}", asked(&chip));
        assert_eq!(answer(&mut system, &mut chip, &[4]), refused);
    }
    assert!(!system.has_questions());
}

#[test]
fn a_server_says_why_it_refuses() {
    let (mut system, mut chip, client, _) = served();
    for (words, reply) in [
        (&[7, 42][..], &[SyscallError::Refused as u64, 7][..]),
        (&[], &[SyscallError::Refused as u64]),
    ] {
        assert_eq!(later(&mut system, &mut chip, client, OPEN), Ok(None));
        let (.., number) = chip.asked.last().cloned().unwrap();
        system.answered(&mut chip, number, words);
        let answered = system.take_reply().map(|(_, reply)| reply);
        assert_eq!(answered.as_ref().map(|reply| reply.as_slice()), Some(reply));
    }
}

#[test]
fn a_client_that_dies_while_it_is_asked_for_leaves_nothing() {
    let (mut system, mut chip, client, server) = served();
    assert_eq!(later(&mut system, &mut chip, client, OPEN), Ok(None));
    system.notified(&mut chip, 2, client, StopCause::Exit(0));
    finish(&mut system, &mut chip);
    // Nobody is left to answer; the server is told that there is no session.
    assert_eq!(answer(&mut system, &mut chip, &[0, 1]), None);
    assert!(system.activity(server).is_some());
}

#[test]
fn semaphores_wake_in_order_and_go_with_all_who_wait() {
    let (mut system, mut chip, client, server) = served();
    call(
        &mut system,
        &mut chip,
        1,
        Syscall::CreateSemaphore {
            target: 70,
            value: 0,
        },
    )
    .unwrap();
    for at in [APP, 200] {
        call(
            &mut system,
            &mut chip,
            1,
            Syscall::Delegate {
                activity: at,
                source: 70,
                target: 70,
            },
        )
        .unwrap();
    }
    let down = Syscall::SemaphoreDown { semaphore: 70 };
    for caller in [client, server] {
        assert_eq!(later(&mut system, &mut chip, caller, down), Ok(None));
    }
    for caller in [client, server] {
        system
            .call(
                &mut chip,
                ticket(&system, 1),
                Syscall::SemaphoreUp { semaphore: 70 },
            )
            .unwrap();
        assert_eq!(
            system.take_reply().map(|(ticket, _)| ticket.caller),
            Some(caller)
        );
    }
    for caller in [client, server] {
        assert_eq!(later(&mut system, &mut chip, caller, down), Ok(None));
        // Nobody waits twice.
        assert_eq!(
            later(&mut system, &mut chip, caller, down),
            Err(SyscallError::Busy)
        );
    }
    // Without the semaphore nobody waits.
    assert!(matches!(
        system.call(
            &mut chip,
            ticket(&system, 1),
            Syscall::Revoke {
                selector: 70,
                keep: 0
            }
        ),
        Ok(None)
    ));
    finish(&mut system, &mut chip);
    let mut gone = 0;
    while let Some((_, reply)) = system.take_reply() {
        gone += usize::from(words(&reply) == Err(SyscallError::Gone));
    }
    assert_eq!(gone, 2);
    // Another semaphore gets the same selectors. The client has no right to it. The server has, and is the only one that it wakes.
    let again = [
        Syscall::CreateSemaphore {
            target: 70,
            value: 0,
        },
        Syscall::Delegate {
            activity: 200,
            source: 70,
            target: 70,
        },
    ];
    for request in again {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    let refused = later(&mut system, &mut chip, client, down);
    assert_eq!(refused, Err(SyscallError::NoCapability));
    assert_eq!(later(&mut system, &mut chip, server, down), Ok(None));
    let up = Syscall::SemaphoreUp { semaphore: 70 };
    system.call(&mut chip, ticket(&system, 1), up).unwrap();
    let woken = system.take_reply().map(|(ticket, _)| ticket.caller);
    assert_eq!(woken, Some(server));
    assert!(system.take_reply().is_none());
}

#[test]
fn a_server_hears_of_sessions_that_never_came_to_be() {
    // The client's patience ends, or the client itself; the server agrees later, and must not keep the session.
    for ends in [false, true] {
        let (mut system, mut chip, client, _) = served();
        assert_eq!(later(&mut system, &mut chip, client, OPEN), Ok(None));
        if ends {
            system.notified(&mut chip, 2, client, StopCause::Exit(0));
            finish(&mut system, &mut chip);
            assert!(system.take_reply().is_none());
        } else {
            let end = system.expire(0).unwrap();
            system.expire(end);
            let (_, reply) = system.take_reply().unwrap();
            assert!(words(&reply).is_err());
        }
        assert_eq!(answer(&mut system, &mut chip, &[0, 42]), None);
        let (_, asked, _) = chip.asked.last().unwrap();
        assert_eq!(
            ServerRequest::decode(asked),
            Some(ServerRequest::Close { ident: 42 })
        );
        assert_eq!(answer(&mut system, &mut chip, &[0]), None);
        assert!(!system.has_questions());
        check(&mut system);
    }
}

#[test]
fn a_server_hears_of_every_closed_session() {
    let (mut system, mut chip, client, _) = served();
    let open = |target| Syscall::OpenSession {
        service: 30,
        target,
        argument: 0,
    };
    // More sessions than the server is told of at once: it leaves the first notice unanswered.
    let mut made = 0;
    while made < 8 {
        let target = 100 + made;
        assert_eq!(
            later(&mut system, &mut chip, client, open(target)),
            Ok(None)
        );
        let ident = u64::from(1000 + made);
        assert_eq!(
            answer(&mut system, &mut chip, &[0, ident]),
            Some(Ok(vec![]))
        );
        made += 1;
    }
    system.notified(&mut chip, 2, client, StopCause::Exit(0));
    finish(&mut system, &mut chip);
    let mut told = Vec::new();
    while system.has_questions() {
        let (_, asked, _) = chip.asked.last().unwrap();
        let Some(ServerRequest::Close { ident }) = ServerRequest::decode(asked) else {
            panic!()
        };
        told.push(ident);
        answer(&mut system, &mut chip, &[0]);
    }
    told.sort_unstable();
    assert_eq!(told, (1000..1000 + u64::from(made)).collect::<Vec<_>>());
}

/// Before the fix, one piece of work copied up to eight capabilities, which took 1500 cycles each: five of them took longer than any piece
/// may take.
#[test]
fn an_exchange_is_of_one_capability() {
    let (mut system, mut chip, client, server) = served();
    open(&mut system, &mut chip, client);
    for target in [40, 41] {
        let make = Syscall::CreateSemaphore { target, value: 0 };
        call(&mut system, &mut chip, server, make).unwrap();
    }
    let two = call(&mut system, &mut chip, client, exchange(0, 50, 2));
    assert_eq!(two, Err(SyscallError::BadArgument));
    for selector in [0, 1] {
        let obtain = exchange(0, 50 + selector, 1);
        assert_eq!(later(&mut system, &mut chip, client, obtain), Ok(None));
        let before = system.space().steps();
        // A server that gives more gives one.
        let given = answer(
            &mut system,
            &mut chip,
            &[0, 40 + u64::from(selector), 2, 8, 9],
        );
        assert_eq!(given, Some(Ok(vec![8, 9, 1])));
        let nodes = system.space().steps() - before;
        assert!(nodes <= crate::costs::AGREEMENT.nodes.into(), "{nodes}");
        let raise = |semaphore| Syscall::SemaphoreUp { semaphore };
        call(&mut system, &mut chip, client, raise(50 + selector)).unwrap();
        let other = call(&mut system, &mut chip, client, raise(51 + selector));
        assert_eq!(other, Err(SyscallError::NoCapability));
    }
}

/// A creator that waits hears of a service in a piece of work of its own. If the service is gone by then, the creator waits again, until its own time
/// limit; and a creator that is gone hears nothing, whoever has its number now.
#[test]
fn a_service_that_is_gone_before_its_creator_hears_of_it_was_never_there() {
    let (mut system, mut chip, _, server) = served();
    let offer = Syscall::CreateService {
        gate: 20,
        target: 22,
    };
    let wait = Syscall::WaitEvent { until: 500 };
    let gone = Syscall::Revoke {
        selector: 22,
        keep: 0,
    };
    assert_eq!(later(&mut system, &mut chip, 1, wait.clone()), Ok(None));
    call(&mut system, &mut chip, server, offer.clone()).unwrap();
    assert_eq!(system.reply_level(), Some(ticket(&system, 1).level));
    call(&mut system, &mut chip, server, gone.clone()).unwrap();
    assert!(system.take_reply().is_none() && system.has_impatient());
    // The next one reaches it, once.
    call(&mut system, &mut chip, server, offer.clone()).unwrap();
    let (who, reply) = system.take_reply().expect("an event");
    assert_eq!(who, ticket(&system, 1));
    let event = Event::from_words(words(&reply).unwrap()[2..7].try_into().unwrap());
    assert_eq!(event, Some(Event::Service(22)));
    assert!(!system.is_busy() && !system.has_impatient());
    // Its time limit is still its own.
    call(&mut system, &mut chip, server, gone.clone()).unwrap();
    assert_eq!(later(&mut system, &mut chip, 1, wait), Ok(None));
    call(&mut system, &mut chip, server, offer).unwrap();
    call(&mut system, &mut chip, server, gone).unwrap();
    assert!(system.take_reply().is_none());
    assert_eq!(system.expire(500), None);
    let (_, reply) = system.take_reply().expect("an answer");
    assert_eq!(words(&reply), Err(SyscallError::Timeout));
}
