//! Jobs that take long: revocation, loading TileMux, clearing memory. Each priority of callers has at most one under way, and one thing
//! that is being made, driven step by step.
//!
//! Why it exists: every caller waits for one step, not for the job of another. What it deliberately does not know: what depends on
//! what; the capabilities know that.
//!
//! A step does one of: visit one capability; invalidate one endpoint; look at one right to reply; ask for the stop of one activity;
//! copy or clear one piece of memory. A revocation that waits for the stop of an activity takes no steps, and nobody waits for it but
//! who asked for it.

use super::clearing::Clearing;
use super::making::Making;
use super::requests::Then;
use super::{Outcome, System, Ticket, done};
use crate::activity::State;
use crate::hardware::Hardware;
use crate::load::Loading;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use bulkhead_abi::dtu::{Endpoint, TILEMUX_ACTIVITY};
use bulkhead_abi::memory_map::PMP_WINDOWS;
use bulkhead_abi::syscall::{PRIORITIES, StopCause, SyscallError};
use bulkhead_abi::tilemux::Request;
use bulkhead_capabilities::{HolderId, NodeId, Object, Progress, Removed};

/// What takes long.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// The revocation of this level; who waits for its end.
    Revoke(Option<Ticket>),
    /// A revocation that has not begun: of which node, unless it is gone or going.
    Begin {
        /// Who waits.
        ticket: Option<Ticket>,
        /// The node and its birth.
        node: (NodeId, u64),
        /// Only what depends on it goes.
        keep: bool,
    },
    /// Memory is being cleared for its new owner.
    Clear(Clearing),
    /// TileMux is being loaded.
    Load {
        /// Who waits.
        ticket: Ticket,
        /// Index of the tile.
        tile: usize,
        /// How far it is.
        loading: Box<Loading>,
    },
}

/// What is left to undo of a capability that was removed.
#[derive(Clone, Copy, Debug)]
enum Undo {
    /// Endpoints of a tile, from `next` on; then whoever received from them is told, and the rights to reply go that their messages
    /// left.
    Endpoints {
        tile: usize,
        next: u16,
        end: u16,
        rights: Option<Rights>,
        /// To whom nobody can send any more over a gate that he waits at, perhaps.
        bereaved: Option<u16>,
    },
    /// An activity shall look again; then the rights to reply go.
    Wake(u16, Option<Rights>),
    /// Rights to reply at a receiver.
    Rights(Rights),
}

/// The rights to reply of a receive endpoint, from `next` on. Those that lead to an endpoint that is gone must go, too, so that no late
/// reply reaches a new owner.
#[derive(Clone, Copy, Debug)]
struct Rights {
    receiver: u16,
    next: u16,
    end: u16,
    /// The sender's tile, and his send endpoint.
    sender: (u16, u16),
}

/// The jobs of all priorities.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    running: [Option<Job>; PRIORITIES],
    /// Jobs that run or wait.
    count: usize,
    /// What begins when that has ended.
    waiting: [VecDeque<Job>; PRIORITIES],
    /// What is being made beside that, one after the other.
    making: [VecDeque<Making>; PRIORITIES],
    /// Whether it is the turn of what is being made.
    turn: [bool; PRIORITIES],
    /// One for all priorities: nobody's revocation has ended before it is done.
    undo: Option<Undo>,
    /// Why the root manager ended.
    pub(super) root: Option<StopCause>,
}

impl Jobs {
    pub(super) fn start(&mut self, level: usize, job: Job) {
        self.count += 1;
        self.waiting[level].push_back(job);
    }

    /// Something is to be made.
    pub(super) fn make(&mut self, level: usize, making: Making) {
        self.count += 1;
        self.making[level].push_back(making);
    }

    /// An activity has stopped; what it has is to be revoked.
    pub(super) fn end(&mut self, level: usize, node: NodeId, birth: u64) {
        let begin = Job::Begin {
            ticket: None,
            node: (node, birth),
            keep: false,
        };
        self.start(level, begin);
    }
}

impl System {
    /// Whether there is a job of any priority.
    #[inline]
    pub fn has_jobs(&self) -> bool {
        self.jobs.count > 0
    }

    /// Whether a job of this priority can take a step now.
    pub fn has_step(&self, level: usize) -> bool {
        self.can_run(level) || self.can_make(level)
    }

