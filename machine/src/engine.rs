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
    /// Time, component and sequence, from the highest bits down: one comparison instead of three.
    key: u128,
    event: E,
}

/// The place of the component's number in a key; the sequence is below it, the time above.
const COMPONENT: u32 = 32;
/// The place of the time.
const TIME: u32 = 64;

impl<E> Entry<E> {
    fn new((time, component, sequence): (Tick, u32, u32), event: E) -> Self {
        let key = u128::from(time) << TIME | u128::from(component) << COMPONENT;
        let key = key | u128::from(sequence);
        Self { key, event }
    }

    fn time(&self) -> Tick {
        (self.key >> TIME) as Tick
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
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
        other.key.cmp(&self.key)
    }
}

/// Events sorted by (time, component, sequence).
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: BinaryHeap<Entry<E>>,
    sequence: u32,
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
        if self.sequence == u32::MAX {
            self.renumber();
        }
        self.sequence += 1;
        self.next = self.next.min(time);
        self.heap
            .push(Entry::new((time, component, self.sequence), event));
    }

    /// Numbers all events again in their order, because their sequence has no more numbers.
    fn renumber(&mut self) {
        let latest_first = std::mem::take(&mut self.heap).into_sorted_vec();
        self.sequence = 0;
        let numbered = latest_first.into_iter().rev().map(|entry| {
            self.sequence += 1;
            let component = (entry.key >> COMPONENT) as u32;
            Entry::new((entry.time(), component, self.sequence), entry.event)
        });
        self.heap = numbered.collect();
    }

    /// The time of the first event, or [`Tick::MAX`] if there is none.
    #[inline]
    pub fn next_time(&self) -> Tick {
        self.next
    }

    /// Takes the first event and its time.
    pub fn pop(&mut self) -> Option<(Tick, E)> {
        let entry = self.heap.pop()?;
        self.next = self.heap.peek().map_or(Tick::MAX, Entry::time);
        Some((entry.time(), entry.event))
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
        fn order_is_time_component_sequence(
            events in prop::collection::vec((0u64..8, 0u32..4), 0..60),
            numbers in 0u32..80,
        ) {
            // So many numbers are left before all events are numbered again.
            let mut queue = EventQueue { sequence: u32::MAX - numbers, ..EventQueue::new() };
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

        #[test]
        fn any_time_and_component_come_back_in_order(mut events in prop::collection::vec((any::<u64>(), any::<u32>()), 0..20)) {
            let mut queue = EventQueue::new();
            for &(time, component) in &events {
                queue.push(time, component, (time, component));
            }
            events.sort_unstable();
            let got: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
            prop_assert_eq!(got, events);
        }
    }
}
