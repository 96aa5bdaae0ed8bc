//! The front end: fetches along the predicted path and brings instructions into the window in order.

use super::super::block::BlockCache;
use super::super::bus::Bus;
use super::super::core::{Core, Exception, Exit};
use super::super::execute::is_link;
use super::super::isa::{self, Kind, Op};
use super::super::pmp::Need;
use super::super::trap::cause;
use super::super::{Hart, Resume, Stop};
use super::{Cause, Class, Entry, Exclusive, NO_REGISTER, NOBODY, Stopped, UNKNOWN, Window};
use crate::types::Tick;

/// How an operation goes through the window.
fn class(op: &Op) -> Class {
    use Kind::*;
    match op.kind {
        Lb | Lh | Lw | Ld | Lbu | Lhu | Lwu | Flw | Fld => Class::Load,
        Sb | Sh | Sw | Sd | Fsw | Fsd => Class::Store,
        Marker | Prefetch => Class::Quiet,
        Fence | CacheBlock | Lr | Sc | Amo => Class::Serial,
        _ if op.kind as u8 >= FenceI as u8 => Class::Serial,
        _ => Class::Plain,
    }
}

/// Bytes of a load or store.
fn access_bytes(op: &Op) -> u8 {
    use Kind::*;
    match op.kind {
        Lb | Lbu | Sb => 1,
        Lh | Lhu | Sh => 2,
        Lw | Lwu | Flw | Sw | Fsw => 4,
        _ => 8,
    }
}

fn is_float(op: &Op) -> bool {
    use Kind::*;
    matches!(
        op.kind,
        Flw | Fld | Fsw | Fsd | FpArithmetic | FpToInteger | FpFromInteger
    )
}

impl Window {
    /// Dispatches as much as one edge allows.
    pub(super) fn dispatch<B: Bus>(
        &mut self,
        hart: &mut Hart,
        bus: &mut B,
        now: Tick,
    ) -> Result<(), Stop> {
        while self.used.dispatched < self.config.width
            && self.stopped == Stopped::No
            && self.fetch_at <= now
            && !self.full
        {
            if self.tail - self.head >= self.config.window.into() {
                self.full = true;
                return Ok(());
            }
            let (block, index) = match self.block {
                Some(next) => next,
                None => match self.fetch(hart, bus, now)? {
                    true => continue,
                    false => return Ok(()),
                },
            };
            let op = hart.blocks.operations(hart.blocks.block(block))[index];
            let (queue, limit) = match class(&op) {
                Class::Load | Class::Serial => (
                    self.loads.len() + self.dropped.len(),
                    self.config.load_queue,
                ),
                Class::Store => (self.stores.len(), self.config.store_queue),
                _ => (0, 1),
            };
            if queue >= limit as usize {
                self.full = true;
                return Ok(());
            }
            self.enter(&mut hart.core, &hart.blocks, block, index, now);
        }
        Ok(())
    }

