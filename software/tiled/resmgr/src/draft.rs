//! The parts of an application or manager.
//!
//! Why it exists: a draft is made once and started any number of times; pagers, gates and starts add their parts. What it deliberately does
//! not know: the order of these additions.

use crate::calls::{Failure, kind_of};
use crate::load::{Argument, Contents};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use bulkhead_abi::environment::{Environment, GateEntry};
use bulkhead_abi::words::Name;
use bulkhead_lib::common::payer::{Own, Paid, PaidList};
use bulkhead_lib::time;
use bulkhead_loader::image::Image;
use bulkhead_loader::layout::Layout;
use bulkhead_resmgr::filling::{self, Heap, Piece};

/// How long an activity may take to end before it counts as alive, and the time between two checks, in nanoseconds.
const ENDING: u64 = 50_000_000;
const LOOK: u64 = 20_000;

/// A gate at which an activity receives.
pub(crate) struct Receiver {
    /// The capability.
    pub(crate) gate: u16,
    pub(crate) slots: u8,
    pub(crate) slot_size: u16,
}

/// The parts of an application or manager.
pub struct Draft {
    /// Its activity's number.
    pub activity: u16,
    /// The capability for the activity.
    pub selector: u16,
    /// The capability for its memory.
    pub memory: u16,
    pub(crate) name: Name,
    /// The capability for its tile.
    pub tile: u16,
    pub(crate) tile_number: u16,
    /// The capability for its kernel memory.
    pub purse: u16,
    pub(crate) priority: u8,
    pub(crate) program: Box<str>,
    pub(crate) image: Image,
    /// Where its parts lie.
    pub layout: Layout,
    pub(crate) header: Environment,
    /// Its gates so far.
    pub gates: PaidList<Own, GateEntry>,
    /// Where the answers to its calls arrive.
    pub(crate) answers: Option<Receiver>,
    pub(crate) receivers: PaidList<Own, Receiver>,
    /// Memory for the pages that its pager gives it, if it has one.
    pub pool: Option<u16>,
    /// The pager's activity that has that memory.
    pub pool_at: Option<u16>,
    /// The gate to its pager, and how often the pager had been restarted when the gate was made.
    pub faults: Option<(u16, u16)>,
    /// What the manager tells it in addition to the arguments of the description.
    pub told: PaidList<Own, (String, String)>,
    /// The capabilities of its send gates.
    pub send: PaidList<Own, u16>,
    /// Their endpoints; none where the receiver does not exist yet.
    pub ends: PaidList<Own, Option<u16>>,
    /// For a manager: its tiles, and the capabilities with the quotas for everything below it.
    pub quotas: PaidList<Own, (u16, u16)>,
    /// For each memory gate: its capability, the selector under which the application finds it (0: none), and its bytes.
    pub memories: PaidList<Own, (u16, u16, u64)>,
    /// For a manager: the memory of each memory tile for everything below it.
    pub pieces: Paid<Own, BTreeMap<u16, u16>>,
    /// For a manager: where it finds its modules, sorted by name.
    pub modules: PaidList<Own, u16>,
    /// Why it will never run: its tile was lost before its first start was complete.
    pub lost: Option<Failure>,
}

impl Draft {
    /// Handles a step of the first start: if the step failed because the tile was lost, only this activity is given up. Every other failure
    /// goes to the caller.
    pub fn survive(&mut self, step: Result<(), Failure>) -> Result<(), Failure> {
        match step {
            Err(failure) if failure.is_lost_tile() || self.ended(&failure) => {
                self.lost.get_or_insert(failure);
                Ok(())
            }
            other => other,
        }
    }

    /// Whether a step failed because this activity has ended, or, before its start, because its tile was lost. The kernel keeps its name
    /// while it takes back the activity's resources.
    pub fn ended(&self, failure: &Failure) -> bool {
        if self.lost.is_some() {
            return true;
        }
        if self.activity == 0 || !failure.is_of_an_end() {
            return false;
        }
        let until = time::now() + ENDING;
        while kind_of(self.selector).is_some() {
            if time::now() > until {
                return false;
            }
            time::sleep_until(time::now() + LOOK);
        }
        true
    }

    /// The capability of a receive gate.
    pub fn receive(&self, gate: usize) -> u16 {
        self.receivers[gate].gate
    }

    /// Receive endpoints of the activity.
    pub fn receives(&self) -> usize {
        self.answers.iter().len() + self.receivers.len()
    }

    /// The pieces in which its memory is filled.
    pub fn pieces(&self, lazy: bool) -> impl Iterator<Item = Piece> + use<'_> {
        let heap = match (self.pool, lazy) {
            (Some(_), _) => Heap::Paged,
            (None, true) => Heap::Lazy,
            (None, false) => Heap::Eager,
        };
        let heap = (self.layout.heap, heap);
        filling::pieces(self.layout.parts(), self.image.segments(), heap)
    }

    /// The contents of its memory.
    pub fn contents<'a>(&'a self, name: &'a str, arguments: &'a [Argument]) -> Contents<'a> {
        Contents {
            name,
            activity: self.selector,
            memory: self.memory,
            program: &self.program,
            priority: self.priority,
            header: self.header,
            gates: &self.gates,
            arguments: [arguments, &self.told],
        }
    }
}
