//! The laws: every quota is in exactly one place; every list is intact.
//!
//! Why it exists: tests call this after every operation, and the kernel's tests after every call. What it deliberately does not know:
//! how the state came about. It does not run on the chip.

use crate::Error;
use crate::node::{EXTRA, EXTRA2, HOLDER, NO_SELECTOR, Node, NodeId, ORIGIN, Slot, State};
use crate::object::{NO_OWNER, Object, Quota, UNREGULATED};
use crate::space::{HolderId, Space};

/// Shortcuts for tests; the kernel removes nodes by their numbers.
impl Space {
    /// Begins to revoke a capability of the caller with everything that depends on it; with `keep`, only what depends on it.
    ///
    /// # Errors
    /// [`Error::Busy`] if a revocation of this level is in progress, [`Error::OutOfBounds`] for a level that does not exist, and the
    /// errors that every operation has for its operands.
    pub fn revoke(
        &mut self,
        level: usize,
        caller: HolderId,
        selector: u16,
        keep: bool,
    ) -> crate::Result<()> {
        let id = self.find(caller, selector)?;
        self.remove(level, id, keep)
    }

    /// Begins to end an activity: everything that it holds, and everything that depends on that.
    ///
    /// # Errors
    /// As [`revoke`](Self::revoke); [`Error::NoHolder`].
    pub fn end_activity(&mut self, level: usize, holder: HolderId) -> crate::Result<()> {
        let record = self.holders.get(usize::from(holder.0));
        let node = record.map(|h| h.node).filter(|node| node.is_some());
        let node = node.ok_or(Error::NoHolder)?;
        if holder == Self::KERNEL {
            return Err(Error::NoHolder);
        }
        self.remove(level, node, false)
    }

    /// Whether a revocation of this level is in progress.
    pub fn is_revoking(&self, level: usize) -> bool {
        matches!(self.revocations.get(level), Some(Some(_)))
    }
}

impl Space {
    /// Checks everything and names the law that is broken, if any. Takes long: for tests.
    ///
    /// # Errors
    /// The law, and the node that breaks it.
    pub fn check(&self) -> Result<(), (&'static str, NodeId)> {
        let count = self.nodes.len();
        let mut charged = 0u64;
        let mut alive = 0;
        for index in 0..count {
            let id = NodeId(index as u16);
            let node = &self.nodes[index];
            if node.state == State::Free {
                continue;
            }
            alive += 1;
            charged += node.cost;
            self.check_edges(id)?;
            self.check_quota(id)?;
            if node.purse.is_some()
                && !matches!(
                    self.nodes[node.purse.index()].object,
                    Object::KernelMemory { .. }
                )
            {
                return Err(("a node is charged to a purse that lives", id));
            }
            if node.selector != NO_SELECTOR {
                let holder = self.holder_of(id);
                let entry = self.holders[usize::from(holder.0)].table[usize::from(node.selector)];
                if entry != id {
                    return Err(("a selector names its node", id));
                }
            }
        }
        let mut free = 0;
        let mut at = self.free;
        while at.is_some() {
            free += 1;
            if free > count || self.nodes[at.index()].state != State::Free {
                return Err(("free nodes form one list", at));
            }
            at = self.nodes[at.index()].edges[0].to;
        }
        if free + alive != count {
            return Err(("every node is free or alive", NodeId::NONE));
        }
        let purses: u64 = self
            .nodes
            .iter()
            .filter(|n| n.state != State::Free && !n.copy)
            .map(|n| match n.object {
                Object::KernelMemory { left, .. } => left,
                _ => 0,
            })
            .sum();
        if purses + charged != (self.nodes.room() as u64 - 2) * Self::NODE_COST {
            return Err(("purses and charges are the whole", NodeId::NONE));
        }
        for (place, holder) in self.holders.iter().enumerate() {
            for id in holder.table.iter().filter(|id| id.is_some()) {
                if self.nodes[id.index()].state == State::Free
                    || self.holder_of(*id) != HolderId(place as u16)
                {
                    return Err(("a table names what its activity holds", *id));
                }
            }
        }
        Ok(())
    }

    fn check_edges(&self, id: NodeId) -> Result<(), (&'static str, NodeId)> {
        let node = &self.nodes[id.index()];
        for (number, edge) in node.edges.iter().enumerate() {
            if !edge.to.is_some() {
                continue;
            }
            let to = &self.nodes[edge.to.index()];
            if to.state == State::Free || to.birth >= node.birth {
                return Err(("a node depends on older nodes", id));
            }
            let slot = Slot::new(id, number);
            let before = match edge.previous {
                Slot::NONE => to.first,
                previous => self.nodes[previous.node().index()].edges[previous.edge()].next,
            };
            if before != slot {
                return Err(("dependents form one list", id));
            }
        }
        if node.birth > 2 && !node.edges[HOLDER].to.is_some() {
            return Err(("every node is held", id));
        }
        if self.nodes[node.owner.index()].copy {
            return Err(("a copy stands for an original", id));
        }
        Ok(())
    }

