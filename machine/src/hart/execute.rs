//! The dispatch loop: executes the operations of a block and spends their dynamic time.
//!
//! This file holds the semantics of each instruction, once (longer ones are in their extension's file under `isa`); memory
//! accesses are in `execute_memory.rs`, privileged instructions in `execute_system.rs`.

use super::block::{Block, BlockCache};
use super::bus::Bus;
use super::core::{Core, Exception, Exit, Mode, NO_LINE, Privilege};
use super::isa::{Op, SINK, Unit, float, integer_operations};
use super::pmp::Need;
use super::trap::cause;
use crate::types::Tick;
use bulkhead_abi::marker::MarkerKind;

/// How a block ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All operations done; the next block can start.
    Done,
    /// Suspended at the operation with this index.
    Suspended(usize, super::Stop),
    /// The operation with this index raised an exception.
    Trap(usize, Exception),
    /// The hart left the block after this operation because it sleeps or waits.
    Left,
    /// A counter has overflowed; its interrupt is taken before the operation with this index.
    Overflow(usize),
    /// The line of the block is on its way; this token reports it.
    Fetching(u32),
}

/// The next block in the usual case: no interrupt, time left, a decoded block in one line. Also returns its physical address.
#[inline(always)]
fn quick_block<B: Bus>(core: &Core, blocks: &BlockCache) -> Option<(usize, u64)> {
    if !core.may_go_on() {
        return None;
    }
    let physical = core.mmu.quick(Need::Execute, core.pc)?;
    let index = blocks
        .find(physical)
        .filter(|index| core.may_use::<B>(*index))?;
    (!blocks.block(index).straddles).then_some((index, physical))
}

/// [`Core::fetch`] of another line than the last one, apart from the loop of blocks.
#[inline(never)]
fn fetch_another<B: Bus>(core: &mut Core, bus: &mut B, physical: u64) -> Option<u32> {
    if bus.fetch_recent(core.base, physical) {
        core.fetch_line = physical & core.line_mask;
        return None;
    }
    core.fetch(bus, physical)
}

