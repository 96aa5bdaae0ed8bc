//! Activities: their creation, their memory, their start and their end.
//!
//! Why it exists: an activity is made of many capabilities, and is created as a whole or not at all. What it deliberately does not
//! know: what is revoked when it ends; the capabilities know that.

use super::making::{Equipping, Making};
use super::tiles::PAGE;
use super::{System, done};
use crate::activity::{Activity, State, Withdrawn};
use crate::hardware::{Hardware, Region};
use crate::pending::{Creating, Then, Ticket, caller_label};
use crate::post;
use alloc::boxed::Box;
use bulkhead_abi::dtu::{NO_ENDPOINT, PRIVILEGED_CREDIT, ReceiveEndpoint, SendEndpoint};
use bulkhead_abi::marker::Begins;
use bulkhead_abi::syscall::arguments::{CreateActivity, Map, Start};
use bulkhead_abi::syscall::{
    Event, MAP_LAZY, MAP_PAGES_MAX, PRIORITIES, SYSCALL_SLOT, StopCause, SyscallError,
};
use bulkhead_abi::tilemux::{KERNEL_ACTIVITY, Request};
use bulkhead_abi::time::{LEAST_BUDGET, WHOLE};
use bulkhead_capabilities::{HolderId, Object, Quota, Removed, Tile};

/// Numbers of activities end here; larger ones are the unit's own.
pub const NUMBERS_END: u16 = 0x8000;
/// Numbers that are tried in one piece of work.
const TRIED_MAX: usize = 16;

impl System {
    /// Creates an activity with its channel to the kernel, in steps. A refusal comes from the first step. The activity cannot be
    /// used before its TileMux knows it.
    pub fn create(&mut self, ticket: Ticket, plan: CreateActivity) {
        let making = Making::Place(ticket, Box::new(plan));
        self.make(ticket, making);
    }

    /// Creates the activity's node and its place. Nothing else knows it yet.
    ///
    /// # Errors
    /// See `CreateActivity`.
    pub(super) fn prepare(
        &mut self,
        ticket: Ticket,
        plan: &CreateActivity,
    ) -> Result<Equipping, SyscallError> {
        let caller = self.holder(ticket)?;
        let highest = match self.activities.get(ticket.caller) {
            Some(creator) => usize::from(creator.priority),
            None => PRIORITIES - 1,
        };
        if !self.activities.may_create(ticket.caller) {
            return Err(SyscallError::TooDeep);
        }
        // The console trusts names.
        if !plan.name.is_plain() || usize::from(plan.priority) > highest {
            return Err(SyscallError::BadArgument);
        }
        let (node, holder) =
            self.space
                .create_activity(caller, plan.target, plan.tile, plan.purse, plan.memory)?;
        Ok(Equipping {
            ticket,
            caller,
            plan: *plan,
            id: KERNEL_ACTIVITY,
            node: (node, self.space.birth(node)),
            holder,
            rest: [None; 2],
            stage: 0,
        })
    }

