//! Requests that a server has taken and set aside: which comes next?
//!
//! Why it exists: a delayed request must neither block others nor be overtaken by a later one of the same client. What it
//! deliberately does not know: what the requests ask, and why they wait.
//!
//! Its memory is fixed: the server gives it as many places as its gates have slots.

use crate::payer::{Credit, Reserved};

/// The client: the priority of the gate (0 is the highest) and the label of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    /// 0 is served first.
    pub priority: usize,
    /// Chosen by the description or the kernel; cannot be forged.
    pub label: u64,
}

/// The owner of something that a service keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The client whose account it counts for: the owner of the channel. Several activities may share one, such as an application
    /// and its children.
    pub client: Client,
    /// The activity that asked for it, according to the unit or the kernel.
    pub activity: u16,
}

/// A request that waits.
#[derive(Debug)]
struct Entry<T> {
    client: Client,
    release: u64,
    item: T,
}

/// Waiting requests in the order of their arrival.
#[derive(Debug)]
pub struct Waiting<T> {
    entries: Reserved<Credit, Entry<T>>,
}

impl<T> Waiting<T> {
    /// A queue with this many places.
    pub fn with_capacity(places: usize) -> Self {
        Self {
            entries: Reserved::with_room(places),
        }
    }

    /// Whether nothing waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many requests wait.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The request with this index, in the order of their arrival.
    pub fn item(&self, index: usize) -> Option<&T> {
        self.entries.get(index).map(|entry| &entry.item)
    }

