//! Gates and memory on endpoints.
//!
//! Why it exists: this is where a capability becomes an endpoint, which the unit enforces. What it deliberately does not
//! know: which activities may have it; the capabilities know that.

use super::tiles::memory_endpoint;
use super::{System, Ticket};
use crate::hardware::{Hardware, Region};
use bulkhead_abi::dtu::{Endpoint, NO_ENDPOINT, ReceiveEndpoint, SendEndpoint};
use bulkhead_abi::memory_map::PMP_WINDOWS;
use bulkhead_abi::syscall::arguments::Activate;
use bulkhead_abi::syscall::{ANY_ENDPOINT, SyscallError};
use bulkhead_capabilities::{HolderId, NodeId, Object};

/// Most endpoints of one capability that `Deactivate` checks.
const ACTIVE_MAX: usize = 64;

impl System {
    /// Makes a gate or memory usable on an endpoint, perhaps a certain one; if it already is, nothing happens (and the
    /// result gives no bytes). Results: endpoint, bytes.
    pub(super) fn activate(
        &mut self,
        hardware: &mut impl Hardware,
        caller: HolderId,
        c: &Activate,
    ) -> Result<[u64; 2], SyscallError> {
        let (gate, wanted, offset, replies) = (c.gate, c.endpoint, c.offset, c.replies != 0);
        let id = self.named(caller, c.activity)?;
        let (holder, index, own) = {
            let target = self.activities.get(id);
            let target = target.ok_or(SyscallError::NoActivity)?;
            let own = (target.physical, target.region.size);
            (target.holder, target.tile, own)
        };
        let (node, object) = self.space.look(caller, gate)?;
        let certain = Some(wanted).filter(|wanted| *wanted != ANY_ENDPOINT);
        let known = certain.and_then(|wanted| self.active(node, Some(holder), wanted));
        if known.is_some_and(|known| !self.space.is_disconnected(known)) {
            // A manager that connects an activity again cannot know whether it is connected already.
            return Ok([wanted.into(), 0]);
        }
        let (mut value, count, buffer, bytes) = match *object {
            Object::Memory(memory) => {
                let region = Region::of(&memory);
                let rights = memory.rights & 3;
                if rights == 0 {
                    return Err(SyscallError::BadArgument);
                }
                (memory_endpoint(id, region, rights), 1, None, memory.size)
            }
            Object::Send { label, shares } => {
                let (receive, place) = self.space.receiver(node).ok_or(SyscallError::WrongState)?;
                let send = SendEndpoint::of_gate(id, place, (label, shares), receive.slot_size);
                (send.into(), 1, None, receive.slot_size.into())
            }
            Object::Receive(receive) => {
                let (memory, range) = self.space.look_memory(caller, c.memory)?;
                let size = u64::from(receive.slots) * u64::from(receive.slot_size);
                let end = offset.checked_add(size);
                if end.is_none_or(|end| end > range.size) || range.rights & 2 == 0 {
                    return Err(SyscallError::OutOfBounds);
                }
                let region = Region {
                    tile: range.tile,
                    base: range.base + offset,
                    size,
                };
                let physical = self.tiles[index].physical(region, true);
                let physical = physical.ok_or(SyscallError::WrongState)?;
                if !physical.is_multiple_of(64) {
                    return Err(SyscallError::BadArgument);
                }
                // Its own memory: then the activity ends before the window through which the unit writes there.
                let within = physical.checked_sub(own.0);
                if within.is_none_or(|within| within + size > own.1) {
                    return Err(SyscallError::OutOfBounds);
                }
                let count = 1 + if replies { receive.slots.into() } else { 0 };
                let slots = (receive.slot_size, receive.slots);
                let value = ReceiveEndpoint::new(id, physical, slots, NO_ENDPOINT);
                let bytes = receive.slot_size.into();
                (value.into(), count, Some(memory), bytes)
            }
            _ => return Err(SyscallError::WrongKind),
        };
        let tile = &mut self.tiles[index];
        let endpoint = if let Some(known) = known {
            self.space.connect(known)?;
            wanted
        } else {
            let endpoint = match wanted {
                ANY_ENDPOINT => tile.endpoints.find(count),
                wanted => Some(wanted).filter(|first| tile.endpoints.are_free(*first, count)),
            };
            let endpoint = endpoint.ok_or(SyscallError::NoEndpoint)?;
            let row = (endpoint, count);
            let active = self.space.activate(caller, gate, holder, row, buffer)?;
            if let Endpoint::Receive(receive) = &mut value {
                tile.endpoints.receives(endpoint, Some(active));
                if replies {
                    receive.reply_endpoints = endpoint + 1;
                }
            }
            tile.endpoints.take(endpoint, count);
            endpoint
        };
        hardware.set_endpoint(tile.id, endpoint, value);
        Ok([endpoint.into(), bytes])
    }

    /// The capability through which a gate has this endpoint, of this activity or of any.
    fn active(&self, gate: NodeId, holder: Option<HolderId>, wanted: u16) -> Option<NodeId> {
        let is_wanted = |object: &Object| matches!(*object, Object::Endpoint { endpoint, .. } if endpoint == wanted && u64::from(endpoint) >= PMP_WINDOWS);
        let mut active = self.space.dependents(gate, ACTIVE_MAX);
        active.find(|id| {
            is_wanted(self.space.object(*id))
                && holder.is_none_or(|holder| self.space.holder_of(*id) == holder)
        })
    }

    /// The senders to a receive endpoint of the caller: how many endpoints lead there, and how many did that are gone.
    pub(super) fn senders(&self, id: u16, endpoint: u16) -> Result<[u64; 2], SyscallError> {
        let activity = self.activities.get(id).ok_or(SyscallError::NoActivity)?;
        let node = self.tiles[activity.tile].endpoints.gate(endpoint);
        let node = node.filter(|node| self.space.holder_of(*node) == activity.holder);
        let gate = node.and_then(|node| self.space.origin(node));
        match gate.map(|gate| self.space.object(gate)) {
            Some(Object::Receive(gate)) => Ok([gate.senders.into(), gate.departed.into()]),
            _ => Err(SyscallError::NoEndpoint),
        }
    }

    pub(super) fn deactivate(
        &mut self,
        ticket: Ticket,
        caller: HolderId,
        gate: u16,
        endpoint: u16,
    ) -> Result<(), SyscallError> {
        let node = self.space.find(caller, gate)?;
        let found = self.active(node, None, endpoint);
        self.revoke(ticket, found.ok_or(SyscallError::NoEndpoint)?, false)
    }
}
