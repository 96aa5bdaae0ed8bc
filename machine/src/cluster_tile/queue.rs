//! Future arrivals at a part of a cluster, in the order of their moments.
//!
//! Why it exists: a miss passes two such queues, and nearly everything comes in the order in which it was sent, because the ways of a
//! cluster have fixed lengths. So a new arrival goes to the end, or a few places before it. The order is that of
//! [`crate::engine::EventQueue`]: by moment, then by source; arrivals from one source at one moment stay in the order in which they were
//! sent. What it deliberately does not know: the contents of an arrival.
//!
//! It holds what the harts of a cluster have under way (miss registers, probes, evicted lines, writes to devices within one way):
//! some dozens. So a search from the end is short.

use crate::types::Tick;
use std::collections::VecDeque;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Queue<E> {
    entries: VecDeque<(Tick, u32, E)>,
    next: Tick,
}

impl<E> Queue<E> {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            entries: VecDeque::with_capacity(16),
            next: Tick::MAX,
        }
    }

    /// Inserts something that comes at this moment from this source.
    #[inline]
    pub fn push(&mut self, time: Tick, source: u32, event: E) {
        self.next = self.next.min(time);
        self.entries.push_back((time, source, event));
        let mut at = self.entries.len() - 1;
        while at > 0 {
            let before = &self.entries[at - 1];
            if (before.0, before.1) <= (time, source) {
                break;
            }
            self.entries.swap(at - 1, at);
            at -= 1;
        }
    }

    /// The moment of the first event; [`Tick::MAX`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Tick {
        self.next
    }

    /// Takes the first event and its moment.
    #[inline]
    pub fn pop(&mut self) -> Option<(Tick, E)> {
        let (time, _, event) = self.entries.pop_front()?;
        self.next = self.entries.front().map_or(Tick::MAX, |first| first.0);
        Some((time, event))
    }

    /// Changes the future arrivals, the first one first.
    pub fn for_each_mut(&mut self, change: impl FnMut(&mut E)) {
        self.entries
            .iter_mut()
            .map(|entry| &mut entry.2)
            .for_each(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EventQueue;
    use proptest::prelude::*;

    proptest! {
        /// The queue of the fabric is the reference.
        #[test]
        fn the_order_is_that_of_the_event_queue(
            steps in prop::collection::vec(prop::option::weighted(0.6, (0u64..8, 0u32..4)), 0..80)
        ) {
            let (mut queue, mut reference) = (Queue::new(), EventQueue::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some((time, source)) => {
                        queue.push(time, source, number);
                        reference.push(time, source, number);
                    }
                    None => prop_assert_eq!(queue.pop(), reference.pop()),
                }
                prop_assert_eq!(queue.next_time(), reference.next_time());
            }
            while let Some(first) = reference.pop() {
                prop_assert_eq!(queue.pop(), Some(first));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
