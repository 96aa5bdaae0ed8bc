//! Requests to the TileMuxes of tiles, and what follows from their answers.
//!
//! Why it exists: the kernel never waits for a tile. Only a caller that needs an answer waits for it; all others are served in the
//! meantime, and a tile that does not answer within [`PATIENCE`] is stopped. What it deliberately does not know: how a request
//! travels.
//!
//! A TileMux gets one request at a time: that of the most important caller, and of equals the first. So a request waits for the one that is
//! under way and for those of callers that are at least as important.

use super::{System, done};
use crate::activity::{Activity, State, count};
use crate::hardware::Hardware;
use crate::pending::{Asked, Then, Ticket};
use bulkhead_abi::marker::Asker;
use bulkhead_abi::syscall::{StopCause, SyscallError};
use bulkhead_abi::tilemux::{Request, TileMuxError};

/// TileMux answers a request within this time, in nanoseconds, or its tile is lost: many times what mapping
/// [`bulkhead_abi::syscall::MAP_PAGES_MAX`] pages takes on the slowest platform. The urgent may make each of its pieces begin
/// [`request_distance`] later.
pub const PATIENCE: u64 = 50_000_000;

/// Most notifications of a TileMux that cannot be true; with more, its tile is lost. An honest TileMux sends none.
pub const LIES_MAX: i32 = 16;

/// Bits of a request's number that identify the tile.
const TILE_BITS: u32 = 16;

impl System {
    /// Asks the TileMux of an activity, for somebody of a priority.
    pub(super) fn ask_tile(
        &mut self,
        hardware: &mut impl Hardware,
        level: usize,
        activity: u16,
        request: Request,
        then: Then,
    ) {
        match self.activities.get(activity).map(|a| a.tile) {
            Some(index) => self.ask_tile_at(hardware, (index, level), activity, request, then),
            None => self.resolved(hardware, 0, activity, then, Err(SyscallError::NoActivity)),
        }
    }

    /// Asks a TileMux, for somebody of a priority.
    pub(super) fn ask_tile_at(
        &mut self,
        hardware: &mut impl Hardware,
        (index, level): (usize, usize),
        activity: u16,
        request: Request,
        then: Then,
    ) {
        let asker = then.ticket().and_then(|ticket| self.asker(ticket));
        let tile = &mut self.tiles[index];
        if !tile.is_lit || tile.is_lost {
            let error = match tile.is_lost {
                true => SyscallError::TileLost,
                false => SyscallError::Refused,
            };
            return self.resolved(hardware, index, activity, then, Err(error));
        }
        self.requests += 1;
        let asked = Asked {
            number: self.requests << TILE_BITS | index as u64,
            activity,
            request,
            then,
            asker,
            level,
        };
        if tile.sent.is_some() {
            return tile.asked.push_back(level, asked);
        }
        tile.sent = Some(asked);
        self.send_request(hardware, index);
    }

    /// The caller of a ticket, as the ledger knows it, if it still lives.
    fn asker(&self, ticket: &Ticket) -> Option<Asker> {
        let caller = self.activities.get(ticket.caller)?;
        (caller.generation == ticket.generation).then(|| Asker {
            activity: caller.id,
            tile: self.tiles[caller.tile].id,
        })
    }

    /// Wakes an activity, unless that has been requested already.
    pub(super) fn wake(&mut self, hardware: &mut impl Hardware, level: usize, activity: u16) {
        let request = Request::Wake { activity };
        let index = self.activities.get(activity).map(|a| a.tile);
        let asked = index.map(|index| self.tiles[index].asked.iter());
        if asked.is_some_and(|mut all| all.all(|asked| asked.request != request)) {
            self.ask_tile(hardware, level, activity, request, Then::Nothing);
        }
    }

    fn send_request(&mut self, hardware: &mut impl Hardware, index: usize) {
        let tile = &self.tiles[index];
        let Some(first) = &tile.sent else { return };
        let (tile, request) = (tile.id, first.request);
        let (number, asker) = (first.number, first.asker);
        let until = hardware.time().saturating_add(self.patience);
        // All tiles have the same time limit, so this one's ends last.
        self.expect(until, index);
        if !hardware.request(tile, request, number, asker) {
            self.lose(hardware, index);
        }
    }

    /// Whether the kernel waits for the answer of a TileMux, or a tile was lost.
    #[inline]
    pub fn is_asking(&self) -> bool {
        !self.due.is_empty()
    }

    /// The highest priority of an activity that waits for an answer of a TileMux; the lowest if none does.
    pub fn awaited_level(&self) -> usize {
        let sent = self
            .due
            .iter()
            .map(|due| &self.tiles[usize::from(due.1)].sent);
        sent.flatten().map(|asked| asked.level).max().unwrap_or(0)
    }

    /// A TileMux has answered. An answer to no pending request is ignored.
    pub fn tile_answered(
        &mut self,
        hardware: &mut impl Hardware,
        number: u64,
        answer: TileMuxError,
    ) {
        let index = (number % (1 << TILE_BITS)) as usize;
        // A tile that was lost answers nothing any more.
        let tile = self.tiles.get_mut(index).filter(|tile| !tile.is_lost);
        let asked = tile.and_then(|tile| tile.sent.take_if(|asked| asked.number == number));
        let Some(asked) = asked else { return };
        self.forget_request(&asked);
        self.answered_for(index);
        self.tiles[index].sent = self.tiles[index].asked.pop_front();
        self.send_request(hardware, index);
        let outcome = match answer {
            TileMuxError::None => Ok(()),
            _ => Err(SyscallError::Refused),
        };
        self.resolved(hardware, index, asked.activity, asked.then, outcome);
    }

