//! Effects of a capability outside the kernel end before the capability is removed.
//!
//! Why it exists: an endpoint's number, its quota and the memory behind it may get another owner as soon as its capability is gone. So the
//! endpoint is invalidated first, and then the kernel asks the unit whether a packet that left through it is still in transit; the
//! revocation continues only when none is. No other caller waits: the kernel does more important work between two questions, and two
//! revocations that reach the same endpoint both close it, which does no harm. What it deliberately does not know: how long a packet is in
//! transit; and rights to reply, because a unit lets no reply reach an endpoint that was configured after its message left.

use super::System;
use super::tiles::memory_endpoint;
use crate::activity::State;
use crate::hardware::{Hardware, Region};
use crate::tile::Tile;
use bulkhead_abi::dtu::{Endpoint, SendEndpoint, TILEMUX_ACTIVITY, TLB_READ, WRITE_BACK_LINES};
use bulkhead_abi::memory_map::{MEMORY_BASE, PMP_WINDOW_SIZE, PMP_WINDOWS};
use bulkhead_abi::syscall::{SELECTORS, SyscallError};
use bulkhead_abi::tilemux::{FIRST_ENDPOINT, REQUEST_ENDPOINT};
use bulkhead_capabilities::{HolderId, NodeId, Object};

/// TileMux's own endpoints: the first one, and their number.
const TILEMUX_ENDPOINTS: (u16, u16) = (REQUEST_ENDPOINT, FIRST_ENDPOINT - REQUEST_ENDPOINT);

/// Most activities that the end of one endpoint wakes: the sender, the client that waits for the pager behind it, and the receiver
/// that waited for its messages.
const WAKES: usize = 3;

/// Selectors among which one step looks for another copy of a semaphore, most of which name nothing.
pub(crate) const LOOKED: usize = 16;

/// The things that a revocation closes, one endpoint's capability at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closing {
    /// The capability, with its birth, whose endpoints are invalid already while packets that left through them may be in transit.
    closed: Option<(NodeId, u64)>,
    /// The mapping, with its birth, and how many bytes of its memory its tile's caches no longer hold.
    written: Option<((NodeId, u64), u64)>,
    /// Activities that must look again.
    wakes: [Option<u16>; WAKES],
    /// The semaphore, with its birth, of which an activity has lost a copy, and how many of that activity's selectors have been searched
    /// for another one.
    pub(super) lost: Option<((NodeId, u64), HolderId, u16)>,
    /// The semaphore, with its birth, whose sleepers are woken, because an activity that could have raised it is gone.
    pub(super) alarmed: Option<(NodeId, u64)>,
}

impl Closing {
    /// Whether no activity must be woken, so that the revocation can wait where it is.
    pub(super) fn is_idle(&self) -> bool {
        self.wakes == [None; WAKES] && self.alarmed.is_none() && self.lost.is_none()
    }

    pub(super) fn next_to_wake(&mut self) -> Option<u16> {
        self.wakes.iter_mut().find_map(Option::take)
    }

    pub(super) fn wakes(&mut self, activity: u16) {
        // All are woken before the next endpoint is closed, so there is a free place.
        if let Some(free) = self.wakes.iter_mut().find(|place| place.is_none()) {
            *free = Some(activity);
        }
    }
}

/// One step of evicting this many bytes from a tile's caches, which hold bytes: gives the next command, from `done` on, unless one is in
/// progress. Returns false if no lines are left.
pub(super) fn write_lines(
    hardware: &mut impl Hardware,
    tile: &Tile,
    (physical, size): (u64, u64),
    done: &mut u64,
) -> bool {
    if hardware.is_writing_back(tile.id) {
        return true;
    }
    let is_left = *done < size;
    if is_left {
        hardware.write_back(tile.id, physical + *done, WRITE_BACK_LINES);
        *done += u64::from(WRITE_BACK_LINES) * tile.line;
    }
    is_left
}

impl System {
    /// Whether the activities that wait for a semaphore are being woken to check again. Until then no other activity begins to wait
    /// for it, so this comes to an end.
    pub(super) fn is_alarmed(&self, semaphore: NodeId) -> bool {
        let known = Some((semaphore, self.space.birth(semaphore)));
        self.jobs.closing.iter().any(|c| c.alarmed == known)
    }

    /// Checks whether an activity that lost a copy of a semaphore has another one; if not, wakes the activities that wait for it. Returns
    /// false if none lost one.
    pub(super) fn search_one(&mut self, level: usize) -> bool {
        let Some((semaphore, holder, from)) = self.jobs.closing[level].lost.take() else {
            return false;
        };
        let held = self.space.held_by(holder, from);
        let mut part = held.take(LOOKED).filter(|node| node.is_some());
        if !part.any(|node| self.space.owner(node) == semaphore.0) {
            let (next, closing) = (from + LOOKED as u16, &mut self.jobs.closing[level]);
            match next < SELECTORS {
                true => closing.lost = Some((semaphore, holder, next)),
                false => closing.alarmed = Some(semaphore),
            }
        }
        true
    }

    /// Makes one waiting activity check again. Returns false if there is none left.
    pub(super) fn alarm_one(&mut self, level: usize) -> bool {
        let Some((semaphore, birth)) = self.jobs.closing[level].alarmed else {
            return false;
        };
        let is_one = self.space.is(semaphore, birth) && self.dismiss(semaphore);
        if !is_one {
            self.jobs.closing[level].alarmed = None;
        }
        is_one
    }

