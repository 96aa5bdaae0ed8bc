//! All tiles and activities, and the system calls on them.
//!
//! Why it exists: this is the kernel. What it deliberately does not know: messages, registers, boot tables.

mod gates;
mod tiles;

use crate::activity::{Activity, State};
use crate::endpoints::Use;
use crate::hardware::{Hardware, Region};
use crate::memory::{PAGE, Range};
use crate::tile::Tile;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bulkhead_abi::dtu::{Endpoint, NO_ENDPOINT, SendEndpoint};
use bulkhead_abi::syscall::{MAP_READ, MAP_WRITE, SYSCALL_SLOT, StopCause, Syscall, SyscallError};
use bulkhead_abi::tilemux::{KERNEL_ACTIVITY, Request, TileMuxError, table_pages};
use bulkhead_abi::words::{Name, Words};

/// Results of a call.
pub type Reply = Words<8>;

/// What becomes of a system call.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// Answer now.
    Reply(Reply),
    /// Answer when something has happened.
    Later,
}

/// A boot module: offset in the first memory tile and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// Key of its name, see [`bulkhead_abi::syscall::module_key`].
    pub key: u64,
    /// Where it lies.
    pub region: Region,
}

/// Where the kernel receives.
#[derive(Clone, Copy, Debug)]
pub struct KernelEndpoints {
    /// The kernel's tile.
    pub tile: u16,
    /// For system calls.
    pub syscalls: u16,
    /// For notifications of TileMux.
    pub notifications: u16,
    /// For text of activities.
    pub prints: u16,
}

/// Where an activity goes.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Its tile.
    pub tile: u16,
    /// Bytes of memory.
    pub memory: u64,
    /// The memory tile that they come from.
    pub memory_tile: u16,
}

/// Names under which the boot modules may hold TileMux.
pub const TILEMUX_NAMES: [&str; 2] = ["tilemux", "tiled/tilemux"];

/// A memory tile and what may be given away of it.
#[derive(Clone, Copy, Debug)]
pub struct MemoryTile {
    /// Number on the network.
    pub id: u16,
    /// What is left.
    pub free: Range,
}

/// The state of the kernel.
#[derive(Debug)]
pub struct System {
    kernel: KernelEndpoints,
    memories: Vec<MemoryTile>,
    tiles: Vec<Tile>,
    activities: BTreeMap<u16, Activity>,
    modules: Vec<Module>,
    objects: Vec<Region>,
    events: VecDeque<(u16, u16, StopCause)>,
    next_activity: u16,
    timebase: u64,
}

/// Activities at most: each may have one call under way, and the kernel has so many slots.
pub const ACTIVITIES_MAX: usize = 31;

impl System {
    /// A system without activities.
    pub fn new(
        kernel: KernelEndpoints,
        memories: Vec<MemoryTile>,
        tiles: Vec<Tile>,
        modules: Vec<Module>,
        timebase: u64,
    ) -> Self {
        Self {
            kernel,
            memories,
            tiles,
            activities: BTreeMap::new(),
            modules,
            objects: Vec::new(),
            events: VecDeque::new(),
            next_activity: KERNEL_ACTIVITY + 1,
            timebase,
        }
    }

    /// An activity.
    pub fn activity(&self, id: u16) -> Option<&Activity> {
        self.activities.get(&id)
    }

    /// The tile of an activity.
    pub fn tile_of(&self, id: u16) -> Option<&Tile> {
        self.activities.get(&id).map(|a| &self.tiles[a.tile])
    }

    /// The next event for a manager that waits, taken from the queue.
    pub fn take_event(&mut self, manager: u16) -> Option<Reply> {
        let position = self.events.iter().position(|(who, ..)| *who == manager)?;
        let (_, activity, cause) = self.events.remove(position)?;
        let mut reply = Reply::new();
        reply.push(&[SyscallError::None as u64, activity.into()]);
        reply.push(&cause.to_words());
        Some(reply)
    }

