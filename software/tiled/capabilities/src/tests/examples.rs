//! Worked examples: the paper's, and one for each rule.

use super::{KERNEL, MEMORY, PURSE, SMALL_TILE, TILE, activity, finish, space};
use crate::{Error, Object, Progress, QUOTAS, Quota, Request, Space, Terms};
use bulkhead_abi::dtu::UNLIMITED_CREDITS;

fn tile(space: &mut Space, selector: u16) -> [u64; QUOTAS] {
    match *space.look(KERNEL, selector).unwrap().1 {
        Object::Tile(tile) => core::array::from_fn(|quota| tile.left.get(Quota::ALL[quota])),
        other => panic!("{other:?}"),
    }
}

fn request(values: &[(Quota, u64)]) -> Request {
    let mut request = Request::default();
    for (quota, value) in values {
        request[*quota as usize] = Some(*value);
    }
    request
}

fn every(period: u64) -> Terms {
    Terms {
        period,
        ..Terms::default()
    }
}

/// m3-rtas24, Section IV-C: a tile capability with 1 s of CPU time and 4 GB/s; 0.5 s and 3 GB/s are moved to a new one.
#[test]
fn the_example_of_the_paper() {
    const GB: u64 = 1_000_000_000;
    let mut space = space(32);
    let wanted = request(&[
        (Quota::Cpu, 500_000_000),
        (Quota::NocRate, 3 * GB),
        (Quota::NocBurst, 32768),
    ]);
    space
        .derive_tile(KERNEL, SMALL_TILE, 10, wanted, every(1_000_000_000))
        .unwrap();
    let (parent, child) = (tile(&mut space, SMALL_TILE), tile(&mut space, 10));
    assert_eq!(parent[1..4], [500_000_000, GB, 32768]);
    assert_eq!(child[1..4], [500_000_000, 3 * GB, 32768]);
    // A quota that is not requested is shared.
    assert_eq!((parent[0], child[0]), (20, 0));
    space.check().unwrap();

    // No more than there is.
    let more = request(&[(Quota::NocRate, GB + 1), (Quota::NocBurst, 1)]);
    assert_eq!(
        space.derive_tile(KERNEL, SMALL_TILE, 11, more, every(1)),
        Err(Error::NoQuota)
    );
    // Revocation gives everything back.
    space.revoke(0, KERNEL, 10, false).unwrap();
    assert_eq!(finish(&mut space, 0), 1);
    assert_eq!(
        tile(&mut space, SMALL_TILE)[1..4],
        [1_000_000_000, 4 * GB, 65536]
    );
    space.check().unwrap();
}

#[test]
fn execution_time_is_a_share_rounded_up_and_given_back_exactly() {
    let mut space = space(32);
    // 1 ns in each 3 ns: 333 333 334 ns a second.
    for at in 10..12 {
        let third = request(&[(Quota::Cpu, 1)]);
        space
            .derive_tile(KERNEL, TILE, at, third, every(3))
            .unwrap();
    }
    assert_eq!(tile(&mut space, TILE)[1], 333_333_332);
    let third = request(&[(Quota::Cpu, 1)]);
    assert_eq!(
        space.derive_tile(KERNEL, TILE, 12, third, every(3)),
        Err(Error::NoQuota)
    );
    for at in 10..12 {
        space.revoke(1, KERNEL, at, false).unwrap();
        finish(&mut space, 1);
    }
    assert_eq!(tile(&mut space, TILE)[1], 1_000_000_000);
    for (budget, period) in [(1, 0), (4, 3)] {
        let wanted = request(&[(Quota::Cpu, budget)]);
        assert_eq!(
            space.derive_tile(KERNEL, TILE, 12, wanted, every(period)),
            Err(Error::OutOfBounds)
        );
    }
}

#[test]
fn quota_that_is_shared_is_taken_from_who_owns_it() {
    let mut space = space(32);
    space
        .derive_tile(KERNEL, SMALL_TILE, 10, Request::default(), every(0))
        .unwrap();
    let endpoints = request(&[(Quota::Endpoints, 15)]);
    space
        .derive_tile(KERNEL, 10, 11, endpoints, every(0))
        .unwrap();
    assert_eq!(tile(&mut space, SMALL_TILE)[0], 5);
    let endpoints = request(&[(Quota::Endpoints, 6)]);
    assert_eq!(
        space.derive_tile(KERNEL, SMALL_TILE, 12, endpoints, every(0)),
        Err(Error::NoQuota)
    );
    space.check().unwrap();
}

