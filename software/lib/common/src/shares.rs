//! Places of a table that several clients share, so that none can take another's.
//!
//! Why it exists: a table with so many places for everybody belongs to whoever is first. Here every client has some places of its
//! own, which nobody else gets, and what it holds beyond them comes from a rest that is for all. Each place is on the account of
//! the client that holds it, until it is given back. What it deliberately does not know: what is in the places.

use alloc::vec::Vec;

/// How many places each client has, and who holds how many. `K` says which client it is.
#[derive(Clone, Debug)]
pub struct Shares<K> {
    each: usize,
    common: usize,
    /// Places of the rest that are held.
    beyond: usize,
    /// Clients that hold places, and how many; nobody is in it who holds none.
    held: Vec<(K, usize)>,
}

impl<K: Copy + PartialEq> Shares<K> {
    /// Every client has `each` places, and all together have `common` more.
    pub const fn new(each: usize, common: usize) -> Self {
        Self {
            each,
            common,
            beyond: 0,
            held: Vec::new(),
        }
    }

    /// Places that a client holds.
    pub fn of(&self, client: K) -> usize {
        let mut held = self.held.iter();
        held.find(|(who, _)| *who == client)
            .map_or(0, |(_, count)| *count)
    }

    /// Whether a client can take one more place.
    pub fn has_room(&self, client: K) -> bool {
        self.beyond < self.common || self.of(client) < self.each
    }

    /// A client takes a place; false if there is none for it.
    #[must_use]
    pub fn take(&mut self, client: K) -> bool {
        if !self.has_room(client) {
            return false;
        }
        self.beyond += usize::from(self.of(client) >= self.each);
        match self.held.iter_mut().find(|(who, _)| *who == client) {
            Some((_, count)) => *count += 1,
            None => self.held.push((client, 1)),
        }
        true
    }

    /// A client gives a place back that it holds.
    pub fn give_back(&mut self, client: K) {
        let Some(index) = self.held.iter().position(|(who, _)| *who == client) else {
            return;
        };
        let count = &mut self.held[index].1;
        self.beyond -= usize::from(*count > self.each);
        *count -= 1;
        if *count == 0 {
            self.held.swap_remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Whatever the others hold, a client gets its own places; all together never hold more than there are.
        #[test]
        fn nobody_takes_the_places_of_another(
            steps in prop::collection::vec((0u8..5, any::<bool>()), 0..200),
            each in 0usize..4,
            common in 0usize..6,
        ) {
            let mut shares = Shares::new(each, common);
            let mut model: BTreeMap<u8, usize> = BTreeMap::new();
            for (client, takes) in steps {
                let beyond: usize = model.values().map(|held| held.saturating_sub(each)).sum();
                let held = model.entry(client).or_default();
                if takes {
                    let is_free = *held < each || beyond < common;
                    prop_assert_eq!(shares.has_room(client), is_free);
                    prop_assert_eq!(shares.take(client), is_free);
                    *held += usize::from(is_free);
                } else {
                    shares.give_back(client);
                    *held = held.saturating_sub(1);
                }
                prop_assert_eq!(shares.of(client), *held);
                prop_assert!(beyond <= common);
                model.retain(|_, held| *held > 0);
                prop_assert_eq!(shares.held.len(), model.len());
            }
        }
    }
}