    fn can_run(&self, level: usize) -> bool {
        match &self.jobs.running[level] {
            Some(Job::Revoke(_)) => !self.is_stalled(level),
            Some(Job::Clear(_)) => self.calm,
            Some(_) => true,
            None => !self.jobs.waiting[level].is_empty(),
        }
    }

    fn can_make(&self, level: usize) -> bool {
        let first = self.jobs.making[level].front();
        first.is_some_and(|making| self.calm || !making.needs_calm())
    }

    /// Whether the revocation of a priority stands at an activity that is being stopped.
    fn is_stalled(&self, level: usize) -> bool {
        let Some(node) = self.space.at(level) else {
            return false;
        };
        let activity = self.living_from(node);
        let state = activity.and_then(|id| Some(self.activities.get(&id)?.state));
        self.jobs.undo.is_none() && state == Some(State::Stopping)
    }

    /// Begins to revoke a capability with all that depends on it.
    pub(super) fn revoke(
        &mut self,
        ticket: Ticket,
        node: NodeId,
        keep: bool,
    ) -> Result<Outcome, SyscallError> {
        let level = ticket.level;
        if self.jobs.running[level].is_none() && self.jobs.waiting[level].is_empty() {
            // At once, so that from now on nothing can be derived from it.
            self.space.remove(level, node, keep)?;
            self.jobs.count += 1;
            self.jobs.running[level] = Some(Job::Revoke(Some(ticket)));
        } else {
            let begin = Job::Begin {
                ticket: Some(ticket),
                node: (node, self.space.birth(node)),
                keep,
            };
            self.jobs.start(level, begin);
        }
        Ok(Outcome::Later)
    }

    pub(super) fn stop(&mut self, ticket: Ticket, activity: u16) -> Result<Outcome, SyscallError> {
        let found = self.activities.get(&activity);
        let node = found.ok_or(SyscallError::NoActivity)?.node;
        self.revoke(ticket, node, false)
    }

    /// Removes what was made by a call that cannot be completed: few nodes, none of which has reached the hardware.
    pub(super) fn discard(&mut self, node: NodeId) {
        // This level is the kernel's own.
        let level = PRIORITIES;
        if self.space.remove(level, node, false).is_ok() {
            while self.space.step(level) != Progress::Done {}
        }
    }

    /// Does one step of a job of a priority: of what runs and of what is being made in turn.
    pub fn step(&mut self, hardware: &mut impl Hardware, level: usize) {
        self.settle(hardware);
        let turn = core::mem::take(&mut self.jobs.turn[level]);
        if self.can_make(level) && (turn || !self.can_run(level)) {
            if let Some(making) = self.jobs.making[level].pop_front() {
                match self.make_step(hardware, making) {
                    Some(rest) => self.jobs.making[level].push_front(rest),
                    None => self.jobs.count -= 1,
                }
            }
            return;
        }
        self.jobs.turn[level] = true;
        if !self.can_run(level) {
            return;
        }
        let job = self.jobs.running[level].take();
        let Some(job) = job.or_else(|| self.jobs.waiting[level].pop_front()) else {
            return;
        };
        self.take_step(hardware, level, job);
        if self.jobs.running[level].is_none() {
            self.jobs.count -= 1;
        }
    }

    fn take_step(&mut self, hardware: &mut impl Hardware, level: usize, job: Job) {
        match job {
            Job::Begin { ticket, node, keep } => {
                let (node, birth) = node;
                let is_there = self.space.is(node, birth);
                if is_there && self.space.remove(level, node, keep).is_ok() {
                    self.jobs.running[level] = Some(Job::Revoke(ticket));
                } else if let Some(ticket) = ticket {
                    self.answer(ticket, Err(SyscallError::Revoked));
                }
            }
            Job::Clear(mut clearing) => {
                if self.clear_step(hardware, &mut clearing) {
                    self.jobs.running[level] = Some(Job::Clear(clearing));
                }
            }
            Job::Revoke(ticket) => {
                if !self.revoke_step(hardware, level) {
                    self.jobs.running[level] = Some(Job::Revoke(ticket));
                } else if let Some(ticket) = ticket {
                    self.answer(ticket, Ok(done()));
                }
            }
            Job::Load {
                ticket,
                tile,
                mut loading,
            } => {
                if !self.tiles[tile].is_lit {
                    // Its memory was revoked meanwhile.
                    self.answer(ticket, Err(SyscallError::Revoked));
                } else if loading.step(hardware) {
                    self.light(hardware, tile, loading.entry());
                    self.answer(ticket, Ok(done()));
                } else {
                    self.jobs.running[level] = Some(Job::Load {
                        ticket,
                        tile,
                        loading,
                    });
                }
            }
        }
    }

