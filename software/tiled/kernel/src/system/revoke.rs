//! Long jobs: revocation, loading TileMux, clearing memory. Each priority of callers has at most one such job and one construction in
//! progress, both in small steps.
//!
//! Why it exists: every caller waits for one step, not for the job of another. What it deliberately does not know: what depends on
//! what; the capabilities know that.
//!
//! A step does one of these: visit one capability; take an activity's endpoints, or a part of a tile; ask whether packets that left through
//! them are in transit; ask for the stop of one activity; copy or clear one piece of memory. A revocation that waits for the stop of an
//! activity takes no steps. Effects of a capability outside the kernel end before the capability is removed ([`super::closing`]), so
//! nothing that it gave can get another owner too early; only the caller that asked for the revocation waits for that.

use super::System;
use super::clearing::Clearing;
use super::closing::Closing;
use super::making::{Lighting, Making};
use crate::activity::State;
use crate::hardware::Hardware;
use crate::pending::{Then, Ticket};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use bulkhead_abi::memory_map::PMP_WINDOWS;
use bulkhead_abi::syscall::{PRIORITIES, StopCause, SyscallError};
use bulkhead_abi::tilemux::Request;
use bulkhead_capabilities::{HolderId, NodeId, Object, Progress, Quota, Removed};
use bulkhead_common::payer::{Caller, Paid};

/// A long job.
#[derive(Clone, Debug)]
pub(super) enum Job {
    /// The revocation of this level, and the caller that waits for its end.
    Revoke(Waits),
    /// A revocation that has not begun. It does nothing if the node is gone or being removed.
    Begin {
        /// The waiting activity.
        waits: Waits,
        /// The node and its birth.
        node: (NodeId, u64),
        /// Only its dependents are removed.
        keep: bool,
    },
    /// Memory is being cleared for its new owner.
    Clear(Box<Clearing>),
    /// TileMux is being loaded.
    Load(Box<Lighting>),
}

/// The caller that waits for the end of a revocation, and its answer then: success ([`SyscallError::None`]), or the error that made the
/// revocation necessary.
pub(super) type Waits = Option<(Ticket, SyscallError)>;

/// The jobs of all priorities.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs {
    running: [Option<Job>; PRIORITIES],
    /// Number of jobs that run or wait.
    pub(super) count: usize,
    /// The number of the last job; numbers increase.
    numbered: u64,
    /// Jobs that begin when the running one has ended, by number.
    waiting: [Paid<Caller, BTreeMap<u64, Job>>; PRIORITIES],
    /// The construction of each priority, which runs beside the job; then those that wait, by number.
    made: [Option<Making>; PRIORITIES],
    making: [Paid<Caller, BTreeMap<u64, Making>>; PRIORITIES],
    /// Whether it is the construction's turn.
    turn: [bool; PRIORITIES],
    /// What the revocation of each priority closes at its current capability, and which activities it then wakes.
    pub(super) closing: [Closing; PRIORITIES],
    /// The creator of the activity that ended in the last step; it is notified in the next one.
    pub(super) heard: Option<u16>,
    /// Why the root manager ended.
    pub(super) root: Option<StopCause>,
}