    /// One step of closing what a capability without dependents did outside the kernel; returns false if nothing is left to close.
    pub(super) fn close_endpoint(
        &mut self,
        hardware: &mut impl Hardware,
        level: usize,
        node: NodeId,
    ) -> bool {
        let Object::Endpoint {
            tile,
            endpoint,
            count,
        } = *self.space.object(node)
        else {
            return self.write_mapping(hardware, level, node);
        };
        let dependent = self.space.dependents(node, 1).next();
        let (None, Ok(index)) = (dependent, self.tile_index(tile)) else {
            return false;
        };
        if u64::from(endpoint) < PMP_WINDOWS {
            return self.close_window(hardware, index, endpoint);
        }
        let own = (node, self.space.birth(node));
        let origin = self.space.origin(node);
        let (receives, sends) = match origin.map(|origin| self.space.object(origin)) {
            Some(Object::Receive(_)) => (true, false),
            Some(Object::Send { .. }) => (false, true),
            // Memory, or the channel to the kernel.
            _ => (false, false),
        };
        let closed = &mut self.jobs.closing[level].closed;
        if *closed == Some(own) {
            *closed = closed.filter(|_| hardware.is_under_way(tile, endpoint));
            return closed.is_some();
        }
        // Packets in transit to a receiver came through endpoints that had to go earlier.
        *closed = Some(own).filter(|_| !receives);
        let old = sends.then(|| hardware.endpoint(tile, endpoint));
        hardware.invalidate(tile, endpoint, count);
        if let Some(Endpoint::Send(old)) = old {
            self.disappoint(level, index, endpoint, &old);
        }
        !receives
    }

    /// Makes every activity check again that still waits for a reply through an endpoint that is gone, or for the pager behind it.
    fn disappoint(&mut self, level: usize, index: usize, endpoint: u16, old: &SendEndpoint) {
        // TileMux may have removed it a moment ago.
        let waits = old.credits < old.credits_max;
        let sender = Some(old.activity).filter(|id| waits && self.runs(*id));
        let paged = match old.activity {
            TILEMUX_ACTIVITY => self.paged_by(index, endpoint),
            _ => None,
        };
        for activity in [sender, paged].into_iter().flatten() {
            self.jobs.closing[level].wakes(activity);
        }
    }

    pub(super) fn runs(&self, id: u16) -> bool {
        self.activities.get(id).map(|a| a.state()) == Some(State::Running)
    }

    /// One step of closing a window; returns false once it is closed. TileMux goes with the first window; then the tile is dark again.
    pub(super) fn close_window(
        &mut self,
        hardware: &mut impl Hardware,
        index: usize,
        window: u16,
    ) -> bool {
        let tile = &mut self.tiles[index];
        if window == 0 && tile.is_lit {
            // Nobody can light the tile again until the window is closed, too.
            tile.is_lit = false;
            tile.is_lost = false;
            tile.lies = 0;
            tile.tables = [false; PMP_WINDOWS as usize];
            hardware.stop_hart(tile.id);
            let (first, count) = TILEMUX_ENDPOINTS;
            hardware.invalidate(tile.id, first, count);
            self.answered_for(index);
            while self.fail_request(hardware, index, SyscallError::Refused) {}
            return true;
        }
        let of_tables = core::mem::take(&mut tile.tables[usize::from(window)]);
        if of_tables && tile.is_lit {
            self.lose(hardware, index);
        }
        let tile = &mut self.tiles[index];
        let place = usize::from(window);
        let region = tile.windows[place].filter(|_| tile.line > 0);
        if let Some(region) = region {
            let mut done = tile.written[place];
            if done == 0 {
                // From now on no line there becomes dirty.
                let shown = memory_endpoint(TILEMUX_ACTIVITY, region, TLB_READ as u8);
                hardware.set_endpoint(tile.id, window, shown);
                // A running hart may read old lines until the window is closed.
                tile.is_stale |= tile.is_lit;
            }
            let physical = MEMORY_BASE + u64::from(window) * PMP_WINDOW_SIZE;
            let is_left = write_lines(hardware, tile, (physical, region.size), &mut done);
            tile.written[place] = done;
            if is_left {
                return true;
            }
        }
        tile.written[place] = 0;
        hardware.invalidate(tile.id, window, 1);
        tile.windows[place] = None;
        false
    }

    /// One step of evicting the lines of an activity's memory from its tile's caches, now that it no longer runs; returns false if there
    /// are none. The next owner fills that memory past those caches, and then finds no old or dirty line of it there.
    fn write_mapping(&mut self, hardware: &mut impl Hardware, level: usize, node: NodeId) -> bool {
        let Object::Mapping { pages: 1.., .. } = *self.space.object(node) else {
            return false;
        };
        let activity = self.number(self.space.holder_of(node));
        let activity = activity.and_then(|id| self.activities.get(id));
        let origin = self.space.origin(node).map(|from| self.space.object(from));
        let (Some(activity), Some(Object::Memory(memory))) = (activity, origin) else {
            return false;
        };
        let (tile, region) = (&self.tiles[activity.tile], Region::of(memory));
        let Some(physical) = tile.physical(region, false).filter(|_| tile.line > 0) else {
            return false;
        };
        let own = (node, self.space.birth(node));
        let written = &mut self.jobs.closing[level].written;
        let (_, mut done) = written.filter(|(of, _)| *of == own).unwrap_or((own, 0));
        let is_left = write_lines(hardware, tile, (physical, region.size), &mut done);
        *written = Some((own, done));
        is_left
    }
}
