//! Activities whose pages a pager supplies.
//!
//! Why it exists: a pager maps memory of its own into the address space of its client, through the kernel, and gets faults from the
//! client's TileMux. What it deliberately does not know: which pages a pager supplies, and when.
//!
//! A page belongs to the owner of its memory, the pager. Page tables and the endpoint belong to the client. A mapped page depends
//! on the pager's memory: when that is revoked, as happens when the pager ends, the client is stopped before another activity can
//! get the memory.

use super::System;
use super::making::Making;
use super::tiles::PAGE;
use crate::activity::State;
use crate::hardware::{Hardware, Region};
use crate::pending::{Then, Ticket};
use alloc::boxed::Box;
use bulkhead_abi::dtu::{SendEndpoint, TILEMUX_ACTIVITY};
use bulkhead_abi::syscall::arguments::{MapFrom, SetPager};
use bulkhead_abi::syscall::{MAP_PAGES_MAX, MAP_WRITE, PAGED_PAGES_MAX, SEL_MEMORY, SyscallError};
use bulkhead_abi::tilemux::{Request, table_pages};
use bulkhead_capabilities::{HolderId, NodeId, Object};

/// Most mappings of one memory that are checked: a pager has one memory for each client.
const MAPPINGS_MAX: usize = 64;

/// An activity that gets a pager.
#[derive(Clone, Debug)]
pub(super) struct Paging {
    pub ticket: Ticket,
    caller: HolderId,
    activity: u16,
    /// The activity's node and its birth.
    node: (NodeId, u64),
    plan: SetPager,
    /// The mapping, with its birth.
    pub made: Option<(NodeId, u64)>,
}

impl System {
    /// Gives an activity a pager, in steps.
    ///
    /// # Errors
    /// See `SetPager`.
    pub(super) fn set_pager(
        &mut self,
        ticket: Ticket,
        caller: HolderId,
        c: &SetPager,
    ) -> Result<(), SyscallError> {
        let activity = self.named(caller, c.activity)?;
        let target = self.created(activity)?;
        let node = target.node;
        if target.paged.is_some() {
            return Err(SyscallError::WrongState);
        }
        if !c.address.is_multiple_of(PAGE) || !(1..=PAGED_PAGES_MAX).contains(&c.pages) {
            return Err(SyscallError::BadArgument);
        }
        let paging = Paging {
            ticket,
            caller,
            activity,
            node: (node, self.space.birth(node)),
            plan: *c,
            made: None,
        };
        let making = Making::Pager(Box::new(paging));
        self.make(ticket, making);
        Ok(())
    }

    /// Takes one step: the range's part of the activity's quota, or the endpoint. Returns whether there is another step.
    pub(super) fn pager_step(
        &mut self,
        hardware: &mut impl Hardware,
        p: &mut Paging,
    ) -> Result<bool, SyscallError> {
        if !self.space.is(p.node.0, p.node.1) {
            return Err(SyscallError::Revoked);
        }
        // Meanwhile another caller may have given it a pager, or started it.
        let target = self.created(p.activity)?;
        let (holder, index) = (target.holder, target.tile);
        if target.paged.is_some() {
            return Err(SyscallError::WrongState);
        }
        let needed = table_pages(p.plan.pages * PAGE);
        if p.made.is_none() {
            // The new objects belong to the client; they are removed again if something fails.
            let range = (p.plan.address / PAGE, p.plan.pages);
            let made = self
                .space
                .map(holder, SEL_MEMORY, holder, range, needed, NodeId::NONE)?;
            p.made = Some((made, self.space.birth(made)));
            return Ok(true);
        }
        let (node, &Object::Send { label, shares }) = self.space.look(p.caller, p.plan.gate)?
        else {
            return Err(SyscallError::WrongKind);
        };
        let (receive, place) = self.space.receiver(node).ok_or(SyscallError::WrongState)?;
        let endpoint = self.tiles[index].endpoints.find(1);
        let endpoint = endpoint.ok_or(SyscallError::NoEndpoint)?;
        self.space
            .activate(p.caller, p.plan.gate, holder, (endpoint, 1), None)?;
        self.tiles[index].endpoints.take(endpoint, 1);
        let size = receive.slot_size;
        let send = SendEndpoint::of_gate(TILEMUX_ACTIVITY, place, (label, shares), size);
        hardware.set_endpoint(self.tiles[index].id, endpoint, send.into());
        if let Some(target) = self.activities.get_mut(p.activity) {
            target.paged = Some((p.plan.address, p.plan.pages, endpoint));
        }
        let request = Request::SetPager {
            activity: p.activity,
            endpoint,
            address: p.plan.address,
            pages: p.plan.pages,
            table_pages: needed,
        };
        let (level, then) = (p.ticket.level, Then::Reply(p.ticket));
        self.ask_tile(hardware, level, p.activity, request, then);
        Ok(false)
    }

