//! Activities of a tile and their life.
//!
//! Why it exists: requests of the kernel, calls of applications, faults and interrupts all end here, as changes of who is
//! ready. What it deliberately does not know: how registers are saved. Times are nanoseconds since reset.

use bulkhead_abi::dtu::{NO_ENDPOINT, TLB_READ, TLB_WRITE};
use bulkhead_abi::environment::{ENVIRONMENT_BASE, SHARED_OFFSET};
use bulkhead_abi::memory_map::DTU_BASE;
use bulkhead_abi::syscall::StopCause;
use bulkhead_abi::tilemux::{Request, TileMuxError};
use bulkhead_exec::account::Budget;
use bulkhead_exec::tile::{Decision, Policy, Scheduler};
use bulkhead_hal::paging::{AddressSpace, MapError, PAGE, Rights, TableMemory};

/// Activities on a tile at most.
pub const ACTIVITIES: usize = 16;

/// What TileMux needs of the tile.
pub trait Machine: TableMemory {
    /// Unread messages in an endpoint, or in all of an activity's if it is [`NO_ENDPOINT`]. Asked only for the activity that
    /// ran last.
    fn has_message(&self, activity: u16, endpoint: u16) -> bool;
    /// Lets the unit use a page for an activity.
    fn insert_translation(&mut self, activity: u16, page: u64, physical: u64, rights: u64);
    /// Writes 4 bytes at a tile-physical address.
    fn write_half(&mut self, physical: u64, value: u32);
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
    /// Its processor time is limited, so its waiting must not count as running.
    limited: bool,
    state: State,
}

/// All activities.
#[derive(Debug)]
pub struct Mux {
    activities: [Option<Activity>; ACTIVITIES],
    scheduler: Scheduler<ACTIVITIES>,
}

impl Mux {
    /// None, with a policy and slices of so many nanoseconds.
    pub const fn new(policy: Policy, slice: u64) -> Self {
        Self {
            activities: [None; ACTIVITIES],
            scheduler: Scheduler::new(policy, slice),
        }
    }

    /// The place of an activity; stable for as long as it lives.
    pub fn place(&self, id: u16) -> Option<usize> {
        self.activities
            .iter()
            .position(|a| a.is_some_and(|a| a.id == id))
    }

    /// An activity.
    pub fn activity(&self, id: u16) -> Option<&Activity> {
        self.activities.iter().flatten().find(|a| a.id == id)
    }

    fn activity_mut(&mut self, id: u16) -> Option<&mut Activity> {
        self.activities.iter_mut().flatten().find(|a| a.id == id)
    }

    /// Carries out a request of the kernel. If it starts an activity, says how.
    ///
    /// # Errors
    /// See [`TileMuxError`]; nothing is changed then, except that some pages may be mapped.
    pub fn request(
        &mut self,
        machine: &mut impl Machine,
        request: Request,
        now: u64,
    ) -> Result<Option<(u16, Entry)>, TileMuxError> {
        match request {
            Request::Create {
                activity,
                tables,
                table_pages,
            } => self.create(machine, activity, tables, table_pages)?,
            Request::Map {
                activity,
                address,
                physical,
                pages,
                rights,
            } => {
                let rights = Rights::from_bits(rights).ok_or(TileMuxError::BadRequest)?;
                let target = self.created(activity)?;
                target
                    .space
                    .map(machine, address, physical, pages, rights)
                    .map_err(map_error)?;
            }
            Request::SetBucket { activity, bucket } => {
                let target = self.activity_mut(activity);
                target.ok_or(TileMuxError::NoActivity)?.bucket = bucket & 3;
            }
            Request::SetBudget {
                activity,
                budget,
                period,
                priority,
            } => {
                let target = self.activity_mut(activity);
                let target = target.ok_or(TileMuxError::NoActivity)?;
                target.limited = true;
                let budget = Budget {
                    amount: budget,
                    period,
                };
                if !self.scheduler.set_budget(activity, budget, priority, now) {
                    return Err(TileMuxError::BadRequest);
                }
                self.tell_shared(machine);
            }
            Request::Start {
                activity,
                entry,
                stack,
            } => {
                self.created(activity)?.state = State::Ready;
                self.scheduler.set_ready(activity, true, now);
                self.tell_shared(machine);
                return Ok(Some((activity, Entry { entry, stack })));
            }
            Request::Stop { activity } => {
                self.activity(activity).ok_or(TileMuxError::NoActivity)?;
                self.remove(machine, activity);
            }
        }
        Ok(None)
    }

    fn created(&mut self, id: u16) -> Result<&mut Activity, TileMuxError> {
        let found = self.activity_mut(id).ok_or(TileMuxError::NoActivity)?;
        match found.state {
            State::Created => Ok(found),
            _ => Err(TileMuxError::WrongState),
        }
    }

