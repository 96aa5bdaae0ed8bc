//! Deriving resources: tiles with their quotas, kernel memory, memory; activities, mappings, semaphores.
//!
//! Why it exists: this is where quota moves. What it deliberately does not know: how a quota is enforced.

use crate::node::{EXTRA2, NO_SELECTOR, NodeId};
use crate::object::{Amounts, Line, Memory, Object, Quota, Request, Tile, UNREGULATED};
use crate::space::{HolderId, Plan, Space};
use crate::{Error, PIECES_MAX, Result, Terms};

/// Takes `amount` from what is left; an unregulated quota always has enough.
pub(crate) fn take(left: u64, amount: u64) -> Option<u64> {
    if amount == UNREGULATED {
        return None;
    }
    match left {
        UNREGULATED => Some(UNREGULATED),
        left => left.checked_sub(amount),
    }
}

/// Puts back what [`take`] took.
pub(crate) fn give(left: u64, amount: u64) -> u64 {
    match left {
        UNREGULATED => UNREGULATED,
        left => left.saturating_add(amount),
    }
}

/// Records the lowest level so far.
fn note(tile: &mut Tile) {
    let quotas = [Quota::Endpoints, Quota::PageTables];
    for (least, quota) in tile.least.iter_mut().zip(quotas) {
        let left = u16::try_from(tile.left.get(quota)).unwrap_or(u16::MAX);
        *least = (*least).min(left);
    }
}

impl Space {
    pub(crate) fn tile(&self, id: NodeId) -> Result<&Tile> {
        match self.object(id) {
            Object::Tile(tile) => Ok(tile),
            _ => Err(Error::WrongKind),
        }
    }

    pub(crate) fn memory(&self, id: NodeId) -> Result<&Memory> {
        match self.object(id) {
            Object::Memory(memory) => Ok(memory),
            _ => Err(Error::WrongKind),
        }
    }

    /// Memory by its own node, if there is one.
    pub(crate) fn piece(&mut self, id: NodeId) -> Option<&mut Memory> {
        match &mut self.nodes.get_mut(id.index())?.object {
            Object::Memory(memory) => Some(memory),
            _ => None,
        }
    }

    /// What would be left of a quota of a tile capability without `amount`, and the node that owns the quota: for [`Self::spend`].
    pub(crate) fn afford(&self, tile: NodeId, quota: Quota, amount: u64) -> Result<(NodeId, u64)> {
        let owner = self.tile(tile)?.owner[quota as usize];
        let rest = take(self.tile(owner)?.left.get(quota), amount);
        Ok((owner, rest.ok_or(Error::NoQuota)?))
    }

    /// Leaves `rest` of a quota in the node that owns it.
    pub(crate) fn spend(&mut self, quota: Quota, (owner, rest): (NodeId, u64)) {
        if let Object::Tile(tile) = &mut self.nodes[owner.index()].object {
            tile.left.set(quota, rest);
            note(tile);
        }
    }