    /// Enters the activity in the table; further steps give it what every activity begins with.
    ///
    /// # Errors
    /// See `CreateActivity`.
    pub(super) fn found(
        &mut self,
        hardware: &mut impl Hardware,
        e: &mut Equipping,
    ) -> Result<(), SyscallError> {
        let (ticket, plan, (node, birth)) = (e.ticket, &e.plan, e.node);
        if !self.space.is(node, birth) {
            return Err(SyscallError::Revoked);
        }
        let tile = *self.space.look_tile(e.caller, plan.tile)?;
        let (_, memory) = self.space.look_memory(e.caller, plan.memory)?;
        let region = Region::of(memory);
        let rights = memory.rights;
        let end = plan.reply.checked_add(SYSCALL_SLOT.into());
        let fits = plan.reply.is_multiple_of(64) && end.is_some_and(|end| end <= region.size);
        if !fits || !region.size.is_multiple_of(PAGE) || rights != 7 {
            return Err(SyscallError::BadArgument);
        }
        let index = self.tile_index(tile.tile)?;
        let target = &self.tiles[index];
        if target.is_lost {
            return Err(SyscallError::TileLost);
        }
        let physical = target
            .physical(region, true)
            .ok_or(SyscallError::WrongState)?;
        target.endpoints.find(2).ok_or(SyscallError::NoEndpoint)?;
        let cpu_owner = tile.owner[Quota::Cpu as usize];
        let cpu = self.budget_of(index, &tile, plan.tile_priority)?;
        let regulated = self.bucket_for(index, tile.owner[Quota::NocRate as usize])?;
        let Some((id, generation)) = self.number_for_new() else {
            // The next step tries other numbers.
            return Ok(());
        };
        // From here on nothing fails.
        let tile = &mut self.tiles[index];
        let (bucket, owner) = regulated.unzip();
        let bucket = bucket.unwrap_or(0);
        let place = usize::from(bucket);
        tile.claims[place] = owner.filter(|_| tile.buckets[place] != owner);
        let begins = Begins {
            activity: id,
            creator: ticket.caller,
            tile: tile.id,
            // A creator makes one call at a time, so this stays true.
            is_namesake: self.activities.has_namesake(ticket.caller, &plan.name),
        };
        hardware.announce(begins, &plan.name);
        self.enter(Activity {
            id,
            name: plan.name,
            is_namesake: begins.is_namesake,
            holder: e.holder,
            node,
            tile: index,
            creator: ticket.caller,
            is_known: false,
            generation,
            selector: plan.target,
            priority: plan.priority,
            life: Default::default(),
            region,
            physical,
            cpu: cpu.map(|_| cpu_owner),
            bucket,
            paged: None,
            syscalls: (NO_ENDPOINT, NO_ENDPOINT),
            parked: None,
            waits: None,
            job: 0,
            is_unsaid: false,
            is_listed: false,
            withdrawn: Withdrawn::No,
        });
        let bucket = (bucket != 0).then_some(Request::SetBucket {
            activity: id,
            bucket,
        });
        let budget = cpu.map(|(budget, period)| Request::SetBudget {
            activity: id,
            budget,
            period,
            priority: plan.tile_priority,
            start: self.space.fresh_from(cpu_owner),
        });
        (e.id, e.rest) = (id, [budget, bucket]);
        Ok(())
    }

    /// The free activity number that has been unused longest, and how often it was in use before.
    ///
    /// A message of an activity that is gone may still be unread somewhere under its number; so a number comes back only when all others
    /// have been used. Returns none if the numbers tried are all in use or still mentioned somewhere: there are more.
    pub(super) fn number_for_new(&mut self) -> Option<(u16, u32)> {
        for _ in 0..TRIED_MAX {
            let (id, generation) = (self.next_activity, self.generation);
            self.next_activity += 1;
            if self.next_activity >= NUMBERS_END {
                self.next_activity = KERNEL_ACTIVITY + 1;
                self.generation = self.generation.wrapping_add(1);
            }
            if self.activities.get(id).is_none() && !self.mentions.contains_key(&id) {
                return Some((id, generation));
            }
        }
        None
    }

    /// The processor time of a tile capability in each of its periods, if it has any; it must not be in use. Without any, an activity
    /// comes last.
    fn budget_of(
        &self,
        index: usize,
        tile: &Tile,
        priority: u8,
    ) -> Result<Option<(u64, u64)>, SyscallError> {
        let owner = tile.owner[Quota::Cpu as usize];
        let Object::Tile(from) = *self.space.object(owner) else {
            return Err(SyscallError::WrongKind);
        };
        if priority > tile.time.priority {
            return Err(SyscallError::NoQuota);
        }
        if from.time.period == WHOLE || from.time.budget == 0 {
            return match tile.time.idle {
                true => Ok(None),
                false => Err(SyscallError::NoQuota),
            };
        }
        if self.tiles[index].budgets.contains(&owner) {
            return Err(SyscallError::WrongState);
        }
        match from.left.get(Quota::Cpu) {
            ..LEAST_BUDGET => Err(SyscallError::NoQuota),
            budget => Ok(Some((budget, from.time.period))),
        }
    }

