//! All tiles, activities and capabilities, and the system calls on them.
//!
//! Why it exists: this is the kernel. What it deliberately does not know: messages, registers, boot tables.
//!
//! A call checks everything before it changes anything. Long work (revocation, loading TileMux) is a job that runs in small steps;
//! a caller of a higher priority waits for one step.

mod activities;
mod clearing;
mod closing;
mod devices;
mod dispatch;
mod events;
mod gates;
mod making;
mod paging;
mod requests;
mod revoke;
mod roll;
mod sessions;
mod speaking;
mod tiles;
mod waiting;

use crate::activity::{ACTIVITY_COST, Activities, Activity, PLACE_COST, Path};
use crate::hardware::{Hardware, Region, Right};
use crate::pending::{Ticket, Waiting, Why, caller_label};
use crate::tile::Tile;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bulkhead_abi::syscall::arguments::DeriveTile;
use bulkhead_abi::syscall::{
    Call, ObjectKind, PRIORITIES, REPLY_WORDS, SEL_KERNEL_MEMORY, SEL_MEMORIES, SEL_MODULES,
    SEL_TILES, SEL_TILES_MAX, SHARE, StopCause, Syscall, SyscallError,
};
use bulkhead_abi::tilemux::{KERNEL_ACTIVITY, REQUEST_PIECES, request_distance};
use bulkhead_abi::words::Words;
use bulkhead_capabilities::{HolderId, NodeId, Object, Quota, Space, Terms};
use bulkhead_common::line::Ranks;
use bulkhead_common::payer::{Boot, Caller, Creator, Fixed, Holder, Paid, Reserved};

pub use activities::NUMBERS_END;
#[cfg(test)]
pub(crate) use closing::LOOKED;
pub use requests::{LIES_MAX, PATIENCE};
pub use tiles::{TILEMUX_NAMES, memory_endpoint};

/// Results of a call.
pub type Reply = Words<REPLY_WORDS>;

/// The call is answered later, when something has happened; see [`System::take_reply`].
const LATER: bool = false;

/// A boot module: offset in the first memory tile and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Module {
    /// Key of its name, see [`bulkhead_abi::syscall::module_key`].
    pub key: u64,
    /// Where it lies.
    pub region: Region,
}

/// The kernel's receive endpoints.
#[derive(Clone, Copy, Debug)]
pub struct KernelEndpoints {
    /// The kernel's tile.
    pub tile: u16,
    /// For system calls, by priority.
    pub syscalls: [u16; PRIORITIES],
    /// For notifications of TileMux.
    pub notifications: u16,
    /// For text of activities: the first, and one more for each further group of tiles.
    pub prints: u16,
}

/// A memory tile and its free memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryTile {
    /// The region that is free at boot.
    pub free: Region,
}

/// The state of the kernel.
#[derive(Clone, Debug)]
pub struct System {
    kernel: KernelEndpoints,
    tiles: Fixed<Tile>,
    /// The index of each tile by its number; past all of them where there is none.
    places: Fixed<usize>,
    activities: Activities,
    modules: Fixed<Module>,
    space: Space,
    /// Activities that wait with a time limit: the limit (nanoseconds since reset) and the activity's number.
    timers: Paid<Caller, BTreeSet<(u64, u16)>>,
    jobs: revoke::Jobs,
    /// Number of the last question to a server.
    question: u64,
    /// Number of activities that wait for a server, of unanswered questions, and of closed sessions that servers do not know of
    /// yet.
    questions: usize,
    /// Number of activities of each priority that wait for a server.
    asking: [usize; PRIORITIES],
    /// For each activity: the number of its closed sessions that servers do not know of yet and, once it has ended, of requests
    /// about it that TileMuxes have not answered.
    mentions: Paid<Holder, BTreeMap<u16, u16>>,
    /// Late replies; in place of an activity's next event, the time limit of its wait.
    replies: Ranks<Caller, (Ticket, Result<Reply, u64>), PRIORITIES>,
    /// Ends that have not been printed, by the priority of the ended activity.
    reports: Ranks<Creator, (u16, StopCause), PRIORITIES>,
    next_activity: u16,
    /// How often all numbers of activities have been used.
    generation: u32,
    /// Number of the last request to a TileMux.
    requests: u64,
    /// Tiles that must answer a request, or that were lost and have activities and callers that have not been informed, in the
    /// order of their time limits (nanoseconds since reset).
    due: Reserved<Boot, (u64, u16)>,
    /// Nanoseconds that an answer may take.
    patience: u64,
    /// Memory that must be cleared before another activity gets it.
    dirty: clearing::Dirty,
    timebase: u64,
}

