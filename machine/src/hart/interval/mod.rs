//! The out-of-order pipeline: instructions execute when their operands are available and retire in program order.
//!
//! Why it exists: an in-order hart stops at the first use of a missing value, so misses behind that use do not overlap. Here such an
//! instruction waits in the window while others continue. The window is a reorder buffer whose entries hold their operands and results, so
//! it also renames. Registers, memory and CSRs change at retirement only: everything behind a mispredicted branch or a trap is dropped
//! without a trace (except in caches and translation buffers, as in silicon).
//!
//! Everything happens at edges of the hart's clock. At each edge, the oldest instructions retire (`retire.rs`), waiting ones issue, oldest
//! first (`issue.rs`), and new ones enter the window (`dispatch.rs`), in this order. The hart never acts at or after its horizon, and it
//! uses only information known before the edge, so no result depends on horizons. `docs/decisions/0007-interval.md` argues the memory
//! order. What it deliberately does not know: caches, and what an instruction means (that is in `isa` and in the functions of `Core`, which
//! the in-order pipeline also uses).

mod dispatch;
mod issue;
mod retire;
mod run;
#[cfg(test)]
mod tests;

use super::block::BlockCache;
use super::config::{HartConfig, IntervalConfig};
use super::core::{Core, Exception, NO_LINE, TokenWait};
use super::isa::Op;
use super::load_store_queue::Action;
use crate::types::Tick;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// No entry.
const NOBODY: u64 = u64::MAX;
/// No register.
const NO_REGISTER: u8 = 64;
/// A time that is not known yet.
const UNKNOWN: Tick = Tick::MAX;

/// How an instruction passes through the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    /// Computes from registers.
    Plain,
    /// Loads.
    Load,
    /// Stores when it retires.
    Store,
    /// Executes at retirement, and changes nothing that others read.
    Quiet,
    /// Executes when it is alone in the window; nothing is dispatched until it has retired.
    Serial,
    /// Raises an exception when it retires.
    Fault,
}

/// An instruction in the window.
#[derive(Clone, Debug)]
struct Entry {
    op: Op,
    bits: u32,
    pc: u64,
    class: Class,
    dispatched: Tick,
    /// Source registers (0 to 31 integer, 32 to 63 FP) and their values. A store's first source is its address.
    sources: [(u8, u64); 3],
    /// Sources without a value, as bits.
    missing: u8,
    /// When the latest of the known sources is available.
    ready: Tick,
    /// Destination register, or [`NO_REGISTER`].
    destination: u8,
    /// Entries that wait for the result, and which of their sources it is.
    dependents: Vec<(u64, u8)>,
    /// The result, once it is known.
    value: u64,
    /// `value` is known.
    bound: bool,
    /// When the result can be used, or the instruction may retire; [`UNKNOWN`] if that is not known yet.
    done: Tick,
    /// FP exceptions.
    flags: u8,
    /// Virtual address of a load or store, once it is known.
    address: Option<u64>,
    bytes: u8,
    /// The store in the window that supplies a load's value.
    forwarded: u64,
    /// When a load asked for its line, or a store's address became known.
    asked: Tick,
    /// A load may execute only as the oldest instruction.
    at_head: bool,
    /// The oldest instruction has begun and cannot be undone.
    started: bool,
    /// Where fetching continued after a jump or branch; `None`: the front end waits for the target.
    predicted: Option<u64>,
    /// A branch is taken.
    taken: bool,
    /// The prediction was wrong.
    wrong: bool,
    /// The return-address stack before this instruction.
    position: (u32, u32),
    exception: Option<Exception>,
}

impl Entry {
    fn operand(&self, register: u8) -> u64 {
        let source = self.sources.iter().find(|source| source.0 == register);
        source.map_or(0, |source| source.1)
    }
}

/// The event for which the front end waits, besides a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopped {
    /// Nothing.
    No,
    /// Retirement of the youngest instruction.
    Serial,
    /// The target of the youngest instruction.
    Jump,
}

/// The cause to which lost time is charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cause {
    None,
    Load,
    Store,
    Fetch,
    Branch,
}

