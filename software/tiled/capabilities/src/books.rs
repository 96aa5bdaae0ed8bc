//! The books: all capabilities, and the holdings of each activity.
//!
//! Why it exists: to check whether everything came back after an activity died, tests compare the books of two moments, on the host and
//! on the chip. What it deliberately does not know: which moments. It visits everything, so it must not be called while any caller
//! waits.

use crate::node::{NodeId, State};
use crate::object::{Object, QUOTAS, Quota};
use crate::space::{HolderId, Space};

/// Words of [`Space::holding`].
pub const HOLDING: usize = 6 + QUOTAS;

impl Space {
    /// An activity's holdings of everything that can run out: capabilities with a selector; bytes of kernel memory that all its
    /// holdings cost, whoever paid; endpoints; pages of page tables; bytes of memory that it cut out; bytes of kernel memory in purses;
    /// and the quotas ([`crate::Quota`]) of tile capabilities that have their own.
    pub fn holding(&self, holder: HolderId) -> [u64; HOLDING] {
        let mut all = [0; HOLDING];
        for (id, object) in self.alive().filter(|(id, _)| self.holder_of(*id) == holder) {
            let node = &self.nodes[id.index()];
            all[0] += u64::from(node.selector != crate::node::NO_SELECTOR);
            all[1] += node.cost;
            match object {
                _ if node.copy => {}
                Object::Endpoint { count, .. } => all[2] += u64::from(count),
                Object::Mapping { tables, .. } => all[3] += tables,
                Object::Memory(memory) if memory.is_piece() => all[4] += memory.size,
                Object::KernelMemory { given, .. } => all[5] += given,
                Object::Tile(tile) => {
                    for (number, quota) in Quota::ALL.iter().enumerate() {
                        if tile.owner[number] == id {
                            let sum = &mut all[6 + number];
                            *sum = sum.saturating_add(tile.given.get(*quota));
                        }
                    }
                }
                _ => {}
            }
        }
        all
    }

    /// All capabilities and their objects, in the order of their numbers.
    pub fn alive(&self) -> impl Iterator<Item = (NodeId, Object)> + '_ {
        let nodes = self.nodes.iter().enumerate();
        let alive = nodes.filter(|(_, node)| node.state != State::Free);
        alive.map(|(index, node)| {
            let mut object = node.object;
            // Marks of past events are not part of the books.
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