    /// One step of a revocation; whether it has ended.
    fn revoke_step(&mut self, hardware: &mut impl Hardware, level: usize) -> bool {
        if let Some(undo) = self.jobs.undo.take() {
            self.jobs.undo = self.undo(hardware, undo);
            return false;
        }
        if let Some(node) = self.space.at(level)
            && self.silence(hardware, node)
        {
            return false;
        }
        match self.space.step(level) {
            Progress::Done => true,
            Progress::Working => false,
            Progress::Removed(removed) => {
                self.removed(hardware, &removed);
                false
            }
        }
    }

    /// The activity of a node, or the one that sees memory through it.
    fn living_from(&self, node: NodeId) -> Option<u16> {
        let holder = match *self.space.object(node) {
            Object::Activity { holder } if self.space.owner(node) == node => HolderId(holder),
            Object::Mapping { .. } => self.space.holder_of(node),
            _ => return None,
        };
        self.number(holder)
    }

    /// If the node is an activity that runs, or memory that one sees, it runs no more. Whether there was something to do.
    fn silence(&mut self, hardware: &mut impl Hardware, node: NodeId) -> bool {
        let Some(activity) = self.living_from(node) else {
            return false;
        };
        let target = self.activities.get_mut(&activity);
        let Some(target) = target.filter(|a| !matches!(a.state, State::Stopped(_))) else {
            return false;
        };
        target.state = State::Stopping;
        if target.node != node {
            // Its end begins with that of what it lives from.
            let (level, own) = (usize::from(target.priority), target.node);
            self.jobs.end(level, own, self.space.birth(own));
        }
        self.take_device(hardware, activity);
        let request = Request::Stop { activity };
        self.ask_tile(hardware, activity, request, Then::Stopped);
        true
    }

    /// Undoes what a capability did outside of the kernel, or begins to.
    fn removed(&mut self, hardware: &mut impl Hardware, removed: &Removed) {
        if removed.copy {
            if let (Object::Semaphore { .. }, Some(origin)) = (removed.object, removed.origin) {
                // He could have raised it; who waits shall think again.
                self.forsake(self.space.owner(origin));
            }
            return;
        }
        match removed.object {
            Object::Endpoint {
                tile,
                endpoint,
                count,
            } => {
                let Ok(index) = self.tile_index(tile) else {
                    return;
                };
                if u64::from(endpoint) < PMP_WINDOWS {
                    self.close_window(hardware, index, endpoint);
                    return;
                }
                self.tiles[index].endpoints.receives(endpoint, None);
                let rights = self.rights_left(removed, (tile, endpoint));
                let bereaved = self.bereaved(removed);
                self.jobs.undo = Some(Undo::Endpoints {
                    tile: index,
                    next: endpoint,
                    end: endpoint + count,
                    rights,
                    bereaved,
                });
            }
            Object::Activity { .. } => {
                if let Object::Activity { holder } = removed.object {
                    if let Some(id) = self.number(HolderId(holder)) {
                        self.take_device(hardware, id);
                        if let Some(owner) = self.activities.get(&id).and_then(|a| a.cpu) {
                            self.space.stop_using(owner, hardware.time());
                        }
                    }
                    self.ended(HolderId(holder));
                }
            }
            Object::Tile(tile) => {
                if let Ok(index) = self.tile_index(tile.tile) {
                    let buckets = &mut self.tiles[index].buckets;
                    for bucket in buckets.iter_mut().filter(|b| **b == Some(removed.node)) {
                        *bucket = None;
                    }
                    if let Some(origin) = removed.origin
                        && let Object::Tile(parent) = *self.space.object(origin)
                    {
                        self.update_bucket(hardware, index, parent.owner);
                    }
                }
            }
            Object::Memory(memory) => {
                self.soil(removed, &memory);
                for tile in &mut self.tiles {
                    tile.tables.retain(|tables| *tables != removed.node);
                }
            }
            Object::Semaphore { .. } => self.forsake(removed.node),
            Object::Service => self.service_gone(removed.node),
            Object::Session { ident } => self.session_gone(removed.origin, ident),
            _ => {}
        }
    }