/// Why only one operation proceeds: page tables are being read, or the oldest instruction waits midway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Exclusive {
    No,
    Head,
    Fetch,
}

/// Resources used at one edge.
#[derive(Clone, Copy, Default, Debug)]
struct Used {
    retired: u32,
    dispatched: u32,
    /// Operations issued, by [`issue::Port`].
    issued: [u32; 6],
}

/// The state of the pipeline besides [`Core`], which is the state that the program sees.
#[derive(Clone, Debug)]
pub struct Window {
    config: IntervalConfig,
    /// Latencies in ticks, by unit.
    latency: [Tick; 9],
    entries: Vec<Entry>,
    /// Numbers of the oldest entry and of the next one.
    head: u64,
    tail: u64,
    /// The youngest entry that writes each register.
    producers: [u64; 64],
    /// Entries that have something to do at a known time.
    timed: BinaryHeap<Reverse<(Tick, u64)>>,
    /// Entries that have something to do now, oldest first.
    ready: Vec<u64>,
    /// Loads that wait for a store, as (store, load).
    blocked: Vec<(u64, u64)>,
    /// Loads whose lines are on their way, with their tokens.
    waiting: Vec<(u32, u64)>,
    /// Tokens of dropped loads. They keep their places in the load queue so that no program can exceed the number of outstanding accesses.
    dropped: Vec<u32>,
    loads: VecDeque<u64>,
    stores: VecDeque<u64>,
    /// When each divider becomes free: integers, FP.
    dividers: [Tick; 2],
    /// The block and the index of the next operation.
    block: Option<(usize, usize)>,
    /// The next block, whose line is on its way.
    coming: Option<usize>,
    /// When the front end continues.
    fetch_at: Tick,
    fetch_cause: Cause,
    stopped: Stopped,
    /// There is no room for the next instruction.
    full: bool,
    exclusive: Exclusive,
    /// Edges are at this tick and whole cycles after it.
    origin: Tick,
    cycle: Tick,
    /// The last edge taken.
    edge: Tick,
    /// Nothing happens before this time, because an operation that was alone took until then.
    frozen: Tick,
    used: Used,
    /// The cause to which the time after that edge is charged.
    cause: Cause,
    /// Nothing proceeds until something completes.
    idle: bool,
}

impl Window {
    /// An empty window for this pipeline; `None` if it executes in order.
    pub fn new(config: &HartConfig) -> Option<Box<Self>> {
        let interval = config.interval?;
        let cycle = config.ticks_per_cycle.max(1);
        let at_least_one = IntervalConfig {
            width: interval.width.max(1),
            window: interval.window.max(1),
            load_queue: interval.load_queue.max(1),
            store_queue: interval.store_queue.max(1),
            alus: interval.alus.max(1),
            memory_ports: interval.memory_ports.max(1),
            float_units: interval.float_units.max(1),
        };
        Some(Box::new(Self {
            config: at_least_one,
            latency: config.latencies().map(|cycles| cycles as Tick * cycle),
            entries: Vec::new(),
            head: 0,
            tail: 0,
            producers: [NOBODY; 64],
            timed: BinaryHeap::new(),
            ready: Vec::new(),
            blocked: Vec::new(),
            waiting: Vec::new(),
            dropped: Vec::new(),
            loads: VecDeque::new(),
            stores: VecDeque::new(),
            dividers: [0; 2],
            block: None,
            coming: None,
            fetch_at: 0,
            fetch_cause: Cause::None,
            stopped: Stopped::No,
            full: false,
            exclusive: Exclusive::No,
            origin: 0,
            cycle,
            edge: 0,
            frozen: 0,
            used: Used::default(),
            cause: Cause::None,
            idle: false,
        }))
    }

    /// Resets at this tick.
    pub fn reset(&mut self, at: Tick) {
        (self.head, self.tail, self.origin) = (0, 0, at);
        (self.edge, self.frozen) = (at, at);
        self.used = Used::default();
        self.dividers = [0; 2];
        self.cause = Cause::None;
        self.waiting.clear();
        self.dropped.clear();
        self.forget_window(at);
    }

