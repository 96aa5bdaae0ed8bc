//! Dependencies: each node knows what depends on it.
//!
//! Why it exists: revocation follows these lists. What it deliberately does not know: what a dependency means.

use crate::node::{Edge, NodeId, Slot, State};
use crate::space::Space;

impl Space<'_> {
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

    /// Takes a free node out of the list of free nodes. Purses guarantee that there is one.
    pub(crate) fn take_free(&mut self) -> Option<NodeId> {
        let id = self.free;
        if !id.is_some() {
            return None;
        }
        self.free = self.nodes[id.index()].edges[0].to;
        self.nodes[id.index()].edges[0].to = NodeId::NONE;
        self.births += 1;
        Some(id)
    }

    /// Puts a node back.
    pub(crate) fn put_free(&mut self, id: NodeId) {
        self.nodes[id.index()] = crate::node::Node::FREE;
        self.nodes[id.index()].edges[0].to = self.free;
        self.free = id;
    }

    /// Whether something may be derived from a node: neither it nor what it comes from is being revoked.
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
