//! Execution: instructions whose operands are available issue, oldest first, as far as the units allow.

use super::super::bus::{Access, Bus, Timing};
use super::super::core::{Core, Exception};
use super::super::isa::{Kind, Op, Unit, float, integer_operations};
use super::super::load_store_queue::{Action, loaded};
use super::super::pmp::Need;
use super::super::trap::cause;
use super::super::{Hart, Stop};
use super::{Cause, Class, Entry, NOBODY, Stopped, UNKNOWN, Window};
use crate::types::Tick;
use std::cmp::Reverse;

/// A group of units, which limits the operations that issue to it per cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Port {
    Alu,
    Memory,
    Multiply,
    Divide,
    Float,
    FloatDivide,
}

fn port(op: &Op, class: Class) -> Port {
    if class == Class::Store {
        return Port::Memory;
    }
    match op.unit() {
        Unit::Alu => Port::Alu,
        Unit::Load => Port::Memory,
        Unit::Multiply => Port::Multiply,
        Unit::Divide => Port::Divide,
        Unit::FpAdd | Unit::FpMultiply | Unit::FpFma => Port::Float,
        Unit::FpDivide | Unit::FpSqrt => Port::FloatDivide,
    }
}

/// The result of an operation that computes.
enum Outcome {
    Value(u64),
    /// Whether a branch is taken.
    Branch(bool),
    /// The link, and the target.
    Jump(u64, u64),
    Illegal,
}

/// Whether two accesses may share a byte. Compares only the page offsets, because two virtual pages may be the same physical page.
pub(super) fn overlap((a, a_bytes): (u64, u8), (b, b_bytes): (u64, u8)) -> bool {
    let behind = |from: u64, to: u64| to.wrapping_sub(from) & 0xfff;
    behind(a, b) < a_bytes.into() || behind(b, a) < b_bytes.into()
}

/// The reaction of a load to older stores in the window.
enum Older {
    Nothing,
    Waits(u64),
    Forwards(u64, u64),
}

impl Window {
    /// Claims a unit for an operation at this edge. Returns whether one was free.
    fn takes(&mut self, port: Port, now: Tick) -> bool {
        let limit = match port {
            Port::Alu => self.config.alus,
            Port::Memory => self.config.memory_ports,
            Port::Float => self.config.float_units,
            Port::Multiply => 1,
            Port::Divide if self.dividers[0] > now => 0,
            Port::FloatDivide if self.dividers[1] > now => 0,
            Port::Divide | Port::FloatDivide => 1,
        };
        let used = &mut self.used.issued[port as usize];
        let takes = *used < limit;
        *used += takes as u32;
        takes
    }

    /// Issues what can issue at this edge.
    pub(super) fn issue<B: Bus>(
        &mut self,
        hart: &mut Hart,
        bus: &mut B,
        now: Tick,
    ) -> Result<(), Stop> {
        while let Some(Reverse((at, number))) = self.timed.peek().copied()
            && at <= now
        {
            self.timed.pop();
            let place = self.ready.partition_point(|other| *other < number);
            self.ready.insert(place, number);
        }
        let mut next = 0;
        while let Some(&number) = self.ready.get(next) {
            if now >= hart.core.horizon {
                return Err(Stop::Horizon);
            }
            let entry = self.entry(number);
            let (op, class) = (entry.op, entry.class);
            if !self.takes(port(&op, class), now) {
                next += 1;
                continue;
            }
            self.ready.remove(next);
            match class {
                Class::Load => self.load(&mut hart.core, bus, number, now),
                Class::Store => self.store_address(number, now),
                _ => self.compute(&mut hart.core, number, now),
            }
        }
        Ok(())
    }

    fn store_address(&mut self, number: u64, now: Tick) {
        let entry = self.entry_mut(number);
        let base = entry.sources[0].1;
        entry.address = Some(base.wrapping_add(entry.op.imm as i64 as u64));
        entry.asked = now;
        self.store_complete(number);
        self.retry_loads(number, now);
    }

