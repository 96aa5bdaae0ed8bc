//! The arena, the holders, and how a node is made.
//!
//! Why it exists: it has all memory of the crate, and the only way to make a node. What it deliberately does not know: kinds.

use crate::node::{
    EXTRA, EXTRA2, HOLDER, LEVELS, NO_SELECTOR, Node, NodeId, OFF_PATH, ORIGIN, ROOT, State,
};
use crate::object::{Amounts, Memory, NO_OWNER, Object, QUOTAS, Quota, Tile, Time, UNREGULATED};
use crate::revoke::Revocation;
use crate::{DEPTH_MAX, Error, Result, SELECTORS};
use bulkhead_abi::memory_map::PMP_WINDOWS;
use bulkhead_abi::tilemux::ACTIVITIES;
use bulkhead_abi::time::WHOLE;
use bulkhead_common::payer::{Creator, Holder as Payer, Reserved};
use core::cell::Cell;

/// Number of a holder: an activity's place in the table of holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HolderId(pub u16);

/// An activity as a holder of capabilities. Its table is written one word at a time.
#[derive(Clone, Copy, Debug)]
#[repr(align(8))]
pub struct Holder {
    /// Its node; none if the place is free.
    pub(crate) node: NodeId,
    /// The purse that pays for the kernel objects that it causes.
    pub(crate) purse: NodeId,
    /// The tile capability that it was started with.
    pub(crate) tile: NodeId,
    /// For a free place: the next free one.
    pub(crate) next_free: Option<u16>,
    pub(crate) table: [NodeId; SELECTORS],
}

impl Holder {
    /// A free place.
    pub const FREE: Holder = Holder {
        node: NodeId::NONE,
        purse: NodeId::NONE,
        tile: NodeId::NONE,
        next_free: None,
        table: [NodeId::NONE; SELECTORS],
    };
}

/// The most capabilities, limited by the numbers of nodes.
pub const NODES_MAX: usize = 65_000;
const _: () = assert!(NODES_MAX < ROOT as usize && ROOT < OFF_PATH);

/// All capabilities of a system.
#[derive(Clone, Debug)]
pub struct Space {
    /// All nodes that were ever used.
    pub(crate) nodes: Reserved<Payer, Node>,
    /// All places that were ever used.
    pub(crate) holders: Reserved<Creator, Holder>,
    /// Bytes charged for an activity in addition to its node.
    pub(crate) place_cost: u64,
    pub(crate) free: NodeId,
    /// The first free place; the others follow by [`Holder::next_free`].
    pub(crate) free_place: Option<u16>,
    pub(crate) births: u64,
    pub(crate) steps: Cell<u64>,
    pub(crate) revocations: [Option<Revocation>; LEVELS],
    /// For tests: after this many nodes, no more can be made.
    #[cfg(any(test, feature = "laws"))]
    pub fail_in: Option<u32>,
}

/// The data needed to make a node.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub object: Object,
    /// Derived from.
    pub origin: NodeId,
    /// Its holder.
    pub holder: HolderId,
    pub selector: u16,
    pub extra: [NodeId; 2],
    /// Its payer.
    pub payer: HolderId,
    /// The node whose object it shares, if it is a copy.
    pub original: Option<NodeId>,
}

impl Plan {
    /// For an object that the caller makes for itself and pays for, derived from `origin`.
    pub const fn own(caller: HolderId, origin: NodeId, selector: u16, object: Object) -> Self {
        Self {
            object,
            origin,
            holder: caller,
            selector,
            extra: [NodeId::NONE; 2],
            payer: caller,
            original: None,
        }
    }
}

/// Bytes charged for a node.
pub const NODE_COST: u64 = size_of::<Node>() as u64;
/// Bytes charged for an activity in addition to its node: its place among the holders.
pub const HOLDER_COST: u64 = size_of::<Holder>() as u64;

/// The kernel as a holder; it owns everything at boot.
const KERNEL: HolderId = HolderId(0);

impl Space {
    /// Bytes that a node costs its purse.
    pub const NODE_COST: u64 = NODE_COST;
    /// Bytes that an activity costs in addition to its node.
    pub const HOLDER_COST: u64 = HOLDER_COST;
    /// The kernel itself, holder of all objects that exist at boot.
    pub const KERNEL: HolderId = KERNEL;