    /// Derives a tile capability that has the quotas in `request` for itself, moved out of `source`, and shares the others with it. The
    /// processor time is given in nanoseconds per period; rate and burst come together.
    ///
    /// # Errors
    /// [`Error::NoQuota`] if one of them exceeds what is left or what the source may give, [`Error::OutOfBounds`] if a request makes no
    /// sense, and the errors that every operation has for its operands.
    pub fn derive_tile(
        &mut self,
        caller: HolderId,
        source: u16,
        target: u16,
        request: Request,
        terms: Terms,
    ) -> Result<NodeId> {
        let origin = self.find(caller, source)?;
        let parent = *self.tile(origin)?;
        let mut object = Tile {
            left: Amounts::default(),
            given: Amounts::default(),
            least: [u16::MAX; 2],
            time: self.narrowed(&parent, request[Quota::Cpu as usize], terms)?,
            ..parent
        };
        if request[Quota::NocRate as usize].is_some() != request[Quota::NocBurst as usize].is_some()
        {
            return Err(Error::OutOfBounds);
        }
        for (quota, wanted) in Quota::ALL.iter().copied().zip(request) {
            let Some(amount) = wanted else { continue };
            self.visit(1);
            let owner = parent.owner[quota as usize];
            let taken = match quota {
                Quota::Cpu => object.time.taken(&self.tile(owner)?.time)?,
                _ => amount,
            };
            self.afford(origin, quota, taken)?;
            object.given.set(quota, taken);
            object.left.set(quota, amount);
            object.owner[quota as usize] = NodeId::NONE;
        }
        let id = self.make(Plan::own(caller, origin, target, Object::Tile(object)))?;
        for quota in Quota::ALL.iter().copied() {
            if object.owner[quota as usize].is_some() {
                continue;
            }
            if let Object::Tile(own) = &mut self.nodes[id.index()].object {
                own.owner[quota as usize] = id;
            }
            // Checked above.
            if let Ok(rest) = self.afford(origin, quota, object.given.get(quota)) {
                self.spend(quota, rest);
            }
        }
        Ok(id)
    }

    /// Moves `bytes` of kernel memory from a purse to a new one.
    ///
    /// # Errors
    /// [`Error::NoQuota`] if the purse has less, and the errors that every operation has for its operands.
    pub fn derive_kernel_memory(
        &mut self,
        caller: HolderId,
        source: u16,
        target: u16,
        bytes: u64,
    ) -> Result<NodeId> {
        let origin = self.find(caller, source)?;
        let Object::KernelMemory { left, .. } = *self.object(origin) else {
            return Err(Error::WrongKind);
        };
        // The new purse itself is charged, too, possibly to the same purse.
        let cost = if self.owner(self.purse(caller)?) == self.owner(origin) {
            Self::NODE_COST
        } else {
            0
        };
        let needed = bytes.checked_add(cost).ok_or(Error::NoQuota)?;
        left.checked_sub(needed).ok_or(Error::NoQuota)?;
        let id = self.make(Plan::own(caller, origin, target, Object::purse(bytes)))?;
        if let Object::KernelMemory { left, least, .. } = self.object_mut(origin) {
            // Checked above, together with the charge for the new purse.
            *left -= bytes;
            *least = (*least).min(*left);
        }
        Ok(id)
    }

    /// Cuts `size` bytes, aligned to `align`, out of memory for exclusive use, from the first gap that is large enough.
    ///
    /// # Errors
    /// [`Error::NoMemory`] if there is no such gap or there are too many pieces, [`Error::OutOfBounds`] for a size of 0, an alignment
    /// that is no power of two, or memory without the right to write, and the errors that every operation has for its operands.
    pub fn cut_memory(
        &mut self,
        caller: HolderId,
        source: u16,
        target: u16,
        size: u64,
        align: u64,
    ) -> Result<NodeId> {
        let origin = self.find(caller, source)?;
        self.cut(caller, origin, (caller, target), size, align)
    }

