//! Retirement: the oldest instructions change the program's state, in order.
//!
//! Stores, and everything that is not simple, execute here with the functions of the in-order pipeline, which may advance the hart's
//! time or ask to be called again.

use super::super::bus::Bus;
use super::super::core::{Core, Exception, Exit, Mode};
use super::super::isa::{Kind, Op, Unit};
use super::super::load_store_queue::loaded;
use super::super::{Hart, Stop};
use super::issue::store_data;
use super::{Cause, Class, Exclusive, NO_REGISTER, NOBODY, Stopped, UNKNOWN, Window};
use crate::types::Tick;

impl Window {
    /// When the oldest instruction can next retire or execute. `None`: not before something completes.
    pub(super) fn head_time(&self, core: &Core) -> Option<Tick> {
        if self.head == self.tail {
            return None;
        }
        let entry = self.entry(self.head);
        let waits = match entry.class {
            _ if self.exclusive == Exclusive::Head => Some(self.edge),
            Class::Load if entry.at_head && !entry.started => Some(self.edge),
            Class::Store if entry.done != UNKNOWN && core.stores.is_full() => {
                core.stores.room(1).ok().map(|at| at.max(entry.done))
            }
            _ => Some(entry.done),
        };
        waits.filter(|at| *at != UNKNOWN)
    }