#[test]
fn memory_is_cut_without_overlap_and_joined_again() {
    let mut space = space(32);
    for at in 10..14 {
        space
            .cut_memory(KERNEL, MEMORY, at, 0x1000, 0x1000)
            .unwrap();
    }
    let base = |space: &mut Space, at| match *space.look(KERNEL, at).unwrap().1 {
        Object::Memory(memory) => memory.base,
        other => panic!("{other:?}"),
    };
    assert_eq!(base(&mut space, 13), 0x4000);
    space.revoke(0, KERNEL, 11, false).unwrap();
    finish(&mut space, 0);
    // The gap is used again if it suffices.
    space
        .cut_memory(KERNEL, MEMORY, 14, 0x2000, 0x1000)
        .unwrap();
    assert_eq!(base(&mut space, 14), 0x5000);
    space.cut_memory(KERNEL, MEMORY, 15, 0x800, 0x1000).unwrap();
    assert_eq!(base(&mut space, 15), 0x2000);
    assert_eq!(
        space.cut_memory(KERNEL, MEMORY, 16, 1 << 20, 1),
        Err(Error::NoMemory)
    );
    space.check().unwrap();
}

/// Whoever gets a gate after another one was removed should not find its slot occupied by what the old gate left there.
#[test]
fn a_new_gate_gets_the_shares_that_were_free_longest() {
    let mut space = space(256);
    let a = activity(&mut space, TILE, 10, 4096);
    space.create_receive(a, 1, 4, 64).unwrap();
    let mut gate = |credits| {
        let send = space.create_send(a, 1, 2, 7, credits).unwrap();
        let Object::Send { shares, .. } = *space.object(send) else {
            panic!("{:?}", space.object(send))
        };
        space.remove(2, send, false).unwrap();
        while space.step(2) != Progress::Done {}
        space.check().unwrap();
        shares
    };
    for expected in [0b1, 0b10, 0b100, 0b1000, 0b1] {
        assert_eq!(gate(1), expected);
    }
    assert_eq!([gate(3), gate(2), gate(4)], [0b1110, 0b11, 0b1111]);
    assert_eq!(gate(UNLIMITED_CREDITS), 0);
    // A gate has as many slots as a unit allows.
    assert_eq!(space.create_receive(a, 3, 33, 64), Err(Error::OutOfBounds));
    space.create_receive(a, 3, 32, 64).unwrap();
    space.create_send(a, 3, 4, 7, 32).unwrap();
    space.check().unwrap();
}

#[test]
fn everything_of_an_activity_goes_with_it() {
    let mut space = space(256);
    let a = activity(&mut space, TILE, 10, 4096);
    let b = activity(&mut space, TILE, 20, 4096);
    let mut before = (tile(&mut space, TILE), space.kernel_memory_left(b).unwrap());
    let buffer = space.find(KERNEL, 11).unwrap();
    space.create_receive(a, 1, 4, 64).unwrap();
    // No activity can send before the gate is active.
    space.create_send(a, 1, 2, 7, 3).unwrap();
    assert_eq!(
        space.activate(a, 2, a, (30, 1), None),
        Err(Error::WrongState)
    );
    space.activate(a, 1, a, (20, 5), Some(buffer)).unwrap();
    assert_eq!(space.create_send(a, 1, 3, 7, 2), Err(Error::NoCredits));
    // b obtains the send gate and activates it on its own account.
    space.copy(b, (a, 2), (b, 5)).unwrap();
    space.activate(b, 5, b, (30, 1), None).unwrap();
    assert_eq!(tile(&mut space, TILE)[0], before.0[0] - 6);
    space.check().unwrap();

    // The end of a also invalidates b's endpoint, and b gets back what it paid.
    space.end_activity(2, a).unwrap();
    let mut endpoints = Vec::new();
    loop {
        match space.step(2) {
            Progress::Removed(removed) => {
                if let Object::Endpoint { endpoint, .. } = removed.object {
                    endpoints.push((endpoint, removed.holder));
                }
            }
            Progress::Working | Progress::Disconnected(_) => {}
            Progress::Done => break,
        }
    }
    endpoints.sort();
    assert_eq!(endpoints, [(20, a), (30, b)]);
    // And the tile has one more place.
    before.0[Quota::Activities as usize] += 1;
    assert_eq!(
        (tile(&mut space, TILE), space.kernel_memory_left(b).unwrap()),
        before
    );
    assert_eq!(space.find(b, 5), Err(Error::NoCapability));
    space.check().unwrap();
}

#[test]
fn a_purse_that_is_revoked_ends_who_lives_from_it() {
    let mut space = space(256);
    let a = activity(&mut space, TILE, 10, 4096);
    let b = activity(&mut space, TILE, 20, 4096);
    space.create_semaphore(a, 1, 1).unwrap();
    space.copy(a, (a, 1), (b, 1)).unwrap();
    space.revoke(0, KERNEL, 10, false).unwrap();
    finish(&mut space, 0);
    assert_eq!(space.find(a, 1), Err(Error::NoHolder));
    assert_eq!(space.find(b, 1), Err(Error::NoCapability));
    // Its place is free for another activity.
    let c = activity(&mut space, TILE, 30, 4096);
    assert_eq!(c, a);
    space.check().unwrap();
}