    fn compute(&mut self, core: &mut Core, number: u64, now: Tick) {
        let entry = self.entry(number);
        let mut flags = 0;
        let outcome = evaluate(entry, core.csr.frm, &mut flags);
        let op = entry.op;
        let latency = self.latency[op.unit() as usize];
        match port(&op, Class::Plain) {
            Port::Divide => self.dividers[0] = now + latency,
            Port::FloatDivide => self.dividers[1] = now + latency,
            _ => {}
        }
        let entry = self.entry_mut(number);
        entry.flags = flags;
        entry.done = now + latency;
        entry.bound = true;
        let behind = entry.pc.wrapping_add(op.length.into());
        let next = match outcome {
            Outcome::Value(value) => {
                entry.value = value;
                None
            }
            Outcome::Branch(taken) => {
                entry.taken = taken;
                let target = entry.pc.wrapping_add(op.imm as i64 as u64);
                Some(if taken { target } else { behind })
            }
            Outcome::Jump(link, target) => {
                entry.value = link;
                Some(target)
            }
            Outcome::Illegal => {
                entry.exception = Some(Exception {
                    cause: cause::ILLEGAL,
                    value: entry.bits.into(),
                });
                entry.class = Class::Fault;
                None
            }
        };
        self.announce(number);
        if let Some(next) = next {
            self.resolve(core, number, next);
        }
    }

    /// The target of a branch or jump has become known.
    fn resolve(&mut self, core: &mut Core, number: u64, next: u64) {
        let cycle = self.cycle;
        let entry = self.entry_mut(number);
        if entry.predicted == Some(next) {
            return;
        }
        let waited = entry.predicted.is_none();
        entry.wrong = true;
        entry.predicted = Some(next);
        let at = entry.done.max(entry.dispatched + cycle) + core.costs.branch_penalty;
        debug_assert!(!waited || self.stopped == Stopped::Jump);
        self.squash(core, number + 1, next, at, Cause::Branch);
    }

    /// The youngest older store that affects a load.
    fn older_store(&self, number: u64, address: u64, bytes: u8) -> Older {
        for &store in self.stores.iter().rev() {
            if store > number {
                continue;
            }
            let entry = self.entry(store);
            let Some(to) = entry.address else {
                return Older::Waits(store);
            };
            if !overlap((address, bytes), (to, entry.bytes)) {
                continue;
            }
            let within = address.wrapping_sub(to);
            let covers = within < 8 && within + u64::from(bytes) <= entry.bytes.into();
            if !covers || entry.missing != 0 {
                return Older::Waits(store);
            }
            let data = store_data(entry) >> (8 * within);
            let unused = 64 - 8 * u32::from(bytes);
            return Older::Forwards(store, data << unused >> unused);
        }
        Older::Nothing
    }

    fn load<B: Bus>(&mut self, core: &mut Core, bus: &mut B, number: u64, now: Tick) {
        let entry = self.entry_mut(number);
        let (op, bytes) = (entry.op, entry.bytes);
        let address = entry.operand(op.rs1).wrapping_add(op.imm as i64 as u64);
        entry.address = Some(address);
        let physical = match translate(core, bus, address, bytes) {
            Some(physical) => physical,
            None => {
                entry.at_head = true;
                return;
            }
        };
        match self.older_store(number, address, bytes) {
            Older::Waits(store) => return self.blocked.push((store, number)),
            Older::Forwards(store, value) => {
                let hit = self.latency[Unit::Load as usize];
                let ready = self.entry(store).done;
                let entry = self.entry_mut(number);
                entry.forwarded = store;
                entry.value = loaded(&op, value);
                entry.bound = true;
                // The data may still be being computed; this is when it will be available.
                entry.done = now.max(ready) + hit;
                entry.asked = now;
                self.announce(number);
                return self.keep_order(core, number, now);
            }
            Older::Nothing => {}
        }
        let known = core.lines.timing(now, physical, false);
        if known.is_none() && bus.regulates() {
            // It may have to wait for tokens, and must be able to withdraw.
            self.entry_mut(number).at_head = true;
            return;
        }
        let (timing, place) = match known {
            Some(known) => known,
            None => {
                bus.instruction(self.entry(number).pc);
                core.ask(bus, now, physical, Access::Load)
            }
        };
        if timing != Timing::Hit {
            core.statistics.data_misses += 1;
        }
        let hit = now + self.latency[Unit::Load as usize];
        let done = match timing {
            Timing::Hit => hit,
            Timing::Ready(at) => self.align(at).max(hit),
            Timing::ReadyOnce(at) => {
                core.ask_limit(bus);
                self.align(at).max(hit)
            }
            Timing::Pending(token) => {
                core.ask_limit(bus);
                core.later(bus, physical, Action::Early(op, number));
                self.waiting.push((token, number));
                UNKNOWN
            }
        };
        let entry = self.entry_mut(number);
        entry.asked = now;
        entry.done = done;
        if done != UNKNOWN {
            entry.value = loaded(&op, bus.read_place(place, bytes));
            entry.bound = true;
            self.announce(number);
        }
        // The line may have arrived, so other loads may have their values, too.
        self.take_early(core);
        self.keep_order(core, number, now);
    }

