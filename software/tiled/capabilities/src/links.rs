//! Dependencies: each node knows what depends on it.
//!
//! Why it exists: revocation follows these lists. What it deliberately does not know: what a dependency means.

use crate::node::{Edge, Node, NodeId, Slot, State};
use crate::space::{Holder, Space};

impl Space {
    /// Makes `node` depend on `to`.
    pub(crate) fn link(&mut self, node: NodeId, edge: usize, to: NodeId) {
        let slot = Slot::new(node, edge);
        let next = self.nodes[to.index()].first;
        self.nodes[node.index()].edges[edge] = Edge {
            to,
            next,
            previous: Slot::NONE,
        };
        if next != Slot::NONE {
            self.nodes[next.node().index()].edges[next.edge()].previous = slot;
        }
        self.nodes[to.index()].first = slot;
    }

    /// Ends a dependency, if there is one.
    pub(crate) fn unlink(&mut self, node: NodeId, edge: usize) {
        let Edge { to, next, previous } = self.nodes[node.index()].edges[edge];
        if !to.is_some() {
            return;
        }
        self.visit(1);
        if previous == Slot::NONE {
            self.nodes[to.index()].first = next;
        } else {
            self.nodes[previous.node().index()].edges[previous.edge()].next = next;
        }
        if next != Slot::NONE {
            self.nodes[next.node().index()].edges[next.edge()].previous = previous;
        }
        self.nodes[node.index()].edges[edge] = Edge::NONE;
    }

    /// Whether there is a free node.
    pub(crate) fn has_free(&self) -> bool {
        self.free.is_some() || self.nodes.len() < self.nodes.room()
    }

    /// Takes a free node: a used one, or else the next that was never used. Purses guarantee that there is one.
    pub(crate) fn take_free(&mut self) -> Option<NodeId> {
        if !self.has_free() {
            return None;
        }
        self.births += 1;
        let id = self.free;
        if id.is_some() {
            self.free = self.nodes[id.index()].edges[0].to;
            self.nodes[id.index()].edges[0].to = NodeId::NONE;
            return Some(id);
        }
        let next = NodeId(self.nodes.len() as u16);
        self.nodes.push(Node::FREE).ok()?;
        Some(next)
    }

    /// A free place for an activity, if there is one; it stays free until it gets a node.
    pub(crate) fn find_place(&mut self) -> Option<u16> {
        self.visit(1);
        if self.free_place.is_none() && self.holders.push(Holder::FREE).is_ok() {
            self.free_place = Some(self.holders.len() as u16 - 1);
        }
        self.free_place
    }

    /// Whether the next activity finds a prepared place, or there is no room for another one: preparing a place writes a
    /// whole table of selectors.
    pub fn has_place(&self) -> bool {
        self.free_place.is_some() || self.holders.len() >= self.holders.room()
    }

    /// Prepares a place for the next activity.
    pub fn make_place(&mut self) {
        // If there is no room, the creation reports it.
        let _ = self.find_place();
    }

    /// The first free place is in use.
    pub(crate) fn take_place(&mut self) {
        if let Some(place) = self.free_place {
            self.free_place = self.holders[usize::from(place)].next_free.take();
        }
    }

    /// A place is free again.
    pub(crate) fn put_place(&mut self, place: u16) {
        let holder = &mut self.holders[usize::from(place)];
        [holder.node, holder.purse, holder.tile] = [NodeId::NONE; 3];
        holder.next_free = self.free_place.replace(place);
    }

    /// Puts a node back.
    pub(crate) fn put_free(&mut self, id: NodeId) {
        self.nodes[id.index()] = crate::node::Node::FREE;
        self.nodes[id.index()].edges[0].to = self.free;
        self.free = id;
    }

    /// Whether something may be derived from a node: neither the node nor any of its ancestors is being revoked.
    pub(crate) fn is_live(&mut self, mut node: NodeId) -> bool {
        while node.is_some() {
            self.visit(1);
            if self.nodes[node.index()].state != State::Alive {
                return false;
            }
            for edge in 1..crate::node::EDGES {
                let to = self.nodes[node.index()].edges[edge].to;
                if to.is_some() {
                    self.visit(1);
                    if self.nodes[to.index()].state != State::Alive {
                        return false;
                    }
                }
            }
            node = self.nodes[node.index()].edges[crate::node::ORIGIN].to;
        }
        true
    }
}