    /// Gets the next block. Returns false if that takes time.
    fn fetch<B: Bus>(&mut self, hart: &mut Hart, bus: &mut B, now: Tick) -> Result<bool, Stop> {
        if hart.core.fetches != [None; 2] {
            return Ok(false);
        }
        if now >= hart.core.horizon {
            return Err(Stop::Horizon);
        }
        if let Some(block) = self.coming.take() {
            self.block = Some((block, 0));
            return Ok(true);
        }
        // Accesses of an instruction that was abandoned midway still write their registers.
        if self.head == self.tail && !hart.core.pending.is_empty() {
            match hart.core.pending.all() {
                Ok(at) if at > now => self.fetch_at = self.align(at),
                Ok(_) => hart.core.pending.retire(now),
                Err(_) => {}
            }
            return Ok(hart.core.pending.is_empty());
        }
        if hart.core.resumes
            && let Err(stop) = hart.core.may_resume(bus)
        {
            self.exclusive = Exclusive::Fetch;
            return Err(stop);
        }
        let core = &mut hart.core;
        let mut alone = !core.translates_at_once(core.pc, Need::Execute);
        let misses = core.statistics.fetch_misses;
        let stall = core.statistics.stall_fetch;
        let found = hart.next_block_apart(bus);
        let core = &mut hart.core;
        core.statistics.stall_fetch = stall;
        alone |= core.statistics.fetch_misses > misses + 1;
        let later = self.align(core.base);
        match found {
            Ok(block) => {
                self.exclusive = Exclusive::No;
                self.block = Some((block, 0));
                if later > self.edge {
                    self.fetch_at = later;
                    self.fetch_cause = Cause::Fetch;
                }
                if !alone {
                    core.base = now;
                }
                Ok(later == self.edge)
            }
            Err(Exit::Suspend(stop)) => {
                if let Some(Resume::Fetch(block)) = hart.resume.take() {
                    self.coming = Some(block);
                }
                // A walk, or a wait for tokens: nothing else continues, so accesses stay in time
                // order.
                if core.walk.is_some() || core.fetches == [None; 2] {
                    self.exclusive = Exclusive::Fetch;
                    return Err(stop);
                }
                self.exclusive = Exclusive::No;
                if later > self.edge {
                    self.fetch_at = later;
                }
                Ok(false)
            }
            Err(Exit::Trap(exception)) => {
                self.exclusive = Exclusive::No;
                core.base = if alone { later } else { now };
                let (pc, op) = (core.pc, isa::decode(0));
                let position = core.predictor.position();
                self.push(entry(op, 0, pc, Class::Fault, later, position));
                let number = self.tail - 1;
                let cycle = self.cycle;
                let entry = self.entry_mut(number);
                entry.exception = Some(exception);
                entry.done = later + cycle;
                self.stopped = Stopped::Serial;
                Ok(false)
            }
        }
    }

    /// The front end continues from the point at which everything else was held back.
    pub(super) fn fetch_alone<B: Bus>(
        &mut self,
        hart: &mut Hart,
        bus: &mut B,
        now: Tick,
    ) -> Result<(), Stop> {
        self.fetch(hart, bus, now).map(|_| ())
    }

    fn push(&mut self, mut entry: Entry) {
        let index = self.index(self.tail);
        if index >= self.entries.len() {
            self.entries.push(entry);
        } else {
            std::mem::swap(&mut entry.dependents, &mut self.entries[index].dependents);
            entry.dependents.clear();
            self.entries[index] = entry;
        }
        self.tail += 1;
    }

    /// An operation of a block enters the window.
    fn enter(
        &mut self,
        core: &mut Core,
        blocks: &BlockCache,
        block: usize,
        index: usize,
        now: Tick,
    ) {
        let this = blocks.block(block);
        let operations = blocks.operations(this);
        let op = operations[index];
        let bits = blocks.bits(this, index);
        let pc = core.pc.wrapping_add(op.offset.into());
        let number = self.tail;
        self.used.dispatched += 1;
        let mut new = entry(
            op,
            bits as u32,
            pc,
            class(&op),
            now,
            core.predictor.position(),
        );
        if is_float(&op) && !core.csr.fp_on() {
            new.class = Class::Fault;
            new.exception = Some(Exception {
                cause: cause::ILLEGAL,
                value: bits,
            });
        }
        let first = now + self.cycle;
        new.ready = first;
        match new.class {
            Class::Plain | Class::Load | Class::Store => {
                let (sources, destination) = op.masks();
                self.find_sources(core, &mut new, sources, number);
                if destination != 0 {
                    new.destination = destination.trailing_zeros() as u8;
                    self.producers[new.destination as usize] = number;
                }
            }
            Class::Fault | Class::Quiet | Class::Serial => new.done = first,
        }
        new.bytes = access_bytes(&op);
        match new.class {
            Class::Load => self.loads.push_back(number),
            Class::Store => self.stores.push_back(number),
            Class::Serial | Class::Fault => self.stopped = Stopped::Serial,
            Class::Plain | Class::Quiet => {}
        }
        // A store's address does not wait for its data.
        let issues = match new.class {
            Class::Plain | Class::Load => new.missing == 0,
            Class::Store => new.missing & 1 == 0,
            Class::Quiet | Class::Serial | Class::Fault => false,
        };
        if issues {
            let ready = match new.class {
                Class::Store => new.asked.max(first),
                _ => new.ready,
            };
            self.at(ready, number);
        }
        if index + 1 < operations.len() {
            self.block = Some((block, index + 1));
        } else if new.class != Class::Serial || !op.ends_block() {
            self.block = None;
            core.pc = core.pc.wrapping_add(this.bytes.into());
        } else {
            // The operation itself says where the hart continues.
            self.block = None;
        }
        if new.class == Class::Plain && op.ends_block() {
            self.predict(core, &mut new, now);
        }
        self.push(new);
    }

