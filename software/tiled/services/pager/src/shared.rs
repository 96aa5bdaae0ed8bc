//! Unchanged pages of files that clients share.
//!
//! What it deliberately does not know: a client's other pages.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bulkhead_common::payer::{Fixed, Paid, PaidList, Share};

/// A page of a file: the file's number and the page's.
pub type Key = (usize, u64);

/// A page of a client that shows a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// The client.
    pub client: usize,
    /// Its page.
    pub page: u64,
    /// The address of that page.
    pub address: u64,
}

#[derive(Debug, Default)]
struct Frame {
    key: Option<Key>,
    users: PaidList<Share, User>,
}

/// The frames.
#[derive(Debug)]
pub struct Shared {
    frames: Fixed<Frame>,
    known: Paid<Share, BTreeMap<Key, u64>>,
    /// The frame to be reused next.
    hand: u64,
}

impl Shared {
    /// With this many frames, possibly none.
    pub fn new(frames: u64) -> Self {
        Self {
            frames: (0..frames).map(|_| Frame::default()).collect(),
            known: Paid::default(),
            hand: 0,
        }
    }

    /// Whether there are any.
    pub fn is_used(&self) -> bool {
        !self.frames.is_empty()
    }

    /// The frame of a page of a file.
    pub fn find(&self, key: Key) -> Option<u64> {
        self.known.get(&key).copied()
    }

    /// Frames that a client uses.
    pub fn uses(&self, client: usize) -> u64 {
        let of = |frame: &&Frame| frame.users.iter().any(|user| user.client == client);
        self.frames.iter().filter(of).count() as u64
    }

    /// Shows a page of a file at a page of a client. Returns the frame, whether it must be filled, and the users that lose the page
    /// that they had there. Unused frames are taken first, then those of the client with the most frames: a client with no more
    /// than an equal part keeps its frames, whatever others do.
    pub fn join(&mut self, key: Key, user: User) -> (u64, bool, PaidList<Share, User>) {
        if let Some(frame) = self.find(key) {
            self.frames[frame as usize].users.push(user);
            return (frame, false, PaidList::default());
        }
        let count = self.frames.len() as u64;
        let mut order = (0..count).map(|next| (self.hand + next) % count);
        let unused = order.find(|frame| self.frames[*frame as usize].users.is_empty());
        let frame = unused.unwrap_or_else(|| self.victim(user.client));
        self.hand = (frame + 1) % count;
        let place = &mut self.frames[frame as usize];
        if let Some(old) = place.key.replace(key) {
            self.known.remove(&old);
        }
        let users = core::mem::replace(&mut place.users, PaidList::new(Vec::from([user])));
        self.known.insert(key, frame);
        (frame, true, users)
    }

    /// The next frame of the client that uses the most frames; among several such clients, the one that asks. A frame that no other
    /// client uses is preferred.
    fn victim(&self, asks: usize) -> u64 {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for user in self.frames.iter().flat_map(|frame| &frame.users) {
            *counts.entry(user.client).or_default() += 1;
        }
        let most = counts
            .iter()
            .max_by_key(|(client, count)| (**count, **client == asks));
        let most = most.map_or(asks, |(client, _)| *client);
        let count = self.frames.len() as u64;
        let order = (0..count).map(|next| (self.hand + next) % count);
        let users = |frame: u64| &self.frames[frame as usize].users;
        let mut mine = order.filter(|frame| users(*frame).iter().any(|user| user.client == most));
        let alone = |frame: &u64| users(*frame).iter().all(|user| user.client == most);
        mine.clone()
            .find(alone)
            .or_else(|| mine.next())
            .unwrap_or(self.hand)
    }

    /// A page of a client no longer shows its frame; returns the frame.
    pub fn part(&mut self, user: User) -> Option<u64> {
        let uses = |frame: &Frame| frame.users.contains(&user);
        let frame = self.frames.iter().position(uses)?;
        self.frames[frame].users.retain(|other| *other != user);
        Some(frame as u64)
    }

    /// A client no longer uses any frame.
    pub fn leave(&mut self, client: usize) {
        for frame in &mut self.frames {
            frame.users.retain(|user| user.client != client);
        }
    }

    /// No client shows pages of a file any more; its number is about to be used for another file.
    pub fn forget(&mut self, file: usize) {
        self.known.retain(|key, _| key.0 != file);
        for frame in &mut self.frames {
            frame.key = frame.key.filter(|key| key.0 != file);
        }
    }

    /// A frame does not hold its contents.
    pub fn drop_frame(&mut self, frame: u64) {
        if let Some(place) = self.frames.get_mut(frame as usize)
            && let Some(key) = place.key.take()
        {
            self.known.remove(&key);
        }
    }
}