    /// An empty space: only the kernel, at place 0, with a purse that covers all nodes. `nodes` is the room for capabilities, at most
    /// [`NODES_MAX`] of which are used; `places` is the room for activities, including the kernel. No more than the room reserved here is
    /// ever allocated, and unused room is not touched.
    ///
    /// # Panics
    /// If there is no room for four nodes and a holder, which is a mistake of the kernel at boot.
    pub fn new(nodes: usize, places: u16) -> Self {
        let usable = nodes.min(NODES_MAX);
        assert!(usable >= 4 && places > 0, "no memory for capabilities");
        let nodes = Reserved::with_room(usable);
        let mut holders = Reserved::with_room(places.into());
        let _ = holders.push(Holder::FREE);
        // Two nodes are the kernel's own: its activity and its purse. All kernel memory in purses is backed by nodes, so every payer gets
        // a node, whatever others did.
        let total = (usable as u64 - 2) * NODE_COST;
        let mut space = Self {
            nodes,
            holders,
            place_cost: HOLDER_COST,
            free: NodeId::NONE,
            free_place: None,
            births: 0,
            steps: Cell::new(0),
            revocations: [None; LEVELS],
            #[cfg(any(test, feature = "laws"))]
            fail_in: None,
        };
        let purse = space.boot_node(Object::purse(total));
        let kernel = space.boot_node(Object::Activity { holder: 0 });
        space.holders[0].node = kernel;
        space.holders[0].purse = purse;
        space
    }

    /// From now on the creator of an activity pays this many more bytes, for the kernel's other records of it.
    pub fn charge_activities(&mut self, bytes: u64) {
        self.place_cost = HOLDER_COST + bytes;
    }

    /// Makes a node without parents and costs.
    fn boot_node(&mut self, object: Object) -> NodeId {
        // `new` has at least four nodes.
        let id = self.take_free().unwrap_or(NodeId(0));
        self.nodes[id.index()] = Node {
            state: State::Alive,
            object,
            owner: id,
            birth: self.births,
            ..Node::FREE
        };
        id
    }

    /// A purse of the kernel with `bytes` of what it has left, for the first manager.
    ///
    /// # Errors
    /// [`Error::SelectorTaken`], [`Error::NoKernelMemory`].
    pub fn add_kernel_memory(&mut self, selector: u16, bytes: u64) -> Result<NodeId> {
        let own = self.holders[0].purse;
        let needed = bytes.checked_add(NODE_COST);
        let needed = needed.ok_or(Error::NoKernelMemory)?;
        match *self.object(own) {
            Object::KernelMemory { left, .. } if needed <= left => {}
            _ => return Err(Error::NoKernelMemory),
        }
        let purse = Object::purse(bytes);
        let id = self.make(Plan::own(KERNEL, own, selector, purse))?;
        if let Object::KernelMemory { left, least, .. } = self.object_mut(own) {
            *left -= bytes;
            *least = (*least).min(*left);
        }
        Ok(id)
    }

    /// A whole tile, held by the kernel. With `None` as `noc_rate` its traffic is not regulated.
    ///
    /// # Errors
    /// [`Error::SelectorTaken`], [`Error::NoKernelMemory`].
    pub fn add_tile(
        &mut self,
        selector: u16,
        tile: u16,
        endpoints: u64,
        page_tables: u64,
        noc: Option<(u64, u64)>,
    ) -> Result<NodeId> {
        let (rate, burst) = noc.unwrap_or((UNREGULATED, UNREGULATED));
        let second = 1_000_000_000;
        let quotas = [
            endpoints,
            second,
            rate,
            burst,
            page_tables,
            ACTIVITIES as u64,
            PMP_WINDOWS,
        ];
        let mut all = Amounts::default();
        for (quota, amount) in Quota::ALL.iter().zip(quotas) {
            all.set(*quota, amount);
        }
        let object = Object::Tile(Tile {
            tile,
            time: Time {
                budget: second,
                period: WHOLE,
                priority: u8::MAX,
                idle: true,
                last: 0,
            },
            left: all,
            given: all,
            least: [u16::MAX; 2],
            owner: [NO_OWNER; QUOTAS],
        });
        let id = self.add(selector, object)?;
        if let Object::Tile(tile) = &mut self.nodes[id.index()].object {
            tile.owner = [id; QUOTAS];
        }
        Ok(id)
    }

    /// A range of memory, held by the kernel.
    ///
    /// # Errors
    /// [`Error::SelectorTaken`], [`Error::NoKernelMemory`], [`Error::OutOfBounds`] if it wraps.
    pub fn add_memory(
        &mut self,
        selector: u16,
        tile: u16,
        base: u64,
        size: u64,
        rights: u8,
    ) -> Result<NodeId> {
        base.checked_add(size).ok_or(Error::OutOfBounds)?;
        let memory = Memory::new(tile, base, size, rights);
        self.add(selector, Object::Memory(memory))
    }

