//! Creation in steps: activities, windows and TileMuxes of tiles.
//!
//! Why it exists: an activity is made of eight capabilities, a tile of five endpoints and a program, and a caller of a higher priority
//! waits for one step, not for the whole. What it deliberately does not know: revocations. They continue at the same time, so every step
//! first checks that its objects still exist.

use super::closing::write_lines;
use super::paging::Paging;
use super::revoke::Job;
use super::tiles::PAGE;
use super::{System, done};
use crate::activity::State;
use crate::hardware::{Hardware, Region};
use crate::load::{self, Loading};
use crate::pending::{Creating, Then, Ticket};
use alloc::boxed::Box;
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE};
use bulkhead_abi::syscall::arguments::CreateActivity;
use bulkhead_abi::syscall::{
    NO_SELECTOR, SEL_ACTIVITY, SEL_KERNEL_MEMORY, SEL_MEMORY, SEL_TILE, SyscallError,
};
use bulkhead_abi::tilemux::{KERNEL_ACTIVITY, Request, TILEMUX_BASE, TILEMUX_MEMORY, table_pages};
use bulkhead_capabilities::{HolderId, NodeId, Object, Space};

/// An object under construction.
#[derive(Clone, Debug)]
pub(super) enum Making {
    /// An activity for which nothing has been done yet.
    Place(Ticket, Box<CreateActivity>),
    /// An activity gets a pager.
    Pager(Box<Paging>),
    /// An activity is in the table, and gets what every activity begins with.
    Activity(Box<Equipping>),
    /// Its TileMux knows it; its channel to the kernel is opened, the receiving end first. The flag says whether that end is open.
    Channel(u16, Creating, bool),
    /// A window, and TileMux with the first.
    Tile(Box<Lighting>),
}

/// An activity that is being made.
#[derive(Clone, Debug)]
pub(super) struct Equipping {
    pub ticket: Ticket,
    pub caller: HolderId,
    pub plan: CreateActivity,
    pub id: u16,
    /// The activity among the capabilities, with its birth.
    pub node: (NodeId, u64),
    pub holder: HolderId,
    /// The other things that TileMux must be told, the last one first.
    pub rest: [Option<Request>; 2],
    /// How far it is.
    pub stage: u8,
}

/// A tile that gets a window.
#[derive(Clone, Debug)]
pub(super) struct Lighting {
    pub ticket: Ticket,
    pub caller: HolderId,
    pub tile: usize,
    pub window: u16,
    pub region: Region,
    /// The memory, and the window among the capabilities, with their births.
    pub memory: (NodeId, u64),
    pub shown: (NodeId, u64),
    /// The region of TileMux's program, if it must be started.
    pub program: Option<Region>,
    /// Pages for page tables, and where the tile sees them.
    pub tables: u64,
    pub place: u64,
    pub stage: u8,
    /// The piece that was cut out, with its birth.
    pub cut: Option<(NodeId, u64)>,
    pub loading: Option<Box<Loading>>,
    /// Bytes of the region for which the tile's caches hold nothing old.
    pub written: u64,
}

/// Stages of [`Equipping`] after the four copies.
const MAP: u8 = 4;
const TABLES: u8 = 5;
const CHANNEL: u8 = 6;

/// Stages of [`Lighting`].
const KEEP: u8 = 0;
const READ: u8 = 1;
/// The first part of what TileMux needs exists from the beginning.
const SET_UP: u8 = 1;

