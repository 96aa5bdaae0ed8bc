//! Endpoints of activities: memory, receive and send gates.
//!
//! Why it exists: these are the rights that the kernel gives out, so the rules for them stand together. What it deliberately
//! does not know: why a manager wants them.

use super::System;
use crate::activity::State;
use crate::endpoints::Use;
use crate::hardware::{Hardware, Region};
use bulkhead_abi::dtu::{
    Endpoint, MESSAGE_MAX, MemoryEndpoint, NO_ENDPOINT, ReceiveEndpoint, SLOTS_MAX, SendEndpoint,
};
use bulkhead_abi::syscall::SyscallError;

impl System {
    /// A free endpoint on the tile of an activity.
    pub(super) fn free_endpoint(&self, activity: u16) -> Result<u16, SyscallError> {
        let tile = self.tile_of(activity).ok_or(SyscallError::NoActivity)?;
        tile.endpoints.find(1).ok_or(SyscallError::NoEndpoint)
    }

    /// Makes a memory endpoint for an activity.
    pub(super) fn grant_memory(
        &mut self,
        hardware: &mut impl Hardware,
        activity: u16,
        region: Region,
        rights: u8,
    ) -> Result<u16, SyscallError> {
        let endpoint = self.free_endpoint(activity)?;
        let tile = &mut self.tiles[self.activities[&activity].tile];
        tile.endpoints.set(endpoint, Use::Memory { activity });
        let value = memory_endpoint(activity, region, rights);
        hardware.set_endpoint(tile.id, endpoint, value);
        Ok(endpoint)
    }

    pub(super) fn close(
        &mut self,
        hardware: &mut impl Hardware,
        caller: u16,
        endpoint: u16,
    ) -> Result<(), SyscallError> {
        let tile = &mut self.tiles[self.activities[&caller].tile];
        if tile.endpoints.get(endpoint) != (Use::Memory { activity: caller }) {
            return Err(SyscallError::BadArgument);
        }
        hardware.invalidate_endpoint(tile.id, endpoint);
        tile.endpoints.set(endpoint, Use::Free);
        Ok(())
    }

    /// Makes a receive endpoint. The one for replies to system calls has a place of its own: the first that is made.
    ///
    /// # Errors
    /// See [`Syscall::CreateReceive`].
    pub fn receive_endpoint(
        &mut self,
        hardware: &mut impl Hardware,
        activity: u16,
        offset: u64,
        slots: u8,
        slot_size: u16,
        replies: bool,
    ) -> Result<u16, SyscallError> {
        let target = &self.activities[&activity];
        let valid = offset.is_multiple_of(64)
            && slot_size.is_multiple_of(64)
            && (64..=MESSAGE_MAX).contains(&slot_size.into())
            && (1..=SLOTS_MAX).contains(&slots.into());
        if !valid {
            return Err(SyscallError::BadArgument);
        }
        let end = offset.checked_add(u64::from(slots) * u64::from(slot_size));
        if end.is_none_or(|end| end > target.size) {
            return Err(SyscallError::OutOfBounds);
        }
        let buffer = target.memory.physical + offset;
        let (_, reserved) = target.syscalls;
        let tile = &mut self.tiles[target.tile];
        let first = tile.endpoints.get(reserved) == Use::Reply { activity };
        let rights = if replies { usize::from(slots) } else { 0 };
        let (endpoint, reply_endpoints) = if first {
            let row = tile.endpoints.find(rights.max(1));
            (reserved, row.ok_or(SyscallError::NoEndpoint)?)
        } else {
            let row = tile.endpoints.find(1 + rights);
            let endpoint = row.ok_or(SyscallError::NoEndpoint)?;
            (endpoint, endpoint + 1)
        };
        let entry = Use::Receive {
            activity,
            slots,
            slot_size,
            credits: 0,
        };
        tile.endpoints.set(endpoint, entry);
        for right in 0..rights as u16 {
            tile.endpoints
                .set(reply_endpoints + right, Use::Reply { activity });
        }
        let value = ReceiveEndpoint {
            activity,
            reply_endpoints: if replies {
                reply_endpoints
            } else {
                NO_ENDPOINT
            },
            buffer,
            slot_size,
            slots,
            ..ReceiveEndpoint::default()
        };
        hardware.set_endpoint(tile.id, endpoint, Endpoint::Receive(value));
        Ok(endpoint)
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of the call")]
    pub(super) fn send_endpoint(
        &mut self,
        hardware: &mut impl Hardware,
        caller: u16,
        activity: u16,
        target: u16,
        target_endpoint: u16,
        label: u64,
        credits: u8,
    ) -> Result<u16, SyscallError> {
        let sender = self.created(caller, activity)?.tile;
        let receiver = self.managed(caller, target)?;
        if matches!(receiver.state, State::Stopped(_)) {
            return Err(SyscallError::WrongState);
        }
        let receiver = receiver.tile;
        let receiving = self.tiles[receiver].endpoints.get(target_endpoint);
        let Use::Receive {
            activity: owner,
            slots,
            slot_size,
            credits: given,
        } = receiving
        else {
            return Err(SyscallError::NotReceiver);
        };
        if owner != target {
            return Err(SyscallError::NotReceiver);
        }
        let total = given + u16::from(credits);
        if credits == 0 || total > slots.into() {
            return Err(SyscallError::BadArgument);
        }
        let endpoint = self.free_endpoint(activity)?;
        let target_tile = self.tiles[receiver].id;
        let entry = Use::Receive {
            activity: owner,
            slots,
            slot_size,
            credits: total,
        };
        self.tiles[receiver].endpoints.set(target_endpoint, entry);
        let tile = &mut self.tiles[sender];
        let entry = Use::Send {
            activity,
            target_tile,
            target_endpoint,
        };
        tile.endpoints.set(endpoint, entry);
        let value = SendEndpoint {
            activity,
            target_tile,
            target_endpoint,
            label,
            credits,
            credits_max: credits,
            message_size: slot_size,
            credit_endpoint: NO_ENDPOINT,
            reply: false,
        };
        hardware.set_endpoint(tile.id, endpoint, Endpoint::Send(value));
        Ok(endpoint)
    }
}

/// A memory endpoint onto a region.
pub(super) fn memory_endpoint(activity: u16, region: Region, rights: u8) -> Endpoint {
    Endpoint::Memory(MemoryEndpoint {
        activity,
        target_tile: region.tile,
        rights,
        base: region.base,
        size: region.size,
    })
}