    /// Retires what can retire at this edge.
    pub(super) fn retire<B: Bus>(
        &mut self,
        hart: &mut Hart,
        bus: &mut B,
        now: Tick,
    ) -> Result<(), Stop> {
        while self.used.retired < self.config.width
            && let Some(at) = self.head_time(&hart.core)
            && at <= now
        {
            if now >= hart.core.horizon {
                return Err(Stop::Horizon);
            }
            if !self.execute(hart, bus, now)? {
                return Ok(());
            }
            self.commit(&mut hart.core);
            // The instruction has taken time, or was the last one for a while.
            if hart.core.base > self.edge || hart.core.mode != Mode::Running {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Executes the oldest instruction if it has not executed yet. Returns whether it retires now.
    fn execute<B: Bus>(&mut self, hart: &mut Hart, bus: &mut B, now: Tick) -> Result<bool, Stop> {
        let entry = self.entry(self.head);
        let (op, bits, pc) = (entry.op, entry.bits, entry.pc);
        let core = &mut hart.core;
        let outcome = match entry.class {
            Class::Fault => {
                let exception = entry.exception.expect("a fault has an exception");
                return self.trap(core, bus, exception, pc);
            }
            Class::Load if entry.at_head && !entry.started => {
                let address = entry.address.expect("it was computed");
                load(core, bus, &op, entry.bytes, address)
            }
            Class::Store => {
                core.stores.retire(now);
                let address = entry.address.expect("it was computed");
                store(core, bus, &op, entry.bytes, address, store_data(entry))
            }
            Class::Quiet => {
                quiet(core, bus, &op, pc, now);
                Ok(())
            }
            Class::Serial if !entry.started => serial(core, bus, &op, bits.into()),
            Class::Plain | Class::Load | Class::Serial => return Ok(true),
        };
        self.exclusive = Exclusive::No;
        match outcome {
            Ok(()) => {}
            Err(Exit::Suspend(stop)) => {
                self.exclusive = Exclusive::Head;
                return Err(stop);
            }
            Err(Exit::Trap(exception)) => return self.trap(core, bus, exception, pc),
        }
        let after = self.align(core.base);
        if after > self.edge {
            core.base = after;
        }
        if core.acquiring && core.pending.is_empty() {
            core.acquiring = false;
        }
        let class = self.entry(self.head).class;
        if !matches!(class, Class::Load | Class::Serial) {
            return Ok(true);
        }
        let head = self.head;
        self.entry_mut(head).started = true;
        if class == Class::Load {
            let hit = after + self.latency[Unit::Load as usize];
            self.entry_mut(head).done = match core.pending.is_empty() {
                true => hit,
                false => UNKNOWN,
            };
            self.keep_order(core, head, after);
        } else if !core.pending.is_empty() {
            self.entry_mut(head).done = UNKNOWN;
        }
        self.settle(core);
        Ok(self.entry(head).done <= now)
    }

    /// The oldest instruction waits for what it asked for; it may be known now.
    pub(super) fn settle(&mut self, core: &mut Core) {
        if self.head == self.tail || !self.entry(self.head).started {
            return;
        }
        let head = self.head;
        let entry = self.entry(head);
        if entry.done == UNKNOWN {
            let Ok(at) = core.pending.all() else { return };
            let hit = self.latency[Unit::Load as usize];
            let at = self.align(at).max(entry.dispatched + hit);
            self.entry_mut(head).done = at;
        }
        let entry = self.entry_mut(head);
        if entry.class == Class::Load && !entry.bound {
            entry.bound = true;
            entry.value = match entry.destination {
                NO_REGISTER => 0,
                register @ 0..32 => core.x[register as usize],
                register => core.f[register as usize - 32],
            };
            self.announce(head);
        }
    }

    /// An exception of the oldest instruction.
    fn trap<B: Bus>(
        &mut self,
        core: &mut Core,
        bus: &mut B,
        exception: Exception,
        pc: u64,
    ) -> Result<bool, Stop> {
        self.abandon(core, core.base);
        let stop = core.take_exception(bus, exception, pc, 0);
        self.go_on(core);
        match stop {
            Some(stop) => Err(stop),
            None => Ok(false),
        }
    }

    /// After a trap: fetching continues at the handler.
    pub(super) fn go_on(&mut self, core: &mut Core) {
        self.fetch_at = self.align(core.base).max(self.edge + self.cycle);
        core.base = self.edge;
    }

    /// The oldest instruction retires.
    fn commit(&mut self, core: &mut Core) {
        let head = self.head;
        let edge = self.edge;
        let index = self.index(head);
        let entry = &self.entries[index];
        let (class, op) = (entry.class, entry.op);
        self.head += 1;
        self.used.retired += 1;
        self.full = false;
        core.statistics.instructions += 1;
        if entry.destination != NO_REGISTER {
            let register = entry.destination as usize;
            match register {
                0..32 => core.x[register] = entry.value,
                _ => {
                    core.f[register - 32] = entry.value;
                    core.csr.fp_dirty();
                }
            }
            if self.producers[register] == head {
                self.producers[register] = NOBODY;
            }
        }
        core.csr.fflags |= entry.flags;
        core.statistics.mispredictions += entry.wrong as u64;
        match class {
            Class::Plain if op.ends_block() && !matches!(op.kind, Kind::Jal | Kind::Jalr) => {
                core.statistics.branches += 1;
                core.predictor.learn(entry.pc, entry.taken);
            }
            Class::Load => {
                self.loads.pop_front();
                match entry.at_head {
                    true => core.pending.retire(edge),
                    false => core.statistics.loads += 1,
                }
            }
            Class::Store => {
                self.stores.pop_front();
                self.retry_loads(head, edge);
            }
            Class::Serial => {
                core.pending.retire(edge);
                core.acquiring = false;
                self.stopped = Stopped::No;
                self.fetch_at = self.align(core.base).max(edge + self.cycle);
                self.fetch_cause = Cause::None;
            }
            Class::Plain | Class::Quiet | Class::Fault => {}
        }
    }
}

fn load<B: Bus>(
    core: &mut Core,
    bus: &mut B,
    op: &Op,
    bytes: u8,
    address: u64,
) -> Result<(), Exit> {
    let value = match bytes {
        1 => core.load::<B, 1>(bus, op, address),
        2 => core.load::<B, 2>(bus, op, address),
        4 => core.load::<B, 4>(bus, op, address),
        _ => core.load::<B, 8>(bus, op, address),
    };
    core.settle(bus);
    let value = value?;
    let value = loaded(op, value);
    match op.kind {
        Kind::Flw | Kind::Fld => core.f[op.rd as usize & 31] = value,
        _ => core.x[op.rd as usize & 63] = value,
    }
    Ok(())
}

fn store<B: Bus>(
    core: &mut Core,
    bus: &mut B,
    op: &Op,
    bytes: u8,
    address: u64,
    value: u64,
) -> Result<(), Exit> {
    let stored = match bytes {
        1 => core.store::<B, 1>(bus, op, address, value),
        2 => core.store::<B, 2>(bus, op, address, value),
        4 => core.store::<B, 4>(bus, op, address, value),
        _ => core.store::<B, 8>(bus, op, address, value),
    };
    core.settle(bus);
    stored
}

fn quiet<B: Bus>(core: &mut Core, bus: &mut B, op: &Op, pc: u64, now: Tick) {
    let a = core.x[op.rs1 as usize & 63];
    if op.kind == Kind::Prefetch {
        return core.prefetch(bus, op, a);
    }
    core.mark(bus, op, (pc, a), now);
}

/// An instruction that is alone in the window.
fn serial<B: Bus>(core: &mut Core, bus: &mut B, op: &Op, bits: u64) -> Result<(), Exit> {
    let a = core.x[op.rs1 as usize & 63];
    let b = core.x[op.rs2 as usize & 63];
    match op.kind {
        Kind::Fence => core.wait_all(0),
        Kind::CacheBlock => core.cache_block(bus, op, bits, a),
        Kind::Lr => core.load_reserved(bus, op, a),
        Kind::Sc => core.store_conditional(bus, op, a, b),
        Kind::Amo => core.atomic(bus, op, a, b),
        _ => core.system(bus, &super::super::block::NONE, op, bits, a, b),
    }
}
