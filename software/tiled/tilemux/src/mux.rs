//! Activities of a tile and their life.
//!
//! Why it exists: requests of the kernel, calls of applications, faults and interrupts all end here, as changes of which activities are
//! ready. What it deliberately does not know: how registers are saved. Times are nanoseconds since reset.

use bulkhead_abi::dtu::{IDLE_ACTIVITY, NO_ENDPOINT, TLB_READ, TLB_WRITE};
use bulkhead_abi::environment::{ENVIRONMENT_BASE, SHARED_OFFSET};
use bulkhead_abi::marker::MarkerKind::{self, MuxBudget, MuxMember, MuxReady};
use bulkhead_abi::marker::Since;
use bulkhead_abi::memory_map::DTU_BASE;
use bulkhead_abi::syscall::{MAP_LAZY, MAP_READ, MAP_WRITE, StopCause};
use bulkhead_abi::tilemux::{Order, Request, TileMuxError};
use bulkhead_exec::account::Budget;
use bulkhead_exec::tile::{Cost, Decision, Policy, Scheduler};
use bulkhead_hal::paging::{self, AddressSpace, MapError, PAGE, Rights, TableMemory, USER_END};

pub use bulkhead_abi::pager::PagerAccess as Access;
pub use bulkhead_abi::tilemux::ACTIVITIES;

/// What TileMux needs from the tile.
pub trait Machine: TableMemory {
    /// Unread messages in an endpoint, or in all of an activity's if it is [`NO_ENDPOINT`]. Asked only for the activity that
    /// is current.
    fn has_message(&self, activity: u16, endpoint: u16) -> bool;
    /// Lets the unit use a page for an activity.
    fn insert_translation(&mut self, activity: u16, page: u64, physical: u64, rights: u64);
    /// Drops all of the unit's translations.
    fn forget_translations(&mut self);
    /// Writes 4 bytes at a tile-physical address.
    fn write_half(&mut self, physical: u64, value: u32);
}

/// An observer of every change of the activities that want the hart. It cannot influence anything.
pub trait Witness {
    /// [`MarkerKind::MuxMember`], [`MarkerKind::MuxReady`] or [`MarkerKind::MuxBudget`].
    fn tell(&mut self, kind: MarkerKind, since: Since);
}

impl Witness for () {
    fn tell(&mut self, _: MarkerKind, _: Since) {}
}

fn since(activity: u16, moment: u64) -> Since {
    // A moment that is too late for a witness's word counts as never.
    let moment = moment.min(Since::NEVER);
    Since { activity, moment }
}

/// What happens to the command registers of an activity that leaves the unit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Registers {
    /// It was interrupted and gets them back.
    Kept,
    /// It called TileMux; a call ends its running command and clears the registers.
    Dropped,
}

/// Where an activity starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// First instruction.
    pub entry: u64,
    /// Stack pointer.
    pub stack: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Created,
    Ready,
    /// Waits for a message for the endpoint, or the time (0: no end).
    Waiting {
        endpoint: u16,
        until: u64,
    },
    /// Waits for its pager; if there will be no page, it ends for this reason.
    Paging(StopCause),
    /// It has ended, and the kernel has not been told.
    Ended(StopCause),
}

/// An activity of this tile.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// Its number.
    pub id: u16,
    /// Its address space.
    pub space: AddressSpace,
    /// Token bucket for its traffic.
    pub bucket: u8,
    /// Its processor time is limited, so its waits must not count as execution.
    limited: bool,
    /// Pages that are mapped when they are first used.
    lazy: Option<Lazy>,
    /// Pages that a pager supplies.
    paged: Option<Paged>,
    /// Where its environment is in its own memory, once that is mapped. A pager may show other memory at that address, which the
    /// activity or the pager may only be allowed to read.
    environment: Option<u64>,
    state: State,
}

/// A region whose pages are mapped when they are first used.
#[derive(Clone, Copy, Debug)]
struct Lazy {
    address: u64,
    physical: u64,
    bytes: u64,
    rights: Rights,
}