impl System {
    /// A system without activities: with a frequency of the `time` CSR in hertz, and bytes that all purses together hold.
    pub fn new(
        kernel: KernelEndpoints,
        memories: Vec<MemoryTile>,
        tiles: Vec<Tile>,
        modules: Vec<Module>,
        (timebase, purses): (u64, u64),
    ) -> Self {
        // There is a place for each activity that a purse can pay for, and one for the kernel.
        let places = (1 + purses / PLACE_COST).min(NUMBERS_END.into()) as u16;
        let mut space = Space::new((purses / Space::NODE_COST) as usize, places);
        space.charge_activities(ACTIVITY_COST);
        for tile in tiles.iter().filter(|t| t.id < SEL_TILES_MAX) {
            // All of this exists at boot; what does not fit cannot be given away, and its use is refused later.
            let endpoints = tile.endpoints.left() as u64;
            let _ = space.add_tile(
                SEL_TILES + tile.id,
                tile.id,
                endpoints,
                u16::MAX.into(),
                None,
            );
        }
        for MemoryTile { free } in memories.iter().filter(|m| m.free.tile < SEL_TILES_MAX) {
            let selector = SEL_MEMORIES + free.tile;
            let _ = space.add_memory(selector, free.tile, free.base, free.size, 7);
        }
        let start = modules.iter().map(|m| m.region.base).min();
        let end = modules.iter().map(|m| m.region.base + m.region.size).max();
        if let (Some(start), Some(end), Some(first)) = (start, end, modules.first()) {
            let _ = space.add_memory(SEL_MODULES, first.region.tile, start, end - start, 1);
        }
        // Memory for the kernel's own objects when it starts the root manager.
        let copies = 24 + (tiles.len() + memories.len()) as u64;
        let rest = copies * Space::NODE_COST + PLACE_COST;
        let left = space.kernel_memory_left(Space::KERNEL).unwrap_or(0);
        let _ = space.add_kernel_memory(SEL_KERNEL_MEMORY, left.saturating_sub(rest));
        let distances = tiles.iter().map(|tile| request_distance(tile.frequency));
        let patience = PATIENCE + REQUEST_PIECES * distances.max().unwrap_or(0);
        Self {
            kernel,
            places: places_of(&tiles),
            due: Reserved::with_room(tiles.len()),
            tiles: tiles.into(),
            activities: Activities::with_room(places.into(), NUMBERS_END.into()),
            modules: modules.into(),
            space,
            timers: Paid::default(),
            jobs: revoke::Jobs::default(),
            question: 0,
            questions: 0,
            asking: [0; PRIORITIES],
            mentions: Paid::default(),
            replies: Ranks::default(),
            reports: Ranks::default(),
            next_activity: KERNEL_ACTIVITY + 1,
            generation: 0,
            requests: 0,
            patience,
            dirty: clearing::Dirty::default(),
            timebase,
        }
    }

