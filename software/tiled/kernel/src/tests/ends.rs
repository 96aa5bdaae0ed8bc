//! Sessions and mappings end: a use after the end, or one in progress at the end, gives an error and never anything of another activity.
//!
//! The table of endpoints, replies and grants is in the machine's tests of the unit; the table for TileMux and its translations is in
//! TileMux's tests. [`Chip::check_reach`] looks after each step whether a window changed behind a living activity.

use super::*;
use bulkhead_abi::syscall::{Event, MAP_READ, MAP_WRITE, SEL_MEMORY, ServerRequest};

/// Where clients have others' pages, and selectors of the manager: of a pager or server, of a neighbour, of lent memory.
const HEAP: u64 = 0x1002_0000;
const OWNER: u16 = 200;
const NEIGHBOUR: u16 = 400;
const LENT: u16 = 303;
const SHOWN: u16 = 304;
/// Where an activity has a copy of a tile and of memory, and derives from them.
const TILE: u16 = 40;
const COPY: u16 = 41;
const DERIVED: u16 = 42;

fn manager(system: &mut System, chip: &mut Chip, calls: &[Syscall]) {
    for request in calls {
        let done = call(system, chip, 1, *request);
        assert!(done.is_ok(), "{request:?}: {done:?}");
    }
}

fn cut(target: u16) -> Syscall {
    cut_of(target, 1 << 16)
}

fn cut_of(target: u16, size: u64) -> Syscall {
    Syscall::CutMemory {
        source: SEL_MEMORIES + MEMORY,
        target,
        size,
    }
}

fn derive(source: u16, target: u16, rights: u8) -> Syscall {
    Syscall::DeriveMemory {
        source,
        target,
        offset: 0,
        size: 1 << 16,
        rights,
    }
}

fn give(activity: u16, source: u16, target: u16) -> Syscall {
    Syscall::Delegate {
        activity,
        source,
        target,
    }
}

fn revoke(selector: u16) -> Syscall {
    Syscall::Revoke { selector, keep: 0 }
}

fn configure(tile: u16, memory: u16, tables: u64) -> Syscall {
    Syscall::ConfigureTile {
        tile,
        memory,
        tables,
    }
}

/// A running activity on tile 2 or 3.
fn living(system: &mut System, chip: &mut Chip, at: u16, tile: u16) -> u16 {
    let id = match tile {
        2 => create(system, chip, at, SEL_TILES + 2),
        _ => {
            let window = 98;
            let holder = bulkhead_capabilities::HolderId(1);
            if system.space().find(holder, window).is_err() {
                let cut = Syscall::CutMemory {
                    source: SEL_MEMORIES + MEMORY,
                    target: window,
                    size: 1 << 22,
                };
                manager(
                    system,
                    chip,
                    &[cut, configure(SEL_TILES + tile, window, 100)],
                );
            }
            let cut = Syscall::CutMemory {
                source: window,
                target: at + 1,
                size: 1 << 16,
            };
            let purse = Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target: at + 2,
                bytes: 4096,
            };
            manager(system, chip, &[cut, purse]);
            call(system, chip, 1, creation(at, SEL_TILES + tile, 0)).unwrap()[0] as u16
        }
    };
    start(system, chip, at);
    id
}

/// An activity shows memory of its own on tile 2, in the first free window.
fn show(system: &mut System, chip: &mut Chip, (at, id): (u16, u16), memory: u16) {
    let tile = SEL_TILES + 2;
    manager(
        system,
        chip,
        &[give(at, tile, TILE), give(at, memory, COPY)],
    );
    call(system, chip, id, derive(COPY, DERIVED, 7)).unwrap();
    call(system, chip, id, configure(TILE, DERIVED, 0)).unwrap();
}

/// How a mapping ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// The memory behind it is revoked.
    Memory,
    /// The window through which it is seen goes, and the memory stays.
    Window,
    /// The tile capability with which that was shown goes.
    Tile,
    /// The pager takes the pages back.
    Taken,
    /// The pager dies; or it dies and begins again.
    OwnerDead,
    Restarted,
    /// The client dies.
    ClientDead,
}

