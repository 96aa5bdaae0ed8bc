//! The data transfer unit: messages, memory transfers, protection windows and token buckets of one tile.
//!
//! Why it exists: the unit is the only way out of a tile, so it is where isolation and regulation are enforced. It follows
//! `abi::dtu` for everything that software sees. It does not know caches, queues of the network or the hart: it is driven
//! by events and asks its tile for everything else through [`Env`].

mod env;

pub use env::*;

use crate::config::DtuConfig;
use crate::noc::packet::Packet;
use crate::types::{Owner, Tick, TileId};
use bulkhead_abi::dtu::{Endpoint, TILEMUX_ACTIVITY};
use std::sync::Arc;

/// The unit of one tile.
#[derive(Debug)]
pub struct Dtu {
    tile: TileId,
    activity: u16,
    epoch: u32,
    config: DtuConfig,
    kinds: Arc<[TileKind]>,
    ticks_per_second: u64,
}

impl Dtu {
    /// A unit after reset: no endpoint, no feature but perhaps the privilege, nothing regulated, and
    /// [`TILEMUX_ACTIVITY`] current. `kinds` tells for every tile number what it is.
    pub fn new(
        config: &DtuConfig,
        tile: TileId,
        ticks_per_second: u64,
        kinds: Arc<[TileKind]>,
        privileged: bool,
    ) -> Self {
        let _ = privileged;
        Self {
            tile,
            activity: TILEMUX_ACTIVITY,
            epoch: 0,
            config: config.clone(),
            kinds,
            ticks_per_second,
        }
    }

    /// Configures an endpoint as the chip's boot ROM does, without timing. Numbers outside the file are ignored.
    pub fn set_endpoint(&mut self, index: u16, endpoint: Endpoint) {
        let _ = (index, endpoint);
        self.epoch += 1;
    }

    /// A load of the tile's hart at `offset` in the unit.
    ///
    /// # Errors
    /// If the access is not 8 bytes wide and aligned, or outside the unit.
    pub fn read_register<E: Env>(
        &mut self,
        env: &mut E,
        offset: u64,
        bytes: u8,
    ) -> Result<u64, RegisterFault> {
        let _ = (env, &self.config, &self.kinds, self.ticks_per_second);
        Err(RegisterFault { offset, bytes })
    }

    /// A store of the tile's hart at `offset` in the unit.
    ///
    /// # Errors
    /// If the access is not 8 bytes wide and aligned, or outside the unit.
    pub fn write_register<E: Env>(
        &mut self,
        env: &mut E,
        offset: u64,
        bytes: u8,
        value: u64,
    ) -> Result<WriteEffect, RegisterFault> {
        let _ = (env, value);
        Err(RegisterFault { offset, bytes })
    }

    /// The moment of an event that the unit asked for has come.
    pub fn event<E: Env>(&mut self, env: &mut E, event: DtuEvent) {
        let _ = (env, event);
    }

    /// A packet for the unit arrived: everything but the traffic of the caches.
    pub fn packet<E: Env>(&mut self, env: &mut E, packet: Packet) {
        let _ = (env, packet);
    }

    /// A local access that was pending is done.
    pub fn local_done<E: Env>(&mut self, env: &mut E, token: u32) {
        let _ = (env, token);
    }

    /// Where a tile-physical address lies: the tile behind the protection window and the address there. The caller refuses
    /// tiles that are no memory.
    ///
    /// # Errors
    /// If no window covers the address, or its rights do not allow the access.
    pub fn translate_window(
        &self,
        physical: u64,
        write: bool,
    ) -> Result<(TileId, u64), ProtectionFault> {
        Err(ProtectionFault { physical, write })
    }

    /// Changes whenever the windows change: what was derived from them is to be dropped.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Charges the token bucket of the current activity with `bytes` of cache traffic and tells when they may leave.
    /// The caller books the wait.
    pub fn charge(&mut self, now: Tick, bytes: u32) -> Tick {
        let _ = bytes;
        now
    }

    /// The tile and its current activity.
    pub fn current_owner(&self) -> Owner {
        Owner::new(self.tile, self.activity)
    }
}
