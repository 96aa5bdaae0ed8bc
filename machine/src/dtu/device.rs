//! The tile's device, as far as the unit knows it: its owner, and how its interrupts reach that owner.
//!
//! Why it exists: the kernel gives a device to an activity as it gives everything else, through the unit's external
//! registers. An interrupt is a message because activities wait for messages, on shared tiles, too. What it deliberately does
//! not know: what the device is.

use super::Dtu;
use super::env::Env;
use crate::noc::{Packet, PacketKind, Transaction};
use crate::types::Owner;
use bulkhead_abi::dtu::{Endpoint, NO_ENDPOINT};
use bulkhead_abi::message::Header;

/// Tag of interrupt packets, which are never answered. Commands count up from 1.
pub(super) const DEVICE_TAG: u32 = u32::MAX;

/// The holder of the tile's device, and the memory that the device may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceGrant {
    /// First virtual address.
    pub address: u64,
    /// Tile-physical address behind it.
    pub physical: u64,
    /// Bytes; 0: the device has no owner.
    pub size: u64,
    /// The activity.
    pub owner: Owner,
}

impl Dtu {
    /// Changes whenever the device is given to an activity or taken away.
    pub fn device_epoch(&self) -> u32 {
        self.device_epoch
    }

    /// The holder of the device.
    pub fn device(&self) -> DeviceGrant {
        let [address, physical, size, owner] = self.device;
        DeviceGrant {
            address,
            physical,
            size,
            owner: Owner::new(self.tile, owner as u16),
        }
    }

    /// The device interrupts: sends a one-word message to the endpoint that the kernel chose, if that endpoint belongs to the
    /// device's owner. If no slot is free, no message is sent; software that frees a slot checks the device first.
    pub fn device_interrupt<E: Env>(&mut self, env: &mut E) {
        let [.., size, owner] = self.device;
        let (activity, endpoint) = (owner as u16, (owner >> 16) as u16);
        let fits =
            matches!(self.endpoints.get(endpoint), Endpoint::Receive(r) if r.activity == activity);
        if size == 0 || !fits {
            return;
        }
        let header = Header {
            length: 8,
            sender_tile: self.tile,
            sender_endpoint: NO_ENDPOINT,
            reply_endpoint: NO_ENDPOINT,
            sender_activity: activity,
            ..Header::default()
        };
        // The message did not cross the network, and nothing reports its outcome.
        let kind = PacketKind::MessageResponse { error: 0 };
        let owner = Owner::new(self.tile, activity);
        let packet = Packet::request(
            env.now(),
            self.tile,
            self.tile,
            owner,
            DEVICE_TAG,
            Transaction::Message,
            kind,
        );
        let answer = (NO_ENDPOINT, self.endpoints.epoch());
        self.enqueue(env, packet, (endpoint, answer), header, vec![0; 8]);
    }
}
