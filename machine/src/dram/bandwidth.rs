//! A bandwidth controller (CBQRI 1.0): which requester gets the next slot of a memory, and how many bytes each identifier has moved.
//!
//! Why it exists: with slots of fixed length, a share of the bandwidth is a number of slots. Time is cut into windows of as many slots as
//! the controller has bandwidth blocks. In each window, a requester has its reserved slots first. Further slots go to requesters with a
//! weight that have requests waiting, in proportion to their weights. It deliberately does not know: banks, requests, and which harts may
//! program it.
//!
//! **Further slots** are given by start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): each slot costs its requester the inverse
//! of its weight, and the requester that has paid least is next. Payments count beyond a window, so large weights never starve a small one;
//! a requester that was idle for a while gains nothing by it.

use crate::config::dram::{BandwidthConfig, ControllerConfig, InitialShare};
use crate::hart::{QosIds, RemoteOperation};
use crate::types::Tick;
use bulkhead_abi::bandwidth::*;
use std::cmp::Ordering;

/// The cost of a slot at weight 1.
const COST: u64 = 1 << 24;

/// The limits of a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Slots of each window that it gets before all others (`Rbwb`).
    pub reserved: u16,
    /// Its weight for further slots (`Mweight`); 0: it gets no further slots.
    pub weight: u8,
}

#[derive(Clone, Copy, Debug)]
struct Share {
    limit: Limit,
    /// Reserved slots used in the window.
    used: u16,
    /// When, in the time of further slots, its next one would begin.
    next: u64,
}

/// The shares of a memory channel, by RCID.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// Ticks of a window.
    window: Tick,
    /// The window in which `used` counts.
    number: u64,
    by: Vec<Share>,
    /// The time of further slots.
    now: u64,
}

impl Shares {
    /// Shares of which nothing has been used.
    pub fn new(window: Tick, limits: &[Limit]) -> Self {
        let share = |limit: &Limit| Share {
            limit: *limit,
            used: 0,
            next: 0,
        };
        Self {
            window,
            number: 0,
            by: limits.iter().map(share).collect(),
            now: 0,
        }
    }

    /// From now on, a requester has this limit.
    pub fn set(&mut self, rcid: u16, limit: Limit) {
        self.by[usize::from(rcid)].limit = limit;
    }

    fn has_reserved(&self, rcid: u16, at: Tick) -> bool {
        let share = &self.by[usize::from(rcid)];
        let used = match at / self.window == self.number {
            true => share.used,
            false => 0,
        };
        used < share.limit.reserved
    }

    /// The first moment from `at` on at which a requester may have a slot.
    pub fn may(&self, rcid: u16, at: Tick) -> Tick {
        let weight = self.by[usize::from(rcid)].limit.weight;
        match weight > 0 || self.has_reserved(rcid, at) {
            true => at,
            // A requester without a weight has a reservation.
            false => (at / self.window + 1) * self.window,
        }
    }

    /// Which of two requesters comes first, if both may have the slot at `at`.
    pub fn compare(&self, at: Tick, one: u16, other: u16) -> Ordering {
        let key = |rcid: u16| match self.has_reserved(rcid, at) {
            true => (false, 0),
            false => (true, self.by[usize::from(rcid)].next.max(self.now)),
        };
        key(one).cmp(&key(other))
    }

    /// A requester gets the slot at `at`.
    ///
    /// # Panics
    /// If it may not.
    pub fn serve(&mut self, rcid: u16, at: Tick) {
        let reserved = self.has_reserved(rcid, at);
        if at / self.window != self.number {
            self.number = at / self.window;
            for share in &mut self.by {
                share.used = 0;
            }
        }
        let share = &mut self.by[usize::from(rcid)];
        if reserved {
            share.used += 1;
            return;
        }
        assert!(share.limit.weight > 0, "RCID {rcid} has no slot left");
        self.now = self.now.max(share.next);
        share.next = self.now + COST / u64::from(share.limit.weight);
    }
}

/// A counter of an MCID.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    event: u64,
    bytes: u64,
}

/// The registers, and what they say.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    blocks: u16,
    /// Blocks that may be reserved.
    reservable: u16,
    limits: Vec<Limit>,
    counters: Vec<Counter>,
    /// The values that software last wrote to the control registers, with the status: monitoring, allocation.
    controls: [u64; 2],
    allocation: u64,
    counter: u64,
}