/// One case: a pager on `tile` has mapped memory into a client of tile 2, through its own writable window or the manager's read-only one.
/// `under_way`: TileMux has not answered at the time of the end.
fn mapping_ends(ends: Ends, tile: u16, written: bool, under_way: bool, line: u64) {
    let what = format!(
        "{ends:?}, pager on tile {tile}, written {written}, under way {under_way}, lines {line}"
    );
    let (mut system, mut chip) = boot_with(3, line);
    let (system, chip) = (&mut system, &mut chip);
    let neighbour = living(system, chip, NEIGHBOUR, 3);
    let pager = living(system, chip, OWNER, tile);
    let client = create(system, chip, APP, SEL_TILES + 2);
    let faults = Syscall::CreateReceive {
        target: 20,
        slots: 4,
        slot_size: 64,
    };
    call(system, chip, pager, faults).unwrap();
    call(system, chip, pager, activate(20, 0, Some((SEL_MEMORY, 64)))).unwrap();
    let calls = [
        Syscall::Obtain {
            activity: OWNER,
            source: 20,
            target: 300,
        },
        Syscall::CreateSend {
            source: 300,
            target: 301,
            label: 9,
            credits: 1,
        },
        Syscall::SetPager {
            activity: APP,
            gate: 301,
            address: HEAP,
            pages: 16,
        },
        give(OWNER, APP, 31),
        cut(LENT),
        cut(305),
    ];
    manager(system, chip, &calls);
    start(system, chip, APP);
    match written {
        true => show(system, chip, (OWNER, pager), LENT),
        false => {
            let shown = [derive(LENT, SHOWN, 1), give(OWNER, LENT, COPY)];
            manager(system, chip, &shown);
            manager(system, chip, &[configure(SEL_TILES + 2, SHOWN, 0)]);
        }
    }
    let map = |rights| Syscall::MapFrom {
        activity: 31,
        memory: COPY,
        address: HEAP,
        offset: 0,
        pages: 4,
        rights,
    };
    let rights = if written {
        MAP_READ | MAP_WRITE
    } else {
        MAP_READ
    };
    match under_way {
        false => drop(call(system, chip, pager, map(rights)).unwrap()),
        true => {
            let who = ticket(system, pager);
            let later = system.call(chip, who, map(rights));
            assert!(matches!(later, Ok(None)), "{what}");
        }
    }
    match ends {
        Ends::Memory => drop(later(system, chip, 1, revoke(LENT)).unwrap()),
        Ends::Window if written => drop(later(system, chip, pager, revoke(DERIVED)).unwrap()),
        Ends::Window => drop(later(system, chip, 1, revoke(SHOWN)).unwrap()),
        Ends::Tile if written => drop(later(system, chip, pager, revoke(TILE)).unwrap()),
        // The manager's own tile: nothing of it is left, not even its TileMux.
        Ends::Tile => {
            let all = Syscall::Revoke {
                selector: SEL_TILES + 2,
                keep: 0,
            };
            later(system, chip, 1, all).unwrap();
        }
        Ends::Taken => drop(later(system, chip, pager, map(0)).unwrap()),
        Ends::OwnerDead | Ends::Restarted => {
            system.notified(chip, tile, pager, StopCause::Panic);
        }
        Ends::ClientDead => system.notified(chip, 2, client, StopCause::Panic),
    }
    finish(system, chip);
    while system.take_reply().is_some() {}
    check(system);
    let ended = ends != Ends::Taken;
    assert_eq!(system.activity(client).is_none(), ended, "{what}");
    // The neighbour makes its memory visible in a free window, and nobody reaches it.
    if system.activity(neighbour).is_some() && chip.stopped.is_empty() {
        show(system, chip, (NEIGHBOUR, neighbour), 305);
    }
    chip.check_reach(system);
    let pager = match ends {
        Ends::Restarted => {
            manager(system, chip, &[revoke(OWNER + 1), revoke(OWNER + 2)]);
            let again = living(system, chip, OWNER, tile);
            // The objects that it could name no longer exist.
            let gone = call(system, chip, 1, give(OWNER, APP, 31));
            assert_eq!(gone, Err(SyscallError::NoCapability), "{what}");
            again
        }
        _ => pager,
    };
    let told = chip.requests.len();
    let used = later(system, chip, pager, map(rights));
    match ends {
        Ends::Taken => assert!(used.is_ok(), "{what}: {used:?}"),
        _ => {
            use SyscallError::{NoActivity, NoCapability, NotManager, WrongKind};
            let defined = [NoCapability, NoActivity, NotManager, WrongKind];
            assert!(used.is_err_and(|error| defined.contains(&error)), "{what}");
            assert_eq!(chip.requests.len(), told, "{what}");
        }
    }
    check(system);
}