    /// As [`cut_memory`](Self::cut_memory), but the memory is given by its number, and the piece may be for another holder or have no
    /// name (`u16::MAX`). The payer must hold the memory or something that `to` depends on.
    ///
    /// # Errors
    /// As [`cut_memory`](Self::cut_memory).
    pub fn cut(
        &mut self,
        payer: HolderId,
        origin: NodeId,
        to: (HolderId, u16),
        size: u64,
        align: u64,
    ) -> Result<NodeId> {
        if size == 0 || !align.is_power_of_two() {
            return Err(Error::OutOfBounds);
        }
        let pool = *self.memory(origin)?;
        let owner = self.owner(origin);
        // A piece is cleared before another holder gets it, and clearing is writing.
        if pool.rights & 2 == 0 {
            return Err(Error::OutOfBounds);
        }
        if pool.pieces >= PIECES_MAX || size > pool.free {
            return Err(Error::NoMemory);
        }
        let end = pool.base + pool.size;
        let mut before = NodeId::NONE;
        let mut after = pool.first;
        let mut start = pool.base.checked_next_multiple_of(align);
        let base = loop {
            self.visit(1);
            let limit = match after.is_some() {
                true => self.memory(after)?.base,
                false => end,
            };
            let fits = start.and_then(|s| s.checked_add(size));
            if let (Some(start), Some(fits)) = (start, fits)
                && fits <= limit
            {
                break start;
            }
            if !after.is_some() {
                return Err(Error::NoMemory);
            }
            let piece = self.memory(after)?;
            start = (piece.base + piece.size).checked_next_multiple_of(align);
            before = after;
            after = piece.next;
        };
        let piece = Object::Memory(Memory {
            next: after,
            previous: before,
            cut_from: owner,
            ..Memory::new(pool.tile, base, size, pool.rights)
        });
        let id = self.make(Plan {
            payer,
            ..Plan::own(to.0, origin, to.1, piece)
        })?;
        if let Some(next) = self.piece(after) {
            next.previous = id;
        }
        if let Some(previous) = self.piece(before) {
            previous.next = id;
        }
        if let Some(pool) = self.piece(owner) {
            if !before.is_some() {
                pool.first = id;
            }
            pool.free -= size;
            pool.pieces += 1;
        }
        Ok(id)
    }

    /// Derives access to a part of memory with some of its rights. The parent keeps its own access.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] for more than the parent has, and the errors that every operation has for its operands.
    pub fn derive_memory(
        &mut self,
        caller: HolderId,
        source: u16,
        target: u16,
        (offset, size): (u64, u64),
        rights: u8,
    ) -> Result<NodeId> {
        let origin = self.find(caller, source)?;
        let parent = self.memory(origin)?;
        let end = offset.checked_add(size).ok_or(Error::OutOfBounds)?;
        if size == 0 || end > parent.size || rights == 0 || rights & !parent.rights != 0 {
            return Err(Error::OutOfBounds);
        }
        let part = Memory::new(parent.tile, parent.base + offset, size, rights);
        self.make(Plan::own(caller, origin, target, Object::Memory(part)))
    }

    /// Creates an activity on a tile, in a place of the quota of the tile capability, with a purse that pays for what the activity will
    /// cause. The activity ends when the tile capability, the purse or its memory is revoked.
    ///
    /// # Errors
    /// [`Error::NoQuota`] without a place on the tile, [`Error::NoPlace`], and the errors that every operation has for its operands.
    pub fn create_activity(
        &mut self,
        caller: HolderId,
        target: u16,
        tile: u16,
        purse: u16,
        memory: u16,
    ) -> Result<(NodeId, HolderId)> {
        let tile = self.find(caller, tile)?;
        let rest = self.afford(tile, Quota::Activities, 1)?;
        let purse = self.find(caller, purse)?;
        if !matches!(self.object(purse), Object::KernelMemory { .. }) {
            return Err(Error::WrongKind);
        }
        let memory = self.find(caller, memory)?;
        self.memory(memory)?;
        let place = self.find_place().ok_or(Error::NoPlace)?;
        let activity = Object::Activity { holder: place };
        let id = self.make(Plan {
            extra: [purse, memory],
            ..Plan::own(caller, tile, target, activity)
        })?;
        self.spend(Quota::Activities, rest);
        self.take_place();
        let holder = &mut self.holders[usize::from(place)];
        holder.node = id;
        holder.purse = purse;
        holder.tile = tile;
        Ok((id, HolderId(place)))
    }

    /// The activity that a selector names.
    ///
    /// # Errors
    /// [`Error::WrongKind`], and the errors that every operation has for its operands.
    pub fn activity(&self, caller: HolderId, selector: u16) -> Result<HolderId> {
        match *self.look(caller, selector)?.1 {
            Object::Activity { holder } => Ok(HolderId(holder)),
            _ => Err(Error::WrongKind),
        }
    }

