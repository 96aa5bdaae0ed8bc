//! The kernel's decisions against a chip that only remembers what was done to it.

mod properties;

use crate::activity::State;
use crate::hardware::{Hardware, Region};
use crate::memory::Range;
use crate::report::Stopped;
use crate::root;
use crate::system::{KernelEndpoints, MemoryTile, Module, Outcome, Place, System};
use crate::tile::Tile;
use bulkhead_abi::dtu::{Endpoint, NO_ENDPOINT};
use bulkhead_abi::environment::{ENVIRONMENT_BASE, ENVIRONMENT_MAGIC, PROGRAM_BASE};
use bulkhead_abi::memory_map::MEMORY_BASE;
use bulkhead_abi::syscall::{StopCause, Syscall, SyscallError, module_key};
use bulkhead_abi::tilemux::{
    KERNEL_ACTIVITY, NOTIFY_ENDPOINT, REQUEST_ENDPOINT, Request, TILEMUX_BASE, TILEMUX_MEMORY,
    TileMuxError,
};
use bulkhead_abi::words::Name;
use std::collections::BTreeMap;

const MEMORY: u16 = 8;
const KERNEL: KernelEndpoints = KernelEndpoints {
    tile: 0,
    syscalls: 4,
    notifications: 5,
    prints: 6,
};

/// A chip without time: endpoints, buckets and one memory tile.
#[derive(Default)]
struct Chip {
    endpoints: BTreeMap<(u16, u16), Endpoint>,
    buckets: BTreeMap<(u16, u8), (u64, u64)>,
    memory: BTreeMap<u64, u8>,
    started: Vec<(u16, u64)>,
    requests: Vec<(u16, Request)>,
    refuse: bool,
}

impl Hardware for Chip {
    fn set_endpoint(&mut self, tile: u16, endpoint: u16, value: Endpoint) {
        self.endpoints.insert((tile, endpoint), value);
    }
    fn invalidate_endpoint(&mut self, tile: u16, endpoint: u16) {
        self.endpoints.remove(&(tile, endpoint));
    }
    fn set_bucket(&mut self, tile: u16, bucket: u8, rate: u64, limit: u64) {
        self.buckets.insert((tile, bucket), (rate, limit));
    }
    fn start_hart(&mut self, tile: u16, address: u64) {
        self.started.push((tile, address));
    }
    fn request(&mut self, tile: u16, request: Request) -> TileMuxError {
        self.requests.push((tile, request));
        if self.refuse {
            TileMuxError::BadRequest
        } else {
            TileMuxError::None
        }
    }
    fn read(&mut self, region: Region, offset: u64, buffer: &mut [u8]) {
        assert!(offset + buffer.len() as u64 <= region.size);
        for (i, byte) in buffer.iter_mut().enumerate() {
            let address = region.base + offset + i as u64;
            *byte = self.memory.get(&address).copied().unwrap_or(0);
        }
    }
    fn write(&mut self, region: Region, offset: u64, data: &[u8]) {
        assert!(offset + data.len() as u64 <= region.size);
        for (i, byte) in data.iter().enumerate() {
            self.memory.insert(region.base + offset + i as u64, *byte);
        }
    }
}

/// A static executable with one segment, from the ELF-64 format.
fn program(address: u64, code: &[u8]) -> Vec<u8> {
    let mut f = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    f.extend(2u16.to_le_bytes());
    f.extend(243u16.to_le_bytes());
    f.extend(1u32.to_le_bytes());
    f.extend(address.to_le_bytes());
    f.extend(64u64.to_le_bytes());
    f.extend(0u64.to_le_bytes());
    f.extend(0u32.to_le_bytes());
    for half in [64u16, 56, 1, 0, 0, 0] {
        f.extend(half.to_le_bytes());
    }
    f.extend(1u32.to_le_bytes());
    f.extend(5u32.to_le_bytes());
    let size = code.len() as u64;
    for word in [120, address, address, size, size + 16, 4096] {
        f.extend(word.to_le_bytes());
    }
    f.extend(code);
    f
}