    fn index(&self, number: u64) -> usize {
        number as usize & (self.config.window.next_power_of_two() as usize - 1)
    }

    fn entry(&self, number: u64) -> &Entry {
        &self.entries[self.index(number)]
    }

    fn entry_mut(&mut self, number: u64) -> &mut Entry {
        let index = self.index(number);
        &mut self.entries[index]
    }

    /// The first edge at or after a tick.
    fn align(&self, at: Tick) -> Tick {
        if self.cycle == 1 {
            return at.max(self.origin);
        }
        let after = at.saturating_sub(self.origin);
        self.origin + after.next_multiple_of(self.cycle)
    }

    fn at(&mut self, time: Tick, number: u64) {
        self.timed.push(Reverse((time, number)));
    }

    /// The address of the oldest instruction that has not retired.
    pub fn pc(&self, core: &Core, blocks: &BlockCache) -> u64 {
        if self.head < self.tail {
            return self.entry(self.head).pc;
        }
        match self.block {
            Some((block, index)) => {
                let operations = blocks.operations(blocks.block(block));
                core.pc.wrapping_add(operations[index].offset.into())
            }
            None => core.pc,
        }
    }

    /// Drops all entries from `from` on and makes the front end continue at `pc`, at `at`.
    fn squash(&mut self, core: &mut Core, from: u64, pc: u64, at: Tick, cause: Cause) {
        if from < self.tail {
            core.predictor.restore(self.entry(from).position);
        }
        self.tail = from;
        self.producers = [NOBODY; 64];
        for number in self.head..from {
            let index = self.index(number);
            self.entries[index].dependents.retain(|to| to.0 < from);
            let destination = self.entries[index].destination;
            if destination != NO_REGISTER {
                self.producers[destination as usize] = number;
            }
        }
        self.timed.retain(|Reverse((_, number))| *number < from);
        self.ready.retain(|number| *number < from);
        self.blocked.retain(|(_, load)| *load < from);
        let dropped = self.waiting.extract_if(.., |(_, load)| *load >= from);
        self.dropped.extend(dropped.map(|(token, _)| token));
        self.loads.retain(|number| *number < from);
        self.stores.retain(|number| *number < from);
        core.early.retain(|(number, _)| *number < from);
        core.late
            .retain(|late| !matches!(late.action, Action::Early(_, number) if number >= from));
        self.redirect(core, pc, at, cause);
    }

    /// The front end abandons its work and continues at `pc`, at `at`.
    fn redirect(&mut self, core: &mut Core, pc: u64, at: Tick, cause: Cause) {
        core.pc = pc;
        // Outstanding lines come first, because an instruction cache has one miss at a time. The line fetched last may not have arrived.
        core.fetch_line = NO_LINE;
        self.block = None;
        self.coming = None;
        self.fetch_at = at;
        self.fetch_cause = cause;
        self.stopped = Stopped::No;
        self.full = false;
    }

    fn forget_window(&mut self, at: Tick) {
        self.tail = self.head;
        self.producers = [NOBODY; 64];
        self.timed.clear();
        self.ready.clear();
        self.blocked.clear();
        self.loads.clear();
        self.stores.clear();
        self.block = None;
        self.coming = None;
        self.fetch_at = at;
        self.fetch_cause = Cause::None;
        self.stopped = Stopped::No;
        self.full = false;
        self.exclusive = Exclusive::No;
        self.idle = false;
    }

    /// Drops everything that has not retired; the caller says where the hart continues.
    pub fn abandon(&mut self, core: &mut Core, at: Tick) {
        let pc = core.pc;
        self.squash(core, self.head, pc, at, Cause::None);
        self.forget_window(at);
    }

    /// Something arrived at `at`; at that edge the hart checks what has changed. Returns when the hart acts next.
    fn wake(&mut self, base: Tick, at: Tick) -> Tick {
        let edge = self.align(at).max(self.edge).max(self.frozen);
        match std::mem::take(&mut self.idle) {
            _ if self.exclusive != Exclusive::No => base,
            true => edge,
            false => base.min(edge),
        }
    }

