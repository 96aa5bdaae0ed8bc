//! Devices of tiles: which activity has one, and the memory that it may use.
//!
//! Why it exists: a device reads and writes memory by itself, so its driver must not be able to direct it elsewhere: the tile's
//! unit lets it see only a part of the driver's own memory, at the driver's own addresses. What it deliberately does not know: what
//! the device is.

use super::System;
use super::tiles::PAGE;
use crate::activity::State;
use crate::hardware::Hardware;
use crate::pending::{Then, Ticket};
use bulkhead_abi::memory_map::NETWORK_CARD_BASE;
use bulkhead_abi::network::CARD_ADDRESS;
use bulkhead_abi::syscall::arguments::GiveDevice;
use bulkhead_abi::syscall::{MAP_READ, MAP_WRITE, SyscallError};
use bulkhead_abi::tilemux::Request;
use bulkhead_capabilities::HolderId;

impl System {
    /// Gives the device of a tile to an activity.
    ///
    /// # Errors
    /// [`SyscallError::WrongState`] if another activity has it, the activity has been started, or the caller has not started the
    /// tile's TileMux; [`SyscallError::NoTile`] if the activity is on another tile, [`SyscallError::NotReceiver`] if the endpoint
    /// is not one of its own for receiving.
    pub(super) fn give_device(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        c: &GiveDevice,
    ) -> Result<(), SyscallError> {
        let activity = self.named(caller, c.activity)?;
        let (endpoint, address, offset, size) = (c.endpoint, c.address, c.offset, c.size);
        let tile = self.space.look_tile(caller, c.tile)?.tile;
        let index = self.tile_index(tile)?;
        let target = self.activities.get(activity);
        let target = target.ok_or(SyscallError::NoActivity)?;
        if target.tile != index {
            return Err(SyscallError::NoTile);
        }
        // Every activity on a tile has a capability for it, but only the activity in charge of the tile may give the device.
        if target.state() != State::Created
            || !self.is_in_charge(index, caller)
            || self.tiles[index].device.is_some()
        {
            return Err(SyscallError::WrongState);
        }
        let whole = [address, offset, size]
            .iter()
            .all(|n| n.is_multiple_of(PAGE));
        let end = offset.checked_add(size);
        if !whole
            || size == 0
            || end.is_none_or(|end| end > target.region.size)
            || address.checked_add(size).is_none()
        {
            return Err(SyscallError::OutOfBounds);
        }
        let (holder, physical) = (target.holder, target.physical + offset);
        let id = self.tiles[index].id;
        let gate = self.tiles[index].endpoints.gate(endpoint);
        if gate.is_none_or(|gate| self.space.holder_of(gate) != holder) {
            return Err(SyscallError::NotReceiver);
        }
        hardware.give_device(id, (activity, endpoint), (address, physical, size));
        self.tiles[index].device = Some(activity);
        let request = Request::Map {
            activity,
            address: CARD_ADDRESS,
            physical: NETWORK_CARD_BASE,
            pages: 1,
            rights: MAP_READ | MAP_WRITE,
        };
        let then = Then::Reply(ticket);
        self.ask_tile(hardware, ticket.level, activity, request, then);
        Ok(())
    }

    /// An activity has stopped: its device accesses no memory from now on.
    pub(super) fn take_device(&mut self, hardware: &mut impl Hardware, activity: u16) {
        let index = self.activities.get(activity).map(|a| a.tile);
        let tile = index.and_then(|index| self.tiles.get_mut(index));
        if let Some(tile) = tile.filter(|tile| tile.device == Some(activity)) {
            tile.device = None;
            hardware.give_device(tile.id, (0, 0), (0, 0, 0));
        }
    }
}