impl BandwidthConfig {
    /// Whether there can be such a controller, with these shares when the machine starts.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(
        &self,
        controller: &ControllerConfig,
        shares: &[InitialShare],
    ) -> Result<(), String> {
        let most = self.reservable(controller).filter(|_| self.blocks >= 2);
        let most = most.ok_or("refreshes leave no block that could be reserved")?;
        let all: u64 = shares.iter().map(|one| u64::from(one.reserved)).sum();
        if all > most.into() {
            return Err(format!(
                "{all} slots of each window are reserved, but beside refreshes only {most} of {} can be",
                self.blocks
            ));
        }
        for (index, one) in shares.iter().enumerate() {
            if shares[..index].iter().any(|other| other.rcid == one.rcid) {
                return Err(format!("RCID {} has two shares", one.rcid));
            }
            if one.rcid == 0 || one.rcid >= self.rcids || (one.reserved, one.weight) == (0, 0) {
                return Err(format!("a share that no RCID can have: {one:?}"));
            }
        }
        Ok(())
    }

    /// Blocks that may be reserved: in each window, at least this many slots begin. `None`: refreshes leave none.
    pub fn reservable(&self, controller: &ControllerConfig) -> Option<u16> {
        let timing = &controller.timing;
        let slot = controller.slot();
        let window = u64::from(self.blocks) * slot;
        // A refresh waits for the slot before it, and moves the slots behind it.
        let refreshes = match timing.refresh_interval {
            0 => 0,
            interval => window / interval + 1,
        };
        let lost = refreshes * (timing.refresh.div_ceil(slot) + 1);
        // The last slot of the window before may reach into this one.
        let left = u64::from(self.blocks).checked_sub(lost + 1)?;
        (left > 0).then_some(left as u16)
    }
}

impl Bandwidth {
    /// The state after reset: some RCIDs have a share; RCID 0 has all else that can be reserved; the others have a weight of 1.
    ///
    /// # Panics
    /// If nothing, or less than the shares, can be reserved. The configuration is refused then.
    pub fn new(
        config: &BandwidthConfig,
        controller: &ControllerConfig,
        shares: &[InitialShare],
    ) -> Self {
        let reservable = config.reservable(controller);
        let reservable = reservable.expect("something can be reserved");
        let given: u16 = shares.iter().map(|one| one.reserved).sum();
        assert!(
            given <= reservable,
            "{given} slots of {reservable} are reserved"
        );
        let first = Limit {
            reserved: reservable - given,
            weight: u8::MAX,
        };
        let other = Limit {
            reserved: 0,
            weight: 1,
        };
        let mut limits = vec![other; config.rcids.into()];
        limits[0] = first;
        for one in shares {
            limits[usize::from(one.rcid)] = Limit {
                reserved: one.reserved,
                weight: one.weight,
            };
        }
        Self {
            blocks: config.blocks,
            reservable,
            limits,
            counters: vec![Counter::default(); config.mcids.into()],
            controls: [0; 2],
            allocation: 0,
            counter: 0,
        }
    }

    /// The limit of each RCID.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// A request passes.
    pub fn count(&mut self, ids: QosIds, bytes: u32, write: bool) {
        let counter = &mut self.counters[usize::from(ids.mcid)];
        let counts = match counter.event {
            EVENT_NONE => false,
            EVENT_READS => !write,
            EVENT_WRITES => write,
            EVENT_ALL => true,
            other => panic!("a counter of event {other}, which nobody can set: {counter:?}"),
        };
        counter.bytes += if counts { bytes.into() } else { 0 };
    }

    /// A hart accesses a register: the value of a load (0 for a store), and the RCID whose limit has changed.
    ///
    /// # Panics
    /// If there is no such register or access. The requester's tile checks this before it sends a request.
    pub fn access(
        &mut self,
        (address, bytes): (u64, u8),
        operation: RemoteOperation,
    ) -> (u64, Option<u16>) {
        let (register, shift) = (address & !7, (address & 7) * 8);
        let part = match bytes {
            4 => 0xFFFF_FFFF << shift,
            8 => u64::MAX,
            _ => panic!("{operation:?} of {bytes} bytes at {address} of {self:?}"),
        };
        match operation {
            RemoteOperation::Store(value) => (0, self.write(register, part, value << shift & part)),
            RemoteOperation::Load => ((self.read(register) & part) >> shift, None),
            _ => panic!("{operation:?} of {bytes} bytes at {address} of {self:?}"),
        }
    }

