//! Revocation: removes a capability and everything that depends on it, one at a time.
//!
//! Why it exists: revoking a large tree must not make others wait, so the work is a state machine with small steps. What it deliberately
//! does not know: when it is driven, and how an endpoint is invalidated.
//!
//! From its present node, the machine goes down to any dependent, marks it and records where it came from; it removes a node without
//! dependents and goes back. Nothing can be derived from a marked node. Dependencies lead to older nodes only, so the machine cannot reach
//! the same node twice; when a revocation of another level removes a node on its path, the machine's path is corrected.

use crate::gate::quota_of;
use crate::node::{
    EDGES, EXTRA, EXTRA2, HOLDER, LEVELS, NO_SELECTOR, NodeId, OFF_PATH, ORIGIN, ROOT, State,
};
use crate::object::{Object, Quota, Service};
use crate::resource::give;
use crate::space::{HolderId, Space};
use crate::{Error, Result};

/// A revocation in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Revocation {
    current: NodeId,
    /// The root stays.
    keep: bool,
}

/// What was removed and must be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Its number, free now.
    pub node: NodeId,
    /// A number that no other node under this number had.
    pub birth: u64,
    /// What it was.
    pub object: Object,
    /// Whether it was only a copy of another node's object; then there is nothing to undo.
    pub copy: bool,
    /// The activity that held it.
    pub holder: HolderId,
    /// The node that it was derived from, which still exists.
    pub origin: Option<NodeId>,
    /// The purse that paid for it and has the amount back.
    pub purse: NodeId,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Went on.
    Working,
    /// Removed a node.
    Removed(Removed),
    /// The receiver of an endpoint goes: the endpoint leads nowhere and keeps its number. Carries the send gate that it belongs to.
    Disconnected(NodeId),
    /// There is nothing left to do.
    Done,
}

impl Space {
    /// Begins to remove a node given by its number.
    ///
    /// # Errors
    /// [`Error::Busy`] if a revocation of this level is in progress, [`Error::OutOfBounds`] for a level that does not exist.
    pub fn remove(&mut self, level: usize, id: NodeId, keep: bool) -> Result<()> {
        match self.revocations.get(level) {
            Some(None) => {}
            Some(Some(_)) => return Err(Error::Busy),
            None => return Err(Error::OutOfBounds),
        }
        self.visit(1);
        let node = &mut self.nodes[id.index()];
        node.state = State::Dying;
        node.via[level] = ROOT;
        self.revocations[level] = Some(Revocation { current: id, keep });
        Ok(())
    }

    /// The node that a level's revocation has reached.
    pub fn at(&self, level: usize) -> Option<NodeId> {
        let revocation = self.revocations.get(level)?.as_ref()?;
        Some(revocation.current)
    }

    /// Does one step of a level's revocation: visits at most [`crate::REVOKE_STEPS`] nodes and dependencies.
    pub fn step(&mut self, level: usize) -> Progress {
        let Some(Some(Revocation { current, keep })) = self.revocations.get(level).copied() else {
            return Progress::Done;
        };
        self.visit(1);
        let first = self.nodes[current.index()].first;
        if first != crate::node::Slot::NONE {
            let next = first.node();
            self.visit(1);
            let is_notice = matches!(self.nodes[next.index()].object, Object::Notice(_));
            if is_notice && first.edge() == EXTRA && self.origin(current).is_some() {
                self.inherit(next);
                return Progress::Working;
            }
            let node = &mut self.nodes[next.index()];
            node.state = State::Dying;
            node.via[level] = current.0;
            self.revocations[level] = Some(Revocation {
                current: next,
                keep,
            });
            return Progress::Working;
        }
        if keep && self.nodes[current.index()].via[level] == ROOT {
            let node = &mut self.nodes[current.index()];
            node.via[level] = OFF_PATH;
            if node.via == [OFF_PATH; LEVELS] {
                node.state = State::Alive;
            }
            self.revocations[level] = None;
            return Progress::Done;
        }
        match self.disconnect(current) {
            Some(gate) => Progress::Disconnected(gate),
            None => Progress::Removed(self.take_out(current)),
        }
    }

    /// A sending endpoint keeps its number and quota if only its receiver goes and everything else that it depends on stays, until it is
    /// connected again ([`Space::connect`]). Returns its gate.
    fn disconnect(&mut self, id: NodeId) -> Option<NodeId> {
        let node = &self.nodes[id.index()];
        let (gate, receiver) = (node.edges[ORIGIN].to, node.edges[EXTRA2].to);
        let is_other = |via: &u16| ![OFF_PATH, receiver.0].contains(via);
        if !gate.is_some() || !receiver.is_some() || node.via.iter().any(is_other) {
            return None;
        }
        self.depart(gate)?;
        self.unlink(id, EXTRA2);
        self.leave_paths(id);
        self.nodes[id.index()].state = State::Alive;
        Some(gate)
    }

    /// If a gate sends, one endpoint fewer leads to its receiver.
    fn depart(&mut self, gate: NodeId) -> Option<()> {
        let receiver = self.leads_to(gate)?;
        receiver.senders -= 1;
        receiver.departed = receiver.departed.saturating_add(1);
        Some(())
    }