    /// Whether there is any work besides calls: pending jobs, questions, requests, replies or reports, or an activity with a time
    /// limit.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        let waiting = self.due.len() | self.replies.len() | self.reports.len();
        waiting | self.timers.len() | self.jobs.count != 0
    }

    /// Whether the kernel can only wait: for tiles, for servers, or until a moment.
    pub fn only_waits(&self) -> bool {
        self.replies.len() | self.reports.len() | self.jobs.count == 0
    }

    /// When the next time limit ends, in nanoseconds since reset.
    pub fn next_moment(&self) -> Option<u64> {
        let firsts = self.due.first().into_iter().chain(self.timers.first());
        firsts.map(|first| first.0).min()
    }

    /// An activity.
    pub fn activity(&self, id: u16) -> Option<&Activity> {
        self.activities.get(id)
    }

    /// All activities, by their numbers.
    pub fn numbers_in_use(&self) -> impl Iterator<Item = u16> + '_ {
        self.activities.ids()
    }

    /// Free endpoints of each tile.
    pub fn free_endpoints(&self) -> impl Iterator<Item = usize> + '_ {
        self.tiles.iter().map(|tile| tile.endpoints.left())
    }

    /// Number of activities that wait, of pending replies and of undelivered words.
    pub(crate) fn unfinished(&self) -> usize {
        let all = self.activities.living();
        let waiting = all.filter(|(activity, _)| activity.waits.is_some());
        waiting.count() + self.replies.len() + self.activities.unheard()
    }

    /// The tile of an activity.
    pub fn tile_of(&self, id: u16) -> Option<&Tile> {
        self.activities.get(id).map(|a| &self.tiles[a.tile])
    }

    /// An activity that is on this tile (its number on the network).
    pub fn on(&self, id: u16, tile: u16) -> Option<&Activity> {
        let found = self.activities.get(id);
        found.filter(|a| self.tiles[a.tile].id == tile)
    }

    /// Puts the path of an activity together: adds a few components. Returns whether none is left.
    pub fn add_path(&self, path: &mut Path, id: u16) -> bool {
        path.add(&self.activities, id)
    }

    /// The capabilities.
    pub fn space(&mut self) -> &mut Space {
        &mut self.space
    }

    /// Frequency of the `time` CSR in hertz.
    pub fn timebase(&self) -> u64 {
        self.timebase
    }

    /// A caller that waits for a reply, if it still exists.
    fn waiting(&mut self, ticket: Ticket) -> Option<&mut Activity> {
        let caller = self.activities.get_mut(ticket.caller);
        caller.filter(|a| a.generation == ticket.generation)
    }

    /// Takes the next reply to a call that was not answered at once, and the right to send it if the caller still exists. An event is
    /// taken only now; if it is gone, its hearer waits again, and there is no reply.
    fn next_reply(&mut self) -> Option<(Ticket, Reply, Option<Right>)> {
        let (ticket, reply) = self.replies.pop_front()?;
        let reply = match reply {
            Ok(reply) => reply,
            Err(until) => {
                self.waiting(ticket)?;
                let event = self.next_event(ticket.caller);
                event.or_else(|| self.wait_event(ticket, until).err().map(failed))?
            }
        };
        let right = self.waiting(ticket).and_then(|a| a.parked.take());
        Some((ticket, reply, right))
    }

    /// Takes the next reply to a call that was not answered at once, without sending it.
    pub fn take_reply(&mut self) -> Option<(Ticket, Reply)> {
        while !self.replies.is_empty() {
            if let Some((ticket, reply, _)) = self.next_reply() {
                return Some((ticket, reply));
            }
        }
        None
    }

    /// The highest priority of a call that was not answered at once and can be answered now.
    pub fn reply_level(&self) -> Option<usize> {
        self.replies.highest()
    }

    /// Sends the next reply to a call that was not answered at once.
    pub fn send_reply(&mut self, hardware: &mut impl Hardware) {
        // A caller that is gone needs no reply.
        if let Some((_, reply, Some(right))) = self.next_reply() {
            hardware.answer_parked(right, &reply);
        }
    }

    /// A call that is not answered at once waits in the place of its caller and frees the kernel's slot.
    fn park(&mut self, hardware: &mut impl Hardware, ticket: Ticket) {
        if ticket.caller != KERNEL_ACTIVITY {
            let right = hardware.park(ticket.level, ticket.offset);
            if let Some(caller) = self.activities.get_mut(ticket.caller) {
                caller.parked = Some(right);
            }
        }
    }

    /// The highest priority of an activity that stopped and was not reported, if there is one.
    pub fn report_level(&self) -> Option<usize> {
        self.reports.highest()
    }

    /// The next activity that stopped, to be reported, once its path is put together: each call adds a few components.
    pub fn take_report(&mut self, path: &mut Path) -> Option<(u16, StopCause)> {
        let (id, _) = self.reports.front()?;
        if !path.add(&self.activities, *id) {
            return None;
        }
        let report = self.reports.pop_front()?;
        if let Some(said) = self.activities.get_mut(report.0) {
            said.is_unsaid = false;
        }
        Some(report)
    }

    fn answer(&mut self, ticket: Ticket, outcome: Result<Reply, SyscallError>) {
        let reply = outcome.unwrap_or_else(failed);
        self.replies.push_back(ticket.level, (ticket, Ok(reply)));
    }

    /// The place of a caller among the holders. The kernel is one while it starts the root manager.
    #[inline(always)]
    fn holder(&self, ticket: Ticket) -> Result<HolderId, SyscallError> {
        if ticket.caller == KERNEL_ACTIVITY {
            return Ok(Space::KERNEL);
        }
        let label = caller_label(ticket.caller, ticket.generation);
        let found = self.activities.caller(label);
        found.ok_or(SyscallError::NotManager)
    }

    /// Carries out a call. None: it is answered later; see [`take_reply`](Self::take_reply).
    ///
    /// # Errors
    /// Every argument is checked before anything changes; see [`SyscallError`].
    pub fn call(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        call: Syscall,
    ) -> Result<Option<Reply>, SyscallError> {
        let mut reply = Reply::new();
        let caller = (self.holder(ticket)?, &ticket);
        Ok(
            match self.call_into(hardware, caller, call.into(), &mut reply)? {
                true => Some(reply),
                false => {
                    self.park(hardware, ticket);
                    None
                }
            },
        )
    }

    #[inline(always)]
    fn call_into(
        &mut self,
        hardware: &mut impl Hardware,
        (caller, ticket): (HolderId, &Ticket),
        call: Call,
        reply: &mut Reply,
    ) -> Result<bool, SyscallError> {
        let ticket = *ticket;
        reply.clear();
        reply.push(&[SyscallError::None as u64]);
        match call {
            Call::Nothing(_) => {}
            Call::DeriveTile(c) => self.derive_tile(hardware, caller, &c)?,
            Call::DeriveKernelMemory(c) => {
                self.space
                    .derive_kernel_memory(caller, c.source, c.target, c.bytes)?;
            }
            Call::CutMemory(c) => {
                let size = c.size.checked_next_multiple_of(tiles::PAGE);
                let size = size.ok_or(SyscallError::NoMemory)?;
                let id = self
                    .space
                    .cut_memory(caller, c.source, c.target, size, tiles::PAGE)?;
                if let Object::Memory(memory) = *self.space.object(id) {
                    reply.push(&[memory.base]);
                    if self.clear(ticket, id, &memory, *reply) {
                        return Ok(LATER);
                    }
                }
            }
            Call::DeriveMemory(c) => {
                let range = (c.offset, c.size);
                self.space
                    .derive_memory(caller, c.source, c.target, range, c.rights)?;
            }
            Call::ConfigureTile(c) => {
                return later(self.configure_tile(hardware, ticket, caller, &c));
            }
            Call::CreateActivity(c) => {
                self.create(ticket, c);
                return Ok(LATER);
            }
            Call::Map(c) => return later(self.map(hardware, ticket, caller, &c)),
            Call::GiveDevice(c) => return later(self.give_device(hardware, ticket, caller, &c)),
            Call::Start(c) => return later(self.start(hardware, ticket, caller, &c)),
            Call::Stop(c) => return later(self.stop(ticket, caller, c.activity)),
            Call::WaitEvent(c) => match self.next_event(ticket.caller) {
                Some(event) => *reply = event,
                None => return later(self.wait_event(ticket, c.until)),
            },
            Call::CreateReceive(c) => {
                self.space
                    .create_receive(caller, c.target, c.slots, c.slot_size)?;
            }
            Call::CreateSend(c) => {
                self.space
                    .create_send(caller, c.source, c.target, c.label, c.credits)?;
            }
            Call::Activate(c) => {
                reply.push(&self.activate(hardware, caller, &c)?);
            }
            Call::Deactivate(c) => {
                return later(self.deactivate(ticket, caller, c.gate, c.endpoint));
            }
            Call::Delegate(c) => {
                self.named(caller, c.activity)?;
                let to = self.space.activity(caller, c.activity)?;
                self.space
                    .copy(caller, (caller, c.source), (to, c.target))?;
            }
            Call::Obtain(c) => {
                self.named(caller, c.activity)?;
                let from = self.space.activity(caller, c.activity)?;
                self.space
                    .copy(caller, (from, c.source), (caller, c.target))?;
            }
            Call::Revoke(c) => {
                let node = self.space.find(caller, c.selector)?;
                return later(self.revoke(ticket, node, c.keep != 0));
            }
            Call::CreateService(c) => {
                self.create_service(ticket.caller, caller, c.gate, c.target)?;
            }
            Call::OpenSession(c) => return later(self.open_session(hardware, ticket, caller, &c)),
            Call::Exchange(c) => return later(self.exchange(hardware, ticket, caller, &c)),
            Call::CreateSemaphore(c) => {
                self.space.create_semaphore(caller, c.target, c.value)?;
            }
            Call::SemaphoreDown(c) => {
                let (node, taken) = self.space.semaphore_down(caller, c.semaphore)?;
                if !taken {
                    self.wait(Waiting::new(ticket, Why::Semaphore(node), u64::MAX))?;
                    return Ok(LATER);
                }
            }
            Call::SemaphoreUp(c) => {
                let node = self.space.semaphore_up(caller, c.semaphore)?;
                self.wake_sleeper(node);
            }
            Call::OpenModule(c) => {
                reply.push(&[self.open_module(caller, c.modules, c.target, c.key)?]);
            }
            Call::SetPager(c) => return later(self.set_pager(ticket, caller, &c)),
            Call::MapFrom(c) => return later(self.map_from(hardware, ticket, caller, &c)),
            Call::Senders(c) => {
                reply.push(&self.senders(ticket.caller, c.endpoint)?);
            }
            Call::Report(c) => self.report(ticket.caller, c.value)?,
            Call::Query(c) => {
                let (_, object) = self.space.look(caller, c.selector)?;
                self.query(object, reply);
                if let Object::Activity { holder } = *object {
                    let number = self.number(HolderId(holder));
                    reply.push(&[number.ok_or(SyscallError::NoActivity)?.into()]);
                }
            }
            Call::Tell(c) => {
                let activity = self.named(caller, c.activity)?;
                self.tell(ticket.caller, activity, c.value)?;
            }
            Call::Usage(c) => {
                match self.space.look(caller, c.selector)?.1 {
                    Object::Tile(tile) => reply.push(&tile.used()),
                    Object::KernelMemory { least, given, .. } => reply.push(&[*given - *least]),
                    _ => reply,
                };
            }
        }
        Ok(true)
    }

    /// An activity that waits for a semaphore gets it: the first of the highest priority.
    fn wake_sleeper(&mut self, node: NodeId) {
        let first = self.space.line(node).and_then(|line| waiting::first(line));
        if let Some(id) = first
            && self.space.semaphore_take(node)
            && let Some(waiting) = self.wait_no_more(id)
        {
            self.answer(waiting.ticket, Ok(done()));
        }
    }

    fn query(&self, object: &Object, reply: &mut Reply) {
        match *object {
            Object::Service(_) => reply.push(&[ObjectKind::Service as u64]),
            Object::Session { .. } => reply.push(&[ObjectKind::Session as u64]),
            Object::Memory(m) => {
                reply.push(&[ObjectKind::Memory as u64, m.free, m.size, m.tile.into()])
            }
            Object::Receive(g) => {
                let left = g.free.count_ones();
                reply.push(&[ObjectKind::Receive as u64, left.into(), g.slots.into()])
            }
            Object::Send { .. } => reply.push(&[ObjectKind::Send as u64]),
            Object::Mapping { .. } => reply.push(&[ObjectKind::Mapping as u64]),
            Object::Activity { .. } => reply.push(&[ObjectKind::Activity as u64]),
            Object::Tile(tile) => {
                let left = |quota: Quota| match *self.space.object(tile.owner[quota as usize]) {
                    Object::Tile(owner) => owner.left.get(quota),
                    _ => 0,
                };
                reply.push(&[ObjectKind::Tile as u64]);
                // A reply holds no more than these.
                for quota in &Quota::ALL[..=Quota::PageTables as usize] {
                    reply.push(&[left(*quota)]);
                }
                reply.push(&[tile.time.idle.into()])
            }
            Object::Endpoint { .. } => reply.push(&[ObjectKind::Endpoint as u64]),
            Object::KernelMemory { left, .. } => {
                reply.push(&[ObjectKind::KernelMemory as u64, left])
            }
            Object::Semaphore { .. } => reply.push(&[ObjectKind::Semaphore as u64]),
            // Nobody can name one.
            Object::Notice(_) => reply,
        };
    }

    fn tile_index(&self, id: u16) -> Result<usize, SyscallError> {
        let index = self.places.get(usize::from(id)).copied();
        let index = index.filter(|index| *index < self.tiles.len());
        index.ok_or(SyscallError::NoTile)
    }

    fn derive_tile(
        &mut self,
        hardware: &mut impl Hardware,
        caller: HolderId,
        c: &DeriveTile,
    ) -> Result<(), SyscallError> {
        let share = |value: u64| (value != SHARE).then_some(value);
        let request = c.quotas().map(share);
        let terms = Terms {
            period: c.period,
            priority: c.priority,
            idle: c.idle != 0,
        };
        let parent = *self.space.look_tile(caller, c.source)?;
        let index = self.tile_index(parent.tile)?;
        self.check_tile_request(index, &parent, &request)?;
        self.space
            .derive_tile(caller, c.source, c.target, request, terms)?;
        self.update_bucket(hardware, index, parent.owner[Quota::NocRate as usize]);
        Ok(())
    }
}

/// The index of each tile by its number.
fn places_of(tiles: &[Tile]) -> Fixed<usize> {
    let end = tiles.iter().map(|t| usize::from(t.id) + 1).max();
    let mut places = alloc::vec![usize::MAX; end.unwrap_or(0)];
    for (index, tile) in tiles.iter().enumerate() {
        places[usize::from(tile.id)] = index;
    }
    places.into()
}

/// A call that is answered later, if it could begin.
#[inline(always)]
fn later(begun: Result<(), SyscallError>) -> Result<bool, SyscallError> {
    begun.map(|()| LATER)
}

/// A reply without results.
pub fn done() -> Reply {
    failed(SyscallError::None)
}

/// A reply with an error.
pub fn failed(error: SyscallError) -> Reply {
    let mut reply = Reply::new();
    reply.push(&[error as u64]);
    reply
}
