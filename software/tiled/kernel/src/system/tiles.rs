//! Tiles: their memory windows, token buckets, and the start of TileMux.
//!
//! Why it exists: a tile that was never configured does not run. What it deliberately does not know: which activities will run
//! there.

use super::making::{Lighting, Making};
use super::{System, Ticket};
use crate::hardware::{Hardware, Region};
use crate::tile::Tile;
use alloc::boxed::Box;
use bulkhead_abi::boot::TILE_GROUP;
use bulkhead_abi::dtu::{
    CHUNK_MAX, Endpoint, MemoryEndpoint, NO_ENDPOINT, ReceiveEndpoint, SendEndpoint,
    TILEMUX_ACTIVITY, TLB_READ, TLB_WRITE, UNLIMITED_CREDITS,
};
use bulkhead_abi::memory_map::PMP_WINDOW_SIZE;
use bulkhead_abi::syscall::arguments::ConfigureTile;
use bulkhead_abi::syscall::{MAP_READ, SyscallError, module_key};
use bulkhead_abi::tilemux::{
    KERNEL_ACTIVITY, NOTIFY_ENDPOINT, PRINT_ENDPOINT, PRINT_REPLY, PRINT_REPLY_SLOT,
    PRINT_REPLY_SLOTS, PRINT_SLOT, REQUEST_ENDPOINT, REQUEST_REPLIES, REQUEST_SLOT, REQUEST_SLOTS,
    TILEMUX_BASE, TILEMUX_BUFFER, TILEMUX_CONFIG, TILEMUX_MEMORY, TILEMUX_PRINT_BUFFER,
    TileMuxConfig, request_distance,
};
use bulkhead_abi::time::LEAST_BUDGET;
use bulkhead_capabilities::{
    HolderId, NodeId, Object, Quota, Request, Space, Tile as TileObject, UNREGULATED,
};
use zerocopy::IntoBytes;

/// Granularity of memory in bytes.
pub const PAGE: u64 = 4096;
/// Names under which the boot modules may hold TileMux.
pub const TILEMUX_NAMES: [&str; 2] = ["tilemux", "tiled/tilemux"];

impl System {
    /// Shows memory to a tile and starts TileMux on it if it does not run.
    ///
    /// # Errors
    /// [`SyscallError::NoTile`], [`SyscallError::NoWindow`], [`SyscallError::NoMemory`], [`SyscallError::NoModule`] if
    /// there is no usable TileMux, and what the capabilities refuse.
    pub fn configure_tile(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        c: &ConfigureTile,
    ) -> Result<(), SyscallError> {
        let (tile, memory, tables) = (c.tile, c.memory, c.tables);
        let index = self.tile_index(self.space.look_tile(caller, tile)?.tile)?;
        let (node, &range) = self.space.look_memory(caller, memory)?;
        let target = &self.tiles[index];
        if target.is_lost {
            return Err(SyscallError::TileLost);
        }
        let region = Region::of(&range);
        let read_only = range.rights == MAP_READ;
        let window = target.windows.iter().position(Option::is_none);
        let window = window.ok_or(SyscallError::NoWindow)? as u16;
        let aligned = region.base.is_multiple_of(PAGE) && region.size.is_multiple_of(PAGE);
        // Memory that can only be read cannot hold TileMux and page tables.
        let right = range.rights == 7 || read_only && target.is_lit && tables == 0;
        // Memory that the tile sees already takes no window.
        let right = right && target.physical(region, false).is_none();
        if !aligned || region.size > PMP_WINDOW_SIZE || !right {
            return Err(SyscallError::BadArgument);
        }
        let bytes = tables.checked_mul(PAGE).ok_or(SyscallError::NoMemory)?;
        let program = match target.is_lit {
            true if tables > 0 && !self.is_in_charge(index, caller) => {
                return Err(SyscallError::BadArgument);
            }
            true => None,
            false => {
                let program = self.module(&TILEMUX_NAMES);
                let reserved = bytes.checked_add(TILEMUX_MEMORY);
                let fits = reserved.is_some_and(|size| size <= range.free);
                if program.is_some() && (!fits || range.free != range.size || window != 0) {
                    return Err(SyscallError::NoMemory);
                }
                Some(program.ok_or(SyscallError::NoModule)?)
            }
        };
        let shown = self.space.show(caller, memory, tile, window)?;
        self.show(hardware, (index, shown), (window, read_only), region);
        if program.is_some() {
            self.tiles[index].is_lit = true;
            self.tiles[index].lit_by = caller;
            // From now on TileMux can be asked; it checks when it runs.
            self.set_up(hardware, index, region, 0);
        }
        let lighting = Lighting {
            ticket,
            caller,
            tile: index,
            window,
            region,
            memory: (node, self.space.birth(node)),
            shown: (shown, self.space.birth(shown)),
            program,
            tables,
            place: 0,
            stage: 0,
            cut: None,
            loading: None,
            written: 0,
        };
        self.jobs
            .make(ticket.level, Making::Tile(Box::new(lighting)));
        Ok(())
    }