    /// Each revocation that has reached a node goes back to where it came from.
    fn leave_paths(&mut self, id: NodeId) {
        let via = core::mem::replace(&mut self.nodes[id.index()].via, [OFF_PATH; LEVELS]);
        self.visit(LEVELS as u32);
        for (via, revocation) in via.into_iter().zip(&mut self.revocations) {
            match (via, revocation) {
                (OFF_PATH, _) | (_, None) => {}
                (ROOT, revocation) => *revocation = None,
                (via, Some(revocation)) => revocation.current = NodeId(via),
            }
        }
    }

    /// Removes a node without dependents, gives its quota back and corrects the paths through it.
    pub(crate) fn take_out(&mut self, id: NodeId) -> Removed {
        let node = self.nodes[id.index()];
        let holder = self.holder_of(id);
        let origin = node.edges[ORIGIN].to;
        if !node.copy {
            self.give_back(id, &node.object);
        }
        if let Object::KernelMemory { left, .. } = &mut self.nodes[node.purse.index()].object {
            *left += node.cost;
        }
        if node.selector != NO_SELECTOR {
            let table = &mut self.holders[usize::from(holder.0)].table;
            table[usize::from(node.selector)] = NodeId::NONE;
        }
        if let (Object::Activity { holder }, false) = (node.object, node.copy) {
            self.put_place(holder);
        }
        for edge in 0..EDGES {
            self.unlink(id, edge);
        }
        self.leave_paths(id);
        self.put_free(id);
        Removed {
            node: id,
            birth: node.birth,
            object: node.object,
            copy: node.copy,
            holder,
            origin: origin.is_some().then_some(origin),
            purse: node.purse,
        }
    }

    fn give_back(&mut self, id: NodeId, object: &Object) {
        let [origin, extra] = [ORIGIN, EXTRA].map(|edge| self.nodes[id.index()].edges[edge].to);
        match *object {
            Object::Tile(tile) if origin.is_some() => {
                let Object::Tile(parent) = *self.object(origin) else {
                    return;
                };
                self.pass_on(&tile, id, &parent);
                for quota in Quota::ALL.iter().copied() {
                    if tile.owner[quota as usize] == id {
                        self.return_quota(origin, quota, tile.given.get(quota));
                    }
                }
            }
            Object::KernelMemory { given, .. } if origin.is_some() => {
                if let Object::KernelMemory { left, .. } = self.object_mut(origin) {
                    *left += given;
                }
            }
            Object::Memory(memory) if memory.cut_from.is_some() => {
                if let Some(next) = self.piece(memory.next) {
                    next.previous = memory.previous;
                }
                if let Some(previous) = self.piece(memory.previous) {
                    previous.next = memory.next;
                }
                if let Some(pool) = self.piece(memory.cut_from) {
                    if !memory.previous.is_some() {
                        pool.first = memory.next;
                    }
                    pool.free += memory.size;
                    pool.pieces -= 1;
                }
            }
            Object::Send { shares, .. } | Object::Service(Service { shares, .. }) => {
                if let Object::Receive(gate) = self.object_mut(origin) {
                    gate.free |= shares;
                }
            }
            Object::Endpoint { count, .. } => {
                if origin.is_some() {
                    if let Object::Receive(gate) = self.object_mut(origin) {
                        gate.place = None;
                        gate.active = NodeId::NONE;
                    } else if self.nodes[id.index()].edges[EXTRA2].to.is_some() {
                        self.depart(origin);
                    }
                }
                let (quota, amount) = quota_of(count);
                self.return_quota(extra, quota, amount);
            }
            Object::Mapping { tables, .. } => self.return_quota(extra, Quota::PageTables, tables),
            Object::Activity { .. } => self.return_quota(origin, Quota::Activities, 1),
            Object::Notice(notice) => {
                if let Some(next) = self.notice(notice.next) {
                    next.previous = notice.previous;
                }
                if let Some(previous) = self.notice(notice.previous) {
                    previous.next = notice.next;
                }
            }
            _ => {}
        }
    }

    fn return_quota(&mut self, tile: NodeId, quota: Quota, amount: u64) {
        let Ok(tile) = self.tile(tile) else { return };
        let owner = tile.owner[quota as usize];
        if let Ok(from) = self.tile(owner) {
            let left = give(from.left.get(quota), amount);
            self.spend(quota, (owner, left));
        }
    }

    /// What the selectors of an activity name, starting at one; many name nothing.
    pub fn held_by(&self, holder: HolderId, from: u16) -> impl Iterator<Item = NodeId> + '_ {
        let table = self.holders.get(usize::from(holder.0));
        let named = table.and_then(|holder| holder.table.get(from.into()..));
        named.unwrap_or_default().iter().copied()
    }

    /// The nodes derived from a node, held by it or otherwise dependent on it; examines at most `limit` of them.
    pub fn dependents(&self, id: NodeId, limit: usize) -> impl Iterator<Item = NodeId> + '_ {
        let mut slot = self.nodes[id.index()].first;
        core::iter::from_fn(move || {
            if slot == crate::node::Slot::NONE {
                return None;
            }
            let node = slot.node();
            slot = self.nodes[node.index()].edges[slot.edge()].next;
            Some(node)
        })
        .take(limit)
    }
}

const _: () = assert!(HOLDER < EDGES);