    fn add(&mut self, selector: u16, object: Object) -> Result<NodeId> {
        self.make(Plan::own(KERNEL, NodeId::NONE, selector, object))
    }

    /// Counts visits.
    pub(crate) fn visit(&self, count: u32) {
        self.steps.set(self.steps.get() + u64::from(count));
    }

    /// Nodes and dependencies visited since the space was made.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// The purse that pays for everything that an activity causes.
    pub(crate) fn purse(&self, holder: HolderId) -> Result<NodeId> {
        let holder = self.holders.get(usize::from(holder.0));
        let holder = holder.filter(|h| h.node.is_some()).ok_or(Error::NoHolder)?;
        if self.nodes[holder.node.index()].state != State::Alive {
            return Err(Error::NoHolder);
        }
        Ok(holder.purse)
    }

    /// The node that a selector of an activity names.
    ///
    /// # Errors
    /// [`Error::NoHolder`], [`Error::NoCapability`], [`Error::Revoked`].
    pub fn find(&self, holder: HolderId, selector: u16) -> Result<NodeId> {
        self.visit(1);
        self.purse(holder)?;
        let table = &self.holders[usize::from(holder.0)].table;
        let id = table.get(usize::from(selector)).copied();
        let id = id.filter(|id| id.is_some()).ok_or(Error::NoCapability)?;
        match self.nodes[id.index()].state {
            State::Alive => Ok(id),
            State::Preparing => Err(Error::Busy),
            _ => Err(Error::Revoked),
        }
    }

    /// Blocks the use of a node that was just made until it is ready: a caller that names it gets [`Error::Busy`].
    pub fn prepare(&mut self, id: NodeId) {
        self.visit(1);
        let node = &mut self.nodes[id.index()];
        if node.state == State::Alive {
            node.state = State::Preparing;
        }
    }

    /// The node is ready for use, unless it is being revoked.
    pub fn ready(&mut self, id: NodeId) {
        self.visit(1);
        let node = &mut self.nodes[id.index()];
        if node.state == State::Preparing {
            node.state = State::Alive;
        }
    }

    /// Whether a node is the one with this birth number and still being prepared.
    pub fn is_preparing(&self, id: NodeId, birth: u64) -> bool {
        let node = self.nodes.get(id.index());
        node.is_some_and(|n| n.state == State::Preparing && n.birth == birth)
    }

    /// The object of a node; of a copy, the object of the original.
    pub fn object(&self, id: NodeId) -> &Object {
        let owner = self.nodes[id.index()].owner;
        &self.nodes[owner.index()].object
    }

    pub(crate) fn object_mut(&mut self, id: NodeId) -> &mut Object {
        let owner = self.nodes[id.index()].owner;
        &mut self.nodes[owner.index()].object
    }

