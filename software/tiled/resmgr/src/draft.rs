//! What an application or manager is made of.
//!
//! Why it exists: it is made once and appears again and again, and pagers, gates and starts add their parts. What it deliberately does
//! not know: in which order.

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

/// How long an activity may take to end before it counts as living, and how often this is looked at, in nanoseconds.
const ENDING: u64 = 50_000_000;
const LOOK: u64 = 20_000;

/// A gate for an activity to receive at.
pub(crate) struct Receiver {
    /// The capability.
    pub(crate) gate: u16,
    pub(crate) slots: u8,
    pub(crate) slot_size: u16,
}

/// An application or manager: what it is made of.
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
    /// Where answers to its calls come.
    pub(crate) answers: Option<Receiver>,
    pub(crate) receivers: PaidList<Own, Receiver>,
    /// Memory for the pages that its pager gives it, if it has one.
    pub pool: Option<u16>,
    /// The activity of the pager that has that memory.
    pub pool_at: Option<u16>,
    /// The gate to its pager, and how often it has been started before.
    pub faults: Option<(u16, u16)>,
    /// What the manager tells it beside the arguments of the description.
    pub told: PaidList<Own, (String, String)>,
    /// The capabilities of its send gates.
    pub send: PaidList<Own, u16>,
    /// Their endpoints, as far as their receivers are there.
    pub ends: PaidList<Own, Option<u16>>,
    /// Of a manager: its tiles, and the capabilities with the quotas for what is below it.
    pub quotas: PaidList<Own, (u16, u16)>,
    /// The capabilities of its memory gates, where it finds them (0: nowhere), and their bytes.
    pub memories: PaidList<Own, (u16, u16, u64)>,
    /// Of a manager: the memory of each memory tile that it has for what is below it.
    pub pieces: Paid<Own, BTreeMap<u16, u16>>,
    /// Of a manager: where it finds its modules, in the order of their names.
    pub modules: PaidList<Own, u16>,
    /// Why it will never run: its tile was lost on the way to its first start.
    pub lost: Option<Failure>,
}

impl Draft {
    /// A step of the first start: if it failed because the tile was lost, this activity alone is given up. All other failures are the caller's.
    pub fn survive(&mut self, step: Result<(), Failure>) -> Result<(), Failure> {
        match step {
            Err(failure) if failure.is_lost_tile() || self.ended(&failure) => {
                self.lost.get_or_insert(failure);
                Ok(())
            }
            other => other,
        }
    }

    /// Whether a step failed because this activity has ended; before it was started, that is because its tile was lost. The kernel still names it while
    /// it takes back what it had.
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

    /// Receive endpoints of its activity.
    pub fn receives(&self) -> usize {
        self.answers.iter().len() + self.receivers.len()
    }

    /// The pieces of filling its memory.
    pub fn pieces(&self, lazy: bool) -> impl Iterator<Item = Piece> + use<'_> {
        let heap = match (self.pool, lazy) {
            (Some(_), _) => Heap::Paged,
            (None, true) => Heap::Lazy,
            (None, false) => Heap::Eager,
        };
        let heap = (self.layout.heap, heap);
        filling::pieces(self.layout.parts(), self.image.segments(), heap)
    }

    /// What its memory is filled with.
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