/// Executes blocks while the next one is found quickly, beginning with operation `start` of a block. Returns in which block it
/// ended, and how.
///
/// `WATCHED`: a counter is near its end, so the hart checks for overflows after each operation and executes only one block.
pub fn run_blocks<B: Bus, const WATCHED: bool>(
    core: &mut Core,
    bus: &mut B,
    blocks: &BlockCache,
    first: usize,
    start: usize,
) -> (End, usize) {
    let cycle = core.costs.cycle;
    let mut current = first;
    let mut block = blocks.block(current);
    let mut operations = blocks.operations(block);
    let mut index = start;
    let mut counted = start;
    let mut beginning = (core.pc, core.fetch_line);
    macro_rules! leave {
        ($exit:expr) => {{
            core.statistics.instructions += (index - counted) as u64;
            let end = match $exit {
                Exit::Suspend(stop) => End::Suspended(index, stop),
                Exit::Trap(exception) => End::Trap(index, exception),
            };
            return (end, current);
        }};
    }
    macro_rules! attempt {
        ($result:expr) => {
            match $result {
                Ok(value) => value,
                Err(exit) => leave!(exit),
            }
        };
    }
    macro_rules! illegal {
        () => {{
            let value = blocks.bits(block, index);
            leave!(Exit::Trap(Exception {
                cause: cause::ILLEGAL,
                value
            }))
        }};
    }
    loop {
        loop {
            let Some(op) = operations.get(index) else {
                core.statistics.instructions += (index - counted) as u64;
                core.pc = core.pc.wrapping_add(block.bytes as u64);
                core.end_block(blocks, block, 0);
                break;
            };
            if WATCHED && index != start {
                core.statistics.instructions += (index - counted) as u64;
                counted = index;
                let now = core.base + op.cycle as Tick * cycle;
                core.ask_caches(bus);
                if core.note_overflows(now) && core.interrupt_is_due(now) {
                    return (End::Overflow(index), current);
                }
            }
            if core.under_way {
                let registers = blocks.registers(block, index);
                let offset = op.cycle as Tick * cycle;
                if !core.results.are_ready() && core.results.concern(registers, core.base + offset)
                {
                    core.wait_results(registers, offset);
                }
                if core.pending.is_empty() {
                    core.under_way = !core.results.are_ready();
                } else if core.pending.is_full(core.load_limit)
                    || !core.pending.unconcerned(registers, core.base + offset)
                {
                    attempt!(careful(core, op, registers, cycle));
                }
            }
            debug_assert!(core.under_way || core.results.are_ready() && core.pending.is_empty());
            let a = core.x[op.rs1 as usize & 63];
            let b = core.x[op.rs2 as usize & 63];
            let imm = op.imm as i64 as u64;
            let shift = op.imm as u32;
            macro_rules! set {
                ($value:expr) => {
                    core.x[op.rd as usize & 63] = $value
                };
            }
            macro_rules! load {
                ($bytes:literal, $convert:expr) => {{
                    let value = attempt!(core.load::<B, $bytes>(bus, op, a.wrapping_add(imm)));
                    set!($convert(value))
                }};
            }
            macro_rules! store {
                ($bytes:literal, $value:expr) => {{
                    attempt!(core.store::<B, $bytes>(bus, op, a.wrapping_add(imm), $value));
                    if core.mode != Mode::Running {
                        // A device put the hart to sleep.
                        core.statistics.instructions += (index + 1 - counted) as u64;
                        core.pc = core.pc.wrapping_add(op.offset as u64 + op.length as u64);
                        core.leave_results(blocks, block, index + 1, op.cycle + 1);
                        core.base += (op.cycle as Tick + 1) * cycle;
                        return (End::Left, current);
                    }
                }};
            }
            macro_rules! branch {
                ($taken:expr) => {{
                    core.statistics.instructions += (index + 1 - counted) as u64;
                    core.branch((blocks, block), op, $taken);
                    break;
                }};
            }
            integer_operations!(op.kind, set, branch, (a, b, imm, shift), {
                Kind::Auipc => set!(core.pc.wrapping_add(op.offset as u64).wrapping_add(imm)),
                Kind::Jal => {
                    core.statistics.instructions += (index + 1 - counted) as u64;
                    core.jump_direct((blocks, block), op);
                    break
                }
                Kind::Jalr => {
                    core.statistics.instructions += (index + 1 - counted) as u64;
                    core.jump_indirect((blocks, block), op, a.wrapping_add(imm) & !1);
                    break
                }
                Kind::Lb => load!(1, |value| value as i8 as i64 as u64),
                Kind::Lh => load!(2, |value| value as i16 as i64 as u64),
                Kind::Lw => load!(4, |value| value as i32 as i64 as u64),
                Kind::Ld => load!(8, |value| value),
                Kind::Lbu => load!(1, |value| value),
                Kind::Lhu => load!(2, |value| value),
                Kind::Lwu => load!(4, |value| value),
                Kind::Sb => store!(1, b),
                Kind::Sh => store!(2, b),
                Kind::Sw => store!(4, b),
                Kind::Sd => store!(8, b),
                Kind::Marker => {
                    let pc = core.pc.wrapping_add(op.offset as u64);
                    core.mark(bus, op, (pc, a), core.base + op.cycle as Tick * cycle)
                }
                Kind::Fence => attempt!(core.wait_all(op.cycle as Tick * cycle)),
                Kind::CacheBlock => {
                    let bits = blocks.bits(block, index);
                    attempt!(core.cache_block(bus, op, bits, a))
                }
                Kind::Prefetch => core.prefetch(bus, op, a),
                Kind::Lr => attempt!(core.load_reserved(bus, op, a)),
                Kind::Sc => attempt!(core.store_conditional(bus, op, a, b)),
                Kind::Amo => attempt!(core.atomic(bus, op, a, b)),
                Kind::Flw | Kind::Fld | Kind::Fsw | Kind::Fsd if !core.csr.fp_on() => illegal!(),
                Kind::Flw => {
                    let value = attempt!(core.load::<B, 4>(bus, op, a.wrapping_add(imm)));
                    core.set_f(op.rd, value | 0xffff_ffff_0000_0000);
                }
                Kind::Fld => {
                    let value = attempt!(core.load::<B, 8>(bus, op, a.wrapping_add(imm)));
                    core.set_f(op.rd, value);
                }
                Kind::Fsw => store!(4, core.f[op.rs2 as usize & 31]),
                Kind::Fsd => store!(8, core.f[op.rs2 as usize & 31]),
                Kind::FpArithmetic | Kind::FpToInteger | Kind::FpFromInteger if !core.csr.fp_on() => {
                    illegal!()
                }
                Kind::FpArithmetic => {
                    match float::arithmetic(op, &core.f, core.csr.frm, &mut core.csr.fflags) {
                        Ok(value) => core.set_f(op.rd, value),
                        Err(_) => illegal!(),
                    }
                }
                Kind::FpToInteger => {
                    match float::to_integer(op, &core.f, core.csr.frm, &mut core.csr.fflags) {
                        Ok(value) => set!(value),
                        Err(_) => illegal!(),
                    }
                }
                Kind::FpFromInteger => {
                    match float::from_integer(op, a, core.csr.frm, &mut core.csr.fflags) {
                        Ok(value) => core.set_f(op.rd, value),
                        Err(_) => illegal!(),
                    }
                }
                _ => {
                    // Everything else ends the block, and may look at the instruction counter.
                    core.statistics.instructions += (index - counted) as u64;
                    counted = index;
                    let bits = blocks.bits(block, index);
                    if block.is_late() {
                        core.end_results(blocks, block);
                    }
                    if let Err(exit) = core.system(bus, block, op, bits, a, b) {
                        leave!(exit);
                    }
                    core.statistics.instructions += 1;
                    return (End::Done, current);
                }
            });
            index += 1;
        }
        if WATCHED {
            return (End::Done, current);
        }
        index = 0;
        counted = 0;
        // A loop of one block: neither its translation nor its decoding can have changed in between.
        let again = (core.pc, core.fetch_line) == beginning
            && core.fetch_line != NO_LINE
            && !block.straddles;
        if again && core.may_go_on() {
            continue;
        }
        let Some((next, physical)) = quick_block::<B>(core, blocks) else {
            return (End::Done, current);
        };
        if physical & core.line_mask != core.fetch_line {
            if bus.regulates() {
                return (End::Done, current);
            }
            if let Some(token) = fetch_another(core, bus, physical) {
                return (End::Fetching(token), next);
            }
        }
        current = next;
        block = blocks.block(current);
        operations = blocks.operations(block);
        beginning = (core.pc, core.fetch_line);
    }
}