    /// The object that a selector names, and its node.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn look(&self, holder: HolderId, selector: u16) -> Result<(NodeId, &Object)> {
        let id = self.find(holder, selector)?;
        Ok((id, self.object(id)))
    }

    /// The tile that a selector names.
    ///
    /// # Errors
    /// [`Error::WrongKind`], and as [`find`](Self::find).
    pub fn look_tile(&self, holder: HolderId, selector: u16) -> Result<&Tile> {
        self.tile(self.find(holder, selector)?)
    }

    /// The memory that a selector names, and its node.
    ///
    /// # Errors
    /// [`Error::WrongKind`], and as [`find`](Self::find).
    pub fn look_memory(&self, holder: HolderId, selector: u16) -> Result<(NodeId, &Memory)> {
        let id = self.find(holder, selector)?;
        Ok((id, self.memory(id)?))
    }

    /// The node that owns the object of a node.
    pub fn owner(&self, id: NodeId) -> NodeId {
        self.nodes[id.index()].owner
    }

    /// A number that no other node ever had or will have.
    pub fn birth(&self, id: NodeId) -> u64 {
        self.nodes[id.index()].birth
    }

    /// Whether a node is the one with this birth number.
    pub fn is(&self, id: NodeId, birth: u64) -> bool {
        let node = self.nodes.get(id.index());
        node.is_some_and(|n| n.state == State::Alive && n.birth == birth)
    }

    /// The activity that holds a node.
    pub fn holder_of(&self, id: NodeId) -> HolderId {
        let activity = self.nodes[id.index()].edges[HOLDER].to;
        if activity.is_some()
            && let Object::Activity { holder } = self.nodes[activity.index()].object
        {
            return HolderId(holder);
        }
        KERNEL
    }

    /// The node that a node was derived from, if there is one.
    pub fn origin(&self, id: NodeId) -> Option<NodeId> {
        let to = self.nodes[id.index()].edges[ORIGIN].to;
        to.is_some().then_some(to)
    }

    /// What is left in the purse of an activity, in bytes.
    ///
    /// # Errors
    /// [`Error::NoHolder`].
    pub fn kernel_memory_left(&self, holder: HolderId) -> Result<u64> {
        let purse = self.purse(holder)?;
        match *self.object(purse) {
            Object::KernelMemory { left, .. } => Ok(left),
            _ => Ok(0),
        }
    }

    /// Whether a selector is free.
    pub(crate) fn check_selector(&self, holder: HolderId, selector: u16) -> Result<()> {
        self.purse(holder)?;
        if selector == NO_SELECTOR {
            return Ok(());
        }
        let table = &self.holders[usize::from(holder.0)].table;
        match table.get(usize::from(selector)) {
            Some(&NodeId::NONE) => Ok(()),
            _ => Err(Error::SelectorTaken),
        }
    }

    /// Another holder's node now depends on this one: the memory, or a part of it, is in other hands.
    fn mark_shared(&mut self, mut id: NodeId) {
        while id.is_some() {
            self.visit(1);
            let owner = self.owner(id);
            match &mut self.nodes[owner.index()].object {
                Object::Memory(memory) if !memory.shared => memory.shared = true,
                _ => return,
            }
            id = self.nodes[owner.index()].edges[ORIGIN].to;
        }
    }

    /// Gives a free node an object; it was paid for.
    pub(crate) fn place(&mut self, id: NodeId, object: Object, depth: u8, purse: NodeId) {
        self.nodes[id.index()] = Node {
            state: State::Alive,
            depth,
            object,
            owner: id,
            purse,
            cost: NODE_COST,
            birth: self.births,
            ..Node::FREE
        };
    }

    /// Makes a node. All checks come before the first change.
    pub(crate) fn make(&mut self, plan: Plan) -> Result<NodeId> {
        self.check_selector(plan.holder, plan.selector)?;
        let mut depth = 0;
        for from in [plan.origin, plan.extra[0], plan.extra[1]] {
            if from.is_some() && self.nodes[from.index()].state != State::Alive {
                return Err(Error::Revoked);
            }
        }
        if plan.origin.is_some() {
            if !self.is_live(plan.origin) {
                return Err(Error::Revoked);
            }
            depth = self.nodes[plan.origin.index()].depth + 1;
            if depth > DEPTH_MAX {
                return Err(Error::TooDeep);
            }
        }
        let cost = match plan.object {
            Object::Activity { .. } if plan.original.is_none() => NODE_COST + self.place_cost,
            _ => NODE_COST,
        };
        let purse = self.purse(plan.payer)?;
        if !self.is_live(purse) {
            return Err(Error::Revoked);
        }
        let purse = self.nodes[purse.index()].owner;
        if !self.has_free() {
            return Err(Error::NoKernelMemory);
        }
        #[cfg(any(test, feature = "laws"))]
        if let Some(left) = &mut self.fail_in {
            *left = left.checked_sub(1).ok_or(Error::NoKernelMemory)?;
        }
        let Object::KernelMemory { left, least, .. } = &mut self.nodes[purse.index()].object else {
            return Err(Error::WrongKind);
        };
        let rest = left.checked_sub(cost).ok_or(Error::NoKernelMemory)?;
        *left = rest;
        *least = (*least).min(rest);
        // The checks above found a free node.
        let id = self.take_free().ok_or(Error::NoKernelMemory)?;
        self.place(id, plan.object, depth, purse);
        let node = &mut self.nodes[id.index()];
        node.copy = plan.original.is_some();
        node.owner = plan.original.unwrap_or(id);
        node.selector = plan.selector;
        node.cost = cost;
        let holder = self.holders[usize::from(plan.holder.0)].node;
        self.link(id, HOLDER, holder);
        if plan.origin.is_some() && self.holder_of(plan.origin) != plan.holder {
            self.mark_shared(plan.origin);
        }
        for (edge, to) in [
            (ORIGIN, plan.origin),
            (EXTRA, plan.extra[0]),
            (EXTRA2, plan.extra[1]),
        ] {
            if to.is_some() {
                self.link(id, edge, to);
            }
        }
        if plan.selector != NO_SELECTOR {
            self.holders[usize::from(plan.holder.0)].table[usize::from(plan.selector)] = id;
        }
        Ok(id)
    }
}
