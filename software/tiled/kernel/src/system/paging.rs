//! Activities whose pages somebody else gives.
//!
//! Why it exists: a pager maps memory of its own into the address space of its client, through the kernel, and is told of faults by
//! the client's TileMux. What it deliberately does not know: which pages a pager gives, and when.
//!
//! A page belongs to whom its memory belongs: to the pager. Page tables and the endpoint belong to the client. What a pager maps
//! hangs on its memory: when that is revoked, which is so when the pager ends, the client is stopped before
//! anybody else can get the memory.

use super::requests::Then;
use super::tiles::PAGE;
use super::{Outcome, System, Ticket};
use crate::activity::State;
use crate::hardware::{Hardware, Region};
use bulkhead_abi::dtu::{Endpoint, NO_ENDPOINT, SendEndpoint, TILEMUX_ACTIVITY};
use bulkhead_abi::syscall::{MAP_PAGES_MAX, MAP_WRITE, PAGED_PAGES_MAX, SEL_MEMORY, SyscallError};
use bulkhead_abi::tilemux::{Request, table_pages};
use bulkhead_capabilities::{HolderId, NodeId, Object};

/// Mappings that hang on one memory and are looked at, at most: a pager has one memory for each client.
const MAPPINGS_MAX: usize = 64;

impl System {
    /// Gives an activity a pager.
    ///
    /// # Errors
    /// See `SetPager`.
    pub(super) fn set_pager(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        activity: u16,
        gate: u16,
        (address, pages): (u64, u64),
    ) -> Result<Outcome, SyscallError> {
        let target = self.created(activity)?;
        let (holder, index) = (target.holder, target.tile);
        if target.paged.is_some() {
            return Err(SyscallError::WrongState);
        }
        if !address.is_multiple_of(PAGE) || !(1..=PAGED_PAGES_MAX).contains(&pages) {
            return Err(SyscallError::BadArgument);
        }
        let (node, Object::Send { label, credits }) = self.space.look(caller, gate)? else {
            return Err(SyscallError::WrongKind);
        };
        let (receive, place) = self.space.receiver(node).ok_or(SyscallError::WrongState)?;
        let endpoint = self.tiles[index].endpoints.find(1);
        let endpoint = endpoint.ok_or(SyscallError::NoEndpoint)?;
        let needed = table_pages(pages * PAGE);
        // What is made belongs to the client; it is removed again if something fails.
        let range = (address / PAGE, pages);
        let mapping = self.space.map(holder, SEL_MEMORY, holder, range, needed)?;
        let made = self.tables_for(caller, holder, index, needed);
        let made = made.and_then(|(tables, physical)| {
            let active = self
                .space
                .activate(caller, gate, holder, (endpoint, 1), None);
            active.map(|_| physical).map_err(|error| {
                self.discard(tables);
                error.into()
            })
        });
        let physical = match made {
            Ok(physical) => physical,
            Err(error) => {
                self.discard(mapping);
                return Err(error);
            }
        };
        self.tiles[index].endpoints.take(endpoint, 1);
        let send = SendEndpoint {
            activity: TILEMUX_ACTIVITY,
            target_tile: place.0,
            target_endpoint: place.1,
            label,
            credits,
            credits_max: credits,
            message_size: receive.slot_size,
            credit_endpoint: NO_ENDPOINT,
            reply: false,
            epoch: 0,
        };
        hardware.set_endpoint(self.tiles[index].id, endpoint, Endpoint::Send(send));
        if let Some(target) = self.activities.get_mut(&activity) {
            target.paged = Some((address, pages, endpoint));
        }
        let request = Request::SetPager {
            activity,
            endpoint,
            address,
            pages,
            tables: physical,
            table_pages: needed,
        };
        self.ask_tile(hardware, activity, request, Then::Reply(ticket));
        Ok(Outcome::Later)
    }

    /// More pages for page tables of an activity: their node, and where its tile sees them.
    fn tables_for(
        &mut self,
        caller: HolderId,
        holder: HolderId,
        index: usize,
        pages: u64,
    ) -> Result<(NodeId, u64), SyscallError> {
        let tables = self.cut_tables(caller, holder, index, pages)?;
        let place = self.region(tables);
        let place = place.map(|region| self.tiles[index].physical(region, true));
        match place {
            Ok(Some(physical)) => Ok((tables, physical)),
            _ => {
                self.discard(tables);
                Err(SyscallError::WrongState)
            }
        }
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
        (activity, memory): (u16, u16),
        (address, offset, pages): (u64, u64, u64),
        rights: u8,
    ) -> Result<Outcome, SyscallError> {
        let target = self.activities.get(&activity);
        let target = target.ok_or(SyscallError::NoActivity)?;
        let (holder, index) = (target.holder, target.tile);
        if !matches!(target.state, State::Created | State::Running) {
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
        let (node, Object::Memory(source)) = self.space.look(caller, memory)? else {
            return Err(SyscallError::WrongKind);
        };
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
        // One mapping for all that an activity has of a memory: it says only that the one lives from the other.
        let mut mappings = self.space.dependents(node, MAPPINGS_MAX);
        let known = mappings.any(|id| {
            matches!(self.space.object(id), Object::Mapping { .. })
                && self.space.holder_of(id) == holder
        });
        drop(mappings);
        if !known && rights != 0 {
            let range = (start / PAGE, range);
            self.space.map(caller, memory, holder, range, 0)?;
        }
        let request = Request::MapPages {
            activity,
            address,
            physical,
            pages,
            rights,
        };
        self.ask_tile(hardware, activity, request, Then::Reply(ticket));
        Ok(Outcome::Later)
    }

    /// The activity that runs and has its pager behind an endpoint of its tile's TileMux.
    pub(super) fn paged_by(&self, tile: usize, endpoint: u16) -> Option<u16> {
        let mut here = self.tiles[tile].activities.iter().copied();
        here.find(|id| {
            self.activities.get(id).is_some_and(|a| {
                a.paged.is_some_and(|(_, _, own)| own == endpoint) && a.state == State::Running
            })
        })
    }
}