    /// Carries out a call of `caller`.
    ///
    /// # Errors
    /// Every argument is checked before anything changes; see [`SyscallError`].
    pub fn call(
        &mut self,
        hardware: &mut impl Hardware,
        caller: u16,
        call: Syscall,
    ) -> Result<Outcome, SyscallError> {
        let manages = self.activities.get(&caller).is_some_and(|a| a.manages);
        if !manages && call != Syscall::Nothing {
            return Err(SyscallError::NotManager);
        }
        let mut reply = Reply::new();
        reply.push(&[SyscallError::None as u64]);
        match call {
            Syscall::Nothing => {}
            Syscall::ConfigureTile {
                tile,
                memory,
                memory_tile,
            } => self.configure_tile(hardware, tile, memory, memory_tile)?,
            Syscall::CreateActivity {
                tile,
                memory,
                memory_tile,
                name,
            } => {
                let place = Place {
                    tile,
                    memory,
                    memory_tile,
                };
                let id = self.create(hardware, caller, place, name, false)?;
                let send = self.activities[&id].syscalls.0;
                let frequency = self.tile_of(id).map_or(0, |tile| tile.frequency);
                reply.push(&[id.into(), send.into(), frequency]);
            }
            Syscall::OpenMemory { activity } => {
                let region = self.created(caller, activity)?.region();
                let endpoint = self.grant_memory(hardware, caller, region, MAP_READ | MAP_WRITE)?;
                reply.push(&[endpoint.into()]);
            }
            Syscall::OpenModule { key } => {
                let mut modules = self.modules.iter();
                let module = modules.find(|m| m.key == key).copied();
                let region = module.ok_or(SyscallError::NoModule)?.region;
                let endpoint = self.grant_memory(hardware, caller, region, MAP_READ)?;
                reply.push(&[endpoint.into(), region.size]);
            }
            Syscall::Close { endpoint } => self.close(hardware, caller, endpoint)?,
            Syscall::Map {
                activity,
                address,
                offset,
                pages,
                rights,
            } => self.map(hardware, caller, activity, address, offset, pages, rights)?,
            Syscall::CreateReceive {
                activity,
                offset,
                slots,
                slot_size,
                replies,
            } => {
                self.created(caller, activity)?;
                let endpoint = self.receive_endpoint(
                    hardware,
                    activity,
                    offset,
                    slots,
                    slot_size,
                    replies != 0,
                )?;
                reply.push(&[endpoint.into()]);
            }
            Syscall::CreateSend {
                activity,
                target,
                endpoint,
                label,
                credits,
            } => {
                let made = self
                    .send_endpoint(hardware, caller, activity, target, endpoint, label, credits)?;
                reply.push(&[made.into()]);
            }
            Syscall::CreateMemory {
                activity,
                size,
                rights,
                memory_tile,
            } => {
                self.created(caller, activity)?;
                check_memory_rights(rights)?;
                if size == 0 {
                    return Err(SyscallError::BadArgument);
                }
                self.free_endpoint(activity)?;
                let region = self.take(memory_tile, size)?;
                let object = self.objects.len() as u64;
                self.objects.push(region);
                let endpoint = self.grant_memory(hardware, activity, region, rights)?;
                reply.push(&[endpoint.into(), object]);
            }
            Syscall::Connect {
                activity,
                object,
                rights,
            } => {
                self.created(caller, activity)?;
                check_memory_rights(rights)?;
                let index = usize::try_from(object).map_err(|_| SyscallError::BadArgument)?;
                let region = *self.objects.get(index).ok_or(SyscallError::BadArgument)?;
                let endpoint = self.grant_memory(hardware, activity, region, rights)?;
                reply.push(&[endpoint.into()]);
            }
            Syscall::SetLimit {
                activity,
                rate,
                burst,
            } => self.set_limit(hardware, caller, activity, rate, burst)?,
            Syscall::SetBudget {
                activity,
                budget,
                period,
                priority,
            } => {
                self.created(caller, activity)?;
                if budget == 0 || budget > period {
                    return Err(SyscallError::BadArgument);
                }
                self.request(
                    hardware,
                    activity,
                    Request::SetBudget {
                        activity,
                        budget,
                        period,
                        priority,
                    },
                )?;
            }
            Syscall::Start {
                activity,
                entry,
                stack,
            } => self.start(hardware, caller, activity, entry, stack)?,
            Syscall::WaitEvent => {
                return Ok(match self.take_event(caller) {
                    Some(event) => Outcome::Reply(event),
                    None => Outcome::Later,
                });
            }
            Syscall::Stop { activity } => {
                let state = self.managed(caller, activity)?.state;
                if matches!(state, State::Stopped(_)) {
                    return Err(SyscallError::WrongState);
                }
                self.request(hardware, activity, Request::Stop { activity })?;
                self.stopped(hardware, activity, StopCause::Killed);
            }
        }
        Ok(Outcome::Reply(reply))
    }

