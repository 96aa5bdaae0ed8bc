//! The books: what there is, and what an activity has of it.
//!
//! Why it exists: whether all came back after an activity died is a comparison of two moments, on the host and on the chip. What it
//! deliberately does not know: which moments. It visits everything, so nobody calls it while somebody waits.

use crate::node::{NodeId, State};
use crate::object::{Object, QUOTAS};
use crate::space::{HolderId, Space};

/// What an activity has of what can run out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Capabilities with a selector.
    pub capabilities: u32,
    /// Bytes of kernel memory that its own capabilities and those without a selector that it holds cost, whoever paid.
    pub kernel_memory: u64,
    /// Endpoints in use.
    pub endpoints: u64,
    /// Pages of page tables in use.
    pub page_tables: u64,
    /// Bytes of memory that it cut out and holds.
    pub memory: u64,
    /// Quotas of tiles that were moved to tile capabilities which it holds, see [`crate::Quota`].
    pub quotas: [u64; QUOTAS],
    /// Bytes of kernel memory that were moved to purses which it holds.
    pub purses: u64,
}

impl Space {
    /// What an activity has.
    pub fn holding(&self, holder: HolderId) -> Holding {
        let mut all = Holding::default();
        for (id, object) in self.alive() {
            let node = &self.nodes[id.index()];
            if self.holder_of(id) != holder {
                continue;
            }
            all.capabilities += u32::from(node.selector != crate::node::NO_SELECTOR);
            all.kernel_memory += node.cost;
            if node.copy {
                continue;
            }
            match object {
                Object::Endpoint { count, .. } => all.endpoints += u64::from(count),
                Object::Mapping { tables, .. } => all.page_tables += tables,
                Object::Memory(memory) if memory.is_piece() => all.memory += memory.size,
                Object::KernelMemory { given, .. } => all.purses += given,
                Object::Tile(tile) => {
                    for (sum, (owner, given)) in
                        all.quotas.iter_mut().zip(tile.owner.iter().zip(tile.given))
                    {
                        *sum = match *owner == id {
                            true => sum.saturating_add(given),
                            false => *sum,
                        };
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// All capabilities that there are, with what they are, in the order of their numbers.
    pub fn alive(&self) -> impl Iterator<Item = (NodeId, Object)> + '_ {
        let nodes = self.nodes.iter().enumerate();
        let alive = nodes.filter(|(_, node)| node.state != State::Free);
        alive.map(|(index, node)| {
            let mut object = node.object;
            // Marks of what happened in the past are no part of the books.
            match &mut object {
                Object::Tile(tile) => tile.least = [0; 2],
                Object::KernelMemory { least, .. } => *least = 0,
                Object::Memory(memory) => memory.shared = false,
                _ => {}
            }
            (NodeId(index as u16), object)
        })
    }
}