    /// The tile capability that an activity was started with.
    ///
    /// # Errors
    /// [`Error::NoHolder`].
    pub fn tile_of(&self, holder: HolderId) -> Result<NodeId> {
        self.purse(holder)?;
        Ok(self.holders[usize::from(holder.0)].tile)
    }

    /// Maps memory into an activity: `pages` pages from `address` on. The `tables` pages of page tables for them come from the quota of
    /// its tile capability. If the memory is a window, the activity sees the pages through that window, and ends before the window
    /// does.
    ///
    /// # Errors
    /// [`Error::NoQuota`] without that many page tables, and the errors that every operation has for its operands.
    pub fn map(
        &mut self,
        caller: HolderId,
        memory: u16,
        activity: HolderId,
        (address, pages): (u64, u64),
        tables: u64,
        window: NodeId,
    ) -> Result<NodeId> {
        let origin = self.find(caller, memory)?;
        self.memory(origin)?;
        let tile = self.tile_of(activity)?;
        let rest = self.afford(tile, Quota::PageTables, tables)?;
        let mapping = Object::Mapping {
            address,
            pages,
            tables,
        };
        let id = self.make(Plan {
            extra: [tile, window],
            payer: caller,
            ..Plan::own(activity, origin, NO_SELECTOR, mapping)
        })?;
        self.spend(Quota::PageTables, rest);
        Ok(id)
    }

    /// The window through which a mapping is seen.
    pub fn window_of(&self, mapping: NodeId) -> NodeId {
        self.nodes[mapping.index()].edges[EXTRA2].to
    }

    /// Whether a node, or one that it was derived or copied from, belongs to a holder.
    pub fn comes_from(&self, node: NodeId, holder: HolderId) -> bool {
        self.visit(self.nodes[node.index()].depth.into());
        let mut all = core::iter::successors(Some(node), |node| self.origin(*node));
        all.any(|node| self.holder_of(node) == holder)
    }

    /// Creates a semaphore.
    ///
    /// # Errors
    /// The errors that every operation has for its operands.
    pub fn create_semaphore(
        &mut self,
        caller: HolderId,
        target: u16,
        value: u32,
    ) -> Result<NodeId> {
        let semaphore = Object::Semaphore {
            value,
            waiting: Line::default(),
        };
        self.make(Plan::own(caller, NodeId::NONE, target, semaphore))
    }

    /// Takes a semaphore if its value is not 0; returns whether it did, and the node that owns it.
    ///
    /// # Errors
    /// The errors that every operation has for its operands.
    pub fn semaphore_down(&mut self, caller: HolderId, selector: u16) -> Result<(NodeId, bool)> {
        let owner = self.semaphore(caller, selector)?;
        Ok((owner, self.semaphore_take(owner)))
    }

    /// The node that owns the semaphore that a selector names.
    fn semaphore(&self, caller: HolderId, selector: u16) -> Result<NodeId> {
        match self.look(caller, selector)? {
            (id, Object::Semaphore { .. }) => Ok(self.owner(id)),
            _ => Err(Error::WrongKind),
        }
    }

    /// Adds one to a semaphore; returns the node that owns it.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`] if it would overflow, and the errors that every operation has for its operands.
    pub fn semaphore_up(&mut self, caller: HolderId, selector: u16) -> Result<NodeId> {
        let owner = self.semaphore(caller, selector)?;
        if let Object::Semaphore { value, .. } = self.object_mut(owner) {
            *value = value.checked_add(1).ok_or(Error::OutOfBounds)?;
        }
        Ok(owner)
    }

    /// Takes one from a semaphore for an activity that waited; returns whether there was one.
    pub fn semaphore_take(&mut self, owner: NodeId) -> bool {
        match &mut self.nodes[owner.index()].object {
            Object::Semaphore { value, .. } if *value > 0 => {
                *value -= 1;
                true
            }
            _ => false,
        }
    }
}