#[test]
fn what_an_activity_causes_is_limited_by_its_purse() {
    let mut space = space(256);
    let bytes = 3 * Space::NODE_COST;
    let a = activity(&mut space, TILE, 10, bytes);
    for selector in 0..3 {
        space.create_semaphore(a, selector, 0).unwrap();
    }
    assert_eq!(space.create_semaphore(a, 3, 0), Err(Error::NoKernelMemory));
    space.revoke(0, a, 1, false).unwrap();
    finish(&mut space, 0);
    space.create_semaphore(a, 3, 0).unwrap();
    assert_eq!(space.kernel_memory_left(a), Ok(0));
    let left = *space.look(KERNEL, PURSE).unwrap().1;
    assert!(matches!(left, Object::KernelMemory { .. }));
}

#[test]
fn sessions_go_with_their_service_and_services_with_their_gate() {
    let mut space = space(256);
    let server = activity(&mut space, TILE, 10, 8192);
    let client = activity(&mut space, TILE, 20, 8192);
    space.create_receive(server, 1, 4, 64).unwrap();
    let service = space.create_service(server, 1, 2).unwrap();
    space.copy(client, (server, 2), (client, 7)).unwrap();
    space.create_session(client, 7, 8, 42).unwrap();
    assert_eq!(space.session(client, 8), Ok((service, 42)));
    space.revoke(0, server, 1, false).unwrap();
    assert_eq!(finish(&mut space, 0), 4);
    assert_eq!(space.session(client, 8), Err(Error::NoCapability));
    space.check().unwrap();
}

/// A manager holds the gate, and its receiver ends. A sender's endpoint must stop leading there before that endpoint number gets another
/// owner; meanwhile it keeps its number and its quota.
#[test]
fn who_sends_to_an_endpoint_that_goes_is_disconnected_first() {
    let mut space = space(256);
    let receiver = activity(&mut space, TILE, 10, 4096);
    let sender = activity(&mut space, TILE, 20, 4096);
    let other = activity(&mut space, TILE, 40, 4096);
    let buffers = [11, 41].map(|at| space.find(KERNEL, at).unwrap());
    space.create_receive(KERNEL, 30, 1, 64).unwrap();
    space.create_send(KERNEL, 30, 31, 0, 1).unwrap();
    let before = tile(&mut space, TILE);
    let receive =
        |space: &mut Space, who, buffer| space.activate(KERNEL, 30, who, (20, 2), Some(buffer));
    receive(&mut space, receiver, buffers[0]).unwrap();
    let sends = space.activate(KERNEL, 31, sender, (40, 1), None).unwrap();
    assert_eq!(space.connect(sends), Err(Error::WrongState));
    let senders = |space: &mut Space| match *space.look(KERNEL, 30).unwrap().1 {
        Object::Receive(gate) => (gate.senders, gate.departed),
        other => panic!("{other:?}"),
    };
    for (round, who) in [receiver, other].into_iter().enumerate() {
        let departed = round as u16;
        assert_eq!(senders(&mut space), (1, departed));
        let birth = space.birth(sends);
        space.end_activity(0, who).unwrap();
        let mut gone = Vec::new();
        loop {
            match space.step(0) {
                Progress::Removed(r) => {
                    if let Object::Endpoint { endpoint, .. } = r.object {
                        gone.push((endpoint, false));
                    }
                }
                // The place where it led is still known at that time.
                Progress::Disconnected(gate) => gone.push((40, space.receiver(gate).is_some())),
                Progress::Working => {}
                Progress::Done => break,
            }
        }
        assert_eq!(gone, [(40, true), (20, false)]);
        assert!(space.is_disconnected(sends));
        assert_eq!(senders(&mut space), (0, departed + 1));
        // The gate itself stays, and so does its endpoint; neither leads anywhere.
        assert_eq!(
            space.activate(KERNEL, 31, sender, (41, 1), None),
            Err(Error::WrongState)
        );
        assert_eq!(space.connect(sends), Err(Error::WrongState));
        assert_eq!(tile(&mut space, TILE)[0], before[0] - 1);
        if round == 0 {
            receive(&mut space, other, buffers[1]).unwrap();
            space.connect(sends).unwrap();
            assert!(!space.is_disconnected(sends) && space.birth(sends) > birth);
        }
        space.check().unwrap();
    }
    // The endpoint goes with its gate, and the payer has everything back.
    let left = space.kernel_memory_left(KERNEL).unwrap();
    space.revoke(0, KERNEL, 31, true).unwrap();
    assert_eq!(finish(&mut space, 0), 1);
    let mut after = before;
    // Both receivers have ended.
    after[Quota::Activities as usize] += 2;
    assert_eq!(tile(&mut space, TILE), after);
    let back = space.kernel_memory_left(KERNEL).unwrap() - left;
    assert_eq!(back, Space::NODE_COST);
    space.check().unwrap();
}