    fn create(
        &mut self,
        machine: &mut impl Machine,
        id: u16,
        tables: u64,
        pages: u64,
    ) -> Result<(), TileMuxError> {
        if self.activity(id).is_some() {
            return Err(TileMuxError::WrongState);
        }
        let place = self.activities.iter().position(Option::is_none);
        let place = place.ok_or(TileMuxError::Full)?;
        let mut space = AddressSpace::new(machine, tables, pages).map_err(map_error)?;
        // The command registers of the unit, at the same address for everybody.
        let registers = Rights {
            read: true,
            write: true,
            execute: false,
        };
        space
            .map(machine, DTU_BASE, DTU_BASE, 1, registers)
            .map_err(map_error)?;
        self.activities[place] = Some(Activity {
            id,
            space,
            bucket: 0,
            limited: false,
            state: State::Created,
        });
        self.scheduler.add(id);
        Ok(())
    }

    /// Forgets an activity.
    pub fn remove(&mut self, machine: &mut impl Machine, id: u16) {
        if let Some(place) = self.place(id) {
            self.activities[place] = None;
            self.scheduler.remove(id);
            self.tell_shared(machine);
        }
    }

    /// Writes into every environment page whether the activity must wait through TileMux: because others want the hart
    /// meanwhile, or because its own time is limited.
    fn tell_shared(&self, machine: &mut impl Machine) {
        let started = |a: &&Activity| a.state != State::Created;
        let living = self.activities.iter().flatten().filter(started);
        let others = living.clone().count() > 1;
        for activity in living {
            let shared = u32::from(others || activity.limited);
            let environment = activity.space.translate(machine, ENVIRONMENT_BASE);
            if let Some((physical, _)) = environment {
                machine.write_half(physical + SHARED_OFFSET, shared);
            }
        }
    }

    /// Makes a page of an activity known to the unit. False if the activity may not use it so.
    pub fn translate(
        &self,
        machine: &mut impl Machine,
        id: u16,
        address: u64,
        rights: u64,
    ) -> bool {
        let page = address & !(PAGE - 1);
        let Some(activity) = self.activity(id) else {
            return false;
        };
        let Some((physical, allowed)) = activity.space.translate(machine, page) else {
            return false;
        };
        // The unit's own registers are no memory.
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
        let activity = self.activity(id)?;
        let (physical, rights) = activity.space.translate(machine, address)?;
        (rights.read && address & !(PAGE - 1) != DTU_BASE).then_some(physical)
    }

    /// An activity wants to wait. It stays ready if what it waits for is there.
    pub fn wait(&mut self, machine: &impl Machine, id: u16, endpoint: u16, until: u64, now: u64) {
        if machine.has_message(id, endpoint) || until != 0 && until <= now {
            return;
        }
        if let Some(activity) = self.activity_mut(id) {
            activity.state = State::Waiting { endpoint, until };
            self.scheduler.set_ready(id, false, now);
        }
    }

    /// A message for an activity came while it did not run.
    pub fn message(&mut self, id: u16, endpoint: u16, now: u64) {
        if let Some(activity) = self.activity_mut(id)
            && let State::Waiting {
                endpoint: wanted, ..
            } = activity.state
            && (wanted == endpoint || wanted == NO_ENDPOINT)
        {
            activity.state = State::Ready;
            self.scheduler.set_ready(id, true, now);
        }
    }

    /// An activity gives the rest of its slice away.
    pub fn give_way(&mut self, id: u16) {
        self.scheduler.to_end(id);
    }

    /// An activity ran from one moment to another.
    pub fn charge(&mut self, id: u16, start: u64, end: u64) {
        self.scheduler.charge(id, start, end);
    }

    /// Who runs now; and when TileMux must be asked again.
    pub fn decide(&mut self, now: u64) -> Decision {
        let mut wake: Option<u64> = None;
        for activity in self.activities.iter_mut().flatten() {
            if let State::Waiting { until, .. } = activity.state
                && until != 0
            {
                if until <= now {
                    activity.state = State::Ready;
                    self.scheduler.set_ready(activity.id, true, until);
                } else {
                    wake = Some(wake.map_or(until, |w| w.min(until)));
                }
            }
        }
        let earlier = |until: Option<u64>| match (until, wake) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        match self.scheduler.decide(now) {
            Decision::Run { id, until } => Decision::Run {
                id,
                until: earlier(until),
            },
            Decision::Idle { until } => Decision::Idle {
                until: earlier(until),
            },
        }
    }
}

fn map_error(error: MapError) -> TileMuxError {
    match error {
        MapError::BadAddress | MapError::Mapped => TileMuxError::BadRequest,
        MapError::NoTable => TileMuxError::NoTable,
    }
}

/// Whether a cause tells of a fault that only its activity is to blame for, as opposed to an `ecall`.
pub const fn is_environment_call(cause: u64) -> bool {
    cause == 8
}

/// What `Ecall::Panic` tells.
pub const fn panic_cause(exhausted: u64) -> StopCause {
    if exhausted == 1 {
        StopCause::OutOfMemory
    } else {
        StopCause::Panic
    }
}
