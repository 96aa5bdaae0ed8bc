//! A queue that mostly holds one entry or none, grows by one at a time, and is never copied.
//!
//! Why it exists: a list that takes memory for each entry never copies the others, however many there are, but then every entry
//! costs an allocation. If each entry comes and goes before the next, that is most of the work. So the first entry has a place of
//! its own. What it deliberately does not know: the entries.

use crate::payer::{Paid, Payer};
use alloc::boxed::Box;
use alloc::collections::{LinkedList, linked_list};
use core::{array, iter, option};

/// Entries in the order of their arrival, each paid for before it is put in.
#[derive(Clone, Debug)]
pub struct Line<P, T> {
    /// The number of entries, kept here so that reading it touches nothing else.
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

/// A [`Line`] for each of `N` ranks: entries of the highest rank leave first.
#[derive(Clone, Debug)]
pub struct Ranks<P, T, const N: usize> {
    /// The number of entries, kept here so that reading it touches nothing else.
    count: usize,
    lines: Box<[Line<P, T>; N]>,
}

impl<P: Payer, T, const N: usize> Default for Ranks<P, T, N> {
    fn default() -> Self {
        Self {
            count: 0,
            lines: Box::new(array::from_fn(|_| Line::default())),
        }
    }
}

impl<P, T, const N: usize> Ranks<P, T, N> {
    /// Adds an entry behind all of its rank; ranks above the highest are the highest.
    pub fn push_back(&mut self, rank: usize, entry: T) {
        if let Some(line) = self.lines.get_mut(rank.min(N.saturating_sub(1))) {
            self.count += 1;
            line.push_back(entry);
        }
    }

    /// Takes the first entry of the highest rank.
    pub fn pop_front(&mut self) -> Option<T> {
        if self.count == 0 {
            return None;
        }
        let first = self.lines.iter_mut().rev().find_map(Line::pop_front);
        self.count -= usize::from(first.is_some());
        first
    }

    /// The first entry of the highest rank.
    pub fn front(&self) -> Option<&T> {
        self.lines.iter().rev().find_map(Line::front)
    }

    /// The highest rank that has an entry.
    pub fn highest(&self) -> Option<usize> {
        self.lines.iter().rposition(|line| !line.is_empty())
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

    /// All entries, rank by rank.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.lines.iter().flat_map(Line::iter)
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
        fn the_highest_rank_leaves_first(steps in prop::collection::vec(any::<Option<(u8, u8)>>(), 0..100)) {
            let (mut ranks, mut model) = (Ranks::<Caller, u8, 3>::default(), std::vec::Vec::<(usize, u8)>::new());
            for step in steps {
                match step {
                    Some((rank, entry)) => {
                        let rank = usize::from(rank % 3);
                        ranks.push_back(rank, entry);
                        model.push((rank, entry));
                    }
                    None => {
                        // The first of those with the highest rank.
                        let place = (0..model.len()).rev().max_by_key(|place| model[*place].0);
                        prop_assert_eq!(ranks.pop_front(), place.map(|place| model.remove(place).1));
                    }
                }
                prop_assert_eq!(ranks.highest(), model.iter().map(|(rank, _)| *rank).max());
                let first = (0..model.len()).rev().max_by_key(|place| model[*place].0);
                prop_assert_eq!(ranks.front().copied(), first.map(|place| model[place].1));
                prop_assert_eq!((ranks.len(), ranks.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(ranks.iter().count(), model.len());
            }
        }

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
