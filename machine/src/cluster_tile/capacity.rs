//! Which places of a shared cache each requester may fill, and how many it has filled.
//!
//! Why it exists: both mechanisms that limit harts use one table of ways, indexed by the requester. With lockdown registers (PL310) the
//! requester is the port; with a capacity controller (CBQRI 1.0) it is the resource-control identifier that the hart gave the request. The
//! controller also counts what requests have allocated, by their monitoring identifier. It deliberately does not know: lines, registers and
//! times.

use super::directory::{Fill, PORTS};
use super::messages::{Ask, Port};
use crate::config::ClusterConfig;
use crate::hart::QosIds;
use bulkhead_abi::cbqri::{
    EVENT_NONE, EVENT_OCCUPANCY, IDENTIFIER_BITS, TYPE_CODE, TYPE_DATA, allocation, monitoring,
};

/// The identifiers of the request that filled a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Filled {
    ids: QosIds,
    what: Fill,
    /// The counter of its MCID has counted it.
    counted: bool,
}

/// A counter of a controller.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    counts: bool,
    /// Counts only what was filled for this; `None`: for both.
    only: Option<Fill>,
    value: u64,
}

/// An operation of a capacity controller, as it was written to a control register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The control register, one of two.
    pub register: Control,
    /// The field `OP`.
    pub code: u64,
    /// The field `AT`.
    pub at: u64,
    /// The field `RCID` or `MCID`.
    pub identifier: u64,
    /// The field `EVT_ID`.
    pub event: u64,
    /// The field `ATV`.
    pub at_valid: bool,
    /// `cc_block_mask`.
    pub mask: u64,
}

/// A control register of a capacity controller. Each has at most one operation under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `cc_mon_ctl`.
    Monitoring = 0,
    /// `cc_alloc_ctl`.
    Allocation = 1,
}

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The register of the operation.
    pub register: Control,
    /// The field `STATUS`.
    pub status: u64,
    /// The value that the operation read.
    pub value: Option<u64>,
}

/// The work of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing more.
    Done(Outcome),
    /// Every line that these requests have filled leaves the cache.
    Flush {
        /// The RCID of these requests.
        rcid: u16,
        /// The kind of fill.
        what: Fill,
    },
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Capacity {
    /// By requester and kind of fill: the ways. Bit i: way i.
    ways: Vec<[u64; 2]>,
    /// Bit i: way i exists.
    all: u64,
    /// There is a controller, so the requester is the RCID and not the port.
    controlled: bool,
    /// By place: the requester that filled it. Empty without a controller.
    filled: Vec<Option<Filled>>,
    /// By MCID.
    counters: Vec<Counter>,
}

/// The access type of a register's field.
fn access_type(at: u64) -> Option<Fill> {
    match at {
        TYPE_DATA => Some(Fill::Data),
        TYPE_CODE => Some(Fill::Instructions),
        _ => None,
    }
}

impl Capacity {
    /// Ways by port; every port may fill all.
    pub fn by_port() -> Self {
        Self {
            ways: vec![[u64::MAX; 2]; PORTS],
            all: u64::MAX,
            controlled: false,
            filled: Vec::new(),
            counters: Vec::new(),
        }
    }

    /// The state when the machine starts. `all`: the ways that exist; `slots`: the places of the cache.
    pub fn new(cluster: &ClusterConfig, all: u64, slots: usize) -> Self {
        let mut capacity = Self::by_port();
        if let Some(config) = &cluster.capacity {
            capacity = Self {
                ways: vec![[all; 2]; config.rcids.into()],
                all,
                controlled: true,
                filled: vec![None; slots],
                counters: vec![Counter::default(); config.mcids.into()],
            };
        }
        for (port, fills) in cluster.fills.iter().enumerate().filter(|f| *f.1 != 0) {
            let requester = match capacity.controlled {
                true => ClusterConfig::rcid_of(port).into(),
                false => port,
            };
            capacity.ways[requester] = [*fills; 2];
        }
        capacity
    }

