//! Tiles: their memory, and the start of TileMux.
//!
//! Why it exists: a tile that nobody configured stays dark. What it deliberately does not know: which activities come.

use super::gates::memory_endpoint;
use super::{System, TILEMUX_NAMES};
use crate::hardware::{Hardware, Region};
use crate::load;
use crate::memory::PAGE;
use bulkhead_abi::dtu::{
    Endpoint, NO_ENDPOINT, ReceiveEndpoint, SendEndpoint, TILEMUX_ACTIVITY, TLB_READ, TLB_WRITE,
    UNLIMITED_CREDITS,
};
use bulkhead_abi::syscall::{SyscallError, module_key};
use bulkhead_abi::tilemux::{
    NOTIFY_ENDPOINT, PRINT_ENDPOINT, PRINT_REPLY, PRINT_REPLY_SLOT, PRINT_REPLY_SLOTS, PRINT_SLOT,
    REQUEST_ENDPOINT, REQUEST_REPLIES, REQUEST_SLOT, REQUEST_SLOTS, TILEMUX_BASE, TILEMUX_BUFFER,
    TILEMUX_CONFIG, TILEMUX_MEMORY, TILEMUX_PRINT_BUFFER, TileMuxConfig,
};
use zerocopy::IntoBytes;

impl System {
    /// Gives memory to a tile and starts TileMux on it if it does not run.
    ///
    /// # Errors
    /// [`SyscallError::NoTile`], [`SyscallError::NoWindow`], [`SyscallError::NoMemory`], [`SyscallError::NoModule`] if
    /// there is no usable TileMux.
    pub fn configure_tile(
        &mut self,
        hardware: &mut impl Hardware,
        tile: u16,
        memory: u64,
        memory_tile: u16,
    ) -> Result<(), SyscallError> {
        let index = self.tiles.iter().position(|t| t.id == tile);
        let index = index.ok_or(SyscallError::NoTile)?;
        let tile = &self.tiles[index];
        let window = tile.next_window().ok_or(SyscallError::NoWindow)?;
        let first = tile.windows.is_empty();
        let reserved = if first { TILEMUX_MEMORY } else { 0 };
        let size = memory
            .checked_add(reserved)
            .and_then(|size| size.checked_next_multiple_of(PAGE))
            .filter(|size| memory > 0 && *size <= bulkhead_abi::memory_map::PMP_WINDOW_SIZE)
            .ok_or(SyscallError::NoMemory)?;
        let program = self.module(&TILEMUX_NAMES).filter(|_| first);
        if first && program.is_none() {
            return Err(SyscallError::NoModule);
        }
        let region = self.take(memory_tile, size)?;
        let tile = &mut self.tiles[index];
        tile.add_window(region, reserved);
        let rights = (TLB_READ | TLB_WRITE) as u8;
        let endpoint = memory_endpoint(TILEMUX_ACTIVITY, region, rights);
        hardware.set_endpoint(tile.id, window, endpoint);
        let Some(program) = program else {
            return Ok(());
        };
        hardware.set_endpoint(
            tile.id,
            REQUEST_ENDPOINT,
            Endpoint::Receive(ReceiveEndpoint {
                activity: TILEMUX_ACTIVITY,
                reply_endpoints: REQUEST_REPLIES,
                buffer: TILEMUX_BUFFER,
                slot_size: REQUEST_SLOT,
                slots: REQUEST_SLOTS,
                ..ReceiveEndpoint::default()
            }),
        );
        hardware.set_endpoint(
            tile.id,
            NOTIFY_ENDPOINT,
            Endpoint::Send(SendEndpoint {
                activity: TILEMUX_ACTIVITY,
                target_tile: self.kernel.tile,
                target_endpoint: self.kernel.notifications,
                label: tile.id.into(),
                credits: UNLIMITED_CREDITS,
                credits_max: UNLIMITED_CREDITS,
                message_size: REQUEST_SLOT,
                credit_endpoint: NO_ENDPOINT,
                reply: false,
            }),
        );
        hardware.set_endpoint(
            tile.id,
            PRINT_ENDPOINT,
            Endpoint::Send(SendEndpoint {
                activity: TILEMUX_ACTIVITY,
                target_tile: self.kernel.tile,
                target_endpoint: self.kernel.prints,
                label: tile.id.into(),
                credits: 1,
                credits_max: 1,
                message_size: PRINT_SLOT,
                credit_endpoint: NO_ENDPOINT,
                reply: false,
            }),
        );
        hardware.set_endpoint(
            tile.id,
            PRINT_REPLY,
            Endpoint::Receive(ReceiveEndpoint {
                activity: TILEMUX_ACTIVITY,
                reply_endpoints: NO_ENDPOINT,
                buffer: TILEMUX_PRINT_BUFFER,
                slot_size: PRINT_REPLY_SLOT,
                slots: PRINT_REPLY_SLOTS,
                ..ReceiveEndpoint::default()
            }),
        );
        let config = TileMuxConfig {
            tile: tile.id.into(),
            timebase: self.timebase,
            slice: tile.slice.into(),
            policy: tile.policy.into(),
            harts: tile.harts.into(),
        };
        let id = tile.id;
        hardware.write(region, TILEMUX_CONFIG - TILEMUX_BASE, config.as_bytes());
        let memory = Region {
            size: TILEMUX_MEMORY,
            ..region
        };
        let image = load::load(hardware, program, memory, TILEMUX_BASE);
        let image = image.map_err(|_| SyscallError::NoModule)?;
        hardware.start_hart(id, image.entry);
        Ok(())
    }

    /// A boot module by the first of its names that is there.
    pub fn module(&self, names: &[&str]) -> Option<Region> {
        let mut keys = names.iter().map(|name| module_key(name.as_bytes()));
        keys.find_map(|key| self.modules.iter().find(|m| m.key == key))
            .map(|module| module.region)
    }

    /// Takes memory from a memory tile.
    pub(super) fn take(&mut self, tile: u16, size: u64) -> Result<Region, SyscallError> {
        let mut memories = self.memories.iter_mut();
        let memory = memories.find(|m| m.id == tile);
        let base = memory.and_then(|memory| memory.free.take(size));
        let base = base.ok_or(SyscallError::NoMemory)?;
        Ok(Region { tile, base, size })
    }
}
