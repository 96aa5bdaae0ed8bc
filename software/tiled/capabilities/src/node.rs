//! Nodes of the arena.
//!
//! Why it exists: it defines the layout of a node and nothing about its use. What it deliberately does not know: rules.

pub use crate::number::NodeId;
use crate::object::{Line, Object};

/// The most dependencies of a node.
pub const EDGES: usize = 4;
/// The node that it was derived from.
pub(crate) const ORIGIN: usize = 0;
/// The activity that holds it.
pub(crate) const HOLDER: usize = 1;
/// Further dependencies: the sources of its quota.
pub(crate) const EXTRA: usize = 2;
/// And another.
pub(crate) const EXTRA2: usize = 3;

/// Revocations that may be in progress at one time, one per level; a higher one may come between the steps of a lower one.
pub const LEVELS: usize = 4;

/// A dependency: a node and the number of its edge, in one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub(crate) u32);

impl Slot {
    pub(crate) const NONE: Slot = Slot(u32::MAX);

    pub(crate) fn new(node: NodeId, edge: usize) -> Self {
        Slot(u32::from(node.0) * EDGES as u32 + edge as u32)
    }

    pub(crate) fn node(self) -> NodeId {
        NodeId((self.0 / EDGES as u32) as u16)
    }

    pub(crate) fn edge(self) -> usize {
        self.0 as usize % EDGES
    }
}

/// A dependency and its neighbours among all dependencies on the same node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub to: NodeId,
    pub next: Slot,
    pub previous: Slot,
}

impl Edge {
    pub const NONE: Edge = Edge {
        to: NodeId::NONE,
        next: Slot::NONE,
        previous: Slot::NONE,
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Free,
    /// Made, but not ready: nobody can name it yet. It can be revoked.
    Preparing,
    Alive,
    /// On the path of a revocation: nothing may be derived from it any more.
    Dying,
}

/// On the path of no revocation.
pub(crate) const OFF_PATH: u16 = u16::MAX;
/// Start of the path of a revocation.
pub(crate) const ROOT: u16 = u16::MAX - 1;

/// A capability.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub(crate) state: State,
    /// Derivations between it and an object that the kernel made at boot.
    pub(crate) depth: u8,
    /// Whether it is a copy: its object is another node's.
    pub(crate) copy: bool,
    pub(crate) object: Object,
    /// The node that owns the object: itself unless it is a copy.
    pub(crate) owner: NodeId,
    pub(crate) edges: [Edge; EDGES],
    pub(crate) first: Slot,
    /// For each level, the node from which the revocation came here.
    pub(crate) via: [u16; LEVELS],
    /// Selector of its holder, [`NO_SELECTOR`] if it has none.
    pub(crate) selector: u16,
    /// The purse that paid for it, and the amount.
    pub(crate) purse: NodeId,
    pub(crate) cost: u64,
    pub(crate) birth: u64,
}

/// A node without a name.
pub(crate) const NO_SELECTOR: u16 = u16::MAX;

impl Node {
    /// A free place in the arena.
    pub const FREE: Node = Node {
        state: State::Free,
        depth: 0,
        copy: false,
        object: Object::Semaphore {
            value: 0,
            waiting: Line {
                first: [0; 3],
                last: [0; 3],
            },
        },
        owner: NodeId::NONE,
        edges: [Edge::NONE; EDGES],
        first: Slot::NONE,
        via: [OFF_PATH; LEVELS],
        selector: NO_SELECTOR,
        purse: NodeId::NONE,
        cost: 0,
        birth: 0,
    };

    /// A number that distinguishes all nodes that ever lived.
    pub fn birth(&self) -> u64 {
        self.birth
    }
}