#[test]
fn mappings_end_in_every_way() {
    use Ends::{ClientDead, Memory, OwnerDead, Restarted, Taken, Tile, Window};
    let mut cases = 0;
    for ends in [
        Memory, Window, Tile, Taken, OwnerDead, Restarted, ClientDead,
    ] {
        for tile in [2, 3] {
            for written in [false, true] {
                for (under_way, line) in [(false, 0), (true, 0), (false, 64), (true, 64)] {
                    mapping_ends(ends, tile, written, under_way, line);
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} cases");
}

/// An activity's own memory is seen through one window, and its page tables may be behind another: whichever window goes, the activity
/// ends first. When memory for page tables goes, the tile is lost, because TileMux may have used it for any activity.
#[test]
fn who_lives_behind_a_window_ends_before_it() {
    let (tables, own, first) = (98, 97, 96);
    for (gone, line) in [DERIVED, TILE, tables, own]
        .into_iter()
        .flat_map(|gone| [(gone, 0), (gone, 64)])
    {
        let (mut system, mut chip) = boot_with(3, line);
        let (system, chip) = (&mut system, &mut chip);
        let other = living(system, chip, OWNER, 2);
        // The tables are behind a second window of the manager, and the memory is behind another activity's window.
        let mut of_tile = limited(own, SHARE, SHARE);
        if let Syscall::DeriveTile { source, .. } = &mut of_tile {
            *source = SEL_TILES + 3;
        }
        let calls = [
            cut_of(first, 1 << 18),
            configure(SEL_TILES + 3, first, 0),
            of_tile,
            cut(tables),
            configure(own, tables, 8),
            cut(LENT),
            give(OWNER, SEL_TILES + 3, TILE),
            give(OWNER, LENT, COPY),
        ];
        manager(system, chip, &calls);
        call(system, chip, other, derive(COPY, DERIVED, 7)).unwrap();
        call(system, chip, other, configure(TILE, DERIVED, 0)).unwrap();
        let calls = [
            Syscall::CutMemory {
                source: LENT,
                target: APP + 1,
                size: 1 << 16,
            },
            Syscall::DeriveKernelMemory {
                source: SEL_KERNEL_MEMORY,
                target: APP + 2,
                bytes: 4096,
            },
        ];
        manager(system, chip, &calls);
        let made = call(system, chip, 1, creation(APP, SEL_TILES + 3, 0));
        let id = made.unwrap()[0] as u16;
        start(system, chip, APP);
        // Receiving in memory other than its own would outlive the window there.
        let gate = Syscall::CreateReceive {
            target: 20,
            slots: 2,
            slot_size: 64,
        };
        manager(system, chip, &[gate]);
        let elsewhere = call(system, chip, 1, activate(20, APP, Some((tables, 0))));
        assert_eq!(elsewhere, Err(SyscallError::OutOfBounds));
        manager(system, chip, &[activate(20, APP, Some((APP + 1, 0)))]);
        let caller = if gone >= own { 1 } else { other };
        call(system, chip, caller, revoke(gone)).unwrap();
        expire_tiles(system, chip);
        hear_all(system, chip, 1);
        assert!(system.activity(id).is_none(), "{gone}");
        let is_asked = chip.requests.contains(&(3, Request::Stop { activity: id }));
        let is_lost = chip.stopped.contains(&3);
        assert_eq!((is_asked, is_lost), (gone < own, gone >= own), "{gone}");
        // Another activity gets its place.
        manager(system, chip, &[cut(306), cut(307)]);
        chip.check_reach(system);
        assert!(system.activity(1).is_some() && system.activity(other).is_some());
    }
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// Its client revokes it.
    Closed,
    /// The manager takes the service from the server.
    Taken,
    /// The server withdraws its offer.
    Withdrawn,
    /// The server closes the gate at which it is asked.
    Deactivated,
    /// The server dies; or it dies and begins again.
    ServerDead,
    Restarted,
    /// Its client dies.
    ClientDead,
    /// Its client has a session with another server at that selector.
    Reused,
}

const SESSION: u16 = 31;
const IDENT: u64 = 42;

/// A server on a tile offers a service, which the manager gets.
fn offered(system: &mut System, chip: &mut Chip, (at, tile): (u16, u16), target: u16) -> u16 {
    let server = living(system, chip, at, tile);
    let gate = Syscall::CreateReceive {
        target: 20,
        slots: 2,
        slot_size: 256,
    };
    let service = Syscall::CreateService {
        gate: 20,
        target: 21,
    };
    for request in [gate, activate(20, 0, Some((SEL_MEMORY, 0))), service] {
        call(system, chip, server, request).unwrap();
    }
    let event = call(system, chip, 1, Syscall::WaitEvent { until: 0 }).unwrap();
    let event = Event::from_words(event[2..7].try_into().unwrap());
    assert_eq!(event, Some(Event::Service(21)));
    let obtain = Syscall::Obtain {
        activity: at,
        source: 21,
        target,
    };
    manager(system, chip, &[obtain]);
    server
}

/// The server that was asked last answers.
fn answer(system: &mut System, chip: &mut Chip, words: &[u64]) {
    let (.., number) = chip.asked.last().cloned().unwrap();
    system.answered(chip, number, words);
    check(system);
}

fn open(service: u16) -> Syscall {
    Syscall::OpenSession {
        service,
        target: SESSION,
        argument: 0,
    }
}

fn exchange(own: u16) -> Syscall {
    Syscall::Exchange {
        session: SESSION,
        delegate: 0,
        own,
        count: 1,
        argument0: 0,
        argument1: 0,
        argument2: 0,
    }
}

/// How often a server was told that the session is closed, and how often it was asked something over the session.
fn told(chip: &Chip) -> (usize, usize) {
    let asked = chip.asked.iter();
    let asked = asked.filter_map(|(_, words, _)| ServerRequest::decode(words));
    let (mut closed, mut used) = (0, 0);
    for request in asked {
        match request {
            ServerRequest::Close { ident: IDENT } => closed += 1,
            ServerRequest::Exchange { ident: IDENT, .. } => used += 1,
            _ => {}
        }
    }
    (closed, used)
}

/// One case: a session with a server on `tile` is used by its client, or by an activity that has a copy.
fn session_ends(over: Over, tile: u16, by_copy: bool, under_way: bool) {
    let what = format!("{over:?}, server on tile {tile}, by copy {by_copy}, under way {under_way}");
    let (mut system, mut chip) = boot_on(3);
    let (system, chip) = (&mut system, &mut chip);
    let client = living(system, chip, APP, 2);
    let other = living(system, chip, NEIGHBOUR, 2);
    let server = offered(system, chip, (OWNER, tile), 60);
    manager(system, chip, &[give(APP, 60, 30)]);
    assert_eq!(later(system, chip, client, open(30)), Ok(None));
    answer(system, chip, &[0, IDENT]);
    assert!(system.take_reply().is_some());
    let grant = Syscall::DeriveMemory {
        source: SEL_MEMORY,
        target: 45,
        offset: 0,
        size: 4096,
        rights: 1,
    };
    call(system, chip, server, grant).unwrap();
    let user = match by_copy {
        false => client,
        true => {
            let copied = Syscall::Obtain {
                activity: APP,
                source: SESSION,
                target: 61,
            };
            manager(system, chip, &[copied, give(NEIGHBOUR, 61, SESSION)]);
            other
        }
    };
    let who = ticket(system, user);
    if under_way {
        let asked = system.call(chip, who, exchange(50));
        assert!(matches!(asked, Ok(None)), "{what}");
    }
    match over {
        // It made no call meanwhile; a manager that holds the session can do the same.
        Over::Closed | Over::Reused => {
            drop(later(system, chip, client, revoke(SESSION)).unwrap());
        }
        Over::Taken => drop(later(system, chip, 1, revoke(60)).unwrap()),
        Over::Withdrawn => drop(later(system, chip, server, revoke(21)).unwrap()),
        Over::Deactivated => {
            let endpoint = chip.asked.last().unwrap().0.1;
            let close = Syscall::Deactivate { gate: 20, endpoint };
            later(system, chip, server, close).unwrap();
            // The unit refuses every message to it.
            chip.refuse = true;
        }
        Over::ServerDead | Over::Restarted => {
            system.notified(chip, tile, server, StopCause::Panic);
        }
        Over::ClientDead => system.notified(chip, 2, client, StopCause::Panic),
    }
    finish(system, chip);
    let uses = told(chip).1;
    if under_way && chip.asked.len() > 1 {
        // The answer comes now: to the question, not to later notices to the server.
        let number = chip.asked.iter().rev();
        let mut number = number.filter(|(_, words, _)| {
            matches!(
                ServerRequest::decode(words),
                Some(ServerRequest::Exchange { .. })
            )
        });
        let number = number.next().map(|(.., number)| *number).unwrap();
        system.answered(chip, number, &[0, 45, 1, 0, 0]);
        finish(system, chip);
    }
    while let Some((answered, reply)) = system.take_reply() {
        if answered == who && under_way {
            use SyscallError::{Gone, NoCapability, Refused, Revoked, WrongKind};
            let defined = [NoCapability, Gone, Revoked, Refused, WrongKind];
            let error = words(&reply);
            // A closed gate does not end a session: a server that was asked before may answer.
            let agreed = over == Over::Deactivated && error.is_ok();
            let refused = error.is_err_and(|error| defined.contains(&error));
            assert!(agreed || refused, "{what}");
        }
    }
    let mut servers = vec![server];
    if matches!(over, Over::Restarted | Over::Reused) {
        // Another server offers the same; the client opens another session.
        let at = match over {
            Over::Restarted => {
                hear_all(system, chip, 1);
                manager(system, chip, &[revoke(OWNER + 1), revoke(OWNER + 2)]);
                OWNER
            }
            _ => 500,
        };
        hear_all(system, chip, 1);
        servers.push(offered(system, chip, (at, tile), 62));
        manager(system, chip, &[give(APP, 62, 32)]);
        if told(chip).0 == 1 {
            answer(system, chip, &[0]);
        }
        assert_eq!(later(system, chip, client, open(32)), Ok(None));
        answer(system, chip, &[0, 77]);
        assert!(system.take_reply().is_some(), "{what}");
    }
    // Used again, by the same activity and under the same selector.
    let used = later(system, chip, user, exchange(51));
    let fresh = !by_copy && matches!(over, Over::Restarted | Over::Reused);
    match used {
        Ok(None) if fresh => {
            let (_, asked, _) = chip.asked.last().unwrap();
            let asked = ServerRequest::decode(asked);
            assert!(
                matches!(asked, Some(ServerRequest::Exchange { ident: 77, .. })),
                "{what}: {asked:?}"
            );
            answer(system, chip, &[1]);
        }
        Err(error) => {
            use SyscallError::{Gone, NoCapability, NotManager, Refused};
            let defined = [NoCapability, Gone, NotManager, Refused];
            assert!(!fresh && defined.contains(&error), "{what}: {error:?}");
        }
        other => panic!("{what}: {other:?}"),
    }
    // Nothing came of it, and the server was told of the end once, or no longer exists.
    for selector in [50, 51] {
        let query = later(system, chip, user, Syscall::Query { selector });
        let agreed = over == Over::Deactivated && under_way && selector == 50;
        assert!(query.is_err() || agreed, "{what}");
    }
    assert_eq!(told(chip).1, uses, "{what}");
    let lives = system.activity(server).is_some();
    let hears = lives
        && matches!(
            over,
            Over::Closed | Over::Reused | Over::Taken | Over::ClientDead
        );
    // The service itself goes when the manager revokes it for everybody.
    assert_eq!(told(chip).0, usize::from(hears), "{what}");
}

#[test]
fn sessions_end_in_every_way() {
    use Over::{ClientDead, Closed, Deactivated, Restarted, Reused, ServerDead, Taken, Withdrawn};
    let mut cases = 0;
    for over in [
        Closed,
        Taken,
        Withdrawn,
        Deactivated,
        ServerDead,
        Restarted,
        ClientDead,
        Reused,
    ] {
        for tile in [2, 3] {
            for by_copy in [false, true] {
                for under_way in [false, true] {
                    session_ends(over, tile, by_copy, under_way);
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} cases");
}
