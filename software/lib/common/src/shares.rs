//! Places of a table that several clients share, so that none can take another's.
//!
//! Why it exists: the first client could fill a table with a fixed number of places for all. Here every client has some places of
//! its own, which no other client gets; further places come from a remainder that all clients share. Each place counts for the
//! client that holds it until the client gives it back. What it deliberately does not know: the contents of the places.
//!
//! The table has the own places of all seats, plus the remainder. A client without a seat gets places of the remainder only.

use crate::payer::{PaidList, Share};
use crate::waiting::Client;
use alloc::vec::Vec;

/// Maximum gates of a service, and so maximum priorities of clients.
pub const PRIORITIES: usize = 8;

/// A client that shares a table.
pub trait Sharer: Copy + PartialEq {
    /// Its priority, and its number among those of this priority.
    fn seat(self) -> (usize, u64);
}

impl Sharer for Client {
    fn seat(self) -> (usize, u64) {
        (self.priority, self.label)
    }
}

/// Clients that have places of their own: of each priority, those with labels below a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seats([u64; PRIORITIES]);

impl Seats {
    /// Every possible client.
    pub const ALL: Self = Self([u64::MAX; PRIORITIES]);

    /// This many seats of each priority.
    pub fn new(of_priorities: impl IntoIterator<Item = u64>) -> Self {
        let mut seats = [0; PRIORITIES];
        for (seat, number) in seats.iter_mut().zip(of_priorities) {
            *seat = number;
        }
        Self(seats)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        let all = self
            .0
            .iter()
            .fold(0u64, |sum, seats| sum.saturating_add(*seats));
        usize::try_from(all).unwrap_or(usize::MAX)
    }

    fn has(&self, sharer: impl Sharer) -> bool {
        let (priority, number) = sharer.seat();
        self.0.get(priority).is_some_and(|seats| number < *seats)
    }
}

/// How many places each client has, and how many it holds. `K` identifies a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares<K> {
    each: usize,
    seats: Seats,
    common: usize,
    /// Places of the remainder that are held.
    beyond: usize,
    /// Clients that hold places, and how many; a client that holds none has no entry.
    held: PaidList<Share, (K, usize)>,
}

impl<K: Sharer> Shares<K> {
    /// Every client has `each` places, and all together have `common` more.
    pub const fn new(each: usize, common: usize) -> Self {
        Self::among(Seats::ALL, each, common)
    }

    /// Every client with a seat has `each` places, and all clients together have `common` more.
    pub const fn among(seats: Seats, each: usize, common: usize) -> Self {
        Self {
            each,
            seats,
            common,
            beyond: 0,
            held: PaidList::new(Vec::new()),
        }
    }

    /// Divides the places again. Each client keeps the places that it holds.
    pub fn divide(&mut self, seats: Seats, each: usize, common: usize) {
        (self.seats, self.each, self.common) = (seats, each, common);
        let held = self.held.iter();
        let beyond = held.map(|(who, count)| count.saturating_sub(self.own(*who)));
        self.beyond = beyond.sum();
    }

    /// Takes back all places.
    pub fn clear(&mut self) {
        self.beyond = 0;
        self.held.clear();
    }

    /// Places that are reserved for this client.
    fn own(&self, client: K) -> usize {
        match self.seats.has(client) {
            true => self.each,
            false => 0,
        }
    }

    /// Places that a client holds.
    pub fn of(&self, client: K) -> usize {
        let mut held = self.held.iter();
        held.find(|(who, _)| *who == client)
            .map_or(0, |(_, count)| *count)
    }

    /// Places that a client can take.
    pub fn room(&self, client: K) -> usize {
        let held = self.of(client);
        let own = self.own(client).saturating_sub(held);
        own.saturating_add(self.common.saturating_sub(self.beyond))
    }

    /// Whether a client can take one more place.
    pub fn has_room(&self, client: K) -> bool {
        self.room(client) > 0
    }

    /// Whether a client can take a place that another one, or it itself, gives back.
    pub fn makes_room(&self, from: K, to: K) -> bool {
        from == to || self.of(from) > self.own(from)
    }

    /// A client takes a place. Returns false if there is none for it.
    #[must_use]
    pub fn take(&mut self, client: K) -> bool {
        let has_room = self.has_room(client);
        if has_room {
            self.hold(client, 1);
        }
        has_room
    }

    /// Counts this many more places for a client, whether or not there is room: they belonged to it before counting began.
    pub fn hold(&mut self, client: K, count: usize) {
        if count == 0 {
            return;
        }
        self.change(client, |held| held.saturating_add(count));
    }

    /// A client gives back a place that it holds.
    pub fn give_back(&mut self, client: K) {
        self.give_back_all(client, 1);
    }

    /// A client gives back this many places that it holds.
    pub fn give_back_all(&mut self, client: K, count: usize) {
        if self.of(client) > 0 {
            self.change(client, |held| held.saturating_sub(count));
        }
    }

    /// Puts clients in the order of their names: nothing else depends on it.
    pub fn sort(&mut self)
    where
        K: Ord,
    {
        self.held.sort_unstable_by_key(|(who, _)| *who);
    }

    fn change(&mut self, client: K, to: impl FnOnce(usize) -> usize) {
        let index = match self.held.iter().position(|(who, _)| *who == client) {
            Some(index) => index,
            None => {
                self.held.push((client, 0));
                self.held.len() - 1
            }
        };
        let own = self.own(client);
        let count = &mut self.held[index].1;
        let before = count.saturating_sub(own);
        *count = to(*count);
        let after = count.saturating_sub(own);
        self.beyond = self.beyond - before + after;
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

    impl Sharer for u8 {
        fn seat(self) -> (usize, u64) {
            (usize::from(self % 2), (self / 2).into())
        }
    }

    proptest! {
        /// Whatever the others hold, a client gets its own places; all clients together never hold more places than exist.
        #[test]
        fn nobody_takes_the_places_of_another(
            steps in prop::collection::vec((0u8..5, any::<bool>(), 1usize..4), 0..200),
            own in 0usize..4,
            common in 0usize..6,
            seats in [0u64..4, 0u64..4],
        ) {
            let mut shares = Shares::among(Seats::new(seats), own, common);
            let of = |client: u8| match u64::from(client / 2) < seats[usize::from(client % 2)] {
                true => own,
                false => 0,
            };
            let beyond_of = |model: &BTreeMap<u8, usize>| -> usize {
                model.iter().map(|(client, held)| held.saturating_sub(of(*client))).sum()
            };
            let mut model: BTreeMap<u8, usize> = BTreeMap::new();
            for (client, takes, count) in steps {
                let beyond = beyond_of(&model);
                let held = model.entry(client).or_default();
                if takes {
                    let is_free = *held < of(client) || beyond < common;
                    prop_assert_eq!(shares.has_room(client), is_free);
                    prop_assert_eq!(shares.take(client), is_free);
                    *held += usize::from(is_free);
                    // And several more at once.
                    let more = count.min(shares.room(client));
                    shares.hold(client, more);
                    *held += more;
                } else {
                    shares.give_back_all(client, count);
                    *held = held.saturating_sub(count);
                }
                prop_assert_eq!(shares.of(client), *held);
                prop_assert!(beyond_of(&model) <= common);
                model.retain(|_, held| *held > 0);
                prop_assert_eq!(shares.held.len(), model.len());
            }
        }
    }
}
