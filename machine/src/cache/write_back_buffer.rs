//! Lines on their way back to memory.
//!
//! Why it exists: a read must not overtake the write of the same line, so the buffer keeps a line until memory has acknowledged it,
//! and serves accesses that ask for it. It does not know why a line left the caches.

use super::hierarchy::{Lower, Waiter};
use super::{Cache, Evicted};
use crate::types::{LINE_MAX, Line, Owner, Tick};

/// A line that memory has not acknowledged.
#[derive(Debug)]
struct Posted {
    /// When it leaves the tile.
    at: Tick,
    tag: u32,
    line: u64,
    bytes: Line,
    /// The accesses that wait until memory has the line.
    waiters: Vec<Waiter>,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct WriteBackBuffer {
    /// In the order in which they left the caches.
    lines: Vec<Posted>,
    next_tag: u32,
    sent: u64,
}

impl WriteBackBuffer {
    /// Lines under way.
    pub fn under_way(&self) -> usize {
        self.lines.len()
    }

    /// Lines sent since the start.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends a line to memory, not before `now` and not before an older write of the same line.
    pub fn post<L: Lower>(
        &mut self,
        now: Tick,
        line: u64,
        owner: Owner,
        bytes: &[u8],
        lower: &mut L,
    ) {
        self.sent += 1;
        let tag = self.next_tag;
        let older = self.lines.iter().rfind(|posted| posted.line == line);
        let at = older.map_or(now, |older| older.at.max(now));
        lower.write_back(at, line, owner, tag, bytes);
        self.next_tag = tag.wrapping_add(1);
        let mut kept = [0; LINE_MAX];
        kept[..bytes.len()].copy_from_slice(bytes);
        self.lines.push(Posted {
            at,
            tag,
            line,
            bytes: kept,
            waiters: Vec::new(),
        });
    }

    /// Sends what a fill has pushed out of a cache, if that is dirty.
    pub fn post_victim<L: Lower>(
        &mut self,
        now: Tick,
        victim: Option<Evicted>,
        owner: Owner,
        from: &Cache,
        lower: &mut L,
    ) {
        if let Some(victim) = victim.filter(|victim| victim.dirty) {
            self.post(now, victim.address, owner, from.evicted(), lower);
        }
    }

    /// Memory has a line, or the line was lost on the way. Returns the line and the tokens of the accesses that waited for it.
    pub fn written(&mut self, tag: u32) -> (u64, Vec<Waiter>) {
        let position = self.lines.iter().position(|posted| posted.tag == tag);
        let position = position.unwrap_or_else(|| {
            let tags: Vec<u32> = self.lines.iter().map(|posted| posted.tag).collect();
            panic!("memory acknowledges line {tag}, and {tags:?} are on their way there")
        });
        let posted = self.lines.remove(position);
        let mut older = self.lines[..position].iter();
        assert!(
            older.all(|other| other.line != posted.line),
            "memory has a newer line at {:#x} before an older one",
            posted.line
        );
        (posted.line, posted.waiters)
    }

    /// The bytes of a line that is on its way to memory; the newest, if there are two.
    pub fn line(&self, line: u64) -> Option<&Line> {
        let posted = self.lines.iter().rfind(|posted| posted.line == line);
        posted.map(|posted| &posted.bytes)
    }

    /// Makes a waiter wait until memory has the newest bytes of a line. Returns false if the line is not on its way there.
    pub fn wait(&mut self, line: u64, waiter: Waiter) -> bool {
        let posted = self.lines.iter_mut().rfind(|posted| posted.line == line);
        posted.map(|posted| posted.waiters.push(waiter)).is_some()
    }

    /// The bytes of a line on its way to memory, to change them from outside.
    pub fn lines_mut(&mut self, line: u64) -> impl Iterator<Item = &mut Line> {
        let posted = self
            .lines
            .iter_mut()
            .filter(move |posted| posted.line == line);
        posted.map(|posted| &mut posted.bytes)
    }
}