    /// Whether an activity may give away a tile's device, and memory for its page tables: only the one that started its TileMux
    /// may, or the root manager if the kernel did.
    pub(super) fn is_in_charge(&self, index: usize, caller: HolderId) -> bool {
        let lit_by = self.tiles[index].lit_by;
        let creator = |id: u16| self.activities.get(id).map(|a| a.creator);
        let is_root = |id: u16| creator(id) == Some(KERNEL_ACTIVITY);
        lit_by == caller || lit_by == Space::KERNEL && self.number(caller).is_some_and(is_root)
    }

    /// Configures a window.
    fn show(
        &mut self,
        hardware: &mut impl Hardware,
        (index, shown): (usize, NodeId),
        (window, read_only): (u16, bool),
        region: Region,
    ) {
        let tile = &mut self.tiles[index];
        tile.read_only[usize::from(window)] = read_only;
        tile.shown[usize::from(window)] = shown;
        tile.windows[usize::from(window)] = Some(region);
        let rights = match read_only {
            true => TLB_READ,
            false => TLB_READ | TLB_WRITE,
        };
        let rights = rights as u8;
        let endpoint = memory_endpoint(TILEMUX_ACTIVITY, region, rights);
        hardware.set_endpoint(tile.id, window, endpoint);
    }

    /// Sets up a part of what TileMux needs: its endpoint for requests, its other channels, and last its configuration. Returns whether
    /// there is another part.
    pub(super) fn set_up(
        &self,
        hardware: &mut impl Hardware,
        index: usize,
        region: Region,
        part: u8,
    ) -> bool {
        let tile = &self.tiles[index];
        let send = |to: u16, (credits, shares): (u8, u32), size: u16| -> Endpoint {
            let (to, label) = ((self.kernel.tile, to), tile.id.into());
            let send = SendEndpoint::new(TILEMUX_ACTIVITY, to, label, credits, size);
            SendEndpoint { shares, ..send }.into()
        };
        let receive = |buffer: u64, slots: (u16, u8), replies: u16| -> Endpoint {
            ReceiveEndpoint::new(TILEMUX_ACTIVITY, buffer, slots, replies).into()
        };
        let notifications = self.kernel.notifications;
        let prints = self.kernel.prints + (index / TILE_GROUP) as u16;
        // A slot for the text of each tile of a group, also if it is lit again before its text is printed, and the slots for
        // notifications are divided among all tiles. If these are more than slots, two or more tiles have one slot together.
        let (place, tiles) = (index % TILE_GROUP, self.tiles.len());
        let slots = (place..TILE_GROUP).step_by(tiles);
        let ends = (
            UNLIMITED_CREDITS,
            slots.fold(0, |all, slot| all | 1 << slot),
        );
        let requests = (REQUEST_SLOT, REQUEST_SLOTS);
        let printed = (PRINT_REPLY_SLOT, PRINT_REPLY_SLOTS);
        let (endpoint, value) = match part {
            0 => (
                REQUEST_ENDPOINT,
                receive(TILEMUX_BUFFER, requests, REQUEST_REPLIES),
            ),
            1 => (NOTIFY_ENDPOINT, send(notifications, ends, REQUEST_SLOT)),
            2 => (PRINT_ENDPOINT, send(prints, (1, 1 << place), PRINT_SLOT)),
            3 => (
                PRINT_REPLY,
                receive(TILEMUX_PRINT_BUFFER, printed, NO_ENDPOINT),
            ),
            _ => {
                let config = TileMuxConfig {
                    tile: tile.id.into(),
                    timebase: self.timebase,
                    slice: tile.slice.into(),
                    policy: tile.policy.into(),
                    harts: tile.harts.into(),
                    distance: request_distance(tile.frequency),
                    line: tile.line,
                };
                hardware.write(region, TILEMUX_CONFIG - TILEMUX_BASE, config.as_bytes());
                return false;
            }
        };
        hardware.set_endpoint(tile.id, endpoint, value);
        true
    }

