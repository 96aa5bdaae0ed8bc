//! Timing events: an action at a tick, without a task.
//!
//! Why it exists: Ada reference manual, D.15. The events themselves form the queue, so it needs no memory of its own and cannot be
//! full. What it deliberately does not know: the actions.

use core::cell::Cell;

/// An event that can be set for a tick, with the data that the caller needs then.
#[derive(Debug)]
pub struct Event<'a, A> {
    /// The action that is due.
    pub action: A,
    at: Cell<u64>,
    is_set: Cell<bool>,
    next: Cell<Option<&'a Event<'a, A>>>,
}

impl<A> Event<'_, A> {
    /// Not set.
    pub const fn new(action: A) -> Self {
        Self {
            action,
            at: Cell::new(0),
            is_set: Cell::new(false),
            next: Cell::new(None),
        }
    }

    /// When it will be due, if it is set.
    pub fn at(&self) -> Option<u64> {
        self.is_set.get().then(|| self.at.get())
    }
}

/// Set events by time; among those of one tick, the one that was set first comes first.
#[derive(Debug)]
pub struct Events<'a, A> {
    first: Option<&'a Event<'a, A>>,
}

impl<A> Default for Events<'_, A> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a, A> Events<'a, A> {
    /// No event is set.
    pub const fn new() -> Self {
        Self { first: None }
    }

    /// Sets an event for a tick; an earlier setting is dropped. An event belongs to one queue only.
    pub fn set(&mut self, event: &'a Event<'a, A>, at: u64) {
        self.cancel(event);
        event.at.set(at);
        event.is_set.set(true);
        let mut before: Option<&'a Event<'a, A>> = None;
        let mut next = self.first;
        while let Some(other) = next.filter(|other| other.at.get() <= at) {
            before = Some(other);
            next = other.next.get();
        }
        event.next.set(next);
        match before {
            Some(before) => before.next.set(Some(event)),
            None => self.first = Some(event),
        }
    }

    /// Cancels an event. Returns whether it was set.
    pub fn cancel(&mut self, event: &'a Event<'a, A>) -> bool {
        if !event.is_set.replace(false) {
            return false;
        }
        let mut before: Option<&'a Event<'a, A>> = None;
        let mut next = self.first;
        while let Some(other) = next {
            if core::ptr::eq(other, event) {
                match before {
                    Some(before) => before.next.set(other.next.get()),
                    None => self.first = other.next.get(),
                }
                break;
            }
            before = next;
            next = other.next.get();
        }
        true
    }

    /// Takes the first event that is due.
    pub fn due(&mut self, now: u64) -> Option<&'a Event<'a, A>> {
        let event = self.first.filter(|event| event.at.get() <= now)?;
        self.first = event.next.get();
        event.is_set.set(false);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a list that is sorted anew each time.
        #[test]
        fn as_a_sorted_list(steps in proptest::collection::vec((0usize..4, 0usize..5, 0u64..12), 0..80)) {
            let events: [Event<usize>; 5] = core::array::from_fn(Event::new);
            let mut queue = Events::new();
            // Time, order of setting, event.
            let mut model: Vec<(u64, usize, usize)> = Vec::new();
            for (number, (what, which, time)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        queue.set(&events[which], time);
                        model.retain(|m| m.2 != which);
                        model.push((time, number, which));
                    }
                    2 => {
                        let was = model.iter().any(|m| m.2 == which);
                        prop_assert_eq!(queue.cancel(&events[which]), was);
                        model.retain(|m| m.2 != which);
                    }
                    _ => {
                        model.sort_unstable();
                        let due = model.first().filter(|m| m.0 <= time).map(|m| m.2);
                        model.retain(|m| Some(m.2) != due);
                        prop_assert_eq!(queue.due(time).map(|event| event.action), due);
                    }
                }
                for (index, event) in events.iter().enumerate() {
                    let set = model.iter().find(|m| m.2 == index).map(|m| m.0);
                    prop_assert_eq!(event.at(), set);
                }
            }
        }
    }
}