    /// The activity, if `caller` manages it.
    fn managed(&self, caller: u16, activity: u16) -> Result<&Activity, SyscallError> {
        let found = self.activities.get(&activity);
        let found = found.ok_or(SyscallError::NoActivity)?;
        if found.manager == caller {
            Ok(found)
        } else {
            Err(SyscallError::NotManager)
        }
    }

    /// The activity, if `caller` manages it and it has not been started.
    fn created(&self, caller: u16, activity: u16) -> Result<&Activity, SyscallError> {
        let found = self.managed(caller, activity)?;
        match found.state {
            State::Created => Ok(found),
            _ => Err(SyscallError::WrongState),
        }
    }

    fn request(
        &self,
        hardware: &mut impl Hardware,
        activity: u16,
        request: Request,
    ) -> Result<(), SyscallError> {
        let tile = self.tile_of(activity).ok_or(SyscallError::NoActivity)?;
        match hardware.request(tile.id, request) {
            TileMuxError::None => Ok(()),
            _ => Err(SyscallError::Refused),
        }
    }

    /// Frequency of the `time` CSR in hertz.
    pub fn timebase(&self) -> u64 {
        self.timebase
    }

    /// Creates an activity with its channel to the kernel.
    ///
    /// # Errors
    /// See [`Syscall::CreateActivity`].
    pub fn create(
        &mut self,
        hardware: &mut impl Hardware,
        manager: u16,
        place: Place,
        name: Name,
        manages: bool,
    ) -> Result<u16, SyscallError> {
        let memory = place.memory;
        let index = self.tiles.iter().position(|t| t.id == place.tile);
        let index = index.ok_or(SyscallError::NoTile)?;
        let living = self.activities.values();
        let living = living.filter(|a| !matches!(a.state, State::Stopped(_)));
        if living.count() >= ACTIVITIES_MAX || self.next_activity >= 0x8000 {
            return Err(SyscallError::Busy);
        }
        let size = memory.checked_next_multiple_of(PAGE).filter(|m| *m > 0);
        let size = size.ok_or(SyscallError::BadArgument)?;
        let tables = table_pages(size);
        let tile = &mut self.tiles[index];
        if tile.windows.is_empty() {
            return Err(SyscallError::WrongState);
        }
        let first = tile.endpoints.find(2).ok_or(SyscallError::NoEndpoint)?;
        let total = size.checked_add(tables * PAGE);
        let placement = total.and_then(|total| tile.take(total, place.memory_tile));
        let placement = placement.ok_or(SyscallError::NoMemory)?;
        let id = self.next_activity;
        let create = Request::Create {
            activity: id,
            tables: placement.physical + size,
            table_pages: tables,
        };
        if hardware.request(tile.id, create) != TileMuxError::None {
            return Err(SyscallError::Refused);
        }
        self.next_activity += 1;
        let channel = SendEndpoint {
            activity: id,
            target_tile: self.kernel.tile,
            target_endpoint: self.kernel.syscalls,
            label: id.into(),
            credits: 1,
            credits_max: 1,
            message_size: SYSCALL_SLOT,
            credit_endpoint: NO_ENDPOINT,
            reply: false,
        };
        tile.endpoints.set(
            first,
            Use::Send {
                activity: id,
                target_tile: self.kernel.tile,
                target_endpoint: self.kernel.syscalls,
            },
        );
        hardware.set_endpoint(tile.id, first, Endpoint::Send(channel));
        // The receive endpoint for replies is made when the manager says where its buffer lies; it is the second.
        tile.endpoints.set(first + 1, Use::Reply { activity: id });
        self.activities.insert(
            id,
            Activity {
                name,
                tile: index,
                manager,
                manages,
                state: State::Created,
                memory: placement,
                size,
                bucket: 0,
                syscalls: (first, first + 1),
            },
        );
        Ok(id)
    }

