//! Which endpoints of a tile's unit are in use.
//!
//! Why it exists: endpoint numbers are given out and come back. What it deliberately does not know: who has them and
//! why; the capabilities know that.

use bulkhead_capabilities::NodeId;
use bulkhead_common::payer::Fixed;

/// The endpoints of one unit.
#[derive(Clone, Debug)]
pub struct EndpointTable {
    /// A bit for each: it is in use.
    used: Fixed<u64>,
    count: u16,
    /// The capability that activated each receive endpoint, as long as the endpoint is active.
    gates: Fixed<NodeId>,
}

/// Endpoints in a word of the table.
const WORD: u16 = 64;

impl EndpointTable {
    /// `count` endpoints, the first `reserved` of which are the system's.
    pub fn new(count: u16, reserved: u16) -> Self {
        let mut table = Self {
            used: (0..count.div_ceil(WORD)).map(|_| 0).collect(),
            count,
            gates: (0..count).map(|_| NodeId::NONE).collect(),
        };
        table.take(0, reserved.min(count));
        // Endpoints that do not exist are never free.
        if !count.is_multiple_of(WORD)
            && let Some(last) = table.used.last_mut()
        {
            *last |= u64::MAX << (count % WORD);
        }
        table
    }

    /// First of `count` free endpoints in a row; they stay free until [`take`](Self::take).
    pub fn find(&self, count: u16) -> Option<u16> {
        let count = count.max(1);
        let (mut start, mut at) = (0, 0);
        // Jumps from one change between used and free to the next.
        while at < self.count {
            let word = self.used[usize::from(at / WORD)] >> (at % WORD);
            let left = WORD - at % WORD;
            let free = (word.trailing_zeros() as u16).min(left);
            at += free;
            if at - start >= count {
                return Some(start);
            }
            if free < left {
                at += (word >> free).trailing_ones() as u16;
                start = at;
            }
        }
        None
    }

    /// Whether these endpoints exist and are free.
    pub fn are_free(&self, first: u16, count: u16) -> bool {
        let end = first.checked_add(count.max(1));
        end.is_some_and(|end| {
            end <= self.count && (first..end).all(|endpoint| self.is_free(endpoint))
        })
    }

    fn is_free(&self, endpoint: u16) -> bool {
        self.used[usize::from(endpoint / WORD)] & 1 << (endpoint % WORD) == 0
    }

    /// Takes endpoints.
    pub fn take(&mut self, first: u16, count: u16) {
        for endpoint in first..first.saturating_add(count) {
            self.set(endpoint, true);
        }
    }

    /// Gives an endpoint back.
    pub fn free(&mut self, endpoint: u16) {
        self.set(endpoint, false);
    }

    fn set(&mut self, endpoint: u16, used: bool) {
        if endpoint >= self.count {
            return;
        }
        let word = &mut self.used[usize::from(endpoint / WORD)];
        let bit = 1 << (endpoint % WORD);
        *word = if used { *word | bit } else { *word & !bit };
    }

    /// An endpoint receives for a capability from now on, or for none.
    pub fn receives(&mut self, endpoint: u16, node: Option<NodeId>) {
        if let Some(place) = self.gates.get_mut(usize::from(endpoint)) {
            *place = node.unwrap_or(NodeId::NONE);
        }
    }

    /// The capability that an endpoint receives for.
    pub fn gate(&self, endpoint: u16) -> Option<NodeId> {
        let node = self.gates.get(usize::from(endpoint)).copied();
        node.filter(|node| node.is_some())
    }

    /// Free endpoints.
    pub fn left(&self) -> usize {
        self.used
            .iter()
            .map(|word| word.count_zeros() as usize)
            .sum()
    }
}