    /// Enters a tile's time limit, which is later than those of the others. There is room for each tile once.
    fn expect(&mut self, until: u64, index: usize) {
        if let Err(due) = self.due.push((until, index as u16)) {
            panic!("{due:?}: the tile has a moment already");
        }
    }

    /// Removes a tile's time limit.
    pub(super) fn answered_for(&mut self, index: usize) {
        self.due.retain(|due| usize::from(due.1) != index);
    }

    /// The number of an ended activity can be used again when no request about it is under way.
    fn forget_request(&mut self, asked: &Asked) {
        if self.activities.get(asked.activity).is_none() {
            count(&mut self.mentions, asked.activity, false);
        }
    }

    /// Gives up a tile that has not answered in time, if there is one, or clears one more thing of such a tile. Returns when the
    /// next time limit ends, or has ended.
    pub fn expire_tiles(&mut self, hardware: &mut impl Hardware) -> Option<u64> {
        let (until, index) = *self.due.first()?;
        if until <= hardware.time() {
            match self.tiles[usize::from(index)].is_lost {
                false => self.lose(hardware, index.into()),
                true => self.clear_lost(hardware, index.into()),
            }
        }
        self.due.first().map(|next| next.0)
    }

    /// Counts a notification of a tile that cannot be true.
    pub(super) fn lied(&mut self, hardware: &mut impl Hardware, tile: u16) {
        if let Ok(index) = self.tile_index(tile) {
            self.tiles[index].lies += 1;
            if self.tiles[index].lies > LIES_MAX {
                self.lose(hardware, index);
            }
        }
    }

    /// Stops a tile that cannot be trusted: its activities count as stopped, and are handled one by one. The tile can be used again
    /// when its first memory window has been revoked and another one is configured.
    pub(super) fn lose(&mut self, hardware: &mut impl Hardware, index: usize) {
        let tile = &mut self.tiles[index];
        if tile.is_lost {
            return;
        }
        tile.is_lost = true;
        hardware.stop_hart(tile.id);
        if tile.device.take().is_some() {
            hardware.give_device(tile.id, (0, 0), (0, 0, 0));
        }
        // The rest is due at once.
        self.answered_for(index);
        self.expect(hardware.time(), index);
        self.due.rotate_right(1);
    }

    /// Clears one thing of a lost tile: an activity that no longer runs, or a request that will not be answered.
    fn clear_lost(&mut self, hardware: &mut impl Hardware, index: usize) {
        for place in 0..self.tiles[index].activities.len() {
            let id = self.tiles[index].activities[place];
            if self.runs_no_more(id, StopCause::TileLost) {
                return;
            }
        }
        if !self.fail_request(hardware, index, SyscallError::TileLost) {
            self.answered_for(index);
        }
    }

    /// The first request of a tile will not be answered. Returns whether there was one.
    pub(super) fn fail_request(
        &mut self,
        hardware: &mut impl Hardware,
        index: usize,
        error: SyscallError,
    ) -> bool {
        let tile = &mut self.tiles[index];
        let Some(asked) = tile.sent.take().or_else(|| tile.asked.pop_front()) else {
            return false;
        };
        self.forget_request(&asked);
        self.resolved(hardware, index, asked.activity, asked.then, Err(error));
        true
    }

    fn resolved(
        &mut self,
        hardware: &mut impl Hardware,
        index: usize,
        activity: u16,
        then: Then,
        outcome: Result<(), SyscallError>,
    ) {
        match then {
            Then::Nothing => {}
            Then::Reply(ticket) => self.answer(ticket, outcome.map(|()| done())),
            Then::Started(ticket) => {
                let state = self.activities.get(activity).map(|a| a.state());
                if state == Some(State::Created) && outcome.is_ok() {
                    self.activities.set_state(activity, State::Running);
                }
                self.answer(ticket, outcome.map(|()| done()));
            }
            Then::Created(creating) => self.introduced(hardware, activity, creating, outcome),
            Then::Stopped => {
                let state = self.activities.get(activity).map(|a| a.state());
                if state == Some(State::Stopping) {
                    // It had ended by itself: TileMux has sent a notification, but the kernel takes this answer first.
                    self.tiles[index].lies -= i32::from(outcome.is_err());
                    self.stopped(activity, StopCause::Killed);
                }
            }
        }
    }

    /// An activity that ran has stopped, so its end begins or continues. Returns whether such an activity exists.
    pub(super) fn runs_no_more(&mut self, id: u16, cause: StopCause) -> bool {
        let found = self.activities.get(id);
        let running = |a: &&Activity| !matches!(a.state(), State::Creating | State::Stopped(_));
        let Some(activity) = found.filter(running) else {
            return false;
        };
        let (state, level, node) = (activity.state(), activity.priority, activity.node);
        self.stopped(id, cause);
        // If it ended before the kernel's request, the revocation continues.
        if state != State::Stopping {
            self.jobs.end(level.into(), node, self.space.birth(node));
        }
        true
    }

    /// An activity no longer runs: this must be printed, if its creator knows it.
    pub(super) fn stopped(&mut self, id: u16, cause: StopCause) {
        self.activities.set_state(id, State::Stopped(cause));
        if let Some(activity) = self.activities.get_mut(id).filter(|a| a.is_known) {
            activity.is_unsaid = true;
            let level = activity.priority.into();
            self.reports.push_back(level, (id, cause));
        }
    }
}