    /// All who wait for a semaphore are told that it, or somebody who shared it, is gone.
    fn forsake(&mut self, semaphore: NodeId) {
        while let Some(index) = self.sleepers.iter().position(|s| s.1 == semaphore) {
            if let Some((ticket, _)) = self.sleepers.remove(index) {
                self.answer(ticket, Err(SyscallError::Gone));
            }
        }
    }

    /// Where the receiver of a send endpoint keeps rights to reply that the endpoint's messages left there.
    fn rights_left(&self, removed: &Removed, sender: (u16, u16)) -> Option<Rights> {
        let origin = removed.origin?;
        if !matches!(self.space.object(origin), Object::Send { .. }) {
            return None;
        }
        let (gate, (receiver, endpoint)) = self.space.receiver(origin)?;
        // The rights stand behind the receive endpoint; without rights, others' endpoints do, which do not look like them.
        Some(Rights {
            receiver,
            next: endpoint + 1,
            end: endpoint + 1 + u16::from(gate.slots),
            sender,
        })
    }

    /// Who waits, perhaps, for messages that cannot come any more: the last endpoint that led to its gate is gone.
    fn bereaved(&self, removed: &Removed) -> Option<u16> {
        let origin = removed.origin?;
        let is_send = matches!(self.space.object(origin), Object::Send { .. });
        let (gate, _) = self.space.receiver(origin).filter(|_| is_send)?;
        let receiver = self.number(self.space.receiving(origin)?);
        let receiver = receiver.filter(|_| gate.senders == 0)?;
        let state = self.activities.get(&receiver).map(|a| a.state);
        (state == Some(State::Running)).then_some(receiver)
    }

    fn undo(&mut self, hardware: &mut impl Hardware, undo: Undo) -> Option<Undo> {
        match undo {
            Undo::Endpoints {
                tile: index,
                next,
                end,
                rights,
                bereaved,
            } => {
                let tile = self.tiles[index].id;
                let old = match rights {
                    Some(_) => hardware.endpoint(tile, next),
                    None => Endpoint::Invalid,
                };
                hardware.invalidate_endpoint(tile, next);
                self.tiles[index].endpoints.free(next);
                if next + 1 < end {
                    return Some(Undo::Endpoints {
                        tile: index,
                        next: next + 1,
                        end,
                        rights,
                        bereaved,
                    });
                }
                self.disappoint(hardware, old);
                if matches!(old, Endpoint::Send(s) if s.activity == TILEMUX_ACTIVITY) {
                    self.pager_gone(hardware, index, next);
                }
                // Only messages under way can have left rights.
                let under_way = matches!(old, Endpoint::Send(s) if s.credits < s.credits_max);
                let rights = rights.filter(|_| under_way);
                match bereaved {
                    Some(activity) => Some(Undo::Wake(activity, rights)),
                    None => rights.map(Undo::Rights),
                }
            }
            Undo::Wake(activity, rights) => {
                self.wake(hardware, activity);
                rights.map(Undo::Rights)
            }
            Undo::Rights(rights) => {
                let value = hardware.endpoint(rights.receiver, rights.next);
                if let Endpoint::Send(send) = value
                    && send.reply
                    && (send.target_tile, send.credit_endpoint) == rights.sender
                {
                    hardware.invalidate_endpoint(rights.receiver, rights.next);
                }
                let next = rights.next + 1;
                (next < rights.end).then_some(Undo::Rights(Rights { next, ..rights }))
            }
        }
    }

    /// Somebody who still waits for a reply over an endpoint that is gone shall look again.
    fn disappoint(&mut self, hardware: &mut impl Hardware, old: Endpoint) {
        let Endpoint::Send(send) = old else { return };
        let activity = send.activity;
        let waits = send.credits < send.credits_max;
        let runs = matches!(
            self.activities.get(&activity).map(|a| a.state),
            Some(State::Running)
        );
        if waits && runs {
            // TileMux may have removed it a moment ago.
            self.wake(hardware, activity);
        }
    }
}