    /// Maps a part of an activity's memory.
    ///
    /// # Errors
    /// See [`Syscall::Map`].
    #[expect(clippy::too_many_arguments, reason = "the fields of the call")]
    pub fn map(
        &self,
        hardware: &mut impl Hardware,
        caller: u16,
        activity: u16,
        address: u64,
        offset: u64,
        pages: u64,
        rights: u8,
    ) -> Result<(), SyscallError> {
        let target = self.created(caller, activity)?;
        if pages == 0 || rights == 0 || rights > 7 || !offset.is_multiple_of(PAGE) {
            return Err(SyscallError::BadArgument);
        }
        let bytes = pages.checked_mul(PAGE);
        let end = bytes.and_then(|bytes| offset.checked_add(bytes));
        if end.is_none_or(|end| end > target.size) {
            return Err(SyscallError::OutOfBounds);
        }
        let physical = target.memory.physical + offset;
        self.request(
            hardware,
            activity,
            Request::Map {
                activity,
                address,
                physical,
                pages,
                rights,
            },
        )
    }

    fn set_limit(
        &mut self,
        hardware: &mut impl Hardware,
        caller: u16,
        activity: u16,
        rate: u64,
        burst: u64,
    ) -> Result<(), SyscallError> {
        let target = self.created(caller, activity)?;
        // A chunk is never larger than this, and must fit the bucket to leave at all.
        if rate == 0 || burst < bulkhead_abi::dtu::CHUNK_MAX as u64 {
            return Err(SyscallError::BadArgument);
        }
        let (index, mut bucket) = (target.tile, target.bucket);
        if bucket == 0 {
            let taken = self.tiles[index].take_bucket();
            bucket = taken.ok_or(SyscallError::NoBucket)?;
        }
        hardware.set_bucket(self.tiles[index].id, bucket, rate, burst);
        self.request(hardware, activity, Request::SetBucket { activity, bucket })?;
        if let Some(target) = self.activities.get_mut(&activity) {
            target.bucket = bucket;
        }
        Ok(())
    }

    /// Starts an activity.
    ///
    /// # Errors
    /// See [`Syscall::Start`].
    pub fn start(
        &mut self,
        hardware: &mut impl Hardware,
        caller: u16,
        activity: u16,
        entry: u64,
        stack: u64,
    ) -> Result<(), SyscallError> {
        self.created(caller, activity)?;
        if !stack.is_multiple_of(16) || !entry.is_multiple_of(2) {
            return Err(SyscallError::BadArgument);
        }
        self.request(
            hardware,
            activity,
            Request::Start {
                activity,
                entry,
                stack,
            },
        )?;
        if let Some(target) = self.activities.get_mut(&activity) {
            target.state = State::Running;
        }
        Ok(())
    }

    /// An activity is no more: its endpoints, and all that lead to them, are revoked, and its manager will hear of it.
    pub fn stopped(&mut self, hardware: &mut impl Hardware, activity: u16, cause: StopCause) {
        let Some(target) = self.activities.get_mut(&activity) else {
            return;
        };
        if matches!(target.state, State::Stopped(_)) {
            return;
        }
        target.state = State::Stopped(cause);
        let (index, manager) = (target.tile, target.manager);
        let tile = &mut self.tiles[index];
        let id = tile.id;
        let gone = tile.endpoints.take_back(|e| e.owner() == Some(activity));
        for &endpoint in &gone {
            hardware.invalidate_endpoint(id, endpoint);
        }
        for tile in &mut self.tiles {
            let leads_there = |entry: &Use| {
                matches!(*entry, Use::Send { target_tile, target_endpoint, .. }
                    if target_tile == id && gone.contains(&target_endpoint))
            };
            for endpoint in tile.endpoints.take_back(leads_there) {
                hardware.invalidate_endpoint(tile.id, endpoint);
            }
        }
        self.events.push_back((manager, activity, cause));
    }

    /// A tile's TileMux says that an activity stopped. Returns whether this is believable: the activity is there and runs.
    pub fn notified(
        &mut self,
        hardware: &mut impl Hardware,
        tile: u16,
        activity: u16,
        cause: StopCause,
    ) -> bool {
        let found = self.activities.get(&activity);
        let there = found.is_some_and(|a| {
            self.tiles[a.tile].id == tile && !matches!(a.state, State::Stopped(_))
        });
        if there {
            self.stopped(hardware, activity, cause);
        }
        there
    }
}

fn check_memory_rights(rights: u8) -> Result<(), SyscallError> {
    match rights {
        1..=3 => Ok(()),
        _ => Err(SyscallError::BadArgument),
    }
}