impl System {
    /// Takes one step of a construction.
    pub(super) fn make_step(
        &mut self,
        hardware: &mut impl Hardware,
        making: Making,
    ) -> Option<Making> {
        let (ticket, outcome, rest) = match making {
            Making::Place(ticket, plan) => {
                if !self.space.has_place() {
                    self.space.make_place();
                    self.activities.make_place();
                    // Another creation may come first; then this one begins again.
                    return Some(Making::Place(ticket, plan));
                }
                return match self.prepare(ticket, &plan) {
                    Ok(equipping) => Some(Making::Activity(Box::new(equipping))),
                    Err(error) => {
                        self.answer(ticket, Err(error));
                        None
                    }
                };
            }
            Making::Channel(id, creating, opened) => {
                let more = self.settle_in(hardware, id, creating, opened);
                return more.then_some(Making::Channel(id, creating, true));
            }
            Making::Activity(mut equipping) => match self.equip_step(hardware, &mut equipping) {
                Ok(more) => return more.then_some(Making::Activity(equipping)),
                Err(error) => {
                    let e = *equipping;
                    self.unmake(e.ticket, e.id, e.node, error);
                    return None;
                }
            },
            Making::Pager(mut paging) => {
                let outcome = self.pager_step(hardware, &mut paging);
                if outcome.is_err() {
                    self.undo(paging.made);
                }
                (paging.ticket, outcome, Making::Pager(paging))
            }
            Making::Tile(mut lighting) => match self.light_step(hardware, &mut lighting) {
                Ok(more) => return more.then_some(Making::Tile(lighting)),
                Err(error) => {
                    self.undo_window(&lighting, error);
                    return None;
                }
            },
        };
        let more = outcome.unwrap_or_else(|error| {
            self.answer(ticket, Err(error));
            false
        });
        more.then_some(rest)
    }

    /// One step; returns whether there is another one.
    fn equip_step(
        &mut self,
        hardware: &mut impl Hardware,
        e: &mut Equipping,
    ) -> Result<bool, SyscallError> {
        if e.id == KERNEL_ACTIVITY {
            return self.found(hardware, e).map(|()| true);
        }
        let target = self.activities.get(e.id);
        let target = target.filter(|a| a.node == e.node.0 && a.state() == State::Creating);
        let is_there = self.space.is(e.node.0, e.node.1);
        let target = target.filter(|_| is_there).ok_or(SyscallError::Revoked)?;
        let (index, region, physical) = (target.tile, target.region, target.physical);
        let size = region.size;
        self.list(e.id);
        let (caller, holder, plan) = (e.caller, e.holder, e.plan);
        let pages = table_pages(size);
        match e.stage {
            0..MAP => {
                let (source, target) = [
                    (plan.target, SEL_ACTIVITY),
                    (plan.purse, SEL_KERNEL_MEMORY),
                    (plan.tile, SEL_TILE),
                    (plan.memory, SEL_MEMORY),
                ][usize::from(e.stage)];
                self.space
                    .copy(caller, (caller, source), (holder, target))?;
            }
            MAP => {
                let whole = (0, size / PAGE);
                // The window may have another owner by now.
                let there = self.tiles[index].physical(region, true);
                let there = there.filter(|at| *at == physical);
                let there = there.ok_or(SyscallError::WrongState)?;
                let window = self.tiles[index].window_at(there);
                self.space
                    .map(caller, plan.memory, holder, whole, 0, window)?;
            }
            TABLES => {
                // TileMux, which has the pages for them, is behind the first window.
                let window = self.tiles[index].shown[0];
                self.space
                    .map(caller, plan.memory, holder, (0, 0), pages, window)?;
            }
            CHANNEL => {
                let channel = self.tiles[index].endpoints.find(2);
                let channel = channel.ok_or(SyscallError::NoEndpoint)?;
                self.space.channel(caller, holder, (channel, 2))?;
                self.tiles[index].endpoints.take(channel, 2);
                if let Some(target) = self.activities.get_mut(e.id) {
                    target.syscalls = (channel, channel + 1);
                }
            }
            _ => {
                self.space.prepare(e.node.0);
                let creating = Creating {
                    ticket: e.ticket,
                    rest: e.rest,
                    reply: plan.reply,
                    introduced: false,
                };
                let request = Request::Create {
                    activity: e.id,
                    table_pages: pages,
                };
                let (level, then) = (e.ticket.level, Then::Created(Box::new(creating)));
                self.ask_tile(hardware, level, e.id, request, then);
                return Ok(false);
            }
        }
        e.stage += 1;
        Ok(true)
    }