/// A range whose pages a pager supplies.
#[derive(Clone, Copy, Debug)]
struct Paged {
    /// TileMux's send endpoint to it.
    endpoint: u16,
    address: u64,
    bytes: u64,
}

impl Paged {
    /// Whether `bytes` from `address` on are in it.
    fn holds(&self, address: u64, bytes: u64) -> bool {
        let offset = address.checked_sub(self.address);
        let end = offset.and_then(|offset| offset.checked_add(bytes));
        end.is_some_and(|end| end <= self.bytes)
    }
}

/// The access of a command of the unit, with rights as in `TLB_READ`.
pub const fn access_of_rights(rights: u64) -> Access {
    match rights & TLB_WRITE {
        0 => Access::Read,
        _ => Access::Write,
    }
}

/// Whether rights allow an access.
const fn allow(rights: Rights, access: Access) -> bool {
    match access {
        Access::Read => rights.read,
        Access::Write => rights.write,
        Access::Execute => rights.execute,
    }
}

/// The access that caused a trap, if it is a page fault (RISC-V privileged architecture, table of `mcause`).
pub const fn access_of_cause(cause: u64) -> Option<Access> {
    match cause {
        12 => Some(Access::Execute),
        13 => Some(Access::Read),
        15 => Some(Access::Write),
        _ => None,
    }
}

/// A number that no activity has, for free places.
const NOBODY: u16 = IDLE_ACTIVITY;

/// All activities. Each has a place, stable for as long as it lives, which is its number in the schedule.
#[derive(Debug)]
pub struct Mux<W = ()> {
    /// Numbers of the activities by place, in a table of their own, because every interrupt looks up a message's receiver.
    ids: [u16; ACTIVITIES],
    activities: [Option<Activity>; ACTIVITIES],
    pub(crate) scheduler: Scheduler<ACTIVITIES>,
    /// Places of activities that wait for a moment, as bits.
    timed: u32,
    pub(crate) witness: W,
}

impl<W: Witness> Mux<W> {
    /// No activities; with a policy, slices of this many nanoseconds, and a witness.
    pub const fn new(policy: Policy, slice: u64, witness: W) -> Self {
        Self {
            ids: [NOBODY; ACTIVITIES],
            activities: [None; ACTIVITIES],
            scheduler: Scheduler::new(policy, slice),
            timed: 0,
            witness,
        }
    }

    /// The place of an activity.
    pub fn place(&self, id: u16) -> Option<usize> {
        self.ids
            .iter()
            .position(|other| *other == id && id != NOBODY)
    }

    /// The activity in a place.
    pub fn at(&self, place: usize) -> Option<&Activity> {
        self.activities.get(place)?.as_ref()
    }

    fn find(&mut self, id: u16) -> Result<(usize, &mut Activity), TileMuxError> {
        let place = self.place(id).ok_or(TileMuxError::NoActivity)?;
        let found = self.activities[place].as_mut();
        Ok((place, found.ok_or(TileMuxError::NoActivity)?))
    }

