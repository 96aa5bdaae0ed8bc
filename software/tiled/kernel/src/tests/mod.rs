//! The kernel's decisions, on a chip that only records what was done to it.

mod activities;
mod book;
mod bounds;
mod caches;
mod devices;
mod ends;
mod kills;
mod making;
mod paging;
mod payers;
mod properties;
mod refusals;
mod requests;
mod rights;
mod senders;
pub mod sessions;
mod tiles;

use crate::activity::{Path, State};
use crate::hardware::{Hardware, Region, Right};
use crate::pending::Ticket;
use crate::root::{self, Place};
use crate::system::{KernelEndpoints, MemoryTile, Module, PATIENCE, Reply, System};
use crate::tile::Tile;
use bulkhead_abi::dtu::{Endpoint, TILEMUX_ACTIVITY};
use bulkhead_abi::environment::PROGRAM_BASE;
use bulkhead_abi::marker::{Asker, Begins};
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE};
use bulkhead_abi::syscall::{
    ANY_ENDPOINT, NO_SELECTOR, SEL_KERNEL_MEMORY, SEL_MEMORIES, SEL_TILES, SHARE, StopCause,
    Syscall, SyscallError, module_key,
};
use bulkhead_abi::tilemux::{
    DEFAULT_SLICE, REQUEST_PIECES, Request, TILEMUX_BASE, TileMuxError, request_distance,
};
use bulkhead_abi::words::Name;
use std::collections::{BTreeMap, VecDeque};

pub const MEMORY: u16 = 8;
/// Clock of the tiles.
const HERTZ: u64 = 2_000_000_000;
/// When a request that was sent at the start is late.
pub const LATE: u64 = PATIENCE + REQUEST_PIECES * request_distance(HERTZ);
const KERNEL: KernelEndpoints = KernelEndpoints {
    tile: 0,
    syscalls: [4, 5, 6],
    notifications: 7,
    prints: 8,
};

/// A question of the kernel: receiver, words, label.
pub type Asked = ((u16, u16), Vec<u64>, u64);

/// Gives up everything that is late, to the end.
pub fn expire_tiles(system: &mut System, chip: &mut Chip) {
    while system
        .expire_tiles(chip)
        .is_some_and(|next| next <= chip.now)
    {}
}

/// A device given or taken: tile, owner, memory.
pub type Given = (u16, (u16, u16), (u64, u64, u64));

/// A chip without time: endpoints, buckets and one memory tile.
#[derive(Clone, Default)]
pub struct Chip {
    pub endpoints: BTreeMap<(u16, u16), Endpoint>,
    pub buckets: BTreeMap<(u16, u8), (u64, u64)>,
    pub memory: BTreeMap<u64, u8>,
    pub started: Vec<(u16, u64)>,
    /// Activities whose stop was reported.
    pub said: Vec<(u16, StopCause)>,
    pub stopped: Vec<u16>,
    pub requests: Vec<(u16, Request)>,
    /// The asker of each of them.
    pub askers: Vec<Option<Asker>>,
    /// Answers of TileMuxes that the kernel has not taken.
    pub answers: VecDeque<(u64, TileMuxError)>,
    /// Tiles whose TileMux answers nothing.
    pub deaf: Vec<u16>,
    /// Tiles whose TileMux has not taken a request yet.
    pub full: Vec<u16>,
    pub asked: Vec<Asked>,
    /// Every time that a device was given or taken: tile, owner, memory.
    pub borrowed: Vec<(u16, u64)>,
    pub devices: Vec<Given>,
    pub refuse: bool,
    pub now: u64,
    /// Calls whose slots were freed.
    pub parked: u32,
    /// Endpoints of tiles through which something has left that is not answered.
    pub under_way: Vec<(u16, u16)>,
    /// The new activities, and their names.
    pub begun: Vec<(Begins, Name)>,
    /// The memory that TileMuxes and units reach through windows: tile, activity and tile-physical address, and what the window
    /// showed at that time.
    pub reach: BTreeMap<(u16, u16, u64), Endpoint>,
    /// Pages for page tables given to TileMuxes: tile, tile-physical address, number.
    pub tables: Vec<(u16, u64, u64)>,
    /// How many of them activities may have, by tile and activity.
    promised: BTreeMap<(u16, u16), u64>,
    /// Effects since it was last set to 0.
    pub effects: u32,
    pub caches: caches::Caches,
}

impl System {
    /// The next activity that stopped, however many pieces of work its path takes.
    pub(super) fn reported(&mut self) -> Option<(u16, StopCause)> {
        let mut path = Path::NONE;
        while self.report_level().is_some() {
            let report = self.take_report(&mut path);
            if report.is_some() {
                return report;
            }
        }
        None
    }
}