    /// Takes the values of known sources, and waits for the others.
    fn find_sources(&mut self, core: &Core, new: &mut Entry, mut sources: u64, number: u64) {
        let mut next = (new.class == Class::Store) as usize;
        while sources != 0 {
            let register = sources.trailing_zeros() as u8;
            sources &= sources - 1;
            let slot = match new.class == Class::Store && register == new.op.rs1 {
                true => 0,
                false => next,
            };
            next += (slot == next) as usize;
            let producer = self.producers[register as usize];
            new.sources[slot].0 = register;
            let committed = match register {
                0..32 => core.x[register as usize],
                _ => core.f[register as usize - 32],
            };
            if producer == NOBODY {
                new.sources[slot].1 = committed;
                continue;
            }
            let from = self.entry_mut(producer);
            if from.bound && from.done != UNKNOWN {
                new.sources[slot].1 = from.value;
                new.ready = new.ready.max(from.done);
                if slot == 0 {
                    // When the store's address becomes known.
                    new.asked = from.done;
                }
            } else {
                from.dependents.push((number, slot as u8));
                new.missing |= 1 << slot;
            }
        }
    }

    /// Where fetching continues after a branch or jump.
    fn predict(&mut self, core: &mut Core, new: &mut Entry, now: Tick) {
        let op = &new.op;
        let behind = new.pc.wrapping_add(op.length.into());
        let target = new.pc.wrapping_add(op.imm as i64 as u64);
        let predicted = match op.kind {
            Kind::Jal => Some(target),
            Kind::Jalr if is_link(op.rs1) && op.rs1 != op.rd => core.predictor.pop(),
            Kind::Jalr => None,
            _ if core.predictor.predict(new.pc, op.imm < 0) => Some(target),
            _ => Some(behind),
        };
        if matches!(op.kind, Kind::Jal | Kind::Jalr) && is_link(op.rd) {
            core.predictor.call(behind);
        }
        new.predicted = predicted;
        match predicted {
            None => self.stopped = Stopped::Jump,
            Some(next) => {
                core.pc = next;
                if next != behind {
                    self.fetch_at = now + self.cycle + core.costs.jump_penalty;
                    self.fetch_cause = Cause::Branch;
                }
            }
        }
    }
}

fn entry(op: Op, bits: u32, pc: u64, class: Class, now: Tick, position: (u32, u32)) -> Entry {
    Entry {
        op,
        bits,
        pc,
        class,
        dispatched: now,
        sources: [(NO_REGISTER, 0); 3],
        missing: 0,
        ready: now,
        destination: NO_REGISTER,
        dependents: Vec::new(),
        value: 0,
        bound: false,
        done: UNKNOWN,
        flags: 0,
        address: None,
        bytes: 0,
        forwarded: NOBODY,
        asked: 0,
        at_head: false,
        started: false,
        predicted: None,
        taken: false,
        wrong: false,
        position,
        exception: None,
    }
}