/// The receiver and the gate, or the sender, are removed at the same time, at two levels and in every order of steps.
#[test]
fn what_is_disconnected_goes_with_its_gate_and_its_holder() {
    // One check takes Miri most of a second: under Miri, only the ends of a few orders are checked.
    let every = if cfg!(miri) { 5 } else { 1 };
    let check = |space: &Space| cfg!(miri) || space.check().is_ok();
    for at_once in [30, 31, 22] {
        for first in (0..12).step_by(every) {
            let mut space = space(96);
            let receiver = activity(&mut space, TILE, 10, 1024);
            let sender = activity(&mut space, TILE, 20, 1024);
            let buffer = space.find(KERNEL, 11).unwrap();
            space.create_receive(KERNEL, 30, 1, 64).unwrap();
            space.create_send(KERNEL, 30, 31, 0, 1).unwrap();
            let place = (20, 1);
            space
                .activate(KERNEL, 30, receiver, place, Some(buffer))
                .unwrap();
            space.activate(KERNEL, 31, sender, (40, 1), None).unwrap();
            space.end_activity(0, receiver).unwrap();
            for _ in 0..first {
                space.step(0);
                assert!(check(&space));
            }
            space.revoke(1, KERNEL, at_once, false).unwrap();
            for level in [1, 0, 1, 0, 0, 1, 1, 0] {
                space.step(level);
                assert!(check(&space));
            }
            finish(&mut space, 1);
            finish(&mut space, 0);
            space.check().unwrap();
            let mut left = space.alive();
            assert!(left.all(|(_, object)| !matches!(object, Object::Endpoint { .. })));
        }
    }
}

#[test]
fn semaphores_count() {
    let mut space = space(32);
    let id = space.create_semaphore(KERNEL, 10, 1).unwrap();
    assert_eq!(space.semaphore_down(KERNEL, 10), Ok((id, true)));
    assert_eq!(space.semaphore_down(KERNEL, 10), Ok((id, false)));
    assert_eq!(space.semaphore_up(KERNEL, 10), Ok(id));
    assert!(space.semaphore_take(id));
    assert!(!space.semaphore_take(id));
    assert_eq!(space.semaphore_down(KERNEL, TILE), Err(Error::WrongKind));
}

/// Children of a tile capability share the places that it was given, whatever else lives on the tile; a place comes back with its
/// activity's end.
#[test]
fn places_and_windows_are_taken_from_who_was_given_them() {
    let mut space = space(256);
    let of = |activities, windows| {
        request(&[(Quota::Activities, activities), (Quota::Windows, windows)])
    };
    let derive = |space: &mut Space, source, target, wanted| {
        space.derive_tile(KERNEL, source, target, wanted, Terms::default())
    };
    derive(&mut space, TILE, 40, of(2, 1)).unwrap();
    assert_eq!(derive(&mut space, 40, 41, of(3, 0)), Err(Error::NoQuota));
    assert_eq!(derive(&mut space, 40, 41, of(0, 2)), Err(Error::NoQuota));
    // A derived capability without a quota of its own shares its parent's.
    derive(&mut space, 40, 41, request(&[])).unwrap();
    activity(&mut space, 41, 5, 256);
    activity(&mut space, 40, 8, 256);
    let before = tile(&mut space, TILE);
    let refused = space.create_activity(KERNEL, 13, 41, 5, 6);
    assert_eq!(refused.unwrap_err(), Error::NoQuota);
    assert_eq!(tile(&mut space, 40)[Quota::Activities as usize], 0);
    assert_eq!(tile(&mut space, TILE), before);
    // Others on the tile have their own places.
    activity(&mut space, TILE, 14, 256);
    assert_eq!(
        tile(&mut space, TILE)[Quota::Activities as usize],
        before[Quota::Activities as usize] - 1
    );
    space.revoke(0, KERNEL, 10, false).unwrap();
    finish(&mut space, 0);
    space.create_activity(KERNEL, 13, 41, 5, 6).unwrap();
    // Two windows are requested; its quota is one.
    let shown = space.show(KERNEL, MEMORY, 41, 1);
    assert!(shown.is_ok());
    assert_eq!(
        space.show(KERNEL, MEMORY, 40, 2).unwrap_err(),
        Error::NoQuota
    );
    space.show(KERNEL, MEMORY, TILE, 2).unwrap();
    space.check().unwrap();
    space.revoke(0, KERNEL, 40, false).unwrap();
    finish(&mut space, 0);
    assert_eq!(
        tile(&mut space, TILE)[Quota::Activities as usize],
        before[Quota::Activities as usize] + 2 - 1
    );
    space.check().unwrap();
}