/// A system of two user tiles with TileMux and the root manager as modules; the manager runs as activity 1.
fn boot() -> (System, Chip) {
    let mut chip = Chip::default();
    let mut modules = Vec::new();
    for (i, (name, file)) in [
        ("tilemux", program(TILEMUX_BASE, b"tilemux")),
        ("resmgr", program(PROGRAM_BASE, b"manager")),
        ("app", program(PROGRAM_BASE, b"app")),
    ]
    .into_iter()
    .enumerate()
    {
        let region = Region {
            tile: MEMORY,
            base: 0x10_0000 * (i as u64 + 1),
            size: file.len() as u64,
        };
        chip.write(region, 0, &file);
        modules.push(Module {
            key: module_key(name.as_bytes()),
            region,
        });
    }
    let memories = vec![MemoryTile {
        id: MEMORY,
        free: Range::new(0x100_0000, 0x800_0000),
    }];
    let tiles = vec![
        Tile::new(1, 2_000_000_000, 64),
        Tile::new(2, 2_000_000_000, 64),
    ];
    let mut system = System::new(KERNEL, memories, tiles, modules, 10_000_000);
    let place = Place {
        tile: 1,
        memory: 1 << 20,
        memory_tile: MEMORY,
    };
    assert_eq!(root::start(&mut system, &mut chip, place), Ok(1));
    (system, chip)
}