impl Chip {
    /// From now on an activity reaches memory at a tile-physical address.
    fn reaches(&mut self, tile: u16, activity: u16, physical: u64) {
        let window = ((physical - MEMORY_BASE) / PMP_WINDOW_SIZE) as u16;
        let shown = self.endpoints.get(&(tile, window)).copied();
        let shown = shown.expect("nobody is told of memory that no window shows");
        self.reach.insert((tile, activity, physical), shown);
    }

    /// A living activity reaches only memory that it was given: no window has changed behind it.
    fn check_reach(&self, system: &System) {
        for ((tile, id, physical), shown) in &self.reach {
            let window = ((physical - MEMORY_BASE) / PMP_WINDOW_SIZE) as u16;
            let lives = system
                .activity(*id)
                .is_some_and(|a| !matches!(a.state(), State::Stopped(_)));
            let now = self.endpoints.get(&(*tile, window));
            assert!(
                !lives || now == Some(shown),
                "activity {id} of tile {tile} reaches {now:?} at {physical:#x} instead of {shown:?}"
            );
        }
    }
}

impl Hardware for Chip {
    fn set_endpoint(&mut self, tile: u16, endpoint: u16, value: Endpoint) {
        self.effects += 1;
        self.endpoints.insert((tile, endpoint), value);
        self.caches.changed(&self.endpoints, tile, endpoint);
        if let Endpoint::Receive(receive) = value
            && receive.activity != TILEMUX_ACTIVITY
        {
            self.reaches(tile, receive.activity, receive.buffer);
        }
    }
    fn endpoint(&mut self, tile: u16, endpoint: u16) -> Endpoint {
        self.effects += 1;
        self.endpoints
            .get(&(tile, endpoint))
            .copied()
            .unwrap_or_default()
    }
    fn invalidate(&mut self, tile: u16, first: u16, count: u16) {
        self.effects += 1;
        self.caches.closes(&self.endpoints, tile, first, count);
        let range = (tile, first)..(tile, first + count);
        self.endpoints.retain(|place, _| !range.contains(place));
    }
    fn write_back(&mut self, tile: u16, physical: u64, lines: u16) {
        self.effects += 1;
        self.caches.write_back(tile, physical, lines);
    }
    fn is_writing_back(&mut self, tile: u16) -> bool {
        self.effects += 1;
        self.caches.is_writing_back(&self.endpoints, tile)
    }
    fn is_under_way(&mut self, tile: u16, endpoint: u16) -> bool {
        self.effects += 1;
        assert!(!self.endpoints.contains_key(&(tile, endpoint)));
        self.under_way.contains(&(tile, endpoint))
    }
    fn set_bucket(&mut self, tile: u16, bucket: u8, rate: u64, limit: u64) {
        self.effects += 1;
        self.buckets.insert((tile, bucket), (rate, limit));
    }
    fn announce(&mut self, begins: Begins, name: &Name) {
        self.begun.push((begins, *name));
    }
    fn set_borrowed(&mut self, tile: u16, bytes: u64) {
        self.effects += 1;
        self.borrowed.push((tile, bytes));
    }
    fn give_device(&mut self, tile: u16, owner: (u16, u16), memory: (u64, u64, u64)) {
        self.effects += 1;
        self.devices.push((tile, owner, memory));
    }
    fn start_hart(&mut self, tile: u16, address: u64) {
        self.full.retain(|full| *full != tile);
        self.effects += 1;
        self.started.push((tile, address));
        self.caches.starts(tile);
    }
    fn stop_hart(&mut self, tile: u16) {
        self.effects += 1;
        self.stopped.push(tile);
        self.caches.stops(tile);
        self.reach.retain(|(place, ..), _| *place != tile);
        self.tables.retain(|(place, ..)| *place != tile);
        self.promised.retain(|(place, _), _| *place != tile);
    }
    fn request(&mut self, tile: u16, request: Request, number: u64, asker: Option<Asker>) -> bool {
        self.effects += 1;
        self.requests.push((tile, request));
        self.askers.push(asker);
        if self.full.contains(&tile) {
            return false;
        }
        if self.deaf.contains(&tile) {
            self.full.push(tile);
            return true;
        }
        let mut answer = match self.refuse {
            true => TileMuxError::BadRequest,
            false => TileMuxError::None,
        };
        match request {
            Request::Create {
                activity,
                table_pages,
            }
            | Request::SetPager {
                activity,
                table_pages,
                ..
            } => {
                // Its page tables may be in any memory given for page tables.
                let here = self.tables.iter().filter(|given| given.0 == tile).copied();
                let here: Vec<_> = here.collect();
                for (_, physical, _) in &here {
                    self.reaches(tile, activity, *physical);
                }
                *self.promised.entry((tile, activity)).or_default() += table_pages;
                let promised = self.promised.iter().filter(|promise| promise.0.0 == tile);
                let promised: u64 = promised.map(|promise| *promise.1).sum();
                if promised > here.iter().map(|given| given.2).sum() {
                    self.promised.remove(&(tile, activity));
                    self.reach.retain(|(_, id, _), _| *id != activity);
                    answer = TileMuxError::NoTable;
                }
            }
            Request::Tables {
                physical, pages, ..
            } => {
                self.reaches(tile, TILEMUX_ACTIVITY, physical + (pages - 1) * 4096);
                self.tables.push((tile, physical, pages));
            }
            Request::Map {
                activity,
                physical,
                pages,
                ..
            }
            | Request::MapPages {
                activity,
                physical,
                pages,
                ..
            } if physical >= MEMORY_BASE => {
                self.reaches(tile, activity, physical);
                let own = (tile, activity);
                self.caches.maps(&self.endpoints, own, physical, pages);
            }
            Request::Stop { activity } => {
                self.caches.ends(tile, activity);
                self.reach.retain(|(_, id, _), _| *id != activity);
                self.promised.remove(&(tile, activity));
            }
            _ => {}
        }
        self.answers.push_back((number, answer));
        true
    }
    fn answer(&mut self) -> Option<(u64, TileMuxError)> {
        self.answers.pop_front()
    }
    fn clear(&mut self, region: Region) {
        self.effects += 1;
        self.caches.fills(region);
        for address in region.base..region.base + region.size {
            self.memory.insert(address, 0);
        }
    }
    fn ask(&mut self, (to, share): ((u16, u16), u32), words: &[u64], label: u64) -> bool {
        self.effects += 1;
        assert!(
            share.is_power_of_two(),
            "the kernel has one slot of a service's gate"
        );
        self.asked.push((to, words.to_vec(), label));
        !self.refuse
    }
    fn park(&mut self, _level: usize, offset: u32) -> Right {
        self.parked += 1;
        [offset.into(); 4]
    }
    fn answer_parked(&mut self, _right: Right, _reply: &Reply) {}
    fn read(&mut self, region: Region, offset: u64, buffer: &mut [u8]) {
        self.effects += 1;
        assert!(offset + buffer.len() as u64 <= region.size);
        for (i, byte) in buffer.iter_mut().enumerate() {
            let address = region.base + offset + i as u64;
            *byte = self.memory.get(&address).copied().unwrap_or(0);
        }
    }
    fn write(&mut self, region: Region, offset: u64, data: &[u8]) {
        self.effects += 1;
        assert!(offset + data.len() as u64 <= region.size);
        self.caches.fills(Region {
            tile: region.tile,
            base: region.base + offset,
            size: data.len() as u64,
        });
        for (i, byte) in data.iter().enumerate() {
            self.memory.insert(region.base + offset + i as u64, *byte);
        }
    }
    fn time(&mut self) -> u64 {
        self.now
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
pub fn boot() -> (System, Chip) {
    boot_on(2)
}

/// The same with this many user tiles.
pub fn boot_on(tiles: u16) -> (System, Chip) {
    boot_with(tiles, 0)
}

/// The same with caches whose lines have this many bytes; 0 if memory is flat.
pub fn boot_with(tiles: u16, line: u64) -> (System, Chip) {
    let mut chip = Chip::default();
    chip.caches.line = line;
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
    let free = Region {
        tile: MEMORY,
        base: 0x100_0000,
        size: 0x700_0000,
    };
    let numbers = (1..).filter(|number| *number != MEMORY);
    let tiles = numbers.take(tiles.into());
    let built = |tile: Tile| tile.built((0, DEFAULT_SLICE), 1, line);
    let tiles = tiles.map(|number| built(Tile::new(number, HERTZ, 64)));
    let tiles = tiles.collect();
    let memories = vec![MemoryTile { free }];
    let mut system = System::new(KERNEL, memories, tiles, modules, (10_000_000, 6 << 20));
    let place = Place {
        tile: 1,
        memory: 1 << 20,
        memory_tile: MEMORY,
        line: line as u16,
    };
    assert_eq!(root::start(&mut system, &mut chip, place), Ok(1));
    check(&mut system);
    (system, chip)
}

pub fn check(system: &mut System) {
    assert_eq!(system.space().check(), Ok(()));
}

pub fn ticket(system: &System, caller: u16) -> Ticket {
    let found = system.activity(caller);
    let (priority, generation) = found.map_or((0, 0), |a| (a.priority, a.generation));
    Ticket {
        caller,
        generation,
        level: priority.into(),
        offset: caller.into(),
    }
}

/// Drives all jobs to their ends; returns the number of steps.
pub fn finish(system: &mut System, chip: &mut Chip) -> u32 {
    let mut steps = 0;
    loop {
        while let Some((number, answer)) = chip.answer() {
            system.tile_answered(chip, number, answer);
        }
        let Some(level) = (0..3).rev().find(|level| system.has_step(*level)) else {
            // A revocation waits until the stop is reported.
            match system.reported() {
                Some(report) => chip.said.push(report),
                None => return steps,
            }
            continue;
        };
        system.step(chip, level);
        chip.check_reach(system);
        steps += 1;
        assert!(steps < 1_000_000, "a job does not end");
    }
}

/// A call, with everything that it starts. `None`: it is not answered yet.
pub fn later(
    system: &mut System,
    chip: &mut Chip,
    caller: u16,
    call: Syscall,
) -> Result<Option<Vec<u64>>, SyscallError> {
    let ticket = ticket(system, caller);
    let outcome = system.call(chip, ticket, call)?;
    if let Some(reply) = outcome {
        return words(&reply).map(Some);
    }
    finish(system, chip);
    // Others may have waited for the effect of this call.
    while let Some((who, reply)) = system.take_reply() {
        if who == ticket {
            return words(&reply).map(Some);
        }
    }
    Ok(None)
}

/// Tells all activities whose patience has ended.
pub fn expire_all(system: &mut System, now: u64) {
    while system.expire(now).is_some_and(|next| next <= now) {}
}

/// Delivers everything that there is for an activity. Returns the number of events.
pub fn hear_all(system: &mut System, chip: &mut Chip, id: u16) -> usize {
    let mut count = 0;
    let wait = Syscall::WaitEvent { until: 1 };
    while let Ok(Some(_)) = later(system, chip, id, wait) {
        count += 1;
    }
    expire_all(system, 1);
    while system.take_reply().is_some() {}
    count
}

pub fn words(reply: &Reply) -> Result<Vec<u64>, SyscallError> {
    let words = reply.as_slice();
    match SyscallError::from_code(words[0]).unwrap() {
        SyscallError::None => Ok(words[1..].to_vec()),
        error => Err(error),
    }
}

pub fn call(
    system: &mut System,
    chip: &mut Chip,
    caller: u16,
    call: Syscall,
) -> Result<Vec<u64>, SyscallError> {
    let result = later(system, chip, caller, call);
    check(system);
    result.map(|words| words.expect("an answer"))
}

/// Where the manager keeps the parts of an activity: the capability, its memory, its purse.
pub const APP: u16 = 100;

/// An activity on tile 2 with selectors of the manager from `at` on. The first one lights the tile.
pub fn create(system: &mut System, chip: &mut Chip, at: u16, tile: u16) -> u16 {
    let window = 99;
    if system
        .space()
        .find(bulkhead_capabilities::HolderId(1), window)
        .is_err()
    {
        let cut = Syscall::CutMemory {
            source: SEL_MEMORIES + MEMORY,
            target: window,
            size: 1 << 22,
        };
        call(system, chip, 1, cut).unwrap();
        let configure = Syscall::ConfigureTile {
            tile: SEL_TILES + 2,
            memory: window,
            tables: 100,
        };
        call(system, chip, 1, configure).unwrap();
    }
    for request in [
        Syscall::CutMemory {
            source: window,
            target: at + 1,
            size: 1 << 16,
        },
        Syscall::DeriveKernelMemory {
            source: SEL_KERNEL_MEMORY,
            target: at + 2,
            bytes: 4096,
        },
    ] {
        call(system, chip, 1, request).unwrap();
    }
    let made = call(system, chip, 1, creation(at, tile, 0)).unwrap();
    made[0] as u16
}

pub fn creation(at: u16, tile: u16, priority: u8) -> Syscall {
    Syscall::CreateActivity {
        target: at,
        tile,
        purse: at + 2,
        memory: at + 1,
        reply: 0x8000,
        priority,
        tile_priority: 0,
        name: Name::new("app").unwrap(),
    }
}

pub fn start(system: &mut System, chip: &mut Chip, at: u16) {
    let start = Syscall::Start {
        activity: at,
        entry: PROGRAM_BASE,
        stack: 0x1000_8000,
    };
    call(system, chip, 1, start).unwrap();
}

pub fn activate(gate: u16, activity: u16, buffer: Option<(u16, u64)>) -> Syscall {
    let (memory, offset) = buffer.unwrap_or((NO_SELECTOR, 0));
    Syscall::Activate {
        gate,
        activity,
        memory,
        offset,
        replies: buffer.is_some().into(),
        endpoint: ANY_ENDPOINT,
    }
}

/// A tile capability with a rate of its own.
pub fn limited(target: u16, rate: u64, burst: u64) -> Syscall {
    Syscall::DeriveTile {
        source: SEL_TILES + 2,
        target,
        endpoints: SHARE,
        budget: SHARE,
        period: 0,
        rate,
        burst,
        tables: SHARE,
        priority: 0,
        idle: 1,
        activities: SHARE,
        windows: SHARE,
    }
}