    /// Derives access to a module, if the caller's memory covers it.
    pub(super) fn open_module(
        &mut self,
        caller: HolderId,
        modules: u16,
        target: u16,
        key: u64,
    ) -> Result<u64, SyscallError> {
        let (_, memory) = self.space.look_memory(caller, modules)?;
        let mut all = self.modules.iter();
        let module = all.find(|m| m.key == key).copied();
        let Region { tile, base, size } = module.ok_or(SyscallError::NoModule)?.region;
        if tile != memory.tile {
            return Err(SyscallError::OutOfBounds);
        }
        let offset = base.checked_sub(memory.base);
        let offset = offset.ok_or(SyscallError::OutOfBounds)?;
        self.space
            .derive_memory(caller, modules, target, (offset, size), 1)?;
        Ok(size)
    }

    /// A boot module by the first of its names that exists.
    pub fn module(&self, names: &[&str]) -> Option<Region> {
        let mut keys = names.iter().map(|name| module_key(name.as_bytes()));
        keys.find_map(|key| self.modules.iter().find(|m| m.key == key))
            .map(|module| module.region)
    }

    /// Whether quotas may be taken from a tile capability with running activities: a bucket must keep enough for a chunk, and processor
    /// time that an activity has was promised to it.
    pub(super) fn check_tile_request(
        &self,
        index: usize,
        parent: &TileObject,
        request: &Request,
    ) -> Result<(), SyscallError> {
        let [rate, burst] = [Quota::NocRate, Quota::NocBurst].map(|q| request[q as usize]);
        if let (Some(rate), Some(burst)) = (rate, burst) {
            // A chunk is never larger than this, and must fit the bucket to leave at all.
            if rate == 0 || burst < CHUNK_MAX as u64 {
                return Err(SyscallError::BadArgument);
            }
            let owner = parent.owner[Quota::NocRate as usize];
            if let Object::Tile(from) = *self.space.object(owner)
                && self.tiles[index].bucket_of(Some(owner)).is_some()
                && (from.left.get(Quota::NocRate) <= rate
                    || from.left.get(Quota::NocBurst) < burst.saturating_add(CHUNK_MAX as u64))
            {
                return Err(SyscallError::NoQuota);
            }
        }
        let owner = parent.owner[Quota::Cpu as usize];
        let used = self.tiles[index].budgets.contains(&owner);
        match request[Quota::Cpu as usize] {
            None | Some(0) => Ok(()),
            Some(_) if used => Err(SyscallError::WrongState),
            Some(..LEAST_BUDGET) => Err(SyscallError::BadArgument),
            Some(_) => Ok(()),
        }
    }

    /// The bucket of a rate's owner follows what is left of the rate.
    pub(super) fn update_bucket(
        &mut self,
        hardware: &mut impl Hardware,
        index: usize,
        owner: NodeId,
    ) {
        let tile: &Tile = &self.tiles[index];
        let bucket = tile.buckets.iter().position(|b| *b == Some(owner));
        if let (Some(bucket), Object::Tile(from)) = (bucket, *self.space.object(owner)) {
            let [rate, burst] = [Quota::NocRate, Quota::NocBurst].map(|q| from.left.get(q));
            hardware.set_bucket(tile.id, bucket as u8, rate, burst);
        }
    }

    /// The token bucket for activities of a tile capability, and its new owner; none if its traffic is not regulated.
    pub(super) fn bucket_for(
        &self,
        index: usize,
        owner: NodeId,
    ) -> Result<Option<(u8, NodeId)>, SyscallError> {
        let Object::Tile(from) = *self.space.object(owner) else {
            return Err(SyscallError::WrongKind);
        };
        if from.given.get(Quota::NocRate) == UNREGULATED {
            return Ok(None);
        }
        let [rate, burst] = [Quota::NocRate, Quota::NocBurst].map(|q| from.left.get(q));
        if rate == 0 || burst < CHUNK_MAX as u64 {
            return Err(SyscallError::NoQuota);
        }
        let bucket = self.tiles[index].bucket(owner);
        Ok(Some((bucket.ok_or(SyscallError::NoBucket)?, owner)))
    }

    /// An activity has been made; the tile capability that claimed this bucket now has it.
    pub(super) fn take_bucket(
        &mut self,
        hardware: &mut impl Hardware,
        index: usize,
        bucket: usize,
    ) {
        let tile = &mut self.tiles[index];
        if let Some(owner) = tile.claims[bucket].take()
            && tile.buckets[bucket].replace(owner) != Some(owner)
        {
            self.update_bucket(hardware, index, owner);
        }
    }
}

/// A memory endpoint onto a region.
pub fn memory_endpoint(activity: u16, region: Region, rights: u8) -> Endpoint {
    Endpoint::Memory(MemoryEndpoint {
        activity,
        target_tile: region.tile,
        rights,
        base: region.base,
        size: region.size,
    })
}