fn call(
    system: &mut System,
    chip: &mut Chip,
    caller: u16,
    call: Syscall,
) -> Result<Vec<u64>, SyscallError> {
    system
        .call(chip, caller, call)
        .map(|outcome| match outcome {
            Outcome::Reply(reply) => reply.as_slice()[1..].to_vec(),
            Outcome::Later => vec![],
        })
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// An activity on tile 2, created by the manager.
fn create(system: &mut System, chip: &mut Chip) -> u16 {
    if system.tile_of(1).is_some() && chip.started.len() < 2 {
        let configure = Syscall::ConfigureTile {
            tile: 2,
            memory: 1 << 22,
            memory_tile: MEMORY,
        };
        call(system, chip, 1, configure).unwrap();
    }
    let create = Syscall::CreateActivity {
        tile: 2,
        memory: 1 << 16,
        memory_tile: MEMORY,
        name: name("app"),
    };
    call(system, chip, 1, create).unwrap()[0] as u16
}

#[test]
fn the_root_manager_is_loaded_and_started() {
    let (system, chip) = boot();
    assert_eq!(chip.started, [(1, TILEMUX_BASE)]);
    // Window 0 shows the tile's region; TileMux lies at its start, the manager behind TileMux.
    let Endpoint::Memory(window) = chip.endpoints[&(1, 0)] else {
        panic!("no window")
    };
    let bytes = |at: u64, n: u64| {
        (at..at + n)
            .map(|a| chip.memory.get(&a).copied().unwrap_or(0xAA))
            .collect::<Vec<u8>>()
    };
    assert_eq!(bytes(window.base, 7), b"tilemux");
    // 16 bytes behind the file's contents are zeroed.
    assert_eq!(bytes(window.base + 7, 16), [0; 16]);
    let manager = system.activity(1).unwrap();
    assert_eq!(manager.memory.physical, MEMORY_BASE + TILEMUX_MEMORY);
    assert_eq!(
        bytes(manager.memory.global, 8),
        ENVIRONMENT_MAGIC.to_le_bytes()
    );
    assert_eq!(
        bytes(manager.memory.global + PROGRAM_BASE - ENVIRONMENT_BASE, 7),
        b"manager"
    );
    assert_eq!(manager.state, State::Running);
    assert!(matches!(
        chip.endpoints[&(1, REQUEST_ENDPOINT)],
        Endpoint::Receive(_)
    ));
    assert!(
        matches!(chip.endpoints[&(1, NOTIFY_ENDPOINT)], Endpoint::Send(s) if s.target_tile == 0 && s.label == 1)
    );
    let Some((
        _,
        Request::Start {
            activity: 1, entry, ..
        },
    )) = chip.requests.last()
    else {
        panic!("not started")
    };
    assert_eq!(*entry, PROGRAM_BASE);
}

#[test]
fn only_the_manager_manages() {
    let (mut system, mut chip) = boot();
    let app = create(&mut system, &mut chip);
    let endpoints = chip.endpoints.len();
    for request in [
        Syscall::ConfigureTile {
            tile: 2,
            memory: 4096,
            memory_tile: MEMORY,
        },
        Syscall::CreateActivity {
            tile: 2,
            memory: 4096,
            memory_tile: MEMORY,
            name: name("x"),
        },
        Syscall::OpenMemory { activity: app },
        Syscall::OpenModule {
            key: module_key(b"app"),
        },
        Syscall::Start {
            activity: app,
            entry: 0,
            stack: 0,
        },
        Syscall::Stop { activity: 1 },
        Syscall::WaitEvent,
    ] {
        for caller in [app, KERNEL_ACTIVITY, 77] {
            assert_eq!(
                call(&mut system, &mut chip, caller, request),
                Err(SyscallError::NotManager)
            );
        }
    }
    // The manager does not manage itself: its manager is the kernel.
    assert_eq!(
        call(&mut system, &mut chip, 1, Syscall::Stop { activity: 1 }),
        Err(SyscallError::NotManager)
    );
    assert_eq!(
        call(&mut system, &mut chip, app, Syscall::Nothing),
        Ok(vec![])
    );
    assert_eq!(chip.endpoints.len(), endpoints);
}

#[test]
fn arguments_are_checked() {
    let (mut system, mut chip) = boot();
    let app = create(&mut system, &mut chip);
    let mut refused = |request, error| {
        assert_eq!(
            call(&mut system, &mut chip, 1, request),
            Err(error),
            "{request:?}"
        );
    };
    use SyscallError::*;
    refused(
        Syscall::ConfigureTile {
            tile: 0,
            memory: 4096,
            memory_tile: MEMORY,
        },
        NoTile,
    );
    refused(
        Syscall::ConfigureTile {
            tile: 2,
            memory: 4096,
            memory_tile: 3,
        },
        NoMemory,
    );
    refused(
        Syscall::ConfigureTile {
            tile: 2,
            memory: u64::MAX,
            memory_tile: MEMORY,
        },
        NoMemory,
    );
    refused(
        Syscall::CreateActivity {
            tile: 2,
            memory: u64::MAX,
            memory_tile: MEMORY,
            name: name("x"),
        },
        BadArgument,
    );
    refused(
        Syscall::CreateActivity {
            tile: 2,
            memory: 1 << 40,
            memory_tile: MEMORY,
            name: name("x"),
        },
        NoMemory,
    );
    refused(
        Syscall::CreateActivity {
            tile: 9,
            memory: 4096,
            memory_tile: MEMORY,
            name: name("x"),
        },
        NoTile,
    );
    refused(Syscall::OpenMemory { activity: 99 }, NoActivity);
    refused(Syscall::OpenModule { key: 1 }, NoModule);
    refused(Syscall::Close { endpoint: 0 }, BadArgument);
    let map = |offset, pages, rights| Syscall::Map {
        activity: app,
        address: 0x1000,
        offset,
        pages,
        rights,
    };
    refused(map(1, 1, 1), BadArgument);
    refused(map(0, 0, 1), BadArgument);
    refused(map(0, 1, 8), BadArgument);
    refused(map(0, 17, 1), OutOfBounds);
    refused(map(0, u64::MAX, 1), OutOfBounds);
    refused(map(1 << 16, 1, 1), OutOfBounds);
    let receive = |offset, slots, slot_size| Syscall::CreateReceive {
        activity: app,
        offset,
        slots,
        slot_size,
        replies: 1,
    };
    refused(receive(1, 1, 64), BadArgument);
    refused(receive(0, 0, 64), BadArgument);
    refused(receive(0, 33, 64), BadArgument);
    refused(receive(0, 1, 0), BadArgument);
    refused(receive(0, 1, 4096), BadArgument);
    refused(receive(0, 1, 100), BadArgument);
    refused(receive((1 << 16) - 64, 2, 64), OutOfBounds);
    let send = |endpoint, credits| Syscall::CreateSend {
        activity: app,
        target: app,
        endpoint,
        label: 0,
        credits,
    };
    refused(send(NO_ENDPOINT, 1), NotReceiver);
    refused(send(0, 1), NotReceiver);
    refused(
        Syscall::SetLimit {
            activity: app,
            rate: 0,
            burst: 4096,
        },
        BadArgument,
    );
    refused(
        Syscall::SetLimit {
            activity: app,
            rate: 1,
            burst: 511,
        },
        BadArgument,
    );
    refused(
        Syscall::SetBudget {
            activity: app,
            budget: 2,
            period: 1,
            priority: 0,
        },
        BadArgument,
    );
    refused(
        Syscall::CreateMemory {
            activity: app,
            size: 0,
            rights: 3,
            memory_tile: MEMORY,
        },
        BadArgument,
    );
    refused(
        Syscall::CreateMemory {
            activity: app,
            size: 64,
            rights: 4,
            memory_tile: MEMORY,
        },
        BadArgument,
    );
    refused(
        Syscall::Connect {
            activity: app,
            object: 5,
            rights: 1,
        },
        BadArgument,
    );
    refused(
        Syscall::Start {
            activity: app,
            entry: 1,
            stack: 0,
        },
        BadArgument,
    );
}

#[test]
fn credits_never_exceed_the_slots() {
    let (mut system, mut chip) = boot();
    let (receiver, sender) = (
        create(&mut system, &mut chip),
        create(&mut system, &mut chip),
    );
    let receive = |offset| Syscall::CreateReceive {
        activity: receiver,
        offset,
        slots: 4,
        slot_size: 64,
        replies: 1,
    };
    // The first receive endpoint is the one for replies to system calls.
    call(&mut system, &mut chip, 1, receive(0)).unwrap();
    let endpoint = call(&mut system, &mut chip, 1, receive(4096)).unwrap()[0] as u16;
    let send = |credits| Syscall::CreateSend {
        activity: sender,
        target: receiver,
        endpoint,
        label: 9,
        credits,
    };
    let made = call(&mut system, &mut chip, 1, send(3)).unwrap()[0] as u16;
    assert_eq!(
        call(&mut system, &mut chip, 1, send(2)),
        Err(SyscallError::BadArgument)
    );
    assert!(call(&mut system, &mut chip, 1, send(1)).is_ok());
    assert_eq!(
        call(&mut system, &mut chip, 1, send(1)),
        Err(SyscallError::BadArgument)
    );
    let Endpoint::Send(gate) = chip.endpoints[&(2, made)] else {
        panic!("no gate")
    };
    assert_eq!(
        (
            gate.target_tile,
            gate.target_endpoint,
            gate.label,
            gate.credits,
            gate.message_size
        ),
        (2, endpoint, 9, 3, 64)
    );
}

#[test]
fn a_stopped_activity_loses_all_endpoints_and_those_that_lead_to_it() {
    let (mut system, mut chip) = boot();
    let before = chip.endpoints.clone();
    let (receiver, sender) = (
        create(&mut system, &mut chip),
        create(&mut system, &mut chip),
    );
    let of = |chip: &Chip, id: u16| -> Vec<(u16, u16)> {
        let owner = |e: &Endpoint| match e {
            Endpoint::Send(s) => s.activity,
            Endpoint::Receive(r) => r.activity,
            Endpoint::Memory(m) => m.activity,
            Endpoint::Invalid => 0,
        };
        chip.endpoints
            .iter()
            .filter(|(_, e)| owner(e) == id)
            .map(|(place, _)| *place)
            .collect()
    };
    for activity in [receiver, sender] {
        for offset in [0, 4096] {
            let receive = Syscall::CreateReceive {
                activity,
                offset,
                slots: 2,
                slot_size: 64,
                replies: 1,
            };
            call(&mut system, &mut chip, 1, receive).unwrap();
        }
        let memory = Syscall::CreateMemory {
            activity,
            size: 8192,
            rights: 3,
            memory_tile: MEMORY,
        };
        call(&mut system, &mut chip, 1, memory).unwrap();
        call(
            &mut system,
            &mut chip,
            1,
            Syscall::Start {
                activity,
                entry: 0x1000_1000,
                stack: 0x1000_8000,
            },
        )
        .unwrap();
    }
    let receiving = chip.endpoints.iter().find_map(|((_, number), e)| match e {
        Endpoint::Receive(r) if r.activity == receiver => Some(*number),
        _ => None,
    });
    let late = create(&mut system, &mut chip);
    let send = Syscall::CreateSend {
        activity: late,
        target: receiver,
        endpoint: receiving.unwrap(),
        label: 0,
        credits: 1,
    };
    let gate = call(&mut system, &mut chip, 1, send).unwrap()[0] as u16;
    assert_eq!(of(&chip, receiver).len(), 4);

    // Waiting first, the event comes later.
    assert!(matches!(
        system.call(&mut chip, 1, Syscall::WaitEvent),
        Ok(Outcome::Later)
    ));
    let cause = StopCause::Fault {
        cause: 13,
        pc: 0x1000_1234,
        value: 8,
    };
    assert!(
        !system.notified(&mut chip, 1, receiver, cause),
        "the wrong tile is not believed"
    );
    assert!(system.notified(&mut chip, 2, receiver, cause));
    assert!(
        !system.notified(&mut chip, 2, receiver, cause),
        "nobody stops twice"
    );
    assert_eq!(of(&chip, receiver), []);
    assert!(
        !chip.endpoints.contains_key(&(2, gate)),
        "a gate to nobody is revoked"
    );
    assert_eq!(of(&chip, sender).len(), 4, "others keep theirs");
    for (place, endpoint) in before {
        assert_eq!(chip.endpoints.get(&place), Some(&endpoint), "{place:?}");
    }
    let event = system.take_event(1).unwrap();
    assert_eq!(
        event.as_slice(),
        [0, receiver.into(), 1, 13, 0x1000_1234, 8]
    );
    assert!(system.take_event(1).is_none());
    assert_eq!(
        call(
            &mut system,
            &mut chip,
            1,
            Syscall::Start {
                activity: receiver,
                entry: 0,
                stack: 0
            }
        ),
        Err(SyscallError::WrongState)
    );
}

#[test]
fn the_manager_stops_an_activity() {
    let (mut system, mut chip) = boot();
    let app = create(&mut system, &mut chip);
    call(
        &mut system,
        &mut chip,
        1,
        Syscall::Start {
            activity: app,
            entry: 0x1000_1000,
            stack: 0x1000_8000,
        },
    )
    .unwrap();
    call(&mut system, &mut chip, 1, Syscall::Stop { activity: app }).unwrap();
    assert_eq!(
        chip.requests.last(),
        Some(&(2, Request::Stop { activity: app }))
    );
    assert_eq!(
        call(&mut system, &mut chip, 1, Syscall::Stop { activity: app }),
        Err(SyscallError::WrongState)
    );
    assert_eq!(
        call(&mut system, &mut chip, 1, Syscall::WaitEvent).unwrap()[..2],
        [app.into(), 4]
    );
}

#[test]
fn four_buckets_of_which_one_is_everybodys() {
    let (mut system, mut chip) = boot();
    let limit = |activity| Syscall::SetLimit {
        activity,
        rate: 8 << 20,
        burst: 4096,
    };
    for bucket in 1..4 {
        let app = create(&mut system, &mut chip);
        call(&mut system, &mut chip, 1, limit(app)).unwrap();
        assert_eq!(chip.buckets[&(2, bucket)], (8 << 20, 4096));
        assert_eq!(
            chip.requests.last(),
            Some(&(
                2,
                Request::SetBucket {
                    activity: app,
                    bucket
                }
            ))
        );
        // A second limit changes the same bucket.
        call(&mut system, &mut chip, 1, limit(app)).unwrap();
    }
    let app = create(&mut system, &mut chip);
    assert_eq!(
        call(&mut system, &mut chip, 1, limit(app)),
        Err(SyscallError::NoBucket)
    );
    assert!(!chip.buckets.contains_key(&(2, 0)));
}

#[test]
fn four_windows() {
    let (mut system, mut chip) = boot();
    let configure = Syscall::ConfigureTile {
        tile: 1,
        memory: 8192,
        memory_tile: MEMORY,
    };
    for window in 1..4 {
        call(&mut system, &mut chip, 1, configure).unwrap();
        let Endpoint::Memory(region) = chip.endpoints[&(1, window)] else {
            panic!("no window")
        };
        assert_eq!(region.size, 8192);
    }
    assert_eq!(
        call(&mut system, &mut chip, 1, configure),
        Err(SyscallError::NoWindow)
    );
    assert_eq!(chip.started.len(), 1, "TileMux is started once");
}

#[test]
fn a_refusal_of_tilemux_leaves_nothing_behind() {
    let (mut system, mut chip) = boot();
    create(&mut system, &mut chip);
    chip.refuse = true;
    let create = Syscall::CreateActivity {
        tile: 2,
        memory: 4096,
        memory_tile: MEMORY,
        name: name("x"),
    };
    let before = chip.endpoints.clone();
    assert_eq!(
        call(&mut system, &mut chip, 1, create),
        Err(SyscallError::Refused)
    );
    assert_eq!(chip.endpoints, before);
}

#[test]
fn lines_for_people_and_the_runner() {
    let line = |cause| {
        Stopped {
            activity: 3,
            name: "hog",
            tile: 5,
            cause,
        }
        .to_string()
    };
    let fault = StopCause::Fault {
        cause: 15,
        pc: 0x1000_1234,
        value: 0,
    };
    assert_eq!(
        line(fault),
        "activity 3 (hog) on tile 5 stopped: store page fault at 0x10001234, value 0x0"
    );
    assert_eq!(
        line(StopCause::Exit(7)),
        "activity 3 (hog) on tile 5 stopped: exit 7"
    );
    assert_eq!(
        line(StopCause::Panic),
        "activity 3 (hog) on tile 5 stopped: panic"
    );
    assert_eq!(
        line(StopCause::OutOfMemory),
        "activity 3 (hog) on tile 5 stopped: heap exhausted"
    );
    assert_eq!(
        line(StopCause::Killed),
        "activity 3 (hog) on tile 5 stopped: stopped by its manager"
    );
}