    /// Maps memory of the caller into an activity that has a pager, or takes pages back.
    ///
    /// # Errors
    /// See `MapFrom`.
    pub(super) fn map_from(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        c: &MapFrom,
    ) -> Result<(), SyscallError> {
        let activity = self.named(caller, c.activity)?;
        let MapFrom {
            memory,
            address,
            offset,
            pages,
            rights,
            ..
        } = *c;
        let target = self.activities.get(activity);
        let target = target.ok_or(SyscallError::NoActivity)?;
        let (holder, index) = (target.holder, target.tile);
        if !matches!(target.state(), State::Created | State::Running) {
            return Err(SyscallError::WrongState);
        }
        let (start, range, _) = target.paged.ok_or(SyscallError::WrongState)?;
        let valid = (1..=MAP_PAGES_MAX).contains(&pages)
            && rights <= 7
            && address.is_multiple_of(PAGE)
            && offset.is_multiple_of(PAGE);
        if !valid {
            return Err(SyscallError::BadArgument);
        }
        let (node, source) = self.space.look_memory(caller, memory)?;
        let size = pages * PAGE;
        let ends = |offset: u64, all: u64| offset.checked_add(size).is_some_and(|end| end <= all);
        let within = address.checked_sub(start);
        if within.is_none_or(|within| !ends(within, range * PAGE))
            || !ends(offset, source.size)
            || rights & !source.rights != 0
        {
            return Err(SyscallError::OutOfBounds);
        }
        let region = Region {
            tile: source.tile,
            base: source.base + offset,
            size,
        };
        let physical = self.tiles[index].physical(region, rights & MAP_WRITE != 0);
        let physical = physical.ok_or(SyscallError::WrongState)?;
        if !physical.is_multiple_of(PAGE) {
            return Err(SyscallError::BadArgument);
        }
        let window = self.tiles[index].window_at(physical);
        // One mapping for everything that an activity has of a memory through a window: it only records that one depends on the
        // other.
        let mut mappings = self.space.dependents(node, MAPPINGS_MAX);
        let known = mappings.any(|id| {
            matches!(self.space.object(id), Object::Mapping { .. })
                && self.space.holder_of(id) == holder
                && self.space.window_of(id) == window
        });
        drop(mappings);
        if !known && rights != 0 {
            let range = (start / PAGE, range);
            self.space.map(caller, memory, holder, range, 0, window)?;
        }
        let request = Request::MapPages {
            activity,
            address,
            physical,
            pages,
            rights,
        };
        let then = Then::Reply(ticket);
        self.ask_tile(hardware, ticket.level, activity, request, then);
        Ok(())
    }

    /// The activity that runs and has its pager behind an endpoint of its tile's TileMux.
    pub(super) fn paged_by(&self, tile: usize, endpoint: u16) -> Option<u16> {
        let mut here = self.tiles[tile].activities.iter().copied();
        here.find(|id| {
            let paged = self.activities.get(*id).and_then(|a| a.paged);
            paged.is_some_and(|(_, _, own)| own == endpoint) && self.runs(*id)
        })
    }
}