    /// What an owner gave away plus what is left is what it was given.
    fn check_quota(&self, id: NodeId) -> Result<(), (&'static str, NodeId)> {
        let node = &self.nodes[id.index()];
        if node.copy {
            return Ok(());
        }
        let others = || {
            let nodes = self.nodes.iter().enumerate();
            nodes
                .filter(|(_, n)| n.state != State::Free && !n.copy)
                .map(|(i, n)| (NodeId(i as u16), n))
        };
        match node.object {
            Object::Tile(tile) => {
                for kind in Quota::ALL.iter().copied() {
                    let quota = kind as usize;
                    if tile.owner[quota] == NO_OWNER {
                        return Err(("a quota has an owner", id));
                    }
                    if tile.owner[quota] != id || tile.given.get(kind) == UNREGULATED {
                        continue;
                    }
                    let mut used = tile.left.get(kind);
                    for (other, n) in others() {
                        used += match n.object {
                            Object::Tile(child) if other != id && child.owner[quota] == other => {
                                let origin = n.edges[ORIGIN].to;
                                let from = match origin.is_some() {
                                    true => self.tile(origin).map(|t| t.owner[quota]),
                                    false => Ok(NodeId::NONE),
                                };
                                match from == Ok(id) {
                                    true => child.given.get(kind),
                                    false => 0,
                                }
                            }
                            Object::Endpoint { count: 0, .. } if kind == Quota::Windows => {
                                self.used(n.edges[EXTRA].to, quota, id, 1)
                            }
                            Object::Endpoint { count, .. } if kind == Quota::Endpoints => {
                                self.used(n.edges[EXTRA].to, quota, id, count.into())
                            }
                            Object::Mapping { tables, .. } if kind == Quota::PageTables => {
                                self.used(n.edges[EXTRA].to, quota, id, tables)
                            }
                            // The kernel's own activity is on no tile.
                            Object::Activity { holder }
                                if kind == Quota::Activities && holder > 0 =>
                            {
                                self.used(n.edges[ORIGIN].to, quota, id, 1)
                            }
                            _ => 0,
                        };
                    }
                    if used != tile.granted(kind) {
                        return Err(("what is left and what was given away is what there was", id));
                    }
                }
            }
            Object::Receive(gate) => {
                let gates = others().filter(|(_, n)| {
                    let origin = n.edges[ORIGIN].to;
                    origin.is_some() && self.owner(origin) == id
                });
                let mut all = gate.free;
                for (_, n) in gates {
                    let shares = match n.object {
                        Object::Send { shares, .. } => shares,
                        Object::Service(service) => service.shares,
                        _ => 0,
                    };
                    if all & shares != 0 {
                        return Err(("each share of a slot belongs to one gate", id));
                    }
                    all |= shares;
                }
                if u64::from(all) != (1 << gate.slots) - 1 {
                    return Err(("shares of gates and free ones are all slots", id));
                }
                let leads_here = |n: &&Node| {
                    let send = n.edges[ORIGIN].to;
                    matches!(n.object, Object::Endpoint { .. })
                        && n.edges[EXTRA2].to.is_some()
                        && send.is_some()
                        && matches!(self.object(send), Object::Send { .. })
                        && self.origin(self.owner(send)).map(|r| self.owner(r)) == Some(id)
                };
                let senders = others().filter(|(_, n)| leads_here(n)).count();
                if senders != usize::from(gate.senders) {
                    return Err(("a gate knows how many can send to it", id));
                }
            }
            Object::Memory(memory) => {
                let mut free = memory.size;
                let mut end = memory.base;
                let mut at = memory.first;
                let mut previous = NodeId::NONE;
                let mut pieces = 0;
                while at.is_some() {
                    let Object::Memory(piece) = self.nodes[at.index()].object else {
                        return Err(("pieces are memory", at));
                    };
                    if piece.base < end
                        || piece.base + piece.size > memory.base + memory.size
                        || piece.previous != previous
                        || piece.cut_from != id
                    {
                        return Err(("pieces are disjoint and in order", at));
                    }
                    end = piece.base + piece.size;
                    free -= piece.size;
                    pieces += 1;
                    previous = at;
                    at = piece.next;
                }
                if free != memory.free || pieces != memory.pieces {
                    return Err(("pieces and what is free are the whole", id));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn used(&self, tile: NodeId, quota: usize, owner: NodeId, amount: u64) -> u64 {
        match self.tile(tile) {
            Ok(tile) if tile.owner[quota] == owner => amount,
            _ => 0,
        }
    }
}
