//! Pagers: what they may map, and what happens to clients whose memory goes.

use super::*;
use bulkhead_abi::dtu::TILEMUX_ACTIVITY;
use bulkhead_abi::syscall::StopCause;

const HEAP: u64 = 0x1002_0000;
const PAGER: u16 = 200;

/// A pager and a client on tile 2, which the manager has connected: the pager has the client at 31 and memory at 30.
fn pair(system: &mut System, chip: &mut Chip) -> (u16, u16) {
    let pager = create(system, chip, PAGER, SEL_TILES + 2);
    let client = create(system, chip, APP, SEL_TILES + 2);
    start(system, chip, PAGER);
    let gate = Syscall::CreateReceive {
        target: 20,
        slots: 4,
        slot_size: 64,
    };
    call(system, chip, pager, gate).unwrap();
    call(system, chip, pager, activate(20, 0, Some((3, 64)))).unwrap();
    let give = |source, target| Syscall::Delegate {
        activity: PAGER,
        source,
        target,
    };
    for request in [
        Syscall::Obtain {
            activity: PAGER,
            source: 20,
            target: 300,
        },
        Syscall::CreateSend {
            source: 300,
            target: 301,
            label: 9,
            credits: 1,
        },
        Syscall::CutMemory {
            source: 99,
            target: 302,
            size: 1 << 16,
        },
        give(302, 30),
        give(APP, 31),
    ] {
        call(system, chip, 1, request).unwrap();
    }
    (pager, client)
}

fn set_pager(pages: u64) -> Syscall {
    Syscall::SetPager {
        activity: APP,
        gate: 301,
        address: HEAP,
        pages,
    }
}

fn map(memory: u16, address: u64, offset: u64, pages: u64) -> Syscall {
    Syscall::MapFrom {
        activity: 31,
        memory,
        address,
        offset,
        pages,
        rights: 3,
    }
}

