//! Numbers of nodes.
//!
//! Why it exists: objects name nodes, and nodes have objects. What it deliberately does not know: both.

/// Number of a node. Valid as long as the node lives; code that keeps one longer compares [`Node::birth`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u16);

impl NodeId {
    /// No node.
    pub const NONE: NodeId = NodeId(u16::MAX);

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }

    /// Whether this is a node's number at all.
    pub fn is_some(self) -> bool {
        self != Self::NONE
    }
}