    /// Carries out a request of the kernel. If it starts an activity, returns its entry.
    ///
    /// # Errors
    /// See [`TileMuxError`]; nothing has changed then, except for a page table after [`TileMuxError::Again`].
    pub fn request(
        &mut self,
        machine: &mut impl Machine,
        request: Request,
        now: u64,
    ) -> Result<Option<(u16, Entry)>, TileMuxError> {
        match Order::from(request) {
            Order::Create(o) => self.create(machine, o.activity, o.table_pages)?,
            Order::Map(o) => {
                let rights = Rights::from_bits(o.rights & !MAP_LAZY);
                let rights = rights.ok_or(TileMuxError::BadRequest)?;
                let (_, target) = self.created(o.activity)?;
                let within = ENVIRONMENT_BASE.checked_sub(o.address);
                let within = within.filter(|offset| offset / PAGE < o.pages);
                let bytes = user_bytes(o.address, o.pages).ok_or(TileMuxError::BadRequest)?;
                if o.rights & MAP_LAZY != 0 {
                    if !o.physical.is_multiple_of(PAGE) || target.lazy.is_some() {
                        return Err(TileMuxError::BadRequest);
                    }
                    let (address, physical) = (o.address, o.physical);
                    target.lazy = Some(Lazy {
                        address,
                        physical,
                        bytes,
                        rights,
                    });
                    return Ok(None);
                }
                let range = (o.address, o.physical, o.pages);
                let mapped = target.space.map(machine, range, rights, false);
                mapped.map_err(map_error)?;
                if let Some(offset) = within {
                    target.environment = Some(o.physical + offset);
                }
            }
            Order::SetBucket(o) => self.find(o.activity)?.1.bucket = o.bucket & 3,
            Order::SetBudget(o) => {
                let (place, _) = self.find(o.activity)?;
                let budget = Budget {
                    amount: o.budget,
                    period: o.period,
                };
                let start = o.start.max(now);
                let is_set = self.scheduler.set_budget(place, budget, o.priority, start);
                if !is_set {
                    return Err(TileMuxError::BadRequest);
                }
                self.find(o.activity)?.1.limited = true;
                self.witness.tell(MuxBudget, since(o.activity, start));
                self.tell_shared(machine);
            }
            Order::Start(o) => {
                let (place, target) = self.created(o.activity)?;
                // The command registers of the unit, at the same address for all activities.
                let rights = Rights::from_bits(MAP_READ | MAP_WRITE);
                let rights = rights.ok_or(TileMuxError::BadRequest)?;
                let range = (DTU_BASE, DTU_BASE, 1);
                let mapped = target.space.map(machine, range, rights, false);
                mapped.map_err(map_error)?;
                target.state = State::Ready;
                self.scheduler.set_ready(place, true, now);
                self.witness.tell(MuxReady, since(o.activity, Since::NOW));
                self.tell_shared(machine);
                let (entry, stack) = (o.entry, o.stack);
                return Ok(Some((o.activity, Entry { entry, stack })));
            }
            Order::Wake(o) => {
                let (place, target) = self.find(o.activity)?;
                if let State::Waiting { .. } = target.state {
                    self.wake(place, now);
                }
            }
            Order::Stop(o) => {
                self.find(o.activity)?;
                self.remove(machine, o.activity);
            }
            Order::SetPager(o) => {
                let (_, target) = self.created(o.activity)?;
                let bytes = user_bytes(o.address, o.pages).filter(|_| target.paged.is_none());
                let bytes = bytes.ok_or(TileMuxError::BadRequest)?;
                let extended = target.space.extend(machine, o.table_pages);
                extended.map_err(map_error)?;
                target.paged = Some(Paged {
                    endpoint: o.endpoint,
                    address: o.address,
                    bytes,
                });
            }
            Order::MapPages(o) => {
                let (_, target) = self.find(o.activity)?;
                let bytes = o.pages.checked_mul(PAGE);
                let bytes = bytes.ok_or(TileMuxError::BadRequest)?;
                if !target.paged.is_some_and(|p| p.holds(o.address, bytes)) {
                    return Err(TileMuxError::BadRequest);
                }
                let space = &mut target.space;
                let known = match o.rights {
                    0 => space.unmap(machine, o.address, o.pages),
                    rights => {
                        let rights = Rights::from_bits(rights).ok_or(TileMuxError::BadRequest)?;
                        space.map(machine, (o.address, o.physical, o.pages), rights, true)
                    }
                };
                if known.map_err(map_error)? {
                    machine.forget_translations();
                }
            }
            Order::Tables(o) => paging::give(machine, o.physical, o.pages).map_err(map_error)?,
        }
        Ok(None)
    }

    fn created(&mut self, id: u16) -> Result<(usize, &mut Activity), TileMuxError> {
        let found = self.find(id)?;
        match found.1.state {
            State::Created => Ok(found),
            _ => Err(TileMuxError::WrongState),
        }
    }