    /// An activity that cannot be completed is removed with everything that it has, in steps; then its creator is told why. Does nothing
    /// if it is being removed already.
    pub(super) fn unmake(
        &mut self,
        ticket: Ticket,
        id: u16,
        node: (NodeId, u64),
        error: SyscallError,
    ) {
        if self.space.is_preparing(node.0, node.1) {
            self.space.ready(node.0);
        }
        let entered = self.activities.get(id).filter(|a| a.node == node.0);
        if entered.is_some() && self.space.is(node.0, node.1) {
            self.leave(id);
        }
        let begin = Job::Begin {
            waits: Some((ticket, error)),
            node,
            keep: false,
        };
        self.jobs.start(ticket.level, begin);
    }

    /// One step; returns whether there is another one.
    fn light_step(
        &mut self,
        hardware: &mut impl Hardware,
        l: &mut Lighting,
    ) -> Result<bool, SyscallError> {
        let is_there = self.space.is(l.shown.0, l.shown.1);
        if !is_there || !self.space.is(l.memory.0, l.memory.1) {
            return Err(SyscallError::Revoked);
        }
        let own = (Space::KERNEL, NO_SELECTOR);
        let memory = l.memory.0;
        let tile = &self.tiles[l.tile];
        let physical = MEMORY_BASE + u64::from(l.window) * PMP_WINDOW_SIZE;
        let place = (physical, l.region.size);
        if tile.is_stale && write_lines(hardware, tile, place, &mut l.written) {
            return Ok(true);
        }
        match l.stage {
            KEEP if l.program.is_some() || l.tables > 0 => {
                let mut size = l.tables * PAGE;
                if l.program.is_some() {
                    // TileMux must come first, and nobody may have taken its place before.
                    match self.space.object(memory) {
                        Object::Memory(range) if range.free == range.size => {}
                        _ => return Err(SyscallError::NoMemory),
                    }
                    size += TILEMUX_MEMORY;
                }
                let kept = self.space.cut(l.caller, memory, own, size, PAGE)?;
                l.cut = Some((kept, self.space.birth(kept)));
                if let Object::Memory(kept) = self.space.object(kept) {
                    let place = self.tiles[l.tile].physical(Region::of(kept), true);
                    let place = place.ok_or(SyscallError::WrongState)?;
                    l.place = place + size - l.tables * PAGE;
                }
            }
            KEEP => {}
            READ => {
                let Some(program) = l.program else {
                    self.shown(hardware, l);
                    return Ok(false);
                };
                let image = load::parse(hardware, program).map_err(|_| SyscallError::NoModule)?;
                let place = Region {
                    size: TILEMUX_MEMORY,
                    ..l.region
                };
                let loading = Loading::new(image, program, place, TILEMUX_BASE);
                l.loading = Some(Box::new(loading.map_err(|_| SyscallError::NoModule)?));
            }
            stage => {
                if self.set_up(hardware, l.tile, l.region, stage - SET_UP) {
                    l.stage += 1;
                    return Ok(true);
                }
                let job = Job::Load(Box::new(l.clone()));
                self.jobs.start(l.ticket.level, job);
                return Ok(false);
            }
        }
        l.stage += 1;
        Ok(true)
    }

    /// The window exists, and TileMux runs. TileMux is told of the pages for page tables.
    pub(super) fn shown(&mut self, hardware: &mut impl Hardware, l: &Lighting) {
        if l.tables == 0 {
            return self.answer(l.ticket, Ok(done()));
        }
        self.tiles[l.tile].tables[usize::from(l.window)] = true;
        let request = Request::Tables {
            activity: l.ticket.caller,
            physical: l.place,
            pages: l.tables,
        };
        let (to, then) = ((l.tile, l.ticket.level), Then::Reply(l.ticket));
        self.ask_tile_at(hardware, to, KERNEL_ACTIVITY, request, then);
    }

    /// A construction that cannot be completed leaves nothing behind.
    fn undo(&mut self, made: Option<(NodeId, u64)>) {
        if let Some((node, birth)) = made
            && self.space.is(node, birth)
        {
            self.discard(node);
        }
    }

    /// Closes a window whose construction failed, in steps, unless that has been done already; then its creator is told why.
    fn undo_window(&mut self, l: &Lighting, error: SyscallError) {
        self.undo(l.cut);
        let begin = Job::Begin {
            waits: Some((l.ticket, error)),
            node: l.shown,
            keep: false,
        };
        self.jobs.start(l.ticket.level, begin);
    }
}