    /// TileMux has answered a part of a creation.
    pub(super) fn introduced(
        &mut self,
        hardware: &mut impl Hardware,
        id: u16,
        mut creating: Box<Creating>,
        outcome: Result<(), SyscallError>,
    ) {
        let ticket = creating.ticket;
        let target = self.activities.get(id);
        let Some(target) = target.filter(|a| a.state() == State::Creating) else {
            // Something that it is made of was revoked meanwhile.
            return self.answer(ticket, Err(SyscallError::Revoked));
        };
        let node = target.node;
        if let Err(error) = outcome {
            if creating.introduced {
                // Other activities may get its resources before TileMux answers this, so no other request may come first.
                let (first, request) = (PRIORITIES - 1, Request::Stop { activity: id });
                self.ask_tile(hardware, first, id, request, Then::Nothing);
            }
            let node = (node, self.space.birth(node));
            return self.unmake(ticket, id, node, error);
        }
        creating.introduced = true;
        if let Some(next) = creating.rest.iter_mut().rev().find_map(Option::take) {
            let then = Then::Created(creating);
            return self.ask_tile(hardware, ticket.level, id, next, then);
        }
        self.jobs
            .make(ticket.level, Making::Channel(id, *creating, false));
    }

    /// TileMux knows the activity and everything about it: opens its channel to the kernel, one endpoint per step, and then makes it
    /// usable. Returns whether there is another step.
    pub(super) fn settle_in(
        &mut self,
        hardware: &mut impl Hardware,
        id: u16,
        creating: Creating,
        opened: bool,
    ) -> bool {
        let target = self.activities.get_mut(id);
        let Some(target) = target.filter(|a| a.state() == State::Creating) else {
            // Something that it is made of was revoked meanwhile.
            self.answer(creating.ticket, Err(SyscallError::Revoked));
            return false;
        };
        let (index, (send, receive)) = (target.tile, target.syscalls);
        let tile = self.tiles[index].id;
        if !opened {
            let buffer = target.physical + creating.reply;
            let replies = ReceiveEndpoint::new(id, buffer, (SYSCALL_SLOT, 1), NO_ENDPOINT);
            hardware.set_endpoint(tile, receive, replies.into());
            // Each activity has a bucket, even if only the one that does not regulate.
            let place = &mut self.tiles[index];
            if !place.is_shared && place.bucket_users.iter().sum::<u16>() > 1 {
                place.is_shared = true;
                hardware.set_borrowed(tile, PRIVILEGED_CREDIT.into());
            }
            return true;
        }
        let endpoint = self.kernel.syscalls[usize::from(target.priority)];
        let label = caller_label(id, target.generation);
        let calls = SendEndpoint::new(id, (self.kernel.tile, endpoint), label, 1, SYSCALL_SLOT);
        target.is_known = true;
        let (node, bucket) = (target.node, target.bucket);
        self.take_bucket(hardware, index, bucket.into());
        self.activities.set_state(id, State::Created);
        self.space.ready(node);
        hardware.set_endpoint(tile, send, calls.into());
        let mut reply = done();
        let frequency = self.tiles[index].frequency;
        reply.push(&[id.into(), send.into(), receive.into(), frequency]);
        self.answer(creating.ticket, Ok(reply));
        false
    }

    /// An activity that has not been started.
    pub(super) fn created(&self, id: u16) -> Result<&Activity, SyscallError> {
        let found = self.activities.get(id).ok_or(SyscallError::NoActivity)?;
        match found.state() {
            State::Created => Ok(found),
            _ => Err(SyscallError::WrongState),
        }
    }

    /// Maps a part of an activity's memory.
    ///
    /// # Errors
    /// See `Map`.
    pub(super) fn map(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        c: &Map,
    ) -> Result<(), SyscallError> {
        let activity = self.named(caller, c.activity)?;
        let Map {
            address,
            offset,
            pages,
            rights,
            ..
        } = *c;
        let target = self.created(activity)?;
        let most = match rights & MAP_LAZY {
            0 => MAP_PAGES_MAX,
            _ => target.region.size / PAGE,
        };
        let valid = (1..=most).contains(&pages)
            && (1..=7).contains(&(rights & !MAP_LAZY))
            && offset.is_multiple_of(PAGE);
        if !valid {
            return Err(SyscallError::BadArgument);
        }
        let end = offset.checked_add(pages * PAGE);
        if end.is_none_or(|end| end > target.region.size) {
            return Err(SyscallError::OutOfBounds);
        }
        let physical = target.physical + offset;
        let request = Request::Map {
            activity,
            address,
            physical,
            pages,
            rights,
        };
        let then = Then::Reply(ticket);
        self.ask_tile(hardware, ticket.level, activity, request, then);
        Ok(())
    }