    fn read(&self, register: u64) -> u64 {
        match register {
            BC_CAPABILITIES => {
                let blocks = u64::from(self.blocks) << CAPABILITIES_BLOCKS;
                let reservable = u64::from(self.reservable) << CAPABILITIES_RESERVABLE;
                CAPABILITIES_VERSION | blocks | reservable
            }
            BC_MON_CTL => self.controls[0],
            BC_MON_CTR_VAL => self.counter,
            BC_ALLOC_CTL => self.controls[1],
            BC_BW_ALLOC => self.allocation,
            _ => panic!("there is no register at {register} of {self:?}"),
        }
    }

    fn write(&mut self, register: u64, part: u64, value: u64) -> Option<u16> {
        match register {
            // All fields that can be written are in the lower half.
            BC_MON_CTL if part & MONITOR_FIELDS != 0 => {
                let fields = value & MONITOR_FIELDS;
                self.controls[0] = fields | self.monitor(fields) << CONTROL_STATUS;
                None
            }
            BC_ALLOC_CTL if part & ALLOCATION_FIELDS != 0 => {
                let fields = value & ALLOCATION_FIELDS;
                let (status, changed) = self.allocate(fields);
                self.controls[1] = fields | status << CONTROL_STATUS;
                changed
            }
            BC_BW_ALLOC => {
                self.allocation = (self.allocation & !part | value) & LIMIT_FIELDS;
                None
            }
            // The upper half of a control, and registers that can only be read.
            BC_MON_CTL | BC_ALLOC_CTL | BC_CAPABILITIES | BC_MON_CTR_VAL => None,
            _ => panic!("there is no register at {register} of {self:?}"),
        }
    }

    fn monitor(&mut self, fields: u64) -> u64 {
        let mcid = fields >> CONTROL_IDENTIFIER & IDENTIFIER_MASK;
        let event = fields >> MONITOR_EVENT & 0xFF;
        let operation = fields & CONTROL_OPERATION;
        if !matches!(operation, CONFIG_EVENT | READ_COUNTER) {
            return INVALID_OPERATION;
        }
        let Some(counter) = self.counters.get_mut(mcid as usize) else {
            return INVALID_IDENTIFIER;
        };
        if operation == READ_COUNTER {
            self.counter = counter.bytes & COUNTER_MASK;
            return SUCCESS;
        }
        if event > EVENT_WRITES {
            return INVALID_EVENT;
        }
        counter.event = event;
        if event != EVENT_NONE {
            counter.bytes = 0;
        }
        SUCCESS
    }

    fn allocate(&mut self, fields: u64) -> (u64, Option<u16>) {
        let rcid = fields >> CONTROL_IDENTIFIER & IDENTIFIER_MASK;
        let operation = fields & CONTROL_OPERATION;
        if !matches!(operation, CONFIG_LIMIT | READ_LIMIT) {
            return (INVALID_OPERATION, None);
        }
        let all: u64 = self.limits.iter().map(|l| u64::from(l.reserved)).sum();
        let Some(limit) = self.limits.get_mut(rcid as usize) else {
            return (INVALID_IDENTIFIER, None);
        };
        if operation == READ_LIMIT {
            let weight = u64::from(limit.weight) << LIMIT_WEIGHT;
            self.allocation = u64::from(limit.reserved) | weight;
            return (SUCCESS, None);
        }
        let reserved = (self.allocation & LIMIT_RESERVED) as u16;
        let others = all - u64::from(limit.reserved);
        if reserved == 0 || others + u64::from(reserved) > u64::from(self.reservable) {
            return (INVALID_BLOCKS, None);
        }
        *limit = Limit {
            reserved,
            weight: (self.allocation >> LIMIT_WEIGHT) as u8,
        };
        (SUCCESS, Some(rcid as u16))
    }
}

#[cfg(test)]
#[path = "bandwidth_tests.rs"]
mod tests;