    /// Removes the request with this index.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        (index < self.entries.len()).then(|| self.entries.remove(index).item)
    }

    /// Whether a request of this client waits: then its later requests must queue up behind it.
    pub fn has(&self, client: Client) -> bool {
        self.entries.iter().any(|e| e.client == client)
    }

    /// Sets a request aside until `release`. Returns it if there is no place.
    ///
    /// # Errors
    /// The request.
    pub fn put(&mut self, client: Client, release: u64, item: T) -> Result<(), T> {
        let entry = Entry {
            client,
            release,
            item,
        };
        self.entries.push(entry).map_err(|entry| entry.item)
    }

    /// Puts back a request that was taken, ahead of the later ones of its client. Returns it if there is no place.
    ///
    /// # Errors
    /// The request.
    pub fn put_back(&mut self, client: Client, release: u64, item: T) -> Result<(), T> {
        let first = self.entries.iter().position(|e| e.client == client);
        self.put(client, release, item)?;
        if let Some(first) = first {
            self.entries[first..].rotate_right(1);
        }
        Ok(())
    }

    /// Changes the release of the first request of a client.
    pub fn postpone(&mut self, client: Client, release: u64) {
        if let Some(entry) = self.entries.iter_mut().find(|e| e.client == client) {
            entry.release = release;
        }
    }

    /// The first request that is due, of clients of this priority. Only a client's first request counts.
    pub fn due(&self, priority: usize, now: u64) -> Option<(Client, &T)> {
        let index = self.find(priority, now)?;
        let entry = &self.entries[index];
        Some((entry.client, &entry.item))
    }

    /// Takes the request that [`due`](Self::due) returns.
    pub fn take(&mut self, priority: usize, now: u64) -> Option<(Client, T)> {
        let index = self.find(priority, now)?;
        let entry = self.entries.remove(index);
        Some((entry.client, entry.item))
    }

    fn find(&self, priority: usize, now: u64) -> Option<usize> {
        (0..self.entries.len()).find(|&index| {
            let entry = &self.entries[index];
            entry.client.priority == priority && entry.release <= now && self.is_first(index)
        })
    }

    /// When the next request is due, if one waits.
    pub fn next(&self) -> Option<u64> {
        let firsts = (0..self.entries.len()).filter(|&index| self.is_first(index));
        firsts.map(|index| self.entries[index].release).min()
    }

    /// Drops the waiting requests of a client.
    pub fn forget(&mut self, client: Client) {
        self.entries.retain(|e| e.client != client);
    }

    fn is_first(&self, index: usize) -> bool {
        let client = self.entries[index].client;
        !self.entries[..index].iter().any(|e| e.client == client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};

    fn client(priority: usize, label: u64) -> Client {
        Client { priority, label }
    }

    #[test]
    fn nobody_overtakes_himself_and_nobody_blocks_others() {
        let mut waiting = Waiting::with_capacity(4);
        let (a, b) = (client(1, 0), client(1, 1));
        assert_eq!(waiting.put(a, 100, "a1"), Ok(()));
        assert_eq!(waiting.put(a, 0, "a2"), Ok(()));
        assert_eq!(waiting.put(b, 50, "b1"), Ok(()));
        assert_eq!(waiting.next(), Some(50));
        assert_eq!(waiting.take(1, 60), Some((b, "b1")));
        assert_eq!(waiting.take(1, 60), None);
        assert_eq!(waiting.take(0, 200), None);
        assert_eq!(waiting.take(1, 100), Some((a, "a1")));
        assert_eq!(waiting.take(1, 100), Some((a, "a2")));
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_postponed_request_keeps_its_place() {
        let mut waiting = Waiting::with_capacity(4);
        let a = client(0, 0);
        assert_eq!(waiting.put(a, 10, 1), Ok(()));
        assert_eq!(waiting.put(a, 10, 2), Ok(()));
        waiting.postpone(a, 20);
        assert_eq!(waiting.due(0, 15), None);
        assert_eq!(waiting.take(0, 20), Some((a, 1)));
    }

    #[test]
    fn who_is_put_back_stays_ahead_of_his_later_requests() {
        let mut waiting = Waiting::with_capacity(4);
        let (a, b) = (client(1, 0), client(1, 1));
        assert_eq!(waiting.put(b, 0, "b1"), Ok(()));
        assert_eq!(waiting.put(a, 0, "a1"), Ok(()));
        assert_eq!(waiting.put(a, 0, "a2"), Ok(()));
        assert_eq!(waiting.put_back(a, 20, "a0"), Ok(()));
        assert_eq!(waiting.put_back(a, 20, "none"), Err("none"));
        assert_eq!(waiting.take(1, 10), Some((b, "b1")));
        assert_eq!(waiting.take(1, 10), None);
        for expected in ["a0", "a1", "a2"] {
            assert_eq!(waiting.take(1, 20), Some((a, expected)));
        }
    }

    #[test]
    fn it_never_grows() {
        let mut waiting = Waiting::with_capacity(2);
        assert_eq!(waiting.put(client(0, 0), 0, 1), Ok(()));
        assert_eq!(waiting.put(client(0, 0), 0, 2), Ok(()));
        assert_eq!(waiting.put(client(0, 0), 0, 3), Err(3));
    }

    proptest! {
        /// Against a model with a queue for each client.
        #[test]
        fn as_the_model(steps in proptest::collection::vec((0u8..4, 0usize..3, 0u64..3, 0u64..50), 1..200)) {
            let mut waiting = Waiting::with_capacity(16);
            let mut model: BTreeMap<Client, VecDeque<(usize, u64)>> = BTreeMap::new();
            for (id, (kind, priority, label, time)) in steps.into_iter().enumerate() {
                let who = client(priority, label);
                let size: usize = model.values().map(VecDeque::len).sum();
                match kind {
                    0 | 1 => {
                        let done = waiting.put(who, time, id).is_ok();
                        prop_assert_eq!(done, size < 16);
                        if done {
                            model.entry(who).or_default().push_back((id, time));
                        }
                    }
                    2 => {
                        // Of the due first requests of this priority, the one that arrived first.
                        let best = model
                            .iter()
                            .filter(|(c, _)| c.priority == priority)
                            .filter_map(|(&c, queue)| queue.front().map(|&(id, release)| (id, release, c)))
                            .filter(|&(_, release, _)| release <= time)
                            .min();
                        let expected = best.map(|(id, _, c)| (c, id));
                        if let Some((c, _)) = expected {
                            model.get_mut(&c).map(VecDeque::pop_front);
                        }
                        let due = waiting.due(priority, time).map(|(c, &id)| (c, id));
                        prop_assert_eq!(due, expected);
                        prop_assert_eq!(waiting.take(priority, time), expected);
                    }
                    _ => {
                        model.remove(&who);
                        waiting.forget(who);
                        prop_assert!(!waiting.has(who));
                    }
                }
                let next = model.values().filter_map(|q| q.front().map(|&(_, release)| release)).min();
                prop_assert_eq!(waiting.next(), next);
            }
        }
    }
}
