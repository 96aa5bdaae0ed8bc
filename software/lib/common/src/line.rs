//! A queue that mostly holds one entry or none, grows by one at a time, and is never copied.
//!
//! Why it exists: a list that takes memory for each entry never copies the others, however many there are, but then every entry
//! costs an allocation. If each entry comes and goes before the next, that is most of the work. So the first entry has a place of
//! its own. What it deliberately does not know: the entries.

use crate::payer::{Paid, Payer};
use alloc::collections::{LinkedList, linked_list};
use core::{iter, option};

/// Entries in the order of their arrival, each paid for before it is put in.
#[derive(Clone, Debug)]
pub struct Line<P, T> {
    /// The number of entries: to know it, one needs to look at nothing else.
    count: usize,
    /// `None`: the list after it is empty, too.
    first: Option<T>,
    behind: Paid<P, LinkedList<T>>,
}

impl<P: Payer, T> Default for Line<P, T> {
    fn default() -> Self {
        Self {
            count: 0,
            first: None,
            behind: Paid::new(LinkedList::new()),
        }
    }
}

impl<P, T> Line<P, T> {
    /// Adds an entry at the end.
    pub fn push_back(&mut self, entry: T) {
        self.count += 1;
        match self.first {
            None => self.first = Some(entry),
            Some(_) => self.behind.push_back(entry),
        }
    }

    /// Takes the first entry.
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.first.take();
        self.count -= usize::from(first.is_some());
        if !self.behind.is_empty() {
            self.first = self.behind.pop_front();
        }
        first
    }

    /// Takes the first entry, if `is_it` is true for it.
    pub fn pop_front_if(&mut self, is_it: impl FnOnce(&T) -> bool) -> Option<T> {
        match self.front().is_some_and(is_it) {
            true => self.pop_front(),
            false => None,
        }
    }

    /// The first entry.
    pub fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The number of entries.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// All entries, in order.
    pub fn iter(&self) -> iter::Chain<option::Iter<'_, T>, linked_list::Iter<'_, T>> {
        self.first.iter().chain(self.behind.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payer::Caller;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn entries_leave_in_the_order_in_which_they_came(steps in prop::collection::vec(any::<Option<u8>>(), 0..100)) {
            let (mut line, mut model) = (Line::<Caller, u8>::default(), VecDeque::new());
            for step in steps {
                match step {
                    Some(entry) => {
                        line.push_back(entry);
                        model.push_back(entry);
                    }
                    None => prop_assert_eq!(line.pop_front(), model.pop_front()),
                }
                prop_assert!(line.iter().eq(&model));
                prop_assert_eq!((line.front(), line.len(), line.is_empty()), (model.front(), model.len(), model.is_empty()));
            }
        }
    }
}