/// The checks before an operation while misses are outstanding.
#[cold]
fn careful(core: &mut Core, op: &Op, mask: u64, cycle: Tick) -> Result<(), Exit> {
    let offset = op.cycle as Tick * cycle;
    core.pending.retire(core.base + offset);
    core.wait_registers(mask, offset)?;
    if op.unit() == Unit::Load {
        core.wait_load_room(offset)?;
    }
    Ok(())
}

impl Core {
    /// A marker hint with the value `a` at an address.
    #[inline(always)]
    pub fn mark<B: Bus>(&mut self, bus: &mut B, op: &Op, (pc, a): (u64, u64), now: Tick) {
        let machine_mode = self.privilege == Privilege::Machine;
        bus.marker(now, pc, op.imm as u16, a, machine_mode);
        if op.imm == MarkerKind::ActivityFault as i32 && machine_mode {
            self.report_crash(bus, now, a);
        }
    }

    /// Whether a decoded block is that of the hart's own memory.
    #[inline(always)]
    pub fn may_use<B: Bus>(&self, block: usize) -> bool {
        !B::SHARES_BLOCKS || self.verified.as_ref().is_none_or(|all| all.has(block))
    }

    /// Whether the next block can start without further checks.
    #[inline(always)]
    fn may_go_on(&self) -> bool {
        self.base < self.horizon && !self.interrupt_wakes() && !self.forget_blocks
    }

