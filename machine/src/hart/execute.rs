//! The dispatch loop: executes the operations of a block and spends their dynamic time.
//!
//! This file holds the semantics of each instruction, once (longer ones are in their extension's file under `isa`); memory
//! accesses are in `execute_memory.rs`, privileged instructions in `execute_system.rs`.

use super::block::{Block, BlockCache, slot};
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
    /// Lines of the block are on their way; these tokens report them.
    Fetching([Option<u32>; 2]),
}

/// The page of instructions that the loop of blocks is in: its number, and the difference to physical addresses. What an operation does to
/// the translation of instructions ends the loop, so the page stays.
struct Page {
    number: u64,
    delta: u64,
}

impl Page {
    /// No address has this page.
    const NONE: Self = Self {
        number: u64::MAX,
        delta: 0,
    };

    /// The physical address of an instruction in this page.
    #[inline(always)]
    fn physical(&self, pc: u64) -> Option<u64> {
        (pc >> 12 == self.number).then(|| pc.wrapping_add(self.delta))
    }

    /// The physical address of an instruction in another page, if its translation is known.
    #[inline(always)]
    fn enter(&mut self, core: &Core, pc: u64) -> Option<u64> {
        let physical = core.mmu.quick(Need::Execute, pc)?;
        *self = Self {
            number: pc >> 12,
            delta: physical.wrapping_sub(pc),
        };
        Some(physical)
    }
}

/// Instruction lines that hit when they are fetched again: each is the line used last in its set, and nothing is on its way to the cache. A fetch
/// of any other line may change that, and what makes the hart forget its last line.
struct FetchedLines([u64; 8]);

impl FetchedLines {
    const NONE: Self = Self([NO_LINE; 8]);

    /// The place of a line. Lines may be shorter or longer than 64 bytes; then fewer are known.
    #[inline(always)]
    fn place(line: u64) -> usize {
        (line >> 6) as usize & 7
    }

    /// Fetches a line again. False: nothing has happened.
    #[inline(always)]
    fn again<B: Bus>(&self, core: &mut Core, bus: &mut B, line: u64) -> bool {
        let hits = self.0[Self::place(line)] == line && bus.fetch_again(line);
        if hits {
            core.fetch_line = line;
        }
        hits
    }

    /// [`Core::fetch`].
    #[inline]
    fn fetch<B: Bus>(&mut self, core: &mut Core, bus: &mut B, physical: u64) -> Option<u32> {
        let line = physical & core.line_mask;
        if self.again(core, bus, line) {
            return None;
        }
        if bus.fetch_recent(core.base, physical) {
            self.0[Self::place(line)] = line;
            core.fetch_line = line;
            return None;
        }
        *self = Self::NONE;
        core.fetch(bus, physical)
    }