    /// The ways that a request may fill.
    pub fn ways(&self, ask: &Ask, what: Fill) -> u64 {
        let requester = match self.controlled {
            true => ask.ids.rcid.into(),
            false => usize::from(ask.port),
        };
        self.ways[requester][what as usize]
    }

    /// From now on, fills of a port take these ways.
    pub fn lock(&mut self, port: Port, what: Fill, ways: u64) {
        assert!(
            !self.controlled,
            "a cluster with a capacity controller has no lockdown registers"
        );
        self.ways[usize::from(port)][what as usize] = ways;
    }

    /// A request has got a place, and what was there has lost it.
    pub fn allocate(&mut self, slot: usize, ids: QosIds, what: Fill) {
        if !self.controlled {
            return;
        }
        self.free(slot);
        let counter = &mut self.counters[usize::from(ids.mcid)];
        let counted = counter.counts && counter.only.is_none_or(|only| only == what);
        counter.value += u64::from(counted);
        self.filled[slot] = Some(Filled { ids, what, counted });
    }

    /// A place is empty.
    pub fn free(&mut self, slot: usize) {
        if !self.controlled {
            return;
        }
        if let Some(before) = self.filled[slot].take()
            && before.counted
        {
            let counter = &mut self.counters[usize::from(before.ids.mcid)];
            assert!(counter.value > 0, "place {slot} was counted as {before:?}");
            counter.value -= 1;
        }
    }

    /// Whether a place was filled by a request of this RCID for this.
    pub fn was_filled_by(&self, slot: usize, rcid: u16, what: Fill) -> bool {
        let filled = self.filled[slot];
        filled.is_some_and(|filled| filled.ids.rcid == rcid && filled.what == what)
    }

    /// Performs an operation. If there are several mistakes, the status reports the first one in the order operation, identifier, event,
    /// access type, mask, and nothing changes.
    pub fn perform(&mut self, operation: &Operation) -> Step {
        let done = |status, value| {
            Step::Done(Outcome {
                register: operation.register,
                status,
                value,
            })
        };
        debug_assert!(operation.identifier >> IDENTIFIER_BITS == 0);
        let identifier = operation.identifier as usize;
        let (code, what) = (operation.code, access_type(operation.at));
        if operation.register == Control::Allocation {
            use allocation::*;
            if !matches!(code, CONFIG_LIMIT | READ_LIMIT | FLUSH_RCID) {
                return done(INVALID_OPERATION, None);
            }
            let Some(ways) = self.ways.get_mut(identifier) else {
                return done(INVALID_RCID, None);
            };
            let Some(what) = what else {
                return done(INVALID_TYPE, None);
            };
            let ways = &mut ways[what as usize];
            return match code {
                // The cache is inclusive, so a line needs a place.
                CONFIG_LIMIT if operation.mask & self.all == 0 => done(INVALID_MASK, None),
                CONFIG_LIMIT => {
                    *ways = operation.mask & self.all;
                    done(SUCCESS, None)
                }
                READ_LIMIT => done(SUCCESS, Some(*ways)),
                _ => Step::Flush {
                    rcid: identifier as u16,
                    what,
                },
            };
        }
        use monitoring::*;
        if !matches!(code, CONFIG_EVENT | READ_COUNTER) {
            return done(INVALID_OPERATION, None);
        }
        let Some(counter) = self.counters.get_mut(identifier) else {
            return done(INVALID_MCID, None);
        };
        if code == READ_COUNTER {
            return done(SUCCESS, Some(counter.value));
        }
        let counts = match operation.event {
            EVENT_NONE => false,
            EVENT_OCCUPANCY => true,
            _ => return done(INVALID_EVENT, None),
        };
        if counts && operation.at_valid && what.is_none() {
            return done(INVALID_TYPE, None);
        }
        // A counter that stops keeps its value, and no longer has the places that it counted.
        *counter = Counter {
            counts,
            only: what.filter(|_| operation.at_valid),
            value: if counts { 0 } else { counter.value },
        };
        let filled = self.filled.iter_mut().flatten();
        for one in filled.filter(|one| usize::from(one.ids.mcid) == identifier) {
            one.counted = false;
        }
        done(SUCCESS, None)
    }
}