    /// Whether an interrupt is taken at `now`, between two instructions.
    #[inline]
    pub fn interrupt_is_due(&self, now: Tick) -> bool {
        self.interrupt_wakes() && self.interrupt_arrival <= now && self.interrupt().is_some()
    }

    #[inline(always)]
    fn set_f(&mut self, register: u8, value: u64) {
        self.f[register as usize & 31] = value;
        self.csr.fp_dirty();
    }

    /// Spends the time of a block, and the ticks from its end to the next operation. Most results that are late are ready by then.
    #[inline(always)]
    fn end_block(&mut self, blocks: &BlockCache, block: &Block, penalty: Tick) {
        if Tick::from(block.beyond) * self.costs.cycle > penalty {
            self.end_results(blocks, block);
        }
        self.base += block.cycles as Tick * self.costs.cycle + penalty;
    }

    /// Ends a block with a conditional branch.
    #[inline(always)]
    fn branch(&mut self, (blocks, block): (&BlockCache, &Block), op: &Op, taken: bool) {
        let pc = self.pc.wrapping_add(op.offset as u64);
        self.statistics.branches += 1;
        let right = self.predictor.branch(pc, taken, op.imm < 0);
        let penalty = match (right, taken) {
            (false, _) => self.mispredicted(),
            (true, true) => self.costs.jump_penalty,
            (true, false) => 0,
        };
        self.end_block(blocks, block, penalty);
        self.statistics.stall_branch += penalty;
        self.pc = pc.wrapping_add(if taken {
            op.imm as i64 as u64
        } else {
            op.length as u64
        });
    }

    /// Counts a wrong prediction; its penalty in ticks.
    fn mispredicted(&mut self) -> Tick {
        self.statistics.mispredictions += 1;
        self.costs.branch_penalty
    }

    #[inline(never)]
    fn jump_direct(&mut self, (blocks, block): (&BlockCache, &Block), op: &Op) {
        let pc = self.pc.wrapping_add(op.offset as u64);
        let link = pc.wrapping_add(op.length as u64);
        self.x[op.rd as usize & 63] = link;
        if is_link(op.rd) {
            self.predictor.call(link);
        }
        self.end_block(blocks, block, self.costs.jump_penalty);
        self.statistics.stall_branch += self.costs.jump_penalty;
        self.pc = pc.wrapping_add(op.imm as i64 as u64);
    }

    /// The return-address stack follows table 2.1 of the unprivileged specification.
    #[inline(never)]
    fn jump_indirect(&mut self, (blocks, block): (&BlockCache, &Block), op: &Op, target: u64) {
        let link = self.pc.wrapping_add(op.offset as u64 + op.length as u64);
        self.x[op.rd as usize & 63] = link;
        let pops = is_link(op.rs1) && op.rs1 != op.rd;
        let penalty = match pops && self.predictor.returns_to(target) {
            true => self.costs.jump_penalty,
            false => self.mispredicted(),
        };
        self.end_block(blocks, block, penalty);
        self.statistics.stall_branch += penalty;
        if is_link(op.rd) {
            self.predictor.call(link);
        }
        self.pc = target;
    }
}

/// `x1` and `x5` are link registers by convention; the sink is neither.
pub fn is_link(register: u8) -> bool {
    const _: () = assert!(SINK != 1 && SINK != 5);
    register == 1 || register == 5
}