    /// Loads of one location see other writers' stores in program order: a younger load that already has its value is repeated.
    pub(super) fn keep_order(&mut self, core: &mut Core, number: u64, now: Tick) {
        let entry = self.entry(number);
        let Some(address) = entry.address else { return };
        let bytes = entry.bytes;
        let early = |younger: &u64| {
            let entry = self.entry(*younger);
            let between = entry.forwarded != NOBODY && entry.forwarded > number;
            let at = entry.address.filter(|_| entry.bound && !between);
            at.is_some_and(|at| overlap((address, bytes), (at, entry.bytes)))
        };
        let younger = self.loads.iter().skip_while(|other| **other <= number);
        if let Some(first) = younger.copied().find(early) {
            let pc = self.entry(first).pc;
            let at = now + self.cycle + core.costs.branch_penalty;
            self.squash(core, first, pc, at, Cause::Load);
        }
    }
}

/// The physical address of a load, unless the load must wait until it is the oldest instruction.
fn translate<B: Bus>(core: &mut Core, bus: &mut B, address: u64, bytes: u8) -> Option<u64> {
    if address & (u64::from(bytes) - 1) != 0 {
        return None;
    }
    if let Some(physical) = core.mmu.quick(Need::Read, address) {
        return Some(physical);
    }
    if !core.translates_at_once(address, Need::Read) {
        return None;
    }
    let physical = core.translate(bus, address, bytes.into(), Need::Read, 0);
    let physical = physical.ok()?;
    let cached = !core.is_uncached() && !bus.is_device(physical);
    let memory = cached && bus.allows(physical, bytes.into(), false);
    memory.then_some(physical)
}

/// The data of a store.
pub(super) fn store_data(entry: &Entry) -> u64 {
    let register = match entry.op.kind {
        Kind::Fsw | Kind::Fsd => 32 + (entry.op.rs2 & 31),
        _ => entry.op.rs2,
    };
    entry.operand(register)
}

/// Executes an operation that computes.
fn evaluate(entry: &Entry, rounding: u8, flags: &mut u8) -> Outcome {
    let op = &entry.op;
    let (a, b) = (entry.operand(op.rs1), entry.operand(op.rs2));
    let imm = op.imm as i64 as u64;
    let shift = op.imm as u32;
    let floats = || {
        let mut f = [0; 32];
        for (register, value) in entry.sources {
            if (32..64).contains(&register) {
                f[register as usize - 32] = value;
            }
        }
        f
    };
    macro_rules! set {
        ($value:expr) => {
            Outcome::Value($value)
        };
    }
    macro_rules! branch {
        ($taken:expr) => {
            Outcome::Branch($taken)
        };
    }
    let float = |result: Result<u64, _>| result.map_or(Outcome::Illegal, Outcome::Value);
    let behind = entry.pc.wrapping_add(op.length.into());
    integer_operations!(op.kind, set, branch, (a, b, imm, shift), {
        Kind::Auipc => set!(entry.pc.wrapping_add(imm)),
        Kind::Jal => Outcome::Jump(behind, entry.pc.wrapping_add(imm)),
        Kind::Jalr => Outcome::Jump(behind, a.wrapping_add(imm) & !1),
        Kind::FpArithmetic => float(float::arithmetic(op, &floats(), rounding, flags)),
        Kind::FpToInteger => float(float::to_integer(op, &floats(), rounding, flags)),
        Kind::FpFromInteger => float(float::from_integer(op, a, rounding, flags)),
        other => panic!("{other:?} does not only compute"),
    })
}