    fn create(
        &mut self,
        machine: &mut impl Machine,
        id: u16,
        pages: u64,
    ) -> Result<(), TileMuxError> {
        if id == NOBODY || self.place(id).is_some() {
            return Err(TileMuxError::WrongState);
        }
        let place = self.activities.iter().position(Option::is_none);
        let place = place.ok_or(TileMuxError::Full)?;
        let space = AddressSpace::new(machine, pages).map_err(map_error)?;
        self.activities[place] = Some(Activity {
            id,
            space,
            bucket: 0,
            limited: false,
            lazy: None,
            paged: None,
            environment: None,
            state: State::Created,
        });
        self.ids[place] = id;
        self.scheduler.add(place);
        self.witness.tell(MuxMember, since(id, Since::NOW));
        Ok(())
    }

    /// Removes an activity, also from the unit: its number and its memory will belong to another one.
    pub fn remove(&mut self, machine: &mut impl Machine, id: u16) {
        if let Some(place) = self.place(id) {
            if let Some(activity) = self.activities[place].take() {
                activity.space.end(machine);
            }
            self.ids[place] = NOBODY;
            self.timed &= !(1 << place);
            self.scheduler.remove(place);
            machine.forget_translations();
            self.witness.tell(MuxMember, since(id, Since::NEVER));
            self.tell_shared(machine);
        }
    }

    /// Writes into every environment page whether the activity must wait through TileMux: because others may want the hart
    /// meanwhile, or because its own time is limited. The page is in the activity's own memory, whatever the activity sees at the
    /// address.
    fn tell_shared(&self, machine: &mut impl Machine) {
        let started = |a: &&Activity| a.state != State::Created;
        let living = self.activities.iter().flatten().filter(started);
        let others = living.clone().count() > 1;
        for activity in living {
            let shared = u32::from(others || activity.limited);
            if let Some(physical) = activity.environment {
                machine.write_half(physical + SHARED_OFFSET, shared);
            }
        }
    }

    /// An activity accessed an unmapped address. Returns true if the address is mapped now, or a missing page table has been made; then
    /// the access can be repeated.
    pub fn fault(
        &mut self,
        machine: &mut impl Machine,
        place: usize,
        address: u64,
        access: Access,
    ) -> bool {
        let mut try_it = || {
            let activity = self.activities.get_mut(place)?.as_mut()?;
            let lazy = activity.lazy.filter(|lazy| allow(lazy.rights, access))?;
            let offset = address.checked_sub(lazy.address)? & !(PAGE - 1);
            let range = (lazy.address + offset, lazy.physical + offset, 1);
            let is_within = offset < lazy.bytes;
            is_within.then(|| activity.space.map(machine, range, lazy.rights, false))
        };
        matches!(try_it(), Some(Ok(_) | Err(MapError::Again)))
    }

    /// The target of a fault at an address that is not mapped, or not for this access: TileMux's endpoint to the pager, and the
    /// address of the page.
    pub fn pager(
        &self,
        machine: &impl Machine,
        place: usize,
        address: u64,
        access: Access,
    ) -> Option<(u16, u64)> {
        let activity = self.at(place)?;
        let page = address & !(PAGE - 1);
        let paged = activity.paged.filter(|p| p.holds(page, PAGE))?;
        let mapped = activity.space.translate(machine, page);
        let allowed = mapped.is_some_and(|(_, rights)| allow(rights, access));
        (!allowed).then_some((paged.endpoint, page))
    }

    /// The activity in a place waits for its pager. If there will be no page, it ends for this reason.
    pub fn suspend(&mut self, place: usize, cause: StopCause, now: u64) {
        self.halt(place, State::Paging(cause), now);
    }

    /// An activity has ended, but keeps its place until the kernel has been told, or stops it.
    pub fn end(&mut self, id: u16, cause: StopCause, now: u64) {
        if let Some(place) = self.place(id) {
            self.halt(place, State::Ended(cause), now);
        }
    }