    /// An interrupt has arrived.
    pub fn interrupted(&mut self, core: &mut Core, at: Tick) {
        core.base = self.wake(core.base, at);
    }

    /// Takes the values of loads whose lines have arrived.
    fn take_early(&mut self, core: &mut Core) {
        for (number, value) in core.early.drain(..) {
            let entry = self.entry_mut(number);
            entry.value = value;
            entry.bound = true;
        }
    }

    /// The access of `token` completes at `at`. `before` and `lost` are the hart's time and its waits for instructions before the report.
    pub fn complete(&mut self, core: &mut Core, token: u32, at: Tick, before: Before) {
        self.take_early(core);
        let edge = self.align(at);
        if before.fetches != core.fetches {
            core.statistics.stall_fetch = before.stall_fetch;
            self.fetch_at = self.fetch_at.max(edge);
            self.fetch_cause = Cause::Fetch;
            if self.exclusive == Exclusive::No {
                core.base = before.base;
            }
        }
        if let Some(place) = self.dropped.iter().position(|other| *other == token) {
            self.dropped.swap_remove(place);
            self.full = false;
        }
        let mut next = 0;
        while let Some(&(other, number)) = self.waiting.get(next) {
            if other != token {
                next += 1;
                continue;
            }
            self.waiting.remove(next);
            let hit = self.latency[super::isa::Unit::Load as usize];
            let entry = self.entry_mut(number);
            assert!(
                entry.bound,
                "a load is complete and its line has not come: {entry:?}"
            );
            entry.done = edge.max(entry.asked + hit);
            self.announce(number);
        }
        core.base = self.wake(core.base, at);
    }

    /// A result is known: the entries that wait for it get it.
    fn announce(&mut self, number: u64) {
        let entry = self.entry_mut(number);
        let (value, done) = (entry.value, entry.done);
        let dependents = std::mem::take(&mut entry.dependents);
        for &(to, slot) in &dependents {
            let entry = self.entry_mut(to);
            entry.sources[slot as usize].1 = value;
            entry.missing &= !(1 << slot);
            entry.ready = entry.ready.max(done);
            let (missing, ready) = (entry.missing, entry.ready);
            match entry.class {
                Class::Store if slot == 0 => self.at(done, to),
                Class::Store => self.store_complete(to),
                _ if missing == 0 => self.at(ready, to),
                _ => {}
            }
        }
        // Reuses the allocation.
        let entry = self.entry_mut(number);
        entry.dependents = dependents;
        entry.dependents.clear();
    }

    /// The address and data of a store may now be known.
    fn store_complete(&mut self, number: u64) {
        let cycle = self.cycle;
        let entry = self.entry_mut(number);
        if entry.missing != 0 || entry.address.is_none() {
            return;
        }
        entry.done = entry.ready.max(entry.asked) + cycle;
        let done = entry.done;
        self.retry_loads(number, done);
    }

    /// Loads that waited for this store try again at `at`.
    fn retry_loads(&mut self, store: u64, at: Tick) {
        let mut next = 0;
        while let Some(&(on, load)) = self.blocked.get(next) {
            if on == store {
                self.blocked.swap_remove(next);
                self.at(at, load);
            } else {
                next += 1;
            }
        }
    }
}

/// The state that a completion must not change in an out-of-order pipeline.
#[derive(Clone, Copy)]
pub struct Before {
    base: Tick,
    stall_fetch: Tick,
    /// The lines that the front end was waiting for.
    fetches: [Option<u32>; 2],
}

impl Before {
    /// Must be taken before the completion.
    pub fn new(core: &Core) -> Self {
        Self {
            base: core.base,
            stall_fetch: core.statistics.stall_fetch,
            fetches: core.fetches,
        }
    }
}

/// Whether an interrupt ends a wait for tokens.
fn withdraws(core: &Core, wait: &TokenWait) -> bool {
    core.interrupt_arrival <= wait.until && core.interrupt().is_some()
}