    /// Starts an activity.
    ///
    /// # Errors
    /// See `Start`.
    pub(super) fn start(
        &mut self,
        hardware: &mut impl Hardware,
        ticket: Ticket,
        caller: HolderId,
        c: &Start,
    ) -> Result<(), SyscallError> {
        let activity = self.named(caller, c.activity)?;
        let (entry, stack) = (c.entry, c.stack);
        self.created(activity)?;
        if !stack.is_multiple_of(16) || !entry.is_multiple_of(2) {
            return Err(SyscallError::BadArgument);
        }
        let request = Request::Start {
            activity,
            entry,
            stack,
        };
        let then = Then::Started(ticket);
        self.ask_tile(hardware, ticket.level, activity, request, then);
        Ok(())
    }

    /// A tile's TileMux reports that an activity stopped. The kernel believes it if the activity exists and runs; then everything that the
    /// activity has is revoked.
    pub fn notified(
        &mut self,
        hardware: &mut impl Hardware,
        tile: u16,
        activity: u16,
        cause: StopCause,
    ) {
        if self.on(activity, tile).is_none() || !self.runs_no_more(activity, cause) {
            return self.lied(hardware, tile);
        }
        self.take_device(hardware, activity);
    }

    /// The activity's node was removed, and everything that it had with it. Its creator is notified.
    pub(super) fn ended(&mut self, holder: HolderId, removed: &Removed) {
        let Some(id) = self.number(holder) else {
            return;
        };
        let post = self.activities.post(id);
        let last = post.and_then(|post| post.said.take_about(0));
        let Some(activity) = self.leave(id) else {
            return;
        };
        let cause = match activity.state() {
            State::Stopped(cause) => cause,
            _ => StopCause::Killed,
        };
        if activity.creator == KERNEL_ACTIVITY {
            // The end of the root manager is the end of the system; see `root_cause`.
            self.jobs.root = Some(cause);
        }
        if activity.is_known {
            let words = post::ended(activity.selector, id, last, Event::Stopped(cause));
            self.notify_end(activity.creator, removed, words);
        }
        // A creator that waits for exactly this is told in the next step.
        self.jobs.heard = Some(activity.creator);
    }

    /// A stopped activity no longer waits, and its requests that have not begun are dropped; after that it loses its words, its device and
    /// its processor time. Returns whether there was anything to do.
    pub(super) fn withdraw(&mut self, hardware: &mut impl Hardware, id: u16) -> bool {
        let Some(activity) = self.activities.get_mut(id) else {
            return false;
        };
        let (level, job) = (activity.priority.into(), activity.job);
        let before = activity.withdrawn;
        activity.withdrawn = match before {
            Withdrawn::No => Withdrawn::Calls,
            _ => Withdrawn::All,
        };
        match before {
            Withdrawn::No => {
                self.wait_no_more(id);
                self.jobs.forget(job, level);
                self.unlist(id);
            }
            Withdrawn::Calls => {
                self.activities.hush(id);
                self.take_device(hardware, id);
                if let Some(owner) = self.activities.get(id).and_then(|a| a.cpu) {
                    self.space.stop_using(owner, hardware.time());
                }
            }
            Withdrawn::All => return false,
        }
        true
    }

    /// Why the root manager stopped, if it has.
    pub fn root_cause(&self, root: u16) -> Option<StopCause> {
        match self.activities.get(root).map(|a| a.state()) {
            Some(State::Stopped(cause)) => Some(cause),
            Some(_) => None,
            None => self.jobs.root,
        }
    }
}