    /// An activity that has ended and of which the kernel has not been told.
    pub fn ended(&self) -> Option<(u16, StopCause)> {
        let mut all = self.activities.iter().flatten();
        all.find_map(|activity| match activity.state {
            State::Ended(cause) => Some((activity.id, cause)),
            _ => None,
        })
    }

    fn halt(&mut self, place: usize, state: State, now: u64) {
        if let Some(Some(activity)) = self.activities.get_mut(place) {
            activity.state = state;
            self.witness
                .tell(MuxReady, since(activity.id, Since::NEVER));
            self.scheduler.set_ready(place, false, now);
        }
    }

    /// The endpoint of the pager that an activity waits for, and the reason for which it ends if there will be no page.
    pub fn suspended(&self, id: u16) -> Option<(usize, u16, StopCause)> {
        let place = self.place(id)?;
        let activity = self.at(place)?;
        match activity.state {
            State::Paging(cause) => Some((place, activity.paged?.endpoint, cause)),
            _ => None,
        }
    }

    /// Places of activities that wait for their pagers.
    pub fn paging(&self) -> impl Iterator<Item = usize> {
        let waits = |a: &Option<Activity>| a.is_some_and(|a| matches!(a.state, State::Paging(_)));
        (0..ACTIVITIES).filter(move |place| waits(&self.activities[*place]))
    }

    /// Makes a page of an activity known to the unit, or does a part of that: the activity tries again. Returns false if it may not use
    /// the page in this way.
    pub fn translate(
        &mut self,
        machine: &mut impl Machine,
        id: u16,
        address: u64,
        rights: u64,
    ) -> bool {
        let page = address & !(PAGE - 1);
        let Some(place) = self.place(id) else {
            return false;
        };
        // If it is mapped already, this does nothing.
        let faulted = self.fault(machine, place, page, access_of_rights(rights));
        let space = self.at(place).map(|activity| activity.space);
        let found = space.and_then(|space| space.translate(machine, page));
        let Some((physical, allowed)) = found else {
            return faulted;
        };
        // The unit's own registers are not memory.
        if page == DTU_BASE
            || rights & TLB_READ != 0 && !allowed.read
            || rights & TLB_WRITE != 0 && !allowed.write
        {
            return false;
        }
        let rights =
            if allowed.read { TLB_READ } else { 0 } | if allowed.write { TLB_WRITE } else { 0 };
        machine.insert_translation(id, page, physical, rights);
        true
    }

    /// Tile-physical address of a readable byte of an activity.
    pub fn readable(&self, machine: &impl Machine, id: u16, address: u64) -> Option<u64> {
        let activity = self.at(self.place(id)?)?;
        let (physical, rights) = activity.space.translate(machine, address)?;
        (rights.read && address & !(PAGE - 1) != DTU_BASE).then_some(physical)
    }

    /// The activity in a place wants to wait. It stays ready if it need not.
    pub fn wait(
        &mut self,
        machine: &impl Machine,
        place: usize,
        endpoint: u16,
        until: u64,
        now: u64,
    ) {
        let Some(Some(activity)) = self.activities.get_mut(place) else {
            return;
        };
        if machine.has_message(activity.id, endpoint) || until != 0 && until <= now {
            return;
        }
        activity.state = State::Waiting { endpoint, until };
        let mut moment = Since::NEVER;
        if until != 0 {
            self.timed |= 1 << place;
            moment = until;
        }
        self.witness.tell(MuxReady, since(activity.id, moment));
        self.scheduler.set_ready(place, false, now);
    }

    /// The endpoint for which the activity in a place waits.
    pub fn awaits(&self, place: usize) -> Option<u16> {
        match self.at(place)?.state {
            State::Waiting { endpoint, .. } => Some(endpoint),
            _ => None,
        }
    }

    /// A message for the activity in a place arrived while it did not run. Returns whether it waited for that message.
    pub fn message(&mut self, place: usize, endpoint: u16, now: impl FnOnce() -> u64) -> bool {
        let wanted = self.awaits(place);
        let awaited = wanted == Some(endpoint) || wanted == Some(NO_ENDPOINT);
        if awaited {
            self.wake(place, now());
        }
        awaited
    }