impl Jobs {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.numbered += 1;
        self.numbered
    }

    pub(super) fn start(&mut self, level: usize, job: Job) -> u64 {
        let number = self.next();
        self.waiting[level].insert(number, job);
        number
    }

    /// Adds a construction.
    pub(super) fn make(&mut self, level: usize, making: Making) -> u64 {
        let number = self.next();
        self.making[level].insert(number, making);
        number
    }

    /// Removes a job whose caller is gone, if it has not begun. A job that has begun ends by itself.
    pub(super) fn forget(&mut self, number: u64, level: usize) {
        let job = self.waiting[level].remove(&number).is_some();
        let making = self.making[level].remove(&number).is_some();
        self.count -= usize::from(job || making);
    }

    /// An activity has stopped; its capabilities must be revoked.
    pub(super) fn end(&mut self, level: usize, node: NodeId, birth: u64) {
        let begin = Job::Begin {
            waits: None,
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
    #[inline]
    pub fn has_step(&self, level: usize) -> bool {
        self.has_jobs() && (self.can_run(level) || self.can_make(level))
    }

    /// The highest priority with a job that can take a step now.
    #[inline]
    pub fn step_level(&self) -> Option<usize> {
        (0..PRIORITIES).rev().find(|level| self.has_step(*level))
    }

    fn can_run(&self, level: usize) -> bool {
        match &self.jobs.running[level] {
            Some(Job::Revoke(_)) => !self.is_stalled(level),
            Some(_) => true,
            None => !self.jobs.waiting[level].is_empty(),
        }
    }

    fn can_make(&self, level: usize) -> bool {
        self.jobs.made[level].is_some() || !self.jobs.making[level].is_empty()
    }

    /// Whether the revocation of a priority is at an activity that is being stopped, or whose stop has not been printed yet.
    fn is_stalled(&self, level: usize) -> bool {
        let Some(node) = self.space.at(level) else {
            return false;
        };
        let activity = self.living_from(node);
        let found = activity.and_then(|id| self.activities.get(id));
        // Everything that it had is removed at once, so no activity takes it for alive.
        let is_last = self.space.dependents(node, 1).next().is_none();
        let waits = found.is_some_and(|a| a.state() == State::Stopping || a.is_unsaid && is_last);
        self.jobs.closing[level].is_idle() && waits
    }

    /// Begins to revoke a capability with everything that depends on it.
    pub(super) fn revoke(
        &mut self,
        ticket: Ticket,
        node: NodeId,
        keep: bool,
    ) -> Result<(), SyscallError> {
        let level = ticket.level;
        if self.jobs.running[level].is_none() && self.jobs.waiting[level].is_empty() {
            // At once, so that from now on nothing can be derived from it.
            self.space.remove(level, node, keep)?;
            self.jobs.count += 1;
            self.jobs.running[level] = Some(Job::Revoke(Some((ticket, SyscallError::None))));
        } else {
            let begin = Job::Begin {
                waits: Some((ticket, SyscallError::None)),
                node: (node, self.space.birth(node)),
                keep,
            };
            self.later(ticket, begin);
        }
        Ok(())
    }

    /// A call becomes a job.
    pub(super) fn later(&mut self, ticket: Ticket, job: Job) {
        let number = self.jobs.start(ticket.level, job);
        self.asks_for(ticket, number);
    }

    /// A call becomes a construction.
    pub(super) fn make(&mut self, ticket: Ticket, making: Making) {
        let number = self.jobs.make(ticket.level, making);
        self.asks_for(ticket, number);
    }

    fn asks_for(&mut self, ticket: Ticket, number: u64) {
        if let Some(caller) = self.activities.get_mut(ticket.caller) {
            caller.job = number;
        }
    }

    pub(super) fn stop(
        &mut self,
        ticket: Ticket,
        caller: HolderId,
        activity: u16,
    ) -> Result<(), SyscallError> {
        let id = self.named(caller, activity)?;
        let node = self.activities.get(id).map(|a| a.node);
        self.revoke(ticket, node.ok_or(SyscallError::NoActivity)?, false)
    }

    /// Removes the nodes made by a call that cannot be completed: they are few, and none of them has reached the hardware.
    pub(super) fn discard(&mut self, node: NodeId) {
        // This level is the kernel's own.
        let level = PRIORITIES;
        if self.space.remove(level, node, false).is_ok() {
            while self.space.step(level) != Progress::Done {}
        }
    }

    /// Takes one step for a priority: of its job and of its construction in turn.
    pub fn step(&mut self, hardware: &mut impl Hardware, level: usize) {
        if let Some(creator) = self.jobs.heard.take() {
            return self.deliver(creator);
        }
        let turn = core::mem::take(&mut self.jobs.turn[level]);
        if self.can_make(level) && (turn || !self.can_run(level)) {
            let made = self.jobs.made[level].take();
            let next = || Some(self.jobs.making[level].pop_first()?.1);
            if let Some(making) = made.or_else(next) {
                self.jobs.made[level] = self.make_step(hardware, making);
                self.jobs.count -= usize::from(self.jobs.made[level].is_none());
            }
            return;
        }
        self.jobs.turn[level] = true;
        if !self.can_run(level) {
            return;
        }
        let job = self.jobs.running[level].take();
        let next = || Some(self.jobs.waiting[level].pop_first()?.1);
        let Some(job) = job.or_else(next) else {
            return;
        };
        self.take_step(hardware, level, job);
        if self.jobs.running[level].is_none() {
            self.jobs.count -= 1;
        }
    }

    fn take_step(&mut self, hardware: &mut impl Hardware, level: usize, job: Job) {
        match job {
            Job::Begin { waits, node, keep } => {
                let (node, birth) = node;
                let is_there = self.space.is(node, birth);
                if is_there && self.space.remove(level, node, keep).is_ok() {
                    self.jobs.running[level] = Some(Job::Revoke(waits));
                } else if let Some((ticket, error)) = waits {
                    let error = match error {
                        SyscallError::None => SyscallError::Revoked,
                        error => error,
                    };
                    self.answer(ticket, Err(error));
                }
            }
            Job::Clear(mut clearing) => {
                if self.clear_step(hardware, &mut clearing) {
                    self.jobs.running[level] = Some(Job::Clear(clearing));
                }
            }
            Job::Revoke(waits) => {
                if !self.revoke_step(hardware, level) {
                    self.jobs.running[level] = Some(Job::Revoke(waits));
                } else if let Some((ticket, error)) = waits {
                    self.answer(ticket, Err(error));
                }
            }
            Job::Load(mut lighting) => {
                let Some(loading) = &mut lighting.loading else {
                    return;
                };
                if !self.tiles[lighting.tile].is_lit {
                    // Its memory was revoked meanwhile.
                    self.answer(lighting.ticket, Err(SyscallError::Revoked));
                } else if loading.step(hardware) {
                    hardware.start_hart(self.tiles[lighting.tile].id, loading.entry());
                    self.shown(hardware, &lighting);
                } else {
                    self.jobs.running[level] = Some(Job::Load(lighting));
                }
            }
        }
    }

    /// One step of a revocation; returns whether it has ended.
    fn revoke_step(&mut self, hardware: &mut impl Hardware, level: usize) -> bool {
        if let Some(activity) = self.jobs.closing[level].next_to_wake() {
            self.wake(hardware, level, activity);
            return false;
        }
        if self.search_one(level) || self.alarm_one(level) {
            return false;
        }
        if let Some(node) = self.space.at(level)
            && (self.silence(hardware, level, node)
                || self.withdraw_from(hardware, node)
                || self.space.owner(node) == node && self.dismiss(node)
                || self.close_endpoint(hardware, level, node))
        {
            return false;
        }
        match self.space.step(level) {
            Progress::Done => return true,
            Progress::Working => {}
            Progress::Removed(removed) => self.removed(hardware, level, &removed),
            Progress::Disconnected(gate) => self.bereave(level, Some(gate)),
        }
        false
    }

    /// The activity of a node, or the activity that sees memory through the node or depends on its window.
    fn living_from(&self, node: NodeId) -> Option<u16> {
        let holder = match *self.space.object(node) {
            Object::Activity { holder } if self.space.owner(node) == node => HolderId(holder),
            Object::Mapping { .. } => self.space.holder_of(node),
            _ => return None,
        };
        self.number(holder)
    }

    /// If the node is a stopped activity, it no longer waits for anything. Returns whether there was something to do.
    fn withdraw_from(&mut self, hardware: &mut impl Hardware, node: NodeId) -> bool {
        match *self.space.object(node) {
            Object::Activity { holder } if self.space.owner(node) == node => {
                let id = self.number(HolderId(holder));
                id.is_some_and(|id| self.withdraw(hardware, id))
            }
            _ => false,
        }
    }

    /// If the node is a running activity, or memory that one sees, the activity stops. Returns whether there was something to do.
    fn silence(&mut self, hardware: &mut impl Hardware, level: usize, node: NodeId) -> bool {
        let Some(activity) = self.living_from(node) else {
            return false;
        };
        let target = self.activities.get(activity);
        let Some(target) = target.filter(|a| !matches!(a.state(), State::Stopped(_))) else {
            return false;
        };
        // Its creation was requested earlier and comes first.
        let creator = self.activities.get(target.creator);
        let level = match target.state() {
            State::Creating => creator.map_or(level, |creator| creator.priority.into()),
            _ => level,
        };
        if target.node != node {
            // Its end begins with the end of what it depends on.
            let (level, own) = (usize::from(target.priority), target.node);
            self.jobs.end(level, own, self.space.birth(own));
        }
        self.activities.set_state(activity, State::Stopping);
        self.take_device(hardware, activity);
        let request = Request::Stop { activity };
        self.ask_tile(hardware, level, activity, request, Then::Stopped);
        true
    }

    /// Undoes what a capability did, now that it is gone.
    fn removed(&mut self, hardware: &mut impl Hardware, level: usize, removed: &Removed) {
        if removed.copy {
            if let (Object::Semaphore { .. }, Some(origin)) = (removed.object, removed.origin)
                && !self.space.comes_from(origin, removed.holder)
            {
                // Its holder could have raised the semaphore. Unless it still can, the waiting activities must be told; an ended holder
                // holds nothing.
                let semaphore = self.space.owner(origin);
                let semaphore = (semaphore, self.space.birth(semaphore));
                let holder = self.activities.at(removed.holder);
                let closing = &mut self.jobs.closing[level];
                match holder.is_some_and(|a| matches!(a.state(), State::Stopped(_))) {
                    true => closing.alarmed = Some(semaphore),
                    false => closing.lost = Some((semaphore, removed.holder, 0)),
                }
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
                    return;
                }
                let endpoints = &mut self.tiles[index].endpoints;
                endpoints.receives(endpoint, None);
                (endpoint..endpoint + count).for_each(|endpoint| endpoints.free(endpoint));
                self.bereave(level, removed.origin);
            }
            // Its device and its processor time went in an earlier step.
            Object::Activity { holder } => self.ended(HolderId(holder), removed),
            Object::Tile(tile) => {
                if let Ok(index) = self.tile_index(tile.tile) {
                    let buckets = &mut self.tiles[index].buckets;
                    for bucket in buckets.iter_mut().filter(|b| **b == Some(removed.node)) {
                        *bucket = None;
                    }
                    if let Some(origin) = removed.origin
                        && let Object::Tile(parent) = *self.space.object(origin)
                    {
                        self.update_bucket(hardware, index, parent.owner[Quota::NocRate as usize]);
                    }
                }
            }
            Object::Memory(memory) => self.soil(removed, &memory),
            Object::Service(service) => self.questions -= usize::from(service.asked != 0),
            Object::Session { ident } => self.session_gone(hardware, removed, ident),
            Object::Notice(notice) => self.notice_gone(removed, &notice),
            _ => {}
        }
    }

    /// An endpoint leads nowhere any more. If it was the last one, the receiver checks again whether messages can still come.
    fn bereave(&mut self, level: usize, gate: Option<NodeId>) {
        let waits = gate.and_then(|gate| self.number(self.space.bereaved(gate)?));
        if let Some(activity) = waits.filter(|id| self.runs(*id)) {
            self.jobs.closing[level].wakes(activity);
        }
    }
}