    /// Fetches another line than the last one, and the next line too if a block `straddles`. Apart from the loop of blocks. Returns what is on
    /// its way.
    #[inline(never)]
    fn fetch_for_block<B: Bus>(
        &mut self,
        core: &mut Core,
        bus: &mut B,
        physical: u64,
        straddles: bool,
    ) -> Option<[Option<u32>; 2]> {
        let mut tokens = [self.fetch(core, bus, physical), None];
        if straddles {
            // A block that reaches into another page is not in the table.
            let next = (physical & core.line_mask) + !core.line_mask + 1;
            tokens[1] = self.fetch(core, bus, next);
        }
        (tokens != [None; 2]).then_some(tokens)
    }
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
    let mut counted = start;
    let table = blocks.table();
    let mut page = Page::NONE;
    let mut fetched = FetchedLines::NONE;
    // Interrupts come from outside, from writes of registers and from counters that overflow: none of them within this loop.
    let interrupted = core.interrupt_wakes();
    // Where the block begins; no address is odd.
    let mut beginning = if interrupted { 1 } else { core.pc };
    let mut rest = operations[start..].iter();
    // The index of the present operation.
    macro_rules! index {
        () => {
            operations.len() - rest.len() - 1
        };
    }
    macro_rules! leave {
        ($exit:expr) => {{
            let index = index!();
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
            let value = blocks.bits(block, index!());
            leave!(Exit::Trap(Exception {
                cause: cause::ILLEGAL,
                value
            }))
        }};
    }
    loop {
        loop {
            let Some(op) = rest.next() else {
                core.statistics.instructions += (operations.len() - counted) as u64;
                core.pc = core.pc.wrapping_add(block.bytes as u64);
                core.end_block(blocks, block, 0);
                break;
            };
            if WATCHED && index!() != start {
                let index = index!();
                core.statistics.instructions += (index - counted) as u64;
                counted = index;
                let now = core.base + op.cycle as Tick * cycle;
                core.ask_caches(bus);
                if core.note_overflows(now) && core.interrupt_is_due(now) {
                    return (End::Overflow(index), current);
                }
            }
            if core.under_way {
                let registers = op.registers;
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
            let a = core.x[op.rs1 as usize];
            let b = core.x[op.rs2 as usize];
            let imm = op.imm as i64 as u64;
            let shift = op.imm as u32;
            macro_rules! set {
                ($value:expr) => {
                    core.x[op.rd as usize] = $value
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
                        let index = index!();
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
                    core.branch((blocks, block), op, $taken, operations.len() - counted);
                    break;
                }};
            }
            integer_operations!(op.kind, set, branch, (a, b, imm, shift), {
                Kind::Auipc => set!(core.pc.wrapping_add(op.offset as u64).wrapping_add(imm)),
                Kind::Jal => {
                    core.statistics.instructions += (operations.len() - counted) as u64;
                    core.jump_direct((blocks, block), op);
                    break
                }
                Kind::Jalr => {
                    core.statistics.instructions += (operations.len() - counted) as u64;
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
                    let bits = blocks.bits(block, index!());
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
                Kind::FenceI | Kind::Csrrw | Kind::Csrrs | Kind::Csrrc | Kind::Csrrwi | Kind::Csrrsi | Kind::Csrrci
                | Kind::Ecall | Kind::Ebreak | Kind::Mret | Kind::Sret | Kind::Wfi | Kind::SfenceVma | Kind::Illegal => {
                    // They end the block, and may look at the instruction counter. (Each is named, so that no kind needs a check.)
                    let index = index!();
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
        }
        if WATCHED {
            return (End::Done, current);
        }
        counted = 0;
        if core.base >= core.horizon {
            return (End::Done, current);
        }
        // A loop of one block. If its line is still known, neither its translation nor its decoding can have changed in between.
        if core.pc == beginning && core.fetch_line != NO_LINE && !block.straddles {
            debug_assert!(block.is_in(core.fetch_line, core.line_mask), "{block:?}");
            rest = operations.iter();
            continue;
        }
        let physical = match page.physical(core.pc) {
            None if !interrupted => page.enter(core, core.pc),
            known => known,
        };
        let Some(physical) = physical else {
            return (End::Done, current);
        };
        let next = slot(physical);
        if !table[next].is_at(physical) || !core.may_use::<B>(next) {
            return (End::Done, current);
        }
        let (line, straddles) = (physical & core.line_mask, table[next].straddles);
        if line != core.fetch_line || straddles {
            if core.forget_blocks || bus.regulates() {
                return (End::Done, current);
            }
            if core.fetch_line == NO_LINE {
                fetched = FetchedLines::NONE;
            }
            if (straddles || !fetched.again(core, bus, line))
                && let Some(tokens) = fetched.fetch_for_block(core, bus, physical, straddles)
            {
                return (End::Fetching(tokens), next);
            }
        }
        current = next;
        block = &table[next];
        operations = blocks.operations(block);
        rest = operations.iter();
        beginning = core.pc;
    }
}

/// The checks before an operation while misses are outstanding.
#[cold]
fn careful(core: &mut Core, op: &Op, mask: u64, cycle: Tick) -> Result<(), Exit> {
    let offset = op.cycle as Tick * cycle;
    if let Some(at) = core.pending.take_single(mask, core.base + offset) {
        core.statistics.stall_load += core.delay_until(at, offset);
        return Ok(());
    }
    core.wait_registers(mask, offset)?;
    if core.pending.is_full(core.load_limit) && op.unit() == Unit::Load {
        core.wait_load_room(offset)?;
    }
    Ok(())
}

impl Core {
    /// A marker hint with the value `a` at an address.
    #[inline(always)]
    pub fn mark<B: Bus>(&mut self, bus: &mut B, op: &Op, (pc, a): (u64, u64), now: Tick) {
        self.settle(bus);
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

    /// Ends a block with a conditional branch. `count`: instructions that have not been counted.
    #[inline(always)]
    fn branch(
        &mut self,
        (blocks, block): (&BlockCache, &Block),
        op: &Op,
        taken: bool,
        count: usize,
    ) {
        let pc = self.pc.wrapping_add(op.offset as u64);
        self.statistics.branches += 1;
        // Outcomes are as random for the host as for the hart, so nothing here asks for them with a branch.
        let outcome = self.predictor.branch(pc, taken, op.imm < 0);
        self.statistics.instructions += count as u64;
        self.statistics.mispredictions += u64::from(outcome.wrong());
        let penalty = self.costs.branches[outcome.number()];
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

    #[inline(always)]
    fn jump_direct(&mut self, (blocks, block): (&BlockCache, &Block), op: &Op) {
        let pc = self.pc.wrapping_add(op.offset as u64);
        let link = pc.wrapping_add(op.length as u64);
        self.x[op.rd as usize] = link;
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
        self.x[op.rd as usize] = link;
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
