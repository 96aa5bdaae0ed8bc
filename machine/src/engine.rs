//! The order of events: a queue sorted by (time, component, sequence).
//!
//! Why it exists: two events at the same moment must always be processed in the same order, whatever order the host
//! inserted them in. The component (a number that the owner of a queue gives to each source of events) decides first.
//! The sequence only separates events of one component, which inserts them in a fixed order. What it deliberately does
//! not know: what an event means.

use crate::types::Tick;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Clone, Debug)]
struct Entry<E> {
    time: Tick,
    component: u32,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Tick, u32, u64) {
        (self.time, self.component, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<E> Eq for Entry<E> {}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Entry<E> {
    // Reversed: the standard heap returns the greatest element first, but the queue needs the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Events sorted by (time, component, sequence).
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    sequence: u64,
    next: Tick,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
            next: Tick::MAX,
        }
    }
}

impl<E> EventQueue<E> {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Inserts an event.
    pub fn push(&mut self, time: Tick, component: u32, event: E) {
        self.sequence += 1;
        self.next = self.next.min(time);
        self.heap.push(Entry {
            time,
            component,
            sequence: self.sequence,
            event,
        });
    }

    /// The time of the first event, or [`Tick::MAX`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Tick {
        self.next
    }

    /// Takes the first event and its time.
    pub fn pop(&mut self) -> Option<(Tick, E)> {
        let entry = self.heap.pop()?;
        self.next = self.heap.peek().map_or(Tick::MAX, |e| e.time);
        Some((entry.time, entry.event))
    }

    /// All events, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &E> {
        self.heap.iter().map(|entry| &entry.event)
    }

    /// Changes events, in no order.
    pub fn for_each_mut(&mut self, mut change: impl FnMut(&mut E)) {
        let mut all = std::mem::take(&mut self.heap).into_vec();
        for entry in &mut all {
            change(&mut entry.event);
        }
        self.heap = all.into();
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn order_is_time_component_sequence(events in prop::collection::vec((0u64..8, 0u32..4), 0..60)) {
            let mut queue = EventQueue::new();
            for (i, &(time, component)) in events.iter().enumerate() {
                queue.push(time, component, i);
            }
            // A stable sort by (time, component) keeps the order of insertion: the reference.
            let mut expected: Vec<usize> = (0..events.len()).collect();
            expected.sort_by_key(|&i| events[i]);
            let mut got = Vec::new();
            while let Some((time, i)) = queue.pop() {
                prop_assert_eq!(time, events[i].0);
                prop_assert!(queue.next_time() >= time);
                got.push(i);
            }
            prop_assert_eq!(got, expected);
            prop_assert_eq!(queue.next_time(), Tick::MAX);
        }
    }
}