#[test]
fn a_pager_maps_its_own_memory_where_it_may() {
    let (mut system, mut chip) = boot();
    let (pager, client) = pair(&mut system, &mut chip);
    let refused = |system: &mut System, chip: &mut Chip, request, error| {
        let before = chip.requests.len();
        assert_eq!(call(system, chip, pager, request), Err(error));
        assert_eq!(chip.requests.len(), before);
    };
    // It is not a client yet.
    let one = map(30, HEAP, 0, 1);
    refused(&mut system, &mut chip, one, SyscallError::WrongState);
    let none = call(&mut system, &mut chip, 1, set_pager(0));
    assert_eq!(none, Err(SyscallError::BadArgument));
    call(&mut system, &mut chip, 1, set_pager(16)).unwrap();
    let Some((2, Request::SetPager { endpoint, .. })) = chip.requests.last().copied() else {
        panic!("{:?}", chip.requests.last())
    };
    assert!(
        matches!(chip.endpoints[&(2, endpoint)], Endpoint::Send(s) if s.activity == TILEMUX_ACTIVITY && s.label == 9)
    );
    let again = call(&mut system, &mut chip, 1, set_pager(16));
    assert_eq!(again, Err(SyscallError::WrongState));
    start(&mut system, &mut chip, APP);

    call(&mut system, &mut chip, pager, map(30, HEAP + 4096, 8192, 2)).unwrap();
    let physical = match chip.requests.last() {
        Some((
            2,
            Request::MapPages {
                activity,
                address,
                physical,
                pages: 2,
                rights: 3,
            },
        )) if (*activity, *address) == (client, HEAP + 4096) => *physical,
        other => panic!("{other:?}"),
    };
    // Not the client's own memory.
    let own = system.activity(client).unwrap();
    assert!(!(own.physical..own.physical + own.region.size).contains(&physical));
    // Further pages of the same memory cost no kernel memory.
    let purse = Syscall::Query { selector: 1 };
    let left = call(&mut system, &mut chip, pager, purse).unwrap();
    call(&mut system, &mut chip, pager, map(30, HEAP, 0, 1)).unwrap();
    assert_eq!(call(&mut system, &mut chip, pager, purse).unwrap(), left);

    use SyscallError::{BadArgument, NoCapability, OutOfBounds, WrongState};
    for (request, error) in [
        (map(30, HEAP - 4096, 0, 1), OutOfBounds),
        (map(30, HEAP + 15 * 4096, 0, 2), OutOfBounds),
        (map(30, HEAP, 15 * 4096, 2), OutOfBounds),
        (map(30, HEAP, u64::MAX - 4095, 1), OutOfBounds),
        (map(30, HEAP + 8, 0, 1), BadArgument),
        (map(30, HEAP, 8, 1), BadArgument),
        (map(30, HEAP, 0, 0), BadArgument),
        (map(77, HEAP, 0, 1), NoCapability),
    ] {
        refused(&mut system, &mut chip, request, error);
    }
    // Memory that the client's tile does not see.
    for request in [
        Syscall::CutMemory {
            source: SEL_MEMORIES + MEMORY,
            target: 303,
            size: 1 << 16,
        },
        Syscall::Delegate {
            activity: PAGER,
            source: 303,
            target: 40,
        },
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    refused(&mut system, &mut chip, map(40, HEAP, 0, 1), WrongState);
}

#[test]
fn a_client_ends_before_its_pages_can_belong_to_somebody_else() {
    // Either the pager ends, or only its memory goes.
    let ends: [fn(&mut System, &mut Chip); 2] = [
        |system, chip| {
            let stop = Syscall::Stop { activity: PAGER };
            call(system, chip, 1, stop).unwrap();
        },
        |system, chip| {
            let revoke = Syscall::Revoke {
                selector: 302,
                keep: 0,
            };
            call(system, chip, 1, revoke).unwrap();
        },
    ];
    for end in ends {
        let (mut system, mut chip) = boot();
        let (pager, client) = pair(&mut system, &mut chip);
        call(&mut system, &mut chip, 1, set_pager(16)).unwrap();
        start(&mut system, &mut chip, APP);
        call(&mut system, &mut chip, pager, map(30, HEAP, 0, 4)).unwrap();
        end(&mut system, &mut chip);
        let stop = Request::Stop { activity: client };
        assert!(chip.requests.contains(&(2, stop)), "{:?}", chip.requests);
        finish(&mut system, &mut chip);
        check(&mut system);
        assert!(system.activity(client).is_none());
        assert!(chip.said.contains(&(client, StopCause::Killed)));
    }
}

#[test]
fn a_client_without_pages_learns_that_its_pager_is_gone() {
    let (mut system, mut chip) = boot();
    let (_, client) = pair(&mut system, &mut chip);
    call(&mut system, &mut chip, 1, set_pager(16)).unwrap();
    start(&mut system, &mut chip, APP);
    let stop = Syscall::Stop { activity: PAGER };
    call(&mut system, &mut chip, 1, stop).unwrap();
    // It may wait for an answer; its TileMux checks.
    let wake = Request::Wake { activity: client };
    assert!(chip.requests.contains(&(2, wake)), "{:?}", chip.requests);
    assert!(system.activity(client).is_some());
    let stop = Syscall::Stop { activity: APP };
    call(&mut system, &mut chip, 1, stop).unwrap();
    check(&mut system);
}

#[test]
fn memory_that_a_tile_can_only_read_is_mapped_so_and_nothing_lives_in_it() {
    let (mut system, mut chip) = boot();
    let (pager, _) = pair(&mut system, &mut chip);
    call(&mut system, &mut chip, 1, set_pager(16)).unwrap();
    start(&mut system, &mut chip, APP);
    let configure = |memory| Syscall::ConfigureTile {
        tile: SEL_TILES + 2,
        memory,
        tables: 0,
    };
    for request in [
        Syscall::CutMemory {
            source: SEL_MEMORIES + MEMORY,
            target: 303,
            size: 1 << 16,
        },
        Syscall::DeriveMemory {
            source: 303,
            target: 304,
            offset: 0,
            size: 1 << 16,
            rights: 1,
        },
        Syscall::Delegate {
            activity: PAGER,
            source: 303,
            target: 40,
        },
        configure(304),
    ] {
        call(&mut system, &mut chip, 1, request).unwrap();
    }
    // Memory that the tile sees already takes no window.
    let again = call(&mut system, &mut chip, 1, configure(304));
    assert_eq!(again, Err(SyscallError::BadArgument));
    let tables = Syscall::ConfigureTile {
        tile: SEL_TILES + 2,
        memory: 304,
        tables: 1,
    };
    assert!(call(&mut system, &mut chip, 1, tables).is_err());
    let shown = chip.endpoints.values().filter(
        |endpoint| matches!(endpoint, Endpoint::Memory(m) if m.size == 1 << 16 && m.rights == 1),
    );
    assert_eq!(shown.count(), 1);
    let as_readable = |request| match request {
        Syscall::MapFrom {
            activity,
            memory,
            address,
            offset,
            pages,
            ..
        } => Syscall::MapFrom {
            activity,
            memory,
            address,
            offset,
            pages,
            rights: 1,
        },
        other => other,
    };
    // The pager may write it; its client's tile may not.
    let written = call(&mut system, &mut chip, pager, map(40, HEAP, 0, 1));
    assert_eq!(written, Err(SyscallError::WrongState));
    let read = as_readable(map(40, HEAP, 4096, 1));
    call(&mut system, &mut chip, pager, read).unwrap();
    let live = Syscall::CreateActivity {
        target: 310,
        tile: SEL_TILES + 2,
        purse: SEL_KERNEL_MEMORY,
        memory: 303,
        reply: 0,
        priority: 0,
        tile_priority: 0,
        name: Name::new("late").unwrap(),
    };
    let lived = call(&mut system, &mut chip, 1, live);
    assert_eq!(lived, Err(SyscallError::WrongState));
}