    /// Ends the wait of the activity in a place.
    pub fn wake(&mut self, place: usize, now: u64) {
        if let Some(Some(activity)) = self.activities.get_mut(place) {
            activity.state = State::Ready;
            self.timed &= !(1 << place);
            self.witness.tell(MuxReady, since(activity.id, Since::NOW));
            self.scheduler.set_ready(place, true, now);
        }
    }

    /// How urgent the activity in a place is, see [`Scheduler::urgency`].
    pub fn urgency(&self, place: usize) -> u8 {
        self.scheduler.urgency(place)
    }

    /// The activity in a place gives up the rest of its slice.
    pub fn give_way(&mut self, place: usize) {
        self.scheduler.to_end(place);
    }

    /// The activity in a place pays for the time from one moment to another.
    pub fn charge(&mut self, place: usize, cost: Cost, start: u64, end: u64) {
        if let Some(again) = self.scheduler.charge(place, cost, start, end) {
            self.witness.tell(MuxBudget, since(self.ids[place], again));
        }
    }

    /// Whether the activity in a place pays for the switch from it to another place, or to none.
    pub fn gives_back(&self, place: usize, next: Option<usize>) -> bool {
        self.scheduler.gives_back(place, next)
    }

    /// Whether the activity in a place has a budget.
    pub fn is_limited(&self, place: usize) -> bool {
        self.at(place).is_some_and(|activity| activity.limited)
    }

    /// The activities that wait for a moment: places and moments.
    fn timed(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut left = self.timed;
        core::iter::from_fn(move || {
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                if let Some(State::Waiting { until, .. }) = self.at(place).map(|a| a.state) {
                    return Some((place, until));
                }
            }
            None
        })
    }

    /// The activity that runs now, and when TileMux must be asked again.
    pub fn decide(&mut self, now: u64) -> Decision {
        if self.timed == 0 {
            return self.scheduler.decide(now);
        }
        loop {
            let over = self.timed().find(|(_, until)| *until <= now);
            let Some((place, until)) = over else { break };
            self.wake(place, until);
        }
        // Activities that are less urgent than the running one are woken when that one ends or waits; activities whose budget is
        // used up, when they have budget again.
        let decision = self.scheduler.decide(now);
        let (bar, until) = match decision {
            Decision::Run { member, until } => (self.urgency(member), until),
            Decision::Idle { until } => (0, until),
        };
        let awaited = self
            .timed()
            .filter(|(place, _)| self.urgency(*place) >= bar);
        let begins = awaited.map(|(place, until)| self.scheduler.start(place, until));
        let until = begins.chain(until).min();
        match decision {
            Decision::Run { member, .. } => Decision::Run { member, until },
            Decision::Idle { .. } => Decision::Idle { until },
        }
    }
}

/// Bytes of pages that begin at an address, if there are any and the user may have all of them: none may be the page of the unit's
/// registers, which no memory replaces and which has no lines in caches.
fn user_bytes(address: u64, pages: u64) -> Option<u64> {
    let bytes = pages.checked_mul(PAGE).filter(|bytes| *bytes > 0)?;
    let end = address.checked_add(bytes)?;
    let is_free = address > DTU_BASE || end <= DTU_BASE;
    (address.is_multiple_of(PAGE) && end <= USER_END && is_free).then_some(bytes)
}

fn map_error(error: MapError) -> TileMuxError {
    match error {
        MapError::BadAddress | MapError::Mapped => TileMuxError::BadRequest,
        MapError::NoTable => TileMuxError::NoTable,
        MapError::Again => TileMuxError::Again,
    }
}

/// The cause that `Ecall::Panic` reports.
pub const fn panic_cause(exhausted: u64) -> StopCause {
    if exhausted == 1 {
        StopCause::OutOfMemory
    } else {
        StopCause::Panic
    }
}
